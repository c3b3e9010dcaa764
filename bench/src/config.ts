// The settings of one invocation (section 3): defaults, and what the environment says. Flags are in opts.ts.

export type Isolation = "serializable" | "read-committed";
/** Who makes the load: the connectors' own clients in this process, or the program of crates/loadgen. */
export type LoadGenerator = "typescript" | "native";
export type SqliteDurability = "full" | "normal" | "off";

export interface Config {
  /** Flags that were given, in camel case: other tests than test-1 have other defaults. */
  given?: ReadonlySet<string>;
  seconds: number;
  concurrency: number;
  alphas: number[];
  accounts: number;
  initialBalance: number;
  /** The keys of `--connectors`; undefined means every test case. */
  connectors: string[] | undefined;
  runs: number;
  prepBetweenAlphas: boolean;

  stdbUrl: string;
  /** Whether the address was given, by flag or environment: then the suite starts no server of its own. */
  stdbUrlGiven: boolean;
  stdbModule: string;
  stdbModulePath: string;
  stdbCompression: "none" | "gzip";
  stdbConfirmedReads: boolean;
  stdbRefUrl: string;

  useDocker: boolean;
  poolMax: number;
  bunUrl: string;
  convexUrl: string;
  convexDir: string;

  opTimeoutMs: number;
  minOpTimeoutMs: number;
  tailSlackMs: number;
  precomputedTransferPairs: number;
  benchPipelined: boolean | undefined;
  maxInflightPerWorker: number | undefined;
  logErrors: boolean;
  verifyTransactions: boolean;
  runsDir: string;

  // Ours (section 3.6).
  warmupSec: number;
  tag: string;
  verifyStrict: boolean;
  killAfterSec: number | undefined;
  pgIsolation: Isolation;
  sqliteDurability: SqliteDurability;
  ops: number | undefined;
  records: number | undefined;
  jobs: number | undefined;
  iters: number | undefined;
  benchSeed: number;
  samples: number | undefined;
  rate: number | undefined;
  matrix: boolean;
  cpuAccounting: boolean;
  concurrencyList: number[] | undefined;
  durability: "on" | "off";
  loadGenerator: LoadGenerator;
  /** Threads of the native one. */
  loadGeneratorThreads: number;
  keepGoing: boolean;
  force: boolean;
  /** Use what runs, start and seed nothing. */
  prep: boolean;
  /** Options of single tests (sections 15, 16 and 19). */
  dist: "uniform" | "zipfian" | "latest" | undefined;
  theta: number;
  reload: boolean;
  smoke: boolean;
  tests: number | undefined;
  crudMode: "batch" | "steady";
  baseUrl: string | undefined;
  hotRow: boolean;
}

/** A usage error: printed as one line, exit code 1. */
export class UsageError extends Error {
  override readonly name = "UsageError";
}

export type Environment = Record<string, string | undefined>;

/** A number of the environment: JavaScript's `Number`, so an empty value is 0. */
export function environmentNumber(environment: Environment, name: string): number | undefined {
  const raw = environment[name];
  if (raw === undefined) return undefined;
  const value = Number(raw);
  if (!Number.isFinite(value)) throw new UsageError(`invalid number for ${name}: ${raw}`);
  return value;
}

/** A yes or no of the environment: `0`, `false` and the empty text are no, everything else is yes. */
export function isTrueText(raw: string): boolean {
  return raw !== "" && raw !== "0" && raw.toLowerCase() !== "false";
}

export function environmentBoolean(environment: Environment, name: string): boolean | undefined {
  const raw = environment[name];
  return raw === undefined ? undefined : isTrueText(raw);
}

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
