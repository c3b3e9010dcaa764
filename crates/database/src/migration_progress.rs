//! What the migration of a database does while it runs, and how the last one ended: written by the writer, and read by any thread,
//! also while the writer is busy with it.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use lightcone_host::{Interrupt, InterruptReason};
use lightcone_types::Timestamp;
use parking_lot::Mutex;

/// What an update is at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MigrationPhase {
    /// Steps that the database takes by itself.
    Steps,
    /// The module's migration function.
    Function,
    /// Rows are migrated one by one, while the module runs. It goes on in a database that is opened again.
    Backfill,
    /// What is live is made to follow, and the transaction is ended. It cannot be cancelled any more.
    Committing,
}

impl MigrationPhase {
    /// As answers spell it.
    pub fn as_str(self) -> &'static str {
        match self {
            MigrationPhase::Steps => "steps",
            MigrationPhase::Function => "function",
            MigrationPhase::Backfill => "backfill",
            MigrationPhase::Committing => "committing",
        }
    }
}

/// How a migration ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MigrationOutcome {
    Committed,
    /// All is as before.
    Failed {
        reason: String,
    },
    /// The same, as a caller has asked for it.
    Cancelled,
}

/// The migration that runs.
#[derive(Clone, Debug)]
pub struct RunningMigration {
    pub phase: MigrationPhase,
    /// Which table the step is about.
    pub table: Option<String>,
    /// Rows that the step has looked at or copied, that the function has written, or that were migrated, about.
    pub rows: u64,
    /// Rows of all tables that the function replaces.
    pub rows_replaced: u64,
    pub elapsed: Duration,
}

/// The last migration since the database was opened.
#[derive(Clone, Debug)]
pub struct LastMigration {
    pub outcome: MigrationOutcome,
    pub ended: Timestamp,
    pub took: Duration,
}

/// What there is to say about migrations.
#[derive(Clone, Debug, Default)]
pub struct MigrationStatus {
    pub running: Option<RunningMigration>,
    pub last: Option<LastMigration>,
}

#[derive(Default)]
pub(crate) struct MigrationProgress {
    rows: Arc<AtomicU64>,
    is_cancelled: AtomicBool,
    /// Never cleared: the database stops, and no migration begins any more.
    is_stopping: AtomicBool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    running: Option<Running>,
    last: Option<LastMigration>,
}

struct Running {
    started: Instant,
    phase: MigrationPhase,
    table: Option<String>,
    rows_replaced: u64,
    /// Ends the function.
    interrupt: Option<Arc<Interrupt>>,
}

impl MigrationProgress {
    pub fn begin(&self, now: Instant) {
        self.is_cancelled.store(false, Ordering::Release);
        self.rows.store(0, Ordering::Relaxed);
        self.state.lock().running = Some(Running {
            started: now,
            phase: MigrationPhase::Steps,
            table: None,
            rows_replaced: 0,
            interrupt: None,
        });
    }

    /// Rows are migrated one by one from now on, or are already; `interrupt` ends a function that gets one.
    pub fn begin_backfill(&self, now: Instant, interrupt: Option<Arc<Interrupt>>) {
        if !self.is_backfill() {
            self.begin(now);
        }
        let mut state = self.state.lock();
        if let Some(running) = &mut state.running {
            running.phase = MigrationPhase::Backfill;
            running.interrupt = interrupt;
            // A cancel was faster.
            if self.is_cancel_asked() {
                end(running);
            }
        }
    }

    pub fn is_backfill(&self) -> bool {
        let is_backfill = |running: &Running| running.phase == MigrationPhase::Backfill;
        self.state.lock().running.as_ref().is_some_and(is_backfill)
    }

    /// How far that is.
    pub fn backfilled(&self, table: Option<&str>, (done, rows): (u64, u64)) {
        self.rows.store(done, Ordering::Relaxed);
        if let Some(running) = &mut self.state.lock().running {
            running.rows_replaced = rows;
            if running.table.as_deref() != table {
                running.table = table.map(str::to_owned);
            }
        }
    }

    /// All rows are migrated, and the steps begin.
    pub fn end_backfill(&self) {
        if let Some(running) = &mut self.state.lock().running {
            running.phase = MigrationPhase::Steps;
            running.interrupt = None;
        }
    }

    /// Counts the rows of what is under way.
    pub fn rows(&self) -> Arc<AtomicU64> {
        self.rows.clone()
    }

    pub fn step(&self, table: Option<&str>) {
        self.rows.store(0, Ordering::Relaxed);
        if let Some(running) = &mut self.state.lock().running {
            running.phase = MigrationPhase::Steps;
            running.table = table.map(str::to_owned);
        }
    }

    /// The function begins; `interrupt` ends it.
    pub fn function(&self, rows_replaced: u64, interrupt: Option<Arc<Interrupt>>) {
        self.rows.store(0, Ordering::Relaxed);
        let mut state = self.state.lock();
        let Some(running) = &mut state.running else {
            return;
        };
        running.phase = MigrationPhase::Function;
        running.table = None;
        running.rows_replaced = rows_replaced;
        running.interrupt = interrupt;
        if self.is_cancelled() {
            end(running);
        }
    }

    pub fn function_ended(&self) {
        if let Some(running) = &mut self.state.lock().running {
            running.interrupt = None;
        }
    }

    /// From here on it is not cancelled. False: it was.
    pub fn commit(&self) -> bool {
        let mut state = self.state.lock();
        if self.is_cancelled() {
            return false;
        }
        if let Some(running) = &mut state.running {
            running.phase = MigrationPhase::Committing;
        }
        true
    }

    pub fn is_cancelled(&self) -> bool {
        self.is_cancelled.load(Ordering::Acquire) || self.is_stopping()
    }

    /// Whether a caller has asked for the end of what runs. A database that stops is another matter.
    pub fn is_cancel_asked(&self) -> bool {
        self.is_cancelled.load(Ordering::Acquire)
    }

    pub fn is_stopping(&self) -> bool {
        self.is_stopping.load(Ordering::Acquire)
    }

    /// Ends the migration that runs, and each that would begin later.
    pub fn stop(&self) {
        // A thread that reads the flag under the lock has either seen it, or is seen to run.
        let state = self.state.lock();
        self.is_stopping.store(true, Ordering::Release);
        // A backfill goes on when the database is opened again.
        let running = state.running.as_ref();
        if let Some(running) = running.filter(|running| running.phase != MigrationPhase::Backfill) {
            end(running);
        }
    }

    pub fn end(&self, outcome: MigrationOutcome, (now, ended): (Instant, Timestamp)) {
        let mut state = self.state.lock();
        let Some(running) = state.running.take() else {
            return;
        };
        state.last = Some(LastMigration {
            outcome,
            ended,
            took: now - running.started,
        });
    }

    /// Ends the migration that runs. False: none does, or it is at its end already.
    pub fn cancel(&self) -> bool {
        let mut state = self.state.lock();
        let running = state.running.as_mut();
        let Some(running) = running.filter(|running| running.phase != MigrationPhase::Committing)
        else {
            return false;
        };
        self.is_cancelled.store(true, Ordering::Release);
        end(running);
        true
    }

    pub fn status(&self, now: Instant) -> MigrationStatus {
        let state = self.state.lock();
        let running = state.running.as_ref().map(|running| RunningMigration {
            phase: running.phase,
            table: running.table.clone(),
            rows: self.rows.load(Ordering::Relaxed),
            rows_replaced: running.rows_replaced,
            elapsed: now.saturating_duration_since(running.started),
        });
        MigrationStatus {
            running,
            last: state.last.clone(),
        }
    }
}

fn end(running: &Running) {
    if let Some(interrupt) = &running.interrupt {
        interrupt.set(InterruptReason::Cancelled);
    }
}

/// Migrations that are tried beside the database. They end with it.
#[derive(Default)]
pub(crate) struct Rehearsals {
    state: Mutex<TriedMigrations>,
}

#[derive(Default)]
struct TriedMigrations {
    is_stopping: bool,
    running: Vec<Weak<MigrationProgress>>,
}

impl Rehearsals {
    /// One more, which the result ends.
    pub fn begin(&self) -> Arc<MigrationProgress> {
        let progress = Arc::<MigrationProgress>::default();
        let mut state = self.state.lock();
        if state.is_stopping {
            progress.stop();
        }
        state.running.retain(|other| other.strong_count() > 0);
        state.running.push(Arc::downgrade(&progress));
        progress
    }

    /// Ends all of them, and each that would begin later.
    pub fn stop(&self) {
        let mut state = self.state.lock();
        state.is_stopping = true;
        let running = state.running.drain(..);
        for progress in running.filter_map(|progress| progress.upgrade()) {
            progress.stop();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_begins_after_the_stop_is_ended_too() {
        let progress = MigrationProgress::default();
        progress.stop();
        progress.begin(Instant::now());
        assert!(progress.is_cancelled() && !progress.commit());
        let interrupt = Arc::<Interrupt>::default();
        progress.function(1, Some(interrupt.clone()));
        assert_eq!(interrupt.reason(), Some(InterruptReason::Cancelled));
    }

    #[test]
    fn only_what_has_not_committed_is_cancelled() {
        let progress = MigrationProgress::default();
        let now = Instant::now();
        assert!(!progress.cancel(), "nothing runs");
        progress.begin(now);
        assert!(progress.cancel());
        let interrupt = Arc::<Interrupt>::default();
        progress.function(1, Some(interrupt.clone()));
        assert_eq!(interrupt.reason(), Some(InterruptReason::Cancelled));
        assert!(!progress.commit(), "it was cancelled before");
        progress.end(MigrationOutcome::Cancelled, (now, Timestamp(1)));
        progress.begin(now);
        assert!(!progress.is_cancelled() && progress.commit());
        assert!(!progress.cancel(), "it is too late");
        let status = progress.status(now);
        assert!(status.running.is_some());
        let last = status.last.expect("one has ended");
        assert_eq!(last.outcome, MigrationOutcome::Cancelled);
    }

    #[test]
    fn all_end_with_the_database_and_none_begins_after_it() {
        let rehearsals = Rehearsals::default();
        let (gone, running) = (rehearsals.begin(), rehearsals.begin());
        drop(gone);
        assert!(!running.is_cancelled());
        rehearsals.stop();
        assert!(running.is_cancelled());
        assert!(rehearsals.begin().is_cancelled());
    }
}
