//! Auto-increment columns of every width.

use spacetimedb::{reducer, table, ReducerContext, Table};

use crate::expect_eq;

#[table(accessor = counter_u8, public)]
pub struct CounterU8 {
    #[primary_key]
    #[auto_inc]
    pub id: u8,
    pub note: u32,
}

#[table(accessor = counter_u16, public)]
pub struct CounterU16 {
    #[primary_key]
    #[auto_inc]
    pub id: u16,
    pub note: u32,
}

#[table(accessor = counter_u32, public)]
pub struct CounterU32 {
    #[primary_key]
    #[auto_inc]
    pub id: u32,
    pub note: u32,
}

#[table(accessor = counter_u64, public)]
pub struct CounterU64 {
    #[primary_key]
    #[auto_inc]
    pub id: u64,
    pub note: u32,
}

#[table(accessor = counter_u128, public)]
pub struct CounterU128 {
    #[primary_key]
    #[auto_inc]
    pub id: u128,
    pub note: u32,
}

#[table(accessor = counter_i8, public)]
pub struct CounterI8 {
    #[primary_key]
    #[auto_inc]
    pub id: i8,
    pub note: u32,
}

#[table(accessor = counter_i16, public)]
pub struct CounterI16 {
    #[primary_key]
    #[auto_inc]
    pub id: i16,
    pub note: u32,
}

#[table(accessor = counter_i32, public)]
pub struct CounterI32 {
    #[primary_key]
    #[auto_inc]
    pub id: i32,
    pub note: u32,
}

#[table(accessor = counter_i64, public)]
pub struct CounterI64 {
    #[primary_key]
    #[auto_inc]
    pub id: i64,
    pub note: u32,
}

#[table(accessor = counter_i128, public)]
pub struct CounterI128 {
    #[primary_key]
    #[auto_inc]
    pub id: i128,
    pub note: u32,
}

macro_rules! check {
    ($ctx:ident: $($table:ident $row:ident),* $(,)?) => {
        $(
            let table = $ctx.db.$table();
            let first = table.insert($row { id: 0, note: 1 }).id;
            let second = table.insert($row { id: 0, note: 2 }).id;
            expect_eq(stringify!($table), second > first, true)?;
            expect_eq(stringify!($table), table.id().find(second).map(|r| r.note), Some(2))?;
            expect_eq(stringify!($table), table.id().delete(first), true)?;
            expect_eq(stringify!($table), table.id().delete(second), true)?;
            expect_eq(stringify!($table), table.insert($row { id: 100, note: 3 }).id, 100)?;
            expect_eq(stringify!($table), table.id().delete(100), true)?;
        )*
    };
}

/// Zero asks for the next number; numbers rise within a call, and explicit ones are kept.
#[reducer]
pub fn check_sequences(ctx: &ReducerContext) -> Result<(), String> {
    check!(ctx:
        counter_u8 CounterU8,
        counter_u16 CounterU16,
        counter_u32 CounterU32,
        counter_u64 CounterU64,
        counter_u128 CounterU128,
        counter_i8 CounterI8,
        counter_i16 CounterI16,
        counter_i32 CounterI32,
        counter_i64 CounterI64,
        counter_i128 CounterI128,
    );
    Ok(())
}

/// One row with the next number; the log line says which.
#[reducer]
pub fn next_number(ctx: &ReducerContext) {
    let row = ctx.db.counter_u64().insert(CounterU64 { id: 0, note: 0 });
    log::info!("number {}", row.id);
}

/// Takes numbers, then fails: the rows go, and nothing else breaks.
#[reducer]
pub fn waste_numbers(ctx: &ReducerContext, count: u32) -> Result<(), String> {
    for _ in 0..count {
        ctx.db.counter_u64().insert(CounterU64 { id: 0, note: 0 });
    }
    Err("wasted".into())
}
