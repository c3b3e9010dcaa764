//! What a database counts about itself. Reading it never makes a thread of the database wait.
//!
//! Most of it is counted by the writer, which takes no lock for it and allocates nothing: functions and tables have their counters
//! from when the module is taken up, by position. Numbers begin at zero when the database is opened.

mod functions;
mod histogram;
mod messages;
mod module;
mod outbound;
mod snapshots;

use std::time::Duration;

use lightcone_engine::Counter;

use crate::module_log::ModuleLogMetrics;

pub(crate) use self::functions::{Failure, FunctionCounters};
pub use self::functions::{FunctionKind, FunctionMetrics};
pub use self::histogram::{Histogram, HistogramSnapshot, BOUNDS_NS};
pub(crate) use self::messages::MessageCounters;
pub use self::messages::MessageMetrics;
pub(crate) use self::module::{CountedFunction, ModuleCounters, SeriesMax};
pub use self::module::{ModuleMetrics, TableMetrics};
pub(crate) use self::outbound::OutboundCounters;
pub use self::outbound::OutboundMetrics;
pub(crate) use self::snapshots::SnapshotCounters;
pub use self::snapshots::{Replayed, Retained, SnapshotMetrics};

/// What clients ask a database for, beside calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueryKind {
    Subscribe,
    Unsubscribe,
    OneOff,
    /// SQL from outside of a connection.
    Sql,
    /// The same, when it changes rows.
    SqlWrite,
}

impl QueryKind {
    pub const ALL: [QueryKind; 5] = [
        QueryKind::Subscribe,
        QueryKind::Unsubscribe,
        QueryKind::OneOff,
        QueryKind::Sql,
        QueryKind::SqlWrite,
    ];

    pub fn name(self) -> &'static str {
        match self {
            QueryKind::Subscribe => "subscribe",
            QueryKind::Unsubscribe => "unsubscribe",
            QueryKind::OneOff => "one-off",
            QueryKind::Sql => "sql",
            QueryKind::SqlWrite => "sql-write",
        }
    }
}

/// Counters of a database that no function of its module has.
#[derive(Default)]
pub(crate) struct Metrics {
    /// For how long the writer takes nothing from its inbox, each time.
    pub rounds: Histogram,
    /// From when a call has come to when it begins.
    pub waits: Histogram,
    /// Transactions with a record that no reducer made, as of the last round.
    pub other_transactions: Counter,
    /// Time on the writer, by [`QueryKind`].
    pub queries: [Histogram; QueryKind::ALL.len()],
    /// Time on the threads for reads, of the queries that are not answered on the writer.
    pub reads: Histogram,
    pub outbound: OutboundCounters,
    pub messages: MessageCounters,
    pub snapshots: SnapshotCounters,
    /// What opening the database took.
    pub replayed: Replayed,
}

impl Metrics {
    pub fn new(replayed: Replayed) -> Metrics {
        Metrics {
            replayed,
            ..Metrics::default()
        }
    }

    /// The writer is done with a query.
    pub fn note_query(&self, kind: QueryKind, time: Duration) {
        self.queries[kind as usize].note(time);
    }
}

/// What a database has counted until now.
#[derive(Clone, Debug, Default)]
pub struct DatabaseMetrics {
    pub module: ModuleMetrics,
    /// For how long the writer took nothing from its inbox, each time.
    pub rounds: HistogramSnapshot,
    /// From when a call has come to when it began.
    pub waits: HistogramSnapshot,
    /// Time on the writer, by [`QueryKind`].
    pub queries: [HistogramSnapshot; QueryKind::ALL.len()],
    /// Time on the threads for reads.
    pub reads: HistogramSnapshot,
    /// Transactions with a record that no reducer made.
    pub other_transactions: u64,
    pub outbound: OutboundMetrics,
    pub messages: MessageMetrics,
    pub module_log: ModuleLogMetrics,
    pub snapshots: SnapshotMetrics,
    pub retained: Retained,
    pub replayed: Replayed,
    /// Linear memory of all instances of the module. Of JavaScript nothing.
    pub wasm_memory_bytes: u64,
    /// What calls beside the writer have of `limits.procedure-memory-bytes-max`.
    pub procedure_memory_bytes: u64,
    /// Messages and requests that wait for the writer, or are being answered by it.
    pub inbox_messages: u64,
    /// Queries that are not answered yet.
    pub reads_under_way: u64,
    /// Bytes of records that wait for the disk.
    pub log_queue_bytes: u64,
}

impl DatabaseMetrics {
    /// Adds what another database has counted.
    pub fn add(&mut self, other: &DatabaseMetrics) {
        self.module.add(&other.module);
        self.rounds.add(&other.rounds);
        self.waits.add(&other.waits);
        for (query, more) in self.queries.iter_mut().zip(&other.queries) {
            query.add(more);
        }
        self.reads.add(&other.reads);
        self.other_transactions += other.other_transactions;
        self.outbound.add(&other.outbound);
        self.messages.add(&other.messages);
        self.module_log.add(&other.module_log);
        self.snapshots.add(&other.snapshots);
        self.retained.add(&other.retained);
        self.replayed.add(&other.replayed);
        self.wasm_memory_bytes += other.wasm_memory_bytes;
        self.procedure_memory_bytes += other.procedure_memory_bytes;
        self.inbox_messages += other.inbox_messages;
        self.reads_under_way += other.reads_under_way;
        self.log_queue_bytes += other.log_queue_bytes;
    }

    /// Leaves what stays true when the database is closed: what it has counted, and nothing that it has.
    pub fn leave(&mut self) {
        for table in &mut self.module.tables {
            (table.rows, table.bytes) = (0, 0);
        }
        self.rounds.longest_ns = 0;
        self.outbound.leave();
        (self.messages.waiting, self.messages.under_way) = (0, 0);
        self.module_log.file_bytes = 0;
        self.retained.leave();
        self.replayed = Replayed::default();
        (self.wasm_memory_bytes, self.procedure_memory_bytes) = (0, 0);
        (self.inbox_messages, self.reads_under_way) = (0, 0);
        self.log_queue_bytes = 0;
    }
}
