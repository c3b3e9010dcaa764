//! SQL over HTTP (06 §5.14).

use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderValue, StatusCode};
use axum::Extension;
use lightcone_types::json::product_type_to_json;
use lightcone_types::ProductType;

use super::body::RecordAndBody;
use super::call::{caller_of, EXECUTION_MICROS};
use super::delivery;
use super::pieces::PiecesBody;
use super::query::Query;
use crate::auth;
use crate::collaborators;
use crate::control::DatabaseRecord;
use crate::database::{HeldBytes, JsonRows, SqlError};
use crate::reply::{self, Failure, Reply};
use crate::state::ServerState;

pub(super) async fn sql(
    State(state): State<Arc<ServerState>>,
    query: Query,
    Extension(caller): Extension<auth::Caller>,
    RecordAndBody(record, text): RecordAndBody,
) -> Reply {
    let confirmed = query.boolean("confirmed")?.unwrap_or(true);
    let text = String::from_utf8(text.to_vec())
        .map_err(|_| Failure::bad_request("Request body didn't contain valid UTF-8"))?;
    let statement = Statement {
        text,
        confirmed,
        write_refusal: None,
    };
    run(&state, &record, &caller, statement).await
}

/// What somebody asks of a database.
pub(super) struct Statement {
    pub text: String,
    pub confirmed: bool,
    /// If there is one, a statement that would change something gets it for an answer.
    pub write_refusal: Option<&'static str>,
}

/// The answer of 06 §5.14 to one statement.
pub(super) async fn run(
    state: &ServerState,
    record: &DatabaseRecord,
    caller: &auth::Caller,
    statement: Statement,
) -> Reply {
    if collaborators::is_asked(&statement.text) {
        return show_collaborators(state, record, caller);
    }
    let running = state.databases.get(record).await?;
    let caller = caller_of(state, record, caller);
    let Statement {
        text,
        confirmed,
        write_refusal,
    } = statement;
    // Ends with the request: a client that has gone needs no rows.
    let run = async {
        let (database, rows) = (&running.handle, JsonRows::default());
        match write_refusal {
            None => database.sql(caller, text, confirmed, rows).await,
            Some(_) => database.sql_that_reads(caller, text, confirmed, rows).await,
        }
    };
    let outcome = match tokio::time::timeout(state.config.limits.request_timeout, run).await {
        Ok(Ok(outcome)) => outcome,
        Ok(Err(error)) => {
            return Err(match (error, write_refusal) {
                (SqlError::Writes, Some(text)) => Failure::text(StatusCode::FORBIDDEN, text),
                (error, _) => error.into(),
            })
        }
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
    let rows = collaborators::rows(&state.control, record, &caller.identity);
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
