//! SQL over HTTP (06 §5.14).

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderValue, StatusCode};
use axum::Extension;

use super::body;
use super::call::EXECUTION_MICROS;
use super::path::DatabasePath;
use super::query::Query;
use super::reply::{self, Failure, Reply};
use crate::auth;
use crate::database::{Caller, SqlError};
use crate::state::ServerState;

pub(super) async fn sql(
    State(state): State<Arc<ServerState>>,
    DatabasePath(path): DatabasePath,
    query: Query,
    Extension(caller): Extension<auth::Caller>,
    request_body: Body,
) -> Reply {
    let (record, text) = state
        .record_and_body(&path, request_body, Some(body::SMALL_BODY_BYTES_MAX))
        .await?;
    let confirmed = query.boolean("confirmed")?.unwrap_or(true);
    let text = String::from_utf8(text.to_vec())
        .map_err(|_| Failure::bad_request("Request body didn't contain valid UTF-8"))?;
    let running = state.databases.get(&record).await?;
    let caller = Caller::from(&caller);
    let run = tokio::spawn(async move { running.handle.sql(caller, text, confirmed).await });
    let outcome = match tokio::time::timeout(state.config.limits.request_timeout, run).await {
        Ok(Ok(Ok(outcome))) => outcome,
        Ok(Ok(Err(error))) => return Err(refused(error)),
        Ok(Err(_)) => {
            return Err(Failure::internal(
                "the query stopped; see the server's log [LC0120]",
            ))
        }
        Err(_) => {
            return Err(Failure::text(
                StatusCode::GATEWAY_TIMEOUT,
                "the query did not end within limits.request-timeout [LC0112]",
            ))
        }
    };
    let body = format!(
        "[{{\"schema\":{},\"rows\":{},\"total_duration_micros\":{},\"stats\":\
         {{\"rows_inserted\":{},\"rows_deleted\":{},\"rows_updated\":{}}}}}]",
        outcome.schema_json,
        outcome.rows_json,
        outcome.duration_us,
        outcome.stats.rows_inserted,
        outcome.stats.rows_deleted,
        outcome.stats.rows_updated,
    );
    let mut response = reply::json(body);
    response
        .headers_mut()
        .insert(EXECUTION_MICROS, HeaderValue::from(outcome.duration_us));
    Ok(response)
}

fn refused(error: SqlError) -> Failure {
    match error {
        SqlError::ConnectRejected(message) => Failure::text(StatusCode::FORBIDDEN, message),
        SqlError::Query(message) => Failure::bad_request(message),
        SqlError::ModuleGone => Failure::text(StatusCode::NOT_FOUND, "no such module"),
        SqlError::Database(message) => Failure::internal(message),
    }
}
