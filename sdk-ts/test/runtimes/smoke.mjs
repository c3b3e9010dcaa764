// What the built package must be able to do wherever it runs: connects, subscribes, calls, and returns what it saw.

/** With a database of module `transfer`. */
export async function smoke(sdk, url, database, compression) {
  const { DbConnectionBuilder, DbConnectionImpl, procedures, reducerSchema, reducers, schema, t, table } =
    sdk;

  const accounts = table(
    { name: "accounts", indexes: [], constraints: [] },
    t.row({ id: t.u32().primaryKey(), balance: t.i64() }),
  );
  const module = {
    versionInfo: { cliVersion: "2.10.1" },
    tables: schema({ accounts }).schemaType.tables,
    reducers: reducers(
      reducerSchema("seed", { n: t.u32(), initialBalance: t.i64() }),
      reducerSchema("transfer", { from: t.u32(), to: t.u32(), amount: t.i64() }),
    ).reducersType.reducers,
    ...procedures(),
  };

  return new Promise((resolve, reject) => {
    new DbConnectionBuilder(module, (config) => new DbConnectionImpl(config))
      .withUri(url)
      .withDatabaseName(database)
      .withCompression(compression)
      .onConnectError((_, error) => reject(error))
      .onConnect(async (connection) => {
        await connection.reducers.seed({ n: 5000, initialBalance: 10n });
        connection
          .subscriptionBuilder()
          .onError((_, error) => reject(error))
          .onApplied(async () => {
            const updates = [];
            connection.db.accounts.onUpdate((_, old, row) =>
              updates.push(`${row.id}:${old.balance}>${row.balance}`),
            );
            await connection.reducers.transfer({ from: 1, to: 2, amount: 3n });
            const refused = await connection.reducers
              .transfer({ from: 1, to: 2, amount: 999n })
              .catch((error) => error);
            connection.disconnect();
            resolve({
              rows: Number(connection.db.accounts.count()),
              updates,
              refused: `${refused.name}: ${refused.message}`,
              hasIdentity: connection.identity.toHexString().length === 64,
            });
          })
          .subscribe("SELECT * FROM accounts");
      })
      .build();
  });
}
