//! What the measurements of live queries need: rooms with members, notes with owners, scores, and accounts to transfer between.
//! `live-ts` is the same in TypeScript. Driven by `crates/loadgen/examples/live_queries.rs`.

use spacetimedb::{reducer, table, view, Identity, Query, ReducerContext, Table, ViewContext};

#[table(accessor = accounts, public)]
pub struct Account {
    #[primary_key]
    #[index(hash)]
    pub id: u32,
    pub balance: i64,
}

#[table(accessor = message, public)]
pub struct Message {
    #[primary_key]
    #[auto_inc]
    pub id: u32,
    #[index(btree)]
    pub room: u32,
    pub text: String,
}

#[table(accessor = membership, public)]
pub struct Membership {
    #[primary_key]
    #[auto_inc]
    pub id: u32,
    #[index(btree)]
    pub room: u32,
    #[index(btree)]
    pub member: Identity,
}

#[table(accessor = note, public)]
pub struct Note {
    #[primary_key]
    pub id: u32,
    #[index(btree)]
    pub owner: Identity,
    pub text: String,
}

#[table(accessor = score, public)]
pub struct Score {
    #[primary_key]
    pub id: u32,
    #[index(btree)]
    pub score: u32,
    pub name: String,
}

/// Rows of the caller, found by the module.
#[view(accessor = my_notes, public)]
fn my_notes(ctx: &ViewContext) -> Vec<Note> {
    ctx.db.note().owner().filter(ctx.sender()).collect()
}

/// The same, found by the database.
#[view(accessor = my_notes_query, public)]
fn my_notes_query(ctx: &ViewContext) -> impl Query<Note> {
    let sender = ctx.sender();
    ctx.from.note().r#where(|note| note.owner.eq(sender))
}

/// Messages of the rooms of the caller, found by the database.
#[view(accessor = my_messages, public)]
fn my_messages(ctx: &ViewContext) -> impl Query<Message> {
    let sender = ctx.sender();
    let mine = ctx
        .from
        .membership()
        .r#where(|membership| membership.member.eq(sender));
    mine.right_semijoin(ctx.from.message(), |membership, message| {
        membership.room.eq(message.room)
    })
}

/// Replaces every account by `n` new ones, ids `0..n`, each with `initial_balance`.
#[reducer]
pub fn seed(ctx: &ReducerContext, n: u32, initial_balance: i64) {
    let accounts = ctx.db.accounts();
    for account in accounts.iter() {
        accounts.delete(account);
    }
    for id in 0..n {
        accounts.insert(Account {
            id,
            balance: initial_balance,
        });
    }
}

/// Moves `amount` between two accounts; an error undoes everything.
#[reducer]
pub fn transfer(ctx: &ReducerContext, from: u32, to: u32, amount: i64) -> Result<(), String> {
    let by_id = ctx.db.accounts().id();
    let (Some(source), Some(destination)) = (by_id.find(from), by_id.find(to)) else {
        return Err("account_missing".into());
    };
    if from == to || amount <= 0 || source.balance < amount {
        return Err("refused".into());
    }
    by_id.update(Account {
        balance: source.balance - amount,
        ..source
    });
    by_id.update(Account {
        balance: destination.balance + amount,
        ..destination
    });
    Ok(())
}

#[reducer]
pub fn enter(ctx: &ReducerContext, room: u32, member: Identity) {
    ctx.db.membership().insert(Membership {
        id: 0,
        room,
        member,
    });
}

#[reducer]
pub fn say(ctx: &ReducerContext, room: u32, text: String) {
    ctx.db.message().insert(Message { id: 0, room, text });
}

#[reducer]
pub fn put_note(ctx: &ReducerContext, id: u32, owner: Identity, text: String) {
    let note = Note { id, owner, text };
    match ctx.db.note().id().find(id) {
        Some(_) => ctx.db.note().id().update(note),
        None => ctx.db.note().insert(note),
    };
}

/// Adds scores with the ids `first..first + n`: each id is its own score.
#[reducer]
pub fn add_scores(ctx: &ReducerContext, first: u32, n: u32) {
    for id in first..first + n {
        ctx.db.score().insert(Score {
            id,
            score: id,
            name: format!("player {id}"),
        });
    }
}

#[reducer]
pub fn set_score(ctx: &ReducerContext, id: u32, score: u32) {
    if let Some(row) = ctx.db.score().id().find(id) {
        ctx.db.score().id().update(Score { score, ..row });
    }
}
