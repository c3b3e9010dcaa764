// Rows of a query, kept up to date.

import * as React from "react";
import { type AnyTableDef, type Prettify, type Query, type RowType, toSql } from "../client";
import { KEEP_ALIVE_MS, notConnected, notWanted, resultOf } from "../session/query_results";
import { hasRowCallbacks, listenToRows, type TableOptions } from "../session/row_events";
import { useSpacetimeDB } from "./provider";
import { useLatest } from "./use_latest";

/** The options of `useTable`. */
export interface UseTableCallbacks<Row> extends TableOptions<Row> {
  /** Whether to subscribe. Default: true. */
  enabled?: boolean;
  /** Earlier name of `keepAliveMs`. */
  keepMs?: number;
}

/** The rows of a query and whether they have arrived; `error` says why they will not, or do not stay up to date. */
export type UseTableResult<Row> = [rows: readonly Row[], isReady: boolean] & { readonly error?: Error };

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
  const latest = useLatest(callbacks);
  const subscribe = React.useCallback(
    (listener: () => void) => {
      const options = latest();
      return result.subscribe(listener, options?.keepAliveMs ?? options?.keepMs ?? KEEP_ALIVE_MS);
    },
    [result, latest],
  );
  const snapshot = React.useSyncExternalStore(
    subscribe,
    result.snapshot,
    enabled ? notConnected.snapshot : notWanted.snapshot,
  );

  const isListening = enabled && hasRowCallbacks(callbacks);
  // biome-ignore lint/correctness/useExhaustiveDependencies: the text stands for the query
  React.useEffect(
    () => (isListening ? listenToRows(connection, query, latest) : undefined),
    [connection, isListening, sql],
  );

  return snapshot as UseTableResult<Prettify<RowType<TableDef>>>;
}
