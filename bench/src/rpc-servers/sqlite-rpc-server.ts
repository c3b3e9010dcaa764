// HTTP -> Drizzle -> SQLite (section 10.2): each transfer is one transaction, executed without giving way to another.

import "dotenv/config";
import { eq, inArray } from "drizzle-orm";
import { drizzle } from "drizzle-orm/better-sqlite3";
import { integer, sqliteTable } from "drizzle-orm/sqlite-core";
import { accountMethods, type Transfer } from "./accounts";
import { sqliteOrm } from "./drizzle";
import { portOfEnvironment, runAsProgram, servedOn, serveRpc } from "./node_rpc_server";
import { describeSqlite, openSqlite, sqliteAccounts } from "./sqlite";
import { drizzleStores, sqliteStores, storeMethods } from "./stores";

const accounts = sqliteTable("accounts", {
  id: integer("id").primaryKey(),
  balance: integer("balance").notNull(),
});

runAsProgram(async () => {
  const database = openSqlite(process.env);
  const db = drizzle(database);

  const transfer = ({ from, to, amount }: Transfer) =>
    db.transaction((tx) => {
      const rows = tx
        .select()
        .from(accounts)
        .where(inArray(accounts.id, [from, to]))
        .all();
      const source = rows.find((row) => row.id === from);
      const destination = rows.find((row) => row.id === to);
      if (!source || !destination) throw new Error("account_missing");
      if (source.balance < amount) return false;
      tx.update(accounts)
        .set({ balance: source.balance - amount })
        .where(eq(accounts.id, from))
        .run();
      tx.update(accounts)
        .set({ balance: destination.balance + amount })
        .where(eq(accounts.id, to))
        .run();
      return true;
    });

  const methods = {
    ...accountMethods(sqliteAccounts(database), transfer),
    ...storeMethods(drizzleStores(sqliteOrm(database), sqliteStores(database))),
    describe: () => ({ ...describeSqlite(database), roundTripsPerTx: 1, orm: "Drizzle" }),
  };
  const port = portOfEnvironment(["SQLITE_RPC_PORT"], 4103);
  return servedOn(database, () => serveRpc({ banner: "sqlite drizzle rpc server", methods }, port));
});
