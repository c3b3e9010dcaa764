//! Procedures, and parts of a module that the server does not run yet: the module must load, and calls must say so.

use spacetimedb::http::{HandlerContext, Request, Response, Router};
use spacetimedb::{
    procedure, reducer, table, view, AnonymousViewContext, ProcedureContext, ReducerContext,
    ScheduleAt, SpacetimeType, Table, ViewContext,
};

use crate::values::{every_number__view, EveryNumber};

#[derive(SpacetimeType)]
pub struct Sum {
    pub total: u64,
}

#[procedure]
pub fn add_numbers(_ctx: &mut ProcedureContext, left: u64, right: u64) -> Sum {
    Sum {
        total: left + right,
    }
}

#[view(accessor = first_number, public)]
pub fn first_number(ctx: &AnonymousViewContext) -> Option<EveryNumber> {
    ctx.db.every_number().id().find(0)
}

#[view(accessor = my_numbers, public)]
pub fn my_numbers(ctx: &ViewContext) -> Vec<EveryNumber> {
    ctx.db.every_number().id().find(1).into_iter().collect()
}

#[table(accessor = timers, public, scheduled(timer_fired))]
pub struct Timer {
    #[primary_key]
    #[auto_inc]
    pub scheduled_id: u64,
    pub scheduled_at: ScheduleAt,
    pub text: String,
}

#[reducer]
pub fn timer_fired(_ctx: &ReducerContext, timer: Timer) {
    log::info!("timer {} fired: {}", timer.scheduled_id, timer.text);
}

#[reducer]
pub fn set_timer(ctx: &ReducerContext, seconds: u64, text: String) {
    let at = ctx.timestamp + std::time::Duration::from_secs(seconds);
    ctx.db.timers().insert(Timer {
        scheduled_id: 0,
        scheduled_at: at.into(),
        text,
    });
}

#[spacetimedb::http::handler]
fn hello(_ctx: &mut HandlerContext, _request: Request) -> Response {
    Response::new("hello".into())
}

#[spacetimedb::http::router]
fn routes() -> Router {
    Router::new().get("/hello", hello)
}
