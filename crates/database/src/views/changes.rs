//! Which changes of a transaction concern which instances' queries.

use std::ops::Range;

use lightcone_table::{DeltaBatch, DeltaKind};
use lightcone_types::TableId;

/// Changed rows of one transaction that are listed for queries on one table, counted once for each query. With more, queries run
/// again.
const LISTED_ROWS_MAX: usize = 65_536;
/// Memory above this is not kept for the next transaction.
const KEPT_ROWS_MAX: usize = 1024;

/// What a transaction has changed so far.
pub(crate) struct Changed<'a> {
    /// Behind the changes of tables, those of the joins over them.
    pub deltas: &'a DeltaBatch,
    pub tables: Range<usize>,
    /// Joins whose changes were too much to be found.
    pub failed_joins: &'a [TableId],
}

/// A row that a query gives, and how much more often, or less.
pub(super) type Change<'r> = (&'r [u8], isize);

/// Instances, each with the place of a change among those of the transaction; sorted when all are listed. Reused.
#[derive(Default)]
pub(super) struct Listed(Vec<(u32, u32)>);

impl Listed {
    /// False: too many are listed.
    pub fn push(&mut self, instance: u32, place: usize) -> bool {
        let has_room = self.0.len() < LISTED_ROWS_MAX;
        if has_room {
            self.push_found(instance, place);
        }
        has_room
    }

    /// The same for a change of a join, of which there is a bound elsewhere.
    pub fn push_found(&mut self, instance: u32, place: usize) {
        self.0.push((instance, place as u32));
    }

    pub fn sort(&mut self) {
        self.0.sort_unstable();
        self.0.dedup();
    }

    /// What is listed for an instance.
    pub fn of<'d>(&self, instance: u32, deltas: &'d DeltaBatch) -> Vec<Change<'d>> {
        let start = self.0.partition_point(|(of, _)| *of < instance);
        let listed = self.0[start..].iter();
        let listed = listed.take_while(|(of, _)| *of == instance);
        let change = |(_, place): &(u32, u32)| {
            let place = *place as usize;
            let op = &deltas.ops(place..place + 1)[0];
            let more = match op.kind {
                DeltaKind::Insert => 1,
                DeltaKind::Delete => -1,
            };
            (deltas.row(op), more)
        };
        listed.map(change).collect()
    }

    /// The transaction is done with.
    pub fn clear(&mut self) {
        self.0.clear();
        self.0.shrink_to(KEPT_ROWS_MAX);
    }
}
