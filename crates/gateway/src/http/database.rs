//! Routes that tell about one database: info, identity, schema, timestamp.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use lightcone_control::DatabaseRecord;
use lightcone_node::metrics::{one_as_json, Looks, TooManyLooks};
use lightcone_schema::RawVersion;
use lightcone_types::{TimeDuration, Timestamp};
use serde_json::{json, Value};

use super::call::refused;
use super::path::{DatabasePath, Permitted};
use super::query::{wrong, Query};
use super::{delivery, update};
use crate::gateway::Gateway;
use crate::reply::{self, Failure, Reply};

/// GET `/v1/database/:n` (06 §5.6).
pub(super) async fn info(Permitted { record, .. }: Permitted) -> Reply {
    let host_type = format!("{:?}", record.host_type);
    let identity_form = |identity: &lightcone_types::Identity| {
        let hex = identity.to_hex();
        let digits = hex.trim_start_matches('0');
        json!({ "__identity__": format!("0x{}", if digits.is_empty() { "0" } else { digits }) })
    };
    Ok(reply::json_value(&json!({
        "database_identity": identity_form(&record.identity),
        "owner_identity": identity_form(&record.owner),
        "host_type": { host_type: [] },
        "initial_program": record.initial_program.to_json_u256(),
    })))
}

/// GET `/v1/database/:n/tables`: how many rows each table of the module has. Of ours; `spacetime publish` says so what it is
/// about to delete.
pub(super) async fn tables(Permitted { state, record, .. }: Permitted) -> Reply {
    let running = state.node.databases.get(&record).await?;
    let tables = running.handle.table_rows().await;
    let tables = tables.map_err(update::failure)?;
    let made = delivery::made(&state, move || {
        let tables = tables.iter();
        let tables = tables.map(|table| json!({ "name": table.table, "rows": table.rows }));
        let tables = json!({ "tables": tables.collect::<Vec<_>>() });
        Ok(tables.to_string().into_bytes())
    });
    Ok(delivery::held(reply::JSON, made.await?))
}

/// GET `/v1/database/:n/metrics` (06 §5.21): what `spacetime top` shows. Of ours. A look opens no database.
pub(super) async fn metrics(Permitted { state, record, .. }: Permitted, query: Query) -> Reply {
    let identity = record.identity;
    if query.word("format", &[("json", false), ("history", true)])? == Some(true) {
        let running = state.node.databases.running(&identity);
        let looks = running.map_or_else(Looks::default, |running| running.looks.clone());
        let node = state.node.clone();
        let read = move || node.history.of_database(&identity);
        let text = state.scrapes.one(&looks, read).await.map_err(too_many)?;
        return Ok(reply::json(text?));
    }
    let names = state.node.control.names_of(&identity);
    let Some(running) = state.node.databases.running(&identity) else {
        return Ok(reply::json_value(&one_as_json(&identity, names, None)));
    };
    let looked = running.clone();
    let read = move || one_as_json(&identity, names, Some(&looked)).to_string();
    let text = state.scrapes.one(&running.looks, read).await;
    Ok(reply::json(text.map_err(too_many)??))
}

fn too_many(_: TooManyLooks) -> Failure {
    Failure::busy(
        "too many look at the metrics of this database at once; try again in a moment [LC0149]",
    )
}

/// GET `/v1/database/:n/queries` (06 §5.21a): what clients are subscribed to. Of ours. A look opens no database.
pub(super) async fn queries(Permitted { state, record, .. }: Permitted) -> Reply {
    let shapes = match state.node.databases.running(&record.identity) {
        Some(running) => running.handle.live_shapes().await,
        None => None,
    };
    let shapes = shapes.unwrap_or_default();
    let listed = shapes.listed.iter().map(|shape| {
        json!({
            "table": shape.table,
            "kind": shape.kind,
            "by": shape.by,
            "is_filtered": shape.is_filtered,
            "queries": shape.queries,
            "subscribers": shape.subscribers,
            "changes": shape.changes,
            "changed_rows": shape.changed_rows,
            "change_ns": shape.change_ns(),
        })
    });
    let shapes = json!({ "queries": listed.collect::<Vec<_>>(), "is_whole": shapes.is_whole });
    Ok(reply::json_value(&shapes))
}

/// GET `/v1/database/:n/identity` (06 §5.9): an identity is echoed, whether or not it has a database.
pub(super) async fn identity(
    State(state): State<Arc<Gateway>>,
    DatabasePath(path): DatabasePath,
) -> Reply {
    Ok(reply::text(state.node.resolve(&path)?.to_hex()))
}

/// GET `/v1/database/:n/schema` (06 §5.12).
pub(super) async fn schema(Permitted { state, record, .. }: Permitted, query: Query) -> Reply {
    let versions = [("9", RawVersion::V9), ("10", RawVersion::V10)];
    let version = query.word("version", &versions)?;
    let version = version.ok_or_else(|| wrong("missing field `version`".into()))?;
    definition(&state, &record, version).await
}

/// The raw module definition of that version.
pub(super) async fn definition(
    state: &Gateway,
    record: &DatabaseRecord,
    version: RawVersion,
) -> Reply {
    let running = state.node.databases.get(record).await?;
    let text = running.handle.schema_text(version).await;
    Ok(delivery::shared(reply::json(text?)))
}

fn as_json(time: Timestamp) -> Value {
    json!({ "__timestamp_micros_since_unix_epoch__": time.micros() })
}

/// POST `/v1/database/:n/advance` (06 §5.17a): moves the clock of a test. Of ours.
pub(super) async fn advance(Permitted { state, record, .. }: Permitted, query: Query) -> Reply {
    let by_us = query.number("us")?;
    let by_us = by_us.ok_or_else(|| wrong("missing field `us`".into()))?;
    let running = state.node.databases.get(&record).await?;
    match running.handle.advance(TimeDuration(by_us)).await {
        Ok(Some(time)) => Ok(reply::json_value(&as_json(time))),
        Ok(None) => Err(Failure::text(
            StatusCode::NOT_FOUND,
            "the clock of this server is not a test's to move [LC0160]",
        )),
        Err(error) => Ok(refused(error)),
    }
}

/// GET `/v1/database/:n/unstable/timestamp` (06 §5.17).
pub(super) async fn timestamp(_: Permitted) -> Reply {
    Ok(reply::json_value(&as_json(Timestamp::now())))
}
