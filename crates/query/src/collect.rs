//! What a query has to keep before anything comes out: groups, rows to be sorted, rows that came already.

use std::collections::{HashMap, HashSet};

use lightcone_table::key::encode_column_value;
use lightcone_table::RowLayout;
use lightcone_types::{AlgebraicType, Identity};

use crate::condition::ColumnAt;
use crate::execute::{ExecuteError, Match, NOTHING, SOME};
use crate::predicate::{Predicate, PredicateCompiler};
use crate::query::Fragment;
use crate::scalar::{
    f32_at, f64_at, i16_at, i32_at, i64_at, i8_at, u16_at, u32_at, u64_at, Scalar,
};
use crate::select_plan::layout;
use crate::shape::{Aggregate, GroupItem, Grouping, Order, OrderKey};

/// What a kept thing takes beside its bytes: pointers, its place in a table.
const ENTRY_BYTES: usize = 64;
/// Rows that are kept beside those that a limit lets through, before the others are dropped.
const SPARE_ROWS: usize = 1024;

/// The memory of what is kept.
pub(crate) struct Memory {
    pub bytes: usize,
    bytes_max: usize,
}

impl Memory {
    pub fn new(bytes_max: usize) -> Memory {
        Memory {
            bytes: 0,
            bytes_max,
        }
    }

    fn take(&mut self, bytes: usize) -> Result<(), ExecuteError> {
        self.bytes += bytes;
        match self.bytes > self.bytes_max {
            true => Err(ExecuteError::Memory {
                bytes_max: self.bytes_max,
            }),
            false => Ok(()),
        }
    }
}

/// One form for all encodings of equal values, which sorts as the values do.
pub(crate) fn push_sort_key(ty: &AlgebraicType, value: &[u8], descending: bool, out: &mut Vec<u8>) {
    let start = out.len();
    encode_column_value(ty, value, out).expect("values of rows are valid");
    if descending {
        out[start..].iter_mut().for_each(|byte| *byte = !*byte);
    }
}

/// The rows that came already.
#[derive(Default)]
pub(crate) struct Seen {
    rows: HashSet<Box<[u8]>>,
    key: Vec<u8>,
}

impl Seen {
    /// Is this row the first of its kind? It has so many columns.
    pub fn is_new(
        &mut self,
        row_layout: &RowLayout,
        columns: usize,
        row: &[u8],
        memory: &mut Memory,
    ) -> Result<bool, ExecuteError> {
        self.key.clear();
        for column in 0..columns {
            let value = row_layout.column(row, column);
            push_sort_key(row_layout.column_type(column), value, false, &mut self.key);
        }
        if self.rows.contains(&*self.key) {
            return Ok(false);
        }
        memory.take(self.key.len() + ENTRY_BYTES)?;
        self.rows.insert(self.key.as_slice().into());
        Ok(true)
    }
}

struct KeyedRow {
    key: Box<[u8]>,
    row: Box<[u8]>,
}

/// Rows to be sorted, each behind its key.
#[derive(Default)]
pub(crate) struct Sorter {
    rows: Vec<KeyedRow>,
    is_sorted: bool,
}

impl Sorter {
    /// `rows_max` is how many rows are wanted in the end.
    pub fn push(
        &mut self,
        key: &[u8],
        row: &[u8],
        rows_max: usize,
        memory: &mut Memory,
    ) -> Result<(), ExecuteError> {
        memory.take(key.len() + row.len() + ENTRY_BYTES)?;
        self.rows.push(KeyedRow {
            key: key.into(),
            row: row.into(),
        });
        if self.rows.len() >= rows_max.saturating_mul(2).saturating_add(SPARE_ROWS) {
            self.sort();
            for KeyedRow { key, row } in self.rows.drain(rows_max..) {
                memory.bytes -= key.len() + row.len() + ENTRY_BYTES;
            }
        }
        Ok(())
    }

    /// The row at a position of the order.
    pub fn row(&mut self, position: usize) -> Option<&[u8]> {
        if !self.is_sorted {
            self.sort();
            self.is_sorted = true;
        }
        self.rows.get(position).map(|kept| &*kept.row)
    }

    /// Rows whose keys are equal come in the order of their bytes.
    fn sort(&mut self) {
        let rows = &mut self.rows;
        rows.sort_unstable_by(|a, b| (&a.key, &a.row).cmp(&(&b.key, &b.row)));
    }
}

/// The sort key of a row. `read` gives the columns of a match.
pub(crate) fn sort_key<'v>(
    order: &[Order],
    row_layout: &RowLayout,
    row: &[u8],
    read: impl Fn(ColumnAt) -> Option<(&'v AlgebraicType, &'v [u8])>,
    out: &mut Vec<u8>,
) {
    out.clear();
    for Order { by, descending } in order {
        match by {
            OrderKey::Result(column) => {
                let ty = row_layout.column_type(*column);
                push_sort_key(ty, row_layout.column(row, *column), *descending, out);
            }
            OrderKey::Column(at) => {
                // What has no row comes last, as an option without a value does.
                let value = read(*at);
                out.push(u8::from(value.is_none() != *descending));
                if let Some((ty, value)) = value {
                    push_sort_key(ty, value, *descending, out);
                }
            }
        }
    }
}

/// A value on its way to be that of a group.
#[derive(Clone, Debug)]
enum Sum {
    Count(u64),
    Signed(i128),
    Unsigned(u128),
    Float(f64),
    Best(Option<Box<[u8]>>),
    Average { sum: f64, count: u64 },
}

/// The groups so far, in the order in which they came.
pub(crate) struct Groups {
    places: HashMap<Box<[u8]>, usize>,
    /// The values of the keys, in BSATN.
    keys: Vec<Vec<Box<[u8]>>>,
    sums: Vec<Vec<Sum>>,
    /// Of the rows of groups.
    pub layout: RowLayout,
    having: Option<Predicate>,
    key: Vec<u8>,
}

impl Groups {
    pub fn new(grouping: &Grouping, sender: &Identity) -> Groups {
        let layout = layout(&grouping.row);
        let having = grouping.having.as_ref().and_then(|having| {
            let bound = having.bind(sender);
            PredicateCompiler::new(&bound, vec![&layout]).compile(&bound.conjuncts)
        });
        let mut groups = Groups {
            places: HashMap::new(),
            keys: Vec::new(),
            sums: Vec::new(),
            layout,
            having,
            key: Vec::new(),
        };
        // Without keys there is one group, also if it is of no rows.
        if grouping.keys.is_empty() {
            groups.places.insert(Box::default(), 0);
            groups.keys.push(Vec::new());
            groups.sums.push(empty_sums(grouping));
        }
        groups
    }

    pub fn add(
        &mut self,
        grouping: &Grouping,
        fragment: &Fragment,
        found: &Match<'_>,
        memory: &mut Memory,
    ) -> Result<(), ExecuteError> {
        self.key.clear();
        for (at, _) in &grouping.keys {
            let value = found.typed(fragment.column(*at));
            self.key.push(u8::from(value.is_none()));
            if let Some((ty, value)) = value {
                push_sort_key(ty, value, false, &mut self.key);
            }
        }
        let place = match self.places.get(&*self.key) {
            Some(place) => *place,
            None => {
                let value = |(at, is_optional): &(ColumnAt, bool)| {
                    let mut value = Vec::new();
                    found.push_value(fragment.column(*at), *is_optional, &mut value);
                    value.into_boxed_slice()
                };
                let values: Vec<Box<[u8]>> = grouping.keys.iter().map(value).collect();
                let bytes: usize = values.iter().map(|value| value.len() + ENTRY_BYTES).sum();
                let sums = grouping.items.len() * size_of::<Sum>();
                memory.take(self.key.len() + bytes + sums + ENTRY_BYTES)?;
                self.places
                    .insert(self.key.as_slice().into(), self.sums.len());
                self.keys.push(values);
                self.sums.push(empty_sums(grouping));
                self.sums.len() - 1
            }
        };
        let mut sums = self.sums[place].iter_mut();
        for item in &grouping.items {
            let GroupItem::Aggregate {
                aggregate, column, ..
            } = item
            else {
                continue;
            };
            let sum = sums.next().expect("each aggregate has one");
            let value = match column {
                Some(at) => match found.typed(fragment.column(*at)) {
                    Some((ty, value)) if ty.as_option().is_some() && value == [NOTHING] => None,
                    value => value.map(|(_, value)| value),
                },
                None => Some(&[][..]),
            };
            if let Some(value) = value {
                add(*aggregate, sum, value, memory)?;
            }
        }
        Ok(())
    }

    /// Writes the row of a group. None: there is no such group. False: `HAVING` leaves it out.
    pub fn row(&self, grouping: &Grouping, place: usize, out: &mut Vec<u8>) -> Option<bool> {
        out.clear();
        let mut sums = self.sums.get(place)?.iter();
        for item in &grouping.items {
            match item {
                GroupItem::Key(key) => out.extend_from_slice(&self.keys[place][*key]),
                GroupItem::Aggregate { is_optional, .. } => {
                    let sum = sums.next().expect("each aggregate has one");
                    push_sum(sum, *is_optional, out);
                }
            }
        }
        let having = self.having.as_ref();
        Some(having.is_none_or(|having| having.matches(&self.layout, out)))
    }
}

fn empty_sums(grouping: &Grouping) -> Vec<Sum> {
    let sum = |item: &GroupItem| match item {
        GroupItem::Key(_) => None,
        GroupItem::Aggregate { aggregate, .. } => Some(match aggregate {
            Aggregate::Count => Sum::Count(0),
            // Of what type a sum is, the first value says: an empty one has none.
            Aggregate::SumSigned(_) | Aggregate::SumUnsigned(_) | Aggregate::SumFloat(_) => {
                Sum::Best(None)
            }
            Aggregate::Min(_) | Aggregate::Max(_) => Sum::Best(None),
            Aggregate::Average(_) => Sum::Average { sum: 0.0, count: 0 },
        }),
    };
    grouping.items.iter().filter_map(sum).collect()
}

fn add(
    aggregate: Aggregate,
    sum: &mut Sum,
    value: &[u8],
    memory: &mut Memory,
) -> Result<(), ExecuteError> {
    match (aggregate, &mut *sum) {
        (Aggregate::Count, Sum::Count(count)) => *count += 1,
        (Aggregate::SumSigned(scalar), Sum::Signed(so_far)) => *so_far += signed(scalar, value),
        (Aggregate::SumSigned(scalar), _) => *sum = Sum::Signed(signed(scalar, value)),
        (Aggregate::SumUnsigned(scalar), Sum::Unsigned(so_far)) => {
            *so_far += unsigned(scalar, value)
        }
        (Aggregate::SumUnsigned(scalar), _) => *sum = Sum::Unsigned(unsigned(scalar, value)),
        (Aggregate::SumFloat(scalar), Sum::Float(so_far)) => *so_far += float(scalar, value),
        (Aggregate::SumFloat(scalar), _) => *sum = Sum::Float(float(scalar, value)),
        (Aggregate::Average(scalar), Sum::Average { sum, count }) => {
            *sum += float(scalar, value);
            *count += 1;
        }
        (Aggregate::Min(scalar), Sum::Best(best)) => {
            let is_better = |best: &[u8]| scalar.compare(value, best).is_some_and(|o| o.is_lt());
            if best.as_deref().is_none_or(is_better) {
                // What it replaces is given back.
                let before = best.as_deref().map_or(0, <[u8]>::len);
                memory.take(value.len().saturating_sub(before))?;
                *best = Some(value.into());
            }
        }
        (Aggregate::Max(scalar), Sum::Best(best)) => {
            let is_better = |best: &[u8]| scalar.compare(value, best).is_some_and(|o| o.is_gt());
            if best.as_deref().is_none_or(is_better) {
                // What it replaces is given back.
                let before = best.as_deref().map_or(0, <[u8]>::len);
                memory.take(value.len().saturating_sub(before))?;
                *best = Some(value.into());
            }
        }
        _ => {}
    }
    Ok(())
}

/// Sums of numbers of 64 bits never get out of 128: there are not as many rows.
fn signed(scalar: Scalar, value: &[u8]) -> i128 {
    match scalar {
        Scalar::I8 => i8_at(value).map(i128::from),
        Scalar::I16 => i16_at(value).map(i128::from),
        Scalar::I32 => i32_at(value).map(i128::from),
        Scalar::I64 => i64_at(value).map(i128::from),
        _ => None,
    }
    .unwrap_or_default()
}

fn unsigned(scalar: Scalar, value: &[u8]) -> u128 {
    match scalar {
        Scalar::U8 => value.first().map(|byte| u128::from(*byte)),
        Scalar::U16 => u16_at(value).map(u128::from),
        Scalar::U32 => u32_at(value).map(u128::from),
        Scalar::U64 => u64_at(value).map(u128::from),
        _ => None,
    }
    .unwrap_or_default()
}

fn float(scalar: Scalar, value: &[u8]) -> f64 {
    match scalar {
        Scalar::F32 => f32_at(value).map(f64::from).unwrap_or_default(),
        Scalar::F64 => f64_at(value).unwrap_or_default(),
        Scalar::I8 | Scalar::I16 | Scalar::I32 | Scalar::I64 => signed(scalar, value) as f64,
        _ => unsigned(scalar, value) as f64,
    }
}

fn push_sum(sum: &Sum, is_optional: bool, out: &mut Vec<u8>) {
    let is_none = matches!(sum, Sum::Best(None) | Sum::Average { count: 0, .. });
    if is_optional {
        out.push(if is_none { NOTHING } else { SOME });
    }
    if is_none {
        return;
    }
    match sum {
        Sum::Count(count) => out.extend_from_slice(&count.to_le_bytes()),
        Sum::Signed(sum) => out.extend_from_slice(&sum.to_le_bytes()),
        Sum::Unsigned(sum) => out.extend_from_slice(&sum.to_le_bytes()),
        Sum::Float(sum) => out.extend_from_slice(&sum.to_le_bytes()),
        Sum::Best(best) => out.extend_from_slice(best.as_deref().unwrap_or_default()),
        Sum::Average { sum, count } => {
            out.extend_from_slice(&(sum / *count as f64).to_le_bytes());
        }
    }
}
