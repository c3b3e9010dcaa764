// A score board: views that return aggregates, and the first rows of an order, which the database keeps up to date. `boards-rs`
// is the same in Rust.

import { schema, t, table } from 'spacetimedb/server';

const score = table(
  { name: 'score', public: true },
  { id: t.u32().primaryKey(), team: t.u32().index('btree'), points: t.u32().index('btree') },
);

const spacetimedb = schema({ score });
export default spacetimedb;

const TeamTotal = t.row('TeamTotal', {
  team: t.u32(),
  players: t.u64(),
  points: t.u128(),
  best: t.u32(),
  mean: t.f64(),
});

/** A query that the package's builder cannot say: the package asks a query for its text. */
const withText = (query: object, text: string) => Object.create(query, { toSql: { value: () => text } });

/** A row for each team. */
export const byTeam = spacetimedb.anonymousView({ name: 'by_team', public: true }, t.array(TeamTotal), (ctx) =>
  withText(
    ctx.from.score,
    'SELECT team, COUNT(*) AS players, SUM(points) AS points, MAX(points) AS best, AVG(points) AS mean FROM score GROUP BY team',
  ),
);

/** The first two of all. */
export const firstTwo = spacetimedb.view({ name: 'first_two', public: true }, t.array(score.rowType), (ctx) =>
  withText(ctx.from.score, 'SELECT * FROM score ORDER BY points DESC LIMIT 2'),
);

export const put = spacetimedb.reducer({ id: t.u32(), team: t.u32(), points: t.u32() }, (ctx, row) => {
  ctx.db.score.id.delete(row.id);
  ctx.db.score.insert(row);
});

export const take = spacetimedb.reducer({ id: t.u32() }, (ctx, { id }) => {
  ctx.db.score.id.delete(id);
});
