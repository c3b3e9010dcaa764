//! A round: its transactions are committed into its effects, which are handed on at its end.

use std::ops::Range;
use std::sync::atomic::Ordering;

use lightcone_engine::{Datastore, DatastoreError};
use lightcone_log::LogOffset;

use super::{Writer, WriterState, ROUND_DELTA_BYTES_MAX, ROUND_EVENTS_MAX, ROUND_RECORD_BYTES_MAX};
use crate::commit::{seal, Committed};
use crate::environment::{Environment, Now};
use crate::events::Event;
use crate::views::{Changed, Evaluation, ViewHost};
use lightcone_live::{JoinWork, WindowLimits, WorkBudget};

impl Writer {
    pub(super) fn round_is_full(&self) -> bool {
        let effects = &self.state.effects;
        effects.output.records.len() >= ROUND_RECORD_BYTES_MAX
            || effects.output.deltas.bytes_len() >= ROUND_DELTA_BYTES_MAX
            || effects.batch.events.len() >= ROUND_EVENTS_MAX
            || self.state.is_late
    }

    /// Hands on what the round has done.
    pub(crate) fn end_round(&mut self) {
        self.stop_run();
        (self.state.unsent_since, self.state.is_late) = (None, false);
        self.end_failed_windows();
        self.count_transactions();
        let effects = &mut self.state.effects;
        self.state.is_held |= self.way_out.hand_on(effects, self.next_offset);
        if self.has_copied_much() {
            self.state.is_held = true;
            self.shared.metrics.snapshots.note_held_writer();
        }
        self.state.failed |= self.way_out.has_failed;
    }

    pub(super) fn end_full_round(&mut self) {
        if self.round_is_full() {
            self.end_round();
        }
    }

    fn count_transactions(&mut self) {
        let transactions = self.state.effects.ends.len() as u64;
        if transactions == 0 {
            return;
        }
        let of_reducers = std::mem::take(&mut self.state.round_reducer_records);
        // A number for people must not be able to end a database.
        let others = transactions.saturating_sub(of_reducers);
        self.shared.metrics.other_transactions.add(others);
        let counted = &self.shared.status.transactions;
        counted.fetch_add(transactions, Ordering::Relaxed);
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
        let start = state.effects.output.deltas.position();
        let sealed = seal(self.datastore, &mut state.effects.output, self.now.time);
        if let (Err(error), Some(backfill)) = (&sealed, &mut state.backfill) {
            backfill.has_lost_its_place(error);
        }
        let has_record = sealed?;
        let mut joins = JoinWork::new(self.join_partners_max);
        // The transaction may end the last one.
        let has_views = !self.state.views.is_idle();
        let mut changed_rows = self.state.effects.output.deltas.position() - start;
        if changed_rows > 0 || self.state.views.have_changed_for_others() {
            self.push_to_joins_and_views(start..start + changed_rows, &mut joins);
        }
        changed_rows += self.finish();
        if changed_rows > 0 {
            self.push_rest(start, changed_rows, joins, has_views);
        }
        let state = &mut *self.state;
        if has_record {
            let effects = &mut state.effects;
            effects.ends.push(effects.output.records.len());
            *self.next_offset += 1;
        }
        Ok(Committed {
            changes: start..state.effects.output.deltas.position(),
            has_record,
        })
    }

    /// Ends the transaction, which is sealed. Gives how many rows of views have changed.
    fn finish(&mut self) -> usize {
        let output = &mut self.state.effects.output;
        let before = output.deltas.position();
        self.datastore.finish(output);
        output.deltas.position() - before
    }

    /// Has joins over tables, and views, follow the changes of tables. Only here may something live write, and only rows of views.
    fn push_to_joins_and_views(&mut self, tables: Range<usize>, work: &mut JoinWork) {
        let state = &mut *self.state;
        let (views, deltas) = (&mut state.views, &mut state.effects.output.deltas);
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
        let (views, deltas) = (&mut state.views, &mut state.effects.output.deltas);
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
        self.state.effects.output.records.len() + self.state.effects.output.deltas.bytes_len()
    }
}
