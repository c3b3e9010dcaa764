// Rows of a query, kept up to date.

import { computed, DestroyRef, effect, inject, type Signal, signal, untracked } from "@angular/core";
import type { AnyTableDef, Prettify, Query, RowType } from "../client";
import { notConnected } from "../session/query_results";
import type { TableOptions } from "../session/row_events";
import { TableWatch } from "../session/table_watch";
import { injectProvider } from "./provider";

/** The rows of a query. */
export interface TableRows<TableDef extends AnyTableDef> {
  /** The rows; another array when they change. */
  rows: readonly Prettify<RowType<TableDef>>[];
  /** Whether the rows have not arrived yet. */
  isLoading: boolean;
  /** Why the rows will not arrive, or do not stay up to date. */
  error?: Error;
}

/** The options of `injectTable`. */
export interface InjectTableCallbacks<Row> extends TableOptions<Row> {
  /** Whether to subscribe: a signal, or a function that reads signals. Default: true. */
  enabled?: () => boolean;
}

/**
 * Subscribes to a query, which may come from a signal or from a function that reads signals, and returns its rows.
 *
 * ```ts
 * readonly users = injectTable(() => tables.user.where((row) => row.age.gte(this.ageMin())));
 * ```
 */
export function injectTable<TableDef extends AnyTableDef>(
  query: Query<TableDef> | (() => Query<TableDef>),
  callbacks?: InjectTableCallbacks<Prettify<RowType<TableDef>>>,
): Signal<TableRows<TableDef>> {
  const { state, together } = injectProvider();
  const result = signal(notConnected.snapshot());
  const table = new TableWatch(callbacks, (next) => result.set(next), together);
  effect(() => {
    const connection = state().getConnection();
    const current = typeof query === "function" ? query() : query;
    const wanted = callbacks?.enabled?.() === false ? undefined : current;
    untracked(() => table.follow(connection, wanted));
  });
  inject(DestroyRef).onDestroy(() => table.end());
  return computed(() => {
    const { 0: rows, 1: isReady, error } = result();
    return { rows: rows as TableRows<TableDef>["rows"], isLoading: !isReady, error };
  });
}
