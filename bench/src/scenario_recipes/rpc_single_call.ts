import type { Outcome, RunOperation } from "../workloads/workload";

const convexMethod =
  process.env["CONVEX_USE_SHARDED_COUNTER"] === "1" ? "transfer:transfer_sharded" : "transfer:transfer";

/** One transfer by the RPC method `transfer`; Convex names its functions by file. Answers may say `applied: false`. */
export const rpcTransfer: RunOperation = (connector, { from, to, amount }) =>
  connector.call(connector.name === "convex" ? convexMethod : "transfer", {
    amount,
    from_id: from,
    to_id: to,
  }) as Promise<Outcome>;
