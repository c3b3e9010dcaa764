// Operations in flight, with their timeouts (section 5.6).

export interface Operation {
  worker: number;
  from: number;
  to: number;
  startedAt: number;
  deadline: number;
  timeoutMs: number;
  /** The answer came, or the time is over: whatever comes later is ignored. */
  isSettled: boolean;
  previous: Operation | undefined;
  next: Operation | undefined;
}

/**
 * The operations in flight in order of their start, which is the order of their deadlines as well: a timeout is the least of
 * what the operation may take and what is left of the window, so a later start never ends earlier. One look at the first
 * is enough to know whether any has expired, and no operation needs a timer of its own.
 */
export class OperationsInFlight {
  #first: Operation | undefined;
  #last: Operation | undefined;
  count = 0;

  add(operation: Operation): void {
    operation.previous = this.#last;
    if (this.#last) this.#last.next = operation;
    else this.#first = operation;
    this.#last = operation;
    this.count++;
  }

  remove(operation: Operation): void {
    const { previous, next } = operation;
    if (previous) previous.next = next;
    else this.#first = next;
    if (next) next.previous = previous;
    else this.#last = previous;
    operation.previous = operation.next = undefined;
    this.count--;
  }

  /** All, in the order of their start. */
  *all(): Generator<Operation> {
    for (let operation = this.#first; operation; operation = operation.next) yield operation;
  }

  /** The first one if its time is over. */
  expired(now: number): Operation | undefined {
    return this.#first && this.#first.deadline <= now ? this.#first : undefined;
  }
}
