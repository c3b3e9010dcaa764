//! A part of the disk that is kept for commit logs.
//!
//! Module logs, the server's log, publishes and snapshots write only while there is room beyond the reserve. So a full disk stops
//! these first, and transactions go on for as long as the reserve lasts.

use std::path::PathBuf;

/// The default reserve, and the greatest share of a small disk.
const RESERVE_BYTES: u64 = 256 << 20;
const RESERVE_SHARE: u64 = 8;

/// Keeps a part of the disk that a path is on. The default keeps nothing.
#[derive(Clone, Debug, Default)]
pub struct DiskReserve {
    path: PathBuf,
    /// None: chosen by the size of the disk.
    bytes: Option<u64>,
    enabled: bool,
}

impl DiskReserve {
    /// Without a number: 256 MiB, or an eighth of a disk with less than 2 GiB.
    pub fn new(path: PathBuf, bytes: Option<u64>) -> DiskReserve {
        DiskReserve {
            path,
            bytes,
            enabled: true,
        }
    }

    /// Whether so many bytes may be written that are not part of a commit log. Yes also where the system gives no numbers.
    pub fn has_room_for(&self, bytes: u64) -> bool {
        match self.space() {
            Some((free, kept)) => free >= kept.saturating_add(bytes),
            None => true,
        }
    }

    /// Free bytes and reserved bytes. None where nothing is reserved or the system gives no numbers.
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
