// Measures a release build over loopback and prints one table: the figures of docs/benchmarks.md.
//
//   node bench/measure.mjs [--runs 5] [--seconds 5] [--only 64x40,1x1] [--bin <directory of the built programs>]
//
// Every row is the median of the runs, with the smallest and the largest. Rounds go over all rows, so that a slow moment of the machine
// hits every row alike. Nothing else should run on the machine.

import { execFileSync, spawn } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { cpus, homedir, tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";

const cache = join(process.env.XDG_CACHE_HOME ?? join(homedir(), ".cache"), "lightcone");
const { values: options } = parseArgs({
  options: {
    runs: { type: "string", default: "5" },
    seconds: { type: "string", default: "5" },
    only: { type: "string" },
    bin: { type: "string", default: join(process.env.CARGO_TARGET_DIR ?? join(cache, "target"), "release") },
    module: {
      type: "string",
      default: join(process.env.LIGHTCONE_MODULES_WASM_DIR ?? join(cache, "wasm"), "transfer.wasm"),
    },
  },
});
const runs = Number(options.runs);
if (!existsSync(options.module)) {
  throw new Error(`${options.module} is missing: \`make modules\` builds it, --module names another one`);
}

const root = resolve(dirname(fileURLToPath(import.meta.url)), "..");
const program = (name) => join(options.bin, name);
const accounts = 100_000;
const load = (connections, inFlight, ...more) => ({
  connections,
  inFlight,
  arguments: ["--connections", `${connections}`, "--in-flight", `${inFlight}`, ...more],
});
const rows = {
  "64x40": load(64, 40),
  "64x1": load(64, 1),
  "1x1": load(1, 1),
  "1x40": load(1, 40),
  "64x40-v2": load(64, 40, "--protocol", "v2"),
  "64x40-unconfirmed": load(64, 40, "--confirmed", "false"),
  "64x40-alpha1.5": load(64, 40, "--alpha", "1.5"),
  "64x40-10000-subscriptions": load(64, 40, "--subscribe-each", "10000", "--subscribe-connections", "100"),
};
const chosen = options.only?.split(",") ?? Object.keys(rows);
for (const name of chosen) {
  if (!rows[name]) throw new Error(`--only: no row ${name}; there are ${Object.keys(rows).join(", ")}`);
}

const work = mkdtempSync(join(tmpdir(), "lightcone-measure."));
let server;
process.on("exit", () => {
  server?.kill("SIGKILL");
  rmSync(work, { recursive: true, force: true });
});
for (const signal of ["SIGINT", "SIGTERM"]) process.on(signal, () => process.exit(130));

/** Starts the server on the data of this run; answers its address. */
function start() {
  mkdirSync(join(work, "keys"), { recursive: true });
  const flags = [
    "start",
    "--non-interactive",
    "--listen-addr",
    "127.0.0.1:0",
    "--data-dir",
    join(work, "data"),
  ];
  server = spawn(program("spacetimedb-standalone"), [...flags, "--jwt-key-dir", join(work, "keys")], {
    cwd: root,
  });
  return new Promise((found, failed) => {
    let text = "";
    const look = (chunk) => {
      text += chunk;
      const address = /Starting SpacetimeDB listening on ([0-9.:]+)/.exec(text)?.[1];
      if (address) found(address);
    };
    server.stdout.on("data", look);
    server.stderr.on("data", look);
    server.on("exit", () => failed(new Error(`the server did not start:\n${text}`)));
  });
}

const cli = (...flags) =>
  execFileSync(program("spacetime"), ["--config-path", join(work, "cli.toml"), ...flags], {
    stdio: ["ignore", "pipe", "pipe"],
    encoding: "utf8",
    maxBuffer: 1 << 30,
  });

async function logCounters(address) {
  const text = await (await fetch(`http://${address}/v1/metrics`)).text();
  const sum = (name, label = "") =>
    [...text.matchAll(new RegExp(`^${name}(?:\\{.*${label}.*\\})? ([0-9.e+]+)$`, "gm"))].reduce(
      (total, match) => total + Number(match[1]),
      0,
    );
  return {
    transactions: sum("spacetime_num_txns_total", 'committed="true"'),
    bytes: sum("spacetime_message_log_size_bytes"),
    syncs: sum("lightcone_log_syncs_total"),
  };
}

function generate(address, row) {
  const flags = [
    "--url",
    `ws://${address}`,
    "--database",
    "bank",
    "--accounts",
    `${accounts}`,
    "--seconds",
    options.seconds,
  ];
  return new Promise((done, failed) => {
    const generator = spawn(
      program("lightcone-loadgen"),
      [...flags, "--server-pid", `${server.pid}`, "--json", "--quiet", ...row.arguments],
      {
        stdio: ["ignore", "pipe", "inherit"],
      },
    );
    let text = "";
    generator.stdout.on("data", (chunk) => (text += chunk));
    generator.on("exit", (code) =>
      code === 0 ? done(JSON.parse(text)) : failed(new Error(`the load generator ended with ${code}`)),
    );
  });
}

const median = (values) => [...values].sort((a, b) => a - b)[values.length >> 1];
const spread = (values, digits) => {
  const text = (value) =>
    value.toLocaleString("en-US", { minimumFractionDigits: digits, maximumFractionDigits: digits });
  return `${text(median(values))} (${text(Math.min(...values))} to ${text(Math.max(...values))})`;
};

const address = await start();
cli("login", "--server-issued-login", `http://${address}`);
cli("publish", "--server", `http://${address}`, "--bin-path", options.module, "--yes", "bank");
cli("call", "--server", `http://${address}`, "bank", "seed", `${accounts}`, "1000000000");

const results = Object.fromEntries(chosen.map((name) => [name, []]));
for (let round = 1; round <= runs; round++) {
  for (const name of chosen) {
    process.stderr.write(`round ${round} of ${runs}: ${name}\n`);
    const before = await logCounters(address);
    const report = await generate(address, rows[name]);
    const after = await logCounters(address);
    const transactions = after.transactions - before.transactions;
    results[name].push({
      perSecond: report.transfers_per_second,
      p50: report.latency_ms.p50,
      p99: report.latency_ms.p99,
      serverCpu: report.server.cpu_us_per_transfer,
      logBytes: (after.bytes - before.bytes) / transactions,
      perSync: transactions / (after.syncs - before.syncs),
    });
  }
}

console.log(
  `${cpus().length} × ${cpus()[0].model}, ${runs} runs of ${options.seconds} s, median (smallest to largest)\n`,
);
console.log("| load | transfers/s | p50 ms | p99 ms | server CPU µs | log bytes | transfers per sync |");
console.log("|---|---|---|---|---|---|---|");
for (const name of chosen) {
  const column = (key, digits) =>
    spread(
      results[name].map((result) => result[key]),
      digits,
    );
  const cells = [
    column("perSecond", 0),
    column("p50", 2),
    column("p99", 2),
    column("serverCpu", 2),
    column("logBytes", 1),
    column("perSync", 1),
  ];
  console.log(`| ${name} | ${cells.join(" | ")} |`);
}
process.exit(0);
