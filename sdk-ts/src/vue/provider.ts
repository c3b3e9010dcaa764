// The connection of a tree of components, and calls on it.

import {
  type DefineComponent,
  defineComponent,
  type InjectionKey,
  inject,
  type MaybeRefOrGetter,
  onMounted,
  onScopeDispose,
  provide,
  shallowReactive,
  toRaw,
  toValue,
  watch,
} from "vue";
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

const PROVIDER: InjectionKey<Provider> = /* @__PURE__ */ Symbol("lightcone");

/** @internal The provider above the component that is being set up. */
export function injectProvider(): Provider {
  return providerOf(inject(PROVIDER, undefined));
}

/** The properties of a provider. */
export interface SpacetimeDBProviderProps<DbConnection extends AnyConnection> {
  /** Of the generated bindings: `DbConnection.builder().withUri(…).withDatabaseName(…)`. */
  connectionBuilder: DbConnectionBuilder<DbConnection>;
}

/**
 * Connects the components below the one that is being set up, once it is mounted, and returns the state. The connection is
 * restored when it is lost. Another builder, from a ref or a getter, with another server, database or token is another connection.
 */
export function useSpacetimeDBProvider<DbConnection extends AnyConnection>(
  connectionBuilder: MaybeRefOrGetter<DbConnectionBuilder<DbConnection>>,
): ConnectionState {
  // A builder has private parts, which a proxy does not reach.
  const builder = (): DbConnectionBuilder<DbConnection> =>
    toRaw(toValue(connectionBuilder)) as DbConnectionBuilder<DbConnection>;
  const state = shallowReactive<ConnectionState>({ ...DISCONNECTED });
  const session = new ProviderSession(builder(), (next) => Object.assign(state, next));
  watch(builder, (next) => session.use(next));
  // Not on a server.
  onMounted(() => session.start());
  onScopeDispose(() => session.end());
  provide(PROVIDER, { state, session });
  return state;
}

/** Connects the components in its slot: `<SpacetimeDBProvider :connection-builder="builder">`. */
export const SpacetimeDBProvider: DefineComponent<SpacetimeDBProviderProps<any>> =
  /* @__PURE__ */ defineComponent({
    name: "SpacetimeDBProvider",
    props: { connectionBuilder: { type: Object, required: true } },
    setup(props, { slots }) {
      useSpacetimeDBProvider(() => props.connectionBuilder as DbConnectionBuilder<AnyConnection>);
      return () => slots["default"]?.();
    },
  }) as unknown as DefineComponent<SpacetimeDBProviderProps<any>>;

/** State of the connection of the provider above; reactive. */
export function useSpacetimeDB(): ConnectionState {
  return injectProvider().state;
}

/** A function that calls a reducer; its promise settles with the outcome. `options` are limits of the calls. */
export function useReducer<ReducerDef extends AnyReducer>(
  reducerDef: ReducerDef,
  options?: MaybeRefOrGetter<CallOptions | undefined>,
): (...params: ParamsType<ReducerDef>) => Promise<void> {
  return injectProvider().session.calls.to("reducers", reducerDef, () => toValue(options));
}

/** A function that calls a procedure; its promise has the result. `options` are limits of the calls. */
export function useProcedure<ProcedureDef extends AnyProcedure>(
  procedureDef: ProcedureDef,
  options?: MaybeRefOrGetter<CallOptions | undefined>,
): (...params: ProcedureParamsType<ProcedureDef>) => Promise<ProcedureReturnType<ProcedureDef>> {
  return injectProvider().session.calls.to("procedures", procedureDef, () => toValue(options));
}
