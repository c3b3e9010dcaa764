//! A WebSocket on which the server tells and the client listens: messages of text, in the order of a stream that waits for the client.

use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use futures_util::{Stream, StreamExt as _};
use hyper::upgrade::OnUpgrade;
use lightcone_database::Holder;
use lightcone_node::network::ConnectionSlot;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};

use super::connection::{run, upgraded};
use super::frame::{self, ClosePayload, Event, FrameReader};
use super::signals::{ConnectionEnd, Signals};
use crate::gateway::Gateway;

/// The client has nothing to say but Pings, Pongs and a Close.
const MESSAGE_BYTES_MAX: usize = 4 * 1024;
/// Longer messages are sent in fragments, so that control frames come between them.
const FRAGMENT_BYTES: usize = 64 * 1024;
/// All was told.
const DONE_CODE: u16 = 1000;
/// RFC 6455 §7.4.1: data that is not expected.
const UNEXPECTED_CODE: u16 = 1003;

/// Serves a client to its end, or to that of the messages. Each item has some of them; the next is asked for when the socket has taken
/// it. The client goes when its memory is needed for others.
pub(crate) async fn serve(
    state: Arc<Gateway>,
    upgrade: OnUpgrade,
    mut slot: ConnectionSlot,
    holder: Holder,
    messages: impl Stream<Item = Vec<Bytes>> + Send,
) {
    let Some((stream, received)) = upgraded(&state, upgrade).await else {
        return;
    };
    let (signals, is_closing) = (Signals::default(), AtomicBool::new(false));
    let (read_half, write_half) = stream.into_split();
    let frames = FrameReader::new(&received, MESSAGE_BYTES_MAX);
    let reader = read(read_half, frames, &signals, &is_closing);
    let teller = Teller {
        stream: write_half,
        out: Vec::new(),
        signals: &signals,
        is_closing: &is_closing,
        stall_timeout: state.node.config.websocket.idle_timeout,
    };
    let stopped = async {
        tokio::select! {
            () = holder.left() => {}
            _ = slot.stopped() => {}
        }
    };
    let teller = teller.tell(messages);
    let end = run(&state.node.config, &signals, reader, teller, stopped).await;
    tracing::debug!(?end, "a stream over WebSocket has ended");
}

/// Answers what the client sends.
async fn read(
    mut stream: OwnedReadHalf,
    mut frames: FrameReader,
    signals: &Signals,
    is_closing: &AtomicBool,
) -> ConnectionEnd {
    loop {
        match frames.next_event() {
            Ok(Some(Event::Ping(payload))) => {
                signals.control(|control| control.pong = Some(payload));
            }
            Ok(Some(Event::Pong)) => signals.ping_pending.store(false, Relaxed),
            Ok(Some(Event::Close(_))) if is_closing.load(Relaxed) => {
                return ConnectionEnd::CloseReceived;
            }
            Ok(Some(Event::Close(payload))) => {
                signals.closed_by_client.store(true, Relaxed);
                signals.close(ClosePayload::Echo(payload));
                // The teller ends the connection.
                return std::future::pending().await;
            }
            Ok(Some(Event::Binary(_) | Event::Text)) => {
                let reason = "this stream takes no messages".to_owned();
                signals.close(ClosePayload::Reason(UNEXPECTED_CODE, reason));
            }
            Ok(None) => match stream.read_buf(frames.buffer()).await {
                Ok(0) | Err(_) => return ConnectionEnd::Gone,
                Ok(_) => signals.active.store(true, Relaxed),
            },
            Err(error) => {
                tracing::debug!(%error, "client breaks the WebSocket protocol");
                return ConnectionEnd::Gone;
            }
        }
    }
}

struct Teller<'a> {
    stream: OwnedWriteHalf,
    /// To be written.
    out: Vec<u8>,
    signals: &'a Signals,
    is_closing: &'a AtomicBool,
    /// A client that takes nothing for so long is given up. One that takes a byte now and then stays, until its memory is needed for
    /// others, as one of the streams that a database may have.
    stall_timeout: Duration,
}

impl Teller<'_> {
    async fn tell(mut self, messages: impl Stream<Item = Vec<Bytes>>) -> ConnectionEnd {
        let mut messages = pin!(messages);
        loop {
            let part = tokio::select! {
                biased;
                () = self.signals.wake_writer.notified() => Some(Vec::new()),
                part = messages.next() => part,
            };
            let is_over = part.is_none();
            let told = self.send(part.unwrap_or_default(), is_over).await;
            if let Err(end) = told {
                return end;
            }
        }
    }

    /// Sends messages and control frames; `is_over`: these are the last.
    async fn send(&mut self, messages: Vec<Bytes>, is_over: bool) -> Result<(), ConnectionEnd> {
        for message in &messages {
            self.send_message(message).await?;
        }
        let done = ClosePayload::Reason(DONE_CODE, String::new());
        let close = self.put_pings().or(is_over.then_some(done));
        if let Some(payload) = &close {
            self.is_closing.store(true, Relaxed);
            frame::put_close(&mut self.out, payload);
        }
        self.flush().await?;
        match close {
            Some(_) => Err(ConnectionEnd::CloseSent),
            None => Ok(()),
        }
    }

    async fn send_message(&mut self, message: &[u8]) -> Result<(), ConnectionEnd> {
        let mut opcode = frame::TEXT;
        let mut rest = message;
        loop {
            let (fragment, later) = rest.split_at(rest.len().min(FRAGMENT_BYTES));
            frame::put_header(&mut self.out, later.is_empty(), opcode, fragment.len());
            self.out.extend_from_slice(fragment);
            if later.is_empty() {
                break;
            }
            self.flush().await?;
            // Control frames may stand between fragments, a Close may not.
            if let Some(payload) = self.put_pings() {
                self.signals.close(payload);
            }
            (opcode, rest) = (frame::CONTINUATION, later);
        }
        match self.out.len() >= FRAGMENT_BYTES {
            true => self.flush().await,
            false => Ok(()),
        }
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

    async fn flush(&mut self) -> Result<(), ConnectionEnd> {
        let mut written = 0;
        while written < self.out.len() {
            let write = self.stream.write(&self.out[written..]);
            match tokio::time::timeout(self.stall_timeout, write).await {
                Ok(Ok(count)) if count > 0 => written += count,
                Ok(_) => return Err(ConnectionEnd::Gone),
                Err(_) => return Err(ConnectionEnd::Idle),
            }
        }
        self.out.clear();
        Ok(())
    }
}
