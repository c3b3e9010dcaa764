// Drizzle on PostgreSQL and on SQLite: a store is written once, by the types of PostgreSQL's part of the library. A transaction
// is a generator that hands over its statements: those of PostgreSQL are awaited, those of SQLite are executed at once, so that
// no other request comes between them.

import type Database from "better-sqlite3";
import { drizzle as drizzleOnSqlite } from "drizzle-orm/better-sqlite3";
import { drizzle, type NodePgDatabase } from "drizzle-orm/node-postgres";
import {
  bigint,
  bigserial,
  boolean,
  customType,
  integer,
  json,
  pgTable,
  text,
  timestamp,
} from "drizzle-orm/pg-core";
import * as sqlite from "drizzle-orm/sqlite-core";
import type pg from "pg";
import { type RetryCounter, withRetries } from "./postgres/retry";
import type { Answer } from "./rpc";

/** A time that the store has in another form than the driver. */
const timeOf = <T>(toDriver: (value: T) => Date, fromDriver: (text: string) => T) =>
  customType<{ data: T; driverData: string | Date }>({
    dataType: () => "timestamptz",
    toDriver,
    fromDriver: (value) => fromDriver(String(value)),
  });
const milliseconds = timeOf((time: number) => new Date(time), Date.parse);
const isoText = timeOf(
  (time: string) => new Date(time),
  (time) => new Date(time).toISOString(),
);

const postgresColumns = {
  table: pgTable,
  id: () => bigserial("id", { mode: "number" }).primaryKey(),
  text: (name: string) => text(name).notNull(),
  optionalText: (name: string) => text(name),
  json: (name: string) => json(name),
  number: (name: string) => integer(name).notNull(),
  reference: (name: string) => bigint(name, { mode: "number" }).notNull(),
  money: (name: string) => bigint(name, { mode: "number" }).notNull(),
  balance: (name: string) => bigint(name, { mode: "bigint" }).notNull(),
  flag: (name: string) => boolean(name).notNull(),
  /** Milliseconds since 1970. */
  time: (name: string) => milliseconds(name).notNull(),
  isoTime: (name: string) => isoText(name).notNull(),
  /** The time of the insertion. */
  now: (name: string) => timestamp(name, { withTimezone: true }).notNull().defaultNow(),
};

/** The columns of a table, made by one function for each kind. */
export type Columns = typeof postgresColumns;

const whole = (name: string) => sqlite.integer(name).notNull();
const words = (name: string) => sqlite.text(name).notNull();
const sqliteColumns = {
  ...{ table: sqlite.sqliteTable, text: words, isoTime: words },
  ...{ number: whole, reference: whole, money: whole, balance: whole, time: whole },
  id: () => sqlite.integer("id").primaryKey({ autoIncrement: true }),
  optionalText: (name: string) => sqlite.text(name),
  json: (name: string) => sqlite.text(name, { mode: "json" }),
  flag: (name: string) => sqlite.integer(name, { mode: "boolean" }).notNull(),
  now: (name: string) => whole(name).$defaultFn(() => Date.now()),
} as unknown as Columns;

/** The statements of a transaction, and what it answers. */
export type Steps<T> = Generator<PromiseLike<unknown>, T, unknown>;

/** One statement of a transaction. */
export function* step<T>(statement: PromiseLike<T>): Steps<T> {
  return (yield statement) as T;
}

type Tables = Record<string, unknown>;
type Transaction<Schema extends Tables> = Parameters<Parameters<NodePgDatabase<Schema>["transaction"]>[0]>[0];

/** A database with the tables of a store. */
interface OrmDatabase<Schema extends Tables> {
  tables: Schema;
  database: NodePgDatabase<Schema>;
  /** One statement, committed by itself. */
  run<T>(statement: PromiseLike<T>): Answer<T>;
  write<T>(body: (transaction: Transaction<Schema>) => Steps<T>): Answer<T>;
  /** The statement, made to lock the rows that it finds. */
  locking<Select extends { for(strength: "update"): unknown }>(select: Select): Select;
  /** A number as `balance` has it. */
  amountOf(value: number): bigint;
}

/** Opens a database with the tables of a store. */
export type Orm = <Schema extends Tables>(tablesOf: (columns: Columns) => Schema) => OrmDatabase<Schema>;

/** What the database refuses in favour of others is tried again: a serializable read may be refused as well. */
export const postgresOrm =
  (pool: pg.Pool, counter: RetryCounter = { retries: 0 }): Orm =>
  (tablesOf) => {
    const tables = tablesOf(postgresColumns);
    const database = drizzle(pool, { schema: tables });
    return {
      ...{ tables, database },
      run: (statement) => withRetries(() => statement, counter),
      write: (body) =>
        withRetries(
          () =>
            database.transaction(async (transaction) => {
              const steps = body(transaction);
              let next = steps.next();
              while (!next.done) next = steps.next(await next.value);
              return next.value;
            }),
          counter,
        ),
      locking: (select) => select.for("update") as typeof select,
      amountOf: BigInt,
    };
  };

interface SqliteStatement {
  prepare(): { execute(): { sync(): unknown } };
}

function executed(statement: unknown): unknown {
  return (statement as SqliteStatement).prepare().execute().sync();
}

export const sqliteOrm =
  (connection: Database.Database): Orm =>
  <Schema extends Tables>(tablesOf: (columns: Columns) => Schema) => {
    const tables = tablesOf(sqliteColumns);
    const database = drizzleOnSqlite(connection, { schema: tables });
    return {
      tables,
      database: database as unknown as NodePgDatabase<Schema>,
      run: <T>(statement: PromiseLike<T>) => executed(statement) as T,
      write: <T>(body: (transaction: Transaction<Schema>) => Steps<T>) =>
        database.transaction(
          (transaction) => {
            const steps = body(transaction as unknown as Transaction<Schema>);
            let next = steps.next();
            while (!next.done) next = steps.next(executed(next.value));
            return next.value;
          },
          { behavior: "immediate" },
        ),
      locking: (select) => select,
      amountOf: (value) => value as unknown as bigint,
    };
  };

/** How many rows a statement has changed, which the drivers name differently. */
export const changedRows = (result: object): number => {
  const { changes, rowCount } = result as { changes?: number; rowCount?: number | null };
  return changes ?? rowCount ?? 0;
};
