// The operations of the job queue: over RPC, and on a pool without a server in between (section 17.4).

import type { Connector } from "../../connectors/connector";
import { PostgresDirectConnector } from "../../connectors/postgres_direct";
import type { Outcome, RunOperation } from "../workload";

/** Nothing was left: a miss. */
const one = (found: unknown): Outcome => ({ ok: true, miss: found === null || found === undefined, found });
const many = (found: unknown): Outcome => ({ ok: true, miss: (found as unknown[]).length === 0, found });
const any = (found: unknown): Outcome => ({ ok: true, found });

const call =
  (name: string, outcome: (answer: unknown) => Outcome): RunOperation =>
  async (connection, args) =>
    outcome(await connection.call(name, args));

export const jobRpcOps: Record<string, RunOperation> = {
  seed: call("job_seed", any),
  fetch: call("job_fetch_next", one),
  ack: call("job_ack", any),
  lease: call("job_lease", many),
  counts: call("job_counts", any),
  repeated: call("job_repeated", any),
};

type Arguments = Record<string, unknown>;

const jobs = (connection: Connector) => {
  if (connection instanceof PostgresDirectConnector) return connection.jobs();
  throw new Error(`${connection.name} has no pool`);
};

const numbers = (args: Arguments, ...names: string[]) => names.map((name) => Number(args[name]));

export const jobPostgresDirectOps: Record<string, RunOperation> = {
  seed: async (connection, args) => any(await jobs(connection).seed(Number(args["n"]))),
  fetch: async (connection, args) => {
    const [worker, leaseMs] = numbers(args, "worker", "lease_ms");
    return one(await jobs(connection).fetchNext(worker!, leaseMs!));
  },
  ack: async (connection, args) => {
    const [id, lease] = numbers(args, "id", "lease");
    if (!(await jobs(connection).acknowledge(id!, lease!))) throw new Error("stale_lease");
    return { ok: true };
  },
  lease: async (connection, args) => {
    const [worker, max, leaseMs] = numbers(args, "worker", "max", "lease_ms");
    return many(await jobs(connection).lease(worker!, max!, leaseMs!));
  },
  counts: async (connection) => any(await jobs(connection).counts()),
  repeated: async (connection) => any(await jobs(connection).repeated()),
};
