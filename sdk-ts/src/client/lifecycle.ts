// The life of a connection: attempts to connect, the first answer, loss, further attempts, and the end.

import { ConnectionId, Identity } from "../core";
import { ClientError, type ClientErrorCode } from "./client_error";
import type { ConnectionEvent, DbConnectionConfig } from "./connection_config";
import { Credentials } from "./credentials";
import type { Contexts } from "./event_context";
import { callSafely, type EventEmitter } from "./event_emitter";
import type { Link } from "./link";
import { stdbLogger } from "./logger";
import { onPageResumed } from "./page_events";
import { type ReconnectingInfo, reconnectDelayMs, STABLE_AFTER_MS } from "./reconnect";
import type { AnyModule } from "./remote_module";
import type { JobQueue, Steps } from "./scheduling";
import { SilenceWatch } from "./silence_watch";
import { PREFERRED_WS_PROTOCOLS, type WebSocketFactory } from "./socket";
import type { ServerMessage } from "./wire";

const NOT_GREETED =
  "the server ended the connection before it answered; client_connected may have refused it";

const CONNECT_TIMEOUT_MS = 30_000;
/** A server that asks to wait is heeded up to this time. */
const RETRY_AFTER_MS_MAX = 300_000;

/** After so many messages that cannot be inflated, no compression is asked for any more. */
const DAMAGED_COMPRESSED_MAX = 2;
/** After so many in a row, without compression in the end, the connection is not restored. */
const DAMAGED_MAX = 4;

/** The server still has the connection that was lost, and ends it now (chapter 05 §11). */
const SESSION_IN_USE_CLOSE_CODE = 4000;

/** What may change between attempts. */
const PASSING_ERRORS: ReadonlySet<ClientErrorCode> = /* @__PURE__ */ new Set([
  "LC0831",
  "LC0843",
  "LC0851",
  "LC0853",
  "LC0855",
  "LC0856",
]);

/** The state of a connection for the application. */
export interface ConnectionState {
  isActive: boolean;
  isDisconnectRequested: boolean;
  identity?: Identity | undefined;
  connectionId: ConnectionId;
  connectionError?: Error | undefined;
}

/** The rest of the connection, as far as its life concerns it. */
export interface LifecycleHandlers {
  /** The connection is lost: requests on their way have no answer, and half-done work is dropped. */
  onLost(closeCode: number | undefined): void;
  /** There will be no further attempt. */
  onEnd(): void;
  /** Whether rows are on their way, which may take long. */
  isAwaiting(): boolean;
  /** Asks the server for an answer that changes nothing. */
  probe(): void;
}

type Settings = DbConnectionConfig<AnyModule>;

export class Lifecycle {
  /** Whether there was a connection before. */
  wasConnected = false;
  /** Whether there will be no further attempt. */
  isOver = false;
  readonly credentials: Credentials;
  readonly #state: ConnectionState;
  readonly #settings: Settings;
  readonly #link: Link;
  readonly #jobs: JobQueue;
  readonly #contexts: Contexts;
  readonly #handlers: LifecycleHandlers;
  readonly #emitter: EventEmitter<ConnectionEvent>;
  readonly #stateListeners = new Set<() => void>();
  readonly #silence: SilenceWatch | undefined;
  readonly #stopListening: (() => void) | undefined;
  #attempt = 0;
  /** Messages that could not be inflated. */
  #damaged = 0;
  /** The same for all sockets, so that the server has done with one before it lets in the next. */
  readonly #sessionId = ConnectionId.random().toHexString();
  #greetedAt = 0;
  #retryTimer: ReturnType<typeof setTimeout> | undefined;
  #connectTimer: ReturnType<typeof setTimeout> | undefined;

  constructor(
    state: ConnectionState,
    settings: Settings,
    link: Link,
    jobs: JobQueue,
    contexts: Contexts,
    handlers: LifecycleHandlers,
  ) {
    this.#state = state;
    this.#settings = settings;
    this.#link = link;
    this.#jobs = jobs;
    this.#contexts = contexts;
    this.#handlers = handlers;
    this.#emitter = settings.emitter;
    this.credentials = new Credentials(settings.token, settings.onUnauthorized);
    const { keepAlive = {}, reconnect } = settings;
    if (keepAlive !== false) {
      this.#silence = new SilenceWatch(keepAlive, {
        probe: () => handlers.probe(),
        isAwaiting: () => handlers.isAwaiting(),
        onSilent: (silentMs) => this.#loseSilent(silentMs),
      });
    }
    if (reconnect) this.#stopListening = onPageResumed(this.#onPageResumed);
  }

  /** Begins an attempt to connect. */
  start(): void {
    const timeoutMs = this.#settings.connectTimeoutMs ?? CONNECT_TIMEOUT_MS;
    clearTimeout(this.#connectTimer);
    this.#connectTimer = setTimeout(() => {
      const text = `the server did not answer within ${timeoutMs} ms after connecting began`;
      this.#link.drop(new ClientError("LC0853", text));
    }, timeoutMs);
    this.#link.start();
  }

  async openSocket(signal: AbortSignal): ReturnType<WebSocketFactory> {
    const { uri, nameOrAddress, createWSFn, lightMode, confirmedReads, reconnect } = this.#settings;
    const compression = this.#damaged < DAMAGED_COMPRESSED_MAX ? this.#settings.compression : "none";
    const authToken = await this.credentials.next(signal);
    return createWSFn({
      url: uri,
      wsProtocol: [...PREFERRED_WS_PROTOCOLS],
      nameOrAddress,
      authToken,
      signal,
      compression,
      lightMode,
      confirmedReads,
      sessionId: reconnect && this.#sessionId,
      graceMs: reconnect?.graceMs,
    });
  }

  /** Something has come from the server. */
  heard(): void {
    this.#silence?.heard();
  }

  /** The server has answered. Returns whether it has for the first time; otherwise `restored` follows. */
  greeted(message: ServerMessage & { tag: "InitialConnection" }): boolean {
    this.#state.identity = new Identity(message.identity);
    this.#state.connectionId = new ConnectionId(message.connectionId);
    this.credentials.accepted(message.token);
    this.#state.isActive = true;
    clearTimeout(this.#connectTimer);
    this.#silence?.start();
    this.#state.connectionError = undefined;
    this.#greetedAt = Date.now();
    this.#stateChanged();
    if (this.wasConnected) return false;
    this.wasConnected = true;
    this.#attempt = 0;
    this.#emitter.emit("connect", this.#state, this.#state.identity, this.credentials.current);
    return true;
  }

  /** Subscriptions and cache are as they were before the connection was lost. */
  restored(): void {
    this.#emitter.emit("reconnect", this.#state);
  }

  /** The application wants the end. */
  disconnect(): void {
    this.#state.isDisconnectRequested = true;
    clearTimeout(this.#retryTimer);
    this.#retryTimer = undefined;
    this.#link.close();
  }

  /** A message of the server is invalid, or later ones would be. */
  fail(error: ClientError): void {
    this.#jobs.clear();
    this.#link.drop(error);
  }

  /** The connection was lost, or could not be made; a job of its own, after what came before. */
  // biome-ignore lint/correctness/useYield: jobs are generators, and this one needs no second step
  *lose(error: Error | undefined, closeCode?: number): Steps {
    if (this.isOver) return;
    const state = this.#state;
    const wasGreeted = state.isActive;
    state.isActive = false;
    clearTimeout(this.#connectTimer);
    this.#silence?.stop();
    this.#handlers.onLost(closeCode);
    const cause =
      error ?? new ClientError("LC0831", wasGreeted ? "the server ended the connection" : NOT_GREETED);
    if (wasGreeted && Date.now() - this.#greetedAt > STABLE_AFTER_MS) {
      this.#attempt = 0;
      this.#damaged = Math.min(this.#damaged, DAMAGED_COMPRESSED_MAX);
    }
    if (cause instanceof ClientError && cause.code === "LC0843") this.#damaged += 1;
    if (!state.isDisconnectRequested) state.connectionError = cause;
    this.#stateChanged();
    const isRefused = cause instanceof ClientError && cause.code === "LC0832";
    const mayAskAgain = isRefused && !state.isDisconnectRequested && this.credentials.refused(cause);
    if (!this.wasConnected && !state.isDisconnectRequested && !mayAskAgain) {
      this.#emitter.emit("connectError", this.#contexts.ofError(cause), cause);
    }
    // A callback may have asked for the end.
    if (state.isDisconnectRequested) this.#finish(undefined);
    else if (mayAskAgain || this.#mayRetry(cause)) this.#retryLater(cause, closeCode);
    else this.#finish(this.#attempt > 0 ? gaveUp(this.#attempt, cause) : error);
  }

  #retryLater(cause: Error, closeCode: number | undefined): void {
    // That is no failure, and nothing waits longer for it.
    if (closeCode !== SESSION_IN_USE_CLOSE_CODE) this.#attempt += 1;
    const delayMs = Math.max(
      reconnectDelayMs(this.#attempt, this.#settings.reconnect ?? {}),
      Math.min(retryAfterOf(cause), RETRY_AFTER_MS_MAX),
    );
    this.#retryTimer = setTimeout(() => {
      this.#retryTimer = undefined;
      this.start();
    }, delayMs);
    const info: ReconnectingInfo = { attempt: this.#attempt, delayMs, error: cause };
    stdbLogger(
      "debug",
      () => `connection lost (${cause.message}); attempt ${this.#attempt} in ${delayMs} ms`,
    );
    if (this.wasConnected) this.#emitter.emit("reconnecting", this.#contexts.ofError(cause), info);
  }

  #mayRetry(error: Error): boolean {
    const { reconnect } = this.#settings;
    if (!reconnect) return false;
    if (!this.wasConnected && !reconnect.retriesFirstAttempt) return false;
    // Trying again would fail in the same way.
    if (error instanceof ClientError && !PASSING_ERRORS.has(error.code)) return false;
    if (this.#damaged > DAMAGED_MAX) return false;
    return this.#attempt < (reconnect.maxAttempts ?? Number.POSITIVE_INFINITY);
  }

  #finish(error: Error | undefined): void {
    this.isOver = true;
    this.#link.queued = [];
    this.#stopListening?.();
    this.#handlers.onEnd();
    this.#stateChanged();
    if (!this.wasConnected && !this.#state.isDisconnectRequested) return;
    this.#emitter.emit("disconnect", this.#contexts.ofError(error), error);
  }

  /** Nothing has come for long, not even an answer to a question. */
  #loseSilent(silentMs: number): void {
    const seconds = Math.round(silentMs / 1000);
    this.fail(new ClientError("LC0856", `nothing has come from the server for ${seconds} s`));
  }

  /** Pages sleep and networks change: then a dead socket is noticed, and an attempt does not wait. */
  readonly #onPageResumed = (): void => {
    if (this.#retryTimer !== undefined) {
      clearTimeout(this.#retryTimer);
      this.#retryTimer = undefined;
      this.start();
    } else if (this.#link.isSocketClosed) {
      this.#link.drop(undefined);
    } else {
      this.#silence?.hurry();
    }
  };

  /** Calls `listener` when the state changes; returns how to stop that. */
  onStateChange(listener: () => void): () => void {
    this.#stateListeners.add(listener);
    return () => void this.#stateListeners.delete(listener);
  }

  #stateChanged(): void {
    for (const listener of [...this.#stateListeners]) callSafely(listener, []);
  }
}

function retryAfterOf(error: Error): number {
  return (error instanceof ClientError && error.retryAfterMs) || 0;
}

function gaveUp(attempts: number, cause: Error): ClientError {
  const text = `gave up after ${attempts} attempts to restore the connection: ${cause.message}`;
  return new ClientError("LC0850", text, { cause });
}
