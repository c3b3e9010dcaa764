//! Deleting and locking a database (06 §5.7, §5.8).

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::Extension;
use lightcone_control::ControlError;
use lightcone_node::auth::Caller;
use lightcone_node::permissions::Action;

use super::path::{DatabasePath, Permitted};
use crate::gateway::Gateway;
use crate::reply::{self, Failure, Reply};

/// DELETE `/v1/database/:n`.
pub(super) async fn delete(
    State(state): State<Arc<Gateway>>,
    DatabasePath(path): DatabasePath,
    Extension(caller): Extension<Caller>,
) -> Reply {
    let identity = state.node.resolve(&path)?;
    reply::detached(async move {
        let _lock = state.node.databases.lock(&identity).await;
        // What is said to be gone must not be there after all.
        state
            .node
            .change_control(|control| control.settle())
            .await?;
        let Some(record) = state.node.control.database(&identity) else {
            return Ok(reply::empty(StatusCode::OK));
        };
        state
            .node
            .check(&record, &caller.identity, Action::Delete)?;
        let deleted = state
            .node
            .change_control(move |control| control.delete_database(&identity));
        if let Err(error) = deleted.await {
            if error.is_unknown() {
                state.node.databases.suspend(&identity).await;
            }
            return Err(match error {
                ControlError::Locked(_) => Failure::text(
                    StatusCode::FORBIDDEN,
                    "Database is locked and cannot be deleted. Run `spacetime unlock` first.",
                ),
                error => error.into(),
            });
        }
        state.node.databases.remove(&record).await;
        tracing::info!(database = %identity, "database deleted");
        Ok(reply::empty(StatusCode::OK))
    })
    .await
}

/// POST `/v1/database/:n/lock`.
pub(super) async fn lock(asked: Permitted) -> Reply {
    set_lock(asked, true).await
}

/// POST `/v1/database/:n/unlock`.
pub(super) async fn unlock(asked: Permitted) -> Reply {
    set_lock(asked, false).await
}

async fn set_lock(Permitted { state, record, .. }: Permitted, locked: bool) -> Reply {
    let set = state
        .node
        .change_control(move |control| control.set_lock(&record.identity, locked));
    set.await?;
    Ok(reply::empty(StatusCode::OK))
}
