// The job queue as servers keep it (section 17), and its RPC methods.

import { type Answer, BadArguments, type RpcMethods, whole } from "../rpc";

export const jobKind = "SummarizeText";
export const jobPayload = '{"text":"lorem"}';
/** States of a job, in the order of `counts`. */
export const jobStates = ["queued", "running", "succeeded", "failed"] as const;

export interface FetchedJob {
  id: number;
  /** The fencing token: what acknowledges the job must have it. */
  lease: number;
  kind: string;
  payload: string;
}

export interface JobStore {
  /** Makes the table if it is missing, and fills it anew. */
  seed(count: number): Answer<void>;
  /** Takes the lowest queued job. */
  fetchNext(worker: number, leaseMs: number): Answer<FetchedJob | undefined>;
  /** Whether the job was running under this lease. */
  acknowledge(id: number, lease: number): Answer<boolean>;
  /** Takes up to `max` queued jobs; answers their ids. */
  lease(worker: number, max: number, leaseMs: number): Answer<number[]>;
  /** Puts jobs back whose lease is over; answers how many. */
  expire(): Answer<number>;
  /** Jobs by state. */
  counts(): Answer<number[]>;
  /** Jobs that were not taken exactly once. */
  repeated(): Answer<number>;
}

export function jobMethods(store: JobStore): RpcMethods {
  return {
    job_seed: (args) => store.seed(whole(args, "n")),
    job_fetch_next: async (args) =>
      (await store.fetchNext(whole(args, "worker"), whole(args, "lease_ms"))) ?? null,
    async job_ack(args) {
      if (!(await store.acknowledge(whole(args, "id"), whole(args, "lease"))))
        throw new BadArguments("stale_lease");
    },
    job_lease: (args) => store.lease(whole(args, "worker"), whole(args, "max"), whole(args, "lease_ms")),
    job_expire: () => store.expire(),
    job_counts: () => store.counts(),
    job_repeated: () => store.repeated(),
  };
}
