//! What the migration of a database does, and ending it (06 §5.4a). Of ours: the reference has neither.

use axum::http::StatusCode;
use lightcone_database::MigrationOutcome;
use lightcone_node::databases::Running;
use serde_json::{json, Value};

use super::path::Permitted;
use crate::reply::{self, Failure, Reply};

/// GET `/v1/database/:n/migration`. Answered while the writer is busy with it.
pub(super) async fn status(Permitted { state, record, .. }: Permitted) -> Reply {
    let running = state.node.databases.get(&record).await?;
    Ok(reply::json_value(&described(&running)))
}

/// DELETE `/v1/database/:n/migration`: what runs is taken back.
pub(super) async fn cancel(Permitted { state, record, .. }: Permitted) -> Reply {
    let running = state.node.databases.get(&record).await?;
    if !running.handle.cancel_migration() {
        let text = "no migration runs, or it is at its end already";
        return Err(Failure::text(StatusCode::CONFLICT, text));
    }
    Ok(reply::json_value(&described(&running)))
}

fn described(running: &Running) -> Value {
    let status = running.handle.migration_status();
    let running = status.running.map(|migration| {
        json!({
            "phase": migration.phase.as_str(),
            "table": migration.table,
            "rows": migration.rows,
            "rows_replaced": migration.rows_replaced,
            "seconds": migration.elapsed.as_secs_f64(),
        })
    });
    let last = status.last.map(|migration| {
        let (outcome, reason) = match migration.outcome {
            MigrationOutcome::Committed => ("committed", None),
            MigrationOutcome::Cancelled => ("cancelled", None),
            MigrationOutcome::Failed { reason } => ("failed", Some(reason)),
        };
        json!({
            "outcome": outcome,
            "reason": reason,
            "ended_micros": migration.ended.micros(),
            "seconds": migration.took.as_secs_f64(),
        })
    });
    json!({ "running": running, "last": last })
}
