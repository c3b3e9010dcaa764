//! HTTP handlers and procedures as 2.13 and 2.14 changed them.

use spacetimedb::http::{handler, router, Body, HandlerContext, Request, Response, Router};
use spacetimedb::{
    procedure, reducer, table, AuthCtx, Identity, ProcedureContext, ReducerContext, ScheduleAt,
    Table,
};

/// Who called what, as the module sees it.
#[table(accessor = callers, public)]
pub struct Caller {
    #[primary_key]
    #[auto_inc]
    pub id: u64,
    pub what: String,
    pub sender: Identity,
    pub is_internal: bool,
    /// The payload of the caller's token.
    pub token: Option<String>,
}

#[table(accessor = wakes, scheduled(wake, at = at))]
pub struct Wake {
    #[primary_key]
    #[auto_inc]
    pub id: u64,
    pub at: ScheduleAt,
}

fn caller(what: &str, sender: Identity, auth: &AuthCtx) -> Caller {
    Caller {
        id: 0,
        what: what.into(),
        sender,
        is_internal: auth.is_internal(),
        token: auth.jwt().map(|jwt| jwt.raw_payload().to_owned()),
    }
}

#[reducer]
pub fn called(ctx: &ReducerContext) {
    ctx.db
        .callers()
        .insert(caller("reducer", ctx.sender(), ctx.sender_auth()));
    ctx.db.wakes().insert(Wake {
        id: 0,
        at: ctx.timestamp.into(),
    });
}

#[reducer]
pub fn wake(ctx: &ReducerContext, _wake: Wake) {
    ctx.db
        .callers()
        .insert(caller("schedule", ctx.sender(), ctx.sender_auth()));
}

#[procedure]
pub fn called_beside(ctx: &mut ProcedureContext) {
    ctx.with_tx(|tx| {
        tx.db
            .callers()
            .insert(caller("procedure", tx.sender(), tx.sender_auth()));
    });
}

/// Tells its sender, which a transaction of it has too.
#[handler]
fn who(ctx: &mut HandlerContext, _request: Request) -> Response {
    let in_transaction = ctx.with_tx(|tx| {
        tx.db
            .callers()
            .insert(caller("handler", tx.sender(), tx.sender_auth()));
        tx.sender()
    });
    assert_eq!(ctx.sender(), in_transaction);
    Response::new(Body::from_bytes(ctx.sender().to_hex().to_string()))
}

#[router]
fn routes() -> Router {
    Router::new().get("/who", who)
}
