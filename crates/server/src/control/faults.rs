//! A disk under the logs of the journal that fails on demand.

use std::any::Any;
use std::io::{self, IoSlice};
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};

use lightcone_storage::{disk, File, FilePosition, OpenMode, Storage};

const ENOSPC: i32 = 28;
const EIO: i32 = 5;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Write,
    Sync,
}

#[derive(Default)]
struct Faults {
    /// The operation of a kind that fails, counted from 0; and whether all later ones fail too.
    failing: Option<(Kind, usize, bool)>,
    operations: usize,
    has_failed: bool,
    /// The disk is full for everything below a name that begins so.
    full_in: Option<&'static str>,
    /// Nothing below such a name can be opened or made.
    broken_in: Option<&'static str>,
    /// Whoever makes a file below such a name waits.
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

    fn count(&self, kind: Kind) -> io::Result<()> {
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
            Kind::Write => ENOSPC,
            Kind::Sync => EIO,
        }))
    }

    fn check_room(&self, path: &Path) -> io::Result<()> {
        match self.faults().full_in {
            Some(name) if is_below(path, name) => Err(io::Error::from_raw_os_error(ENOSPC)),
            _ => Ok(()),
        }
    }

    fn check_sound(&self, path: &Path) -> io::Result<()> {
        match self.faults().broken_in {
            Some(name) if is_below(path, name) => Err(io::Error::from_raw_os_error(EIO)),
            _ => Ok(()),
        }
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

fn is_below(path: &Path, name: &str) -> bool {
    path.iter()
        .any(|part| part.to_string_lossy().starts_with(name))
}

pub(crate) struct FaultyDisk(Arc<dyn Storage>, Arc<Shared>);

struct FaultyFile {
    file: Box<dyn File>,
    shared: Arc<Shared>,
    path: std::path::PathBuf,
}

impl FaultyDisk {
    pub fn new() -> Arc<FaultyDisk> {
        Arc::new(FaultyDisk(disk(), Arc::default()))
    }

    pub fn fail(&self, kind: Kind, operation: usize, for_ever: bool) {
        let mut faults = self.1.faults();
        faults.failing = Some((kind, operation, for_ever));
        faults.operations = 0;
    }

    pub fn has_failed(&self) -> bool {
        self.1.faults().has_failed
    }

    pub fn fail_in(&self, name: &'static str) {
        self.1.faults().full_in = Some(name);
    }

    pub fn break_in(&self, name: &'static str) {
        self.1.faults().broken_in = Some(name);
    }

    pub fn hold_in(&self, name: &'static str) {
        self.1.faults().held_in = Some(name);
    }

    pub fn wait_until_held(&self) {
        let mut faults = self.1.faults();
        while !faults.is_held {
            faults = self.1.changed.wait(faults).expect("no panic");
        }
    }

    pub fn mend(&self) {
        *self.1.faults() = Faults::default();
        self.1.changed.notify_all();
    }
}

impl Storage for FaultyDisk {
    fn is_directory(&self, path: &Path) -> io::Result<bool> {
        self.0.is_directory(path)
    }
    fn make_directory(&self, directory: &Path) -> io::Result<()> {
        self.1.check_sound(directory)?;
        self.1.check_room(directory)?;
        self.0.make_directory(directory)
    }
    fn remove_directory(&self, directory: &Path) -> io::Result<()> {
        self.0.remove_directory(directory)
    }
    fn list(&self, directory: &Path) -> io::Result<Vec<String>> {
        self.0.list(directory)
    }
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Box<dyn File>> {
        self.1.check_sound(path)?;
        if mode == OpenMode::CreateNew {
            self.1.wait_if_held(path);
            self.1.check_room(path)?;
        }
        Ok(Box::new(FaultyFile {
            file: self.0.open(path, mode)?,
            shared: self.1.clone(),
            path: path.to_owned(),
        }))
    }
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.0.rename(from, to)
    }
    fn remove(&self, path: &Path) -> io::Result<()> {
        self.0.remove(path)
    }
    fn sync_directory(&self, directory: &Path) -> io::Result<()> {
        self.0.sync_directory(directory)
    }
    fn lock(&self, path: &Path) -> io::Result<Box<dyn Any + Send + Sync>> {
        self.0.lock(path)
    }
    fn run_in_background(&self, name: &str, task: Box<dyn FnOnce() + Send>) -> io::Result<()> {
        self.0.run_in_background(name, task)
    }
    fn random_u64(&self) -> u64 {
        self.0.random_u64()
    }
}

impl File for FaultyFile {
    fn length(&self) -> io::Result<u64> {
        self.file.length()
    }
    fn read_at(&self, buffer: &mut [u8], position: FilePosition) -> io::Result<usize> {
        self.file.read_at(buffer, position)
    }
    fn write_vectored_at(
        &self,
        parts: &[IoSlice<'_>],
        position: FilePosition,
    ) -> io::Result<usize> {
        self.shared.check_room(&self.path)?;
        self.shared.count(Kind::Write)?;
        self.file.write_vectored_at(parts, position)
    }
    fn set_length(&self, length: u64) -> io::Result<()> {
        self.file.set_length(length)
    }
    fn sync_data(&self) -> io::Result<()> {
        self.shared.count(Kind::Sync)?;
        self.file.sync_data()
    }
}
