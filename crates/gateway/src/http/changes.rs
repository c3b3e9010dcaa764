//! The changes of a database, as they become durable (06 §5.13a): events over HTTP, or messages of a WebSocket.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderValue, StatusCode};
use bytes::Bytes;
use futures_util::{stream, StreamExt as _};
use lightcone_database::{Changes, ChangesError, Place, Refusal, RowForm};
use lightcone_log::LogError;
use lightcone_node::network::{timed, ConnectionSlot};
use lightcone_node::permissions::Action;
use lightcone_types::{error_code, Identity};
use serde_json::json;
use tokio::time::timeout;

use super::delivery;
use super::logs::{may_see, uncached, FOLLOW_CHECK_INTERVAL};
use super::path::Permitted;
use super::query::{wrong, Query};
use crate::gateway::Gateway;
use crate::reply::{self, Failure, Reply};
use crate::ws;

/// A stream that has nothing to tell says for so long at most nothing.
const HEARTBEAT: Duration = Duration::from_secs(15);
/// When to try again if there are as many streams as there may be.
const RETRY_SECONDS: u64 = 10;
const EVENT_STREAM: HeaderValue = HeaderValue::from_static("text/event-stream");

pub(super) async fn changes(asked: Permitted, query: Query, mut request: Request) -> Reply {
    let headers = request.headers();
    let accept = ws::accept_if_asked(headers)?;
    let from = match headers.get("last-event-id") {
        Some(id) => Some(place(id.to_str().unwrap_or("?")).map_err(wrong)?),
        None => query.parsed("from", place)?,
    };
    let follows = query.boolean("follow")?.unwrap_or(true);
    let forms = [("json", RowForm::Json), ("bsatn", RowForm::Bsatn)];
    let form = query.word("rows", &forms)?.unwrap_or_default();
    let tables = query.text("tables")?.into_iter();
    let tables = tables.flat_map(|names| names.split(',').map(str::to_owned));
    let running = asked.state.node.databases.get(&asked.record).await?;
    let changes = running.handle.changes(from, tables.collect(), follows);
    let changes = changes.await?.in_form(form);
    let holder = changes.holder();
    let beginning = holder.hold(changes.beginning().into_bytes())?;
    let state = asked.state.clone();
    let following = Following {
        changes,
        follows,
        state: state.clone(),
        database: asked.record.identity,
        may_see: may_see(asked, Action::FollowChanges),
        told: Instant::now(),
    };
    let beginning = stream::iter([Bytes::from_owner(beginning)]);
    let rest = stream::unfold(Some(following), |following| async {
        following?.next().await
    });
    let events = beginning.chain(rest);
    let Some(accept) = accept else {
        let body = Body::from_stream(events.map(Ok::<_, Infallible>));
        let mut response = reply::with_type(EVENT_STREAM, body);
        delivery::hold(&mut response, Some(holder));
        return Ok(uncached(response));
    };
    let upgrade = hyper::upgrade::on(&mut request);
    let slot = request.extensions().get::<ConnectionSlot>().cloned();
    let slot = slot.ok_or_else(|| Failure::internal("the connection has no place"))?;
    let polls = state.node.counters.polls.clone();
    let messages = events.map(|events| messages(&events));
    let serve = ws::events::serve(state, upgrade, slot, holder, messages);
    tokio::spawn(timed(polls, serve));
    Ok(ws::switching(accept))
}

/// What messages of a WebSocket say of events: their data, or that of one which only moves the id.
fn messages(events: &Bytes) -> Vec<Bytes> {
    let text = std::str::from_utf8(events).expect("it was written as text");
    let events_of_text = text.split_terminator("\n\n");
    let message = |event: &str| match event.split_once("\ndata: ") {
        Some((_, data)) => events.slice_ref(data.as_bytes()),
        None => {
            let id = event.rsplit_once("id: ").map_or("", |(_, id)| id);
            json!({ "id": id }).to_string().into()
        }
    };
    events_of_text.map(message).collect()
}

struct Following<MaySee> {
    changes: Changes,
    may_see: MaySee,
    /// Also what comes later.
    follows: bool,
    state: Arc<Gateway>,
    database: Identity,
    /// When the client got something last.
    told: Instant,
}

impl<MaySee: Fn() -> bool> Following<MaySee> {
    /// The next part of the stream, and who goes on behind it.
    async fn next(mut self) -> Option<(Bytes, Option<Self>)> {
        loop {
            if !(self.may_see)() {
                let reason = "the caller may not follow the changes any more";
                return Some((ending(reason), None));
            }
            let Following { mut changes, .. } = self;
            // Reads files.
            let read = reply::blocking(move || {
                let read = changes.read();
                (changes, read)
            });
            let (changes, read) = read.await.ok()?;
            self = Following { changes, ..self };
            let is_all = match read {
                Ok((text, is_all)) if text.as_ref().is_empty() => is_all,
                Ok((text, _)) => return Some(self.told(Bytes::from_owner(text))),
                Err(error) => return Some((self.ended(error), None)),
            };
            if is_all && !self.follows {
                return None;
            }
            if self.told.elapsed() >= HEARTBEAT {
                // An event without data only moves the id.
                let heartbeat =
                    format!(": all is told up to here\nid: {}\n\n", self.changes.place());
                return Some(self.told(heartbeat.into()));
            }
            if !is_all {
                continue;
            }
            if let Ok(Err(error)) = timeout(FOLLOW_CHECK_INTERVAL, self.changes.ready()).await {
                return Some((self.ended(error), None));
            }
        }
    }

    fn told(mut self, part: Bytes) -> (Bytes, Option<Self>) {
        self.told = Instant::now();
        (part, Some(self))
    }

    fn ended(&self, error: ChangesError) -> Bytes {
        let is_deleted = self.state.node.control.database(&self.database).is_none();
        match error {
            ChangesError::Log(LogError::Closed) if is_deleted => {
                ending("the database was deleted [LC0516]")
            }
            error => ending(&error.to_string()),
        }
    }
}

fn place(text: &str) -> Result<Place, String> {
    text.parse().map_err(|refusal: Refusal| refusal.0)
}

/// The last event, with the reason.
fn ending(reason: &str) -> Bytes {
    let code = error_code(reason).map(|code| format!("LC{code:04}"));
    let data = json!({ "code": code, "reason": reason });
    format!("event: end\ndata: {data}\n\n").into()
}

impl From<ChangesError> for Failure {
    fn from(error: ChangesError) -> Failure {
        let text = error.to_string();
        match error {
            ChangesError::Log(LogError::LeftBehind { .. } | LogError::CutAway { .. }) => {
                Failure::text(StatusCode::GONE, text)
            }
            ChangesError::Log(LogError::OutOfRange { .. })
            | ChangesError::NoSuchTable(_)
            | ChangesError::InMemory => Failure::bad_request(text),
            ChangesError::OldFrames(_) => Failure::busy(text),
            ChangesError::TooMany { .. } => Failure::busy_for(RETRY_SECONDS, text),
            ChangesError::NoMemory(_) | ChangesError::Gone => Failure::busy(text),
            ChangesError::Log(_) | ChangesError::Recovery(_) => Failure::internal(text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_say_what_events_say() {
        let events = [
            "id: 3-ff\nevent: begin\ndata: {\"id\":\"3-ff\"}\n\n",
            "id: 4-aa\ndata: {\"name\":\"\\ndata: \"}\n\n",
            ": all is told up to here\nid: 9-bb\n\n",
            "event: end\ndata: {\"code\":null}\n\n",
        ];
        let messages = messages(&events.concat().into());
        let expected = [
            "{\"id\":\"3-ff\"}",
            "{\"name\":\"\\ndata: \"}",
            "{\"id\":\"9-bb\"}",
            "{\"code\":null}",
        ];
        assert_eq!(messages, expected);
    }
}
