// Queries as TanStack Query names them.

import { type AnyTableDef, getQueryAccessorName, type Query, toSql } from "../client";

/** What TanStack Query has to know of a query: `useQuery(spacetimeDBQuery(tables.user))`. */
export interface SpacetimeDBQueryOptions {
  /** Its table and its SQL. */
  queryKey: readonly ["spacetimedb", string, string];
  /** Forever, as the rows are kept up to date. */
  staleTime: number;
  /** Rows keep their identity, so there is nothing to compare. */
  structuralSharing: false;
}

/** Of a query that is not wanted now. */
export interface SpacetimeDBQueryOptionsSkipped extends SpacetimeDBQueryOptions {
  enabled: false;
}

/** Queries that are known by their SQL; of one more, the one that was longest not asked for is forgotten. */
const KNOWN_QUERIES_MAX = 10_000;

const knownQueries = /* @__PURE__ */ new Map<string, Query<AnyTableDef>>();

/** The options of no query. */
export function spacetimeDBQuery(query: "skip"): SpacetimeDBQueryOptionsSkipped;
/** The options of a query. */
export function spacetimeDBQuery(query: Query<any>): SpacetimeDBQueryOptions;
/** The options of a query, or of none. */
export function spacetimeDBQuery(
  query: Query<any> | "skip",
): SpacetimeDBQueryOptions | SpacetimeDBQueryOptionsSkipped;
export function spacetimeDBQuery(
  query: Query<any> | "skip",
): SpacetimeDBQueryOptions | SpacetimeDBQueryOptionsSkipped {
  const common = { staleTime: Number.POSITIVE_INFINITY, structuralSharing: false } as const;
  if (query === "skip") return { queryKey: ["spacetimedb", "", "skip"], enabled: false, ...common };
  const sql = toSql(query);
  // A key is all that is left of a query which comes from a server, so its text has to lead to it.
  knownQueries.delete(sql);
  knownQueries.set(sql, query);
  const [oldest] = knownQueries.keys();
  if (knownQueries.size > KNOWN_QUERIES_MAX) knownQueries.delete(oldest!);
  return { queryKey: ["spacetimedb", getQueryAccessorName(query), sql], ...common };
}

/** @internal The query of a key that `spacetimeDBQuery` made here. */
export function queryOf(queryKey: readonly unknown[]): Query<AnyTableDef> | undefined {
  return queryKey[0] === "spacetimedb" ? knownQueries.get(queryKey[2] as string) : undefined;
}
