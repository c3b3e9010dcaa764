// A clock that jumps from timer to timer: a run of seconds takes no time.

import type { Clock } from "../../src/core/clock";

interface Timer {
  at: number;
  order: number;
  fire(): void;
}

export class VirtualClock implements Clock {
  #now = 1000;
  #order = 0;
  #timers: Timer[] = [];

  now(): number {
    return this.#now;
  }

  /** The program itself takes this long. */
  advance(milliseconds: number): void {
    this.#now += milliseconds;
  }

  /** A timer of 0 ms takes 1 ms, as in Node. */
  sleep(milliseconds: number): Promise<void> {
    return new Promise((done) => this.at(this.#now + Math.max(1, milliseconds), done));
  }

  at(time: number, fire: () => void): Timer {
    const timer = { at: time, order: this.#order++, fire };
    this.#timers.push(timer);
    return timer;
  }

  every(milliseconds: number, callback: () => void): () => void {
    let isOver = false;
    const again = () => {
      this.at(this.#now + milliseconds, () => {
        if (isOver) return;
        callback();
        again();
      });
    };
    again();
    return () => {
      isOver = true;
    };
  }

  /** Lets time pass until the promise is settled. */
  async run<T>(promise: Promise<T>): Promise<T> {
    let isSettled = false;
    const settled = () => {
      isSettled = true;
    };
    promise.then(settled, settled);
    for (;;) {
      // Everything that follows from what has happened so far.
      await new Promise<void>((done) => setImmediate(done));
      if (isSettled) return promise;
      const next = this.#timers.sort((a, b) => a.at - b.at || a.order - b.order).shift();
      if (!next) throw new Error("the virtual clock has nothing to wait for: a deadlock");
      this.#now = Math.max(this.#now, next.at);
      next.fire();
    }
  }
}
