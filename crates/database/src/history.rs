//! What a database notes of its history, beside snapshots and log: when the snapshots were begun, and where the last backup ends. The
//! file is drawn in `docs/on-disk-formats.md`.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::str::FromStr;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use lightcone_backup::Place;
use lightcone_log::LogOffset;
use lightcone_snapshot::{ObjectHash, SnapshotError, SnapshotStore};
use lightcone_storage::{Directory, FilePosition, OpenMode};
use lightcone_types::Timestamp;
use parking_lot::Mutex;

use crate::metrics::Retained;
use crate::options::DatabaseOptions;

const FILE: &str = "history";
/// While it is written.
const PART: &str = "history.tmp";
const FILE_BYTES_MAX: u64 = 1 << 20;

#[derive(Default)]
pub(crate) struct History {
    known: Mutex<Known>,
    /// Held while the file is written.
    writing: Mutex<()>,
    lost: AtomicU64,
}

/// What the file has, and which snapshots there are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Known {
    /// Where the last complete backup ends.
    pub backed_up: Option<Place>,
    /// When each snapshot was begun, in microseconds since the Unix epoch: all transactions in it were committed by then. None: it
    /// is of a server that did not note it.
    pub snapshots: BTreeMap<LogOffset, Option<i64>>,
}

impl History {
    /// Of a database that is opened. Blocks. What cannot be read is not known: then more is kept.
    pub fn open(options: &DatabaseOptions) -> History {
        if options.in_memory {
            return History::default();
        }
        let mut known = Known::read(options).unwrap_or_else(|error| {
            tracing::warn!(database = %options.identity, %error, "what is known of its history cannot be read");
            Known::default()
        });
        let store = SnapshotStore::beside(options.storage.clone(), &options.snapshots_directory());
        // Recovery has told of a directory that cannot be read.
        if let Ok(offsets) = store.and_then(|store| store.offsets()) {
            known.keep(&offsets);
        }
        History {
            known: Mutex::new(known),
            ..History::default()
        }
    }

    /// From where on the history can be read, if the log begins with `oldest`.
    pub fn retained(&self, oldest: LogOffset) -> Retained {
        let known = self.known.lock();
        let first = known.snapshots.range(oldest..).next();
        let (from, since) = match first.filter(|_| oldest > LogOffset::FIRST) {
            Some((offset, since)) => (*offset, since.map(Timestamp)),
            None => (oldest, None),
        };
        Retained {
            from,
            since,
            backed_up: known.backed_up.map(|place| place.offset),
            lost: self.lost.load(Relaxed),
        }
    }

    /// What is known now.
    pub fn known(&self) -> Known {
        self.known.lock().clone()
    }

    /// So many transactions are gone that were to wait for a backup.
    pub fn note_lost(&self, transactions: u64) {
        self.lost.fetch_add(transactions, Relaxed);
    }

    /// Changes what is known, also if it cannot be written.
    pub fn change(
        &self,
        options: &DatabaseOptions,
        change: impl FnOnce(&mut Known),
    ) -> Result<(), SnapshotError> {
        let _writing = self.writing.lock();
        let known = {
            let mut known = self.known.lock();
            change(&mut known);
            known.clone()
        };
        known.write(options)
    }
}

impl Known {
    /// Forgets snapshots that have gone, and learns of others.
    pub fn keep(&mut self, offsets: &[LogOffset]) {
        let times = std::mem::take(&mut self.snapshots);
        let time = |offset: &LogOffset| times.get(offset).copied().flatten();
        self.snapshots = offsets.iter().map(|o| (*o, time(o))).collect();
    }

    fn read(options: &DatabaseOptions) -> Result<Known, SnapshotError> {
        let directory = Directory::new(options.storage.clone(), &options.directory);
        let file = match directory.open(&directory.join(FILE), OpenMode::Read) {
            Err(error) if error.source.kind() == ErrorKind::NotFound => {
                return Ok(Known::default());
            }
            opened => opened?,
        };
        let mut bytes = vec![0; file.end()?.get().min(FILE_BYTES_MAX) as usize];
        let read = file.read_full(&mut bytes, FilePosition::START)?;
        let known = std::str::from_utf8(&bytes[..read]).ok();
        let known = known.and_then(|text| text.parse().ok());
        Ok(known.unwrap_or_else(|| {
            tracing::warn!(database = %options.identity, file = FILE, "what is known of its history is damaged, and begins anew");
            Known::default()
        }))
    }

    fn write(&self, options: &DatabaseOptions) -> Result<(), SnapshotError> {
        let directory = Directory::new(options.storage.clone(), &options.directory);
        let part = directory.join(PART);
        directory.remove_if_there(&part)?;
        let file = directory.open(&part, OpenMode::CreateNew)?;
        file.write(&[self.to_string().as_bytes()], FilePosition::START)?;
        file.sync()?;
        directory.name(&part, &directory.join(FILE))?;
        Ok(directory.sync()?)
    }
}

impl std::fmt::Display for Known {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut lines = String::new();
        if let Some(place) = &self.backed_up {
            lines.push_str(&format!("backed-up {place}\n"));
        }
        for (offset, time) in &self.snapshots {
            if let Some(time) = time {
                lines.push_str(&format!("snapshot {offset} {time}\n"));
            }
        }
        writeln!(f, "{lines}blake3 {}", ObjectHash::of(lines.as_bytes()))
    }
}

impl FromStr for Known {
    type Err = ();

    fn from_str(text: &str) -> Result<Known, ()> {
        let (lines, checksum) = text.split_at(text.rfind("blake3 ").ok_or(())?);
        if checksum != format!("blake3 {}\n", ObjectHash::of(lines.as_bytes())) {
            return Err(());
        }
        let mut known = Known::default();
        for line in lines.lines() {
            let words: Vec<&str> = line.split(' ').collect();
            match words[..] {
                ["backed-up", place] => known.backed_up = Some(place.parse().map_err(drop)?),
                ["snapshot", offset, time] => {
                    let offset = LogOffset::new(offset.parse().map_err(drop)?);
                    let time = time.parse().map_err(drop)?;
                    known.snapshots.insert(offset, Some(time));
                }
                _ => return Err(()),
            }
        }
        Ok(known)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(offset: u64) -> LogOffset {
        LogOffset::new(offset)
    }

    #[test]
    fn what_is_known_is_read_as_it_was_written() {
        let place = Place {
            offset: at(7),
            ..Place::default()
        };
        let known = Known {
            backed_up: Some(place),
            snapshots: [(at(3), Some(-5)), (at(9), Some(6))].into(),
        };
        let text = known.to_string();
        assert_eq!(text.parse(), Ok(known));
        assert_eq!(Known::default().to_string().parse(), Ok(Known::default()));
        for position in 0..text.len() {
            let mut bytes = text.clone().into_bytes();
            bytes[position] ^= 1;
            let damaged = String::from_utf8(bytes).expect("ASCII");
            assert_eq!(damaged.parse::<Known>(), Err(()), "{position}");
            assert_eq!(text[..position].parse::<Known>(), Err(()), "{position}");
        }
    }
}
