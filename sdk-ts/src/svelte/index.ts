// Package `lightcone/svelte`.

export type { TableOptions } from "../session/row_events";
export {
  type ConnectionState,
  createSpacetimeDBProvider,
  useProcedure,
  useReducer,
  useSpacetimeDB,
} from "./provider";
export { type UseTableCallbacks, type UseTableResult, useTable } from "./use_table";
