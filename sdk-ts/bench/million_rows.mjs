// How a cache takes a large result: time until it is complete, and the longest time during which nothing else could
// run, in comparison with npm package `spacetimedb`. Run after `npm run build`: `node --expose-gc bench/million_rows.mjs`.
// Options: number of rows (default 1000000), then the packages to measure (default: lightcone).

const rowCount = Number(process.argv[2] ?? 1_000_000);
const packages = process.argv.length > 3 ? process.argv.slice(3) : ["lightcone"];

/** A `SubscribeApplied` with rows (id: u32, balance: i64, name: String), as the server sends it, without compression. */
function subscribeApplied() {
  const nameOf = (i) => `player number ${i}`;
  let size = 0;
  for (let i = 0; i < rowCount; i++) size += 16 + nameOf(i).length;
  const bytes = Buffer.alloc(1 + 4 + 4 + 4 + 4 + 6 + 1 + 4 + rowCount * 8 + 4 + size);
  let at = 0;
  const u8 = (value) => (at = bytes.writeUInt8(value, at));
  const u32 = (value) => (at = bytes.writeUInt32LE(value, at));
  u8(1);
  u32(0);
  u32(0);
  u32(1);
  u32(6);
  at += bytes.write("player", at);
  u8(1);
  u32(rowCount);
  for (let i = 0, offset = 0; i < rowCount; i++) {
    at = bytes.writeBigUInt64LE(BigInt(offset), at);
    offset += 16 + nameOf(i).length;
  }
  u32(size);
  for (let i = 0; i < rowCount; i++) {
    u32(i);
    at = bytes.writeBigInt64LE(BigInt(i) * 1000n, at);
    const name = nameOf(i);
    u32(name.length);
    at += bytes.write(name, at);
  }
  return new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.length);
}

/** Bindings of one table without and with the package under test. */
function bindings(sdk) {
  const { table, t } = sdk;
  const row = t.row({ id: t.u32().primaryKey(), balance: t.i64(), name: t.string() });
  const { schemaType } = sdk.schema({
    player: table({ name: "player", indexes: [], constraints: [] }, row),
  });
  const module = {
    versionInfo: { cliVersion: "2.10.1" },
    tables: schemaType.tables,
    reducers: sdk.reducers().reducersType.reducers,
    ...sdk.procedures(),
  };
  return new sdk.DbConnectionBuilder(module, (config) => new sdk.DbConnectionImpl(config));
}

/** Longest pause between two turns of the event loop, until stopped. */
function watchPauses() {
  let longest = 0;
  let last = performance.now();
  let timer = setImmediate(function tick() {
    const now = performance.now();
    longest = Math.max(longest, now - last);
    last = now;
    timer = setImmediate(tick);
  });
  return () => {
    clearImmediate(timer);
    return Math.max(longest, performance.now() - last);
  };
}

async function measure(name, message) {
  const sdk = await import(name === "lightcone" ? "../dist/index.mjs" : name);
  const socket = { protocol: "v3.bsatn.spacetimedb", readyState: 0, send() {}, close() {} };
  const connection = bindings(sdk)
    .withUri("ws://localhost")
    .withDatabaseName("bench")
    .withWSFn(async () => socket)
    .build();
  await new Promise((resolve) => setTimeout(resolve, 20));
  socket.readyState = 1;
  socket.onopen();
  socket.onmessage({ data: new Uint8Array([0, ...new Array(48).fill(1), 0, 0, 0, 0]) });
  const inserted = { count: 0 };
  connection.db.player.onInsert(() => (inserted.count += 1));
  globalThis.gc?.();
  const memoryBefore = process.memoryUsage();
  const isApplied = new Promise((resolve) =>
    connection
      .subscriptionBuilder()
      .onApplied(() => resolve())
      .subscribe("SELECT * FROM player"),
  );
  await new Promise((resolve) => setTimeout(resolve, 20));
  const pauses = watchPauses();
  await new Promise((resolve) => setImmediate(resolve));
  const start = performance.now();
  socket.onmessage({ data: message });
  await isApplied;
  const applied = performance.now() - start;
  while (inserted.count < rowCount) await new Promise((resolve) => setImmediate(resolve));
  const announced = performance.now() - start;
  const longest = pauses();
  if (connection.db.player.count() !== BigInt(rowCount)) throw new Error("rows are missing");

  // One row changes while a million are there.
  const lookups = performance.now();
  for (let i = 0; i < 100_000; i++) connection.db.player.id.find((i * 7919) % rowCount);
  const lookup = ((performance.now() - lookups) / 100_000) * 1000;
  globalThis.gc?.();
  const memoryAfter = process.memoryUsage();
  const megabytes =
    (memoryAfter.heapUsed + memoryAfter.external - memoryBefore.heapUsed - memoryBefore.external) / 1e6;
  console.log(
    `${name.padEnd(12)} ${rowCount} rows: applied ${applied.toFixed(0)} ms, all callbacks ${announced.toFixed(0)} ms, ` +
      `longest pause ${longest.toFixed(0)} ms, find ${lookup.toFixed(2)} µs, ${megabytes.toFixed(0)} MB`,
  );
}

const message = subscribeApplied();
if (packages.length === 1)
  console.log(`${(message.length / 1e6).toFixed(1)} MB message, Node ${process.version}`);
const [first, ...others] = packages;
// One package in a process: what one leaves behind must not slow down the other.
if (others.length > 0) {
  const { spawnSync } = await import("node:child_process");
  for (const name of packages) {
    spawnSync(
      process.execPath,
      [...process.execArgv, import.meta.filename ?? process.argv[1], String(rowCount), name],
      {
        stdio: "inherit",
      },
    );
  }
} else {
  await measure(first, message);
}
