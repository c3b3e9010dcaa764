//! Backups: their bytes, and what a set of them can bring back (`docs/design/backup.md`).
//!
//! A backup has [items](Item): pages of a snapshot, frames of the log, and what says where they belong. The server sends them to who
//! makes a backup and takes them from who restores one, and the files of a backup are made of them. A [`Manifest`] names the files of
//! one backup; a [`History`] is what several of them have together.
//!
//! Nothing here reads or writes files, and everything here takes hostile bytes.

#![forbid(unsafe_code)]

mod error;
pub mod fuzzing;
mod history;
mod item;
mod manifest;
mod place;

pub use error::Error;
pub use history::{moment_in, newest_moment, History, Plan};
pub use item::{
    objects_of, Decoder, Frame, Head, Item, Pack, PackEntry, SnapshotHead, ITEM_BYTES_MAX,
};
pub use lightcone_snapshot::ObjectHash;
pub use manifest::{
    is_file_name, log_name, pack_name, snapshot_name, FileEntry, LogEntry, Manifest, SnapshotEntry,
    FORMAT,
};
pub use place::Place;
