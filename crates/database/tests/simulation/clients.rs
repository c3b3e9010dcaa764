//! Those who change a simulated database: each is a future that is polled when its turn is drawn.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use lightcone_database::{
    CallArgs, CallError, DatabaseHandle, HostKind, JsonRows, Policy, SqlError, UpdateError,
};
use serde_json::{json, Value};

use super::common::{caller, OWNER};
use super::guest::{Shape, ACCOUNTS, KEYS, ROOMS};
use super::ledger::{Answer, Ledger, Register};
use super::world::Simulated;

pub type Client = Pin<Box<dyn Future<Output = ()>>>;

/// Who writes cells by calls of reducers, by procedures, and by statements.
pub const WRITERS: u32 = 4;
const BY_STATEMENTS: u32 = 3;
const IDS: u32 = 5;

/// What clients of one life of a database have.
#[derive(Clone)]
pub struct Context {
    pub database: DatabaseHandle,
    pub world: Simulated,
    pub known: Arc<Mutex<Ledger>>,
    /// They finish what they are at.
    pub ends: Arc<AtomicBool>,
    /// How often rights were lowered.
    pub lowered: Arc<AtomicUsize>,
    /// Guests are told to.
    pub may_panic: bool,
    pub has_procedures: bool,
    /// Some who watch leave before they have taken what they asked for.
    pub may_hurry: bool,
}

impl Context {
    pub fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.known
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    pub fn goes_on(&self) -> bool {
        self.database.is_running() && !self.ends.load(Ordering::Relaxed)
    }

    fn below(&self, bound: u32) -> u32 {
        self.world.draw(bound as usize) as u32
    }

    /// A short while.
    pub async fn rest(&self) {
        let us = self.world.draw(2_000) as u64;
        self.world.pause(us).await;
    }

    async fn call(&self, function: &str, what: &Value, confirmed: bool) -> Answer {
        self.world.say(|| format!("call of {function}: {what}"));
        let args = CallArgs::Json(json!([what.to_string()]).to_string());
        let database = &self.database;
        let called = database.call_traced(caller(OWNER), function, args, confirmed, None);
        let answer = match called.await {
            Ok(_) if confirmed => Answer::Done,
            Ok(_) => Answer::Unknown,
            Err(
                CallError::UserError { .. }
                | CallError::InvalidArguments(_)
                | CallError::ConnectRejected(_)
                | CallError::Lifecycle(_)
                | CallError::NoSuchFunction,
            ) => Answer::Refused,
            // A procedure may have committed something before.
            Err(CallError::Fatal { .. } | CallError::TimedOut { .. }) if function == "change" => {
                Answer::Refused
            }
            Err(_) => Answer::Unknown,
        };
        self.world.say(|| format!("{answer:?}: {what}"));
        answer
    }

    /// A call of `change` with operations. Some end badly.
    async fn change(&self, ops: Value, confirmed: bool) -> Answer {
        let mut what = json!({ "ops": ops, "us": self.world.draw(200) });
        match self.world.draw(60) {
            0..=2 => what["ends"] = json!("refuses"),
            3 => what["ends"] = json!("traps"),
            4 if self.may_panic && self.world.once_in(4) => what["ends"] = json!("panics"),
            _ => {}
        }
        self.call("change", &what, confirmed).await
    }

    /// Writes the next value of a register.
    async fn write(&self, id: u32, of: fn(&mut Ledger, u32) -> &mut Register, op: &str) {
        let value = of(&mut self.ledger(), id).next();
        let answer = self.change(json!([[op, id, value]]), true).await;
        of(&mut self.ledger(), id).answered(value, answer);
    }
}

fn cells_of(ledger: &mut Ledger, writer: u32) -> &mut Register {
    ledger.cells.entry(writer).or_default()
}

/// Writes the next number into its two cells, again and again.
pub async fn write_cells(context: Context, writer: u32) {
    while context.goes_on() {
        let value = cells_of(&mut context.ledger(), writer).next();
        let both = |value: u64| {
            let cells = json!([[2 * writer, value], [2 * writer + 1, value]]);
            json!({ "cells": { "replaced": cells } })
        };
        let answer = if writer == BY_STATEMENTS {
            in_a_block(&context, writer, value).await
        } else if context.has_procedures && value.is_multiple_of(8) {
            let later = json!({ "first": both(value - 1), "us": 1_000, "then": both(value) });
            context.call("later", &later, true).await
        } else {
            context.call("change", &both(value), true).await
        };
        let is_partial = answer == Answer::Refused && context.has_procedures;
        if !is_partial || writer == BY_STATEMENTS {
            cells_of(&mut context.ledger(), writer).answered(value, answer);
        }
        context.rest().await;
    }
}

/// Two statements are one transaction. Some are only tried.
async fn in_a_block(context: &Context, writer: u32, value: u64) -> Answer {
    let (database, holder) = (&context.database, context.database.holder());
    let mut block = Vec::new();
    for cell in [2 * writer, 2 * writer + 1] {
        let text = format!("UPDATE cells SET value = {value} WHERE id = {cell}");
        match database.compile_write(&holder, &caller(OWNER), text).await {
            Ok(write) => block.push(write),
            // Its catalogue is of a program that has just been replaced, or the database ends.
            Err(_) => return Answer::Refused,
        }
    }
    let is_kept = !context.world.once_in(5);
    let written = database.write(caller(OWNER), block, is_kept, true).await;
    context.world.say(|| {
        format!(
            "a block with {value}, kept {is_kept}: {:?}",
            written.is_ok()
        )
    });
    match written {
        Ok(_) if is_kept => Answer::Done,
        Ok(_) | Err(SqlError::Query(_) | SqlError::ConnectRejected(_)) => Answer::Refused,
        Err(_) if !is_kept => Answer::Refused,
        Err(_) => Answer::Unknown,
    }
}

/// Moves what accounts have, and opens and closes rooms.
pub async fn bank(context: Context) {
    while context.goes_on() {
        let from = context.below(ACCOUNTS);
        let to = (from + 1 + context.below(ACCOUNTS - 1)) % ACCOUNTS;
        let mut ops = vec![json!(["move", from, to, context.below(60)])];
        if context.world.once_in(6) {
            ops.push(json!([
                "room",
                context.below(ROOMS),
                context.world.once_in(2)
            ]));
        }
        context.change(json!(ops), !context.world.once_in(8)).await;
        context.rest().await;
    }
}

/// Appends to lists and reads them, in one transaction.
pub async fn append(context: Context) {
    while context.goes_on() {
        let mut ops = Vec::new();
        let number = context.ledger().begin_list(|number, transaction| {
            for nth in 0..1 + context.world.draw(4) as u64 {
                let (id, key) = (16 * number + nth, context.below(KEYS));
                if context.world.once_in(2) {
                    ops.push(json!(["read", id, key]));
                } else {
                    ops.push(json!(["append", key, id]));
                    transaction.appends.push((key, id));
                }
            }
        });
        let confirmed = !context.world.once_in(8);
        let answer = context.change(json!(ops), confirmed).await;
        context.ledger().end_list(number, answer);
        context.rest().await;
    }
}

/// Reads one list over HTTP.
pub async fn read(context: Context) {
    while context.goes_on() {
        let key = context.below(KEYS);
        let number = context.ledger().begin_list(|_, _| {});
        let text = format!("SELECT id, value FROM lists WHERE key = {key}");
        let encoder = JsonRows::default();
        let asked = context.database.sql(caller(OWNER), text, true, encoder);
        let found = asked.await;
        if let Ok(found) = found {
            let rows = serde_json::from_str(&found.text());
            let mut rows: Vec<[u64; 2]> = rows.expect("rows of numbers");
            rows.sort_unstable();
            let values = rows.into_iter().map(|[_, value]| value).collect();
            let mut ledger = context.ledger();
            ledger.end_list(number, Answer::Done);
            ledger.lists[number].reads.push((key, values));
        }
        context.rest().await;
    }
}

/// Asks for tickets. Some owners have one.
pub async fn queue(context: Context) {
    while context.goes_on() {
        let again = match context.world.once_in(6) {
            true => context.ledger().receipts.first().copied(),
            false => None,
        };
        if let Some(owner) = again {
            let ops = json!([["ticket", 1_000_000 + owner], ["ticket", owner]]);
            let answer = context.change(ops, true).await;
            assert_ne!(answer, Answer::Done, "{owner} has two tickets");
        } else {
            let owners = 0..1 + context.world.draw(6);
            let owners: Vec<u64> = owners.map(|_| context.ledger().next_owner()).collect();
            let ops: Vec<Value> = owners.iter().map(|of| json!(["ticket", of])).collect();
            let answer = context.change(json!(ops), true).await;
            for owner in owners {
                context.ledger().owner_answered(owner, answer);
            }
        }
        context.rest().await;
    }
}

/// Plans calls, each of which notes its id.
pub async fn plan(context: Context) {
    while context.goes_on() {
        let id = context.ledger().next_plan();
        let at = lightcone_database::Environment::now(&context.world).0;
        let at = at + context.world.draw(5_000) as i64;
        let job = json!({ "jobs": { "inserts": [[id, at]] } });
        if context.call("change", &job, true).await == Answer::Done {
            context.ledger().plans.insert(id);
        }
        context.rest().await;
    }
}

/// Writes the tables that change with the program, and one that is private.
pub async fn note(context: Context) {
    while context.goes_on() {
        let id = context.below(IDS);
        match context.world.draw(3) {
            0 => context.write(id, |of, id| of.items.entry(id).or_default(), "item"),
            1 => context.write(id, |of, id| of.notes.entry(id).or_default(), "note"),
            _ => context.write(id, |of, id| of.secrets.entry(id).or_default(), "secret"),
        }
        .await;
        context.rest().await;
    }
}

/// Publishes one program after the other.
pub async fn publish(context: Context) {
    let database = &context.database;
    while context.goes_on() {
        context.world.pause(context.world.draw(20_000) as u64).await;
        if database.is_backfilling() {
            if context.world.once_in(6) {
                database.cancel_migration();
            }
            continue;
        }
        let shape = Shape::of(&database.program()).next(&context.world);
        context.ledger().publishing = shape.number;
        context.world.say(|| format!("publish {shape:?}"));
        let program = shape.program().to_string().into_bytes();
        let published = async {
            let prepared = database.prepare_update(program, HostKind::Wasm).await?;
            let token = database.plan_update(&prepared).token;
            database
                .replace(prepared, Policy::BreakClients { token })
                .await
        };
        let published = published.await;
        context
            .world
            .say(|| format!("published {}: {published:?}", shape.number));
        let has_ended = !database.is_running() || database.read_only().is_some();
        // It was cancelled, or a backfill of an earlier life has come to its end meanwhile.
        let is_known = |text: &str| ["LC0240", "LC0231"].iter().any(|code| text.contains(code));
        match published {
            Ok(_) => context.ledger().published = shape.number,
            Err(UpdateError::Refused(text)) if has_ended || is_known(&text) => {}
            Err(
                UpdateError::Rejected(text)
                | UpdateError::Module(text)
                | UpdateError::Refused(text),
            ) => panic!("{text}"),
            Err(_) => {}
        }
    }
}

/// The clients that a mask asks for, but for those who watch.
pub fn clients(context: &Context, is_on: impl Fn(Kind) -> bool) -> Vec<Client> {
    let mut clients: Vec<Client> = Vec::new();
    if is_on(Kind::Cells) {
        let writers = (0..BY_STATEMENTS).map(|writer| write_cells(context.clone(), writer));
        clients.extend(writers.map(|client| -> Client { Box::pin(client) }));
    }
    if is_on(Kind::Statements) {
        clients.push(Box::pin(write_cells(context.clone(), BY_STATEMENTS)));
    }
    if is_on(Kind::Bank) {
        clients.push(Box::pin(bank(context.clone())));
        clients.push(Box::pin(bank(context.clone())));
    }
    if is_on(Kind::Lists) {
        clients.push(Box::pin(append(context.clone())));
        clients.push(Box::pin(append(context.clone())));
        clients.push(Box::pin(read(context.clone())));
    }
    if is_on(Kind::Tickets) {
        clients.push(Box::pin(queue(context.clone())));
        clients.push(Box::pin(queue(context.clone())));
    }
    if is_on(Kind::Plans) && !context.has_procedures {
        clients.push(Box::pin(plan(context.clone())));
    }
    if is_on(Kind::Notes) {
        clients.push(Box::pin(note(context.clone())));
    }
    if is_on(Kind::Publishes) {
        clients.push(Box::pin(publish(context.clone())));
    }
    clients
}

/// What may be in a simulation, and what may go wrong in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Cells,
    Statements,
    Bank,
    Lists,
    Tickets,
    Plans,
    Notes,
    Publishes,
    Watchers,
    /// Syncs and writes fail.
    Faults,
    /// The clock is set back.
    Clock,
    /// Guests panic.
    Panics,
    /// The power fails, or the process is killed.
    Kills,
    Procedures,
    /// Those who have rights lose them.
    Rights,
    /// Those who watch leave in a hurry.
    Hurry,
}

impl Kind {
    pub const COUNT: u32 = 16;
}
