//! Lifecycle, and what a call knows about itself: time, caller, token, randomness, logs.

use spacetimedb::log_stopwatch::LogStopwatch;
use spacetimedb::rand::Rng;
use spacetimedb::{reducer, table, ConnectionId, Identity, ReducerContext, Table, Timestamp};

use crate::expect_eq;

/// One row per lifecycle event, in order.
#[table(accessor = lifecycle, public)]
pub struct Lifecycle {
    #[primary_key]
    #[auto_inc]
    pub id: u64,
    pub event: String,
    pub identity: Identity,
    pub connection_id: Option<ConnectionId>,
    pub at: Timestamp,
}

/// Identities that `client_connected` turns away.
#[table(accessor = banned)]
pub struct Banned {
    #[primary_key]
    pub identity: Identity,
}

/// Who is connected at the moment.
#[table(accessor = online, public)]
pub struct Online {
    #[primary_key]
    pub connection_id: ConnectionId,
    pub identity: Identity,
}

fn record(ctx: &ReducerContext, event: &str) {
    ctx.db.lifecycle().insert(Lifecycle {
        id: 0,
        event: event.into(),
        identity: ctx.sender(),
        connection_id: ctx.connection_id(),
        at: ctx.timestamp,
    });
}

#[reducer(init)]
pub fn init(ctx: &ReducerContext) {
    record(ctx, "init");
    log::info!("coverage module initialised");
}

#[reducer(client_connected)]
pub fn client_connected(ctx: &ReducerContext) -> Result<(), String> {
    if ctx.db.banned().identity().find(ctx.sender()).is_some() {
        return Err("you are banned".into());
    }
    record(ctx, "connected");
    let connection_id = ctx
        .connection_id()
        .ok_or("a client without a connection id")?;
    ctx.db.online().insert(Online {
        connection_id,
        identity: ctx.sender(),
    });
    Ok(())
}

#[reducer(client_disconnected)]
pub fn client_disconnected(ctx: &ReducerContext) {
    record(ctx, "disconnected");
    if let Some(connection_id) = ctx.connection_id() {
        ctx.db.online().connection_id().delete(connection_id);
    }
}

#[reducer]
pub fn ban(ctx: &ReducerContext, identity: Identity) {
    ctx.db
        .banned()
        .identity()
        .insert_or_update(Banned { identity });
}

#[reducer]
pub fn unban(ctx: &ReducerContext, identity: Identity) {
    ctx.db.banned().identity().delete(identity);
}

/// One line at each level.
#[reducer]
pub fn log_levels(_ctx: &ReducerContext, message: String) {
    log::error!("{message} error");
    log::warn!("{message} warn");
    log::info!("{message} info");
    log::debug!("{message} debug");
    log::trace!("{message} trace");
    log::info!("{}", "two\nlines \"quoted\" \u{1F680} \u{0}");
}

/// One line of `bytes` bytes.
#[reducer]
pub fn log_long(_ctx: &ReducerContext, bytes: u32) {
    log::info!("{}", "x".repeat(bytes as usize));
}

/// Times a piece of work with the console timer.
#[reducer]
pub fn log_timer(_ctx: &ReducerContext) {
    let timer = LogStopwatch::new("a span");
    let sum: u64 = (0..1000).sum();
    timer.end();
    log::debug!("{sum}");
}

/// The claims in the caller's token say who he is.
#[reducer]
pub fn check_claims(ctx: &ReducerContext) -> Result<(), String> {
    let auth = ctx.sender_auth();
    expect_eq("internal", auth.is_internal(), false)?;
    let claims = auth.jwt().ok_or("no token")?;
    expect_eq("identity", claims.identity(), ctx.sender())?;
    log::info!(
        "issuer {} subject {} audience {:?}",
        claims.issuer(),
        claims.subject(),
        claims.audience()
    );
    Ok(())
}

/// Logs who calls, when, and which database this is.
#[reducer]
pub fn who_am_i(ctx: &ReducerContext) -> Result<(), String> {
    log::info!(
        "sender {} connection {:?} database {}",
        ctx.sender(),
        ctx.connection_id(),
        ctx.database_identity()
    );
    expect_eq("time moves", ctx.timestamp > Timestamp::UNIX_EPOCH, true)
}

/// Randomness differs within a call and gives valid identifiers.
#[reducer]
pub fn check_random(ctx: &ReducerContext) -> Result<(), String> {
    let numbers: [u64; 4] = [ctx.random(), ctx.random(), ctx.random(), ctx.random()];
    expect_eq("all equal", numbers.iter().all(|n| *n == numbers[0]), false)?;
    expect_eq(
        "in range",
        (0..100).all(|_| (10..20).contains(&ctx.rng().gen_range(10..20))),
        true,
    )?;
    let (a, b) = (
        ctx.new_uuid_v4().map_err(|e| e.to_string())?,
        ctx.new_uuid_v7().map_err(|e| e.to_string())?,
    );
    expect_eq("uuids differ", a == b, false)?;
    log::info!("random {} {a} {b}", numbers[0]);
    Ok(())
}
