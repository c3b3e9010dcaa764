// A client that shows what is on the wire: every message, every close code.

import { brotliDecompressSync, gunzipSync } from "node:zlib";
import { WebSocket } from "ws";
import { decodeServerMessage, message, type Outcome, Reader, type ServerMessage } from "./wire";

export interface RawOptions {
  protocol?: "v2" | "v3";
  token?: string;
  compression?: "None" | "Gzip" | "Brotli";
  confirmed?: boolean;
  connectionId?: string;
}

export class RawClient {
  readonly messages: ServerMessage[] = [];
  /** Tags of the payloads that came: 0 uncompressed, 1 Brotli, 2 gzip. */
  readonly tags: number[] = [];
  identity = "";
  connectionId = "";
  token = "";
  closed: Promise<{ code: number; reason: string }>;
  #nextRequest = 1;
  #read = 0;
  #wake: (() => void) | undefined;
  #ended = false;

  private constructor(readonly socket: WebSocket) {
    socket.on("message", (data: Buffer, isBinary) => this.#receive(data, isBinary));
    this.closed = new Promise((resolve) =>
      socket.on("close", (code, reason) => {
        this.#ended = true;
        resolve({ code, reason: reason.toString("utf8") });
        this.#wake?.();
      }),
    );
    socket.on("error", () => {});
  }

  /** Opens a connection and waits for `InitialConnection`. */
  static async connect(url: string, database: string, options: RawOptions = {}): Promise<RawClient> {
    const client = RawClient.open(url, database, options);
    const first = await client.next();
    if (first.type !== "InitialConnection") throw new Error(`the first message is ${first.type}`);
    Object.assign(client, { identity: first.identity, connectionId: first.connectionId, token: first.token });
    return client;
  }

  static open(url: string, database: string, options: RawOptions = {}): RawClient {
    const target = new URL(`v1/database/${database}/subscribe`, url.endsWith("/") ? url : `${url}/`);
    target.protocol = target.protocol.replace("http", "ws");
    target.searchParams.set("compression", options.compression ?? "None");
    if (options.confirmed !== undefined) target.searchParams.set("confirmed", String(options.confirmed));
    if (options.connectionId) target.searchParams.set("connection_id", options.connectionId);
    return new RawClient(
      new WebSocket(target, [`${options.protocol ?? "v3"}.bsatn.spacetimedb`], {
        perMessageDeflate: false,
        headers: options.token ? { authorization: `Bearer ${options.token}` } : {},
      }),
    );
  }

  /** Sends one WebSocket message. */
  send(...messages: Uint8Array[]): void {
    this.socket.send(Buffer.concat(messages), { binary: true });
  }

  /** The next message, in order. */
  async next(milliseconds = 15_000): Promise<ServerMessage> {
    const timer = setTimeout(() => this.#wake?.(), milliseconds);
    const deadline = Date.now() + milliseconds;
    try {
      while (this.#read >= this.messages.length) {
        if (this.#ended) throw new Error("the connection is closed");
        if (Date.now() >= deadline) throw new Error(`no message within ${milliseconds} ms`);
        await new Promise<void>((resolve) => (this.#wake = resolve));
      }
      return this.messages[this.#read++];
    } finally {
      clearTimeout(timer);
    }
  }

  /** The next message, which must be of this type. */
  async expect<T extends ServerMessage["type"]>(type: T): Promise<Extract<ServerMessage, { type: T }>> {
    const next = await this.next();
    if (next.type !== type) {
      throw new Error(
        `${type} expected, got ${JSON.stringify(next, (_, v) => (typeof v === "bigint" ? `${v}` : v))}`,
      );
    }
    return next as Extract<ServerMessage, { type: T }>;
  }

  /** Calls a reducer and waits for its result; nothing else may come before it. */
  async call(reducer: string, args: Uint8Array = Buffer.alloc(0)): Promise<Outcome> {
    const requestId = this.#nextRequest++;
    this.send(message.callReducer(requestId, reducer, args));
    const result = await this.expect("ReducerResult");
    if (result.requestId !== requestId) throw new Error(`answer ${result.requestId} to request ${requestId}`);
    return result.outcome;
  }

  async subscribe(querySet: number, ...queries: string[]): Promise<ServerMessage> {
    this.send(message.subscribe(this.#nextRequest++, querySet, queries));
    return this.next();
  }

  async query(sql: string): Promise<Extract<ServerMessage, { type: "OneOffQueryResult" }>> {
    this.send(message.oneOffQuery(this.#nextRequest++, sql));
    return this.expect("OneOffQueryResult");
  }

  async close(): Promise<void> {
    this.socket.close();
    await this.closed;
  }

  #receive(data: Buffer, isBinary: boolean): void {
    if (!isBinary) throw new Error("a text message");
    this.tags.push(data[0]);
    const body = data.subarray(1);
    const plain = data[0] === 0 ? body : data[0] === 1 ? brotliDecompressSync(body) : gunzipSync(body);
    const reader = new Reader(plain);
    do this.messages.push(decodeServerMessage(reader));
    while (!reader.isEmpty);
    this.#wake?.();
  }
}
