//! Outbox tables: calls from one database to another (2.14). Sender and receiver are one module, which is published twice.

use spacetimedb::{reducer, table, Identity, ReducerContext, Table};

/// What `spacetime generate --lang rust --bindings module` makes of this module.
#[path = "outbox/bindings.rs"]
mod bindings;

/// A message to another database that runs this module.
#[table(accessor = parcels, outbox(bindings::receive))]
pub struct Parcel {
    #[primary_key]
    #[auto_inc]
    id: u64,
    #[target]
    to: bindings::Identity,
    #[param(name = text)]
    content: String,
    number: u64,
    /// Stays here.
    note: String,
}

/// What has come from other databases, in this order.
#[table(accessor = arrivals, public)]
pub struct Arrival {
    #[primary_key]
    #[auto_inc]
    id: u64,
    sender: Identity,
    number: u64,
    text: String,
}

/// What this database has heard of its messages, in this order.
#[table(accessor = outcomes, public)]
pub struct Outcome {
    #[primary_key]
    #[auto_inc]
    id: u64,
    number: u64,
    /// Empty if it went well.
    error: String,
}

fn post(ctx: &ReducerContext, to: Identity, number: u64, text: String) {
    ctx.db.parcels().insert(Parcel {
        id: 0,
        to: to.into(),
        content: text,
        number,
        note: format!("number {number}"),
    });
}

#[reducer]
fn send(ctx: &ReducerContext, to: Identity, number: u64, text: String) {
    post(ctx, to, number, text);
}

/// In one transaction.
#[reducer]
fn send_many(ctx: &ReducerContext, to: Identity, first: u64, count: u64) {
    for number in first..first + count {
        post(ctx, to, number, String::new());
    }
}

/// Deletes messages that wait, which their table's handle does not offer.
#[reducer]
fn withdraw(ctx: &ReducerContext, number: u64) {
    let parcels = ctx.db.parcels();
    let rows = parcels.iter().filter(|parcel| parcel.number == number);
    let rows: Vec<Parcel> = rows.collect();
    let rows = spacetimedb::sats::bsatn::to_vec(&rows).expect("rows can be written");
    let table = spacetimedb::sys::table_id_from_name("parcels").expect("the table is there");
    let deleted = spacetimedb::sys::datastore_delete_all_by_eq_bsatn(table, &rows);
    deleted.expect("rows can be deleted");
}

/// Refuses, fails, or keeps what comes.
#[reducer]
fn receive(ctx: &ReducerContext, number: u64, text: String) -> Result<(), String> {
    ctx.db.arrivals().insert(Arrival {
        id: 0,
        sender: ctx.sender(),
        number,
        text: text.clone(),
    });
    match text.as_str() {
        "refuse" => Err(format!("number {number} is refused")),
        "trap" => panic!("number {number} is too much"),
        _ => Ok(()),
    }
}

#[reducer(on_result(parcels))]
fn parcel_result(
    ctx: &ReducerContext,
    parcel: Parcel,
    result: Result<(), String>,
) -> Result<(), String> {
    assert_eq!(ctx.sender(), Identity::ZERO);
    ctx.db.outcomes().insert(Outcome {
        id: 0,
        number: parcel.number,
        error: result.err().unwrap_or_default(),
    });
    match parcel.content.as_str() {
        "do not tell" => Err("it was told all the same".to_owned()),
        _ => Ok(()),
    }
}
