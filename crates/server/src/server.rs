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
use lightcone_accounts::{Account, Kind, Terms};
use lightcone_outbound::OwnPorts;
use lightcone_storage::DiskReserve;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{watch, Semaphore};
use tokio::task::JoinHandle;

use crate::address_counts::{self, AddressCounts};
use crate::auth::{Authority, KeyPair, KeyPaths};
use crate::client_address::ConnectionAddresses;
use crate::config::{Config, PublishAllowed};
use crate::control::ControlDb;
use crate::data_dir::DataDir;
use crate::database::{Courier, Engines, Loads};
use crate::databases::{Databases, ServerWide};
use crate::descriptors::Descriptors;
use crate::error::Error;
use crate::http::Delivery;
use crate::io::StallGuard;
use crate::metrics::{add, Scrapes, ServerCounters};
use crate::network::{Network, Stage};
use crate::polls::TimedExecutor;
use crate::publishing::{Publishing, WaitingMax};
use crate::state::{ServerState, LARGE_ANSWERS_MADE_MAX};
use crate::traces::Traces;

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

/// Everything a server needs to know before it starts.
pub struct ServerOptions {
    pub listen_addr: SocketAddr,
    /// Where PostgreSQL's protocol is spoken. None: nowhere.
    pub postgres_addr: Option<SocketAddr>,
    /// Created if it does not exist.
    pub data_dir: PathBuf,
    /// From the command line; wins over the configuration file.
    pub jwt_keys: Option<KeyPaths>,
    /// The directory of the key pair if neither [`ServerOptions::jwt_keys`] nor the configuration file names one.
    pub jwt_key_dir: Option<PathBuf>,
    /// Databases keep nothing on disk.
    pub in_memory: bool,
    /// What runs modules.
    pub engines: Engines,
    /// Read instead of the data directory's `config.toml`.
    pub config: Option<Config>,
    /// Value of `TEMP_SPACETIMEAUTH_ISSUER_REQUIRED_TO_PUBLISH` (06 §3.7).
    pub issuer_required_to_publish: Option<String>,
    pub publish_environment: PublishEnvironment,
}

/// Values of [`PUBLISH_ALLOWED_VARIABLE`](crate::config::PUBLISH_ALLOWED_VARIABLE) and
/// [`PUBLISH_OWNERS_VARIABLE`](crate::config::PUBLISH_OWNERS_VARIABLE).
#[derive(Clone, Debug, Default)]
pub struct PublishEnvironment {
    pub allowed: Option<String>,
    pub owners: Option<String>,
}

impl ServerOptions {
    /// Options with defaults for everything else.
    pub fn new(
        listen_addr: SocketAddr,
        data_dir: impl Into<PathBuf>,
        engines: Engines,
    ) -> ServerOptions {
        ServerOptions {
            listen_addr,
            postgres_addr: None,
            data_dir: data_dir.into(),
            jwt_keys: None,
            jwt_key_dir: None,
            in_memory: false,
            engines,
            config: None,
            issuer_required_to_publish: None,
            publish_environment: PublishEnvironment::default(),
        }
    }
}

/// The server. [`Server::bind`] starts it: what accepts connections on the current tokio runtime, what serves them on threads of its own.
pub struct Server;

/// A running server. Dropping the handle does not stop it.
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
        let bind_error = |source| Error::Bind {
            address: listen_addr,
            source,
        };
        let listener = TcpListener::bind(listen_addr).await.map_err(bind_error)?;
        let local_addr = listener.local_addr().map_err(bind_error)?;
        let postgres_listener = match postgres_addr {
            Some(address) => Some(
                TcpListener::bind(address)
                    .await
                    .map_err(|source| Error::Bind { address, source })?,
            ),
            None => None,
        };
        let metrics_listener = match state.config.metrics.listen {
            Some(address) => Some(
                TcpListener::bind(address)
                    .await
                    .map_err(|source| Error::Bind { address, source })?,
            ),
            None => None,
        };
        for listener in [
            Some(&listener),
            postgres_listener.as_ref(),
            metrics_listener.as_ref(),
        ] {
            if let Some(Ok(address)) = listener.map(TcpListener::local_addr) {
                state.own_ports.add(address.port());
            }
        }
        let (stop, stopping) = watch::channel(Stage::Running);
        let network = Network::start(
            state.config.network.threads(),
            &state.counters.polls,
            &stopping,
        );
        let network = Arc::new(network.map_err(Error::NetworkThreads)?);
        let metrics_addr = match metrics_listener {
            Some(listener) => {
                let address = listener.local_addr().map_err(bind_error)?;
                let router = crate::http::metrics_router(state.clone());
                // Ends with the main one, at the same word.
                tokio::spawn(accept(
                    listener,
                    Protocol::Http(router),
                    state.clone(),
                    network.clone(),
                    stopping.clone(),
                ));
                tracing::info!("metrics for everybody on {address}");
                Some(address)
            }
            None => None,
        };
        let postgres_addr = match postgres_listener {
            Some(listener) => {
                let address = listener.local_addr().map_err(bind_error)?;
                tokio::spawn(accept(
                    listener,
                    Protocol::Postgres,
                    state.clone(),
                    network.clone(),
                    stopping.clone(),
                ));
                tracing::info!("PostgreSQL's protocol on {address}");
                Some(address)
            }
            None => None,
        };
        let router = crate::http::router(state.clone());
        let mut running = stopping.clone();
        let stopped = async move {
            let _ = running.wait_for(|stage| *stage != Stage::Running).await;
        };
        tokio::spawn(crate::keeper::run(state.clone(), stopped));
        let accepting = tokio::spawn(accept(
            listener,
            Protocol::Http(router),
            state.clone(),
            network,
            stopping,
        ));
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
    pub(crate) fn own_ports(&self) -> &OwnPorts {
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
        // The last task of a connection may still be on its way out. Whoever starts another server on this data directory
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

fn prepare(options: ServerOptions) -> Result<ServerState, Error> {
    let data_dir = DataDir::open(&options.data_dir)?;
    let mut config = match options.config {
        Some(config) => config,
        None => Config::load_or_create(&data_dir.config_file())?,
    };
    for warning in &config.warnings {
        tracing::warn!("config.toml: {warning}");
    }
    let publish = &options.publish_environment;
    config
        .publish
        .complete(publish.allowed.as_deref(), publish.owners.as_deref())?;
    let issuer_required_to_publish = options
        .issuer_required_to_publish
        .map(|issuer| issuer.trim_end_matches('/').to_owned())
        .filter(|issuer| !issuer.is_empty());
    if issuer_required_to_publish.is_some() {
        // That is who may publish then.
        config.publish.allowed.get_or_insert(PublishAllowed::Anyone);
    }
    let authority = &config.certificate_authority;
    let from_config = match (&authority.jwt_priv_key_path, &authority.jwt_pub_key_path) {
        (Some(private), Some(public)) => Some(KeyPaths {
            private: private.clone(),
            public: public.clone(),
        }),
        _ => None,
    };
    let key_paths = options
        .jwt_keys
        .or(from_config)
        .or(options.jwt_key_dir.as_deref().map(KeyPaths::in_directory))
        .ok_or(Error::NoKeyPair)?;
    let keys = KeyPair::load_or_create(&key_paths)?;
    let control = ControlDb::open(&data_dir.control_directory())?;
    let control = Arc::new(control.bounded(config.bounds()));
    let orphans = crate::orphans::find(&data_dir, &control)?;
    if !orphans.is_empty() {
        // Large ones take their time, and nobody waits for them.
        let _ = std::thread::Builder::new()
            .name("lc-remove".to_owned())
            .spawn(move || crate::orphans::remove(orphans));
    }
    let postgres = crate::postgres::Shared::new(&config.postgres)?;
    let limits = crate::database::limits(&config);
    let disk = DiskReserve::new(options.data_dir, config.limits.disk_reserve_bytes);
    let (own_ports, descriptors) = (OwnPorts::default(), Descriptors::raise());
    // All memory that is held on behalf of others is below this account.
    let process = Account::root(Kind::Process, usize::MAX);
    let outbound = crate::database::outbound(&config, &own_ports, descriptors)?;
    let commons = crate::database::commons(&process, &config, outbound);
    let traces = Traces::start(&config.tracing)?;
    if let Some(traces) = &traces {
        commons.set_tracer(traces.clone());
    }
    Ok(ServerState {
        traces,
        scrapes: Scrapes::default(),
        authority: Authority::new(keys, &config.auth)?,
        databases: Databases::new(
            data_dir,
            control.clone(),
            options.in_memory,
            options.engines,
            limits,
            ServerWide {
                commons,
                loads: Arc::new(Loads::new(config.limits.loads_given_up_max)),
                disk: Arc::new(disk),
                series_max: config.limits.metrics_databases_max,
            },
        ),
        open: control.open_token(),
        postgres,
        control,
        issuer_required_to_publish,
        counters: ServerCounters::default(),
        descriptors,
        own_ports,
        making: Arc::new(Semaphore::new(LARGE_ANSWERS_MADE_MAX)),
        buffered_bytes: process.open(
            Kind::Requests,
            Terms::exact(config.limits.buffered_bytes_max),
        ),
        upload_bytes: process.open(Kind::Uploads, Terms::exact(config.limits.upload_bytes_max)),
        rehearsing: Publishing::few(WaitingMax {
            all: config.limits.publishes_waiting_max,
            per_owner: config.limits.publishes_waiting_per_owner_max,
        }),
        publishing: Publishing::new(
            std::thread::available_parallelism().map_or(1, usize::from),
            WaitingMax {
                all: config.limits.publishes_waiting_max,
                per_owner: config.limits.publishes_waiting_per_owner_max,
            },
        ),
        config,
    })
}

/// Counts a TCP connection from its acceptance to its end, upgraded or not.
#[derive(Clone)]
pub(crate) struct ConnectionSlot {
    _counted: Arc<(Counted, address_counts::Counted)>,
    /// Tells when the server has stopped waiting.
    stopping: watch::Receiver<Stage>,
    /// Of the connection's thread.
    pub courier: Arc<Courier>,
}

struct Counted(Arc<ServerState>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.counters.connections_open.fetch_sub(1, Relaxed);
    }
}

impl ConnectionSlot {
    /// Completes when the server wants every connection to be gone.
    pub(crate) async fn stopped(&mut self) {
        let _ = self
            .stopping
            .wait_for(|stage| *stage == Stage::Stopped)
            .await;
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
        let slot = |courier| ConnectionSlot {
            _counted: counted,
            stopping,
            courier,
        };
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "TCP_NODELAY");
        }
        match &protocol {
            Protocol::Http(router) => {
                let (router, state) = (router.clone(), state.clone());
                network.serve(stream, move |stream, courier| {
                    serve_connection(stream, router, state, slot(courier), peer)
                });
            }
            Protocol::Postgres => {
                let state = state.clone();
                network.serve(stream, move |stream, courier| {
                    serve_postgres(stream, state, slot(courier))
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
    let mut stopping = slot.stopping.clone();
    let stopping = async move {
        let _ = stopping.wait_for(|stage| *stage != Stage::Running).await;
    };
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
                    tracing::debug!(error = crate::http::error_chain(&*error), "connection ended");
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
        // once, or from somebody who wants to keep this busy.
        tokio::time::sleep(pause).await;
        pause = (2 * pause).min(PREFACE_PAUSE_MAX);
    }
}

/// The state of a server that does not listen.
#[cfg(test)]
pub(crate) fn state_for_tests(directory: &std::path::Path) -> Arc<ServerState> {
    struct NoEngine;
    impl lightcone_host::ModuleEngine for NoEngine {
        fn name(&self) -> &'static str {
            "none"
        }

        fn load(
            &self,
            _: &[u8],
            _: &lightcone_host::InstanceOptions,
        ) -> Result<Box<dyn lightcone_host::LoadedModule>, lightcone_host::HostError> {
            Err(lightcone_host::HostError::Compile("no engine".into()))
        }
    }
    let engines = Engines {
        wasm: Arc::new(NoEngine),
        js: None,
    };
    let address = SocketAddr::from(([127, 0, 0, 1], 0));
    let mut options = ServerOptions::new(address, directory.join("data"), engines);
    options.jwt_key_dir = Some(directory.join("keys"));
    options.config = Some(Config::default());
    Arc::new(prepare(options).expect("a state"))
}
