//! Positions in files.

use std::fmt;
use std::ops::{Add, AddAssign, Sub};

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

impl Add<u64> for FilePosition {
    type Output = FilePosition;

    fn add(self, bytes: u64) -> FilePosition {
        FilePosition(self.0 + bytes)
    }
}

impl AddAssign<u64> for FilePosition {
    fn add_assign(&mut self, bytes: u64) {
        *self = *self + bytes;
    }
}

impl Sub for FilePosition {
    type Output = u64;

    /// # Panics
    /// If `earlier` is the later one; [`FilePosition::bytes_to`] answers 0 then.
    fn sub(self, earlier: FilePosition) -> u64 {
        assert!(earlier <= self, "byte {earlier} is not before byte {self}");
        self.0 - earlier.0
    }
}

impl fmt::Display for FilePosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for FilePosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
