// Rows of a query, kept up to date.

import { batch, createComputed, createResource, createSignal, onCleanup, untrack } from "solid-js";
import { createStore, produce } from "solid-js/store";
import type { AnyTableDef, Prettify, Query, RowType } from "../client";
import { notConnected } from "../session/query_results";
import type { TableOptions } from "../session/row_events";
import { publishTogether, type Schedule, TableWatch } from "../session/table_watch";
import { useProvider } from "./provider";

/** The options of `useTable`. */
export interface UseTableCallbacks<Row> extends TableOptions<Row> {
  /** Whether to subscribe. Default: true. */
  enabled?: () => boolean;
  /** Whether `isReady` waits for the rows in the `<Suspense>` above, and fails into the `<ErrorBoundary>` above. Default: false. */
  suspense?: boolean;
}

/** The rows of a query, a store, and whether they have arrived. */
export type UseTableResult<Row> = [rows: readonly Row[], isReady: () => boolean] & {
  /** Why the rows will not arrive, or do not stay up to date. */
  readonly error: () => Error | undefined;
};

const together: Schedule = /* @__PURE__ */ publishTogether(batch);

/**
 * Subscribes to a query and returns its rows, and whether they have arrived.
 *
 * ```tsx
 * const [users, isReady] = useTable(() => tables.user.where((row) => row.age.gte(ageMin())));
 * ```
 */
export function useTable<TableDef extends AnyTableDef>(
  query: () => Query<TableDef>,
  callbacks?: UseTableCallbacks<Prettify<RowType<TableDef>>>,
): UseTableResult<Prettify<RowType<TableDef>>> {
  type Row = Prettify<RowType<TableDef>>;
  const { state } = useProvider();
  const [rows, setRows] = createStore<Row[]>([]);
  const [result, setResult] = createSignal(notConnected.snapshot());
  const table = new TableWatch(
    callbacks,
    (next) =>
      batch(() => {
        setRows(replaceItems(next[0] as readonly Row[]));
        setResult(next);
      }),
    together,
  );
  // Not an effect: those below a `Suspense` run when it has ended.
  createComputed(() => {
    const connection = state.getConnection();
    const wanted = callbacks?.enabled?.() === false ? undefined : query();
    untrack(() => table.follow(connection, wanted));
  });
  onCleanup(() => table.end());
  const [loaded] = callbacks?.suspense ? createResource(() => table.whenReady().then(() => true)) : [];
  const isReady = (): boolean => {
    loaded?.();
    return result()[1];
  };
  return Object.assign([rows, isReady] satisfies [Row[], () => boolean], { error: () => result().error });
}

/** Tells only of places that have another row. The rows are those of the cache, so nothing is written into them. */
function replaceItems<Row>(next: readonly Row[]): (rows: Row[]) => Row[] {
  return produce((rows) => {
    for (let i = 0; i < next.length; i++) rows[i] = next[i]!;
    rows.length = next.length;
  });
}
