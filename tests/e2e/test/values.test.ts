// Every column type, from the module to the client and back.

import { Timestamp } from "spacetimedb";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type DbConnection as Coverage, tables } from "../src/bindings/coverage";
import { RawClient } from "../src/raw-client";
import { type Connected, connectCoverage, subscribe } from "../src/sdk";
import { Server, wasm } from "../src/server";

let server: Server;
let client: Connected<Coverage>;

beforeAll(async () => {
  server = await Server.start();
  await server.publish("all", wasm("coverage"));
  client = await connectCoverage(server, "all");
});
afterAll(() => {
  client?.connection.disconnect();
  return server?.stop();
});

test("numbers at both ends of their range", async () => {
  await client.connection.reducers.checkNumbers({});
  await subscribe(client.connection, "SELECT * FROM every_number");
  const rows = [...client.connection.db.everyNumber.iter()].sort((a, b) => a.id - b.id);
  const f32 = Math.fround(3.4028234663852886e38);
  const signed = (bits: bigint) => -(1n << (bits - 1n));
  expect(rows).toEqual([
    {
      id: 0,
      u8Value: 0,
      u16Value: 0,
      u32Value: 0,
      u64Value: 0n,
      u128Value: 0n,
      u256Value: 0n,
      i8Value: -128,
      i16Value: -32768,
      i32Value: -2147483648,
      i64Value: signed(64n),
      i128Value: signed(128n),
      i256Value: signed(256n),
      f32Value: -f32,
      f64Value: -Number.MAX_VALUE,
      flag: false,
    },
    {
      id: 1,
      u8Value: 255,
      u16Value: 65535,
      u32Value: 4294967295,
      u64Value: (1n << 64n) - 1n,
      u128Value: (1n << 128n) - 1n,
      u256Value: (1n << 256n) - 1n,
      i8Value: 127,
      i16Value: 32767,
      i32Value: 2147483647,
      i64Value: -signed(64n) - 1n,
      i128Value: -signed(128n) - 1n,
      i256Value: -signed(256n) - 1n,
      f32Value: f32,
      f64Value: Number.MAX_VALUE,
      flag: true,
    },
  ]);
});

test("identities, times, identifiers", async () => {
  const before = Date.now();
  await client.connection.reducers.checkSpecials({});
  await subscribe(client.connection, "SELECT * FROM every_special");
  const [row] = [...client.connection.db.everySpecial.iter()];
  expect(row.identity.toHexString()).toBe(client.identity.toHexString());
  expect(row.connectionId.toHexString()).toBe(client.connection.connectionId.toHexString());
  expect(Math.abs(row.timestamp.toDate().getTime() - before)).toBeLessThan(20_000);
  expect(row.duration.micros).toBe(-1_500_000n);
  expect(row.uuid.toString()).toMatch(
    /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/,
  );
  expect(row.schedule).toMatchObject({ tag: "Interval", value: { micros: 3_600_000_000n } });
});

test("structures, sums, arrays, options, results; rows larger than a page", async () => {
  await client.connection.reducers.checkShapes({});
  await subscribe(client.connection, "SELECT * FROM every_shape");
  const rows = [...client.connection.db.everyShape.iter()].sort((a, b) => a.id - b.id);
  expect(rows.map((row) => row.text.length)).toEqual([3, 100_000, 0]);
  expect(rows.map((row) => row.bytes.length)).toEqual([3, 100_000, 0]);
  expect(rows[1].text).toBe("é".repeat(100_000));
  expect(rows[1].bytes.every((byte, i) => byte === i % 256)).toBe(true);
  expect(rows[1].numbers).toEqual(Array.from({ length: 1000 }, (_, i) => i));
  const { text, bytes, numbers, ...first } = rows[0];
  expect(text).toBe("ééé");
  expect([...bytes]).toEqual([0, 1, 2]);
  expect(numbers).toEqual([0, 1, 2]);
  expect(first).toMatchObject({
    id: 1,
    texts: ["a", ""],
    nested: [[], [{ x: 1, y: -1 }]],
    point: { x: -2147483648, y: 2147483647 },
    color: { tag: "Blue" },
    shape: { tag: "Tagged", value: { color: { tag: "Red" }, note: "n" } },
    maybeNumber: -5n,
    maybeShape: { tag: "Polygon", value: [{ x: 0, y: 0 }] },
    outcome: { ok: 9 },
  });
  expect(rows[2]).toMatchObject({ maybeNumber: undefined, outcome: { err: "none" } });
});

test("arguments of every kind arrive as they were sent", async () => {
  await client.connection.reducers.echoArguments({
    flag: true,
    number: -(1n << 63n),
    large: (1n << 128n) - 1n,
    text: 'quote " and \u{1F680}',
    bytes: new Uint8Array([0, 255]),
    point: { x: -1, y: 2 },
    color: { tag: "Green" },
    shape: { tag: "Label", value: "l" },
    maybe: undefined,
    identity: client.identity,
    timestamp: new Timestamp(1_700_000_000_000_000n),
  });
  const logs = await server.cliOk("logs", "all", "-n", "5");
  expect(logs).toContain(
    `true -9223372036854775808 340282366920938463463374607431768211455 quote " and \u{1F680} [0, 255] ` +
      `Point { x: -1, y: 2 } Green Label("l") None ${client.identity.toHexString()} 2023-11-14T22:13:20`,
  );
});

test("typed queries of every literal", async () => {
  await client.connection.reducers.checkNumbers({});
  await client.connection.reducers.checkSpecials({});
  await client.connection.reducers.checkShapes({});
  await client.connection.reducers.addPlain({ left: -1, right: "it's" });
  const watcher = await connectCoverage(server, "all");
  await subscribe(watcher.connection, "SELECT * FROM every_special");
  const [special] = [...watcher.connection.db.everySpecial.iter()];
  const top = (1n << 256n) - 1n;
  const queries: [string, number, { toSql(): string }][] = [
    ["number", 1, tables.everyNumber.where((r) => r.u8Value.eq(255))],
    ["64 bits", 1, tables.everyNumber.where((r) => r.u64Value.eq((1n << 64n) - 1n))],
    ["256 bits", 1, tables.everyNumber.where((r) => r.u256Value.eq(top))],
    ["negative", 1, tables.everyNumber.where((r) => r.i128Value.eq(-(1n << 127n)))],
    ["bool", 1, tables.everyNumber.where((r) => r.flag.eq(true))],
    ["two", 1, tables.everyNumber.where((r) => r.flag.eq(true).and(r.id.eq(1)))],
    [
      "two that exclude each other",
      0,
      tables.everyNumber.where((r) => r.flag.eq(true)).where((r) => r.id.eq(0)),
    ],
    ["either", 2, tables.everyNumber.where((r) => r.id.eq(0).or(r.id.eq(1)))],
    ["smaller", 1, tables.everyNumber.where((r) => r.i32Value.lt(0))],
    ["text", 1, tables.plainSet.where((r) => r.right.eq("it's"))],
    ["identity", 1, tables.everySpecial.where((r) => r.identity.eq(client.identity))],
    ["connection", 1, tables.everySpecial.where((r) => r.connectionId.eq(special.connectionId))],
    ["timestamp", 1, tables.everySpecial.where((r) => r.timestamp.eq(special.timestamp))],
    ["uuid", 1, tables.everySpecial.where((r) => r.uuid.eq(special.uuid))],
  ];
  const raw = await RawClient.connect(server.url, "all");
  for (const [what, rows, query] of queries) {
    const sql = query.toSql();
    const answer = await raw.query(sql);
    expect(answer.error, `${what}: ${sql}`).toBeUndefined();
    expect(answer.tables![0].rows, `${what}: ${sql}`).toHaveLength(rows);
    await subscribe(watcher.connection, sql);
  }
  await raw.close();
  watcher.connection.disconnect();
});

test("many tables and a view in one subscription", async () => {
  const all = await connectCoverage(server, "all");
  const { everyNumber, everyShape, online, firstNumber } = tables;
  await new Promise<void>((resolve, reject) =>
    all.connection
      .subscriptionBuilder()
      .onApplied(() => resolve())
      .onError((context) => reject(context.event))
      .subscribe([everyNumber, everyShape, online, firstNumber]),
  );
  expect(all.connection.db.everyNumber.count()).toBe(2n);
  expect(all.connection.db.everyShape.count()).toBe(3n);
  expect(all.connection.db.online.count()).toBeGreaterThan(0n);
  const id = 0;
  expect(all.connection.db.firstNumber.count()).toBe(all.connection.db.everyNumber.id.find(id) ? 1n : 0n);
  all.connection.disconnect();
});

test.each([
  "check_scans",
  "check_unique",
  "check_direct",
  "check_btrees",
  "check_sequences",
  "check_set_semantics",
  "check_random",
])("%s", async (reducer) => {
  await server.cliOk("call", "all", reducer);
});

test("claims of the token reach the module", async () => {
  await client.connection.reducers.checkClaims({});
  const logs = await server.cliOk("logs", "all", "-n", "3");
  expect(logs).toMatch(/issuer localhost subject [0-9a-f-]{36} audience \["spacetimedb"\]/);
});
