// The operations of YCSB: every one is one request (section 15.5).

import { call, done, found, many, one } from "../calls";
import type { RunOperation } from "../workload";

export const ycsbOps: Record<string, RunOperation> = {
  read: call("ycsb_read", one),
  update: call("ycsb_update", (answer) => ({
    ok: true,
    miss: (answer as { found: boolean }).found === false,
  })),
  insert: call("ycsb_insert"),
  scan: call("ycsb_scan", many),
  rmw: call("ycsb_rmw", one),
  clear: call("ycsb_clear"),
  insert_many: call("ycsb_insert_many"),
  count: call("ycsb_count", found),
};

const updateReducer = call("ycsb_update", done);

/** On the modules: the error `missing` of a reducer is a miss. */
export const ycsbSdkOps: Record<string, RunOperation> = {
  ...ycsbOps,
  async update(connection, args) {
    try {
      return await updateReducer(connection, args);
    } catch (error) {
      if (error instanceof Error && error.message.includes("missing")) return { ok: true, miss: true };
      throw error;
    }
  },
};
