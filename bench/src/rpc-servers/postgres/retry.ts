// Repeats a transaction that the database gave up in favour of another one (section 10.3).

import { setTimeout as sleep } from "node:timers/promises";
import { OutcomeUnknown } from "../rpc";

export const attemptsMax = 10;
const delayMillisecondsMax = 200;
const delayMillisecondsBase = 5;
/** How far down a chain of causes the code of the database is looked for: ORMs wrap errors. */
const causeDepthMax = 5;

/** Serialization failure, deadlock, lock not available. */
const retryableCodes: ReadonlySet<string> = new Set(["40001", "40P01", "55P03"]);
const wrappers = ["cause", "originalError", "innerError"] as const;

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null;
}

/** Whether an error, or one that it wraps, is as wanted. */
function someError(error: unknown, isWanted: (error: Record<string, unknown>) => boolean): boolean {
  let level: unknown[] = [error];
  for (let depth = 0; depth < causeDepthMax; depth += 1) {
    const errors = level.filter(isRecord);
    if (errors.some(isWanted)) return true;
    level = errors.flatMap((wrapper) => wrappers.map((name) => wrapper[name]));
  }
  return false;
}

/** Whether the same transaction may succeed when it is tried again. */
export const isRetryable = (error: unknown): boolean =>
  someError(error, ({ code }) => typeof code === "string" && retryableCodes.has(code));

/** Codes of a database that goes away, and of sockets that break. */
const lossCodes = /^(08...|57P0[123]|ECONNRESET|ECONNREFUSED|EPIPE)$/;

/** Whether the connection is gone, and with it the answer. */
export const isConnectionLoss = (error: unknown): boolean =>
  someError(
    error,
    ({ code, message }) =>
      (typeof code === "string" && lossCodes.test(code)) ||
      (typeof message === "string" && message.startsWith("Connection terminated")),
  );

/** Milliseconds before the next attempt, after `failures` failed ones; random, so that rivals do not meet again. */
export function retryDelay(failures: number, random: () => number = Math.random): number {
  return Math.floor(random() * Math.min(delayMillisecondsMax, delayMillisecondsBase * 2 ** failures));
}

/** Attempts that the database refused and that were repeated. */
export interface RetryCounter {
  retries: number;
}

/** Runs a transaction, or one statement, until it commits, fails for good, or was refused `attemptsMax` times. */
export async function withRetries<T>(transaction: () => PromiseLike<T>, counter: RetryCounter): Promise<T> {
  for (let failures = 1; ; failures += 1) {
    try {
      return await transaction();
    } catch (error) {
      if (isConnectionLoss(error)) throw new OutcomeUnknown(error);
      if (failures >= attemptsMax || !isRetryable(error)) throw error;
      counter.retries += 1;
      await sleep(retryDelay(failures));
    }
  }
}
