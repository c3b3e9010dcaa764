//! The change of one join in one transaction.
//!
//! With R', S', T' the tables after the transaction, r, s, t their changes, and R, S, T the tables before it, the change of
//! R ⋈ S ⋈ T is r ⋈ S ⋈ T + R' ⋈ s ⋈ T + R' ⋈ S' ⋈ t: for each changed row of a relation, those before that as they are and those
//! behind it as they were. A row that came counts as +1, one that went as -1. How a table was is not there any more: it is how
//! the table is, less its changes. Equal rows that come out are counted together, and what is left is sent.
//!
//! Tables of subqueries stand behind all others: of a match that came or went it is asked whether its subqueries hold as they
//! were. A change in a subquery leads to the matches around it, as they are, that it may concern; each of them is asked for
//! before and after (`exists`).

use std::borrow::Borrow;
use std::collections::{HashMap, HashSet};
use std::ops::Range;

use lightcone_query::ColumnAt;
use lightcone_table::{DeltaBatch, DeltaKind, Index, RowAt, TableView, Tables};
use lightcone_types::TableId;

use super::allowance::Allowance;
use super::changes::{Changed, Changes, Ops, Partners};
use super::parts::{place_of, Rows};
use super::path::{Hop, Known, Path};
use super::shape::JoinShape;
use crate::holders::Holders;
use crate::key::Key;

/// Memory above this is not kept for the next transaction.
const BYTES_KEPT_MAX: usize = 1 << 20;

/// What looking up the rows of one more relation counts for, beside the rows, where it is done for a row that was looked up.
const LOOK_UP_STEPS: usize = 4;

/// Memory of a match that was asked for, beside where its rows are.
const ASKED_BYTES: usize = 64;

/// The keys that queries in use have. Clients choose them: they are hashed with a secret.
pub(super) type Keys = hashbrown::HashMap<Key, Holders>;

/// Rows that came or went, with their keys. Its memory is reused.
#[derive(Default)]
pub(super) struct Delta {
    changes: Changes,
    found: FoundRows,
}

#[derive(Default)]
pub(super) struct FoundRows {
    /// Rows and keys.
    bytes: Vec<u8>,
    rows: Vec<Found>,
    /// The row that came out last, where it was and where it is now: one row is often for many keys.
    last: Option<((usize, usize), usize)>,
    /// Some rows are for several keys.
    is_shared: bool,
    /// Where keys are written that may be wanted.
    pub key: Vec<u8>,
}

#[derive(Clone, Copy)]
struct Found {
    key_start: usize,
    key_len: usize,
    start: usize,
    len: usize,
    weight: isize,
}

impl Delta {
    /// Finds the change of a join. `keys` are those that have holders. None: it is too much.
    pub fn find(
        &mut self,
        shape: &JoinShape,
        tables: &dyn Tables,
        ops: Ops<'_>,
        keys: &Keys,
        left: &mut Allowance,
    ) -> Option<()> {
        let Delta { changes, found } = self;
        found.clear();
        changes.collect(shape, ops, left)?;
        if changes.are_none() {
            return Some(());
        }
        changes.list_by_value(shape, tables, ops)?;
        Search::new(shape, tables, (changes, ops), keys, (left, found)).run()?;
        left.bytes = left.bytes.checked_sub(found.bytes_len())?;
        // Keys have no order of their own.
        found.net(shape.tries_all_keys);
        Some(())
    }

    /// Appends what came and what went to the changes of the transaction, as those of `table`.
    pub fn write(&self, table: TableId, deltas: &mut DeltaBatch) {
        let found = &self.found;
        // Rows that are for several keys are written once.
        let mut written: HashMap<usize, RowAt> = HashMap::new();
        for row in &found.rows {
            let (kind, (key, content)) = (kind_of(row.weight), found.content(row));
            let at = match found.is_shared {
                true => *written
                    .entry(row.start)
                    .or_insert_with(|| deltas.write_row(content)),
                false => deltas.write_row(content),
            };
            let key = deltas.write_row(key);
            for _ in 0..row.weight.unsigned_abs() {
                deltas.push_written(table, kind, key, at);
            }
        }
    }

    /// Drops what was found. Has to be called after the last join, also of one that was too much.
    pub fn clear(&mut self) {
        self.found.clear();
    }
}

/// What a row that comes out so often more, or less, is told as.
pub(crate) fn kind_of(weight: isize) -> DeltaKind {
    match weight > 0 {
        true => DeltaKind::Insert,
        false => DeltaKind::Delete,
    }
}

/// Looking for the matches that changed rows are part of.
pub(super) struct Search<'s> {
    pub shape: &'s JoinShape,
    pub tables: &'s dyn Tables,
    pub changes: &'s Changes,
    pub ops: Ops<'s>,
    pub keys: &'s Keys,
    pub left: &'s mut Allowance,
    pub found: &'s mut FoundRows,
    /// The relation whose changed rows it is about.
    start: usize,
    /// Of the match that is looked for, as soon as it is known.
    pub key: &'s [u8],
    /// Rows that came, by relation, where there are too many to compare them one by one.
    pub inserted: HashMap<usize, HashSet<&'s [u8]>>,
    /// What is known of subqueries.
    pub known: HashMap<Vec<u8>, bool>,
    /// Matches around subqueries that have been asked for: where their rows are, and their key.
    pub asked: HashSet<Vec<usize>>,
}

impl<'s> Search<'s> {
    pub fn new(
        shape: &'s JoinShape,
        tables: &'s dyn Tables,
        (changes, ops): (&'s Changes, Ops<'s>),
        keys: &'s Keys,
        (left, found): (&'s mut Allowance, &'s mut FoundRows),
    ) -> Search<'s> {
        Search {
            shape,
            tables,
            changes,
            ops,
            keys,
            left,
            found,
            start: 0,
            key: &[],
            inserted: HashMap::new(),
            known: HashMap::new(),
            asked: HashSet::new(),
        }
    }

    fn run(&mut self) -> Option<()> {
        let shape = self.shape;
        let mut rows: Rows<'s> = Default::default();
        for (start, path) in shape.paths.iter().enumerate() {
            // An event is there for its own transaction only; what its partners do later is nothing to it (08 §11).
            if shape.event.is_some_and(|event| event != start) {
                continue;
            }
            self.start = start;
            for changed in self.changes.of(start) {
                self.take(start, *changed, &mut rows);
                if self.is_possible(&path.start, &rows)? {
                    self.follow(path, 0, &mut rows, changed.weight)?;
                }
            }
        }
        Some(())
    }

    pub fn take(&self, relation: usize, changed: Changed, rows: &mut Rows<'s>) {
        rows[relation] = self.ops.row(changed);
    }

    /// Whether what can be said now is not against a match for a key that has holders.
    fn is_possible(&mut self, known: &Known, rows: &Rows<'s>) -> Option<bool> {
        if let Some(columns) = &known.key {
            self.shape.write_key(rows, columns, &mut self.found.key);
            match self.wanted(&self.found.key) {
                Some(key) => self.key = key,
                None => return Some(false),
            }
        }
        self.admits(&known.residuals, rows)
    }

    /// Whether these conditions on several rows hold.
    pub fn admits(&mut self, residuals: &[usize], rows: &Rows<'s>) -> Option<bool> {
        if residuals.is_empty() {
            return Some(true);
        }
        self.spend(self.shape.cost_in_rows(residuals, rows))?;
        Some(self.shape.admits(residuals, rows))
    }

    /// The key, if it has holders.
    pub fn wanted(&self, key: &[u8]) -> Option<&'s [u8]> {
        let (key, _) = self.keys.get_key_value(key)?;
        Some(key.borrow())
    }

    /// Finds the rows that are still missing. `weight` says how often the rows are there that are known.
    fn follow(
        &mut self,
        path: &'s Path,
        depth: usize,
        rows: &mut Rows<'s>,
        weight: isize,
    ) -> Option<()> {
        let Some(hop) = path.hops.get(depth) else {
            return self.arrive(path, rows, weight);
        };
        let place = place_of(hop.to);
        let relation = &self.shape.relations[place];
        let Some(table) = self.tables.table(relation.table.id) else {
            return Some(());
        };
        if depth > 0 {
            self.spend(LOOK_UP_STEPS)?;
        }
        let index = table.index_on(hop.to.column)?;
        let point = self.shape.value(rows, hop.from);
        self.each_row(table, place, (index, point), |search, partner| {
            rows[place] = partner;
            search.partner(path, depth, rows, weight).map(|()| true)
        })?;
        let is_other = match path.is_of_subquery {
            // All rows of subqueries lead to what they concern, also those that are gone.
            true => relation.subquery.is_some(),
            // Relations behind the first are wanted as they were.
            false => place > self.start && self.shape.event.is_none(),
        };
        if !is_other || self.changes.of(place).is_empty() {
            return Some(());
        }
        let partners = self.partners(index, hop.to, point)?;
        match path.is_of_subquery {
            true => self.add_gone(partners, (path, depth), rows),
            false => self.take_back(partners, (path, depth, hop), rows, weight),
        }
    }

    /// Calls `visit` with the rows of a relation, as they are, that an index finds for a value and that may be part of a match, until
    /// it gives false.
    pub fn each_row(
        &mut self,
        table: &'s TableView,
        place: usize,
        (index, point): (&Index, &[u8]),
        mut visit: impl FnMut(&mut Self, &'s [u8]) -> Option<bool>,
    ) -> Option<bool> {
        let relation = &self.shape.relations[place];
        let mut result = Some(true);
        let visit_row = |id| {
            let row = table.row(id);
            let spent = self.spend(relation.cost_in_rows(row));
            result = spent.and_then(|()| match relation.admits(row) {
                true => visit(self, row),
                false => Some(true),
            });
            result == Some(true)
        };
        let walked = index.walk_point(table.rows(), &relation.layout, point, None, visit_row);
        walked.expect("the columns of a join have one type");
        result
    }

    /// The changed rows of a relation that may have this value in a column, which has the index.
    pub fn partners(&self, index: &Index, to: ColumnAt, point: &[u8]) -> Option<Partners<'s>> {
        let changes = self.changes;
        changes.with_value(to, || {
            let mut key = Vec::new();
            let layout = &self.shape.relations[place_of(to)].layout;
            let made = index.key_of_point(layout, point, &mut key);
            made.is_ok().then_some(key)
        })
    }

    /// All rows of a match are known, or all around it.
    fn arrive(&mut self, path: &'s Path, rows: &mut Rows<'s>, weight: isize) -> Option<()> {
        if path.is_of_subquery {
            return self.ask_around(path, rows);
        }
        match self.shape.guards.is_empty() {
            true => self.push(self.key, rows, weight),
            false => self.ask_within(path, rows, weight),
        }
    }

    /// Keeps a match for a key. None: that is too much.
    pub fn push(&mut self, key: &[u8], rows: &Rows<'s>, weight: isize) -> Option<()> {
        let bytes_max = self.left.bytes.checked_sub(self.asked_bytes())?;
        let (shape, found) = (self.shape, &mut *self.found);
        let output = match &shape.columns {
            None => found.write_row(rows[shape.returned], bytes_max)?,
            Some(columns) => {
                let start = found.bytes.len();
                shape.write_values(columns, rows, &mut found.bytes);
                start..found.bytes.len()
            }
        };
        found.push(key, output, weight, bytes_max)
    }

    /// Goes on with a row that was found last.
    fn partner(
        &mut self,
        path: &'s Path,
        depth: usize,
        rows: &mut Rows<'s>,
        weight: isize,
    ) -> Option<()> {
        match self.is_possible(&path.hops[depth].known, rows)? {
            true => self.follow(path, depth + 1, rows, weight),
            false => Some(()),
        }
    }

    /// Undoes the changes of a relation, whose rows were found as they are.
    fn take_back(
        &mut self,
        partners: Partners<'_>,
        (path, depth, hop): (&'s Path, usize, &Hop),
        rows: &mut Rows<'s>,
        weight: isize,
    ) -> Option<()> {
        let place = place_of(hop.to);
        let are_equal = matches!(partners, Partners::Equal(..));
        partners.try_for_each(|changed| {
            self.take(place, changed, rows);
            let is_joined = |edge| self.shape.joins(edge, rows);
            if are_equal || hop.edge.is_some_and(is_joined) {
                self.spend(1)?;
                self.partner(path, depth, rows, -weight * changed.weight)?;
            }
            Some(())
        })
    }

    /// Goes on with the rows that are gone, those that fit.
    fn add_gone(
        &mut self,
        partners: Partners<'_>,
        (path, depth): (&'s Path, usize),
        rows: &mut Rows<'s>,
    ) -> Option<()> {
        let place = place_of(path.hops[depth].to);
        partners.try_for_each(|changed| {
            if changed.weight < 0 {
                self.spend(1)?;
                self.take(place, changed, rows);
                // Equal columns of subqueries are among the conditions.
                self.partner(path, depth, rows, 1)?;
            }
            Some(())
        })
    }

    /// So many more rows are looked at, or as much is done.
    pub fn spend(&mut self, steps: usize) -> Option<()> {
        self.left.steps = self.left.steps.checked_sub(steps)?;
        (self.found.bytes_len() + self.asked_bytes() <= self.left.bytes).then_some(())
    }

    fn asked_bytes(&self) -> usize {
        self.asked.len() * (ASKED_BYTES + self.shape.relations.len() * size_of::<usize>())
    }
}

impl FoundRows {
    fn clear(&mut self) {
        self.bytes.clear();
        self.bytes.shrink_to(BYTES_KEPT_MAX);
        self.rows.clear();
        self.rows.shrink_to(BYTES_KEPT_MAX / size_of::<Found>());
        self.last = None;
        self.is_shared = false;
    }

    fn bytes_len(&self) -> usize {
        self.bytes.len() + self.rows.len() * size_of::<Found>()
    }

    /// Writes a row that comes out, unless it is the last one that did. None: all of it would take more than `bytes_max`.
    fn write_row(&mut self, row: &[u8], bytes_max: usize) -> Option<Range<usize>> {
        let place = (row.as_ptr() as usize, row.len());
        let start = match self.last {
            Some((last, start)) if last == place => {
                self.is_shared = true;
                start
            }
            _ => {
                if self.bytes_len() + row.len() > bytes_max {
                    return None;
                }
                let start = self.bytes.len();
                self.bytes.extend_from_slice(row);
                self.last = Some((place, start));
                start
            }
        };
        Some(start..start + row.len())
    }

    /// What has been written is for a key. None: all of it takes more than `bytes_max`.
    fn push(
        &mut self,
        key: &[u8],
        output: Range<usize>,
        weight: isize,
        bytes_max: usize,
    ) -> Option<()> {
        self.rows.push(Found {
            key_start: self.bytes.len(),
            key_len: key.len(),
            start: output.start,
            len: output.len(),
            weight,
        });
        self.bytes.extend_from_slice(key);
        (self.bytes_len() <= bytes_max).then_some(())
    }

    /// Key and row.
    fn content(&self, found: &Found) -> (&[u8], &[u8]) {
        (
            &self.bytes[found.key_start..][..found.key_len],
            &self.bytes[found.start..][..found.len],
        )
    }

    /// Counts equal rows together, unless none can take another away and they need not be in order.
    fn net(&mut self, in_order: bool) {
        let came = self.rows.iter().filter(|found| found.weight > 0).count();
        if !in_order && (came == 0 || came == self.rows.len()) {
            return;
        }
        let mut rows = std::mem::take(&mut self.rows);
        rows.sort_unstable_by(|a, b| self.content(a).cmp(&self.content(b)));
        rows.dedup_by(|next, kept| {
            let is_same = self.content(next) == self.content(kept);
            if is_same {
                kept.weight += next.weight;
            }
            is_same
        });
        rows.retain(|found| found.weight != 0);
        self.rows = rows;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_for_many_keys_is_there_once_and_all_of_it_is_bounded() {
        let row = vec![7_u8; 1 << 20];
        let mut delta = Delta::default();
        let bytes_max = (1 << 20) + 100 * (size_of::<Found>() + 4);
        let mut push = |key: u32| {
            let output = delta.found.write_row(&row, bytes_max)?;
            delta.found.push(&key.to_le_bytes(), output, 1, bytes_max)
        };
        assert!((0..100).all(|key| push(key).is_some()));
        assert_eq!(push(100), None);
        let mut deltas = DeltaBatch::default();
        delta.write(TableId(9), &mut deltas);
        assert!(deltas.bytes_len() < (1 << 20) + 1000);
        let ops = deltas.ops(0..deltas.position());
        assert_eq!(ops.len(), 101);
        for (op, key) in ops.iter().zip(0_u32..) {
            assert_eq!(deltas.key(op), key.to_le_bytes());
            assert_eq!(deltas.row(op), row);
        }
        let other = vec![8_u8; 10];
        assert!(delta.found.write_row(&other, usize::MAX).is_some());
        assert_eq!(delta.found.write_row(&row, bytes_max), None);
    }
}
