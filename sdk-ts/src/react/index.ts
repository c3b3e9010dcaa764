// Package `lightcone/react`.

export type { ConnectionState } from "../session/connection_pool";
export type { TableOptions } from "../session/row_events";
export {
  SpacetimeDBProvider,
  type SpacetimeDBProviderProps,
  useSpacetimeDB,
} from "./provider";
export { useProcedure, useReducer } from "./use_call";
export { type UseTableCallbacks, type UseTableResult, useTable } from "./use_table";
