//! A table with any indexes against a list of rows.

use crate::common::*;
use lightcone_schema::IndexAlgorithm;
use std::sync::Arc;

use lightcone_table::{
    Error, InsertError, Inserted, RangeBounds, RowId, Table, TableSnapshot, TableView,
};
use lightcone_types::{AlgebraicType as T, AlgebraicValue as V, ColId};
use proptest::prelude::*;
use proptest::sample::Index as Pick;

#[derive(Debug, Clone)]
enum Op {
    Insert(Vec<V>),
    /// Replaces a row picked from the table.
    Replace(Pick, Vec<V>),
    Delete(Pick),
    DeleteMany(u8),
    Clear,
    Snapshot,
    /// Goes on with a table loaded from page images.
    Reload,
    Point(Pick, Vec<V>),
    Range(Pick, u8, Vec<V>, Vec<(Bound, Bound)>),
}

#[derive(Debug, Clone)]
struct Case {
    columns: Vec<T>,
    indexes: Vec<(IndexAlgorithm, bool)>,
    ops: Vec<Op>,
}

fn index(columns: &[T]) -> BoxedStrategy<(IndexAlgorithm, bool)> {
    let direct: Vec<u16> = (0..columns.len() as u16)
        .filter(|&c| {
            let ty = &columns[usize::from(c)];
            matches!(*ty, T::U8 | T::U16 | T::U32 | T::U64) || *ty == simple_enum()
        })
        .collect();
    let all: Vec<u16> = (0..columns.len() as u16).collect();
    let count = 1..=all.len().min(3);
    let list = (Just(all).prop_shuffle(), count).prop_map(|(all, count)| all[..count].to_vec());
    let several = (list, any::<bool>())
        .prop_map(|(list, ordered)| if ordered { btree(&list) } else { hash(&list) });
    let algorithm = match direct.is_empty() {
        true => several.boxed(),
        false => prop_oneof![
            several,
            prop::sample::select(direct).prop_map(|c| IndexAlgorithm::Direct(ColId(c))),
        ]
        .boxed(),
    };
    (algorithm, any::<bool>()).boxed()
}

fn op(columns: &[T]) -> BoxedStrategy<Op> {
    let row = || values(columns);
    let bounds: Vec<_> = columns.iter().map(|ty| (bound(ty), bound(ty))).collect();
    prop_oneof![
        30 => row().prop_map(Op::Insert),
        8 => (any::<Pick>(), row()).prop_map(|(pick, row)| Op::Replace(pick, row)),
        8 => any::<Pick>().prop_map(Op::Delete),
        1 => (0..20_u8).prop_map(Op::DeleteMany),
        1 => Just(Op::Clear),
        2 => Just(Op::Snapshot),
        1 => Just(Op::Reload),
        8 => (any::<Pick>(), row()).prop_map(|(pick, row)| Op::Point(pick, row)),
        20 => (any::<Pick>(), 0..4_u8, row(), bounds).prop_map(|(pick, k, row, b)| Op::Range(pick, k, row, b)),
    ]
    .boxed()
}

fn case() -> impl Strategy<Value = Case> {
    prop::collection::vec(column_type(), 1..4)
        .prop_flat_map(|columns| {
            let indexes = prop::collection::vec(index(&columns), 0..4);
            (Just(columns), indexes)
        })
        .prop_flat_map(|(columns, indexes)| {
            let ops = prop::collection::vec(op(&columns), 1..80);
            (Just(columns), Just(indexes), ops)
        })
        .prop_map(|(columns, indexes, ops)| Case {
            columns,
            indexes,
            ops,
        })
}

/// A row of the model.
#[derive(Clone)]
struct Row {
    id: RowId,
    values: Vec<V>,
    bytes: Vec<u8>,
}

struct Model {
    table: Table,
    rows: Vec<Row>,
    indexes: Vec<ModelIndex>,
    snapshots: Vec<(TableSnapshot, Vec<Vec<u8>>)>,
    views: Vec<(Arc<TableView>, Vec<Row>)>,
}

impl Model {
    fn new(case: &Case) -> Model {
        Model {
            table: Table::new(schema(&case.columns, &case.indexes)),
            rows: Vec::new(),
            indexes: case
                .indexes
                .iter()
                .map(|(a, u)| ModelIndex::new(a, *u, &case.columns))
                .collect(),
            snapshots: Vec::new(),
            views: Vec::new(),
        }
    }

    /// Rows other than `except` that a unique index does not allow beside `values`.
    fn in_the_way(&self, values: &[V], except: Option<RowId>) -> bool {
        self.indexes
            .iter()
            .filter(|index| index.unique)
            .any(|index| {
                let key = index.key(values);
                self.rows
                    .iter()
                    .any(|row| Some(row.id) != except && index.same(&index.key(&row.values), &key))
            })
    }

    fn insert(&mut self, values: &[V]) {
        let bytes = row(values);
        let same = self
            .rows
            .iter()
            .find(|row| row.bytes == bytes)
            .map(|row| row.id);
        match self.table.insert(&bytes) {
            Ok(Inserted::Same(id)) => assert_eq!(Some(id), same),
            Ok(Inserted::New(id)) => {
                assert!(same.is_none() && !self.in_the_way(values, None));
                assert!(self.rows.iter().all(|row| row.id != id), "the id is in use");
                self.rows.push(Row {
                    id,
                    values: values.to_vec(),
                    bytes,
                });
            }
            Err(InsertError::NotUnique { index, row }) => {
                assert!(same.is_none());
                let index = &self.indexes[index];
                let other = self
                    .rows
                    .iter()
                    .find(|r| r.id == row)
                    .expect("the other row is there");
                assert!(index.unique && index.same(&index.key(&other.values), &index.key(values)));
            }
            Err(InsertError::Other(error)) => panic!("{error}"),
        }
    }

    fn replace(&mut self, pick: &Pick, values: &[V]) {
        // Rows are replaced by key only, so a table without unique index has no replacing.
        if self.rows.is_empty() || !self.indexes.iter().any(|index| index.unique) {
            return;
        }
        let position = pick.index(self.rows.len());
        let id = self.rows[position].id;
        let bytes = row(values);
        let conflict = self.table.conflict(&bytes, id, usize::MAX);
        assert_eq!(conflict.is_some(), self.in_the_way(values, Some(id)));
        if conflict.is_none() {
            let new = self.table.replace(id, &bytes).expect("there is room");
            assert!(
                self.rows.iter().all(|row| row.id == id || row.id != new),
                "the id is in use"
            );
            self.rows[position] = Row {
                id: new,
                values: values.to_vec(),
                bytes,
            };
        }
    }

    fn delete(&mut self, position: usize) {
        let row = self.rows.swap_remove(position);
        self.table.delete(row.id);
    }

    fn point(&self, index: usize, values: &[V]) {
        let model = &self.indexes[index];
        let key = model.key(values);
        let mut expected: Vec<_> = self
            .rows
            .iter()
            .filter(|row| model.same(&model.key(&row.values), &key))
            .map(|row| row.id)
            .collect();
        let mut point = row(&key);
        let length = point.len();
        point.extend_from_slice(&[1, 2, 3]);
        let mut found = Vec::new();
        let built = &self.table.indexes()[index];
        built
            .for_point(self.table.rows(), self.table.layout(), &point, |id| {
                found.push(id)
            })
            .expect("a good point");
        assert_eq!(built.point_len(self.table.layout(), &point), Ok(length));
        expected.sort_unstable();
        found.sort_unstable();
        assert_eq!(found, expected);
        if length > 0 {
            let cut = built.for_point(
                self.table.rows(),
                self.table.layout(),
                &point[..length - 1],
                |_| {},
            );
            assert!(matches!(cut, Err(Error::Decode(_))));
        }
    }

    fn range(&self, index: usize, prefix_columns: usize, values: &[V], bounds: &[(Bound, Bound)]) {
        let model = &self.indexes[index];
        let key = model.key(values);
        let (start, end) = match model.algorithm.columns().get(prefix_columns) {
            Some(column) => bounds[usize::from(column.0)].clone(),
            None => (Bound::Unbounded, Bound::Unbounded),
        };
        let prefix = row(&key[..prefix_columns.min(key.len())]);
        let mut found = Vec::new();
        let (start_bytes, end_bytes) = (start.encode(), end.encode());
        let range = RangeBounds {
            prefix: &prefix,
            prefix_columns,
            start: &start_bytes,
            end: &end_bytes,
        };
        let (rows, layout) = (self.table.rows(), self.table.layout());
        let result =
            self.table.indexes()[index].for_range(rows, layout, range, |id| found.push(id));
        if matches!(model.algorithm, IndexAlgorithm::Hash(_)) {
            return assert_eq!(result, Err(Error::NotOrdered));
        }
        if prefix_columns >= key.len() {
            // A single column of a product type is scanned by its fields; that has a test of its own.
            return assert!(result.is_err() || key.len() == 1);
        }
        result.expect("a good range");
        let mut back = Vec::new();
        let walked = self.table.indexes()[index].walk_range_back(range, |id| {
            back.push(id);
            true
        });
        walked.expect("a good range");
        back.reverse();
        assert_eq!(back, found);
        let mut expected: Vec<_> = self
            .rows
            .iter()
            .map(|row| (model.key(&row.values), row.id))
            .filter(|(other, _)| {
                other[..prefix_columns]
                    .iter()
                    .zip(&key)
                    .all(|(a, b)| a.value_eq(b))
                    && start.admits_from_below(&other[prefix_columns])
                    && end.admits_from_above(&other[prefix_columns])
            })
            .collect();
        expected.sort_by(|(a, x), (b, y)| {
            V::Product(a.clone())
                .value_cmp(&V::Product(b.clone()))
                .then(x.cmp(y))
        });
        let expected: Vec<_> = expected.into_iter().map(|(_, id)| id).collect();
        assert_eq!(found, expected, "in key order");
    }

    fn sorted_rows(&self) -> Vec<Vec<u8>> {
        let mut rows: Vec<_> = self.rows.iter().map(|row| row.bytes.clone()).collect();
        rows.sort();
        rows
    }

    /// Everything that must hold at any time.
    fn check(&self) {
        let mut expected: Vec<_> = self
            .rows
            .iter()
            .map(|row| (row.id, &row.bytes[..]))
            .collect();
        let mut found = Vec::new();
        self.table
            .rows()
            .for_each(|id, row| found.push((id, row.to_vec())));
        expected.sort();
        found.sort();
        assert_eq!(
            found
                .iter()
                .map(|(id, row)| (*id, &row[..]))
                .collect::<Vec<_>>(),
            expected
        );
        assert_eq!(self.table.rows().row_count(), self.rows.len() as u64);
        for row in &self.rows {
            assert_eq!(self.table.row(row.id), row.bytes);
            assert_eq!(self.table.find_equal(&row.bytes), Some(row.id));
        }
        for index in self.table.indexes() {
            assert_eq!(index.row_count(), self.rows.len());
        }
        for (snapshot, rows) in &self.snapshots {
            assert_eq!(snapshot_rows(snapshot), *rows, "a snapshot never changes");
            assert_eq!(snapshot.rows.row_count(), rows.len() as u64);
        }
    }

    fn reload(&mut self) {
        let snapshot = self.table.snapshot();
        let mut table = Table::new(snapshot.schema.clone());
        table.load(snapshot.rows.pages()).expect("good pages");
        self.table = table;
    }

    fn run(&mut self, op: &Op) {
        match op {
            Op::Insert(values) => self.insert(values),
            Op::Replace(pick, values) => self.replace(pick, values),
            Op::Delete(pick) if !self.rows.is_empty() => self.delete(pick.index(self.rows.len())),
            Op::Delete(_) => {}
            Op::DeleteMany(count) => (0..*count).for_each(|_| {
                if !self.rows.is_empty() {
                    self.delete(0);
                }
            }),
            Op::Clear => {
                self.table.clear();
                self.rows.clear();
            }
            Op::Snapshot => {
                let rows = self.sorted_rows();
                self.snapshots.push((self.table.snapshot(), rows));
                self.views.push((self.table.freeze(), self.rows.clone()));
            }
            Op::Reload => self.reload(),
            Op::Point(_, _) | Op::Range(_, _, _, _) if self.indexes.is_empty() => {}
            Op::Point(pick, values) => self.point(pick.index(self.indexes.len()), values),
            Op::Range(pick, prefix, values, bounds) => {
                self.range(
                    pick.index(self.indexes.len()),
                    usize::from(*prefix),
                    values,
                    bounds,
                );
            }
        }
    }
}

/// A frozen table has the rows it had, and finds them by all indexes.
fn check_view(view: &TableView, rows: &[Row], indexes: &[ModelIndex]) {
    let mut found = Vec::new();
    view.rows()
        .for_each(|id, row| found.push((id, row.to_vec())));
    let mut expected: Vec<_> = rows.iter().map(|row| (row.id, row.bytes.clone())).collect();
    expected.sort();
    assert_eq!(found, expected, "a view never changes");
    for (index, model) in view.indexes().iter().zip(indexes) {
        assert_eq!(index.row_count(), rows.len());
        for row_of in rows {
            let point = row(&model.key(&row_of.values));
            let mut found = Vec::new();
            let visit = |id| found.push(id);
            index
                .for_point(view.rows(), view.layout(), &point, visit)
                .expect("a good point");
            assert!(found.contains(&row_of.id));
            let same = rows
                .iter()
                .filter(|other| model.same(&model.key(&other.values), &model.key(&row_of.values)));
            assert_eq!(found.len(), same.count());
        }
        let all = Bound::Unbounded.encode();
        let mut found = Vec::new();
        let range = RangeBounds::of_first(&all, &all);
        let walked = index.for_range(view.rows(), view.layout(), range, |id| found.push(id));
        if !matches!(model.algorithm, IndexAlgorithm::Hash(_)) {
            walked.expect("a good range");
            assert_eq!(found.len(), rows.len());
        }
    }
}

fn snapshot_rows(snapshot: &TableSnapshot) -> Vec<Vec<u8>> {
    let mut rows = Vec::new();
    snapshot.rows.for_each(|_, row| rows.push(row.to_vec()));
    rows.sort();
    rows
}

proptest! {
    #![proptest_config(config(300))]

    #[test]
    fn table_behaves_like_a_list(case in case()) {
        let mut model = Model::new(&case);
        for op in &case.ops {
            model.run(op);
            model.check();
        }
        for (view, rows) in &model.views {
            check_view(view, rows, &model.indexes);
        }
        for index in 0..model.indexes.len() {
            for position in 0..model.rows.len() {
                model.point(index, &model.rows[position].values);
            }
        }
    }
}

/// One column, one direct index: keys at chunk borders, where ranges may be empty in bytes only.
#[test]
fn direct_ranges_at_borders() {
    let mut table = Table::new(schema(
        &[T::U32],
        &[(IndexAlgorithm::Direct(ColId(0)), true)],
    ));
    let keys = [
        0_u32,
        1,
        255,
        256,
        1022,
        1023,
        1024,
        1025,
        2047,
        2048,
        0xffff,
        0x1_0000,
        u32::MAX - 1,
        u32::MAX,
    ];
    for key in keys {
        table.insert(&key.to_le_bytes()).expect("a new key");
    }
    let scan = |start: &Bound, end: &Bound| {
        let mut found = Vec::new();
        table.indexes()[0]
            .for_range(
                table.rows(),
                table.layout(),
                RangeBounds::of_first(&start.encode(), &end.encode()),
                |id| {
                    found.push(u32::from_le_bytes(
                        table.row(id).try_into().expect("four bytes"),
                    ));
                },
            )
            .expect("a good range");
        found
    };
    let bounds = |key| {
        [
            Bound::Included(V::U32(key)),
            Bound::Excluded(V::U32(key)),
            Bound::Unbounded,
        ]
    };
    for start in keys.into_iter().flat_map(bounds) {
        for end in keys.into_iter().flat_map(bounds) {
            let expected: Vec<_> = keys
                .into_iter()
                .filter(|&key| {
                    start.admits_from_below(&V::U32(key)) && end.admits_from_above(&V::U32(key))
                })
                .collect();
            assert_eq!(scan(&start, &end), expected, "{start:?} {end:?}");
        }
    }
}

/// A single column of a product type may be scanned by its fields (01 §1.6.3).
#[test]
fn fields_of_a_product_column_are_a_prefix() {
    let ty = T::product([("a", T::U8), ("b", T::U16), ("c", T::String)]);
    let mut table = Table::new(schema(&[ty], &[(btree(&[0]), false)]));
    let value = |a, b, c: &str| V::Product(vec![V::U8(a), V::U16(b), V::String(c.into())]);
    for (a, b, c) in [(1, 1, "x"), (1, 2, "y"), (1, 300, "z"), (2, 2, "y")] {
        table.insert(&encode(&value(a, b, c))).expect("a new row");
    }
    let count = |prefix: &[V], columns, start: Bound, end: Bound| {
        let mut count = 0;
        let index = &table.indexes()[0];
        let range = RangeBounds {
            prefix: &row(prefix),
            prefix_columns: columns,
            start: &start.encode(),
            end: &end.encode(),
        };
        index.for_range(table.rows(), table.layout(), range, |_| count += 1)?;
        Ok::<_, Error>(count)
    };
    assert_eq!(
        count(&[V::U8(1)], 1, Bound::Included(V::U16(2)), Bound::Unbounded),
        Ok(2)
    );
    assert_eq!(
        count(
            &[V::U8(1), V::U16(2)],
            2,
            Bound::Unbounded,
            Bound::Unbounded
        ),
        Ok(1)
    );
    assert_eq!(
        count(&[], 0, Bound::Excluded(value(1, 2, "y")), Bound::Unbounded),
        Ok(2)
    );
    assert_eq!(
        count(&[V::U8(1)], 3, Bound::Unbounded, Bound::Unbounded),
        Err(Error::PrefixTooLong { prefix_columns: 3 })
    );
}

#[test]
fn undecodable_bounds_are_refused() {
    let mut table = Table::new(schema(&[T::U32, T::String], &[(btree(&[0, 1]), false)]));
    table
        .insert(&row(&[V::U32(1), "a".into()]))
        .expect("a new row");
    let scan = |prefix: &[u8], prefix_columns, start: &[u8], end: &[u8]| {
        let range = RangeBounds {
            prefix,
            prefix_columns,
            start,
            end,
        };
        table.indexes()[0].for_range(table.rows(), table.layout(), range, |_| {})
    };
    assert!(scan(&[], 0, &[2], &[2]).is_ok());
    assert!(
        scan(b"ignored", 0, &[2, 9, 9], &[2]).is_ok(),
        "prefix without columns and surplus bytes are ignored"
    );
    for bad in [&[][..], &[0], &[0, 1, 2, 3], &[3], &[255, 0, 0, 0, 0]] {
        assert!(matches!(scan(&[], 0, bad, &[2]), Err(Error::Decode(_))));
        assert!(matches!(scan(&[], 0, &[2], bad), Err(Error::Decode(_))));
    }
    assert!(matches!(
        scan(&[1, 0], 1, &[2], &[2]),
        Err(Error::Decode(_))
    ));
    assert_eq!(
        scan(&[1, 0, 0, 0], 2, &[2], &[2]),
        Err(Error::PrefixTooLong { prefix_columns: 2 })
    );
}
