// Indexes of cached rows, built when they are first used and kept up to date from then on.

import type { Changes, Row, RowKey } from "./row_store";
import { ROWS_BETWEEN_YIELDS } from "./row_store";
import type { Steps } from "./scheduling";

/** Key of a column's value; equal values have equal keys. */
export type ColumnKey = (value: unknown) => RowKey;

export interface IndexedColumn {
  readonly name: string;
  readonly keyOf: ColumnKey;
}

/** One string or number for the values of all columns; no two lists of values share it. */
export function compositeKey(keys: readonly RowKey[]): RowKey {
  if (keys.length === 1) return keys[0]!;
  return keys.map((key) => `${String(key).length}:${String(key)}`).join("");
}

export class SecondaryIndex {
  readonly columns: readonly IndexedColumn[];
  #groups: Map<RowKey, Set<Row>> | undefined;

  constructor(columns: readonly IndexedColumn[]) {
    this.columns = columns;
  }

  /** Whether it was used, so that it is worth keeping. */
  get isBuilt(): boolean {
    return this.#groups !== undefined;
  }

  /** Rows whose columns have the values with these keys. */
  lookup(keys: readonly RowKey[], rows: Iterable<Row>): ReadonlySet<Row> | undefined {
    if (!this.#groups) {
      const groups = new Map<RowKey, Set<Row>>();
      for (const row of rows) this.#add(groups, row);
      this.#groups = groups;
    }
    return this.#groups.get(compositeKey(keys));
  }

  /** Follows what a message changed. */
  follow(changes: Changes): void {
    const groups = this.#groups;
    if (!groups) return;
    for (const row of changes.deleted) this.#remove(groups, row);
    for (let i = 0; i < changes.updated.length; i += 2) {
      this.#remove(groups, changes.updated[i]!);
      this.#add(groups, changes.updated[i + 1]!);
    }
    for (const row of changes.inserted) this.#add(groups, row);
  }

  /** Builds the index of other rows; `use` of the result makes it this index. */
  *prepare(rows: Iterable<Row>): Steps<Map<RowKey, Set<Row>>> {
    const groups = new Map<RowKey, Set<Row>>();
    let done = 0;
    for (const row of rows) {
      this.#add(groups, row);
      if (++done % ROWS_BETWEEN_YIELDS === 0) yield;
    }
    return groups;
  }

  use(groups: Map<RowKey, Set<Row>>): void {
    this.#groups = groups;
  }

  #keyOf(row: Row): RowKey {
    return compositeKey(this.columns.map(({ name, keyOf }) => keyOf(row[name])));
  }

  #add(groups: Map<RowKey, Set<Row>>, row: Row): void {
    const key = this.#keyOf(row);
    const group = groups.get(key);
    if (group) group.add(row);
    else groups.set(key, new Set([row]));
  }

  #remove(groups: Map<RowKey, Set<Row>>, row: Row): void {
    const key = this.#keyOf(row);
    const group = groups.get(key);
    if (!group) return;
    group.delete(row);
    if (group.size === 0) groups.delete(key);
  }
}
