//! Calls of reducers and procedures over HTTP (06 §5.11).

use axum::http::{header, HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse as _, Response};
use axum::Extension;
use lightcone_control::DatabaseRecord;
use lightcone_database::{CallArgs, CallError, CallOutcome, Caller, DatabaseHandle, TraceContext};
use lightcone_node::auth;

use super::body::{not_json, WithBody};
use super::delivery;
use super::path::FunctionPath;
use super::query::Query;
use super::traced::Traced;
use crate::gateway::Gateway;
use crate::reply::{self, Failure, Reply};

pub(super) const ENERGY_USED: HeaderName = HeaderName::from_static("spacetime-energy-used");
pub(super) const EXECUTION_MICROS: HeaderName =
    HeaderName::from_static("spacetime-execution-duration-micros");

/// Who asks a database, with what he may do there now.
pub(crate) fn caller_of(state: &Gateway, record: &DatabaseRecord, caller: &auth::Caller) -> Caller {
    Caller {
        identity: caller.identity,
        rights: state.node.rights(record, &caller.identity),
        jwt_payload: caller.jwt_payload.clone(),
    }
}

pub(super) async fn call(
    FunctionPath(function): FunctionPath,
    Extension(Traced(trace)): Extension<Traced>,
    headers: HeaderMap,
    query: Query,
    asked: WithBody,
) -> Reply {
    match headers.get(header::CONTENT_TYPE) {
        None => {
            let text = "Header of type `content-type` was missing";
            return Err(Failure::bad_request(text));
        }
        Some(value) if value.as_bytes().eq_ignore_ascii_case(b"application/json") => {}
        Some(_) => return Err(not_json()),
    }
    let confirmed = query.boolean("confirmed")?.unwrap_or(true);
    let call = (function, asked.body.text()?.to_owned(), confirmed);
    let (state, record) = (&asked.state, &asked.record);
    let database = state.node.databases.get(record).await?.handle;
    let caller = caller_of(state, record, &asked.caller);
    match run(state, &database, caller, call, trace).await? {
        Ok(CallOutcome {
            returned_json: Some(json),
            ..
        }) => returned(&database, json.into_inner()),
        Ok(outcome) => Ok(finished(StatusCode::OK, String::new(), &outcome)),
        Err(error) => Ok(refused(error)),
    }
}

/// What became of a call with these arguments in SATS JSON; whether its answer waits until that is durable is the third part. It runs to its end even if the client goes away.
pub(super) async fn run(
    state: &Gateway,
    database: &DatabaseHandle,
    caller: Caller,
    (function, args, confirmed): (String, String, bool),
    trace: Option<TraceContext>,
) -> Result<Result<CallOutcome, CallError>, Failure> {
    let database = database.clone();
    let call = tokio::spawn(async move {
        let args = CallArgs::Json(args);
        let called = database.call_traced(caller, &function, args, confirmed, trace);
        called.await
    });
    let late =
        "the call did not end within limits.request-timeout; it may still be carried out [LC0112]";
    let stopped = "The reducer worker encountered a fatal error: it stopped";
    let outcome = state.in_time(call, late).await?;
    outcome.map_err(|_| Failure::internal(stopped))
}

fn finished(status: StatusCode, body: String, outcome: &CallOutcome) -> Response {
    let mut response = reply::text(body);
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(ENERGY_USED, HeaderValue::from(outcome.energy_used));
    headers.insert(EXECUTION_MICROS, HeaderValue::from(outcome.execution_us));
    response
}

/// What a procedure returned (06 §5.11).
fn returned(database: &DatabaseHandle, json: String) -> Reply {
    let json = database.hold(json.into_bytes());
    let json = json.map_err(|refusal| Failure::busy(refusal.0))?;
    let mut response = delivery::held(reply::JSON, json);
    let headers = response.headers_mut();
    headers.insert(EXECUTION_MICROS, HeaderValue::from(0));
    Ok(response)
}

pub(super) fn refused(error: CallError) -> Response {
    // Which no standard has.
    let failed = StatusCode::from_u16(530).expect("530 is a valid status code");
    let text = |status, text: String| Failure::text(status, text).into_response();
    match error {
        CallError::UserError { message, outcome } => finished(failed, message, &outcome),
        CallError::Fatal { outcome } => {
            let text = "The instance encountered a fatal error.";
            finished(failed, text.into(), &outcome)
        }
        CallError::TimedOut { outcome } => {
            let text = "Module energy budget exhausted.";
            finished(StatusCode::PAYMENT_REQUIRED, text.into(), &outcome)
        }
        CallError::ConnectRejected(message) => text(StatusCode::FORBIDDEN, message),
        CallError::InvalidArguments(message) | CallError::Lifecycle(message) => {
            text(StatusCode::BAD_REQUEST, message)
        }
        CallError::NoSuchFunction => text(StatusCode::NOT_FOUND, "No such procedure".into()),
        CallError::ModuleGone => text(StatusCode::NOT_FOUND, "no such module".into()),
        CallError::Busy(message) => text(StatusCode::SERVICE_UNAVAILABLE, message),
        CallError::Database(message) => text(StatusCode::INTERNAL_SERVER_ERROR, message),
    }
}
