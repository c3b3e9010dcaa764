// What a small server keeps its data in: SQLite or PostgreSQL, as its environment says.

import type pg from "pg";
import { openPool } from "./postgres/pool";
import { describePool } from "./postgres/service";
import { describeSqlite, openSqlite, type SqliteDatabase } from "./sqlite";

export interface Kept<Store> {
  store: Store;
  describe(): object | Promise<object>;
  close(): unknown;
}

export function keptInSqlite<Store>(storeOn: (database: SqliteDatabase) => Store): Kept<Store> {
  const database = openSqlite(process.env);
  return {
    store: storeOn(database),
    describe: () => describeSqlite(database),
    close: () => database.close(),
  };
}

export function keptInPostgres<Store>(
  applicationName: string,
  poolMax: number,
  storeOn: (pool: pg.Pool) => Store,
): Kept<Store> {
  const url = process.env["PG_URL"];
  if (!url) throw new Error("PG_URL is not set");
  const pool = openPool({ url, applicationName, poolMax });
  return { store: storeOn(pool), describe: () => describePool(pool), close: () => pool.end() };
}
