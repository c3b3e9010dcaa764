//! What goes to a client: everything that the database has queued, in as few frames as the version allows, handed to the socket
//! with one write.
//!
//! The task that holds the writer writes. Mostly that is a courier, which takes small messages to the socket without waiting for
//! anything, so that they cost no turn of the connection's task. All else is done by that task: what does not fit into the socket, what
//! takes long to compress, what is still being made, control frames and the end.

use std::borrow::Cow;
use std::io::IoSlice;
use std::ops::Range;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::Arc;
use std::time::Duration;

use lightcone_database::{
    Body, Courier, CutSignal, MessageBatch, Outgoing, OutgoingReceiver, Outlet, Small,
};
use lightcone_node::metrics::{add, DatabaseCounters, SizesSeen};
use lightcone_wire::payload::{body_ranges, encode_payload};
use lightcone_wire::{Compression, CompressionPolicy, Protocol, COMPRESS_ABOVE_BYTES};
use parking_lot::{Mutex, MutexGuard};
use tokio::net::tcp::OwnedWriteHalf;
use tokio::sync::Semaphore;

use super::frame::{self, ClosePayload};
use super::signals::{ConnectionEnd, Signals};

/// Most messages that are taken from the database's queue at once.
const DRAIN_MESSAGES_MAX: usize = 4096;
/// A drain stops growing here; the rest is taken when this much is written.
const DRAIN_BYTES_MAX: usize = 1024 * 1024;
/// Longer messages go out in fragments of this size, so that a Ping need not wait for the end of them.
const FRAGMENT_BYTES: usize = 1024 * 1024;
/// The write buffer is written out when it is longer.
const WRITE_BYTES: usize = 256 * 1024;
/// More than this is compressed on another thread: it would hold up the other connections noticeably.
const COMPRESS_BYTES_AT_ONCE: usize = 256 * 1024;
/// Longer payloads are written from where they are, in the same call as what stands before them.
const COPY_BYTES_MAX: usize = 16 * 1024;
/// Couriers take no more than this to a socket at once: others wait for them.
const COURIER_BYTES_MAX: usize = 64 * 1024;
/// The same for a client who asks for compression.
const COURIER_COMPRESSED_BYTES_MAX: usize = 8 * 1024;
/// What a thread that is not the connection's takes to its socket.
const BYTES_AT_ONCE_MAX: usize = 16 * 1024;

/// The tag of a payload that is not compressed.
const NOT_COMPRESSED: [u8; 1] = [0];

pub(super) struct Writer {
    pub stream: OwnedWriteHalf,
    pub outgoing: OutgoingReceiver,
    pub signals: Arc<Signals>,
    pub counters: Arc<DatabaseCounters>,
    pub protocol: Protocol,
    pub asked: Compression,
    pub policy: CompressionPolicy,
    pub stall_timeout: Duration,
    /// What is to be written before anything else.
    pub out: Vec<u8>,
    /// What is reserved for it.
    pub held: Vec<MessageBatch>,
    /// Of payloads that were framed since the last flush.
    pub sizes: SizesSeen,
    /// The turns of those who compress large payloads.
    pub compressing: Arc<Semaphore>,
}

/// A connection's writer, for the task that is to write.
pub(super) struct SharedWriter {
    /// None while the connection's task writes.
    writer: Mutex<Option<Writer>>,
    signals: Arc<Signals>,
    cut: CutSignal,
}

/// What ends a connection from the queue.
enum End {
    Close(ClosePayload),
    Drop,
}

impl Outlet for SharedWriter {
    fn deliver(&self) {
        let bytes_max = [COURIER_BYTES_MAX, COURIER_COMPRESSED_BYTES_MAX];
        if !self.deliver_by(self.writer.lock(), bytes_max) {
            self.signals.wake_writer.notify_one();
        }
    }

    fn deliver_at_once(&self) -> bool {
        // Nothing of it is compressed.
        let bytes_max = [BYTES_AT_ONCE_MAX, COMPRESS_ABOVE_BYTES];
        match self.writer.try_lock() {
            Some(writer) => self.deliver_by(writer, bytes_max),
            None => false,
        }
    }
}

impl SharedWriter {
    /// Has the writer told of messages that come, for as long as the connection lives.
    pub fn new(writer: Writer, courier: Arc<Courier>) -> Arc<SharedWriter> {
        let place = writer.outgoing.outlet_place();
        let shared = Arc::new(SharedWriter {
            signals: writer.signals.clone(),
            cut: writer.outgoing.cut_signal(),
            writer: Mutex::new(Some(writer)),
        });
        place.put(shared.clone(), courier);
        // What is there already.
        shared.signals.wake_writer.notify_one();
        shared
    }

    /// Takes so many bytes to the socket, or the second number of a client who asks for compression. False: there is more. A panic
    /// costs the connection, not the thread, which serves others too.
    fn deliver_by(
        &self,
        mut writer: MutexGuard<'_, Option<Writer>>,
        [plain_bytes_max, compressed_bytes_max]: [usize; 2],
    ) -> bool {
        // If it is taken, the connection's task looks at the queue before it gives it back.
        let Some(holder) = writer.as_mut() else {
            return true;
        };
        let bytes_max = match holder.policy.choose(holder.asked, plain_bytes_max) {
            Compression::None => plain_bytes_max,
            _ => compressed_bytes_max,
        };
        let delivered = catch_unwind(AssertUnwindSafe(|| holder.deliver(bytes_max)));
        delivered.unwrap_or_else(|_| {
            *writer = None;
            drop(writer);
            tracing::error!("a panic while messages were written: the connection is cut");
            self.cut.cut();
            true
        })
    }

    /// The connection's own part of the writing.
    pub async fn run(&self) -> ConnectionEnd {
        loop {
            self.signals.wake_writer.notified().await;
            let mut taken = self.writer.lock().take();
            while let Some(mut writer) = taken.take() {
                if let Err(end) = writer.turn().await {
                    // The client's Close may still be to come.
                    writer.stream.forget();
                    return end;
                }
                let mut place = self.writer.lock();
                // What a courier did not deliver because the writer was here.
                match writer.outgoing.has_more() {
                    true => taken = Some(writer),
                    false => *place = Some(writer),
                }
            }
        }
    }
}

impl Writer {
    /// Takes small messages to the socket without waiting. False: there is more, for others.
    fn deliver(&mut self, mut bytes_left: usize) -> bool {
        if !self.out.is_empty() {
            return false;
        }
        let mut last: Option<MessageBatch> = None;
        let (mut is_written, mut is_all) = (true, false);
        while is_written && !is_all {
            match self.outgoing.take_small(bytes_left) {
                Small::Messages(batch) => {
                    bytes_left -= batch.bytes.len();
                    if let Some(before) = join(&mut last, batch) {
                        is_written = self.deliver_batch(before);
                    }
                }
                Small::Nothing => is_all = true,
                Small::Other => break,
            }
        }
        if let Some(last) = last {
            is_written &= self.deliver_batch(last);
        }
        is_written && is_all
    }

    /// True if the socket has taken all of it. What is reserved for it is kept otherwise.
    fn deliver_batch(&mut self, mut batch: MessageBatch) -> bool {
        for range in body_ranges(self.protocol, &batch.ends) {
            let payload = self.payload_of(&batch.bytes, range);
            let (tag, body) = payload.parts();
            match body.len() <= COPY_BYTES_MAX {
                true => self.put_payload(tag, body),
                false => {
                    self.put_payload_header(tag, body.len());
                    self.write_now(body);
                }
            }
        }
        add(&self.counters.sent_messages, batch.ends.len() as u64);
        let is_written = self.write_now(&[]);
        if !is_written {
            batch.bytes = Body::default();
            self.held.push(batch);
        }
        is_written
    }

    /// Writes `out` and what follows, as far as the socket takes it; the rest stays in `out`. True: all is written.
    fn write_now(&mut self, tail: &[u8]) -> bool {
        let (mut written, all) = (0, self.out.len() + tail.len());
        self.sizes.tell(&self.counters.sent_sizes);
        while written < all {
            match self.try_write_from(written, tail) {
                Ok(count) => written += count,
                // Whatever else is wrong, the connection's task finds it too.
                Err(_) => break,
            }
        }
        add(&self.counters.sent_bytes, written as u64);
        if written == all {
            self.out.clear();
            self.held.clear();
            return true;
        }
        // Short: couriers take no more than that to a socket.
        let of_tail = written.saturating_sub(self.out.len());
        self.out.drain(..written.min(self.out.len()));
        self.out.extend_from_slice(&tail[of_tail..]);
        false
    }

    /// Writes what there is, and what comes meanwhile, until nothing is left.
    async fn turn(&mut self) -> Result<(), ConnectionEnd> {
        loop {
            // What a courier has left.
            self.flush(&[]).await?;
            let mut next = match self.outgoing.try_recv() {
                Some(item) => Some(Some(item)),
                None if self.outgoing.has_more() => tokio::select! {
                    biased;
                    _ = self.signals.wake_writer.notified() => None,
                    item = self.outgoing.recv() => Some(item),
                },
                None => None,
            };
            let is_last = next.is_none();
            let (mut queue, mut end) = (Queue::default(), None);
            while let Some(item) = next.take() {
                end = queue.take(item);
                if end.is_none() && !queue.is_full() {
                    // Whether nothing is there or the connection is over, the next `recv` will tell.
                    next = self.outgoing.try_recv().map(Some);
                }
            }
            for batch in queue.batches {
                self.send_batch(batch).await?;
            }
            let close = self.put_pings();
            if let Some(payload) = &close {
                frame::put_close(&mut self.out, payload);
            }
            self.flush(&[]).await?;
            if close.is_some() {
                return Err(ConnectionEnd::CloseSent);
            }
            match end {
                Some(End::Close(payload)) => self.signals.close(payload),
                Some(End::Drop) => return Err(ConnectionEnd::Dropped),
                None if is_last && !self.outgoing.has_more() => return Ok(()),
                None => {}
            }
        }
    }

    /// Frames and writes a batch. Small payloads gather in the write buffer; large ones are written in fragments
    /// from where they are.
    async fn send_batch(&mut self, batch: MessageBatch) -> Result<(), ConnectionEnd> {
        let batch = Arc::new(batch);
        for range in body_ranges(self.protocol, &batch.ends) {
            let payload = match range.len() > COMPRESS_BYTES_AT_ONCE {
                true => self.large_payload_of(&batch, range).await?,
                false => self.payload_of(&batch.bytes, range),
            };
            let (tag, body) = payload.parts();
            self.send_payload(tag, body).await?;
        }
        add(&self.counters.sent_messages, batch.ends.len() as u64);
        Ok(())
    }

    /// A part of a batch as this client gets it.
    fn payload_of<'b>(&self, bytes: &'b Body, range: Range<usize>) -> Payload<'b> {
        let compression = self.policy.choose(self.asked, range.len());
        Payload::of(bytes, range, compression)
    }

    /// The same of one that another thread compresses, if it is to be.
    async fn large_payload_of<'b>(
        &self,
        batch: &'b Arc<MessageBatch>,
        range: Range<usize>,
    ) -> Result<Payload<'b>, ConnectionEnd> {
        let compression = self.policy.choose(self.asked, range.len());
        let is_made = || match &batch.bytes {
            Body::Shared(shared) => shared.is_compressed(compression),
            Body::Own(_) => compression == Compression::None,
        };
        if is_made() {
            return Ok(Payload::of(&batch.bytes, range, compression));
        }
        let turn = self.compressing.clone().acquire_owned().await;
        if is_made() {
            return Ok(Payload::of(&batch.bytes, range, compression));
        }
        let (held, part) = (batch.clone(), range.clone());
        let compressing = tokio::task::spawn_blocking(move || {
            let _turn = turn;
            match Payload::of(&held.bytes, part, compression) {
                Payload::Compressed(Cow::Owned(payload)) => Some(payload),
                // It stays with the body.
                _ => None,
            }
        });
        match compressing.await {
            Ok(Some(payload)) => Ok(Payload::Compressed(Cow::Owned(payload))),
            Ok(None) => Ok(Payload::of(&batch.bytes, range, compression)),
            // The server ends.
            Err(_) => Err(ConnectionEnd::Dropped),
        }
    }

    async fn send_payload(&mut self, tag: &[u8], body: &[u8]) -> Result<(), ConnectionEnd> {
        let bytes = tag.len() + body.len();
        if bytes <= COPY_BYTES_MAX {
            self.put_payload(tag, body);
            if self.out.len() >= WRITE_BYTES {
                self.flush(&[]).await?;
            }
            return Ok(());
        }
        self.sizes.note(bytes as u64);
        let fragments = body.len().div_ceil(FRAGMENT_BYTES);
        for (index, fragment) in body.chunks(FRAGMENT_BYTES).enumerate() {
            let last = index + 1 == fragments;
            let (opcode, tag) = match index {
                0 => (frame::BINARY, tag),
                _ => (frame::CONTINUATION, &[][..]),
            };
            frame::put_header(&mut self.out, last, opcode, tag.len() + fragment.len());
            self.out.extend_from_slice(tag);
            self.flush(fragment).await?;
            // Control frames may stand between fragments, a Close may not.
            if !last {
                if let Some(payload) = self.put_pings() {
                    self.signals.close(payload);
                }
            }
        }
        Ok(())
    }

    fn put_payload(&mut self, tag: &[u8], body: &[u8]) {
        self.put_payload_header(tag, body.len());
        self.out.extend_from_slice(body);
    }

    fn put_payload_header(&mut self, tag: &[u8], body_bytes: usize) {
        let bytes = tag.len() + body_bytes;
        self.sizes.note(bytes as u64);
        frame::put_header(&mut self.out, true, frame::BINARY, bytes);
        self.out.extend_from_slice(tag);
    }

    /// Puts all control frames but a Close, which it gives back.
    fn put_pings(&mut self) -> Option<ClosePayload> {
        let control = self.signals.take_control();
        if let Some(payload) = &control.pong {
            frame::put_control(&mut self.out, frame::PONG, payload);
        }
        if control.ping {
            frame::put_control(&mut self.out, frame::PING, &[]);
        }
        control.close
    }

    fn try_write_from(&self, written: usize, tail: &[u8]) -> std::io::Result<usize> {
        match written.checked_sub(self.out.len()) {
            Some(of_tail) => self.stream.try_write(&tail[of_tail..]),
            None if tail.is_empty() => self.stream.try_write(&self.out[written..]),
            None => {
                let slices = [IoSlice::new(&self.out[written..]), IoSlice::new(tail)];
                self.stream.try_write_vectored(&slices)
            }
        }
    }

    /// Writes `out` and what follows. A client that takes nothing for the idle time is given up.
    async fn flush(&mut self, tail: &[u8]) -> Result<(), ConnectionEnd> {
        let (mut written, all) = (0, self.out.len() + tail.len());
        if all == 0 {
            return Ok(());
        }
        self.sizes.tell(&self.counters.sent_sizes);
        add(&self.counters.sent_bytes, all as u64);
        while written < all {
            match self.try_write_from(written, tail) {
                Ok(count) => written += count,
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                    match tokio::time::timeout(self.stall_timeout, self.stream.writable()).await {
                        Ok(Ok(())) => {}
                        Ok(Err(_)) => return Err(ConnectionEnd::Gone),
                        Err(_) => return Err(ConnectionEnd::Idle),
                    }
                }
                Err(_) => return Err(ConnectionEnd::Gone),
            }
        }
        self.out.clear();
        self.held.clear();
        if self.out.capacity() > WRITE_BYTES * 2 {
            self.out.shrink_to(WRITE_BYTES);
        }
        Ok(())
    }
}

/// What a message is sent as.
enum Payload<'b> {
    Plain(&'b [u8]),
    /// With the tag. Borrowed: for all who get it.
    Compressed(Cow<'b, [u8]>),
}

impl<'b> Payload<'b> {
    fn of(bytes: &'b Body, range: Range<usize>, compression: Compression) -> Payload<'b> {
        let compress = |body: &[u8]| {
            let mut payload = Vec::new();
            encode_payload(&mut payload, body, compression);
            payload
        };
        match (compression, bytes) {
            (Compression::None, _) => Payload::Plain(&bytes[range]),
            // It is one message.
            (_, Body::Shared(shared)) => {
                Payload::Compressed(shared.compressed(compression, compress).into())
            }
            (_, Body::Own(_)) => Payload::Compressed(compress(&bytes[range]).into()),
        }
    }

    /// The tag and what follows.
    fn parts(&self) -> (&[u8], &[u8]) {
        match self {
            Payload::Plain(body) => (&NOT_COMPRESSED, body),
            Payload::Compressed(payload) => payload.split_at(1),
        }
    }
}

/// Takes a batch in. Gives the one before, if both cannot be one: a shared body stays where it is.
fn join(last: &mut Option<MessageBatch>, batch: MessageBatch) -> Option<MessageBatch> {
    match last {
        Some(last) if !last.bytes.is_shared() && !batch.bytes.is_shared() => {
            last.append(batch);
            None
        }
        last => last.replace(batch),
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

    fn take(&mut self, item: Option<Outgoing>) -> Option<End> {
        match item {
            Some(Outgoing::Messages(batch)) => {
                self.messages += batch.ends.len();
                self.bytes += batch.bytes.len();
                let mut last = self.batches.pop_if(|_| self.bytes <= DRAIN_BYTES_MAX);
                let before = join(&mut last, batch);
                self.batches.extend(before.into_iter().chain(last));
                None
            }
            Some(Outgoing::Close { code, reason }) => {
                Some(End::Close(ClosePayload::Reason(code, reason)))
            }
            None => Some(End::Drop),
        }
    }
}
