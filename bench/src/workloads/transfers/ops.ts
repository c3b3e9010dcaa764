// A transfer, by the ways of asking.

import type { Outcome, RunOperation } from "../workload";

/** By the reducer `transfer`. */
export const reducerTransfer: RunOperation = (connector, { from, to, amount }) =>
  connector.call("transfer", { from, to, amount: BigInt(amount as number) }) as Promise<Outcome>;

const convexMethod =
  process.env["CONVEX_USE_SHARDED_COUNTER"] === "1" ? "transfer:transfer_sharded" : "transfer:transfer";

/** By the RPC method `transfer`; Convex names its functions by file. Answers may say `applied: false`. */
export const rpcTransfer: RunOperation = (connector, { from, to, amount }) =>
  connector.call(connector.name === "convex" ? convexMethod : "transfer", {
    amount,
    from_id: from,
    to_id: to,
  }) as Promise<Outcome>;
