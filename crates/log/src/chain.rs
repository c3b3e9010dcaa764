//! Places in the history of a database, the same in every copy of its log.

use std::fmt;

use lightcone_storage::LogOffset;

/// The term of a leader. Each new one takes a higher one, and logs fence writers with a lower one. Epochs are compared; there is
/// no arithmetic.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct Epoch(u64);

impl Epoch {
    /// The epoch of a new log.
    pub const FIRST: Epoch = Epoch(1);

    pub const fn new(number: u64) -> Epoch {
        Epoch(number)
    }

    /// As on the disk.
    pub const fn get(self) -> u64 {
        self.0
    }
}

impl fmt::Display for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Stands for all transactions before an offset, their epochs and their frames: logs with the same hash there have the same ones.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct LogHash(u128);

impl LogHash {
    pub(crate) const fn new(number: u128) -> LogHash {
        LogHash(number)
    }

    pub(crate) const fn get(self) -> u128 {
        self.0
    }

    pub const fn to_le_bytes(self) -> [u8; 16] {
        self.0.to_le_bytes()
    }

    pub const fn from_le_bytes(bytes: [u8; 16]) -> LogHash {
        LogHash(u128::from_le_bytes(bytes))
    }

    /// The hash behind a frame. A mark, which has no transactions, changes nothing.
    pub fn after(
        self,
        epoch: Epoch,
        first_offset: LogOffset,
        count: u32,
        payload: &[&[u8]],
    ) -> LogHash {
        if count == 0 {
            return self;
        }
        let mut hasher = blake3::Hasher::new();
        hasher.update(&self.to_le_bytes());
        hasher.update(&epoch.get().to_le_bytes());
        hasher.update(&first_offset.get().to_le_bytes());
        hasher.update(&count.to_le_bytes());
        for part in payload {
            hasher.update(part);
        }
        let mut first = [0; 16];
        first.copy_from_slice(&hasher.finalize().as_bytes()[..16]);
        LogHash::from_le_bytes(first)
    }
}

impl fmt::Display for LogHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl fmt::Debug for LogHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A place between two frames, wherever they are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Chain {
    pub next_offset: LogOffset,
    /// Writers with an older one are fenced: the highest of all frames, marks and headers so far.
    pub epoch: Epoch,
    /// Of the last frame with transactions, as far as it is known: a leader's frames keep the epochs that they were written in.
    pub written: Epoch,
    pub hash: LogHash,
}

impl Chain {
    /// Where it is not known which frames came before.
    pub const fn at(next_offset: LogOffset, epoch: Epoch, hash: LogHash) -> Chain {
        Chain {
            next_offset,
            epoch,
            written: Epoch(0),
            hash,
        }
    }

    /// The place behind a frame of so many transactions.
    ///
    /// # Panics
    /// Beyond 2^64 transactions.
    pub fn after(self, epoch: Epoch, count: u32, payload: &[&[u8]]) -> Chain {
        let hash = self.hash.after(epoch, self.next_offset, count, payload);
        self.with(epoch, count, hash)
    }

    /// The same, where the hash is known.
    ///
    /// # Panics
    /// As [`after`](Self::after).
    pub fn with(self, epoch: Epoch, count: u32, hash: LogHash) -> Chain {
        Chain {
            next_offset: self.next_offset + u64::from(count),
            epoch: self.epoch.max(epoch),
            written: match count {
                0 => self.written,
                _ => epoch,
            },
            hash,
        }
    }
}
