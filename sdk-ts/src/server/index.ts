export * from "../core/column_builder_names";
export { toCamelCase } from "../core/names";
export * from "../core/query";
export { type Bound, Range } from "../core/range";
export { ScheduleAt } from "../core/schedule_at";
export { type OutboxOpts, type RemoteReducer, type TableSchemaAsTableDef, table } from "../core/table";
export type {
  AlgebraicTypeType,
  Infer,
  InferSpacetimeTypeOfRow,
  InferSpacetimeTypeOfTypeBuilder,
  InferTypeOfParams,
  InferTypeOfRow,
  InferTypeOfTypeBuilder,
} from "../core/type_builders";
export * from "../core/type_builders";
export type { Uuid } from "../core/uuid";
export type { AuthCtx, DbView, JwtClaims, Reducer, ReducerCtx } from "./ctx_types";
export {
  type EnvironmentDeclaration,
  type EnvironmentExport,
  type EnvironmentOf,
  type EnvironmentValues,
  environment,
  type OptionalVariable,
} from "./environment";
export type { Environment } from "./environment_access";
export { errors, SenderError, SpacetimeHostError } from "./errors";
export {
  type BodyInit,
  Headers,
  type HeadersInit,
  Request,
  type RequestInit,
  type ResponseInit,
  SyncResponse,
} from "./http";
export { type HandlerContext, type HttpHandlerExport, Router } from "./http_handlers";
export type { MigrationCtx, MigrationFn, OldTables } from "./migration";
export { remoteReducer } from "./outbox";
export type { ProcedureCtx, ProcedureExport, TransactionCtx } from "./procedures";
export type { Random } from "./random";
export type { ReducerExport } from "./reducers";
export type { ModuleExport } from "./registry";
export { CaseConversionPolicy, type InferSchema, type ModuleSettings, schema } from "./schema";
export type { AnonymousViewCtx, ViewCtx, ViewExport } from "./views";
