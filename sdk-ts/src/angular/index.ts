// Package `lightcone/angular`.

export type { ConnectionState } from "../session/connection_pool";
export { type InjectTableCallbacks, injectTable, type TableRows } from "./inject_table";
export {
  injectProcedure,
  injectReducer,
  injectSpacetimeDB,
  injectSpacetimeDBConnected,
  provideSpacetimeDB,
} from "./provider";
