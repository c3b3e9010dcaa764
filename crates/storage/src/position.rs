//! Places in files.

use std::fmt;
use std::ops::{Add, AddAssign, Sub};

/// A place in a file: so many bytes from its start. Two places have a distance in bytes and no sum.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct FilePosition(u64);

impl FilePosition {
    /// The first byte of a file.
    pub const START: FilePosition = FilePosition(0);

    /// The place before which the file has `bytes` bytes. Of a file's length this is its end.
    pub const fn new(bytes: u64) -> FilePosition {
        FilePosition(bytes)
    }

    /// How many bytes of the file lie before this place.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// How many bytes there are up to `end`; 0 if that lies before this place.
    pub const fn bytes_to(self, end: FilePosition) -> u64 {
        end.0.saturating_sub(self.0)
    }
}

/// Moves on by bytes.
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

/// The bytes between two places.
impl Sub for FilePosition {
    type Output = u64;

    /// # Panics
    /// If `earlier` is the later one. Where that may be, [`FilePosition::bytes_to`] answers 0.
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
