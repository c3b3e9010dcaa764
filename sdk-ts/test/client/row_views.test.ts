// Results that are kept up to date: against a naive filter, and that a commit looks at changed rows only.

import * as fc from "fast-check";
import { expect, test } from "vitest";
import { getQueryWhereClause, type RowTypedQuery } from "../../src/client";
import { Changes, type Row } from "../../src/client/row_store";
import { type RowSource, RowView, TableViews } from "../../src/client/row_views";
import { runToEnd } from "../../src/client/scheduling";
import { tables } from "./bindings";

/** A table without a connection. */
class Source implements RowSource {
  readonly content = new Map<number, Row>();
  readonly views = new TableViews();
  version = 0;
  wrap = (row: Row): Row => row;

  rows(): Iterable<Row> {
    return this.content.values();
  }

  /** Puts rows in (an empty name takes one out), as one commit; `between` happens while it is prepared. */
  commit(rows: readonly Row[], between: () => void = () => {}): RowView[] {
    const changes = new Changes();
    for (const plain of rows) {
      const row = this.wrap(plain);
      const before = this.content.get(plain.id as number);
      if (plain.name === "") {
        if (before) changes.deleted.push(before);
      } else if (before) changes.updated.push(before, row);
      else changes.inserted.push(row);
    }
    const sorted = runToEnd(this.views.sort(changes));
    between();
    for (const row of changes.deleted) this.content.delete(row.id as number);
    for (let i = 1; i < changes.updated.length; i += 2) {
      this.content.set(changes.updated[i]!.id as number, changes.updated[i]!);
    }
    for (const row of changes.inserted) this.content.set(row.id as number, row);
    const changed: RowView[] = [];
    if (changes.size > 0) {
      this.version += 1;
      this.views.follow(changes, sorted, this.version, changed);
    }
    return changed;
  }
}

const { person } = tables;
const QUERIES: RowTypedQuery<any, any>[] = [
  person,
  person.where((p) => p.name.eq("a")),
  person.where((p) => p.name.eq("b").and(p.id.lt(4))),
  person.where((p) => p.id.eq(3)),
  person.where((p) => p.id.gt(2)),
  person.where((p) => p.name.eq("a").or(p.name.eq("c"))),
  person.where((p) => p.name.eq("a").not()),
  person.where(() => false),
];

test("views agree with a filter over all rows, whenever they come and go", () => {
  const id = fc.nat(7);
  const row = fc.record({ id, name: fc.constantFrom("", "a", "b", "c") });
  const step = fc.record({
    rows: fc.uniqueArray(row, { maxLength: 4, selector: (r) => r.id }),
    toggle: fc.option(fc.nat(QUERIES.length - 1), { nil: undefined }),
    inBetween: fc.boolean(),
    read: fc.boolean(),
  });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
      const source = new Source();
      const views = QUERIES.map((query) => new RowView(source, getQueryWhereClause(query)));
      const attached = new Set<number>();
      const told = new Set<RowView>();
      for (const { rows, toggle, inBetween, read } of steps) {
        const flip = (): void => {
          if (toggle === undefined) return;
          if (attached.delete(toggle)) views[toggle]!.detach();
          else views[attached.add(toggle) && toggle]!.attach(() => {});
        };
        const wasAttached = new Set(attached);
        const before = views.map((view) => (read ? view.rows : undefined));
        if (!inBetween) flip();
        for (const view of source.commit(rows, inBetween ? flip : undefined)) told.add(view);
        if (!read) continue;
        views.forEach((view, i) => {
          const expected = [...source.rows()].filter((r) => view.matches(r));
          expect(new Set(view.rows)).toEqual(new Set(expected));
          expect(view.rows).toHaveLength(expected.length);
          const isSame = before[i] === view.rows;
          const hasSameRows =
            before[i]!.length === expected.length && before[i]!.every((r) => expected.includes(r));
          if (isSame) expect(hasSameRows).toBe(true);
          // Looking at all rows again may find them in another order.
          if (wasAttached.has(i) && attached.has(i) && !told.has(view)) expect(isSame).toBe(true);
          if (attached.has(i) && !hasSameRows) expect(told.has(view)).toBe(true);
        });
        told.clear();
      }
    }),
    { numRuns: 500 },
  );
});

test("an update keeps the place of a row", () => {
  const source = new Source();
  const view = new RowView(source);
  view.attach(() => {});
  source.commit(["a", "b", "c"].map((name, id) => ({ id, name })));
  source.commit([{ id: 1, name: "B" }]);
  expect(view.rows.map(({ name }) => name)).toEqual(["a", "B", "c"]);
  source.commit([{ id: 0, name: "" }]);
  expect(view.rows.map(({ name }) => name)).toEqual(["B", "c"]);
});

test("a commit of one row looks at this row only, however many rows and views there are", () => {
  const source = new Source();
  let reads = 0;
  source.wrap = (row) =>
    new Proxy(row, {
      get: (target, key) => {
        reads += 1;
        return target[key as string];
      },
    });
  const rows = Array.from({ length: 100_000 }, (_, id) => ({ id, name: `n${id % 20}` }));
  const views = Array.from(
    { length: 20 },
    (_, n) => new RowView(source, getQueryWhereClause(person.where((p) => p.name.eq(`n${n}`)))),
  );
  for (const view of views) view.attach(() => {});
  source.commit(rows);
  expect(views.map((view) => view.rows.length)).toEqual(Array(20).fill(5000));
  reads = 0;
  const before = views.map((view) => view.rows);
  expect(source.commit([{ id: 100_001, name: "n7" }])).toEqual([views[7]]);
  expect(source.commit([{ id: 100_002, name: "no view's" }])).toEqual([]);
  expect(views.filter((view, n) => view.rows !== before[n])).toEqual([views[7]]);
  expect(reads).toBeLessThan(40);
});

test("views that come late look at all rows a few times, not once for each", () => {
  const source = new Source();
  let reads = 0;
  source.wrap = (row) =>
    new Proxy(row, {
      get: (target, key) => {
        reads += 1;
        return target[key as string];
      },
    });
  source.commit(Array.from({ length: 10_000 }, (_, id) => ({ id, name: `n${id % 20}` })));
  reads = 0;
  const views = Array.from({ length: 20 }, (_, n) => {
    const view = new RowView(source, getQueryWhereClause(person.where((p) => p.name.eq(`n${n}`))));
    // React reads before it listens.
    const { length } = view.rows;
    view.attach(() => {});
    return length;
  });
  expect(views).toEqual(Array(20).fill(500));
  expect(reads).toBeLessThan(10_000 * 5 + 20 * 500 + 10);
});
