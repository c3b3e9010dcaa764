//! Programs that are published, as JSON of the module that is nothing but tables.

use std::sync::{Arc, Mutex};

use lightcone_database::{DatabaseHandle, DueNotes, HostKind, Policy, ShutdownReason, UpdateError};
use lightcone_types::Identity;
use serde_json::Value;

/// The threads on which it was noted that a database is to be opened after a crash.
#[derive(Default)]
pub struct Noted(Mutex<Vec<String>>);

impl Noted {
    pub fn threads(&self) -> Vec<String> {
        self.0.lock().expect("no panic").clone()
    }

    pub fn is_noted(&self) -> bool {
        !self.threads().is_empty()
    }
}

impl DueNotes for Noted {
    fn note_open(&self, _: &Identity) -> Result<(), String> {
        let thread = std::thread::current();
        let name = thread.name().unwrap_or_default().to_owned();
        self.0.lock().expect("no panic").push(name);
        Ok(())
    }
}

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
