//! What the writer counts of its own work. The clock is read once for a call where calls follow each other.

use std::time::Instant;

use lightcone_host::ReducerOutcome;
use lightcone_log::LogOffset;

use super::Writer;
use crate::metrics::{Failure, QueryKind};

/// A call that is under way.
pub(super) struct Measured {
    started: Instant,
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
        let now = self.shared.environment().instant();
        (self.state.round_started, self.state.call_ended) = (Some(now), Some(now));
    }

    /// Nobody waits any more: the writer asks for more, or serves others from another thread.
    pub(super) fn note_round(&mut self) {
        if let Some(started) = self.state.round_started.take() {
            let now = self.shared.environment().instant();
            let held = now.saturating_duration_since(started);
            self.shared.metrics.rounds.note(held);
        }
    }

    /// A call of a reducer begins.
    #[inline]
    pub(super) fn measure(&mut self) -> Measured {
        let started = self.state.call_ended.take();
        Measured {
            started: started.unwrap_or_else(|| self.shared.environment().instant()),
            next_offset: self.next_offset,
        }
    }

    /// It has ended, and so has its transaction.
    #[inline]
    pub(super) fn note_call(
        &mut self,
        reducer: u32,
        measured: &Measured,
        failure: Option<Failure>,
    ) {
        let now = self.shared.environment().instant();
        let took = now.saturating_duration_since(measured.started);
        let counters = self.module.counters.reducer(reducer);
        counters.note(took, failure);
        if measured.has_record(self.next_offset) {
            counters.note_record();
            self.state.round_reducer_records += 1;
        }
        self.state.call_ended = Some(now);
    }

    /// What came at this time begins now.
    #[inline]
    pub(super) fn note_wait(&mut self, received: Instant) {
        let now = match self.state.call_ended {
            Some(now) => now,
            None => self.shared.environment().instant(),
        };
        self.state.call_ended = Some(now);
        let waited = now.saturating_duration_since(received);
        self.shared.metrics.waits.note(waited);
    }

    /// Does something for a query and counts it.
    pub(super) fn timed<T>(&mut self, kind: QueryKind, work: impl FnOnce(&mut Writer) -> T) -> T {
        let started = self.shared.environment().instant();
        let result = work(self);
        let took = self.shared.environment().instant() - started;
        self.shared.metrics.note_query(kind, took);
        self.state.call_ended = None;
        result
    }
}

impl Failure {
    /// Why a reducer failed that ran.
    pub(super) fn of_outcome(outcome: &ReducerOutcome) -> Option<Failure> {
        match outcome {
            ReducerOutcome::Ok => None,
            ReducerOutcome::UserError(_) => Some(Failure::Sender),
            ReducerOutcome::Fatal { .. } => Some(Failure::Trap),
            ReducerOutcome::TimedOut { .. } => Some(Failure::Time),
        }
    }
}
