// The rows of a table, a page at a time: those on the screen follow the database, and few others are remembered.

import { messageOf } from "./api";
import type { Database } from "./database";
import { LIVE_ROWS_MAX, WINDOW_ROWS_MAX } from "./live";
import type { Table } from "./schema";
import { count, sql, valuesOf } from "./sql";
import { Store } from "./store";
import { compare, format, hasLiteral, literal, quoted } from "./types";

export const PAGE_ROWS = 100;
/** Pages that are remembered. */
const PAGES_MAX = 24;
/** Up to so many rows, the server sorts by any column without trouble. */
const SMALL_TABLE_ROWS = 20_000;
const POLL_MS = 2_000;
/** For how long a row that has changed is marked. */
export const FLASH_MS = 1_200;

export interface Sort {
  column: number;
  isDescending: boolean;
}

export type Freshness = "live" | "polling" | "loading";

export interface RowsState {
  /** undefined: not counted yet. */
  total: number | undefined;
  error: string | undefined;
  freshness: Freshness;
  /** Rises with every change of what `row` gives. */
  version: number;
}

/** The column that rows are ordered by unless somebody says otherwise. */
export function usualSort(table: Table): Sort | undefined {
  const column = table.primaryKey ?? table.columns.findIndex(({ type }) => hasLiteral(type));
  return column < 0 ? undefined : { column, isDescending: false };
}

function isIndexed(table: Table, column: number): boolean {
  const name = table.columns[column]!.name;
  return (
    table.columns[column]!.isUnique ||
    table.indexes.some((index) => index.algorithm !== "hash" && index.columns[0] === name)
  );
}

export class Rows {
  readonly state = new Store<RowsState>({ total: undefined, error: undefined, freshness: "loading", version: 0 });
  readonly #database: Database;
  readonly #table: Table;
  readonly #where: string;
  readonly #sort: Sort | undefined;
  readonly #pages = new Map<number, unknown[][]>();
  readonly #asked = new Set<number>();
  readonly #flashes = new Map<string, number>();
  readonly #abort = new AbortController();
  #range: [first: number, last: number] = [0, 0];
  #stopLive: (() => void) | undefined;
  #liveAt = -1;
  #settle: ReturnType<typeof setTimeout> | undefined;
  #counting: ReturnType<typeof setTimeout> | undefined;
  readonly #poll: ReturnType<typeof setInterval>;

  constructor(database: Database, table: Table, where: string, sort: Sort | undefined) {
    this.#database = database;
    this.#table = table;
    this.#where = where;
    this.#sort = sort;
    void this.#count();
    this.#poll = setInterval(() => this.#look(), POLL_MS);
  }

  close(): void {
    this.#abort.abort();
    this.#stopLive?.();
    clearInterval(this.#poll);
    clearTimeout(this.#settle);
    clearTimeout(this.#counting);
  }

  /** The values of a row, if they are here. */
  row(at: number): unknown[] | undefined {
    return this.#pages.get(Math.floor(at / PAGE_ROWS))?.[at % PAGE_ROWS];
  }

  isNew(row: unknown[]): boolean {
    const at = this.#flashes.get(this.#key(row));
    return at !== undefined && Date.now() - at < FLASH_MS;
  }

  /** What is on the screen. */
  show(first: number, last: number): void {
    this.#range = [first, last];
    clearTimeout(this.#settle);
    // While somebody scrolls, nothing is asked for that is gone before it comes.
    this.#settle = setTimeout(() => this.#arrive(), 80);
  }

  refresh(): void {
    this.#pages.clear();
    this.#asked.clear();
    void this.#count();
    this.#liveAt = -1;
    this.#arrive();
  }

  // Asking ------------------------------------------------------------------------------------------------------------

  #from(): string {
    return `FROM ${quoted(this.#table.name)}${this.#where ? ` WHERE ${this.#where}` : ""}`;
  }

  #order(): string {
    if (!this.#sort) return "";
    const { column, isDescending } = this.#sort;
    return ` ORDER BY ${quoted(this.#table.columns[column]!.name)}${isDescending ? " DESC" : ""}`;
  }

  async #count(): Promise<void> {
    const { name, token } = this.#database;
    try {
      const total = await count(name, token, `SELECT COUNT(*) AS n ${this.#from()}`, this.#abort.signal);
      if (total !== this.state.get().total) this.#tell({ total });
    } catch (error) {
      this.#fail(error);
    }
  }

  #pagesInSight(): number[] {
    const [first, last] = this.#range;
    const pages: number[] = [];
    for (let page = Math.floor(first / PAGE_ROWS); page <= Math.floor(last / PAGE_ROWS); page++) pages.push(page);
    return pages.slice(0, LIVE_ROWS_MAX / PAGE_ROWS);
  }

  #arrive(): void {
    for (const page of this.#pagesInSight()) if (!this.#pages.has(page)) void this.#fetch(page);
    this.#follow();
  }

  async #fetch(page: number): Promise<void> {
    if (this.#asked.has(page)) return;
    this.#asked.add(page);
    const { name, token } = this.#database;
    const text = `SELECT * ${this.#from()}${this.#order()} LIMIT ${PAGE_ROWS} OFFSET ${page * PAGE_ROWS}`;
    try {
      const result = await sql(name, token, text, this.#abort.signal);
      this.#keep(page, result.rows.map((row) => valuesOf(row, this.#table.columns)));
      this.#tell({ error: undefined });
      this.#follow();
    } catch (error) {
      this.#fail(error);
    } finally {
      this.#asked.delete(page);
    }
  }

  #keep(page: number, rows: unknown[][]): void {
    this.#pages.delete(page);
    this.#pages.set(page, rows);
    for (const old of this.#pages.keys()) {
      if (this.#pages.size <= PAGES_MAX) break;
      this.#pages.delete(old);
    }
  }

  /** What no subscription brings. */
  #look(): void {
    if (document.hidden || this.#abort.signal.aborted) return;
    void this.#count();
    if (this.state.get().freshness !== "live") for (const page of this.#pagesInSight()) void this.#fetch(page);
  }

  // Following ---------------------------------------------------------------------------------------------------------

  /** A subscription to what is on the screen, if there is one that costs the server little. */
  #liveQuery(first: number): string | undefined {
    const sort = this.#sort;
    const total = this.state.get().total ?? Number.POSITIVE_INFINITY;
    if (!sort || this.#table.isEvent) return undefined;
    if (!isIndexed(this.#table, sort.column) && total > SMALL_TABLE_ROWS) return undefined;
    const offset = first * PAGE_ROWS;
    if (offset + LIVE_ROWS_MAX <= WINDOW_ROWS_MAX) {
      return `SELECT * ${this.#from()}${this.#order()} LIMIT ${LIVE_ROWS_MAX} OFFSET ${offset}`;
    }
    return this.#rangeQuery(first);
  }

  /** Deep in a table, rows are followed by their keys. */
  #rangeQuery(first: number): string | undefined {
    const { column } = this.#sort!;
    const { name, type, isUnique } = this.#table.columns[column]!;
    const rows = [first, first + 1].flatMap((page) => this.#pages.get(page) ?? []);
    if (!isUnique || rows.length < 2) return undefined;
    const ends = [rows[0]!, rows.at(-1)!].map((row) => literal(format(row[column], type), type));
    const [low, high] = this.#sort!.isDescending ? ends.reverse() : ends;
    const where = this.#where ? `(${this.#where}) AND ` : "";
    const key = quoted(name);
    return `SELECT * FROM ${quoted(this.#table.name)} WHERE ${where}${key} >= ${low} AND ${key} <= ${high}`;
  }

  #follow(): void {
    const first = this.#pagesInSight()[0] ?? 0;
    if (first === this.#liveAt || this.#abort.signal.aborted) return;
    const query = this.#liveQuery(first);
    this.#stopLive?.();
    this.#stopLive = undefined;
    this.#liveAt = query === undefined ? -1 : first;
    if (query === undefined) {
      if (this.state.get().freshness !== "polling") this.#tell({ freshness: "polling" });
      return;
    }
    this.#stopLive = this.#database.live.follow(
      this.#table,
      query,
      (rows) => this.#changed(first, rows),
      () => {
        this.#stopLive = undefined;
        this.#tell({ freshness: "polling" });
      },
    );
  }

  #changed(first: number, rows: unknown[][]): void {
    const sort = this.#sort!;
    const { type } = this.#table.columns[sort.column]!;
    const { primaryKey } = this.#table;
    const sign = sort.isDescending ? -1 : 1;
    rows.sort((a, b) => {
      const order = sign * compare(a[sort.column], b[sort.column], type);
      if (order !== 0 || primaryKey === undefined) return order;
      return compare(a[primaryKey], b[primaryKey], this.#table.columns[primaryKey]!.type);
    });
    const before = [first, first + 1].flatMap((page) => this.#pages.get(page) ?? []);
    if (before.length > 0) this.#markNew(before, rows);
    // Pages behind an insert are others now.
    if (this.state.get().freshness === "live") this.#pages.clear();
    for (let page = 0; page * PAGE_ROWS < rows.length || page === 0; page++) {
      this.#keep(first + page, rows.slice(page * PAGE_ROWS, (page + 1) * PAGE_ROWS));
    }
    this.#tell({ freshness: "live", error: undefined });
    clearTimeout(this.#counting);
    this.#counting = setTimeout(() => void this.#count(), 150);
  }

  /** Rows that were not there, or not so. */
  #markNew(before: unknown[][], rows: unknown[][]): void {
    const known = new Set(before.map((row) => this.#key(row)));
    const now = Date.now();
    for (const [key, at] of this.#flashes) if (now - at > FLASH_MS) this.#flashes.delete(key);
    for (const row of rows) {
      const key = this.#key(row);
      if (!known.has(key)) this.#flashes.set(key, now);
    }
    setTimeout(() => this.#tell({}), FLASH_MS + 50);
  }

  #key(row: unknown[]): string {
    return row.map((value, at) => format(value, this.#table.columns[at]!.type)).join("\u0000");
  }

  #fail(error: unknown): void {
    if (this.#abort.signal.aborted) return;
    this.#tell({ error: messageOf(error) });
  }

  #tell(change: Partial<RowsState>): void {
    if (this.#abort.signal.aborted) return;
    const state = this.state.get();
    this.state.set({ ...state, ...change, version: state.version + 1 });
  }
}
