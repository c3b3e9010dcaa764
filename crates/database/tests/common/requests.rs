//! A seeded database of the module `transfer`, messages to it, and what is in its answers.

use std::time::Duration;

use lightcone_database::{CallArgs, Commons, DatabaseHandle, DatabaseOptions};
use lightcone_types::Encode;
use lightcone_wire::{ClientMessage, ServerMessage};

use super::{caller, create, options, OWNER};

pub const ALL: &str = "SELECT * FROM accounts";

pub async fn seed(database: &DatabaseHandle, accounts: u32) {
    let args = CallArgs::Json(format!("[{accounts}, 1000]"));
    database
        .call(caller(OWNER), "seed", args)
        .await
        .expect("seeded");
}

pub async fn start(
    directory: &tempfile::TempDir,
    change: impl FnOnce(&mut DatabaseOptions),
) -> (DatabaseHandle, std::sync::Arc<Commons>) {
    let mut options = options(directory.path());
    change(&mut options);
    let commons = options.commons.clone();
    (create(options, "transfer").await, commons)
}

pub fn one_off(request_id: u32, query_string: &str) -> ClientMessage<'_> {
    ClientMessage::OneOffQuery {
        request_id,
        query_string,
    }
}

pub fn subscribe(query_set_id: u32, query_strings: Vec<&str>) -> ClientMessage<'_> {
    ClientMessage::Subscribe {
        request_id: query_set_id,
        query_set_id,
        query_strings,
    }
}

pub fn transfer(request_id: u32, args: &[u8]) -> ClientMessage<'_> {
    ClientMessage::CallReducer {
        request_id,
        reducer: "transfer",
        args,
    }
}

pub fn transfer_args(from: u32, to: u32) -> Vec<u8> {
    let mut args = Vec::new();
    from.encode(&mut args);
    to.encode(&mut args);
    1_i64.encode(&mut args);
    args
}

pub fn error_of(message: ServerMessage) -> String {
    match message {
        ServerMessage::SubscriptionError { error, .. } => error,
        ServerMessage::OneOffQueryResult {
            result: Err(error), ..
        } => error,
        other => panic!("no error: {other:?}"),
    }
}

/// The rows of the only table of an answer.
pub fn rows_of(message: ServerMessage) -> usize {
    match message {
        ServerMessage::SubscribeApplied { rows, .. }
        | ServerMessage::OneOffQueryResult {
            result: Ok(rows), ..
        } => rows.tables.iter().map(|table| table.rows.len()).sum(),
        other => panic!("no rows: {other:?}"),
    }
}

/// Waits for something that others bring about.
pub async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    for _ in 0..3000 {
        if holds() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("never: {what}");
}

pub fn unsubscribe(query_set_id: u32) -> ClientMessage<'static> {
    ClientMessage::Unsubscribe {
        request_id: query_set_id,
        query_set_id,
        send_dropped_rows: false,
    }
}
