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

export interface UseTableCallbacks<Row> {
  /** Whether to subscribe. Default: true. */
  enabled?: boolean;
  onUpdate?: (oldRow: Row, newRow: Row) => void;
  onDelete?: (row: Row) => void;
  onInsert?: (row: Row) => void;
}

type OnRow<Row> = (ctx: unknown, row: Row) => void;
type OnTwoRows<Row> = (ctx: unknown, oldRow: Row, newRow: Row) => void;

/** What callbacks need of a table. */
interface Table<Row> {
  onInsert(callback: OnRow<Row>): void;
  removeOnInsert(callback: OnRow<Row>): void;
  onUpdate(callback: OnTwoRows<Row>): void;
  removeOnUpdate(callback: OnTwoRows<Row>): void;
  onDelete(callback: OnRow<Row>): void;
  removeOnDelete(callback: OnRow<Row>): void;
}

function testOf(query: unknown): (row: AnyRow) => boolean {
  const condition = getQueryWhereClause(query);
  return condition ? compileCondition(condition) : () => true;
}

/**
 * Subscribes to a query and returns its rows, and whether they have arrived.
 *
 * ```tsx
 * const [users, isReady] = useTable(tables.user.where(row => row.online.eq(true)));
 * ```
 */
export function useTable<TableDef extends AnyTableDef>(
  query: Query<TableDef>,
  callbacks?: UseTableCallbacks<Prettify<RowType<TableDef>>>,
): [readonly Prettify<RowType<TableDef>>[], boolean] {
  const connection = useSpacetimeDB().getConnection();
  const sql = toSql(query);
  const enabled = callbacks?.enabled ?? true;

  // Another query with the same text is the same query.
  // biome-ignore lint/correctness/useExhaustiveDependencies: the text stands for the query
  const result = React.useMemo(() => {
    if (!enabled) return notWanted;
    return connection ? resultOf(connection, sql, query) : notConnected;
  }, [connection, sql, enabled]);
  const snapshot = React.useSyncExternalStore(
    result.subscribe,
    result.snapshot,
    enabled ? notConnected.snapshot : notWanted.snapshot,
  );

  const latest = React.useRef(callbacks);
  React.useEffect(() => {
    latest.current = callbacks;
  });
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
    table.onInsert(onInsert);
    table.onDelete(onDelete);
    table.onUpdate(onUpdate);
    return () => {
      table.removeOnInsert(onInsert);
      table.removeOnDelete(onDelete);
      table.removeOnUpdate(onUpdate);
    };
  }, [connection, isListening, sql]);

  return snapshot as [readonly Prettify<RowType<TableDef>>[], boolean];
}
