//! A real disk that fails on demand, below names or at one operation.

use std::io;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};

use super::hooks::{HookedStorage, Hooks};
use crate::disk::disk;
use crate::storage::{OpenMode, Storage};

const ENOSPC: i32 = 28;
const EIO: i32 = 5;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    Write,
    Sync,
}

#[derive(Default)]
struct Faults {
    /// The operation of a kind that fails, counted from 0; and whether all later ones fail too.
    failing: Option<(Operation, usize, bool)>,
    operations: usize,
    has_failed: bool,
    /// The disk is full for everything below a name that begins so.
    full_in: Option<&'static str>,
    /// Nothing below such a name can be opened or made.
    broken_in: Option<&'static str>,
    /// A thread that makes a file below such a name waits.
    held_in: Option<&'static str>,
    is_held: bool,
}

#[derive(Default)]
struct Shared {
    faults: Mutex<Faults>,
    changed: Condvar,
}

impl Shared {
    fn faults(&self) -> MutexGuard<'_, Faults> {
        self.faults.lock().expect("no panic under the lock")
    }

    fn count(&self, kind: Operation) -> io::Result<()> {
        let mut faults = self.faults();
        let Some((failing, first, for_ever)) = faults.failing else {
            return Ok(());
        };
        if failing != kind {
            return Ok(());
        }
        let number = faults.operations;
        faults.operations += 1;
        if number != first && !(for_ever && number > first) {
            return Ok(());
        }
        faults.has_failed = true;
        Err(io::Error::from_raw_os_error(match kind {
            Operation::Write => ENOSPC,
            Operation::Sync => EIO,
        }))
    }

    fn check_room(&self, path: &Path) -> io::Result<()> {
        check(path, self.faults().full_in, ENOSPC)
    }

    fn check_sound(&self, path: &Path) -> io::Result<()> {
        check(path, self.faults().broken_in, EIO)
    }

    fn wait_if_held(&self, path: &Path) {
        let mut faults = self.faults();
        while faults.held_in.is_some_and(|name| is_below(path, name)) {
            faults.is_held = true;
            self.changed.notify_all();
            faults = self.changed.wait(faults).expect("no panic under the lock");
        }
    }
}

/// Fails below this name, if there is one.
fn check(path: &Path, name: Option<&str>, error: i32) -> io::Result<()> {
    match name.is_some_and(|name| is_below(path, name)) {
        true => Err(io::Error::from_raw_os_error(error)),
        false => Ok(()),
    }
}

fn is_below(path: &Path, name: &str) -> bool {
    path.iter()
        .any(|part| part.to_string_lossy().starts_with(name))
}

impl Hooks for Shared {
    fn before_make_directory(&self, directory: &Path) -> io::Result<()> {
        self.check_sound(directory)?;
        self.check_room(directory)
    }

    fn before_open(&self, path: &Path, mode: OpenMode) -> io::Result<()> {
        self.check_sound(path)?;
        if mode == OpenMode::CreateNew {
            self.wait_if_held(path);
            self.check_room(path)?;
        }
        Ok(())
    }

    fn before_write(&self, path: &Path) -> io::Result<()> {
        self.check_room(path)?;
        self.count(Operation::Write)
    }

    fn before_sync(&self, _: &Path) -> io::Result<()> {
        self.count(Operation::Sync)
    }
}

#[derive(Default)]
/// Storage on the real disk that fails when it is told to.
pub struct FaultyDisk(Arc<Shared>);

impl FaultyDisk {
    pub fn storage(&self) -> Arc<dyn Storage> {
        Arc::new(HookedStorage::new(disk(), self.0.clone()))
    }

    pub fn fail(&self, kind: Operation, operation: usize, for_ever: bool) {
        let mut faults = self.0.faults();
        faults.failing = Some((kind, operation, for_ever));
        faults.operations = 0;
    }

    pub fn has_failed(&self) -> bool {
        self.0.faults().has_failed
    }

    pub fn fail_in(&self, name: &'static str) {
        self.0.faults().full_in = Some(name);
    }

    pub fn break_in(&self, name: &'static str) {
        self.0.faults().broken_in = Some(name);
    }

    pub fn hold_in(&self, name: &'static str) {
        self.0.faults().held_in = Some(name);
    }

    pub fn wait_until_held(&self) {
        let mut faults = self.0.faults();
        while !faults.is_held {
            faults = self.0.changed.wait(faults).expect("no panic");
        }
    }

    pub fn mend(&self) {
        *self.0.faults() = Faults::default();
        self.0.changed.notify_all();
    }
}
