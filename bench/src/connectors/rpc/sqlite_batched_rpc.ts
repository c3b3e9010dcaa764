// SQLite with many requests per transaction, over its own WebSocket protocol or over HTTP (section 13).

import { WebSocket } from "ws";
import { sqliteBacking } from "../../init/backing";
import { readAnswers, requestBytes, status, writeRequest } from "../../rpc-servers/batched_frames";
import type { TextAnswer } from "../../rpc-servers/batched_sockets";
import { type CallArguments, type Connector, Refused } from "../connector";
import { httpTransport } from "../http_client";
import { RpcConnector } from "./rpc_connector";
import { onNode, rpcDefinition } from "./rpc_definition";

const key = "sqlite_batched_rpc";

interface Waiting {
  resolve(result: unknown): void;
  reject(error: Error): void;
}

/** What is asked for within one turn of the event loop goes out in one frame: transfers as records, all else as text. */
class BatchedSocket implements Connector {
  readonly name = key;
  readonly #waiting = new Map<number, Waiting>();
  #calls: [id: number, name: string, args: CallArguments][] = [];
  #socket: WebSocket | undefined;
  #nextId = 0;
  #frame = new DataView(new ArrayBuffer(64 * requestBytes));
  #framed = 0;

  constructor(private readonly url: string) {}

  open(): Promise<void> {
    return new Promise((resolve, reject) => {
      const socket = new WebSocket(this.url, { perMessageDeflate: false });
      this.#socket = socket;
      socket.once("open", resolve);
      socket.once("error", (error) =>
        reject(new Error(`${key}: no connection to ${this.url}: ${error.message}`)),
      );
      socket.on("message", (data, isBinary) => {
        if (isBinary) readAnswers(data as Buffer, (id, answer) => this.#takeStatus(id, answer));
        else for (const answer of JSON.parse(String(data)) as TextAnswer[]) this.#settle(...answer);
      });
      socket.on("close", (code) => {
        for (const { reject } of this.#waiting.values())
          reject(new Error(`${key}: the connection was lost (${code})`));
        this.#waiting.clear();
      });
    });
  }

  async close(): Promise<void> {
    const socket = this.#socket;
    if (!socket || socket.readyState === socket.CLOSED) return;
    await new Promise<void>((resolve) => {
      socket.once("close", () => resolve());
      socket.close();
    });
  }

  call(name: string, args: CallArguments = {}): Promise<unknown> {
    if (this.#socket?.readyState !== WebSocket.OPEN)
      return Promise.reject(new Error(`${key}: not connected`));
    const id = this.#nextId;
    this.#nextId = (id + 1) >>> 0;
    if (name === "transfer") this.#addTransfer(id, args);
    else this.#addCall(id, name, args);
    return new Promise((resolve, reject) => this.#waiting.set(id, { resolve, reject }));
  }

  #addCall(id: number, name: string, args: CallArguments): void {
    if (this.#calls.length === 0) {
      queueMicrotask(() => {
        this.#socket?.send(JSON.stringify(this.#calls));
        this.#calls = [];
      });
    }
    this.#calls.push([id, name, args]);
  }

  #addTransfer(id: number, args: CallArguments): void {
    if (this.#framed === 0) queueMicrotask(() => this.#flush());
    if (this.#framed * requestBytes === this.#frame.byteLength) this.#growFrame();
    writeRequest(this.#frame, this.#framed++ * requestBytes, {
      id,
      from: args["from_id"] as number,
      to: args["to_id"] as number,
      amount: args["amount"] as number,
    });
  }

  #growFrame(): void {
    const larger = new Uint8Array(2 * this.#frame.byteLength);
    larger.set(new Uint8Array(this.#frame.buffer));
    this.#frame = new DataView(larger.buffer);
  }

  #flush(): void {
    // A copy: the socket may keep it until it is sent.
    const frame = new Uint8Array(this.#frame.buffer.slice(0, this.#framed * requestBytes));
    this.#framed = 0;
    this.#socket?.send(frame);
  }

  #takeStatus(id: number, answer: number): void {
    const isKnown = answer === status.applied || answer === status.insufficient;
    if (isKnown) this.#settle(id, { applied: answer === status.applied });
    else this.#settle(id, undefined, `status ${answer}`);
  }

  #settle(id: number, result: unknown, error?: string): void {
    const waiting = this.#waiting.get(id);
    this.#waiting.delete(id);
    if (error === undefined) waiting?.resolve(result);
    else waiting?.reject(new Refused(`${key}: ${error}`));
  }
}

class SqliteBatchedConnector extends RpcConnector {
  override async createWorker(which: { index: number; total: number }): Promise<Connector> {
    const transport = process.env["SQLITE_BATCH_TRANSPORT"] ?? "ws";
    if (transport === "http") return super.createWorker(which);
    if (transport !== "ws") throw new Error(`SQLITE_BATCH_TRANSPORT is ws or http, not ${transport}`);
    const worker = new BatchedSocket(`${this.options.url.replace(/^http/, "ws").replace(/\/+$/, "")}/rpc-ws`);
    await worker.open();
    return worker;
  }
}

const isHttp = process.env["SQLITE_BATCH_TRANSPORT"] === "http";

export const definition = rpcDefinition({
  key,
  ...onNode("sqlite-batched-rpc-server.ts", "SQLITE_BATCHED_RPC", 4107, sqliteBacking),
  transport: isHttp ? httpTransport() : "WebSocket, frames of many requests",
  nativeKind: isHttp ? "rpc" : "batched",
  create: ({ initialBalance }, url) => new SqliteBatchedConnector({ name: key, url, initialBalance }),
});
