//! Starting and stopping: options in, a handle out.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use lightcone_database::Engines;
use lightcone_gateway::{ConnectionAddresses, Gateway};
use lightcone_node::metrics::{add, keep_history};
use lightcone_node::network::{AddressCounts, ConnectionSlot, Counted, Network, Stage};
use lightcone_node::{Node, NodeOptions};
use lightcone_postgres::Postgres;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::error::Error;

/// How long open connections may take to end after the databases have ended, and then what is left of their tasks.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(3);
/// Pauses after a connection could not be accepted; they double.
const ACCEPT_PAUSE_MIN: Duration = Duration::from_millis(50);
const ACCEPT_PAUSE_MAX: Duration = Duration::from_secs(1);

/// Everything that a server needs to know before it starts.
pub struct ServerOptions {
    pub listen_addr: SocketAddr,
    /// Where PostgreSQL's protocol is spoken. None: nowhere.
    pub postgres_addr: Option<SocketAddr>,
    pub node: NodeOptions,
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
            node: NodeOptions::new(data_dir, engines),
        }
    }
}

/// The server. [`Server::bind`] starts it: what accepts connections on the current tokio runtime, what serves them on threads of its own.
pub struct Server;

/// A running server. [`ServerHandle::shutdown`] stops it in order; dropping the handle only ends its connections.
pub struct ServerHandle {
    local_addr: SocketAddr,
    metrics_addr: Option<SocketAddr>,
    postgres_addr: Option<SocketAddr>,
    node: Arc<Node>,
    stop: watch::Sender<Stage>,
    accepting: JoinHandle<()>,
}

impl Server {
    /// Opens the data directory, listens, and serves in the background.
    pub async fn bind(options: ServerOptions) -> Result<ServerHandle, Error> {
        // Reading and writing files.
        let opened = tokio::task::spawn_blocking(move || {
            let node = Arc::new(Node::open(options.node)?);
            lightcone_node::carry_messages(&node);
            node.tell_rights();
            Ok((Arc::new(Postgres::new(node.clone())?), node))
        });
        let opened: Result<_, Error> = opened.await.map_err(|error| lightcone_node::Error::Io {
            action: "prepare",
            path: PathBuf::new(),
            source: std::io::Error::other(error),
        })?;
        let (postgres, node) = opened?;
        let gateway = Gateway::new(node.clone());
        let config = &node.config;
        let listens = listen(options.listen_addr).await?;
        let postgres_listens = listen_if(options.postgres_addr.or(config.postgres.listen)).await?;
        let metrics_listens = listen_if(config.metrics.listen).await?;
        let others = postgres_listens.iter().chain(&metrics_listens);
        for (_, address) in others.chain([&listens]) {
            node.own_ports.add(address.port());
        }
        let (stop, stopping) = watch::channel(Stage::Running);
        let network = Network::start(config.network.threads(), &node.counters.polls, &stopping);
        let network = Arc::new(network.map_err(Error::NetworkThreads)?);
        // All end at the same word.
        let serve = |listener, protocol| {
            let (node, network) = (node.clone(), network.clone());
            tokio::spawn(accept(listener, protocol, node, network, stopping.clone()))
        };
        let http = |router: fn(Arc<Gateway>) -> Router| {
            Protocol::Http(router(gateway.clone()), gateway.clone())
        };
        let metrics_addr = metrics_listens.map(|(listener, address)| {
            serve(listener, http(lightcone_gateway::metrics_router));
            tracing::info!("metrics for all readers on {address}");
            address
        });
        let postgres_addr = postgres_listens.map(|(listener, address)| {
            serve(listener, Protocol::Postgres(postgres));
            tracing::info!("PostgreSQL's protocol on {address}");
            address
        });
        let stops = || stops(stopping.clone());
        tokio::spawn(lightcone_node::keep_open(node.clone(), stops()));
        tokio::spawn(keep_history(node.clone(), stops()));
        tokio::spawn(lightcone_node::scrub(node.clone(), stops()));
        let (listener, local_addr) = listens;
        let accepting = serve(listener, http(lightcone_gateway::router));
        tracing::info!("Starting SpacetimeDB listening on {local_addr}");
        Ok(ServerHandle {
            local_addr,
            metrics_addr,
            postgres_addr,
            node,
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
        self.node.counters.polls.longest()
    }

    /// Stops accepting, ends every database (clients get a Close 1001), and waits until they are all on disk.
    pub async fn shutdown(self) {
        self.stop.send_replace(Stage::Stopping);
        let _ = self.accepting.await;
        self.node.databases.shutdown().await;
        if let Some(traces) = &self.node.traces {
            traces.stop().await;
        }
        // It syncs, which may take long on a busy disk: not while others wait for closed files.
        let control = self.node.control.clone();
        let _ = tokio::task::spawn_blocking(move || control.close()).await;
        let drained = async {
            while self.node.counters.connections_open.load(Relaxed) > 0 {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        let _ = tokio::time::timeout(DRAIN_TIMEOUT, drained).await;
        self.stop.send_replace(Stage::Stopped);
        // The last task of a connection may still be on its way out. A program that starts another server on this data directory
        // needs its files closed.
        let open = Arc::downgrade(&self.node.open);
        drop(self.node);
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
    Http(Router, Arc<Gateway>),
    Postgres(Arc<Postgres>),
}

impl Protocol {
    fn refusal(&self, text: &str) -> Vec<u8> {
        match self {
            Protocol::Http(..) => lightcone_gateway::refusal(text),
            Protocol::Postgres(_) => lightcone_postgres::refusal(text),
        }
    }
}

async fn accept(
    listener: TcpListener,
    protocol: Protocol,
    node: Arc<Node>,
    network: Arc<Network>,
    mut stopping: watch::Receiver<Stage>,
) {
    let connections_max = node.config.limits.connections_max as u64;
    let on_loopback = listener
        .local_addr()
        .is_ok_and(|address| address.ip().to_canonical().is_loopback());
    let mut pause = ACCEPT_PAUSE_MIN;
    let addresses = AddressCounts::new(node.config.limits.connections_per_address_max);
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
        let refuse = |stream: &TcpStream, text| {
            add(&node.counters.connections_refused, 1);
            refuse(stream, &protocol.refusal(text));
        };
        if !node.descriptors.permit(&stream) {
            refuse(&stream, NO_DESCRIPTORS);
            continue;
        }
        let others = node.counters.connections_open.fetch_add(1, Relaxed);
        let counted = Counted(node.clone());
        if others >= connections_max {
            refuse(&stream, TOO_MANY_CONNECTIONS);
            continue;
        }
        // Only a connection that is gone already has no end here.
        let Ok(local) = stream.local_addr() else {
            continue;
        };
        let peer = peer.ip().to_canonical();
        let is_proxy = node.config.network.trusted_proxies.contains(peer);
        let Some(of_address) = addresses.enter(peer, is_proxy) else {
            refuse(&stream, TOO_MANY_OF_ADDRESS);
            continue;
        };
        add(&node.counters.connections_accepted, 1);
        let (counted, stopping) = (Arc::new((counted, of_address)), stopping.clone());
        let slot = |place| ConnectionSlot {
            counted,
            place: Arc::new(place),
            stopping,
        };
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "TCP_NODELAY");
        }
        match &protocol {
            Protocol::Http(router, gateway) => {
                let (router, gateway) = (router.clone(), gateway.clone());
                let addresses = ConnectionAddresses::new(peer, local, on_loopback);
                network.serve(stream, move |stream, place| {
                    lightcone_gateway::serve(stream, router, gateway, slot(place), addresses)
                });
            }
            Protocol::Postgres(postgres) => {
                let postgres = postgres.clone();
                network.serve(stream, move |stream, place| {
                    serve_postgres(stream, postgres, slot(place))
                });
            }
        }
    }
}

const NO_DESCRIPTORS: &str =
    "the server has no file descriptors left for connections: raise its limit (ulimit -n) [LC0329]";
const TOO_MANY_CONNECTIONS: &str =
    "the server has as many connections as limits.connections-max allows [LC0116]";
const TOO_MANY_OF_ADDRESS: &str =
    "your address has as many connections as limits.connections-per-address-max allows; close some [LC0126]";

async fn serve_postgres(stream: TcpStream, postgres: Arc<Postgres>, slot: ConnectionSlot) {
    let stopping = stops(slot.stopping.clone());
    let mut stopped = slot.clone();
    tokio::select! {
        () = lightcone_postgres::serve(stream, postgres, stopping) => {}
        () = stopped.stopped() => {}
    }
}

/// Never waits: the answer fits into the socket's buffer or is lost.
fn refuse(stream: &TcpStream, answer: &[u8]) {
    // A fresh socket has no readiness yet in the runtime's view, so the plain system call.
    let _ = rustix::net::send(stream, answer, rustix::net::SendFlags::DONTWAIT);
}

#[cfg(test)]
mod tests {
    use lightcone_accounts::Account;
    use lightcone_node::config::Config;
    use lightcone_node::databases::limits::outbound;
    use lightcone_node::network::Descriptors;

    use super::*;

    /// A listener of its own, for all callers or for some: a request from its machine counts as one of a program there.
    #[tokio::test]
    async fn modules_do_not_ask_their_own_server() {
        use lightcone_outbound::{Bounds, OutboundError, Request};
        let directory = tempfile::tempdir().expect("a directory");
        let text = "[module-http]\nallow = [\"127.0.0.0/8\", \"localhost\"]\n[metrics]\nlisten = \"127.0.0.1:0\"";
        let config = || Config::parse(text, "config.toml".as_ref()).expect("configuration");
        let address = || "127.0.0.1:0".parse().expect("an address");
        let engines = crate::fake_engine::engines();
        let mut options = ServerOptions::new(address(), directory.path().join("data"), engines);
        options.node.jwt_key_dir = Some(directory.path().join("keys"));
        options.node.config = Some(config());
        options.postgres_addr = Some(address());
        let server = Server::bind(options).await.expect("a server");
        let outbound = outbound(&config(), &server.node.own_ports, Descriptors::raise());
        let outbound = outbound.expect("a client").expect("there is one");
        let ask = |target: String| {
            let request = Request {
                method: "GET".to_owned(),
                url: format!("http://{target}/v1/metrics"),
                headers: Vec::new(),
                body: Default::default(),
                account: Account::root(lightcone_accounts::Kind::Process, usize::MAX),
            };
            let bounds = Bounds {
                timeout: Duration::from_secs(10),
                request_bytes_max: 1 << 20,
                response_bytes_max: 1 << 20,
            };
            let outbound = outbound.clone();
            async move { outbound.request(request, bounds).await }
        };
        let listeners = [
            Some(server.local_addr()),
            server.metrics_addr(),
            server.postgres_addr(),
        ];
        for listener in listeners {
            let port = listener.expect("it listens").port();
            for host in ["127.0.0.1", "localhost"] {
                let refused = ask(format!("{host}:{port}")).await;
                assert!(
                    matches!(refused, Err(OutboundError::OwnPort { .. })),
                    "{host}: {refused:?}"
                );
            }
        }
        server.shutdown().await;
    }
}
