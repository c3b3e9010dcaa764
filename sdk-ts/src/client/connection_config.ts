// The configuration that a builder gives a connection.

import type { Identity } from "../core";
import type { TokenSource, UnauthorizedHandler } from "./credentials";
import type { EventEmitter } from "./event_emitter";
import type { ReconnectOptions } from "./reconnect";
import type { AnyModule } from "./remote_module";
import type { KeepAliveOptions } from "./silence_watch";
import type { Compression, WebSocketFactory } from "./socket";

/** The events of a builder's callbacks. */
export type ConnectionEvent = "connect" | "disconnect" | "connectError" | "reconnecting" | "reconnect";

/** The configuration of a connection. */
export type DbConnectionConfig<RemoteModule extends AnyModule> = {
  uri: URL;
  nameOrAddress: string;
  identity?: Identity;
  token?: string | TokenSource;
  onUnauthorized?: UnauthorizedHandler;
  emitter: EventEmitter<ConnectionEvent>;
  createWSFn: WebSocketFactory;
  compression: Compression;
  lightMode: boolean;
  confirmedReads?: boolean;
  remoteModule: RemoteModule;
  /** Without it a lost connection stays lost. */
  reconnect?: ReconnectOptions & { retriesFirstAttempt?: boolean };
  /** Requests that may wait while there is no connection. Default: 10 000. */
  queuedRequestsMax?: number;
  /** Time for an attempt to connect, in milliseconds. Default: 30 000. */
  connectTimeoutMs?: number;
  /** Time for each call, in milliseconds. Default: no limit. */
  callTimeoutMs?: number;
  /** How a dead connection is noticed; `false`: not at all. */
  keepAlive?: KeepAliveOptions | false;
};
