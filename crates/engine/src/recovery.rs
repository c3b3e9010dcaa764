//! Bringing a database back: newest valid snapshot, then the log's tail. Module code never runs here.

use std::path::Path;

use lightcone_log::{Log, LogOffset};
use lightcone_snapshot::{Problem, SnapshotStore};
use lightcone_table::{Index, Inserted, RowId, Table};
use lightcone_types::TableId;

use crate::datastore::Datastore;
use crate::error::RecoveryError;
use crate::record::{Group, GroupKind, Record, Records};
use crate::system::{ST_TABLE_ID, SYSTEM_TABLE_ID_MAX};
use crate::table_state::TableSlot;

/// What recovery did.
#[derive(Debug, Clone, Default)]
pub struct RecoveryReport {
    /// Offset of the snapshot, if one was used: it holds all transactions before it.
    pub snapshot_offset: Option<LogOffset>,
    /// Transactions replayed from the log.
    pub replayed: u64,
    /// Bytes of their records.
    pub replayed_bytes: u64,
    /// The offset of the next transaction.
    pub next_offset: LogOffset,
}

impl Datastore {
    /// Rebuilds the database of `directory` (named in errors) from its snapshots and its log.
    ///
    /// # Errors
    /// Damage, missing records, or records that do not make sense. Nothing on disk is changed then. If there is none,
    /// damaged snapshots that were not needed are renamed.
    pub fn recover(
        directory: &Path,
        snapshots: &mut SnapshotStore,
        log: &dyn Log,
    ) -> Result<(Datastore, RecoveryReport), RecoveryError> {
        Datastore::recover_until(directory, snapshots, log, LogOffset::MAX)
    }

    /// [`recover`](Datastore::recover) without the transactions from `end` on, which must begin a frame if the log has it:
    /// what follows is not durable in a log that failed.
    ///
    /// # Errors
    /// As [`recover`](Datastore::recover).
    pub fn recover_until(
        directory: &Path,
        snapshots: &mut SnapshotStore,
        log: &dyn Log,
        end: LogOffset,
    ) -> Result<(Datastore, RecoveryReport), RecoveryError> {
        let mut report = RecoveryReport::default();
        let datastore = match load_newest(snapshots)? {
            Some((datastore, offset)) => {
                report.snapshot_offset = Some(offset);
                report.next_offset = offset;
                datastore
            }
            None => Datastore::new(),
        };
        let recovered =
            replay(directory, datastore, log, report, end).map_err(|error| match &error {
                RecoveryError::Log(_) if !snapshots.problems().is_empty() => {
                    RecoveryError::OldLogNeeded {
                        problems: list(snapshots.problems()),
                        error: Box::new(error),
                    }
                }
                RecoveryError::Gap {
                    log_start,
                    snapshot_end,
                    ..
                } if !snapshots.problems().is_empty() => RecoveryError::SnapshotDamaged {
                    directory: directory.to_owned(),
                    problems: list(snapshots.problems()),
                    log_start: *log_start,
                    snapshot_end: *snapshot_end,
                },
                _ => error,
            })?;
        snapshots.rename_damaged()?;
        Ok(recovered)
    }
}

fn list(problems: &[Problem]) -> String {
    let texts: Vec<String> = problems.iter().map(Problem::to_string).collect();
    texts.join("; and ")
}

/// Replays what the log has behind the snapshot, up to `end`.
fn replay(
    directory: &Path,
    datastore: Datastore,
    log: &dyn Log,
    mut report: RecoveryReport,
    end: LogOffset,
) -> Result<(Datastore, RecoveryReport), RecoveryError> {
    let tail = log.tail();
    // A snapshot is published only after its transactions are durable in the log, so the log lost its end: going on
    // would give their offsets to other transactions, which the next recovery would skip.
    if tail.next_offset < report.next_offset {
        return Err(RecoveryError::LogEndsEarly {
            directory: directory.to_owned(),
            log_end: tail.next_offset,
            snapshot_end: report.next_offset,
        });
    }
    if tail.oldest_offset > report.next_offset {
        return Err(RecoveryError::Gap {
            directory: directory.to_owned(),
            log_start: tail.oldest_offset,
            snapshot_end: report.next_offset,
        });
    }
    let mut replayer = Replayer::new(datastore, report.next_offset);
    if tail.next_offset.min(end) > report.next_offset {
        let mut frames = log.read(report.next_offset)?;
        while replayer.next_offset < end {
            let Some(frame) = frames.next()? else {
                break;
            };
            report.replayed_bytes += frame.payload.len() as u64;
            replayer.apply(frame.first_offset, frame.count, frame.payload)?;
        }
    }
    report.replayed = replayer.next_offset - report.next_offset;
    report.next_offset = replayer.next_offset;
    Ok((replayer.finish()?, report))
}

/// The newest snapshot that is intact down to its last page; others are set aside.
fn load_newest(
    snapshots: &mut SnapshotStore,
) -> Result<Option<(Datastore, LogOffset)>, RecoveryError> {
    while let Some(snapshot) = snapshots.latest()? {
        let mut datastore = Datastore::new();
        match datastore.load_snapshot(&snapshot) {
            Ok(()) => return Ok(Some((datastore, snapshot.offset))),
            Err(RecoveryError::Snapshot(error)) if error.is_unreadable() => {
                snapshots.set_aside(snapshot, error)
            }
            Err(error) => return Err(error),
        }
    }
    Ok(None)
}

/// Applies log records to a database.
pub struct Replayer {
    datastore: Datastore,
    /// Transactions before this one are in the database already.
    next_offset: LogOffset,
}

impl Replayer {
    pub fn new(datastore: Datastore, next_offset: LogOffset) -> Replayer {
        Replayer {
            datastore,
            next_offset,
        }
    }

    /// Applies the payload of a frame: the records of `count` transactions, of which the first has the number
    /// `first_offset`. Transactions that the database holds already are skipped.
    ///
    /// # Errors
    /// The payload is not a list of so many records, or does not fit the database.
    pub fn apply(
        &mut self,
        first_offset: LogOffset,
        count: u32,
        payload: &[u8],
    ) -> Result<(), RecoveryError> {
        let mut offset = first_offset;
        for record in Records::new(payload) {
            let wrong = |detail: String| RecoveryError::Record { offset, detail };
            match record.map_err(|error| wrong(error.to_string()))? {
                Record::Clock(_) => {}
                record @ (Record::Transaction1(_) | Record::Transaction(_)) => {
                    if offset == self.next_offset {
                        self.apply_transaction(&record, offset)?;
                        self.next_offset += 1;
                    } else if offset > self.next_offset {
                        return Err(wrong(format!(
                            "expected transaction {} next",
                            self.next_offset
                        )));
                    }
                    offset += 1;
                }
            }
        }
        // Else the numbers of all later transactions would be those of others.
        if offset - first_offset != u64::from(count) {
            return Err(RecoveryError::Record {
                offset: first_offset,
                detail: format!(
                    "its frame has {count} transactions, and {} records of them",
                    offset - first_offset
                ),
            });
        }
        Ok(())
    }

    /// The database, ready for transactions.
    ///
    /// # Errors
    /// The catalog is inconsistent.
    pub fn finish(mut self) -> Result<Datastore, RecoveryError> {
        self.datastore.sync_with_catalog()?;
        self.datastore.restore_sequences();
        Ok(self.datastore)
    }

    fn apply_transaction(
        &mut self,
        record: &Record<'_>,
        offset: LogOffset,
    ) -> Result<(), RecoveryError> {
        let wrong = |detail: String| RecoveryError::Record { offset, detail };
        match record {
            Record::Clock(_) => Ok(()),
            Record::Transaction(groups) => self.apply_groups(groups).map_err(wrong),
            Record::Transaction1(groups) => self.apply_first_version(groups, wrong),
        }
    }

    /// Groups come in order of table ids there, so the catalog is complete before the rows of its tables.
    fn apply_first_version(
        &mut self,
        groups: &[Group<'_>],
        wrong: impl Fn(String) -> RecoveryError,
    ) -> Result<(), RecoveryError> {
        let first_user = groups.partition_point(|group| group.table.0 <= SYSTEM_TABLE_ID_MAX);
        let (catalog, user) = groups.split_at(first_user);
        self.apply_groups(catalog).map_err(&wrong)?;
        if catalog.iter().any(|group| group.table == ST_TABLE_ID) {
            self.datastore.sync_with_catalog()?;
        }
        self.apply_groups(user).map_err(&wrong)
    }

    fn apply_groups(&mut self, groups: &[Group<'_>]) -> Result<(), String> {
        let is_of_rows = |group: &Group<'_>| group.kind < GroupKind::Schema;
        let belongs =
            |a: &Group<'_>, b: &Group<'_>| a.table == b.table && is_of_rows(a) && is_of_rows(b);
        for table_groups in groups.chunk_by(belongs) {
            let group = &table_groups[0];
            match group.kind {
                GroupKind::Schema => self.follow_catalog(group)?,
                GroupKind::Copy => self.copy_rows(group)?,
                _ => self.apply_rows(table_groups)?,
            }
        }
        Ok(())
    }

    /// The groups of rows of one table: first everything that goes, then everything that comes, so that no unique key is held twice
    /// in between.
    fn apply_rows(&mut self, groups: &[Group<'_>]) -> Result<(), String> {
        for group in groups {
            self.remove_rows(group)?;
        }
        groups.iter().try_for_each(|group| self.add_rows(group))
    }

    fn follow_catalog(&mut self, group: &Group<'_>) -> Result<(), String> {
        require_end(group.rows)?;
        // What it was is not needed again.
        let changed = self.datastore.apply_catalog(group.table, &mut |_| true);
        changed.map(drop).map_err(text)
    }

    fn copy_rows(&mut self, group: &Group<'_>) -> Result<(), String> {
        let Some((from, suffix)) = group.rows.split_first_chunk() else {
            return Err("a copy without the table that it is of".to_owned());
        };
        let from = TableId(u32::from_le_bytes(*from));
        let copied = self
            .datastore
            .apply_copy((from, group.table), suffix, &mut |_| true);
        copied.map_err(text)
    }

    fn remove_rows(&mut self, group: &Group<'_>) -> Result<(), String> {
        if matches!(group.kind, GroupKind::Insert | GroupKind::Event) {
            return Ok(());
        }
        let slot = self.slot_of(group)?;
        let table = &mut self.datastore.at_mut(slot).table;
        let in_place = is_put_in_place(group, table);
        let mut rest = group.rows;
        for _ in 0..group.row_count {
            let (length, found) = find_replaced(table, group, rest)?;
            match found {
                Some(id) if in_place => {
                    table.replace(id, &rest[..length]).map_err(text)?;
                }
                Some(id) => table.delete(id),
                None if group.kind == GroupKind::Put => {}
                None => return Err(format!("table {} has no such row to delete", group.table)),
            }
            rest = &rest[length..];
        }
        require_end(rest)
    }

    fn add_rows(&mut self, group: &Group<'_>) -> Result<(), String> {
        if !matches!(group.kind, GroupKind::Insert | GroupKind::Put) {
            return Ok(());
        }
        let slot = self.slot_of(group)?;
        let table = &mut self.datastore.at_mut(slot).table;
        let in_place = is_put_in_place(group, table);
        let mut rest = group.rows;
        for _ in 0..group.row_count {
            let length = row_length(table, rest)?;
            match table.insert(&rest[..length]) {
                Ok(Inserted::New(_)) => {}
                // `remove_rows` has put it there.
                Ok(Inserted::Same(_)) if in_place => {}
                Ok(Inserted::Same(_)) => {
                    return Err(format!(
                        "table {} holds an inserted row already",
                        group.table
                    ))
                }
                Err(error) => return Err(format!("table {}: {error}", group.table)),
            }
            rest = &rest[length..];
        }
        require_end(rest)
    }

    fn slot_of(&self, group: &Group<'_>) -> Result<TableSlot, String> {
        let slot = self.datastore.slot(group.table);
        slot.map_err(|_| format!("table {} does not exist", group.table))
    }
}

/// Whether new rows take the places of the old ones, as nothing can be in the way: the common case of a log of updates.
fn is_put_in_place(group: &Group<'_>, table: &Table) -> bool {
    group.kind == GroupKind::Put && table.indexes().len() == 1
}

/// The index by whose keys the rows of a group are named.
fn identity_index<'t>(table: &'t Table, group: &Group<'_>) -> Result<&'t Index, String> {
    let index = match group.index {
        Some(position) => table.indexes().get(position),
        None => table.identity_index(),
    };
    let named = group.index.unwrap_or(0);
    index
        .filter(|index| index.is_unique())
        .ok_or_else(|| format!("table {} has no unique index {named}", group.table))
}

/// The length of the first row or key in `rows`, and the row that goes because of it.
fn find_replaced(
    table: &Table,
    group: &Group<'_>,
    rows: &[u8],
) -> Result<(usize, Option<RowId>), String> {
    if group.kind == GroupKind::DeleteByKey {
        let index = identity_index(table, group)?;
        let length = index.point_len(table.layout(), rows).map_err(text)?;
        let found = index.find_point(table.rows(), table.layout(), &rows[..length]);
        return Ok((length, found.map_err(text)?));
    }
    let length = row_length(table, rows)?;
    let row = &rows[..length];
    let found = match group.kind {
        GroupKind::DeleteRow => table.find_equal(row),
        _ => identity_index(table, group)?.find_row(table.rows(), table.layout(), row),
    };
    Ok((length, found))
}

/// The length of the first row in `rows`.
fn row_length(table: &Table, rows: &[u8]) -> Result<usize, String> {
    table.layout().validate_prefix(rows).map_err(text)
}

fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}

fn require_end(rest: &[u8]) -> Result<(), String> {
    match rest.is_empty() {
        true => Ok(()),
        false => Err(format!("{} bytes follow the rows of a group", rest.len())),
    }
}
