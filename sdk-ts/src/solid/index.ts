// Package `lightcone/solid`.

export type { ConnectionState } from "../session/connection_pool";
export type { TableOptions } from "../session/row_events";
export {
  SpacetimeDBProvider,
  type SpacetimeDBProviderProps,
  useProcedure,
  useReducer,
  useSpacetimeDB,
} from "./provider";
export { type UseTableCallbacks, type UseTableResult, useTable } from "./use_table";
