//! Deleting and locking a database (06 §5.7, §5.8).

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::Extension;
use lightcone_types::Identity;

use super::path::{DatabasePath, Permitted};
use crate::auth::Caller;
use crate::control::ControlError;
use crate::permissions::{self, Action};
use crate::reply::{self, Failure, Reply};
use crate::state::ServerState;

/// DELETE `/v1/database/:n`.
pub(super) async fn delete(
    State(state): State<Arc<ServerState>>,
    DatabasePath(path): DatabasePath,
    Extension(caller): Extension<Caller>,
) -> Reply {
    let identity = state.resolve(&path)?;
    reply::detached(async move {
        let _lock = state.databases.lock(&identity).await;
        // What is said to be gone must not be there after all.
        state.control(|control| control.settle()).await?;
        let Some(record) = state.control.database(&identity) else {
            return Ok(reply::empty(StatusCode::OK));
        };
        permissions::check(&state.control, &record, &caller.identity, Action::Delete)?;
        let deleted = state.change_control(move |control| control.delete_database(&identity));
        if let Err(error) = deleted.await {
            if error.is_unknown() {
                state.databases.suspend(&identity).await;
            }
            return Err(not_deleted(error));
        }
        state.databases.remove(&record).await;
        tracing::info!(database = %identity, "database deleted");
        Ok(reply::empty(StatusCode::OK))
    })
    .await
}

fn not_deleted(error: ControlError) -> Failure {
    match error {
        ControlError::Locked(_) => Failure::text(
            StatusCode::FORBIDDEN,
            "Database is locked and cannot be deleted. Run `spacetime unlock` first.",
        ),
        error => error.into(),
    }
}

/// POST `/v1/database/:n/lock`.
pub(super) async fn lock(
    State(state): State<Arc<ServerState>>,
    Permitted(record): Permitted,
) -> Reply {
    set_lock(&state, record.identity, true).await
}

/// POST `/v1/database/:n/unlock`.
pub(super) async fn unlock(
    State(state): State<Arc<ServerState>>,
    Permitted(record): Permitted,
) -> Reply {
    set_lock(&state, record.identity, false).await
}

async fn set_lock(state: &ServerState, database: Identity, locked: bool) -> Reply {
    let set = state.control(move |control| control.set_lock(&database, locked));
    set.await?;
    Ok(reply::empty(StatusCode::OK))
}
