//! Messages of databases on other servers (06 §5.24).

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::Response;
use lightcone_database::{CallError, Message, MessageAnswer, ResultStatus};
use lightcone_types::{Hash, Identity};

use super::body::SentBody;
use super::credentials::presented_token;
use super::path::{DatabasePath, ReducerPath};
use super::query::{wrong, Query};
use crate::gateway::Gateway;
use crate::reply::{self, Failure, Reply};

/// The token comes first: a caller without one learns of a database no more than whether its name is taken.
pub(super) async fn receive(
    State(state): State<Arc<Gateway>>,
    DatabasePath(database): DatabasePath,
    ReducerPath(reducer): ReducerPath,
    request: Request,
) -> Reply {
    let (parts, body) = request.into_parts();
    let token = presented_token(&parts.headers)?;
    let target = state.node.resolve(&database)?;
    let sender = state.node.message_sender(&token, &target)?;
    let record = state.node.record_of(&target)?;
    let query = Query::parse(parts.uri.query().unwrap_or_default());
    let mut message = message(&query, (sender, target), reducer)?;
    let running = state.node.databases.get(&record).await?;
    let body = SentBody::of(&parts, body).read(&state).await?;
    message.args = body.to_vec();
    // Opening and reading may have taken longer than the token lives, and its sender counts on its end.
    state.node.message_sender(&token, &target)?;
    let seq = message.seq;
    // Runs to its end even if the sender goes away.
    let receive = tokio::spawn(async move {
        let _held = body;
        running.handle.receive(message).await
    });
    let late =
        "the message was not applied within limits.request-timeout; it may still be [LC0112]";
    let received = state.in_time(receive, late).await??;
    received
        .map(|answer| answered(answer, seq))
        .map_err(refused)
}

fn message(
    query: &Query,
    (sender, target): (Identity, Identity),
    reducer: String,
) -> Result<Message, Failure> {
    let number = |name: &str| {
        let number = query.number::<u64>(name)?;
        number.ok_or_else(|| wrong(format!("missing field `{name}`")))
    };
    let hash = query.parsed("signature_hash", |text| {
        Hash::from_hex(text).map_err(|_| "it is no hash of 64 hexadecimal digits".to_owned())
    })?;
    Ok(Message {
        sender,
        target,
        stream: number("stream_id")?,
        seq: number("seq")?,
        ack_prefix: number("ack_prefix")?,
        reducer,
        signature_hash: hash.ok_or_else(|| wrong("missing field `signature_hash`".to_owned()))?,
        args: Vec::new(),
    })
}

fn answered(answer: MessageAnswer, seq: u64) -> Response {
    let (status, body) = match answer {
        MessageAnswer::Done(result) => {
            let status = match result.status {
                ResultStatus::Ok => StatusCode::OK,
                ResultStatus::Error => StatusCode::UNPROCESSABLE_ENTITY,
                ResultStatus::OutOfEnergy => StatusCode::PAYMENT_REQUIRED,
            };
            (status, result.payload)
        }
        MessageAnswer::Acknowledged => (StatusCode::ALREADY_REPORTED, Vec::new()),
        MessageAnswer::OutOfOrder { expected } => {
            let text = MessageAnswer::out_of_order_text(expected, seq);
            (StatusCode::CONFLICT, text.into_bytes())
        }
    };
    let mut response = reply::text(body);
    *response.status_mut() = status;
    response
}

/// The sender tries again.
fn refused(error: CallError) -> Failure {
    match error {
        CallError::ConnectRejected(text) => Failure::text(StatusCode::FORBIDDEN, text),
        CallError::Busy(text) => Failure::busy(text),
        CallError::Database(text) => Failure::internal(text),
        _ => Failure::text(StatusCode::NOT_FOUND, "no such module"),
    }
}
