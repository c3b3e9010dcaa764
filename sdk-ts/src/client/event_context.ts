// The contexts of callbacks: the connection's parts, and the event.

import type { ConnectionId, Identity, InferTypeOfParams, Timestamp } from "../core";
import type { ClientDbView } from "./client_table";
import type { AnyConnection } from "./db_connection_impl";
import type { ReducerEventInfo, ReducersView } from "./reducers";
import type { AnyModule, AnyReducer } from "./remote_module";
import type { SubscriptionBuilderImpl } from "./subscriptions";
import type { ReducerOutcome } from "./wire";

/** The outcome of a call of this connection. */
export type ReducerEvent<Reducer extends ReducerEventInfo> = {
  /** When the reducer was called. */
  timestamp: Timestamp;
  outcome: ReducerOutcome;
  reducer: Reducer;
};

/** Why rows changed. */
export type Event<Reducer extends ReducerEventInfo> = {
  /** Different for each event of a connection. */
  id: string;
} & (
  | { tag: "Reducer"; value: ReducerEvent<Reducer> }
  | { tag: "SubscribeApplied" }
  | { tag: "UnsubscribeApplied" }
  | { tag: "Error"; value: Error }
  | { tag: "Transaction" }
);

/** The parts of a connection that callbacks work with. */
export interface DbContext<RemoteModule extends AnyModule> {
  db: ClientDbView<RemoteModule>;
  reducers: ReducersView<RemoteModule>;
  isActive: boolean;
  subscriptionBuilder(): SubscriptionBuilderImpl<RemoteModule>;
  disconnect(): void;
}

type InfoOf<Reducer extends AnyReducer> = ReducerEventInfo<
  Reducer["name"],
  InferTypeOfParams<Reducer["params"]>
>;

type ReducerInfoOf<RemoteModule extends AnyModule> = InfoOf<RemoteModule["reducers"][number]>;

/** Of `onInsert`, `onUpdate` and `onDelete`. */
export interface EventContextInterface<RemoteModule extends AnyModule> extends DbContext<RemoteModule> {
  event: Event<ReducerInfoOf<RemoteModule>>;
}

/** Of callbacks for calls of a reducer. */
export interface ReducerEventContextInterface<RemoteModule extends AnyModule>
  extends DbContext<RemoteModule> {
  event: ReducerEvent<ReducerInfoOf<RemoteModule>>;
}

/** Of callbacks for calls of a procedure. */
export interface ProcedureEventContextInterface<RemoteModule extends AnyModule>
  extends DbContext<RemoteModule> {}

/** Of `onApplied` and `unsubscribeThen`. */
export interface SubscriptionEventContextInterface<RemoteModule extends AnyModule>
  extends DbContext<RemoteModule> {}

/** Of `onError`, `onConnectError` and `onDisconnect`. */
export interface ErrorContextInterface<RemoteModule extends AnyModule> extends DbContext<RemoteModule> {
  event?: Error;
}

type ContextEvent = Event<ReducerEventInfo> | Error | undefined;

/** What all contexts of a connection have in common: applications take these two out of a context and call them by themselves. */
interface ConnectionParts {
  connection: AnyConnection;
  subscriptionBuilder: AnyConnection["subscriptionBuilder"];
  disconnect: () => void;
}

/** The context of every callback. */
export class EventContext {
  readonly #connection: AnyConnection;
  readonly subscriptionBuilder: AnyConnection["subscriptionBuilder"];
  readonly disconnect: () => void;

  constructor(
    { connection, subscriptionBuilder, disconnect }: ConnectionParts,
    readonly event: ContextEvent,
  ) {
    this.#connection = connection;
    this.subscriptionBuilder = subscriptionBuilder;
    this.disconnect = disconnect;
  }

  get db(): AnyConnection["db"] {
    return this.#connection.db;
  }

  get reducers(): AnyConnection["reducers"] {
    return this.#connection.reducers;
  }

  get procedures(): AnyConnection["procedures"] {
    return this.#connection.procedures;
  }

  get identity(): Identity | undefined {
    return this.#connection.identity;
  }

  get connectionId(): ConnectionId {
    return this.#connection.connectionId;
  }

  get isActive(): boolean {
    return this.#connection.isActive;
  }
}

/** Makes the contexts of a connection, each with an event of its own. Events are plain objects: applications keep and copy them. */
export class Contexts {
  readonly #parts: ConnectionParts;
  #nextNumber = 0;
  /** The connection id whose beginning is in `#prefix`. */
  #prefixOf: ConnectionId | undefined;
  #prefix = "";

  constructor(connection: AnyConnection) {
    this.#parts = {
      connection,
      subscriptionBuilder: () => connection.subscriptionBuilder(),
      disconnect: () => connection.disconnect(),
    };
  }

  of(tag: "SubscribeApplied" | "UnsubscribeApplied" | "Transaction"): EventContext {
    return new EventContext(this.#parts, { id: this.#nextId(), tag });
  }

  ofReducer(value: ReducerEvent<ReducerEventInfo>): EventContext {
    return new EventContext(this.#parts, { id: this.#nextId(), tag: "Reducer", value });
  }

  ofError(error: Error | undefined): EventContext {
    return new EventContext(this.#parts, error);
  }

  #nextId(): string {
    const { connectionId } = this.#parts.connection;
    if (this.#prefixOf !== connectionId) {
      this.#prefixOf = connectionId;
      this.#prefix = `${connectionId.toHexString().slice(0, 8)}-`;
    }
    return this.#prefix + this.#nextNumber++;
  }
}
