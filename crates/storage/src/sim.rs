//! A disk in memory that forgets what was not synced, and fails on demand.
//!
//! What a crash leaves behind: every file keeps what was synced; of every sector written since, the disk
//! holds any one of its versions, old or new, each chosen alone; of the directory changes since the last
//! directory sync, some first part has happened. A sync that fails throws the waiting writes away while
//! reads still show them, as Linux does: that is why nobody may retry it.

use std::any::Any;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::io::{self, IoSlice};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};

use crate::{File, OpenMode, Storage};

/// What the disk writes in one piece.
const SECTOR_BYTES: u64 = 512;

/// Failures to inject. Counts begin at 0 and go over all files of the storage; see [`SimStorage::counts`].
#[derive(Clone, Debug, Default)]
pub struct Faults {
    /// This write, and every later one, fails.
    pub fail_writes_from: Option<u64>,
    /// This one write takes a part of its bytes only, and the write after it fails.
    pub tear_write: Option<u64>,
    /// This one sync (of a file or directory) fails; later ones succeed, as on a real disk.
    pub fail_sync: Option<u64>,
    /// Every rename and every creation of a file from this one on fails.
    pub fail_names_from: Option<u64>,
    /// Writes take only a random part of what they are given.
    pub short_writes: bool,
}

/// How many operations there were.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Calls of [`File::write_vectored_at`] and [`File::set_length`].
    pub writes: u64,
    /// Syncs of files and directories.
    pub syncs: u64,
    /// Creations and renames of files.
    pub names: u64,
}

enum Change {
    Write { position: u64, bytes: Vec<u8> },
    SetLength(u64),
}

#[derive(Default)]
struct Contents {
    /// What reads see.
    current: Vec<u8>,
    /// What a crash cannot take away.
    durable: Vec<u8>,
    /// What lies between the two, in order.
    pending: Vec<Change>,
}

enum NameChange {
    Link(PathBuf, u64),
    Rename(PathBuf, PathBuf),
    Remove(PathBuf),
}

#[derive(Default)]
struct State {
    contents: HashMap<u64, Contents>,
    names: BTreeMap<PathBuf, u64>,
    durable_names: BTreeMap<PathBuf, u64>,
    pending_names: Vec<NameChange>,
    directories: HashSet<PathBuf>,
    locks: HashSet<PathBuf>,
    next_id: u64,
    random: u64,
    faults: Faults,
    counts: Counts,
}

/// The simulated disk. Clones share it.
#[derive(Clone)]
pub struct SimStorage(Arc<Mutex<State>>);

impl SimStorage {
    /// An empty disk whose random choices follow `seed`.
    pub fn new(seed: u64) -> SimStorage {
        SimStorage(Arc::new(Mutex::new(State {
            random: seed,
            ..State::default()
        })))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // A test that panicked while it held the lock has already failed.
        self.0
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Sets the failures to inject from now on.
    pub fn set_faults(&self, faults: Faults) {
        self.state().faults = faults;
    }

    /// How many operations there were so far.
    pub fn counts(&self) -> Counts {
        self.state().counts
    }

    /// The disk after a power failure now. This storage is left as it is.
    pub fn crash(&self, seed: u64) -> SimStorage {
        let state = self.state();
        let mut random = seed;
        let mut names = state.durable_names.clone();
        let happened = below(&mut random, state.pending_names.len() as u64 + 1) as usize;
        for change in &state.pending_names[..happened] {
            apply_name(&mut names, change);
        }
        let contents = names
            .values()
            .map(|id| {
                let bytes = state.contents[id].after_crash(&mut random);
                (
                    *id,
                    Contents {
                        current: bytes.clone(),
                        durable: bytes,
                        pending: Vec::new(),
                    },
                )
            })
            .collect();
        SimStorage(Arc::new(Mutex::new(State {
            contents,
            durable_names: names.clone(),
            names,
            directories: state.directories.clone(),
            next_id: state.next_id,
            random,
            ..State::default()
        })))
    }

    /// The contents of a file as reads see them.
    pub fn file(&self, path: &Path) -> Option<Vec<u8>> {
        let state = self.state();
        let id = state.names.get(path)?;
        Some(state.contents[id].current.clone())
    }

    /// Puts a file in place, durably: damage by hand, or a fuzz input.
    pub fn put_file(&self, path: &Path, bytes: Vec<u8>) {
        let mut state = self.state();
        let id = state.next_id;
        state.next_id += 1;
        state.contents.insert(
            id,
            Contents {
                current: bytes.clone(),
                durable: bytes,
                pending: Vec::new(),
            },
        );
        state.names.insert(path.to_owned(), id);
        state.durable_names.insert(path.to_owned(), id);
        if let Some(directory) = path.parent() {
            state.directories.insert(directory.to_owned());
        }
    }

    /// All file names, sorted.
    pub fn files(&self) -> Vec<PathBuf> {
        self.state().names.keys().cloned().collect()
    }
}

impl Contents {
    fn apply(bytes: &mut Vec<u8>, change: &Change) {
        match change {
            Change::Write {
                position,
                bytes: written,
            } => overwrite(bytes, *position, written),
            Change::SetLength(length) => bytes.resize(*length as usize, 0),
        }
    }

    fn after_crash(&self, random: &mut u64) -> Vec<u8> {
        let mut bytes = self.durable.clone();
        // For each sector the number of the first change that did not reach the disk.
        let mut lost_from: HashMap<u64, usize> = HashMap::new();
        let changes = self.pending.len() as u64;
        // Sector by sector alone, a long write would never be lost or kept as a whole.
        let mood = below(random, 4);
        for (number, change) in self.pending.iter().enumerate() {
            match change {
                Change::SetLength(length) => {
                    if below(random, 2) == 0 {
                        bytes.resize(*length as usize, 0);
                    }
                }
                Change::Write {
                    position,
                    bytes: written,
                } => {
                    let mut at = 0usize;
                    while at < written.len() {
                        let start = position + at as u64;
                        let sector = start / SECTOR_BYTES;
                        let end = ((sector + 1) * SECTOR_BYTES - position).min(written.len() as u64)
                            as usize;
                        let lost = *lost_from.entry(sector).or_insert_with(|| {
                            match (mood, below(random, 3)) {
                                (0, _) | (2.., 0) => 0,
                                (1, _) | (2.., 1) => usize::MAX,
                                _ => below(random, changes + 1) as usize,
                            }
                        });
                        if number < lost {
                            overwrite(&mut bytes, start, &written[at..end]);
                        }
                        at = end;
                    }
                }
            }
        }
        bytes
    }
}

fn overwrite(bytes: &mut Vec<u8>, position: u64, written: &[u8]) {
    let start = position as usize;
    let end = start + written.len();
    if bytes.len() < end {
        bytes.resize(end, 0);
    }
    bytes[start..end].copy_from_slice(written);
}

fn apply_name(names: &mut BTreeMap<PathBuf, u64>, change: &NameChange) {
    match change {
        NameChange::Link(path, id) => {
            names.insert(path.clone(), *id);
        }
        NameChange::Rename(from, to) => {
            if let Some(id) = names.remove(from) {
                names.insert(to.clone(), id);
            }
        }
        NameChange::Remove(path) => {
            names.remove(path);
        }
    }
}

/// splitmix64
fn next_random(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

fn below(state: &mut u64, bound: u64) -> u64 {
    next_random(state) % bound.max(1)
}

fn injected(what: &str) -> io::Error {
    io::Error::other(format!("injected failure of a {what}"))
}

impl State {
    fn count_write(&mut self) -> io::Result<bool> {
        let number = self.counts.writes;
        self.counts.writes += 1;
        let torn = self.faults.tear_write;
        if self
            .faults
            .fail_writes_from
            .is_some_and(|from| number >= from)
            || torn.is_some_and(|torn| number == torn + 1)
        {
            return Err(injected("write"));
        }
        Ok(self.faults.short_writes || torn == Some(number))
    }

    fn count_sync(&mut self) -> bool {
        let number = self.counts.syncs;
        self.counts.syncs += 1;
        self.faults.fail_sync == Some(number)
    }

    fn count_name(&mut self) -> io::Result<()> {
        let number = self.counts.names;
        self.counts.names += 1;
        match self.faults.fail_names_from {
            Some(from) if number >= from => Err(injected("directory change")),
            _ => Ok(()),
        }
    }
}

impl Storage for SimStorage {
    fn create_directory(&self, directory: &Path) -> io::Result<()> {
        self.state().directories.insert(directory.to_owned());
        Ok(())
    }

    fn list(&self, directory: &Path) -> io::Result<Vec<String>> {
        let state = self.state();
        if !state.directories.contains(directory) {
            return Err(io::ErrorKind::NotFound.into());
        }
        let inside = state
            .names
            .keys()
            .filter(|path| path.parent() == Some(directory));
        Ok(inside
            .filter_map(|path| Some(path.file_name()?.to_str()?.to_owned()))
            .collect())
    }

    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Box<dyn File>> {
        let mut state = self.state();
        let id = match (state.names.get(path).copied(), mode) {
            (Some(_), OpenMode::CreateNew) => return Err(io::ErrorKind::AlreadyExists.into()),
            (Some(id), _) => id,
            (None, OpenMode::CreateNew) => {
                state.count_name()?;
                let id = state.next_id;
                state.next_id += 1;
                state.contents.insert(id, Contents::default());
                state.names.insert(path.to_owned(), id);
                state
                    .pending_names
                    .push(NameChange::Link(path.to_owned(), id));
                id
            }
            (None, _) => return Err(io::ErrorKind::NotFound.into()),
        };
        Ok(Box::new(SimFile {
            storage: self.clone(),
            id,
            writable: mode != OpenMode::Read,
        }))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut state = self.state();
        if !state.names.contains_key(from) {
            return Err(io::ErrorKind::NotFound.into());
        }
        state.count_name()?;
        let change = NameChange::Rename(from.to_owned(), to.to_owned());
        apply_name(&mut state.names, &change);
        state.pending_names.push(change);
        Ok(())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let mut state = self.state();
        if state.names.remove(path).is_none() {
            return Err(io::ErrorKind::NotFound.into());
        }
        state
            .pending_names
            .push(NameChange::Remove(path.to_owned()));
        Ok(())
    }

    fn sync_directory(&self, _directory: &Path) -> io::Result<()> {
        let mut state = self.state();
        if state.count_sync() {
            return Err(injected("directory sync"));
        }
        state.durable_names = state.names.clone();
        state.pending_names.clear();
        Ok(())
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn Any + Send + Sync>> {
        if !self.state().locks.insert(path.to_owned()) {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        Ok(Box::new(SimLock {
            storage: self.clone(),
            path: path.to_owned(),
        }))
    }

    fn run_in_background(&self, _name: &str, task: Box<dyn FnOnce() + Send>) -> io::Result<()> {
        task();
        Ok(())
    }

    fn random_u64(&self) -> u64 {
        next_random(&mut self.state().random)
    }
}

struct SimLock {
    storage: SimStorage,
    path: PathBuf,
}

impl Drop for SimLock {
    fn drop(&mut self) {
        self.storage.state().locks.remove(&self.path);
    }
}

struct SimFile {
    storage: SimStorage,
    id: u64,
    writable: bool,
}

impl SimFile {
    fn change<T>(
        &self,
        act: impl FnOnce(&mut State, bool) -> io::Result<(Change, T)>,
    ) -> io::Result<T> {
        if !self.writable {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        let mut state = self.storage.state();
        let short = state.count_write()?;
        let (change, result) = act(&mut state, short)?;
        let contents = state
            .contents
            .get_mut(&self.id)
            .expect("contents outlive their open files");
        Contents::apply(&mut contents.current, &change);
        contents.pending.push(change);
        Ok(result)
    }
}

impl File for SimFile {
    fn length(&self) -> io::Result<u64> {
        Ok(self.storage.state().contents[&self.id].current.len() as u64)
    }

    fn read_at(&self, buffer: &mut [u8], position: u64) -> io::Result<usize> {
        let state = self.storage.state();
        let bytes = &state.contents[&self.id].current;
        let start = (position as usize).min(bytes.len());
        let taken = buffer.len().min(bytes.len() - start);
        buffer[..taken].copy_from_slice(&bytes[start..start + taken]);
        Ok(taken)
    }

    fn write_vectored_at(&self, parts: &[IoSlice<'_>], position: u64) -> io::Result<usize> {
        self.change(|state, short| {
            let mut bytes: Vec<u8> = parts.iter().flat_map(|part| part.iter().copied()).collect();
            if short && bytes.len() > 1 {
                let taken = 1 + below(&mut state.random, bytes.len() as u64 - 1) as usize;
                bytes.truncate(taken);
            }
            let taken = bytes.len();
            Ok((Change::Write { position, bytes }, taken))
        })
    }

    fn set_length(&self, length: u64) -> io::Result<()> {
        self.change(|_, _| Ok((Change::SetLength(length), ())))
    }

    fn sync_data(&self) -> io::Result<()> {
        let mut state = self.storage.state();
        let fails = state.count_sync();
        let contents = state
            .contents
            .get_mut(&self.id)
            .expect("contents outlive their open files");
        let pending = std::mem::take(&mut contents.pending);
        if fails {
            return Err(injected("sync"));
        }
        for change in &pending {
            Contents::apply(&mut contents.durable, change);
        }
        Ok(())
    }
}
