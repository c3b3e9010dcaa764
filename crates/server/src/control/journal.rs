//! The journal of the control database: two logs with the same records, in `copy-1` and `copy-2`.
//!
//! Each is a log as databases have it, whose frames are chained and checksummed, so that a flipped bit, a record that vanished
//! and records that were swapped are all noticed. A change is in both, and synced, before anybody hears of it. At start all
//! of both is read: the longer intact one counts, and the other is made from it again.

use std::fs;
use std::path::{Path, PathBuf};

use lightcone_log::{Frame, LocalLog, Log as _, LogError, LogOptions};

use super::legacy;
use super::state::{encode, Change, State};
use super::ControlError;

type Result<T> = std::result::Result<T, ControlError>;

const COPIES: [&str; 2] = ["copy-1", "copy-2"];
/// In place of a database's identity.
const OWNER: [u8; 32] = *b"lightcone: the control database.";
const EPOCH: u64 = 1;
/// A journal of more records is written anew when most of them are of the past.
const REWRITE_RECORDS_MIN: usize = 10_000;
const REWRITE_FACTOR: usize = 4;

pub(super) struct Journal {
    directory: PathBuf,
    copies: Vec<LocalLog>,
    records: usize,
    /// Grows with each time that the files are written anew.
    generation: u64,
}

/// An intact copy.
struct Intact {
    log: LocalLog,
    records: Vec<Vec<u8>>,
    state: State,
}

impl Journal {
    /// Opens the journal in a directory, or begins one. An earlier version's store is taken over.
    pub fn open(directory: &Path) -> Result<(Journal, State)> {
        let paths = COPIES.map(|name| directory.join(name));
        if !paths.iter().any(|path| path.exists()) {
            let state = legacy::read(directory)?.unwrap_or_default();
            write_copies(directory, &state.records(state.generation + 1))?;
        }
        let found = paths.each_ref().map(|path| read_copy(path));
        let (copies, records, state) = agree(directory, found)?;
        // What was taken over is in the journal now.
        legacy::set_aside(directory)?;
        let mut journal = Journal {
            directory: directory.to_owned(),
            copies,
            records,
            generation: state.generation,
        };
        journal.rewrite_if_long(&state)?;
        Ok((journal, state))
    }

    /// Makes changes durable in both copies.
    ///
    /// # Errors
    /// Whether they are on the disk is unknown then: open the journal again.
    pub fn append(&mut self, changes: &[Change]) -> Result<()> {
        let record = encode(changes);
        for log in &mut self.copies {
            append_record(log, &record)?;
            log.sync()?;
        }
        self.records += 1;
        Ok(())
    }

    #[cfg(test)]
    pub fn pretend_long(&mut self) {
        self.records = REWRITE_RECORDS_MIN;
    }

    /// Writes the journal anew when it has become long: what is, without what was.
    pub fn rewrite_if_long(&mut self, state: &State) -> Result<()> {
        if self.records < REWRITE_RECORDS_MIN || self.records < state.size() * REWRITE_FACTOR {
            return Ok(());
        }
        self.generation += 1;
        let records = state.records(self.generation);
        // The files are replaced, so nobody may hold them.
        self.copies.clear();
        write_copies(&self.directory, &records)?;
        for name in COPIES {
            self.copies.push(open_log(&self.directory.join(name))?);
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

fn open_log(path: &Path) -> Result<LocalLog> {
    let (log, recovery) = LocalLog::open(path, options(), EPOCH)?;
    if recovery.torn_bytes_cut > 0 {
        tracing::warn!(copy = %path.display(), bytes = recovery.torn_bytes_cut, "an unfinished write was cut from a copy of the control database");
    }
    Ok(log)
}

fn append_record(log: &mut LocalLog, record: &[u8]) -> Result<()> {
    let frame = Frame {
        first_offset: log.tail().next_offset,
        count: 1,
        payload: &[record],
    };
    Ok(log.append(EPOCH, frame)?)
}

fn read_records(log: &LocalLog) -> Result<Vec<Vec<u8>>> {
    let mut records = Vec::new();
    let mut reader = log.read(0)?;
    while let Some(frame) = reader.next()? {
        if frame.count > 0 {
            records.push(frame.payload.to_vec());
        }
    }
    Ok(records)
}

/// A copy, if it is intact down to its last record.
fn read_copy(path: &Path) -> Result<Intact> {
    let missing = !path.join(format!("{:020}.segment", 0)).exists();
    if missing {
        // Opening it would begin a new log.
        return Err(ControlError::Record(format!(
            "{} is not there",
            path.display()
        )));
    }
    let log = open_log(path)?;
    let records = read_records(&log)?;
    let state = State::replay(records.iter().map(Vec::as_slice))?;
    Ok(Intact {
        log,
        records,
        state,
    })
}

/// Which of the copies counts, and mends the other one.
fn agree(directory: &Path, found: [Result<Intact>; 2]) -> Result<(Vec<LocalLog>, usize, State)> {
    let [first, second] = found;
    let (good, other, why) = match (first, second) {
        (Ok(first), Ok(second)) if first.records == second.records => {
            let records = first.records.len();
            return Ok((vec![first.log, second.log], records, first.state));
        }
        (Ok(first), Ok(second)) => {
            let rank = |copy: &Intact| (copy.state.generation, copy.records.len());
            let (good, bad, other) = match rank(&first) >= rank(&second) {
                true => (first, second, COPIES[1]),
                false => (second, first, COPIES[0]),
            };
            let is_older = bad.state.generation < good.state.generation
                || good.records.starts_with(&bad.records);
            if !is_older {
                let differ = |name: &str| format!("{name} has other records than its twin");
                return Err(ControlError::Damaged {
                    directory: directory.to_owned(),
                    first: differ(COPIES[0]),
                    second: differ(COPIES[1]),
                });
            }
            let missing = good.records.len().saturating_sub(bad.records.len());
            (good, other, format!("it lacks {missing} records"))
        }
        (Ok(good), Err(error)) => (good, COPIES[1], error.to_string()),
        (Err(error), Ok(good)) => (good, COPIES[0], error.to_string()),
        // Not damage: the disk, or another server.
        (Err(error @ ControlError::Log(LogError::Locked { .. } | LogError::Io { .. })), Err(_)) => {
            return Err(error)
        }
        (Err(first), Err(second)) => {
            return Err(ControlError::Damaged {
                directory: directory.to_owned(),
                first: first.to_string(),
                second: second.to_string(),
            })
        }
    };
    tracing::warn!(
        copy = other,
        why,
        "a copy of the control database is not intact; it was made again from the other one, and kept as {other}.damaged [LC0547]"
    );
    write_copy(directory, other, &good.records, "damaged")?;
    let mended = open_log(&directory.join(other))?;
    let records = good.records.len();
    Ok((vec![good.log, mended], records, good.state))
}

/// Both copies, one after the other: one of them is whole at any moment.
fn write_copies(directory: &Path, records: &[Vec<u8>]) -> Result<()> {
    for name in COPIES {
        write_copy(directory, name, records, "old")?;
        remove_all(&directory.join(format!("{name}.old")))?;
    }
    Ok(())
}

/// Writes a copy anew and puts it into place. What was there is kept beside it, once.
fn write_copy(directory: &Path, name: &str, records: &[Vec<u8>], kept_as: &str) -> Result<()> {
    let (place, new, kept) = (
        directory.join(name),
        directory.join(format!("{name}.new")),
        directory.join(format!("{name}.{kept_as}")),
    );
    remove_all(&new)?;
    let mut log = open_log(&new)?;
    for record in records {
        append_record(&mut log, record)?;
    }
    log.sync()?;
    log.close()?;
    drop(log);
    if place.exists() {
        remove_all(&kept)?;
        rename(&place, &kept)?;
    }
    rename(&new, &place)?;
    let synced = fs::File::open(directory).and_then(|directory| directory.sync_all());
    synced.map_err(io("sync", directory))
}

fn rename(from: &Path, to: &Path) -> Result<()> {
    fs::rename(from, to).map_err(io("rename", from))
}

fn remove_all(path: &Path) -> Result<()> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(io("remove", path)(error))
        }
        _ => Ok(()),
    }
}

pub(super) fn io(action: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> ControlError {
    let path = path.to_owned();
    move |source| ControlError::Io {
        action,
        path,
        source,
    }
}
