//! A part of the disk that is kept for commit logs.
//!
//! What can wait (module logs, the server's log, publishes, snapshots) asks first whether there is room beyond the reserve.
//! So a full disk stops these, and acknowledged work goes on for as long as the reserve lasts.

use std::path::PathBuf;

/// What is kept free unless told otherwise, and the most of a small disk that is kept.
const RESERVE_BYTES: u64 = 256 << 20;
const RESERVE_SHARE: u64 = 8;

/// Keeps a part of the disk that a path is on. The default one keeps nothing.
#[derive(Clone, Debug, Default)]
pub struct DiskReserve {
    path: PathBuf,
    /// None: chosen by the size of the disk.
    bytes: Option<u64>,
    enabled: bool,
}

impl DiskReserve {
    /// Without a number: 256 MiB, or an eighth of a disk that has less than 2 GiB.
    pub fn new(path: PathBuf, bytes: Option<u64>) -> DiskReserve {
        DiskReserve {
            path,
            bytes,
            enabled: true,
        }
    }

    /// May something that can wait write so many bytes? Yes also where the system does not tell.
    pub fn has_room_for(&self, bytes: u64) -> bool {
        match self.space() {
            Some((free, kept)) => free >= kept.saturating_add(bytes),
            None => true,
        }
    }

    /// How many bytes are free, and how many are kept. None where nothing is kept or the system does not tell.
    pub fn space(&self) -> Option<(u64, u64)> {
        if !self.enabled {
            return None;
        }
        let space = rustix::fs::statvfs(&self.path).ok()?;
        let (free, all) = (
            space.f_bavail.saturating_mul(space.f_frsize),
            space.f_blocks.saturating_mul(space.f_frsize),
        );
        let kept = self.bytes.unwrap_or(RESERVE_BYTES.min(all / RESERVE_SHARE));
        Some((free, kept))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_can_wait_leaves_the_reserve() {
        let here = std::env::temp_dir();
        let (free, kept) = DiskReserve::new(here.clone(), None)
            .space()
            .expect("the system tells");
        assert!(free > 0 && kept > 0 && kept <= RESERVE_BYTES);
        assert!(DiskReserve::new(here.clone(), Some(0)).has_room_for(0));
        assert!(!DiskReserve::new(here.clone(), Some(u64::MAX)).has_room_for(0));
        assert!(!DiskReserve::new(here, Some(0)).has_room_for(u64::MAX));
        assert!(DiskReserve::default().has_room_for(u64::MAX));
        let nowhere = DiskReserve::new("/nowhere/at/all".into(), Some(u64::MAX));
        assert!(nowhere.has_room_for(1));
    }
}
