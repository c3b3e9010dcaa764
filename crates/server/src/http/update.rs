//! A new program for a database that runs (06 §5.3, 02 §14.1).

use std::sync::Arc;
use std::time::Duration;

use axum::http::StatusCode;
use lightcone_types::Hash;

use super::confirmation::{self, Confirmation, Progress};
use super::reply::Failure;
use crate::auth::Caller;
use crate::control::{DatabaseRecord, HostType};
use crate::database::{Policy, PreparedUpdate, UpdateError};
use crate::databases::{CreateError, Running};
use crate::permissions::{self, Action};
use crate::publishing::Turn;
use crate::state::ServerState;

/// What a publish asks for.
pub(super) struct Update {
    pub host_type: HostType,
    pub policy: Policy,
    pub confirmation_timeout: Duration,
    pub program: Arc<[u8]>,
}

/// The turn is given back when the module is loaded.
pub(super) async fn update_database(
    state: &ServerState,
    (record, caller): (DatabaseRecord, &Caller),
    update: Update,
    turn: Turn,
) -> Result<(), Failure> {
    let new_hash = Hash::keccak256(&update.program);
    let running = state.databases.get(&record).await?;
    // Nothing to do, whatever else the request says (02 §14.1).
    if running.handle.program_hash() == new_hash {
        return Ok(());
    }
    let kind = update.host_type.kind();
    let prepared = running.handle.prepare_update(update.program.clone(), kind);
    let prepared = prepared.await.map_err(failure)?;
    drop(turn);
    // Only now, and only against other updates: loading may take long, and deleting waits for no update.
    let _lock = state.databases.lock_updates(&record.identity).await;
    let record = state
        .control
        .database(&record.identity)?
        .ok_or_else(Failure::no_such_database)?;
    // He may have lost his role while his module was loaded.
    permissions::check(state, &record, &caller.identity, Action::Update)?;
    let running = state.databases.get(&record).await?;
    if running.handle.program_hash() == new_hash {
        return Ok(());
    }
    replace_program(state, record, &running, update, prepared).await
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
        UpdateError::Cancelled => {
            Failure::busy("Database update failed: transaction was cancelled")
        }
        UpdateError::Busy(text) => CreateError::Busy(text).into(),
        UpdateError::Module(text) | UpdateError::Database(text) => Failure::internal(text),
    }
}

async fn replace_program(
    state: &ServerState,
    mut record: DatabaseRecord,
    running: &Running,
    update: Update,
    prepared: PreparedUpdate,
) -> Result<(), Failure> {
    let new_hash = Hash::keccak256(&update.program);
    let progress = || {
        if running.handle.program_hash() == new_hash {
            Progress::InPlace
        } else if running.handle.is_updating() {
            Progress::Begun
        } else {
            Progress::Waiting
        }
    };
    let confirmation = confirmation::confirmed(
        running.handle.replace(prepared, update.policy),
        progress,
        update.confirmation_timeout,
    )
    .await;
    let late = || {
        let text = "Database update failed: timeout waiting for transaction confirmation";
        Failure::text(StatusCode::GATEWAY_TIMEOUT, text)
    };
    let answer = match confirmation {
        Confirmation::Ended { outcome: Ok(_), .. } => Ok(()),
        Confirmation::NotDurable => Err(late()),
        Confirmation::NotBegun => return Err(late()),
        Confirmation::Ended {
            outcome: Err(error @ (UpdateError::Database(_) | UpdateError::Cancelled)),
            in_place: true,
        } => {
            tracing::error!(database = %record.identity, ?error, "an update did not become durable");
            let text = "Database update failed: database crashed while waiting for transaction confirmation";
            return Err(Failure::text(StatusCode::SERVICE_UNAVAILABLE, text));
        }
        Confirmation::Ended {
            outcome: Err(error),
            ..
        } => return Err(failure(error)),
    };
    // Also of an update that is not durable yet: it is what runs now.
    state.databases.keep_program(&record, update.program).await;
    if record.host_type != update.host_type {
        // Against a deletion or a reset in this moment.
        let _lock = state.databases.lock(&record.identity).await;
        let current = state.control.database(&record.identity)?;
        if current.is_some_and(|current| current.replica_id == record.replica_id) {
            record.host_type = update.host_type;
            state
                .control(move |control| control.update_database(&record))
                .await?;
        }
    }
    answer
}
