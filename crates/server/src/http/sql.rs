//! SQL over HTTP (06 §5.14).

use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderValue, StatusCode};
use axum::Extension;
use lightcone_types::json::product_type_to_json;
use lightcone_types::ProductType;

use super::call::{caller_of, EXECUTION_MICROS};
use super::path::DatabasePath;
use super::pieces::PiecesBody;
use super::query::Query;
use super::reply::{self, Failure, Reply};
use super::{body, delivery};
use crate::auth;
use crate::collaborators;
use crate::control::DatabaseRecord;
use crate::database::{HeldBytes, JsonRows, SqlError};
use crate::state::ServerState;

pub(super) async fn sql(
    State(state): State<Arc<ServerState>>,
    DatabasePath(path): DatabasePath,
    query: Query,
    Extension(caller): Extension<auth::Caller>,
    request_body: Body,
) -> Reply {
    let (record, text) = state
        .record_and_body(&path, request_body, body::SMALL_BODY_BYTES_MAX)
        .await?;
    let confirmed = query.boolean("confirmed")?.unwrap_or(true);
    let text = String::from_utf8(text.to_vec())
        .map_err(|_| Failure::bad_request("Request body didn't contain valid UTF-8"))?;
    if collaborators::is_asked(&text) {
        return show_collaborators(&state, &record, &caller);
    }
    let running = state.databases.get(&record).await?;
    let caller = caller_of(&state, &record, &caller);
    // Ends with the request: a client that has gone needs no rows.
    let run = running
        .handle
        .sql(caller, text, confirmed, JsonRows::default());
    let outcome = match tokio::time::timeout(state.config.limits.request_timeout, run).await {
        Ok(Ok(outcome)) => outcome,
        Ok(Err(error)) => return Err(refused(error)),
        Err(_) => {
            return Err(Failure::text(
                StatusCode::GATEWAY_TIMEOUT,
                "the query did not end within limits.request-timeout [LC0112]",
            ))
        }
    };
    let mut head = "[{\"schema\":".to_owned();
    product_type_to_json(&outcome.columns, &mut head);
    head.push_str(",\"rows\":");
    let tail = format!(
        ",\"total_duration_micros\":{},\"stats\":\
         {{\"rows_inserted\":{},\"rows_deleted\":{},\"rows_updated\":{}}}}}]",
        outcome.duration_us,
        outcome.stats.rows_inserted,
        outcome.stats.rows_deleted,
        outcome.stats.rows_updated,
    );
    let holder = outcome.rows.first().and_then(HeldBytes::holder);
    // Every piece is freed when the socket has taken it.
    let rows = outcome.rows.into_iter().map(Bytes::from_owner);
    let body = PiecesBody::new([head.into()].into_iter().chain(rows).chain([tail.into()]));
    let mut response = reply::json(Body::new(body));
    delivery::hold(&mut response, holder);
    response
        .headers_mut()
        .insert(EXECUTION_MICROS, HeaderValue::from(outcome.duration_us));
    Ok(response)
}

fn show_collaborators(
    state: &ServerState,
    record: &DatabaseRecord,
    caller: &auth::Caller,
) -> Reply {
    let rows = collaborators::rows(state, record, &caller.identity);
    let rows =
        rows.ok_or_else(|| Failure::bad_request(collaborators::refusal(record, &caller.identity)))?;
    let mut answer = "[{\"schema\":".to_owned();
    product_type_to_json(&ProductType::new(collaborators::COLUMNS), &mut answer);
    answer.push_str(&format!(
        ",\"rows\":{},\"total_duration_micros\":0,\"stats\":\
         {{\"rows_inserted\":0,\"rows_deleted\":0,\"rows_updated\":0}}}}]",
        serde_json::json!(rows)
    ));
    Ok(reply::json(answer))
}

fn refused(error: SqlError) -> Failure {
    match error {
        SqlError::ConnectRejected(message) => Failure::text(StatusCode::FORBIDDEN, message),
        SqlError::Query(message) => Failure::bad_request(message),
        SqlError::Busy(message) => Failure::busy(message),
        SqlError::ModuleGone => Failure::text(StatusCode::NOT_FOUND, "no such module"),
        SqlError::Database(message) => Failure::internal(message),
    }
}
