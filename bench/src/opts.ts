// Flags of the command line (section 3.1 and 3.6), put over the environment and the defaults of config.ts.

import {
  type Config,
  configOf,
  type Environment,
  isTrueText,
  kebabCase,
  type Said,
  type Sweep,
  UsageError,
} from "./config";
import { readCommandLine } from "./program";
import { connectorKeys } from "./tests/find";

export interface CommandLine {
  test: string;
  config: Config;
  contentionTests: Sweep | undefined;
  concurrencyTests: Sweep | undefined;
  /** `prep` and `demo` read these. */
  skipPrep: boolean;
  animation: boolean;
}

const flags: [string, string][] = [
  ["--prep-between-alphas", "prepare anew before each connector and alpha"],
  ["--no-stdb-confirmed-reads", "answers may come before the transaction is on disk"],
  ["--use-docker", "prep: start the services of the compose file"],
  ["--bench-pipelined", "several operations in flight per worker, for every connector"],
  ["--log-errors", "print every failed operation"],
  [
    "--verify-transactions",
    "check the balances after the run (the default; --no-verify-transactions leaves it out)",
  ],
  ["--verify-strict", "check every account against the acknowledged transfers"],
  ["--matrix", "test-1: alpha 0 and 1.5, 1 and 40 in flight, for every connector"],
  ["--no-cpu", "no accounting of CPU, memory and disk"],
  ["--keep-going", "go on after a connector that failed"],
  ["--force", "run although the machine is busy; without it, a run waits and then refuses"],
  ["--no-prep", "start and seed nothing: use what runs"],
  ["--no-reload", "ycsb: do not load the table again before each workload"],
  ["--smoke", "ycsb: 10,000 records"],
  ["--hot-row", "authed-load: updates hit one row"],
  ["--skip-prep", "demo: the systems are prepared already"],
  ["--no-animation", "demo: no animation, no colours"],
];

const values: [string, string][] = [
  ["--seconds <n>", "length of the timed window (300)"],
  ["--concurrency <n>", "workers, each with a connection of its own (64); auto: twice the hardware threads"],
  ["--alpha <list>", "Zipf exponents (1.5)"],
  ["--accounts <n>", "number of accounts (100000)"],
  ["--initial-balance <n>", "balance of each at the start (1000000000)"],
  ["--connectors <list>", `of ${connectorKeys.join(", ")}`],
  ["--systems <list>", "the same as --connectors"],
  ["--runs <n>", "repetitions per connector and alpha (1)"],
  ["--contention-tests <from,to,step,concurrency>", "sweep over alpha"],
  ["--concurrency-tests <from,to,factor,alpha>", "sweep over the concurrency"],
  ["--stdb-url <address>", "server to measure; without it the suite starts this repository's"],
  ["--stdb-ref-url <address>", "a second server, of the connector spacetimedb_ref (127.0.0.1:3001)"],
  ["--stdb-module <name>", "database name (test-1)"],
  ["--stdb-module-path <directory>", "module source (./spacetimedb)"],
  ["--stdb-compression <none|gzip>", "what the server may compress with (none)"],
  ["--pool-max <n>", "connections of a pool in front of a database (twice the hardware threads)"],
  ["--bun-url <url>", "RPC server of the connector bun"],
  ["--convex-url <url>", "Convex backend"],
  ["--convex-dir <directory>", "Convex project (./convex-app)"],
  ["--op-timeout-ms <n>", "an operation fails after this time (15000)"],
  ["--min-op-timeout-ms <n>", "and not before this one (250)"],
  ["--tail-slack-ms <n>", "time that operations have after the window (1000)"],
  ["--precomputed-transfer-pairs <n>", "length of the sequence of transfers (10000000)"],
  ["--max-inflight-per-worker <n>", "window of a worker, with --bench-pipelined"],
  ["--warmup-sec <n>", "seconds left out of the printed figures (30 of 60 and more, else a tenth)"],
  ["--tag <text>", "goes into the result and its file name"],
  ["--pg-isolation <serializable|read-committed>", "isolation of the Postgres systems (serializable)"],
  ["--sqlite-durability <full|normal|off>", "synchronous of the SQLite systems (full)"],
  ["--ops <n>", "stop after this many operations"],
  ["--records <n>", "size of the data set"],
  ["--jobs <n>", "number of jobs"],
  ["--iters <n>", "iterations per operation"],
  ["--bench-seed <n>", "seed of the generators (42)"],
  ["--samples <n>", "repetitions inside one invocation"],
  ["--rate <n>", "open loop: operations per second over all workers"],
  ["--concurrency-list <list>", "run the test once per value"],
  ["--kill-after <seconds>", "kill the server during the run, start it again and check every account"],
  ["--load-generator <typescript|native>", "test-1: what makes the load; native is an experiment of its own"],
  ["--load-generator-threads <n>", "threads of the native load generator (1)"],
  ["--durability <on|off>", "durable settings of the systems (on)"],
  ["--dist <uniform|zipfian|latest>", "ycsb: request distribution"],
  ["--theta <n>", "ycsb: skew (0.99)"],
  ["--tests <n>", "content-crud: number of tests"],
  ["--crud-mode <batch|steady>", "content-crud: batches, or steady workers"],
  ["--base-url <url>", "content-crud: a server that runs already"],
];

const nameOf = (option: string) => option.slice(2).split(" ")[0]!;
const booleanNames = new Set(flags.map(([flag]) => nameOf(flag).replace(/^no-/, "")));
const tupleNames = ["contention-tests", "concurrency-tests"];
const isNumberText = (text: string | undefined) =>
  text !== undefined && text !== "" && Number.isFinite(Number(text));

/** Puts the special cases of section 3.1 into a form that the parser reads the same way. */
function normalize(argv: readonly string[]): string[] {
  const normal: string[] = [];
  for (let i = 0; i < argv.length; i++) {
    const word = argv[i]!;
    const assigned = /^--([a-z-]+)=(.*)$/s.exec(word);
    if (assigned && booleanNames.has(assigned[1]!)) {
      normal.push(isTrueText(assigned[2]!) ? `--${assigned[1]}` : `--no-${assigned[1]}`);
    } else if (word.startsWith("--") && booleanNames.has(word.replace(/^--(no-)?/, ""))) {
      normal.push(word);
      // `--bench-pipelined 0` is true: the number is swallowed.
      if (isNumberText(argv[i + 1])) i++;
    } else if (tupleNames.includes(word.slice(2))) {
      const parts: string[] = [];
      while (parts.length < 4 && /^[0-9.,eE+]+$/.test(argv[i + 1] ?? "")) parts.push(argv[++i]!);
      normal.push(word, parts.join(","));
    } else {
      normal.push(word);
    }
  }
  return normal;
}

/** Reads a command line; undefined after `--help`, which prints the usage itself. */
export function parseCommandLine(
  program: "bench" | "demo" | "prep",
  argv: readonly string[],
  environment: Environment,
): CommandLine | undefined {
  const words = program === "demo" ? "" : "[test-name]";
  const description = "measure systems that do the same work";
  const usage = { name: program, words, description, options: [...values, ...flags] };
  const read = readCommandLine(usage, normalize(argv), environment);
  return read && commandLineOf(read.said, program, read.args[0] ?? "test-1");
}

function sweepOf(said: Said, flag: string): Sweep | undefined {
  const parts = said.numbers(flag);
  if (!parts) return undefined;
  if (parts.length !== 4) throw new UsageError(`--${kebabCase(flag)} has four numbers, not ${parts.length}`);
  const [from, to, step, fixed] = parts as [number, number, number, number];
  return { from, to, step, fixed };
}

function connectorsOf(said: Said, isDemo: boolean): string[] | undefined {
  const order = isDemo ? ["systems", "connectors"] : ["connectors", "systems"];
  const keys = said.list(order[0]!) ?? said.list(order[1]!);
  for (const key of keys ?? []) {
    if (!connectorKeys.includes(key)) throw new UsageError(`${key} is not a valid value for --connectors`);
  }
  return keys && [...new Set(keys)];
}

function commandLineOf(said: Said, program: string, test: string): CommandLine {
  const contentionTests = sweepOf(said, "contentionTests");
  const concurrencyTests = sweepOf(said, "concurrencyTests");
  const isDemo = program === "demo";
  const connectors = connectorsOf(said, isDemo);
  const config = configOf(said, connectors, isDemo, contentionTests, concurrencyTests);
  const { seconds, maxInflightPerWorker, rate, killAfterSec } = config;
  const isNative = config.loadGenerator === "native";
  const refused: [boolean, string][] = [
    [(contentionTests?.step ?? 1) <= 0, "--contention-tests: STEP must be above 0"],
    [(concurrencyTests?.step ?? 2) <= 1, "--concurrency-tests: FACTOR must be above 1"],
    [seconds <= 0, "--seconds must be above 0"],
    [
      maxInflightPerWorker === 0,
      "--max-inflight-per-worker 0 would never let the event loop run; give at least 1",
    ],
    [
      config.benchPipelined === true && maxInflightPerWorker === undefined,
      "--bench-pipelined needs --max-inflight-per-worker",
    ],
    [rate !== undefined && rate <= 0, "--rate must be above 0"],
    [
      isNative && (contentionTests ?? concurrencyTests ?? killAfterSec) !== undefined,
      "--load-generator native has no sweeps and no --kill-after: leave them to the connectors' own clients",
    ],
    [isNative && test !== "test-1", `--load-generator native runs test-1 only, not ${test}`],
  ];
  for (const [isWrong, message] of refused) if (isWrong) throw new UsageError(message);
  return {
    ...{ test, config, contentionTests, concurrencyTests },
    skipPrep: said.boolean("skipPrep") ?? false,
    animation: said.boolean("animation") ?? true,
  };
}
