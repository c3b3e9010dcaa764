// The operations of YCSB on the module `ycsb-ts`: reducers, and procedures for what returns something (section 15.4).

import type { Outcome, RunOperation } from "../workload";

const done = (): Outcome => ({ ok: true });
const one = (row: unknown): Outcome => ({ ok: true, miss: row === undefined || row === null, found: row });
const many = (rows: unknown): Outcome => ({ ok: true, miss: (rows as unknown[]).length === 0, found: rows });
const any = (found: unknown): Outcome => ({ ok: true, found });

const call =
  (name: string, outcome: (answer: unknown) => Outcome): RunOperation =>
  async (connection, args) =>
    outcome(await connection.call(name, args));

/** The error `missing` of the reducer is a miss. */
const update: RunOperation = async (connection, args) => {
  try {
    await connection.call("ycsbUpdate", args);
    return { ok: true };
  } catch (error) {
    if (error instanceof Error && error.message.includes("missing")) return { ok: true, miss: true };
    throw error;
  }
};

export const ycsbSdkOps: Record<string, RunOperation> = {
  insert: call("ycsbInsert", done),
  insert_many: call("ycsbInsertMany", done),
  update,
  clear: call("ycsbClear", done),
  read: call("ycsbRead", one),
  scan: call("ycsbScan", many),
  rmw: call("ycsbRmw", one),
  count: call("ycsbCount", any),
};
