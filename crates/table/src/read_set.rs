//! What a call has read, by tables, keys and ranges: so it is known which changes can change its result (03 §14.6).

use std::collections::hash_map::Entry;

use lightcone_types::{IndexId, TableId};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::{Index, KeyRange, RangeBounds, Table};

/// More keys and ranges of one table than this are kept as a read of the whole table.
pub const READS_MAX: usize = 4096;

/// The reads of one call. Empty sets hold no memory.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct ReadSet {
    tables: FxHashMap<TableId, TableReads>,
}

/// The reads of one table.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct TableReads {
    /// All of its rows.
    pub whole: bool,
    /// How many there are.
    pub count: bool,
    /// The rows with these keys in these indexes ([`Index::key_of_row`]).
    pub points: FxHashSet<(IndexId, Box<[u8]>)>,
    /// The rows with keys in these ranges.
    pub ranges: Vec<(IndexId, KeyRange)>,
}

impl TableReads {
    fn read_whole(&mut self) {
        *self = TableReads {
            whole: true,
            ..TableReads::default()
        };
    }

    fn bound(&mut self) {
        if self.points.len() + self.ranges.len() > READS_MAX {
            self.read_whole();
        }
    }
}

impl ReadSet {
    pub fn clear(&mut self) {
        self.tables.clear();
    }

    /// The tables that were read.
    pub fn tables(&self) -> impl Iterator<Item = (TableId, &TableReads)> {
        self.tables.iter().map(|(table, reads)| (*table, reads))
    }

    /// Notes a scan of all rows.
    pub fn table(&mut self, table: TableId) {
        self.tables.entry(table).or_default().read_whole();
    }

    /// Notes that the rows were counted.
    pub fn count(&mut self, table: TableId) {
        let reads = self.tables.entry(table).or_default();
        reads.count |= !reads.whole;
    }

    /// Notes a point scan of a table by one of its indexes. One that fails reads nothing.
    pub fn point(&mut self, (table, found): (&Table, &Index), index: IndexId, point: &[u8]) {
        let mut key = Vec::new();
        if found.key_of_point(table.layout(), point, &mut key).is_err() {
            return;
        }
        let reads = self.tables.entry(table.schema.id).or_default();
        if !reads.whole {
            reads.points.insert((index, key.into()));
            reads.bound();
        }
    }

    /// Notes a range scan. One that fails reads nothing, and neither does one over no keys.
    pub fn range(
        &mut self,
        (table, found): (&Table, &Index),
        index: IndexId,
        range: RangeBounds<'_>,
    ) {
        let Ok(range) = found.key_range(range) else {
            return;
        };
        if range.is_empty() {
            return;
        }
        let reads = self.tables.entry(table.schema.id).or_default();
        let is_known = |known: &(IndexId, KeyRange)| known.0 == index && known.1 == range;
        // A loop often reads the same range again.
        if reads.whole || reads.ranges.iter().rev().take(8).any(is_known) {
            return;
        }
        reads.ranges.push((index, range));
        reads.bound();
    }

    /// Adds what another call has read.
    pub fn extend(&mut self, other: ReadSet) {
        for (table, reads) in other.tables {
            match self.tables.entry(table) {
                Entry::Vacant(place) => {
                    place.insert(reads);
                }
                Entry::Occupied(mut place) => {
                    let mine = place.get_mut();
                    if mine.whole || reads.whole {
                        mine.read_whole();
                        continue;
                    }
                    mine.count |= reads.count;
                    mine.points.extend(reads.points);
                    mine.ranges.extend(reads.ranges);
                    mine.bound();
                }
            }
        }
    }
}
