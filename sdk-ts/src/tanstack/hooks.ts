// Hooks of TanStack Query with the queries of the bindings.

import {
  type UseQueryOptions,
  type UseQueryResult,
  type UseSuspenseQueryOptions,
  type UseSuspenseQueryResult,
  useQuery,
  useSuspenseQuery,
} from "@tanstack/react-query";
import type { AnyTableDef, Query, RowType } from "../client";
import { type SpacetimeDBQueryOptions, spacetimeDBQuery } from "./query_options";

type Key = SpacetimeDBQueryOptions["queryKey"];
type Ours = "queryKey" | "queryFn" | "meta";

/** The rows of a query, whether they are still to come, and the result as TanStack Query has it, with its error. */
export type UseSpacetimeDBQueryResult<T> = [
  rows: T[],
  isLoading: boolean,
  result: UseQueryResult<T[], Error>,
];

/** The rows of a query, which are there, and the result as TanStack Query has it. */
export type UseSpacetimeDBSuspenseQueryResult<T> = [
  rows: T[],
  isLoading: false,
  result: UseSuspenseQueryResult<T[], Error>,
];

/** Subscribes to a query, or to none, and returns its rows. `options` are those of `useQuery`. */
export function useSpacetimeDBQuery<TableDef extends AnyTableDef>(
  queryOrSkip: Query<TableDef> | "skip",
  options?: Omit<UseQueryOptions<RowType<TableDef>[], Error, RowType<TableDef>[], Key>, Ours>,
): UseSpacetimeDBQueryResult<RowType<TableDef>> {
  const ours = spacetimeDBQuery(queryOrSkip);
  const result = useQuery({ ...ours, ...options, ...(queryOrSkip === "skip" ? { enabled: false } : {}) });
  return [result.data ?? [], result.isLoading, result];
}

/** Subscribes to a query and returns its rows; the component is suspended until they are there. */
export function useSpacetimeDBSuspenseQuery<TableDef extends AnyTableDef>(
  query: Query<TableDef>,
  options?: Omit<UseSuspenseQueryOptions<RowType<TableDef>[], Error, RowType<TableDef>[], Key>, Ours>,
): UseSpacetimeDBSuspenseQueryResult<RowType<TableDef>> {
  const result = useSuspenseQuery({ ...spacetimeDBQuery(query), ...options });
  return [result.data, false, result];
}
