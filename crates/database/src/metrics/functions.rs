//! Counters of a function of a module.

use std::sync::Arc;
use std::time::Duration;

use lightcone_engine::Counter;

use super::histogram::{nanos_of, Histogram, HistogramSnapshot};
use crate::pace::Pace;

/// What a function of a module is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FunctionKind {
    Reducer,
    Procedure,
    HttpHandler,
    View,
}

impl FunctionKind {
    pub const ALL: [FunctionKind; 4] = [
        FunctionKind::Reducer,
        FunctionKind::Procedure,
        FunctionKind::HttpHandler,
        FunctionKind::View,
    ];

    pub fn name(self) -> &'static str {
        match self {
            FunctionKind::Reducer => "reducer",
            FunctionKind::Procedure => "procedure",
            FunctionKind::HttpHandler => "http-handler",
            FunctionKind::View => "view",
        }
    }
}

/// Why a call failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// The function said so: the caller's fault.
    Sender,
    /// It trapped, threw, or gave something that it may not give.
    Trap,
    /// It took too long.
    Time,
    /// It never began.
    NotRun,
}

/// Counted by the writer.
#[derive(Default)]
pub(crate) struct FunctionCounters {
    /// Transactions with a record.
    recorded: Counter,
    /// By [`Failure`].
    failures: [Counter; 4],
    times: Histogram,
    /// What a call took when this was last looked at, in nanoseconds.
    usual_ns: Counter,
    /// How it runs, if it is a procedure or HTTP handler.
    pub pace: Pace,
}

impl FunctionCounters {
    /// A call has ended.
    #[inline]
    pub fn note(&self, time: Duration, failure: Option<Failure>) {
        self.times.note(time);
        if let Some(failure) = failure {
            self.note_failure(failure);
        }
    }

    /// It failed, or was refused before it began.
    pub fn note_failure(&self, failure: Failure) {
        self.failures[failure as usize].add(1);
    }

    /// Calls have ended that took so long together. Where one of them usually takes much less, one of them took the rest. Gives what
    /// one of them took.
    pub fn note_run(&self, time: Duration, calls: u32, usual_ns: u64) -> u64 {
        let total_ns = nanos_of(time);
        let each_ns = total_ns / u64::from(calls);
        if calls > 1 && each_ns / 2 > usual_ns {
            let others_ns = usual_ns * u64::from(calls - 1);
            self.times.note_many(others_ns, calls - 1);
            self.times.note_many(total_ns - others_ns, 1);
        } else {
            self.times.note_many(total_ns, calls);
        }
        self.usual_ns.set(each_ns);
        each_ns
    }

    /// What a call usually takes. `u64::MAX`: there was none.
    pub fn usual_ns(&self) -> u64 {
        match self.usual_ns.get() {
            0 => u64::MAX,
            usual_ns => usual_ns,
        }
    }

    /// What was counted until now.
    pub fn read(&self, kind: FunctionKind, name: Arc<str>, rank: u32) -> FunctionMetrics {
        let failures = |failure: Failure| self.failures[failure as usize].get();
        FunctionMetrics {
            kind,
            name,
            rank,
            sender_errors: failures(Failure::Sender),
            traps: failures(Failure::Trap),
            timeouts: failures(Failure::Time),
            refused: failures(Failure::NotRun),
            recorded: self.recorded.get(),
            times: self.times.snapshot(),
        }
    }

    /// So many of the transactions have a record.
    pub fn note_records(&self, records: u64) {
        self.recorded.add(records);
    }
}

/// What a function has done since the database was opened.
#[derive(Clone, Debug)]
pub struct FunctionMetrics {
    pub kind: FunctionKind,
    /// The canonical name.
    pub name: Arc<str>,
    /// Its place among the functions of the module, which it keeps for as long as it is there: those of the lowest ranks have series of
    /// their own.
    pub rank: u32,
    /// Calls that the function itself refused.
    pub sender_errors: u64,
    pub traps: u64,
    /// Calls that were stopped because they took too long.
    pub timeouts: u64,
    /// Calls that never began: too many were under way, or the database takes no writes.
    pub refused: u64,
    /// Reducers: transactions with a record.
    pub recorded: u64,
    /// All calls that began and have ended, with the commit. Of a procedure or HTTP handler from when the call has come, by the
    /// time of day, whatever it waited for.
    pub times: HistogramSnapshot,
}

impl FunctionMetrics {
    pub fn calls(&self) -> u64 {
        self.times.count()
    }

    /// Calls that began and failed.
    pub fn failed(&self) -> u64 {
        self.sender_errors + self.traps + self.timeouts
    }

    /// Adds what another function has done.
    pub fn add(&mut self, other: &FunctionMetrics) {
        self.sender_errors += other.sender_errors;
        self.traps += other.traps;
        self.timeouts += other.timeouts;
        self.refused += other.refused;
        self.recorded += other.recorded;
        self.times.add(&other.times);
    }
}
