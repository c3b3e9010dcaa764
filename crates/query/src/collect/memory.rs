//! The memory of what a query keeps.

use crate::execute::ExecuteError;

/// What a kept thing takes beside its bytes: pointers, its place in a table.
pub(super) const ENTRY_BYTES: usize = 64;

/// The memory of what is kept.
pub(crate) struct Memory {
    pub bytes: usize,
    bytes_max: usize,
}

impl Memory {
    pub fn new(bytes_max: usize) -> Memory {
        Memory {
            bytes: 0,
            bytes_max,
        }
    }

    pub fn take(&mut self, bytes: usize) -> Result<(), ExecuteError> {
        self.bytes += bytes;
        match self.bytes > self.bytes_max {
            true => Err(ExecuteError::Memory {
                bytes_max: self.bytes_max,
            }),
            false => Ok(()),
        }
    }
}
