//! Bringing a database back: newest valid snapshot, then the log's tail. Module code never runs here.

use std::path::Path;

use lightcone_log::{Log, LogError, LogFeed, LogOffset};
use lightcone_snapshot::{Problem, Snapshot, SnapshotStore};

use crate::datastore::Datastore;
use crate::error::RecoveryError;
use crate::processors::Processors;
use crate::record::{Record, Records};
use crate::snapshot::snapshot_bytes;

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
    /// The newest snapshot alone, without a log, and the first transaction that is not in it. It is refused if its pages would take more
    /// than `bytes_max` in memory: a few bytes of a manifest can name one page many times.
    ///
    /// # Errors
    /// There is none, it is damaged, or it does not make sense.
    pub fn of_snapshot(
        snapshots: &mut SnapshotStore,
        bytes_max: u64,
    ) -> Result<(Datastore, LogOffset), RecoveryError> {
        let load = |datastore: &mut Datastore, snapshot: &Snapshot| {
            snapshot_bytes(snapshot).and_then(|bytes| match bytes <= bytes_max {
                true => datastore.load_snapshot(snapshot, Processors::All, &|| true),
                false => Err(RecoveryError::Manifest {
                    offset: snapshot.offset,
                    detail: format!(
                        "its pages have {bytes} bytes, and there is memory for {bytes_max}"
                    ),
                }),
            })
        };
        let loaded = load_newest(snapshots, LogOffset::MAX, load)?;
        loaded.ok_or_else(|| RecoveryError::Manifest {
            offset: LogOffset::FIRST,
            detail: match snapshots.problems() {
                [] => "there is no snapshot".to_owned(),
                problems => list(problems),
            },
        })
    }

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

    /// [`recover`](Datastore::recover) without the transactions from `end` on: the database as it was before that one, or what is
    /// durable in a log that failed. `LogOffset::MAX` is the end of the log.
    ///
    /// # Errors
    /// As [`recover`](Datastore::recover). The log ends before `end`.
    pub fn recover_until(
        directory: &Path,
        snapshots: &mut SnapshotStore,
        log: &dyn Log,
        end: LogOffset,
    ) -> Result<(Datastore, RecoveryReport), RecoveryError> {
        let mut report = RecoveryReport::default();
        let datastore = match load_newest(snapshots, end, |datastore, snapshot| {
            datastore.load_snapshot(snapshot, Processors::All, &|| true)
        })? {
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
    if end != LogOffset::MAX && end > tail.durable_offset {
        return Err(RecoveryError::Log(LogError::OutOfRange {
            wanted: end,
            oldest: tail.oldest_offset,
            next: tail.durable_offset,
        }));
    }
    let mut replayer = Replayer::new(datastore, report.next_offset).until(end);
    if tail.durable_offset.min(end) > report.next_offset {
        replayer.read(&log.feed(), |_, bytes| {
            report.replayed_bytes += bytes as u64;
            Ok(())
        })?;
    }
    report.replayed = replayer.next_offset - report.next_offset;
    report.next_offset = replayer.next_offset;
    Ok((replayer.finish()?, report))
}

/// What `load` reads of the newest snapshot of at most the transactions before `end` in which that is intact; others are set aside.
pub(crate) fn load_newest(
    snapshots: &mut SnapshotStore,
    end: LogOffset,
    load: impl Fn(&mut Datastore, &Snapshot) -> Result<(), RecoveryError>,
) -> Result<Option<(Datastore, LogOffset)>, RecoveryError> {
    while let Some(snapshot) = snapshots.latest_until(end)? {
        let mut datastore = Datastore::new();
        match load(&mut datastore, &snapshot) {
            Ok(()) => return Ok(Some((datastore, snapshot.offset))),
            Err(RecoveryError::Snapshot(error)) if error.is_unreadable() => {
                snapshots.set_aside(snapshot, error)
            }
            Err(error) => return Err(error),
        }
    }
    Ok(None)
}

/// Applies frames of a log to a database.
pub struct Replayer {
    datastore: Datastore,
    /// Transactions before this one are in the database already.
    next_offset: LogOffset,
    /// This one is not applied, and none after it.
    end: LogOffset,
    /// Nor is the first one that was committed later.
    moment: i64,
}

impl Replayer {
    pub fn new(datastore: Datastore, next_offset: LogOffset) -> Replayer {
        Replayer {
            datastore,
            next_offset,
            end: LogOffset::MAX,
            moment: i64::MAX,
        }
    }

    /// Applies nothing from the transaction `end` on.
    pub fn until(self, end: LogOffset) -> Replayer {
        Replayer { end, ..self }
    }

    /// Nor the first one that was committed after a moment, in microseconds since the Unix epoch, nor any behind that.
    pub(crate) fn at(self, moment: i64) -> Replayer {
        Replayer { moment, ..self }
    }

    /// Applies all that is durable in a log, and calls `each` behind each frame, with its bytes.
    pub(crate) fn read(
        &mut self,
        feed: &LogFeed,
        mut each: impl FnMut(&Datastore, usize) -> Result<(), RecoveryError>,
    ) -> Result<(), RecoveryError> {
        let mut frames = feed.read(self.next_offset)?;
        while self.next_offset < self.end {
            let Some(frame) = frames.next()? else {
                break;
            };
            self.apply(frame.first_offset, frame.count, frame.payload)?;
            each(&self.datastore, frame.payload.len())?;
        }
        Ok(())
    }

    /// All transactions before this one are in the database.
    pub fn next_offset(&self) -> LogOffset {
        self.next_offset
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
        let (mut offset, mut is_late) = (first_offset, false);
        for record in Records::new(payload) {
            let wrong = |detail: String| RecoveryError::Record { offset, detail };
            let record = record.map_err(|error| wrong(error.to_string()))?;
            if let Record::Clock(time) = record {
                is_late = time > self.moment;
                continue;
            }
            if is_late && offset == self.next_offset {
                self.end = self.end.min(offset);
            }
            if offset == self.next_offset && offset < self.end {
                self.datastore.apply(offset, &record)?;
                self.next_offset += 1;
            } else if offset > self.next_offset && offset < self.end {
                return Err(wrong(format!(
                    "expected transaction {} next",
                    self.next_offset
                )));
            }
            offset += 1;
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
        self.datastore.finish_replay()?;
        Ok(self.datastore)
    }
}
