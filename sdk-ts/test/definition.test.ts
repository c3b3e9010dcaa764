import { describe, expect, it } from "vitest";
import { Module, type Sdk } from "./support/host";

// The published package is the oracle: the same source gives the same bytes.

const IMPORTS = `import { schema, table, t, CaseConversionPolicy, Router, SyncResponse } from "spacetimedb/server";\n`;

const SOURCES: Record<string, string> = {
  "nothing at all": "export default schema({});",
  "the minimal module": `
    const s = schema({ person: table({ public: true }, { id: t.u64().primaryKey().autoInc(), name: t.string().index() }) });
    export const add = s.reducer({ name: t.string() }, () => {});
    export default s;`,
  "every feature": `
    const Color = t.enum("Color", { RedApple: t.unit(), Custom: t.u32() });
    const Point = t.object("ns.Point", { x: t.f32(), y: t.f32(), c: Color });
    const s = schema({
      player: table(
        {
          public: true,
          name: "players",
          indexes: [
            { accessor: "byTag", algorithm: "btree", columns: ["tag", "slot"], name: "tag_slot" },
            { accessor: "tagHash", algorithm: "hash", columns: ["tag"] },
            { accessor: "direct", algorithm: "direct", column: "slot" },
          ],
          constraints: [{ constraint: "unique", columns: ["slot"], name: "cn" }],
        },
        t.row("PlayerRow", {
          tag: t.string().name("TTag"),
          playerId: t.u32().primaryKey().autoInc(),
          slot: t.u8().index("direct").unique(),
          color: Color,
          u: t.i32().unique().autoInc(),
          level: t.u16().default(7),
          p: Point,
          arr: t.array(Point),
          o: t.option(Point),
          nick: t.string().optional().default(undefined),
          h: t.identity().index("hash"),
          r: t.result(Point, t.string()),
        }),
      ),
      second: table({ name: "Zweite", indexes: [{ accessor: "x", algorithm: "btree", columns: ["a"], name: "xx" }] }, { a: t.u8() }),
      evt: table({ event: true }, { a: t.u8(), c: Color }),
    });
    export const zed = s.reducer({ name: t.string(), p: Point, c: t.option(Color).optional() }, () => {});
    export const abc = s.reducer({ name: "explicitName" }, { q: t.row("Q", { a: t.u8() }) }, () => {});
    export const bcd = s.reducer(() => {});
    export const init = s.init(() => {});
    export const onC = s.clientConnected(() => {});
    export const onD = s.clientDisconnected({ name: "gone" }, () => {});
    export const proc = s.procedure({ x: t.i32(), p: t.object("PA", { a: t.u8() }) }, t.array(t.object("PB", { a: t.u8() })), () => []);
    export const proc2 = s.procedure({ name: "Named" }, t.string(), () => "");
    export const proc3 = s.procedure(t.unit(), () => ({}));
    export const proc4 = s.procedure({ name: "Four" }, { a: t.u8() }, t.unit(), () => ({}));
    export const v1 = s.view({ public: true }, t.array(t.row("ViewRow", { a: t.u8().primaryKey(), b: Color })), () => []);
    export const v2 = s.anonymousView({ public: true, name: "leaders" }, t.option(t.row("VR", { a: t.u8() })), () => undefined);
    export const v3 = s.view({ public: true }, t.array(s.schemaType.tables.evt.columns ? t.row("V3", { z: t.u8() }) : t.row("V4", { z: t.u8() })), () => []);
    export const ping = s.httpHandler(() => new SyncResponse("x"));
    export const routes = s.httpRouter(
      new Router().get("/ping", ping).any("/any", ping).nest("/api", new Router().post("/x", ping)).merge(new Router().patch("/p", ping)),
    );
    export const rules = s.clientVisibilityFilter.sql("SELECT * FROM players");
    export const group = s.exportGroup({ inner: s.reducer({ a: t.u8() }, () => {}), alpha: s.reducer(() => {}) });
    export default s;`,
  "every type": `
    const E = t.enum("E", ["A", "B"]);
    const s = schema({
      a: table({}, {
        bool: t.bool().index(), s: t.string().unique(), n: t.number(), i8: t.i8(), u8: t.u8(), i16: t.i16().index("direct"), u16: t.u16(),
        i32: t.i32(), u32: t.u32(), i64: t.i64().default(-5n), u64: t.u64(), i128: t.i128().default(-1n), u128: t.u128(), i256: t.i256(), u256: t.u256(),
        f32: t.f32().default(0.5), f64: t.f64(), bytes: t.byteArray().default(new Uint8Array([1, 2])), id: t.identity(), conn: t.connectionId(),
        ts: t.timestamp(), td: t.timeDuration(), uuid: t.uuid(), at: t.scheduleAt(), unit: t.unit(),
        arr: t.array(t.array(t.string())).default([["x"]]), opt: t.option(t.option(t.u8())), res: t.result(t.u32(), t.u32()),
        e: E.primaryKey(), e2: E.index("direct"), e3: E.default({ tag: "B" }),
      }),
    });
    export default s;`,
  "rows that are shared": `
    const r = { a: t.u8() };
    const R = t.row("Same", { a: t.u8() });
    const unnamed = t.row({ a: t.u8() });
    const s = schema({ one: table({}, R), two: table({}, R), three: table({}, r), four: table({}, r), five: table({}, unnamed), six: table({ name: "x" }, unnamed) });
    export const f = s.reducer({ r: R }, () => {});
    export default s;`,
  "names that occur twice": `
    const s = schema({
      one: table({}, t.row("X", { a: t.u8() })), two: table({}, t.row("X", { a: t.u16() })),
      foo: table({}, { a: t.object("Foo", { z: t.u8() }) }), x: table({}, { a: t.u8() }),
    });
    export const x = s.reducer(() => {});
    export default s;`,
  "the same reducer twice": `
    const s = schema({});
    const r = s.reducer({ a: t.u8().primaryKey().name("zz") }, () => {});
    export const x = r;
    export const y = r;
    export default s;`,
  schedules: `
    const tick = table({}, { id: t.u64().primaryKey().autoInc(), at: t.scheduleAt() });
    const tock = table({ name: "Tocky", scheduled: () => run }, { id: t.u64().primaryKey().autoInc(), at: t.scheduleAt() });
    const third = table({}, { id: t.u64().primaryKey().autoInc(), at: t.scheduleAt() });
    const s = schema({ tick, tock, third });
    export const run = s.reducer({ name: "RR" }, { arg: tock.rowType }, () => {});
    export const other = s.reducer({ onSchedule: tick }, { arg: tick.rowType }, () => {});
    export const last = s.procedure({ onSchedule: third }, { arg: third.rowType }, t.unit(), () => ({}));
    export default s;`,
  "policy None": `
    const s = schema({ a_b: table({}, { aB: t.u8() }) }, { CASE_CONVERSION_POLICY: CaseConversionPolicy.None });
    export const rootR = s.reducer(() => {});
    export default s;`,
  "names of all shapes": `
    const s = schema({ snake_case_x: table({}, { a: t.u8() }), camelCase: table({}, { a: t.u8() }), A_B2c: table({}, { a: t.u8() }), x1_2y: table({}, { a: t.u8() }), __z: table({}, { a: t.u8() }), q_: table({}, { a: t.u8() }), UPPER: table({}, { a: t.u8() }) });
    export const do_it_now = s.reducer({ a: t.u8() }, () => {});
    export const $dollar = s.reducer(() => {});
    export default s;`,
  "a type that contains itself": `
    const Node: any = t.object("Node", { v: t.u8(), get next() { return t.option(Node); } });
    const s = schema({});
    export const a = s.reducer({ n: Node }, () => {});
    export default s;`,
  "types in types": `
    const A = t.object("A", { z: t.enum("Z", { P: t.object("P", { q: t.array(t.enum("Q", ["x"])) }), R: t.row("R", { i: t.u8() }) }) });
    const s = schema({ a: table({}, { a: A, b: t.array(t.option(A)) }) });
    export const r = s.reducer({ o: t.option(t.array(t.object("Deep", { a: A }))) }, () => {});
    export const p = s.procedure({ a: A }, t.result(A, t.object("Bad", {})), () => ({}) as any);
    export default s;`,
  "indexes over the same columns": `
    const s = schema({
      x: table({ indexes: [{ accessor: "id", algorithm: "btree", columns: ["a"] }] }, { a: t.u8().primaryKey() }),
      y: table({}, { a: t.u8().primaryKey().index("hash") }),
      z: table({ constraints: [{ constraint: "unique", columns: ["b"] }] }, { b: t.u8() }),
    });
    export default s;`,
  "handlers with names": `
    const s = schema({});
    export const h = s.httpHandler({ name: "shown" }, () => new SyncResponse());
    export const r = s.httpRouter(new Router().get("", h).head("/h", h).options("/o", h).put("/p", h).delete("/d", h));
    export default s;`,
};

describe("module definitions", () => {
  for (const [name, source] of Object.entries(SOURCES)) {
    it(`of ${name} are those of the published package`, async () => {
      const describeWith = async (sdk: Sdk) => (await Module.load(IMPORTS + source, sdk)).describe();
      expect(await describeWith("ours")).toBe(await describeWith("npm"));
    });
  }

  it("has the bytes of the specification for the minimal module (02 §16.1, §16.2)", async () => {
    const empty = await Module.load(IMPORTS + SOURCES["nothing at all"], "ours");
    expect(empty.describe()).toBe(
      "020f0000000000000000010000000002000000000300000000040000000005000000000d00000000060000000007000000000b000000000c0000000008000000000a0000000009010e00000000",
    );
    const minimal = await Module.load(IMPORTS + SOURCES["the minimal module"], "ours");
    expect(minimal.describe()).toHaveLength(2 * 327);
  });

  it("nests submodules as the specification says (02 §16.4)", async () => {
    const source = `${IMPORTS}
      const lib = schema({ item: table({}, { id: t.u32().primaryKey() }) });
      const doIt = lib.reducer(() => {});
      const s = schema({ user: table({}, { a: t.u8() }), lib: { default: lib, doIt } }, { CASE_CONVERSION_POLICY: CaseConversionPolicy.None });
      export const rootR = s.reducer(() => {});
      export default s;`;
    const ours = (await Module.load(source, "ours")).describe();
    expect(ours).toBe((await Module.load(source, "npm")).describe());
    expect(ours).toContain(
      "0e01000000030000006c69620f00000000020000000201000000000200000069640b0200000000010200000000000000040000004974656d0000000001000000000400",
    );
  });

  it.each([
    [
      "an export of something else",
      "const s = schema({}); export const x = 3; export default s;",
      /not a spacetime export.*`x`.*LC0807/,
    ],
    [
      "a scheduled function that is not exported",
      `const tick = table({ scheduled: () => run }, { id: t.u64().primaryKey(), at: t.scheduleAt() });
       const s = schema({ tick }); const run = s.reducer({ arg: tick.rowType }, () => {}); export default s;`,
      /tick defines a schedule.*not exported.*LC0805/,
    ],
    [
      "a scheduled table without a column for it",
      `const tick = table({ scheduled: () => run }, { id: t.u64().primaryKey() });
       const s = schema({ tick }); export const run = s.reducer(() => {}); export default s;`,
      /t\.scheduleAt\(\).*LC0805/,
    ],
    [
      "a row inside of a type without a name",
      "const s = schema({}); export const r = s.reducer({ a: t.row({ q: t.u8() }) }, () => {}); export default s;",
      /Missing type name.*LC0803/,
    ],
    [
      "a view with two primary keys",
      `const s = schema({}); export const v = s.view({ public: true }, t.array(t.row("R", { a: t.u8().primaryKey(), b: t.u8().primaryKey() })) as any, () => []); export default s;`,
      /View 'v' can have at most one primaryKey.*a, b.*LC0803/,
    ],
    [
      "a route to a handler that is not exported",
      `const s = schema({}); const h = s.httpHandler(() => new SyncResponse()); export const r = s.httpRouter(new Router().get("/x", h)); export default s;`,
      /route '\/x' is not exported.*LC0809/,
    ],
    [
      "a route that cannot be one",
      `const s = schema({}); export const h = s.httpHandler(() => new SyncResponse()); export const r = s.httpRouter(new Router().get("X", h)); export default s;`,
      /"X" cannot be a route.*LC0803/,
    ],
    [
      "two functions of one name",
      "const s = schema({}); export const a = s.reducer(() => {}); export const g = s.exportGroup({ a: s.reducer(() => {}) }); export default s;",
      /already.*'a'.*LC0808/,
    ],
    [
      "a reducer that is not a function",
      "const s = schema({}); export const a = s.reducer({ a: t.u8() } as any); export default s;",
      /must be a function.*LC0810/,
    ],
  ])("refuses %s", async (_name, source, message) => {
    await expect(Module.load(IMPORTS + source, "ours")).rejects.toThrow(message);
  });
});
