//! A module as it is before `league2-rs` takes its place, whose migration function knows its tables.

use spacetimedb::{reducer, table, ReducerContext, ScheduleAt, Table};

#[table(accessor = player, public)]
pub struct Player {
    #[primary_key]
    #[auto_inc]
    pub id: u64,
    #[unique]
    pub name: String,
    pub points: u32,
}

/// Two things in one row, that belong into two tables.
#[table(accessor = account, public)]
pub struct Account {
    #[primary_key]
    pub id: u32,
    pub owner: String,
    pub street: String,
    pub town: String,
}

/// It is no longer needed.
#[table(accessor = rumour)]
pub struct Rumour {
    pub text: String,
}

/// Stays as it is.
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
    ctx.db.rumour().insert(Rumour {
        text: reminder.text,
    });
}

/// Adds `n` players and as many accounts.
#[reducer]
pub fn seed(ctx: &ReducerContext, n: u32) {
    for id in 0..n {
        ctx.db.player().insert(Player {
            id: 0,
            name: format!("player {id}"),
            points: id % 1000,
        });
    }
}

#[reducer]
pub fn open_account(ctx: &ReducerContext, id: u32, owner: String) {
    ctx.db.account().insert(Account {
        id,
        street: format!("{owner} street"),
        town: "here".to_owned(),
        owner,
    });
    ctx.db.visit().insert(Visit {
        id,
        note: "opened an account".to_owned(),
    });
    ctx.db.rumour().insert(Rumour {
        text: "rich".to_owned(),
    });
}

/// What the migration function of the next version is to do: a player of this name tells it.
#[reducer]
pub fn add_player(ctx: &ReducerContext, name: String, points: u32) {
    ctx.db.player().insert(Player {
        id: 0,
        name,
        points,
    });
}

/// Reminds of something in so many milliseconds.
#[reducer]
pub fn plan_reminder(ctx: &ReducerContext, text: String, ms: u32) {
    let at = ctx.timestamp + std::time::Duration::from_millis(ms.into());
    ctx.db.reminder().insert(Reminder {
        scheduled_id: 0,
        scheduled_at: at.into(),
        text,
    });
}
