// Stores belong to a connection, and operations are made of them.

import type { Connector } from "../connectors/connector";
import type { RunOperation } from "./workload";

/** The store of a connection, made at its first use. */
export function perConnection<Store>(
  make: (connection: Connector) => Store,
): (connection: Connector) => Store {
  const stores = new WeakMap<Connector, Store>();
  return (connection) => {
    let store = stores.get(connection);
    if (store === undefined) {
      store = make(connection);
      stores.set(connection, store);
    }
    return store;
  };
}

type Act<Store, T> = (store: Store, args: Record<string, unknown>) => T | Promise<T>;

/** Makes operations of what a store does. */
export const operationsOn = <Store>(storeOf: (connection: Connector) => Store) => ({
  /** It is done when the store says so. */
  write:
    (act: Act<Store, unknown>): RunOperation =>
    async (connection, args) => {
      await act(storeOf(connection), args);
      return { ok: true };
    },
  /** Looks at the answer: a wrong one is a failure. */
  read:
    (what: string, isRight: Act<Store, boolean>): RunOperation =>
    async (connection, args) => {
      if (!(await isRight(storeOf(connection), args))) throw new Error(`the answer is wrong: ${what}`);
      return { ok: true };
    },
  /** Hands on what was found. */
  find:
    (act: Act<Store, unknown>): RunOperation =>
    async (connection, args) => ({ ok: true, found: await act(storeOf(connection), args) }),
});
