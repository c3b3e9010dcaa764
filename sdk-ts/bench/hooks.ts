// What a transaction of one row costs while 20 filtered queries over 100,000 rows are shown, and how long these take when
// they come after the rows. `npm run bench:hooks`.

import { getQueryWhereClause, makeQueryBuilder, schema, t, table } from "../src/client";
import { RowView } from "../src/client/row_views";
import { runToEnd } from "../src/client/scheduling";
import { cacheOf, TableCacheImpl } from "../src/client/table_cache";

const ROWS = 100_000;
const VIEWS = 20;

const { schemaType } = schema({ item: table({ name: "item" }, { id: t.u32().primaryKey(), room: t.u32() }) });
const tables = makeQueryBuilder(schemaType);
const cache = cacheOf(new TableCacheImpl(schemaType.tables.item as never).facade)!;

function insert(ids: readonly number[], room: (id: number) => number): void {
  const rows = ids.map((id) => ({ id, room: room(id) }));
  const change = runToEnd(
    cache.prepare({ inserts: { keys: [...ids], rows }, deletes: { keys: [], rows: [] } }),
  );
  const changed: RowView[] = [];
  change.commit(changed);
  for (const view of changed) view.notify();
}

function report(what: string, startedAt: number, times: number): void {
  const us = ((performance.now() - startedAt) * 1000) / times;
  console.log(`${what}: ${us.toFixed(1)} µs`);
}

insert(
  Array.from({ length: ROWS }, (_, id) => id),
  (id) => id % VIEWS,
);
const views = Array.from(
  { length: VIEWS },
  (_, n) => new RowView(cache, getQueryWhereClause(tables.item.where((item) => item.room.eq(n)))),
);
let startedAt = performance.now();
for (const view of views) {
  view.attach(() => void view.rows);
  void view.rows;
}
report(`${VIEWS} queries come, each`, startedAt, VIEWS);
for (const [what, room] of [
  ["a row of one query", 3],
  ["a row of none", 99],
] as const) {
  const times = 2000;
  for (const isMeasured of [false, true]) {
    startedAt = performance.now();
    for (let i = 0; i < times; i++) insert([ROWS + i + (isMeasured ? times : 0) + room * 10_000], () => room);
    if (isMeasured) report(`a commit of ${what}`, startedAt, times);
  }
}
