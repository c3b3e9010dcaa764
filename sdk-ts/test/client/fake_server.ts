// A server in memory that speaks the client protocol over fake sockets: one table, subscriptions of ranges of ids.

import type { WebSocketAdapter, WebSocketFactory } from "../../src/client";
import { BinaryReader, BinaryWriter } from "../../src/client";

export interface PersonRow {
  id: number;
  name: string;
}

const V3 = "v3.bsatn.spacetimedb";

export type ClientMessage =
  | { tag: "Subscribe"; requestId: number; querySetId: number; queries: string[] }
  | { tag: "SubscribeBatch"; requestId: number; sets: { querySetId: number; queries: string[] }[] }
  | { tag: "Unsubscribe"; requestId: number; querySetId: number }
  | { tag: "OneOffQuery"; requestId: number; query: string }
  | { tag: "Call"; kind: "reducer" | "procedure"; requestId: number; name: string; args: Uint8Array };

export function readClientMessages(payload: Uint8Array): ClientMessage[] {
  const reader = new BinaryReader(payload);
  const messages: ClientMessage[] = [];
  while (reader.remaining > 0) {
    const tag = reader.readU8();
    const requestId = reader.readU32();
    if (tag === 0) {
      const querySetId = reader.readU32();
      const queries = Array.from({ length: reader.readU32() }, () => reader.readString());
      messages.push({ tag: "Subscribe", requestId, querySetId, queries });
    } else if (tag === 1) {
      messages.push({ tag: "Unsubscribe", requestId, querySetId: reader.readU32() });
      if (reader.readU8() !== 1) throw new Error("an unsubscribe must ask for the rows");
    } else if (tag === 2) {
      messages.push({ tag: "OneOffQuery", requestId, query: reader.readString() });
    } else if (tag === 5) {
      const sets = Array.from({ length: reader.readU32() }, () => ({
        querySetId: reader.readU32(),
        queries: Array.from({ length: reader.readU32() }, () => reader.readString()),
      }));
      messages.push({ tag: "SubscribeBatch", requestId, sets });
    } else {
      if (reader.readU8() !== 0) throw new Error("flags must be 0");
      const kind = tag === 3 ? "reducer" : "procedure";
      messages.push({
        tag: "Call",
        kind,
        requestId,
        name: reader.readString(),
        args: reader.readUInt8Array(),
      });
    }
  }
  return messages;
}

/** Bytes of a server message. */
export function message(write: (writer: BinaryWriter) => void): Uint8Array<ArrayBuffer> {
  const writer = new BinaryWriter(64);
  write(writer);
  return writer.getBuffer().slice();
}

/** A row list with offsets, as the server sends rows of different sizes. */
export function writeRows(writer: BinaryWriter, rows: readonly Uint8Array[]): void {
  writer.writeU8(1);
  writer.writeU32(rows.length);
  let offset = 0n;
  for (const row of rows) {
    writer.writeU64(offset);
    offset += BigInt(row.length);
  }
  writer.writeU32(Number(offset));
  for (const row of rows) writer.writeBytes(row);
}

export function personBytes({ id, name }: PersonRow): Uint8Array {
  return message((writer) => {
    writer.writeU32(id);
    writer.writeString(name);
  });
}

export interface SetDelta {
  querySetId: number;
  table: string;
  inserts: Uint8Array[];
  deletes: Uint8Array[];
}

export type SetResult = { querySetId: number } & (
  | { table: string; rows: readonly Uint8Array[] }
  | { error: string }
);

function writeQuerySets(writer: BinaryWriter, deltas: readonly SetDelta[]): void {
  writer.writeU32(deltas.length);
  for (const { querySetId, table, inserts, deletes } of deltas) {
    writer.writeU32(querySetId);
    writer.writeU32(1);
    writer.writeString(table);
    writer.writeU32(1);
    writer.writeU8(0);
    writeRows(writer, inserts);
    writeRows(writer, deletes);
  }
}

export const serverMessage = {
  initialConnection: (token = "token") =>
    message((writer) => {
      writer.writeU8(0);
      writer.writeU256(7n);
      writer.writeU128(9n);
      writer.writeString(token);
    }),
  subscribeApplied: (requestId: number, querySetId: number, table: string, rows: readonly Uint8Array[]) =>
    message((writer) => {
      writer.writeU8(1);
      writer.writeU32(requestId);
      writer.writeU32(querySetId);
      writer.writeU32(1);
      writer.writeString(table);
      writeRows(writer, rows);
    }),
  subscribeBatchApplied: (requestId: number, results: readonly SetResult[]) =>
    message((writer) => {
      writer.writeU8(8);
      writer.writeU32(requestId);
      writer.writeU32(results.length);
      for (const { querySetId, ...outcome } of results) {
        writer.writeU32(querySetId);
        writer.writeU8("error" in outcome ? 1 : 0);
        if ("error" in outcome) {
          writer.writeString(outcome.error);
          continue;
        }
        writer.writeU32(1);
        writer.writeString(outcome.table);
        writeRows(writer, outcome.rows);
      }
    }),
  unsubscribeApplied: (requestId: number, querySetId: number, table: string, rows: readonly Uint8Array[]) =>
    message((writer) => {
      writer.writeU8(2);
      writer.writeU32(requestId);
      writer.writeU32(querySetId);
      writer.writeU8(0);
      writer.writeU32(1);
      writer.writeString(table);
      writeRows(writer, rows);
    }),
  subscriptionError: (requestId: number | undefined, querySetId: number, error: string) =>
    message((writer) => {
      writer.writeU8(3);
      writer.writeU8(requestId === undefined ? 1 : 0);
      if (requestId !== undefined) writer.writeU32(requestId);
      writer.writeU32(querySetId);
      writer.writeString(error);
    }),
  transactionUpdate: (deltas: readonly SetDelta[]) =>
    message((writer) => {
      writer.writeU8(4);
      writeQuerySets(writer, deltas);
    }),
  oneOffResult: (requestId: number, table: string, rows: readonly Uint8Array[]) =>
    message((writer) => {
      writer.writeU8(5);
      writer.writeU32(requestId);
      writer.writeU8(0);
      writer.writeU32(1);
      writer.writeString(table);
      writeRows(writer, rows);
    }),
  reducerOk: (requestId: number, deltas: readonly SetDelta[]) =>
    message((writer) => {
      writer.writeU8(6);
      writer.writeU32(requestId);
      writer.writeI64(1_700_000_000_000_000n);
      writer.writeU8(0);
      writer.writeU32(0);
      writeQuerySets(writer, deltas);
    }),
  reducerError: (requestId: number, text: string) =>
    message((writer) => {
      writer.writeU8(6);
      writer.writeU32(requestId);
      writer.writeI64(1_700_000_000_000_000n);
      writer.writeU8(2);
      writer.writeUInt8Array(message((inner) => inner.writeString(text)));
    }),
  procedureResult: (requestId: number, value: Uint8Array) =>
    message((writer) => {
      writer.writeU8(7);
      writer.writeU8(0);
      writer.writeUInt8Array(value);
      writer.writeI64(0n);
      writer.writeI64(0n);
      writer.writeU32(requestId);
    }),
};

/** The socket of one connection, seen from the server. */
export class FakeSocket implements WebSocketAdapter {
  readonly protocol: string;
  readyState = 0;
  /** What the network has not taken. */
  bufferedAmount = 0;
  /** What the client sent and the test has not taken. */
  received: ClientMessage[] = [];
  /** Number of payloads that the client sent. */
  payloads = 0;
  onopen: () => void = () => {};
  onclose: (event: CloseEvent) => void = () => {};
  onerror: (event: ErrorEvent) => void = () => {};
  onmessage: (message: { data: Uint8Array }) => void = () => {};

  constructor(protocol = V3) {
    this.protocol = protocol;
  }

  send(payload: Uint8Array): void {
    if (this.readyState !== 1) throw new Error("the socket is not open");
    this.payloads += 1;
    this.received.push(...readClientMessages(payload));
  }

  /** The client closes. */
  close(): void {
    this.drop();
  }

  open(): void {
    this.readyState = 1;
    this.onopen();
  }

  /** The connection ends, as when the server goes away. */
  drop(error?: Error, code?: number): void {
    if (this.readyState === 3) return;
    this.readyState = 3;
    if (error) this.onerror({ error, message: error.message } as ErrorEvent);
    this.onclose({ code } as CloseEvent);
  }

  /** Delivers messages in one payload. */
  deliver(...messages: Uint8Array[]): void {
    const payload = new Uint8Array(messages.reduce((sum, { length }) => sum + length, 0));
    let at = 0;
    for (const bytes of messages) {
      payload.set(bytes, at);
      at += bytes.length;
    }
    this.onmessage({ data: payload });
  }

  take(): ClientMessage[] {
    return this.received.splice(0);
  }
}

/** Hands out fake sockets in the order of the client's attempts. */
export class FakeServer {
  readonly sockets: FakeSocket[] = [];
  /** Arguments of the attempts. */
  readonly attempts: Parameters<WebSocketFactory>[0][] = [];
  /** Attempts fail with this error while it is set. */
  refusal: Error | undefined;

  readonly factory: WebSocketFactory = async (args) => {
    this.attempts.push(args);
    if (this.refusal) throw this.refusal;
    const socket = new FakeSocket();
    this.sockets.push(socket);
    return socket;
  };

  get socket(): FakeSocket {
    return this.sockets.at(-1)!;
  }
}

/** Lets everything that is ready happen: microtasks, immediates, short timers. */
export async function settle(): Promise<void> {
  for (let i = 0; i < 4; i++) await new Promise((resolve) => setTimeout(resolve));
}

/** Waits for a condition; tests that wait for timers of the client use it. */
export async function until(what: string, condition: () => boolean): Promise<void> {
  const deadline = Date.now() + 10_000;
  while (!condition()) {
    if (Date.now() > deadline) throw new Error(`waited in vain: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}
