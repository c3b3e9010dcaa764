//! The files of one directory, with errors that say what was tried with which of them.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::position::FilePosition;
use crate::storage::{
    read_exact_at, read_full_at, write_all_at, write_zeros, File, OpenMode, Storage,
};

/// An operation that the operating system refused.
#[derive(Debug)]
pub struct Refused {
    /// A verb.
    pub action: &'static str,
    pub path: PathBuf,
    pub source: io::Error,
}

/// Says of an error what was tried.
fn refused<'a>(
    action: &'static str,
    path: &'a Path,
) -> impl FnOnce(io::Error) -> Refused + use<'a> {
    move |source| Refused {
        action,
        path: path.to_owned(),
        source,
    }
}

/// A directory. Clones are of the same one.
#[derive(Clone)]
pub struct Directory {
    storage: Arc<dyn Storage>,
    path: PathBuf,
}

impl Directory {
    pub fn new(storage: Arc<dyn Storage>, path: &Path) -> Directory {
        Directory {
            storage,
            path: path.to_owned(),
        }
    }

    /// Creates it, durably, unless it is there.
    pub fn create(&self) -> Result<(), Refused> {
        let created = self.storage.create_directory(&self.path);
        created.map_err(refused("create", &self.path))
    }

    pub fn storage(&self) -> &dyn Storage {
        &*self.storage
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The path of a file in it.
    pub fn join(&self, name: impl AsRef<Path>) -> PathBuf {
        self.path.join(name)
    }

    /// The names of its files, in no particular order.
    pub fn list(&self) -> Result<Vec<String>, Refused> {
        let names = self.storage.list(&self.path);
        names.map_err(refused("list", &self.path))
    }

    /// Makes creations, renames and removals durable.
    pub fn sync(&self) -> Result<(), Refused> {
        let synced = self.storage.sync_directory(&self.path);
        synced.map_err(refused("sync", &self.path))
    }

    /// Opens one of its files.
    pub fn open(&self, path: &Path, mode: OpenMode) -> Result<NamedFile, Refused> {
        let action = match mode {
            OpenMode::Read => "open",
            OpenMode::ReadWrite => "open for writing",
            OpenMode::CreateNew => "create",
        };
        let file = self.storage.open(path, mode);
        Ok(NamedFile {
            file: file.map_err(refused(action, path))?,
            path: path.to_owned(),
        })
    }

    /// Renames a file. An error is of the old name.
    pub fn rename(&self, action: &'static str, from: &Path, to: &Path) -> Result<(), Refused> {
        self.storage.rename(from, to).map_err(refused(action, from))
    }

    /// Gives a finished file its name. An error is of that.
    pub fn name(&self, from: &Path, to: &Path) -> Result<(), Refused> {
        self.storage.rename(from, to).map_err(refused("name", to))
    }

    pub fn remove(&self, path: &Path) -> Result<(), Refused> {
        self.storage.remove(path).map_err(refused("remove", path))
    }

    pub fn remove_if_there(&self, path: &Path) -> Result<(), Refused> {
        match self.remove(path) {
            Err(error) if error.source.kind() == io::ErrorKind::NotFound => Ok(()),
            removed => removed,
        }
    }
}

/// An open file and its path.
pub struct NamedFile {
    pub file: Box<dyn File>,
    pub path: PathBuf,
}

impl NamedFile {
    /// Its end.
    pub fn end(&self) -> Result<FilePosition, Refused> {
        let length = self.file.length().map(FilePosition::new);
        length.map_err(refused("read the length of", &self.path))
    }

    /// As [`read_full_at`].
    pub fn read_full(&self, buffer: &mut [u8], position: FilePosition) -> Result<usize, Refused> {
        read_full_at(&*self.file, buffer, position).map_err(refused("read", &self.path))
    }

    /// As [`read_exact_at`].
    pub fn read_exact(&self, buffer: &mut [u8], position: FilePosition) -> Result<(), Refused> {
        read_exact_at(&*self.file, buffer, position).map_err(refused("read", &self.path))
    }

    /// As [`write_all_at`].
    pub fn write(&self, parts: &[&[u8]], position: FilePosition) -> Result<(), Refused> {
        write_all_at(&*self.file, parts, position).map_err(refused("write", &self.path))
    }

    /// As [`write_zeros`], as part of an action.
    pub fn write_zeros(
        &self,
        action: &'static str,
        from: FilePosition,
        to: FilePosition,
    ) -> Result<(), Refused> {
        write_zeros(&*self.file, from, to).map_err(refused(action, &self.path))
    }

    /// Makes its bytes durable.
    pub fn sync(&self) -> Result<(), Refused> {
        let synced = self.file.sync_data();
        synced.map_err(refused("sync", &self.path))
    }
}
