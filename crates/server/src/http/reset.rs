//! New data under an old identity: clear and reset (06 §5.5).

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::Extension;
use lightcone_types::Identity;

use super::body::SentBody;
use super::path::DatabasePath;
use super::publish_request::{check_action, check_replicas, host_type, success, turn_to_load};
use super::query::Query;
use crate::auth::Caller;
use crate::client_address::Client;
use crate::control::{ControlError, DatabaseRecord, HostType};
use crate::database::ProgramBytes;
use crate::permissions::{self, Action};
use crate::reply::{detached, Failure, Reply};
use crate::running::Started;
use crate::state::ServerState;

/// PUT `/v1/database/:n/reset`; an empty body keeps the program.
pub(super) async fn reset(
    State(state): State<Arc<ServerState>>,
    DatabasePath(path): DatabasePath,
    query: Query,
    Extension(caller): Extension<Caller>,
    Extension(client): Extension<Client>,
    request_body: SentBody,
) -> Reply {
    let record = state.record(&path)?;
    check_replicas(query.number("num_replicas")?)?;
    let host_type = host_type(&query)?;
    check_action(&state, &record, &caller, Action::Reset)?;
    let upload = request_body.read_program(&state).await?;
    // The upload may have taken long.
    let record = state.record(&path)?;
    permissions::check(&state.control, &record, &caller.identity, Action::Reset)?;
    let (host_type, program) = if upload.program.is_empty() {
        let running = state.databases.get(&record).await?;
        (record.host_type, running.handle.program())
    } else {
        (host_type, upload.program.clone())
    };
    let by = (&caller, &client);
    let identity = reset_database(&state, by, &record, host_type, program).await?;
    Ok(success(path.name(), &identity, "updated"))
}

/// New data and a new program under the same identity, owner and names (06 §5.5).
pub(super) async fn reset_database(
    state: &Arc<ServerState>,
    (caller, client): (&Caller, &Client),
    of: &DatabaseRecord,
    host_type: HostType,
    program: ProgramBytes,
) -> Result<Identity, Failure> {
    let identity = of.identity;
    let owner = same(resettable(state, caller, &identity)?, of)?.owner;
    let turn = turn_to_load(state, owner, client, &program).await?;
    let (state, caller, of) = (state.clone(), caller.clone(), of.clone());
    detached(async move {
        let old = same(resettable(&state, &caller, &identity)?, &of)?;
        let new = DatabaseRecord {
            host_type,
            initial_program: program.hash(),
            replica_id: state.control(|control| control.next_replica_id()).await?,
            ..old
        };
        // The old database runs untouched, and unlocked, until the new one is complete.
        let started = state.databases.create(&new, program).await?;
        drop(turn);
        replace_replica(&state, &caller, new, started).await?;
        tracing::info!(database = %identity, "database reset");
        Ok(identity)
    })
    .await
}

/// Puts a new replica into the place of the database's old one, whose files go.
async fn replace_replica(
    state: &ServerState,
    caller: &Caller,
    new: DatabaseRecord,
    started: Started,
) -> Result<(), Failure> {
    let identity = new.identity;
    let _lock = state.databases.lock(&identity).await;
    let old = match resettable(state, caller, &identity).and_then(|old| same(old, &new)) {
        Ok(old) => old,
        Err(failure) => {
            state.databases.discard(&new, started).await;
            return Err(failure);
        }
    };
    let stored = new.clone();
    let stored = state.change_control(move |control| control.reset_database(&stored));
    if let Err(error) = stored.await {
        if error.is_unknown() {
            state.databases.suspend(&identity).await;
        }
        state.databases.give_up(&new, started, &error).await;
        return Err(match error {
            ControlError::Locked(_) => locked(),
            error => error.into(),
        });
    }
    state.databases.remove(&old).await;
    state.databases.insert(started);
    Ok(())
}

/// The database may have been deleted and another one created: with an id, an owner and a program of its own.
fn same(now: DatabaseRecord, before: &DatabaseRecord) -> Result<DatabaseRecord, Failure> {
    if now.id == before.id {
        return Ok(now);
    }
    let text = "this database was deleted and created again at the same time; try again [LC0123]";
    Err(Failure::busy_for(1, text))
}

fn locked() -> Failure {
    Failure::text(
        StatusCode::FORBIDDEN,
        "Database is locked and cannot be reset with --delete-data. Run `spacetime unlock` first.",
    )
}

/// The record of a database that the caller may reset.
fn resettable(
    state: &ServerState,
    caller: &Caller,
    identity: &Identity,
) -> Result<DatabaseRecord, Failure> {
    let record = state
        .control
        .database(identity)
        .ok_or_else(Failure::no_such_database)?;
    permissions::check(&state.control, &record, &caller.identity, Action::Reset)?;
    if state.control.is_locked(identity) {
        return Err(locked());
    }
    Ok(record)
}
