//! What a round of the writer has for others, and its way to them: one value, which is handed on when no transaction is open.

use std::ops::Range;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, Sender};
use std::sync::Arc;

use lightcone_engine::CommitOutput;
use lightcone_log::{Followed, LogOffset, LogWriter, ProposeError, PAYLOAD_BYTES_MAX};
use parking_lot::Mutex;

use crate::events::{Batch, Event, FanoutItem};
use crate::fanout::Fanout;
use crate::shared::Shared;

/// If so many batches wait for fan-out, the writer takes no input.
const QUEUE_BATCHES_MAX: u64 = 256;
/// Longer rounds go to fan-out: one more thread to wake does not matter to them, and it works while the writer goes on.
const DIRECT_EVENTS_MAX: usize = 64;

/// All that a round has for the log and for fan-out. Its buffers come back empty: a call allocates nothing. (Calls beside the
/// writer, and work for other threads, begin by way of the [environment](crate::environment::Environment).)
#[derive(Default)]
pub(crate) struct Effects {
    /// Records and changes.
    pub output: CommitOutput,
    /// Where the record of each transaction ends in `output.records`.
    pub ends: Vec<usize>,
    /// The records are a frame of the database that this one follows.
    pub followed: Option<Followed>,
    /// What clients hear of.
    pub batch: Box<Batch>,
}

/// The ways out of a writer. Who drives it has made them; their locks are taken here, and nowhere within a round.
pub(crate) struct WayOut {
    pub shared: Arc<Shared>,
    pub log: Arc<LogWriter>,
    pub fanout: Sender<FanoutItem>,
    /// What works off that queue.
    pub machine: Arc<Mutex<Fanout>>,
    pub used_batches: Receiver<Box<Batch>>,
    /// Offset of the first transaction that the log does not have yet.
    pub next_offset: LogOffset,
    /// Batches given to fan-out.
    pub batches: u64,
    /// Nothing will ever say that what was handed on is durable, or tell clients of it: the database is to end.
    pub has_failed: bool,
}

impl WayOut {
    /// Gives the records to the log and the events to fan-out. All transactions before `next_offset` are in this round, or were in
    /// earlier ones. True: so much waits there that the writer is to take no input.
    pub fn hand_on(&mut self, effects: &mut Effects, next_offset: LogOffset) -> bool {
        let is_log_full = !effects.ends.is_empty() && self.propose(effects, next_offset);
        let is_fanout_full = !effects.batch.events.is_empty() && self.tell(effects, next_offset);
        is_log_full || is_fanout_full
    }

    fn propose(&mut self, effects: &mut Effects, next_offset: LogOffset) -> bool {
        let (records, ends) = (&mut effects.output.records, &mut effects.ends);
        let followed = effects.followed.take();
        let mut first_offset = std::mem::replace(&mut self.next_offset, next_offset);
        assert_eq!(
            next_offset - first_offset,
            ends.len() as u64,
            "each transaction since the last round has one record"
        );
        let payload = std::mem::take(records);
        let mut is_full = false;
        if payload.len() <= PAYLOAD_BYTES_MAX {
            (*records, is_full) = self.submit(first_offset, ends.len() as u32, payload, followed);
        } else {
            // The transactions of one item can be so large together: a connect, a call and a disconnect.
            for (bytes, count) in pieces(ends, PAYLOAD_BYTES_MAX) {
                let piece = payload[bytes].to_vec();
                is_full |= self.submit(first_offset, count, piece, None).1;
                first_offset += u64::from(count);
            }
        }
        ends.clear();
        is_full
    }

    /// Gives an empty buffer back, and whether the log is full.
    fn submit(
        &mut self,
        first_offset: LogOffset,
        count: u32,
        payload: Vec<u8>,
        followed: Option<Followed>,
    ) -> (Vec<u8>, bool) {
        let proposed = match followed {
            None => self.log.propose(first_offset, count, payload),
            Some(followed) => self.log.follow(first_offset, count, payload, followed),
        };
        match proposed {
            Ok(proposed) => return (proposed.spare, proposed.is_full),
            // Fan-out hears of it from the log itself and never releases these results.
            Err(ProposeError::Poisoned(error)) if !error.is_bug() => {
                self.shared.status.set_read_only(&error);
            }
            Err(error) => {
                if !std::mem::replace(&mut self.has_failed, true) {
                    tracing::error!(database = %self.shared.options.identity, %error, "the log takes no transactions; the database stops [LC0308]");
                }
            }
        }
        (Vec::new(), false)
    }

    fn tell(&mut self, effects: &mut Effects, next_offset: LogOffset) -> bool {
        let Effects { output, batch, .. } = effects;
        batch.required_offset = next_offset;
        // Its thread may still be at the end of a batch: the writer does not wait for it.
        let machine = match self.may_step_fanout(&batch.events) {
            true => self.machine.try_lock(),
            false => None,
        };
        if let Some(mut machine) = machine {
            machine.batch(batch);
            return false;
        }
        let spare = self.used_batches.try_recv().unwrap_or_default();
        let mut batch = std::mem::replace(batch, spare);
        std::mem::swap(&mut batch.deltas, &mut output.deltas);
        output.deltas.clear();
        self.batches += 1;
        // Fan-out ends after the writer, unless it failed: then no client would be answered any more.
        if self.fanout.send(FanoutItem::Batch(batch)).is_err() {
            self.shared.fail();
            self.has_failed = true;
        }
        self.is_fanout_full()
    }

    /// Whether the round is short, has only answers, and fan-out is done with all that it got before, so that nothing overtakes
    /// anything: then no other thread has to be woken for it.
    fn may_step_fanout(&self, events: &[Event]) -> bool {
        let done = &self.shared.status.fanout.done_batches;
        events.len() <= DIRECT_EVENTS_MAX
            && events.iter().all(Event::is_answer)
            && done.load(Ordering::Acquire) == self.batches
    }

    fn is_fanout_full(&self) -> bool {
        let done = &self.shared.status.fanout.done_batches;
        self.batches - done.load(Ordering::Acquire) >= QUEUE_BATCHES_MAX
    }

    /// Whether so much waits still.
    pub fn is_full(&self) -> bool {
        !self.log.has_room(0) || self.is_fanout_full()
    }

    /// Waits until less does.
    pub fn wait_for_room(&mut self) {
        self.log.wait_for_room(0);
        // It ends after the writer, unless it failed.
        self.has_failed |= self.is_fanout_full() && self.used_batches.recv().is_err();
    }

    /// No client is connected any more.
    pub fn forget_clients(&mut self) {
        let (outbox, stats) = (&self.shared.outbox, &self.shared.status.fanout);
        let environment = self.shared.options.shared_environment();
        let fanout = Fanout::new(outbox.clone(), stats.clone(), environment);
        self.machine = Arc::new(Mutex::new(fanout));
    }
}

/// Divides records that end at `ends` into runs of at most `bytes_max`, or of one record: byte ranges and counts.
fn pieces(ends: &[usize], bytes_max: usize) -> Vec<(Range<usize>, u32)> {
    let mut pieces = Vec::new();
    let (mut start, mut end, mut count) = (0, 0, 0);
    for &next in ends {
        if count > 0 && next - start > bytes_max {
            pieces.push((start..end, count));
            (start, count) = (end, 0);
        }
        end = next;
        count += 1;
    }
    if count > 0 {
        pieces.push((start..end, count));
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_connect_and_a_call_that_do_not_fit_together_go_one_after_the_other() {
        assert_eq!(pieces(&[60, 150, 160], 100), [(0..60, 1), (60..160, 2)]);
        assert_eq!(pieces(&[60, 100], 100), [(0..100, 2)]);
        assert_eq!(pieces(&[], 100), []);
    }

    proptest! {
        #[test]
        fn pieces_hold_all_records_once_and_fit(
            lengths in prop::collection::vec(1_usize..50, 0..40),
            bytes_max in 50_usize..120,
        ) {
            let ends: Vec<usize> = lengths
                .iter()
                .scan(0, |end, length| {
                    *end += length;
                    Some(*end)
                })
                .collect();
            let (mut position, mut records) = (0, 0);
            for (bytes, count) in pieces(&ends, bytes_max) {
                prop_assert_eq!(bytes.start, position);
                prop_assert!(bytes.len() <= bytes_max);
                records += count as usize;
                position = bytes.end;
                prop_assert_eq!(ends[records - 1], position);
            }
            prop_assert_eq!(records, ends.len());
        }
    }
}
