//! Views of all kinds, and the reducers that change what they read. `views-ts` is the same in TypeScript.

use spacetimedb::{
    procedure, reducer, table, view, AnonymousViewContext, Identity, ProcedureContext, Query,
    ReducerContext, SpacetimeType, Table, ViewContext,
};

/// Only the views can read it.
#[table(accessor = message, index(accessor = by_owner_and_score, btree(columns = [owner, score])))]
pub struct Message {
    #[primary_key]
    pub id: u32,
    #[index(btree)]
    pub owner: Identity,
    #[index(btree)]
    pub room: u32,
    pub score: u32,
    pub text: String,
}

/// How the view `fragile` fails.
#[table(accessor = mode)]
pub struct Mode {
    #[primary_key]
    pub id: u32,
    pub value: u32,
}

#[table(accessor = audit, public)]
pub struct Audit {
    pub line: String,
}

#[derive(SpacetimeType)]
pub struct Total {
    pub messages: u64,
}

#[derive(SpacetimeType)]
pub struct Line {
    pub key: u32,
    pub text: String,
}

/// Rows of the caller.
#[view(accessor = my_messages, public)]
fn my_messages(ctx: &ViewContext) -> Vec<Message> {
    ctx.db.message().owner().filter(ctx.sender()).collect()
}

/// A range of an index: the message with the highest score from 10 on.
#[view(accessor = my_best, public)]
fn my_best(ctx: &ViewContext) -> Option<Message> {
    log::info!("my_best runs");
    let found = ctx.db.message().by_owner_and_score();
    found.filter((ctx.sender(), 10u32..)).last()
}

/// One row for all callers.
#[view(accessor = total, public)]
fn total(ctx: &AnonymousViewContext) -> Option<Total> {
    Some(Total {
        messages: ctx.db.message().count(),
    })
}

/// A query for all callers, which the database keeps up to date.
#[view(accessor = room_one, public)]
fn room_one(ctx: &AnonymousViewContext) -> impl Query<Message> {
    ctx.from.message().r#where(|message| message.room.eq(1))
}

/// A query for the caller.
#[view(accessor = my_query, public)]
fn my_query(ctx: &ViewContext) -> impl Query<Message> {
    let sender = ctx.sender();
    ctx.from
        .message()
        .r#where(|message| message.owner.eq(sender))
}

/// A join for all callers: the messages whose id is one of a mode.
#[view(accessor = with_mode, public)]
fn with_mode(ctx: &AnonymousViewContext) -> impl Query<Message> {
    let modes = ctx.from.mode();
    ctx.from
        .message()
        .left_semijoin(modes, |message, mode| message.id.eq(mode.id))
}

/// Fails as `mode` says: 1 traps, 2 never ends, 3 gives one key twice, 4 is too much.
#[view(accessor = fragile, public, primary_key = key)]
fn fragile(ctx: &ViewContext) -> Vec<Line> {
    let messages = ctx.db.message().owner().filter(ctx.sender());
    let line = |text: String| Line { key: 0, text };
    match ctx.db.mode().id().find(0).map_or(0, |mode| mode.value) {
        1 => panic!("as it was told"),
        2 => loop {
            std::hint::black_box(());
        },
        3 => vec![line("a".into()), line("b".into())],
        4 => vec![line("x".repeat(20 << 20))],
        _ => messages
            .map(|m| Line {
                key: m.id,
                text: m.text,
            })
            .collect(),
    }
}

fn set(ctx: &ReducerContext, id: u32, owner: Identity, room: u32, score: u32, text: String) {
    let message = Message {
        id,
        owner,
        room,
        score,
        text,
    };
    match ctx.db.message().id().find(id) {
        Some(_) => ctx.db.message().id().update(message),
        None => ctx.db.message().insert(message),
    };
}

#[reducer]
pub fn put(ctx: &ReducerContext, id: u32, owner: Identity, room: u32, score: u32, text: String) {
    set(ctx, id, owner, room, score, text);
}

#[reducer]
pub fn take(ctx: &ReducerContext, id: u32) {
    ctx.db.message().id().delete(id);
}

/// A change that is rolled back.
#[reducer]
pub fn put_and_fail(ctx: &ReducerContext, id: u32, owner: Identity) -> Result<(), String> {
    set(ctx, id, owner, 1, 100, "never".into());
    Err("on purpose".into())
}

#[reducer]
pub fn set_mode(ctx: &ReducerContext, value: u32) {
    ctx.db.mode().id().delete(0);
    ctx.db.mode().insert(Mode { id: 0, value });
    ctx.db.audit().insert(Audit {
        line: format!("mode {value}"),
    });
}

#[procedure]
pub fn put_by_procedure(ctx: &mut ProcedureContext, id: u32, owner: Identity) -> u64 {
    ctx.with_tx(|tx| {
        set(tx, id, owner, 1, 50, "by a procedure".into());
        tx.db.message().count()
    })
}
