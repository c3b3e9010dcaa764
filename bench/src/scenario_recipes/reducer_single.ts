import type { Outcome, RunOperation } from "../workloads/workload";

/** One transfer by the reducer `transfer`. */
export const reducerTransfer: RunOperation = (connector, { from, to, amount }) =>
  connector.call("transfer", { from, to, amount: BigInt(amount as number) }) as Promise<Outcome>;
