// The socket under a connection: how it is opened (chapter 05 §2), and payloads inflated in the order of their arrival.

import { known } from "../core/untyped";
import { ClientError, toError } from "./client_error";
import { canReadBrotli, canReadGzip, decompressPayload } from "./compression";
import { reconnectDelayMs } from "./reconnect";

export const V2_WS_PROTOCOL = "v2.bsatn.spacetimedb";
export const V3_WS_PROTOCOL = "v3.bsatn.spacetimedb";

/** The offered protocols; the server's preference decides. */
export const PREFERRED_WS_PROTOCOLS = [V3_WS_PROTOCOL, V2_WS_PROTOCOL] as const;

/** A socket for a connection. Messages are inflated and without their compression byte. */
export interface WebSocketAdapter {
  readonly protocol: string;
  set onopen(handler: () => void);
  set onmessage(handler: (message: { data: Uint8Array }) => void);
  send(message: Uint8Array<ArrayBuffer>): void;
  set onerror(handler: (event: ErrorEvent) => void);
  set onclose(handler: (event: CloseEvent) => void);
  close(): void;
  /** As of `WebSocket`. Without it, a socket that died while the page slept is noticed by its `onclose` only. */
  readonly readyState?: number;
  /** As of `WebSocket`. Without it, a socket takes whatever the application sends. */
  readonly bufferedAmount?: number;
}

/** Compressions that a server may use. */
export type Compression = "none" | "gzip" | "brotli";

/** The options of a socket. */
export interface WebSocketArgs {
  /** The server; `nameOrAddress` is the database. */
  url: URL;
  nameOrAddress: string;
  authToken?: string;
  /** Protocols that the server may use, the best first. */
  wsProtocol: string[];
  compression: Compression;
  confirmedReads?: boolean;
  lightMode: boolean;
  /** 32 hexadecimal digits that stay the same over all sockets of a connection: the server keeps one of them at a time. */
  sessionId?: string;
  /** How long the module is not to hear that this connection was lost, in milliseconds; a server may allow less, or nothing. */
  graceMs?: number;
  /** Aborted when the socket is no longer wanted. */
  signal?: AbortSignal;
}

/** Opens a socket. */
export type WebSocketFactory = (args: WebSocketArgs) => Promise<WebSocketAdapter>;

type WebSocketConstructor = new (url: URL | string, protocols: string[]) => WebSocket;

/** The platform's WebSocket, or, under Node 20, that of package `undici` or `ws` if one is installed. */
async function findWebSocket(): Promise<WebSocketConstructor> {
  if (typeof WebSocket !== "undefined") return WebSocket;
  for (const name of ["undici", "ws"]) {
    try {
      // The name is not a literal, so that bundlers for browsers leave it alone.
      const found = (await import(/* webpackIgnore: true */ /* @vite-ignore */ name)) as {
        WebSocket?: WebSocketConstructor;
      };
      if (found.WebSocket) return found.WebSocket;
    } catch {
      // Not installed; the next one may be.
    }
  }
  throw new ClientError("LC0845", "there is no WebSocket: use Node 22 or newer, or install `ws`");
}

/** `base` with a path below it; a prefix in `base` stays. */
export function endpoint(base: URL, path: string): URL {
  const root = new URL(base);
  if (!root.pathname.endsWith("/")) root.pathname += "/";
  return new URL(path, root);
}

/** Attempts to get a short-lived token within one attempt to connect, and the longest wait between two of them. */
const TOKEN_ATTEMPTS_MAX = 4;
const TOKEN_WAIT_MS_MAX = 5000;

/** A token of some seconds for the URL of the socket, as the long-lived one should not stand in logs (§2.5). */
async function shortLivedToken(base: URL, token: string, signal?: AbortSignal): Promise<string> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await askForToken(base, token, signal);
    } catch (error) {
      const { retryAfterMs } = error as ClientError;
      // Longer waits are left to reconnecting, which also heeds the server's wish.
      const waitMs = Math.max(reconnectDelayMs(attempt, {}), retryAfterMs ?? TOKEN_WAIT_MS_MAX + 1);
      if (waitMs > TOKEN_WAIT_MS_MAX || attempt === TOKEN_ATTEMPTS_MAX || signal?.aborted) throw error;
      await sleep(waitMs, signal);
    }
  }
}

/** Errors of what may be different in a moment say how long to wait. */
async function askForToken(base: URL, token: string, signal?: AbortSignal): Promise<string> {
  const url = endpoint(base, "v1/identity/websocket-token");
  url.protocol = url.protocol === "wss:" ? "https:" : url.protocol === "ws:" ? "http:" : url.protocol;
  let response: Response;
  try {
    response = await fetch(url, { method: "POST", headers: { Authorization: `Bearer ${token}` }, signal });
  } catch (cause) {
    throw new ClientError("LC0831", `cannot reach ${url.origin}: ${toError(cause).message}`, { cause });
  }
  const { status, statusText } = response;
  if (response.ok) {
    const answer = (await response.json().catch(() => undefined)) as { token?: unknown } | null | undefined;
    if (typeof answer?.token === "string") return answer.token;
    const message = `${url.href} did not answer with a token; is this the address of the server?`;
    throw new ClientError("LC0831", message);
  }
  const text = await response.text().catch(() => "");
  const isPassing = status === 408 || status === 429 || status >= 500;
  const retryAfterMs = parseRetryAfter(response.headers.get("retry-after")) ?? (isPassing ? 0 : undefined);
  // These are about the token; anything else may pass.
  const code = status === 400 || status === 401 || status === 403 ? "LC0832" : "LC0831";
  const details = text === "" ? "" : `: ${text.slice(0, REASON_CHARACTERS_MAX)}`;
  throw new ClientError(code, `Failed to verify token: ${statusText || status}${details}`, {
    retryAfterMs,
  });
}

/** A proxy may answer with a page. */
const REASON_CHARACTERS_MAX = 300;

/** Milliseconds of a `Retry-After`, which is a number of seconds or a date. */
function parseRetryAfter(value: string | null): number | undefined {
  if (!value) return undefined;
  const waitMs = /^\d+$/.test(value.trim()) ? Number(value) * 1000 : Date.parse(value) - Date.now();
  return Number.isFinite(waitMs) ? Math.max(0, waitMs) : undefined;
}

/** Waits, until the signal aborts at most. */
function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal?.addEventListener("abort", () => {
      clearTimeout(timer);
      resolve();
    });
  });
}

function compressionParameter(wanted: WebSocketArgs["compression"]): string {
  if (wanted === "brotli" && canReadBrotli()) return "Brotli";
  // A browser without Brotli gets what it can read.
  return wanted !== "none" && canReadGzip() ? "Gzip" : "None";
}

/** Opens a socket to a database, with `binaryType` set to `arraybuffer`. */
export async function openWebSocket(args: WebSocketArgs): Promise<WebSocket> {
  const url = endpoint(args.url, `v1/database/${encodeURIComponent(args.nameOrAddress)}/subscribe`);
  url.protocol = url.protocol.replace("http", "ws");
  const parameters = url.searchParams;
  if (args.authToken) parameters.set("token", await shortLivedToken(args.url, args.authToken, args.signal));
  parameters.set("compression", compressionParameter(args.compression));
  if (args.lightMode) parameters.set("light", "true");
  if (args.confirmedReads !== undefined) parameters.set("confirmed", String(args.confirmedReads));
  if (args.sessionId !== undefined) parameters.set("session_id", args.sessionId);
  if (args.graceMs !== undefined) parameters.set("session_grace", String(args.graceMs));
  const Socket = await findWebSocket();
  if (args.signal?.aborted) throw new ClientError("LC0831", "this connection is no longer wanted");
  const socket = new Socket(url.href, args.wsProtocol);
  socket.binaryType = "arraybuffer";
  return socket;
}

/** Payloads that may wait for one that is being inflated. When another one comes then, the connection is lost (LC0831). */
const INFLATING_BYTES_MAX = 256 * 1024 * 1024;

/**
 * Inflates the payloads of a socket and delivers them, and the end of the connection, strictly in the order in which
 * they came: a small payload never overtakes a large one that is still being inflated.
 */
export class OrderedSocket implements WebSocketAdapter {
  readonly #socket: WebSocket;
  #onmessage: (message: { data: Uint8Array }) => void = () => {};
  #onclose: (event: CloseEvent) => void = () => {};
  #onerror: (event: ErrorEvent) => void = () => {};
  /** Ends when everything that came so far is delivered; undefined when there is nothing to wait for. */
  #tail: Promise<void> | undefined;
  #waitingBytes = 0;
  #isBroken = false;

  constructor(socket: WebSocket) {
    this.#socket = socket;
    socket.onmessage = (event) => this.#receive(event.data);
    socket.onclose = (event) => this.#inOrder(() => void this.#onclose(event));
    socket.onerror = (event) => this.#inOrder(() => void this.#onerror(event as ErrorEvent));
  }

  static async open(args: WebSocketArgs): Promise<OrderedSocket> {
    return new OrderedSocket(await openWebSocket(args));
  }

  get protocol(): string {
    return this.#socket.protocol;
  }

  get readyState(): number {
    return this.#socket.readyState;
  }

  get bufferedAmount(): number {
    return this.#socket.bufferedAmount;
  }

  set onopen(handler: () => void) {
    this.#socket.onopen = handler;
  }

  set onmessage(handler: (message: { data: Uint8Array }) => void) {
    this.#onmessage = handler;
  }

  set onclose(handler: (event: CloseEvent) => void) {
    this.#onclose = handler;
  }

  set onerror(handler: (event: ErrorEvent) => void) {
    this.#onerror = handler;
  }

  send(message: Uint8Array<ArrayBuffer>): void {
    this.#socket.send(message);
  }

  close(): void {
    this.#socket.close();
  }

  #receive(data: unknown): void {
    if (this.#isBroken) return;
    if (!(data instanceof ArrayBuffer)) {
      this.#fail(
        new ClientError("LC0844", "the server sent a text message, which this protocol does not have"),
      );
      return;
    }
    if (this.#waitingBytes > INFLATING_BYTES_MAX) {
      this.#fail(new ClientError("LC0831", "messages come faster than they can be inflated"));
      return;
    }
    // One alone may have any size.
    const waitingBytes = this.#tail ? data.byteLength : 0;
    this.#waitingBytes += waitingBytes;
    let body: Uint8Array<ArrayBuffer> | Promise<Uint8Array<ArrayBuffer>>;
    try {
      body = decompressPayload(new Uint8Array(data));
    } catch (error) {
      this.#fail(error);
      return;
    }
    if (body instanceof Promise) {
      // Inflating starts now, next to that of other payloads; the result waits for its turn.
      body.catch(() => {});
      const inflated = body;
      this.#inOrder(async () => this.#deliver(await inflated, waitingBytes));
    } else {
      const plain = body;
      this.#inOrder(() => this.#deliver(plain, waitingBytes));
    }
  }

  #deliver(data: Uint8Array, waitingBytes: number): void {
    this.#waitingBytes -= waitingBytes;
    if (!this.#isBroken) this.#onmessage({ data });
  }

  /** Runs `work` now when nothing is waiting, otherwise after what waits. */
  #inOrder(work: () => void | Promise<void>): void {
    if (!this.#tail) {
      const result = work();
      if (result instanceof Promise) this.#follow(result);
    } else {
      this.#follow(this.#tail.then(work));
    }
  }

  #follow(step: Promise<void>): void {
    const tail = step
      .catch((error: unknown) => this.#fail(error))
      .then(() => {
        if (this.#tail === tail) this.#tail = undefined;
      });
    this.#tail = tail;
  }

  /** Data behind unreadable data is not trusted. */
  #fail(error: unknown): void {
    if (this.#isBroken) return;
    this.#isBroken = true;
    this.#onerror(known<ErrorEvent>({ type: "error", error, message: toError(error).message }));
    this.#socket.close();
  }
}
