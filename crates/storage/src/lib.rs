//! The way to the disk.
//!
//! The log and the snapshot store reach files, directories, background threads and random numbers only
//! through [`Storage`]. [`DiskStorage`] is the real thing; [`sim::SimStorage`] is a disk in memory that
//! can fail the n-th write or sync, write short, and lose or reorder everything that was not synced, so
//! that tests run the real engine code through power failures. [`sim::HookedStorage`] is any of them behind hooks of a test.
//! Log and snapshots have their files through [`Directory`], whose errors say what was tried with which file.

#![forbid(unsafe_code)]

mod directory;
mod disk;
mod log_files;
mod numbers;
mod offset;
mod position;
mod reserve;
pub mod sim;
mod storage;

pub use directory::{Directory, NamedFile, Refused};
pub use disk::{disk, DiskStorage};
pub use log_files::{has_log_files, log_tail, LogBounds, LogFiles, NotWritten};
pub use numbers::{number_in_name, u32_at, u64_at};
pub use offset::LogOffset;
pub use position::FilePosition;
pub use reserve::DiskReserve;
pub use storage::{
    parent_of, read_exact_at, read_full_at, write_all_at, write_zeros, File, OpenMode, Storage,
};
