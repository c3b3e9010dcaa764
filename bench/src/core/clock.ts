// Time as the runner sees it, so that tests can run it without waiting, and limits for what waits for a system.

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

export async function withTimeout<T>(promise: Promise<T>, milliseconds: number, what: string): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const expired = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`${what} took more than ${milliseconds} ms`)), milliseconds);
  });
  try {
    return await Promise.race([promise, expired]);
  } finally {
    clearTimeout(timer);
  }
}
