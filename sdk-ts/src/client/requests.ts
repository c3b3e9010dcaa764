// Calls and one-off queries on their way: encoded, numbered, sent or queued, and given up when they reach a limit.

import { AlgebraicType, BinaryReader, ProductType, type Serializer, toSql } from "../core";
import type { AnySerializer } from "../core/untyped";
import type { AnyRowQuery } from "../core/untyped_query";
import { type CallOptions, PendingRequest, PendingRequests, watchLimits } from "./calls";
import { ClientError, type ClientErrorCode, toError } from "./client_error";
import type { Link } from "./link";
import type { Row } from "./row_store";
import { encodeCall, encodeOneOffQuery } from "./wire";

/** The server takes no larger message (chapter 05 §3.4). */
const REQUEST_BYTES_MAX = 32 * 1024 * 1024;
const QUEUED_REQUESTS_MAX = 10_000;

interface Settings {
  readonly queuedRequestsMax?: number;
  readonly callTimeoutMs?: number;
}

/** A query as text, or one that has a text. */
export type AnyQuery = string | AnyRowQuery;

export function sqlOf(query: AnyQuery): string {
  return typeof query === "string" ? query : toSql(query);
}

/** Arguments that are encoded already. */
const asTheyAre: AnySerializer = (writer, bytes: Uint8Array) => writer.writeBytes(bytes);

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

  /** Calls a reducer with encoded arguments; `args` are for its event. */
  callEncodedReducer(name: string, encoded: Uint8Array, args: object): Promise<void> {
    return this.#send(new PendingRequest("reducer", name, args), asTheyAre, encoded);
  }

  callReducer(name: string, type: ProductType, args: object, options?: CallOptions): Promise<void> {
    const serialize = ProductType.makeArgumentsSerializer(type);
    return this.#send(new PendingRequest("reducer", name, args), serialize, args, options);
  }

  /** Calls a procedure with encoded arguments; the promise has its encoded result. */
  callEncodedProcedure(name: string, encoded: Uint8Array): Promise<Uint8Array> {
    return this.#send(new PendingRequest("procedure", name), asTheyAre, encoded);
  }

  callProcedure(
    name: string,
    type: ProductType,
    args: object,
    resultType: AlgebraicType,
    options?: CallOptions,
  ): Promise<unknown> {
    const deserialize = AlgebraicType.makeDeserializer(resultType);
    const decode = (result: Uint8Array): unknown => deserialize(new BinaryReader(result));
    const serialize = ProductType.makeArgumentsSerializer(type);
    return this.#send(new PendingRequest("procedure", name, args, decode), serialize, args, options);
  }

  /** Runs a query once. */
  query(query: AnyQuery, options?: CallOptions): Promise<Row[]> {
    return this.#send(new PendingRequest("query", sqlOf(query)), undefined, undefined, options);
  }

  /**
   * Sends a request, with arguments that `serialize` writes if it is a call. The promise has its answer, whose type
   * the caller knows.
   */
  #send(
    request: PendingRequest,
    serialize: Serializer<unknown> | undefined,
    args: unknown,
    options?: CallOptions,
  ): Promise<any> {
    if (options?.signal?.aborted) {
      request.reject(options.signal.reason);
      return request.promise;
    }
    const { queuedRequestsMax = QUEUED_REQUESTS_MAX } = this.#settings;
    // A look that may find the connection lost.
    const isFull = this.#link.isFull(queuedRequestsMax);
    if (this.#isClosed()) return refuse(request, "LC0834", "the connection is closed");
    if (isFull) {
      const reason = this.#link.isOpen ? "the network to take them" : "a connection";
      const waiting = this.#link.queued.length;
      return refuse(request, "LC0835", `${waiting} requests wait for ${reason} already`);
    }
    const requestId = this.#nextId;
    let bytes: Uint8Array<ArrayBuffer>;
    try {
      bytes =
        request.kind === "query"
          ? encodeOneOffQuery(requestId, request.name)
          : encodeCall(request.kind, requestId, request.name, serialize ?? asTheyAre, args);
    } catch (error) {
      return refuse(request, "LC0838", toError(error).message, error);
    }
    if (bytes.length > REQUEST_BYTES_MAX) {
      return refuse(request, "LC0837", `it has ${bytes.length} bytes, more than the server takes`);
    }
    this.#nextId += 1;
    const signal = options?.signal;
    const timeoutMs = options?.timeoutMs ?? this.#settings.callTimeoutMs;
    if (signal || timeoutMs !== undefined) {
      request.stop = watchLimits(request, { signal, timeoutMs }, (error) => this.#abandon(requestId, error));
    }
    this.pending.add(requestId, request);
    this.#link.send({ bytes, requestId });
    return request.promise;
  }

  /** Gives up a request; what comes of it, if it was sent, arrives as another client's transaction. */
  #abandon(requestId: number, error: unknown): void {
    const request = this.pending.take(requestId);
    if (!request) return;
    if (!request.isSent) this.#link.forget(requestId);
    request.reject(error);
  }
}

/** A request that is not even queued. */
function refuse(
  request: PendingRequest,
  code: ClientErrorCode,
  reason: string,
  cause?: unknown,
): Promise<unknown> {
  const { kind, name, promise } = request;
  request.reject(new ClientError(code, `${kind} ${name} was not sent: ${reason}`, { cause }));
  return promise;
}
