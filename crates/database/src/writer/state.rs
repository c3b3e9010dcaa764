//! What the writer knows beside the tables.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use lightcone_engine::Datastore;
use lightcone_live::{FirstRows, LiveQuery, QueryLoad, Takers, Windows, WorkBudget};
use lightcone_log::{Log, ProposeError};
use lightcone_types::{ColId, Identity, TableId, Timestamp};
use rustc_hash::FxHashMap;
use tokio::sync::oneshot;

use super::away::{Away, SessionKey};
use super::outbox_streams::Outboxes;
use super::running_backfill::RunningBackfill;
use super::schedules::Schedules;
use super::timers::Timers;
use crate::backfill::{Failure, Resumed};
use crate::calls::CallError;
use crate::effects::Effects;
use crate::error::Error;
use crate::frozen::FrozenTables;
use crate::inbox::Stop;
use crate::live_shapes::UpkeepTimes;
use crate::outgoing::OutgoingQueue;
use crate::peer::{ClientId, ConnectionNumber, Peer};
use crate::procedures::Loans;
use crate::replies::Waiter;
use crate::request::CompiledSet;
use crate::views::Views;

pub(super) struct Client {
    pub peer: Peer,
    pub id: ClientId,
    pub session_id: Option<u128>,
    /// How long it may be away.
    pub grace: Duration,
    pub queue: Arc<OutgoingQueue>,
    pub query_sets: FxHashMap<u32, QuerySet>,
    /// In all query sets.
    pub counts: SetCounts,
}

/// What live queries are of what their connection may have.
#[derive(Default)]
pub(super) struct SetCounts {
    pub queries: usize,
    /// How many of them are windows.
    pub windows: usize,
    /// [`LiveQuery::steps_of_connection`] of all of them.
    pub steps: usize,
}

impl SetCounts {
    pub fn of(queries: &[Arc<LiveQuery>]) -> SetCounts {
        let windows = queries.iter().filter(|query| query.window().is_some());
        let steps = queries.iter().map(|query| query.steps_of_connection());
        SetCounts {
            queries: queries.len(),
            windows: windows.count(),
            steps: steps.sum(),
        }
    }

    pub fn add(&mut self, queries: &[Arc<LiveQuery>]) {
        let more = SetCounts::of(queries);
        self.queries += more.queries;
        self.windows += more.windows;
        self.steps += more.steps;
    }

    pub fn remove(&mut self, queries: &[Arc<LiveQuery>]) {
        let gone = SetCounts::of(queries);
        self.queries -= gone.queries;
        self.windows -= gone.windows;
        self.steps -= gone.steps;
    }
}

/// A live query set.
pub(super) struct QuerySet {
    /// Never given to another.
    pub number: u64,
    pub set: CompiledSet,
}

/// What a writer is at.
pub(crate) enum Phase {
    /// It has done nothing yet. A backfill goes on with this.
    Begins(Option<Result<Resumed, Failure>>),
    Runs,
    /// The log has failed, and the state that is durable is read beside it.
    Recovers(Recovered),
    Ends(Box<End>),
}

pub(crate) type Recovered = oneshot::Receiver<Result<Datastore, Error>>;

/// How a database ends, and how far it is.
pub(crate) struct End {
    pub(super) is_opened_again: bool,
    /// Clients are told.
    pub(super) code: u16,
    pub(super) reason: String,
    /// Told when all is done.
    pub(super) done: Vec<oneshot::Sender<()>>,
    pub(super) stage: Stage,
}

/// What it waits for.
pub(super) enum Stage {
    /// All that was committed is durable, and no snapshot is being written.
    Log,
    /// Clients have been told.
    Fanout(Result<Box<dyn Log>, ProposeError>, oneshot::Receiver<()>),
    /// It is its turn to write a snapshot, until this time.
    Turn(Box<dyn Log>, Instant),
    /// It is written, and the log closed.
    Snapshot(oneshot::Receiver<()>),
}

#[derive(Default)]
pub(crate) struct WriterState {
    pub(super) effects: Effects,
    /// How many records of the round are of reducers.
    pub(super) round_reducer_records: u64,
    pub(super) clients: FxHashMap<ConnectionNumber, Client>,
    /// Those that are live. Clients choose the ids, which are hashed with a secret.
    pub(super) sessions: HashMap<SessionKey, ConnectionNumber>,
    pub(super) away: Away,
    /// Live queries per table.
    pub(super) watchers: FxHashMap<TableId, usize>,
    pub(super) query_load: QueryLoad,
    pub(super) frozen: FrozenTables,
    /// Some joins were too much for a transaction of the round.
    pub(super) has_failed_joins: bool,
    /// Indexes that joins and windows look rows up by.
    pub(super) indexes: ClientIndexes,
    pub(super) windows: Windows,
    /// The same of windows.
    pub(super) has_failed_windows: bool,
    /// What joins and windows may take over time.
    pub(super) live_work: WorkBudget,
    pub(super) upkeep: UpkeepTimes,
    pub(super) first_rows: FirstRows,
    /// They have taken more.
    pub(super) has_too_much_live_work: bool,
    /// Query sets so far.
    pub(super) query_sets: u64,
    /// When the writer last took something from its inbox; None while it waits for more.
    pub(super) round_started: Option<Instant>,
    /// Since when there is something that the log and fan-out do not have yet.
    pub(super) unsent_since: Option<Instant>,
    /// The round has lasted long enough.
    pub(super) is_late: bool,
    /// The last reading of the clock, if nothing but the calls of `run` was done since.
    pub(super) last_reading: Option<Instant>,
    pub(super) run: Run,
    /// The writer takes nothing more: so much waits for the log, for fan-out or for a snapshot, or an instance is being made.
    pub(super) is_held: bool,
    pub(super) log_bytes_at_snapshot: u64,
    pub(super) snapshot_running: bool,
    /// One is to be written whatever the log is worth.
    pub(super) snapshot_wanted: bool,
    /// Rows are migrated one by one.
    pub(super) backfill: Option<Box<RunningBackfill>>,
    pub(super) schedules: Schedules,
    /// Who has set the clock: requests of one test.
    pub(super) settling: Vec<Waiter<Result<Option<Timestamp>, CallError>>>,
    pub(super) outboxes: Outboxes,
    pub(super) views: Views,
    pub(super) timers: Timers,
    /// There was work since the time began after which the instance rests.
    pub(super) has_worked: bool,
    /// The log failed, and what of the tables was not durable is taken back.
    pub(super) is_reverted: bool,
    /// A thread of the database ended because of a bug: this one is to end too.
    pub(super) failed: bool,
    pub(super) stop: Option<Stop>,
    pub(super) loans: Loans,
}

/// Indexes for clients.
#[derive(Default)]
pub(super) struct ClientIndexes {
    pub takers: Takers,
    pub builds: Vec<Build>,
    pub builds_so_far: u64,
    /// Held for those who have waited for them, since when.
    pub ready: Vec<(TableId, ColId, Instant)>,
    /// Tables on which an index could not be built, since when.
    pub given_up: Vec<(TableId, Instant)>,
}

/// An index that is being built.
pub(super) struct Build {
    pub table: TableId,
    pub column: ColId,
    pub number: u64,
    pub client: Identity,
    pub rounds: usize,
    /// Closed when it ends.
    pub waiting: Vec<oneshot::Sender<()>>,
}

impl Build {
    pub fn is_of(&self, place: (TableId, ColId)) -> bool {
        (self.table, self.column) == place
    }
}

/// Calls of one reducer that have ended, and that nothing else came between.
pub(super) struct Run {
    pub reducer: u32,
    pub calls: u32,
    /// How many of them have a record.
    pub records: u64,
    /// What one of them took when this was last looked at.
    pub usual_ns: u64,
}

impl Default for Run {
    fn default() -> Run {
        Run {
            reducer: 0,
            calls: 0,
            records: 0,
            usual_ns: u64::MAX,
        }
    }
}
