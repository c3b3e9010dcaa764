// The socket under a connection: how it is opened (chapter 05 §2), and payloads inflated in the order of their arrival.

import { ClientError, toError } from "./client_error";
import { canReadBrotli, canReadGzip, decompressPayload } from "./compression";

export const V2_WS_PROTOCOL = "v2.bsatn.spacetimedb";
export const V3_WS_PROTOCOL = "v3.bsatn.spacetimedb";

/** What the client offers; the server's preference decides. */
export const PREFERRED_WS_PROTOCOLS = [V3_WS_PROTOCOL, V2_WS_PROTOCOL] as const;

/** What a connection needs of a socket. Messages are inflated and without their compression byte. */
export interface WebSocketAdapter {
  readonly protocol: string;
  /** As of `WebSocket`. Without it, a socket that died while the page slept is noticed by its `onclose` only. */
  readonly readyState?: number;
  send(message: Uint8Array<ArrayBuffer>): void;
  close(): void;
  set onclose(handler: (event: CloseEvent) => void);
  set onopen(handler: () => void);
  set onmessage(handler: (message: { data: Uint8Array }) => void);
  set onerror(handler: (event: ErrorEvent) => void);
}

export interface WebSocketArgs {
  url: URL;
  wsProtocol: string[];
  nameOrAddress: string;
  authToken?: string;
  compression: "gzip" | "brotli" | "none";
  lightMode: boolean;
  confirmedReads?: boolean;
}

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
  throw new ClientError(
    "LC0845",
    "this platform has no WebSocket; use Node 22 or newer, or install the package `ws` or `undici`",
  );
}

/** `base` with a path below it; a prefix in `base` stays. */
function endpoint(base: URL, path: string): URL {
  const root = new URL(base);
  if (!root.pathname.endsWith("/")) root.pathname += "/";
  return new URL(path, root);
}

/** A token of some seconds for the URL of the socket, as the long-lived one should not stand in logs (§2.5). */
async function shortLivedToken(base: URL, token: string): Promise<string> {
  const url = endpoint(base, "v1/identity/websocket-token");
  url.protocol = url.protocol === "wss:" ? "https:" : url.protocol === "ws:" ? "http:" : url.protocol;
  let response: Response;
  try {
    response = await fetch(url, { method: "POST", headers: { Authorization: `Bearer ${token}` } });
  } catch (error) {
    throw new ClientError("LC0831", `cannot reach ${url.origin}: ${toError(error).message}`, {
      cause: error,
    });
  }
  if (!response.ok) {
    const reason = await response.text().catch(() => "");
    const details = reason === "" ? "" : `: ${reason}`;
    // 4xx is about the token; anything else may pass.
    const code = response.status >= 400 && response.status < 500 ? "LC0832" : "LC0831";
    throw new ClientError(
      code,
      `Failed to verify token: ${response.statusText || response.status}${details}`,
    );
  }
  return ((await response.json()) as { token: string }).token;
}

function compressionParameter(wanted: WebSocketArgs["compression"]): string {
  if (wanted === "brotli" && canReadBrotli()) return "Brotli";
  // A browser without Brotli gets what it can read.
  return wanted !== "none" && canReadGzip() ? "Gzip" : "None";
}

/** Opens a socket to a database, with `binaryType` set to `arraybuffer`. */
export async function openWebSocket(args: WebSocketArgs): Promise<WebSocket> {
  const url = endpoint(args.url, `v1/database/${encodeURIComponent(args.nameOrAddress)}/subscribe`);
  url.protocol = url.protocol === "https:" ? "wss:" : url.protocol === "http:" ? "ws:" : url.protocol;
  if (args.authToken) url.searchParams.set("token", await shortLivedToken(args.url, args.authToken));
  url.searchParams.set("compression", compressionParameter(args.compression));
  if (args.lightMode) url.searchParams.set("light", "true");
  if (args.confirmedReads !== undefined) url.searchParams.set("confirmed", String(args.confirmedReads));
  const Socket = await findWebSocket();
  const socket = new Socket(url.href, args.wsProtocol);
  socket.binaryType = "arraybuffer";
  return socket;
}

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
      this.#inOrder(async () => this.#deliver(await inflated));
    } else {
      const plain = body;
      this.#inOrder(() => this.#deliver(plain));
    }
  }

  #deliver(data: Uint8Array): void {
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

  /** What comes after data that cannot be read is not trusted. */
  #fail(error: unknown): void {
    if (this.#isBroken) return;
    this.#isBroken = true;
    this.#onerror({ type: "error", error, message: toError(error).message } as unknown as ErrorEvent);
    this.#socket.close();
  }
}
