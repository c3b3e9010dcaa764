// Results of queries that components share: one subscription for each query of a connection, while somebody uses it.

import {
  ClientError,
  getQueryAccessorName,
  getQueryWhereClause,
  type SubscriptionHandleImpl,
} from "../client";
import type { AnyConnection } from "../client/db_connection_impl";
import { RowView } from "../client/row_views";
import { cacheOf } from "../client/table_cache";
import type { AnyRow } from "../core/untyped";

/** Rows, and whether they have arrived. */
export type ResultSnapshot = readonly [rows: readonly AnyRow[], isReady: boolean];

/** What a component reads and listens to. */
export interface ResultStore {
  subscribe(listener: () => void): () => void;
  snapshot(): ResultSnapshot;
}

const NO_ROWS: readonly never[] = [];
const NOT_CONNECTED: ResultSnapshot = [NO_ROWS, false];
const NOT_WANTED: ResultSnapshot = [NO_ROWS, true];

function constant(snapshot: ResultSnapshot): ResultStore {
  return { subscribe: () => () => {}, snapshot: () => snapshot };
}

/** Of a hook below a provider that has no connection yet. */
export const notConnected: ResultStore = /* @__PURE__ */ constant(NOT_CONNECTED);
/** Of a hook that is not enabled: as in the published package, there is nothing to wait for. */
export const notWanted: ResultStore = /* @__PURE__ */ constant(NOT_WANTED);

class QueryResult implements ResultStore {
  readonly #connection: AnyConnection;
  readonly #sql: string;
  readonly #view: RowView;
  readonly #listeners = new Set<() => void>();
  #handle: SubscriptionHandleImpl<any> | undefined;
  #closing: ReturnType<typeof setTimeout> | undefined;
  #isReady = false;
  #snapshot: ResultSnapshot | undefined;

  constructor(connection: AnyConnection, sql: string, query: unknown) {
    const name = getQueryAccessorName(query);
    const table = cacheOf(connection.db[name]);
    if (!table) throw new ClientError("LC0841", `the bindings have no table ${name}; generate them again`);
    this.#connection = connection;
    this.#sql = sql;
    this.#view = new RowView(table, getQueryWhereClause(query));
  }

  readonly subscribe = (listener: () => void): (() => void) => {
    // The same listener may come twice.
    const entry = (): void => listener();
    this.#listeners.add(entry);
    clearTimeout(this.#closing);
    if (this.#listeners.size === 1 && !this.#handle) this.#start();
    return () => {
      this.#listeners.delete(entry);
      // React mounts components twice in strict mode, and the next page may want the same rows.
      if (this.#listeners.size === 0) this.#closing = setTimeout(() => this.#stop());
    };
  };

  readonly snapshot = (): ResultSnapshot => {
    const { rows } = this.#view;
    if (this.#snapshot?.[0] !== rows || this.#snapshot[1] !== this.#isReady) {
      this.#snapshot = [rows, this.#isReady];
    }
    return this.#snapshot!;
  };

  #start(): void {
    this.#view.attach(() => this.#changed());
    const handle = this.#connection
      .subscriptionBuilder()
      .onApplied(() => {
        if (this.#handle !== handle) return;
        this.#isReady = true;
        this.#changed();
      })
      .onError(({ event }) => {
        if (this.#handle === handle && this.#isReady) {
          this.#isReady = false;
          this.#changed();
        }
        // That the connection is over is told by the provider.
        if (event instanceof ClientError && event.code === "LC0834") return;
        console.error(`useTable: ${this.#sql}:`, event);
      })
      .subscribe(this.#sql);
    this.#handle = handle;
  }

  #stop(): void {
    const handle = this.#handle;
    this.#handle = undefined;
    this.#isReady = false;
    this.#view.detach();
    if (handle && !handle.isEnded()) handle.unsubscribe();
  }

  #changed(): void {
    for (const listener of [...this.#listeners]) listener();
  }
}

/** Results by connection and SQL; one that no component holds may be forgotten. */
const results = /* @__PURE__ */ new WeakMap<AnyConnection, Map<string, WeakRef<QueryResult>>>();

/** The result of a query, shared by all who ask for it. */
export function resultOf(connection: AnyConnection, sql: string, query: unknown): ResultStore {
  let known = results.get(connection);
  if (!known) results.set(connection, (known = new Map()));
  let result = known.get(sql)?.deref();
  if (!result) {
    for (const [text, reference] of known) if (!reference.deref()) known.delete(text);
    result = new QueryResult(connection, sql, query);
    known.set(sql, new WeakRef(result));
  }
  return result;
}
