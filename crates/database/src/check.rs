//! Reading again all that a recovery of a database would read, so that damage is known before a start needs the files.

use lightcone_log::{LogCheck, LogError, LogFeed, LogOffset};
use lightcone_snapshot::{ObjectHash, Problem, Snapshot, SnapshotError, SnapshotStore};

use crate::handle::DatabaseHandle;
use crate::inbox::Input;
use crate::options::DatabaseOptions;

/// Bytes that are read at a time, or one object or frame.
const STEP_BYTES: u64 = 1 << 20;
/// What is damaged must be so more than once: another process may have changed the files meanwhile, or the machine may have misread.
const READS: usize = 2;

/// A recovery that is tried, on the files alone. It holds no lock and no database open.
pub struct DatabaseCheck {
    options: DatabaseOptions,
    /// If the database is open.
    feed: Option<LogFeed>,
    snapshots: SnapshotStore,
    /// The newest one that was there at the begin: what recovery needs is another thing when there is a newer one.
    newest: Option<LogOffset>,
    stage: Stage,
    log_reads: usize,
    log_error: Option<LogError>,
    log_fails_behind: bool,
}

enum Stage {
    /// Of the newest snapshot that is intact so far: the objects that are not read yet, the next one last.
    Objects(Snapshot, Vec<ObjectHash>),
    /// From where it is needed.
    LogFrom(LogOffset),
    Log(LogOffset, Box<LogCheck>),
    Over,
}

/// What a check has found.
#[derive(Debug, Default)]
pub struct Damage {
    /// Snapshots that cannot be used.
    pub snapshots: Vec<Problem>,
    /// Why the log cannot be read behind the newest one that can.
    pub log: Option<LogError>,
    /// It is damaged behind that one, so that a newer one has what is damaged.
    pub log_fails_behind: bool,
}

impl Damage {
    pub fn is_empty(&self) -> bool {
        self.snapshots.is_empty() && self.log.is_none()
    }

    /// Each with file and place.
    pub fn texts(&self) -> Vec<String> {
        let snapshots = self.snapshots.iter().map(Problem::to_string);
        let log = self.log.iter().map(LogError::to_string);
        snapshots.chain(log).collect()
    }
}

impl DatabaseCheck {
    /// `running`: if the database is open. It is not kept open. Blocks.
    ///
    /// # Errors
    /// The directory cannot be read.
    pub fn begin(
        options: DatabaseOptions,
        running: Option<&DatabaseHandle>,
    ) -> Result<DatabaseCheck, SnapshotError> {
        let storage = options.storage.clone();
        let mut snapshots = SnapshotStore::beside(storage, &options.snapshots_directory())?;
        let newest = snapshots.offsets()?.last().copied();
        let stage = begin_snapshot(&mut snapshots)?;
        Ok(DatabaseCheck {
            options,
            feed: running.and_then(|handle| handle.shared.status.feed().cloned()),
            snapshots,
            newest,
            stage,
            log_reads: 0,
            log_error: None,
            log_fails_behind: false,
        })
    }

    /// Reads on. About how many bytes were read; none at the end. Blocks for a bounded piece of work.
    ///
    /// # Errors
    /// The directory cannot be read.
    pub fn step(&mut self) -> Result<Option<u64>, SnapshotError> {
        let mut bytes = 0;
        while bytes < STEP_BYTES {
            if matches!(self.stage, Stage::Over) {
                return Ok((bytes > 0).then_some(bytes));
            }
            bytes += self.read()?;
        }
        Ok(Some(bytes))
    }

    fn read(&mut self) -> Result<u64, SnapshotError> {
        let stage = std::mem::replace(&mut self.stage, Stage::Over);
        match stage {
            Stage::Objects(mut snapshot, mut objects) => {
                let Some(hash) = objects.pop() else {
                    snapshot.forget_cached();
                    self.stage = Stage::LogFrom(snapshot.offset);
                    return Ok(0);
                };
                snapshot.close_before(&hash);
                match read_object(&snapshot, &hash) {
                    Ok(bytes) => {
                        self.stage = Stage::Objects(snapshot, objects);
                        Ok(bytes)
                    }
                    // As recovery does it.
                    Err(error) => {
                        self.snapshots.set_aside(snapshot, error);
                        self.stage = begin_snapshot(&mut self.snapshots)?;
                        Ok(0)
                    }
                }
            }
            Stage::LogFrom(from) => {
                self.log_reads += 1;
                match self.begin_log(from) {
                    Ok(log) => self.stage = Stage::Log(from, Box::new(log)),
                    Err(error) => self.log_failed(from, error, false),
                }
                Ok(0)
            }
            Stage::Log(from, mut log) => match log.step() {
                Ok(Some(bytes)) => {
                    self.stage = Stage::Log(from, log);
                    Ok(bytes)
                }
                Ok(None) => Ok(0),
                Err(error) => {
                    let is_behind = log.next_offset() >= from;
                    self.log_failed(from, error, is_behind);
                    Ok(0)
                }
            },
            Stage::Over => Ok(0),
        }
    }

    fn begin_log(&self, from: LogOffset) -> Result<LogCheck, LogError> {
        if let Some(feed) = &self.feed {
            return LogCheck::of_open(feed, from);
        }
        let options = &self.options;
        let database = options.identity.to_le_bytes();
        LogCheck::of_closed(
            options.storage.clone(),
            &options.log_directory(),
            &database,
            from,
        )
    }

    fn log_failed(&mut self, from: LogOffset, error: LogError, is_behind: bool) {
        if self.log_reads < READS {
            self.stage = Stage::LogFrom(from);
        } else {
            (self.log_error, self.log_fails_behind) = (Some(error), is_behind);
        }
    }

    /// What was found. None: what recovery would need is not what it was at the begin, so another check has to say it. Blocks.
    ///
    /// # Errors
    /// The directory cannot be read.
    pub fn damage(self) -> Result<Option<Damage>, SnapshotError> {
        let is_current = self.snapshots.offsets()?.last().copied() == self.newest;
        let mut problems = self.snapshots.problems().iter();
        let log_is_unread = self.log_error.as_ref().is_some_and(LogError::is_passing);
        if log_is_unread || problems.any(|problem| problem.error.is_passing()) {
            return Ok(None);
        }
        let damage = Damage {
            snapshots: self.snapshots.into_problems(),
            log: self.log_error,
            log_fails_behind: self.log_fails_behind,
        };
        Ok((is_current || damage.is_empty()).then_some(damage))
    }
}

impl DatabaseHandle {
    /// Has a snapshot written now, because of damage to what the next start would read: what is in memory is good, and replaces it. Not
    /// where the last segment of the log is damaged before the newest snapshot: a start reads all of that in any case, backups can be made, and
    /// a repair, which cuts the log there, needs the snapshots before it.
    pub fn mend(&self, damage: Damage) {
        let replaces = !damage.snapshots.is_empty();
        self.shared.snapshots.add_damaged(damage.snapshots);
        let file = damage.log.as_ref().and_then(LogError::file);
        let is_last = |feed: &LogFeed| file.is_some_and(|file| feed.is_last(file));
        if !damage.log_fails_behind && self.shared.status.feed().is_some_and(is_last) {
            return;
        }
        // A writer that has stopped writes no more snapshots.
        let _ = self.shared.inbox.send(Input::WantSnapshot { replaces });
    }
}

/// With the snapshot that recovery would begin with, or with the log.
fn begin_snapshot(snapshots: &mut SnapshotStore) -> Result<Stage, SnapshotError> {
    let Some(snapshot) = snapshots.latest()? else {
        return Ok(Stage::LogFrom(LogOffset::FIRST));
    };
    snapshot.forget_cached();
    let mut objects = snapshot.objects_by_file();
    objects.reverse();
    Ok(Stage::Objects(snapshot, objects))
}

fn read_object(snapshot: &Snapshot, hash: &ObjectHash) -> Result<u64, SnapshotError> {
    let mut read = snapshot.read(hash);
    for _ in 1..READS {
        if read.is_err() {
            snapshot.forget_cached();
            read = snapshot.read(hash);
        }
    }
    read.map(|object| object.len() as u64)
}
