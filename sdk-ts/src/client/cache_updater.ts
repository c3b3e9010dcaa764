// Applies the rows of messages to the cache. After a reconnect, rows are collected beside the cache until every
// subscription is back; then the cache takes them over, and the application hears of the differences only.

import { noSuchTable } from "./client_error";
import { stdbLogger } from "./logger";
import { type Row, RowStore } from "./row_store";
import type { RowView } from "./row_views";
import type { Steps } from "./scheduling";
import type { PreparedChange, TableCacheImpl } from "./table_cache";
import type { TableRows } from "./wire";

/** Commits all tables and brings every view up to date before any callback runs. */
function makeVisible(prepared: readonly PreparedChange[]): VisibleChanges {
  const changedViews: RowView[] = [];
  for (const change of prepared) change.commit(changedViews);
  for (const view of changedViews) view.notify();
  return prepared;
}

/** Visible changes, to be announced to the application. */
export type VisibleChanges = readonly PreparedChange[];

export class CacheUpdater {
  readonly #tables = new Map<string, TableCacheImpl>();
  readonly #unknownTables = new Set<string>();
  #incoming: Map<TableCacheImpl, RowStore> | undefined;

  /** The tables by the names that the server uses. */
  get tables(): ReadonlyMap<string, TableCacheImpl> {
    return this.#tables;
  }

  add(table: TableCacheImpl): void {
    this.#tables.set(table.tableDef.sourceName, table);
  }

  /** Collects rows beside the cache until `endResync`. */
  beginResync(): void {
    this.#incoming = new Map();
  }

  /** The connection was lost again: drops the collected rows. */
  cancelResync(): void {
    this.#incoming = undefined;
  }

  get isResyncing(): boolean {
    return this.#incoming !== undefined;
  }

  /** Applies the rows of one message; they become visible all at once. */
  *apply(tables: readonly TableRows[]): Steps<VisibleChanges> {
    const prepared: PreparedChange[] = [];
    for (const rows of tables) {
      const table = this.#find(rows.table);
      if (!table) continue;
      const decoded = yield* table.decode(rows);
      if (this.#incoming && !table.isEvent) {
        let store = this.#incoming.get(table);
        if (!store) this.#incoming.set(table, (store = new RowStore()));
        yield* table.applyTo(store, decoded);
      } else {
        prepared.push(yield* table.prepare(decoded));
      }
    }
    return makeVisible(prepared);
  }

  /** Rows of an answer that does not concern the cache. */
  *decode(tables: readonly TableRows[]): Steps<Row[]> {
    const all: Row[] = [];
    for (const { table: name, inserts } of tables) {
      const table = this.#tables.get(name);
      if (!table) throw noSuchTable(name);
      const { rows } = yield* table.decodeLists(inserts);
      if (tables.length === 1) return rows;
      for (const row of rows) all.push(row);
    }
    return all;
  }

  /** Replaces the cache by the collected rows. */
  *endResync(): Steps<VisibleChanges> {
    const incoming = this.#incoming;
    this.#incoming = undefined;
    if (!incoming) return [];
    const prepared: PreparedChange[] = [];
    for (const table of this.#tables.values()) {
      const store = incoming.get(table);
      if (!store && table.isEmpty) continue;
      prepared.push(yield* table.prepareReplacement(store ?? new RowStore()));
    }
    return makeVisible(prepared);
  }

  *announce(context: unknown, changes: VisibleChanges): Steps {
    for (const { table, changes: rows } of changes) {
      if (table.hasListeners) yield* table.announce(context, rows);
    }
  }

  #find(name: string): TableCacheImpl | undefined {
    const table = this.#tables.get(name);
    if (!table && !this.#unknownTables.has(name)) {
      this.#unknownTables.add(name);
      const { message, docsUrl } = noSuchTable(name);
      stdbLogger("warn", `rows are ignored, as ${message}; see ${docsUrl}`);
    }
    return table;
  }
}
