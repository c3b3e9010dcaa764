//! The loop over one relation: which of its rows were found, and where it stands.

use lightcone_table::{RowId, RowLayout, TableView};
use lightcone_types::ColId;

use super::found::Match;
use super::hash_table::{HashTable, ENTRY_BYTES, NONE};
use crate::condition::ColumnAt;
use crate::planner::{KeyPart, Step, Strategy};
use crate::predicate::Predicate;
use crate::scalar::Scalar;

/// So many row ids are taken from a table at once.
pub(super) const BATCH: usize = 1024;
/// What a step and its loop take, but for the rows.
const STEP_BYTES: usize = size_of::<Step>() + size_of::<Loop>();
/// What has to be looked at for a row, in steps of a predicate.
pub(super) const ROW_STEPS: usize = 4;

/// Where the loop over one relation is.
#[derive(Default)]
pub(super) struct Loop {
    /// Rows that are there and match by themselves.
    pub ids: Vec<RowId>,
    pub at: usize,
    /// The last row that was looked at.
    pub after: Option<RowId>,
    /// Nothing comes behind the ids.
    pub is_exhausted: bool,
    /// Of the index or hash table.
    pub key: Vec<u8>,
    pub hash: Option<HashTable>,
    /// The next place in the hash table, and the hash that is looked for.
    pub place: u32,
    pub wanted_hash: u64,
    /// So many rows are found at once.
    pub batch: usize,
    /// What was counted of its memory.
    pub counted_bytes: usize,
    pub read: Read,
}

/// What was read of a relation.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Read {
    pub looked_at: u64,
    /// Rows that matched with those of the relations before.
    pub found: u64,
}

impl Loop {
    pub fn memory_bytes(&self) -> usize {
        let hashed = self.hash.as_ref().map_or(0, |table| table.ids.len());
        self.ids.capacity() * size_of::<RowId>() + self.key.capacity() + hashed * ENTRY_BYTES
    }

    /// How many rows are to be found now. Where one may be enough, the first batches are small.
    pub fn next_batch(&mut self) -> usize {
        let batch = self.batch;
        self.batch = (batch * 8).min(BATCH);
        batch
    }

    /// Takes more rows from the hash table that have the values of the present rows.
    pub fn probe(
        &mut self,
        columns: &[(ColId, Scalar, ColumnAt)],
        table: &TableView,
        tuple: &Match<'_>,
        steps: &mut usize,
    ) {
        self.ids.clear();
        self.at = 0;
        let batch = self.next_batch();
        let Some(hashed) = &self.hash else { return };
        // One entry at least, so that there is progress.
        while self.place != NONE {
            spend(steps, 1);
            let entry = self.place as usize;
            self.place = hashed.next[entry];
            if hashed.hashes[entry] == self.wanted_hash {
                spend(steps, ROW_STEPS);
                let id = hashed.ids[entry];
                self.read.looked_at += 1;
                let row = table.row(id);
                let equals = |(column, scalar, other): &(ColId, Scalar, ColumnAt)| {
                    let own = table.layout().column(row, usize::from(column.0));
                    let other = tuple.column(*other);
                    other.and_then(|other| scalar.compare(own, other))
                        == Some(std::cmp::Ordering::Equal)
                };
                if columns.iter().all(equals) {
                    self.ids.push(id);
                }
            }
            if self.ids.len() == batch || *steps == 0 {
                break;
            }
        }
        self.is_exhausted = self.place == NONE;
    }
}

/// What the steps of a strategy take, and those of the one that may take its place.
pub(super) fn step_bytes(strategy: &Strategy) -> usize {
    let plans = if strategy.leading.is_some() { 2 } else { 1 };
    plans * strategy.steps.len() * STEP_BYTES
}

#[inline]
pub(super) fn spend(steps: &mut usize, taken: usize) {
    *steps = steps.saturating_sub(taken);
}

#[inline]
pub(super) fn takes(
    own: Option<&Predicate>,
    layout: &RowLayout,
    row: &[u8],
    steps: &mut usize,
) -> bool {
    let Some(own) = own else {
        return true;
    };
    spend(steps, own.steps(row.len()));
    own.matches(layout, row)
}

/// Appends a key in BSATN. False if a row that it needs is not there.
pub(super) fn push_key(parts: &[KeyPart], tuple: &Match<'_>, out: &mut Vec<u8>) -> bool {
    parts.iter().all(|part| match part {
        KeyPart::Constant(value) => {
            out.extend_from_slice(value);
            true
        }
        KeyPart::Column(at) => match tuple.column(*at) {
            Some(value) => {
                out.extend_from_slice(value);
                true
            }
            None => false,
        },
    })
}
