// A connection to a database: its life from the first attempt to the end, and what the application does with it.

import {
  AlgebraicType,
  type AnySchema,
  BinaryReader,
  type BinaryWriter,
  ConnectionId,
  Identity,
  InternalError,
  makeFromBuilder,
  type NamespacedQueryBuilder,
  ProductType,
  type RowTypedQuery,
  SenderError,
  Timestamp,
  toSql,
} from "../core";
import { preferCompiledScript } from "../core/utf8";
import { CacheUpdater } from "./cache_updater";
import { type CallOptions, pendingPromise } from "./calls";
import { ClientCache } from "./client_cache";
import { ClientError, type ClientErrorCode, toError } from "./client_error";
import type { ClientDbView } from "./client_table";
import type { ConnectionEvent, DbConnectionConfig } from "./connection_config";
import { Credentials } from "./credentials";
import { checkDuration } from "./durations";
import { type ContextEvent, type Event, EventContext } from "./event_context";
import { callSafely, type EventEmitter } from "./event_emitter";
import { type LimitedCalls, makeLimitedCalls } from "./limited_calls";
import { Link } from "./link";
import { stdbLogger } from "./logger";
import { onPageResumed } from "./page_events";
import { makeProceduresView, type ProceduresView } from "./procedures";
import { type ReconnectingInfo, reconnectDelayMs, STABLE_AFTER_MS } from "./reconnect";
import { makeReducersView, type ReducerEventInfo, type ReducersView } from "./reducers";
import { type AnyModule, INTERNAL_REMOTE_MODULE } from "./remote_module";
import { Requests } from "./requests";
import { JobQueue, type Steps } from "./scheduling";
import { SilenceWatch } from "./silence_watch";
import { PREFERRED_WS_PROTOCOLS, type WebSocketFactory } from "./socket";
import { PROBE_QUERY_SET_ID, SubscriptionRegistry } from "./subscription_registry";
import { type SubscribeEvent, SubscriptionBuilderImpl, type SubscriptionHandleImpl } from "./subscriptions";
import { cacheOf } from "./table_cache";
import {
  type ReducerOutcome,
  readServerMessage,
  type ServerMessage,
  type TableRows,
  writeOneOffQuery,
} from "./wire";

preferCompiledScript();

export type RemoteModuleOf<C> = C extends DbConnectionImpl<infer RM> ? RM : never;

const NOT_GREETED =
  "the server ended the connection before it answered; the module's client_connected may have refused it";

const CONNECT_TIMEOUT_MS = 30_000;
/** A server that asks to wait is heeded up to this time. */
const RETRY_AFTER_MS_MAX = 300_000;

/** What may be different at the next attempt. */
const PASSING_ERRORS: ReadonlySet<ClientErrorCode> = /* @__PURE__ */ new Set([
  "LC0831",
  "LC0851",
  "LC0853",
  "LC0855",
  "LC0856",
]);

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

  readonly #config: DbConnectionConfig<RemoteModule>;
  readonly #emitter: EventEmitter<ConnectionEvent>;
  readonly #link: Link;
  readonly #jobs = new JobQueue();
  readonly #updater = new CacheUpdater();
  readonly #requests: Requests;
  readonly #stateListeners = new Set<() => void>();
  readonly #subscriptions: SubscriptionRegistry;
  #nextEventId = 0;
  #wasConnected = false;
  #isOver = false;
  #attempt = 0;
  #greetedAt = 0;
  #retryTimer: ReturnType<typeof setTimeout> | undefined;
  #connectTimer: ReturnType<typeof setTimeout> | undefined;
  #stopListening: (() => void) | undefined;
  readonly #credentials: Credentials;
  readonly #silence: SilenceWatch | undefined;
  readonly #clientCache = new ClientCache<RemoteModule>();

  constructor(config: DbConnectionConfig<RemoteModule>) {
    this.#config = config;
    this.#emitter = config.emitter;
    this.identity = config.identity;
    this.#credentials = new Credentials(config.token, config.onUnauthorized);
    const db: Record<string, unknown> = {};
    for (const tableDef of Object.values(config.remoteModule.tables)) {
      const table: object = this.#clientCache.getOrCreateTable(tableDef as never);
      this.#updater.add(cacheOf(table)!);
      db[tableDef.accessorName] = table;
    }
    this.db = db as ClientDbView<RemoteModule>;
    this.reducers = makeReducersView(this, config.remoteModule) as ReducersView<RemoteModule>;
    this.procedures = makeProceduresView(this, config.remoteModule) as ProceduresView<RemoteModule>;
    this.#link = new Link({
      open: (signal) => this.#openSocket(signal),
      onOpen: () => {
        if (!this.#wasConnected) return;
        this.#updater.beginResync();
        this.#subscriptions.restore();
      },
      onSent: ({ requestId, querySetId }) => {
        if (querySetId === undefined) this.#requests.pending.markSent(requestId);
        else this.#subscriptions.markSent(querySetId);
      },
      onPayload: (data) => {
        this.#silence?.heard();
        this.#jobs.add(this.#receive(data));
      },
      onLost: (error) => this.#jobs.add(this.#lose(error)),
    });
    this.#requests = new Requests(this.#link, config, () => this.isClosed);
    this.#subscriptions = new SubscriptionRegistry(this.#link, () => this.#requests.takeId());
    if (config.keepAlive !== false) {
      this.#silence = new SilenceWatch(config.keepAlive ?? {}, {
        probe: () => this.#subscriptions.probe(),
        isAwaiting: () => this.#requests.pending.isAwaitingRows || this.#subscriptions.isAwaiting,
        onSilent: (silentMs) => this.#loseSilent(silentMs),
      });
    }
    if (config.reconnect) this.#stopListening = onPageResumed(this.#onPageResumed);
    this.#start();
  }

  /** Credentials of `identity`; keep them to be the same user next time. */
  get token(): string | undefined {
    return this.#credentials.current;
  }

  set token(token: string | undefined) {
    this.#credentials.current = token;
  }

  /** Whether the connection has ended for good. */
  get isClosed(): boolean {
    return this.#isOver || this.isDisconnectRequested;
  }

  /** @internal */
  [INTERNAL_REMOTE_MODULE](): RemoteModule {
    return this.#config.remoteModule;
  }

  /** Whether the socket has closed, also if its event was lost while the page slept. */
  get isSocketClosed(): boolean {
    return this.#link.isSocketClosed;
  }

  /** Whether the connection was lost and is being restored. */
  get isReconnecting(): boolean {
    return this.#wasConnected && !this.isActive && !this.#isOver;
  }

  // Subscriptions ------------------------------------------------------------------------------------------------

  subscriptionBuilder = (): SubscriptionBuilderImpl<RemoteModule> => new SubscriptionBuilderImpl(this);

  /** The typed queries that `subscribe` hands to its function. */
  getFromBuilder<SchemaDef extends AnySchema>(): NamespacedQueryBuilder<SchemaDef> {
    return makeFromBuilder<SchemaDef>(this.#config.remoteModule.tables as SchemaDef["tables"]);
  }

  /** @internal */
  allTableNames(): string[] {
    return Object.values(this.#config.remoteModule.tables).map(({ sourceName }) => sourceName);
  }

  /** @internal Called by a subscription handle. */
  registerSubscription(
    _handle: SubscriptionHandleImpl<RemoteModule>,
    emitter: EventEmitter<SubscribeEvent>,
    queries: string[],
  ): number {
    if (this.isClosed) {
      const error = new ClientError("LC0834", "subscribe: the connection is closed");
      // The caller has not got its handle yet.
      queueMicrotask(() => emitter.emit("error", this.#errorContext(error), error));
      return PROBE_QUERY_SET_ID;
    }
    return this.#subscriptions.add(emitter, queries).querySetId;
  }

  /** @internal Called by a subscription handle. */
  unregisterSubscription(querySetId: number): void {
    const unsent = this.#subscriptions.remove(querySetId);
    unsent?.emitter.emit("end", this.#context({ tag: "UnsubscribeApplied" }));
  }

  /** @internal Calls `onEnd` of a subscription that has ended with the connection. */
  whenClosed(onEnd: (ctx: any) => void): void {
    queueMicrotask(() => callSafely(onEnd, [this.#context({ tag: "UnsubscribeApplied" })]));
  }

  // Calls --------------------------------------------------------------------------------------------------------

  /**
   * The reducers, procedures and one-off queries with limits:
   * `connection.withOptions({ timeoutMs: 5000 }).reducers.addUser({ name })`.
   */
  withOptions(options: CallOptions): LimitedCalls<RemoteModule> {
    checkDuration("timeoutMs", options.timeoutMs);
    const { remoteModule } = this.#config;
    return makeLimitedCalls(this, remoteModule, options, (query) => this.#queryOnce(query, options));
  }

  /** Calls a reducer with encoded arguments; `reducerArgs` are for the event of the reducer. */
  callReducer(reducerName: string, argsBuffer: Uint8Array, reducerArgs: object = {}): Promise<void> {
    return this.#requests.call<void>(
      "reducer",
      reducerName,
      (writer) => writer.writeBytes(argsBuffer),
      reducerArgs,
    );
  }

  callReducerWithParams(
    reducerName: string,
    paramsType: ProductType,
    params: object,
    options?: CallOptions,
  ): Promise<void> {
    const serialize = ProductType.makeArgumentsSerializer(paramsType);
    return this.#requests.call<void>(
      "reducer",
      reducerName,
      (writer) => serialize(writer, params),
      params,
      options,
    );
  }

  /** Calls a procedure with encoded arguments; the promise has its encoded result. */
  callProcedure(procedureName: string, argsBuffer: Uint8Array): Promise<Uint8Array> {
    return this.#requests.call<Uint8Array>("procedure", procedureName, (writer) =>
      writer.writeBytes(argsBuffer),
    );
  }

  callProcedureWithParams(
    procedureName: string,
    paramsType: ProductType,
    params: object,
    returnType: AlgebraicType,
    options?: CallOptions,
  ): Promise<any> {
    const { promise, resolve, reject } = pendingPromise<any>("procedure", procedureName);
    const serialize = ProductType.makeArgumentsSerializer(paramsType);
    const deserialize = AlgebraicType.makeDeserializer(returnType);
    const write = (writer: BinaryWriter): void => serialize(writer, params);
    this.#requests
      .call<Uint8Array>("procedure", procedureName, write, params, options)
      .then((result) => resolve(deserialize(new BinaryReader(result))))
      .catch(reject);
    return promise;
  }

  /** Runs a query once and returns its rows, without subscribing to them. */
  oneOffQuery<Row>(query: RowTypedQuery<Row, any>): Promise<Row[]>;
  oneOffQuery(query: string): Promise<Record<string, any>[]>;
  oneOffQuery(query: string | RowTypedQuery<any, any>): Promise<any[]> {
    return this.#queryOnce(query);
  }

  #queryOnce(query: string | RowTypedQuery<any, any>, options?: CallOptions): Promise<any[]> {
    const sql = typeof query === "string" ? query : toSql(query);
    const write = (writer: BinaryWriter, requestId: number): void => writeOneOffQuery(writer, requestId, sql);
    return this.#requests.send("query", sql, write, undefined, options);
  }

  // The life of the connection -----------------------------------------------------------------------------------

  /** Ends the connection; `onDisconnect` follows. */
  disconnect(): void {
    this.isDisconnectRequested = true;
    clearTimeout(this.#retryTimer);
    this.#retryTimer = undefined;
    this.#link.close();
  }

  #start(): void {
    const timeoutMs = this.#config.connectTimeoutMs ?? CONNECT_TIMEOUT_MS;
    clearTimeout(this.#connectTimer);
    this.#connectTimer = setTimeout(() => {
      this.#link.drop(
        new ClientError("LC0853", `the server did not answer within ${timeoutMs} ms after connecting began`),
      );
    }, timeoutMs);
    this.#link.start();
  }

  /** Nothing has come for long, not even an answer to a question. */
  #loseSilent(silentMs: number): void {
    const seconds = Math.round(silentMs / 1000);
    this.#jobs.clear();
    this.#link.drop(new ClientError("LC0856", `nothing has come from the server for ${seconds} s`));
  }

  async #openSocket(signal: AbortSignal): ReturnType<WebSocketFactory> {
    const { uri, nameOrAddress, createWSFn, compression, lightMode, confirmedReads } = this.#config;
    const authToken = await this.#credentials.next(signal);
    return createWSFn({
      url: uri,
      wsProtocol: [...PREFERRED_WS_PROTOCOLS],
      nameOrAddress,
      authToken,
      signal,
      compression,
      lightMode,
      confirmedReads,
    });
  }

  /** The connection was lost, or could not be made; a job of its own, after what came before. */
  *#lose(error: Error | undefined): Steps {
    if (this.#isOver) return;
    const wasGreeted = this.isActive;
    this.isActive = false;
    clearTimeout(this.#connectTimer);
    this.#silence?.stop();
    this.#updater.cancelResync();
    this.#requests.pending.rejectSent();
    this.#subscriptions.rewind();
    const cause =
      error ?? new ClientError("LC0831", wasGreeted ? "the server ended the connection" : NOT_GREETED);
    if (wasGreeted && Date.now() - this.#greetedAt > STABLE_AFTER_MS) this.#attempt = 0;
    if (!this.isDisconnectRequested) this.connectionError = cause;
    this.#stateChanged();
    const isRefused = cause instanceof ClientError && cause.code === "LC0832";
    const mayAskAgain = isRefused && !this.isDisconnectRequested && this.#credentials.refused(cause);
    if (!this.#wasConnected && !this.isDisconnectRequested && !mayAskAgain) {
      this.#emitter.emit("connectError", this.#errorContext(cause), cause);
    }
    // A callback may have asked for the end.
    if (this.isDisconnectRequested || !(mayAskAgain || this.#mayRetry(cause))) {
      this.#finish(
        this.isDisconnectRequested ? undefined : this.#attempt > 0 ? gaveUp(this.#attempt, cause) : error,
      );
      return;
    }
    this.#attempt += 1;
    const delayMs = Math.max(
      reconnectDelayMs(this.#attempt, this.#config.reconnect ?? {}),
      Math.min(retryAfterOf(cause), RETRY_AFTER_MS_MAX),
    );
    const retry = (): void => {
      this.#retryTimer = undefined;
      this.#start();
    };
    this.#retryTimer = setTimeout(retry, delayMs);
    const info: ReconnectingInfo = { attempt: this.#attempt, delayMs, error: cause };
    stdbLogger("debug", () => `connection lost (${cause.message}); attempt ${info.attempt} in ${delayMs} ms`);
    if (this.#wasConnected) this.#emitter.emit("reconnecting", this.#errorContext(cause), info);
  }

  #mayRetry(error: Error): boolean {
    const { reconnect } = this.#config;
    if (!reconnect) return false;
    if (!this.#wasConnected && !reconnect.retriesFirstAttempt) return false;
    // Trying again would fail in the same way.
    if (error instanceof ClientError && !PASSING_ERRORS.has(error.code)) return false;
    return this.#attempt < (reconnect.maxAttempts ?? Number.POSITIVE_INFINITY);
  }

  #finish(error: Error | undefined): void {
    this.#isOver = true;
    this.#link.queued = [];
    this.#stopListening?.();
    this.#requests.pending.rejectAll();
    this.#endSubscriptions();
    this.#stateChanged();
    if (this.#wasConnected || this.isDisconnectRequested)
      this.#emitter.emit("disconnect", this.#errorContext(error), error);
  }

  #endSubscriptions(): void {
    const closed = new ClientError("LC0834", "the connection was closed before the subscription was applied");
    for (const { state, emitter } of this.#subscriptions.takeAll()) {
      emitter.emit("closed");
      if (state === "waiting") emitter.emit("error", this.#errorContext(closed), closed);
      else if (state !== "applied") emitter.emit("end", this.#context({ tag: "UnsubscribeApplied" }));
    }
  }

  /** Pages sleep and networks change: then a dead socket is noticed, and an attempt does not wait. */
  readonly #onPageResumed = (): void => {
    if (this.#retryTimer !== undefined) {
      clearTimeout(this.#retryTimer);
      this.#retryTimer = undefined;
      this.#start();
    } else if (this.#link.isSocketClosed) {
      this.#link.drop(undefined);
    } else {
      this.#silence?.hurry();
    }
  };

  // Messages -----------------------------------------------------------------------------------------------------

  *#receive(data: Uint8Array): Steps {
    try {
      const reader = new BinaryReader(data);
      if (reader.remaining === 0) throw new ClientError("LC0840", "the server sent an empty message");
      while (reader.remaining > 0) {
        const message = readServerMessage(reader);
        if (!this.#answer(message)) yield* this.#process(message);
        if (reader.remaining > 0) yield;
      }
    } catch (thrown) {
      const error =
        thrown instanceof ClientError
          ? thrown
          : new ClientError(
              "LC0840",
              `a message of the server cannot be decoded: ${toError(thrown).message}`,
              {
                cause: thrown,
              },
            );
      stdbLogger("error", `${error.message}; see ${error.docsUrl}`);
      this.#jobs.clear();
      this.#link.drop(error);
    }
  }

  *#process(message: ServerMessage): Steps {
    switch (message.tag) {
      case "InitialConnection":
        this.identity = new Identity(message.identity);
        this.connectionId = new ConnectionId(message.connectionId);
        this.#credentials.accepted(message.token);
        yield* this.#greeted();
        break;
      case "SubscribeApplied":
        yield* this.#subscribeApplied(message.querySetId, message.tables);
        break;
      case "UnsubscribeApplied":
        yield* this.#unsubscribeApplied(message.querySetId, message.tables);
        break;
      case "SubscriptionError":
        yield* this.#subscriptionFailed(message.querySetId, message.error, message.requestId === undefined);
        break;
      case "TransactionUpdate": {
        const changes = yield* this.#updater.apply(message.tables);
        yield* this.#updater.announce(this.#context({ tag: "Transaction" }), changes);
        break;
      }
      case "OneOffQueryResult":
        yield* this.#queryAnswered(message);
        break;
      case "ReducerResult":
        if (message.outcome.tag === "Ok") yield* this.#reducerDone(message, message.outcome);
    }
  }

  /** Answers that change no rows need no steps; most calls end here. Returns whether it was one. */
  #answer(message: ServerMessage): boolean {
    if (message.tag === "ReducerResult") {
      const { outcome } = message;
      if (outcome.tag === "Ok" && outcome.value.transactionUpdate.querySets.length > 0) return false;
      const request = this.#requests.pending.take(message.requestId);
      if (outcome.tag === "Err")
        request?.reject(new SenderError(new BinaryReader(outcome.value).readString()));
      else if (outcome.tag === "InternalError") request?.reject(new InternalError(outcome.value));
      else request?.resolve(undefined);
      return true;
    }
    if (message.tag === "ProcedureResult") {
      const request = this.#requests.pending.take(message.requestId);
      if ("value" in message.result) request?.resolve(message.result.value);
      else request?.reject(new InternalError(message.result.error));
      return true;
    }
    return false;
  }

  *#greeted(): Steps {
    this.isActive = true;
    clearTimeout(this.#connectTimer);
    this.#silence?.start();
    this.connectionError = undefined;
    this.#greetedAt = Date.now();
    this.#stateChanged();
    if (!this.#wasConnected) {
      this.#wasConnected = true;
      this.#attempt = 0;
      this.#emitter.emit("connect", this, this.identity, this.token);
    } else {
      yield* this.#resynced();
    }
  }

  *#subscribeApplied(querySetId: number, tables: readonly TableRows[]): Steps {
    const subscription = this.#subscriptions.get(querySetId);
    if (this.#subscriptions.isAwaited(querySetId)) {
      yield* this.#updater.apply(tables);
      this.#subscriptions.settle(querySetId);
      yield* this.#resynced();
      return;
    }
    if (!subscription) {
      stdbLogger("warn", () => `rows of the unknown query set ${querySetId} are ignored`);
      return;
    }
    const changes = yield* this.#updater.apply(tables);
    // An `unsubscribe` may be on its way already; its answer ends it.
    if (subscription.state === "waiting") subscription.state = "applied";
    const context = this.#context({ tag: "SubscribeApplied" });
    subscription.emitter.emit("applied", context);
    yield* this.#updater.announce(context, changes);
  }

  *#unsubscribeApplied(querySetId: number, tables: readonly TableRows[]): Steps {
    const changes = yield* this.#updater.apply(tables);
    const subscription = this.#subscriptions.take(querySetId);
    const context = this.#context({ tag: "UnsubscribeApplied" });
    subscription?.emitter.emit("end", context);
    yield* this.#updater.announce(context, changes);
  }

  *#subscriptionFailed(querySetId: number, text: string, isLate: boolean): Steps {
    if (querySetId === PROBE_QUERY_SET_ID) return;
    const subscription = this.#subscriptions.take(querySetId);
    const error = serverError(text);
    subscription?.emitter.emit("error", this.#errorContext(error), error);
    if (isLate) {
      // Nobody tells which rows the set had. A new connection sorts it out; without one the cache would be wrong.
      this.#jobs.clear();
      this.#link.drop(new ClientError("LC0851", `the server gave up on a subscription: ${text}`));
    } else {
      this.#subscriptions.settle(querySetId);
      yield* this.#resynced();
    }
  }

  /** After a reconnect, when the last subscription is answered, the cache is complete again. */
  *#resynced(): Steps {
    if (!this.#subscriptions.takeRestored()) return;
    const changes = yield* this.#updater.endResync();
    for (const { emitter } of this.#subscriptions.takeLost()) {
      emitter.emit("end", this.#context({ tag: "UnsubscribeApplied" }));
    }
    yield* this.#updater.announce(this.#context({ tag: "SubscribeApplied" }), changes);
    this.#emitter.emit("reconnect", this);
  }

  /** A call of this connection changed rows: they are announced before its promise is resolved. */
  *#reducerDone(
    { requestId, timestampMicros }: ServerMessage & { tag: "ReducerResult" },
    outcome: ReducerOutcome & { tag: "Ok" },
  ): Steps {
    const request = this.#requests.pending.take(requestId);
    const changes = yield* this.#updater.apply(outcome.value.transactionUpdate.querySets);
    const reducer = { name: request?.name ?? "", args: request?.args ?? {} };
    const value = { timestamp: new Timestamp(timestampMicros), outcome, reducer };
    const event: ContextEvent = request ? { tag: "Reducer", value } : { tag: "Transaction" };
    yield* this.#updater.announce(this.#context(event), changes);
    request?.resolve(undefined);
  }

  *#queryAnswered({ requestId, result }: ServerMessage & { tag: "OneOffQueryResult" }): Steps {
    const request = this.#requests.pending.take(requestId);
    if (!request) return;
    if ("error" in result) {
      request.reject(serverError(result.error));
      return;
    }
    try {
      request.resolve(yield* this.#updater.decode(result.tables));
    } catch (error) {
      request.reject(error);
    }
  }

  #context(event: ContextEvent): EventContext {
    const id = `${this.connectionId.toHexString().slice(0, 8)}-${this.#nextEventId++}`;
    return new EventContext(this, { id, ...event } as Event<ReducerEventInfo>);
  }

  #errorContext(error: Error | undefined): EventContext {
    return new EventContext(this, error);
  }

  // Callbacks ----------------------------------------------------------------------------------------------------

  /** Calls `listener` when `isActive`, `identity` or `connectionError` change; returns how to stop that. */
  onStateChange(listener: () => void): () => void {
    this.#stateListeners.add(listener);
    return () => void this.#stateListeners.delete(listener);
  }

  #stateChanged(): void {
    for (const listener of [...this.#stateListeners]) callSafely(listener, []);
  }

  removeOnConnect(callback: (ctx: DbConnectionImpl<RemoteModule>, ...args: any[]) => void): void {
    this.#emitter.off("connect", callback);
  }

  removeOnDisconnect(callback: (ctx: DbConnectionImpl<RemoteModule>, ...args: any[]) => void): void {
    this.#emitter.off("disconnect", callback);
  }

  removeOnConnectError(callback: (ctx: DbConnectionImpl<RemoteModule>, ...args: any[]) => void): void {
    this.#emitter.off("connectError", callback);
  }
}

/** An error whose text is the server's. */
function serverError(text: string): ClientError {
  return new ClientError("LC0836", text, { isServerText: true });
}

function retryAfterOf(error: Error): number {
  return (error instanceof ClientError && error.retryAfterMs) || 0;
}

function gaveUp(attempts: number, cause: Error): ClientError {
  return new ClientError(
    "LC0850",
    `gave up after ${attempts} attempts to restore the connection: ${cause.message}`,
    {
      cause,
    },
  );
}
