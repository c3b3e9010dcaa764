//! One running database: the writer, its log, fan-out to subscribers, lifecycle, publish.
//!
//! ```text
//!  RequestSender ─▶ inbox ─▶ WRITER ─▶ log thread (group commit)
//!   (decodes)       bounded    │            │ durable offset
//!                              ▼            ▼
//!                           FAN-OUT: deltas to queries, messages per connection, release when durable
//!                              │
//!                              ▼
//!                        OutgoingReceiver (one queue per connection) ─▶ Outlet
//! ```
//!
//! Every arrow carries batches. The writer and fan-out are one OS thread each; connection tasks of the server call
//! [`RequestSender::submit`], and a [`Courier`] what has an [`Outlet`] take from its [`OutgoingReceiver`].

#![forbid(unsafe_code)]

mod advance;
mod answer;
mod backfill;
mod backup;
mod budget;
mod calls;
mod catalog;
mod changes;
mod check;
mod commit;
mod compile;
mod connection;
mod courier;
mod decode;
mod due;
mod effects;
mod environment;
mod error;
mod evaluate;
mod events;
mod fanout;
mod follower;
mod frames;
mod frozen;
pub mod fuzzing;
mod guest;
mod handle;
mod history;
mod http;
mod import;
mod inbox;
mod inbox_capacity;
mod index_build;
mod live_shapes;
mod loads;
mod messages;
mod metrics;
mod migration;
mod migration_function;
mod migration_progress;
mod module;
mod module_log;
mod open;
mod options;
mod outbox;
mod outgoing;
mod pace;
mod past;
mod peer;
mod probe;
mod procedures;
mod reads;
mod rehearsal;
mod replies;
mod request;
mod resolve;
mod restore;
mod retention;
mod rights;
mod row_limit;
mod rules;
mod running_query;
mod schedule_queue;
mod shared;
mod snapshot;
mod sql;
mod statements;
mod status;
mod subscriptions;
mod test_clock;
#[cfg(test)]
mod testing;
mod trace;
mod update;
mod variables;
mod views;
mod writer;

pub use backup::{Backup, BackupAfter};
pub use budget::{HeldBytes, HeldMemory, Holder};
pub use calls::{CallArgs, CallError, CallOutcome, Caller, HandlerReply, HandlerSender};
pub use changes::{Changes, Place, RowForm};
pub use check::{Damage, DatabaseCheck};
pub use connection::{Connection, RequestSender};
pub use courier::{Courier, Outlet};
pub use due::DueNotes;
pub use environment::{Alarm, Environment, Machine, Next, Now, Task, Work, Worker};
pub use error::{ChangesError, ConnectError, Error, Refusal, SqlError, SubmitError, UpdateError};
pub use follower::Follower;
pub use frames::Frames;
pub use handle::{DatabaseHandle, ShutdownReason};
pub use import::{Import, ImportedTable};
pub use inbox::TableRows;
pub use lightcone_host::{HttpHeader, HttpMethod, HttpRequest, HttpResponse, HttpVersion};
pub use lightcone_host::{Secrets, SECRETS_KEY_BYTES};
pub use lightcone_outbound::{AllowList, AllowRuleError, Outbound, OutboundError, OutboundOptions};
pub use lightcone_query::{ParameterText, PARAMETERS_MAX, QUERY_BYTES_MAX};
pub use lightcone_snapshot::SnapshotError;
pub use lightcone_storage::{disk, Storage};
pub use lightcone_wire::Protocol;
pub use live_shapes::{LiveShape, LiveShapes};
pub use loads::{LoadError, Loads};
pub use messages::{Carried, Carrier, Message, MessageAnswer, MessageResult, ResultStatus};
pub use metrics::{
    DatabaseMetrics, FunctionKind, FunctionMetrics, Histogram, HistogramSnapshot, MessageMetrics,
    ModuleMetrics, OutboundMetrics, QueryKind, Replayed, Retained, SnapshotMetrics, TableMetrics,
    BOUNDS_NS,
};
pub use migration::StepReport;
pub use migration_progress::{
    LastMigration, MigrationOutcome, MigrationPhase, MigrationStatus, RunningMigration,
};
pub use module::ProgramBytes;
pub use module_log::{ModuleLog, ModuleLogMetrics, LIVE_RECORDS_MAX};
pub use options::{
    Commons, DatabaseOptions, Engines, HostKind, Limits, MemoryMax, CLIENT_BYTES_CEILING,
};
pub use outgoing::{
    Body, CutSignal, MessageBatch, Outgoing, OutgoingReceiver, OutletPlace, SharedBody, Small,
};
pub use peer::ConnectRequest;
pub use restore::{Restore, RestoreError, Restored};
pub use rights::{Rights, RightsNow};
pub use sql::{Compiler, Described, JsonRows, Piece, ResultRow, RowEncoder, SqlOutcome};
pub use statements::{Program, Reading, SqlStats, Write, Written};
pub use status::DatabaseStats;
pub use test_clock::TestClock;
pub use trace::{Span, SpanName, TraceContext, Tracer};
pub use update::{BackfillEnd, Begun, Policy, PreparedUpdate, UpdateOutcome, UpdatePlan};
pub use variables::{EnvironmentChange, EnvironmentError, EnvironmentMetadata, RemovedVariables};
