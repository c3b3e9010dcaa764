// Tables in the cache of a subscribed client (section 15.5), with the indexes that its application keeps.

import type { Connector } from "../connectors/connector";
import { SdkConnector } from "../connectors/sdk_connector";

type Changed<Row> = (context: unknown, row: Row) => void;

/** What is used of a table with a primary key, with either SDK. */
export interface CachedTable<Row> {
  count(): bigint;
  iter(): Iterable<Row>;
  onInsert(callback: Changed<Row>): void;
  onUpdate(callback: (context: unknown, before: Row, after: Row) => void): void;
  onDelete(callback: Changed<Row>): void;
}

export function cachedTable<Row>(connection: Connector, name: string): CachedTable<Row> {
  if (!(connection instanceof SdkConnector)) throw new Error(`${connection.name} has no cache`);
  return connection.cached(name) as CachedTable<Row>;
}

/** Follows a table: its rows of now, and every row that comes and goes. An update is one row less and one more. */
export function follow<Row>(
  table: CachedTable<Row>,
  comes: (row: Row) => unknown,
  goes: (row: Row) => unknown,
): void {
  for (const row of table.iter()) comes(row);
  table.onInsert((_context, row) => comes(row));
  table.onUpdate((_context, before, after) => {
    goes(before);
    comes(after);
  });
  table.onDelete((_context, row) => goes(row));
}

/** So many new keys are put into their places one by one; more are sorted together with the others. */
const insertedOneByOneMax = 64;

/**
 * The rows of a cached table by key, and its keys in ascending order. `find` of the published package looks through all
 * rows, and no client has an order: an application with many rows keeps both by the callbacks of the table, as is done here.
 */
export class RowsByKey<Row, Key extends string | bigint> {
  readonly #rows = new Map<Key, Row>();
  #keys: Key[] = [];
  /** Not yet among the others. */
  #added: Key[] = [];
  #isStale = false;

  constructor(table: CachedTable<Row>, keyOf: (row: Row) => Key) {
    const insert = (row: Row) => {
      const key = keyOf(row);
      this.#rows.set(key, row);
      this.#added.push(key);
    };
    for (const row of table.iter()) insert(row);
    table.onInsert((_context, row) => insert(row));
    // The key is the primary key: an update leaves it as it is.
    table.onUpdate((_context, _before, row) => this.#rows.set(keyOf(row), row));
    table.onDelete((_context, row) => {
      this.#rows.delete(keyOf(row));
      this.#isStale = true;
    });
  }

  get size(): number {
    return this.#rows.size;
  }

  get(key: Key): Row | undefined {
    return this.#rows.get(key);
  }

  get keys(): readonly Key[] {
    if (this.#isStale || this.#added.length > insertedOneByOneMax) {
      this.#keys = [...this.#rows.keys()].sort(compare);
      this.#isStale = false;
    } else {
      for (const key of this.#added) this.#keys.splice(place(this.#keys, key), 0, key);
    }
    this.#added = [];
    return this.#keys;
  }

  /** Up to `count` rows from a key on. */
  from(key: Key, count: number): Row[] {
    const { keys } = this;
    const start = place(keys, key);
    return keys.slice(start, start + count).map((wanted) => this.#rows.get(wanted)!);
  }
}

const compare = <Key extends string | bigint>(a: Key, b: Key) => (a < b ? -1 : a > b ? 1 : 0);

/** Where a key is, or would be. */
function place<Key extends string | bigint>(keys: readonly Key[], key: Key): number {
  let low = 0;
  let high = keys.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (keys[middle]! < key) low = middle + 1;
    else high = middle;
  }
  return low;
}
