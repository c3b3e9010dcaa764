// The rows of a table, a page at a time: those on the screen follow the database, and few others are remembered.

import { messageOf } from "./api";
import type { Database } from "./database";
import { LIVE_ROWS_MAX, WINDOW_ROWS_MAX } from "./live";
import { Ranks } from "./ranks";
import type { Table } from "./schema";
import { count, sql, valuesOf } from "./sql";
import { Store } from "./store";
import { cellText, compare, format, hasLiteral, literal, quoted } from "./types";

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

/** `still`: what is shown is as it was when it was read. */
export type Freshness = "live" | "polling" | "still" | "loading";

export interface RowsState {
  /** undefined: not counted yet. */
  total: number | undefined;
  /** Rows that can be shown in this order. */
  reachable: number;
  error: string | undefined;
  freshness: Freshness;
  /** Rises with every change of what `row` gives. */
  version: number;
}

/** The column that rows are ordered by unless the visitor chooses another one. */
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
  readonly state = new Store<RowsState>({
    total: undefined,
    reachable: 0,
    error: undefined,
    freshness: "loading",
    version: 0,
  });
  readonly #database: Database;
  readonly #table: Table;
  readonly #where: string;
  readonly #sort: Sort | undefined;
  readonly #pages = new Map<number, unknown[][]>();
  readonly #asked = new Set<number>();
  readonly #flashes = new Map<string, number>();
  readonly #abort = new AbortController();
  readonly #ranks: Ranks | undefined;
  #range: [first: number, last: number] = [0, 0];
  #stopLive: (() => void) | undefined;
  #liveText: string | undefined;
  #settle: ReturnType<typeof setTimeout> | undefined;
  #counting: ReturnType<typeof setTimeout> | undefined;
  /** The server takes no subscription to these rows. */
  #isRefused = false;
  readonly #poll: ReturnType<typeof setInterval>;

  constructor(database: Database, table: Table, where: string, sort: Sort | undefined) {
    this.#database = database;
    this.#table = table;
    this.#where = where;
    this.#sort = sort;
    this.#ranks = this.#makeRanks();
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
    // While the visitor scrolls, nothing is asked for that is gone before it comes.
    this.#settle = setTimeout(() => this.#arrive(), 80);
  }

  refresh(): void {
    this.#pages.clear();
    this.#asked.clear();
    void this.#count();
    this.#isRefused = false;
    this.#ranks?.forget();
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
      if (total === this.state.get().total) return;
      this.#ranks?.forget();
      const isBounded = total > SMALL_TABLE_ROWS && this.#sort !== undefined && !this.#ranks;
      this.#tell({ total, reachable: isBounded ? Math.min(total, WINDOW_ROWS_MAX) : total });
      this.#arrive();
    } catch (error) {
      this.#fail(error);
    }
  }

  #pagesInSight(): number[] {
    const [first, last] = this.#range;
    const pages: number[] = [];
    for (let page = Math.floor(first / PAGE_ROWS); page <= Math.floor(last / PAGE_ROWS); page++)
      pages.push(page);
    return pages.slice(0, LIVE_ROWS_MAX / PAGE_ROWS);
  }

  #arrive(): void {
    if (this.state.get().total === undefined) return;
    for (const page of this.#pagesInSight()) if (!this.#pages.has(page)) void this.#fetch(page);
    this.#follow();
  }

  async #fetch(page: number): Promise<void> {
    if (this.#asked.has(page)) return;
    this.#asked.add(page);
    try {
      const rows = await this.#read(page);
      if (rows) {
        this.#keep(page, rows);
        this.#tell({ error: undefined });
        this.#follow();
      }
    } catch (error) {
      this.#fail(error);
    } finally {
      this.#asked.delete(page);
    }
  }

  /** The rows of a page; undefined if the subscription brings them. */
  async #read(page: number): Promise<unknown[][] | undefined> {
    const from = page * PAGE_ROWS;
    const total = this.state.get().total ?? 0;
    const isLarge = total > SMALL_TABLE_ROWS;
    if (
      isLarge &&
      this.#sort &&
      this.#isWindow(page) &&
      isIndexed(this.#table, this.#sort.column) &&
      !this.#isRefused
    ) {
      return undefined;
    }
    if (isLarge && this.#ranks && this.#sort) {
      const to = Math.min(total, from + PAGE_ROWS);
      if (!this.#sort.isDescending) return this.#ranks.rows(from, to, total);
      return (await this.#ranks.rows(total - to, total - from, total)).reverse();
    }
    return this.#select(`SELECT * ${this.#from()}${this.#order()} LIMIT ${PAGE_ROWS} OFFSET ${from}`);
  }

  async #select(text: string): Promise<unknown[][]> {
    const { name, token } = this.#database;
    const result = await sql(name, token, text, this.#abort.signal);
    return result.rows.map((row) => valuesOf(row, this.#table.columns));
  }

  /** Places of rows by their keys, if rows are ordered by a key of whole numbers. */
  #makeRanks(): Ranks | undefined {
    const sort = this.#sort;
    if (!sort) return undefined;
    const { name, type, isUnique } = this.#table.columns[sort.column]!;
    if (!isUnique || !/^[IU](8|16|32|64)$/.test(type.tag)) return undefined;
    const { name: database, token } = this.#database;
    const table = quoted(this.#table.name);
    const key = quoted(name);
    const where = this.#where ? `(${this.#where}) AND ` : "";
    const between = (low: bigint, high: bigint) =>
      `FROM ${table} WHERE ${where}${key} >= ${low} AND ${key} <= ${high - 1n}`;
    return new Ranks({
      ends: async () => {
        const text = `SELECT MIN(${key}) AS low, MAX(${key}) AS high ${this.#from()}`;
        const { rows } = await sql(database, token, text, this.#abort.signal);
        const [low, high] = (rows[0] ?? []).map((one) =>
          Array.isArray(one) && one[0] === 0 ? BigInt(one[1] as number) : undefined,
        );
        return low === undefined || high === undefined ? undefined : [low, high + 1n];
      },
      count: (low, high) =>
        count(database, token, `SELECT COUNT(*) AS n ${between(low, high)}`, this.#abort.signal),
      rows: async (low, high, most) => {
        const rows = await this.#select(`SELECT * ${between(low, high)} LIMIT ${most}`);
        return rows.sort((a, b) => compare(a[sort.column], b[sort.column], type));
      },
    });
  }

  #isWindow(page: number): boolean {
    return page * PAGE_ROWS + LIVE_ROWS_MAX <= WINDOW_ROWS_MAX;
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
    if (this.state.get().freshness !== "polling") return;
    for (const page of this.#pagesInSight()) void this.#fetch(page);
  }

  // Following ---------------------------------------------------------------------------------------------------------

  /** A subscription to what is on the screen, if there is one that costs the server little; `later`: when its rows are here. */
  #liveQuery(first: number): string | "later" | undefined {
    const sort = this.#sort;
    const total = this.state.get().total ?? Number.POSITIVE_INFINITY;
    if (!sort || this.#isRefused) return undefined;
    if (!isIndexed(this.#table, sort.column) && total > SMALL_TABLE_ROWS) return undefined;
    if (this.#isWindow(first)) {
      return `SELECT * ${this.#from()}${this.#order()} LIMIT ${LIVE_ROWS_MAX} OFFSET ${first * PAGE_ROWS}`;
    }
    return this.#rangeQuery();
  }

  /** Deep in a table, rows are followed by their keys. */
  #rangeQuery(): string | "later" | undefined {
    const { column } = this.#sort!;
    const { name, type, isUnique } = this.#table.columns[column]!;
    if (!isUnique || !hasLiteral(type)) return undefined;
    const pages = this.#pagesInSight();
    if (!pages.every((page) => this.#pages.has(page))) return "later";
    const rows = pages.flatMap((page) => this.#pages.get(page)!);
    if (rows.length === 0) return undefined;
    const ends = [rows[0]!, rows.at(-1)!].map((row) => literal(format(row[column], type), type));
    const [low, high] = this.#sort!.isDescending ? ends.reverse() : ends;
    const where = this.#where ? `(${this.#where}) AND ` : "";
    const key = quoted(name);
    return `SELECT * FROM ${quoted(this.#table.name)} WHERE ${where}${key} >= ${low} AND ${key} <= ${high}`;
  }

  #follow(): void {
    if (this.#abort.signal.aborted) return;
    const pages = this.#pagesInSight();
    const first = pages[0] ?? 0;
    const query = this.#liveQuery(first);
    if (query === this.#liveText || query === "later") return;
    this.#stopLive?.();
    this.#stopLive = undefined;
    this.#liveText = query;
    if (query === undefined) {
      const isCheap = (this.state.get().total ?? 0) <= SMALL_TABLE_ROWS;
      this.#tell({ freshness: isCheap ? "polling" : "still" });
      return;
    }
    this.#stopLive = this.#database.live.follow(
      this.#table,
      query,
      (rows) => this.#changed(first, rows),
      () => {
        this.#stopLive = undefined;
        this.#liveText = undefined;
        this.#isRefused = true;
        this.#arrive();
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
    return row.map((value, at) => cellText(value, this.#table.columns[at]!.type)).join("\u0000");
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
