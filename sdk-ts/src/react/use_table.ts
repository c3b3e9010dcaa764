// Rows of a query, kept up to date.

import * as React from "react";
import {
  type AnyTableDef,
  getQueryAccessorName,
  getQueryWhereClause,
  type Prettify,
  type Query,
  type RowType,
  toSql,
} from "../client";
import { compileCondition } from "../core/query_expression";
import { type AnyRow, known } from "../core/untyped";
import { useSpacetimeDB } from "./provider";
import { notConnected, notWanted, resultOf } from "./query_results";

/** The options of `useTable`. */
export interface UseTableCallbacks<Row> {
  /** Whether to subscribe. Default: true. */
  enabled?: boolean;
  /** How long the rows are kept up to date after the last component that uses them is gone, in milliseconds. Default: 2000. */
  keepMs?: number;
  onUpdate?: (oldRow: Row, newRow: Row) => void;
  onDelete?: (row: Row) => void;
  onInsert?: (row: Row) => void;
}

/** The rows of a query and whether they have arrived; `error` says why they will not, or do not stay up to date. */
export type UseTableResult<Row> = [rows: readonly Row[], isReady: boolean] & { readonly error?: Error };

const KEEP_MS = 2000;

/** The callbacks of a table. */
interface Table<Row> {
  onInsert(callback: (ctx: unknown, row: Row) => void): () => void;
  onUpdate(callback: (ctx: unknown, oldRow: Row, newRow: Row) => void): () => void;
  onDelete(callback: (ctx: unknown, row: Row) => void): () => void;
}

function testOf(query: unknown): (row: AnyRow) => boolean {
  const condition = getQueryWhereClause(query);
  return condition ? compileCondition(condition) : () => true;
}

/**
 * Subscribes to a query and returns its rows, and whether they have arrived. `error` of the result says why they have not.
 *
 * ```tsx
 * const [users, isReady] = useTable(tables.user.where(row => row.online.eq(true)));
 * ```
 */
export function useTable<TableDef extends AnyTableDef>(
  query: Query<TableDef>,
  callbacks?: UseTableCallbacks<Prettify<RowType<TableDef>>>,
): UseTableResult<Prettify<RowType<TableDef>>> {
  const connection = useSpacetimeDB().getConnection();
  const sql = toSql(query);
  const enabled = callbacks?.enabled ?? true;

  // Another query with the same text is the same query.
  // biome-ignore lint/correctness/useExhaustiveDependencies: the text stands for the query
  const result = React.useMemo(() => {
    if (!enabled) return notWanted;
    return connection ? resultOf(connection, sql, query) : notConnected;
  }, [connection, sql, enabled]);
  const latest = React.useRef(callbacks);
  React.useEffect(() => {
    latest.current = callbacks;
  });
  const subscribe = React.useCallback(
    (listener: () => void) => result.subscribe(listener, latest.current?.keepMs ?? KEEP_MS),
    [result],
  );
  const snapshot = React.useSyncExternalStore(
    subscribe,
    result.snapshot,
    enabled ? notConnected.snapshot : notWanted.snapshot,
  );

  const isListening =
    enabled &&
    (callbacks?.onInsert !== undefined ||
      callbacks?.onDelete !== undefined ||
      callbacks?.onUpdate !== undefined);
  // biome-ignore lint/correctness/useExhaustiveDependencies: the text stands for the query
  React.useEffect(() => {
    type Row = Prettify<RowType<TableDef>>;
    const table = known<Table<Row> | undefined>(connection?.db[getQueryAccessorName(query)]);
    if (!table || !isListening) return;
    const matches = testOf(query);
    const onInsert = (_: unknown, row: Row): void => {
      if (matches(row)) latest.current?.onInsert?.(row);
    };
    const onDelete = (_: unknown, row: Row): void => {
      if (matches(row)) latest.current?.onDelete?.(row);
    };
    const onUpdate = (_: unknown, oldRow: Row, newRow: Row): void => {
      const [was, is] = [matches(oldRow), matches(newRow)];
      if (was && is) latest.current?.onUpdate?.(oldRow, newRow);
      else if (is) latest.current?.onInsert?.(newRow);
      else if (was) latest.current?.onDelete?.(oldRow);
    };
    const stops = [table.onInsert(onInsert), table.onDelete(onDelete), table.onUpdate(onUpdate)];
    return () => {
      for (const stop of stops) stop();
    };
  }, [connection, isListening, sql]);

  return snapshot as UseTableResult<Prettify<RowType<TableDef>>>;
}
