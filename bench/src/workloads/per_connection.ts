// Stores belong to a connection.

import type { Connector } from "../connectors/connector";

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
