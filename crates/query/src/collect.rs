//! What a query has to keep before anything comes out: groups, rows to be sorted, rows that came already.

use std::cmp::Ordering;
use std::collections::{BinaryHeap, HashMap, HashSet};

use lightcone_table::key::encode_column_value;
use lightcone_table::RowLayout;
use lightcone_types::{AlgebraicType, Identity};

use crate::condition::ColumnAt;
use crate::execute::{ExecuteError, Match, NOTHING, SOME};
use crate::predicate::{Predicate, PredicateCompiler};
use crate::query::Fragment;
use crate::select_plan::layout;
use crate::shape::{Aggregate, GroupItem, Grouping, Order, OrderKey};
use crate::total::Total;

/// What a kept thing takes beside its bytes: pointers, its place in a table.
const ENTRY_BYTES: usize = 64;

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

    pub fn take(&mut self, bytes: usize) -> Result<(), ExecuteError> {
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

/// A row behind its key, in one piece.
struct KeyedRow {
    bytes: Box<[u8]>,
    key_bytes: usize,
}

impl KeyedRow {
    /// Rows whose keys are equal come in the order of their bytes.
    fn parts(&self) -> (&[u8], &[u8]) {
        self.bytes.split_at(self.key_bytes)
    }

    fn memory_bytes(&self) -> usize {
        self.bytes.len() + ENTRY_BYTES
    }
}

impl PartialEq for KeyedRow {
    fn eq(&self, other: &KeyedRow) -> bool {
        self.parts() == other.parts()
    }
}

impl Eq for KeyedRow {}

impl PartialOrd for KeyedRow {
    fn partial_cmp(&self, other: &KeyedRow) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for KeyedRow {
    fn cmp(&self, other: &KeyedRow) -> Ordering {
        self.parts().cmp(&other.parts())
    }
}

/// Rows to be sorted: as many as are wanted in the end, the last of them on top.
#[derive(Default)]
pub(crate) struct Sorter {
    kept: BinaryHeap<KeyedRow>,
    sorted: Vec<KeyedRow>,
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
        if self.kept.len() >= rows_max {
            match self.kept.peek() {
                Some(last) if (key, row) < last.parts() => {}
                _ => return Ok(()),
            }
            let replaced = self.kept.pop();
            memory.bytes -= replaced.map_or(0, |replaced| replaced.memory_bytes());
        }
        let kept = KeyedRow {
            bytes: [key, row].concat().into(),
            key_bytes: key.len(),
        };
        memory.take(kept.memory_bytes())?;
        self.kept.push(kept);
        Ok(())
    }

    /// The row at a position of the order. After the first look no more rows come.
    pub fn row(&mut self, position: usize) -> Option<&[u8]> {
        if self.sorted.is_empty() {
            self.sorted = std::mem::take(&mut self.kept).into_vec();
            self.sorted.sort_unstable();
        }
        let kept = self.sorted.get(position)?;
        Some(kept.parts().1)
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
    /// None if there is no value yet.
    Total(Option<Total>),
    Best(Option<Box<[u8]>>),
    Average {
        total: Total,
        count: u64,
    },
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
                    if let Some((ty, plain)) = found.typed(fragment.column(*at)) {
                        let start = value.len() - plain.len();
                        make_canonical(ty, &mut value[start..]);
                    }
                    value.into_boxed_slice()
                };
                let values: Vec<Box<[u8]>> = grouping.keys.iter().map(value).collect();
                let bytes: usize = values.iter().map(|value| value.len() + ENTRY_BYTES).sum();
                let sums = grouping.items.iter().map(sum_bytes).sum::<usize>();
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
            Aggregate::SumSigned(_) | Aggregate::SumUnsigned(_) | Aggregate::SumFloat(_) => {
                Sum::Total(None)
            }
            Aggregate::Min(_) | Aggregate::Max(_) => Sum::Best(None),
            Aggregate::Average(scalar) => Sum::Average {
                total: Total::empty(*scalar),
                count: 0,
            },
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
        (
            Aggregate::SumSigned(scalar)
            | Aggregate::SumUnsigned(scalar)
            | Aggregate::SumFloat(scalar),
            Sum::Total(total),
        ) => {
            let total = total.get_or_insert_with(|| Total::empty(scalar));
            total.add(scalar, value);
        }
        (Aggregate::Average(scalar), Sum::Average { total, count }) => {
            total.add(scalar, value);
            *count += 1;
        }
        (Aggregate::Min(scalar), Sum::Best(best)) => {
            let is_better = |best: &[u8]| {
                let order = scalar.compare(value, best);
                order.is_some_and(|order| order.then(value.cmp(best)).is_lt())
            };
            if best.as_deref().is_none_or(is_better) {
                // What it replaces is given back.
                let before = best.as_deref().map_or(0, <[u8]>::len);
                memory.take(value.len().saturating_sub(before))?;
                *best = Some(value.into());
            }
        }
        (Aggregate::Max(scalar), Sum::Best(best)) => {
            let is_better = |best: &[u8]| {
                let order = scalar.compare(value, best);
                order.is_some_and(|order| order.then(value.cmp(best)).is_gt())
            };
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

/// Memory of an aggregate.
fn sum_bytes(item: &GroupItem) -> usize {
    let heap = match item {
        GroupItem::Aggregate {
            aggregate: Aggregate::SumFloat(scalar) | Aggregate::Average(scalar),
            ..
        } => Total::heap_bytes(*scalar),
        _ => 0,
    };
    size_of::<Sum>() + heap
}

/// The one encoding of equal floats that stands for all of them in a group's key.
pub(crate) fn make_canonical(ty: &AlgebraicType, value: &mut [u8]) {
    match ty {
        AlgebraicType::F32 => {
            let Some(float) = crate::scalar::f32_at(value) else {
                return;
            };
            // Adding 0 makes +0 of -0.
            let float = if float.is_nan() {
                f32::NAN
            } else {
                float + 0.0
            };
            value.copy_from_slice(&float.to_le_bytes());
        }
        AlgebraicType::F64 => {
            let Some(float) = crate::scalar::f64_at(value) else {
                return;
            };
            let float = if float.is_nan() {
                f64::NAN
            } else {
                float + 0.0
            };
            value.copy_from_slice(&float.to_le_bytes());
        }
        _ => {}
    }
}

fn push_sum(sum: &Sum, is_optional: bool, out: &mut Vec<u8>) {
    let is_none = matches!(
        sum,
        Sum::Best(None) | Sum::Total(None) | Sum::Average { count: 0, .. }
    );
    if is_optional {
        out.push(if is_none { NOTHING } else { SOME });
    }
    match sum {
        _ if is_none => {}
        Sum::Count(count) => out.extend_from_slice(&count.to_le_bytes()),
        Sum::Total(total) => total.iter().for_each(|total| total.push(out)),
        Sum::Best(best) => out.extend_from_slice(best.as_deref().unwrap_or_default()),
        Sum::Average { total, count } => {
            out.extend_from_slice(&total.average(*count).to_le_bytes());
        }
    }
}
