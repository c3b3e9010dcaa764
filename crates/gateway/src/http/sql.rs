//! SQL over HTTP (06 §5.14).

use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes, HttpBody};
use axum::http::{HeaderValue, StatusCode};
use hyper::body::{Frame, SizeHint};
use lightcone_control::DatabaseRecord;
use lightcone_database::{HeldBytes, JsonRows, SqlError};
use lightcone_node::{auth, collaborators};
use lightcone_types::json::product_type_to_json;
use lightcone_types::ProductType;

use super::body::WithBody;
use super::call::{caller_of, EXECUTION_MICROS};
use super::delivery;
use super::query::Query;
use crate::gateway::Gateway;
use crate::reply::{self, Failure, Reply};

pub(super) async fn sql(query: Query, asked: WithBody) -> Reply {
    let confirmed = query.boolean("confirmed")?.unwrap_or(true);
    let statement = Statement {
        text: asked.body.text()?.to_owned(),
        confirmed,
        of_assistant: false,
        write_refusal: None,
    };
    run(&asked.state, &asked.record, &asked.caller, statement).await
}

/// What a caller asks of a database.
pub(super) struct Statement {
    pub text: String,
    pub confirmed: bool,
    /// Variables of the environment are not there for it.
    pub of_assistant: bool,
    /// If there is one, a statement that would change something gets it for an answer.
    pub write_refusal: Option<&'static str>,
}

/// The answer of 06 §5.14 to one statement.
pub(super) async fn run(
    state: &Gateway,
    record: &DatabaseRecord,
    caller: &auth::Caller,
    statement: Statement,
) -> Reply {
    if collaborators::is_asked(&statement.text) {
        return show_collaborators(state, record, caller);
    }
    let running = state.node.databases.get(record).await?;
    let caller = caller_of(state, record, caller);
    let Statement {
        text,
        confirmed,
        of_assistant,
        write_refusal,
    } = statement;
    // Ends with the request: a client that has gone needs no rows.
    let run = async {
        let (database, rows) = (&running.handle, JsonRows::default());
        if !of_assistant {
            return database.sql(caller, text, confirmed, rows).await;
        }
        let how = (confirmed, write_refusal.is_some());
        database.sql_of_assistant(caller, text, how, rows).await
    };
    let late = "the query did not end within limits.request-timeout [LC0112]";
    let outcome = state.in_time(run, late).await?;
    let outcome = outcome.map_err(|error| match (error, write_refusal) {
        (SqlError::Writes, Some(text)) => Failure::text(StatusCode::FORBIDDEN, text),
        (error, _) => error.into(),
    })?;
    let head = head(&outcome.columns);
    let stats = &outcome.stats;
    let counts = [stats.rows_inserted, stats.rows_deleted, stats.rows_updated];
    let tail = tail(outcome.duration_us, counts);
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

/// What comes before the rows of an answer.
fn head(columns: &ProductType) -> String {
    let mut head = "[{\"schema\":".to_owned();
    product_type_to_json(columns, &mut head);
    head + ",\"rows\":"
}

/// What comes after them.
fn tail(duration_us: u64, [inserted, deleted, updated]: [u64; 3]) -> String {
    format!(
        ",\"total_duration_micros\":{duration_us},\"stats\":\
         {{\"rows_inserted\":{inserted},\"rows_deleted\":{deleted},\"rows_updated\":{updated}}}}}]"
    )
}

fn show_collaborators(state: &Gateway, record: &DatabaseRecord, caller: &auth::Caller) -> Reply {
    let rows = collaborators::rows(&state.node, record, &caller.identity);
    let rows =
        rows.ok_or_else(|| Failure::bad_request(collaborators::refusal(record, &caller.identity)))?;
    let head = head(&ProductType::new(collaborators::COLUMNS));
    let rows = serde_json::json!(rows);
    Ok(reply::json(format!("{head}{rows}{}", tail(0, [0; 3]))))
}

/// A body that is there, but not in one piece. It gives its pieces one after the other, so that each can be freed when it is sent. Its
/// length is known.
struct PiecesBody {
    pieces: VecDeque<Bytes>,
    bytes_left: u64,
}

impl PiecesBody {
    fn new(pieces: impl IntoIterator<Item = Bytes>) -> PiecesBody {
        let pieces: VecDeque<_> = pieces.into_iter().collect();
        PiecesBody {
            bytes_left: pieces.iter().map(|piece| piece.len() as u64).sum(),
            pieces,
        }
    }
}

impl HttpBody for PiecesBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let piece = self.pieces.pop_front();
        Poll::Ready(piece.map(|piece| {
            self.bytes_left -= piece.len() as u64;
            Ok(Frame::data(piece))
        }))
    }

    fn is_end_stream(&self) -> bool {
        self.pieces.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.bytes_left)
    }
}
