// The connection of a tree of components.

import * as React from "react";
import { ClientError, type DbConnectionBuilder } from "../client";
import type { AnyConnection } from "../client/db_connection_impl";
import {
  type ConnectionState,
  DISCONNECTED,
  release,
  renew,
  retain,
  type Session,
  sessionOf,
  snapshot,
  subscribe,
} from "../session/connection_pool";

export const SpacetimeDBContext: React.Context<ConnectionState | undefined> =
  /* @__PURE__ */ React.createContext<ConnectionState | undefined>(undefined);

/** The properties of a provider. */
export interface SpacetimeDBProviderProps<DbConnection extends AnyConnection> {
  /** Of the generated bindings: `DbConnection.builder().withUri(…).withDatabaseName(…)`. */
  connectionBuilder: DbConnectionBuilder<DbConnection>;
  children?: React.ReactNode;
}

/**
 * Connects the components below it. The connection is restored when it is lost. A builder with another server, database or
 * token is another connection; another builder with the same ones replaces a connection that has ended with an error.
 */
export function SpacetimeDBProvider<DbConnection extends AnyConnection>({
  connectionBuilder,
  children,
}: SpacetimeDBProviderProps<DbConnection>): React.JSX.Element {
  const [session, setSession] = React.useState<Session>(() => sessionOf(connectionBuilder));
  const wanted = sessionOf(connectionBuilder, session);
  if (wanted !== session) setSession(wanted);
  const { key } = wanted;
  const listen = React.useCallback((listener: () => void) => subscribe(key, listener), [key]);
  const state = React.useSyncExternalStore(
    listen,
    () => snapshot(key),
    () => DISCONNECTED,
  );
  // biome-ignore lint/correctness/useExhaustiveDependencies: another builder of the same session is for `renew`
  React.useEffect(() => {
    retain(key, connectionBuilder);
    return () => release(key);
  }, [key]);
  React.useEffect(() => renew(key, connectionBuilder), [key, connectionBuilder]);
  return React.createElement(SpacetimeDBContext.Provider, { value: state }, children);
}

/** State of the connection of the provider above. */
export function useSpacetimeDB(): ConnectionState {
  const state = React.useContext(SpacetimeDBContext);
  if (!state) throw new ClientError("LC0852", "this hook works below a SpacetimeDBProvider only");
  return state;
}
