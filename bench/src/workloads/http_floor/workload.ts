// http-floor (section 19): GET of a bare endpoint, no database; what HTTP and the client cost.

import { unlessGiven } from "../../config";
import type { RunOperation, Workload } from "../workload";

export const floorOps: Record<string, RunOperation> = {
  get: async (connection) => {
    await connection.call("get");
    return { ok: true };
  },
};

export const httpFloorWorkload: Workload = {
  name: "http-floor",
  samples: 3,
  runs: (config) => {
    const concurrency = unlessGiven(config, "concurrency", 50);
    const seconds = unlessGiven(config, "seconds", 15);
    const warmupSec = unlessGiven(config, "warmupSec", 0);
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
