// Results of queries that components share: one subscription for each query of a connection, while it is used.

import {
  ClientError,
  getQueryAccessorName,
  getQueryWhereClause,
  type SubscriptionHandleImpl,
} from "../client";
import { noSuchTable } from "../client/client_error";
import type { AnyConnection } from "../client/db_connection_impl";
import { RowView } from "../client/row_views";
import { cacheOf } from "../client/table_cache";
import type { AnyRow } from "../core/untyped";

/** Rows, whether they have arrived, and why they will not. */
export type ResultSnapshot = [rows: readonly AnyRow[], isReady: boolean] & { readonly error?: Error };

/** The query result of a component. */
export interface ResultStore {
  /** Returns how to stop; the result is kept for `keepMs` after the last one has. */
  subscribe(listener: () => void, keepMs: number): () => void;
  snapshot(): ResultSnapshot;
}

/** Unused results that are kept for a while; with one more, the oldest goes at once. */
const KEPT_RESULTS_MAX = 8;

/** How long rows outlive their last component, unless it says so. */
export const KEEP_ALIVE_MS = 2000;

const NO_ROWS: readonly never[] = [];
const NOT_CONNECTED: ResultSnapshot = [NO_ROWS, false];
const NOT_WANTED: ResultSnapshot = [NO_ROWS, true];

function constant(snapshot: ResultSnapshot): ResultStore {
  return { subscribe: () => () => {}, snapshot: () => snapshot };
}

/** Of a query below a provider that has no connection yet. */
export const notConnected: ResultStore = /* @__PURE__ */ constant(NOT_CONNECTED);
/** Of a query that is not enabled: as in the published package, there is nothing to wait for. */
export const notWanted: ResultStore = /* @__PURE__ */ constant(NOT_WANTED);

/** The results of a connection. */
class Results {
  /** By SQL; one that no component holds may be forgotten. */
  readonly bySql = new Map<string, WeakRef<QueryResult>>();
  /** Unused ones that are kept for a while. */
  readonly kept = new Set<QueryResult>();
}

class QueryResult implements ResultStore {
  readonly #connection: AnyConnection;
  readonly #kept: Set<QueryResult>;
  readonly #sql: string;
  readonly #view: RowView;
  readonly #listeners = new Set<() => void>();
  #handle: SubscriptionHandleImpl<any> | undefined;
  #closing: ReturnType<typeof setTimeout> | undefined;
  #isReady = false;
  #error: Error | undefined;
  #snapshot: ResultSnapshot | undefined;

  constructor(connection: AnyConnection, kept: Set<QueryResult>, sql: string, query: unknown) {
    const name = getQueryAccessorName(query);
    const table = cacheOf(connection.db[name]);
    if (!table) throw noSuchTable(name);
    this.#connection = connection;
    this.#kept = kept;
    this.#sql = sql;
    this.#view = new RowView(table, getQueryWhereClause(query));
  }

  readonly subscribe = (listener: () => void, keepMs: number): (() => void) => {
    // The same listener may come twice.
    const entry = (): void => listener();
    this.#listeners.add(entry);
    clearTimeout(this.#closing);
    this.#kept.delete(this);
    // The first listener after an error tries anew.
    if (this.#listeners.size === 1 && this.#error) this.#stop();
    if (!this.#handle) this.#start();
    return () => {
      this.#listeners.delete(entry);
      if (this.#listeners.size === 0) this.#keep(keepMs);
    };
  };

  readonly snapshot = (): ResultSnapshot => {
    const { rows } = this.#view;
    const last = this.#snapshot;
    if (last?.[0] === rows && last[1] === this.#isReady && last.error === this.#error) return last;
    this.#snapshot = Object.assign([rows, this.#isReady] satisfies ResultSnapshot, { error: this.#error });
    return this.#snapshot;
  };

  /** Frameworks mount components anew, and the next page may want the same rows. */
  #keep(keepMs: number): void {
    this.#kept.add(this);
    this.#closing = setTimeout(() => this.#stop(), keepMs);
    const [oldest] = this.#kept;
    if (oldest && this.#kept.size > KEPT_RESULTS_MAX) oldest.#stop();
  }

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
        if (this.#handle === handle) {
          this.#isReady = false;
          this.#error = event;
          this.#changed();
        }
        // That the connection is over is told by the provider.
        if (event instanceof ClientError && event.code === "LC0834") return;
        console.error(`subscription: ${this.#sql}:`, event);
      })
      .subscribe(this.#sql);
    this.#handle = handle;
  }

  #stop(): void {
    const handle = this.#handle;
    clearTimeout(this.#closing);
    this.#kept.delete(this);
    this.#handle = undefined;
    this.#isReady = false;
    this.#error = undefined;
    this.#view.detach();
    if (handle && !handle.isEnded()) handle.unsubscribe();
  }

  #changed(): void {
    for (const listener of [...this.#listeners]) listener();
  }
}

const results = /* @__PURE__ */ new WeakMap<AnyConnection, Results>();

/** The result of a query, shared by all who ask for it. */
export function resultOf(connection: AnyConnection, sql: string, query: unknown): ResultStore {
  let known = results.get(connection);
  if (!known) results.set(connection, (known = new Results()));
  const { bySql, kept } = known;
  let result = bySql.get(sql)?.deref();
  if (!result) {
    for (const [text, reference] of bySql) if (!reference.deref()) bySql.delete(text);
    result = new QueryResult(connection, kept, sql, query);
    bySql.set(sql, new WeakRef(result));
  }
  return result;
}
