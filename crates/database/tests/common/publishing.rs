//! Programs that are published, as JSON of the module that is nothing but tables.

use std::sync::Arc;

use lightcone_database::{DatabaseHandle, HostKind, Policy, ShutdownReason, UpdateError};
use serde_json::Value;

/// Publishes a program over the running one.
pub async fn publish(
    database: &DatabaseHandle,
    program: &Value,
    may_break: bool,
) -> Result<(), UpdateError> {
    let program: Arc<[u8]> = program.to_string().into_bytes().into();
    let prepared = database.prepare_update(program, HostKind::Wasm).await?;
    let token = database.plan_update(&prepared).token;
    let policy = match may_break {
        true => Policy::BreakClients { token },
        false => Policy::Compatible,
    };
    database.replace(prepared, policy).await.map(drop)
}

pub async fn stop(database: DatabaseHandle) {
    database.shutdown(ShutdownReason::ServerStop).await;
}

/// The messages of the module's log.
pub fn log_of(database: &DatabaseHandle) -> Vec<String> {
    let tail = database.logs().tail(None);
    let lines = String::from_utf8(tail).expect("text");
    let message = |line: &str| {
        let line: Value = serde_json::from_str(line).expect("JSON");
        line["message"].as_str().expect("a text").to_owned()
    };
    lines.lines().map(message).collect()
}
