// Where and how to connect; `build` starts the connection.

import type { Identity } from "../core";
import { ClientError } from "./client_error";
import type {
  ConnectionEvent,
  DbConnectionConfig,
  DbConnectionImpl,
  RemoteModuleOf,
} from "./db_connection_impl";
import type { ErrorContextInterface } from "./event_context";
import { EventEmitter } from "./event_emitter";
import type { ReconnectingInfo, ReconnectOptions } from "./reconnect";
import { OrderedSocket, type WebSocketFactory } from "./socket";

export class DbConnectionBuilder<DbConnection extends DbConnectionImpl<any>> {
  readonly #remoteModule: RemoteModuleOf<DbConnection>;
  readonly #construct: (config: DbConnectionConfig<RemoteModuleOf<DbConnection>>) => DbConnection;
  readonly #emitter = new EventEmitter<ConnectionEvent>();
  #uri: URL | undefined;
  #nameOrAddress: string | undefined;
  #token: string | undefined;
  #createWSFn: WebSocketFactory = (args) => OrderedSocket.open(args);
  #compression: "gzip" | "brotli" | "none" = "gzip";
  #lightMode = false;
  #confirmedReads: boolean | undefined;
  #reconnect: DbConnectionConfig<any>["reconnect"] | false;
  #queuedRequestsMax: number | undefined;

  /** Not for applications: use `DbConnection.builder()` of the generated bindings. */
  constructor(
    remoteModule: RemoteModuleOf<DbConnection>,
    dbConnectionCtor: (config: DbConnectionConfig<RemoteModuleOf<DbConnection>>) => DbConnection,
  ) {
    this.#remoteModule = remoteModule;
    this.#construct = dbConnectionCtor;
  }

  /** Address of the server: `ws://`, `wss://`, `http://` or `https://`, with a path if it is behind one. */
  withUri(uri: string | URL): this {
    const url = URL.canParse(uri) ? new URL(uri) : undefined;
    if (!url || !/^(ws|http)s?:$/.test(url.protocol)) {
      throw new ClientError("LC0847", `withUri: ${JSON.stringify(uri)} is not like ws://host:port`);
    }
    this.#uri = url;
    return this;
  }

  /** Name or identity of the database. */
  withDatabaseName(nameOrAddress: string): this {
    this.#nameOrAddress = nameOrAddress;
    return this;
  }

  /** Credentials, as `onConnect` handed them out before. Without them the server makes a new identity. */
  withToken(token?: string): this {
    this.#token = token;
    return this;
  }

  /** Opens sockets in another way. The socket has to inflate payloads itself, in order. */
  withWSFn(createWSFn: WebSocketFactory): this {
    this.#createWSFn = createWSFn;
    return this;
  }

  /** What the server may compress with; the default is gzip. Where there is no Brotli, gzip is asked for instead. */
  withCompression(compression: "gzip" | "brotli" | "none"): this {
    this.#compression = compression;
    return this;
  }

  /** Sent to the server, which ignores it in the protocols of this client. */
  withLightMode(lightMode: boolean): this {
    this.#lightMode = lightMode;
    return this;
  }

  /** Whether rows and results are sent only when they are durable. If not called, the server decides: it does. */
  withConfirmedReads(confirmedReads: boolean): this {
    this.#confirmedReads = confirmedReads;
    return this;
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

  /** How many requests may wait while there is no connection; further ones are rejected. Default: 10 000. */
  withQueuedRequestsMax(requests: number): this {
    this.#queuedRequestsMax = requests;
    return this;
  }

  /** Called once, when the connection is there for the first time. */
  onConnect(callback: (connection: DbConnection, identity: Identity, token: string) => void): this {
    this.#emitter.on("connect", callback);
    return this;
  }

  /** Called when the connection cannot be made. */
  onConnectError(
    callback: (ctx: ErrorContextInterface<RemoteModuleOf<DbConnection>>, error: Error) => void,
  ): this {
    this.#emitter.on("connectError", callback);
    return this;
  }

  /** Called when the connection has ended for good, with the error if one ended it. */
  onDisconnect(
    callback: (ctx: ErrorContextInterface<RemoteModuleOf<DbConnection>>, error?: Error | undefined) => void,
  ): this {
    this.#emitter.on("disconnect", callback);
    return this;
  }

  /** Called when the connection was lost, or an attempt to restore it failed, and another attempt is planned. */
  onReconnecting(
    callback: (ctx: ErrorContextInterface<RemoteModuleOf<DbConnection>>, info: ReconnectingInfo) => void,
  ): this {
    this.#emitter.on("reconnecting", callback);
    return this;
  }

  /** Called when the connection is restored, its subscriptions are back, and the cache is up to date. */
  onReconnect(callback: (connection: DbConnection) => void): this {
    this.#emitter.on("reconnect", callback);
    return this;
  }

  getUri(): string {
    return this.#uri?.href ?? "";
  }

  getModuleName(): string {
    return this.#nameOrAddress ?? "";
  }

  /** Starts a connection. */
  build(): DbConnection {
    const uri = this.#uri;
    const nameOrAddress = this.#nameOrAddress;
    if (!uri)
      throw new ClientError("LC0847", "call withUri before build: the address of the server is missing");
    if (!nameOrAddress) {
      throw new ClientError(
        "LC0847",
        "call withDatabaseName before build: the name of the database is missing",
      );
    }
    const handlesLoss = this.#emitter.has("disconnect");
    return this.#construct({
      uri,
      nameOrAddress,
      token: this.#token,
      emitter: this.#emitter,
      createWSFn: this.#createWSFn,
      compression: this.#compression,
      lightMode: this.#lightMode,
      confirmedReads: this.#confirmedReads,
      remoteModule: this.#remoteModule,
      reconnect: (this.#reconnect ?? (handlesLoss ? undefined : {})) || undefined,
      queuedRequestsMax: this.#queuedRequestsMax,
    });
  }
}
