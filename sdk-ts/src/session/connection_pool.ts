// Connections that components share: one for each session, which is a server, a database and a token; closed when it
// is unused, and replaced when it is dead.

import { ConnectionId, type Identity, type TokenSource } from "../client";
import type { AnyConnectionBuilder } from "../client/db_connection_builder";
import type { AnyConnection } from "../client/db_connection_impl";
import { reconnectDelayMs } from "../client/reconnect";

/** State of the connection of a provider. */
export interface ConnectionState {
  /** Whether the server has answered and the connection has not been lost since. */
  isActive: boolean;
  /** Why there is no connection, while there is none. */
  connectionError?: Error;
  connectionId: ConnectionId;
  /** The user of the connection, once the server has answered. */
  identity?: Identity;
  /** Credentials of `identity`. */
  token?: string;
  /** The connection, once the provider is mounted. It stays the same when it is restored after a loss. */
  getConnection<DbConnection extends AnyConnection = AnyConnection>(): DbConnection | null;
}

interface Entry {
  connection: AnyConnection | undefined;
  /** The configuration of the connection. */
  builder: AnyConnectionBuilder | undefined;
  state: ConnectionState;
  users: number;
  closing: ReturnType<typeof setTimeout> | undefined;
  /** Replacements in a row that did not come to a greeting. */
  failures: number;
  replacing: ReturnType<typeof setTimeout> | undefined;
  readonly listeners: Set<() => void>;
}

/** The state of a provider that is not mounted. */
export const DISCONNECTED: ConnectionState = {
  isActive: false,
  connectionId: /* @__PURE__ */ new ConnectionId(0n),
  getConnection: () => null,
};

const entries = /* @__PURE__ */ new Map<string, Entry>();

// Sessions ---------------------------------------------------------------------------------------------------------

/** The session of a provider's builder. Builders of the same session share a connection. */
export interface Session {
  readonly key: string;
  readonly place: string;
  readonly token: string | TokenSource | undefined;
}

const sourceIds = /* @__PURE__ */ new WeakMap<TokenSource, number>();
let sources = 0;

function idOf(source: TokenSource): number {
  let id = sourceIds.get(source);
  if (id === undefined) sourceIds.set(source, (id = ++sources));
  return id;
}

/** The session of a builder: `current` if it asks for nothing else. */
export function sessionOf(builder: AnyConnectionBuilder, current?: Session): Session {
  const { token, settings } = builder.sessionSettings();
  const place = `${builder.getUri()} ${builder.getModuleName()} ${settings}`;
  if (current && current.place === place && isSameToken(current, token)) return current;
  if (typeof token === "function") return { key: `${place} by ${idOf(token)}`, place, token };
  // An application that stores its first token asks with it for the session that it has already.
  for (const [key, { connection }] of entries) {
    const isSame = token !== undefined && connection?.token === token && !connection.isClosed;
    if (isSame && key.startsWith(`${place} `)) return { key, place, token };
  }
  return { key: `${place} ${token === undefined ? "anonymous" : `as ${token}`}`, place, token };
}

function isSameToken({ key, token: before }: Session, token: Session["token"]): boolean {
  if (before === token) return true;
  // Functions are often written inside of a component and are others at each rendering.
  if (typeof token === "function") return typeof before === "function";
  return token !== undefined && entries.get(key)?.connection?.token === token;
}

// Use --------------------------------------------------------------------------------------------------------------

function entryOf(key: string): Entry {
  let entry = entries.get(key);
  if (!entry) {
    entry = {
      connection: undefined,
      builder: undefined,
      state: DISCONNECTED,
      users: 0,
      closing: undefined,
      failures: 0,
      replacing: undefined,
      listeners: new Set(),
    };
    entries.set(key, entry);
  }
  return entry;
}

/** One more user of a connection, which is made for the first one. */
export function retain(key: string, builder: AnyConnectionBuilder): void {
  const entry = entryOf(key);
  entry.users += 1;
  clearTimeout(entry.closing);
  entry.closing = undefined;
  // One that has ended, by itself or by the application, is not handed out again.
  if (!entry.connection || entry.connection.isClosed) connect(entry, builder);
}

/**
 * A provider has got another builder for the same session: the application wants another try if its connection is dead.
 * Tries that fail come ever slower, since a builder made in a component is another one at each rendering.
 */
export function renew(key: string, builder: AnyConnectionBuilder): void {
  const entry = entryOf(key);
  const { connection } = entry;
  if (!connection?.isClosed || connection.isDisconnectRequested || entry.builder === builder) return;
  if (entry.replacing !== undefined || entry.users === 0) return;
  const replace = (): void => {
    entry.replacing = undefined;
    if (entry.connection === connection && entry.users > 0) connect(entry, builder);
  };
  const waitMs = entry.failures === 0 ? 0 : reconnectDelayMs(entry.failures, {});
  entry.failures += 1;
  entry.replacing = setTimeout(replace, waitMs);
}

/** Replaces the connection of a session for all its users: the application wants other credentials from the same source. */
export function replace(key: string, builder: AnyConnectionBuilder): void {
  const entry = entryOf(key);
  entry.connection?.disconnect();
  connect(entry, builder);
}

function connect(entry: Entry, builder: AnyConnectionBuilder): void {
  clearTimeout(entry.replacing);
  entry.replacing = undefined;
  const connection: AnyConnection = builder.withReconnectByDefault().build();
  entry.connection = connection;
  entry.builder = builder;
  connection.onStateChange(() => publish(entry, connection));
  publish(entry, connection);
}

/** One user less. Frameworks mount components anew (strict mode, hot reload), so the last one gets a moment to come back. */
export function release(key: string): void {
  const entry = entryOf(key);
  entry.users -= 1;
  if (entry.users > 0) return;
  entry.closing = setTimeout(() => {
    clearTimeout(entry.replacing);
    entry.connection?.disconnect();
    entry.connection = undefined;
    entry.state = DISCONNECTED;
    entries.delete(key);
  });
}

function publish(entry: Entry, connection: AnyConnection): void {
  if (entry.connection !== connection) return;
  const { isActive, identity, token, connectionId, connectionError } = connection;
  if (isActive) entry.failures = 0;
  // The application names the class of its bindings.
  const getConnection = (): any => connection;
  entry.state = { isActive, identity, token, connectionId, connectionError, getConnection };
  for (const listener of [...entry.listeners]) listener();
}

export function subscribe(key: string, listener: () => void): () => void {
  const { listeners } = entryOf(key);
  listeners.add(listener);
  return () => void listeners.delete(listener);
}

export function snapshot(key: string): ConnectionState {
  return entries.get(key)?.state ?? DISCONNECTED;
}
