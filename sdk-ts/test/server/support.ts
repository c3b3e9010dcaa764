// Connections to the modules of the repository, with their end-to-end bindings on this package.

import {
  DbConnectionBuilder,
  DbConnectionImpl,
  procedures,
  reducerSchema,
  reducers,
  schema,
  t,
  table,
} from "../../src/client";

const tablesSchema = schema({
  accounts: table(
    {
      name: "accounts",
      indexes: [{ accessor: "id", name: "accounts_id_idx_btree", algorithm: "btree", columns: ["id"] }],
      constraints: [{ name: "accounts_id_key", constraint: "unique", columns: ["id"] }],
    },
    t.row({ id: t.u32().primaryKey(), balance: t.i64() }),
  ),
});

const reducersSchema = reducers(
  reducerSchema("seed", { n: t.u32(), initialBalance: t.i64() }),
  reducerSchema("transfer", { from: t.u32(), to: t.u32(), amount: t.i64() }),
);

const BANK = {
  versionInfo: { cliVersion: "2.10.1" as const },
  tables: tablesSchema.schemaType.tables,
  reducers: reducersSchema.reducersType.reducers,
  ...procedures(),
};

/** A connection to a database of module `transfer`. */
export class Bank extends DbConnectionImpl<typeof BANK> {
  static builder = (): DbConnectionBuilder<Bank> =>
    new DbConnectionBuilder<Bank>(BANK, (config) => new Bank(config));
}

/** Waits until the queries are applied. */
export function subscribed(connection: Bank, ...queries: string[]): Promise<void> {
  return new Promise((resolve, reject) => {
    connection
      .subscriptionBuilder()
      .onApplied(() => resolve())
      .onError((_, error) => reject(error))
      .subscribe(queries);
  });
}

/** Builds a connection and waits until it is there. */
export function connected(builder: DbConnectionBuilder<Bank>): Promise<Bank> {
  return new Promise((resolve, reject) => {
    builder
      .onConnect((connection) => resolve(connection))
      .onConnectError((_, error) => reject(error))
      .build();
  });
}
