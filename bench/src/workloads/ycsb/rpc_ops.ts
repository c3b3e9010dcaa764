// The operations of YCSB for systems behind `POST /rpc`: every one is one request (section 15.5).

import type { Connector } from "../../connectors/connector";
import type { Outcome, RunOperation } from "../workload";

/** An absent record is a miss. */
const found = (answer: unknown): Outcome => ({
  ok: true,
  miss: answer === null || answer === undefined,
  found: answer,
});

const call =
  (name: string, outcome: (answer: unknown) => Outcome): RunOperation =>
  async (connection: Connector, args) =>
    outcome(await connection.call(name, args));

const done = (): Outcome => ({ ok: true });

export const ycsbRpcOps: Record<string, RunOperation> = {
  read: call("ycsb_read", found),
  update: call("ycsb_update", (answer) => ({
    ok: true,
    miss: (answer as { found: boolean }).found === false,
  })),
  insert: call("ycsb_insert", done),
  scan: call("ycsb_scan", (answer) => ({
    ok: Array.isArray(answer),
    miss: (answer as unknown[]).length === 0,
  })),
  rmw: call("ycsb_rmw", found),
  clear: call("ycsb_clear", done),
  insert_many: call("ycsb_insert_many", done),
  count: call("ycsb_count", found),
};
