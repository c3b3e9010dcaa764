// What a run hands on: the shapes of the result files (sections 6.1 and 14.3) and of their parts. Keys of the published format,
// and ours beside them.

/** Systems of different classes never share a table column (section 12, claim 2). */
export type SystemClass = "full-stack" | "database-direct" | "client-cache" | "not-durable";

/** What a reader must know to compare two rows (section 6.1). Read from the running system where it can be. */
export interface Fairness {
  systemClass: SystemClass;
  isolation: string;
  durability: string;
  /** Size of the pool in front of the database; null where there is none. */
  poolMax: number | null;
  transport: string;
  orm: string;
  clientLanguage: string;
  colocated: boolean;
  roundTripsPerTx: number;
}

/** One second of a run. */
export interface SeriesPoint {
  tSec: number;
  tps: number;
  p50_ms: number;
  p95_ms: number;
  p99_ms: number;
  samples: number;
  /** True length of the interval. */
  dtMs: number;
}

/** Figures of a range of the series (section 6.3). */
export interface RangeStatistics {
  samples: number;
  duration_s: number;
  tps_mean: number;
  tps_min: number;
  tps_max: number;
  tps_median: number;
  tps_stdev: number;
  tps_cv_pct: number;
  zero_seconds: number;
  p50_ms: number;
  p99_ms: number;
  p99_ms_max: number;
}

export interface SteadyStatistics extends RangeStatistics {
  warmup_sec: number;
  hist_p50_ms: number;
  hist_p95_ms: number;
  hist_p99_ms: number;
  hist_p999_ms: number;
  hist_max_ms: number;
}

export interface LatencySummary {
  p50_ms: number;
  p95_ms: number;
  p99_ms: number;
  p999_ms: number;
  max_ms: number;
  mean_ms: number;
}

/** The operations of one kind. */
export interface OperationResult extends LatencySummary {
  count: number;
  ok: number;
  miss: number;
  errors: number;
  tps: number;
}

export interface LoadReport {
  rows: number;
  seconds: number;
  rows_per_s: number;
}

/** What the strict check found (section 5.8). */
export interface LedgerVerdict {
  ok: boolean;
  wrongAccounts: number;
  unknownOperations: number;
  message: string;
}

export interface VerifyReport {
  ran: boolean;
  ok: boolean;
  accounts: string;
  total: string;
  expected: string;
  changed: string;
  message: string;
  strict?: LedgerVerdict;
}

export interface RoleUsage {
  cpu_s: number;
  /** 100 is one hardware thread. */
  cpu_avg_pct: number;
  cpu_peak_pct: number;
  peak_rss_bytes: number;
}

/** CPU, memory and disk of a run (section 14.4). */
export interface CpuReport {
  /** Everything but the load generator; null for a remote system. */
  server: RoleUsage | null;
  client: RoleUsage;
  /** Share of the steady window in which the event loop of the client waited. */
  client_idle_share: number;
  client_bound: boolean;
  ops_per_cpu_s: number | null;
  ops_per_cpu_pct: number | null;
  /** Written by the block device below the server's data; null where there is none. Absent in older files. */
  device_written_bytes?: number | null;
  /** Share of the machine's processors that neither server nor client used, but others did. Absent in older files. */
  others_share?: number | null;
  data_bytes_before: number | null;
  data_bytes_after: number | null;
}

/** The eight scalars that the published format has, and ours. */
export interface RunResult extends LatencySummary {
  tps: number;
  samples: number;
  collision_ops: number;
  collision_count: number;
  collision_rate: number;
  timeSeries: SeriesPoint[];
  partialPoint: SeriesPoint;
  steady: SteadyStatistics;
  completedTotal: number;
  errors: number;
  timeouts: number;
  /** Open loop: operations that were due and not started before the end. */
  unsent: number;
  /** Operations without an answer when the window ended: in the latencies with their age. */
  unfinished: number;
  noops: number;
  skipped: number;
  errorSamples: { message: string; count: number }[];
  verify: VerifyReport;
  cpu: CpuReport | null;
  /** Why this run must not be compared with others; empty for a good one. */
  invalid: string[];
  latencyHistogram: string;
  /** The same without the warm-up. Absent in older files. */
  steadyLatencyHistogram?: string;
  /** By kind of operation. */
  ops: Record<string, OperationResult>;
  load: LoadReport | null;
  elapsed_s: number;
  misses: number;
  /** Figures of one test alone. */
  extras: Record<string, unknown>;
}

/** The repetition with the median throughput, and all of them. */
export interface RepeatedResult extends RunResult {
  /** `each` is empty for a test that does not repeat itself. */
  repetitions: { tps_mean: number; tps_stdev: number; each: RunResult[] };
}

export type Parameters = Record<string, number | string | boolean>;

export interface RunEntry {
  system: string;
  label: string;
  file: string;
  seconds: number;
  concurrency: number;
  accounts: number;
  alpha: number | null;
  parameters: Parameters;
  res: RepeatedResult;
}

/** The machine that a result was measured on (section 6.2). */
export interface Hardware {
  cpu: string;
  sockets: number | null;
  physicalCores: number | null;
  hardwareThreads: number;
  maxMhz: number | null;
  ramBytes: number;
  kernel: string;
  distribution: string;
  /** E.g. "docker", "vm (hypervisor)", or "none seen". */
  virtualization: string;
  fileSystem: string;
  blockDevice: string;
  fdatasync_p50_us: number;
  fdatasync_p99_us: number;
  governor: string | null;
  loadAverage1: number;
}

export interface RunFile {
  schemaVersion: 1;
  /** Absent if the connectors' own clients made the load. */
  load_generator?: "native";
  test: string;
  seconds: number;
  concurrency: number;
  accounts: number;
  /** Null for every test but test-1. */
  alpha: number | null;
  run: number;
  runs: number;
  tag: string;
  startedAt: string;
  /** Why the machine was not idle; such a run is marked and never published. */
  machineBusy?: string;
  config: {
    benchPipelined?: boolean;
    maxInflightPerWorker?: number;
    poolMax: number;
    stdbConfirmedReads: boolean;
    stdbCompression: string;
    warmupSec: number;
    /** Open loop: operations per second that were due. */
    rate?: number;
  };
  fairness: Fairness & {
    pipelined: boolean;
    inflight: number;
    /** Round trip to the server that the client talks to, by a TCP handshake. */
    rttMs?: number | null;
  };
  software: Record<string, string>;
  hardware: Hardware;
  results: [RunEntry, ...RunEntry[]];
}

/** A connector that has no result, and why. */
export interface Absence {
  system: string;
  reason: string;
}

/** What serial tests write beside the figures of every test (section 18.1). */
export interface SerialExtras {
  /** Rows that one operation of a kind is about. */
  rows_per_operation: Record<string, number>;
  /** Reads inside the server: a loop in one procedure, by the module's clock, divided by its iterations. */
  engine_hot_us: Record<string, number>;
}
