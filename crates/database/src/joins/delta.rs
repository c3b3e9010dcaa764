//! The change of one join in one transaction.
//!
//! With R' and S' the tables after the transaction and r, s their changes, a row that came counted as +1 and one that went as
//! -1, the change of R ⋈ S is r ⋈ S' + R' ⋈ s - r ⋈ s. Equal rows are counted together, and what is left is sent.

use std::collections::HashMap;

use lightcone_engine::{Datastore, DeltaBatch, DeltaKind, DeltaOp};
use lightcone_table::TableView;

use super::shape::JoinShape;
use super::{kind_of, Allowance};

/// Memory above this is not kept for the next transaction.
const BYTES_KEPT_MAX: usize = 1 << 20;
/// Up to so many pairs of changed rows are compared one by one.
const PAIRS_COMPARED_MAX: usize = 256;

/// Rows that came or went, with their keys. Its memory is reused.
#[derive(Default)]
pub(super) struct Delta {
    /// Key and row of each of `found`, one behind the other.
    bytes: Vec<u8>,
    found: Vec<Found>,
    key: Vec<u8>,
}

#[derive(Clone, Copy)]
struct Found {
    start: usize,
    key_len: usize,
    len: usize,
    weight: isize,
}

/// A changed row.
#[derive(Clone, Copy)]
struct Changed<'r> {
    row: &'r [u8],
    weight: isize,
}

impl Delta {
    /// Finds the change of a join. `is_wanted` says whether somebody has subscribed to a key. None: it is too much.
    pub fn find(
        &mut self,
        shape: &JoinShape,
        datastore: &Datastore,
        (deltas, ops): (&DeltaBatch, &[DeltaOp]),
        is_wanted: impl Fn(&[u8]) -> bool,
        left: &mut Allowance,
    ) -> Option<()> {
        self.bytes.clear();
        self.found.clear();
        let changed = [0, 1].map(|side| changed_rows(shape, side, deltas, ops));
        let is_event = |side: usize| shape.sides[side].table.is_event;
        for side in [0, 1] {
            // An event is there for its own transaction only; what its partners do later is nothing to it (08 §11).
            if is_event(1 - side) {
                continue;
            }
            let Some(table) = datastore.table(shape.sides[1 - side].table.id) else {
                continue;
            };
            for changed in &changed[side] {
                self.look_up(shape, (side, *changed), table, &is_wanted, left)?;
            }
        }
        if !is_event(0) && !is_event(1) {
            self.subtract_pairs(shape, datastore, &changed, &is_wanted, left)?;
        }
        left.bytes = left.bytes.saturating_sub(self.bytes_len());
        self.net();
        Some(())
    }

    /// Calls `visit` with what came and what went.
    pub fn for_each(&mut self, mut visit: impl FnMut(DeltaKind, &[u8], &[u8])) {
        for found in &self.found {
            let row = found.start + found.key_len;
            let (key, row) = (
                &self.bytes[found.start..row],
                &self.bytes[row..row + found.len],
            );
            for _ in 0..found.weight.unsigned_abs() {
                visit(kind_of(found.weight), key, row);
            }
        }
        self.bytes.shrink_to(BYTES_KEPT_MAX);
        self.found.shrink_to(BYTES_KEPT_MAX / size_of::<Found>());
    }

    fn bytes_len(&self) -> usize {
        self.bytes.len() + self.found.len() * size_of::<Found>()
    }

    /// The matches of a changed row with the other table as it is now.
    fn look_up(
        &mut self,
        shape: &JoinShape,
        (side, changed): (usize, Changed<'_>),
        partners: &TableView,
        is_wanted: &impl Fn(&[u8]) -> bool,
        left: &mut Allowance,
    ) -> Option<()> {
        let other = &shape.sides[1 - side];
        // If all parameters are this row's, nobody may want it.
        let mut rows = [None; 2];
        rows[side] = Some(changed.row);
        if shape.write_key(rows, &mut self.key) && !is_wanted(&self.key) {
            return Some(());
        }
        let index = partners.index_on(other.join_column)?;
        let point = shape.sides[side].join_value(changed.row);
        let mut is_too_much = false;
        let visit = |id| {
            if left.steps == 0 || self.bytes_len() > left.bytes {
                is_too_much = true;
                return false;
            }
            left.steps -= 1;
            let partner = partners.row(id);
            if other.admits(partner) {
                let mut pair = [changed.row; 2];
                pair[1 - side] = partner;
                self.pair(shape, pair, changed.weight, is_wanted);
            }
            true
        };
        let walked = index.walk_point(partners.rows(), partners.layout(), point, None, visit);
        walked.expect("the join columns have one type");
        (!is_too_much).then_some(())
    }

    /// Notes the row that comes out of a pair, if somebody wants it.
    fn pair(
        &mut self,
        shape: &JoinShape,
        pair: [&[u8]; 2],
        weight: isize,
        is_wanted: &impl Fn(&[u8]) -> bool,
    ) {
        shape.write_key(pair.map(Some), &mut self.key);
        if !is_wanted(&self.key) || !shape.admits_pair(pair) {
            return;
        }
        let row = pair[shape.returned];
        let start = self.bytes.len();
        self.bytes.extend_from_slice(&self.key);
        self.bytes.extend_from_slice(row);
        self.found.push(Found {
            start,
            key_len: self.key.len(),
            len: row.len(),
            weight,
        });
    }

    /// Pairs of changed rows of both sides were found, or not, from either side.
    fn subtract_pairs(
        &mut self,
        shape: &JoinShape,
        datastore: &Datastore,
        changed: &[Vec<Changed<'_>>; 2],
        is_wanted: &impl Fn(&[u8]) -> bool,
        allowed: &mut Allowance,
    ) -> Option<()> {
        let [left, right] = changed;
        if left.len() * right.len() <= PAIRS_COMPARED_MAX {
            for a in left {
                for b in right {
                    if shape.joins([a.row, b.row]) {
                        self.pair(shape, [a.row, b.row], -a.weight * b.weight, is_wanted);
                    }
                }
            }
            return Some(());
        }
        // Keys of one index are equal where values are, also those of floats.
        let side = &shape.sides[0];
        let index = datastore.table(side.table.id)?.index_on(side.join_column)?;
        let key_of = |value: &[u8]| {
            let mut key = Vec::new();
            let made = index.key_of_point(&side.layout, value, &mut key);
            made.expect("the join columns have one type");
            key
        };
        let mut by_value: HashMap<Vec<u8>, Vec<Changed<'_>>> = HashMap::new();
        for b in right {
            let value = shape.sides[1].join_value(b.row);
            by_value.entry(key_of(value)).or_default().push(*b);
        }
        for a in left {
            let found = by_value.get(&key_of(side.join_value(a.row)));
            for b in found.map_or(&[][..], Vec::as_slice) {
                allowed.steps = allowed.steps.checked_sub(1)?;
                if self.bytes_len() > allowed.bytes {
                    return None;
                }
                self.pair(shape, [a.row, b.row], -a.weight * b.weight, is_wanted);
            }
        }
        Some(())
    }

    /// Counts equal rows together.
    fn net(&mut self) {
        let Delta { bytes, found, .. } = self;
        if found.len() < 2 {
            return;
        }
        let content = |found: &Found| {
            let row = found.start + found.key_len;
            (&bytes[found.start..row], &bytes[row..row + found.len])
        };
        found.sort_unstable_by(|a, b| content(a).cmp(&content(b)));
        found.dedup_by(|next, kept| {
            let is_same = content(next) == content(kept);
            if is_same {
                kept.weight += next.weight;
            }
            is_same
        });
        found.retain(|found| found.weight != 0);
    }
}

/// The changed rows of a side's table that can be part of a pair, without those whose going and coming is the same to the join.
fn changed_rows<'r>(
    shape: &JoinShape,
    number: usize,
    deltas: &'r DeltaBatch,
    ops: &[DeltaOp],
) -> Vec<Changed<'r>> {
    let side = &shape.sides[number];
    let of_table = ops.iter().filter(|op| op.table == side.table.id);
    let changed = of_table.map(|op| Changed {
        row: deltas.row(op),
        weight: match op.kind {
            DeltaKind::Insert => 1,
            DeltaKind::Delete => -1,
        },
    });
    let mut changed: Vec<_> = changed.filter(|changed| side.admits(changed.row)).collect();
    if changed.len() > 1 && shape.only_joins(number) {
        let mut weights: HashMap<Vec<u8>, isize> = HashMap::new();
        for changed in &changed {
            *weights
                .entry(shape.signature(number, changed.row))
                .or_default() += changed.weight;
        }
        changed.retain(|changed| weights[&shape.signature(number, changed.row)] != 0);
    }
    changed
}
