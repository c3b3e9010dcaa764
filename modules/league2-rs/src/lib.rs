//! The next version of `league1-rs`: a column has another name and another one another type, a table is split, one is gone, and
//! the rows of a scheduled one are others. `__migrate` and the tables `__old_…` are docs/migrations.md.

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
    pub urgent: bool,
}

#[reducer]
pub fn remind(ctx: &ReducerContext, reminder: Reminder) {
    ctx.db.visit().insert(Visit {
        id: 1000 + reminder.scheduled_id as u32,
        note: format!("{} {}", reminder.text, reminder.urgent),
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

/// Reads a table as it was, which is not there any more.
#[reducer]
pub fn touch_old(ctx: &ReducerContext) {
    log::info!("{} rumours", ctx.db.__old_rumour().count());
}

// ---- The tables as they were, and the way from them ---------------------------------------------------------------------

#[table(accessor = __old_player)]
pub struct OldPlayer {
    #[primary_key]
    #[auto_inc]
    pub id: u64,
    #[unique]
    pub name: String,
    pub points: u32,
}

#[table(accessor = __old_account)]
pub struct OldAccount {
    #[primary_key]
    pub id: u32,
    pub owner: String,
    pub street: String,
    pub town: String,
}

#[table(accessor = __old_rumour)]
pub struct OldRumour {
    pub text: String,
}

#[table(accessor = __old_reminder)]
pub struct OldReminder {
    #[primary_key]
    pub scheduled_id: u64,
    pub scheduled_at: ScheduleAt,
    pub text: String,
}

#[reducer]
pub fn __migrate(ctx: &ReducerContext) -> Result<(), String> {
    log::info!("{} players", ctx.db.__old_player().count());
    // What tests ask for.
    let asked = |name: &str| ctx.db.__old_player().name().find(name.to_owned()).is_some();
    if asked("refuse") {
        ctx.db.visit().insert(Visit {
            id: 999,
            note: "must not stay".to_owned(),
        });
        return Err("a player is called refuse".to_owned());
    }
    if asked("panic") {
        panic!("a player is called panic");
    }
    if asked("write") {
        ctx.db.__old_rumour().insert(OldRumour {
            text: String::new(),
        });
    }
    for old in ctx.db.__old_player().iter() {
        ctx.db.player().insert(Player {
            id: old.id,
            full_name: old.name,
            score: i64::from(old.points) * 10,
        });
    }
    while asked("wait") {
        std::hint::spin_loop();
    }
    for old in ctx.db.__old_account().iter() {
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
    for old in ctx.db.__old_reminder().iter() {
        ctx.db.reminder().insert(Reminder {
            scheduled_id: old.scheduled_id,
            scheduled_at: old.scheduled_at,
            text: old.text,
            urgent: true,
        });
    }
    Ok(())
}
