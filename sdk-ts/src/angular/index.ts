// Package `lightcone/angular`.

export type { ConnectionState } from "../session/connection_pool";
export type { TableOptions } from "../session/row_events";
export { type InjectTableCallbacks, injectTable, type TableRows } from "./inject_table";
export {
  injectProcedure,
  injectReducer,
  injectSpacetimeDB,
  injectSpacetimeDBConnected,
  provideSpacetimeDB,
} from "./provider";
