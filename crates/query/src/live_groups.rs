//! Groups that are kept up to date: aggregates of one table's rows, or of a join's matches, from those that come and go.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use lightcone_table::RowLayout;
use lightcone_types::{AlgebraicType, ColId, Identity};

use crate::condition::ColumnAt;
use crate::execute::NOTHING;
use crate::grouping::{GroupItem, Grouping};
use crate::live_join::LiveJoin;
use crate::predicate::Predicate;
use crate::query::{Output, Query};
use crate::sort_key::{make_canonical, push_sort_key};
use crate::total::{push_row, Best, Sum};

/// What a kept thing takes beside its bytes: pointers, its place in a table.
const ENTRY_BYTES: usize = 64;
/// Values that `MIN` and `MAX` keep of each group: the first ones, so that the next is known when one goes. Up to twice as many
/// until the others are dropped.
const VALUES_KEPT: usize = 64;

/// A group's row before and after, where it has changed: bytes as they come out.
pub struct RowChange {
    pub gone: Option<Box<[u8]>>,
    pub come: Option<Box<[u8]>>,
}

/// The groups of a query, for one caller.
pub struct LiveGroups {
    grouping: Arc<Grouping>,
    /// Of what is grouped: the table's rows, or the values of those columns of a match that matter.
    layout: RowLayout,
    keys: Vec<ColId>,
    columns: Vec<Option<ColId>>,
    /// Of the groups' rows.
    row_layout: RowLayout,
    having: Option<Predicate>,
    groups: HashMap<Box<[u8]>, Group>,
    /// Groups that have changed since the changes were taken.
    touched: Vec<Box<[u8]>>,
    /// How many groups have a row, if rows do not tell groups apart.
    shared_rows: Option<HashMap<Box<[u8]>, usize>>,
    bytes: usize,
    /// More values of a group have gone than were kept: all is to be counted again.
    is_stale: bool,
    key: Vec<u8>,
    value: Vec<u8>,
}

struct Group {
    rows: u64,
    /// The values of the keys, in BSATN.
    keys: Vec<Box<[u8]>>,
    sums: Vec<Sum<FirstValues>>,
    /// The row that came out when changes were last taken.
    shown: Option<Box<[u8]>>,
    is_touched: bool,
}

/// The first values of a column, in ascending or descending order, with how often each is there.
struct FirstValues {
    descending: bool,
    /// By bytes that sort as the values do: a sort key with the value behind it.
    values: BTreeMap<Box<[u8]>, FirstValue>,
    /// There are no others.
    is_complete: bool,
    bytes: usize,
}

struct FirstValue {
    value: Box<[u8]>,
    count: u64,
}

impl FirstValues {
    fn write_key(&self, layout: &RowLayout, column: ColId, value: &[u8], key: &mut Vec<u8>) {
        key.clear();
        let ty = layout.column_type(usize::from(column.0));
        push_sort_key(ty, value, self.descending, key);
        // Of equal values, the one whose bytes come first, or last.
        key.extend(value.iter().map(|byte| match self.descending {
            true => !byte,
            false => *byte,
        }));
    }

    fn add(&mut self, key: &[u8], value: &[u8]) {
        if let Some(known) = self.values.get_mut(key) {
            known.count += 1;
            return;
        }
        let last = self.values.last_key_value();
        if !self.is_complete && last.is_none_or(|(last, _)| *key > **last) {
            return;
        }
        self.bytes += FirstValues::bytes_of(key, value);
        let (value, count) = (value.into(), 1);
        self.values.insert(key.into(), FirstValue { value, count });
        if self.values.len() > 2 * VALUES_KEPT {
            while self.values.len() > VALUES_KEPT {
                self.drop_last();
            }
            self.is_complete = false;
        }
    }

    fn drop_last(&mut self) {
        if let Some((key, last)) = self.values.pop_last() {
            self.bytes -= FirstValues::bytes_of(&key, &last.value);
        }
    }

    /// False: which value is the first now is not known.
    fn remove(&mut self, key: &[u8]) -> bool {
        if let Some(known) = self.values.get_mut(key) {
            known.count -= 1;
            if known.count == 0 {
                let value = self.values.remove(key);
                let value = value.expect("it was just found").value;
                self.bytes -= FirstValues::bytes_of(key, &value);
            }
        }
        self.is_complete || !self.values.is_empty()
    }

    fn bytes_of(key: &[u8], value: &[u8]) -> usize {
        key.len() + value.len() + ENTRY_BYTES
    }
}

impl Best for FirstValues {
    fn new(descending: bool) -> FirstValues {
        FirstValues {
            descending,
            values: BTreeMap::new(),
            is_complete: true,
            bytes: 0,
        }
    }

    fn value(&self) -> Option<&[u8]> {
        let (_, first) = self.values.first_key_value()?;
        Some(&first.value)
    }

    fn heap_bytes(&self) -> usize {
        self.bytes
    }
}

/// The groups of a query that can be kept up to date: it does not sort, limit or remove duplicates.
fn grouping_of(query: &Query) -> Option<Arc<Grouping>> {
    let is_plain = query.order.is_empty() && query.limit.is_none() && query.offset == 0;
    if !is_plain || query.distinct || query.explain {
        return None;
    }
    match &query.output {
        Output::Groups(grouping) => Some(grouping.clone()),
        Output::Count(name) => Some(Arc::new(Grouping::count(name))),
        Output::Row(_) | Output::Columns(_) => None,
    }
}

impl Grouping {
    /// The columns that keys and aggregates read, each once.
    fn columns(&self) -> Vec<ColumnAt> {
        let of_items = self.aggregates().filter_map(|(_, column)| column);
        let mut columns = Vec::new();
        for at in self.keys.iter().map(|(at, _)| *at).chain(of_items) {
            if !columns.contains(&at) {
                columns.push(at);
            }
        }
        columns
    }
}

/// The matches of a join, as groups of them are kept up to date.
pub struct GroupedJoin {
    /// Its rows are what the groups take in: values of columns, one behind the other.
    pub matches: Query,
    /// The same from the changes of the tables.
    pub join: LiveJoin,
}

impl GroupedJoin {
    /// None if the query is not of a kind that can be kept up to date.
    pub fn new(query: &Query, sender: &Identity) -> Option<GroupedJoin> {
        let [fragment] = &query.fragments[..] else {
            return None;
        };
        let is_joined = fragment.tables.len() > 1 && fragment.outer.is_empty();
        if !is_joined || !fragment.condition.subqueries.is_empty() {
            return None;
        }
        let columns = grouping_of(query)?.columns();
        let placed = columns.iter().map(|at| fragment.column(*at)).collect();
        let listed = columns.iter().enumerate();
        let listed = listed.map(|(number, at)| (*at, number.to_string()));
        Some(GroupedJoin {
            matches: Query {
                output: Output::Columns(listed.collect()),
                ..query.clone()
            },
            join: LiveJoin {
                columns: Some(placed),
                ..fragment.live_join(0, sender)?
            },
        })
    }
}

impl LiveGroups {
    /// No rows so far. None if the query is not of a kind that can be kept up to date: it reads several relations, or sorts,
    /// limits or removes duplicates.
    pub fn new(query: &Query, sender: &Identity) -> Option<LiveGroups> {
        let [fragment] = &query.fragments[..] else {
            return None;
        };
        let [table] = &fragment.tables[..] else {
            return None;
        };
        let grouping = grouping_of(query)?;
        Some(LiveGroups::of(
            grouping,
            RowLayout::of(&table.columns),
            sender,
            |at| at.column,
        ))
    }

    /// The same of a join, whose matches come as a [`GroupedJoin`] has them.
    pub fn of_join(query: &Query, sender: &Identity) -> Option<LiveGroups> {
        let grouping = grouping_of(query)?;
        let columns = grouping.columns();
        let types: Vec<AlgebraicType> = columns.iter().map(|at| query.column_type(*at)).collect();
        let layout = RowLayout::new(&types);
        Some(LiveGroups::of(grouping, layout, sender, |at| {
            let place = columns.iter().position(|column| *column == at);
            ColId(place.expect("all are listed") as u16)
        }))
    }

    /// `place` says where in what is grouped a column of the query is.
    fn of(
        grouping: Arc<Grouping>,
        layout: RowLayout,
        sender: &Identity,
        place: impl Fn(ColumnAt) -> ColId,
    ) -> LiveGroups {
        let row_layout = RowLayout::of(&grouping.row.columns);
        let shown = &grouping.items[..grouping.shown.min(grouping.items.len())];
        let is_shown = |key: usize| {
            let mut items = shown.iter();
            items.any(|item| matches!(item, GroupItem::Key(shown) if *shown == key))
        };
        let tells_apart = (0..grouping.keys.len()).all(is_shown);
        let mut groups = LiveGroups {
            layout,
            keys: grouping.keys.iter().map(|(at, _)| place(*at)).collect(),
            columns: grouping
                .aggregates()
                .map(|(_, column)| column.map(&place))
                .collect(),
            having: grouping.having(&row_layout, sender),
            row_layout,
            groups: HashMap::default(),
            touched: Vec::new(),
            shared_rows: (!tells_apart).then(HashMap::default),
            bytes: 0,
            is_stale: false,
            key: Vec::new(),
            value: Vec::new(),
            grouping,
        };
        // Without keys there is one group, also if it is of no rows.
        if groups.keys.is_empty() {
            groups.make_group(&[]);
            groups.touch();
        }
        groups
    }

    /// Bytes of memory.
    pub fn memory_bytes(&self) -> usize {
        self.bytes
    }

    /// The changes cannot be told: all rows have to be added to new groups.
    pub fn is_stale(&self) -> bool {
        self.is_stale
    }

    /// A row of the table came that the query's condition admits, or a match.
    pub fn add(&mut self, row: &[u8]) {
        self.find_group(row);
        if !self.groups.contains_key(&*self.key) {
            self.make_group(row);
        }
        self.touch();
        self.count(row, true);
    }

    /// A row went that was added.
    pub fn remove(&mut self, row: &[u8]) {
        self.find_group(row);
        if self.groups.contains_key(&*self.key) {
            self.touch();
            self.count(row, false);
        }
    }

    /// Writes the key of a row's group.
    fn find_group(&mut self, row: &[u8]) {
        self.key.clear();
        for column in &self.keys {
            let column = usize::from(column.0);
            let (ty, value) = (
                self.layout.column_type(column),
                self.layout.column(row, column),
            );
            push_sort_key(ty, value, false, &mut self.key);
        }
    }

    fn make_group(&mut self, row: &[u8]) {
        let keys = self.keys.iter().map(|column| {
            let column = usize::from(column.0);
            let mut value = self.layout.column(row, column).to_vec();
            make_canonical(self.layout.column_type(column), &mut value);
            value.into_boxed_slice()
        });
        let keys: Vec<Box<[u8]>> = keys.collect();
        let group = Group {
            rows: 0,
            keys,
            sums: Sum::empty(&self.grouping),
            shown: None,
            is_touched: false,
        };
        self.bytes += group.memory_bytes(self.key.len());
        self.groups.insert(self.key.as_slice().into(), group);
    }

    fn touch(&mut self) {
        let group = self.groups.get_mut(&*self.key).expect("it was found");
        if !std::mem::replace(&mut group.is_touched, true) {
            self.touched.push(self.key.as_slice().into());
        }
    }

    fn count(&mut self, row: &[u8], comes: bool) {
        let group = self.groups.get_mut(&*self.key).expect("it was found");
        group.rows = match comes {
            true => group.rows + 1,
            false => group.rows - 1,
        };
        for (sum, column) in group.sums.iter_mut().zip(&self.columns) {
            let value = column.map(|column| {
                let place = usize::from(column.0);
                (column, self.layout.column(row, place))
            });
            if let Some((column, value)) = value {
                let ty = self.layout.column_type(usize::from(column.0));
                if ty.as_option().is_some() && value == [NOTHING] {
                    continue;
                }
            }
            let (place, value) = value.unwrap_or((ColId(0), &[]));
            let Some(values) = sum.count(value, comes) else {
                continue;
            };
            let before = values.bytes;
            values.write_key(&self.layout, place, value, &mut self.value);
            match comes {
                true => values.add(&self.value, value),
                false => self.is_stale |= !values.remove(&self.value),
            }
            self.bytes = self.bytes + values.bytes - before;
        }
    }

    /// What the rows that came and went since the last time have changed.
    pub fn take_changes(&mut self) -> Vec<RowChange> {
        let mut changes = Vec::new();
        for key in std::mem::take(&mut self.touched) {
            let group = self.groups.get_mut(&key).expect("touched groups stay");
            group.is_touched = false;
            let is_gone = group.rows == 0 && !self.keys.is_empty();
            let before = group.shown.as_deref().map_or(0, <[u8]>::len);
            let row = match is_gone {
                true => None,
                false => row_of(&self.grouping, group, (&self.row_layout, &self.having)),
            };
            let after = row.as_deref().map_or(0, <[u8]>::len);
            self.bytes = self.bytes + after - before;
            if group.shown != row {
                let gone = std::mem::replace(&mut group.shown, row.clone());
                changes.push(RowChange { gone, come: row });
            }
            if is_gone {
                self.bytes -= group.memory_bytes(key.len());
                self.groups.remove(&key);
            }
        }
        match &mut self.shared_rows {
            Some(shared) => only_first_and_last(changes, shared, &mut self.bytes),
            None => changes,
        }
    }
}

impl Group {
    /// Bytes of memory, but for the row that is shown.
    fn memory_bytes(&self, key_len: usize) -> usize {
        let keys = self.keys.iter().map(|key| key.len() + ENTRY_BYTES);
        let sums = self.sums.iter().map(Sum::memory_bytes);
        key_len + size_of::<Group>() + keys.sum::<usize>() + sums.sum::<usize>() + ENTRY_BYTES
    }
}

/// The row of a group as it comes out. None: `HAVING` leaves it out.
fn row_of(
    grouping: &Grouping,
    group: &Group,
    (layout, having): (&RowLayout, &Option<Predicate>),
) -> Option<Box<[u8]>> {
    let mut row = Vec::new();
    push_row(grouping, &group.keys, &group.sums, &mut row);
    if having
        .as_ref()
        .is_some_and(|having| !having.matches(layout, &row))
    {
        return None;
    }
    if grouping.shown < layout.column_count() {
        row.truncate(layout.column_range(&row, grouping.shown).start);
    }
    Some(row.into())
}

/// Of rows that several groups have, the first that comes and the last that goes.
fn only_first_and_last(
    changes: Vec<RowChange>,
    shared: &mut HashMap<Box<[u8]>, usize>,
    bytes: &mut usize,
) -> Vec<RowChange> {
    let mut told: BTreeMap<Box<[u8]>, bool> = BTreeMap::new();
    let mut touch = |shared: &HashMap<Box<[u8]>, usize>, row: &[u8]| {
        let was_there = shared.contains_key(row);
        told.entry(row.into()).or_insert(was_there);
    };
    for RowChange { gone, come } in changes {
        if let Some(row) = come {
            touch(shared, &row);
            *bytes += row.len() + ENTRY_BYTES;
            *shared.entry(row).or_default() += 1;
        }
        if let Some(row) = gone {
            touch(shared, &row);
            *bytes -= row.len() + ENTRY_BYTES;
            let count = shared.get_mut(&row).expect("it came before");
            *count -= 1;
            if *count == 0 {
                shared.remove(&row);
            }
        }
    }
    let changed = told.into_iter().filter_map(|(row, was_there)| {
        let is_there = shared.contains_key(&row);
        match (was_there, is_there) {
            (true, false) => Some(RowChange {
                gone: Some(row),
                come: None,
            }),
            (false, true) => Some(RowChange {
                gone: None,
                come: Some(row),
            }),
            _ => None,
        }
    });
    changed.collect()
}
