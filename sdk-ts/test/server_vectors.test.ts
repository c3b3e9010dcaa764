import { beforeEach, describe, expect, it } from "vitest";
import { Datastore } from "./support/datastore";
import { hex, hostError, Module, type Sdk } from "./support/host";

// The vectors of spec 04 §13, for this SDK and, so that the vectors themselves are checked, for the published package.

const MINIMAL = `
import { schema, t } from "spacetimedb/server";
const s = schema({});
export const b = s.reducer({ s: t.string(), blob: t.byteArray(), o: t.option(t.u8()) }, (ctx, args) => {
  console.log(args, args.blob instanceof Uint8Array, String(ctx.sender), ctx.timestamp.microsSinceUnixEpoch);
});
export const noop = s.reducer(() => {});
export default s;`;

const PERSON = `
import { schema, t, table, Range, SenderError, errors } from "spacetimedb/server";
const person = table(
  { public: true, indexes: [{ accessor: "nameAge", algorithm: "btree", columns: ["name", "age"] }] },
  { id: t.u64().primaryKey().autoInc(), name: t.string().index(), age: t.u8() },
);
const s = schema({ person });
export const add = s.reducer({ name: t.string(), age: t.u8() }, (ctx, { name, age }) => {
  console.log("inserted", ctx.db.person.insert({ id: 0n, name, age }));
});
export const crash = s.reducer(() => { throw new Error("boom"); });
export const fail = s.reducer(() => { throw new SenderError("no way"); });
export const init = s.init(() => {});
export const rnd = s.reducer((ctx) => {
  ctx.senderAuth.jwt;
  console.log(String(ctx.databaseIdentity));
  console.time("x");
  console.timeEnd("x");
  console.error("e"); console.warn("w"); console.debug("d"); console.trace("t");
  console.log(ctx.random() < 1, ctx.newUuidV4().getVersion(), ctx.newUuidV7().getCounter(), ctx.newUuidV7().getCounter());
});
export const scan = s.reducer((ctx) => {
  const { person } = ctx.db;
  console.log([...person.iter()].length, person.count());
  [...person.name.filter("bob")];
  [...person.name.filter(new Range({ tag: "included", value: "a" }, { tag: "excluded", value: "c" }))];
  [...person.nameAge.filter(["bob"])];
  [...person.nameAge.filter(["bob", 7])];
  [...person.nameAge.filter(["bob", new Range({ tag: "excluded", value: 3 })])];
  console.log(person.id.find(5n));
  person.id.update({ id: 5n, name: "zed", age: 9 });
  person.delete({ id: 5n, name: "zed", age: 9 });
  person.id.delete(6n);
  person.name.delete("bob");
  console.log(person.clear());
});
export const walk = s.reducer((ctx) => { for (const _ of ctx.db.person) break; });
export const walkAll = s.reducer((ctx) => { for (const p of ctx.db.person.iter()) console.log(p.name); });
export const unique = s.reducer((ctx) => {
  try {
    ctx.db.person.insert({ id: 1n, name: "", age: 0 });
  } catch (e) {
    console.log(e.name, e.message, e instanceof errors.UniqueAlreadyExists);
  }
});
export const mine = s.view({ public: true }, t.array(person.rowType), (ctx) => [{ id: 5n, name: "bob", age: 7 }]);
export const one = s.view({ public: true }, t.option(person.rowType), (ctx) => ({ id: 5n, name: "bob", age: 7 }));
export const none = s.view({ public: true }, t.option(person.rowType), (ctx) => undefined);
export const query = s.anonymousView({ public: true }, t.array(person.rowType), (ctx) => ctx.from.person.where((p) => p.name.eq("bob")));
export default s;`;

/** Reducer numbers: exports in alphabetical order. */
const ADD = 0;
const CRASH = 1;
const FAIL = 2;
const RND = 4;
const SCAN = 5;
const UNIQUE = 6;
const WALK = 7;
const WALK_ALL = 8;

const INDEX_IDS = { person_id_idx_btree: 19, person_name_idx_btree: 21, person_name_age_idx_btree: 25 };
const LOOKUPS = [
  'table_id_from_name("person")',
  'index_id_from_name("person_id_idx_btree")',
  'index_id_from_name("person_name_idx_btree")',
  'index_id_from_name("person_name_age_idx_btree")',
];
const BOB = "0500000000000000" + "03000000626f62" + "07";

describe.each<[string, Sdk]>([
  ["lightcone", "ours"],
  ["the published package", "npm"],
])("vectors of the JavaScript ABI: %s", (_, sdk) => {
  let data: Datastore;
  let module: Module;

  beforeEach(async () => {
    data = new Datastore(INDEX_IDS);
    module = await Module.load(PERSON, sdk, data.functions);
  });

  /** What a call of a reducer throws, and whether it is a user error. */
  const failure = (id: number) => {
    try {
      module.reducer(id);
    } catch (error: any) {
      return { text: String(error), isUserError: error instanceof module.hooks.__sender_error_class__ };
    }
    return undefined;
  };

  it("13.1: the minimal module", async () => {
    const minimal = await Module.load(MINIMAL, sdk, data.functions);
    expect(minimal.describe()).toBe(
      "020f00000000020000000203000000000100000073040004000000626c6f62030700010000006f01020000000004000000736f6d650700040000006e6f6e65020000000002000000000102000000000000000100000042000000000100000000040000004e6f6f70010000000102000000000302000000010000006203000000000100000073040004000000626c6f62030700010000006f01020000000004000000736f6d650700040000006e6f6e6502000000000102000000000404000000" +
        "6e6f6f700000000001020000000004040000000005000000000d00000000060000000007000000000b000000000c0000000008000000000a0000000009010e00000000",
    );
    expect(data.take()).toEqual([]);
    expect(minimal.reducer(0, "02000000c3a9" + "03000000010203" + "0007")).toBeUndefined();
    expect(data.take()).toEqual([
      `log(2) { s: 'é', blob: Uint8Array [Uint8Array] { 0: 1, 1: 2, 2: 3 }, o: 7 } true ${"1234".padStart(64, "0")} 1700000000000000n`,
    ]);
    expect(minimal.reducer(1)).toBeUndefined();
    expect(data.take()).toEqual([]);
    expect(() => minimal.reducer(2)).toThrow(expect.objectContaining({ name: "TypeError" }));
    expect(() => minimal.reducer(0, "02")).toThrow(expect.objectContaining({ name: "RangeError" }));
  });

  it("13.2: insert, with the lookups of the first call", () => {
    data.writeBack = "6400000000000000";
    expect(module.reducer(ADD, "03000000626f62" + "07")).toBeUndefined();
    expect(data.take()).toEqual([
      ...LOOKUPS,
      "insert(4096, 16) 000000000000000003000000626f6207",
      "log(2) inserted { id: 100n, name: 'bob', age: 7 }",
    ]);
    module.reducer(ADD, "03000000626f62" + "07");
    expect(data.take()).toHaveLength(2);
  });

  it("13.2: errors", () => {
    expect(failure(CRASH)).toEqual({ text: "Error: boom", isUserError: false });
    expect(failure(FAIL)).toEqual({ text: "SenderError: no way", isUserError: true });
  });

  it("13.2: token, identity, timers, levels of the log", () => {
    module.reducer(RND, "", { connection: 7n });
    expect(data.take().slice(LOOKUPS.length)).toEqual([
      "jwt(7)",
      `log(2) ${"c200".padStart(64, "0")}`,
      'timer_start("x")',
      "timer_end(1)",
      "log(0) e",
      "log(1) w",
      "log(3) d",
      "log(4) t",
      "log(2) true V4 0 1",
    ]);
  });

  it("13.2: scans, updates, deletes", () => {
    data.answers.push(BOB + BOB, BOB, BOB, BOB, BOB, BOB, BOB);
    module.reducer(SCAN);
    const advance = (iterator: number, length = 16) => `advance(${iterator}, 65536) -> -${length}`;
    expect(data.take().slice(LOOKUPS.length)).toEqual([
      "table_scan(4096)",
      advance(1, 32),
      "row_count",
      "log(2) 2 2n",
      "point(21, 7) 03000000626f62",
      advance(2),
      "range(21, 0, 0, 6, 6) 000100000061010100000063",
      advance(3),
      "range(25, 0, 0, 8, 0) 0003000000626f62",
      advance(4),
      "point(25, 8) 03000000626f6207",
      advance(5),
      "range(25, 7, 1, 2, 1) 03000000626f62010302",
      advance(6),
      "point(19, 8) 0500000000000000",
      advance(7),
      "log(2) { id: 5n, name: 'bob', age: 7 }",
      "update(4096, 19, 16) 0500000000000000030000007a656409",
      "delete_eq(4096, 20) 010000000500000000000000030000007a656409",
      "delete_point(19, 8) 0600000000000000",
      "delete_point(21, 7) 03000000626f62",
      "clear",
      "log(2) 2n",
    ]);
  });

  it("13.2: views", () => {
    const { hooks } = module;
    const rows = `0001000000${BOB}`;
    const nothing = new Uint8Array(0);
    expect(hex(hooks.__call_view__(0, 0x1234n, nothing).data)).toBe(rows);
    expect(hex(hooks.__call_view__(2, 0x1234n, nothing).data)).toBe(rows);
    expect(hex(hooks.__call_view__(1, 0x1234n, nothing).data)).toBe("0000000000");
    const sql = `SELECT * FROM "person" WHERE "person"."name" = 'bob'`;
    const { data: answer } = hooks.__call_view_anon__(0, nothing);
    expect(hex(answer.slice(0, 5))).toBe("0134000000");
    expect(Buffer.from(answer.slice(5)).toString()).toBe(sql);
  });

  it("13.4: an iterator that is left early is closed", () => {
    data.answers.push({ more: BOB });
    module.reducer(WALK);
    expect(data.take().slice(LOOKUPS.length)).toEqual([
      "table_scan(4096)",
      "advance(1, 65536) -> 16",
      "close(1)",
    ]);
  });

  it("13.4: an empty scan is not closed, a small buffer grows", () => {
    module.reducer(WALK_ALL);
    expect(data.take().slice(LOOKUPS.length)).toEqual(["table_scan(4096)", "advance(1, 65536) -> 0"]);
    data.answers.push({ tooSmall: 70_000 }, { more: BOB }, BOB + BOB);
    module.reducer(WALK_ALL);
    expect(data.take()).toEqual([
      "table_scan(4096)",
      "advance(2, 65536) too small",
      "advance(2, 70000) -> 16",
      "log(2) bob",
      "advance(2, 70000) -> -32",
      "log(2) bob",
      "log(2) bob",
    ]);
  });

  it("13.4: errors of the host are classes of the module", () => {
    data.functions["datastore_insert_bsatn"] = () => {
      throw hostError(module, 12, "Value with given unique identifier already exists");
    };
    module.reducer(UNIQUE);
    expect(data.take().at(-1)).toBe(
      "log(2) UniqueAlreadyExists Value with given unique identifier already exists true",
    );
    expect(String(hostError(module, 12, "m"))).toBe("UniqueAlreadyExists: m");
    for (const code of [10, 22, 99]) {
      expect((hostError(module, code, "m") as Error).name).toBe("SpacetimeHostError");
    }
    const names = [1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 13, 14, 15, 16, 17, 18, 19, 20, 21].map(
      (code) => (hostError(module, code, "m") as Error).name,
    );
    expect(names.join(" ")).toBe(
      "HostCallFailure NotInTransaction BsatnDecodeError NoSuchTable NoSuchIndex NoSuchIter NoSuchConsoleTimer NoSuchBytes NoSpace BufferTooSmall ScheduleAtDelayTooLong IndexNotUnique NoSuchRow AutoIncOverflow WouldBlockTransaction TransactionNotAnonymous TransactionIsReadOnly TransactionIsMut HttpError",
    );
  });

  it("13.4: counted columns are filled in only where they were zero", async () => {
    const counted = await Module.load(
      `import { schema, t, table } from "spacetimedb/server";
       const s = schema({ c: table({}, { a: t.u32().primaryKey().autoInc(), b: t.i64() }) });
       export const add = s.reducer({ a: t.u32() }, (ctx, { a }) => { console.log(ctx.db.c.insert({ a, b: -256n }).a); });
       export default s;`,
      sdk,
      data.functions,
    );
    counted.reducer(0, "05000000");
    expect(data.take().slice(2)).toEqual(["insert(4096, 12) 0500000000ffffffffffffff", "log(2) 5"]);
    data.writeBack = "4d000000";
    counted.reducer(0, "00000000");
    expect(data.take()).toEqual(["insert(4096, 12) 0000000000ffffffffffffff", "log(2) 77"]);
  });

  it("looks tables up again after a lookup that failed", async () => {
    let fail = true;
    const lookup = data.functions["index_id_from_name"]!;
    data.functions["index_id_from_name"] = (name: string) => {
      if (fail) throw hostError(module, 5, "no such index");
      return lookup(name);
    };
    expect(failure(WALK_ALL)).toEqual({ text: "NoSuchIndex: no such index", isUserError: false });
    fail = false;
    data.take();
    module.reducer(WALK_ALL);
    expect(data.take().slice(0, 4)).toEqual(LOOKUPS);
  });
});
