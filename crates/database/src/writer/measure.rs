//! What the writer counts of its own work. The clock is read once for a call, or for a few that are short and follow each other.

use std::time::{Duration, Instant};

use lightcone_log::LogOffset;

use super::Writer;
use crate::metrics::{Failure, QueryKind};

/// Calls of one reducer that are timed together if they take less than [`SHORT_NS`]: reading the clock is a part of what they cost.
const RUN_CALLS_MAX: u32 = 8;
const SHORT_NS: u64 = 2_000;

/// A round is cut when it has lasted so long, so that what is done does not wait for all that has come.
const ROUND_TIME_MAX: Duration = Duration::from_millis(5);
/// What usually takes so long does not keep waiting what was done before it.
const SLOW_NS: u64 = 1_000_000;

/// A call that is under way.
pub(super) struct Measured {
    next_offset: LogOffset,
}

impl Measured {
    /// Whether the transaction since has a record.
    pub(super) fn has_record(&self, next_offset: LogOffset) -> bool {
        self.next_offset != next_offset
    }
}

impl Writer {
    /// From now on others wait for the writer.
    pub(super) fn begin_round(&mut self) {
        self.end_run();
        let now = self.now.instant;
        self.state.round_started.get_or_insert(now);
        self.state.last_reading = Some(now);
    }

    /// No request waits any more: the writer asks for more.
    pub(super) fn note_round(&mut self) {
        if let Some(started) = self.state.round_started.take() {
            let now = self.clock();
            let held = now.saturating_duration_since(started);
            self.shared.metrics.rounds.note(held);
        }
    }

    /// Sends what is done before a reducer that usually takes long. No transaction may be open.
    #[inline]
    pub(super) fn end_round_before(&mut self, reducer: u32) {
        let usual_ns = self.module.reducer(reducer).counters.usual_ns();
        let is_slow = usual_ns >= SLOW_NS && usual_ns != u64::MAX;
        if is_slow && !self.state.effects.batch.events.is_empty() {
            self.end_round();
        }
    }

    /// A call of a reducer begins.
    #[inline]
    pub(super) fn measure(&mut self, reducer: u32) -> Measured {
        if self.state.run.reducer != reducer {
            self.end_run();
            self.state.run.reducer = reducer;
            self.state.run.usual_ns = self.module.reducer(reducer).counters.usual_ns();
        }
        if self.state.last_reading.is_none() {
            self.state.last_reading = Some(self.clock());
        }
        Measured {
            next_offset: self.next_offset,
        }
    }

    /// It has ended, and so has its transaction.
    #[inline]
    pub(super) fn note_call(&mut self, measured: &Measured, failure: Option<Failure>) {
        let has_record = u64::from(measured.has_record(self.next_offset));
        self.state.round_reducer_records += has_record;
        let run = &mut self.state.run;
        run.calls += 1;
        run.records += has_record;
        if let Some(failure) = failure {
            let counters = &self.module.reducer(run.reducer).counters;
            counters.note_failure(failure);
        }
        if run.calls >= RUN_CALLS_MAX || run.usual_ns >= SHORT_NS {
            self.end_run();
        }
    }

    /// Counts the calls that have ended. Before anything else is done, and before any client hears of them.
    pub(super) fn end_run(&mut self) {
        if self.state.run.calls == 0 {
            return;
        }
        let now = self.clock();
        let started = self.state.last_reading.replace(now).unwrap_or(now);
        let took = now.saturating_duration_since(started);
        self.note_unsent(started, now);
        let run = &mut self.state.run;
        let counters = &self.module.reducer(run.reducer).counters;
        run.usual_ns = counters.note_run(took, run.calls, run.usual_ns);
        counters.note_records(run.records);
        (run.calls, run.records) = (0, 0);
    }

    /// Something else is done than calling reducers, which takes its own time.
    pub(super) fn stop_run(&mut self) {
        self.end_run();
        self.state.last_reading = None;
    }

    /// What was done in this time has not been sent.
    pub(super) fn note_unsent(&mut self, started: Instant, now: Instant) {
        let since = *self.state.unsent_since.get_or_insert(started);
        self.state.is_late |= now.saturating_duration_since(since) >= ROUND_TIME_MAX;
    }

    /// What came at this time begins now.
    #[inline]
    pub(super) fn note_wait(&mut self, received: Instant) {
        let run = &self.state.run;
        let now = match self.state.last_reading {
            Some(reading) if run.calls == 0 => reading,
            Some(reading) => reading + Duration::from_nanos(u64::from(run.calls) * run.usual_ns),
            None => self.clock(),
        };
        if self.state.last_reading.is_none() {
            self.state.last_reading = Some(now);
        }
        let waited = now.saturating_duration_since(received);
        self.shared.metrics.waits.note(waited);
    }

    /// Does something for a query and counts it.
    pub(super) fn timed<T>(&mut self, kind: QueryKind, work: impl FnOnce(&mut Writer) -> T) -> T {
        self.stop_run();
        let started = self.clock();
        let result = work(self);
        let now = self.clock();
        self.note_unsent(started, now);
        let took = now.saturating_duration_since(started);
        self.shared.metrics.note_query(kind, took);
        result
    }
}
