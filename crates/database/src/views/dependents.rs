//! Who depends on what: from changed rows to the results that they can change. Costs what is concerned, however much there is.

use lightcone_engine::{ReadSet, TableReads};
use lightcone_table::Table;
use lightcone_types::{IndexId, TableId};
use rustc_hash::{FxHashMap, FxHashSet};

use super::intervals::IntervalMap;

/// What depends on reads: an instance's call, or its query.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Dependent(u32);

impl Dependent {
    /// The instance of this number; numbers stay below 2³¹.
    pub fn new(instance: u32, is_query: bool) -> Dependent {
        Dependent(instance << 1 | u32::from(is_query))
    }

    pub fn instance(self) -> u32 {
        self.0 >> 1
    }

    /// Whether what depends is the result of the instance's query. Otherwise the module's function has to run again.
    pub fn is_query(self) -> bool {
        self.0 & 1 == 1
    }
}

/// All dependents, by what they have read.
#[derive(Default)]
pub(super) struct Dependents {
    tables: FxHashMap<TableId, TableDependents>,
}

/// What is known of a transaction while its changes are looked at. Reused.
#[derive(Default)]
pub(super) struct Looked {
    key: Vec<u8>,
    /// Rows that came less those that went, by table.
    growth: FxHashMap<TableId, i64>,
}

#[derive(Default)]
struct TableDependents {
    whole: FxHashSet<Dependent>,
    counts: FxHashSet<Dependent>,
    indexes: Vec<IndexDependents>,
}

struct IndexDependents {
    index: IndexId,
    /// Modules choose the keys, so they are hashed with a secret.
    points: hashbrown::HashMap<Box<[u8]>, FxHashSet<Dependent>>,
    ranges: IntervalMap<Dependent>,
}

impl Dependents {
    pub fn is_empty(&self) -> bool {
        self.tables.is_empty()
    }

    pub fn has_table(&self, table: TableId) -> bool {
        self.tables.contains_key(&table)
    }

    pub fn add(&mut self, dependent: Dependent, reads: &ReadSet) {
        for (table, reads) in reads.tables() {
            self.tables.entry(table).or_default().add(dependent, reads);
        }
    }

    /// Removes what [`add`](Self::add) added for the same reads.
    pub fn remove(&mut self, dependent: Dependent, reads: &ReadSet) {
        for (id, reads) in reads.tables() {
            let Some(table) = self.tables.get_mut(&id) else {
                continue;
            };
            table.remove(dependent, reads);
            if table.is_empty() {
                self.tables.remove(&id);
            }
        }
    }

    /// Calls `visit` with those whom a changed row of a table concerns, some more than once; but for those who have counted the
    /// rows.
    pub fn concerned_by(
        &self,
        looked: &mut Looked,
        table: &Table,
        old: Option<&[u8]>,
        new: Option<&[u8]>,
        mut visit: impl FnMut(Dependent),
    ) {
        let Some(dependents) = self.tables.get(&table.schema.id) else {
            return;
        };
        if !dependents.counts.is_empty() {
            let growth = looked.growth.entry(table.schema.id).or_default();
            *growth += i64::from(new.is_some()) - i64::from(old.is_some());
        }
        dependents.whole.iter().copied().for_each(&mut visit);
        for by_index in &dependents.indexes {
            let indexes = table.schema.indexes.iter();
            let Some(position) = indexes.clone().position(|index| index.id == by_index.index)
            else {
                continue;
            };
            let index = &table.indexes()[position];
            for row in [old, new].into_iter().flatten() {
                looked.key.clear();
                index.key_of_row(table.layout(), row, &mut looked.key);
                if let Some(found) = by_index.points.get(&looked.key[..]) {
                    found.iter().copied().for_each(&mut visit);
                }
                by_index.ranges.containing(&looked.key, &mut visit);
            }
        }
    }

    /// Calls `visit` with those who have counted the rows of a table that has more or fewer now. Comes after
    /// [`concerned_by`](Self::concerned_by) for all changed rows.
    pub fn concerned_by_counts(&self, looked: &mut Looked, mut visit: impl FnMut(Dependent)) {
        for (table, growth) in looked.growth.drain() {
            if let (Some(table), true) = (self.tables.get(&table), growth != 0) {
                table.counts.iter().copied().for_each(&mut visit);
            }
        }
    }
}

impl TableDependents {
    fn add(&mut self, dependent: Dependent, reads: &TableReads) {
        if reads.whole {
            self.whole.insert(dependent);
        }
        if reads.count {
            self.counts.insert(dependent);
        }
        for (index, key) in &reads.points {
            let points = &mut self.index(*index).points;
            match points.get_mut(&**key) {
                Some(dependents) => {
                    dependents.insert(dependent);
                }
                None => {
                    points.insert(key.clone(), FxHashSet::from_iter([dependent]));
                }
            }
        }
        for (index, range) in &reads.ranges {
            let ranges = &mut self.index(*index).ranges;
            ranges.insert(&range.start, range.end.as_deref(), dependent);
        }
    }

    fn remove(&mut self, dependent: Dependent, reads: &TableReads) {
        self.whole.remove(&dependent);
        self.counts.remove(&dependent);
        for (index, key) in &reads.points {
            let points = &mut self.index(*index).points;
            if let Some(dependents) = points.get_mut(&**key) {
                dependents.remove(&dependent);
                if dependents.is_empty() {
                    points.remove(&**key);
                }
            }
        }
        for (index, range) in &reads.ranges {
            let ranges = &mut self.index(*index).ranges;
            ranges.remove(&range.start, range.end.as_deref(), dependent);
        }
        self.indexes
            .retain(|index| !index.points.is_empty() || !index.ranges.is_empty());
    }

    fn index(&mut self, index: IndexId) -> &mut IndexDependents {
        let found = self.indexes.iter().position(|known| known.index == index);
        let position = found.unwrap_or_else(|| {
            self.indexes.push(IndexDependents {
                index,
                points: hashbrown::HashMap::default(),
                ranges: IntervalMap::default(),
            });
            self.indexes.len() - 1
        });
        &mut self.indexes[position]
    }

    fn is_empty(&self) -> bool {
        self.whole.is_empty() && self.counts.is_empty() && self.indexes.is_empty()
    }
}
