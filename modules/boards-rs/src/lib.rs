//! A score board: views that return aggregates, and the first rows of an order, which the database keeps up to date.

use spacetimedb::{
    reducer, table, view, AnonymousViewContext, RawQuery, ReducerContext, SpacetimeType, Table,
    ViewContext,
};

#[table(accessor = score, public)]
pub struct Score {
    #[primary_key]
    pub id: u32,
    #[index(btree)]
    pub team: u32,
    #[index(btree)]
    pub points: u32,
}

#[derive(SpacetimeType)]
pub struct TeamTotal {
    pub team: u32,
    pub players: u64,
    pub points: u128,
    pub best: u32,
    pub mean: f64,
}

/// A row for each team.
#[view(accessor = by_team, public)]
fn by_team(_: &AnonymousViewContext) -> RawQuery<TeamTotal> {
    RawQuery::new("SELECT team, COUNT(*) AS players, SUM(points) AS points, MAX(points) AS best, AVG(points) AS mean FROM score GROUP BY team".to_owned())
}

/// The first two of all.
#[view(accessor = first_two, public)]
fn first_two(_: &ViewContext) -> RawQuery<Score> {
    RawQuery::new("SELECT * FROM score ORDER BY points DESC LIMIT 2".to_owned())
}

#[reducer]
pub fn put(ctx: &ReducerContext, id: u32, team: u32, points: u32) {
    ctx.db.score().id().delete(id);
    ctx.db.score().insert(Score { id, team, points });
}

#[reducer]
pub fn take(ctx: &ReducerContext, id: u32) {
    ctx.db.score().id().delete(id);
}
