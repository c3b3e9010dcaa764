// Rows of a query, kept up to date.

import * as React from "react";
import {
  type BooleanExpr,
  evaluateBooleanExpr,
  getQueryAccessorName,
  getQueryWhereClause,
  type Prettify,
  type Query,
  type RowType,
  toSql,
  type UntypedTableDef,
} from "../client";
import { useSpacetimeDB } from "./provider";

export interface UseTableCallbacks<RowType> {
  onInsert?: (row: RowType) => void;
  onDelete?: (row: RowType) => void;
  onUpdate?: (oldRow: RowType, newRow: RowType) => void;
  /** Whether to subscribe. Default: true. */
  enabled?: boolean;
}

/** What the hook uses of a table of the cache. */
interface Table {
  iter(): Iterable<any>;
  onInsert(callback: (ctx: unknown, row: any) => void): void;
  onDelete(callback: (ctx: unknown, row: any) => void): void;
  onUpdate(callback: (ctx: unknown, oldRow: any, newRow: any) => void): void;
  removeOnInsert(callback: (ctx: unknown, row: any) => void): void;
  removeOnDelete(callback: (ctx: unknown, row: any) => void): void;
  removeOnUpdate(callback: (ctx: unknown, oldRow: any, newRow: any) => void): void;
  onCommit(listener: () => void): () => void;
}

const NO_ROWS: readonly never[] = [];

/** The rows of a table that fulfil a condition; the same array until one of them changes. */
class RowsView {
  readonly #table: Table | undefined;
  readonly #matches: (row: any) => boolean;
  #rows: readonly any[] | undefined;

  constructor(table: Table | undefined, matches: (row: any) => boolean) {
    this.#table = table;
    this.#matches = matches;
  }

  subscribe = (listener: () => void): (() => void) => {
    // What changed between rendering and now is not known.
    this.#rows = undefined;
    return (
      this.#table?.onCommit(() => {
        this.#rows = undefined;
        listener();
      }) ?? (() => {})
    );
  };

  snapshot = (): readonly any[] => {
    if (!this.#table) return NO_ROWS;
    if (!this.#rows) {
      const rows: any[] = [];
      for (const row of this.#table.iter()) if (this.#matches(row)) rows.push(row);
      this.#rows = rows;
    }
    return this.#rows;
  };
}

function matcher(condition: BooleanExpr<any> | undefined): (row: any) => boolean {
  return condition ? (row) => evaluateBooleanExpr(condition, row) : () => true;
}

/**
 * Subscribes to a query and returns its rows, and whether they have arrived.
 *
 * ```tsx
 * const [users, isReady] = useTable(tables.user.where(row => row.online.eq(true)));
 * ```
 */
export function useTable<TableDef extends UntypedTableDef>(
  query: Query<TableDef>,
  callbacks?: UseTableCallbacks<Prettify<RowType<TableDef>>>,
): [readonly Prettify<RowType<TableDef>>[], boolean] {
  const connection = useSpacetimeDB().getConnection();
  const sql = toSql(query as Query<any>);
  const accessorName = getQueryAccessorName(query);
  const enabled = callbacks?.enabled ?? true;
  const table = connection?.db[accessorName] as unknown as Table | undefined;

  // Another query with the same text is the same query.
  // biome-ignore lint/correctness/useExhaustiveDependencies: the text stands for the query
  const matches = React.useMemo(() => matcher(getQueryWhereClause(query)), [sql]);
  const view = React.useMemo(
    () => new RowsView(enabled ? table : undefined, matches),
    [table, matches, enabled],
  );
  const rows = React.useSyncExternalStore(view.subscribe, view.snapshot, () => NO_ROWS);

  const [readySubscription, setReadySubscription] = React.useState<object | undefined>();
  const subscription = React.useMemo(() => ({ connection, sql, enabled }), [connection, sql, enabled]);
  React.useEffect(() => {
    if (!subscription.connection || !subscription.enabled) return;
    const handle = subscription.connection
      .subscriptionBuilder()
      .onApplied(() => setReadySubscription(subscription))
      .onError(({ event }) => console.error(`useTable: ${subscription.sql}:`, event))
      .subscribe(subscription.sql);
    return () => {
      if (!handle.isEnded()) handle.unsubscribe();
    };
  }, [subscription]);

  const latest = React.useRef(callbacks);
  React.useEffect(() => {
    latest.current = callbacks;
  });
  React.useEffect(() => {
    if (!table || !enabled) return;
    const onInsert = (_: unknown, row: any): void => {
      if (matches(row)) latest.current?.onInsert?.(row);
    };
    const onDelete = (_: unknown, row: any): void => {
      if (matches(row)) latest.current?.onDelete?.(row);
    };
    const onUpdate = (_: unknown, oldRow: any, newRow: any): void => {
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
  }, [table, enabled, matches]);

  return [rows, readySubscription === subscription];
}
