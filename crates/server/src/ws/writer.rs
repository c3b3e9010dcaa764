//! What goes to a client: everything that the database has queued, in as few frames as the version allows, handed to the socket
//! with one write.

use std::time::Duration;

use lightcone_wire::payload::{body_ranges, encode_payload};
use lightcone_wire::{Compression, CompressionPolicy, Protocol};
use tokio::net::tcp::WriteHalf;
use tokio::runtime::{Handle, RuntimeFlavor};

use super::frame::{self, ClosePayload};
use super::signals::{ConnectionEnd, Signals};
use crate::database::{MessageBatch, Outgoing, OutgoingReceiver};
use crate::metrics::{add, DatabaseCounters, SizesSeen};

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

pub(super) struct Writer<'a> {
    pub stream: WriteHalf<'a>,
    pub outgoing: OutgoingReceiver,
    pub signals: &'a Signals,
    pub counters: &'a DatabaseCounters,
    pub protocol: Protocol,
    pub asked: Compression,
    pub policy: CompressionPolicy,
    pub stall_timeout: Duration,
    pub out: Vec<u8>,
    /// Of payloads that were framed since the last flush.
    pub sizes: SizesSeen,
}

/// What a drain of the queue ended with.
enum Then {
    Continue,
    Close(ClosePayload),
    Drop,
}

impl Writer<'_> {
    pub async fn run(mut self) -> ConnectionEnd {
        loop {
            let first = tokio::select! {
                biased;
                _ = self.signals.wake_writer.notified() => None,
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
                return ConnectionEnd::CloseSent;
            }
            match then {
                Then::Continue => {}
                Then::Drop => return ConnectionEnd::Dropped,
                Then::Close(payload) => self.signals.close(payload),
            }
        }
    }

    /// Frames and writes a batch. Small payloads gather in the write buffer; large ones are written in fragments
    /// from where they are.
    async fn send_batch(&mut self, batch: &MessageBatch) -> Result<(), ConnectionEnd> {
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

    async fn send_payload(&mut self, tag: &[u8], body: &[u8]) -> Result<(), ConnectionEnd> {
        self.sizes.note((tag.len() + body.len()) as u64);
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
        let control = self.signals.take_control();
        if let Some(payload) = &control.pong {
            frame::put_control(&mut self.out, frame::PONG, payload);
        }
        if control.ping {
            frame::put_control(&mut self.out, frame::PING, &[]);
        }
        if let Some(payload) = control.close {
            self.signals.close(payload);
        }
    }

    /// True when a Close was among them.
    fn put_control_frames(&mut self) -> bool {
        self.put_pings();
        match self.signals.take_control().close {
            Some(payload) => {
                frame::put_close(&mut self.out, &payload);
                true
            }
            None => false,
        }
    }

    async fn flush(&mut self) -> Result<(), ConnectionEnd> {
        if self.out.is_empty() {
            return Ok(());
        }
        self.sizes.tell(&self.counters.sent_sizes);
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
    async fn write(&mut self, mut bytes: &[u8]) -> Result<(), ConnectionEnd> {
        add(&self.counters.sent_bytes, bytes.len() as u64);
        while !bytes.is_empty() {
            match self.stream.try_write(bytes) {
                Ok(count) => bytes = &bytes[count..],
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
