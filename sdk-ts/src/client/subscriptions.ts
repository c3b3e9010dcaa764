// Subscriptions: what the application asks for, and how far the server is with it (chapter 05 §7).

import type { NamespacedQueryBuilder } from "../core";
import { isRowTypedQuery } from "../core";
import type { AnyRowQuery } from "../core/untyped_query";
import { ClientError } from "./client_error";
import type { DbConnectionImpl } from "./db_connection_impl";
import type { ErrorContextInterface, SubscriptionEventContextInterface } from "./event_context";
import { EventEmitter } from "./event_emitter";
import { stdbLogger } from "./logger";
import type { AnyModule } from "./remote_module";
import { type AnyQuery, sqlOf } from "./requests";

/** `closed`: the connection is over; the handle is told, the application hears of it by `onDisconnect`. */
export type SubscribeEvent = "applied" | "error" | "end" | "closed";

/**
 * `waiting`: not applied yet. `applied`: its rows are in the cache. `ending`: unsubscribed, but not confirmed.
 * `lost`: unsubscribed while there was no connection; its rows leave the cache with the next one.
 */
export type SubscriptionState = "waiting" | "applied" | "ending" | "lost";

export interface Subscription {
  readonly querySetId: number;
  readonly queries: string[];
  readonly emitter: EventEmitter<SubscribeEvent>;
  state: SubscriptionState;
  /** Whether the server of this connection knows it. */
  isSent: boolean;
}

/** Collects the callbacks of a subscription, then starts it. */
export class SubscriptionBuilderImpl<RemoteModule extends AnyModule> {
  readonly #db: DbConnectionImpl<RemoteModule>;
  #onApplied: ((ctx: SubscriptionEventContextInterface<RemoteModule>) => void) | undefined;
  #onError: ((ctx: ErrorContextInterface<RemoteModule>, error: Error) => void) | undefined;

  constructor(db: DbConnectionImpl<RemoteModule>) {
    this.#db = db;
  }

  /** Called when the rows are in the cache, before their `onInsert`. Once, also if the connection is lost later. */
  onApplied(
    callback: (ctx: SubscriptionEventContextInterface<RemoteModule>) => void,
  ): SubscriptionBuilderImpl<RemoteModule> {
    this.#onApplied = callback;
    return this;
  }

  /** Called when the server refuses a query, or gives up on it later. `ctx.event` is the error. */
  onError(
    callback: (ctx: ErrorContextInterface<RemoteModule>, error: Error) => void,
  ): SubscriptionBuilderImpl<RemoteModule> {
    this.#onError = callback;
    return this;
  }

  /** Subscribes to SQL texts or typed queries: `subscribe(tables => tables.user.where(row => row.online.eq(true)))`. */
  subscribe(query: AnyQuery | AnyQuery[]): SubscriptionHandleImpl<RemoteModule>;
  subscribe(
    queryFn: (tables: NamespacedQueryBuilder<RemoteModule>) => AnyRowQuery | AnyRowQuery[],
  ): SubscriptionHandleImpl<RemoteModule>;
  subscribe(
    what:
      | AnyQuery
      | AnyQuery[]
      | ((tables: NamespacedQueryBuilder<RemoteModule>) => AnyRowQuery | AnyRowQuery[]),
  ): SubscriptionHandleImpl<RemoteModule> {
    const queries =
      typeof what === "function" && !isRowTypedQuery(what)
        ? what(this.#db.getFromBuilder<RemoteModule>())
        : (what as AnyQuery | AnyQuery[]);
    const sql = (Array.isArray(queries) ? queries : [queries]).map(sqlOf);
    if (sql.length === 0) throw new ClientError("LC0849", "subscribe needs at least one query");
    return new SubscriptionHandleImpl(this.#db, sql, this.#onApplied, this.#onError);
  }

  /** Subscribes to every table of the bindings, and to every view that takes no arguments. */
  subscribeToAllTables(): void {
    const names = this.#db.allTableNames();
    this.subscribe(names.map((name) => `SELECT * FROM ${name}`));
  }
}

/** For a subscription without `onError`. */
function reportUnheard(_: unknown, error: Error): void {
  stdbLogger("warn", `a subscription failed, and it has no onError: ${error.message}`);
}

/** A running subscription. */
export class SubscriptionHandleImpl<RemoteModule extends AnyModule> {
  readonly #db: DbConnectionImpl<RemoteModule>;
  readonly #querySetId: number;
  readonly #emitter = new EventEmitter<SubscribeEvent>();
  #isActive = false;
  #isEnded = false;
  #isUnsubscribed = false;
  /** Whether it ended with the connection. */
  #isClosed = false;

  constructor(
    db: DbConnectionImpl<RemoteModule>,
    querySql: string[],
    onApplied?: (ctx: SubscriptionEventContextInterface<RemoteModule>) => void,
    onError?: (ctx: ErrorContextInterface<RemoteModule>, error: Error) => void,
  ) {
    this.#db = db;
    this.#emitter.on("applied", () => (this.#isActive = true));
    this.#emitter.on("error", () => this.#end());
    this.#emitter.on("end", () => this.#end());
    this.#emitter.on("closed", () => {
      this.#isClosed = true;
      this.#end();
    });
    if (onApplied) this.#emitter.on("applied", onApplied);
    this.#emitter.on("error", onError ?? reportUnheard);
    this.#querySetId = db.registerSubscription(this, this.#emitter, querySql);
  }

  #end(): void {
    this.#isActive = false;
    this.#isEnded = true;
  }

  /** Removes the queries from the subscribed set; rows that no other subscription has leave the cache. */
  unsubscribe(): void {
    this.#unsubscribe();
  }

  /** As `unsubscribe`; `onEnd` is called when the rows are gone. */
  unsubscribeThen(onEnd: (ctx: SubscriptionEventContextInterface<RemoteModule>) => void): void {
    this.#unsubscribe(onEnd);
  }

  #unsubscribe(onEnd?: (ctx: SubscriptionEventContextInterface<RemoteModule>) => void): void {
    if (this.#isClosed || this.#db.isDisconnectRequested) {
      // After `disconnect` there is nothing left to do.
      if (onEnd) this.#db.whenClosed(onEnd);
      return;
    }
    if (this.#isEnded || this.#isUnsubscribed) {
      throw new ClientError("LC0849", "this subscription has ended or was unsubscribed before");
    }
    this.#isUnsubscribed = true;
    if (onEnd) this.#emitter.on("end", onEnd);
    this.#db.unregisterSubscription(this.#querySetId);
  }

  /** Whether it ended: by `unsubscribe`, an error, or the end of the connection. */
  isEnded(): boolean {
    return this.#isEnded || this.#db.isDisconnectRequested;
  }

  /** Whether it was applied and has not ended. It stays active while the connection is being restored. */
  isActive(): boolean {
    return this.#isActive && !this.#db.isDisconnectRequested;
  }
}
