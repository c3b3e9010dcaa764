// Rows of a query, kept up to date.

import {
  type DeepReadonly,
  type MaybeRefOrGetter,
  onScopeDispose,
  type Ref,
  shallowRef,
  toRaw,
  toValue,
  watchEffect,
} from "vue";
import type { AnyTableDef, Prettify, Query, RowType } from "../client";
import type { ResultSnapshot } from "../session/query_results";
import type { TableOptions } from "../session/row_events";
import { TableWatch } from "../session/table_watch";
import { injectProvider } from "./provider";

/** The options of `useTable`. */
export interface UseTableCallbacks<Row> extends TableOptions<Row> {
  /** Whether to subscribe. Default: true. */
  enabled?: MaybeRefOrGetter<boolean>;
}

/** The rows of a query and whether they have arrived. */
export type UseTableResult<Row> = [
  rows: DeepReadonly<Ref<readonly Row[]>>,
  isReady: DeepReadonly<Ref<boolean>>,
] & {
  /** Why the rows will not arrive, or do not stay up to date. */
  readonly error: Readonly<Ref<Error | undefined>>;
  /** For `await` in the setup of a component below `<Suspense>`, which is to be rendered in the browser only. */
  whenReady(): Promise<void>;
};

/**
 * Subscribes to a query, which may come from a ref or a getter, and returns its rows and whether they have arrived.
 *
 * ```ts
 * const [users, isReady] = useTable(() => tables.user.where((row) => row.age.gte(ageMin.value)));
 * ```
 */
export function useTable<TableDef extends AnyTableDef>(
  query: MaybeRefOrGetter<Query<TableDef>>,
  callbacks?: UseTableCallbacks<Prettify<RowType<TableDef>>>,
): UseTableResult<Prettify<RowType<TableDef>>> {
  const { state } = injectProvider();
  const [rows, isReady] = [shallowRef<ResultSnapshot[0]>([]), shallowRef(false)];
  const error = shallowRef<Error>();
  const table = new TableWatch(callbacks, (result) => {
    [rows.value, isReady.value] = result;
    error.value = result.error;
  });
  watchEffect(() => {
    // A query has private parts, which a proxy does not reach.
    const current = toRaw(toValue(query));
    table.follow(state.getConnection(), toValue(callbacks?.enabled) === false ? undefined : current);
  });
  onScopeDispose(() => table.end());
  // The rows are those of the cache, without proxies.
  const result: unknown = Object.assign([rows, isReady], { error, whenReady: () => table.whenReady() });
  return result as UseTableResult<Prettify<RowType<TableDef>>>;
}
