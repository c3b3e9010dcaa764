//! The module's log: one JSON object per line, a file per day, and live readers (06 §5.13).

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard};

use bytes::Bytes;
use lightcone_host::{ConsoleLevel, ConsoleRecord, ConsoleSink};
use lightcone_types::Timestamp;
use tokio::sync::broadcast;

/// Records buffered for a live reader; a slower one loses records silently.
const LIVE_RECORDS_MAX: usize = 64;
/// The most bytes read from the end of the file for a reader.
const TAIL_BYTES_MAX: u64 = 64 << 20;
/// Name in `target`, `filename` and `function` of records the host makes.
const HOST: &str = "__spacetimedb__";

/// The log of one database's module.
pub struct ModuleLog {
    directory: PathBuf,
    state: Mutex<State>,
    live: broadcast::Sender<Bytes>,
}

#[derive(Default)]
struct State {
    /// The day of the open file as days since the epoch.
    day: i64,
    file: Option<File>,
    line: Vec<u8>,
}

impl ModuleLog {
    pub(crate) fn new(directory: PathBuf) -> ModuleLog {
        ModuleLog {
            directory,
            state: Mutex::default(),
            live: broadcast::channel(LIVE_RECORDS_MAX).0,
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state
            .lock()
            .expect("no code panics while it holds the log")
    }

    /// The last `num_lines` lines (at least one; all if none) of today's file, or of the newest there is.
    pub fn tail(&self, num_lines: Option<u32>) -> Vec<u8> {
        let Some(path) = self.newest() else {
            return Vec::new();
        };
        let Ok(text) = read_end(&path) else {
            return Vec::new();
        };
        let Some(count) = num_lines else { return text };
        let count = count.max(1) as usize;
        let starts = text
            .iter()
            .enumerate()
            .rev()
            .filter(|(_, byte)| **byte == b'\n')
            .map(|(at, _)| at + 1);
        let start = starts
            .filter(|start| *start < text.len())
            .nth(count - 1)
            .unwrap_or(0);
        text[start..].to_vec()
    }

    /// Records from now on, each a line.
    pub fn subscribe(&self) -> broadcast::Receiver<Bytes> {
        self.live.subscribe()
    }

    fn newest(&self) -> Option<PathBuf> {
        let entries = std::fs::read_dir(&self.directory).ok()?;
        entries
            .filter_map(|entry| Some(entry.ok()?.path()))
            .filter(|path| path.extension().is_some_and(|e| e == "log"))
            .max()
    }

    /// Writes a record. A full disk loses module logs, never transactions.
    pub(crate) fn write(&self, record: &ConsoleRecord<'_>) {
        let mut state = self.state();
        let mut line = std::mem::take(&mut state.line);
        line.clear();
        record.write_json_line(&mut line);
        let day = record.ts.0.div_euclid(86_400_000_000);
        if state.file.is_none() || state.day != day {
            state.file = open_file(&self.directory, record.ts);
            state.day = day;
        }
        if let Some(file) = &mut state.file {
            if let Err(error) = file.write_all(&line) {
                tracing::error!(directory = %self.directory.display(), %error, "a module log record was lost");
                state.file = None;
            }
        }
        if self.live.receiver_count() > 0 {
            // Fails only if the last reader just left.
            let _ = self.live.send(Bytes::copy_from_slice(&line));
        }
        line.shrink_to(64 * 1024);
        state.line = line;
    }

    /// A record the host makes about a function, or about the database if there is none.
    pub(crate) fn host(
        &self,
        level: ConsoleLevel,
        function: Option<&str>,
        message: &str,
        ts: Timestamp,
    ) {
        self.write(&ConsoleRecord {
            level,
            ts,
            target: Some(HOST),
            filename: Some(HOST),
            line_number: None,
            function: Some(function.unwrap_or(HOST)),
            message,
            trace: (level == ConsoleLevel::Panic).then_some(&[]),
        });
    }

    pub(crate) fn info(&self, message: &str) {
        self.host(ConsoleLevel::Info, None, message, Timestamp::now());
    }
}

impl ConsoleSink for ModuleLog {
    fn log(&self, record: ConsoleRecord<'_>) {
        self.write(&record);
    }
}

fn open_file(directory: &Path, ts: Timestamp) -> Option<File> {
    let date = ts.to_rfc3339().chars().take(10).collect::<String>();
    let opened = lightcone_storage::disk()
        .create_directory(directory)
        .and_then(|()| {
            OpenOptions::new()
                .create(true)
                .append(true)
                .open(directory.join(format!("{date}.log")))
        });
    match opened {
        Ok(file) => Some(file),
        Err(error) => {
            tracing::error!(directory = %directory.display(), %error, "the module log cannot be opened");
            None
        }
    }
}

fn read_end(path: &Path) -> std::io::Result<Vec<u8>> {
    use std::io::{Read, Seek, SeekFrom};
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    let mut text = Vec::new();
    if length > TAIL_BYTES_MAX {
        file.seek(SeekFrom::Start(length - TAIL_BYTES_MAX))?;
    }
    file.take(TAIL_BYTES_MAX).read_to_end(&mut text)?;
    if length > TAIL_BYTES_MAX {
        let first_line = text
            .iter()
            .position(|byte| *byte == b'\n')
            .map_or(text.len(), |at| at + 1);
        text.drain(..first_line);
    }
    Ok(text)
}
