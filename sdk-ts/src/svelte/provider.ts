// The connection of a tree of components, and calls on it.

import { getContext, onMount, setContext } from "svelte";
import { type Writable, writable } from "svelte/store";
import type {
  AnyProcedure,
  AnyReducer,
  CallOptions,
  DbConnectionBuilder,
  ParamsType,
  ProcedureParamsType,
  ProcedureReturnType,
} from "../client";
import type { AnyConnectionBuilder } from "../client/db_connection_builder";
import type { AnyConnection } from "../client/db_connection_impl";
import { DISCONNECTED, type ConnectionState as SharedState } from "../session/connection_pool";
import { ProviderSession, providerOf } from "../session/provider_session";

/** State of the connection of a provider. */
export interface ConnectionState extends SharedState {
  /** Connects anew, with a builder of the same database: after a login, say, with another token. */
  reconnect(builder: AnyConnectionBuilder): void;
}

interface Provider {
  readonly state: Writable<ConnectionState>;
  readonly session: ProviderSession;
}

const PROVIDER: unique symbol = /* @__PURE__ */ Symbol("lightcone");

/** @internal The provider above the component that is being made. */
export function contextProvider(): Provider {
  return providerOf(getContext<Provider | undefined>(PROVIDER));
}

/**
 * Connects the components below the one that is being made, once it is mounted, and returns the state. The connection is
 * restored when it is lost.
 */
export function createSpacetimeDBProvider<DbConnection extends AnyConnection>(
  connectionBuilder: DbConnectionBuilder<DbConnection>,
): Writable<ConnectionState> {
  const reconnect = (builder: AnyConnectionBuilder): void => session.reconnect(builder);
  const state = writable<ConnectionState>({ ...DISCONNECTED, reconnect });
  const session = new ProviderSession(connectionBuilder, (next) => state.set({ ...next, reconnect }));
  // Not on a server.
  onMount(() => {
    session.start();
    return () => session.end();
  });
  setContext<Provider>(PROVIDER, { state, session });
  return state;
}

/** State of the connection of the provider above. */
export function useSpacetimeDB(): Writable<ConnectionState> {
  return contextProvider().state;
}

/** A function that calls a reducer; its promise settles with the outcome. `options` are limits of the calls. */
export function useReducer<ReducerDef extends AnyReducer>(
  reducerDef: ReducerDef,
  options?: CallOptions,
): (...params: ParamsType<ReducerDef>) => Promise<void> {
  return contextProvider().session.calls.to("reducers", reducerDef, () => options);
}

/** A function that calls a procedure; its promise has the result. `options` are limits of the calls. */
export function useProcedure<ProcedureDef extends AnyProcedure>(
  procedureDef: ProcedureDef,
  options?: CallOptions,
): (...params: ProcedureParamsType<ProcedureDef>) => Promise<ProcedureReturnType<ProcedureDef>> {
  return contextProvider().session.calls.to("procedures", procedureDef, () => options);
}
