//! Positions in files.

use crate::numbers::distances;

/// A number of bytes from the start of a file. Two positions have a distance and no sum.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct FilePosition(u64);

impl FilePosition {
    pub const START: FilePosition = FilePosition(0);

    /// The position behind so many bytes; for the length of a file, its end.
    pub const fn new(bytes: u64) -> FilePosition {
        FilePosition(bytes)
    }

    pub const fn get(self) -> u64 {
        self.0
    }

    /// Bytes up to `end`; 0 if that lies before this position.
    pub const fn bytes_to(self, end: FilePosition) -> u64 {
        end.0.saturating_sub(self.0)
    }
}

distances!(FilePosition, "byte");
