// Rows in the cache of TanStack Query, kept up to date while they are in it.

import type { Query as CachedQuery, QueryClient, QueryFunction, QueryKey } from "@tanstack/react-query";
import { ClientError, type Query } from "../client";
import type { AnyConnection } from "../client/db_connection_impl";
import type { ResultSnapshot } from "../session/query_results";
import { TableWatch } from "../session/table_watch";
import { queryOf } from "./query_options";

interface Followed {
  readonly query: Query<any>;
  readonly table: TableWatch;
}

const isServer = (): boolean => typeof document === "undefined";

/**
 * Fills the cache of a `QueryClient` and keeps its rows up to date until they are dropped from it (`gcTime`).
 *
 * ```ts
 * const rows = new SpacetimeDBQueryClient();
 * const queryClient = new QueryClient({ defaultOptions: { queries: { queryFn: rows.queryFn } } });
 * rows.connect(queryClient);
 * DbConnection.builder().onConnect((connection) => rows.setConnection(connection));
 * ```
 */
export class SpacetimeDBQueryClient {
  #connection: AnyConnection | null = null;
  #queryClient: QueryClient | undefined;
  #stopEvents: (() => void) | undefined;
  /** By SQL. */
  readonly #followed = new Map<unknown, Followed>();

  /** The connection for all queries, those that wait included. */
  setConnection(connection: AnyConnection): void {
    this.#connection = connection;
    for (const { table, query } of this.#followed.values()) table.follow(connection, query);
  }

  /** The cache to fill. Rows that a server put into it are followed as soon as a component uses them. */
  connect(queryClient: QueryClient): void {
    this.#stopEvents?.();
    this.#queryClient = queryClient;
    const cache = queryClient.getQueryCache();
    const followIfUsed = (cached: CachedQuery): void => {
      const isUsed = cached.isActive() && !cached.isDisabled();
      if (isUsed && cached.state.data !== undefined && !isServer()) this.#follow(cached.queryKey);
    };
    for (const cached of cache.getAll()) followIfUsed(cached);
    this.#stopEvents = cache.subscribe(({ type, query }) => {
      if (type === "removed") this.#forget(query.queryKey);
      else if (type === "observerAdded" || type === "observerOptionsUpdated") followIfUsed(query);
    });
  }

  /** For `queries.queryFn` of the default options. On a server it asks once; there, a connection has to be set before. */
  queryFn: QueryFunction<any[], QueryKey> = async ({ queryKey }) => {
    const query = queryOf(queryKey);
    if (!query) throw new ClientError("LC0857", `${JSON.stringify(queryKey)} is no key of spacetimeDBQuery`);
    if (isServer()) {
      if (!this.#connection)
        throw new ClientError("LC0857", "on a server, call setConnection before a query");
      return this.#connection.oneOffQuery(query);
    }
    // Another try after an error is another subscription.
    if (this.#followed.get(queryKey[2])?.table.snapshot.error) this.#forget(queryKey);
    const table = this.#follow(queryKey)!;
    await table.whenReady();
    return table.snapshot[0] as any[];
  };

  /** Forgets the connection and follows nothing any more. */
  disconnect(): void {
    this.#stopEvents?.();
    this.#connection = null;
    for (const { table } of this.#followed.values()) table.end();
    this.#followed.clear();
  }

  #follow(queryKey: QueryKey): TableWatch | undefined {
    const sql = queryKey[2];
    const query = queryOf(queryKey);
    const known = this.#followed.get(sql)?.table;
    if (known || !query) return known;
    // The cache has waited for `gcTime` when it drops a query.
    const table = new TableWatch({ keepAliveMs: 0 }, (result) => this.#publish(queryKey, result));
    this.#followed.set(sql, { table, query });
    table.follow(this.#connection, query);
    return table;
  }

  #forget([, , sql]: QueryKey): void {
    this.#followed.get(sql)?.table.end();
    this.#followed.delete(sql);
  }

  #publish(queryKey: QueryKey, result: ResultSnapshot): void {
    const cached = this.#queryClient?.getQueryCache().find({ queryKey });
    // The first rows, or why there are none, are the outcome of `queryFn`.
    if (!cached || cached.state.data === undefined) return;
    if (result.error) cached.setState({ ...cached.state, status: "error", error: result.error });
    else if (result[1]) this.#queryClient?.setQueryData(queryKey, result[0]);
  }
}
