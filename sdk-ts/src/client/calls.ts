// Requests that wait for an answer: calls of reducers and procedures, one-off queries.

import { ClientError } from "./client_error";
import { stdbLogger } from "./logger";

/**
 * The answer to a call. A failure that is not awaited is written to the log instead of ending the process as an
 * unhandled rejection.
 */
export class CallPromise<T> extends Promise<T> {
  #isObserved = false;

  // Promises made by `then` are ordinary ones.
  static override get [Symbol.species](): PromiseConstructor {
    return Promise;
  }

  // biome-ignore lint/suspicious/noThenProperty: it notices whether the call is awaited
  override then<A = T, B = never>(
    onFulfilled?: ((value: T) => A | PromiseLike<A>) | null,
    onRejected?: ((reason: unknown) => B | PromiseLike<B>) | null,
  ): Promise<A | B> {
    this.#isObserved = true;
    return super.then(onFulfilled, onRejected);
  }

  /** Makes sure that a rejection is handled; the log names the call. */
  watch(kind: string, name: string): this {
    super.then(undefined, (error: unknown) => {
      // The caller of a call that failed at once may await it a moment later.
      setTimeout(() => {
        if (this.#isObserved) return;
        // A lost connection is reported elsewhere as well.
        const level = error instanceof ClientError ? "warn" : "error";
        stdbLogger(level, `${kind} ${name} failed, and it was not awaited:`, error);
      });
    });
    return this;
  }
}

/** A request that was made and not answered yet. */
export class PendingRequest {
  readonly promise: CallPromise<unknown>;
  isSent = false;
  /** Ends the watch over its limits. */
  stop: (() => void) | undefined;
  #resolve!: (value: unknown) => void;
  #reject!: (error: unknown) => void;

  constructor(
    readonly kind: "reducer" | "procedure" | "query",
    readonly name: string,
    /** Arguments as the application passed them, for the event of the reducer. */
    readonly args?: object,
    /** Makes the result from that of the server; without it, it is the server's. */
    readonly decode?: (result: Uint8Array) => unknown,
  ) {
    this.promise = new CallPromise<unknown>((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
  }

  /** Settles the request with its answer, which depends on its kind. */
  resolve(answer: unknown): void {
    let value = answer;
    try {
      if (this.decode) value = this.decode(answer as Uint8Array);
    } catch (error) {
      this.reject(error);
      return;
    }
    this.#resolve(value);
  }

  reject(error: unknown): void {
    // Watched only when it fails: calls that succeed, nearly all, need no second promise.
    this.promise.watch(this.kind, this.name);
    this.#reject(error);
  }
}

/** Limits of a call, which `connection.withOptions` sets. */
export interface CallOptions {
  /** Gives the call up when it is aborted; the promise is rejected with the signal's reason. */
  signal?: AbortSignal;
  /** Gives the call up after so many milliseconds, counted from the call; the promise is rejected with LC0854. */
  timeoutMs?: number;
}

/** The error of a call without an answer. */
function doubt({ kind, isSent }: PendingRequest): string {
  if (!isSent) return "; it was not sent";
  return kind === "query" ? "" : "; it may or may not have been executed";
}

/** Calls `abandon` when a request reaches one of its limits; returns how to stop that. */
export function watchLimits(
  request: PendingRequest,
  { signal, timeoutMs }: CallOptions,
  abandon: (error: unknown) => void,
): () => void {
  const onAbort = (): void => abandon(signal!.reason);
  signal?.addEventListener("abort", onAbort);
  const onTimeout = (): void => {
    const { kind, name } = request;
    const text = `no answer to ${kind} ${name} within ${timeoutMs} ms${doubt(request)}`;
    abandon(new ClientError("LC0854", text));
  };
  const timer = timeoutMs === undefined ? undefined : setTimeout(onTimeout, timeoutMs);
  return () => {
    signal?.removeEventListener("abort", onAbort);
    clearTimeout(timer);
  };
}

export class PendingRequests {
  readonly #requests = new Map<number, PendingRequest>();

  get size(): number {
    return this.#requests.size;
  }

  add(requestId: number, request: PendingRequest): void {
    this.#requests.set(requestId, request);
  }

  /** Whether rows are awaited, which may be many. */
  get isAwaitingRows(): boolean {
    for (const { kind } of this.#requests.values()) if (kind === "query") return true;
    return false;
  }

  /** The request with this id; it is forgotten. */
  take(requestId: number): PendingRequest | undefined {
    const request = this.#requests.get(requestId);
    this.#requests.delete(requestId);
    request?.stop?.();
    return request;
  }

  markSent(requestId: number): void {
    const request = this.#requests.get(requestId);
    if (request) request.isSent = true;
  }

  /** The connection is gone: it is unknown whether calls on their way were executed. */
  rejectSent(): void {
    for (const [requestId, request] of [...this.#requests]) {
      if (!request.isSent) continue;
      const { kind, name } = request;
      const outcome = `the connection was lost before the answer to ${kind} ${name}${doubt(request)}`;
      this.take(requestId)?.reject(new ClientError("LC0833", outcome));
    }
  }

  /** The connection will not come back. */
  rejectAll(): void {
    this.rejectSent();
    for (const requestId of [...this.#requests.keys()]) {
      const request = this.take(requestId);
      const text = `the connection was closed before ${request?.kind} ${request?.name} was sent`;
      request?.reject(new ClientError("LC0834", text));
    }
  }
}
