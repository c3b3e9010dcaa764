//! One client's connection after the 101: a reader and a writer that take turns on one task (05 §2.7, §3). Small messages are written by
//! couriers, beside it.

use std::future::Future;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::Arc;

use axum::body::Bytes;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use hyper_util::server::conn::auto::upgrade::downcast;
use lightcone_control::DatabaseRecord;
use lightcone_database::{ConnectError, ConnectRequest};
use lightcone_limits::CompressionChoice;
use lightcone_node::config::Config;
use lightcone_node::databases::Running;
use lightcone_node::metrics::{add, DatabaseCounters, Gauge, SizesSeen};
use lightcone_node::network::ConnectionSlot;
use lightcone_wire::{Compression, CompressionPolicy};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::clock::watch_clock;
use super::frame::{self, ClosePayload, FrameReader};
use super::reader::Reader;
use super::signals::{ConnectionEnd, Signals};
use super::writer::{SharedWriter, Writer};
use crate::budget::Charge;
use crate::gateway::Gateway;
use crate::io::StallGuard;
use crate::pace::Pace;

/// An accepted client.
pub(super) struct Client {
    pub request: ConnectRequest,
    pub record: DatabaseRecord,
    pub compression: Compression,
    pub running: Running,
    /// Counts the connection as long as it is open.
    pub slot: ConnectionSlot,
}

/// The connection id is in use.
const IN_USE_CODE: u16 = 1008;
/// The session has a live connection (05 §2.7). Clients connect again soon, without raising their back-off.
const SESSION_IN_USE_CODE: u16 = 4000;

/// Tells a client that was not let in why, and waits until it has gone: what it sent meanwhile is thrown away.
async fn say_close(stream: &mut TcpStream, code: u16, reason: String) -> std::io::Result<()> {
    let mut close = Vec::new();
    frame::put_close(&mut close, &ClosePayload::Reason(code, reason));
    stream.write_all(&close).await?;
    stream.shutdown().await?;
    let mut ignored = [0; 1024];
    while stream.read(&mut ignored).await? > 0 {}
    Ok(())
}

/// Waits for the upgrade. Gives the stream, and what has come on it.
pub(super) async fn upgraded(state: &Gateway, upgrade: OnUpgrade) -> Option<(TcpStream, Bytes)> {
    let header_timeout = state.node.config.limits.header_timeout;
    let upgraded = tokio::time::timeout(header_timeout, upgrade).await.ok()?;
    let Ok(parts) = downcast::<TokioIo<StallGuard>>(upgraded.ok()?) else {
        tracing::error!("an upgraded connection is not a TCP stream");
        return None;
    };
    Some((parts.io.into_inner().into_inner(), parts.read_buf))
}

/// Waits for the upgrade, connects to the database and serves the client to its end.
pub(super) async fn serve(state: Arc<Gateway>, client: Client, upgrade: OnUpgrade) {
    let Some((mut stream, received)) = upgraded(&state, upgrade).await else {
        return;
    };
    let Client {
        request,
        running,
        mut slot,
        ..
    } = client;
    let (identity, rights, protocol) = (request.identity, request.rights, request.protocol);
    let counters = running.counters.clone();
    let connected = running.handle.connect(request).await;
    drop(running);
    let connection = match connected {
        Ok(connection) => connection,
        Err(error) => return refuse(&state, &counters, &mut stream, error).await,
    };
    // Taking rights away ends open connections; this one may have been opened in that moment.
    if state.node.rights(&client.record, &identity) < rights {
        return;
    }
    add(&counters.clients_spawned, 1);
    let _connected = Gauge::enter(&counters.clients_connected);
    let signals = Arc::new(Signals::default());
    let cut = connection.outgoing.cut_signal();
    let (read_half, write_half) = stream.into_split();
    let reader = Reader {
        frames: FrameReader::new(&received, state.node.config.limits.message_bytes_max),
        charge: Charge::none(&state.buffered_bytes),
        stream: read_half,
        sender: connection.sender,
        signals: &signals,
        counters: &counters,
        protocol,
    };
    let writer = Writer {
        stream: write_half,
        outgoing: connection.outgoing,
        signals: signals.clone(),
        counters: counters.clone(),
        protocol,
        asked: client.compression,
        policy: compression_policy(state.node.config.websocket.compression),
        stall_timeout: state.node.config.websocket.idle_timeout,
        out: Vec::new(),
        held: Vec::new(),
        sizes: SizesSeen::default(),
        compressing: state.making.clone(),
    };
    let writer = SharedWriter::new(writer, slot.place.courier.clone());
    let stopped = async {
        tokio::select! {
            // The writer would not notice while it waits for a client that does not read.
            () = cut.wait() => {}
            _ = slot.stopped() => {}
        }
    };
    let (reader, writer) = (reader.run(), writer.run());
    let end = run(&state.node.config, &signals, reader, writer, stopped).await;
    count_end(&counters, end);
}

/// How the server's choice changes what a client asked for.
fn compression_policy(choice: CompressionChoice) -> CompressionPolicy {
    match choice {
        CompressionChoice::Off => CompressionPolicy::Never,
        CompressionChoice::KeepOrder => CompressionPolicy::KeepOrder,
        CompressionChoice::AsAsked => CompressionPolicy::AsAsked,
    }
}

/// A client that is not let in is dropped without a Close and without any message (05 §2.7).
async fn refuse(
    state: &Gateway,
    counters: &DatabaseCounters,
    stream: &mut TcpStream,
    error: ConnectError,
) {
    if !matches!(error, ConnectError::Closed) {
        add(&counters.clients_rejected, 1);
    }
    tracing::debug!(%error, "client refused");
    let (code, reason) = match error {
        // The client is at fault and can mend it, so it hears why; the chapter leaves this case to us.
        ConnectError::InUse(reason) => (IN_USE_CODE, reason),
        ConnectError::SessionInUse(reason) => (SESSION_IN_USE_CODE, reason),
        ConnectError::Rejected(_) | ConnectError::Closed => return,
    };
    let timeout = state.node.config.websocket.close_handshake_timeout;
    let _ = tokio::time::timeout(timeout, say_close(stream, code, reason)).await;
}

/// Reader, writer and clock, until one of them ends the connection or it is `stopped`.
pub(super) async fn run(
    config: &Config,
    signals: &Signals,
    reader: impl Future<Output = ConnectionEnd>,
    writer: impl Future<Output = ConnectionEnd>,
    stopped: impl Future<Output = ()>,
) -> ConnectionEnd {
    let settings = &config.websocket;
    let (ping, idle) = (settings.ping_interval, settings.idle_timeout);
    let clock = watch_clock(signals, ping, idle, Pace::of(&config.limits));
    tokio::pin!(reader, writer, clock, stopped);
    let end = tokio::select! {
        biased;
        end = &mut writer => end,
        end = &mut reader => end,
        end = &mut clock => end,
        () = &mut stopped => ConnectionEnd::Dropped,
    };
    if end != ConnectionEnd::CloseSent {
        return end;
    }
    if signals.closed_by_client.load(Relaxed) {
        return ConnectionEnd::CloseReceived;
    }
    // The client's Close is awaited for a while.
    match tokio::time::timeout(settings.close_handshake_timeout, &mut reader).await {
        Ok(ConnectionEnd::CloseReceived) | Err(_) => ConnectionEnd::CloseSent,
        Ok(other) => other,
    }
}

fn count_end(counters: &DatabaseCounters, end: ConnectionEnd) {
    let of = counters;
    let (ended, cause) = match end {
        ConnectionEnd::CloseReceived => (&of.clients_closed, &of.disconnects_client_close),
        ConnectionEnd::CloseSent => (&of.clients_closed, &of.disconnects_server_close),
        ConnectionEnd::Idle => (&of.clients_idle_timed_out, &of.disconnects_error),
        ConnectionEnd::Gone | ConnectionEnd::Dropped => {
            (&of.clients_aborted, &of.disconnects_error)
        }
    };
    add(ended, 1);
    add(cause, 1);
}
