//! A new program for a database that runs (06 §5.3, 02 §14.1).

use std::time::Duration;

use axum::http::StatusCode;
use lightcone_control::{DatabaseRecord, HostType};
use lightcone_database::{
    BackfillEnd, Begun, EnvironmentChange, Policy, PreparedUpdate, ProgramBytes, UpdateError,
};
use lightcone_node::auth::Caller;
use lightcone_node::databases::{host_kind, CreateError, NameLock, Running};
use lightcone_node::permissions::Action;
use lightcone_types::Hash;

use super::confirmation::{self, Confirmation, Progress};
use crate::gateway::Gateway;
use crate::publishing::Turn;
use crate::reply::Failure;

/// What a publish asks for.
pub(super) struct Update {
    pub host_type: HostType,
    pub policy: Policy,
    pub confirmation_timeout: Duration,
    pub program: ProgramBytes,
    pub environment: EnvironmentChange,
}

/// The turn is given back when the module is loaded.
pub(super) async fn update_database(
    state: &Gateway,
    (record, caller): (DatabaseRecord, &Caller),
    update: Update,
    turn: Turn,
) -> Result<(), Failure> {
    let new_hash = update.program.hash();
    let running = state.node.databases.get(&record).await?;
    // Nothing else to do, whatever the request says (02 §14.1).
    if running.handle.program_hash() == new_hash {
        if update.environment.is_empty() {
            return Ok(());
        }
        drop(turn);
        let lock = state.node.databases.lock_updates(&record.identity).await;
        let record = state.node.record_of(&record.identity)?;
        state
            .node
            .check(&record, &caller.identity, Action::Update)?;
        let running = state.node.databases.get(&record).await?;
        return change_environment(lock, &running, update.environment, new_hash).await;
    }
    let kind = host_kind(update.host_type);
    let prepared = running.handle.prepare_update(update.program.clone(), kind);
    let prepared = prepared.await.map_err(failure)?;
    let prepared = prepared.with_environment(update.environment.clone());
    drop(turn);
    // Only now, and only against other updates: loading may take long, and deleting waits for no update.
    let lock = state.node.databases.lock_updates(&record.identity).await;
    let record = state.node.record_of(&record.identity)?;
    // He may have lost his role while his module was loaded.
    let by = &caller.identity;
    state.node.check(&record, by, Action::Update)?;
    let running = state.node.databases.get(&record).await?;
    if running.handle.program_hash() == new_hash {
        return change_environment(lock, &running, update.environment, new_hash).await;
    }
    let earlier = (running.handle.program(), running.handle.host_kind());
    let begun = begin_to_replace(&record, &running, &update, prepared).await?;
    let (_lock, answer) = match begun {
        Replaced::Now(answer) => (lock, answer),
        Replaced::Later(end) => {
            // It may take hours, in which others may look what a publish would do, or delete the database.
            drop((lock, running));
            end.wait().await.map_err(failure)?;
            let lock = state.node.databases.lock_updates(&record.identity).await;
            if !is_current(state, &record) {
                // It was deleted or cleared since.
                return Ok(());
            }
            (lock, Ok(()))
        }
    };
    state.node.databases.keep_earlier(&record, earlier).await;
    note_program(state, record, update).await?;
    answer
}

/// The program runs already: its variables alone are changed, if they are to be.
async fn change_environment(
    _lock: NameLock,
    running: &Running,
    environment: EnvironmentChange,
    program: Hash,
) -> Result<(), Failure> {
    if environment.is_empty() {
        return Ok(());
    }
    let changed = running
        .handle
        .change_environment(environment, Some(program));
    changed.await.map(drop).map_err(failure)
}

/// Has the database still this replica?
fn is_current(state: &Gateway, record: &DatabaseRecord) -> bool {
    let current = state.node.control.database(&record.identity);
    current.is_some_and(|current| current.replica_id == record.replica_id)
}

/// How far an update is.
enum Replaced {
    /// The new program runs; it may not be durable yet.
    Now(Result<(), Failure>),
    /// The rows are migrated first.
    Later(BackfillEnd),
}

/// What went wrong before the new program was in place.
pub(super) fn failure(error: UpdateError) -> Failure {
    match error {
        UpdateError::Rejected(list) => {
            Failure::bad_request(format!("Database update rejected: {list}"))
        }
        UpdateError::Refused(reason) => {
            Failure::bad_request(format!("Failed to create or update the database: {reason}"))
        }
        UpdateError::Environment(error) => error.into(),
        UpdateError::Cancelled => {
            Failure::busy("Database update failed: transaction was cancelled")
        }
        UpdateError::Busy(text) => CreateError::Busy(text).into(),
        UpdateError::Module(text) | UpdateError::Database(text) => Failure::internal(text),
    }
}

async fn begin_to_replace(
    record: &DatabaseRecord,
    running: &Running,
    update: &Update,
    prepared: PreparedUpdate,
) -> Result<Replaced, Failure> {
    let new_hash = update.program.hash();
    let progress = || {
        if running.handle.program_hash() == new_hash {
            Progress::InPlace
        } else if running.handle.is_updating() || running.handle.is_backfilling() {
            // Of another program's backfill the writer tells when it comes to it.
            Progress::Begun
        } else {
            Progress::Waiting
        }
    };
    let confirmation = confirmation::confirmed(
        running.handle.begin_to_replace(prepared, update.policy),
        progress,
        update.confirmation_timeout,
    )
    .await;
    let late = || {
        let text = "Database update failed: timeout waiting for transaction confirmation";
        Failure::text(StatusCode::GATEWAY_TIMEOUT, text)
    };
    let (outcome, in_place) = match confirmation {
        Confirmation::Ended { outcome, in_place } => (outcome, in_place),
        Confirmation::NotDurable => return Ok(Replaced::Now(Err(late()))),
        Confirmation::NotBegun => return Err(late()),
    };
    match outcome {
        Ok(Begun::Ended) => Ok(Replaced::Now(Ok(()))),
        Ok(Begun::Backfill(end)) => Ok(Replaced::Later(end)),
        Err(error @ (UpdateError::Database(_) | UpdateError::Cancelled)) if in_place => {
            tracing::error!(database = %record.identity, ?error, "an update did not become durable");
            let text = "Database update failed: database crashed while waiting for transaction confirmation";
            Err(Failure::busy(text))
        }
        Err(error) => Err(failure(error)),
    }
}

/// The server's own notes of what runs.
async fn note_program(
    state: &Gateway,
    mut record: DatabaseRecord,
    update: Update,
) -> Result<(), Failure> {
    // Also of an update that is not durable yet: it is what runs now.
    let databases = &state.node.databases;
    databases.keep_program(&record, update.program).await;
    if record.host_type != update.host_type {
        // Against a deletion or a reset in this moment.
        let _lock = databases.lock(&record.identity).await;
        if is_current(state, &record) {
            record.host_type = update.host_type;
            let noted = state
                .node
                .change_control(move |control| control.update_database(&record));
            noted.await?;
        }
    }
    Ok(())
}
