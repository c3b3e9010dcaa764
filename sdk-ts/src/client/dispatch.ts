// Messages of the server: decoded, applied to the cache, and reported to callbacks and promises, in this order.

import { BinaryReader, InternalError, SenderError, Timestamp } from "../core";
import type { CacheUpdater } from "./cache_updater";
import type { PendingRequests } from "./calls";
import { ClientError, toError } from "./client_error";
import type { Contexts, EventContext } from "./event_context";
import type { Lifecycle } from "./lifecycle";
import { stdbLogger } from "./logger";
import type { Steps } from "./scheduling";
import type { SubscriptionRegistry } from "./subscription_registry";
import {
  type ReducerOutcome,
  readServerMessage,
  type ServerMessage,
  type SubscribeSetResult,
  type TableRows,
} from "./wire";

type Message<Tag extends ServerMessage["tag"]> = ServerMessage & { tag: Tag };

export class Dispatch {
  readonly #lifecycle: Lifecycle;
  readonly #updater: CacheUpdater;
  readonly #pending: PendingRequests;
  readonly #subscriptions: SubscriptionRegistry;
  readonly #contexts: Contexts;

  constructor(
    lifecycle: Lifecycle,
    updater: CacheUpdater,
    pending: PendingRequests,
    subscriptions: SubscriptionRegistry,
    contexts: Contexts,
  ) {
    this.#lifecycle = lifecycle;
    this.#updater = updater;
    this.#pending = pending;
    this.#subscriptions = subscriptions;
    this.#contexts = contexts;
  }

  /** The work that a payload makes. */
  *receive(data: Uint8Array): Steps {
    try {
      const reader = new BinaryReader(data);
      if (reader.remaining === 0) throw new ClientError("LC0840", "the server sent an empty message");
      while (reader.remaining > 0) {
        const message = readServerMessage(reader);
        if (!this.#answer(message)) yield* this.#process(message);
        if (reader.remaining > 0) yield;
      }
    } catch (thrown) {
      const error = thrown instanceof ClientError ? thrown : notDecoded(thrown);
      stdbLogger("error", `${error.message}; see ${error.docsUrl}`);
      this.#lifecycle.fail(error);
    }
  }

  /** Answers that change no rows need no steps; most calls end here. Returns whether it was one. */
  #answer(message: ServerMessage): boolean {
    if (message.tag === "ReducerResult") {
      const { outcome } = message;
      if (outcome.tag === "Ok" && outcome.value.transactionUpdate.querySets.length > 0) return false;
      const request = this.#pending.take(message.requestId);
      if (outcome.tag === "Err")
        request?.reject(new SenderError(new BinaryReader(outcome.value).readString()));
      else if (outcome.tag === "InternalError") request?.reject(new InternalError(outcome.value));
      else request?.resolve(undefined);
      return true;
    }
    if (message.tag === "ProcedureResult") {
      const request = this.#pending.take(message.requestId);
      if ("value" in message.result) request?.resolve(message.result.value);
      else request?.reject(new InternalError(message.result.error));
      return true;
    }
    return false;
  }

  *#process(message: ServerMessage): Steps {
    switch (message.tag) {
      case "InitialConnection":
        if (!this.#lifecycle.greeted(message)) yield* this.#resynced();
        break;
      case "SubscribeApplied":
        if (!this.#subscriptions.retriesOneByOne(message.results)) {
          for (const result of message.results) yield* this.#subscribeAnswered(result);
        }
        yield* this.#resynced();
        break;
      case "UnsubscribeApplied":
        yield* this.#unsubscribeApplied(message);
        break;
      case "SubscriptionError":
        this.#refused(message.querySetId, message.error);
        // The message does not tell which rows the set had. A new connection sorts it out; without one the cache would be wrong.
        this.#lifecycle.fail(
          new ClientError("LC0851", `the server gave up on a subscription: ${message.error}`),
        );
        break;
      case "TransactionUpdate":
        yield* this.#transaction(message.tables);
        break;
      case "OneOffQueryResult":
        yield* this.#queryAnswered(message);
        break;
      case "ReducerResult":
        if (message.outcome.tag === "Ok") yield* this.#reducerDone(message, message.outcome);
    }
  }

  *#transaction(tables: readonly TableRows[]): Steps {
    const changes = yield* this.#updater.apply(tables);
    yield* this.#updater.announce(this.#contexts.of("Transaction"), changes);
  }

  /** A call of this connection changed rows: they are announced before its promise is resolved. */
  *#reducerDone(
    { requestId, timestampMicros }: Message<"ReducerResult">,
    outcome: ReducerOutcome & { tag: "Ok" },
  ): Steps {
    const request = this.#pending.take(requestId);
    const changes = yield* this.#updater.apply(outcome.value.transactionUpdate.querySets);
    let context: EventContext;
    if (request) {
      const reducer = { name: request.name, args: request.args ?? {} };
      context = this.#contexts.ofReducer({ timestamp: new Timestamp(timestampMicros), outcome, reducer });
    } else {
      context = this.#contexts.of("Transaction");
    }
    yield* this.#updater.announce(context, changes);
    request?.resolve(undefined);
  }

  *#queryAnswered({ requestId, result }: Message<"OneOffQueryResult">): Steps {
    const request = this.#pending.take(requestId);
    if (!request) return;
    if (result.error !== undefined) {
      request.reject(serverError(result.error));
      return;
    }
    try {
      request.resolve(yield* this.#updater.decode(result.tables));
    } catch (error) {
      request.reject(error);
    }
  }

  // Subscriptions ------------------------------------------------------------------------------------------------

  *#subscribeAnswered({ querySetId, error, tables }: SubscribeSetResult): Steps {
    if (error !== undefined) {
      this.#refused(querySetId, error);
      return;
    }
    if (this.#subscriptions.settle(querySetId)) {
      yield* this.#updater.apply(tables);
      return;
    }
    const subscription = this.#subscriptions.get(querySetId);
    if (!subscription) {
      stdbLogger("warn", () => `rows of the unknown query set ${querySetId} are ignored`);
      return;
    }
    const changes = yield* this.#updater.apply(tables);
    // An `unsubscribe` may be on its way already; its answer ends it.
    if (subscription.state === "waiting") subscription.state = "applied";
    const context = this.#contexts.of("SubscribeApplied");
    subscription.emitter.emit("applied", context);
    yield* this.#updater.announce(context, changes);
  }

  #refused(querySetId: number, text: string): void {
    const error = serverError(text);
    this.#subscriptions.settle(querySetId);
    const subscription = this.#subscriptions.take(querySetId);
    subscription?.emitter.emit("error", this.#contexts.ofError(error), error);
  }

  *#unsubscribeApplied({ querySetId, tables }: Message<"UnsubscribeApplied">): Steps {
    const changes = yield* this.#updater.apply(tables);
    const subscription = this.#subscriptions.take(querySetId);
    const context = this.#contexts.of("UnsubscribeApplied");
    subscription?.emitter.emit("end", context);
    yield* this.#updater.announce(context, changes);
  }

  /** After a reconnect, when the last subscription is answered, the cache is complete again. */
  *#resynced(): Steps {
    if (!this.#subscriptions.takeRestored()) return;
    const changes = yield* this.#updater.endResync();
    for (const { emitter } of this.#subscriptions.takeLost()) {
      emitter.emit("end", this.#contexts.of("UnsubscribeApplied"));
    }
    yield* this.#updater.announce(this.#contexts.of("SubscribeApplied"), changes);
    this.#lifecycle.restored();
  }
}

/** An error whose text is the server's. */
function serverError(text: string): ClientError {
  return new ClientError("LC0836", text, { isServerText: true });
}

function notDecoded(thrown: unknown): ClientError {
  const text = `a message of the server cannot be decoded: ${toError(thrown).message}`;
  return new ClientError("LC0840", text, { cause: thrown });
}
