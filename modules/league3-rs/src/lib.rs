//! Another next version of `league1-rs`, with a function for the rows of each table in the place of `__migrate`: they are migrated one
//! by one, while `league1-rs` runs (docs/migrations.md).

use spacetimedb::{reducer, table, ReducerContext, ScheduleAt, Table};

#[table(accessor = player, public)]
pub struct Player {
    #[primary_key]
    #[auto_inc]
    pub id: u64,
    #[unique]
    pub full_name: String,
    pub score: i64,
}

#[table(accessor = account, public)]
pub struct Account {
    #[primary_key]
    pub id: u32,
    pub owner: String,
}

#[table(accessor = address, public)]
pub struct Address {
    #[primary_key]
    #[auto_inc]
    pub id: u64,
    #[index(btree)]
    pub account: u32,
    pub street: String,
    pub town: String,
}

#[table(accessor = visit, public)]
pub struct Visit {
    #[primary_key]
    pub id: u32,
    pub note: String,
}

#[table(accessor = reminder, scheduled(remind))]
pub struct Reminder {
    #[primary_key]
    #[auto_inc]
    pub scheduled_id: u64,
    pub scheduled_at: ScheduleAt,
    pub text: String,
}

#[reducer]
pub fn remind(ctx: &ReducerContext, reminder: Reminder) {
    ctx.db.visit().insert(Visit {
        id: 1000 + reminder.scheduled_id as u32,
        note: reminder.text,
    });
}

#[reducer]
pub fn add_player(ctx: &ReducerContext, full_name: String, score: i64) {
    ctx.db.player().insert(Player {
        id: 0,
        full_name,
        score,
    });
}

// ---- The tables as they were, and what is made of their rows ------------------------------------------------------------

#[table(accessor = __old_player)]
pub struct OldPlayer {
    #[primary_key]
    #[auto_inc]
    pub id: u64,
    #[unique]
    pub name: String,
    pub points: u32,
}

#[reducer]
pub fn __migrate_player(ctx: &ReducerContext, old: OldPlayer) -> Result<(), String> {
    // What tests ask for.
    match old.name.as_str() {
        "refuse" => return Err("a player is called refuse".to_owned()),
        "panic" => panic!("a player is called panic"),
        "read" => log::info!("{} visits", ctx.db.visit().count()),
        "write" => {
            ctx.db.visit().insert(Visit {
                id: 999,
                note: "must not be".to_owned(),
            });
        }
        _ => {}
    }
    ctx.db.player().insert(Player {
        id: old.id,
        full_name: old.name,
        score: i64::from(old.points) * 10,
    });
    Ok(())
}

#[table(accessor = __old_account)]
pub struct OldAccount {
    #[primary_key]
    pub id: u32,
    pub owner: String,
    pub street: String,
    pub town: String,
}

#[reducer]
pub fn __migrate_account(ctx: &ReducerContext, old: OldAccount) {
    ctx.db.account().insert(Account {
        id: old.id,
        owner: old.owner,
    });
    ctx.db.address().insert(Address {
        id: 0,
        account: old.id,
        street: old.street,
        town: old.town,
    });
}

/// Its rows go with it.
#[table(accessor = __old_rumour)]
pub struct OldRumour {
    pub text: String,
}
