// When a lost connection is tried again.

/** When a lost connection is tried again. */
export interface ReconnectOptions {
  /** Longest wait before the first attempt, in milliseconds. Default: 500. */
  baseDelayMs?: number;
  /** Longest wait before any attempt, in milliseconds. Default: 30 000. */
  maxDelayMs?: number;
  /** Attempts in a row before giving up. Default: no limit. */
  maxAttempts?: number;
  /**
   * For how long after a loss the module is not told that this client has left, in milliseconds: if it is back in time, with the same
   * identity, it keeps its connection id, and neither the disconnect nor the connect reducer runs. Servers allow 30 000 unless they
   * say otherwise (`websocket.session-grace`), and the reference's none. Default: 0.
   */
  graceMs?: number;
}

/** The argument of `onReconnecting`. */
export interface ReconnectingInfo {
  /** Counts from 1 since the connection was lost. */
  attempt: number;
  /** Milliseconds until the attempt starts. */
  delayMs: number;
  /** Why the connection was lost, or the attempt before failed. */
  error: Error;
}

/**
 * Exponential backoff with jitter: between half of the wait and all of it, so that clients of a server that restarts
 * do not come back all at once.
 */
export function reconnectDelayMs(attempt: number, options: ReconnectOptions, random = Math.random()): number {
  const { baseDelayMs = 500, maxDelayMs = 30_000 } = options;
  const longest = Math.min(maxDelayMs, baseDelayMs * 2 ** Math.min(attempt - 1, 30));
  return Math.round(longest * (0.5 + random / 2));
}

/** A connection that lasted this long starts counting attempts anew. */
export const STABLE_AFTER_MS = 5000;
