// The operations of YCSB on the module `ycsb-ts`: reducers, and procedures for what returns something (section 15.4). A
// server without procedures is read by queries; then a read-modify-write is a query and a reducer.

import type { Connector } from "../../connectors/connector";
import { WorkloadSdkConnector } from "../../connectors/workload_sdk_connector";
import type { Outcome, RunOperation } from "../workload";

type Arguments = Record<string, unknown>;

function sdk(connection: Connector): WorkloadSdkConnector {
  if (connection instanceof WorkloadSdkConnector) return connection;
  throw new Error(`${connection.name} is no connection of an SDK`);
}

const one = (row: unknown): Outcome => ({ ok: true, miss: row === undefined || row === null, found: row });
const many = (rows: unknown): Outcome => ({ ok: true, miss: (rows as unknown[]).length === 0, found: rows });

/** Calls a reducer; the error `missing` is a miss. */
const reducer =
  (name: string): RunOperation =>
  async (connection, args) => {
    try {
      await connection.call(name, args);
      return { ok: true };
    } catch (error) {
      if (error instanceof Error && error.message.includes("missing")) return { ok: true, miss: true };
      throw error;
    }
  };

/** Calls a procedure, or does the same by other means where there are none. */
const procedure =
  (
    name: string,
    outcome: (answer: unknown) => Outcome,
    instead: (connection: WorkloadSdkConnector, args: Arguments) => Promise<unknown>,
  ): RunOperation =>
  async (connection, args) => {
    const client = sdk(connection);
    const hasProcedures = await client.hasProcedures("ycsbCount");
    return outcome(hasProcedures ? await client.call(name, args) : await instead(client, args));
  };

const update = reducer("ycsbUpdate");

const queryOne = async (connection: WorkloadSdkConnector, { key }: Arguments) =>
  (await connection.query(`SELECT * FROM usertable WHERE ycsb_key = '${key}'`))[0];

export const ycsbSdkOps: Record<string, RunOperation> = {
  insert: reducer("ycsbInsert"),
  insert_many: reducer("ycsbInsertMany"),
  update,
  clear: reducer("ycsbClear"),
  read: procedure("ycsbRead", one, queryOne),
  scan: procedure("ycsbScan", many, () =>
    Promise.reject(
      new Error("this server has no procedures, and its queries no order: workload E needs them"),
    ),
  ),
  rmw: procedure("ycsbRmw", one, async (connection, args) => {
    const row = await queryOne(connection, args);
    if (row !== undefined) await update(connection, args);
    return row;
  }),
  count: procedure(
    "ycsbCount",
    (count) => ({ ok: true, found: count }),
    async (connection) => (await connection.query("SELECT * FROM usertable")).length,
  ),
};
