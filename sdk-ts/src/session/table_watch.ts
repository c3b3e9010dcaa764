// The rows of a query for frameworks that are told of changes: Vue, Svelte, Solid, Angular.

import { toSql } from "../client";
import type { AnyConnection } from "../client/db_connection_impl";
import { KEEP_ALIVE_MS, notConnected, notWanted, type ResultSnapshot, resultOf } from "./query_results";
import { hasRowCallbacks, listenToRows, type TableOptions } from "./row_events";

/** Runs publications: at once, or together with others. */
export type Schedule = (publish: () => void) => void;

/**
 * Publishes all that a message of the server changed in one step of a framework which would otherwise render after each part,
 * so that no component sees one table after and another one before a transaction.
 */
export function publishTogether(batch: (work: () => void) => void): Schedule {
  const due = new Set<() => void>();
  const flush = (): void => {
    const all = [...due];
    due.clear();
    batch(() => {
      for (const publish of all) publish();
    });
  };
  return (publish) => {
    if (due.size === 0) queueMicrotask(flush);
    due.add(publish);
  };
}

interface Waiting {
  resolve(): void;
  reject(error: Error): void;
}

/** Follows a query on the connection that there is. */
export class TableWatch {
  readonly #options: TableOptions<any>;
  readonly #onChange: (result: ResultSnapshot) => void;
  readonly #schedule: Schedule;
  #result = notConnected;
  #published: ResultSnapshot | undefined;
  #connection: AnyConnection | null | undefined;
  #sql: string | undefined;
  #stops: (() => void)[] = [];
  #waiting: Waiting[] = [];

  constructor(
    options: TableOptions<any> | undefined,
    onChange: (result: ResultSnapshot) => void,
    schedule: Schedule = (publish) => publish(),
  ) {
    this.#options = options ?? {};
    this.#onChange = onChange;
    this.#schedule = schedule;
  }

  get snapshot(): ResultSnapshot {
    return this.#result.snapshot();
  }

  /** Without a query, nothing is wanted. The same connection and query again change nothing. */
  follow(connection: AnyConnection | null, query: unknown): void {
    const sql = query === undefined ? undefined : toSql(query as never);
    if (this.#connection === connection && this.#sql === sql) return;
    this.#stop();
    this.#connection = connection;
    this.#sql = sql;
    this.#result =
      sql === undefined ? notWanted : connection ? resultOf(connection, sql, query) : notConnected;
    const publish = (): void => this.#publish();
    this.#stops.push(
      this.#result.subscribe(() => this.#schedule(publish), this.#options.keepAliveMs ?? KEEP_ALIVE_MS),
    );
    const isListening = sql !== undefined && hasRowCallbacks(this.#options);
    const stop = isListening && listenToRows(connection, query, () => this.#options);
    if (stop) this.#stops.push(stop);
    publish();
  }

  end(): void {
    this.#stop();
    this.#connection = undefined;
    this.#waiting = [];
  }

  /** Resolves when the rows are there, and rejects if the server refuses the query. On a server there is nothing to wait for. */
  whenReady(): Promise<void> {
    const [, isReady] = this.snapshot;
    if (isReady || typeof document === "undefined") return Promise.resolve();
    return new Promise((resolve, reject) => this.#waiting.push({ resolve, reject }));
  }

  #stop(): void {
    for (const stop of this.#stops.splice(0)) stop();
  }

  #publish(): void {
    const { snapshot } = this;
    // The component may be gone, or look at something else by now.
    if (this.#stops.length === 0 || snapshot === this.#published) return;
    this.#published = snapshot;
    this.#onChange(snapshot);
    const [, isReady] = snapshot;
    if (!isReady && !snapshot.error) return;
    for (const { resolve, reject } of this.#waiting.splice(0)) {
      if (snapshot.error) reject(snapshot.error);
      else resolve();
    }
  }
}
