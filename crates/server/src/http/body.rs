//! Reading request bodies within bounds of size and time (06 §1.1).

use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use axum::body::{Body, HttpBody};
use axum::extract::{Request, State};
use axum::http::{header, StatusCode};
use axum::middleware::Next;
use axum::response::Response;
use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt as _;
use hyper::body::{Frame, SizeHint};
use lightcone_accounts::Account;
use tokio::time::{timeout, Instant};

use super::reply::Failure;
use crate::budget::Charge;
use crate::pace::{Pace, Patience};
use crate::state::ServerState;

/// Limit for every body but a module.
pub(crate) const SMALL_BODY_BYTES_MAX: usize = 2 * 1024 * 1024;

/// So much of a refused body is still taken: a client that is cut off while it sends does not see the answer.
const DRAIN_BYTES_MAX: usize = 64 * 1024 * 1024;

/// A whole body. It counts against the server's budget as long as it lives.
#[derive(Debug)]
pub(crate) struct Buffered {
    bytes: Bytes,
    charge: Charge,
}

impl Buffered {
    /// The bytes, and what they count against.
    pub(crate) fn into_parts(self) -> (Bytes, Charge) {
        (self.bytes, self.charge)
    }
}

impl std::ops::Deref for Buffered {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

/// Reads a whole body.
pub(crate) async fn read(
    mut body: Body,
    bytes_max: usize,
    pace: Pace,
    budget: &Arc<Account>,
) -> Result<Buffered, Failure> {
    let mut patience = Patience::new(pace);
    let mut charge = Charge::none(budget);
    let mut first = Bytes::new();
    let mut rest = BytesMut::new();
    let mut length = 0;
    while let Some(frame) = next_frame(&mut body, &mut patience)
        .await
        .ok_or_else(stalled)?
    {
        let frame = frame.map_err(|error| {
            Failure::bad_request(format!(
                "Failed to buffer the request body: {}",
                super::reply::error_chain(&error)
            ))
        })?;
        let Ok(data) = frame.into_data() else {
            continue;
        };
        length += data.len();
        if length > bytes_max {
            return Err(Failure::text(
                StatusCode::PAYLOAD_TOO_LARGE,
                "Failed to buffer the request body: length limit exceeded",
            ));
        }
        if !charge.hold(length) {
            let text = "the server is receiving too much at once; try again later [LC0115]";
            return Err(Failure::text(StatusCode::SERVICE_UNAVAILABLE, text));
        }
        if length == data.len() {
            first = data;
            continue;
        }
        if rest.is_empty() {
            rest.extend_from_slice(&first);
        }
        rest.extend_from_slice(&data);
    }
    let bytes = if rest.is_empty() {
        first
    } else {
        rest.freeze()
    };
    Ok(Buffered { bytes, charge })
}

/// The next part of a body. None if the client is too slow.
async fn next_frame<B>(
    body: &mut B,
    patience: &mut Patience,
) -> Option<Option<Result<Frame<Bytes>, axum::Error>>>
where
    B: HttpBody<Data = Bytes, Error = axum::Error> + Unpin,
{
    let started = Instant::now();
    let frame = timeout(patience.wait_max(), body.frame()).await.ok()?;
    if let Some(Ok(frame)) = &frame {
        let bytes = frame.data_ref().map_or(0, Bytes::len);
        patience.moved(started.elapsed(), bytes);
    }
    Some(frame)
}

/// Reads what is left of a body before the answer goes out: a connection that is closed while the client sends may cost the
/// client the answer (06 §1.1).
pub(crate) async fn drain_rest(
    State(state): State<Arc<ServerState>>,
    request: Request,
    next: Next,
) -> Response {
    if request.body().is_end_stream() {
        return next.run(request).await;
    }
    // A client that asks first is told by the answer, and sends nothing.
    let asks_first = request.headers().contains_key(header::EXPECT);
    let (parts, body) = request.into_parts();
    let rest = Rest(Arc::new(Mutex::new(Received {
        body,
        is_begun: false,
    })));
    let body = Body::new(rest.clone());
    let response = next.run(Request::from_parts(parts, body)).await;
    if !asks_first || rest.received().is_begun {
        drain(rest, DRAIN_BYTES_MAX, Pace::of(&state.config.limits)).await;
    }
    response
}

async fn drain(mut body: Rest, bytes_max: usize, pace: Pace) {
    let mut patience = Patience::new(pace);
    let mut length = 0;
    while let Some(Some(Ok(frame))) = next_frame(&mut body, &mut patience).await {
        length += frame.data_ref().map_or(0, Bytes::len);
        if length > bytes_max {
            return;
        }
    }
}

struct Received {
    body: Body,
    is_begun: bool,
}

/// A body whose rest is still there when its reader has gone.
#[derive(Clone)]
struct Rest(Arc<Mutex<Received>>);

impl Rest {
    fn received(&self) -> MutexGuard<'_, Received> {
        // A reader that panicked does not change what is left to read.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl HttpBody for Rest {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let mut received = self.received();
        received.is_begun = true;
        Pin::new(&mut received.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.received().body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.received().body.size_hint()
    }
}

fn stalled() -> Failure {
    Failure::text(
        StatusCode::REQUEST_TIMEOUT,
        "Failed to buffer the request body: the client stopped sending, or sends too slowly [LC0110]",
    )
}
