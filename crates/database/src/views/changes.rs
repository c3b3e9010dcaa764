//! The changed rows of a transaction that concern views' queries, with the instances that they concern.

use std::ops::Range;

use lightcone_table::{DeltaBatch, DeltaKind};
use lightcone_types::TableId;

/// Changed rows of one transaction that are listed for queries, counted once for each query. With more, queries run again.
const LISTED_ROWS_MAX: usize = 65_536;

/// Memory above this is not kept for the next transaction.
const KEPT_BYTES_MAX: usize = 64 << 10;
const KEPT_ROWS_MAX: usize = 1024;

/// A changed row, as it was and as it is.
#[derive(Clone, Copy)]
pub(super) struct Row<'r> {
    pub old: Option<&'r [u8]>,
    pub new: Option<&'r [u8]>,
}

/// A row that a query gives, and how much more often, or less.
pub(super) type Change<'r> = (&'r [u8], isize);

/// Changed rows of tables, in the order of the tables' ids, and behind them those of joins. Reused.
#[derive(Default)]
pub(super) struct RowChanges {
    pub batch: DeltaBatch,
    /// Where the images of the row are that is looked at, if it is in the batch.
    noted: Range<usize>,
    /// Instances, each with the place of a change; sorted when all are listed.
    of_instances: Vec<(u32, u32)>,
}

impl RowChanges {
    /// From here on, another row is looked at.
    pub fn next_row(&mut self) {
        self.noted = 0..0;
    }

    /// Takes the row that is looked at into the batch.
    pub fn note(&mut self, table: TableId, row: Row<'_>) {
        if !self.noted.is_empty() {
            return;
        }
        let start = self.batch.position();
        for (kind, image) in [(DeltaKind::Delete, row.old), (DeltaKind::Insert, row.new)] {
            if let Some(image) = image {
                self.batch.push(table, kind, image);
            }
        }
        self.noted = start..self.batch.position();
    }

    /// Lists the noted row for an instance. False: too many are listed.
    pub fn list(&mut self, instance: u32) -> bool {
        if self.of_instances.len() >= LISTED_ROWS_MAX {
            return false;
        }
        let places = self.noted.clone();
        let listed = places.map(|place| (instance, place as u32));
        self.of_instances.extend(listed);
        true
    }

    /// Lists a change of a join for an instance.
    pub fn list_found(&mut self, instance: u32, place: usize) {
        self.of_instances.push((instance, place as u32));
    }

    pub fn sort(&mut self) {
        self.of_instances.sort_unstable();
        // A row may concern an instance by its old and by its new key.
        self.of_instances.dedup();
    }

    /// What is listed for an instance.
    pub fn of(&self, instance: u32) -> Vec<Change<'_>> {
        let start = self.of_instances.partition_point(|(of, _)| *of < instance);
        let listed = self.of_instances[start..].iter();
        let listed = listed.take_while(|(of, _)| *of == instance);
        let change = |(_, place): &(u32, u32)| {
            let place = *place as usize;
            let op = &self.batch.ops(place..place + 1)[0];
            let more = match op.kind {
                DeltaKind::Insert => 1,
                DeltaKind::Delete => -1,
            };
            (self.batch.row(op), more)
        };
        listed.map(change).collect()
    }

    /// The transaction is done with.
    pub fn clear(&mut self) {
        let is_large =
            self.batch.bytes_len() > KEPT_BYTES_MAX || self.batch.position() > KEPT_ROWS_MAX;
        match is_large {
            true => self.batch = DeltaBatch::default(),
            false => self.batch.clear(),
        }
        self.noted = 0..0;
        self.of_instances.clear();
        self.of_instances.shrink_to(KEPT_ROWS_MAX);
    }
}
