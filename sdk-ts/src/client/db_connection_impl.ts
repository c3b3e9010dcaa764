// A connection to a database, as the application sees it. Its parts: `lifecycle.ts` connects and reconnects, `dispatch.ts`
// takes what the server sends, `requests.ts` makes calls.

import {
  type AlgebraicType,
  type AnySchema,
  ConnectionId,
  type Identity,
  makeFromBuilder,
  type NamespacedQueryBuilder,
  type ProductType,
  type RowTypedQuery,
} from "../core";
import type { AnyRow } from "../core/untyped";
import { preferCompiledScript } from "../core/utf8";
import { CacheUpdater } from "./cache_updater";
import type { CallOptions } from "./calls";
import { ClientCache } from "./client_cache";
import { ClientError } from "./client_error";
import type { ClientDbView } from "./client_table";
import type { ConnectionEvent, DbConnectionConfig } from "./connection_config";
import { Dispatch } from "./dispatch";
import { checkDuration } from "./durations";
import { Contexts } from "./event_context";
import { callSafely, type EventEmitter } from "./event_emitter";
import { Lifecycle } from "./lifecycle";
import { type LimitedCalls, makeLimitedCalls } from "./limited_calls";
import { Link } from "./link";
import { makeProceduresView, type ProceduresView } from "./procedures";
import { makeReducersView, type ReducersView } from "./reducers";
import { type AnyModule, INTERNAL_REMOTE_MODULE } from "./remote_module";
import { type AnyQuery, Requests } from "./requests";
import { JobQueue } from "./scheduling";
import { PROBE_QUERY_SET_ID, SubscriptionRegistry } from "./subscription_registry";
import { type SubscribeEvent, SubscriptionBuilderImpl, type SubscriptionHandleImpl } from "./subscriptions";
import { cacheOf } from "./table_cache";

preferCompiledScript();

/** The module of a connection. */
export type RemoteModuleOf<C> = C extends DbConnectionImpl<infer RM> ? RM : never;

/** A connection of any module. */
export type AnyConnection = DbConnectionImpl<any>;

type ConnectionCallback<RemoteModule extends AnyModule> = (
  ctx: DbConnectionImpl<RemoteModule>,
  ...args: any[]
) => void;

/** A connection to a database. The generated bindings have a class for that of their module. */
export class DbConnectionImpl<RemoteModule extends AnyModule> {
  /** Whether the server has answered and the connection has not been lost since. */
  isActive = false;
  /** Whether `disconnect` was called; such a connection does not come back. */
  isDisconnectRequested = false;
  identity?: Identity;
  /** Why there is no connection, while there is none. */
  connectionError?: Error;
  /** The tables: rows, indexes and callbacks. */
  db: ClientDbView<RemoteModule>;
  reducers: ReducersView<RemoteModule>;
  procedures: ProceduresView<RemoteModule>;
  connectionId: ConnectionId = ConnectionId.random();

  readonly #module: RemoteModule;
  readonly #emitter: EventEmitter<ConnectionEvent>;
  readonly #contexts = new Contexts(this);
  readonly #updater = new CacheUpdater();
  readonly #link: Link;
  readonly #requests: Requests;
  readonly #subscriptions: SubscriptionRegistry;
  readonly #lifecycle: Lifecycle;

  constructor(config: DbConnectionConfig<RemoteModule>) {
    this.#module = config.remoteModule;
    this.#emitter = config.emitter;
    this.identity = config.identity;
    this.db = this.#makeTables();
    this.reducers = makeReducersView(this, config.remoteModule) as ReducersView<RemoteModule>;
    this.procedures = makeProceduresView(this, config.remoteModule) as ProceduresView<RemoteModule>;
    const jobs = new JobQueue();
    this.#link = new Link({
      open: (signal) => this.#lifecycle.openSocket(signal),
      onOpen: () => this.#restore(),
      onSent: ({ requestId, sets }) => {
        if (sets) this.#subscriptions.markSent(sets);
        else this.#requests.pending.markSent(requestId);
      },
      onPayload: (data) => {
        this.#lifecycle.heard();
        jobs.add(dispatch.receive(data), data.length);
      },
      onLost: (error, closeCode) => jobs.add(this.#lifecycle.lose(error, closeCode)),
    });
    this.#requests = new Requests(this.#link, config, () => this.isClosed);
    this.#subscriptions = new SubscriptionRegistry(this.#link, () => this.#requests.takeId());
    const { pending } = this.#requests;
    this.#lifecycle = new Lifecycle(this, config, this.#link, jobs, this.#contexts, {
      onLost: (closeCode) => {
        this.#updater.cancelResync();
        pending.rejectSent();
        this.#subscriptions.rewind(closeCode);
      },
      onEnd: () => {
        pending.rejectAll();
        this.#endSubscriptions();
      },
      isAwaiting: () => pending.isAwaitingRows || this.#subscriptions.isAwaiting,
      probe: () => this.#subscriptions.probe(),
    });
    const dispatch = new Dispatch(
      this.#lifecycle,
      this.#updater,
      pending,
      this.#subscriptions,
      this.#contexts,
    );
    this.#lifecycle.start();
  }

  /** Makes the tables, and tells the updater of their caches. */
  #makeTables(): ClientDbView<RemoteModule> {
    const cache = new ClientCache<RemoteModule>();
    const tables: Record<string, unknown> = {};
    for (const tableDef of Object.values(this.#module.tables)) {
      const table: object = cache.getOrCreateTable(tableDef as never);
      this.#updater.add(cacheOf(table)!);
      tables[tableDef.accessorName] = table;
    }
    return tables as ClientDbView<RemoteModule>;
  }

  // State --------------------------------------------------------------------------------------------------------

  /** Credentials of `identity`; keep them to be the same user next time. */
  get token(): string | undefined {
    return this.#lifecycle.credentials.current;
  }

  set token(token: string | undefined) {
    this.#lifecycle.credentials.current = token;
  }

  /** Whether the connection has ended for good. */
  get isClosed(): boolean {
    return this.#lifecycle.isOver || this.isDisconnectRequested;
  }

  /** Whether the socket has closed, also if its event was lost while the page slept. */
  get isSocketClosed(): boolean {
    return this.#link.isSocketClosed;
  }

  /** Whether the connection was lost and is being restored. */
  get isReconnecting(): boolean {
    return this.#lifecycle.wasConnected && !this.isActive && !this.#lifecycle.isOver;
  }

  /** Not for applications: tells the compiler what the module of a connection is. */
  [INTERNAL_REMOTE_MODULE](): RemoteModule {
    return this.#module;
  }

  /** Ends the connection; `onDisconnect` follows. */
  disconnect(): void {
    this.#lifecycle.disconnect();
  }

  // Calls --------------------------------------------------------------------------------------------------------

  /**
   * The reducers, procedures and one-off queries with limits:
   * `connection.withOptions({ timeoutMs: 5000 }).reducers.addUser({ name })`.
   */
  withOptions(options: CallOptions): LimitedCalls<RemoteModule> {
    checkDuration("timeoutMs", options.timeoutMs);
    return makeLimitedCalls(this, this.#module, options, (query) => this.#requests.query(query, options));
  }

  /** Calls a reducer with encoded arguments; `reducerArgs` are for the event of the reducer. */
  callReducer(reducerName: string, argsBuffer: Uint8Array, reducerArgs: object = {}): Promise<void> {
    return this.#requests.callEncodedReducer(reducerName, argsBuffer, reducerArgs);
  }

  callReducerWithParams(
    reducerName: string,
    paramsType: ProductType,
    params: object,
    options?: CallOptions,
  ): Promise<void> {
    return this.#requests.callReducer(reducerName, paramsType, params, options);
  }

  /** Calls a procedure with encoded arguments; the promise has its encoded result. */
  callProcedure(procedureName: string, argsBuffer: Uint8Array): Promise<Uint8Array> {
    return this.#requests.callEncodedProcedure(procedureName, argsBuffer);
  }

  callProcedureWithParams(
    procedureName: string,
    paramsType: ProductType,
    params: object,
    returnType: AlgebraicType,
    options?: CallOptions,
  ): Promise<any> {
    return this.#requests.callProcedure(procedureName, paramsType, params, returnType, options);
  }

  /** Runs a query once and returns its rows, without subscribing to them. */
  oneOffQuery<Row>(query: RowTypedQuery<Row, any>): Promise<Row[]>;
  oneOffQuery(query: string): Promise<AnyRow[]>;
  oneOffQuery(query: AnyQuery): Promise<any[]> {
    return this.#requests.query(query);
  }

  // Subscriptions ------------------------------------------------------------------------------------------------

  subscriptionBuilder = (): SubscriptionBuilderImpl<RemoteModule> => new SubscriptionBuilderImpl(this);

  /** The typed queries that `subscribe` hands to its function. */
  getFromBuilder<SchemaDef extends AnySchema>(): NamespacedQueryBuilder<SchemaDef> {
    return makeFromBuilder<SchemaDef>(this.#module.tables as SchemaDef["tables"]);
  }

  /** @internal The tables, and the views that take no arguments. */
  allTableNames(): string[] {
    const all = Object.values(this.#module.tables).filter((table) => !table.takesArguments);
    return all.map(({ sourceName }) => sourceName);
  }

  /** @internal Called by a subscription handle. */
  registerSubscription(
    _handle: SubscriptionHandleImpl<RemoteModule>,
    emitter: EventEmitter<SubscribeEvent>,
    queries: string[],
  ): number {
    if (!this.isClosed) return this.#subscriptions.add(emitter, queries).querySetId;
    const error = new ClientError("LC0834", "subscribe: the connection is closed");
    // The caller has not got its handle yet.
    queueMicrotask(() => emitter.emit("error", this.#contexts.ofError(error), error));
    return PROBE_QUERY_SET_ID;
  }

  /** @internal Called by a subscription handle. */
  unregisterSubscription(querySetId: number): void {
    const unsent = this.#subscriptions.remove(querySetId);
    unsent?.emitter.emit("end", this.#contexts.of("UnsubscribeApplied"));
  }

  /** @internal Calls `onEnd` of a subscription that has ended with the connection. */
  whenClosed(onEnd: (ctx: any) => void): void {
    queueMicrotask(() => callSafely(onEnd, [this.#contexts.of("UnsubscribeApplied")]));
  }

  /** There is a connection: if there was one before, the server is told again what it was told then. */
  #restore(): void {
    if (!this.#lifecycle.wasConnected) return;
    this.#updater.beginResync();
    this.#subscriptions.restore();
  }

  #endSubscriptions(): void {
    const closed = new ClientError("LC0834", "the connection was closed before the subscription was applied");
    for (const { state, emitter } of this.#subscriptions.takeAll()) {
      emitter.emit("closed");
      if (state === "waiting") emitter.emit("error", this.#contexts.ofError(closed), closed);
      else if (state !== "applied") emitter.emit("end", this.#contexts.of("UnsubscribeApplied"));
    }
  }

  // Callbacks ----------------------------------------------------------------------------------------------------

  /** Calls `listener` when `isActive`, `identity` or `connectionError` change; returns how to stop that. */
  onStateChange(listener: () => void): () => void {
    return this.#lifecycle.onStateChange(listener);
  }

  removeOnConnect(callback: ConnectionCallback<RemoteModule>): void {
    this.#off("connect", callback);
  }

  removeOnConnectError(callback: ConnectionCallback<RemoteModule>): void {
    this.#off("connectError", callback);
  }

  removeOnDisconnect(callback: ConnectionCallback<RemoteModule>): void {
    this.#off("disconnect", callback);
  }

  #off(event: ConnectionEvent, callback: ConnectionCallback<RemoteModule>): void {
    this.#emitter.off(event, callback);
  }
}
