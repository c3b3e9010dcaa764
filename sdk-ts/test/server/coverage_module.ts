// A module that uses what a module can use; `modules.test.ts` runs it with this package and with the published one, and
// expects the same of both.
import { errors, Range, ScheduleAt, SenderError, schema, t, table } from "spacetimedb/server";

const Shape = t.enum("Shape", {
  Dot: t.unit(),
  Circle: t.f64(),
  Box: t.object("Box", { w: t.u8(), h: t.u8() }),
});
const Level = t.enum("Level", ["Low", "High"]);

const spacetimedb = schema({
  everything: table(
    { public: true },
    {
      id: t.u64().primaryKey().autoInc(),
      a: t.bool(),
      b: t.i8(),
      c: t.u8(),
      d: t.i16(),
      e: t.u16(),
      f: t.i32(),
      g: t.u32(),
      h: t.i64(),
      i: t.u64(),
      j: t.i128(),
      k: t.u128(),
      l: t.i256(),
      m: t.u256(),
      n: t.f32(),
      o: t.f64(),
      p: t.string(),
      q: t.byteArray(),
      r: t.array(t.string()),
      s: t.option(t.u32()),
      shape: Shape,
      level: Level,
      box: t.object("Pair", { x: t.i32(), y: t.option(t.string()) }),
      who: t.identity(),
      conn: t.connectionId(),
      at: t.timestamp(),
      span: t.timeDuration(),
      uuid: t.uuid(),
      due: t.scheduleAt(),
    },
  ),
  item: table(
    {
      public: true,
      indexes: [
        { accessor: "byKindSize", algorithm: "btree", columns: ["kind", "size"] },
        { accessor: "byBoth", algorithm: "hash", columns: ["size", "kind"] },
      ],
    },
    {
      id: t.u32().primaryKey().autoInc(),
      kind: t.string().index("btree"),
      size: t.i32(),
      slot: t.u8().unique().index("direct"),
      tag: t.u64().index("hash"),
    },
  ),
  counters: table({ public: true }, { name: t.string().primaryKey(), n: t.i64() }),
});
export default spacetimedb;

export const init = spacetimedb.init((ctx) => {
  ctx.db.counters.insert({ name: "init", n: 1n });
});
export const onConnect = spacetimedb.clientConnected((ctx) => {
  console.log("connected", ctx.connectionId !== null, ctx.senderAuth.hasJWT, ctx.senderAuth.jwt?.issuer);
});

export const values = spacetimedb.reducer({ text: t.string(), shape: Shape }, (ctx, { text, shape }) => {
  const row = ctx.db.everything.insert({
    id: 0n,
    a: true,
    b: -128,
    c: 255,
    d: -32768,
    e: 65535,
    f: -2147483648,
    g: 4294967295,
    h: -(2n ** 63n),
    i: 2n ** 64n - 1n,
    j: -(2n ** 127n),
    k: 2n ** 128n - 1n,
    l: -(2n ** 255n),
    m: 2n ** 256n - 1n,
    n: 0.5,
    o: -0.25,
    p: text,
    q: new Uint8Array([0, 1, 255]),
    r: ["", text],
    s: text.length % 2 === 0 ? undefined : 7,
    shape,
    level: { tag: "High" },
    box: { x: -1, y: text },
    who: ctx.sender,
    conn: ctx.connectionId!,
    at: ctx.timestamp,
    span: ctx.timestamp.since(ctx.timestamp),
    uuid: ctx.newUuidV7(),
    due: ScheduleAt.interval(1_000_000n),
  });
  const found = ctx.db.everything.id.find(row.id)!;
  const changed = ctx.db.everything.id.update({ ...found, p: `${found.p}!`, a: false });
  console.log(changed.id, changed.p, changed.r, changed.s, changed.shape, changed.box, changed.q);
  console.log(changed.j, changed.k, changed.l, changed.m, changed.n, changed.level.tag, changed.due.tag);
  console.log(
    changed.who.isEqual(ctx.sender),
    changed.at.microsSinceUnixEpoch === ctx.timestamp.microsSinceUnixEpoch,
    changed.uuid.getVersion(),
    changed.uuid.getCounter(),
  );
});

const kinds = ["a", "b", "b", "c", "é", "zz"];
export const fill = spacetimedb.reducer((ctx) => {
  kinds.forEach((kind, i) => {
    ctx.db.item.insert({ id: 0, kind, size: i - 2, slot: i, tag: BigInt(i % 2) });
  });
  const ids = (rows: Iterable<{ id: number }>) => [...rows].map((row) => row.id).sort((x, y) => x - y);
  const { item } = ctx.db;
  console.log("count", item.count(), ids(item.iter()), ids(item));
  console.log(
    "point",
    ids(item.kind.filter("b")),
    ids(item.tag.filter(1n)),
    ids(item.byBoth.filter([-1, "b"])),
  );
  console.log(
    "range",
    ids(item.kind.filter(new Range({ tag: "included", value: "b" }, { tag: "excluded", value: "zz" }))),
    ids(item.kind.filter(new Range({ tag: "excluded", value: "b" }))),
    ids(item.kind.filter(new Range<string>())),
  );
  console.log(
    "prefix",
    ids(item.byKindSize.filter("b")),
    ids(item.byKindSize.filter(["b", 0])),
    ids(item.byKindSize.filter(["b", new Range({ tag: "included", value: 0 })])),
    ids(item.byKindSize.filter(new Range({ tag: "included", value: "c" }))),
  );
  console.log("unique", item.slot.find(4)?.kind, item.slot.find(77), item.id.find(1)?.kind);
  for (const row of item) if (row.size > 0) break;
  console.log(
    "deleted",
    item.slot.delete(5),
    item.slot.delete(5),
    item.kind.delete("b"),
    item.byBoth.delete([-2, "a"]),
  );
  console.log(
    "equal",
    item.delete({ ...item.slot.find(3)! }),
    item.delete({ id: 99, kind: "", size: 0, slot: 0, tag: 0n }),
  );
  console.log("left", ids(item.iter()), item.count());
});

export const many = spacetimedb.reducer({ n: t.u32() }, (ctx, { n }) => {
  for (let i = 0; i < n; i++)
    ctx.db.counters.insert({ name: `counter ${i} ${"x".repeat(i % 50)}`, n: BigInt(i) });
  let sum = 0n;
  for (const counter of ctx.db.counters) sum += counter.n;
  console.log("sum", sum, ctx.db.counters.count());
  const first = ctx.db.counters.iter();
  console.log(first.next().done, first.return?.(undefined).done);
});
export const forget = spacetimedb.reducer((ctx) => {
  console.log("cleared", ctx.db.counters.clear(), ctx.db.counters.count());
});

export const unique = spacetimedb.reducer((ctx) => {
  ctx.db.counters.insert({ name: "once", n: 1n });
  try {
    ctx.db.counters.insert({ name: "once", n: 2n });
  } catch (error) {
    console.log(error instanceof errors.UniqueAlreadyExists, String(error));
  }
  try {
    ctx.db.counters.name.update({ name: "missing", n: 2n });
  } catch (error) {
    console.log(error instanceof errors.NoSuchRow, String(error));
  }
  ctx.db.counters.name.update({ name: "once", n: 3n });
});
export const refuse = spacetimedb.reducer((ctx) => {
  ctx.db.counters.insert({ name: "never", n: 0n });
  throw new SenderError("not today");
});
export const crash = spacetimedb.reducer((ctx) => {
  ctx.db.counters.insert({ name: "never", n: 0n });
  (undefined as any).nothing();
});

export const context = spacetimedb.reducer((ctx) => {
  const { random } = ctx;
  const dice = Array.from({ length: 200 }, () => random.integerInRange(1, 6));
  console.log(Math.min(...dice), Math.max(...dice), random() < 1, random.bigintInRange(-5n, -5n));
  console.log(
    random.fill(new Uint16Array(3)).length,
    ctx.newUuidV4().getVersion(),
    ctx.newUuidV7().getVersion(),
  );
  console.log(
    ctx.databaseIdentity.toHexString().length,
    String(ctx.sender).length,
    ctx.senderAuth.isInternal,
  );
  try {
    Math.random();
  } catch (error) {
    console.log(String(error));
  }
});

export const logs = spacetimedb.reducer((ctx) => {
  console.error("error", { a: [1, "b", 2n], nested: { deep: null } });
  console.warn("warn");
  console.info("info", true, undefined);
  console.debug("debug");
  console.assert(ctx.timestamp === undefined, "assert");
  console.time("timer");
  console.timeEnd("timer");
});
