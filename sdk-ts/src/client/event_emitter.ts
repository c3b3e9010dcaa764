// Callbacks by event, called in the order of their registration.

import { ClientError, toError } from "./client_error";
import { stdbLogger } from "./logger";

export class EventEmitter<Key, Callback extends Function = Function> {
  readonly #callbacks = new Map<Key, Set<Callback>>();

  on(event: Key, callback: Callback): void {
    let callbacks = this.#callbacks.get(event);
    if (!callbacks) this.#callbacks.set(event, (callbacks = new Set()));
    callbacks.add(callback);
  }

  off(event: Key, callback: Callback): void {
    this.#callbacks.get(event)?.delete(callback);
  }

  has(event: Key): boolean {
    return (this.#callbacks.get(event)?.size ?? 0) > 0;
  }

  /** A callback that throws is reported and does not keep the others from being called. */
  emit(event: Key, ...args: unknown[]): void {
    const callbacks = this.#callbacks.get(event);
    if (!callbacks) return;
    for (const callback of [...callbacks]) callSafely(callback, args);
  }
}

/** Calls a function of the application; what it throws, or rejects with, goes to the log. */
export function callSafely(callback: Function, args: readonly unknown[]): void {
  try {
    const result: unknown = callback(...args);
    if (result instanceof Promise) result.catch(reportCallbackError);
  } catch (error) {
    reportCallbackError(error);
  }
}

function reportCallbackError(thrown: unknown): void {
  const error = toError(thrown);
  const { message, docsUrl } = new ClientError("LC0848", `a callback threw: ${error.message}`);
  stdbLogger("error", `${message}; see ${docsUrl}`, error);
}
