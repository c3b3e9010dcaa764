//! New data under an old identity: clear and reset (06 §5.5).

use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::Extension;
use lightcone_control::{ControlDb, ControlError, DatabaseRecord, HostType};
use lightcone_database::{EnvironmentChange, ProgramBytes};
use lightcone_node::auth::Caller;
use lightcone_node::databases::Started;
use lightcone_node::permissions::Action;
use lightcone_types::Identity;

use super::body::SentBody;
use super::environment::change_of;
use super::path::DatabasePath;
use super::publish_request::{check_action, check_replicas, host_type, success, turn_to_load};
use super::query::Query;
use crate::client_address::Client;
use crate::gateway::Gateway;
use crate::reply::{detached, Failure, Reply};

/// PUT `/v1/database/:n/reset`; an empty body keeps the program.
pub(super) async fn reset(
    State(state): State<Arc<Gateway>>,
    DatabasePath(path): DatabasePath,
    query: Query,
    headers: HeaderMap,
    Extension(caller): Extension<Caller>,
    Extension(client): Extension<Client>,
    request_body: SentBody,
) -> Reply {
    let record = state.node.record(&path)?;
    check_replicas(query.number("num_replicas")?)?;
    let host_type = host_type(&query)?;
    let environment = change_of(&headers)?;
    check_action(&state, &record, &caller, Action::Reset)?;
    let upload = request_body.read_program(&state).await?;
    // The upload may have taken long.
    let record = state.node.record(&path)?;
    state.node.check(&record, &caller.identity, Action::Reset)?;
    let (host_type, program) = if upload.program.is_empty() {
        let running = state.node.databases.get(&record).await?;
        (record.host_type, running.handle.program())
    } else {
        (host_type, upload.program.clone())
    };
    let by = (&caller, &client);
    let program = (program, environment);
    let identity = reset_database(&state, by, &record, host_type, program).await?;
    Ok(success(path.name(), &identity, "updated"))
}

/// New data and a new program, with these variables alone, under the same identity, owner and names (06 §5.5).
pub(super) async fn reset_database(
    state: &Arc<Gateway>,
    (caller, client): (&Caller, &Client),
    of: &DatabaseRecord,
    host_type: HostType,
    (program, environment): (ProgramBytes, EnvironmentChange),
) -> Result<Identity, Failure> {
    let identity = of.identity;
    let owner = resettable(state, caller, of)?.owner;
    let turn = turn_to_load(state, owner, client, &program).await?;
    let (state, caller, of) = (state.clone(), caller.clone(), of.clone());
    detached(async move {
        let old = resettable(&state, &caller, &of)?;
        let new = DatabaseRecord {
            host_type,
            initial_program: program.hash(),
            replica_id: state
                .node
                .change_control(|control| control.next_replica_id())
                .await?,
            ..old
        };
        // The old database runs untouched, and unlocked, until the new one is complete.
        let started = state
            .node
            .databases
            .create(&new, program, environment)
            .await?;
        drop(turn);
        replace_replica(&state, &caller, new, started).await?;
        tracing::info!(database = %identity, "database reset");
        Ok(identity)
    })
    .await
}

/// Puts a new replica into the place of the database's old one, whose files go.
async fn replace_replica(
    state: &Gateway,
    caller: &Caller,
    new: DatabaseRecord,
    started: Started,
) -> Result<(), Failure> {
    let identity = new.identity;
    let _lock = state.node.databases.lock(&identity).await;
    let old = match resettable(state, caller, &new) {
        Ok(old) => old,
        Err(failure) => {
            state.node.databases.discard(&new, started).await;
            return Err(failure);
        }
    };
    let stored = new.clone();
    let store = move |control: &ControlDb| control.reset_database(&stored);
    if let Err(error) = state.node.change_control(store).await {
        if error.is_unknown() {
            state.node.databases.suspend(&identity).await;
        }
        state.node.databases.give_up(&new, started, &error).await;
        return Err(match error {
            ControlError::Locked(_) => locked(),
            error => error.into(),
        });
    }
    state.node.databases.remove(&old).await;
    state.node.databases.insert(started);
    Ok(())
}

fn locked() -> Failure {
    Failure::text(
        StatusCode::FORBIDDEN,
        "Database is locked and cannot be reset with --delete-data. Run `spacetime unlock` first.",
    )
}

/// The record of a database that the caller may reset, if it is the one that it was before.
fn resettable(
    state: &Gateway,
    caller: &Caller,
    before: &DatabaseRecord,
) -> Result<DatabaseRecord, Failure> {
    let record = state.node.record_of(&before.identity)?;
    state.node.check(&record, &caller.identity, Action::Reset)?;
    if state.node.control.is_locked(&before.identity) {
        return Err(locked());
    }
    // It may have been deleted and another one created: with an id, an owner and a program of its own.
    if record.id != before.id {
        let text =
            "this database was deleted and created again at the same time; try again [LC0123]";
        return Err(Failure::busy_for(1, text));
    }
    Ok(record)
}
