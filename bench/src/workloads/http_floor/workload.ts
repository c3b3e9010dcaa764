// http-floor (section 19): GET of a bare endpoint, no database; what HTTP and the client cost.

import type { RunOperation, Workload } from "../workload";

const defaultConcurrency = 50;
const defaultSeconds = 15;
const samples = 3;

export const floorOps: Record<string, RunOperation> = {
  get: async (connection) => {
    await connection.call("get");
    return { ok: true };
  },
};

export const httpFloorWorkload: Workload = {
  name: "http-floor",
  samples,
  runs: (config) => {
    const concurrency = config.given?.has("concurrency") ? config.concurrency : defaultConcurrency;
    const seconds = config.given?.has("seconds") ? config.seconds : defaultSeconds;
    const warmupSec = config.given?.has("warmupSec") ? config.warmupSec : 0;
    return [
      {
        label: `with ${concurrency} connections`,
        create: () => ({
          parameters: { seconds },
          limit: { mode: "time", seconds, warmupSec },
          concurrency,
          load: async () => undefined,
          generator: () => ({ next: () => ({ kind: "get", args: {} }) }),
          verify: async (_system, measurement) => ({
            ok: measurement.errors + measurement.timeouts === 0,
            message: `${measurement.samples} answers, ${measurement.errors + measurement.timeouts} failures`,
          }),
        }),
      },
    ];
  },
};
