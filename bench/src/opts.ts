// Flags of the command line (section 3.1 and 3.6), put over the environment and the defaults of config.ts.

import { availableParallelism } from "node:os";
import { resolve } from "node:path";
import cac from "cac";
import {
  type Config,
  type Environment,
  environmentBoolean,
  environmentNumber,
  isTrueText,
  UsageError,
} from "./config";
import { connectorKeys } from "./tests/find";

/** A sweep: from, to, step or factor, and the value that stays. */
export interface Sweep {
  from: number;
  to: number;
  step: number;
  fixed: number;
}

export interface CommandLine {
  test: string;
  config: Config;
  contentionTests: Sweep | undefined;
  concurrencyTests: Sweep | undefined;
  /** `prep` and `demo` read these. */
  skipPrep: boolean;
  animation: boolean;
}

type Raw = string | number | boolean | (string | number | boolean)[];

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
  ["--load-generator <typescript|native>", "test-1: who makes the load; native is an experiment of its own"],
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
  const cli = cac(program);
  const command = cli.command(
    program === "demo" ? "" : "[test-name]",
    "measure systems that do the same work",
  );
  command.ignoreOptionDefaultValue();
  for (const [name, description] of [...values, ...flags]) command.option(name, description);
  cli.help();
  const { args, options } = cli.parse(["node", program, ...normalize(argv)], { run: false });
  if (options["help"]) return undefined;
  command.checkUnknownOptions();
  command.checkUnusedArgs();
  return new Reader(options as Record<string, Raw>, environment).commandLine(program, args[0]);
}

class Reader {
  constructor(
    private readonly options: Record<string, Raw>,
    private readonly environment: Environment,
  ) {}

  private raw(name: string): Raw | undefined {
    return this.options[name.replace(/-([a-z])/g, (_, letter: string) => letter.toUpperCase())];
  }

  /** The words of a list option: commas and repetition. */
  private list(name: string): string[] | undefined {
    const raw = this.raw(name);
    if (raw === undefined) return undefined;
    return [raw].flat().flatMap((part) => {
      if (typeof part === "boolean") throw new UsageError(`--${name} needs a value`);
      return String(part).split(",");
    });
  }

  private text(name: string, variable?: string): string | undefined {
    const words = this.list(name);
    if (words) return words.at(-1);
    return variable === undefined ? undefined : this.environment[variable];
  }

  private static toNumber(name: string, text: string): number {
    const value = Number(text);
    if (!Number.isFinite(value)) throw new UsageError(`--${name}: invalid number '${text}'`);
    return value;
  }

  private number(name: string, variable?: string): number | undefined {
    const words = this.list(name);
    if (words) return Reader.toNumber(name, words.at(-1)!);
    return variable === undefined ? undefined : environmentNumber(this.environment, variable);
  }

  private whole(name: string, variable: string | undefined, least: number): number | undefined {
    const value = this.number(name, variable);
    if (value !== undefined && (!Number.isInteger(value) || value < least)) {
      throw new UsageError(`--${name} is a whole number of at least ${least}, not ${value}`);
    }
    return value;
  }

  private numbers(name: string): number[] | undefined {
    return this.list(name)?.map((word) => Reader.toNumber(name, word));
  }

  private boolean(name: string, variable?: string): boolean | undefined {
    const raw = [this.raw(name)].flat().at(-1);
    if (raw !== undefined) return isTrueText(String(raw));
    return variable === undefined ? undefined : environmentBoolean(this.environment, variable);
  }

  private choice<T extends string>(
    name: string,
    variable: string | undefined,
    choices: readonly T[],
  ): T | undefined {
    const text = this.text(name, variable);
    if (text === undefined) return undefined;
    const found = choices.find((choice) => choice === text);
    if (!found) throw new UsageError(`--${name} is ${choices.join(" or ")}, not ${text}`);
    return found;
  }

  private sweep(name: string): Sweep | undefined {
    const parts = this.numbers(name);
    if (!parts) return undefined;
    const [from, to, step, fixed] = parts;
    if (
      parts.length !== 4 ||
      from === undefined ||
      to === undefined ||
      step === undefined ||
      fixed === undefined
    ) {
      throw new UsageError(`--${name} has four numbers, not ${parts.length}`);
    }
    return { from, to, step, fixed };
  }

  private connectors(program: string): string[] | undefined {
    const order = program === "demo" ? ["systems", "connectors"] : ["connectors", "systems"];
    const keys = this.list(order[0]!) ?? this.list(order[1]!);
    for (const key of keys ?? []) {
      if (!connectorKeys.includes(key)) throw new UsageError(`${key} is not a valid value for --connectors`);
    }
    return keys && [...new Set(keys)];
  }

  private concurrency(): number {
    if (this.text("concurrency") === "auto") return 2 * availableParallelism();
    return this.whole("concurrency", undefined, 1) ?? 64;
  }

  commandLine(program: string, test: string | undefined): CommandLine {
    const contentionTests = this.sweep("contention-tests");
    const concurrencyTests = this.sweep("concurrency-tests");
    if (contentionTests && contentionTests.step <= 0)
      throw new UsageError("--contention-tests: STEP must be above 0");
    if (concurrencyTests && concurrencyTests.step <= 1) {
      throw new UsageError("--concurrency-tests: FACTOR must be above 1");
    }
    const config = this.config(program, contentionTests, concurrencyTests);
    if (config.loadGenerator === "native" && (test ?? "test-1") !== "test-1") {
      throw new UsageError(`--load-generator native runs test-1 only, not ${test}`);
    }
    return {
      test: test ?? "test-1",
      config,
      contentionTests,
      concurrencyTests,
      skipPrep: this.boolean("skip-prep") ?? false,
      animation: this.boolean("animation") ?? true,
    };
  }

  private config(program: string, contention: Sweep | undefined, concurrency: Sweep | undefined): Config {
    const seconds = this.number("seconds") ?? (program === "demo" ? 10 : 300);
    if (seconds <= 0) throw new UsageError("--seconds must be above 0");
    const alphas = this.numbers("alpha") ?? [concurrency?.fixed ?? 1.5];
    const isDurable = (this.choice("durability", undefined, ["on", "off"]) ?? "on") === "on";
    const benchPipelined = this.boolean("bench-pipelined", "BENCH_PIPELINED");
    const maxInflightPerWorker = this.whole("max-inflight-per-worker", "MAX_INFLIGHT_PER_WORKER", 0);
    if (maxInflightPerWorker === 0) {
      throw new UsageError("--max-inflight-per-worker 0 would never let the event loop run; give at least 1");
    }
    if (benchPipelined && maxInflightPerWorker === undefined) {
      throw new UsageError("--bench-pipelined needs --max-inflight-per-worker");
    }
    const stdbUrl = this.text("stdb-url", "STDB_URL");
    const killAfterSec = this.number("kill-after");
    const rate = this.number("rate");
    if (rate !== undefined && rate <= 0) throw new UsageError("--rate must be above 0");
    const loadGenerator = this.choice("load-generator", undefined, ["typescript", "native"]) ?? "typescript";
    if (loadGenerator === "native" && (contention || concurrency || killAfterSec !== undefined)) {
      throw new UsageError(
        "--load-generator native has no sweeps and no --kill-after: leave them to the connectors' own clients",
      );
    }
    return {
      given: new Set(Object.keys(this.options)),
      seconds,
      concurrency: contention?.fixed ?? this.concurrency(),
      alphas: program === "demo" ? alphas.slice(0, 1) : alphas,
      accounts: this.whole("accounts", "SEED_ACCOUNTS", 1) ?? 100_000,
      initialBalance: this.whole("initial-balance", "SEED_INITIAL_BALANCE", 0) ?? 1_000_000_000,
      connectors: this.connectors(program),
      runs: this.whole("runs", undefined, 1) ?? 1,
      prepBetweenAlphas: this.boolean("prep-between-alphas") ?? false,
      stdbUrl: stdbUrl ?? "127.0.0.1:3000",
      stdbUrlGiven: stdbUrl !== undefined,
      stdbModule: this.text("stdb-module", "STDB_MODULE") ?? "test-1",
      stdbModulePath: this.text("stdb-module-path", "STDB_MODULE_PATH") ?? "./spacetimedb",
      stdbCompression: this.choice("stdb-compression", "STDB_COMPRESSION", ["none", "gzip"]) ?? "none",
      stdbConfirmedReads: (this.boolean("stdb-confirmed-reads", "STDB_CONFIRMED_READS") ?? true) && isDurable,
      stdbRefUrl: this.text("stdb-ref-url", "STDB_REF_URL") ?? "127.0.0.1:3001",
      useDocker: this.boolean("use-docker", "USE_DOCKER") ?? false,
      poolMax: this.whole("pool-max", "MAX_POOL", 1) ?? 2 * availableParallelism(),
      bunUrl: this.text("bun-url", "BUN_URL") ?? "http://127.0.0.1:4001",
      convexUrl: this.text("convex-url", "CONVEX_URL") ?? "http://127.0.0.1:3210",
      convexDir: this.text("convex-dir", "CONVEX_DIR") ?? "./convex-app",
      opTimeoutMs: this.number("op-timeout-ms", "BENCH_OP_TIMEOUT_MS") ?? 15_000,
      minOpTimeoutMs: this.number("min-op-timeout-ms", "MIN_OP_TIMEOUT_MS") ?? 250,
      tailSlackMs: this.number("tail-slack-ms", "TAIL_SLACK_MS") ?? 1000,
      precomputedTransferPairs:
        this.whole("precomputed-transfer-pairs", "BENCH_PRECOMPUTED_TRANSFER_PAIRS", 1) ?? 10_000_000,
      benchPipelined,
      maxInflightPerWorker,
      logErrors: this.boolean("log-errors", "LOG_ERRORS") ?? false,
      // Every run is verified (section 12, claim 13) unless somebody says no.
      verifyTransactions: this.boolean("verify-transactions", "VERIFY") ?? true,
      runsDir: resolve(this.environment["BENCH_RUNS_DIR"] ?? resolve(import.meta.dirname, "../runs")),
      warmupSec:
        this.number("warmup-sec", "BENCH_WARMUP_SEC") ?? (seconds >= 60 ? 30 : Math.floor(seconds / 10)),
      tag: this.text("tag") ?? "",
      verifyStrict: (this.boolean("verify-strict") ?? false) || killAfterSec !== undefined,
      killAfterSec,
      pgIsolation:
        this.choice("pg-isolation", undefined, ["serializable", "read-committed"]) ?? "serializable",
      sqliteDurability:
        this.choice("sqlite-durability", undefined, ["full", "normal", "off"]) ??
        (isDurable ? "full" : "off"),
      ops: this.whole("ops", undefined, 1),
      records: this.whole("records", undefined, 1),
      jobs: this.whole("jobs", undefined, 1),
      iters: this.whole("iters", undefined, 1),
      benchSeed: this.whole("bench-seed", undefined, 0) ?? 42,
      samples: this.whole("samples", undefined, 1),
      rate,
      matrix: this.boolean("matrix") ?? false,
      cpuAccounting: this.boolean("cpu") ?? true,
      concurrencyList: this.numbers("concurrency-list"),
      durability: isDurable ? "on" : "off",
      loadGenerator,
      loadGeneratorThreads: this.whole("load-generator-threads", undefined, 1) ?? 1,
      keepGoing: this.boolean("keep-going") ?? false,
      force: this.boolean("force") ?? false,
      prep: this.boolean("prep") ?? true,
      dist: this.choice("dist", undefined, ["uniform", "zipfian", "latest"]),
      theta: this.number("theta") ?? 0.99,
      reload: this.boolean("reload") ?? true,
      smoke: this.boolean("smoke") ?? false,
      tests: this.whole("tests", "TEST_LIMIT", 1),
      crudMode: this.choice("crud-mode", undefined, ["batch", "steady"]) ?? "batch",
      baseUrl: this.text("base-url"),
      hotRow: this.boolean("hot-row") ?? false,
    };
  }
}
