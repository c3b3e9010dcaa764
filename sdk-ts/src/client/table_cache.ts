// One table of the cache: decodes its rows, keeps them, and calls the application when they change.

import { AlgebraicType, BinaryReader, ProductType } from "../core";
import { ClientError, toError } from "./client_error";
import { CallbackList, handleResult, reportCallbackError } from "./event_emitter";
import {
  Changes,
  type KeyedRows,
  operationsOf,
  ROWS_BETWEEN_YIELDS,
  type Row,
  type RowKey,
  RowStore,
} from "./row_store";
import type { RowSource, RowView, TableViews, ViewChanges } from "./row_views";
import { runToEnd, type Steps } from "./scheduling";
import { type IndexedColumn, SecondaryIndex } from "./secondary_index";
import type { RowList, TableRows } from "./wire";

/** The definition of a table for the cache; generated bindings have it. */
export interface CachedTableDef {
  readonly sourceName: string;
  readonly accessorName: string;
  readonly columns: Record<string, { columnMetadata: { isPrimaryKey?: true } & object }>;
  readonly rowType: ProductType;
  readonly resolvedIndexes: readonly {
    name: string;
    unique?: boolean;
    algorithm: string;
    columns: readonly string[];
  }[];
  readonly isEvent?: boolean;
}

type RowCallback = (ctx: unknown, ...rows: Row[]) => unknown;

/** Rows of a table that a message brings, decoded. */
export interface DecodedRows {
  readonly inserts: KeyedRows;
  readonly deletes: KeyedRows;
}

/** A change of a table that is ready: `commit` makes it visible at once, and names the views that it changed. */
export interface PreparedChange {
  readonly table: TableCacheImpl;
  readonly changes: Changes;
  commit(changedViews: RowView[]): void;
}

/** Of a change that was prepared when there were no views: those that have come since look at all rows. */
const NOT_SORTED: ViewChanges = { byView: /* @__PURE__ */ new Map(), lastNumber: 0 };

const CACHE: unique symbol = Symbol("lightcone.tableCache");

/** The cache behind a table of `connection.db`. */
export function cacheOf(table: unknown): TableCacheImpl | undefined {
  return (table as { [CACHE]?: TableCacheImpl } | undefined)?.[CACHE];
}

export class TableCacheImpl implements RowSource {
  readonly tableDef: CachedTableDef;
  readonly isEvent: boolean;
  #store = new RowStore();
  readonly #primaryKey: IndexedColumn | undefined;
  readonly #decode: (reader: BinaryReader) => Row;
  readonly #indexes: SecondaryIndex[] = [];
  readonly #onInsert = new CallbackList<RowCallback>();
  readonly #onUpdate = new CallbackList<RowCallback>();
  readonly #onDelete = new CallbackList<RowCallback>();
  views: TableViews | undefined;
  #version = 0;
  /** The table for the application: indexes have names of the module, which must not hide methods of this class. */
  readonly facade: object;

  constructor(tableDef: CachedTableDef) {
    this.tableDef = tableDef;
    this.isEvent = tableDef.isEvent === true;
    this.#decode = ProductType.makeDeserializer(tableDef.rowType);
    const primaryKey = Object.entries(tableDef.columns).find(
      ([, column]) => column.columnMetadata.isPrimaryKey === true,
    );
    this.#primaryKey = primaryKey && this.#column(primaryKey[0]);
    this.facade = this.#makeFacade();
    for (const index of tableDef.resolvedIndexes) this.#addIndex(index);
  }

  // For the application ------------------------------------------------------------------------------------------

  #makeFacade(): object {
    const iterate = (): MapIterator<Row> => this.#store.rows.values();
    return {
      [CACHE]: this,
      tableDef: this.tableDef,
      count: () => BigInt(this.#store.rows.size),
      iter: iterate,
      [Symbol.iterator]: iterate,
      onInsert: (callback: RowCallback) => this.#onInsert.add(callback),
      onUpdate: (callback: RowCallback) => this.#onUpdate.add(callback),
      onDelete: (callback: RowCallback) => this.#onDelete.add(callback),
      removeOnInsert: (callback: RowCallback): void => this.#onInsert.delete(callback),
      removeOnUpdate: (callback: RowCallback): void => this.#onUpdate.delete(callback),
      removeOnDelete: (callback: RowCallback): void => this.#onDelete.delete(callback),
    };
  }

  rows(): MapIterator<Row> {
    return this.#store.rows.values();
  }

  get version(): number {
    return this.#version;
  }

  // Indexes ------------------------------------------------------------------------------------------------------

  #column(name: string): IndexedColumn {
    const position = Object.keys(this.tableDef.columns).indexOf(name);
    const element = this.tableDef.rowType.elements[position];
    if (!element) throw new ClientError("LC0841", `table ${this.tableDef.sourceName} has no column ${name}`);
    return { name, keyOf: (value) => AlgebraicType.intoMapKey(element.algebraicType, value) };
  }

  /** Adds the accessor of an index: `filter`, and for a unique one also `find`. */
  #addIndex(definition: CachedTableDef["resolvedIndexes"][number]): void {
    const columns = definition.columns.map((name) => this.#column(name));
    const [first] = columns;
    if (!first || Object.hasOwn(this.facade, definition.name)) return;
    // It is built when it is first looked at.
    const index = new SecondaryIndex(columns);
    this.#indexes.push(index);
    const filter = (bounds: unknown) => this.#filter(index, asTuple(bounds, columns.length));
    const isKey = columns.length === 1 && first.name === this.#primaryKey?.name;
    const find = (value: unknown) =>
      (isKey ? this.#store.rows.get(first.keyOf(value)) : filter(value).next().value) ?? null;
    const accessor = definition.unique ? { find, filter } : { filter };
    Object.defineProperty(this.facade, definition.name, { value: accessor, enumerable: true });
  }

  /** Rows with these values in the first columns; the last one may be a range. */
  *#filter(index: SecondaryIndex, bounds: readonly unknown[]): Generator<Row, undefined> {
    const last = bounds.at(-1);
    if (bounds.length === index.columns.length && !isRange(last)) {
      const keys = bounds.map((bound, i) => index.columns[i]!.keyOf(bound));
      yield* index.lookup(keys, this.#store.rows.values()) ?? [];
      return;
    }
    const tests = bounds.map((bound, i) => {
      const { name, keyOf } = index.columns[i]!;
      if (isRange(bound)) return (row: Row) => isInRange(row[name], bound);
      const key = keyOf(bound);
      return (row: Row) => keyOf(row[name]) === key;
    });
    for (const row of this.#store.rows.values()) if (tests.every((test) => test(row))) yield row;
  }

  // For the connection -------------------------------------------------------------------------------------------

  get isEmpty(): boolean {
    return this.#store.rows.size === 0;
  }

  /** Decodes the rows of a message. */
  *decode({ inserts, deletes }: TableRows): Steps<DecodedRows> {
    return { inserts: yield* this.decodeLists(inserts), deletes: yield* this.decodeLists(deletes) };
  }

  *decodeLists(lists: readonly RowList[]): Steps<KeyedRows> {
    const keys: RowKey[] = [];
    const rows: Row[] = [];
    const primaryKey = this.#primaryKey;
    for (const { data, emptyRows } of lists) {
      const reader = new BinaryReader(data);
      for (let i = 0; i < emptyRows; i++) {
        keys.push("");
        rows.push(this.#decodeRow(reader));
      }
      while (reader.offset < data.length) {
        const start = reader.offset;
        const row = this.#decodeRow(reader);
        if (reader.offset === start) throw this.#misfit("its rows have no bytes");
        rows.push(row);
        keys.push(primaryKey ? primaryKey.keyOf(row[primaryKey.name]) : bytesKey(data, start, reader.offset));
        if (rows.length % ROWS_BETWEEN_YIELDS === 0) yield;
      }
    }
    return { keys, rows };
  }

  #decodeRow(reader: BinaryReader): Row {
    try {
      return this.#decode(reader);
    } catch (error) {
      throw this.#misfit(toError(error).message, error);
    }
  }

  #misfit(reason: string, cause?: unknown): ClientError {
    return new ClientError(
      "LC0842",
      `a row of table ${this.tableDef.sourceName} does not fit the bindings (${reason}); generate them again`,
      { cause },
    );
  }

  /** Prepares the operations of a message; many of them on a copy, so that they can be interrupted. */
  *prepare({ inserts, deletes }: DecodedRows): Steps<PreparedChange> {
    const changes = new Changes();
    if (this.isEvent) {
      for (const row of inserts.rows) changes.inserted.push(row);
      return { table: this, changes, commit: () => {} };
    }
    const operations = yield* operationsOf(inserts, deletes, this.#primaryKey !== undefined);
    if (this.#store.wantsSlices(inserts.keys.length + deletes.keys.length)) {
      const store = yield* this.#store.copy();
      yield* store.apply(operations, changes);
      return yield* this.#prepareSwap(store, changes);
    }
    const commit = (changedViews: RowView[]): void => {
      runToEnd(this.#store.apply(operations, changes));
      for (const index of this.#indexes) index.follow(changes);
      this.#tellViews(changes, this.views && runToEnd(this.views.sort(changes)), changedViews);
    };
    return { table: this, changes, commit };
  }

  /** Applies the operations of a message to another store, which is not visible yet. */
  *applyTo(store: RowStore, { inserts, deletes }: DecodedRows): Steps {
    const operations = yield* operationsOf(inserts, deletes, this.#primaryKey !== undefined);
    yield* store.apply(operations, new Changes());
  }

  /** Prepares the replacement of all rows by those of `store`. */
  *prepareReplacement(store: RowStore): Steps<PreparedChange> {
    const changes = new Changes();
    yield* store.differenceFrom(this.#store, this.#primaryKey !== undefined, changes);
    return yield* this.#prepareSwap(store, changes);
  }

  *#prepareSwap(store: RowStore, changes: Changes): Steps<PreparedChange> {
    const swaps: (() => void)[] = [];
    for (const index of this.#indexes) {
      if (!index.isBuilt) continue;
      const groups = yield* index.prepare(store.rows.values());
      swaps.push(() => index.use(groups));
    }
    const sorted = this.views && (yield* this.views.sort(changes));
    const commit = (changedViews: RowView[]): void => {
      this.#store = store;
      // An index that came into use while the rest was prepared follows what changed.
      for (const index of this.#indexes) index.follow(changes);
      for (const swap of swaps) swap();
      this.#tellViews(changes, sorted, changedViews);
    };
    return { table: this, changes, commit };
  }

  #tellViews(changes: Changes, sorted: ViewChanges | undefined, changedViews: RowView[]): void {
    if (changes.size === 0) return;
    this.#version += 1;
    this.views?.follow(changes, sorted ?? NOT_SORTED, this.#version, changedViews);
  }

  /** Whether the application wants to hear of changes. */
  get hasListeners(): boolean {
    return this.#onInsert.current.length + this.#onUpdate.current.length + this.#onDelete.current.length > 0;
  }

  /** Calls the application for every change. */
  *announce(context: unknown, { inserted, updated, deleted }: Changes): Steps {
    for (let i = 0; i < inserted.length; i++) {
      const callbacks = this.#onInsert.current;
      if (callbacks.length === 0) break;
      tell(callbacks, context, inserted[i]!);
      if (i % 64 === 63) yield;
    }
    for (let i = 0; i < updated.length; i += 2) {
      const callbacks = this.#onUpdate.current;
      if (callbacks.length === 0) break;
      tellUpdate(callbacks, context, updated[i]!, updated[i + 1]!);
      if (i % 128 === 126) yield;
    }
    for (let i = 0; i < deleted.length; i++) {
      const callbacks = this.#onDelete.current;
      if (callbacks.length === 0) break;
      tell(callbacks, context, deleted[i]!);
      if (i % 64 === 63) yield;
    }
  }
}

// Without a list of arguments for each row and callback.

function tell(callbacks: readonly RowCallback[], context: unknown, row: Row): void {
  for (const callback of callbacks) {
    try {
      handleResult(callback(context, row));
    } catch (error) {
      reportCallbackError(error);
    }
  }
}

function tellUpdate(callbacks: readonly RowCallback[], context: unknown, oldRow: Row, newRow: Row): void {
  for (const callback of callbacks) {
    try {
      handleResult(callback(context, oldRow, newRow));
    } catch (error) {
      reportCallbackError(error);
    }
  }
}

/** An index over one column takes a value, one over several takes an array of the first of them. */
function asTuple(value: unknown, columns: number): readonly unknown[] {
  return columns > 1 && Array.isArray(value) ? value : [value];
}

/** A string that is equal for equal bytes only. */
function bytesKey(data: Uint8Array, start: number, end: number): string {
  if (end - start <= 1024)
    return String.fromCharCode.apply(null, data.subarray(start, end) as unknown as number[]);
  let key = "";
  for (let at = start; at < end; at += 1024) key += bytesKey(data, at, Math.min(at + 1024, end));
  return key;
}

type Bound = { tag: "included" | "excluded"; value: unknown } | { tag: "unbounded" };

interface Bounds {
  readonly from: Bound;
  readonly to: Bound;
}

/** Whether this is a `Range`; no column that can be indexed has values of this shape. */
function isRange(value: unknown): value is Bounds {
  const { from, to } = (typeof value === "object" && value !== null ? value : {}) as Partial<Bounds>;
  return typeof from?.tag === "string" && typeof to?.tag === "string";
}

function isInRange(value: unknown, { from, to }: Bounds): boolean {
  if (from.tag !== "unbounded") {
    const order = compare(value, from.value);
    if (order < 0 || (order === 0 && from.tag === "excluded")) return false;
  }
  if (to.tag !== "unbounded") {
    const order = compare(value, to.value);
    if (order > 0 || (order === 0 && to.tag === "excluded")) return false;
  }
  return true;
}

/** Order of two values of a type that can be indexed; special types by the number inside. */
function compare(a: unknown, b: unknown): number {
  if (typeof a === "object" && a !== null && typeof b === "object" && b !== null) {
    const [x, y] = [Object.values(a), Object.values(b)];
    for (let i = 0; i < x.length; i++) {
      const order = compare(x[i], y[i]);
      if (order !== 0) return order;
    }
    return 0;
  }
  return (a as number) < (b as number) ? -1 : (a as number) > (b as number) ? 1 : 0;
}
