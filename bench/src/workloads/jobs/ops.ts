// The operations of the job queue (section 17.4).

import type { CallArguments } from "../../connectors/connector";
import { call, found, many, one } from "../calls";
import type { RunOperation } from "../workload";

const jobOpsWith = (taking?: (args: CallArguments) => CallArguments): Record<string, RunOperation> => ({
  seed: call("job_seed", found),
  fetch: call("job_fetch_next", one, taking),
  ack: call("job_ack", found),
  lease: call("job_lease", many, taking),
  counts: call("job_counts", found),
  repeated: call("job_repeated", found),
});

export const jobOps = jobOpsWith();

/** Bindings have arguments in camel case. */
export const jobSdkOps = jobOpsWith(({ lease_ms, ...args }) => ({ ...args, leaseMs: lease_ms }));
