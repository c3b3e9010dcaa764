// The connection of an application or a route, and calls on it. Functions and no classes, so that there is nothing to compile.

import {
  afterNextRender,
  computed,
  DestroyRef,
  ENVIRONMENT_INITIALIZER,
  type EnvironmentProviders,
  InjectionToken,
  inject,
  makeEnvironmentProviders,
  NgZone,
  type Signal,
  signal,
} from "@angular/core";
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
import { publishTogether, type Schedule } from "../session/table_watch";

interface Provider {
  readonly state: Signal<ConnectionState>;
  readonly session: ProviderSession;
  readonly together: Schedule;
}

const PROVIDER: InjectionToken<Provider> = /* @__PURE__ */ new InjectionToken("lightcone");

function makeProvider(builder: DbConnectionBuilder<any>): Provider {
  const zone = inject(NgZone);
  const state = signal(DISCONNECTED);
  const session = new ProviderSession(builder, (next) => zone.run(() => state.set(next)));
  // After the first rendering, which is that of the server if there was one; on the server there is none. This runs outside of
  // the zone: a connection has timers, with which an application would never be stable.
  afterNextRender(() => session.start());
  inject(DestroyRef).onDestroy(() => session.end());
  return { state: state.asReadonly(), session, together: publishTogether((work) => zone.run(work)) };
}

/** @internal The provider of the injection context. */
export function injectProvider(): Provider {
  return providerOf(inject(PROVIDER, { optional: true }));
}

/** Connects an application, or a route, once it is rendered. The connection is restored when it is lost. */
export function provideSpacetimeDB<DbConnection extends AnyConnection>(
  connectionBuilder: DbConnectionBuilder<DbConnection>,
): EnvironmentProviders {
  return makeEnvironmentProviders([
    { provide: PROVIDER, useFactory: () => makeProvider(connectionBuilder) },
    { provide: ENVIRONMENT_INITIALIZER, multi: true, useValue: () => void inject(PROVIDER) },
  ]);
}

/** State of the connection. */
export function injectSpacetimeDB(): Signal<ConnectionState> {
  return injectProvider().state;
}

/** Whether there is a connection. */
export function injectSpacetimeDBConnected(): Signal<boolean> {
  const { state } = injectProvider();
  return computed(() => state().isActive);
}

/** A function that calls a reducer; its promise settles with the outcome. `options` are limits of the calls. */
export function injectReducer<ReducerDef extends AnyReducer>(
  reducerDef: ReducerDef,
  options?: CallOptions,
): (...params: ParamsType<ReducerDef>) => Promise<void> {
  return injectProvider().session.calls.to("reducers", reducerDef, () => options);
}

/** A function that calls a procedure; its promise has the result. `options` are limits of the calls. */
export function injectProcedure<ProcedureDef extends AnyProcedure>(
  procedureDef: ProcedureDef,
  options?: CallOptions,
): (...params: ProcedureParamsType<ProcedureDef>) => Promise<ProcedureReturnType<ProcedureDef>> {
  return injectProvider().session.calls.to("procedures", procedureDef, () => options);
}
