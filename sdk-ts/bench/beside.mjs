// The client beside npm package `spacetimedb`, each measurement in a process of its own, in turn: `npm run bench:beside`.
// Options: rounds (default 5), then the names of measurements (default: all).

import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { brotliCompressSync } from "node:zlib";

const PACKAGES = ["lightcone", "spacetimedb"];
const SOURCES = {
  lightcone: new URL("../dist/index.mjs", import.meta.url).href,
  spacetimedb: "spacetimedb",
};

// A server in memory ---------------------------------------------------------------------------------------------------

/** Bytes of a message, which `write` puts together. */
function message(bytesMax, write) {
  const bytes = Buffer.alloc(bytesMax);
  let at = 0;
  write({
    u8: (value) => (at = bytes.writeUInt8(value, at)),
    u32: (value) => (at = bytes.writeUInt32LE(value, at)),
    u64: (value) => (at = bytes.writeBigUInt64LE(BigInt(value), at)),
    text: (value) => {
      at = bytes.writeUInt32LE(value.length, at);
      at += bytes.write(value, at, "latin1");
    },
  });
  return new Uint8Array(bytes.buffer, bytes.byteOffset, at);
}

/** Rows of table `player` (id: u32, balance: i64, name: string) with the sizes of a list of rows in front. */
function writeRows(out, ids, balance, nameOf) {
  const names = ids.map(nameOf);
  out.u8(1);
  out.u32(ids.length);
  let size = 0;
  for (const name of names) {
    out.u64(size);
    size += 16 + name.length;
  }
  out.u32(size);
  ids.forEach((id, i) => {
    out.u32(id);
    out.u64(balance);
    out.text(names[i]);
  });
}

const range = (from, to) => Array.from({ length: to - from }, (_, i) => from + i);
const bytesOf = (ids, nameOf) => 64 + ids.reduce((sum, id) => sum + 24 + nameOf(id).length, 0);

function subscribeApplied(querySetId, rows, nameOf) {
  const ids = range(0, rows);
  return message(bytesOf(ids, nameOf), (out) => {
    out.u8(1);
    out.u32(0);
    out.u32(querySetId);
    out.u32(1);
    out.text("player");
    writeRows(out, ids, 0, nameOf);
  });
}

/** The balance of some rows changes. */
function update(querySetId, ids, before, after, nameOf) {
  return message(64 + 2 * bytesOf(ids, nameOf), (out) => {
    out.u8(4);
    out.u32(1);
    out.u32(querySetId);
    out.u32(1);
    out.text("player");
    out.u32(1);
    out.u8(0);
    writeRows(out, ids, after, nameOf);
    writeRows(out, ids, before, nameOf);
  });
}

/** Answers each call of a payload with a message of its own, in the next task. */
const CALL_BYTES = 1 + 4 + 1 + 4 + 8 + 4 + 16;
function answer(socket, payload) {
  if (payload[0] !== 3) return;
  const view = new DataView(payload.buffer, payload.byteOffset, payload.byteLength);
  const answers = [];
  for (let at = 0; at < payload.length; at += CALL_BYTES) {
    const bytes = new Uint8Array(14);
    const out = new DataView(bytes.buffer);
    bytes[0] = 6;
    out.setUint32(1, view.getUint32(at + 1, true), true);
    bytes[13] = 1;
    answers.push(bytes);
  }
  setImmediate(() => {
    for (const data of answers) socket.onmessage({ data });
  });
}

const turn = () => new Promise((resolve) => setImmediate(resolve));
async function until(condition) {
  while (!condition()) await turn();
}

/** A greeted connection, its socket, and a way to subscribe to all players. */
async function connected(sdk) {
  const { t, table } = sdk;
  const row = t.row({ id: t.u32().primaryKey(), balance: t.i64(), name: t.string() });
  const { schemaType } = sdk.schema({
    player: table({ name: "player", indexes: [], constraints: [] }, row),
  });
  const transfer = sdk.reducerSchema("transfer", { from: t.u32(), to: t.u32(), amount: t.i64() });
  const module = {
    versionInfo: { cliVersion: "2.10.1" },
    tables: schemaType.tables,
    reducers: sdk.reducers(transfer).reducersType.reducers,
    ...sdk.procedures(),
  };
  const socket = {
    protocol: "v3.bsatn.spacetimedb",
    readyState: 0,
    close() {},
    send: (payload) => answer(socket, payload),
  };
  const connection = new sdk.DbConnectionBuilder(module, (config) => new sdk.DbConnectionImpl(config))
    .withUri("ws://localhost")
    .withDatabaseName("bench")
    .withWSFn(async () => socket)
    .build();
  await until(() => socket.onopen && socket.onmessage);
  socket.readyState = 1;
  socket.onopen();
  socket.onmessage({ data: new Uint8Array([0, ...new Array(48).fill(1), 0, 0, 0, 0]) });
  await turn();
  let nextQuerySet;
  const subscribed = async (rows, nameOf, { before = () => {}, behind = () => {} } = {}) => {
    // Both packages count their query sets, from different numbers.
    const first = socket.send;
    socket.send = (payload) => {
      nextQuerySet = new DataView(payload.buffer, payload.byteOffset).getUint32(5, true);
    };
    const isApplied = new Promise((resolve) =>
      connection
        .subscriptionBuilder()
        .onApplied(() => resolve())
        .subscribe("SELECT * FROM player"),
    );
    await until(() => nextQuerySet !== undefined);
    socket.send = first;
    const data = subscribeApplied(nextQuerySet, rows, nameOf);
    before(nextQuerySet);
    globalThis.gc();
    await turn();
    const start = performance.now();
    socket.onmessage({ data });
    behind();
    await isApplied;
    return { start, applied: performance.now() - start, querySetId: nextQuerySet };
  };
  return { connection, socket, subscribed };
}

/** Longest pause between two turns of the event loop, until stopped. */
function watchPauses() {
  let [longest, last] = [0, performance.now()];
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

// Measurements ---------------------------------------------------------------------------------------------------------

const nameOf = (id) => `player number ${id}`;
/** Ids are of one length, so that all names have 32 characters. */
const longNameOf = (id) => `a name of 32 characters, ${String(id).padStart(7, "0")}`;

const MEASUREMENTS = {
  /** Updates of one row each that come in one go while a large result is taken. */
  async backlog(sdk) {
    const [rows, updates] = [100_000, 200_000];
    const { connection, socket, subscribed } = await connected(sdk);
    let told = 0;
    connection.db.player.onUpdate(() => (told += 1));
    let payloads;
    const { start } = await subscribed(rows, nameOf, {
      before(querySetId) {
        const ids = range(0, updates).map((i) => i % rows);
        payloads = ids.map((id, i) => update(querySetId, [id], Math.floor(i / rows), 1, nameOf));
      },
      behind() {
        for (const data of payloads) socket.onmessage({ data });
      },
    });
    await until(() => told === updates);
    return { "a load of 100,000 rows, and 200,000 updates behind it (ms)": performance.now() - start };
  },

  async strings(sdk) {
    const rows = 100_000;
    const { connection, subscribed } = await connected(sdk);
    globalThis.gc();
    const before = process.memoryUsage().heapUsed;
    await subscribed(rows, longNameOf);
    await turn();
    globalThis.gc();
    const megabytes = (process.memoryUsage().heapUsed - before) / 1e6;
    if (connection.db.player.count() !== BigInt(rows)) throw new Error("rows are missing");
    return { "100,000 rows with a text of 32 characters (MB of heap)": megabytes };
  },

  async transaction(sdk) {
    const [rows, changed, times] = [100_000, 10_000, 20];
    const { connection, socket, subscribed } = await connected(sdk);
    let told = 0;
    connection.db.player.onUpdate(() => (told += 1));
    const { querySetId } = await subscribed(rows, nameOf);
    const all = [];
    for (let i = 0; i < times; i++) {
      const ids = range((i * changed) % rows, ((i * changed) % rows) + changed);
      const round = Math.floor((i * changed) / rows);
      const data = update(querySetId, ids, round, round + 1, nameOf);
      await turn();
      const start = performance.now();
      socket.onmessage({ data });
      await until(() => told === (i + 1) * changed);
      all.push(performance.now() - start);
    }
    all.sort((a, b) => a - b);
    return {
      "10,000 of 100,000 rows change in a transaction (ms, median)": all[times / 2],
      "the same (ms, longest)": all.at(-1),
    };
  },

  async load(sdk) {
    const rows = 1_000_000;
    const { connection, subscribed } = await connected(sdk);
    let inserted = 0;
    connection.db.player.onInsert(() => (inserted += 1));
    const before = process.memoryUsage();
    let pauses;
    const { start, applied } = await subscribed(rows, nameOf, {
      before: () => (pauses = watchPauses()),
    });
    await until(() => inserted === rows);
    const announced = performance.now() - start;
    const longest = pauses();
    globalThis.gc();
    const after = process.memoryUsage();
    return {
      "a load of 1,000,000 rows (ms until it is applied)": applied,
      "the same (ms until all callbacks were called)": announced,
      "the same (ms, longest time in which the page could do nothing)": longest,
      "the same (MB)": (after.heapUsed + after.external - before.heapUsed - before.external) / 1e6,
    };
  },

  async call(sdk) {
    const { connection } = await connected(sdk);
    const run = async (calls) => {
      let left = calls;
      const work = async () => {
        while (left-- > 0) await connection.reducers.transfer({ from: 1, to: 2, amount: 1n });
      };
      await Promise.all(range(0, 40).map(work));
    };
    await run(100_000);
    const before = process.cpuUsage();
    await run(300_000);
    const { user, system } = process.cpuUsage(before);
    return { "a reducer call, 40 at a time (µs of CPU)": (user + system) / 300_000 };
  },

  async bundle(_, name) {
    const { build } = await import("esbuild");
    const entry = fileURLToPath(new URL("../test/apps/small_app.ts", import.meta.url));
    const files = {
      lightcone: { path: fileURLToPath(SOURCES.lightcone), sideEffects: false },
      spacetimedb: {
        path: fileURLToPath(new URL("index.browser.mjs", import.meta.resolve("spacetimedb"))),
        sideEffects: false,
      },
    };
    const use = {
      name: "use",
      setup: (esbuild) => esbuild.onResolve({ filter: /src\/client$/ }, () => files[name]),
    };
    const options = { bundle: true, minify: true, format: "esm", target: "es2022", write: false };
    const { outputFiles } = await build({ entryPoints: [entry], plugins: [use], ...options });
    const code = outputFiles[0].text;
    return {
      "a small application (kB, minified)": code.length / 1000,
      "the same (kB, minified and with Brotli)": brotliCompressSync(code).length / 1000,
    };
  },
};

// Side by side ---------------------------------------------------------------------------------------------------------

if (process.argv[2] === "measure") {
  const [name, measurement] = process.argv.slice(3);
  const sdk = await import(SOURCES[name]);
  sdk.setGlobalLogLevel?.("error");
  console.log(`\n${JSON.stringify(await MEASUREMENTS[measurement](sdk, name))}`);
  process.exit(0);
}

const rounds = Number(process.argv[2] ?? 5);
const wanted = process.argv.length > 3 ? process.argv.slice(3) : Object.keys(MEASUREMENTS);
const found = new Map();
for (const measurement of wanted) {
  for (let round = 0; round < (measurement === "bundle" ? 1 : rounds); round++) {
    for (const name of PACKAGES) {
      const script = fileURLToPath(import.meta.url);
      const child = spawnSync(process.execPath, ["--expose-gc", script, "measure", name, measurement], {
        encoding: "utf8",
        stdio: ["ignore", "pipe", "inherit"],
      });
      if (child.status !== 0) throw new Error(`${measurement} of ${name} failed`);
      for (const [what, value] of Object.entries(JSON.parse(child.stdout.trim().split("\n").at(-1)))) {
        const values = found.get(what) ?? Object.fromEntries(PACKAGES.map((known) => [known, []]));
        values[name].push(value);
        found.set(what, values);
      }
    }
  }
}

const median = (values) => values.toSorted((a, b) => a - b)[values.length >> 1];
const shown = (value) => value.toFixed(value < 100 ? 2 : 0);
const { version } = JSON.parse(
  readFileSync(new URL("../node_modules/spacetimedb/package.json", import.meta.url)),
);
console.log(`Node ${process.version}, median of ${rounds} rounds\n`);
console.log(`| what | lightcone | spacetimedb ${version} | ratio |\n|---|---|---|---|`);
for (const [what, values] of found) {
  const [ours, theirs] = PACKAGES.map((name) => median(values[name]));
  console.log(`| ${what} | ${shown(ours)} | ${shown(theirs)} | ${(ours / theirs).toFixed(2)} |`);
}
