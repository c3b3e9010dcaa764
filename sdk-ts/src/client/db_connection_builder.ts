// Where and how to connect; `build` starts the connection.

import type { Identity } from "../core";
import { ClientError } from "./client_error";
import type { ConnectionEvent, DbConnectionConfig } from "./connection_config";
import type { TokenSource, UnauthorizedHandler } from "./credentials";
import type { AnyConnection, RemoteModuleOf } from "./db_connection_impl";
import { checkDuration } from "./durations";
import type { ErrorContextInterface } from "./event_context";
import { EventEmitter } from "./event_emitter";
import type { ReconnectingInfo, ReconnectOptions } from "./reconnect";
import type { AnyModule } from "./remote_module";
import type { KeepAliveOptions } from "./silence_watch";
import { type Compression, OrderedSocket, type WebSocketFactory } from "./socket";

/** The optional part of the configuration of a connection. */
type Settings = Omit<DbConnectionConfig<AnyModule>, "uri" | "nameOrAddress" | "remoteModule" | "reconnect">;

/** Where and how to connect. `DbConnection.builder()` of the generated bindings makes one. */
export class DbConnectionBuilder<DbConnection extends AnyConnection> {
  readonly #remoteModule: RemoteModuleOf<DbConnection>;
  readonly #construct: (config: DbConnectionConfig<RemoteModuleOf<DbConnection>>) => DbConnection;
  readonly #emitter = new EventEmitter<ConnectionEvent>();
  readonly #settings: Settings = {
    emitter: this.#emitter,
    createWSFn: (args) => OrderedSocket.open(args),
    compression: "gzip",
    lightMode: false,
  };
  #uri: URL | undefined;
  #nameOrAddress = "";
  /** Set by `withReconnect`; otherwise it depends on `onDisconnect`. */
  #reconnect: DbConnectionConfig<AnyModule>["reconnect"] | false;

  /** Not for applications: use `DbConnection.builder()` of the generated bindings. */
  constructor(
    remoteModule: RemoteModuleOf<DbConnection>,
    dbConnectionCtor: (config: DbConnectionConfig<RemoteModuleOf<DbConnection>>) => DbConnection,
  ) {
    this.#remoteModule = remoteModule;
    this.#construct = dbConnectionCtor;
  }

  #set(settings: Partial<Settings>): this {
    Object.assign(this.#settings, settings);
    return this;
  }

  #on<Args extends unknown[]>(event: ConnectionEvent, callback: (...args: Args) => void): this {
    this.#emitter.on(event, callback);
    return this;
  }

  /** Address of the server: `ws://`, `wss://`, `http://` or `https://`, with a path if it is behind one. */
  withUri(uri: string | URL): this {
    const url = parseUrl(uri);
    if (!url || !/^(ws|http)s?:$/.test(url.protocol)) {
      throw new ClientError("LC0847", `withUri: ${JSON.stringify(uri)} is not like ws://host:port`);
    }
    this.#uri = url;
    return this;
  }

  /** Name or identity of the database. */
  withDatabaseName(nameOrAddress: string): this {
    // A value from the environment may be missing; `build` says so.
    this.#nameOrAddress = nameOrAddress ?? "";
    return this;
  }

  /**
   * Credentials, as `onConnect` handed them out before. Without them the server makes a new identity. A function is asked
   * at each attempt to connect, for tokens that do not live as long as a connection is wanted.
   */
  withToken(token?: string | TokenSource): this {
    // A value from a storage may be null or empty.
    return this.#set({ token: token || undefined });
  }

  /**
   * Called when the server refuses the token. The connection goes on with the token that it returns or, if that is
   * nothing, with a new anonymous identity. Without it a refused token ends the connection (LC0832).
   */
  onUnauthorized(handler: UnauthorizedHandler): this {
    return this.#set({ onUnauthorized: handler });
  }

  /** Time for an attempt to connect, in milliseconds, until the server has answered. Default: 30 000. */
  withConnectTimeout(timeoutMs: number): this {
    checkDuration("withConnectTimeout", timeoutMs);
    return this.#set({ connectTimeoutMs: timeoutMs });
  }

  /** Time for each call, in milliseconds; `connection.withOptions` sets another one. Default: no limit. */
  withCallTimeout(timeoutMs: number): this {
    checkDuration("withCallTimeout", timeoutMs);
    return this.#set({ callTimeoutMs: timeoutMs });
  }

  /** When a connection counts as lost from which nothing comes any more; `false`: never. */
  withKeepAlive(options: KeepAliveOptions | false): this {
    if (options !== false) {
      checkDuration("withKeepAlive: idleMs", options.idleMs);
      checkDuration("withKeepAlive: timeoutMs", options.timeoutMs);
    }
    return this.#set({ keepAlive: options });
  }

  /** Opens sockets in another way. The socket has to inflate payloads itself, in order. */
  withWSFn(createWSFn: WebSocketFactory): this {
    return this.#set({ createWSFn });
  }

  /** The compression for the server's messages; gzip by default, and where there is no Brotli. */
  withCompression(compression: Compression): this {
    return this.#set({ compression });
  }

  /** Sent to the server, which ignores it in the protocols of this client. */
  withLightMode(lightMode: boolean): this {
    return this.#set({ lightMode });
  }

  /** Whether rows and results are sent only when they are durable. If not called, the server decides: it does. */
  withConfirmedReads(confirmedReads: boolean): this {
    return this.#set({ confirmedReads });
  }

  /**
   * Whether a lost connection is restored, with its subscriptions and cache. By default it is, unless `onDisconnect`
   * is registered: then the application is told and can connect anew. With `withReconnect()` both work together, the
   * first attempt is repeated as well, and `onDisconnect` is called only when there will be no further attempt.
   */
  withReconnect(options: ReconnectOptions | boolean = true): this {
    this.#reconnect =
      options === false ? false : { ...(options === true ? {} : options), retriesFirstAttempt: true };
    return this;
  }

  /** @internal Restores lost connections unless `withReconnect` was called. */
  withReconnectByDefault(): this {
    this.#reconnect ??= { retriesFirstAttempt: true };
    return this;
  }

  /** The number of requests that may wait while there is no connection; further ones are rejected. Default: 10 000. */
  withQueuedRequestsMax(requests: number): this {
    return this.#set({ queuedRequestsMax: requests });
  }

  /** Called once, when the connection is there for the first time. */
  onConnect(callback: (connection: DbConnection, identity: Identity, token: string) => void): this {
    return this.#on("connect", callback);
  }

  /** Called when the connection cannot be made. */
  onConnectError(
    callback: (ctx: ErrorContextInterface<RemoteModuleOf<DbConnection>>, error: Error) => void,
  ): this {
    return this.#on("connectError", callback);
  }

  /** Called when the connection has ended for good, with the error if one ended it. */
  onDisconnect(
    callback: (ctx: ErrorContextInterface<RemoteModuleOf<DbConnection>>, error?: Error | undefined) => void,
  ): this {
    return this.#on("disconnect", callback);
  }

  /** Called when the connection was lost, or an attempt to restore it failed, and another attempt is planned. */
  onReconnecting(
    callback: (ctx: ErrorContextInterface<RemoteModuleOf<DbConnection>>, info: ReconnectingInfo) => void,
  ): this {
    return this.#on("reconnecting", callback);
  }

  /** Called when the connection is restored, its subscriptions are back, and the cache is up to date. */
  onReconnect(callback: (connection: DbConnection) => void): this {
    return this.#on("reconnect", callback);
  }

  getUri(): string {
    return this.#uri?.href ?? "";
  }

  /** @internal What tells one session from another, beside server and database. */
  sessionSettings(): { token: string | TokenSource | undefined; settings: string } {
    const { token, compression, confirmedReads } = this.#settings;
    return { token, settings: `${compression} ${confirmedReads}` };
  }

  getModuleName(): string {
    return this.#nameOrAddress;
  }

  /** Starts a connection. */
  build(): DbConnection {
    const uri = this.#uri;
    const nameOrAddress = this.#nameOrAddress;
    if (!uri) throw new ClientError("LC0847", "call withUri before build");
    if (!nameOrAddress) {
      throw new ClientError("LC0847", "call withDatabaseName before build");
    }
    const handlesLoss = this.#emitter.has("disconnect");
    return this.#construct({
      ...this.#settings,
      uri,
      nameOrAddress,
      remoteModule: this.#remoteModule,
      reconnect: (this.#reconnect ?? (handlesLoss ? undefined : {})) || undefined,
    });
  }
}

function parseUrl(uri: string | URL): URL | undefined {
  try {
    // Browsers of 2023 have no `URL.canParse`.
    return new URL(uri);
  } catch {
    return undefined;
  }
}

/** A builder of connections to any module. */
export type AnyConnectionBuilder = DbConnectionBuilder<any>;
