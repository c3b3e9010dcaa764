//! Procedures and HTTP handlers: several transactions in one call, results, and what goes wrong. `procedures-ts` is the same in TypeScript.

use spacetimedb::http::{handler, router, Body, HandlerContext, Request, Response, Router};
use spacetimedb::{
    procedure, reducer, table, ProcedureContext, ReducerContext, Table, TimeDuration, TxContext,
};

#[table(accessor = counters, public)]
pub struct Counter {
    #[primary_key]
    pub id: u32,
    pub value: u64,
}

fn add(tx: &TxContext, id: u32, amount: u64) -> u64 {
    let counters = tx.db.counters();
    let value = counters.id().find(id).map_or(0, |counter| counter.value) + amount;
    let counter = Counter { id, value };
    if value == amount {
        counters.insert(counter);
    } else {
        counters.id().update(counter);
    }
    value
}

/// Two transactions.
#[procedure]
pub fn add_twice(ctx: &mut ProcedureContext, id: u32, amount: u64) -> u64 {
    ctx.with_tx(|tx| add(tx, id, amount));
    ctx.with_tx(|tx| add(tx, id, amount))
}

/// One transaction that changes nothing.
#[procedure]
pub fn peek(ctx: &mut ProcedureContext, id: u32) -> Option<u64> {
    ctx.with_tx(|tx| tx.db.counters().id().find(id).map(|counter| counter.value))
}

/// A transaction that is given up.
#[procedure]
pub fn give_up(ctx: &mut ProcedureContext, id: u32) -> String {
    let outcome: Result<u64, String> = ctx.try_with_tx(|tx| {
        let value = add(tx, id, 1000);
        Err(format!("gave up at {value}"))
    });
    outcome.unwrap_err()
}

/// What was committed before stays.
#[procedure]
pub fn add_and_fail(ctx: &mut ProcedureContext, id: u32) {
    ctx.with_tx(|tx| add(tx, id, 1));
    panic!("after the first transaction");
}

#[procedure]
pub fn fail_inside(ctx: &mut ProcedureContext, id: u32) {
    ctx.with_tx(|tx| {
        add(tx, id, 1);
        panic!("inside of a transaction");
    });
}

#[procedure]
pub fn loop_for_ever(_ctx: &mut ProcedureContext) {
    #[allow(clippy::empty_loop)]
    loop {}
}

/// Sleeps between two transactions, but not if it is for no time.
#[procedure]
pub fn nap(ctx: &mut ProcedureContext, id: u32, us: u64) -> u64 {
    ctx.with_tx(|tx| add(tx, id, 1));
    if us > 0 {
        let later = ctx.timestamp + TimeDuration::from_micros(us as i64);
        ctx.sleep_until(later);
    }
    ctx.with_tx(|tx| add(tx, id, 1))
}

/// Status and body of the answer to a request, or why there is none; then a transaction.
#[procedure]
pub fn fetch(ctx: &mut ProcedureContext, id: u32, url: String) -> String {
    let text = match ctx.http.get(&url) {
        Ok(response) => {
            let (head, body) = response.into_parts();
            format!("{} {}", head.status.as_u16(), body.into_string_lossy())
        }
        Err(error) => error.to_string(),
    };
    ctx.with_tx(|tx| add(tx, id, 1));
    text
}

/// A transaction that never ends.
#[procedure]
pub fn hold(ctx: &mut ProcedureContext, id: u32) {
    ctx.with_tx(|tx| {
        add(tx, id, 1);
        #[allow(clippy::empty_loop)]
        loop {}
    });
}

#[reducer]
pub fn bump(ctx: &ReducerContext, id: u32) {
    let counters = ctx.db.counters();
    let value = counters.id().find(id).map_or(0, |counter| counter.value);
    counters.id().delete(id);
    counters.insert(Counter {
        id,
        value: value + 1,
    });
}

/// Has another reducer called, and fails: the call is made all the same.
#[reducer]
pub fn bump_later_and_fail(_ctx: &ReducerContext, id: u32) -> Result<(), String> {
    spacetimedb::volatile_nonatomic_schedule_immediate!(bump(id));
    Err("no".into())
}

/// Adds the body, a number, to counter 7, and says what it got.
#[handler]
fn add_body(ctx: &mut HandlerContext, request: Request) -> Response {
    let (head, body) = request.into_parts();
    let text = body.into_string_lossy();
    let Ok(amount) = text.parse() else {
        let mut refusal = Response::new(Body::from_bytes("a number, please"));
        *refusal.status_mut() = 400.try_into().unwrap();
        return refusal;
    };
    let value = ctx.with_tx(|tx| add(tx, 7, amount));
    let seen = head.headers.get("x-sent").cloned();
    let mut response = Response::new(Body::from_bytes(format!(
        "{} {} {value}",
        head.method, head.uri
    )));
    *response.status_mut() = 201.try_into().unwrap();
    let headers = response.headers_mut();
    headers.insert("content-type", "text/plain".parse().unwrap());
    headers.insert("x-seen", seen.unwrap_or("".parse().unwrap()));
    headers.append("set-cookie", "a=1".parse().unwrap());
    headers.append("set-cookie", "b=2".parse().unwrap());
    response
}

/// The body again, byte by byte.
#[handler]
fn echo(_ctx: &mut HandlerContext, request: Request) -> Response {
    Response::new(request.into_body())
}

/// What was committed before stays.
#[handler]
fn add_and_throw(ctx: &mut HandlerContext, _request: Request) -> Response {
    ctx.with_tx(|tx| add(tx, 7, 1));
    panic!("after the first transaction");
}

#[router]
fn routes() -> Router {
    Router::new()
        .post("/add", add_body)
        .any("/echo", echo)
        .get("/fail", add_and_throw)
        .get("", echo)
        .get("/", echo)
}
