// The settings of one invocation (section 3): what each is read from, and its default. Their flags are described in opts.ts.

import { availableParallelism } from "node:os";
import { resolve } from "node:path";

/** A usage error: printed as one line, exit code 1. */
export class UsageError extends Error {
  override readonly name = "UsageError";
}

export type Environment = Record<string, string | undefined>;
export type Raw = string | number | boolean | (string | number | boolean)[];

/** A yes or no of the environment: `0`, `false` and the empty text are no, everything else is yes. */
export const isTrueText = (raw: string): boolean =>
  raw !== "" && raw !== "0" && raw.toLowerCase() !== "false";

export const kebabCase = (name: string): string =>
  name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);

/** What was said on the command line, by flags in camel case, and in the environment. */
export class Said {
  constructor(
    readonly flags: Record<string, Raw>,
    readonly environment: Environment,
  ) {}

  /** The words of a list option: commas and repetition. */
  list(flag: string): string[] | undefined {
    const raw = this.flags[flag];
    if (raw === undefined) return undefined;
    return [raw].flat().flatMap((part) => {
      if (typeof part === "boolean") throw new UsageError(`--${kebabCase(flag)} needs a value`);
      return String(part).split(",");
    });
  }

  text(flag: string, variable?: string): string | undefined {
    return this.list(flag)?.at(-1) ?? (variable === undefined ? undefined : this.environment[variable]);
  }

  numbers(flag: string): number[] | undefined {
    return this.list(flag)?.map((text) => {
      const value = Number(text);
      if (!Number.isFinite(value)) throw new UsageError(`--${kebabCase(flag)}: invalid number '${text}'`);
      return value;
    });
  }

  /** Of the environment: JavaScript's `Number`, so an empty value is 0. */
  number(flag: string, variable?: string): number | undefined {
    const numbers = this.numbers(flag);
    const raw = variable === undefined ? undefined : this.environment[variable];
    if (numbers || raw === undefined) return numbers?.at(-1);
    const value = Number(raw);
    if (!Number.isFinite(value)) throw new UsageError(`invalid number for ${variable}: ${raw}`);
    return value;
  }

  boolean(flag: string, variable?: string): boolean | undefined {
    const raw =
      [this.flags[flag]].flat().at(-1) ?? (variable === undefined ? undefined : this.environment[variable]);
    return raw === undefined ? undefined : isTrueText(String(raw));
  }
}

/** Reads a setting, whose flag is its own name if no other is given; undefined where nothing was said. */
type Read<T> = (said: Said, flag: string) => T;

const or =
  <T>(read: Read<T | undefined>, fallback: NoInfer<T>): Read<T> =>
  (said, flag) =>
    read(said, flag) ?? fallback;

const named =
  <T>(flag: string, read: Read<T>): Read<T> =>
  (said) =>
    read(said, flag);

const text =
  (variable?: string): Read<string | undefined> =>
  (said, flag) =>
    said.text(flag, variable);

const number =
  (variable?: string): Read<number | undefined> =>
  (said, flag) =>
    said.number(flag, variable);

const boolean =
  (variable?: string): Read<boolean | undefined> =>
  (said, flag) =>
    said.boolean(flag, variable);

const whole =
  (least: number, variable?: string): Read<number | undefined> =>
  (said, flag) => {
    const value = said.number(flag, variable);
    if (value !== undefined && (!Number.isInteger(value) || value < least))
      throw new UsageError(`--${kebabCase(flag)} is a whole number of at least ${least}, not ${value}`);
    return value;
  };

export const choice =
  <const T extends string>(choices: readonly T[], variable?: string): Read<T | undefined> =>
  (said, flag) => {
    const given = said.text(flag, variable);
    const found = choices.find((one) => one === given);
    if (given !== undefined && !found)
      throw new UsageError(`--${kebabCase(flag)} is ${choices.join(" or ")}, not ${given}`);
    return found;
  };

const hardwareThreads = availableParallelism();

const settings = {
  accounts: or(whole(1, "SEED_ACCOUNTS"), 100_000),
  initialBalance: or(whole(0, "SEED_INITIAL_BALANCE"), 1_000_000_000),
  runs: or(whole(1), 1),
  prepBetweenAlphas: or(boolean(), false),

  stdbModule: or(text("STDB_MODULE"), "test-1"),
  stdbModulePath: or(text("STDB_MODULE_PATH"), "./spacetimedb"),
  stdbCompression: or(choice(["none", "gzip"], "STDB_COMPRESSION"), "none"),
  stdbRefUrl: or(text("STDB_REF_URL"), "127.0.0.1:3001"),

  useDocker: or(boolean("USE_DOCKER"), false),
  poolMax: or(whole(1, "MAX_POOL"), 2 * hardwareThreads),
  bunUrl: or(text("BUN_URL"), "http://127.0.0.1:4001"),
  convexUrl: or(text("CONVEX_URL"), "http://127.0.0.1:3210"),
  convexDir: or(text("CONVEX_DIR"), "./convex-app"),

  opTimeoutMs: or(number("BENCH_OP_TIMEOUT_MS"), 15_000),
  minOpTimeoutMs: or(number("MIN_OP_TIMEOUT_MS"), 250),
  tailSlackMs: or(number("TAIL_SLACK_MS"), 1000),
  precomputedTransferPairs: or(whole(1, "BENCH_PRECOMPUTED_TRANSFER_PAIRS"), 10_000_000),
  benchPipelined: boolean("BENCH_PIPELINED"),
  maxInflightPerWorker: whole(0, "MAX_INFLIGHT_PER_WORKER"),
  logErrors: or(boolean("LOG_ERRORS"), false),
  // Every run is verified (section 12, claim 13) unless the caller says no.
  verifyTransactions: or(boolean("VERIFY"), true),

  // Ours (section 3.6).
  tag: or(text(), ""),
  killAfterSec: named("killAfter", number()),
  pgIsolation: or(choice(["serializable", "read-committed"]), "serializable"),
  ops: whole(1),
  records: whole(1),
  jobs: whole(1),
  iters: whole(1),
  benchSeed: or(whole(0), 42),
  samples: whole(1),
  rate: number(),
  matrix: or(boolean(), false),
  cpuAccounting: named("cpu", or(boolean(), true)),
  concurrencyList: ((said, flag) => said.numbers(flag)) as Read<number[] | undefined>,
  durability: or(choice(["on", "off"]), "on"),
  /** What makes the load: the connectors' own clients in this process, or the program of crates/loadgen. */
  loadGenerator: or(choice(["typescript", "native"]), "typescript"),
  loadGeneratorThreads: or(whole(1), 1),
  keepGoing: or(boolean(), false),
  force: or(boolean(), false),
  /** Use what runs, start and seed nothing. */
  prep: or(boolean(), true),
  /** Options of single tests (sections 15, 16 and 19). */
  dist: choice(["uniform", "zipfian", "latest"]),
  theta: or(number(), 0.99),
  reload: or(boolean(), true),
  smoke: or(boolean(), false),
  tests: whole(1, "TEST_LIMIT"),
  crudMode: or(choice(["batch", "steady"]), "batch"),
  baseUrl: text(),
  hotRow: or(boolean(), false),
};

type Settings = { [Name in keyof typeof settings]: ReturnType<(typeof settings)[Name]> };

/** Settings whose defaults depend on others, and those that a program of the suite reads itself. */
export interface Config extends Settings {
  /** Flags that were given, in camel case: other tests than test-1 have other defaults. */
  given?: ReadonlySet<string>;
  seconds: number;
  concurrency: number;
  alphas: number[];
  /** The keys of `--connectors`; undefined means every test case. */
  connectors: string[] | undefined;
  stdbUrl: string;
  /** Whether the address was given, by flag or environment: then the suite starts no server of its own. */
  stdbUrlGiven: boolean;
  stdbConfirmedReads: boolean;
  warmupSec: number;
  verifyStrict: boolean;
  sqliteDurability: "full" | "normal" | "off";
  runsDir: string;
}

/** A sweep: from, to, step or factor, and the value that stays. */
export interface Sweep {
  from: number;
  to: number;
  step: number;
  fixed: number;
}

function concurrencyOf(said: Said): number {
  if (said.text("concurrency") === "auto") return 2 * hardwareThreads;
  return whole(1)(said, "concurrency") ?? 64;
}

/** All settings. Sweeps name a concurrency and an alpha as well. */
export function configOf(
  said: Said,
  connectors: string[] | undefined,
  isDemo: boolean,
  contention: Sweep | undefined,
  concurrency: Sweep | undefined,
): Config {
  const read = Object.fromEntries(
    Object.entries(settings).map(([name, one]) => [name, one(said, name)]),
  ) as Settings;
  const seconds = said.number("seconds") ?? (isDemo ? 10 : 300);
  const alphas = said.numbers("alpha") ?? [concurrency?.fixed ?? 1.5];
  const isDurable = read.durability === "on";
  const stdbUrl = said.text("stdbUrl", "STDB_URL");
  return {
    ...read,
    given: new Set(Object.keys(said.flags)),
    seconds,
    concurrency: contention?.fixed ?? concurrencyOf(said),
    alphas: isDemo ? alphas.slice(0, 1) : alphas,
    connectors,
    stdbUrl: stdbUrl ?? "127.0.0.1:3000",
    stdbUrlGiven: stdbUrl !== undefined,
    stdbConfirmedReads: (said.boolean("stdbConfirmedReads", "STDB_CONFIRMED_READS") ?? true) && isDurable,
    warmupSec:
      said.number("warmupSec", "BENCH_WARMUP_SEC") ?? (seconds >= 60 ? 30 : Math.floor(seconds / 10)),
    verifyStrict: (said.boolean("verifyStrict") ?? false) || read.killAfterSec !== undefined,
    sqliteDurability:
      choice(["full", "normal", "off"])(said, "sqliteDurability") ?? (isDurable ? "full" : "off"),
    runsDir: resolve(said.environment["BENCH_RUNS_DIR"] ?? resolve(import.meta.dirname, "../runs")),
  };
}

/** A setting that has another default in the test that asks. */
export const unlessGiven = <Name extends keyof Config>(
  config: Config,
  name: Name,
  fallback: Config[Name],
): Config[Name] => (config.given?.has(name) ? config[name] : fallback);

/** `host[:port]` of a SpacetimeDB address, and whether it is reached over TLS (section 3.3). */
export function normalizeStdbUrl(raw: string): { host: string; secure: boolean } {
  const hasScheme = /^[a-z][a-z0-9+.-]*:\/\//i.test(raw);
  const withScheme = hasScheme ? raw : `ws://${raw}`;
  if (!URL.canParse(withScheme))
    throw new UsageError(`--stdb-url: ${JSON.stringify(raw)} is no address like host:port`);
  const url = new URL(withScheme);
  const secure = url.protocol === "wss:" || url.protocol === "https:";
  if (!url.host) throw new UsageError(`--stdb-url: ${JSON.stringify(raw)} names no host`);
  return { host: url.host, secure };
}

export const webSocketUrl = (raw: string): string => {
  const { host, secure } = normalizeStdbUrl(raw);
  return `${secure ? "wss" : "ws"}://${host}/`;
};

export const httpUrl = (raw: string): string => {
  const { host, secure } = normalizeStdbUrl(raw);
  return `${secure ? "https" : "http"}://${host}`;
};
