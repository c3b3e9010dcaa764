//! Shared by a store and the snapshot that is being written.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

use lightcone_storage::{Directory, File, FilePosition};

use crate::error::SnapshotError;
use crate::format::ObjectHash;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Stored {
    pub pack: u64,
    pub bytes: u32,
    pub position: FilePosition,
    /// To be read back before it is relied on.
    pub is_checked: bool,
}

/// Stored objects that a new snapshot may take over.
#[derive(Default)]
pub(crate) struct Reusable {
    pub objects: HashMap<ObjectHash, Stored>,
    pub packs: HashMap<u64, Box<dyn File>>,
}

pub(crate) struct Shared {
    pub directory: Directory,
    pub busy: AtomicBool,
}

/// Held while a snapshot is written or the store is pruned.
pub(crate) struct Busy(Arc<Shared>);

impl Busy {
    pub fn take(shared: &Arc<Shared>) -> Result<Busy, SnapshotError> {
        match shared.busy.swap(true, Ordering::AcqRel) {
            false => Ok(Busy(shared.clone())),
            true => Err(SnapshotError::Misuse {
                reason: "another snapshot is being written or removed".to_owned(),
            }),
        }
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.busy.store(false, Ordering::Release);
    }
}
