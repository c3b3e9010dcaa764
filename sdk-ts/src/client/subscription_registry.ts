// The subscriptions of a connection across all its sockets: what the server was told, and what it has to be told again.

import type { EventEmitter } from "./event_emitter";
import type { Link, Outgoing } from "./link";
import type { SubscribeEvent, Subscription } from "./subscriptions";
import { encodeSubscribe, encodeUnsubscribe, type SubscribeSetResult } from "./wire";

/** Query set of a message that is sent only to hear an answer. */
export const PROBE_QUERY_SET_ID = 0xffff_ffff;

/** With this code a server closes that does not know a message. */
const UNKNOWN_CLOSE_CODE = 1011;

export class SubscriptionRegistry {
  readonly #link: Link;
  readonly #nextRequestId: () => number;
  readonly #subscriptions = new Map<number, Subscription>();
  #nextQuerySetId = 0;
  /** Query sets whose rows are still awaited after a reconnect. */
  #awaited: Set<number> | undefined;
  #mayBatch = true;
  /** A batch was sent on this connection and not answered. */
  #isBatchOpen = false;

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
    this.#link.send(this.#subscribeMessage([subscription]));
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
      this.#link.send({ bytes, requestId, sets: [subscription] });
      return undefined;
    }
    if (subscription.state === "applied") {
      subscription.state = "lost";
      return undefined;
    }
    this.#link.queued = this.#link.queued.filter(({ sets }) => sets?.[0] !== subscription);
    return this.take(querySetId);
  }

  /** Asks for one query set, or in a batch for several. */
  #subscribeMessage(sets: readonly Subscription[]): Outgoing {
    const requestId = this.#nextRequestId();
    return { bytes: encodeSubscribe(requestId, sets), requestId, sets };
  }

  markSent(sets: readonly Subscription[]): void {
    this.#isBatchOpen ||= sets.length > 1;
    for (const subscription of sets) subscription.isSent = true;
  }

  /**
   * Query sets are answered. Returns whether those of a batch are asked for one by one now: all were refused for the same
   * reason, so they may be too much for one answer.
   */
  retriesOneByOne(results: readonly SubscribeSetResult[]): boolean {
    if (results.length < 2) return false;
    this.#isBatchOpen = false;
    const [error, ...others] = new Set(results.map((result) => result.error));
    if (error === undefined || others.length > 0) return false;
    for (const subscription of this.#applied()) this.#link.send(this.#subscribeMessage([subscription]));
    return true;
  }

  /** The next socket knows no subscription. */
  rewind(closeCode: number | undefined): void {
    if (this.#isBatchOpen && closeCode === UNKNOWN_CLOSE_CODE) this.#mayBatch = false;
    this.#isBatchOpen = false;
    this.#awaited = undefined;
    const waiting: Outgoing[] = [];
    for (const subscription of this.#subscriptions.values()) {
      const { state, isSent } = subscription;
      subscription.isSent = false;
      if (state === "ending") subscription.state = "lost";
      else if (state === "waiting" && isSent) waiting.push(this.#subscribeMessage([subscription]));
    }
    const queued = this.#link.queued.filter(({ sets }) => !sets || sets[0]?.state === "waiting");
    this.#link.queued = [...waiting, ...queued];
  }

  /** Puts the subscriptions whose rows are in the cache in front of what is queued. */
  restore(): void {
    const applied = this.#applied();
    this.#awaited = new Set(applied.map(({ querySetId }) => querySetId));
    if (applied.length === 0) return;
    const batches = this.#mayBatch ? [applied] : applied.map((set) => [set]);
    const messages = batches.map((sets) => this.#subscribeMessage(sets));
    this.#link.queued = [...messages, ...this.#link.queued];
  }

  #applied(): Subscription[] {
    return [...this.#subscriptions.values()].filter(({ state }) => state === "applied");
  }

  /** A query set is answered. Returns whether its rows were awaited after a reconnect. */
  settle(querySetId: number): boolean {
    return this.#awaited?.delete(querySetId) === true;
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
    this.#link.send({ bytes, requestId, sets: [] });
  }

  /** Subscriptions that were ended while there was no connection; they are forgotten. */
  takeLost(): Subscription[] {
    const lost = [...this.#subscriptions.values()].filter(({ state }) => state === "lost");
    for (const { querySetId } of lost) this.#subscriptions.delete(querySetId);
    return lost;
  }
}
