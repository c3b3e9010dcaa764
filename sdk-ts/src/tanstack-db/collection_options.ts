// Collections of TanStack DB whose rows are those of a subscription.

import type {
  BaseCollectionConfig,
  ChangeMessageOrDeleteKeyMessage,
  CollectionConfig,
  SyncConfig,
} from "@tanstack/db";
import {
  AlgebraicType,
  type AnyTableDef,
  ClientError,
  getQueryAccessorName,
  type Prettify,
  type Query,
  type RowType,
  toSql,
} from "../client";
import { noSuchTable } from "../client/client_error";
import type { AnyConnection } from "../client/db_connection_impl";
import { cacheOf } from "../client/table_cache";
import type { AnyRow } from "../core/untyped";
import { resultOf } from "../session/query_results";

type Key = string | number;
type Change = ChangeMessageOrDeleteKeyMessage<any, Key>;

/** The settings of a collection, those of TanStack DB but for what the subscription does. */
export interface LightconeCollectionOptions<Row extends object>
  extends Omit<BaseCollectionConfig<Row, Key>, "getKey" | "schema" | "syncMode"> {
  /** The key of a row. Default: its primary key, as a number or a text. */
  getKey?: (row: Row) => Key;
}

/**
 * The options of a collection with the rows of a query, kept up to date. Its changes are made by reducers, in `onInsert`, `onUpdate`
 * and `onDelete`; they are shown at once, and taken back if the reducer fails.
 *
 * ```ts
 * const todos = createCollection(
 *   lightconeCollectionOptions(connection, tables.todo, {
 *     onInsert: ({ transaction }) => connection.reducers.addTodo(transaction.mutations[0].modified),
 *   }),
 * );
 * ```
 */
export function lightconeCollectionOptions<TableDef extends AnyTableDef>(
  connection: AnyConnection,
  query: Query<TableDef>,
  options?: LightconeCollectionOptions<Prettify<RowType<TableDef>>>,
): CollectionConfig<Prettify<RowType<TableDef>>, Key> & { schema?: never; singleResult?: never } {
  const sql = toSql(query);
  const getKey = options?.getKey ?? primaryKeyOf(connection, getQueryAccessorName(query));
  return {
    id: sql,
    ...options,
    getKey,
    sync: { rowUpdateMode: "full", sync: (params) => follow(connection, sql, query, getKey, params) },
  };
}

function primaryKeyOf(connection: AnyConnection, name: string): (row: any) => Key {
  const table = cacheOf(connection.db[name])?.tableDef;
  if (!table) throw noSuchTable(name);
  const names = Object.keys(table.columns);
  const at = names.findIndex((column) => table.columns[column]!.columnMetadata.isPrimaryKey);
  if (at < 0) throw new ClientError("LC0847", `table ${name} has no primary key; getKey is missing`);
  const { algebraicType } = table.rowType.elements[at]!;
  return (row) => {
    const key = AlgebraicType.intoMapKey(algebraicType, row[names[at]!]);
    return typeof key === "number" ? key : String(key);
  };
}

function follow(
  connection: AnyConnection,
  sql: string,
  query: unknown,
  getKey: (row: any) => Key,
  { begin, write, commit, markReady, markError }: Parameters<SyncConfig<any, Key>["sync"]>[0],
): () => void {
  const result = resultOf(connection, sql, query);
  let shown: readonly AnyRow[] = [];
  const publish = (): void => {
    const { 0: rows, 1: isReady, error } = result.snapshot();
    if (error) markError(error);
    if (!isReady) return;
    begin();
    writeChanges(shown, rows, getKey, write);
    commit();
    shown = rows;
    markReady();
  };
  // The collection waits for `gcTime` itself.
  const stop = result.subscribe(publish, 0);
  publish();
  return stop;
}

/** Rows keep their order and their identity: one is replaced in its place, and new ones are at the end. */
function writeChanges(
  before: readonly AnyRow[],
  after: readonly AnyRow[],
  getKey: (row: any) => Key,
  write: (change: Change) => void,
): void {
  let at = 0;
  for (let i = 0; i < before.length; i++) {
    const [row, candidate] = [before[i], after[at]];
    if (row === candidate) at += 1;
    else if (candidate && getKey(row) === getKey(candidate)) {
      write({ type: "update", value: candidate });
      at += 1;
    } else write({ type: "delete", key: getKey(row) });
  }
  for (; at < after.length; at++) write({ type: "insert", value: after[at]! });
}
