//! Manifests: one for each backup, written last.

use lightcone_log::LogOffset;
use lightcone_snapshot::ObjectHash;
use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::place::{is_possible, Place};

/// The version that this code writes, and the only one that it reads.
pub const FORMAT: u32 = 1;

/// One backup. Its files are named by what is in them, so a manifest names no paths.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    pub format: u32,
    /// The identity of the database, 64 hexadecimal digits.
    pub database: String,
    /// In microseconds since the Unix epoch: all transactions that were durable then are in it.
    pub time: i64,
    /// Behind the last transaction.
    pub end: Place,
    /// The epoch of the last frame, if it has one.
    pub epoch: Option<u64>,
    /// Why it does not go on where the backup before it ends.
    pub begins_because: Option<String>,
    /// The newest one that there was.
    pub snapshot: Option<SnapshotEntry>,
    /// The frames that no backup before it had.
    pub log: Vec<LogEntry>,
    /// Bytes of the files that were written for it.
    pub added_bytes: u64,
    /// blake3 of the manifest with an empty text here, in hexadecimal digits.
    pub checksum: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SnapshotEntry {
    /// The first transaction that is not in it.
    pub offset: u64,
    pub file: FileEntry,
    /// Bytes of its objects.
    pub object_bytes: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LogEntry {
    pub from: Place,
    pub end: Place,
    /// In microseconds since the Unix epoch: the latest time at which one of its transactions was committed. None if it does not say.
    pub newest: Option<i64>,
    pub file: FileEntry,
}

/// What a file has to be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileEntry {
    pub bytes: u64,
    /// 64 hexadecimal digits.
    pub blake3: String,
}

impl FileEntry {
    pub fn of(bytes: &[u8]) -> FileEntry {
        FileEntry {
            bytes: bytes.len() as u64,
            blake3: blake3::hash(bytes).to_hex().to_string(),
        }
    }

    /// Compares with what was read as `file`.
    ///
    /// # Errors
    /// It is something else.
    pub fn check(&self, file: &str, bytes: &[u8]) -> Result<(), Error> {
        let found = FileEntry::of(bytes);
        let what = match (found.bytes == self.bytes, found == *self) {
            (_, true) => return Ok(()),
            (false, _) => format!("it has {} bytes instead of {}", found.bytes, self.bytes),
            _ => format!(
                "its bytes have changed: their blake3 hash is {} instead of {}",
                found.blake3, self.blake3
            ),
        };
        Err(Error::damaged(file, what))
    }

    fn is_possible(&self) -> bool {
        is_hex(&self.blake3, 64)
    }
}

/// The name of a file with objects.
pub fn pack_name(hash: &ObjectHash) -> String {
    format!("objects/{hash}.pack")
}

/// The name of the file that says which objects a snapshot has.
pub fn snapshot_name(entry: &SnapshotEntry) -> String {
    format!("snapshots/{:020}-{}", entry.offset, entry.file.blake3)
}

/// The name of a file with frames.
pub fn log_name(entry: &LogEntry) -> String {
    format!("log/{:020}-{}", entry.from.offset, entry.file.blake3)
}

/// Whether a file of a backup has this name, or one that is being written: with `.<16 hexadecimal digits>.part` in place of the extension.
pub fn is_file_name(name: &str) -> bool {
    let Some((directory, file)) = name.split_once('/') else {
        return false;
    };
    let (stem, extension) = match file.split_once('.') {
        Some((stem, extension)) => (stem, Some(extension)),
        None => (file, None),
    };
    let is_number = |text: &str| text.len() == 20 && text.bytes().all(|b| b.is_ascii_digit());
    let (number, rest) = stem.split_once('-').unwrap_or_default();
    let (is_stem, whole) = match directory {
        "objects" => (is_hex(stem, 64), Some("pack")),
        "snapshots" | "log" => (is_number(number) && is_hex(rest, 64), None),
        "manifests" => (is_number(number) && is_number(rest), Some("json")),
        _ => return false,
    };
    let part = extension.and_then(|extension| extension.strip_suffix(".part"));
    is_stem && (extension == whole || part.is_some_and(|digits| is_hex(digits, 16)))
}

impl Manifest {
    /// Backups in the order of their names are in that of their times.
    pub fn name(&self) -> String {
        format!("manifests/{:020}-{:020}.json", self.time, self.end.offset)
    }

    /// The bytes, with their checksum.
    pub fn encode(&self) -> Vec<u8> {
        let checksum = self.checksum();
        let sealed = Manifest {
            checksum,
            ..self.clone()
        };
        let mut bytes = serde_json::to_vec_pretty(&sealed).expect("texts and numbers are JSON");
        bytes.push(b'\n');
        bytes
    }

    fn checksum(&self) -> String {
        let unsealed = Manifest {
            checksum: String::new(),
            ..self.clone()
        };
        let bytes = serde_json::to_vec(&unsealed).expect("texts and numbers are JSON");
        blake3::hash(&bytes).to_hex().to_string()
    }

    /// Reads the manifest in `file`.
    ///
    /// # Errors
    /// It is none, or one of another version.
    pub fn decode(file: &str, bytes: &[u8]) -> Result<Manifest, Error> {
        #[derive(Deserialize)]
        struct Version {
            format: u32,
        }
        let damaged = |found: String| Error::damaged(file, found);
        let no_json = |error: serde_json::Error| damaged(error.to_string());
        let Version { format } = serde_json::from_slice(bytes).map_err(no_json)?;
        if format != FORMAT {
            return Err(Error::Format {
                file: file.to_owned(),
                format,
                supported: FORMAT,
            });
        }
        let manifest: Manifest = serde_json::from_slice(bytes).map_err(no_json)?;
        if manifest.checksum() != manifest.checksum {
            return Err(damaged("its checksum is wrong".to_owned()));
        }
        match manifest.is_possible() {
            true => Ok(manifest),
            false => Err(damaged("what it says cannot be".to_owned())),
        }
    }

    fn is_possible(&self) -> bool {
        let is_snapshot = |snapshot: &SnapshotEntry| {
            let offset = LogOffset::new(snapshot.offset);
            offset <= self.end.offset && snapshot.file.is_possible()
        };
        let is_log = |log: &LogEntry| log.from.offset < log.end.offset && log.file.is_possible();
        let last = self.log.last();
        is_possible(self.end.offset)
            && self.time >= 0
            && is_hex(&self.database, 64)
            && self.snapshot.as_ref().is_none_or(is_snapshot)
            && self.log.iter().all(is_log)
            && self.log.windows(2).all(|pair| pair[0].end == pair[1].from)
            && last.is_none_or(|last| last.end == self.end)
    }
}

fn is_hex(text: &str, digits: usize) -> bool {
    let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    text.len() == digits && text.bytes().all(is_digit)
}
