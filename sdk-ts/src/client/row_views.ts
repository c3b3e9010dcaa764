// Results of conditions on one table, kept up to date with every commit: only rows that changed are looked at, and of a
// condition `column = value` only those with this value.

import type { AnyCondition } from "../core/query_expression";
import { compileCondition, type Equality, equalityKey, equalityOf } from "../core/query_expression";
import { callSafely } from "./event_emitter";
import { Changes, ROWS_BETWEEN_YIELDS, type Row } from "./row_store";
import type { Steps } from "./scheduling";

/** The table of a view. */
export interface RowSource {
  rows(): Iterable<Row>;
  /** Another number after each commit that changed rows. */
  readonly version: number;
  /** Made for the first view, so that an application without any does not load this file. */
  views: TableViews | undefined;
}

const NO_ROWS: readonly never[] = Object.freeze([]) as readonly never[];

/** A result is put together anew when this part of its places is empty. */
const EMPTY_PLACES_MAX = 0.5;

/** Views that look at all rows of a table; one more has the rows put into groups. */
const SEARCHES_MAX = 4;

/** After a commit of more rows, groups are made anew when they are needed. */
const GROUPED_CHANGES_MAX = 8192;

/** The rows of a table that fulfil a condition: the same array until one of them changes. */
export class RowView {
  readonly matches: (row: Row) => boolean;
  readonly isConditional: boolean;
  readonly equality: Equality | undefined;
  readonly #source: RowSource;
  readonly #views: TableViews;
  /** Rows in the order of their arrival; a deleted one leaves an empty place. */
  #places: (Row | undefined)[] = [];
  #emptyPlaces = 0;
  /** Where each row is; made when a row is first replaced or deleted. */
  #placeOf: Map<Row, number> | undefined;
  #rows: readonly Row[] | undefined;
  /** The version of the table that the places show. */
  #version = -1;
  #listener: (() => void) | undefined;

  constructor(source: RowSource, condition?: AnyCondition) {
    this.#source = source;
    this.#views = source.views ??= new TableViews();
    this.isConditional = condition !== undefined;
    this.matches = condition ? compileCondition(condition) : () => true;
    this.equality = condition && equalityOf(condition);
  }

  /** Follows the table until `detach`; `listener` is called after commits that change the result. */
  attach(listener: () => void): void {
    this.#listener = listener;
    this.#views.add(this);
  }

  detach(): void {
    this.#listener = undefined;
    this.#views.remove(this);
  }

  get rows(): readonly Row[] {
    // An attached view was told of every commit.
    if (this.#version !== this.#source.version) this.#compute();
    this.#rows ??= this.#snapshot();
    return this.#rows;
  }

  #compute(): void {
    this.#placeOf = undefined;
    this.#emptyPlaces = 0;
    const places: Row[] = [];
    for (const row of this.#views.candidates(this.equality, this.#source)) {
      if (this.matches(row)) places.push(row);
    }
    this.#places = places;
    this.#version = this.#source.version;
    // Nothing is rendered for a result that only was put together again.
    if (this.#rows && !isSameList(this.#rows, places)) this.#rows = undefined;
  }

  #snapshot(): readonly Row[] {
    const places = this.#places;
    if (places.length === this.#emptyPlaces) return NO_ROWS;
    return (this.#emptyPlaces === 0 ? places.slice() : places.filter((row) => row !== undefined)) as Row[];
  }

  /** Applies the part of a commit that concerns this view, which leads to `version`. */
  follow({ inserted, updated, deleted }: Changes, version: number): void {
    if (this.#version !== version - 1) return;
    this.#version = version;
    this.#rows = undefined;
    const places = this.#places;
    if (updated.length + deleted.length > 0) this.#placeOf ??= this.#findPlaces();
    for (const row of deleted) {
      const place = this.#forget(row);
      if (place === undefined) continue;
      places[place] = undefined;
      this.#emptyPlaces += 1;
    }
    for (let i = 0; i < updated.length; i += 2) {
      const place = this.#forget(updated[i]!);
      if (place === undefined) continue;
      places[place] = updated[i + 1]!;
      this.#placeOf?.set(updated[i + 1]!, place);
    }
    for (const row of inserted) {
      this.#placeOf?.set(row, places.length);
      places.push(row);
    }
    if (this.#emptyPlaces > 32 && this.#emptyPlaces > places.length * EMPTY_PLACES_MAX) {
      this.#places = places.filter((row) => row !== undefined);
      this.#emptyPlaces = 0;
      this.#placeOf = undefined;
    }
  }

  /** A commit that does not concern this view led to `version`. */
  skip(version: number): void {
    if (this.#version === version - 1) this.#version = version;
  }

  #findPlaces(): Map<Row, number> {
    const places = new Map<Row, number>();
    this.#places.forEach((row, place) => {
      if (row !== undefined) places.set(row, place);
    });
    return places;
  }

  #forget(row: Row): number | undefined {
    const place = this.#placeOf?.get(row);
    this.#placeOf?.delete(row);
    return place;
  }

  notify(): void {
    if (this.#listener) callSafely(this.#listener, []);
  }
}

function isSameList(a: readonly Row[], b: readonly Row[]): boolean {
  if (a.length !== b.length) return false;
  for (let i = 0; i < a.length; i++) if (a[i] !== b[i]) return false;
  return true;
}

/** The changes of a commit for each view that existed when it was prepared. */
export interface ViewChanges {
  readonly byView: ReadonlyMap<RowView, Changes>;
  /** Views with a later number came afterwards. */
  readonly lastNumber: number;
}

/** Rows by the value of a column, for views that come and look for one value. */
class ColumnGroups {
  #searches = 0;
  #groups: Map<unknown, Set<Row>> | undefined;

  /** Rows among which all with this key are. */
  find(equality: Equality, source: RowSource): Iterable<Row> {
    this.#searches += 1;
    if (this.#searches > SEARCHES_MAX) this.#groups ??= groupRows(source.rows(), equality.column);
    return this.#groups ? (this.#groups.get(equality.key) ?? []) : source.rows();
  }

  follow(column: string, changes: Changes): void {
    if (changes.size > GROUPED_CHANGES_MAX) {
      this.#groups = undefined;
      this.#searches = 0;
    } else if (this.#groups) {
      followInGroups(this.#groups, column, changes);
    }
  }
}

/** The views of one table. */
export class TableViews {
  /** In the order of their arrival, numbered. */
  readonly #all = new Map<RowView, number>();
  readonly #others = new Set<RowView>();
  /** Views whose condition wants one value of a column, by column and value. */
  readonly #byColumn = new Map<string, Map<unknown, Set<RowView>>>();
  readonly #groups = new Map<string, ColumnGroups>();
  #lastNumber = 0;

  add(view: RowView): void {
    this.#all.set(view, ++this.#lastNumber);
    if (!view.equality) {
      if (view.isConditional) this.#others.add(view);
      return;
    }
    const { column, key } = view.equality;
    let byKey = this.#byColumn.get(column);
    if (!byKey) this.#byColumn.set(column, (byKey = new Map()));
    const views = byKey.get(key);
    if (views) views.add(view);
    else byKey.set(key, new Set([view]));
  }

  remove(view: RowView): void {
    this.#all.delete(view);
    this.#others.delete(view);
    if (!view.equality) return;
    const { column, key } = view.equality;
    const byKey = this.#byColumn.get(column);
    const views = byKey?.get(key);
    if (!byKey || !views) return;
    views.delete(view);
    if (views.size === 0) byKey.delete(key);
    if (byKey.size > 0) return;
    this.#byColumn.delete(column);
    this.#groups.delete(column);
  }

  /** Rows among which all with this equality are. */
  candidates(equality: Equality | undefined, source: RowSource): Iterable<Row> {
    if (!equality) return source.rows();
    let groups = this.#groups.get(equality.column);
    if (!groups) this.#groups.set(equality.column, (groups = new ColumnGroups()));
    return groups.find(equality, source);
  }

  /** Finds out which views the changes of a commit concern. */
  *sort(changes: Changes): Steps<ViewChanges> {
    const byView = new Map<RowView, Changes>();
    const result = { byView, lastNumber: this.#lastNumber };
    if (this.#all.size === 0) return result;
    for (const view of this.#all.keys()) if (!view.isConditional) byView.set(view, changes);
    if (byView.size === this.#all.size) return result;
    const changesOf = (view: RowView): Changes => {
      let found = byView.get(view);
      if (!found) byView.set(view, (found = new Changes()));
      return found;
    };
    let done = 0;
    for (const row of changes.inserted) {
      for (const view of this.#concerned(row)) changesOf(view).inserted.push(row);
      if (++done % ROWS_BETWEEN_YIELDS === 0) yield;
    }
    for (const row of changes.deleted) {
      for (const view of this.#concerned(row)) changesOf(view).deleted.push(row);
      if (++done % ROWS_BETWEEN_YIELDS === 0) yield;
    }
    for (let i = 0; i < changes.updated.length; i += 2) {
      const [before, after] = [changes.updated[i]!, changes.updated[i + 1]!];
      const had = new Set(this.#concerned(before));
      for (const view of this.#concerned(after)) {
        if (had.delete(view)) changesOf(view).updated.push(before, after);
        else changesOf(view).inserted.push(after);
      }
      for (const view of had) changesOf(view).deleted.push(before);
      if (++done % ROWS_BETWEEN_YIELDS === 0) yield;
    }
    return result;
  }

  /** Views whose condition the row fulfils. */
  *#concerned(row: Row): Generator<RowView, void> {
    for (const view of this.#others) if (view.matches(row)) yield view;
    for (const [column, byKey] of this.#byColumn) {
      const found = byKey.get(equalityKey(row[column]));
      if (found) for (const view of found) if (view.matches(row)) yield view;
    }
  }

  /** Makes a commit visible in all views; those that it changed are added to `changed`. */
  follow(changes: Changes, { byView, lastNumber }: ViewChanges, version: number, changed: RowView[]): void {
    for (const [view, number] of this.#all) {
      const own = byView.get(view);
      if (own) view.follow(own, version);
      else if (number <= lastNumber) view.skip(version);
      // A view that came while the commit was prepared looks at all rows when it is asked next.
      if (own || number > lastNumber) changed.push(view);
    }
    for (const [column, groups] of this.#groups) {
      // Views look for their rows while they are rendered, and stay afterwards or do not.
      if (this.#byColumn.has(column)) groups.follow(column, changes);
      else this.#groups.delete(column);
    }
  }
}

function groupRows(rows: Iterable<Row>, column: string): Map<unknown, Set<Row>> {
  const groups = new Map<unknown, Set<Row>>();
  for (const row of rows) addToGroup(groups, column, row);
  return groups;
}

function addToGroup(groups: Map<unknown, Set<Row>>, column: string, row: Row): void {
  const key = equalityKey(row[column]);
  const group = groups.get(key);
  if (group) group.add(row);
  else groups.set(key, new Set([row]));
}

function removeFromGroup(groups: Map<unknown, Set<Row>>, column: string, row: Row): void {
  const key = equalityKey(row[column]);
  const group = groups.get(key);
  group?.delete(row);
  if (group?.size === 0) groups.delete(key);
}

function followInGroups(groups: Map<unknown, Set<Row>>, column: string, changes: Changes): void {
  for (const row of changes.deleted) removeFromGroup(groups, column, row);
  for (let i = 0; i < changes.updated.length; i += 2) {
    removeFromGroup(groups, column, changes.updated[i]!);
    addToGroup(groups, column, changes.updated[i + 1]!);
  }
  for (const row of changes.inserted) addToGroup(groups, column, row);
}
