// What callbacks get: the connection's parts, and why they are called.

import type { InferTypeOfParams, Timestamp } from "../core";
import type { ClientDbView } from "./client_table";
import type { DbConnectionImpl } from "./db_connection_impl";
import type { AnyReducer, ReducerEventInfo, ReducersView } from "./reducers";
import type { AnyModule } from "./remote_module";
import type { SubscriptionBuilderImpl } from "./subscriptions";
import type { ReducerOutcome } from "./wire";

/** How a call of this connection ended. */
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

/** An event that has not got its id yet. */
export type ContextEvent =
  | { tag: "Reducer"; value: ReducerEvent<ReducerEventInfo> }
  | { tag: "SubscribeApplied" | "UnsubscribeApplied" | "Transaction" };

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

export interface ReducerEventContextInterface<RemoteModule extends AnyModule>
  extends DbContext<RemoteModule> {
  event: ReducerEvent<ReducerInfoOf<RemoteModule>>;
}

export interface ProcedureEventContextInterface<RemoteModule extends AnyModule>
  extends DbContext<RemoteModule> {}

/** Of `onApplied` and `unsubscribeThen`. */
export interface SubscriptionEventContextInterface<RemoteModule extends AnyModule>
  extends DbContext<RemoteModule> {}

/** Of `onError`, `onConnectError` and `onDisconnect`. */
export interface ErrorContextInterface<RemoteModule extends AnyModule> extends DbContext<RemoteModule> {
  event?: Error;
}

/** The context of every callback. */
export class EventContext {
  readonly #connection: DbConnectionImpl<any>;
  readonly event: Event<ReducerEventInfo> | Error | undefined;

  constructor(connection: DbConnectionImpl<any>, event: Event<ReducerEventInfo> | Error | undefined) {
    this.#connection = connection;
    this.event = event;
  }

  get db(): unknown {
    return this.#connection.db;
  }

  get reducers(): unknown {
    return this.#connection.reducers;
  }

  get procedures(): unknown {
    return this.#connection.procedures;
  }

  get identity(): unknown {
    return this.#connection.identity;
  }

  get connectionId(): unknown {
    return this.#connection.connectionId;
  }

  get isActive(): boolean {
    return this.#connection.isActive;
  }

  subscriptionBuilder = (): SubscriptionBuilderImpl<any> => this.#connection.subscriptionBuilder();

  disconnect = (): void => this.#connection.disconnect();
}
