// The subscriptions of a connection across all its sockets: what the server was told, and what it has to be told again.

import type { EventEmitter } from "./event_emitter";
import type { Link, Outgoing } from "./link";
import type { SubscribeEvent, Subscription } from "./subscriptions";
import { encodeSubscribe, encodeUnsubscribe } from "./wire";

/** Query set of a message that is sent only to hear an answer. */
export const PROBE_QUERY_SET_ID = 0xffff_ffff;

export class SubscriptionRegistry {
  readonly #link: Link;
  readonly #nextRequestId: () => number;
  readonly #subscriptions = new Map<number, Subscription>();
  #nextQuerySetId = 0;
  /** Query sets whose rows are still awaited after a reconnect. */
  #awaited: Set<number> | undefined;

  constructor(link: Link, nextRequestId: () => number) {
    this.#link = link;
    this.#nextRequestId = nextRequestId;
  }

  get(querySetId: number): Subscription | undefined {
    return this.#subscriptions.get(querySetId);
  }

  /** The subscription with this id; it is forgotten. */
  take(querySetId: number): Subscription | undefined {
    const subscription = this.#subscriptions.get(querySetId);
    this.#subscriptions.delete(querySetId);
    return subscription;
  }

  add(emitter: EventEmitter<SubscribeEvent>, queries: string[]): Subscription {
    const querySetId = this.#nextQuerySetId++;
    const subscription: Subscription = { querySetId, queries, emitter, state: "waiting", isSent: false };
    this.#subscriptions.set(querySetId, subscription);
    this.#link.send(this.#subscribeMessage(subscription));
    return subscription;
  }

  /** Ends a subscription. Returns it if that is all: the server has never heard of it. */
  remove(querySetId: number): Subscription | undefined {
    const subscription = this.#subscriptions.get(querySetId);
    if (!subscription) return undefined;
    if (subscription.isSent) {
      subscription.state = "ending";
      const requestId = this.#nextRequestId();
      const bytes = encodeUnsubscribe(requestId, querySetId);
      this.#link.send({ bytes, requestId, querySetId });
      return undefined;
    }
    if (subscription.state === "applied") {
      subscription.state = "lost";
      return undefined;
    }
    this.#link.queued = this.#link.queued.filter((message) => message.querySetId !== querySetId);
    return this.take(querySetId);
  }

  #subscribeMessage({ querySetId, queries }: Subscription): Outgoing {
    const requestId = this.#nextRequestId();
    const bytes = encodeSubscribe(requestId, querySetId, queries);
    return { bytes, requestId, querySetId };
  }

  markSent(querySetId: number): void {
    const subscription = this.#subscriptions.get(querySetId);
    if (subscription) subscription.isSent = true;
  }

  /** The next socket knows no subscription. */
  rewind(): void {
    this.#awaited = undefined;
    const waiting: Outgoing[] = [];
    for (const subscription of this.#subscriptions.values()) {
      const { state, isSent } = subscription;
      subscription.isSent = false;
      if (state === "ending") subscription.state = "lost";
      else if (state === "waiting" && isSent) waiting.push(this.#subscribeMessage(subscription));
    }
    const queued = this.#link.queued.filter(
      ({ querySetId }) =>
        querySetId === undefined || this.#subscriptions.get(querySetId)?.state === "waiting",
    );
    this.#link.queued = [...waiting, ...queued];
  }

  /** Puts the subscriptions whose rows are in the cache in front of what is queued. */
  restore(): void {
    this.#awaited = new Set();
    const messages: Outgoing[] = [];
    for (const subscription of this.#subscriptions.values()) {
      if (subscription.state !== "applied") continue;
      this.#awaited.add(subscription.querySetId);
      messages.push(this.#subscribeMessage(subscription));
    }
    this.#link.queued = [...messages, ...this.#link.queued];
  }

  /** Whether the rows of this query set are awaited after a reconnect. */
  isAwaited(querySetId: number): boolean {
    return this.#awaited?.has(querySetId) === true;
  }

  /** An awaited query set is answered. */
  settle(querySetId: number): void {
    this.#awaited?.delete(querySetId);
  }

  /** Whether everything that was awaited is there. True once after each reconnect. */
  takeRestored(): boolean {
    if (this.#awaited?.size !== 0) return false;
    this.#awaited = undefined;
    return true;
  }

  /** All subscriptions; they are forgotten. */
  takeAll(): Subscription[] {
    const all = [...this.#subscriptions.values()];
    this.#subscriptions.clear();
    return all;
  }

  /** Whether rows of a subscription are on their way. */
  get isAwaiting(): boolean {
    for (const { state } of this.#subscriptions.values()) if (state !== "applied") return true;
    return (this.#awaited?.size ?? 0) > 0;
  }

  /** Asks for an answer that changes nothing: there never is a query set of this number. */
  probe(): void {
    const requestId = this.#nextRequestId();
    const bytes = encodeUnsubscribe(requestId, PROBE_QUERY_SET_ID);
    this.#link.send({ bytes, requestId, querySetId: PROBE_QUERY_SET_ID });
  }

  /** Subscriptions that were ended while there was no connection; they are forgotten. */
  takeLost(): Subscription[] {
    const lost = [...this.#subscriptions.values()].filter(({ state }) => state === "lost");
    for (const { querySetId } of lost) this.#subscriptions.delete(querySetId);
    return lost;
  }
}
