//! The calls of one connection: which are under way, when they started and what became of them. How
//! they are written and read is the business of its [`Dialect`].

use std::io::Write;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;

use mio::net::TcpStream;

use crate::dialect::{Call, Dialect, Outcome, Received};
use crate::incoming::{Io, Progress};
use crate::ledger::Ledger;
use crate::measure::Interval;
use crate::Error;

/// Attempts at a transaction that gives way to others, as the connectors of the benchmark have them
/// (spec chapter 09 §10.3).
pub const ATTEMPTS_MAX: u32 = 10;

/// Where in the sequence of pairs a caller is. Sockets that are one caller together share it; they are
/// driven by the same thread.
#[derive(Clone, Debug)]
pub struct Cursor(Arc<AtomicUsize>);

impl Cursor {
    /// Begins at this pair.
    pub fn new(first_pair: usize) -> Self {
        Self(Arc::new(AtomicUsize::new(first_pair)))
    }

    /// The next two accounts; pairs of an account and itself are passed over. There are others: pairs
    /// that are mostly such are refused before the run.
    #[inline]
    fn next(&self, pairs: &[(u32, u32)], interval: &mut Interval) -> (u32, u32) {
        let mut at = self.0.load(Ordering::Relaxed);
        loop {
            let (from, to) = pairs[at];
            at += 1;
            if at == pairs.len() {
                at = 0;
            }
            if from != to {
                self.0.store(at, Ordering::Relaxed);
                return (from, to);
            }
            interval.skipped += 1;
        }
    }
}

/// A place for a call under way.
#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    /// The id of the call that is under way or was last here. Its low bits are the slot's number,
    /// the rest counts up, so that a second answer to an old call is noticed.
    request_id: u32,
    under_way: bool,
    /// Attempts that gave way to another transaction.
    failures: u32,
    started_ns: u64,
    pair: (u32, u32),
}

#[derive(Debug)]
struct Slots {
    slots: Vec<Slot>,
    free: Vec<u32>,
    /// Selects the slot's number from a request id.
    mask: u32,
}

impl Slots {
    fn new(count: usize) -> Self {
        let slot = |request_id| Slot {
            request_id,
            ..Slot::default()
        };
        Self {
            slots: (0..count as u32).map(slot).collect(),
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
        slot.failures = 0;
        slot.started_ns = started_ns;
        slot.pair = pair;
        Some(slot.request_id)
    }

    /// The slot of a call under way.
    #[inline]
    fn find(&mut self, request_id: u32) -> Result<&mut Slot, Error> {
        let number = request_id & self.mask;
        match self.slots.get_mut(number as usize) {
            Some(slot) if slot.under_way && slot.request_id == request_id => Ok(slot),
            _ => Err(Error::Protocol(format!(
                "it answered request {request_id}, which is not under way"
            ))),
        }
    }

    #[inline]
    fn finish(&mut self, request_id: u32) -> Result<Slot, Error> {
        let slot = self.find(request_id)?;
        slot.under_way = false;
        let slot = *slot;
        self.free.push(request_id & self.mask);
        Ok(slot)
    }

    fn all_under_way(&self) -> impl Iterator<Item = &Slot> {
        self.slots.iter().filter(|slot| slot.under_way)
    }

    fn under_way(&self) -> usize {
        self.slots.len() - self.free.len()
    }
}

/// A call that gave way to another transaction and waits for its next attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retry {
    pub request_id: u32,
    /// Attempts so far.
    pub failures: u32,
}

/// A connection of an event loop.
#[derive(Debug)]
pub struct LoadConnection {
    stream: TcpStream,
    dialect: Box<dyn Dialect>,
    out: Vec<u8>,
    sent: usize,
    /// The socket took only a part; it reports when it takes more.
    is_blocked: bool,
    slots: Slots,
    cursor: Cursor,
    /// Start times of calls that are to be sent with the next flush.
    queued: Vec<u64>,
    /// Scratch space: the calls that are being written.
    calls: Vec<Call>,
    retries: Vec<Retry>,
}

impl LoadConnection {
    /// A connection that calls, `in_flight` at a time. The socket does not block.
    pub fn caller(
        stream: std::net::TcpStream,
        dialect: Box<dyn Dialect>,
        in_flight: usize,
        cursor: Cursor,
    ) -> Self {
        Self {
            stream: TcpStream::from_std(stream),
            dialect,
            out: Vec::new(),
            sent: 0,
            is_blocked: false,
            slots: Slots::new(in_flight),
            cursor,
            queued: Vec::new(),
            calls: Vec::new(),
            retries: Vec::new(),
        }
    }

    /// A connection that has subscribed and counts updates.
    pub fn subscriber(stream: std::net::TcpStream, dialect: Box<dyn Dialect>) -> Self {
        Self::caller(stream, dialect, 0, Cursor::new(0))
    }

    /// The socket, for registration with an event loop.
    pub fn stream(&mut self) -> &mut TcpStream {
        &mut self.stream
    }

    /// False for a connection that only counts updates.
    pub fn is_caller(&self) -> bool {
        !self.slots.slots.is_empty()
    }

    /// Calls that wait for their answer.
    pub fn under_way(&self) -> usize {
        self.slots.under_way()
    }

    /// Counts the calls that have no answer when the window ends, each with its age.
    pub fn count_unfinished(&self, window_end_ns: u64, interval: &mut Interval) {
        let starts = self.slots.all_under_way().map(|slot| slot.started_ns);
        for started_ns in starts.filter(|started_ns| *started_ns < window_end_ns) {
            interval.leave_unfinished(window_end_ns - started_ns);
        }
    }

    /// Notes the transfers of calls that wait for their answer as unknown.
    pub fn note_unknown(&self, ledger: &mut Ledger) {
        let calls = self.slots.all_under_way();
        calls.for_each(|slot| ledger.lose(slot.pair));
    }

    /// Calls that could still be started, those queued counted as started.
    #[inline]
    pub fn free(&self) -> usize {
        self.slots.free.len() - self.queued.len()
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
        self.queued.resize(self.slots.free.len(), now_ns);
    }

    /// Writes all planned calls, with one write.
    pub fn send_queued(
        &mut self,
        pairs: &[(u32, u32)],
        interval: &mut Interval,
    ) -> Result<(), Error> {
        self.calls.clear();
        for started_ns in self.queued.drain(..) {
            let pair = self.cursor.next(pairs, interval);
            let request_id = self.slots.start(started_ns, pair);
            let request_id = request_id.expect("no more calls are queued than places are free");
            self.calls.push(Call::new(request_id, pair));
        }
        self.send_calls()
    }

    /// Sends a call again that gave way to another transaction.
    pub fn send_again(&mut self, request_id: u32) -> Result<(), Error> {
        let pair = self.slots.find(request_id)?.pair;
        self.calls.clear();
        self.calls.push(Call::new(request_id, pair));
        self.send_calls()
    }

    fn send_calls(&mut self) -> Result<(), Error> {
        if !self.calls.is_empty() {
            self.dialect.append(&mut self.out, &self.calls);
        }
        self.flush()
    }

    /// Calls that have given way to other transactions since this was last asked.
    pub fn take_retries(&mut self) -> std::vec::Drain<'_, Retry> {
        self.retries.drain(..)
    }

    /// Goes on writing what the socket did not take before.
    pub fn on_writable(&mut self) -> Result<(), Error> {
        self.is_blocked = false;
        self.flush()
    }

    fn flush(&mut self) -> Result<(), Error> {
        if self.is_blocked {
            return Ok(());
        }
        while self.sent < self.out.len() {
            match self.stream.write(&self.out[self.sent..]) {
                Ok(written) => self.sent += written,
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                    self.is_blocked = true;
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
            let (slots, retries) = (&mut self.slots, &mut self.retries);
            // Taken when the first answer of a read is looked at.
            let mut now = None;
            let mut on_received = |received: Received| {
                let now_ns = *now.get_or_insert_with(&clock);
                let mut tally = Tally {
                    now_ns,
                    interval: in_window(now_ns).then_some(&mut *interval),
                    ledger: ledger.as_deref_mut(),
                };
                tally.on_received(received, slots, retries)
            };
            let io = Io {
                stream: &mut self.stream,
                buffer,
                out: &mut self.out,
            };
            match self.dialect.read(io, &mut on_received)? {
                Progress::End => return Err(Error::Closed(None)),
                Progress::More => {}
                Progress::Drained => break,
            }
        }
        self.flush()
    }

    /// Says goodbye; what the server answers is not waited for.
    pub fn close(mut self) {
        self.dialect.append_close(&mut self.out);
        // A server that no longer reads sees the socket close.
        let _ = self.flush();
    }
}

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
    fn on_received(
        &mut self,
        received: Received,
        slots: &mut Slots,
        retries: &mut Vec<Retry>,
    ) -> Result<(), Error> {
        match received {
            Received::Answer(request_id, Outcome::Applied) => {
                let slot = slots.finish(request_id)?;
                if let Some(interval) = &mut self.interval {
                    interval.succeed(self.now_ns.saturating_sub(slot.started_ns));
                }
                if let Some(ledger) = &mut self.ledger {
                    ledger.acknowledge(slot.pair);
                }
                Ok(())
            }
            other => self.on_other(other, slots, retries),
        }
    }

    #[cold]
    fn on_other(
        &mut self,
        received: Received,
        slots: &mut Slots,
        retries: &mut Vec<Retry>,
    ) -> Result<(), Error> {
        let (request_id, outcome) = match received {
            Received::Update { rows } => {
                if let Some(interval) = &mut self.interval {
                    interval.updates += 1;
                    interval.update_rows += rows;
                }
                return Ok(());
            }
            Received::Answer(request_id, outcome) => (request_id, outcome),
        };
        if let Outcome::Conflict(_) = outcome {
            let slot = slots.find(request_id)?;
            slot.failures += 1;
            if slot.failures < ATTEMPTS_MAX {
                retries.push(Retry {
                    request_id,
                    failures: slot.failures,
                });
                if let Some(interval) = &mut self.interval {
                    interval.retries += 1;
                }
                return Ok(());
            }
        }
        let slot = slots.finish(request_id)?;
        if let (Outcome::Unknown(_), Some(ledger)) = (&outcome, &mut self.ledger) {
            ledger.lose(slot.pair);
        }
        let Some(interval) = &mut self.interval else {
            return Ok(());
        };
        match outcome {
            Outcome::Applied | Outcome::Noop => {
                interval.succeed(self.now_ns.saturating_sub(slot.started_ns));
                interval.noops += 1;
            }
            Outcome::Refused(text) => interval.refused.add(&text, 1),
            Outcome::Failed(text) | Outcome::Unknown(text) | Outcome::Conflict(text) => {
                interval.failed.add(&text, 1);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn sockets_of_one_caller_go_on_with_the_same_sequence() {
        let pairs = [(0, 1), (2, 2), (3, 4)];
        let mut interval = Interval::default();
        let first = Cursor::new(0);
        let second = first.clone();
        let mut drawn = vec![];
        for _ in 0..2 {
            drawn.push(first.next(&pairs, &mut interval));
            drawn.push(second.next(&pairs, &mut interval));
        }
        assert_eq!(drawn, [(0, 1), (3, 4), (0, 1), (3, 4)]);
        assert_eq!(interval.skipped, 2);
    }

    #[test]
    fn outcomes_of_all_kinds() {
        let mut slots = Slots::new(8);
        let mut retries = vec![];
        let (mut interval, mut ledger) = (Interval::default(), Ledger::new(2, 1));
        let mut tally = Tally {
            now_ns: 4_000_000,
            interval: Some(&mut interval),
            ledger: Some(&mut ledger),
        };
        let mut end = |outcome: Outcome| {
            let request_id = slots.start(1_000, (0, 1)).unwrap();
            let answer = Received::Answer(request_id, outcome.clone());
            tally.on_received(answer, &mut slots, &mut retries).unwrap();
            if let Outcome::Conflict(_) = outcome {
                for failures in 1..ATTEMPTS_MAX {
                    let retry = Retry {
                        request_id,
                        failures,
                    };
                    assert_eq!(retries.pop(), Some(retry));
                    let again = Received::Answer(request_id, outcome.clone());
                    tally.on_received(again, &mut slots, &mut retries).unwrap();
                }
                assert_eq!(retries, [], "the last attempt has failed");
            }
        };
        end(Outcome::Applied);
        end(Outcome::Noop);
        end(Outcome::Refused("insufficient_funds".into()));
        end(Outcome::Failed("no such reducer".into()));
        end(Outcome::Conflict("40001".into()));
        end(Outcome::Unknown("outcome unknown".into()));
        assert_eq!(slots.under_way(), 0);
        assert_eq!((interval.succeeded(), interval.noops), (2, 1));
        assert_eq!(interval.refused.0["insufficient_funds"], 1);
        assert_eq!(interval.failed.0["no such reducer"], 1);
        assert_eq!(interval.failed.0["40001"], 1);
        assert_eq!(interval.retries, u64::from(ATTEMPTS_MAX) - 1);
        assert_eq!(interval.max_ms(), 3.999);
        assert_eq!(ledger.unknown_transfers(), 1);
        // One acknowledged, one unknown.
        ledger.check(&[10, 10], &[9, 11]).unwrap();
        ledger.check(&[10, 10], &[8, 12]).unwrap();
        assert!(ledger.check(&[10, 10], &[7, 13]).is_err());
    }
}
