//! Groups of matches, and what becomes of the values in each.

use std::cmp::Ordering;
use std::collections::HashMap;

use lightcone_table::{RowLayout, TableView};
use lightcone_types::Identity;

use super::keyed_hash::Secret;
use super::memory::{Memory, ENTRY_BYTES};
use crate::condition::ColumnAt;
use crate::execute::{ExecuteError, Match, NOTHING};
use crate::grouping::{Aggregate, Grouping};
use crate::predicate::{Predicate, Tuple};
use crate::query::Fragment;
use crate::scalar::Scalar;
use crate::sort_key::{make_canonical, push_sort_key};
use crate::total::{push_row, Best, Sum};

/// The best of some values.
type Kept = Option<Vec<u8>>;

impl Best for Kept {
    fn new(_: bool) -> Kept {
        None
    }

    fn value(&self) -> Option<&[u8]> {
        self.as_deref()
    }

    fn heap_bytes(&self) -> usize {
        self.as_ref().map_or(0, Vec::capacity)
    }
}

/// Where the values of a column are in the rows of a fragment.
#[derive(Clone, Copy)]
struct Source {
    at: ColumnAt,
    /// Start and length, if all rows have them alike.
    place: Option<(usize, usize)>,
    is_option: bool,
    /// Values are equal if and only if their bytes are.
    is_bytewise: bool,
}

impl Source {
    fn of(at: ColumnAt, tables: &[&TableView]) -> Source {
        let layout = tables[usize::from(at.relation)].layout();
        let column = usize::from(at.column.0);
        let ty = layout.column_type(column);
        let start = layout.constant_start(column);
        Source {
            at,
            place: start.zip(layout.column_size(column)),
            is_option: ty.as_option().is_some(),
            is_bytewise: Scalar::of(ty).is_some_and(|scalar| !scalar.is_float()),
        }
    }

    /// None if there is no row.
    #[inline]
    fn bytes<'m>(&self, found: &'m Match<'_>) -> Option<&'m [u8]> {
        let (layout, row) = found.row(self.at.relation)?;
        match self.place {
            Some((start, bytes)) => row.get(start..start + bytes),
            None => Some(layout.column(row, usize::from(self.at.column.0))),
        }
    }

    /// None if there is no row, or an option without a value in it.
    #[inline]
    fn value<'m>(&self, found: &'m Match<'_>) -> Option<&'m [u8]> {
        self.bytes(found)
            .filter(|value| !self.is_option || *value != [NOTHING])
    }
}

/// Bytes of keys, with one for each that says whether there is a row, that fit into an integer.
const PACKED_BYTES_MAX: usize = size_of::<u128>();

/// What is read of the matches of a fragment.
struct Sources {
    keys: Vec<Source>,
    /// By aggregate. None counts rows.
    values: Vec<(Aggregate, Option<Source>)>,
    /// The keys of a match fit into an integer.
    is_packed: bool,
}

impl Sources {
    fn of(grouping: &Grouping, fragment: &Fragment, tables: &[&TableView]) -> Sources {
        let source = |at: ColumnAt| Source::of(fragment.column(at), tables);
        let value =
            |(aggregate, column): (Aggregate, Option<ColumnAt>)| (aggregate, column.map(source));
        let keys: Vec<_> = grouping.keys.iter().map(|(at, _)| source(*at)).collect();
        let bytes = |key: &Source| match key.place {
            Some((_, bytes)) if key.is_bytewise => Some(bytes + 1),
            _ => None,
        };
        let packed: Option<usize> = keys.iter().map(bytes).sum();
        Sources {
            is_packed: packed.is_some_and(|bytes| bytes <= PACKED_BYTES_MAX),
            values: grouping.aggregates().map(value).collect(),
            keys,
        }
    }

    #[inline]
    fn packed(&self, found: &Match<'_>) -> u128 {
        let mut packed = 0;
        let mut shift = 0;
        for key in &self.keys {
            let value = key.bytes(found);
            let mut integer = u128::from(value.is_some());
            for (nth, byte) in value.unwrap_or_default().iter().enumerate() {
                integer |= u128::from(*byte) << (8 * (nth + 1));
            }
            packed |= integer << shift;
            shift += 8 * (key.place.map_or(0, |(_, bytes)| bytes) as u32 + 1);
        }
        packed
    }

    /// One form for all encodings of equal keys.
    fn push_key(&self, found: &Match<'_>, out: &mut Vec<u8>) {
        for key in &self.keys {
            let value = found.typed(key.at);
            out.push(u8::from(value.is_none()));
            if let Some((ty, value)) = value {
                push_sort_key(ty, value, false, out);
            }
        }
    }
}

/// The groups so far, in the order in which they came.
pub(crate) struct Groups {
    /// Groups by their keys. All fragments of a query have columns of the same types: either all pack their keys, or none.
    packed: HashMap<u128, usize, Secret>,
    places: HashMap<Box<[u8]>, usize>,
    /// The last packed key, and its group.
    last: Option<(u128, usize)>,
    /// Of the fragment that is being evaluated.
    sources: Option<Sources>,
    /// By group, then by key: the values in BSATN.
    keys: Vec<Box<[u8]>>,
    /// By group, then by aggregate.
    sums: Vec<Sum<Kept>>,
    empty: Vec<Sum<Kept>>,
    count: usize,
    /// Of the rows of groups.
    pub layout: RowLayout,
    having: Option<Predicate>,
    key: Vec<u8>,
}

impl Groups {
    pub fn new(grouping: &Grouping, sender: &Identity) -> Groups {
        let layout = RowLayout::of(&grouping.row.columns);
        let mut groups = Groups {
            packed: HashMap::default(),
            places: HashMap::new(),
            last: None,
            sources: None,
            keys: Vec::new(),
            sums: Vec::new(),
            empty: Sum::empty(grouping),
            count: 0,
            having: grouping.having(&layout, sender),
            layout,
            key: Vec::new(),
        };
        // Without keys there is one group, also if it is of no rows.
        if grouping.keys.is_empty() {
            groups.last = Some((0, 0));
            groups.packed.insert(0, 0);
            groups.sums.extend_from_slice(&groups.empty);
            groups.count = 1;
        }
        groups
    }

    /// Matches of another fragment come now.
    pub fn begin(&mut self, grouping: &Grouping, fragment: &Fragment, tables: &[&TableView]) {
        self.sources = Some(Sources::of(grouping, fragment, tables));
    }

    pub fn add(
        &mut self,
        grouping: &Grouping,
        fragment: &Fragment,
        found: &Match<'_>,
        memory: &mut Memory,
    ) -> Result<(), ExecuteError> {
        let place = match self.find(found) {
            Some(place) => place,
            None => self.add_group(grouping, fragment, found, memory)?,
        };
        let sources = self.sources.as_ref().expect("a fragment has begun");
        let first = place * self.empty.len();
        let sums = &mut self.sums[first..first + self.empty.len()];
        for ((aggregate, source), sum) in sources.values.iter().zip(sums) {
            let value = match source {
                Some(source) => source.value(found),
                None => Some(&[][..]),
            };
            if let Some(value) = value {
                add(*aggregate, sum, value, memory)?;
            }
        }
        Ok(())
    }

    /// The group of a match. The key stays where [`add_group`](Self::add_group) takes it from.
    #[inline]
    fn find(&mut self, found: &Match<'_>) -> Option<usize> {
        let sources = self.sources.as_ref().expect("a fragment has begun");
        if !sources.is_packed {
            self.key.clear();
            sources.push_key(found, &mut self.key);
            return self.places.get(&*self.key).copied();
        }
        let packed = sources.packed(found);
        match self.last {
            Some((last, place)) if last == packed => return Some(place),
            _ => {}
        }
        let place = self.packed.get(&packed).copied();
        self.last = Some((packed, place.unwrap_or(self.count)));
        place
    }

    fn add_group(
        &mut self,
        grouping: &Grouping,
        fragment: &Fragment,
        found: &Match<'_>,
        memory: &mut Memory,
    ) -> Result<usize, ExecuteError> {
        let value = |(at, is_optional): &(ColumnAt, bool)| {
            let mut value = Vec::new();
            found.push_value(fragment.column(*at), *is_optional, &mut value);
            if let Some((ty, plain)) = found.typed(fragment.column(*at)) {
                let start = value.len() - plain.len();
                make_canonical(ty, &mut value[start..]);
            }
            value.into_boxed_slice()
        };
        let first = self.keys.len();
        self.keys.extend(grouping.keys.iter().map(value));
        let values = self.keys[first..].iter();
        let bytes: usize = values.map(|value| value.len() + ENTRY_BYTES).sum();
        let sums = self.empty.iter().map(Sum::memory_bytes).sum::<usize>();
        memory.take(self.key.len() + bytes + sums + ENTRY_BYTES)?;
        let place = self.count;
        match self.last {
            Some((packed, _)) => drop(self.packed.insert(packed, place)),
            None => drop(self.places.insert(self.key.as_slice().into(), place)),
        }
        self.sums.extend_from_slice(&self.empty);
        self.count += 1;
        Ok(place)
    }

    /// Writes the row of a group. None: there is no such group. False: `HAVING` leaves it out.
    pub fn row(&self, grouping: &Grouping, place: usize, out: &mut Vec<u8>) -> Option<bool> {
        out.clear();
        if place >= self.count {
            return None;
        }
        let keys = &self.keys[place * grouping.keys.len()..];
        let sums = &self.sums[place * self.empty.len()..];
        push_row(grouping, keys, sums, out);
        let having = self.having.as_ref();
        Some(having.is_none_or(|having| having.matches(&self.layout, out)))
    }
}

#[inline]
fn add(
    aggregate: Aggregate,
    sum: &mut Sum<Kept>,
    value: &[u8],
    memory: &mut Memory,
) -> Result<(), ExecuteError> {
    match (sum.count(value, true), aggregate) {
        (Some(best), Aggregate::Min(scalar)) => {
            keep_best(best, value, scalar, Ordering::Less, memory)
        }
        (Some(best), Aggregate::Max(scalar)) => {
            keep_best(best, value, scalar, Ordering::Greater, memory)
        }
        _ => Ok(()),
    }
}

/// Keeps a value if it is the first one, or stands so to the best one so far. Of equal ones the bytes decide, so that it does not
/// matter which comes first.
fn keep_best(
    best: &mut Kept,
    value: &[u8],
    scalar: Scalar,
    wanted: Ordering,
    memory: &mut Memory,
) -> Result<(), ExecuteError> {
    let order = |best: &[u8]| Some(scalar.compare(value, best)?.then(value.cmp(best)));
    let is_better = |best: &[u8]| order(best) == Some(wanted);
    if !best.as_deref().is_none_or(is_better) {
        return Ok(());
    }
    let best = best.get_or_insert_default();
    let before = best.capacity();
    best.clear();
    best.extend_from_slice(value);
    memory.take(best.capacity() - before)
}
