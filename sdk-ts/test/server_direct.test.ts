import { beforeEach, describe, expect, it } from "vitest";
import { Datastore } from "./support/datastore";
import { hex, Module } from "./support/host";

// The functions that a Lightcone host adds (docs/js-abi.md).

const SOURCE = `
import { Range, schema, t, table } from "spacetimedb/server";
const s = schema({
  fixed: table({}, { id: t.u32().primaryKey().autoInc(), n: t.i64(), big: t.u256(), neg: t.i128(), flag: t.bool(), f: t.f64(), who: t.identity(), when: t.timestamp(), seq: t.u8().autoInc(), inner: t.object("Inner", { "a-b": t.u16(), __proto: t.i8() }) }),
  text: table({}, { id: t.u32().primaryKey(), name: t.string().unique() }),
});
const row = (ctx, id, seq) => ({ id, n: -2n, big: (1n << 255n) | 5n, neg: -3n, flag: true, f: 0.5, who: ctx.sender, when: ctx.timestamp, seq, inner: { "a-b": 515, __proto: -1 } });
export const a_insert = s.reducer({ id: t.u32(), seq: t.u8() }, (ctx, { id, seq }) => {
  const given = row(ctx, id, seq);
  const inserted = ctx.db.fixed.insert(given);
  console.log(inserted !== given, inserted.id, inserted.seq, given.id, given.seq);
});
export const b_update = s.reducer((ctx) => { console.log(ctx.db.fixed.id.update(row(ctx, 7, 1)).id); });
export const c_find = s.reducer({ id: t.u32() }, (ctx, { id }) => {
  const found = ctx.db.fixed.id.find(id);
  console.log(found === null ? null : [found, String(found.who)]);
});
export const d_context = s.reducer((ctx) => {
  const { sender, timestamp, connectionId } = ctx;
  console.log(String(sender), timestamp.microsSinceUnixEpoch, connectionId?.toHexString() ?? "none", ctx.sender === sender, ctx.random());
});
export const e_text = s.reducer({ name: t.string() }, (ctx, { name }) => { console.log(ctx.db.text.name.find(name)?.name.length); });
export const f_delete = s.reducer((ctx) => { console.log(ctx.db.fixed.id.delete(9)); });
export const g_ranges = s.reducer((ctx) => {
  console.log([...ctx.db.fixed.id.filter(new Range({ tag: "included", value: 7 }))].length, [...ctx.db.text.name.filter("bob")].length);
});
export default s;`;

const SENDER = "01".repeat(31) + "c2";
const FIXED_SIZE_BYTES = 4 + 8 + 32 + 16 + 1 + 8 + 32 + 8 + 1 + 3;

describe.each([
  ["the added functions", true],
  ["the standard functions", false],
])("calls with %s", (_, direct) => {
  let data: Datastore;
  let module: Module;
  let callBuffer: ArrayBuffer;
  /** Rows that a point read finds, or the size it asks for. */
  let found: string;

  beforeEach(async () => {
    data = new Datastore();
    callBuffer = new ArrayBuffer(4096);
    found = "";
    module = await Module.load(SOURCE, "ours", data.functions, (context) => {
      if (!direct) return;
      (context.__sys as any).fast = {
        version: 1,
        callBuffer,
        point_read: (index: number, buffer: ArrayBuffer, length: number) => {
          data.log.push(`point_read(${index}, ${length}) ${hex(new Uint8Array(buffer, 0, length))}`);
          const row = Buffer.from(found, "hex");
          if (row.length > buffer.byteLength) return -row.length;
          new Uint8Array(buffer).set(row);
          return row.length;
        },
        row_update: data.functions["datastore_update_bsatn"],
      };
      Object.defineProperty(context, Symbol.for("lightcone.sys.1"), { value: context.__sys.fast });
      // The symbol of the registry is the same in all contexts of this process.
    });
  });

  const call = (id: number, args = "", connection = "00".repeat(16)) => {
    const bytes = Buffer.from(args, "hex");
    if (!direct) {
      return module.reducer(id, args, {
        sender: BigInt(`0xc2${"01".repeat(31)}`),
        timestamp: -5n,
        connection: BigInt(`0x${Buffer.from(connection, "hex").reverse().toString("hex")}`),
      });
    }
    const head = Buffer.from(SENDER + connection + "fbffffffffffffff" + "00".repeat(8), "hex");
    new Uint8Array(callBuffer).set(head);
    new Uint8Array(callBuffer).set(bytes, 64);
    return module.hooks.__lightcone_call_reducer__(id, bytes.length);
  };

  const ROW = (id: string, seq: string) =>
    `${id}feffffffffffffff05${"00".repeat(30)}80fd${"ff".repeat(15)}01000000000000e03f${SENDER}fbffffffffffffff${seq}0302ff`;

  const take = () => data.take().filter((line) => !line.includes("_id_from_name"));

  it("has the hook only where the host has the buffer", () => {
    expect(typeof module.hooks.__lightcone_call_reducer__).toBe(direct ? "function" : "undefined");
  });

  it("reads the context of a call", () => {
    expect(call(3, "", `09${"00".repeat(15)}`)).toBeUndefined();
    expect(call(3)).toBeUndefined();
    const [first, second] = take() as [string, string];
    expect(first).toMatch(new RegExp(`^log\\(2\\) c2(01){31} -5n ${"9".padStart(32, "0")} true 0\\.`));
    expect(second).toMatch(/ -5n none true 0\./);
  });

  it("inserts, and fills in counted columns", () => {
    data.writeBack = "4d000000" + "09";
    call(0, "00000000" + "00");
    data.writeBack = "09";
    call(0, "03000000" + "00");
    data.writeBack = "";
    call(0, "03000000" + "04");
    expect(take()).toEqual([
      `insert(4096, ${FIXED_SIZE_BYTES}) ${ROW("00000000", "00")}`,
      "log(2) true 77 9 0 0",
      `insert(4096, ${FIXED_SIZE_BYTES}) ${ROW("03000000", "00")}`,
      "log(2) true 3 9 3 0",
      `insert(4096, ${FIXED_SIZE_BYTES}) ${ROW("03000000", "04")}`,
      "log(2) true 3 4 3 4",
    ]);
  });

  it("updates and deletes", () => {
    call(1);
    call(5);
    expect(take()).toEqual([
      `update(4096, 99, ${FIXED_SIZE_BYTES}) ${ROW("07000000", "01")}`,
      "log(2) 7",
      "delete_point(99, 4) 09000000",
      "log(2) true",
    ]);
  });

  it("finds rows of fixed size", () => {
    call(2, "07000000");
    found = ROW("07000000", "01");
    data.answers.push(found);
    call(2, "07000000");
    const lines = take().filter((line) => line.startsWith("log"));
    expect(lines[0]).toBe("log(2) null");
    expect(lines[1]).toContain("n: -2n");
    expect(lines[1]).toContain(`big: ${(1n << 255n) | 5n}n, neg: -3n, flag: true, f: 0.5`);
    expect(lines[1]).toContain("inner: { 'a-b': 515, __proto: -1 } }");
    expect(lines[1]).toContain(`'c2${"01".repeat(31)}'`);
  });

  it("finds ranges of unique columns", () => {
    data.answers.push("", "");
    call(6);
    const ranges = take().filter((line) => !line.startsWith("advance"));
    expect(ranges).toEqual([
      expect.stringMatching(/^range\(\d+, 0, 0, 5, 1\) 000700000002$/),
      expect.stringMatching(/^point\(\d+, 7\) 03000000626f62$/),
      "log(2) 0 0",
    ]);
  });

  it("finds rows that are larger than the buffer", () => {
    const name = "6e".repeat(100_000);
    found = `01000000a0860100${name}`;
    data.answers.push({ tooSmall: found.length / 2 }, found);
    call(4, "01000000" + "6e");
    expect(take().at(-1)).toBe("log(2) 100000");
  });

  it("refuses arguments that end too early", () => {
    expect(() => call(2, "070000")).toThrow(expect.objectContaining({ name: "RangeError" }));
    expect(() => call(4, "050000006e")).toThrow(expect.objectContaining({ name: "RangeError" }));
  });
});
