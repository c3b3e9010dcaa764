//! Reading request bodies within bounds of size and time (06 §1.1).

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::body::{Body, HttpBody};
use axum::extract::{FromRequest, FromRequestParts as _, Request, State};
use axum::http::request::Parts;
use axum::http::{header, HeaderMap, StatusCode};
use axum::middleware::Next;
use axum::response::Response;
use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt as _;
use hyper::body::{Frame, SizeHint};
use lightcone_accounts::Account;
use lightcone_control::DatabaseRecord;
use lightcone_database::ProgramBytes;
use lightcone_node::auth::Caller;
use lightcone_node::config::Limits;
use parking_lot::Mutex;
use tokio::time::{timeout, Instant};

use super::path::{caller_of, DatabasePath};
use super::route::{BodyMax, Route};
use crate::budget::Charge;
use crate::gateway::Gateway;
use crate::pace::{Pace, Patience};
use crate::reply::{blocking, Failure};

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

    /// The same as text, which it must be.
    pub(crate) fn text(&self) -> Result<&str, Failure> {
        std::str::from_utf8(self)
            .map_err(|_| Failure::bad_request("Request body didn't contain valid UTF-8"))
    }
}

impl std::ops::Deref for Buffered {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

/// A whole body as it has come, in segments: putting the largest ones together takes longer than a connection may wait.
#[derive(Debug)]
pub(crate) struct Segments {
    whole: Vec<Bytes>,
    length: usize,
    charge: Charge,
}

/// Parts of a body are put together up to this size.
const SEGMENT_BYTES: usize = 1024 * 1024;

impl Segments {
    fn add(&mut self, last: &mut BytesMut, data: Bytes) {
        let is_first = self.length == 0;
        self.length += data.len();
        // Most bodies have one part.
        if is_first || (last.is_empty() && data.len() >= SEGMENT_BYTES / 2) {
            self.whole.push(data);
            return;
        }
        if last.len() + data.len() > SEGMENT_BYTES {
            self.end(last);
        }
        last.extend_from_slice(&data);
    }

    fn end(&mut self, last: &mut BytesMut) {
        if !last.is_empty() {
            self.whole.push(std::mem::take(last).freeze());
        }
    }

    /// In one piece, with what it counts against. Each segment is freed when it is copied.
    pub(crate) fn into_shared(self) -> (Arc<[u8]>, Charge) {
        // One allocation, as the length is known.
        let mut whole: Arc<[u8]> = std::iter::repeat_n(0, self.length).collect();
        let bytes = Arc::get_mut(&mut whole).expect("nothing else has it");
        let mut at = 0;
        for segment in self.whole {
            bytes[at..at + segment.len()].copy_from_slice(&segment);
            at += segment.len();
        }
        (whole, self.charge)
    }

    async fn buffered(mut self) -> Result<Buffered, Failure> {
        if self.whole.len() <= 1 {
            let bytes = self.whole.pop().unwrap_or_default();
            let charge = self.charge;
            return Ok(Buffered { bytes, charge });
        }
        let (bytes, charge) = match self.length <= SEGMENT_BYTES {
            true => self.into_shared(),
            false => blocking(move || self.into_shared()).await?,
        };
        let bytes = Bytes::from_owner(bytes);
        Ok(Buffered { bytes, charge })
    }
}

/// The body of a request, which may be as large as the route's row says.
pub(super) struct SentBody {
    pub body: Body,
    pub max: BodyMax,
}

impl<S: Sync> FromRequest<S> for SentBody {
    type Rejection = Infallible;

    async fn from_request(request: Request, _: &S) -> Result<Self, Infallible> {
        let (parts, body) = request.into_parts();
        Ok(SentBody::of(&parts, body))
    }
}

impl SentBody {
    pub fn of(parts: &Parts, body: Body) -> SentBody {
        let route = parts.extensions.get::<&Route>();
        let max = route.map_or(BodyMax::Nothing, |route| route.body);
        SentBody { body, max }
    }

    pub async fn read(self, state: &Gateway) -> Result<Buffered, Failure> {
        let limits = &state.node.config.limits;
        let received = receive(self, limits, &state.buffered_bytes).await?;
        received.buffered().await
    }

    /// Reads a module that is uploaded.
    pub async fn read_program(self, state: &Gateway) -> Result<Upload, Failure> {
        let limits = &state.node.config.limits;
        let received = receive(self, limits, &state.upload_bytes).await?;
        // Copies and hashes up to 256 MiB.
        blocking(move || {
            let (program, charge) = received.into_shared();
            Upload {
                program: ProgramBytes::new(program),
                _charge: charge,
            }
        })
        .await
    }
}

/// A request with a body, about the path's database.
pub(super) struct WithBody {
    pub state: Arc<Gateway>,
    /// As it is when the body has come, which may take long.
    pub record: DatabaseRecord,
    pub caller: Caller,
    pub body: Buffered,
}

impl FromRequest<Arc<Gateway>> for WithBody {
    type Rejection = Failure;

    async fn from_request(request: Request, state: &Arc<Gateway>) -> Result<Self, Failure> {
        let (mut parts, body) = request.into_parts();
        let DatabasePath(path) = DatabasePath::from_request_parts(&mut parts, state).await?;
        // Before it takes memory.
        state.node.record(&path)?;
        let body = SentBody::of(&parts, body).read(state).await?;
        Ok(WithBody {
            state: state.clone(),
            record: state.node.record(&path)?,
            caller: caller_of(&parts)?,
            body,
        })
    }
}

/// Is the body said to be `application/json`, or another type that is JSON by its name? Parameters do not matter.
///
/// # Errors
/// It is not: 415.
pub(super) fn check_is_json(headers: &HeaderMap) -> Result<(), Failure> {
    let value = headers.get(header::CONTENT_TYPE);
    let value = value.and_then(|value| value.to_str().ok());
    let essence = value.and_then(|value| value.split(';').next());
    let essence = essence.unwrap_or_default().trim().to_ascii_lowercase();
    let subtype = essence.strip_prefix("application/");
    match subtype.is_some_and(|subtype| subtype == "json" || subtype.ends_with("+json")) {
        true => Ok(()),
        false => Err(not_json()),
    }
}

pub(super) fn not_json() -> Failure {
    let text = "Expected request with `Content-Type: application/json`";
    Failure::text(StatusCode::UNSUPPORTED_MEDIA_TYPE, text)
}

pub(super) const STALLED: &str = "the client stopped sending, or sends too slowly [LC0110]";

pub(super) fn refused_body(status: StatusCode, why: &str) -> Failure {
    Failure::text(status, format!("Failed to buffer the request body: {why}"))
}

async fn receive(
    SentBody { mut body, max }: SentBody,
    limits: &Limits,
    budget: &Arc<Account>,
) -> Result<Segments, Failure> {
    let bytes_max = max.bytes(limits);
    let mut patience = Patience::new(Pace::of(limits));
    let mut received = Segments {
        whole: Vec::new(),
        length: 0,
        charge: Charge::none(budget),
    };
    let mut last = BytesMut::new();
    let stalled = || refused_body(StatusCode::REQUEST_TIMEOUT, STALLED);
    loop {
        let frame = next_frame(&mut body, &mut patience).await;
        let Some(frame) = frame.ok_or_else(stalled)? else {
            break;
        };
        let frame = frame.map_err(|error| {
            let why = lightcone_outbound::error_chain(&error);
            refused_body(StatusCode::BAD_REQUEST, &why)
        })?;
        let Ok(data) = frame.into_data() else {
            continue;
        };
        let length = received.length + data.len();
        if length > bytes_max {
            return Err(refused_body(
                StatusCode::PAYLOAD_TOO_LARGE,
                "length limit exceeded",
            ));
        }
        if !received.charge.hold(length) {
            let text = "the server is receiving too much at once; try again later [LC0115]";
            return Err(Failure::busy(text));
        }
        let segments = received.length / SEGMENT_BYTES;
        received.add(&mut last, data);
        if received.length / SEGMENT_BYTES > segments {
            // However much the socket has, others on this thread wait no longer than for this.
            tokio::task::yield_now().await;
        }
    }
    received.end(&mut last);
    Ok(received)
}

/// An uploaded module. It counts against `limits.upload-bytes-max` until it is published: many may wait for their turn.
pub(super) struct Upload {
    pub program: ProgramBytes,
    _charge: Charge,
}

/// The next part of a body. None if the client is too slow.
pub(super) async fn next_frame(
    body: &mut (impl HttpBody<Data = Bytes, Error = axum::Error> + Unpin),
    patience: &mut Patience,
) -> Option<Option<Result<Frame<Bytes>, axum::Error>>> {
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
    State(state): State<Arc<Gateway>>,
    request: Request,
    next: Next,
) -> Response {
    if request.body().is_end_stream() {
        return next.run(request).await;
    }
    // A client that sent `Expect` learns from the answer, and sends nothing.
    let asks_first = request.headers().contains_key(header::EXPECT);
    let (parts, body) = request.into_parts();
    let mut shared = SharedBody(Arc::new(Mutex::new((body, false))));
    let body = Body::new(shared.clone());
    let response = next.run(Request::from_parts(parts, body)).await;
    let is_begun = shared.0.lock().1;
    if asks_first && !is_begun {
        return response;
    }
    let mut patience = Patience::new(Pace::of(&state.node.config.limits));
    let mut length = 0;
    while let Some(Some(Ok(frame))) = next_frame(&mut shared, &mut patience).await {
        length += frame.data_ref().map_or(0, Bytes::len);
        if length > DRAIN_BYTES_MAX {
            break;
        }
    }
    response
}

/// A body whose remainder is still there when its reader has gone, and whether it was begun.
#[derive(Clone)]
struct SharedBody(Arc<Mutex<(Body, bool)>>);

impl HttpBody for SharedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let (body, is_begun) = &mut *self.0.lock();
        *is_begun = true;
        Pin::new(body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.0.lock().0.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.0.lock().0.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;

    #[test]
    fn types_that_are_json() {
        let with = |value: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(value));
            headers
        };
        for value in [
            "application/json",
            "Application/JSON; charset=utf-8",
            "application/vnd.api+json",
            " application/json ",
        ] {
            assert!(check_is_json(&with(value)).is_ok(), "{value}");
        }
        for value in [
            "",
            "json",
            "text/json",
            "application/jsonx",
            "application/x-www-form-urlencoded",
            "text/plain",
        ] {
            assert!(check_is_json(&with(value)).is_err(), "{value}");
        }
        assert!(check_is_json(&HeaderMap::new()).is_err());
    }
}
