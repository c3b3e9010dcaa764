// HTTP -> Drizzle -> SQLite (section 10.2): each transfer is one transaction, executed without giving way to another.

import "dotenv/config";
import { accountMethods } from "./accounts";
import { sqliteOrm } from "./drizzle";
import { drizzleTransfer } from "./drizzle_transfer";
import { portOfEnvironment, runAsProgram, servedOn, serveRpc } from "./node_rpc_server";
import { describeSqlite, openSqlite, sqliteAccounts } from "./sqlite";
import { drizzleStores, sqliteStores, storeMethods } from "./stores";

runAsProgram(async () => {
  const database = openSqlite(process.env);
  const orm = sqliteOrm(database);
  const methods = {
    ...accountMethods(sqliteAccounts(database), drizzleTransfer(orm)),
    ...storeMethods(drizzleStores(orm, sqliteStores(database))),
    describe: () => ({ ...describeSqlite(database), roundTripsPerTx: 1, orm: "Drizzle" }),
  };
  const port = portOfEnvironment(["SQLITE_RPC_PORT"], 4103);
  return servedOn(database, () => serveRpc({ banner: "sqlite drizzle rpc server", methods }, port));
});
