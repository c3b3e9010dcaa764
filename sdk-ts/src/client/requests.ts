// Calls and one-off queries on their way: encoded, numbered, sent or queued, and given up when they reach a limit.

import type { BinaryWriter } from "../core";
import { type CallOptions, type PendingRequest, PendingRequests, pendingPromise, watchLimits } from "./calls";
import { ClientError, type ClientErrorCode, toError } from "./client_error";
import type { Link } from "./link";
import { encodeMessage, writeCall } from "./wire";

/** The server takes no larger message (chapter 05 §3.4). */
const REQUEST_BYTES_MAX = 32 * 1024 * 1024;
const QUEUED_REQUESTS_MAX = 10_000;

interface Settings {
  readonly queuedRequestsMax?: number;
  readonly callTimeoutMs?: number;
}

export class Requests {
  readonly pending = new PendingRequests();
  readonly #link: Link;
  readonly #settings: Settings;
  readonly #isClosed: () => boolean;
  #nextId = 0;

  constructor(link: Link, settings: Settings, isClosed: () => boolean) {
    this.#link = link;
    this.#settings = settings;
    this.#isClosed = isClosed;
  }

  /** The id of the next request, which is taken by this. */
  takeId(): number {
    return this.#nextId++;
  }

  call<T>(
    kind: "reducer" | "procedure",
    name: string,
    writeArguments: (writer: BinaryWriter) => void,
    args?: object,
    options?: CallOptions,
  ): Promise<T> {
    const write = (writer: BinaryWriter, requestId: number): void =>
      writeCall(writer, kind, requestId, name, writeArguments);
    return this.send<T>(kind, name, write, args, options);
  }

  /** Sends a request that `write` encodes; the promise has its answer. */
  send<T>(
    kind: PendingRequest["kind"],
    name: string,
    write: (writer: BinaryWriter, requestId: number) => void,
    args?: object,
    options?: CallOptions,
  ): Promise<T> {
    const { promise, resolve, reject } = pendingPromise<T>(kind, name);
    const { queuedRequestsMax = QUEUED_REQUESTS_MAX } = this.#settings;
    const refuse = (code: ClientErrorCode, reason: string, cause?: unknown): Promise<T> => {
      reject(new ClientError(code, `${kind} ${name} was not sent: ${reason}`, { cause }));
      return promise;
    };
    if (options?.signal?.aborted) {
      reject(options.signal.reason);
      return promise;
    }
    if (this.#isClosed()) return refuse("LC0834", "the connection is closed");
    if (!this.#link.isOpen && this.#link.queued.length >= queuedRequestsMax) {
      return refuse("LC0835", `${queuedRequestsMax} requests wait for a connection already`);
    }
    const requestId = this.#nextId;
    let bytes: Uint8Array<ArrayBuffer>;
    try {
      bytes = encodeMessage((writer) => write(writer, requestId));
    } catch (error) {
      return refuse("LC0838", toError(error).message, error);
    }
    if (bytes.length > REQUEST_BYTES_MAX) {
      return refuse("LC0837", `it has ${bytes.length} bytes, more than the server takes`);
    }
    this.#nextId += 1;
    const request: PendingRequest = { kind, name, args, isSent: false, resolve: resolve as never, reject };
    const timeoutMs = options?.timeoutMs ?? this.#settings.callTimeoutMs;
    if (options?.signal || timeoutMs !== undefined) {
      const limits = { signal: options?.signal, timeoutMs };
      request.stop = watchLimits(request, limits, (error) => this.#abandon(requestId, error));
    }
    this.pending.add(requestId, request);
    this.#link.send({ bytes, requestId });
    return promise;
  }

  /** Gives up a request; what comes of it, if it was sent, arrives as anybody's transaction. */
  #abandon(requestId: number, error: unknown): void {
    const request = this.pending.take(requestId);
    if (!request) return;
    if (!request.isSent) this.#link.forget(requestId);
    request.reject(error);
  }
}
