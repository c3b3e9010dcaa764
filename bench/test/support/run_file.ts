// A result as a run writes it, with what a test wants to be different.

import type { RunFile, SystemClass } from "../../src/core/result";

export interface Difference {
  system?: string;
  tps?: number;
  inFlight?: number;
  systemClass?: SystemClass;
  invalid?: string[];
  clientBound?: boolean;
  zeroSeconds?: number;
}

export function runFile(difference: Difference): RunFile {
  const {
    system = "mock",
    tps = 100,
    inFlight = 1,
    invalid = [],
    clientBound = false,
    zeroSeconds = 0,
  } = difference;
  const role = { cpu_s: 2, cpu_avg_pct: 20, cpu_peak_pct: 30, peak_rss_bytes: 1e8 };
  const point = (tSec: number) => ({ tSec, tps, p50_ms: 1, p95_ms: 2, p99_ms: 3, samples: tps, dtMs: 1000 });
  const timeSeries = Array.from({ length: 10 }, (_, i) => point(i + 1));
  return {
    schemaVersion: 1,
    test: "test-1",
    seconds: 10,
    concurrency: 64,
    accounts: 100_000,
    alpha: 1.5,
    run: 1,
    runs: 1,
    tag: "",
    startedAt: "2026-01-02T03:04:05.678Z",
    config: { poolMax: 64, stdbConfirmedReads: true, stdbCompression: "none", warmupSec: 1 },
    fairness: {
      systemClass: difference.systemClass ?? "full-stack",
      isolation: "serializable",
      durability: "synced",
      poolMax: null,
      transport: "HTTP",
      orm: "none",
      clientLanguage: "TypeScript",
      colocated: true,
      roundTripsPerTx: 1,
      pipelined: inFlight > 1,
      inflight: inFlight,
      rttMs: 0.1,
    },
    software: { suiteCommit: "abc" },
    hardware: {
      cpu: "a processor",
      sockets: 1,
      physicalCores: 1,
      hardwareThreads: 2,
      maxMhz: 3000,
      ramBytes: 8e9,
      kernel: "6",
      distribution: "Debian",
      virtualization: "none seen",
      fileSystem: "ext4",
      blockDevice: "/dev/vda",
      fdatasync_p50_us: 100,
      fdatasync_p99_us: 200,
      governor: null,
      loadAverage1: 0,
    },
    results: [
      {
        system,
        label: system,
        file: `${system}.ts`,
        seconds: 10,
        concurrency: 64,
        accounts: 100_000,
        alpha: 1.5,
        parameters: {},
        res: {
          tps,
          samples: 10 * tps,
          p50_ms: 1,
          p95_ms: 2,
          p99_ms: 3,
          collision_ops: 20 * tps,
          collision_count: tps,
          collision_rate: 0.05,
          timeSeries,
          partialPoint: point(10),
          steady: {
            warmup_sec: 1,
            samples: 10 * tps,
            duration_s: 10,
            tps_mean: tps,
            tps_min: tps,
            tps_max: tps,
            tps_median: tps,
            tps_stdev: 0,
            tps_cv_pct: 0,
            zero_seconds: zeroSeconds,
            p50_ms: 1,
            p99_ms: 3,
            p99_ms_max: 3,
            hist_p50_ms: 1,
            hist_p95_ms: 2,
            hist_p99_ms: 3,
            hist_p999_ms: 3,
            hist_max_ms: 3,
          },
          completedTotal: 10 * tps,
          errors: 0,
          timeouts: 0,
          unsent: 0,
          unfinished: 0,
          misses: 0,
          noops: 0,
          skipped: 0,
          errorSamples: [],
          p999_ms: 3,
          max_ms: 3,
          mean_ms: 1,
          verify: {
            ran: true,
            ok: true,
            accounts: "1",
            total: "1",
            expected: "1",
            changed: "1",
            message: "",
          },
          cpu: {
            server: role,
            client: role,
            client_idle_share: clientBound ? 0.1 : 0.5,
            client_bound: clientBound,
            ops_per_cpu_s: 50,
            ops_per_cpu_pct: 0.5,
            data_bytes_before: null,
            data_bytes_after: null,
          },
          invalid,
          latencyHistogram: "",
          ops: {},
          load: null,
          elapsed_s: 10,
          extras: {},
          repetitions: { tps_mean: tps, tps_stdev: 0, each: [] },
        },
      },
    ],
  };
}
