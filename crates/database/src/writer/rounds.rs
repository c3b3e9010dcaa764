//! The end of a round: its records go to the log, its events to fan-out.

use std::ops::Range;
use std::sync::atomic::Ordering;

use lightcone_engine::{Datastore, DatastoreError};
use lightcone_log::{LogOffset, ProposeError, PAYLOAD_BYTES_MAX};

use super::{Writer, WriterState, ROUND_DELTA_BYTES_MAX, ROUND_EVENTS_MAX, ROUND_RECORD_BYTES_MAX};
use crate::commit::{seal, Committed};
use crate::environment::{Environment, Now};
use crate::events::{Event, FanoutItem};
use crate::fanout::QUEUE_BATCHES_MAX;
use crate::views::{Changed, Evaluation, ViewHost};
use lightcone_live::{JoinWork, WindowLimits, WorkBudget};

impl Writer {
    pub(super) fn round_is_full(&self) -> bool {
        let state = &self.state;
        state.output.records.len() >= ROUND_RECORD_BYTES_MAX
            || state.output.deltas.bytes_len() >= ROUND_DELTA_BYTES_MAX
            || state.batch.events.len() >= ROUND_EVENTS_MAX
            || state.is_late
    }

    /// Gives the round's records to the log and its events to fan-out.
    pub(crate) fn end_round(&mut self) {
        self.stop_run();
        (self.state.unsent_since, self.state.is_late) = (None, false);
        self.end_failed_windows();
        if !self.state.record_ends.is_empty() {
            self.submit_records();
        }
        // Its thread may still be at the end of a batch: the writer does not wait for it.
        let machine = match self.may_step_fanout() {
            true => self.fanout_machine.try_lock(),
            false => None,
        };
        let state = &mut self.state;
        if let Some(mut machine) = machine {
            state.batch.required_offset = self.next_offset;
            machine.batch(&mut state.batch);
        } else if !state.batch.events.is_empty() {
            let mut batch = std::mem::replace(
                &mut state.batch,
                self.used_batches.try_recv().unwrap_or_default(),
            );
            std::mem::swap(&mut batch.deltas, &mut state.output.deltas);
            state.output.deltas.clear();
            batch.required_offset = self.next_offset;
            state.sent_batches += 1;
            // Fan-out ends after the writer, unless it failed: then no client would be answered any more.
            if self.fanout.send(FanoutItem::Batch(batch)).is_err() {
                self.shared.fail();
                self.state.failed = true;
            }
            self.state.is_full |= self.fanout_is_full();
        }
    }

    fn fanout_is_full(&self) -> bool {
        let done = &self.shared.status.fanout.done_batches;
        self.state.sent_batches - done.load(Ordering::Acquire) >= QUEUE_BATCHES_MAX
    }

    /// Whether it is so still.
    pub(super) fn is_full_still(&self) -> bool {
        !self.committer.has_room(0) || self.fanout_is_full()
    }

    pub(super) fn wait_for_room(&mut self) {
        self.committer.wait_for_room(0);
        if self.fanout_is_full() {
            // It ends after the writer, unless it failed.
            self.state.failed |= self.used_batches.recv().is_err();
        }
    }

    pub(super) fn end_full_round(&mut self) {
        if self.round_is_full() {
            self.end_round();
        }
    }

    pub(super) fn submit_records(&mut self) {
        let state = &mut self.state;
        let payload = std::mem::take(&mut state.output.records);
        let mut ends = std::mem::take(&mut state.record_ends);
        let transactions = ends.len() as u64;
        let mut first_offset = self.submitted_offset;
        assert_eq!(
            self.next_offset - first_offset,
            transactions,
            "each transaction since the last round has one record"
        );
        self.submitted_offset = self.next_offset;
        let of_reducers = std::mem::take(&mut state.round_reducer_records);
        // A number for people must not be able to end a database.
        let others = transactions.saturating_sub(of_reducers);
        self.shared.metrics.other_transactions.add(others);
        if payload.len() <= PAYLOAD_BYTES_MAX {
            self.state.output.records = self.submit(first_offset, transactions as u32, payload);
        } else {
            // The transactions of one item can be so large together: a connect, a call and a disconnect.
            for (bytes, count) in pieces(&ends, PAYLOAD_BYTES_MAX) {
                self.submit(first_offset, count, payload[bytes].to_vec());
                first_offset += u64::from(count);
            }
        }
        ends.clear();
        self.state.record_ends = ends;
        self.shared
            .status
            .transactions
            .fetch_add(transactions, Ordering::Relaxed);
    }

    /// Gives an empty buffer back.
    fn submit(&mut self, first_offset: LogOffset, count: u32, payload: Vec<u8>) -> Vec<u8> {
        match self.committer.propose(first_offset, count, payload) {
            Ok(proposed) => {
                self.state.is_full |= proposed.is_full;
                return proposed.spare;
            }
            // Fan-out hears of it from the log itself and never releases these results.
            Err(ProposeError::Poisoned(error)) if !error.is_bug() => {
                self.shared.status.set_read_only(&error);
            }
            // Nothing will ever say that these results are durable, so the database ends, and with it all who wait.
            Err(error) => {
                if !self.state.failed {
                    tracing::error!(database = %self.shared.options.identity, %error, "the log takes no transactions; the database stops [LC0308]");
                }
                self.state.failed = true;
            }
        }
        Vec::new()
    }

    /// Commits the open transaction. Returns the changes for fan-out.
    ///
    /// # Errors
    /// Its record is too large for the log; it is taken back, and so is what a backfill had made of it.
    pub(super) fn commit(&mut self) -> Result<Committed, DatastoreError> {
        self.transactions().commit()
    }

    /// [`commit`](Self::commit), with its event.
    pub(super) fn commit_and_tell(&mut self) -> Result<(), DatastoreError> {
        let committed = self.commit()?;
        self.event(Event::Committed {
            ops: committed.changes,
        });
        Ok(())
    }

    /// The tables with the round that their transactions join.
    pub(super) fn transactions(&mut self) -> RoundTransactions<'_> {
        RoundTransactions {
            datastore: &mut self.datastore,
            state: &mut self.state,
            next_offset: &mut self.next_offset,
            environment: self.shared.environment(),
            now: self.now,
            views_host: ViewHost {
                shared: &self.shared,
                module: &self.module,
                traced: self.traced.as_ref(),
            },
            join_partners_max: self.shared.options.limits.join_partners_max,
            window_limits: self.shared.options.window_limits(),
        }
    }
}

/// The tables, and the round that the records and changes of their transactions join.
pub(super) struct RoundTransactions<'w> {
    pub(super) datastore: &'w mut Datastore,
    pub(super) state: &'w mut WriterState,
    next_offset: &'w mut LogOffset,
    /// Bounds work.
    environment: &'w dyn Environment,
    now: Now,
    pub(super) views_host: ViewHost<'w>,
    join_partners_max: usize,
    window_limits: WindowLimits,
}

impl RoundTransactions<'_> {
    /// Commits the open transaction. What is live follows it when it is sealed: from there on nothing fails.
    ///
    /// # Errors
    /// Its record is too large for the log; it is taken back.
    pub(super) fn commit(&mut self) -> Result<Committed, DatastoreError> {
        let state = &mut *self.state;
        if let Some(backfill) = &mut state.backfill {
            backfill.follow(self.datastore, self.environment);
        }
        let start = state.output.deltas.position();
        let sealed = seal(self.datastore, &mut state.output, self.now.time);
        if let (Err(error), Some(backfill)) = (&sealed, &mut state.backfill) {
            backfill.has_lost_its_place(error);
        }
        let has_record = sealed?;
        let mut joins = JoinWork::new(self.join_partners_max);
        // The transaction may end the last one.
        let has_views = !self.state.views.is_idle();
        let mut changed_rows = self.state.output.deltas.position() - start;
        if changed_rows > 0 || self.state.views.have_changed_for_others() {
            self.push_to_joins_and_views(start..start + changed_rows, &mut joins);
        }
        changed_rows += self.finish();
        if changed_rows > 0 {
            self.push_rest(start, changed_rows, joins, has_views);
        }
        let state = &mut *self.state;
        if has_record {
            state.record_ends.push(state.output.records.len());
            *self.next_offset += 1;
        }
        Ok(Committed {
            changes: start..state.output.deltas.position(),
            has_record,
        })
    }

    /// Ends the transaction, which is sealed. Gives how many rows of views have changed.
    fn finish(&mut self) -> usize {
        let output = &mut self.state.output;
        let before = output.deltas.position();
        self.datastore.finish(output);
        output.deltas.position() - before
    }

    /// Has joins over tables, and views, follow the changes of tables. Only here may something live write, and only rows of views.
    fn push_to_joins_and_views(&mut self, tables: Range<usize>, work: &mut JoinWork) {
        let state = &mut *self.state;
        let (views, deltas) = (&mut state.views, &mut state.output.deltas);
        let (ops, done) = (tables.clone(), state.upkeep.watch(self.environment));
        views
            .joins
            .evaluate(self.datastore, deltas, ops, false, work, done);
        if !views.is_idle() {
            let (windows, limits) = (&mut views.windows, self.window_limits);
            windows.evaluate(self.datastore, deltas, tables.clone(), limits, |_| ());
            let changed = Changed {
                deltas,
                tables,
                failed_joins: &work.failed,
            };
            let mut evaluation = Evaluation::new(self.views_host, self.datastore);
            views.refresh(&mut evaluation, &changed);
            let messages = evaluation.messages;
            self.tell(messages);
        }
    }

    /// Has joins over views, and windows, follow the changes of rows, and drops what only views wanted to know.
    fn push_rest(
        &mut self,
        start: usize,
        changed_rows: usize,
        mut work: JoinWork,
        has_views: bool,
    ) {
        let state = &mut *self.state;
        let (views, deltas) = (&mut state.views, &mut state.output.deltas);
        if views.joins.is_empty() && state.windows.is_empty() && !has_views {
            return;
        }
        // Those of views come before those of joins.
        deltas.sort_from(start);
        let ops = start..start + changed_rows;
        let done = state.upkeep.watch(self.environment);
        views
            .joins
            .evaluate(self.datastore, deltas, ops, true, &mut work, done);
        state.has_failed_joins |= work.has_failed_sets;
        if has_views {
            let (datastore, joins) = (&*self.datastore, &views.joins);
            deltas.retain_from(start, |table| {
                datastore.is_watched(table) || joins.is_told(table)
            });
        }
        let mut rows = work.rows_looked_at;
        if !state.windows.is_empty() {
            let (windows, limits) = (&mut state.windows, self.window_limits);
            windows.give_up_with(&work.failed);
            let changes = start..deltas.position();
            let done = state.upkeep.watch(self.environment);
            state.has_failed_windows |=
                windows.evaluate(self.datastore, deltas, changes, limits, done);
            rows += windows.rows_looked_at();
        }
        if WorkBudget::counts(rows, changed_rows) {
            self.count_live_work(rows, changed_rows);
        }
    }

    /// Joins and windows have looked at more rows than the changes of the transaction pay for.
    #[cold]
    fn count_live_work(&mut self, rows: usize, changed_rows: usize) {
        let now = self.now.instant;
        let state = &mut *self.state;
        let halvings = state.live_work.halvings(now);
        if halvings > 0 {
            state.views.joins.halve_rows_lately(halvings);
            state.windows.halve_rows_lately(halvings);
        }
        let limits = &self.views_host.shared.options.limits;
        let rate = limits.live_rows_per_second;
        let is_within = state.live_work.spend(rows, changed_rows, rate, now);
        state.has_too_much_live_work |= !is_within;
    }

    /// Bytes of records and changes in the round.
    pub(super) fn bytes(&self) -> usize {
        self.state.output.records.len() + self.state.output.deltas.bytes_len()
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
