// A connection to a database: its life from the first attempt to the end, and what the application does with it.

import {
  AlgebraicType,
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
import { type PendingRequest, PendingRequests, pendingPromise } from "./calls";
import { ClientCache } from "./client_cache";
import { ClientError, type ClientErrorCode, toError } from "./client_error";
import type { ClientDbView } from "./client_table";
import { type ContextEvent, type Event, EventContext } from "./event_context";
import { callSafely, type EventEmitter } from "./event_emitter";
import { Link } from "./link";
import { stdbLogger } from "./logger";
import { makeProceduresView, type ProceduresView } from "./procedures";
import { type ReconnectingInfo, type ReconnectOptions, reconnectDelayMs, STABLE_AFTER_MS } from "./reconnect";
import { makeReducersView, type ReducerEventInfo, type ReducersView } from "./reducers";
import { INTERNAL_REMOTE_MODULE, type UntypedRemoteModule, type UntypedSchemaDef } from "./remote_module";
import { JobQueue, type Steps } from "./scheduling";
import { PREFERRED_WS_PROTOCOLS, type WebSocketFactory } from "./socket";
import { SubscriptionRegistry } from "./subscription_registry";
import { type SubscribeEvent, SubscriptionBuilderImpl, type SubscriptionHandleImpl } from "./subscriptions";
import { cacheOf } from "./table_cache";
import {
  encodeMessage,
  type ReducerOutcome,
  readServerMessage,
  type ServerMessage,
  type TableRows,
  writeCall,
  writeOneOffQuery,
} from "./wire";

preferCompiledScript();

export type ConnectionEvent = "connect" | "disconnect" | "connectError" | "reconnecting" | "reconnect";

/** What a builder hands to a connection. */
export type DbConnectionConfig<RemoteModule extends UntypedRemoteModule> = {
  uri: URL;
  nameOrAddress: string;
  identity?: Identity;
  token?: string;
  emitter: EventEmitter<ConnectionEvent>;
  createWSFn: WebSocketFactory;
  compression: "gzip" | "brotli" | "none";
  lightMode: boolean;
  confirmedReads?: boolean;
  remoteModule: RemoteModule;
  /** Without it a lost connection stays lost. */
  reconnect?: ReconnectOptions & { retriesFirstAttempt?: boolean };
  /** Requests that may wait while there is no connection. Default: 10 000. */
  queuedRequestsMax?: number;
};

export type RemoteModuleOf<C> = C extends DbConnectionImpl<infer RM> ? RM : never;

const NOT_GREETED =
  "the server ended the connection before it answered; the module's client_connected may have refused it";

/** The server takes no larger message (chapter 05 §3.4). */
const REQUEST_BYTES_MAX = 32 * 1024 * 1024;
const QUEUED_REQUESTS_MAX = 10_000;

export class DbConnectionImpl<RemoteModule extends UntypedRemoteModule> {
  /** Whether the server has answered and the connection has not been lost since. */
  isActive = false;
  /** Whether `disconnect` was called; such a connection does not come back. */
  isDisconnectRequested = false;
  identity?: Identity;
  /** Credentials of `identity`; keep them to be the same user next time. */
  token?: string;
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
  readonly #pending = new PendingRequests();
  readonly #stateListeners = new Set<() => void>();
  readonly #subscriptions: SubscriptionRegistry;
  #nextRequestId = 0;
  #nextEventId = 0;
  #wasConnected = false;
  #isOver = false;
  #attempt = 0;
  #greetedAt = 0;
  #retryTimer: ReturnType<typeof setTimeout> | undefined;
  readonly #clientCache = new ClientCache<RemoteModule>();

  constructor(config: DbConnectionConfig<RemoteModule>) {
    this.#config = config;
    this.#emitter = config.emitter;
    this.identity = config.identity;
    this.token = config.token;
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
      open: () => this.#openSocket(),
      onOpen: () => {
        if (!this.#wasConnected) return;
        this.#updater.beginResync();
        this.#subscriptions.restore();
      },
      onSent: ({ requestId, querySetId }) => {
        if (querySetId === undefined) this.#pending.markSent(requestId);
        else this.#subscriptions.markSent(querySetId);
      },
      onPayload: (data) => this.#jobs.add(this.#receive(data)),
      onLost: (error) => this.#jobs.add(this.#lose(error)),
    });
    this.#subscriptions = new SubscriptionRegistry(this.#link, () => this.#nextRequestId++);
    this.#listenToPage("add");
    this.#link.start();
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
  getFromBuilder<SchemaDef extends UntypedSchemaDef>(): NamespacedQueryBuilder<SchemaDef> {
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
    return this.#subscriptions.add(emitter, queries).querySetId;
  }

  /** @internal Called by a subscription handle. */
  unregisterSubscription(querySetId: number): void {
    const unsent = this.#subscriptions.remove(querySetId);
    unsent?.emitter.emit("end", this.#context({ tag: "UnsubscribeApplied" }));
  }

  // Calls --------------------------------------------------------------------------------------------------------

  /** Calls a reducer with encoded arguments; `reducerArgs` are for the event of the reducer. */
  callReducer(reducerName: string, argsBuffer: Uint8Array, reducerArgs: object = {}): Promise<void> {
    return this.#call<void>("reducer", reducerName, (writer) => writer.writeBytes(argsBuffer), reducerArgs);
  }

  callReducerWithParams(reducerName: string, paramsType: ProductType, params: object): Promise<void> {
    const serialize = ProductType.makeSerializer(paramsType);
    return this.#call<void>("reducer", reducerName, (writer) => serialize(writer, params), params);
  }

  /** Calls a procedure with encoded arguments; the promise has its encoded result. */
  callProcedure(procedureName: string, argsBuffer: Uint8Array): Promise<Uint8Array> {
    return this.#call<Uint8Array>("procedure", procedureName, (writer) => writer.writeBytes(argsBuffer));
  }

  callProcedureWithParams(
    procedureName: string,
    paramsType: ProductType,
    params: object,
    returnType: AlgebraicType,
  ): Promise<any> {
    const { promise, resolve, reject } = pendingPromise<any>("procedure", procedureName);
    const serialize = ProductType.makeSerializer(paramsType);
    const deserialize = AlgebraicType.makeDeserializer(returnType);
    this.#call<Uint8Array>("procedure", procedureName, (writer) => serialize(writer, params))
      .then((result) => resolve(deserialize(new BinaryReader(result))))
      .catch(reject);
    return promise;
  }

  /** Runs a query once and returns its rows, without subscribing to them. */
  oneOffQuery<Row>(query: RowTypedQuery<Row, any>): Promise<Row[]>;
  oneOffQuery(query: string): Promise<Record<string, any>[]>;
  oneOffQuery(query: string | RowTypedQuery<any, any>): Promise<any[]> {
    const sql = typeof query === "string" ? query : toSql(query);
    return this.#request("query", sql, (writer, requestId) => writeOneOffQuery(writer, requestId, sql));
  }

  #call<T>(
    kind: "reducer" | "procedure",
    name: string,
    writeArguments: (writer: BinaryWriter) => void,
    args?: object,
  ): Promise<T> {
    const write = (writer: BinaryWriter, requestId: number): void =>
      writeCall(writer, kind, requestId, name, writeArguments);
    return this.#request<T>(kind, name, write, args);
  }

  #request<T>(
    kind: PendingRequest["kind"],
    name: string,
    write: (writer: BinaryWriter, requestId: number) => void,
    args?: object,
  ): Promise<T> {
    const { promise, resolve, reject } = pendingPromise<T>(kind, name);
    const { queuedRequestsMax = QUEUED_REQUESTS_MAX } = this.#config;
    const refuse = (code: ClientErrorCode, reason: string, cause?: unknown): Promise<T> => {
      reject(new ClientError(code, `${kind} ${name} was not sent: ${reason}`, { cause }));
      return promise;
    };
    if (this.#isOver || this.isDisconnectRequested) return refuse("LC0834", "the connection is closed");
    if (!this.#link.isOpen && this.#link.queued.length >= queuedRequestsMax) {
      return refuse("LC0835", `${queuedRequestsMax} requests wait for a connection already`);
    }
    const requestId = this.#nextRequestId;
    let bytes: Uint8Array<ArrayBuffer>;
    try {
      bytes = encodeMessage((writer) => write(writer, requestId));
    } catch (error) {
      return refuse("LC0838", `the arguments do not fit the parameters: ${toError(error).message}`, error);
    }
    if (bytes.length > REQUEST_BYTES_MAX) {
      return refuse("LC0837", `it has ${bytes.length} bytes, more than the server takes`);
    }
    this.#nextRequestId += 1;
    this.#pending.add(requestId, { kind, name, args, isSent: false, resolve: resolve as never, reject });
    this.#link.send({ bytes, requestId });
    return promise;
  }

  // The life of the connection -----------------------------------------------------------------------------------

  /** Ends the connection; `onDisconnect` follows. */
  disconnect(): void {
    this.isDisconnectRequested = true;
    clearTimeout(this.#retryTimer);
    this.#retryTimer = undefined;
    this.#link.close();
  }

  #openSocket(): ReturnType<WebSocketFactory> {
    const { uri, nameOrAddress, createWSFn, compression, lightMode, confirmedReads } = this.#config;
    return createWSFn({
      url: uri,
      wsProtocol: [...PREFERRED_WS_PROTOCOLS],
      nameOrAddress,
      authToken: this.token,
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
    this.#updater.cancelResync();
    this.#pending.rejectSent();
    this.#subscriptions.rewind();
    const cause =
      error ?? new ClientError("LC0831", wasGreeted ? "the server ended the connection" : NOT_GREETED);
    if (wasGreeted && Date.now() - this.#greetedAt > STABLE_AFTER_MS) this.#attempt = 0;
    if (!this.isDisconnectRequested) this.connectionError = cause;
    this.#stateChanged();
    if (!this.#wasConnected && !this.isDisconnectRequested) {
      this.#emitter.emit("connectError", this.#errorContext(cause), cause);
    }
    // A callback may have asked for the end.
    if (!this.#mayRetry(cause)) {
      this.#finish(
        this.isDisconnectRequested ? undefined : this.#attempt > 0 ? gaveUp(this.#attempt, cause) : error,
      );
      return;
    }
    this.#attempt += 1;
    const delayMs = reconnectDelayMs(this.#attempt, this.#config.reconnect!);
    const retry = (): void => {
      this.#retryTimer = undefined;
      this.#link.start();
    };
    this.#retryTimer = setTimeout(retry, delayMs);
    const info: ReconnectingInfo = { attempt: this.#attempt, delayMs, error: cause };
    stdbLogger("debug", () => `connection lost (${cause.message}); attempt ${info.attempt} in ${delayMs} ms`);
    if (this.#wasConnected) this.#emitter.emit("reconnecting", this.#errorContext(cause), info);
  }

  #mayRetry(error: Error): boolean {
    const { reconnect } = this.#config;
    if (!reconnect || this.isDisconnectRequested) return false;
    if (!this.#wasConnected && !reconnect.retriesFirstAttempt) return false;
    // Trying again would fail in the same way.
    if (error instanceof ClientError && error.code !== "LC0831" && error.code !== "LC0851") return false;
    return this.#attempt < (reconnect.maxAttempts ?? Number.POSITIVE_INFINITY);
  }

  #finish(error: Error | undefined): void {
    this.#isOver = true;
    this.#link.queued = [];
    this.#listenToPage("remove");
    this.#pending.rejectAll();
    this.#stateChanged();
    if (this.#wasConnected || this.isDisconnectRequested)
      this.#emitter.emit("disconnect", this.#errorContext(error), error);
  }

  /** Pages sleep and networks change: then a dead socket is noticed, and an attempt does not wait. */
  #listenToPage(action: "add" | "remove"): void {
    if (!this.#config.reconnect || typeof document === "undefined") return;
    const listen = action === "add" ? addEventListener : removeEventListener;
    for (const type of ["online", "pageshow", "visibilitychange"]) listen(type, this.#onPageResumed, true);
  }

  readonly #onPageResumed = (): void => {
    if (this.#retryTimer !== undefined) {
      clearTimeout(this.#retryTimer);
      this.#retryTimer = undefined;
      this.#link.start();
    } else if (this.#link.isSocketClosed) {
      this.#link.drop(undefined);
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
        this.token ??= message.token;
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
      const request = this.#pending.take(message.requestId);
      if (outcome.tag === "Err")
        request?.reject(new SenderError(new BinaryReader(outcome.value).readString()));
      else if (outcome.tag === "InternalError") request?.reject(new InternalError(outcome.value));
      else request?.resolve(undefined);
      return true;
    }
    if (message.tag === "ProcedureResult") {
      const request = this.#pending.take(message.requestId);
      if ("value" in message.result) request?.resolve(message.result.value);
      else request?.reject(new InternalError(message.result.error));
      return true;
    }
    return false;
  }

  *#greeted(): Steps {
    this.isActive = true;
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
      stdbLogger("warn", `rows of the unknown query set ${querySetId} are ignored`);
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
    const request = this.#pending.take(requestId);
    const changes = yield* this.#updater.apply(outcome.value.transactionUpdate.querySets);
    const reducer = { name: request?.name ?? "", args: request?.args ?? {} };
    const value = { timestamp: new Timestamp(timestampMicros), outcome, reducer };
    const event: ContextEvent = request ? { tag: "Reducer", value } : { tag: "Transaction" };
    yield* this.#updater.announce(this.#context(event), changes);
    request?.resolve(undefined);
  }

  *#queryAnswered({ requestId, result }: ServerMessage & { tag: "OneOffQueryResult" }): Steps {
    const request = this.#pending.take(requestId);
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

function gaveUp(attempts: number, cause: Error): ClientError {
  return new ClientError(
    "LC0850",
    `gave up after ${attempts} attempts to restore the connection: ${cause.message}`,
    {
      cause,
    },
  );
}
