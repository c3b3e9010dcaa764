// HTTP -> Drizzle -> SQLite (section 10.2): each transfer is one transaction, executed without giving way to another.

import "dotenv/config";
import { eq, inArray } from "drizzle-orm";
import { drizzle } from "drizzle-orm/better-sqlite3";
import { integer, sqliteTable } from "drizzle-orm/sqlite-core";
import { sqliteDrizzleStore } from "./content/sqlite_drizzle_store";
import { contentMethods } from "./content/store";
import { crmMethods } from "./crm/methods";
import { sqliteDrizzleCrm } from "./crm/sqlite_store";
import { sqliteJobs } from "./jobs/sqlite_store";
import { jobMethods } from "./jobs/store";
import { runAsProgram, serveRpc } from "./node_rpc_server";
import { noteMethods } from "./notes/methods";
import { sqliteDrizzleNotes } from "./notes/sqlite_store";
import { isNoop, type RpcService, transferArguments } from "./rpc";
import { describeSqlite, openSqlite, sqliteMethods } from "./sqlite";
import { sqliteYcsb } from "./sqlite_ycsb";
import { ycsbMethods } from "./ycsb_methods";

const accounts = sqliteTable("accounts", {
  id: integer("id").primaryKey(),
  balance: integer("balance").notNull(),
});

runAsProgram(async () => {
  const database = openSqlite(process.env);
  const db = drizzle(database);

  const service: RpcService = {
    banner: "sqlite drizzle rpc server",
    methods: {
      ...sqliteMethods(database),
      ...ycsbMethods(sqliteYcsb(database)),
      ...jobMethods(sqliteJobs(database)),
      ...crmMethods(sqliteDrizzleCrm(database)),
      ...noteMethods(sqliteDrizzleNotes(database)),
      ...contentMethods(sqliteDrizzleStore(database)),
      describe: () => ({ ...describeSqlite(database), roundTripsPerTx: 1, orm: "Drizzle" }),
      transfer: (args) => {
        const transfer = transferArguments(args);
        if (isNoop(transfer)) return { applied: false };
        const { from, to, amount } = transfer;
        return db.transaction((tx) => {
          const rows = tx
            .select()
            .from(accounts)
            .where(inArray(accounts.id, [from, to]))
            .all();
          const source = rows.find((row) => row.id === from);
          const destination = rows.find((row) => row.id === to);
          if (!source || !destination) throw new Error("account_missing");
          if (source.balance < amount) return { applied: false };
          tx.update(accounts)
            .set({ balance: source.balance - amount })
            .where(eq(accounts.id, from))
            .run();
          tx.update(accounts)
            .set({ balance: destination.balance + amount })
            .where(eq(accounts.id, to))
            .run();
          return { applied: true };
        });
      },
    },
  };
  const running = await serveRpc(service, Number(process.env["SQLITE_RPC_PORT"] ?? 4103));
  return {
    close: async () => {
      await running.close();
      database.close();
    },
  };
});
