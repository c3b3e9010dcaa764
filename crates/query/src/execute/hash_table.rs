//! The hash table of a join without an index.

use std::hash::{BuildHasher, Hasher, RandomState};

use lightcone_table::{RowId, RowLayout};
use lightcone_types::ColId;

use super::found::Match;
use crate::condition::ColumnAt;
use crate::scalar::Scalar;

/// No place in a hash table.
pub(super) const NONE: u32 = u32::MAX;
/// What a row takes in a hash table at most: its hash and its id, which have room for as many again, the next row, and the
/// heads of two lists.
pub(super) const ENTRY_BYTES: usize =
    2 * (size_of::<u64>() + size_of::<RowId>()) + 3 * size_of::<u32>();

/// Row ids by the hash of some columns. Values are of clients: they are hashed with a secret.
#[derive(Default)]
pub(super) struct HashTable {
    secret: RandomState,
    pub hashes: Vec<u64>,
    pub ids: Vec<RowId>,
    /// The next entry of the same list.
    pub next: Vec<u32>,
    /// The first entry of each list.
    heads: Vec<u32>,
    pub is_built: bool,
}

impl HashTable {
    pub fn push(
        &mut self,
        columns: &[(ColId, Scalar, ColumnAt)],
        layout: &RowLayout,
        row: &[u8],
        id: RowId,
    ) {
        let mut hasher = self.secret.build_hasher();
        for (column, scalar, _) in columns {
            hash_value(
                *scalar,
                layout.column(row, usize::from(column.0)),
                &mut hasher,
            );
        }
        self.hashes.push(hasher.finish());
        self.ids.push(id);
    }

    pub fn build(&mut self) {
        let lists = self.ids.len().next_power_of_two();
        self.heads = vec![NONE; lists];
        self.next = vec![NONE; self.ids.len()];
        for (entry, hash) in self.hashes.iter().enumerate().rev() {
            let head = &mut self.heads[*hash as usize & (lists - 1)];
            self.next[entry] = std::mem::replace(head, entry as u32);
        }
        self.is_built = true;
    }

    pub fn first(&self, hash: u64) -> u32 {
        self.heads[hash as usize & (self.heads.len() - 1)]
    }

    pub fn hash_of_tuple(
        &self,
        columns: &[(ColId, Scalar, ColumnAt)],
        tuple: &Match<'_>,
    ) -> Option<u64> {
        let mut hasher = self.secret.build_hasher();
        for (_, scalar, other) in columns {
            hash_value(*scalar, tuple.column(*other)?, &mut hasher);
        }
        Some(hasher.finish())
    }
}

/// Equal values have equal hashes: zeros of both signs, and all that are no number.
fn hash_value(scalar: Scalar, value: &[u8], hasher: &mut impl Hasher) {
    match scalar.float(value) {
        Some(0.0) => hasher.write_u64(0),
        Some(float) if float.is_nan() => hasher.write_u64(f64::NAN.to_bits()),
        Some(float) => hasher.write_u64(float.to_bits()),
        None => hasher.write(value),
    }
}
