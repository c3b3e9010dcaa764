// Operations in flight, with their timeouts (section 5.6).

import type { Operation, Outcome } from "../workloads/workload";

/** Told how an operation ended; the outcome is undefined if it failed or timed out. */
export interface Listener {
  ended(operation: Operation, outcome: Outcome | undefined, error?: unknown): void;
}

/** An operation on its way; `Kind` is what the engine knows of its kind. A class and no closures: the client's own work must not be what is measured. */
export class OperationInFlight<Kind> {
  /** The answer came, or the time is over: whatever comes later is ignored. */
  isSettled = false;
  previous: OperationInFlight<Kind> | undefined;
  next: OperationInFlight<Kind> | undefined;

  constructor(
    readonly worker: number,
    readonly operation: Operation,
    readonly kind: Kind,
    readonly startedAt: number,
    readonly deadline: number,
    readonly timeoutMs: number,
    readonly listener: Listener,
  ) {}
}

/**
 * The operations in flight in order of their start, which is the order of their deadlines as well: a timeout is the least of
 * what the operation may take and what is left of the window, so a later start never ends earlier. One look at the first
 * is enough to know whether any has expired, and no operation needs a timer of its own.
 */
export class OperationsInFlight<Kind> {
  #first: OperationInFlight<Kind> | undefined;
  #last: OperationInFlight<Kind> | undefined;
  count = 0;

  add(operation: OperationInFlight<Kind>): void {
    operation.previous = this.#last;
    if (this.#last) this.#last.next = operation;
    else this.#first = operation;
    this.#last = operation;
    this.count++;
  }

  remove(operation: OperationInFlight<Kind>): void {
    const { previous, next } = operation;
    if (previous) previous.next = next;
    else this.#first = next;
    if (next) next.previous = previous;
    else this.#last = previous;
    operation.previous = operation.next = undefined;
    this.count--;
  }

  /** All, in the order of their start. */
  *all(): Generator<OperationInFlight<Kind>> {
    for (let operation = this.#first; operation; operation = operation.next) yield operation;
  }

  /** The first one if its time is over. */
  expired(now: number): OperationInFlight<Kind> | undefined {
    return this.#first && this.#first.deadline <= now ? this.#first : undefined;
  }
}
