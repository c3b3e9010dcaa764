//! Reading request bodies within bounds of size and time (06 §1.1).

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::StatusCode;
use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt as _;

use super::reply::Failure;
use crate::budget::{ByteBudget, Charge};

/// Limit for every body but a module.
pub(crate) const SMALL_BODY_BYTES_MAX: usize = 2 * 1024 * 1024;

/// So much of a refused body is still taken: a client that is cut off while it sends does not see the answer.
const DRAIN_BYTES_MAX: usize = 64 * 1024 * 1024;

/// A whole body. It counts against the server's budget as long as it lives.
#[derive(Debug)]
pub(crate) struct Buffered {
    bytes: Bytes,
    _charge: Charge,
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
    pause_max: Duration,
    budget: &Arc<ByteBudget>,
) -> Result<Buffered, Failure> {
    let mut charge = Charge::none(budget);
    let mut first = Bytes::new();
    let mut rest = BytesMut::new();
    let mut length = 0;
    while let Some(frame) = tokio::time::timeout(pause_max, body.frame())
        .await
        .map_err(|_| stalled())?
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
            drain(body, DRAIN_BYTES_MAX, pause_max).await;
            return Err(Failure::text(
                StatusCode::PAYLOAD_TOO_LARGE,
                "Failed to buffer the request body: length limit exceeded",
            ));
        }
        if !charge.hold(length) {
            drop(charge);
            drain(body, DRAIN_BYTES_MAX, pause_max).await;
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
    Ok(Buffered {
        bytes,
        _charge: charge,
    })
}

/// Reads a body to its end and forgets it, so that a client that is still sending sees the answer (06 §1.1).
pub(crate) async fn drain(mut body: Body, bytes_max: usize, pause_max: Duration) {
    let mut length = 0;
    while let Ok(Some(Ok(frame))) = tokio::time::timeout(pause_max, body.frame()).await {
        length += frame.data_ref().map_or(0, Bytes::len);
        if length > bytes_max {
            return;
        }
    }
}

fn stalled() -> Failure {
    Failure::text(
        StatusCode::REQUEST_TIMEOUT,
        "Failed to buffer the request body: the client stopped sending [LC0110]",
    )
}
