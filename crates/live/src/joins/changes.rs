//! The changed rows of one transaction as the relations of a join see them.

use std::collections::HashMap;

use lightcone_query::ColumnAt;
use lightcone_table::{DeltaBatch, DeltaKind, DeltaOp, Tables};
use lightcone_types::TableId;

use super::allowance::{Allowance, STEPS_PER_ROW};
use super::parts::{place_of, Relation};
use super::shape::JoinShape;

/// Up to so many changed rows of a relation are compared one by one with a row that they may be joined with.
pub(super) const COMPARED_MAX: usize = 16;
/// Memory above this is not kept for the next transaction.
const ROWS_KEPT_MAX: usize = 4096;

/// Changed rows, by relation. Its memory is reused.
#[derive(Default)]
pub(super) struct Changes {
    rows: Vec<Changed>,
    /// Where the rows of each relation begin; one more at the end.
    starts: Vec<usize>,
    by_value: Vec<(ColumnAt, ByValue)>,
}

/// Places in `rows`, by the key that an index has for the value of a column.
type ByValue = HashMap<Vec<u8>, Vec<u32>>;

/// A changed row.
#[derive(Clone, Copy)]
pub(super) struct Changed {
    /// Position among the operations.
    op: u32,
    /// A row that came counts as 1, one that went as -1.
    pub weight: isize,
}

/// The operations of a transaction.
#[derive(Clone, Copy)]
pub(super) struct Ops<'r> {
    pub deltas: &'r DeltaBatch,
    /// In order of tables.
    pub ops: &'r [DeltaOp],
}

impl<'r> Ops<'r> {
    pub fn row(&self, changed: Changed) -> &'r [u8] {
        self.deltas.row(&self.ops[changed.op as usize])
    }

    /// Positions of the changes of a table.
    fn of_table(&self, table: TableId) -> std::ops::Range<usize> {
        let start = self.ops.partition_point(|op| op.table < table);
        start..self.ops.partition_point(|op| op.table <= table)
    }
}

impl Changes {
    /// Takes the rows that can be part of a match, without those whose going and coming is the same to the join. None: to look at all
    /// of them is too much.
    pub fn collect(&mut self, shape: &JoinShape, ops: Ops<'_>, left: &mut Allowance) -> Option<()> {
        let mut steps = 0;
        self.rows.clear();
        self.rows.shrink_to(ROWS_KEPT_MAX);
        self.starts.clear();
        self.by_value.clear();
        for relation in &shape.relations {
            let start = self.rows.len();
            self.starts.push(start);
            for op in ops.of_table(relation.table.id) {
                let row = ops.deltas.row(&ops.ops[op]);
                steps += 1 + relation.steps(row);
                if steps >= STEPS_PER_ROW {
                    left.steps = left.steps.checked_sub(steps / STEPS_PER_ROW)?;
                    steps %= STEPS_PER_ROW;
                }
                let weight = match ops.ops[op].kind {
                    DeltaKind::Insert => 1,
                    DeltaKind::Delete => -1,
                };
                if relation.admits(row) {
                    let op = op as u32;
                    self.rows.push(Changed { op, weight });
                }
            }
            self.cancel(start, relation, ops);
        }
        self.starts.push(self.rows.len());
        Some(())
    }

    /// Leaves out rows of a relation that are replaced by others which are the same to the join.
    fn cancel(&mut self, start: usize, relation: &Relation, ops: Ops<'_>) {
        let (Some(columns), [first, rest @ ..]) = (&relation.matters, &self.rows[start..]) else {
            return;
        };
        let value = |changed: Changed, column| relation.value(ops.row(changed), column);
        match rest {
            [] => {}
            [second] => {
                let is_same = |column| value(*first, column) == value(*second, column);
                if first.weight + second.weight == 0 && columns.iter().all(|c| is_same(*c)) {
                    self.rows.truncate(start);
                }
            }
            _ => {
                let signature = |changed: Changed| -> Vec<u8> {
                    let values = columns.iter().map(|column| value(changed, *column));
                    values.flatten().copied().collect()
                };
                let mut weights: HashMap<Vec<u8>, isize> = HashMap::new();
                for changed in &self.rows[start..] {
                    *weights.entry(signature(*changed)).or_default() += changed.weight;
                }
                let mut place = 0;
                self.rows.retain(|changed| {
                    place += 1;
                    place <= start || weights[&signature(*changed)] != 0
                });
            }
        }
    }

    /// The changed rows of a relation.
    pub fn of(&self, relation: usize) -> &[Changed] {
        &self.rows[self.starts[relation]..self.starts[relation + 1]]
    }

    pub fn are_none(&self) -> bool {
        self.rows.is_empty()
    }

    /// Lists rows by their values where there are too many to compare them one by one. None: the index for it is not there.
    pub fn list_by_value(
        &mut self,
        shape: &JoinShape,
        tables: &dyn Tables,
        ops: Ops<'_>,
    ) -> Option<()> {
        for (number, relation) in shape.relations.iter().enumerate() {
            let is_few = self.of(number).len() <= COMPARED_MAX;
            // Those of a subquery are looked for also where nothing else has changed.
            let is_all = self.of(number).len() == self.rows.len() && relation.subquery.is_none();
            if is_few || is_all {
                continue;
            }
            let table = tables.table(relation.table.id)?;
            for &column in &relation.looked_up_by {
                let index = table.index_on(column)?;
                let mut by_value = ByValue::new();
                for place in self.starts[number]..self.starts[number + 1] {
                    let mut key = Vec::new();
                    let row = ops.row(self.rows[place]);
                    index.key_of_row(&relation.layout, row, &mut key);
                    by_value.entry(key).or_default().push(place as u32);
                }
                let relation = number as u16;
                self.by_value
                    .push((ColumnAt { relation, column }, by_value));
            }
        }
        Some(())
    }

    /// The rows of a relation that may have a value in a column, for which an index has the key that `key` gives; and whether
    /// they have.
    pub fn with_value(
        &self,
        at: ColumnAt,
        key: impl FnOnce() -> Option<Vec<u8>>,
    ) -> Option<Partners<'_>> {
        let mut listed = self.by_value.iter();
        let Some((_, by_value)) = listed.find(|(column, _)| *column == at) else {
            return Some(Partners::Any(self.of(place_of(at))));
        };
        let places = by_value.get(&key()?).map_or(&[][..], Vec::as_slice);
        Some(Partners::Equal(&self.rows, places))
    }
}

/// Changed rows that another row may be joined with.
pub(super) enum Partners<'c> {
    /// Their values are to be compared.
    Any(&'c [Changed]),
    /// Those at these places have the value.
    Equal(&'c [Changed], &'c [u32]),
}

impl Partners<'_> {
    /// Calls `visit` with each, until it gives None.
    pub fn try_for_each(&self, mut visit: impl FnMut(Changed) -> Option<()>) -> Option<()> {
        match self {
            Partners::Any(rows) => rows.iter().try_for_each(|changed| visit(*changed)),
            Partners::Equal(all, places) => places
                .iter()
                .try_for_each(|place| visit(all[*place as usize])),
        }
    }
}
