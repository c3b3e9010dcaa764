// SQLite with many requests per transaction, over its own WebSocket protocol or over HTTP (section 13).

import { once } from "node:events";
import { WebSocket } from "ws";
import { sqliteBacking } from "../../init/backing";
import { readAnswers, requestBytes, status, writeRequest } from "../../rpc-servers/batched_frames";
import type { TextAnswer } from "../../rpc-servers/batched_sockets";
import { type CallArguments, type Connector, Refused } from "../connector";
import { httpTransport } from "../http_client";
import { rpcConnection } from "./rpc_connector";
import { onNode, rpcDefinition } from "./rpc_definition";

const key = "sqlite_batched_rpc";

interface Waiting {
  resolve(result: unknown): void;
  reject(error: Error): void;
}

/** What is asked for within one turn of the event loop goes out in one frame: transfers as records, all else as text. */
async function batchedSocket(url: string): Promise<Connector> {
  const socket = new WebSocket(url, { perMessageDeflate: false });
  const waiting = new Map<number, Waiting>();
  let calls: [id: number, name: string, args: CallArguments][] = [];
  let nextId = 0;
  let frame = new DataView(new ArrayBuffer(64 * requestBytes));
  let framed = 0;

  const settle = (id: number, result: unknown, error?: string) => {
    const waits = waiting.get(id);
    waiting.delete(id);
    if (error === undefined) waits?.resolve(result);
    else waits?.reject(new Refused(`${key}: ${error}`));
  };
  const takeStatus = (id: number, answer: number) => {
    const isKnown = answer === status.applied || answer === status.insufficient;
    if (isKnown) settle(id, { applied: answer === status.applied });
    else settle(id, undefined, `status ${answer}`);
  };
  const addCall = (id: number, name: string, args: CallArguments) => {
    if (calls.length === 0) {
      queueMicrotask(() => {
        socket.send(JSON.stringify(calls));
        calls = [];
      });
    }
    calls.push([id, name, args]);
  };
  const flush = () => {
    // A copy: the socket may keep it until it is sent.
    const sent = new Uint8Array(frame.buffer.slice(0, framed * requestBytes));
    framed = 0;
    socket.send(sent);
  };
  const addTransfer = (id: number, args: CallArguments) => {
    if (framed === 0) queueMicrotask(flush);
    if (framed * requestBytes === frame.byteLength) {
      const larger = new Uint8Array(2 * frame.byteLength);
      larger.set(new Uint8Array(frame.buffer));
      frame = new DataView(larger.buffer);
    }
    writeRequest(frame, framed++ * requestBytes, {
      id,
      from: args["from_id"] as number,
      to: args["to_id"] as number,
      amount: args["amount"] as number,
    });
  };

  socket.on("message", (data, isBinary) => {
    if (isBinary) readAnswers(data as Buffer, takeStatus);
    else for (const answer of JSON.parse(String(data)) as TextAnswer[]) settle(...answer);
  });
  socket.on("close", (code) => {
    for (const { reject } of waiting.values()) reject(new Error(`${key}: the connection was lost (${code})`));
    waiting.clear();
  });
  await once(socket, "open").catch((error: Error) => {
    throw new Error(`${key}: no connection to ${url}: ${error.message}`);
  });
  // An error is told by the end of the connection, too.
  socket.on("error", () => undefined);
  return {
    name: key,
    open: async () => {},
    async close() {
      if (socket.readyState === socket.CLOSED) return;
      const closed = once(socket, "close");
      socket.close();
      await closed;
    },
    call(name, args = {}) {
      if (socket.readyState !== WebSocket.OPEN) return Promise.reject(new Error(`${key}: not connected`));
      const id = nextId;
      nextId = (id + 1) >>> 0;
      if (name === "transfer") addTransfer(id, args);
      else addCall(id, name, args);
      return new Promise((resolve, reject) => waiting.set(id, { resolve, reject }));
    },
  };
}

function connection(url: string, initialBalance: number): Connector {
  const root = rpcConnection({ name: key, url, initialBalance });
  return {
    ...root,
    async createWorker(which) {
      const transport = process.env["SQLITE_BATCH_TRANSPORT"] ?? "ws";
      if (transport === "http") return root.createWorker!(which);
      if (transport !== "ws") throw new Error(`SQLITE_BATCH_TRANSPORT is ws or http, not ${transport}`);
      return batchedSocket(`${url.replace(/^http/, "ws").replace(/\/+$/, "")}/rpc-ws`);
    },
  };
}

const isHttp = process.env["SQLITE_BATCH_TRANSPORT"] === "http";

export const definition = rpcDefinition({
  key,
  ...onNode("sqlite-batched-rpc-server.ts", "SQLITE_BATCHED_RPC", 4107, sqliteBacking),
  transport: isHttp ? httpTransport() : "WebSocket, frames of many requests",
  nativeKind: isHttp ? "rpc" : "batched",
  create: ({ initialBalance }, url) => connection(url, initialBalance),
});
