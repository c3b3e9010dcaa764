import type { Connector } from "../connectors/connector";

/** One transfer by the reducer `transfer`. */
export const reducerTransfer = (connector: Connector, from: number, to: number, amount: number) =>
  connector.call("transfer", { from, to, amount: BigInt(amount) });
