// Messages of sub-protocols v2 and v3 (chapter 05 §5), written by hand: the rows inside stay bytes until their table
// decodes them.

import { type BinaryReader, BinaryWriter, ResizableBuffer, type Serializer } from "../core";
import { ClientError } from "./client_error";

/** Rows back to back, and their number where it cannot be told from the bytes. */
export interface RowList {
  readonly data: Uint8Array;
  /** Number of rows when every row has zero bytes, otherwise 0. */
  readonly emptyRows: number;
}

export interface TableRows {
  readonly table: string;
  readonly inserts: RowList[];
  readonly deletes: RowList[];
}

/** The outcome of a reducer. */
export type ReducerOutcome =
  | { tag: "Ok"; value: { retValue: Uint8Array; transactionUpdate: { querySets: TableRows[] } } }
  | { tag: "OkEmpty" }
  | { tag: "Err"; value: Uint8Array }
  | { tag: "InternalError"; value: string };

export type ServerMessage =
  | { tag: "InitialConnection"; identity: bigint; connectionId: bigint; token: string }
  | { tag: "SubscribeApplied"; results: SubscribeSetResult[] }
  | { tag: "UnsubscribeApplied"; querySetId: number; tables: TableRows[] }
  | { tag: "SubscriptionError"; querySetId: number; error: string }
  | { tag: "TransactionUpdate"; tables: TableRows[] }
  | { tag: "OneOffQueryResult"; requestId: number; result: RowsOrError }
  | { tag: "ReducerResult"; requestId: number; timestampMicros: bigint; outcome: ReducerOutcome }
  | { tag: "ProcedureResult"; requestId: number; result: { value: Uint8Array } | { error: string } };

/** The rows that a server has, or why there are none. */
export type RowsOrError = { tables: TableRows[]; error?: undefined } | { tables?: undefined; error: string };

/** Of a query set that was asked for. */
export type SubscribeSetResult = { querySetId: number } & RowsOrError;

/** Messages are put together here; making a buffer for each would cost more than all the rest of a call. */
const scratch = /* @__PURE__ */ new BinaryWriter(4096);
const SCRATCH_BYTES_MAX = 1024 * 1024;

/** A message of its own begins: what is written to the result is its bytes when `finished` is called. */
function begun(tag: number, requestId: number): BinaryWriter {
  scratch.clear();
  scratch.writeU8(tag);
  scratch.writeU32(requestId);
  return scratch;
}

function finished(): Uint8Array<ArrayBuffer> {
  const bytes = scratch.buffer.bytes.slice(0, scratch.offset);
  if (scratch.buffer.capacity > SCRATCH_BYTES_MAX) scratch.reset(new ResizableBuffer(4096));
  return bytes;
}

/** A `Subscribe`, or for several query sets a `SubscribeBatch` (since 2.10.2), with one answer for all. */
export function encodeSubscribe(
  requestId: number,
  sets: readonly { querySetId: number; queries: readonly string[] }[],
): Uint8Array<ArrayBuffer> {
  const isBatch = sets.length > 1;
  const writer = begun(isBatch ? 5 : 0, requestId);
  if (isBatch) writer.writeU32(sets.length);
  for (const { querySetId, queries } of sets) {
    writer.writeU32(querySetId);
    writer.writeU32(queries.length);
    for (const query of queries) writer.writeString(query);
  }
  return finished();
}

/** An `Unsubscribe` that asks for the rows that leave. */
export function encodeUnsubscribe(requestId: number, querySetId: number): Uint8Array<ArrayBuffer> {
  const writer = begun(1, requestId);
  writer.writeU32(querySetId);
  writer.writeU8(1);
  return finished();
}

export function encodeOneOffQuery(requestId: number, query: string): Uint8Array<ArrayBuffer> {
  begun(2, requestId).writeString(query);
  return finished();
}

/** A call of a reducer or procedure with arguments that `serialize` writes. */
export function encodeCall(
  kind: "reducer" | "procedure",
  requestId: number,
  name: string,
  serialize: Serializer<unknown>,
  args: unknown,
): Uint8Array<ArrayBuffer> {
  const writer = begun(kind === "reducer" ? 3 : 4, requestId);
  writer.writeU8(0);
  writer.writeString(name);
  const lengthAt = writer.offset;
  writer.writeU32(0);
  serialize(writer, args);
  writer.view.setUint32(lengthAt, writer.offset - lengthAt - 4, true);
  return finished();
}

/** Reads one message; the reader stands at the next one afterwards. */
export function readServerMessage(reader: BinaryReader): ServerMessage {
  const tag = reader.readU8();
  switch (tag) {
    case 0:
      return {
        tag: "InitialConnection",
        identity: reader.readU256(),
        connectionId: reader.readU128(),
        token: reader.readString(),
      };
    case 1:
    case 8: {
      reader.readU32();
      const results: SubscribeSetResult[] = [];
      for (let n = tag === 1 ? 1 : reader.readU32(); n > 0; n--) {
        results.push({ querySetId: reader.readU32(), ...readRowsOrError(reader, tag === 1) });
      }
      return { tag: "SubscribeApplied", results };
    }
    case 2:
      reader.readU32();
      return {
        tag: "UnsubscribeApplied",
        querySetId: reader.readU32(),
        tables: reader.readU8() === 0 ? readQueryRows(reader, "deletes") : [],
      };
    case 3: {
      const isAnswer = reader.readU8() === 0;
      if (isAnswer) reader.readU32();
      const failed = { querySetId: reader.readU32(), error: reader.readString() };
      return isAnswer
        ? { tag: "SubscribeApplied", results: [failed] }
        : { tag: "SubscriptionError", ...failed };
    }
    case 4:
      return { tag: "TransactionUpdate", tables: readTransactionUpdate(reader) };
    case 5:
      return {
        tag: "OneOffQueryResult",
        requestId: reader.readU32(),
        result: readRowsOrError(reader),
      };
    case 6:
      return {
        tag: "ReducerResult",
        requestId: reader.readU32(),
        timestampMicros: reader.readI64(),
        outcome: readOutcome(reader),
      };
    case 7: {
      const result = reader.readU8() === 0 ? { value: readBytes(reader) } : { error: reader.readString() };
      // Timestamp and duration, which are not used.
      reader.readI64();
      reader.readI64();
      return { tag: "ProcedureResult", requestId: reader.readU32(), result };
    }
    default:
      throw unknownTag(tag, "ServerMessage");
  }
}

/** A view: the payload stays as long as its bytes are needed. */
function readBytes(reader: BinaryReader): Uint8Array {
  return reader.readBytes(reader.readU32());
}

function readRowsOrError(reader: BinaryReader, isRows = false): RowsOrError {
  return isRows || reader.readU8() === 0
    ? { tables: readQueryRows(reader, "inserts") }
    : { error: reader.readString() };
}

function unknownTag(tag: number, type: string): ClientError {
  return new ClientError("LC0840", `the server sent the unknown tag ${tag} of ${type}`);
}

function readOutcome(reader: BinaryReader): ReducerOutcome {
  const tag = reader.readU8();
  switch (tag) {
    case 0:
      return {
        tag: "Ok",
        value: {
          retValue: readBytes(reader),
          transactionUpdate: { querySets: readTransactionUpdate(reader) },
        },
      };
    case 1:
      return { tag: "OkEmpty" };
    case 2:
      return { tag: "Err", value: readBytes(reader) };
    case 3:
      return { tag: "InternalError", value: reader.readString() };
    default:
      throw unknownTag(tag, "ReducerOutcome");
  }
}

function readRowList(reader: BinaryReader): RowList {
  const hint = reader.readU8();
  let offsets = 0;
  if (hint === 0) {
    reader.readU16();
  } else if (hint === 1) {
    offsets = reader.readU32();
    // Rows are decoded one after another, which finds their ends as well.
    reader.readBytes(offsets * 8);
  } else {
    throw unknownTag(hint, "RowSizeHint");
  }
  const data = readBytes(reader);
  return { data, emptyRows: data.length === 0 ? offsets : 0 };
}

function readQueryRows(reader: BinaryReader, role: "inserts" | "deletes"): TableRows[] {
  const tables: TableRows[] = [];
  for (let n = reader.readU32(); n > 0; n--) {
    const table = reader.readString();
    const list = [readRowList(reader)];
    tables.push(
      role === "inserts" ? { table, inserts: list, deletes: [] } : { table, inserts: [], deletes: list },
    );
  }
  return mergeTables(tables);
}

function readTransactionUpdate(reader: BinaryReader): TableRows[] {
  const tables: TableRows[] = [];
  for (let sets = reader.readU32(); sets > 0; sets--) {
    reader.readU32();
    for (let n = reader.readU32(); n > 0; n--) {
      const rows: TableRows = { table: reader.readString(), inserts: [], deletes: [] };
      for (let lists = reader.readU32(); lists > 0; lists--) {
        const kind = reader.readU8();
        if (kind > 1) throw unknownTag(kind, "TableUpdateRows");
        rows.inserts.push(readRowList(reader));
        if (kind === 0) rows.deletes.push(readRowList(reader));
      }
      tables.push(rows);
    }
  }
  return mergeTables(tables);
}

/** All operations on a table in one entry: updates pair their rows across query sets. */
function mergeTables(tables: TableRows[]): TableRows[] {
  if (tables.length < 2) return tables;
  const merged = new Map<string, TableRows>();
  for (const entry of tables) {
    const known = merged.get(entry.table);
    if (known) {
      for (const list of entry.inserts) known.inserts.push(list);
      for (const list of entry.deletes) known.deletes.push(list);
    } else {
      merged.set(entry.table, entry);
    }
  }
  return [...merged.values()];
}
