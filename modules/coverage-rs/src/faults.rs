//! Everything that can go wrong in a call. Each writes a row first: none of these rows may survive.

use spacetimedb::{reducer, table, ReducerContext, Table};

#[table(accessor = marks, public)]
pub struct Mark {
    #[primary_key]
    pub id: u32,
    pub text: String,
}

fn mark(ctx: &ReducerContext, text: &str) {
    let marks = ctx.db.marks();
    marks.insert(Mark {
        id: 1_000_000 + marks.count() as u32,
        text: text.into(),
    });
}

/// The call that must work after each of the others.
#[reducer]
pub fn set_mark(ctx: &ReducerContext, id: u32, text: String) {
    ctx.db.marks().id().insert_or_update(Mark { id, text });
}

#[reducer]
pub fn fail(ctx: &ReducerContext, message: String) -> Result<(), String> {
    mark(ctx, "fail");
    Err(message)
}

#[reducer]
pub fn panic(ctx: &ReducerContext, message: String) {
    mark(ctx, "panic");
    panic!("{message}");
}

#[reducer]
pub fn break_unique(ctx: &ReducerContext) {
    mark(ctx, "break_unique");
    ctx.db.marks().insert(Mark {
        id: 1,
        text: String::new(),
    });
    ctx.db.marks().insert(Mark {
        id: 1,
        text: "again".into(),
    });
}

/// Executes `unreachable`.
#[reducer]
pub fn trap(ctx: &ReducerContext) {
    mark(ctx, "trap");
    #[cfg(target_arch = "wasm32")]
    core::arch::wasm32::unreachable();
}

#[reducer]
pub fn divide(ctx: &ReducerContext, by: i32) {
    mark(ctx, "divide");
    log::info!("{}", 1 / std::hint::black_box(by));
}

#[reducer]
pub fn read_past_end(ctx: &ReducerContext) {
    mark(ctx, "read_past_end");
    // A plain load far outside of the memory: the sandbox must turn it into a trap.
    let address = std::hint::black_box(0xFFFF_FFF0usize) as *const u64;
    let value = unsafe { address.read_volatile() };
    log::info!("{value}");
}

#[reducer]
pub fn loop_for_ever(ctx: &ReducerContext) {
    mark(ctx, "loop_for_ever");
    let mut n = 0u64;
    loop {
        n = std::hint::black_box(n.wrapping_add(1));
    }
}

/// Works for about `rounds` times a thousand steps, then succeeds.
#[reducer]
pub fn work(ctx: &ReducerContext, rounds: u32) {
    let mut n = 0u64;
    for i in 0..u64::from(rounds) * 1000 {
        n = std::hint::black_box(n.wrapping_mul(31).wrapping_add(i));
    }
    ctx.db.marks().id().insert_or_update(Mark {
        id: 2,
        text: n.to_string(),
    });
}

#[reducer]
pub fn allocate_without_end(ctx: &ReducerContext) {
    mark(ctx, "allocate_without_end");
    let mut hoard: Vec<Vec<u8>> = Vec::new();
    loop {
        hoard.push(std::hint::black_box(vec![1u8; 1 << 20]));
    }
}

/// Keeps `mebibytes` for the rest of the instance's life.
#[reducer]
pub fn leak(_ctx: &ReducerContext, mebibytes: u32) {
    for _ in 0..mebibytes {
        std::mem::forget(std::hint::black_box(vec![1u8; 1 << 20]));
    }
}

#[allow(unconditional_recursion)]
fn descend(depth: u64) -> u64 {
    let frame = std::hint::black_box([depth; 64]);
    descend(std::hint::black_box(depth + 1)) + frame[63]
}

#[reducer]
pub fn overflow_stack(ctx: &ReducerContext) {
    mark(ctx, "overflow_stack");
    log::info!("{}", descend(0));
}

/// Opens iterators and never closes them.
#[reducer]
pub fn leak_iterators(ctx: &ReducerContext, count: u32) {
    for id in 0..10 {
        ctx.db.marks().id().insert_or_update(Mark {
            id,
            text: "x".repeat(10_000),
        });
    }
    for _ in 0..count {
        std::mem::forget(ctx.db.marks().iter());
    }
}

/// Inserts until something stops it.
#[reducer]
pub fn insert_without_end(ctx: &ReducerContext) {
    for id in 0.. {
        ctx.db.marks().id().insert_or_update(Mark {
            id,
            text: "x".repeat(1000),
        });
    }
}
