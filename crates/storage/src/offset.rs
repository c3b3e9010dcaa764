//! Offsets of a log, here because the files of logs and of snapshots are both named after one.

use crate::numbers::distances;

/// The number of a transaction in a log, from 0; also the end of all transactions before it. Two offsets have a distance in
/// transactions and no sum.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct LogOffset(u64);

impl LogOffset {
    pub const FIRST: LogOffset = LogOffset(0);
    /// After every possible transaction.
    pub const MAX: LogOffset = LogOffset(u64::MAX);

    /// The offset with so many transactions before it.
    pub const fn new(transactions: u64) -> LogOffset {
        LogOffset(transactions)
    }

    /// How many transactions lie before this offset.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// None if there is no such offset. For counts that come from a file.
    pub const fn checked_add(self, transactions: u64) -> Option<LogOffset> {
        match self.0.checked_add(transactions) {
            Some(sum) => Some(LogOffset(sum)),
            None => None,
        }
    }

    /// Moves on to a later offset, or stays.
    ///
    /// # Panics
    /// If `to` is before this offset: what is durable, or was promised, never goes back.
    pub fn advance_to(&mut self, to: LogOffset) {
        assert!(*self <= to, "offset {self} does not go back to {to}");
        *self = to;
    }
}

distances!(LogOffset, "offset");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_have_distances_and_go_on() {
        let three = LogOffset::FIRST + 3;
        assert_eq!((three.get(), LogOffset::new(10) - three), (3, 7));
        assert_eq!(LogOffset::MAX.checked_add(1), None);
        assert_eq!(format!("{three:020} {three:?}"), "00000000000000000003 3");
        let mut durable = three;
        durable.advance_to(three);
        durable.advance_to(LogOffset::new(4));
        assert_eq!(durable, LogOffset::new(4));
    }

    #[test]
    #[should_panic(expected = "offset 4 does not go back to 3")]
    fn offsets_do_not_go_back() {
        LogOffset::new(4).advance_to(LogOffset::new(3));
    }

    #[test]
    #[should_panic(expected = "offset 4 is not before 3")]
    fn there_is_no_distance_backwards() {
        let _ = LogOffset::new(3) - LogOffset::new(4);
    }
}
