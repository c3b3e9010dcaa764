// Rows of a query, kept up to date.

import { onDestroy } from "svelte";
import { derived, type Readable, readable, writable } from "svelte/store";
import type { AnyTableDef, Prettify, Query, RowType } from "../client";
import { notConnected } from "../session/query_results";
import type { TableOptions } from "../session/row_events";
import { TableWatch } from "../session/table_watch";
import { contextProvider } from "./provider";

/** The options of `useTable`. */
export interface UseTableCallbacks<Row> extends TableOptions<Row> {
  /** Whether to subscribe. Default: true. */
  enabled?: boolean | Readable<boolean>;
}

/** The rows of a query and whether they have arrived: stores. */
export type UseTableResult<Row> = [rows: Readable<readonly Row[]>, isReady: Readable<boolean>] & {
  /** Why the rows will not arrive, or do not stay up to date. */
  readonly error: Readable<Error | undefined>;
  /** For `{#await whenReady()}`. */
  whenReady(): Promise<void>;
};

function asStore<T extends object | boolean>(value: T | Readable<T>): Readable<T> {
  return typeof value === "object" && "subscribe" in value ? value : readable(value);
}

/**
 * Subscribes to a query, which may come from a store (`toStore(() => …)` for runes), and returns stores of its rows and of
 * whether they have arrived.
 *
 * ```ts
 * const [users, isReady] = useTable(tables.user.where((row) => row.online.eq(true)));
 * ```
 */
export function useTable<TableDef extends AnyTableDef>(
  query: Query<TableDef> | Readable<Query<TableDef>>,
  callbacks?: UseTableCallbacks<Prettify<RowType<TableDef>>>,
): UseTableResult<Prettify<RowType<TableDef>>> {
  type Row = Prettify<RowType<TableDef>>;
  const { state } = contextProvider();
  const result = writable(notConnected.snapshot());
  const table = new TableWatch(callbacks, (next) => result.set(next));
  const wanted = derived(
    [state, asStore(query), asStore(callbacks?.enabled ?? true)],
    ([connected, current, enabled]) => [connected.getConnection(), enabled ? current : undefined] as const,
  );
  const stop = wanted.subscribe(([connection, current]) => table.follow(connection, current));
  onDestroy(() => {
    stop();
    table.end();
  });
  const rows = derived(result, (latest) => latest[0] as readonly Row[]);
  const isReady = derived(result, (latest) => latest[1]);
  const error = derived(result, (latest) => latest.error);
  return Object.assign([rows, isReady] satisfies [unknown, unknown], {
    error,
    whenReady: () => table.whenReady(),
  });
}
