// One connection to the server after the other: opens sockets, and sends what is queued in batches (chapter 05 §3).

import { ClientError, toError } from "./client_error";
import { PREFERRED_WS_PROTOCOLS, V2_WS_PROTOCOL, V3_WS_PROTOCOL, type WebSocketAdapter } from "./socket";
import type { Subscription } from "./subscriptions";

/** A message to the server. */
export interface Outgoing {
  readonly bytes: Uint8Array<ArrayBuffer>;
  readonly requestId: number;
  /** What it begins or ends, if it is about subscriptions. */
  readonly sets?: readonly Subscription[];
}

export interface LinkHandlers {
  /** Opens a socket, unless the signal says that it is no longer wanted. */
  open(signal: AbortSignal): Promise<WebSocketAdapter>;
  /** The socket is open; what is put in front of the queue now is sent first. */
  onOpen(): void;
  onSent(message: Outgoing): void;
  onPayload(data: Uint8Array): void;
  /** `closeCode`: the server's, if it closed. */
  onLost(error: Error | undefined, closeCode?: number): void;
}

/** Messages are put together up to this size in one payload of v3. */
const PAYLOAD_BYTES_MAX = 256 * 1024;

/** Bytes that the socket may hold for the network; further messages wait in the queue. */
const SOCKET_BYTES_MAX = 16 * 1024 * 1024;

/** Sockets do not tell when the network has taken something, so a full one is looked at again after this time. */
const SOCKET_LOOK_MS = 20;

/** Messages that may wait in the queue. A request beyond it is rejected (LC0835). */
const QUEUED_BYTES_MAX = 64 * 1024 * 1024;

/** Time for the server to answer a close, before the connection counts as closed. */
const CLOSE_TIMEOUT_MS = 5000;

export class Link {
  readonly #handlers: LinkHandlers;
  #socket: WebSocketAdapter | undefined;
  #opening: AbortController | undefined;
  #closeTimer: ReturnType<typeof setTimeout> | undefined;
  #isOpen = false;
  #isV3 = false;
  /** Events of an earlier socket are ignored. */
  #epoch = 0;
  #queue: Outgoing[] = [];
  #queuedBytes = 0;
  #flushTimer: ReturnType<typeof setTimeout> | undefined;
  #isFlushScheduled = false;

  constructor(handlers: LinkHandlers) {
    this.#handlers = handlers;
  }

  get isOpen(): boolean {
    return this.#isOpen;
  }

  /** Whether the socket has closed, also when no event has told so. */
  get isSocketClosed(): boolean {
    return (this.#socket?.readyState ?? 0) >= 2;
  }

  /** Messages that wait for a connection, or for one that is slower than the application. */
  get queued(): readonly Outgoing[] {
    return this.#queue;
  }

  set queued(messages: Outgoing[]) {
    this.#queue = messages;
    this.#queuedBytes = messages.reduce((sum, { bytes }) => sum + bytes.length, 0);
  }

  /** Whether so many messages, or too many bytes, wait although everything was sent that could be. */
  isFull(messagesMax: number): boolean {
    if (this.#queue.length < messagesMax && this.#queuedBytes <= QUEUED_BYTES_MAX) return false;
    if (!this.#isOpen) return true;
    this.#flush();
    return (
      this.#queue.length > 0 && (this.#queue.length >= messagesMax || this.#queuedBytes > QUEUED_BYTES_MAX)
    );
  }

  start(): void {
    const epoch = ++this.#epoch;
    const lost = (error: Error | undefined, closeCode?: number): void => {
      if (epoch === this.#epoch) this.drop(error, closeCode);
    };
    // A factory that throws at once is treated like one whose promise is rejected.
    const abort = new AbortController();
    this.#opening = abort;
    const opening = new Promise<WebSocketAdapter>((resolve) => resolve(this.#handlers.open(abort.signal)));
    opening.then(
      (socket) => {
        if (epoch !== this.#epoch) {
          socket.close();
          return;
        }
        this.#socket = socket;
        socket.onopen = () => {
          if (epoch === this.#epoch) this.#opened(socket);
        };
        socket.onmessage = ({ data }) => {
          if (epoch === this.#epoch) this.#handlers.onPayload(data);
        };
        socket.onerror = (event) => lost(socketError(event));
        socket.onclose = (event) => lost(undefined, event.code);
        // A socket of an application's own may be open already.
        if (socket.readyState === 1) this.#opened(socket);
      },
      (error: unknown) => lost(toError(error)),
    );
  }

  #opened(socket: WebSocketAdapter): void {
    if (this.#isOpen) return;
    const { protocol } = socket;
    // Sockets of an application's own may not know the protocol; v2 is understood by every server.
    if (protocol !== "" && !(PREFERRED_WS_PROTOCOLS as readonly string[]).includes(protocol)) {
      this.drop(
        new ClientError("LC0840", `the server chose ${protocol}, not ${V3_WS_PROTOCOL} or ${V2_WS_PROTOCOL}`),
      );
      return;
    }
    this.#isV3 = protocol === V3_WS_PROTOCOL;
    this.#isOpen = true;
    this.#handlers.onOpen();
    this.#flush();
  }

  /** Ends the current connection from this side. */
  drop(error: Error | undefined, closeCode?: number): void {
    const socket = this.#detach();
    if (socket && (socket.readyState ?? 0) < 2) socket.close();
    this.#handlers.onLost(error, closeCode);
  }

  /** Asks the server to end the connection; `onLost` follows when it has, or when it does not answer. */
  close(): void {
    if (!this.#socket || this.isSocketClosed) {
      this.drop(undefined);
      return;
    }
    const epoch = this.#epoch;
    const giveUp = (): void => {
      if (epoch === this.#epoch) this.drop(undefined);
    };
    this.#socket.close();
    if (epoch === this.#epoch) this.#closeTimer = setTimeout(giveUp, CLOSE_TIMEOUT_MS);
  }

  /** Takes a message out of the queue. */
  forget(requestId: number): void {
    this.queued = this.#queue.filter((message) => message.requestId !== requestId);
  }

  #detach(): WebSocketAdapter | undefined {
    const socket = this.#socket;
    this.#epoch += 1;
    clearTimeout(this.#closeTimer);
    clearTimeout(this.#flushTimer);
    this.#opening?.abort();
    this.#socket = undefined;
    this.#isOpen = false;
    return socket;
  }

  send(message: Outgoing): void {
    this.#queue.push(message);
    this.#queuedBytes += message.bytes.length;
    if (!this.#isOpen || this.#isFlushScheduled) return;
    this.#isFlushScheduled = true;
    // What the application sends in this turn goes out together. (Node's `queueMicrotask` costs more than a promise.)
    void settled.then(this.#flushScheduled);
  }

  readonly #flushScheduled = (): void => {
    this.#isFlushScheduled = false;
    if (this.#isOpen) this.#flush();
  };

  /** Whether the socket is full; then the queue is looked at again later. */
  #waitsForSocket(): boolean {
    if ((this.#socket?.bufferedAmount ?? 0) <= SOCKET_BYTES_MAX) return false;
    clearTimeout(this.#flushTimer);
    this.#flushTimer = setTimeout(this.#flushScheduled, SOCKET_LOOK_MS);
    return true;
  }

  #flush(): void {
    if (this.#waitsForSocket()) return;
    const messages = this.#queue;
    this.queued = [];
    const epoch = this.#epoch;
    let start = 0;
    let failure: Error | undefined;
    while (start < messages.length && epoch === this.#epoch && !this.#waitsForSocket()) {
      const end = this.#isV3 ? batchEnd(messages, start) : start + 1;
      const batch = messages.slice(start, end);
      try {
        this.#socket?.send(concatenate(batch));
      } catch (error) {
        failure = toError(error);
        break;
      }
      for (const message of batch) this.#handlers.onSent(message);
      start = end;
    }
    if (start < messages.length) this.queued = [...messages.slice(start), ...this.#queue];
    if (failure) this.drop(failure);
  }
}

const settled = Promise.resolve();

function socketError(event: unknown): Error {
  const error = toError(event);
  if (error instanceof ClientError) return error;
  const reason = error.message === "unknown error" ? "" : `: ${error.message}`;
  return new ClientError("LC0831", `the connection failed${reason}`, { cause: error });
}

function batchEnd(messages: readonly Outgoing[], start: number): number {
  let size = messages[start]!.bytes.length;
  let end = start + 1;
  while (end < messages.length && size + messages[end]!.bytes.length <= PAYLOAD_BYTES_MAX) {
    size += messages[end]!.bytes.length;
    end += 1;
  }
  return end;
}

function concatenate(messages: readonly Outgoing[]): Uint8Array<ArrayBuffer> {
  if (messages.length === 1) return messages[0]!.bytes;
  const payload = new Uint8Array(messages.reduce((sum, { bytes }) => sum + bytes.length, 0));
  let at = 0;
  for (const { bytes } of messages) {
    payload.set(bytes, at);
    at += bytes.length;
  }
  return payload;
}
