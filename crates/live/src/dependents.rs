//! What depends on which reads: from changed rows to the results that they can change. Costs what is concerned, however much there is.

use lightcone_table::{KeyRange, ReadSet, Table, TableReads};
use lightcone_types::{IndexId, TableId};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::area_tree::{AreaTree, Interval};

/// What depends on reads: an instance's call, or its query.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Dependent(u32);

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
pub struct Dependents {
    tables: FxHashMap<TableId, TableDependents>,
}

/// What is known of a transaction while its changes are looked at. Reused.
#[derive(Default)]
pub struct Looked {
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
    ranges: AreaTree<Interval, Dependent>,
}

fn interval(range: &KeyRange) -> Interval {
    Interval {
        start: range.start[..].into(),
        end: range.end.as_deref().map(Into::into),
    }
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

    /// Those who have read a table as a whole.
    pub fn of_whole(&self, table: TableId) -> impl Iterator<Item = Dependent> + '_ {
        let dependents = self.tables.get(&table).into_iter();
        dependents.flat_map(|dependents| dependents.whole.iter().copied())
    }

    /// Calls `visit` with those whom a row of a table concerns that came or went, some more than once; but for those who have
    /// counted the rows.
    pub fn concerned_by(
        &self,
        looked: &mut Looked,
        table: &Table,
        (row, came): (&[u8], bool),
        mut visit: impl FnMut(Dependent),
    ) {
        let Some(dependents) = self.tables.get(&table.schema.id) else {
            return;
        };
        if !dependents.counts.is_empty() {
            let growth = looked.growth.entry(table.schema.id).or_default();
            *growth += if came { 1 } else { -1 };
        }
        dependents.whole.iter().copied().for_each(&mut visit);
        for by_index in &dependents.indexes {
            let indexes = table.schema.indexes.iter();
            let Some(position) = indexes.clone().position(|index| index.id == by_index.index)
            else {
                continue;
            };
            let index = &table.indexes()[position];
            looked.key.clear();
            index.key_of_row(table.layout(), row, &mut looked.key);
            if let Some(found) = by_index.points.get(&looked.key[..]) {
                found.iter().copied().for_each(&mut visit);
            }
            by_index.ranges.containing(&looked.key, &mut visit);
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
            ranges.insert(interval(range), dependent);
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
            ranges.remove(&interval(range), dependent);
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
                ranges: AreaTree::default(),
            });
            self.indexes.len() - 1
        });
        &mut self.indexes[position]
    }

    fn is_empty(&self) -> bool {
        self.whole.is_empty() && self.counts.is_empty() && self.indexes.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use lightcone_engine::{CommitOutput, Datastore, RangeBounds, RowBuffer};
    use lightcone_schema::raw::{RawModuleDef, RawModuleDefV10};
    use lightcone_schema::{
        ColumnDef, IndexAlgorithm, IndexDef, ModuleDef, TableAccess, TableDef, UniqueConstraintDef,
    };
    use lightcone_types::{AlgebraicType as T, ColId, Encode, TypeRef};
    use proptest::prelude::*;

    use super::*;

    /// A table of an id, two numbers and a text, with indexes of all kinds.
    fn datastore() -> Datastore {
        let raw = RawModuleDef::V10(RawModuleDefV10 {
            sections: Vec::new(),
        });
        let mut def = ModuleDef::validate(raw).expect("an empty module is valid");
        let columns = [
            ("id", T::U32),
            ("a", T::I8),
            ("b", T::U8),
            ("text", T::String),
        ];
        let index = |name: &str, algorithm, unique| IndexDef {
            name: name.into(),
            source_name: name.into(),
            accessor_name: None,
            algorithm,
            unique,
        };
        def.tables = vec![TableDef {
            name: "t".into(),
            source_name: "t".into(),
            row_type: TypeRef(0),
            columns: Vec::from_iter(columns.map(|(name, ty)| ColumnDef {
                name: name.into(),
                source_name: name.into(),
                ty,
                default: None,
            })),
            primary_key: Some(ColId(0)),
            indexes: vec![
                index("by_id", IndexAlgorithm::BTree(vec![ColId(0)]), true),
                index(
                    "by_a_b",
                    IndexAlgorithm::BTree(vec![ColId(1), ColId(2)]),
                    false,
                ),
                index("by_b", IndexAlgorithm::Hash(vec![ColId(2)]), false),
                index("by_text", IndexAlgorithm::BTree(vec![ColId(3)]), false),
            ],
            constraints: vec![UniqueConstraintDef {
                name: "t_id_key".into(),
                columns: vec![ColId(0)],
            }],
            sequences: Vec::new(),
            schedule: None,
            outbox: None,
            access: TableAccess::Public,
            is_event: false,
        }];
        let mut datastore = Datastore::new();
        datastore.begin();
        datastore.bootstrap();
        datastore.create_tables(&def).expect("names are free");
        datastore
            .commit(&mut CommitOutput::default())
            .expect("the record fits");
        datastore
    }

    #[derive(Clone, Debug)]
    struct Row {
        id: u32,
        a: i8,
        b: u8,
        text: String,
    }

    impl Row {
        fn encoded(&self) -> Vec<u8> {
            let mut row = self.id.to_vec();
            self.a.encode(&mut row);
            self.b.encode(&mut row);
            self.text.encode(&mut row);
            row
        }
    }

    fn row() -> impl Strategy<Value = Row> {
        (0_u32..8, -2_i8..3, 0_u8..3, "[ab]{0,2}").prop_map(|(id, a, b, text)| Row {
            id,
            a,
            b,
            text,
        })
    }

    /// A bound as BSATN: its tag, and a value unless there is none.
    fn bound(kind: u8, value: Vec<u8>) -> Vec<u8> {
        match kind {
            2 => vec![2],
            kind => [vec![kind], value].concat(),
        }
    }

    #[derive(Clone, Debug)]
    enum Read {
        Table,
        Count,
        Point(&'static str, Vec<u8>),
        Range {
            index: &'static str,
            prefix: Vec<u8>,
            start: Vec<u8>,
            end: Vec<u8>,
        },
    }

    fn read() -> impl Strategy<Value = Read> {
        let bounds = (0_u8..3, -2_i8..3, 0_u8..3, -2_i8..3);
        prop_oneof![
            1 => Just(Read::Table),
            1 => Just(Read::Count),
            3 => (0_u32..8).prop_map(|id| Read::Point("by_id", id.to_vec())),
            3 => (-2_i8..3, 0_u8..3).prop_map(|(a, b)| Read::Point("by_a_b", [a.to_vec(), b.to_vec()].concat())),
            3 => (0_u8..3).prop_map(|b| Read::Point("by_b", b.to_vec())),
            3 => "[ab]{0,2}".prop_map(|text| Read::Point("by_text", text.to_vec())),
            3 => bounds.clone().prop_map(|(from, a, to, b)| Read::Range {
                index: "by_a_b", prefix: Vec::new(), start: bound(from, a.to_vec()), end: bound(to, b.to_vec()),
            }),
            3 => (-2_i8..3, 0_u8..3, 0_u8..3, 0_u8..3, 0_u8..3).prop_map(|(a, from, low, to, high)| Read::Range {
                index: "by_a_b", prefix: a.to_vec(), start: bound(from, low.to_vec()), end: bound(to, high.to_vec()),
            }),
            3 => (0_u8..3, "[ab]{0,2}", 0_u8..3, "[ab]{0,2}").prop_map(|(from, low, to, high)| Read::Range {
                index: "by_text", prefix: Vec::new(), start: bound(from, low.to_vec()), end: bound(to, high.to_vec()),
            }),
        ]
    }

    impl Read {
        /// What it finds in the open transaction, in an order that means nothing.
        fn run(&self, datastore: &Datastore) -> BTreeSet<Vec<u8>> {
            let table = datastore.table_id_from_name("t").expect("it is there");
            let mut found = RowBuffer::default();
            match self {
                Read::Count => {
                    let count = datastore.row_count(table).expect("it is there");
                    return BTreeSet::from([count.to_vec()]);
                }
                Read::Table => datastore.scan(table, &mut found).expect("it is there"),
                Read::Point(index, point) => {
                    let index = datastore.index_id_from_name(index).expect("it is there");
                    datastore
                        .index_scan_point(index, point, &mut found)
                        .expect("a point");
                }
                Read::Range { index, .. } => {
                    let index = datastore.index_id_from_name(index).expect("it is there");
                    datastore
                        .index_scan_range(index, self.bounds(), &mut found)
                        .expect("a range");
                }
            }
            let layout = datastore.table(table).expect("it is there").layout();
            let mut rest = &found.bytes[..];
            let mut rows = BTreeSet::new();
            while !rest.is_empty() {
                let length = layout.validate_prefix(rest).expect("a row");
                rows.insert(rest[..length].to_vec());
                rest = &rest[length..];
            }
            rows
        }

        fn bounds(&self) -> RangeBounds<'_> {
            let Read::Range {
                prefix, start, end, ..
            } = self
            else {
                panic!("no range");
            };
            RangeBounds {
                prefix,
                prefix_columns: usize::from(!prefix.is_empty()),
                start,
                end,
            }
        }

        fn note(&self, datastore: &Datastore, reads: &mut ReadSet) {
            let table = datastore.table_id_from_name("t").expect("it is there");
            match self {
                Read::Table => reads.table(table),
                Read::Count => reads.count(table),
                Read::Point(index, point) => {
                    let index = datastore.index_id_from_name(index).expect("it is there");
                    reads.point(
                        datastore.index_of(index).expect("it is there"),
                        index,
                        point,
                    );
                }
                Read::Range { index, .. } => {
                    let index = datastore.index_id_from_name(index).expect("it is there");
                    let found = datastore.index_of(index).expect("it is there");
                    reads.range(found, index, self.bounds());
                }
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

        /// A dependent hears of a transaction if and only if what it would read now differs from what it has read.
        #[test]
        fn who_is_concerned_is_whose_result_changes(
            first in prop::collection::vec(row(), 0..8),
            dependents_reads in prop::collection::vec(prop::collection::vec(read(), 0..3), 1..12),
            changes in prop::collection::vec((row(), any::<bool>()), 0..8),
            forgotten in prop::collection::vec(any::<bool>(), 12),
        ) {
            let mut datastore = datastore();
            let table = datastore.table_id_from_name("t").expect("it is there");
            let by_id = datastore.index_id_from_name("by_id").expect("it is there");
            let put = |datastore: &mut Datastore, row: &Row| {
                datastore.delete_by_index_point(by_id, &row.id.to_vec()).expect("a point");
                datastore.insert(table, &row.encoded(), &mut Vec::new()).expect("a row");
            };
            datastore.begin();
            first.iter().for_each(|row| put(&mut datastore, row));
            datastore.commit(&mut CommitOutput::default()).expect("the record fits");

            datastore.begin();
            let mut dependents = Dependents::default();
            let mut before = Vec::new();
            for (number, reads) in (0..).zip(&dependents_reads) {
                let mut set = ReadSet::default();
                reads.iter().for_each(|read| read.note(&datastore, &mut set));
                dependents.add(Dependent::new(number, false), &set);
                before.push((set, reads.iter().map(|read| read.run(&datastore)).collect::<Vec<_>>()));
            }
            for (row, is_put) in &changes {
                match is_put {
                    true => put(&mut datastore, row),
                    false => { datastore.delete_by_index_point(by_id, &row.id.to_vec()).expect("a point"); }
                }
            }
            for (number, (set, _)) in (0..).zip(&before) {
                if forgotten[number as usize] {
                    dependents.remove(Dependent::new(number, false), set);
                }
            }
            let (mut looked, mut concerned) = (Looked::default(), BTreeSet::new());
            datastore.for_each_net_change(
                |table| dependents.has_table(table),
                |table, old, new| for (row, came) in [(old, false), (new, true)] {
                    let Some(row) = row else { continue };
                    dependents.concerned_by(&mut looked, table, (row, came), |dependent| {
                        concerned.insert(dependent.instance());
                    });
                },
            );
            dependents.concerned_by_counts(&mut looked, |dependent| {
                concerned.insert(dependent.instance());
            });
            let mut expected = BTreeSet::new();
            for (number, (reads, (_, before))) in (0..).zip(dependents_reads.iter().zip(&before)) {
                let after: Vec<_> = reads.iter().map(|read| read.run(&datastore)).collect();
                if after != *before && !forgotten[number as usize] {
                    expected.insert(number);
                }
            }
            prop_assert_eq!(concerned, expected);
            for (number, (set, _)) in (0..).zip(&before) {
                if !forgotten[number as usize] {
                    dependents.remove(Dependent::new(number, false), set);
                }
            }
            prop_assert!(dependents.is_empty());
        }
    }
}
