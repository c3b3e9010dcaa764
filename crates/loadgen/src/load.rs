//! The calls of one connection: which are under way, how they are written and how answers are read.

use std::io::Write;
use std::sync::Arc;

use lightcone_types::{Encode, Reader};
use lightcone_wire::{
    skip_server_message, ClientMessage, Protocol, ReducerOutcome, ServerMessage, ServerMessageKind,
};
use mio::net::TcpStream;

use crate::ledger::Ledger;
use crate::measure::Interval;
use crate::websocket::{
    append_binary, append_close, append_pong, Event, FrameReader, Masks, Progress,
};
use crate::Error;

/// Longest payload of calls, as the TypeScript client sends them.
const PAYLOAD_BYTES_MAX: usize = 256 * 1024;

/// An encoded call, of which three fields change from call to call.
#[derive(Clone, Debug)]
pub struct CallTemplate {
    bytes: Vec<u8>,
}

const REQUEST_ID_AT: usize = 1;

impl CallTemplate {
    /// A call of `reducer(from: u32, to: u32, amount: i64)`.
    pub fn new(reducer: &str, amount: i64) -> Self {
        let mut args = [0; 16];
        args[8..].copy_from_slice(&amount.to_le_bytes());
        let bytes = ClientMessage::CallReducer {
            request_id: 0,
            reducer,
            args: &args,
        }
        .to_vec();
        Self { bytes }
    }

    #[inline]
    fn append(&self, out: &mut Vec<u8>, request_id: u32, (from, to): (u32, u32)) {
        let start = out.len();
        out.extend_from_slice(&self.bytes);
        let call = &mut out[start..];
        call[REQUEST_ID_AT..REQUEST_ID_AT + 4].copy_from_slice(&request_id.to_le_bytes());
        let args_at = call.len() - 16;
        let args = &mut call[args_at..];
        args[..4].copy_from_slice(&from.to_le_bytes());
        args[4..8].copy_from_slice(&to.to_le_bytes());
    }
}

/// What all load connections share.
#[derive(Clone, Debug)]
pub struct Workload {
    pub template: CallTemplate,
    pub pairs: Arc<[(u32, u32)]>,
    pub protocol: Protocol,
    pub in_flight: usize,
}

/// A place for a call under way.
#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    /// The id of the call that is under way or was last here. Its low bits are the slot's number,
    /// the rest counts up, so that a second answer to an old call is noticed.
    request_id: u32,
    under_way: bool,
    started_ns: u64,
    pair: (u32, u32),
}

/// The slots of a connection.
#[derive(Debug)]
struct Slots {
    slots: Vec<Slot>,
    free: Vec<u32>,
    /// Selects the slot's number from a request id.
    mask: u32,
}

impl Slots {
    fn new(count: usize) -> Self {
        let slots: Vec<Slot> = (0..count as u32)
            .map(|number| Slot {
                request_id: number,
                ..Slot::default()
            })
            .collect();
        Self {
            slots,
            free: (0..count as u32).rev().collect(),
            mask: (count as u32).next_power_of_two() - 1,
        }
    }

    #[inline]
    fn start(&mut self, started_ns: u64, pair: (u32, u32)) -> Option<u32> {
        let number = self.free.pop()?;
        let slot = &mut self.slots[number as usize];
        slot.request_id = slot.request_id.wrapping_add(self.mask + 1);
        slot.under_way = true;
        slot.started_ns = started_ns;
        slot.pair = pair;
        Some(slot.request_id)
    }

    #[inline]
    fn finish(&mut self, request_id: u32) -> Result<Slot, Error> {
        let number = request_id & self.mask;
        match self.slots.get_mut(number as usize) {
            Some(slot) if slot.under_way && slot.request_id == request_id => {
                slot.under_way = false;
                self.free.push(number);
                Ok(*slot)
            }
            _ => Err(Error::Protocol(format!(
                "it answered request {request_id}, which is not under way"
            ))),
        }
    }

    /// The transfers of all calls under way.
    fn pairs_under_way(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        let under_way = self.slots.iter().filter(|slot| slot.under_way);
        under_way.map(|slot| slot.pair)
    }

    fn under_way(&self) -> usize {
        self.slots.len() - self.free.len()
    }
}

/// Whether anything on a connection is left to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sending {
    Idle,
    /// The socket took only a part; it reports when it takes more.
    Blocked,
}

/// What [`Client::into_event_loop`](crate::client::Client::into_event_loop) returns.
pub type Parts = (std::net::TcpStream, FrameReader, Masks);

/// What a connection is for.
#[derive(Debug)]
enum Role {
    /// It calls.
    Caller {
        slots: Slots,
        /// The pair to send next.
        pair: usize,
    },
    /// It has subscribed and counts updates.
    Subscriber,
}

/// A connection of an event loop.
#[derive(Debug)]
pub struct LoadConnection {
    stream: TcpStream,
    frames: FrameReader,
    masks: Masks,
    out: Vec<u8>,
    sent: usize,
    sending: Sending,
    role: Role,
    /// Start times of calls that are to be sent with the next flush.
    queued: Vec<u64>,
}

impl LoadConnection {
    fn new((stream, frames, masks): Parts, role: Role) -> Self {
        Self {
            stream: TcpStream::from_std(stream),
            frames,
            masks,
            out: Vec::new(),
            sent: 0,
            sending: Sending::Idle,
            role,
            queued: Vec::new(),
        }
    }

    /// A connection that calls, beginning with this pair.
    pub fn caller(parts: Parts, workload: &Workload, first_pair: usize) -> Self {
        let role = Role::Caller {
            slots: Slots::new(workload.in_flight),
            pair: first_pair % workload.pairs.len(),
        };
        Self::new(parts, role)
    }

    /// A connection that counts updates.
    pub fn subscriber(parts: Parts) -> Self {
        Self::new(parts, Role::Subscriber)
    }

    /// The socket, for registration with an event loop.
    pub fn stream(&mut self) -> &mut TcpStream {
        &mut self.stream
    }

    /// False for a connection that only counts updates.
    pub fn is_caller(&self) -> bool {
        matches!(self.role, Role::Caller { .. })
    }

    /// Calls that wait for their answer.
    pub fn under_way(&self) -> usize {
        match &self.role {
            Role::Caller { slots, .. } => slots.under_way(),
            Role::Subscriber => 0,
        }
    }

    /// Notes the transfers of calls that wait for their answer as unknown.
    pub fn note_unknown(&self, ledger: &mut Ledger) {
        if let Role::Caller { slots, .. } = &self.role {
            slots.pairs_under_way().for_each(|pair| ledger.lose(pair));
        }
    }

    /// Calls that could still be started, those queued counted as started.
    #[inline]
    pub fn free(&self) -> usize {
        match &self.role {
            Role::Caller { slots, .. } => slots.free.len() - self.queued.len(),
            Role::Subscriber => 0,
        }
    }

    /// Plans a call whose latency counts from `started_ns`. There must be a free place.
    #[inline]
    pub fn queue_call(&mut self, started_ns: u64) {
        debug_assert!(self.free() > 0);
        self.queued.push(started_ns);
    }

    /// Fills all free places with calls that start now.
    #[inline]
    pub fn queue_all(&mut self, now_ns: u64) {
        let free = self.free();
        self.queued.resize(self.queued.len() + free, now_ns);
    }

    /// Writes all planned calls: in version 3 in one message, in version 2 in one each, in either
    /// case with one write.
    pub fn send_queued(
        &mut self,
        workload: &Workload,
        interval: &mut Interval,
    ) -> Result<(), Error> {
        if let (Role::Caller { slots, pair }, false) = (&mut self.role, self.queued.is_empty()) {
            let call_bytes = workload.template.bytes.len();
            let per_frame = match workload.protocol {
                Protocol::V2 => 1,
                Protocol::V3 => (PAYLOAD_BYTES_MAX / call_bytes).max(1),
            };
            for frame in self.queued.chunks(per_frame) {
                let payload_bytes = frame.len() * call_bytes;
                append_binary(&mut self.out, &mut self.masks, payload_bytes, |out| {
                    for &started_ns in frame {
                        let ends = next_pair(&workload.pairs, pair, interval);
                        let request_id = slots
                            .start(started_ns, ends)
                            .expect("no more calls are queued than places are free");
                        workload.template.append(out, request_id, ends);
                    }
                });
            }
            self.queued.clear();
        }
        if self.sending == Sending::Idle {
            self.flush()?;
        }
        Ok(())
    }

    /// Goes on writing what the socket did not take before.
    pub fn on_writable(&mut self) -> Result<(), Error> {
        self.sending = Sending::Idle;
        self.flush()
    }

    fn flush(&mut self) -> Result<(), Error> {
        while self.sent < self.out.len() {
            match self.stream.write(&self.out[self.sent..]) {
                Ok(written) => self.sent += written,
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                    self.sending = Sending::Blocked;
                    return Ok(());
                }
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return Err(Error::io("sending")(error)),
            }
        }
        self.out.clear();
        self.sent = 0;
        Ok(())
    }

    /// Reads all there is. `clock` gives the time at which the answers of a read count as received;
    /// `in_window` says whether a call that ends then is measured.
    pub fn on_readable(
        &mut self,
        buffer: &mut Vec<u8>,
        clock: impl Fn() -> u64,
        in_window: impl Fn(u64) -> bool,
        interval: &mut Interval,
        mut ledger: Option<&mut Ledger>,
    ) -> Result<(), Error> {
        loop {
            let (role, out, masks) = (&mut self.role, &mut self.out, &mut self.masks);
            // Taken when the first answer of a read is looked at.
            let mut now = None;
            let progress = self.frames.read(&mut self.stream, buffer, |event| {
                match event {
                    Event::Message(payload) => {
                        let now_ns = *now.get_or_insert_with(&clock);
                        let mut tally = Tally {
                            now_ns,
                            interval: in_window(now_ns).then_some(&mut *interval),
                            ledger: ledger.as_deref_mut(),
                        };
                        on_message(role, payload, &mut tally)?;
                    }
                    Event::Ping(payload) => append_pong(out, masks, payload),
                    Event::Close(how) => return Err(Error::Closed(how)),
                }
                Ok(())
            })?;
            match progress {
                Progress::End => return Err(Error::Closed(None)),
                Progress::More => {}
                Progress::Drained => break,
            }
        }
        if self.sending == Sending::Idle && !self.out.is_empty() {
            self.flush()?;
        }
        Ok(())
    }

    /// Says goodbye; what the server answers is not waited for.
    pub fn close(mut self) {
        append_close(&mut self.out, &mut self.masks);
        // A server that no longer reads sees the socket close.
        let _ = self.flush();
    }
}

/// The next two accounts; pairs of an account and itself are passed over. There are others: pairs
/// that are mostly such are refused before the run.
#[inline]
fn next_pair(pairs: &[(u32, u32)], at: &mut usize, interval: &mut Interval) -> (u32, u32) {
    loop {
        let (from, to) = pairs[*at];
        *at += 1;
        if *at == pairs.len() {
            *at = 0;
        }
        if from != to {
            return (from, to);
        }
        interval.skipped += 1;
    }
}

/// `ReducerResult` without its outcome: tag, request id, timestamp.
const RESULT_HEAD_BYTES: usize = 1 + 4 + 8;
/// The rest of an `Ok` without return value and updates.
const OK_WITHOUT_UPDATE: [u8; 9] = [0; 9];

/// Where answers are counted.
struct Tally<'a> {
    /// When they arrived.
    now_ns: u64,
    /// Inside the measured window.
    interval: Option<&'a mut Interval>,
    /// With the strict check.
    ledger: Option<&'a mut Ledger>,
}

impl Tally<'_> {
    #[inline]
    fn succeed(&mut self, slot: Slot) {
        if let Some(interval) = &mut self.interval {
            interval.succeed(self.now_ns.saturating_sub(slot.started_ns));
        }
        if let Some(ledger) = &mut self.ledger {
            ledger.acknowledge(slot.pair);
        }
    }
}

/// Handles the messages of a payload.
fn on_message(role: &mut Role, payload: &[u8], tally: &mut Tally<'_>) -> Result<(), Error> {
    let (&tag, mut body) = payload
        .split_first()
        .ok_or_else(|| Error::Protocol("it sent an empty payload".into()))?;
    if tag != 0 {
        return Err(Error::Protocol(format!(
            "it sent compression tag {tag}, though none was asked for"
        )));
    }
    while !body.is_empty() {
        // Almost every message is one of these two.
        if let (Role::Caller { slots, .. }, Some((head, rest))) =
            (&mut *role, body.split_first_chunk::<RESULT_HEAD_BYTES>())
        {
            let rest = match rest {
                [1, rest @ ..] if head[0] == 6 => Some(rest),
                _ if head[0] == 6 => rest.strip_prefix(&OK_WITHOUT_UPDATE),
                _ => None,
            };
            if let Some(rest) = rest {
                let request_id = u32::from_le_bytes([head[1], head[2], head[3], head[4]]);
                tally.succeed(slots.finish(request_id)?);
                body = rest;
                continue;
            }
        }
        body = on_other_message(role, body, tally)?;
    }
    Ok(())
}

/// Handles the first message of `body` and returns the rest.
#[cold]
fn on_other_message<'a>(
    role: &mut Role,
    body: &'a [u8],
    tally: &mut Tally<'_>,
) -> Result<&'a [u8], Error> {
    let mut reader = Reader::new(body);
    match skip_server_message(&mut reader)? {
        ServerMessageKind::ReducerResult { .. } => {
            let message = ServerMessage::decode(&mut Reader::new(body))?;
            let (
                ServerMessage::ReducerResult {
                    request_id, result, ..
                },
                Role::Caller { slots, .. },
            ) = (message, role)
            else {
                return Err(Error::Protocol("it answered a call nobody made".into()));
            };
            let slot = slots.finish(request_id)?;
            match (result, &mut tally.interval) {
                (ReducerOutcome::Ok { .. } | ReducerOutcome::OkEmpty, _) => tally.succeed(slot),
                (ReducerOutcome::Err(bytes), Some(interval)) => {
                    interval.refused.add(&ReducerOutcome::error_text(&bytes), 1);
                }
                (ReducerOutcome::InternalError(text), Some(interval)) => {
                    interval.failed.add(&text, 1);
                }
                (ReducerOutcome::Err(_) | ReducerOutcome::InternalError(_), None) => {}
            }
        }
        ServerMessageKind::TransactionUpdate { rows } => {
            if let Some(interval) = &mut tally.interval {
                interval.updates += 1;
                interval.update_rows += rows;
            }
        }
        other => {
            return Err(Error::Protocol(format!(
                "it sent an unexpected message: {other:?}"
            )));
        }
    }
    Ok(reader.remaining())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_as_in_the_specification() {
        let template = CallTemplate::new("transfer", 1);
        let mut out = vec![];
        template.append(&mut out, 1, (0, 99_999));
        let hex: String = out.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(
            hex,
            "030100000000080000007472616e7366657210000000000000009f8601000100000000000000"
        );
    }

    #[test]
    fn slots_notice_answers_that_do_not_fit() {
        let mut slots = Slots::new(3);
        let first = slots.start(10, (0, 1)).unwrap();
        let second = slots.start(20, (0, 1)).unwrap();
        slots.start(30, (0, 1)).unwrap();
        assert_eq!((slots.start(40, (0, 1)), slots.under_way()), (None, 3));
        assert_eq!(slots.finish(second).unwrap().started_ns, 20);
        assert!(slots.finish(second).is_err(), "answered twice");
        let again = slots.start(50, (0, 1)).unwrap();
        assert_ne!(again, second, "ids of one slot differ");
        assert!(slots.finish(second).is_err(), "late answer to an old call");
        assert!(slots.finish(3).is_err(), "a slot that does not exist");
        assert_eq!(slots.finish(first).unwrap().started_ns, 10);
    }

    #[test]
    fn answers_of_all_kinds() {
        let timestamp = lightcone_types::Timestamp(1);
        let mut role = Role::Caller {
            slots: Slots::new(4),
            pair: 0,
        };
        let Role::Caller { slots, .. } = &mut role else {
            unreachable!()
        };
        let ids: Vec<u32> = (0..4)
            .map(|_| slots.start(1_000, (0, 1)).unwrap())
            .collect();
        let mut payload = vec![0];
        lightcone_wire::server::reducer_result_ok(&mut payload, ids[0], timestamp, &[]);
        lightcone_wire::server::reducer_result_err(
            &mut payload,
            ids[1],
            timestamp,
            "insufficient_funds",
        );
        lightcone_wire::server::reducer_result_ok_empty(&mut payload, ids[2], timestamp);
        lightcone_wire::server::reducer_result_internal_error(
            &mut payload,
            ids[3],
            timestamp,
            "no such reducer",
        );
        let (mut interval, mut ledger) = (Interval::default(), Ledger::new(2, 1));
        let mut tally = Tally {
            now_ns: 4_000_000,
            interval: Some(&mut interval),
            ledger: Some(&mut ledger),
        };
        on_message(&mut role, &payload, &mut tally).unwrap();
        assert!(
            on_message(&mut role, &payload, &mut tally).is_err(),
            "again"
        );
        assert!(on_message(&mut role, &[], &mut tally).is_err());
        assert!(on_message(&mut role, &[2, 1], &mut tally).is_err());
        assert_eq!(interval.succeeded(), 2);
        assert_eq!(interval.refused.0["insufficient_funds"], 1);
        assert_eq!(interval.failed.0["no such reducer"], 1);
        assert_eq!(interval.max_ms(), 3.999);
        ledger.check(&[10, 10], &[8, 12]).unwrap();
    }
}
