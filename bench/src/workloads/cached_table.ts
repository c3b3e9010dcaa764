// Tables in the cache of a subscribed client (section 15.5), with the indexes that its application keeps.

import type { Connector } from "../connectors/connector";
import { SdkConnector } from "../connectors/sdk_connector";
import { SortedKeys } from "../rpc-servers/ycsb/sorted_keys";

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

/**
 * The rows of a cached table by key, and its keys in ascending order. `find` of the published package looks through all
 * rows, and no client has an order: an application with many rows keeps both by the callbacks of the table, as is done here.
 */
export class RowsByKey<Row, Key extends string | bigint> {
  readonly #rows = new Map<Key, Row>();
  readonly #keys = new SortedKeys<Key>();

  constructor(table: CachedTable<Row>, keyOf: (row: Row) => Key) {
    const insert = (row: Row) => {
      this.#rows.set(keyOf(row), row);
      this.#keys.add(keyOf(row));
    };
    for (const row of table.iter()) insert(row);
    table.onInsert((_context, row) => insert(row));
    // The key is the primary key: an update leaves it as it is.
    table.onUpdate((_context, _before, row) => this.#rows.set(keyOf(row), row));
    table.onDelete((_context, row) => {
      this.#rows.delete(keyOf(row));
      this.#keys.remove(keyOf(row));
    });
  }

  get size(): number {
    return this.#rows.size;
  }

  get(key: Key): Row | undefined {
    return this.#rows.get(key);
  }

  get keys(): readonly Key[] {
    return this.#keys.all;
  }

  /** Up to `count` rows from a key on. */
  from(key: Key, count: number): Row[] {
    return this.#keys.from(key, count).map((wanted) => this.#rows.get(wanted)!);
  }
}
