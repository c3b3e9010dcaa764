// HTTP -> Drizzle -> SQLite (section 10.2): each transfer is one transaction, executed without giving way to another.

import "dotenv/config";
import { eq, inArray } from "drizzle-orm";
import { drizzle } from "drizzle-orm/better-sqlite3";
import { integer, sqliteTable } from "drizzle-orm/sqlite-core";
import { accountMethods, type Transfer } from "./accounts";
import { sqliteDrizzleContent } from "./content/sqlite_drizzle";
import { contentMethods } from "./content/store";
import { sqliteDrizzleCrm } from "./crm/sqlite_drizzle";
import { crmMethods } from "./crm/store";
import { sqliteJobs } from "./jobs/sqlite";
import { jobMethods } from "./jobs/store";
import { portOfEnvironment, runAsProgram, servedOn, serveRpc } from "./node_rpc_server";
import { sqliteDrizzleNotes } from "./notes/sqlite_drizzle";
import { noteMethods } from "./notes/store";
import { describeSqlite, openSqlite, sqliteAccounts } from "./sqlite";
import { sqliteDrizzleYcsb } from "./ycsb/sqlite_drizzle";
import { ycsbMethods } from "./ycsb/store";

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
    ...ycsbMethods(sqliteDrizzleYcsb(database)),
    ...jobMethods(sqliteJobs(database)),
    ...crmMethods(sqliteDrizzleCrm(database)),
    ...noteMethods(sqliteDrizzleNotes(database)),
    ...contentMethods(sqliteDrizzleContent(database)),
    describe: () => ({ ...describeSqlite(database), roundTripsPerTx: 1, orm: "Drizzle" }),
  };
  const port = portOfEnvironment(["SQLITE_RPC_PORT"], 4103);
  return servedOn(database, () => serveRpc({ banner: "sqlite drizzle rpc server", methods }, port));
});
