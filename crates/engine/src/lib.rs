//! Transactions over tables, system tables, sequences, and recovery. Knows no network and no async runtime.
//!
//! One [`Datastore`] belongs to one writer thread. A transaction changes rows in place and keeps an undo log; rollback
//! replays it backwards, commit turns it into the net change: a log record ([`record`]) and, for watched tables, the
//! rows that subscribers must see ([`DeltaBatch`](lightcone_table::DeltaBatch)).

#![forbid(unsafe_code)]

mod apply;
mod backfill;
mod catalog;
mod commit;
mod copy_room;
mod counters;
mod datastore;
mod environment;
mod error;
mod follow;
pub mod fuzzing;
mod hidden;
mod making;
mod migration;
mod names;
mod old_names;
mod outbox_columns;
mod outbox_tables;
mod past;
mod processors;
pub mod record;
mod recovery;
mod rollback;
mod row_buffer;
mod scan;
mod schedule;
mod schedule_rows;
mod schema_change;
mod sequence;
mod snapshot;
mod system;
mod table_state;
mod transaction;
mod view;
mod write;

pub use backfill::{BackfillRecord, BackfillTable, OldRows};
pub use catalog::ModuleRecord;
pub use commit::CommitOutput;
pub use copy_room::CopyRoom;
pub use counters::{Counter, TableCounters};
pub use datastore::{Clock, Datastore};
pub use error::{DatastoreError, RecoveryError, SchemaError};
pub use follow::{Catalog, Change};
pub use hidden::is_hidden;
pub use lightcone_table::RangeBounds;
pub use migration::{MigrationError, MigrationWork};
pub use outbox_tables::{MessageResult, OutboundMessage, OutboundStream, ResultStatus};
pub use recovery::{RecoveryReport, Replayer};
pub use rollback::Savepoint;
pub use row_buffer::RowBuffer;
pub use scan::Scan;
pub use schedule::{ScheduleAt, ScheduleChange, ScheduleKey};
pub use snapshot::{DatastoreSnapshot, TableHash};
pub use system::{
    is_restricted, system_tables, ST_CLIENT_ID, ST_CONNECTION_CREDENTIALS_ID, ST_ENV_ID,
    ST_ENV_INDEX_ID, ST_MODULE_ID, ST_SEQUENCE_ID, ST_TABLE_ID, ST_VAR_ID, SYSTEM_INDEX_ID_MAX,
    SYSTEM_TABLE_ID_MAX,
};
pub use view::ViewInstance;
