// Callbacks by event, called in the order of their registration.

import { ClientError, toError } from "./client_error";
import { stdbLogger } from "./logger";

export class EventEmitter<Key, Callback extends Function = Function> {
  readonly #callbacks = new Map<Key, CallbackList<Callback>>();

  on(event: Key, callback: Callback): void {
    let callbacks = this.#callbacks.get(event);
    if (!callbacks) this.#callbacks.set(event, (callbacks = new CallbackList()));
    callbacks.add(callback);
  }

  off(event: Key, callback: Callback): void {
    this.#callbacks.get(event)?.delete(callback);
  }

  has(event: Key): boolean {
    return (this.#callbacks.get(event)?.current.length ?? 0) > 0;
  }

  /** A callback that throws is reported and does not keep the others from being called. */
  emit(event: Key, ...args: unknown[]): void {
    const callbacks = this.#callbacks.get(event);
    if (!callbacks) return;
    for (const callback of callbacks.current) callSafely(callback, args);
  }
}

/** Callbacks in the order of their registration, as a list that does not change during an iteration. */
export class CallbackList<Callback> {
  readonly #callbacks = new Set<Callback>();
  #list: readonly Callback[] | undefined;

  /** The registered callbacks; a list that was handed out never changes. */
  get current(): readonly Callback[] {
    this.#list ??= [...this.#callbacks];
    return this.#list;
  }

  /** Returns how to take it away again. */
  add(callback: Callback): () => void {
    this.#callbacks.add(callback);
    this.#list = undefined;
    return () => this.delete(callback);
  }

  delete(callback: Callback): void {
    this.#callbacks.delete(callback);
    this.#list = undefined;
  }
}

/** Calls a function of the application; what it throws, or rejects with, goes to the log. */
export function callSafely(callback: Function, args: readonly unknown[]): void {
  try {
    handleResult(callback(...args));
  } catch (error) {
    reportCallbackError(error);
  }
}

/** A callback that is asynchronous fails later. */
export function handleResult(result: unknown): void {
  if (result instanceof Promise) result.catch(reportCallbackError);
}

export function reportCallbackError(thrown: unknown): void {
  const error = toError(thrown);
  const { message, docsUrl } = new ClientError("LC0848", `a callback threw: ${error.message}`);
  stdbLogger("error", `${message}; see ${docsUrl}`, error);
}
