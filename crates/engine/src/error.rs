//! What can go wrong in a transaction and in recovery.

use std::path::PathBuf;

use lightcone_log::{LogError, LogOffset};
use lightcone_table::Error as TableError;
use lightcone_types::bsatn::DecodeError;
use lightcone_types::TableId;

/// Why a datastore call failed. The transaction stays usable and no effect of the call remains.
#[derive(Debug, thiserror::Error)]
pub enum DatastoreError {
    #[error("ABI call can only be made while in a transaction")]
    NotInTransaction,
    #[error("{0}")]
    Decode(#[from] DecodeError),
    #[error("No such table")]
    NoSuchTable,
    #[error("No such index")]
    NoSuchIndex,
    #[error("The Index does not support range scans")]
    WrongIndexAlgorithm,
    /// Names as in the message of 08 §7.2.
    #[error("Value with given unique identifier already exists: unique index `{index}` of table `{table}`")]
    UniqueAlreadyExists { table: String, index: String },
    #[error("Specified delay in scheduling row was too long")]
    ScheduleDelayTooLong,
    #[error("The index was not unique")]
    IndexNotUnique,
    #[error("The row was not found, e.g., in an update call")]
    NoSuchRow,
    #[error("a prefix of {prefix_columns} columns leaves no column of the index for the bounds")]
    PrefixTooLong { prefix_columns: usize },
    /// The transaction's changes would exceed [`crate::Datastore::set_transaction_bytes_max`].
    #[error("the transaction changes more than {bytes_max} bytes of rows; raise `limits.transaction-bytes-max` or split the work [LC0702]")]
    TransactionTooLarge { bytes_max: usize },
    /// What a transaction has changed is too large for its record, although it has counted less.
    #[error("the record of the transaction has {bytes} bytes and may have {bytes_max}; raise `limits.transaction-bytes-max` or split the work [LC0702]")]
    RecordTooLarge { bytes: usize, bytes_max: usize },
    #[error("{0}")]
    TableFull(String),
    #[error("more than {messages_max} messages of outbox tables would wait: limits.outbox-messages-max; the databases that they are for do not take them as fast as they come [LC0741]")]
    OutboxFull { messages_max: u64 },
    /// The rows of a view are the database's to write.
    #[error("`{view}` is a view: its rows follow from the tables that it reads, and only the database writes them [LC0330]")]
    View { view: String },
    /// A migration function reads it.
    #[error("`{table}` is a table as it was: a migration function reads it, and writes to those that take its place [LC0237]")]
    OldTable { table: String },
    /// A backfill fills it.
    #[error("`{table}` is a new table that a migration fills behind the running module, and nothing else reads or writes it before it is in place [LC0247]")]
    Hidden { table: String },
    /// A function for rows wants something else.
    #[error("a function for rows (`__migrate_…`) inserts into tables that the update makes, without a schedule and no event tables, and does nothing else: it reads, changes and deletes no rows. For more there is `__migrate` [LC0247]")]
    NotForRows,
    /// Such a function makes other rows of a row than the last time.
    #[error("the function has made other rows of the same row before: what it makes must depend on that row only, and on nothing that it remembers [LC0248]")]
    OtherRows,
    /// It is there for a migration function only, and only if that is to replace it.
    #[error("tables `__old_…` are there while the migration function runs, and only those that it is to replace: read the others under their own names, and delete declarations whose work an earlier version has done [LC0238]")]
    NoOldTable,
}

pub(crate) type Result<T, E = DatastoreError> = std::result::Result<T, E>;

impl DatastoreError {
    /// The number that modules see (03 §5). None where a call cannot go on and must trap.
    pub fn errno(&self) -> Option<u16> {
        Some(match self {
            DatastoreError::NotInTransaction => 2,
            DatastoreError::Decode(_) | DatastoreError::PrefixTooLong { .. } => 3,
            DatastoreError::NoSuchTable => 4,
            DatastoreError::NoSuchIndex => 5,
            DatastoreError::WrongIndexAlgorithm => 10,
            DatastoreError::UniqueAlreadyExists { .. } => 12,
            DatastoreError::ScheduleDelayTooLong => 13,
            DatastoreError::IndexNotUnique => 14,
            DatastoreError::NoSuchRow => 15,
            DatastoreError::TransactionTooLarge { .. }
            | DatastoreError::RecordTooLarge { .. }
            | DatastoreError::TableFull(_)
            | DatastoreError::OutboxFull { .. }
            | DatastoreError::View { .. }
            | DatastoreError::OldTable { .. }
            | DatastoreError::Hidden { .. }
            | DatastoreError::NotForRows
            | DatastoreError::OtherRows
            | DatastoreError::NoOldTable => return None,
        })
    }
}

impl From<TableError> for DatastoreError {
    fn from(error: TableError) -> Self {
        match error {
            TableError::Decode(error) => DatastoreError::Decode(error),
            TableError::NotOrdered => DatastoreError::WrongIndexAlgorithm,
            TableError::PrefixTooLong { prefix_columns } => {
                DatastoreError::PrefixTooLong { prefix_columns }
            }
            full @ (TableError::TableFull { .. } | TableError::BadPage { .. }) => {
                DatastoreError::TableFull(full.to_string())
            }
        }
    }
}

/// Why a table cannot be what the catalog says of it.
#[derive(Debug, thiserror::Error)]
pub enum SchemaError {
    #[error("the catalog of table {} is inconsistent: {detail} [LC0533]", table.0)]
    Catalog { table: TableId, detail: String },
    /// Rows have the same key in an index that is to be unique.
    #[error("table `{table}` has several rows with the same {} ({index}): {}{}", columns.join(", "), list_groups(groups), if *has_more { ", and more" } else { "" })]
    NotUnique {
        table: String,
        index: String,
        columns: Vec<String>,
        /// Keys, as people read them, with how many rows have each.
        groups: Vec<(String, u64)>,
        has_more: bool,
    },
    /// It took longer than it may.
    #[error("it was stopped")]
    Stopped,
    #[error("rows of table `{table}`: {detail}")]
    Rows { table: String, detail: String },
}

fn list_groups(groups: &[(String, u64)]) -> String {
    let texts: Vec<String> = groups
        .iter()
        .map(|(key, rows)| format!("{key} ({rows} rows)"))
        .collect();
    texts.join(", ")
}

/// Why a database could not be brought back. Nothing is changed on disk.
#[derive(Debug, thiserror::Error)]
pub enum RecoveryError {
    #[error(transparent)]
    Log(#[from] LogError),
    #[error(transparent)]
    Snapshot(#[from] lightcone_snapshot::SnapshotError),
    /// A record passed its checksum and does not make sense: a bug or a foreign file, never a torn write.
    #[error("log record {offset}: {detail} [LC0530]")]
    Record { offset: LogOffset, detail: String },
    #[error("snapshot of offset {offset}: {detail} [LC0531]")]
    Manifest { offset: LogOffset, detail: String },
    #[error("the log of `{}` starts at offset {log_start}, after the snapshot that ends at {snapshot_end}: records between them are missing. A newer snapshot or the oldest segments of the log were deleted or not copied along: put them back from a backup [LC0532]", directory.display())]
    Gap {
        directory: PathBuf,
        log_start: LogOffset,
        snapshot_end: LogOffset,
    },
    #[error("the database in `{}` cannot be brought back: {problems}. The log begins with transaction {log_start}, and what came before, from transaction {snapshot_end} on, was only in that snapshot. Nothing was changed. Put the undamaged file back from a backup, or restore the whole database, and start again [LC0525]", directory.display())]
    SnapshotDamaged {
        directory: PathBuf,
        /// What is wrong with which snapshot, in which file, where.
        problems: String,
        log_start: LogOffset,
        snapshot_end: LogOffset,
    },
    #[error("{error} This old part of the log is needed because {problems}. Putting the undamaged file of the snapshot back from a backup mends this as well. [LC0526]")]
    OldLogNeeded {
        problems: String,
        error: Box<RecoveryError>,
    },
    #[error("the log of `{}` ends at offset {log_end}, before the snapshot that ends at {snapshot_end}: acknowledged records are missing from the log; restore its newest segments from a backup [LC0534]", directory.display())]
    LogEndsEarly {
        directory: PathBuf,
        log_end: LogOffset,
        snapshot_end: LogOffset,
    },
    #[error(transparent)]
    Schema(#[from] SchemaError),
    /// A state of the past is wanted that snapshots and log do not lead to any more.
    #[error("the log and the snapshots lead back to transaction {oldest} only")]
    NotKept { oldest: LogOffset },
    #[error("it was given up")]
    GivenUp,
}
