// Package `lightcone`: the client, and the types that modules and clients share.

export * from "../core";
export type { CallOptions } from "./calls";
export { ClientCache, type TableCache } from "./client_cache";
export { ClientError, type ClientErrorCode } from "./client_error";
export type { ClientDbView, ClientTable, TableDefForTableName } from "./client_table";
export { deepEqual, hasOwn } from "./compat";
export type { ConnectionEvent, DbConnectionConfig } from "./connection_config";
export type { TokenRequest, TokenSource, UnauthorizedHandler } from "./credentials";
export { DbConnectionBuilder } from "./db_connection_builder";
export {
  DbConnectionImpl,
  type RemoteModuleOf,
} from "./db_connection_impl";
export type {
  DbContext,
  ErrorContextInterface,
  Event,
  EventContextInterface,
  ProcedureEventContextInterface,
  ReducerEvent,
  ReducerEventContextInterface,
  SubscriptionEventContextInterface,
} from "./event_context";
export type { LimitedCalls } from "./limited_calls";
export { getGlobalLogLevel, type LogLevel, setGlobalLogLevel, stdbLogger, stringify } from "./logger";
export type {
  Message,
  ProcedureResultMessage,
  ReducerResultMessage,
  SubscribeAppliedMessage,
  SubscriptionError,
  TransactionUpdateMessage,
  UnsubscribeAppliedMessage,
} from "./message_types";
export {
  type CoerceParams,
  type CoerceTypeBuilder,
  coerceParams,
  type ProceduresView,
  procedureSchema,
  procedures,
} from "./procedures";
export type { ReconnectingInfo, ReconnectOptions } from "./reconnect";
export {
  type ReducerEventInfo,
  type ReducersView,
  reducerSchema,
  reducers,
} from "./reducers";
export type { AnyModule, AnyProcedure, AnyReducer, ParamsObj, RemoteModule } from "./remote_module";
export { type ConvertToAccessorMap, convertToAccessorMap, schema } from "./schema";
export type { KeepAliveOptions } from "./silence_watch";
export type { WebSocketAdapter, WebSocketArgs, WebSocketFactory } from "./socket";
export { type SubscribeEvent, SubscriptionBuilderImpl, SubscriptionHandleImpl } from "./subscriptions";
export type {
  IsEmptyObject,
  MaybeParams,
  ParamsType,
  ProcedureParamsType,
  ProcedureReturnType,
} from "./type_utils";
export type { ReducerOutcome } from "./wire";
