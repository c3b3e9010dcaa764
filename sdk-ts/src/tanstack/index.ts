// Package `lightcone/tanstack`.

export {
  type ConnectionState,
  SpacetimeDBProvider,
  type SpacetimeDBProviderProps,
  useProcedure,
  useReducer,
  useSpacetimeDB,
} from "../react";
export {
  type UseSpacetimeDBQueryResult,
  type UseSpacetimeDBSuspenseQueryResult,
  useSpacetimeDBQuery,
  useSpacetimeDBSuspenseQuery,
} from "./hooks";
export { SpacetimeDBQueryClient } from "./query_client";
export {
  type SpacetimeDBQueryOptions,
  type SpacetimeDBQueryOptionsSkipped,
  spacetimeDBQuery,
} from "./query_options";
