//! Starting and stopping: options in, a handle out.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::Arc;
use std::time::Duration;

use axum::http::{header, StatusCode};
use axum::response::Response;
use axum::Router;
use hyper::service::{service_fn, Service as _};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::address_counts::AddressCounts;
use crate::client_address::ConnectionAddresses;
use crate::connection_slot::{ConnectionSlot, Counted};
use crate::error::Error;
use crate::http::Delivery;
use crate::io::StallGuard;
use crate::metrics::add;
use crate::network::{Network, Stage};
use crate::polls::TimedExecutor;
use crate::startup::{prepare, ServerOptions};
use crate::state::ServerState;

/// How long open connections may take to end after the databases have ended, and then what is left of their tasks.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(3);
/// Pauses after a connection could not be accepted; they double.
const ACCEPT_PAUSE_MIN: Duration = Duration::from_millis(50);
const ACCEPT_PAUSE_MAX: Duration = Duration::from_secs(1);
const HEADERS_BYTES_MAX: usize = 64 * 1024;
const HTTP2_STREAMS_MAX: u32 = 128;
/// Longest pause between two looks at the start of a connection that may be HTTP/2's.
const PREFACE_PAUSE_MAX: Duration = Duration::from_millis(500);
const HTTP2_PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// The server. [`Server::bind`] starts it: what accepts connections on the current tokio runtime, what serves them on threads of its own.
pub struct Server;

/// A running server. [`ServerHandle::shutdown`] stops it in order; dropping the handle only ends its connections.
pub struct ServerHandle {
    local_addr: SocketAddr,
    metrics_addr: Option<SocketAddr>,
    postgres_addr: Option<SocketAddr>,
    state: Arc<ServerState>,
    stop: watch::Sender<Stage>,
    accepting: JoinHandle<()>,
}

impl Server {
    /// Opens the data directory, listens, and serves in the background.
    pub async fn bind(options: ServerOptions) -> Result<ServerHandle, Error> {
        let listen_addr = options.listen_addr;
        let postgres_addr = options.postgres_addr;
        // Reading and writing files.
        let state = tokio::task::spawn_blocking(move || prepare(options))
            .await
            .map_err(|error| Error::Io {
                action: "prepare",
                path: PathBuf::new(),
                source: std::io::Error::other(error),
            })??;
        let state = Arc::new(state);
        let postgres_addr = postgres_addr.or(state.config.postgres.listen);
        let main = listen(listen_addr).await?;
        let postgres = listen_if(postgres_addr).await?;
        let metrics = listen_if(state.config.metrics.listen).await?;
        let all = [Some(&main), postgres.as_ref(), metrics.as_ref()];
        for (_, address) in all.into_iter().flatten() {
            state.own_ports.add(address.port());
        }
        let (stop, stopping) = watch::channel(Stage::Running);
        let network = Network::start(
            state.config.network.threads(),
            &state.counters.polls,
            &stopping,
        );
        let network = Arc::new(network.map_err(Error::NetworkThreads)?);
        // All end at the same word.
        let serve = |listener, protocol| {
            let (state, network) = (state.clone(), network.clone());
            tokio::spawn(accept(listener, protocol, state, network, stopping.clone()))
        };
        let metrics_addr = metrics.map(|(listener, address)| {
            let router = crate::http::metrics_router(state.clone());
            serve(listener, Protocol::Http(router));
            tracing::info!("metrics for all readers on {address}");
            address
        });
        let postgres_addr = postgres.map(|(listener, address)| {
            serve(listener, Protocol::Postgres);
            tracing::info!("PostgreSQL's protocol on {address}");
            address
        });
        tokio::spawn(crate::keeper::run(state.clone(), stops(stopping.clone())));
        let (listener, local_addr) = main;
        let accepting = serve(listener, Protocol::Http(crate::http::router(state.clone())));
        tracing::info!("Starting SpacetimeDB listening on {local_addr}");
        Ok(ServerHandle {
            local_addr,
            metrics_addr,
            postgres_addr,
            state,
            stop,
            accepting,
        })
    }
}

/// Until the server begins to stop.
async fn stops(mut stopping: watch::Receiver<Stage>) {
    let _ = stopping.wait_for(|stage| *stage != Stage::Running).await;
}

async fn listen(address: SocketAddr) -> Result<(TcpListener, SocketAddr), Error> {
    let failed = |source| Error::Bind { address, source };
    let listener = TcpListener::bind(address).await.map_err(failed)?;
    let bound_to = listener.local_addr().map_err(failed)?;
    Ok((listener, bound_to))
}

async fn listen_if(
    address: Option<SocketAddr>,
) -> Result<Option<(TcpListener, SocketAddr)>, Error> {
    match address {
        Some(address) => Ok(Some(listen(address).await?)),
        None => Ok(None),
    }
}

impl ServerHandle {
    pub fn local_addr(&self) -> SocketAddr {
        self.local_addr
    }

    /// Where `metrics.listen` is served.
    pub fn metrics_addr(&self) -> Option<SocketAddr> {
        self.metrics_addr
    }

    /// Where PostgreSQL's protocol is spoken.
    pub fn postgres_addr(&self) -> Option<SocketAddr> {
        self.postgres_addr
    }

    /// The longest time that the task of a connection has kept its thread: what `lightcone_network_poll_longest_seconds` tells.
    pub fn longest_poll(&self) -> Duration {
        self.state.counters.polls.longest()
    }

    #[cfg(test)]
    pub(crate) fn own_ports(&self) -> &lightcone_outbound::OwnPorts {
        &self.state.own_ports
    }

    /// Stops accepting, ends every database (clients get a Close 1001), and waits until they are all on disk.
    pub async fn shutdown(self) {
        self.stop.send_replace(Stage::Stopping);
        let _ = self.accepting.await;
        self.state.databases.shutdown().await;
        if let Some(traces) = &self.state.traces {
            traces.stop().await;
        }
        // It syncs, which may take long on a busy disk: not while others wait for closed files.
        let control = self.state.control.clone();
        let _ = tokio::task::spawn_blocking(move || control.close()).await;
        let drained = async {
            while self.state.counters.connections_open.load(Relaxed) > 0 {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        let _ = tokio::time::timeout(DRAIN_TIMEOUT, drained).await;
        self.stop.send_replace(Stage::Stopped);
        // The last task of a connection may still be on its way out. A program that starts another server on this data directory
        // needs its files closed.
        let open = Arc::downgrade(&self.state.open);
        drop(self.state);
        let closed = async {
            while open.strong_count() > 0 {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        if tokio::time::timeout(DRAIN_TIMEOUT, closed).await.is_err() {
            tracing::warn!("a request still runs; the data directory stays open until it ends");
        }
    }
}

/// What is spoken on a listener.
#[derive(Clone)]
enum Protocol {
    Http(Router),
    Postgres,
}

impl Protocol {
    fn refusal(&self, text: &str) -> Vec<u8> {
        match self {
            Protocol::Http(_) => http_refusal(text),
            Protocol::Postgres => crate::postgres::refusal(text),
        }
    }
}

async fn accept(
    listener: TcpListener,
    protocol: Protocol,
    state: Arc<ServerState>,
    network: Arc<Network>,
    mut stopping: watch::Receiver<Stage>,
) {
    let connections_max = state.config.limits.connections_max as u64;
    let on_loopback = listener
        .local_addr()
        .is_ok_and(|address| address.ip().to_canonical().is_loopback());
    let mut pause = ACCEPT_PAUSE_MIN;
    let addresses = AddressCounts::new(state.config.limits.connections_per_address_max);
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = stopping.wait_for(|stage| *stage != Stage::Running) => return,
        };
        let (stream, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                // Usually out of file descriptors: wait for some to be closed.
                if pause == ACCEPT_PAUSE_MIN {
                    tracing::warn!(%error, "cannot accept a connection; trying again, more and more slowly");
                }
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(ACCEPT_PAUSE_MAX);
                continue;
            }
        };
        pause = ACCEPT_PAUSE_MIN;
        if !state.descriptors.permit(&stream) {
            add(&state.counters.connections_refused, 1);
            refuse(&stream, &protocol, "the server has no file descriptors left for connections: raise its limit (ulimit -n) [LC0329]");
            continue;
        }
        if state.counters.connections_open.fetch_add(1, Relaxed) >= connections_max {
            state.counters.connections_open.fetch_sub(1, Relaxed);
            add(&state.counters.connections_refused, 1);
            refuse(&stream, &protocol, TOO_MANY_CONNECTIONS);
            continue;
        }
        let counted = Counted(state.clone());
        // Only a connection that is gone already has no end here.
        let Ok(local) = stream.local_addr() else {
            continue;
        };
        let peer = ConnectionAddresses::new(peer.ip(), local, on_loopback);
        let is_proxy = peer.is_trusted_proxy(&state.config.network.trusted_proxies);
        let Some(of_address) = addresses.enter(peer.peer(), is_proxy) else {
            add(&state.counters.connections_refused, 1);
            refuse(&stream, &protocol, TOO_MANY_OF_ADDRESS);
            continue;
        };
        add(&state.counters.connections_accepted, 1);
        let (counted, stopping) = (Arc::new((counted, of_address)), stopping.clone());
        let slot = |place| ConnectionSlot {
            _counted: counted,
            place: Arc::new(place),
            stopping,
        };
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "TCP_NODELAY");
        }
        match &protocol {
            Protocol::Http(router) => {
                let (router, state) = (router.clone(), state.clone());
                network.serve(stream, move |stream, place| {
                    serve_connection(stream, router, state, slot(place), peer)
                });
            }
            Protocol::Postgres => {
                let state = state.clone();
                network.serve(stream, move |stream, place| {
                    serve_postgres(stream, state, slot(place))
                });
            }
        }
    }
}

const TOO_MANY_CONNECTIONS: &str =
    "the server has as many connections as limits.connections-max allows [LC0116]";
const TOO_MANY_OF_ADDRESS: &str =
    "your address has as many connections as limits.connections-per-address-max allows; close some [LC0126]";

async fn serve_postgres(stream: TcpStream, state: Arc<ServerState>, slot: ConnectionSlot) {
    let stopping = stops(slot.stopping.clone());
    let mut stopped = slot.clone();
    tokio::select! {
        () = crate::postgres::serve(stream, state, stopping) => {}
        () = stopped.stopped() => {}
    }
}

/// Never waits: the answer fits into the socket's buffer or is lost.
fn refuse(stream: &TcpStream, protocol: &Protocol, text: &str) {
    let answer = protocol.refusal(text);
    // A fresh socket has no readiness yet in the runtime's view, so the plain system call.
    let _ = rustix::net::send(stream, &answer, rustix::net::SendFlags::DONTWAIT);
}

fn http_refusal(body: &str) -> Vec<u8> {
    let answer = format!(
        "HTTP/1.1 503 Service Unavailable\r\ncontent-type: text/plain; charset=utf-8\r\n\
         content-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    );
    answer.into_bytes()
}

async fn serve_connection(
    stream: TcpStream,
    router: Router,
    state: Arc<ServerState>,
    slot: ConnectionSlot,
    addresses: ConnectionAddresses,
) {
    let header_timeout = state.config.limits.header_timeout;
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
    let mut builder =
        hyper_util::server::conn::auto::Builder::new(TimedExecutor(state.counters.polls.clone()));
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
    let builder = if is_http2 {
        builder.http2_only()
    } else {
        builder.http1_only()
    };
    let mut stopped = slot.clone();
    let router = router
        .layer(axum::Extension(slot))
        .layer(axum::Extension(addresses));
    let service = TowerToHyperService::new(router);
    let delivery = Delivery::new(&state, is_http2);
    let watching = delivery.clone();
    let service = service_fn(move |request| {
        let response = service.call(request);
        let delivery = watching.clone();
        async move {
            let response = response.await.map(without_false_length);
            response.map(|response| delivery.watch(response))
        }
    });
    let connection = builder.serve_connection_with_upgrades(
        TokioIo::new(StallGuard::new(stream, state.config.limits.body_timeout)),
        service,
    );
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
