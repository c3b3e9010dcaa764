// The job queue on the modules `jobs-ts` and `jobs-rs`, by a client SDK: procedures for what returns jobs, a reducer to
// acknowledge.

import { DbConnection as LightconeConnection } from "../../../bindings/jobs-lightcone";
import { DbConnection as SpacetimedbConnection } from "../../../bindings/jobs-spacetimedb";
import type { Connector } from "../../connectors/connector";
import { sdkDefinition } from "../sdk_definition";
import type { Outcome, RunOperation, WorkloadCase } from "../workload";

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

const ops: Record<string, RunOperation> = {
  seed: call("jobSeed", asGiven, any),
  fetch: call("jobFetchNext", ({ worker, lease_ms }) => ({ worker, leaseMs: lease_ms }), one),
  ack: call("jobAck", asGiven, any),
  lease: call("jobLease", ({ worker, max, lease_ms }) => ({ worker, max, leaseMs: lease_ms }), many),
  counts: call("jobCounts", asGiven, any),
  repeated: call("jobRepeated", asGiven, any),
};

const shared = { module: "jobs", neededProcedure: "jobCounts" };

export const lightconeJobs: WorkloadCase = {
  system: "lightcone",
  label: "Lightcone, TypeScript module",
  ops,
  definition: sdkDefinition({ key: "lightcone", ...shared, builder: () => LightconeConnection.builder() }),
};

export const spacetimedbJobs: WorkloadCase = {
  system: "spacetimedb",
  label: "npm client, TypeScript module",
  ops,
  definition: sdkDefinition({
    key: "spacetimedb",
    ...shared,
    builder: () => SpacetimedbConnection.builder(),
  }),
};

export const rustJobs: WorkloadCase = {
  system: "spacetimedb_rust",
  label: "npm client, Rust module",
  ops,
  definition: sdkDefinition({
    key: "spacetimedb_rust",
    ...shared,
    builder: () => SpacetimedbConnection.builder(),
  }),
};
