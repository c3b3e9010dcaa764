import type { Connector } from "../connectors/connector";

const convexMethod =
  process.env["CONVEX_USE_SHARDED_COUNTER"] === "1" ? "transfer:transfer_sharded" : "transfer:transfer";

/** One transfer by the RPC method `transfer`; Convex names its functions by file. */
export const rpcTransfer = (connector: Connector, from: number, to: number, amount: number) =>
  connector.call(connector.name === "convex" ? convexMethod : "transfer", {
    amount,
    from_id: from,
    to_id: to,
  });
