//! One client's connection after the 101: a reader and a writer that take turns on one task (05 §2.7, §3).
//!
//! The reader hands every message that is in the receive buffer to the database before it waits for the socket again.
//! The writer takes everything that the database has queued, puts it into as few frames as the version allows, and
//! hands it to the socket with one write.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use axum::body::Bytes;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use lightcone_types::ConnectionId;
use lightcone_wire::payload::{body_ranges, encode_payload};
use lightcone_wire::{Compression, CompressionPolicy, Protocol};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{ReadHalf, WriteHalf};
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::Notify;

use super::frame::{self, ClosePayload, Event, FrameReader};
use crate::auth::Caller;
use crate::budget::Charge;
use crate::database::{
    ConnectError, ConnectRequest, MessageBatch, Outgoing, OutgoingReceiver, RequestSender,
    SubmitError,
};
use crate::databases::Running;
use crate::io::StallGuard;
use crate::metrics::{add, DatabaseCounters, Gauge};
use crate::pace::{Pace, Patience};
use crate::server::ConnectionSlot;
use crate::state::ServerState;

/// Most messages that are taken from the database's queue at once.
const DRAIN_MESSAGES_MAX: usize = 4096;
/// A drain stops growing here; the rest is taken when this much is written.
const DRAIN_BYTES_MAX: usize = 1024 * 1024;
/// Longer messages go out in fragments of this size, so that a Ping need not wait for the end of them.
const FRAGMENT_BYTES: usize = 1024 * 1024;
/// The write buffer is written out when it is longer.
const WRITE_BYTES: usize = 256 * 1024;
/// Compressing more than this holds up other connections of the thread noticeably.
const COMPRESS_BYTES_AT_ONCE: usize = 256 * 1024;
/// Reads start with a buffer of this size and grow it while it is filled.
const READ_BYTES_MIN: usize = 4 * 1024;
const READ_BYTES_MAX: usize = 64 * 1024;

/// An accepted client.
pub(super) struct Client {
    pub caller: Caller,
    pub connection_id: ConnectionId,
    pub protocol: Protocol,
    pub compression: Compression,
    pub confirmed: bool,
    pub running: Running,
    /// Counts the connection as long as it is open.
    pub slot: ConnectionSlot,
}

/// Why a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// A Close was written.
    CloseSent,
    /// The client's Close has come, and ours was sent before.
    CloseReceived,
    /// The client went away or broke the rules of the protocol below messages.
    Gone,
    /// Nothing came from the client for too long, or it took nothing.
    Idle,
    /// The database ended the connection without a Close.
    Dropped,
}

/// What reader, writer and clock tell each other. They run on one task, so nothing here is ever contended.
#[derive(Default)]
struct Shared {
    control: Mutex<Control>,
    wake_writer: Notify,
    /// Something was received since the clock looked.
    active: AtomicBool,
    /// The reader waits for the database, not for the client.
    submitting: AtomicBool,
    /// Which message the client has begun and not ended; 0 if none.
    unfinished: AtomicU64,
    received_bytes: AtomicU64,
    /// A Ping is unanswered.
    ping_pending: AtomicBool,
    closed_by_client: AtomicBool,
}

/// Frames that the writer is to send between messages.
#[derive(Default)]
struct Control {
    /// The last unanswered Ping of the client: only the latest must be answered (RFC 6455 §5.5.3).
    pong: Option<Bytes>,
    ping: bool,
    close: Option<ClosePayload>,
}

impl Shared {
    fn control(&self, change: impl FnOnce(&mut Control)) {
        change(
            &mut self
                .control
                .lock()
                .unwrap_or_else(std::sync::PoisonError::into_inner),
        );
        self.wake_writer.notify_one();
    }

    fn take_control(&self) -> Control {
        std::mem::take(
            &mut self
                .control
                .lock()
                .unwrap_or_else(std::sync::PoisonError::into_inner),
        )
    }

    fn close(&self, payload: ClosePayload) {
        // The first reason counts.
        self.control(|control| {
            control.close.get_or_insert(payload);
        });
    }
}

/// Tells a client that was not let in why, and waits until it has gone: what it sent meanwhile is thrown away.
async fn say_close(stream: &mut tokio::net::TcpStream, reason: String) -> std::io::Result<()> {
    let mut close = Vec::new();
    frame::put_close(&mut close, &ClosePayload::Reason(1008, reason));
    stream.write_all(&close).await?;
    stream.shutdown().await?;
    let mut ignored = [0; 1024];
    while stream.read(&mut ignored).await? > 0 {}
    Ok(())
}

/// Waits for the upgrade, connects to the database and serves the client to its end.
pub(super) async fn serve(state: Arc<ServerState>, client: Client, upgrade: OnUpgrade) {
    let Ok(Ok(upgraded)) = tokio::time::timeout(state.config.limits.header_timeout, upgrade).await
    else {
        return;
    };
    let Ok(parts) =
        hyper_util::server::conn::auto::upgrade::downcast::<TokioIo<StallGuard>>(upgraded)
    else {
        tracing::error!("an upgraded connection is not a TCP stream");
        return;
    };
    let mut slot = client.slot;
    let (mut stream, received) = (parts.io.into_inner().into_inner(), parts.read_buf);
    let counters = client.running.counters.clone();
    let request = ConnectRequest {
        identity: client.caller.identity,
        connection_id: client.connection_id,
        jwt_payload: client.caller.jwt_payload,
        confirmed: client.confirmed,
        protocol: client.protocol,
        token: client.caller.token,
    };
    let connection = match client.running.handle.connect(request).await {
        Ok(connection) => connection,
        Err(error) => {
            // Dropped without a Close and without any message (05 §2.7).
            if !matches!(error, ConnectError::Closed) {
                add(&counters.clients_rejected, 1);
            }
            tracing::debug!(%error, "client refused");
            if let ConnectError::InUse(reason) = error {
                // The client is at fault and can mend it, so it hears why; the chapter leaves this case to us.
                let timeout = state.config.websocket.close_handshake_timeout;
                let _ = tokio::time::timeout(timeout, say_close(&mut stream, reason)).await;
            }
            return;
        }
    };
    drop(client.running);
    add(&counters.clients_spawned, 1);
    let _connected = Gauge::enter(&counters.clients_connected);

    let settings = &state.config.websocket;
    let shared = Shared::default();
    let (read_half, write_half) = stream.split();
    let cut = connection.outgoing.cut_signal();
    let reader = Reader {
        frames: FrameReader::new(&received, state.config.limits.message_bytes_max),
        charge: Charge::none(&state.buffered_bytes),
        stream: read_half,
        sender: connection.sender,
        shared: &shared,
        counters: &counters,
        protocol: client.protocol,
    };
    let writer = Writer {
        stream: write_half,
        outgoing: connection.outgoing,
        shared: &shared,
        counters: &counters,
        protocol: client.protocol,
        asked: client.compression,
        policy: super::compression_policy(settings.compression),
        stall_timeout: settings.idle_timeout,
        out: Vec::new(),
    };
    let end = {
        let reader = reader.run();
        let writer = writer.run();
        let clock = watch_clock(
            &shared,
            settings.ping_interval,
            settings.idle_timeout,
            Pace::of(&state.config.limits),
        );
        tokio::pin!(reader, writer, clock);
        let mut end = tokio::select! {
            biased;
            end = &mut writer => end,
            end = &mut reader => end,
            end = &mut clock => end,
            // The writer would not notice while it waits for a client that does not read.
            () = cut.wait() => End::Dropped,
            _ = slot.stopped() => End::Dropped,
        };
        if end == End::CloseSent {
            if shared.closed_by_client.load(Relaxed) {
                end = End::CloseReceived;
            } else if let Ok(after) =
                tokio::time::timeout(settings.close_handshake_timeout, &mut reader).await
            {
                end = if after == End::CloseReceived {
                    End::CloseSent
                } else {
                    after
                };
            }
        }
        end
    };
    let (ended, cause) = match end {
        End::CloseReceived => (&counters.clients_closed, &counters.disconnects_client_close),
        End::CloseSent => (&counters.clients_closed, &counters.disconnects_server_close),
        End::Idle => (
            &counters.clients_idle_timed_out,
            &counters.disconnects_error,
        ),
        End::Gone | End::Dropped => (&counters.clients_aborted, &counters.disconnects_error),
    };
    add(ended, 1);
    add(cause, 1);
}

struct Reader<'a> {
    frames: FrameReader,
    charge: Charge,
    stream: ReadHalf<'a>,
    sender: RequestSender,
    shared: &'a Shared,
    counters: &'a DatabaseCounters,
    protocol: Protocol,
}

impl Reader<'_> {
    async fn run(mut self) -> End {
        let mut read_bytes = READ_BYTES_MIN;
        let mut closing = false;
        let (mut message_number, mut received_bytes) = (1, 0);
        loop {
            let (mut messages, mut bytes) = (0, 0);
            loop {
                match self.frames.next_event() {
                    Ok(Some(Event::Binary(payload))) if !closing => {
                        messages += 1;
                        bytes += payload.len() as u64;
                        closing = !self.submit(payload).await;
                    }
                    Ok(Some(Event::Text)) if !closing => {
                        let reason = format!(
                            "{} websocket does not support text messages",
                            self.protocol.name()
                        );
                        self.shared.close(ClosePayload::Reason(1011, reason));
                        closing = true;
                    }
                    Ok(Some(Event::Binary(_) | Event::Text)) => {}
                    Ok(Some(Event::Ping(payload))) => {
                        self.shared.control(|control| control.pong = Some(payload))
                    }
                    Ok(Some(Event::Pong)) => self.shared.ping_pending.store(false, Relaxed),
                    Ok(Some(Event::Close(payload))) => {
                        self.shared.closed_by_client.store(true, Relaxed);
                        if closing {
                            return End::CloseReceived;
                        }
                        // The writer finishes its message, echoes the Close and ends the connection.
                        self.shared.close(ClosePayload::Echo(payload));
                        return std::future::pending().await;
                    }
                    Ok(None) => break,
                    Err(error) => {
                        tracing::debug!(%error, "client breaks the WebSocket protocol");
                        return End::Gone;
                    }
                }
            }
            if messages > 0 {
                add(&self.counters.requests, messages);
                add(&self.counters.request_bytes, bytes);
            }
            message_number += messages;
            let pending_bytes = self.frames.pending_bytes();
            let unfinished = if pending_bytes > 0 { message_number } else { 0 };
            self.shared.unfinished.store(unfinished, Relaxed);
            self.shared.received_bytes.store(received_bytes, Relaxed);
            if !self.charge.hold(pending_bytes) && !closing {
                self.shared
                    .close(ClosePayload::Reason(1013, "too many requests".into()));
                closing = true;
            }

            let buffer = self.frames.buffer();
            if buffer.capacity() - buffer.len() < read_bytes / 2 {
                buffer.reserve(read_bytes);
            }
            let room = buffer.capacity() - buffer.len();
            match self.stream.read_buf(buffer).await {
                Ok(0) | Err(_) => return End::Gone,
                Ok(count) => {
                    self.shared.active.store(true, Relaxed);
                    received_bytes += count as u64;
                    if count == room {
                        read_bytes = (read_bytes * 2).min(READ_BYTES_MAX);
                    } else if count < READ_BYTES_MIN {
                        read_bytes = READ_BYTES_MIN;
                    }
                }
            }
        }
    }

    /// False when the connection is to be closed.
    async fn submit(&self, payload: Bytes) -> bool {
        self.shared.submitting.store(true, Relaxed);
        let submitted = self.sender.submit(payload).await;
        self.shared.submitting.store(false, Relaxed);
        match submitted {
            Ok(()) => true,
            Err(SubmitError::Malformed(reason)) => {
                self.shared.close(ClosePayload::Reason(1011, reason));
                false
            }
            // The outgoing queue says how the connection ends.
            Err(SubmitError::Closed) => false,
        }
    }
}

struct Writer<'a> {
    stream: WriteHalf<'a>,
    outgoing: OutgoingReceiver,
    shared: &'a Shared,
    counters: &'a DatabaseCounters,
    protocol: Protocol,
    asked: Compression,
    policy: CompressionPolicy,
    stall_timeout: Duration,
    out: Vec<u8>,
}

/// What a drain of the queue ended with.
enum Then {
    Continue,
    Close(ClosePayload),
    Drop,
}

impl Writer<'_> {
    async fn run(mut self) -> End {
        loop {
            let first = tokio::select! {
                biased;
                _ = self.shared.wake_writer.notified() => None,
                item = self.outgoing.recv() => Some(item),
            };
            let mut then = Then::Continue;
            if let Some(item) = first {
                let mut queue = Queue::default();
                then = queue.take(item);
                while matches!(then, Then::Continue) && !queue.is_full() {
                    // Whether nothing is there or the connection is over, the next `recv` will tell.
                    let Some(item) = self.outgoing.try_recv() else {
                        break;
                    };
                    then = queue.take(Some(item));
                }
                for batch in queue.batches {
                    if let Err(end) = self.send_batch(&batch).await {
                        return end;
                    }
                    add(&self.counters.sent_messages, batch.ends.len() as u64);
                }
            }
            let closed = self.put_control_frames();
            if let Err(end) = self.flush().await {
                return end;
            }
            if closed {
                return End::CloseSent;
            }
            match then {
                Then::Continue => {}
                Then::Drop => return End::Dropped,
                Then::Close(payload) => self.shared.close(payload),
            }
        }
    }

    /// Frames and writes a batch. Small payloads gather in the write buffer; large ones are written in fragments
    /// from where they are.
    async fn send_batch(&mut self, batch: &MessageBatch) -> Result<(), End> {
        for range in body_ranges(self.protocol, &batch.ends) {
            let body = &batch.bytes[range];
            let compression = self.policy.choose(self.asked, body.len());
            if compression != Compression::None {
                let payload = compress(body, compression);
                self.send_payload(&payload[..1], &payload[1..]).await?;
            } else {
                self.send_payload(&[Compression::None.tag()], body).await?;
            }
            if self.out.len() >= WRITE_BYTES {
                self.flush().await?;
            }
        }
        Ok(())
    }

    async fn send_payload(&mut self, tag: &[u8], body: &[u8]) -> Result<(), End> {
        if tag.len() + body.len() <= FRAGMENT_BYTES {
            frame::put_header(&mut self.out, true, frame::BINARY, tag.len() + body.len());
            self.out.extend_from_slice(tag);
            self.out.extend_from_slice(body);
            return Ok(());
        }
        let fragments = body.len().div_ceil(FRAGMENT_BYTES);
        for (index, fragment) in body.chunks(FRAGMENT_BYTES).enumerate() {
            let last = index + 1 == fragments;
            let tag = if index == 0 { tag } else { &[] };
            frame::put_fragment_header(&mut self.out, index, last, tag.len() + fragment.len());
            self.out.extend_from_slice(tag);
            self.flush().await?;
            self.write(fragment).await?;
            // Control frames may stand between fragments, a Close may not.
            if !last {
                self.put_pings();
            }
        }
        Ok(())
    }

    fn put_pings(&mut self) {
        let control = self.shared.take_control();
        if let Some(payload) = &control.pong {
            frame::put_control(&mut self.out, frame::PONG, payload);
        }
        if control.ping {
            frame::put_control(&mut self.out, frame::PING, &[]);
        }
        if let Some(payload) = control.close {
            self.shared.close(payload);
        }
    }

    /// True when a Close was among them.
    fn put_control_frames(&mut self) -> bool {
        self.put_pings();
        match self.shared.take_control().close {
            Some(payload) => {
                frame::put_close(&mut self.out, &payload);
                true
            }
            None => false,
        }
    }

    async fn flush(&mut self) -> Result<(), End> {
        if self.out.is_empty() {
            return Ok(());
        }
        let mut out = std::mem::take(&mut self.out);
        let written = self.write(&out).await;
        out.clear();
        if out.capacity() > WRITE_BYTES * 2 {
            out.shrink_to(WRITE_BYTES);
        }
        self.out = out;
        written
    }

    /// Writes everything. A client that takes nothing for the idle time is given up.
    async fn write(&mut self, mut bytes: &[u8]) -> Result<(), End> {
        add(&self.counters.sent_bytes, bytes.len() as u64);
        while !bytes.is_empty() {
            match self.stream.try_write(bytes) {
                Ok(count) => bytes = &bytes[count..],
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                    match tokio::time::timeout(self.stall_timeout, self.stream.writable()).await {
                        Ok(Ok(())) => {}
                        Ok(Err(_)) => return Err(End::Gone),
                        Err(_) => return Err(End::Idle),
                    }
                }
                Err(_) => return Err(End::Gone),
            }
        }
        Ok(())
    }
}

/// A compressed payload with its tag. Large ones take so long that other connections get another thread meanwhile.
fn compress(body: &[u8], compression: Compression) -> Vec<u8> {
    let encode = || {
        let mut payload = Vec::new();
        encode_payload(&mut payload, body, compression);
        payload
    };
    let can_leave = Handle::current().runtime_flavor() == RuntimeFlavor::MultiThread;
    if body.len() > COMPRESS_BYTES_AT_ONCE && can_leave {
        tokio::task::block_in_place(encode)
    } else {
        encode()
    }
}

/// Items of the database's queue that go out together. Small batches are joined, so that their messages can share a
/// payload.
#[derive(Default)]
struct Queue {
    batches: Vec<MessageBatch>,
    messages: usize,
    bytes: usize,
}

impl Queue {
    fn is_full(&self) -> bool {
        self.messages >= DRAIN_MESSAGES_MAX || self.bytes >= DRAIN_BYTES_MAX
    }

    fn take(&mut self, item: Option<Outgoing>) -> Then {
        match item {
            Some(Outgoing::Messages(batch)) => {
                self.messages += batch.ends.len();
                self.bytes += batch.bytes.len();
                match self.batches.last_mut() {
                    Some(last) if self.bytes <= DRAIN_BYTES_MAX => last.append(batch),
                    _ => self.batches.push(batch),
                }
                Then::Continue
            }
            Some(Outgoing::Close { code, reason }) => {
                Then::Close(ClosePayload::Reason(code, reason))
            }
            None => Then::Drop,
        }
    }
}

/// Sends Pings and ends the connection of a silent client (05 §3.5), and of one that does not end a message.
async fn watch_clock(
    shared: &Shared,
    ping_interval: Duration,
    idle_timeout: Duration,
    pace: Pace,
) -> End {
    let mut pings = tokio::time::interval(ping_interval);
    // The resolution of the idle time; cheaper than a clock read for every receive.
    let mut looks = tokio::time::interval((idle_timeout / 8).max(Duration::from_millis(1)));
    let mut last_active = Instant::now();
    let mut upload = Upload::new(pace);
    loop {
        tokio::select! {
            _ = pings.tick() => {
                if !shared.ping_pending.swap(true, Relaxed) {
                    shared.control(|control| control.ping = true);
                }
            }
            _ = looks.tick() => {
                if shared.active.swap(false, Relaxed) || shared.submitting.load(Relaxed) {
                    last_active = Instant::now();
                } else if last_active.elapsed() >= idle_timeout {
                    return End::Idle;
                }
                if upload.is_over(shared) {
                    return End::Idle;
                }
            }
        }
    }
}

/// How slowly a message comes, at the resolution of the clock's looks.
struct Upload {
    pace: Pace,
    patience: Patience,
    looked: Instant,
    message: u64,
    received_bytes: u64,
}

impl Upload {
    fn new(pace: Pace) -> Upload {
        Upload {
            pace,
            patience: Patience::new(pace),
            looked: Instant::now(),
            message: 0,
            received_bytes: 0,
        }
    }

    /// Looks at what has come. True if the client has used up its time for this message.
    fn is_over(&mut self, shared: &Shared) -> bool {
        let waited = self.looked.elapsed();
        self.looked = Instant::now();
        let message = shared.unfinished.load(Relaxed);
        let received_bytes = shared.received_bytes.load(Relaxed);
        let moved = received_bytes - std::mem::replace(&mut self.received_bytes, received_bytes);
        let is_the_same = message == std::mem::replace(&mut self.message, message);
        if message == 0 || !is_the_same || shared.submitting.load(Relaxed) {
            self.patience = Patience::new(self.pace);
            return false;
        }
        self.patience
            .moved(waited, usize::try_from(moved).unwrap_or(usize::MAX));
        self.patience.wait_max().is_zero()
    }
}
