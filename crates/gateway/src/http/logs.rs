//! The module's log (06 §5.13).

use std::time::Duration;

use axum::body::Body;
use axum::http::{header, HeaderValue};
use axum::response::Response;
use bytes::Bytes;
use futures_util::{stream, StreamExt as _};
use lightcone_database::LIVE_RECORDS_MAX;
use lightcone_node::auth::has_ended;
use lightcone_node::databases::OpenError;
use lightcone_node::permissions::Action;
use tokio::sync::broadcast::{self, error::RecvError};

use super::delivery;
use super::path::Permitted;
use super::query::Query;
use crate::reply::{self, Failure, Reply};

/// Most lines that are sent before the live ones.
const FOLLOW_LINES_MAX: u32 = 2500;
/// What is followed ends so soon after its reader has lost the right to see it, also when nothing comes.
pub(super) const FOLLOW_CHECK_INTERVAL: Duration = Duration::from_secs(2);

pub(super) async fn logs(asked: Permitted, query: Query) -> Reply {
    let num_lines = query.number::<u32>("num_lines")?;
    let follow = query.boolean("follow")?.unwrap_or(false);
    let databases = &asked.state.node.databases;
    let handle = match databases.get(&asked.record).await {
        Ok(running) => running.handle,
        // A database that does not start is just the one whose log is wanted.
        Err(OpenError::Failed(reason)) if !follow => {
            let (databases, record) = (databases.clone(), asked.record);
            let stored = move || {
                let text = databases.stored_log(&record, num_lines);
                text.ok_or_else(|| Failure::internal(reason))
            };
            let stored = delivery::made(&asked.state, stored).await?;
            return Ok(uncached(delivery::held(NDJSON, stored)));
        }
        Err(error) => return Err(error.into()),
    };
    let tail = |lines| {
        let handle = handle.clone();
        // Reads files.
        delivery::made(&asked.state, move || Ok(handle.logs().tail(lines)))
    };
    if !follow {
        let lines = tail(num_lines).await?;
        return Ok(uncached(delivery::held(NDJSON, lines)));
    }
    let live = handle.logs().subscribe();
    let first = match num_lines.unwrap_or(0).min(FOLLOW_LINES_MAX) {
        0 => Bytes::new(),
        lines => Bytes::from_owner(tail(Some(lines)).await?),
    };
    drop(handle);
    let stream = follow_stream(first, live, may_see(asked, Action::ViewLogs));
    let answer = reply::with_type(NDJSON, Body::from_stream(stream));
    Ok(uncached(answer))
}

const NDJSON: HeaderValue = HeaderValue::from_static("application/x-ndjson");

/// A caller that may not see it any more gets no more of what he follows, nor does a token that has ended.
pub(super) fn may_see(asked: Permitted, action: Action) -> impl Fn() -> bool + Send + 'static {
    let (node, caller) = (asked.state.node.clone(), asked.caller);
    move || {
        let allowed = node.check(&asked.record, &caller.identity, action);
        allowed.is_ok() && !has_ended(caller.claims.expires_at)
    }
}

pub(super) fn uncached(mut response: Response) -> Response {
    response
        .headers_mut()
        .insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    response
}

/// `first`, then live records until the module ends. Records that a slow reader missed are skipped.
fn follow_stream(
    first: Bytes,
    live: broadcast::Receiver<Bytes>,
    may_see: impl Fn() -> bool + Send + 'static,
) -> impl futures_util::Stream<Item = Result<Bytes, std::convert::Infallible>> {
    // A record that was written between the subscription and the reading of the tail is in both.
    let overlap = first.clone();
    let start = (!first.is_empty()).then_some(first);
    let following = (live, overlap, may_see);
    let rest = stream::unfold(following, |(mut live, overlap, may_see)| async move {
        loop {
            let received = tokio::time::timeout(FOLLOW_CHECK_INTERVAL, live.recv()).await;
            if !may_see() {
                return None;
            }
            match received {
                Ok(Ok(record)) if ends_with(&overlap, &record) => {}
                Ok(Ok(record)) => return Some((Ok(record), (live, Bytes::new(), may_see))),
                Ok(Err(RecvError::Closed)) => return None,
                Ok(Err(RecvError::Lagged(_))) | Err(_) => {}
            }
        }
    });
    stream::iter(start.map(Ok)).chain(rest)
}

/// Is this one of the last lines? There are no more records in the channel.
fn ends_with(text: &[u8], record: &[u8]) -> bool {
    let record = record.strip_suffix(b"\n").unwrap_or(record);
    let lines = text.strip_suffix(b"\n").unwrap_or(text);
    let mut lines = lines.rsplit(|byte| *byte == b'\n').take(LIVE_RECORDS_MAX);
    !text.is_empty() && lines.any(|line| line == record)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_lines_are_compared() {
        assert!(ends_with(b"a\nb\n", b"a\n") && ends_with(b"a\nb\n", b"b\n"));
        assert!(!ends_with(b"a\nb\n", b"c\n") && !ends_with(b"", b"\n"));
        let text = format!("first\n{}", "x\n".repeat(LIVE_RECORDS_MAX));
        assert!(!ends_with(text.as_bytes(), b"first\n"));
    }
}
