//! The traits [`Storage`] and [`File`], and reads and writes in several parts.

use std::any::Any;
use std::io::{self, IoSlice};
use std::path::Path;

use crate::position::FilePosition;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenMode {
    /// An existing file, for reading.
    Read,
    /// An existing file, for reading and writing.
    ReadWrite,
    /// A new file, for reading and writing; fails if the name is taken.
    CreateNew,
}

pub trait Storage: Send + Sync + 'static {
    /// Creates `directory` and its missing parents, durably.
    ///
    /// Each name is synced before anything is made below it. So of the directories that exist, only the last may have been left
    /// unsynced, by a process that died; its name is synced again.
    fn create_directory(&self, directory: &Path) -> io::Result<()> {
        let parent = parent_of(directory);
        if self.is_directory(directory)? {
            return match self.sync_directory(parent) {
                // A process that may not open the parent has not made this directory; a mount point has no name to sync.
                Err(error)
                    if matches!(
                        error.kind(),
                        io::ErrorKind::PermissionDenied
                            | io::ErrorKind::InvalidInput
                            | io::ErrorKind::Unsupported
                    ) =>
                {
                    Ok(())
                }
                synced => synced,
            };
        }
        self.create_directory(parent)?;
        match self.make_directory(directory) {
            // Another process or thread was faster.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            made => made?,
        }
        self.sync_directory(parent).inspect_err(|_| {
            // The next sync might report success without writing this name; a new directory has a new name.
            let _ = self.remove_directory(directory);
        })
    }

    /// Whether there is a directory at `path`. Something else there is [`io::ErrorKind::NotADirectory`].
    fn is_directory(&self, path: &Path) -> io::Result<bool>;
    /// One step of [`Storage::create_directory`].
    fn make_directory(&self, directory: &Path) -> io::Result<()>;
    /// Removes an empty directory. Durable after [`Storage::sync_directory`] of its parent.
    fn remove_directory(&self, directory: &Path) -> io::Result<()>;
    /// The names in `directory`, in no particular order.
    fn list(&self, directory: &Path) -> io::Result<Vec<String>>;
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Box<dyn File>>;
    /// Renames a file; an existing file of the new name is replaced. Durable after [`Storage::sync_directory`].
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Removes a file. Durable after [`Storage::sync_directory`].
    fn remove(&self, path: &Path) -> io::Result<()>;
    /// Makes the creations, renames and removals in `directory` durable.
    fn sync_directory(&self, directory: &Path) -> io::Result<()>;
    /// Takes the exclusive lock file `path` until the returned guard is dropped.
    /// Fails with [`io::ErrorKind::WouldBlock`] while another process holds it.
    fn lock(&self, path: &Path) -> io::Result<Box<dyn Any + Send + Sync>>;
    /// Runs `task` beside the caller (the simulator runs it at once). Fails if there is no thread for it.
    fn run_in_background(&self, name: &str, task: Box<dyn FnOnce() + Send>) -> io::Result<()>;
    /// A random number that clients cannot guess.
    fn random_u64(&self) -> u64;
}

/// An open file. All reads and writes name their position; there is no cursor.
pub trait File: Send + Sync {
    fn length(&self) -> io::Result<u64>;
    /// Reads up to `buffer.len()` bytes at `position`; 0 means the end of the file.
    fn read_at(&self, buffer: &mut [u8], position: FilePosition) -> io::Result<usize>;
    /// Writes a prefix of the concatenation of `parts` at `position`; returns its length.
    fn write_vectored_at(&self, parts: &[IoSlice<'_>], position: FilePosition)
        -> io::Result<usize>;
    /// Cuts or extends (with zeros) the file.
    fn set_length(&self, length: u64) -> io::Result<()>;
    /// Makes the contents, and the metadata needed to read them back, durable (`fdatasync`).
    fn sync_data(&self) -> io::Result<()>;
    /// A hint: later reads of synced bytes are to come from the disk, not from the cache.
    fn forget_cached(&self) {}
}

/// The directory that holds the name of `path`.
pub fn parent_of(path: &Path) -> &Path {
    match path.parent() {
        // The root, which always exists.
        None => path,
        Some(parent) if parent.as_os_str().is_empty() => Path::new("."),
        Some(parent) => parent,
    }
}

/// The most parts one write takes; Linux's `IOV_MAX`.
const PARTS_MAX: usize = 1024;

/// Writes all of `parts` at `position`. A short write is continued.
pub fn write_all_at(
    file: &dyn File,
    parts: &[&[u8]],
    mut position: FilePosition,
) -> io::Result<()> {
    let mut slices: Vec<IoSlice<'_>> = parts
        .iter()
        .filter(|part| !part.is_empty())
        .map(|part| IoSlice::new(part))
        .collect();
    let mut rest: &mut [IoSlice<'_>] = &mut slices;
    while !rest.is_empty() {
        let taken = match file.write_vectored_at(&rest[..rest.len().min(PARTS_MAX)], position) {
            Ok(0) => {
                return Err(io::Error::new(
                    io::ErrorKind::WriteZero,
                    "the file takes no more bytes",
                ))
            }
            Ok(taken) => taken,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        position += taken as u64;
        IoSlice::advance_slices(&mut rest, taken);
    }
    Ok(())
}

pub fn write_zeros(file: &dyn File, from: FilePosition, to: FilePosition) -> io::Result<()> {
    const PIECE: usize = 256 * 1024;
    static ZEROS: [u8; PIECE] = [0; PIECE];
    let mut position = from;
    while position < to {
        let bytes = position.bytes_to(to).min(PIECE as u64);
        write_all_at(file, &[&ZEROS[..bytes as usize]], position)?;
        position += bytes;
    }
    Ok(())
}

/// Fills `buffer` from `position`; returns how many bytes there were, fewer only at the end of the file.
pub fn read_full_at(
    file: &dyn File,
    buffer: &mut [u8],
    position: FilePosition,
) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match file.read_at(&mut buffer[filled..], position + filled as u64) {
            Ok(0) => break,
            Ok(taken) => filled += taken,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

/// Fills `buffer` from `position`, or fails with [`io::ErrorKind::UnexpectedEof`].
pub fn read_exact_at(file: &dyn File, buffer: &mut [u8], position: FilePosition) -> io::Result<()> {
    if read_full_at(file, buffer, position)? < buffer.len() {
        return Err(io::Error::new(
            io::ErrorKind::UnexpectedEof,
            "the file ends too early",
        ));
    }
    Ok(())
}
