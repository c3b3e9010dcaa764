// Connections that components share: one for each server and database, closed when nobody uses it any more.

import { ConnectionId, type DbConnectionBuilder, type DbConnectionImpl, type Identity } from "../client";

/** State of the connection of a provider. */
export interface ConnectionState {
  isActive: boolean;
  identity?: Identity;
  token?: string;
  connectionId: ConnectionId;
  connectionError?: Error;
  /** The connection, once the provider is mounted. It stays the same when it is restored after a loss. */
  getConnection(): DbConnectionImpl<any> | null;
}

interface Entry {
  connection: DbConnectionImpl<any> | undefined;
  state: ConnectionState;
  users: number;
  closing: ReturnType<typeof setTimeout> | undefined;
  readonly listeners: Set<() => void>;
}

/** The state of a provider that is not mounted. */
export const DISCONNECTED: ConnectionState = {
  isActive: false,
  connectionId: /* @__PURE__ */ new ConnectionId(0n),
  getConnection: () => null,
};

const entries = new Map<string, Entry>();

export function keyOf(builder: DbConnectionBuilder<any>): string {
  return `${builder.getUri()} ${builder.getModuleName()}`;
}

function entryOf(key: string): Entry {
  let entry = entries.get(key);
  if (!entry) {
    entry = {
      connection: undefined,
      state: DISCONNECTED,
      users: 0,
      closing: undefined,
      listeners: new Set(),
    };
    entries.set(key, entry);
  }
  return entry;
}

/** One more user of a connection, which is made for the first one. */
export function retain(key: string, builder: DbConnectionBuilder<any>): void {
  const entry = entryOf(key);
  entry.users += 1;
  clearTimeout(entry.closing);
  entry.closing = undefined;
  // A connection that the application ended by itself is replaced by a new one.
  if (entry.connection && !entry.connection.isDisconnectRequested) return;
  const connection: DbConnectionImpl<any> = builder.withReconnectByDefault().build();
  entry.connection = connection;
  connection.onStateChange(() => publish(entry, connection));
  publish(entry, connection);
}

/** One user less. React mounts components twice in strict mode, so the last one gets a moment to come back. */
export function release(key: string): void {
  const entry = entryOf(key);
  entry.users -= 1;
  if (entry.users > 0) return;
  entry.closing = setTimeout(() => {
    entry.connection?.disconnect();
    entry.connection = undefined;
    entry.state = DISCONNECTED;
    entries.delete(key);
  });
}

function publish(entry: Entry, connection: DbConnectionImpl<any>): void {
  if (entry.connection !== connection) return;
  const { isActive, identity, token, connectionId, connectionError } = connection;
  entry.state = { isActive, identity, token, connectionId, connectionError, getConnection: () => connection };
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
