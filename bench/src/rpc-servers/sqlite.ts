// SQLite as its servers use it: how durable it is, its table, and what all of them do in the same way (section 10.2).

import { mkdirSync } from "node:fs";
import { dirname } from "node:path";
import Database from "better-sqlite3";
import { type AccountStore, seedBatchRows } from "./accounts";

export type SqliteDatabase = Database.Database;

type Pragmas = Record<string, string | number>;

const cached = { temp_store: "MEMORY", cache_size: -64_000 };

/** `SQLITE_MODE`; an unknown one is `realistic_cached`, as in the published suite. */
const modes: Record<string, Pragmas> = {
  fastest: { journal_mode: "MEMORY", synchronous: "OFF", ...cached, foreign_keys: "OFF" },
  // The published suite writes `synchronous = MEMORY` here, which SQLite takes as NORMAL.
  realistic_cached: { journal_mode: "WAL", synchronous: "NORMAL", ...cached },
  realistic_fast: { journal_mode: "WAL", synchronous: "NORMAL", ...cached },
  realistic: { journal_mode: "WAL", synchronous: "FULL" },
  default: {},
  baseline: { journal_mode: "DELETE", synchronous: "FULL" },
};

const durabilities: Record<string, Pragmas> = {
  full: { journal_mode: "WAL", synchronous: "FULL" },
  normal: { journal_mode: "WAL", synchronous: "NORMAL" },
  off: { journal_mode: "WAL", synchronous: "OFF" },
};

/** Opens the database that the environment names, with the pragmas that it asks for, and makes the table. */
export function openSqlite(environment: NodeJS.ProcessEnv, extra: Pragmas = {}): SqliteDatabase {
  const mode = (environment["SQLITE_MODE"] ?? "realistic_cached").toLowerCase();
  const file = mode === "fastest" ? ":memory:" : (environment["SQLITE_FILE"] ?? "./.data/accounts.sqlite");
  const durability = environment["SQLITE_DURABILITY"];
  if (durability !== undefined && !Object.hasOwn(durabilities, durability)) {
    throw new Error(`SQLITE_DURABILITY is full, normal or off, not ${durability}`);
  }
  if (file !== ":memory:") mkdirSync(dirname(file), { recursive: true });
  const database = new Database(file);
  const pragmas = {
    ...(modes[mode] ?? modes["realistic_cached"]),
    ...durabilities[durability ?? ""],
    ...extra,
  };
  for (const [name, value] of Object.entries(pragmas)) database.pragma(`${name} = ${value}`);
  database.exec("CREATE TABLE IF NOT EXISTS accounts (id INTEGER PRIMARY KEY, balance INTEGER NOT NULL)");
  return database;
}

const synchronousNames = ["OFF", "NORMAL", "FULL", "EXTRA"];

/** What the pragmas really are, read back. */
export function describeSqlite(database: SqliteDatabase) {
  const journal = String(database.pragma("journal_mode", { simple: true })).toUpperCase();
  const synchronous = synchronousNames[Number(database.pragma("synchronous", { simple: true }))] ?? "?";
  const { version } = database.prepare("SELECT sqlite_version() AS version").get() as { version: string };
  const isDurable = !database.memory && (synchronous === "FULL" || synchronous === "EXTRA");
  return {
    isolation: "serializable",
    durability: `${isDurable ? "synced before the answer" : "not synced"} (journal ${journal}, synchronous ${synchronous})`,
    poolMax: null,
    software: { database: `SQLite ${version}`, server: `Node.js ${process.version}` },
  };
}

/** By plain statements: none of them is measured. */
export function sqliteAccounts(database: SqliteDatabase): AccountStore {
  const one = database.prepare("SELECT id, CAST(balance AS TEXT) AS balance FROM accounts WHERE id = ?");
  const page = database
    .prepare("SELECT CAST(balance AS TEXT) FROM accounts WHERE id >= ? ORDER BY id LIMIT ?")
    .pluck();
  const totals = database.prepare(
    `SELECT CAST(COUNT(*) AS TEXT) AS accounts, CAST(COALESCE(SUM(balance), 0) AS TEXT) AS total,
            CAST(COALESCE(SUM(balance <> CAST(? AS INTEGER)), 0) AS TEXT) AS changed FROM accounts`,
  );
  const insert = database.prepare(
    `WITH RECURSIVE ids(id) AS (SELECT @first UNION ALL SELECT id + 1 FROM ids WHERE id + 1 < @end)
     INSERT INTO accounts SELECT id, CAST(@balance AS INTEGER) FROM ids`,
  );
  const seed = database.transaction((accounts: number, initialBalance: number) => {
    database.exec("DELETE FROM accounts");
    for (let first = 0; first < accounts; first += seedBatchRows) {
      insert.run({ first, end: Math.min(accounts, first + seedBatchRows), balance: String(initialBalance) });
    }
  });
  return {
    find: (id) => one.get(id) as { id: number; balance: string } | undefined,
    balances: (from, count) => page.all(from, count) as string[],
    totals: (initialBalance) =>
      totals.get(String(initialBalance)) as { accounts: string; total: string; changed: string },
    seed,
  };
}
