//! A disk in memory that loses what was not synced, and fails on demand.
//!
//! What a power failure ([`SimStorage::crash`]) leaves behind: every file keeps what was synced; of every sector
//! written since, the disk holds any one of its versions, old or new, each chosen alone; of the changes in each
//! directory since its last sync, some first part has happened.
//!
//! A sync that fails does what Linux does: some of the waiting writes reach the disk, all pages count as clean, reads
//! still show them, and the next sync reports success without writing them. The cache outlives the process: a
//! restart is simply opening everything again, and only [`SimStorage::crash`] takes the cache away. Before that,
//! [`SimStorage::evict`] may drop clean pages, so that reads see what the disk really holds.

mod contents;
mod faults;
mod hooks;
mod names;
mod random;

use std::any::Any;
use std::collections::{HashMap, HashSet};
use std::io::{self, IoSlice};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};

use self::contents::Contents;
use self::names::Names;
use self::random::{below, next_random};
use crate::position::FilePosition;
use crate::storage::{File, OpenMode, Storage};

pub use self::faults::{FaultyDisk, Operation};
pub use self::hooks::{HookedStorage, Hooks};

/// Failures to inject. Counts begin at 0 and go over all files of the storage; see [`SimStorage::counts`].
#[derive(Clone, Debug, Default)]
pub struct Faults {
    /// This write, and every later one, fails.
    pub fail_writes_from: Option<u64>,
    /// This one write takes a part of its bytes only, and the write after it fails.
    pub tear_write: Option<u64>,
    /// This one sync (of a file or directory) fails; later ones succeed, as on a real disk.
    pub fail_sync: Option<u64>,
    /// Every rename, removal and creation of a file or directory from this one on fails.
    pub fail_names_from: Option<u64>,
    /// This one read fails.
    pub fail_read: Option<u64>,
    /// This one opening of a file that exists fails, as without free file descriptors.
    pub fail_open: Option<u64>,
    /// All files together take no more than so many bytes: the disk is full then.
    pub full_at_bytes: Option<u64>,
    /// Writes take only a random part of what they are given.
    pub short_writes: bool,
    /// Reads return only a random part of the wanted bytes.
    pub short_reads: bool,
}

/// How many operations there were.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Calls of [`File::write_vectored_at`] and [`File::set_length`].
    pub writes: u64,
    /// Syncs of files and directories.
    pub syncs: u64,
    /// Creations, renames and removals of files and directories.
    pub names: u64,
    /// Calls of [`File::read_at`].
    pub reads: u64,
    /// Openings of files that exist.
    pub opens: u64,
}

#[derive(Default)]
struct State {
    contents: HashMap<u64, Contents>,
    names: Names,
    locks: HashSet<PathBuf>,
    next_id: u64,
    /// What the cache writes out in one piece: a later write takes along what a failed sync left unwritten in its page.
    page_bytes: u64,
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
        let mut random = seed;
        let page_bytes = [512, 4096][below(&mut random, 2) as usize];
        SimStorage(Arc::new(Mutex::new(State {
            page_bytes,
            random,
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

    pub fn counts(&self) -> Counts {
        self.state().counts
    }

    /// The disk after a power failure. This storage stays as it is.
    pub fn crash(&self, seed: u64) -> SimStorage {
        let state = self.state();
        let mut random = seed;
        let tree = state.names.after_crash(&mut random);
        let contents = tree.files.values().map(|id| {
            let bytes = state.contents[id].after_crash(&mut random);
            (*id, Contents::stored(bytes))
        });
        let contents = contents.collect();
        SimStorage(Arc::new(Mutex::new(State {
            contents,
            names: Names::stored(tree),
            next_id: state.next_id,
            page_bytes: state.page_bytes,
            random,
            ..State::default()
        })))
    }

    /// Some clean pages leave the cache.
    pub fn evict(&self, seed: u64) {
        let mut state = self.state();
        let page_bytes = state.page_bytes;
        let mut random = seed;
        // In a fixed order, so that a seed always does the same.
        let mut ids: Vec<u64> = state.contents.keys().copied().collect();
        ids.sort_unstable();
        for id in ids {
            if let Some(contents) = state.contents.get_mut(&id) {
                contents.evict(&mut random, page_bytes);
            }
        }
    }

    pub fn rot(&self, path: &Path, byte: u64, bit: u8) {
        let mut state = self.state();
        let page_bytes = state.page_bytes;
        let Ok(id) = state.names.file(path) else {
            return;
        };
        if let Some(contents) = state.contents.get_mut(&id) {
            contents.rot(byte, bit, page_bytes);
        }
    }

    pub fn file(&self, path: &Path) -> Option<Vec<u8>> {
        let state = self.state();
        let id = state.names.file(path).ok()?;
        Some(state.contents[&id].cached.clone())
    }

    /// Puts a file in place, durably: damage by hand, or a fuzz input.
    pub fn put_file(&self, path: &Path, bytes: Vec<u8>) {
        let mut state = self.state();
        let id = state.next_id;
        state.next_id += 1;
        state.contents.insert(id, Contents::stored(bytes));
        state.names.put(path, id);
    }

    pub fn files(&self) -> Vec<PathBuf> {
        self.state().names.cached.files.keys().cloned().collect()
    }
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

    /// How many of the bytes at `position` still fit on the disk.
    fn fitting(&self, id: u64, position: u64, bytes: u64) -> u64 {
        let Some(full_at) = self.faults.full_at_bytes else {
            return bytes;
        };
        let lengths = self.names.cached.files.values();
        let used: u64 = lengths
            .map(|id| self.contents[id].cached.len() as u64)
            .sum();
        let length = self.contents[&id].cached.len() as u64;
        let end = length + full_at.saturating_sub(used);
        bytes.min(end.saturating_sub(position))
    }
}

impl Storage for SimStorage {
    fn is_directory(&self, path: &Path) -> io::Result<bool> {
        let state = self.state();
        match state.names.file(path) {
            Ok(_) => Err(io::ErrorKind::NotADirectory.into()),
            Err(_) => Ok(state.names.cached.is_directory(path)),
        }
    }

    fn make_directory(&self, directory: &Path) -> io::Result<()> {
        let mut state = self.state();
        state.count_name()?;
        state.names.make_directory(directory)
    }

    fn remove_directory(&self, directory: &Path) -> io::Result<()> {
        let mut state = self.state();
        state.count_name()?;
        state.names.remove_directory(directory)
    }

    fn list(&self, directory: &Path) -> io::Result<Vec<String>> {
        self.state().names.list(directory)
    }

    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Box<dyn File>> {
        let mut state = self.state();
        let id = match (state.names.file(path), mode) {
            (Ok(_), OpenMode::CreateNew) => return Err(io::ErrorKind::AlreadyExists.into()),
            (Err(error), OpenMode::Read | OpenMode::ReadWrite) => return Err(error),
            (Ok(id), _) => {
                let number = state.counts.opens;
                state.counts.opens += 1;
                if state.faults.fail_open == Some(number) {
                    return Err(injected("file being opened"));
                }
                id
            }
            (Err(_), OpenMode::CreateNew) => {
                state.count_name()?;
                let id = state.next_id;
                state.next_id += 1;
                state.names.link(path, id)?;
                state.contents.insert(id, Contents::default());
                id
            }
        };
        Ok(Box::new(SimFile {
            storage: self.clone(),
            id,
            writable: mode != OpenMode::Read,
        }))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut state = self.state();
        state.names.file(from)?;
        state.count_name()?;
        state.names.rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let mut state = self.state();
        state.names.file(path)?;
        state.count_name()?;
        state.names.unlink(path)
    }

    fn sync_directory(&self, directory: &Path) -> io::Result<()> {
        let mut state = self.state();
        if state.count_sync() {
            let mut random = next_random(&mut state.random);
            state.names.fail_sync(directory, &mut random);
            return Err(injected("directory sync"));
        }
        state.names.sync(directory)
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
    fn with<T>(&self, act: impl FnOnce(&mut State, u64) -> T) -> T {
        act(&mut self.storage.state(), self.id)
    }

    fn check_writable(&self) -> io::Result<()> {
        match self.writable {
            true => Ok(()),
            false => Err(io::ErrorKind::PermissionDenied.into()),
        }
    }
}

impl State {
    fn contents(&mut self, id: u64) -> &mut Contents {
        self.contents
            .get_mut(&id)
            .expect("contents outlive their open files")
    }
}

impl File for SimFile {
    fn length(&self) -> io::Result<u64> {
        self.with(|state, id| Ok(state.contents(id).cached.len() as u64))
    }

    fn read_at(&self, buffer: &mut [u8], position: FilePosition) -> io::Result<usize> {
        self.with(|state, id| {
            let number = state.counts.reads;
            state.counts.reads += 1;
            if state.faults.fail_read == Some(number) {
                return Err(injected("read"));
            }
            let mut wanted = buffer.len();
            if state.faults.short_reads && wanted > 1 {
                wanted = 1 + below(&mut state.random, wanted as u64 - 1) as usize;
            }
            let bytes = &state.contents(id).cached;
            let start = (position.get() as usize).min(bytes.len());
            let taken = wanted.min(bytes.len() - start);
            buffer[..taken].copy_from_slice(&bytes[start..start + taken]);
            Ok(taken)
        })
    }

    fn write_vectored_at(
        &self,
        parts: &[IoSlice<'_>],
        position: FilePosition,
    ) -> io::Result<usize> {
        self.check_writable()?;
        let position = position.get();
        self.with(|state, id| {
            let short = state.count_write()?;
            let parts: Vec<&[u8]> = parts.iter().map(|part| &**part).collect();
            let mut bytes = parts.concat();
            if short && bytes.len() > 1 {
                let taken = 1 + below(&mut state.random, bytes.len() as u64 - 1) as usize;
                bytes.truncate(taken);
            }
            let fitting = state.fitting(id, position, bytes.len() as u64);
            if fitting == 0 && !bytes.is_empty() {
                return Err(io::Error::new(
                    io::ErrorKind::StorageFull,
                    "injected failure of a full disk",
                ));
            }
            bytes.truncate(fitting as usize);
            let page_bytes = state.page_bytes;
            state.contents(id).write(position, &bytes, page_bytes);
            Ok(bytes.len())
        })
    }

    fn set_length(&self, length: u64) -> io::Result<()> {
        self.check_writable()?;
        self.with(|state, id| {
            state.count_write()?;
            state.contents(id).set_length(length);
            Ok(())
        })
    }

    fn sync_data(&self) -> io::Result<()> {
        self.with(|state, id| {
            if state.count_sync() {
                let mut random = next_random(&mut state.random);
                state.contents(id).fail_sync(&mut random);
                return Err(injected("sync"));
            }
            state.contents(id).sync();
            Ok(())
        })
    }
}
