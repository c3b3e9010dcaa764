//! Variables of the environment (2.11), one of them required, read by reducers and views. `latest-ts` has the same in TypeScript,
//! and procedures and handlers. `latest-rs` has optional ones alone, as most of its tests set none.

#![allow(non_snake_case)]

use spacetimedb::{
    reducer, table, view, AnonymousViewContext, EnvironmentValue, ReducerContext, SpacetimeType,
    Table,
};

#[derive(EnvironmentValue, Debug)]
pub enum Level {
    #[env(value = "debug")]
    Debug,
    #[env(value = "info")]
    Info,
}

#[spacetimedb::env]
pub struct Env {
    pub API_KEY: String,
    pub GREETING: Option<String>,
    pub LEVEL: Option<Level>,
    #[env(values("on"))]
    pub SWITCH: Option<String>,
}

/// What was read, and where.
#[table(accessor = seen, public)]
pub struct Seen {
    #[primary_key]
    #[auto_inc]
    pub id: u64,
    pub place: String,
    pub value: Option<String>,
}

fn note(ctx: &ReducerContext, place: &str, value: Option<String>) {
    ctx.db.seen().insert(Seen {
        id: 0,
        place: place.to_owned(),
        value,
    });
}

#[reducer(init)]
fn init(ctx: &ReducerContext) {
    note(ctx, "init", Some(ctx.env.API_KEY()));
}

/// Reads a typed one.
#[reducer]
fn look_at_level(ctx: &ReducerContext) {
    note(
        ctx,
        "level",
        ctx.env.LEVEL().map(|level| format!("{level:?}")),
    );
}

#[reducer]
fn look(ctx: &ReducerContext, key: String) {
    note(ctx, "reducer", ctx.env.get(&key));
}

/// More sources than a call may have.
#[reducer]
fn look_often(ctx: &ReducerContext, times: u32) {
    for _ in 0..times {
        ctx.env.API_KEY();
    }
    note(ctx, "often", None);
}

#[derive(SpacetimeType)]
pub struct Greeting {
    pub text: String,
}

/// Follows the environment.
#[view(accessor = greeting, public)]
fn greeting(ctx: &AnonymousViewContext) -> Option<Greeting> {
    let text = ctx.env.GREETING()?;
    if text == "fail" {
        panic!("the greeting is wrong");
    }
    Some(Greeting { text })
}
