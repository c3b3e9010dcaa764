// Time as the runner sees it, so that tests can run it without waiting.

import { performance } from "node:perf_hooks";

export interface Clock {
  /** Milliseconds, with fractions; never goes back. */
  now(): number;
  sleep(milliseconds: number): Promise<void>;
  /** Calls again and again until the answer is called. */
  every(milliseconds: number, callback: () => void): () => void;
}

export const realClock: Clock = {
  now: () => performance.now(),
  sleep: (milliseconds) => new Promise((done) => setTimeout(done, milliseconds)),
  every: (milliseconds, callback) => {
    const timer = setInterval(callback, milliseconds);
    return () => clearInterval(timer);
  },
};
