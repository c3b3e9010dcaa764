// The job queue on the modules `jobs-ts` and `jobs-rs`, by a client SDK: procedures for what returns jobs, a reducer to
// acknowledge.

import type { Connector } from "../../connectors/connector";
import type { Outcome, RunOperation } from "../workload";

type Arguments = Record<string, unknown>;

const call =
  (
    name: string,
    args: (given: Arguments) => Arguments,
    outcome: (answer: unknown) => Outcome,
  ): RunOperation =>
  async (connection: Connector, given) =>
    outcome(await connection.call(name, args(given)));

const any = (found: unknown): Outcome => ({ ok: true, found });
const one = (found: unknown): Outcome => ({ ok: true, miss: found === undefined || found === null, found });
const many = (found: unknown): Outcome => ({ ok: true, miss: (found as unknown[]).length === 0, found });
const asGiven = (given: Arguments) => given;

export const jobSdkOps: Record<string, RunOperation> = {
  seed: call("jobSeed", asGiven, any),
  fetch: call("jobFetchNext", ({ worker, lease_ms }) => ({ worker, leaseMs: lease_ms }), one),
  ack: call("jobAck", asGiven, any),
  lease: call("jobLease", ({ worker, max, lease_ms }) => ({ worker, max, leaseMs: lease_ms }), many),
  counts: call("jobCounts", asGiven, any),
  repeated: call("jobRepeated", asGiven, any),
};
