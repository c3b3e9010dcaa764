//! One TCP connection, from its first byte: HTTP/1.1 or HTTP/2.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use axum::http::{header, StatusCode};
use axum::response::Response;
use axum::Router;
use hyper::rt::Executor;
use hyper::service::{service_fn, Service as _};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use lightcone_node::network::{timed, ConnectionSlot, Polls, Stage};
use tokio::net::TcpStream;

use crate::client_address::ConnectionAddresses;
use crate::gateway::Gateway;
use crate::http::Delivery;
use crate::io::StallGuard;

const HEADERS_BYTES_MAX: usize = 64 * 1024;
const HTTP2_STREAMS_MAX: u32 = 128;
/// Longest pause between two looks at the start of a connection that may be HTTP/2's.
const PREFACE_PAUSE_MAX: Duration = Duration::from_millis(500);
const HTTP2_PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// The bytes that tell a client that it is not let in.
pub fn refusal(body: &str) -> Vec<u8> {
    let answer = format!(
        "HTTP/1.1 503 Service Unavailable\r\ncontent-type: text/plain; charset=utf-8\r\n\
         content-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    );
    answer.into_bytes()
}

/// Runs the tasks of an HTTP/2 connection, one for each request.
#[derive(Clone)]
struct TimedExecutor(Arc<Polls>);

impl<F> Executor<F> for TimedExecutor
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    fn execute(&self, task: F) {
        tokio::spawn(timed(self.0.clone(), task));
    }
}

/// Serves an accepted connection until its end.
pub async fn serve(
    stream: TcpStream,
    router: Router,
    gateway: Arc<Gateway>,
    slot: ConnectionSlot,
    addresses: ConnectionAddresses,
) {
    let header_timeout = gateway.node.config.limits.header_timeout;
    let mut stopping = slot.stopping.clone();
    let first_bytes = tokio::time::timeout(header_timeout, speaks_http2(&stream));
    let is_http2 = tokio::select! {
        found = first_bytes => match found {
            Ok(Ok(is_http2)) => is_http2,
            _ => return,
        },
        // Clients open connections that they may use later.
        _ = stopping.wait_for(|stage| *stage != Stage::Running) => return,
    };
    let executor = TimedExecutor(gateway.node.counters.polls.clone());
    let mut builder = hyper_util::server::conn::auto::Builder::new(executor);
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(header_timeout)
        .max_buf_size(HEADERS_BYTES_MAX);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(HTTP2_STREAMS_MAX)
        .max_header_list_size(HEADERS_BYTES_MAX as u32)
        .keep_alive_interval(header_timeout)
        .keep_alive_timeout(header_timeout);
    let builder = match is_http2 {
        true => builder.http2_only(),
        false => builder.http1_only(),
    };
    let mut stopped = slot.clone();
    let router = router
        .layer(axum::Extension(slot))
        .layer(axum::Extension(addresses));
    let service = TowerToHyperService::new(router);
    let delivery = Delivery::new(&gateway, is_http2);
    let watching = delivery.clone();
    let service = service_fn(move |request| {
        let response = service.call(request);
        let delivery = watching.clone();
        async move {
            let response = response.await.map(without_false_length);
            response.map(|response| delivery.watch(response))
        }
    });
    let stream = StallGuard::new(stream, gateway.node.config.limits.body_timeout);
    let connection = builder.serve_connection_with_upgrades(TokioIo::new(stream), service);
    tokio::pin!(connection);
    let mut asked = false;
    loop {
        tokio::select! {
            result = connection.as_mut() => {
                if let Err(error) = result {
                    tracing::debug!(error = lightcone_outbound::error_chain(&*error), "connection ended");
                }
                return;
            }
            _ = stopping.wait_for(|stage| *stage != Stage::Running), if !asked => {
                asked = true;
                connection.as_mut().graceful_shutdown();
            }
            _ = stopped.stopped() => return,
            () = delivery.failed() => {
                tracing::debug!("a client does not take its answers");
                return;
            }
        }
    }
}

/// Answers that have no body have no length of one (RFC 9110 §8.6); the router gives one to every answer.
fn without_false_length(mut response: Response) -> Response {
    let status = response.status();
    let bodiless = matches!(status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED);
    if status.is_informational() || bodiless {
        response.headers_mut().remove(header::CONTENT_LENGTH);
    }
    response
}

/// Looks at the first bytes without taking them. The library's own detection waits for ever.
async fn speaks_http2(stream: &TcpStream) -> std::io::Result<bool> {
    let mut start = [0; HTTP2_PREFACE.len()];
    let mut pause = Duration::from_millis(1);
    loop {
        let count = stream.peek(&mut start).await?;
        if count == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        if start[..count] != HTTP2_PREFACE[..count] {
            return Ok(false);
        }
        if count == HTTP2_PREFACE.len() {
            return Ok(true);
        }
        // The socket stays readable until the bytes are taken, so there is nothing to wait for but time. The rest comes at
        // once, or from a client that wants to keep this busy.
        tokio::time::sleep(pause).await;
        pause = (2 * pause).min(PREFACE_PAUSE_MAX);
    }
}
