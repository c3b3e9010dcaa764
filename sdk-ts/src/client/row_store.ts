// Rows of one table with their reference counts: a row is there once for each query that selects it (chapter 05 §7.3).

import type { Steps } from "./scheduling";

export type Row = Record<string, unknown>;

/** Primary key of a row, or its bytes as a string in a table without one. */
export type RowKey = string | number | bigint | boolean;

/** Rows in the order of a message, with their keys at the same positions. */
export interface KeyedRows {
  readonly keys: RowKey[];
  readonly rows: Row[];
}

/** The changes of a message, for the application. */
export class Changes {
  readonly inserted: Row[] = [];
  /** Pairs: the old row, then the new one. */
  readonly updated: Row[] = [];
  readonly deleted: Row[] = [];

  get size(): number {
    return this.inserted.length + this.updated.length / 2 + this.deleted.length;
  }
}

/** Rows between two readings of the clock. */
export const ROWS_BETWEEN_YIELDS = 512;

/** Operations up to this number, some milliseconds of work, become visible in one go. */
const COMMIT_OPERATIONS = 8192;
/** The same where a copy of the table would be more work: some 20 ms. */
const COMMIT_OPERATIONS_MAX = 131_072;

/** The net change of a message for one key. */
interface Net {
  difference: number;
  /** The last row that was inserted. */
  row: Row | undefined;
  isDeleted: boolean;
}

/** Operations that a store can apply: as they came if they are of one kind, otherwise by key. */
export type Operations =
  | { readonly inserts: KeyedRows }
  | { readonly deletes: KeyedRows }
  | { readonly net: ReadonlyMap<RowKey, Net>; readonly isKeyed: boolean };

/**
 * Puts the operations of a message together, for any store. `isKeyed` says that the keys are primary keys, so that a
 * delete and an insert of the same key are an update; otherwise they are the same row and cancel each other.
 */
export function* operationsOf(inserts: KeyedRows, deletes: KeyedRows, isKeyed: boolean): Steps<Operations> {
  if (deletes.keys.length === 0) return { inserts };
  if (inserts.keys.length === 0) return { deletes };
  const net = new Map<RowKey, Net>();
  yield* count(net, inserts, 1);
  yield* count(net, deletes, -1);
  return { net, isKeyed };
}

function* count(net: Map<RowKey, Net>, { keys, rows }: KeyedRows, difference: 1 | -1): Steps {
  for (let i = 0; i < keys.length; i++) {
    let entry = net.get(keys[i]!);
    if (!entry) net.set(keys[i]!, (entry = { difference: 0, row: undefined, isDeleted: false }));
    entry.difference += difference;
    if (difference > 0) entry.row = rows[i];
    else entry.isDeleted = true;
    if (i % ROWS_BETWEEN_YIELDS === ROWS_BETWEEN_YIELDS - 1) yield;
  }
}

export class RowStore {
  readonly rows: Map<RowKey, Row>;
  /** References beyond the first; most rows have one only. */
  readonly #more: Map<RowKey, number>;

  constructor(rows: Map<RowKey, Row> = new Map(), more: Map<RowKey, number> = new Map()) {
    this.rows = rows;
    this.#more = more;
  }

  /** References of a row. */
  countOf(key: RowKey): number {
    return this.rows.has(key) ? 1 + (this.#more.get(key) ?? 0) : 0;
  }

  /** Whether so many operations are better done in slices on a copy. */
  wantsSlices(operations: number): boolean {
    if (operations > COMMIT_OPERATIONS_MAX) return true;
    return operations > COMMIT_OPERATIONS && operations * 2 > this.rows.size;
  }

  *copy(): Steps<RowStore> {
    const rows = new Map<RowKey, Row>();
    for (const [key, row] of this.rows) {
      rows.set(key, row);
      if (rows.size % ROWS_BETWEEN_YIELDS === 0) yield;
    }
    return new RowStore(rows, new Map(this.#more));
  }

  *apply(operations: Operations, changes: Changes): Steps {
    if ("inserts" in operations) yield* this.#insertAll(operations.inserts, changes);
    else if ("deletes" in operations) yield* this.#deleteAll(operations.deletes, changes);
    else yield* this.#applyAll(operations.net, operations.isKeyed, changes);
  }

  *#insertAll({ keys, rows }: KeyedRows, changes: Changes): Steps {
    for (let i = 0; i < keys.length; i++) {
      const key = keys[i]!;
      if (this.rows.has(key)) {
        this.#more.set(key, (this.#more.get(key) ?? 0) + 1);
      } else {
        const row = rows[i]!;
        this.rows.set(key, row);
        changes.inserted.push(row);
      }
      if (i % ROWS_BETWEEN_YIELDS === ROWS_BETWEEN_YIELDS - 1) yield;
    }
  }

  *#deleteAll({ keys }: KeyedRows, changes: Changes): Steps {
    for (let i = 0; i < keys.length; i++) {
      const key = keys[i]!;
      const row = this.rows.get(key);
      // A row that is not there is no harm: what the server took away is gone.
      if (row !== undefined && this.#setCount(key, this.countOf(key) - 1) === 0) changes.deleted.push(row);
      if (i % ROWS_BETWEEN_YIELDS === ROWS_BETWEEN_YIELDS - 1) yield;
    }
  }

  *#applyAll(net: ReadonlyMap<RowKey, Net>, isKeyed: boolean, changes: Changes): Steps {
    let done = 0;
    for (const [key, { difference, row, isDeleted }] of net) {
      this.#applyNet(key, difference, row, isKeyed && isDeleted, changes);
      if (++done % ROWS_BETWEEN_YIELDS === 0) yield;
    }
  }

  #applyNet(
    key: RowKey,
    difference: number,
    row: Row | undefined,
    isReplaced: boolean,
    changes: Changes,
  ): void {
    const before = this.rows.get(key);
    if (before === undefined) {
      if (row === undefined || difference <= 0) {
        // A key that came and went within the message, unless it is the update of a row that never arrived.
        if (row === undefined || !isReplaced) return;
        difference = 1;
      }
      this.rows.set(key, row);
      this.#setCount(key, difference);
      changes.inserted.push(row);
    } else if (this.#setCount(key, this.countOf(key) + difference) === 0) {
      changes.deleted.push(before);
    } else if (row !== undefined && isReplaced) {
      this.rows.set(key, row);
      changes.updated.push(before, row);
    }
  }

  /** Sets the references of a row that is there; at 0 it is removed. Returns them. */
  #setCount(key: RowKey, count: number): number {
    if (count <= 0) {
      this.rows.delete(key);
      this.#more.delete(key);
      return 0;
    }
    if (count > 1) this.#more.set(key, count - 1);
    else this.#more.delete(key);
    return count;
  }

  /**
   * The changes from `before` to this store. Rows that did not change keep their identity: this store takes over the
   * objects of `before`.
   */
  *differenceFrom(before: RowStore, isKeyed: boolean, changes: Changes): Steps {
    let done = 0;
    for (const [key, row] of this.rows) {
      const old = before.rows.get(key);
      if (old === undefined) {
        changes.inserted.push(row);
      } else if (isKeyed && !isSameValue(old, row)) {
        changes.updated.push(old, row);
      } else {
        this.rows.set(key, old);
      }
      if (++done % ROWS_BETWEEN_YIELDS === 0) yield;
    }
    for (const [key, row] of before.rows) {
      if (!this.rows.has(key)) changes.deleted.push(row);
      if (++done % ROWS_BETWEEN_YIELDS === 0) yield;
    }
  }
}

/** Equality of decoded values: objects by their fields, arrays by their elements, floats bit by bit but for NaN. */
export function isSameValue(a: unknown, b: unknown): boolean {
  if (Object.is(a, b)) return true;
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return false;
  if (Array.isArray(a) || ArrayBuffer.isView(a)) {
    const [x, y] = [a, b] as [ArrayLike<unknown>, ArrayLike<unknown>];
    if (x.length !== y.length) return false;
    for (let i = 0; i < x.length; i++) if (!isSameValue(x[i], y[i])) return false;
    return true;
  }
  const keys = Object.keys(a);
  if (keys.length !== Object.keys(b).length) return false;
  return keys.every((key) => Object.hasOwn(b, key) && isSameValue((a as Row)[key], (b as Row)[key]));
}
