// The connection of a tree of components, and calls on it.

import {
  type Context,
  createComponent,
  createContext,
  createEffect,
  type JSX,
  on,
  onCleanup,
  onMount,
  useContext,
} from "solid-js";
import { createStore } from "solid-js/store";
import type {
  AnyProcedure,
  AnyReducer,
  CallOptions,
  DbConnectionBuilder,
  ParamsType,
  ProcedureParamsType,
  ProcedureReturnType,
} from "../client";
import type { AnyConnection } from "../client/db_connection_impl";
import { type ConnectionState, DISCONNECTED } from "../session/connection_pool";
import { ProviderSession, providerOf } from "../session/provider_session";

interface Provider {
  readonly state: ConnectionState;
  readonly session: ProviderSession;
}

const ProviderContext: Context<Provider | undefined> = /* @__PURE__ */ createContext<Provider>();

/** @internal The provider above the component that is being made. */
export function useProvider(): Provider {
  return providerOf(useContext(ProviderContext));
}

/** The properties of a provider. */
export interface SpacetimeDBProviderProps<DbConnection extends AnyConnection> {
  /** Of the generated bindings: `DbConnection.builder().withUri(…).withDatabaseName(…)`. */
  connectionBuilder: DbConnectionBuilder<DbConnection>;
  /** The components that use the connection. */
  children?: any;
}

/**
 * Connects the components below it, once it is mounted. The connection is restored when it is lost. A builder with another
 * server, database or token is another connection.
 */
export function SpacetimeDBProvider<DbConnection extends AnyConnection>(
  props: SpacetimeDBProviderProps<DbConnection>,
): JSX.Element {
  const [state, setState] = createStore<ConnectionState>({ ...DISCONNECTED });
  const session = new ProviderSession(props.connectionBuilder, (next) => setState(next));
  // Not on a server.
  onMount(() => session.start());
  createEffect(
    on(
      () => props.connectionBuilder,
      (builder) => session.use(builder),
      { defer: true },
    ),
  );
  onCleanup(() => session.end());
  return createComponent(ProviderContext.Provider, {
    value: { state, session },
    get children() {
      return props.children;
    },
  });
}

/** State of the connection of the provider above: a store. */
export function useSpacetimeDB(): ConnectionState {
  return useProvider().state;
}

/** A function that calls a reducer; its promise settles with the outcome. `options` are limits of the calls. */
export function useReducer<ReducerDef extends AnyReducer>(
  reducerDef: ReducerDef,
  options?: () => CallOptions | undefined,
): (...params: ParamsType<ReducerDef>) => Promise<void> {
  return useProvider().session.calls.to("reducers", reducerDef, () => options?.());
}

/** A function that calls a procedure; its promise has the result. `options` are limits of the calls. */
export function useProcedure<ProcedureDef extends AnyProcedure>(
  procedureDef: ProcedureDef,
  options?: () => CallOptions | undefined,
): (...params: ProcedureParamsType<ProcedureDef>) => Promise<ProcedureReturnType<ProcedureDef>> {
  return useProvider().session.calls.to("procedures", procedureDef, () => options?.());
}
