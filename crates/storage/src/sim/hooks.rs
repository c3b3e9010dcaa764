//! A disk that calls hooks before each operation, so that a test can make it fail, wait or panic.

use std::any::Any;
use std::io::{self, IoSlice};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::position::FilePosition;
use crate::storage::{File, OpenMode, Storage};

/// An error takes the place of the operation.
pub trait Hooks: Send + Sync + 'static {
    /// Before [`Storage::make_directory`].
    fn before_make_directory(&self, _directory: &Path) -> io::Result<()> {
        Ok(())
    }

    /// Before [`Storage::sync_directory`].
    fn before_sync_directory(&self, _directory: &Path) -> io::Result<()> {
        Ok(())
    }

    /// Before [`Storage::open`].
    fn before_open(&self, _path: &Path, _mode: OpenMode) -> io::Result<()> {
        Ok(())
    }

    /// Before [`File::write_vectored_at`] of the file that was opened so.
    fn before_write(&self, _path: &Path) -> io::Result<()> {
        Ok(())
    }

    /// Before [`File::sync_data`] of the file that was opened so.
    fn before_sync(&self, _path: &Path) -> io::Result<()> {
        Ok(())
    }
}

pub struct HookedStorage {
    storage: Arc<dyn Storage>,
    hooks: Arc<dyn Hooks>,
}

struct HookedFile {
    file: Box<dyn File>,
    path: PathBuf,
    hooks: Arc<dyn Hooks>,
}

impl HookedStorage {
    pub fn new(storage: Arc<dyn Storage>, hooks: Arc<dyn Hooks>) -> HookedStorage {
        HookedStorage { storage, hooks }
    }
}

impl Storage for HookedStorage {
    fn is_directory(&self, path: &Path) -> io::Result<bool> {
        self.storage.is_directory(path)
    }

    fn make_directory(&self, directory: &Path) -> io::Result<()> {
        self.hooks.before_make_directory(directory)?;
        self.storage.make_directory(directory)
    }

    fn remove_directory(&self, directory: &Path) -> io::Result<()> {
        self.storage.remove_directory(directory)
    }

    fn list(&self, directory: &Path) -> io::Result<Vec<String>> {
        self.storage.list(directory)
    }

    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Box<dyn File>> {
        self.hooks.before_open(path, mode)?;
        Ok(Box::new(HookedFile {
            file: self.storage.open(path, mode)?,
            path: path.to_owned(),
            hooks: self.hooks.clone(),
        }))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.storage.rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.storage.remove(path)
    }

    fn sync_directory(&self, directory: &Path) -> io::Result<()> {
        self.hooks.before_sync_directory(directory)?;
        self.storage.sync_directory(directory)
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn Any + Send + Sync>> {
        self.storage.lock(path)
    }

    fn run_in_background(&self, name: &str, task: Box<dyn FnOnce() + Send>) -> io::Result<()> {
        self.storage.run_in_background(name, task)
    }

    fn random_u64(&self) -> u64 {
        self.storage.random_u64()
    }
}

impl File for HookedFile {
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
        self.hooks.before_write(&self.path)?;
        self.file.write_vectored_at(parts, position)
    }

    fn set_length(&self, length: u64) -> io::Result<()> {
        self.file.set_length(length)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.hooks.before_sync(&self.path)?;
        self.file.sync_data()
    }

    fn forget_cached(&self) {
        self.file.forget_cached();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::SimStorage;
    use crate::write_all_at;

    /// Refuses what is below a name.
    struct Broken(&'static str);

    impl Broken {
        fn check(&self, path: &Path, operation: &str) -> io::Result<()> {
            match path.ends_with(self.0) {
                true => Err(io::Error::other(operation.to_owned())),
                false => Ok(()),
            }
        }
    }

    impl Hooks for Broken {
        fn before_make_directory(&self, directory: &Path) -> io::Result<()> {
            self.check(directory, "make")
        }
        fn before_open(&self, path: &Path, mode: OpenMode) -> io::Result<()> {
            match mode {
                OpenMode::Read => self.check(path, "open"),
                _ => Ok(()),
            }
        }
        fn before_write(&self, path: &Path) -> io::Result<()> {
            self.check(path, "write")
        }
        fn before_sync(&self, path: &Path) -> io::Result<()> {
            self.check(path, "sync")
        }
    }

    #[test]
    fn a_hook_takes_the_place_of_its_operation_only() {
        let disk = HookedStorage::new(Arc::new(SimStorage::new(1)), Arc::new(Broken("bad")));
        let says = |error: io::Error| error.to_string();
        let folder = Path::new("/disk");
        disk.create_directory(folder).expect("made");
        let refused = disk.make_directory(&folder.join("bad"));
        assert_eq!(refused.map_err(says), Err("make".to_owned()));

        let good = folder.join("good");
        let file = disk.open(&good, OpenMode::CreateNew).expect("made");
        write_all_at(&*file, &[b"abc"], FilePosition::START).expect("written");
        file.sync_data().expect("synced");
        assert_eq!(
            disk.open(&good, OpenMode::Read)
                .expect("there")
                .length()
                .expect("known"),
            3
        );

        let bad = folder.join("bad");
        let file = disk.open(&bad, OpenMode::CreateNew).expect("made");
        let refused = write_all_at(&*file, &[b"abc"], FilePosition::START);
        assert_eq!(refused.map_err(says), Err("write".to_owned()));
        assert_eq!(file.length().expect("known"), 0);
        assert_eq!(file.sync_data().map_err(says), Err("sync".to_owned()));
        let refused = disk.open(&bad, OpenMode::Read).map(drop);
        assert_eq!(refused.map_err(says), Err("open".to_owned()));
    }
}
