// Messages of sub-protocols v2 and v3 (chapter 05 §5), written by hand: the tests must not depend on one client's decoder.

export class Writer {
  #parts: Buffer[] = [];
  u8(value: number): this {
    this.#parts.push(Buffer.from([value]));
    return this;
  }
  u32(value: number): this {
    const part = Buffer.alloc(4);
    part.writeUInt32LE(value);
    this.#parts.push(part);
    return this;
  }
  i64(value: bigint): this {
    const part = Buffer.alloc(8);
    part.writeBigInt64LE(value);
    this.#parts.push(part);
    return this;
  }
  raw(value: Uint8Array): this {
    this.#parts.push(Buffer.from(value));
    return this;
  }
  bytes(value: Uint8Array): this {
    return this.u32(value.length).raw(value);
  }
  string(value: string): this {
    return this.bytes(Buffer.from(value, "utf8"));
  }
  done(): Buffer {
    return Buffer.concat(this.#parts);
  }
}

export class Reader {
  offset = 0;
  constructor(readonly data: Buffer) {}
  get isEmpty(): boolean {
    return this.offset >= this.data.length;
  }
  u8(): number {
    return this.data.readUInt8(this.#skip(1));
  }
  u16(): number {
    return this.data.readUInt16LE(this.#skip(2));
  }
  u32(): number {
    return this.data.readUInt32LE(this.#skip(4));
  }
  u64(): bigint {
    return this.data.readBigUInt64LE(this.#skip(8));
  }
  i64(): bigint {
    return this.data.readBigInt64LE(this.#skip(8));
  }
  raw(length: number): Buffer {
    const from = this.#skip(length);
    if (from + length > this.data.length)
      throw new Error(`${length} bytes wanted at ${from} of ${this.data.length}`);
    return this.data.subarray(from, from + length);
  }
  bytes(): Buffer {
    return this.raw(this.u32());
  }
  string(): string {
    return this.bytes().toString("utf8");
  }
  array<T>(element: () => T): T[] {
    return Array.from({ length: this.u32() }, element);
  }
  option<T>(element: () => T): T | undefined {
    const tag = this.u8();
    if (tag > 1) throw new Error(`option tag ${tag}`);
    return tag === 0 ? element() : undefined;
  }
  #skip(length: number): number {
    const from = this.offset;
    this.offset += length;
    return from;
  }
}

export interface Rows {
  table: string;
  rows: Buffer[];
}
export interface TableDelta {
  table: string;
  inserts: Buffer[];
  deletes: Buffer[];
  events: Buffer[];
  /** Number of `TableUpdateRows`: one per query with a change. */
  parts: number;
}
export interface QuerySetUpdate {
  querySet: number;
  tables: TableDelta[];
}
export type ServerMessage =
  | { type: "InitialConnection"; identity: string; connectionId: string; token: string }
  | { type: "SubscribeApplied"; requestId: number; querySet: number; tables: Rows[] }
  | { type: "UnsubscribeApplied"; requestId: number; querySet: number; tables: Rows[] | undefined }
  | { type: "SubscriptionError"; requestId: number | undefined; querySet: number; error: string }
  | { type: "TransactionUpdate"; querySets: QuerySetUpdate[] }
  | { type: "OneOffQueryResult"; requestId: number; tables?: Rows[]; error?: string }
  | { type: "ReducerResult"; requestId: number; timestamp: bigint; outcome: Outcome }
  | { type: "ProcedureResult"; requestId: number; error?: string; value?: Buffer };
export type Outcome =
  | { kind: "Ok"; querySets: QuerySetUpdate[] }
  | { kind: "Err"; error: string }
  | { kind: "InternalError"; error: string };

export const message = {
  subscribe: (requestId: number, querySet: number, queries: string[]): Buffer => {
    const out = new Writer().u8(0).u32(requestId).u32(querySet).u32(queries.length);
    for (const query of queries) out.string(query);
    return out.done();
  },
  unsubscribe: (requestId: number, querySet: number, sendDroppedRows: boolean): Buffer =>
    new Writer()
      .u8(1)
      .u32(requestId)
      .u32(querySet)
      .u8(sendDroppedRows ? 1 : 0)
      .done(),
  oneOffQuery: (requestId: number, query: string): Buffer =>
    new Writer().u8(2).u32(requestId).string(query).done(),
  callReducer: (requestId: number, reducer: string, args: Uint8Array, flags = 0): Buffer =>
    new Writer().u8(3).u32(requestId).u8(flags).string(reducer).bytes(args).done(),
  callProcedure: (requestId: number, procedure: string, args: Uint8Array, flags = 0): Buffer =>
    new Writer().u8(4).u32(requestId).u8(flags).string(procedure).bytes(args).done(),
};

function rowList(r: Reader): Buffer[] {
  const hint = r.u8();
  if (hint === 0) {
    const size = r.u16();
    const data = r.bytes();
    if (size === 0 || data.length % size !== 0)
      throw new Error(`${data.length} bytes of rows of ${size} bytes`);
    return Array.from({ length: data.length / size }, (_, i) => data.subarray(i * size, (i + 1) * size));
  }
  if (hint !== 1) throw new Error(`row size hint ${hint}`);
  const offsets = r.array(() => Number(r.u64()));
  const data = r.bytes();
  if (offsets.length > 0 && offsets[0] !== 0) throw new Error("the first row does not start at 0");
  return offsets.map((from, i) => data.subarray(from, offsets[i + 1] ?? data.length));
}

const queryRows = (r: Reader): Rows[] => r.array(() => ({ table: r.string(), rows: rowList(r) }));

const querySets = (r: Reader): QuerySetUpdate[] =>
  r.array(() => ({
    querySet: r.u32(),
    tables: r.array(() => {
      const delta: TableDelta = { table: r.string(), inserts: [], deletes: [], events: [], parts: 0 };
      r.array(() => {
        delta.parts += 1;
        const kind = r.u8();
        if (kind === 0) {
          delta.inserts.push(...rowList(r));
          delta.deletes.push(...rowList(r));
        } else if (kind === 1) delta.events.push(...rowList(r));
        else throw new Error(`TableUpdateRows tag ${kind}`);
      });
      return delta;
    }),
  }));

const reversedHex = (bytes: Buffer): string => Buffer.from(bytes).reverse().toString("hex");

export function decodeServerMessage(r: Reader): ServerMessage {
  const tag = r.u8();
  switch (tag) {
    case 0:
      return {
        type: "InitialConnection",
        identity: reversedHex(r.raw(32)),
        connectionId: reversedHex(r.raw(16)),
        token: r.string(),
      };
    case 1:
      return { type: "SubscribeApplied", requestId: r.u32(), querySet: r.u32(), tables: queryRows(r) };
    case 2:
      return {
        type: "UnsubscribeApplied",
        requestId: r.u32(),
        querySet: r.u32(),
        tables: r.option(() => queryRows(r)),
      };
    case 3:
      return {
        type: "SubscriptionError",
        requestId: r.option(() => r.u32()),
        querySet: r.u32(),
        error: r.string(),
      };
    case 4:
      return { type: "TransactionUpdate", querySets: querySets(r) };
    case 5: {
      const requestId = r.u32();
      return r.u8() === 0
        ? { type: "OneOffQueryResult", requestId, tables: queryRows(r) }
        : { type: "OneOffQueryResult", requestId, error: r.string() };
    }
    case 6: {
      const requestId = r.u32();
      const timestamp = r.i64();
      return { type: "ReducerResult", requestId, timestamp, outcome: outcome(r) };
    }
    case 7: {
      const failed = r.u8() !== 0;
      const payload = r.bytes();
      r.i64();
      r.i64();
      const requestId = r.u32();
      return failed
        ? { type: "ProcedureResult", requestId, error: payload.toString("utf8") }
        : { type: "ProcedureResult", requestId, value: payload };
    }
    default:
      throw new Error(`server message tag ${tag}`);
  }
}

function outcome(r: Reader): Outcome {
  const kind = r.u8();
  switch (kind) {
    case 0:
      if (r.bytes().length !== 0) throw new Error("a reducer returned bytes");
      return { kind: "Ok", querySets: querySets(r) };
    case 1:
      return { kind: "Ok", querySets: [] };
    case 2:
      return { kind: "Err", error: new Reader(r.bytes()).string() };
    case 3:
      return { kind: "InternalError", error: r.string() };
    default:
      throw new Error(`reducer outcome ${kind}`);
  }
}
