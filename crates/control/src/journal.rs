//! The journal of the control database: two logs with the same records, in `copy-1` and `copy-2`.
//!
//! Each is a log as databases have it, whose frames are chained and checksummed, so that a flipped bit, a record that vanished
//! and records that were swapped are all noticed. A change is in both, and synced, before it is acknowledged; the first copy has
//! it first. At start all of both is read: the longer intact one counts, and the other is made from it again. Where the disk does
//! not take that, one copy has to do until it does; the next change waits for it.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use lightcone_log::{Frame, LocalLog, Log as _, LogCheck, LogError, LogOffset, LogOptions};
use lightcone_storage::Storage;

use super::error::{ControlError, Result};
use super::state::{encode, Change, State};

const COPIES: [&str; 2] = ["copy-1", "copy-2"];
/// What development versions kept before there was a journal.
const OLD_FILES: [&str; 2] = ["control.redb", "control.redb.taken-over"];
/// In place of a database's identity.
const OWNER: [u8; 32] = *b"lightcone: the control database.";
/// A journal of more records is written anew when most of them are of the past.
const REWRITE_RECORDS_MIN: usize = 10_000;
const REWRITE_FACTOR: usize = 4;
/// What is kept of a copy that does not count, and of one that is being replaced.
const DAMAGED: &str = "damaged";
const OLD: &str = "old";

pub(super) struct Journal {
    files: Files,
    /// In the order of [`COPIES`], without the one that is lacking.
    copies: Vec<LocalLog>,
    /// A copy that is to be made again from the other one.
    lacking: Option<usize>,
    records: usize,
    /// Grows with each time that the files are written anew.
    generation: u64,
}

/// Where the copies are.
struct Files {
    storage: Arc<dyn Storage>,
    directory: PathBuf,
}

/// An intact copy.
struct Intact {
    log: LocalLog,
    records: Vec<Vec<u8>>,
    state: State,
}

impl Journal {
    /// Opens the journal in a directory, or begins one.
    pub fn open(storage: &Arc<dyn Storage>, directory: &Path) -> Result<(Journal, State)> {
        let (mut journal, state) = Self::open_as_it_is(storage, directory)?;
        match journal.rewrite_if_long(&state) {
            Ok(()) => Ok((journal, state)),
            Err(error) => {
                tracing::error!(%error, "the control database could not be written anew; it is used as it is");
                drop(journal);
                Self::open_as_it_is(storage, directory)
            }
        }
    }

    fn open_as_it_is(storage: &Arc<dyn Storage>, directory: &Path) -> Result<(Journal, State)> {
        let files = Files {
            storage: storage.clone(),
            directory: directory.to_owned(),
        };
        let paths = COPIES.map(|name| directory.join(name));
        if !paths.iter().any(|path| path.exists()) {
            let mut old = OLD_FILES.iter().map(|name| directory.join(name));
            if let Some(path) = old.find(|path| path.exists()) {
                return Err(ControlError::OldFile(path));
            }
            files.write_copies(&State::default().records(1))?;
        }
        let found = COPIES.map(|name| files.read_copy(name));
        let (copies, lacking, records, state) = agree(directory, found)?;
        if lacking == Some(0) {
            // It might be read again one day, with a change that counts as not made.
            files.set_aside(COPIES[0], DAMAGED)?;
            files.sync()?;
        }
        let mut journal = Journal {
            files,
            copies,
            lacking,
            records,
            generation: state.generation,
        };
        if let Err(error) = journal.complete() {
            tracing::error!(%error, "a copy of the control database cannot be made again; the other one has to do until the next change [LC0547]");
        }
        Ok((journal, state))
    }

    /// Makes the copy that is lacking from the other one.
    fn complete(&mut self) -> Result<()> {
        let Some(lacking) = self.lacking else {
            return Ok(());
        };
        let name = COPIES[lacking];
        let records = read_records(&self.copies[0])?;
        self.files.write_copy(name, &records, DAMAGED)?;
        let made = self.files.open_log(name)?;
        self.copies.insert(lacking, made);
        self.lacking = None;
        tracing::warn!(copy = name, "a copy of the control database was made again from the other one; what was there is kept as {name}.{DAMAGED} [LC0547]");
        Ok(())
    }

    /// Makes changes durable in both copies.
    ///
    /// # Errors
    /// Whether they are on the disk is unknown then: open the journal again.
    pub fn append(&mut self, changes: &[Change]) -> Result<()> {
        self.complete()?;
        let record = encode(changes);
        for log in &mut self.copies {
            append_record(log, &record)?;
            log.sync()?;
        }
        self.records += 1;
        Ok(())
    }

    /// Reads the copies once more, as they are on the disk now.
    pub fn checks(&self) -> Vec<Result<LogCheck, LogError>> {
        let copies = self.copies.iter();
        let checks = copies.map(|log| LogCheck::of_open(&log.feed(), LogOffset::FIRST));
        checks.collect()
    }

    /// Makes the journal long, with the same change again and again.
    #[cfg(test)]
    pub fn fill(&mut self, change: &Change) -> Result<()> {
        let record = encode(std::slice::from_ref(change));
        for log in &mut self.copies {
            for _ in 0..REWRITE_RECORDS_MIN {
                append_record(log, &record)?;
            }
        }
        Ok(())
    }

    #[cfg(test)]
    pub fn pretend_long(&mut self) {
        self.records = REWRITE_RECORDS_MIN;
    }

    /// Writes the journal anew when it has become long: what is, without what was.
    ///
    /// # Errors
    /// Everything is on the disk as before, in one of the copies at least: open the journal again.
    pub fn rewrite_if_long(&mut self, state: &State) -> Result<()> {
        let is_long =
            self.records >= REWRITE_RECORDS_MIN && self.records >= state.size() * REWRITE_FACTOR;
        if !is_long || self.lacking.is_some() {
            return Ok(());
        }
        self.generation += 1;
        let records = state.records(self.generation);
        // The files are replaced, so they must not be open.
        self.copies.clear();
        self.files.write_copies(&records)?;
        for name in COPIES {
            self.copies.push(self.files.open_log(name)?);
        }
        self.records = records.len();
        Ok(())
    }
}

impl Drop for Journal {
    fn drop(&mut self) {
        for log in &mut self.copies {
            // With the mark of a proper end even a flipped bit in the last record is no torn write.
            if let Err(error) = log.close() {
                tracing::warn!(%error, "the control database was not closed properly");
            }
        }
    }
}

fn options() -> LogOptions {
    LogOptions {
        database: OWNER,
        preallocate: false,
        ..LogOptions::default()
    }
}

fn append_record(log: &mut LocalLog, record: &[u8]) -> Result<()> {
    let tail = log.tail();
    let frame = Frame {
        first_offset: tail.next_offset,
        count: 1,
        payload: &[record],
    };
    Ok(log.append(tail.epoch, frame)?)
}

fn read_records(log: &LocalLog) -> Result<Vec<Vec<u8>>> {
    let mut records = Vec::new();
    let mut reader = log.feed().read(LogOffset::FIRST)?;
    while let Some(frame) = reader.next()? {
        records.push(frame.payload.to_vec());
    }
    Ok(records)
}

impl Files {
    fn open_log(&self, name: &str) -> Result<LocalLog> {
        let path = self.directory.join(name);
        let (log, recovery) = LocalLog::open_on(self.storage.clone(), &path, options())?;
        if recovery.torn_bytes_cut > 0 {
            tracing::warn!(copy = %path.display(), bytes = recovery.torn_bytes_cut, "an unfinished write was cut from a copy of the control database");
        }
        Ok(log)
    }

    /// A copy, if it is intact down to its last record.
    fn read_copy(&self, name: &str) -> Result<Intact> {
        let path = self.directory.join(name);
        if !path.join(format!("{:020}.segment", 0)).exists() {
            // Opening it would begin a new log.
            let text = format!("{} is not there", path.display());
            return Err(ControlError::Record(text));
        }
        let log = self.open_log(name)?;
        let records = read_records(&log)?;
        let state = State::replay(records.iter().map(Vec::as_slice));
        let state = state.map_err(ControlError::Record)?;
        Ok(Intact {
            log,
            records,
            state,
        })
    }

    /// Both copies, one after the other: one of them is whole at any moment.
    fn write_copies(&self, records: &[Vec<u8>]) -> Result<()> {
        for name in COPIES {
            self.write_copy(name, records, OLD)?;
            remove_all(&self.directory.join(format!("{name}.{OLD}")))?;
        }
        Ok(())
    }

    /// Writes a copy anew and puts it into place. What was there is kept beside it, once.
    fn write_copy(&self, name: &str, records: &[Vec<u8>], kept_as: &str) -> Result<()> {
        let new_name = format!("{name}.new");
        let new = self.directory.join(&new_name);
        remove_all(&new)?;
        let mut log = self.open_log(&new_name)?;
        for record in records {
            append_record(&mut log, record)?;
        }
        log.sync()?;
        log.close()?;
        drop(log);
        self.set_aside(name, kept_as)?;
        rename(&new, &self.directory.join(name))?;
        self.sync()
    }

    /// Takes what is in a copy's place out of it, and keeps it beside it.
    fn set_aside(&self, name: &str, kept_as: &str) -> Result<()> {
        let place = self.directory.join(name);
        let kept = self.directory.join(format!("{name}.{kept_as}"));
        if place.exists() {
            remove_all(&kept)?;
            rename(&place, &kept)?;
        }
        Ok(())
    }

    /// Makes the names of the copies durable.
    fn sync(&self) -> Result<()> {
        let synced = self.storage.sync_directory(&self.directory);
        synced.map_err(ControlError::io("sync", &self.directory))
    }
}

type Agreed = (Vec<LocalLog>, Option<usize>, usize, State);

/// Which of the copies counts: the logs that are intact, which one is lacking, how many records there are, and what they make.
fn agree(directory: &Path, found: [Result<Intact>; 2]) -> Result<Agreed> {
    let [first, second] = found;
    let (good, lacking, why) = match (first, second) {
        (Ok(first), Ok(second)) if first.records == second.records => {
            let records = first.records.len();
            return Ok((vec![first.log, second.log], None, records, first.state));
        }
        (Ok(first), Ok(second)) => newer(directory, first, second)?,
        (Err(error), _) | (_, Err(error)) if is_locked(&error) => return Err(error),
        (Ok(good), Err(error)) => (good, 1, error.to_string()),
        // Without damage the first copy may have a change that the second has not.
        (Err(error), _) if is_passing(&error) => return Err(error),
        (Err(error), Ok(good)) => (good, 0, error.to_string()),
        // The disk or its rights; a backup would not help.
        (Err(error), Err(_)) | (Err(_), Err(error)) if is_io(&error) => return Err(error),
        (Err(first), Err(second)) => {
            return Err(ControlError::Damaged {
                directory: directory.to_owned(),
                first: first.to_string(),
                second: second.to_string(),
            })
        }
    };
    tracing::warn!(
        copy = COPIES[lacking],
        why,
        "a copy of the control database is not intact [LC0547]"
    );
    let records = good.records.len();
    Ok((vec![good.log], Some(lacking), records, good.state))
}

/// Of two intact copies the one that counts, which one does not, and why.
fn newer(directory: &Path, first: Intact, second: Intact) -> Result<(Intact, usize, String)> {
    let rank = |copy: &Intact| (copy.state.generation, copy.records.len());
    let (good, old, lacking) = match rank(&first) >= rank(&second) {
        true => (first, second, 1),
        false => (second, first, 0),
    };
    let is_older =
        old.state.generation < good.state.generation || good.records.starts_with(&old.records);
    if !is_older {
        let differ = |name: &str| format!("{name} has other records than its twin");
        return Err(ControlError::Damaged {
            directory: directory.to_owned(),
            first: differ(COPIES[0]),
            second: differ(COPIES[1]),
        });
    }
    let missing = good.records.len().saturating_sub(old.records.len());
    Ok((good, lacking, format!("it lacks {missing} records")))
}

fn is_locked(error: &ControlError) -> bool {
    matches!(error, ControlError::Log(error) if matches!(error.root(), LogError::Locked { .. }))
}

fn is_io(error: &ControlError) -> bool {
    matches!(error, ControlError::Log(error) if matches!(error.root(), LogError::Io { .. }))
}

/// Something ran out that may be given back, like disk space or file descriptors.
fn is_passing(error: &ControlError) -> bool {
    matches!(error, ControlError::Log(error) if error.is_passing())
}

fn rename(from: &Path, to: &Path) -> Result<()> {
    fs::rename(from, to).map_err(ControlError::io("rename", from))
}

fn remove_all(path: &Path) -> Result<()> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(ControlError::io("remove", path)(error))
        }
        _ => Ok(()),
    }
}
