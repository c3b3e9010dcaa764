//! The module's log (06 §5.13).

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::State;
use axum::http::{header, HeaderValue};
use axum::response::Response;
use axum::Extension;
use bytes::Bytes;
use futures_util::stream;
use tokio::sync::broadcast::{self, error::RecvError};

use super::path::DatabasePath;
use super::query::Query;
use super::reply::{self, Failure, Reply};
use crate::auth::Caller;
use crate::databases::OpenError;
use crate::permissions::{self, Action};
use crate::state::ServerState;

/// Most lines that are sent before the live ones.
const FOLLOW_LINES_MAX: u32 = 2500;
/// A log that is followed ends so soon after its reader has lost the right to see it, also when nothing is logged.
const FOLLOW_CHECK_INTERVAL: Duration = Duration::from_secs(2);

pub(super) async fn logs(
    State(state): State<Arc<ServerState>>,
    DatabasePath(path): DatabasePath,
    query: Query,
    Extension(caller): Extension<Caller>,
) -> Reply {
    let record = state.record(&path)?;
    let num_lines = query.number::<u32>("num_lines")?;
    let follow = query.boolean("follow")?.unwrap_or(false);
    permissions::check(&state, &record, &caller.identity, Action::ViewLogs)?;
    let running = match state.databases.get(&record).await {
        Ok(running) => running,
        // A database that does not start is just the one whose log is wanted.
        Err(OpenError::Failed(reason)) if !follow => {
            return match state.databases.stored_log(&record, num_lines).await {
                Some(text) => Ok(log_reply(Body::from(text))),
                None => Err(Failure::internal(reason)),
            };
        }
        Err(error) => return Err(error.into()),
    };
    let handle = running.handle;
    let body = if follow {
        let live = handle.logs().subscribe();
        let lines = num_lines.unwrap_or(0).min(FOLLOW_LINES_MAX);
        let first = match lines {
            0 => Vec::new(),
            lines => tail(handle.clone(), Some(lines)).await?,
        };
        drop(handle);
        // Whoever may not see it any more gets no more of it.
        let may_see =
            move || permissions::check(&state, &record, &caller.identity, Action::ViewLogs).is_ok();
        Body::from_stream(follow_stream(first, live, may_see))
    } else {
        Body::from(tail(handle, num_lines).await?)
    };
    Ok(log_reply(body))
}

fn log_reply(body: Body) -> Response {
    let mut response = reply::with_type(HeaderValue::from_static("application/x-ndjson"), body);
    response
        .headers_mut()
        .insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    response
}

async fn tail(
    handle: crate::database::DatabaseHandle,
    num_lines: Option<u32>,
) -> Result<Vec<u8>, Failure> {
    // Reads a file.
    tokio::task::spawn_blocking(move || handle.logs().tail(num_lines))
        .await
        .map_err(|_| {
            Failure::text(
                axum::http::StatusCode::SERVICE_UNAVAILABLE,
                "Logs are temporarily not available",
            )
        })
}

/// `first`, then live records until the module ends. Records that a slow reader missed are skipped.
fn follow_stream(
    first: Vec<u8>,
    live: broadcast::Receiver<Bytes>,
    may_see: impl Fn() -> bool + Send + 'static,
) -> impl futures_util::Stream<Item = Result<Bytes, std::convert::Infallible>> {
    // A record that was written between the subscription and the reading of the tail is in both.
    let overlap = first.clone();
    let start = (!first.is_empty()).then(|| Bytes::from(first));
    stream::unfold(
        (start, live, overlap, may_see),
        |(start, mut live, mut overlap, may_see)| async move {
            if let Some(first) = start {
                return Some((Ok(first), (None, live, overlap, may_see)));
            }
            loop {
                let received = tokio::time::timeout(FOLLOW_CHECK_INTERVAL, live.recv()).await;
                if !may_see() {
                    return None;
                }
                let Ok(received) = received else {
                    continue;
                };
                match received {
                    Ok(record)
                        if overlap
                            .split_inclusive(|byte| *byte == b'\n')
                            .any(|line| line == record) =>
                    {
                        continue
                    }
                    Ok(record) => {
                        overlap = Vec::new();
                        return Some((Ok(record), (None, live, overlap, may_see)));
                    }
                    Err(RecvError::Lagged(_)) => continue,
                    Err(RecvError::Closed) => return None,
                }
            }
        },
    )
}
