//! Random transactions against a naive database: results, net deltas, log replay and snapshots.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use crate::common::*;
use lightcone_engine::record::{Group, GroupKind, Record, Records};
use lightcone_engine::{
    CommitOutput, Datastore, DatastoreError, RangeBounds, Replayer, RowBuffer, Scan,
};
use lightcone_log::{Epoch, Frame, LocalLog, Log, LogOffset, LogOptions};
use lightcone_schema::{ModuleDef, TableSchema};
use lightcone_snapshot::SnapshotStore;
use lightcone_storage::sim::SimStorage;
use lightcone_table::DeltaKind;
use lightcone_types::bsatn::encode_value;
use lightcone_types::{AlgebraicType as T, AlgebraicValue as V, TableId};
use proptest::prelude::*;
use proptest::sample::Index as Pick;

fn def() -> ModuleDef {
    module(vec![
        table("account", &[("id", T::U32), ("balance", T::I64)])
            .hash(&[0], true)
            .primary_key(0),
        // Two sequences, one of them on a narrow column that wraps.
        table(
            "auto",
            &[("id", T::U64), ("tag", T::U8), ("name", T::String)],
        )
        .btree(&[0], true)
        .primary_key(0)
        .btree(&[2], false)
        .sequence(0)
        .sequence(1),
        // No unique index: rows are a set.
        table("bag", &[("a", T::U8), ("s", T::String)])
            .btree(&[0], false)
            .hash(&[1, 0], false),
        table("event", &[("k", T::U8), ("s", T::String)])
            .hash(&[0], true)
            .event(),
        table("event_bag", &[("k", T::U8)]).event(),
        table("float", &[("x", T::F64), ("y", T::U8)])
            .btree(&[0], true)
            .hash(&[1, 0], true),
        table("keyless", &[("a", T::U8), ("b", T::U16)]),
        table("nothing", &[]),
        // A row can be replaced by either key, so its first one may change.
        table("two", &[("a", T::U8), ("b", T::U8), ("v", T::U16)])
            .hash(&[0], true)
            .direct(1, true),
        table(
            "two_text",
            &[("a", T::U8), ("b", T::String), ("v", T::bytes())],
        )
        .btree(&[0], true)
        .btree(&[1], true)
        .btree(&[2], false),
        table(
            "text",
            &[("k", T::String), ("n", T::I32), ("v", T::bytes())],
        )
        .hash(&[0], true)
        .primary_key(0),
    ])
}

fn value(ty: &T) -> BoxedStrategy<V> {
    match *ty {
        T::U8 => (0..5_u8).prop_map(V::U8).boxed(),
        T::U16 => (0..3_u16).prop_map(V::U16).boxed(),
        T::U32 => (0..6_u32).prop_map(V::U32).boxed(),
        T::U64 => (0..6_u64).prop_map(V::U64).boxed(),
        T::I32 => (-1..2_i32).prop_map(V::I32).boxed(),
        T::I64 => (-1..2_i64).prop_map(V::I64).boxed(),
        T::F64 => prop::sample::select(vec![0.0, -0.0, 1.5, f64::NAN, -f64::NAN, f64::NEG_INFINITY])
            .prop_map(V::F64)
            .boxed(),
        T::String => prop::sample::select(vec!["", "a", "b", "a\0", "ab"]).prop_map(V::from).boxed(),
        _ => prop_oneof![
            6 => prop::collection::vec(0..3_u8, 0..3),
            1 => prop::sample::select(vec![500, 9_000, 17_000, 70_000]).prop_map(|size| vec![1; size]),
        ]
        .prop_map(V::Bytes)
        .boxed(),
    }
}

#[derive(Debug, Clone)]
enum Op {
    Insert(Vec<V>),
    Update(Pick, Vec<V>),
    DeletePoint(Pick, Vec<V>),
    /// By an interval of the index's first column.
    DeleteRange(Pick, Option<V>, Option<V>),
    DeleteRows(Vec<Vec<V>>),
    Clear,
    ScanPoint(Pick, Vec<V>),
}

#[derive(Debug, Clone)]
struct Transaction {
    ops: Vec<(usize, Op)>,
    commit: bool,
}

fn op(columns: Vec<T>) -> BoxedStrategy<Op> {
    let row = || columns.iter().map(value).collect::<Vec<_>>();
    let first = || columns.first().map_or(Just(V::U8(0)).boxed(), value);
    prop_oneof![
        12 => row().prop_map(Op::Insert),
        10 => (any::<Pick>(), row()).prop_map(|(index, row)| Op::Update(index, row)),
        4 => (any::<Pick>(), row()).prop_map(|(index, row)| Op::DeletePoint(index, row)),
        1 => (any::<Pick>(), prop::option::of(first()), prop::option::of(first()))
            .prop_map(|(index, start, end)| Op::DeleteRange(index, start, end)),
        4 => prop::collection::vec(row(), 0..4).prop_map(Op::DeleteRows),
        1 => Just(Op::Clear),
        3 => (any::<Pick>(), row()).prop_map(|(index, row)| Op::ScanPoint(index, row)),
    ]
    .boxed()
}

fn transactions() -> impl Strategy<Value = Vec<Transaction>> {
    let ops: Vec<_> = def()
        .tables
        .iter()
        .enumerate()
        .map(|(number, table)| {
            let columns = table.columns.iter().map(|c| c.ty.clone()).collect();
            op(columns).prop_map(move |op| (number, op))
        })
        .collect();
    let ops = prop::strategy::Union::new(ops);
    // Long transactions take other ways through commit than short ones.
    let ops = prop_oneof![4 => prop::collection::vec(ops.clone(), 0..10), 1 => prop::collection::vec(ops, 10..120)];
    let transaction =
        (ops, prop::bool::weighted(0.8)).prop_map(|(ops, commit)| Transaction { ops, commit });
    prop::collection::vec(transaction, 1..12)
}

/// A table of the naive database.
#[derive(Clone)]
struct ModelTable {
    id: TableId,
    /// Columns, whether unique, whether compared bit by bit, whether ordered.
    indexes: Vec<(Vec<usize>, bool, bool, bool)>,
    /// Column and value issued last.
    sequences: Vec<(usize, i128)>,
    is_event: bool,
    rows: Vec<Vec<V>>,
}

fn same_key(columns: &[usize], bitwise: bool, a: &[V], b: &[V]) -> bool {
    columns.iter().all(|&c| {
        if bitwise {
            a[c] == b[c]
        } else {
            a[c].value_cmp(&b[c]) == Ordering::Equal
        }
    })
}

impl ModelTable {
    fn fill(&mut self, row: &[V]) -> (Vec<V>, Vec<u8>) {
        let mut row = row.to_vec();
        let mut generated = Vec::new();
        for (column, last) in &mut self.sequences {
            let value = &mut row[*column];
            if matches!(value, V::U64(0) | V::U8(0)) {
                *last += 1;
                *value = match value {
                    V::U8(_) => V::U8(*last as u8),
                    _ => V::U64(*last as u64),
                };
                lightcone_types::bsatn::encode_value(value, &mut generated);
            }
        }
        (row, generated)
    }

    /// Another row than `except` has one of the unique keys, other than in index `known`.
    fn conflict(&self, row: &[V], except: Option<usize>, known: usize) -> bool {
        self.indexes
            .iter()
            .enumerate()
            .any(|(number, (columns, unique, bitwise, _))| {
                let taken = |(n, other): (usize, &Vec<V>)| {
                    Some(n) != except && same_key(columns, *bitwise, other, row)
                };
                *unique && number != known && self.rows.iter().enumerate().any(taken)
            })
    }

    fn bytes(&self) -> Vec<Vec<u8>> {
        let mut rows: Vec<_> = self.rows.iter().map(|values| row(values)).collect();
        rows.sort();
        rows
    }
}

struct Run {
    datastore: Datastore,
    tables: Vec<ModelTable>,
    /// The tables as they were when the transaction began.
    committed: Vec<Vec<Vec<V>>>,
    /// What the first sequence had issued when the last transaction was committed.
    issued: i128,
    /// One payload per commit that had an effect.
    payloads: Vec<Vec<u8>>,
    /// What those behind the first one told.
    told: Vec<Vec<Told>>,
}

/// A row of a table that came, or else went.
type Told = (TableId, bool, Vec<u8>);

fn told(output: &CommitOutput) -> Vec<Told> {
    let ops = output.deltas.ops(0..output.deltas.position());
    let ops = ops.iter().map(|op| {
        let came = op.kind == DeltaKind::Insert;
        (op.table, came, output.deltas.row(op).to_vec())
    });
    let mut told: Vec<Told> = ops.collect();
    told.sort();
    told
}

fn start() -> Run {
    let def = def();
    let mut datastore = creating(&def);
    let mut output = CommitOutput::default();
    assert!(datastore.commit(&mut output).expect("the record fits"));
    let tables: Vec<_> = def
        .tables
        .iter()
        .map(|table| {
            let indexes = table.indexes.iter().map(|index| {
                let list: Vec<_> = index
                    .algorithm
                    .columns()
                    .iter()
                    .map(|c| usize::from(c.0))
                    .collect();
                let ordered = index.algorithm.suffix() != "hash";
                // The composite hash key with a float in it (01 §1.6.2).
                let bitwise = table.name == "float" && !ordered;
                (list, index.unique, bitwise, ordered)
            });
            let id = table_id(&datastore, &table.name);
            datastore.set_watched(id, true);
            ModelTable {
                id,
                indexes: indexes.collect(),
                sequences: table
                    .sequences
                    .iter()
                    .map(|s| (usize::from(s.column.0), 0))
                    .collect(),
                is_event: table.is_event,
                rows: Vec::new(),
            }
        })
        .collect();
    let committed = tables.iter().map(|t| t.rows.clone()).collect();
    Run {
        datastore,
        tables,
        committed,
        issued: 0,
        payloads: vec![output.records],
        told: Vec::new(),
    }
}

impl Run {
    fn index_id(&self, table: usize, index: usize) -> lightcone_types::IndexId {
        self.datastore
            .schema(self.tables[table].id)
            .expect("the table exists")
            .indexes[index]
            .id
    }

    fn op(&mut self, number: usize, op: &Op) {
        let id = self.tables[number].id;
        let has_index = !self.tables[number].indexes.is_empty();
        match op {
            Op::Insert(values) => {
                let mut generated = vec![7];
                let result = self.datastore.insert(id, &row(values), &mut generated);
                let model = &mut self.tables[number];
                let (values, expected) = model.fill(values);
                if model.rows.contains(&values) {
                    assert!(result.is_ok(), "an equal row is there already: {result:?}");
                } else if model.conflict(&values, None, usize::MAX) {
                    assert!(
                        matches!(result, Err(DatastoreError::UniqueAlreadyExists { .. })),
                        "{result:?}"
                    );
                } else {
                    assert!(result.is_ok(), "{result:?}");
                    model.rows.push(values);
                }
                assert_eq!(
                    generated[1..],
                    if result.is_ok() { expected } else { Vec::new() }
                );
            }
            Op::Update(_, _)
            | Op::DeletePoint(_, _)
            | Op::DeleteRange(_, _, _)
            | Op::ScanPoint(_, _)
                if !has_index => {}
            Op::Update(pick, values) => {
                let index = pick.index(self.tables[number].indexes.len());
                let index_id = self.index_id(number, index);
                let mut generated = Vec::new();
                let result = self
                    .datastore
                    .update(id, index_id, &row(values), &mut generated);
                let model = &mut self.tables[number];
                let (columns, unique, bitwise, _) = model.indexes[index].clone();
                if !unique {
                    return assert!(
                        matches!(result, Err(DatastoreError::IndexNotUnique)),
                        "{result:?}"
                    );
                }
                let (values, expected) = model.fill(values);
                let found = model
                    .rows
                    .iter()
                    .position(|other| same_key(&columns, bitwise, other, &values));
                match (found, model.conflict(&values, found, index)) {
                    (Some(found), false) => {
                        assert!(result.is_ok(), "{result:?}");
                        model.rows[found] = values;
                        assert_eq!(generated, expected);
                        return;
                    }
                    (Some(_), true) => {
                        assert!(
                            matches!(result, Err(DatastoreError::UniqueAlreadyExists { .. })),
                            "{result:?}"
                        );
                    }
                    (None, _) => assert!(
                        matches!(result, Err(DatastoreError::NoSuchRow)),
                        "{result:?}"
                    ),
                }
                assert!(generated.is_empty());
            }
            Op::DeletePoint(pick, values) => {
                let index = pick.index(self.tables[number].indexes.len());
                let index_id = self.index_id(number, index);
                let model = &mut self.tables[number];
                let (columns, _, bitwise, _) = model.indexes[index].clone();
                let point: Vec<_> = columns.iter().map(|&c| values[c].clone()).collect();
                let before = model.rows.len();
                model
                    .rows
                    .retain(|other| !same_key(&columns, bitwise, other, values));
                let expected = (before - model.rows.len()) as u32;
                assert_eq!(
                    self.datastore
                        .delete_by_index_point(index_id, &row(&point))
                        .ok(),
                    Some(expected)
                );
            }
            Op::DeleteRange(pick, start, end) => {
                let index = pick.index(self.tables[number].indexes.len());
                let index_id = self.index_id(number, index);
                let (columns, _, _, ordered) = self.tables[number].indexes[index].clone();
                let bound = |tag: u8, value: &Option<V>| match value {
                    Some(value) => [&[tag], &row(std::slice::from_ref(value))[..]].concat(),
                    None => vec![2],
                };
                if columns[0] != 0 {
                    return;
                }
                let (start_bytes, end_bytes) = (bound(0, start), bound(1, end));
                let range = RangeBounds::of_first(&start_bytes, &end_bytes);
                let result = self.datastore.delete_by_index_range(index_id, range);
                if !ordered {
                    return assert!(matches!(result, Err(DatastoreError::WrongIndexAlgorithm)));
                }
                let model = &mut self.tables[number];
                let before = model.rows.len();
                model.rows.retain(|row| {
                    let from_below = start
                        .as_ref()
                        .is_none_or(|s| row[0].value_cmp(s) != Ordering::Less);
                    let from_above = end
                        .as_ref()
                        .is_none_or(|e| row[0].value_cmp(e) == Ordering::Less);
                    !(from_below && from_above)
                });
                assert_eq!(result.ok(), Some((before - model.rows.len()) as u32));
            }
            Op::DeleteRows(list) => {
                let model = &mut self.tables[number];
                let before = model.rows.len();
                model.rows.retain(|row| !list.contains(row));
                let mut bytes = (list.len() as u32).to_le_bytes().to_vec();
                list.iter().for_each(|values| bytes.extend(row(values)));
                let expected = (before - model.rows.len()) as u32;
                assert_eq!(
                    self.datastore.delete_all_by_eq(id, &bytes).ok(),
                    Some(expected)
                );
            }
            Op::Clear => {
                let expected = std::mem::take(&mut self.tables[number].rows).len() as u64;
                assert_eq!(self.datastore.clear(id).ok(), Some(expected));
            }
            Op::ScanPoint(pick, values) => {
                let index = pick.index(self.tables[number].indexes.len());
                let model = &self.tables[number];
                let (columns, _, bitwise, _) = &model.indexes[index];
                let point: Vec<_> = columns.iter().map(|&c| values[c].clone()).collect();
                let expected: usize = model
                    .rows
                    .iter()
                    .filter(|other| same_key(columns, *bitwise, other, values))
                    .map(|values| row(values).len())
                    .sum();
                let mut found = RowBuffer::default();
                self.datastore
                    .index_scan_point(self.index_id(number, index), &row(&point), &mut found)
                    .expect("a good point");
                assert_eq!(found.bytes.len(), expected);
                self.check_parts(number, index, &row(&point), values.len() * 7);
            }
        }
    }

    /// Scans in small parts give the same rows, in the same order, as those that take all at once.
    fn check_parts(&self, number: usize, index: usize, point: &[u8], bytes_max: usize) {
        let (datastore, table) = (&self.datastore, self.tables[number].id);
        let (index, ordered) = (
            self.index_id(number, index),
            self.tables[number].indexes[index].3,
        );
        let all = |read: &dyn Fn(&mut RowBuffer) -> Result<(), DatastoreError>| {
            let mut out = RowBuffer::default();
            read(&mut out).expect("a good scan");
            out.bytes
        };
        let parts = |begin: &dyn Fn(&mut Scan, &mut RowBuffer) -> Result<(), DatastoreError>| {
            let (mut scan, mut out) = (Scan::default(), RowBuffer::default());
            begin(&mut scan, &mut out).expect("a good scan");
            let mut bytes = std::mem::take(&mut out.bytes);
            while scan.has_more() {
                out.clear();
                datastore
                    .continue_scan(&mut scan, bytes_max, &mut out)
                    .expect("a good scan");
                assert!(!out.bytes.is_empty(), "more rows were promised");
                bytes.append(&mut out.bytes);
            }
            bytes
        };
        assert_eq!(
            parts(&|scan, out| datastore.begin_scan(table, scan, bytes_max, out)),
            all(&|out| datastore.scan(table, out))
        );
        assert_eq!(
            parts(&|scan, out| datastore.begin_point_scan(index, point, scan, bytes_max, out)),
            all(&|out| datastore.index_scan_point(index, point, out))
        );
        let from_point = [&[0], point].concat();
        for range in [
            RangeBounds::of_first(&[2], &[2]),
            RangeBounds::of_first(&from_point, &[2]),
        ] {
            if ordered {
                assert_eq!(
                    parts(
                        &|scan, out| datastore.begin_range_scan(index, range, scan, bytes_max, out)
                    ),
                    all(&|out| datastore.index_scan_range(index, range, out))
                );
            }
        }
    }

    fn check(&self) {
        for model in &self.tables {
            assert_eq!(
                rows(&self.datastore, model.id),
                model.bytes(),
                "table {}",
                model.id.0
            );
        }
    }

    fn commit(&mut self) {
        let mut output = CommitOutput::default();
        let changed = self.datastore.commit(&mut output).expect("the record fits");
        assert_eq!(changed, !output.records.is_empty());
        let ops = output.deltas.ops(0..output.deltas.position());
        for (model, before) in self.tables.iter_mut().zip(&mut self.committed) {
            let of_kind = |kind| {
                let ops = ops
                    .iter()
                    .filter(|op| op.table == model.id && op.kind == kind);
                let mut rows: Vec<_> = ops.map(|op| output.deltas.row(op).to_vec()).collect();
                rows.sort();
                rows
            };
            let without = |rows: &[Vec<V>], others: &[Vec<V>]| {
                let mut rows: Vec<_> = rows
                    .iter()
                    .filter(|row| !others.contains(row))
                    .map(|r| row(r))
                    .collect();
                rows.sort();
                rows
            };
            assert_eq!(
                of_kind(DeltaKind::Insert),
                without(&model.rows, before),
                "table {}",
                model.id.0
            );
            assert_eq!(
                of_kind(DeltaKind::Delete),
                without(before, &model.rows),
                "table {}",
                model.id.0
            );
            if model.is_event {
                model.rows.clear();
            }
            *before = model.rows.clone();
        }
        assert!(changed || ops.is_empty());
        let drawn = self.tables.iter().find_map(|table| table.sequences.first());
        self.issued = drawn.map_or(0, |(_, last)| *last);
        if changed {
            self.told.push(told(&output));
            self.payloads.push(output.records);
        }
    }

    fn transaction(&mut self, transaction: &Transaction) {
        self.datastore.begin();
        for (table, op) in &transaction.ops {
            self.op(*table, op);
        }
        self.check();
        if transaction.commit {
            self.commit();
        } else {
            self.datastore.rollback();
            for (model, before) in self.tables.iter_mut().zip(&self.committed) {
                model.rows = before.clone();
            }
        }
        assert!(!self.datastore.in_transaction());
        self.check();
    }

    /// Draws from a sequence of a recovered database: a committed transaction never saw the values before.
    fn issue(&self, datastore: &mut Datastore) {
        datastore.begin();
        let fresh = [V::U64(0), V::U8(1), "fresh".into()];
        // Keys up to 5 are also given by hand, and may be met.
        if let Ok(generated) = insert(datastore, "auto", &fresh) {
            let id = u64::from_le_bytes(generated[..8].try_into().expect("a u64"));
            assert!(i128::from(id) > self.issued, "{id} was issued before");
        }
        datastore.rollback();
    }
}

fn replayed(payloads: &[Vec<u8>]) -> Datastore {
    let mut replayer = Replayer::new(Datastore::new(), LogOffset::FIRST);
    for (offset, payload) in payloads.iter().enumerate() {
        replayer
            .apply(LogOffset::new(offset as u64), 1, payload)
            .expect("the record fits");
    }
    replayer.finish().expect("a good catalog")
}

/// A log with these records, so many in a frame.
fn log_of(payloads: &[Vec<u8>], in_a_frame: usize) -> LocalLog {
    let options = LogOptions {
        preallocate: false,
        ..LogOptions::default()
    };
    let storage = Arc::new(SimStorage::new(1));
    let (mut log, _) = LocalLog::open_on(storage, Path::new("log"), options).expect("a new log");
    let mut first_offset = LogOffset::FIRST;
    for frame in payloads.chunks(in_a_frame) {
        let pieces: Vec<&[u8]> = frame.iter().map(|payload| &payload[..]).collect();
        let frame = Frame {
            first_offset,
            count: frame.len() as u32,
            payload: &pieces,
        };
        log.append(Epoch::FIRST, frame).expect("appended");
        first_offset += pieces.len() as u64;
    }
    log.sync().expect("synced");
    log
}

/// The bytes of each value of a row; values that are no numbers are not equal to themselves.
type Row = Vec<Vec<u8>>;
type Followed = BTreeMap<TableId, Vec<Row>>;

fn values(group: &Group<'_>, schema: &TableSchema) -> Vec<Row> {
    let bytes = |value: V| {
        let mut bytes = Vec::new();
        encode_value(&value, &mut bytes);
        bytes
    };
    let entries = group.entries(schema);
    let rows = entries.map(|values| values.expect("the rows fit the schema"));
    rows.map(|row| row.into_iter().map(bytes).collect())
        .collect()
}

/// The same of all numbers that an index of one column takes for equal (01 §1.6.2).
fn one_float(bytes: &[u8]) -> Vec<u8> {
    let number = f64::from_le_bytes(bytes.try_into().expect("eight bytes"));
    let number = match number.is_nan() {
        true => f64::NAN,
        false => number + 0.0,
    };
    number.to_le_bytes().to_vec()
}

/// Makes the changes of groups of one table.
fn follow(rows: &mut Vec<Row>, groups: &[Group<'_>], schema: &TableSchema) {
    for group in groups {
        let gone = values(group, schema);
        let columns = group.key_columns(schema).unwrap_or_default();
        // Equal keys are the same then.
        let normal = |key: Row| match columns {
            [column] if schema.columns[usize::from(column.0)].ty == T::F64 => {
                vec![one_float(&key[0])]
            }
            _ => key,
        };
        let key = |row: &Row| {
            let values = columns.iter().map(|column| &row[usize::from(column.0)]);
            normal(values.cloned().collect())
        };
        match group.kind {
            GroupKind::DeleteByKey => {
                let gone: Vec<Row> = gone.into_iter().map(normal).collect();
                rows.retain(|row| !gone.contains(&key(row)));
            }
            GroupKind::DeleteRow => rows.retain(|row| !gone.contains(row)),
            GroupKind::Put => rows.retain(|row| !gone.iter().any(|gone| key(gone) == key(row))),
            _ => {}
        }
    }
    for group in groups {
        if matches!(group.kind, GroupKind::Insert | GroupKind::Put) {
            rows.extend(values(group, schema));
        }
    }
}

/// The rows of all tables, by nothing but records and schemas.
fn followed(payloads: &[Vec<u8>], datastore: &Datastore) -> Followed {
    let mut tables = Followed::new();
    for record in payloads.iter().flat_map(|payload| Records::new(payload)) {
        let Record::Transaction(groups) = record.expect("a record") else {
            continue;
        };
        for groups in groups.chunk_by(|a, b| a.table == b.table) {
            let schema = datastore.schema(groups[0].table).expect("it is there");
            follow(tables.entry(schema.id).or_default(), groups, schema);
        }
    }
    tables
}

/// The rows that a table has.
fn rows_of(datastore: &Datastore, schema: &TableSchema) -> Vec<Row> {
    let (mut rows, mut row_count) = (Vec::new(), 0);
    let table = datastore.table(schema.id).expect("it is there");
    table.rows().for_each(|_, row| {
        rows.extend_from_slice(row);
        row_count += 1;
    });
    let group = Group {
        table: schema.id,
        kind: GroupKind::Insert,
        index: None,
        row_count,
        rows: &rows,
    };
    values(&group, schema)
}

proptest! {
    #![proptest_config(config(50))]

    #[test]
    fn behaves_like_a_naive_database(transactions in transactions()) {
        let mut run = start();
        for transaction in &transactions {
            run.transaction(transaction);
        }
        let mut copy = replayed(&run.payloads);
        assert_same(&run.datastore, &copy);
        prop_assert_eq!(run.datastore.snapshot().hashes(), copy.snapshot().hashes());
        run.issue(&mut copy);
    }

    #[test]
    fn a_follower_is_told_what_was_told(transactions in transactions()) {
        let mut run = start();
        for transaction in &transactions {
            run.transaction(transaction);
        }
        let mut follower = replayed(&run.payloads[..1]);
        for model in &run.tables {
            follower.set_watched(model.id, true);
        }
        for (number, payload) in run.payloads.iter().enumerate().skip(1) {
            let mut output = CommitOutput::default();
            for record in Records::new(payload) {
                let record = record.expect("a record");
                prop_assert!(record.changes_only_rows());
                follower.begin();
                follower.apply(LogOffset::new(number as u64), &record).expect("it fits");
                prop_assert!(follower.commit(&mut output).expect("it fits"));
            }
            prop_assert_eq!(&told(&output), &run.told[number - 1]);
        }
        assert_same(&run.datastore, &follower);
        prop_assert_eq!(run.datastore.snapshot().hashes(), follower.snapshot().hashes());
        // A record that makes tables is none that a running database can apply.
        follower.begin();
        let creating = Records::new(&run.payloads[0]).next().expect("a record").expect("a record");
        prop_assert!(follower.apply(LogOffset::FIRST, &creating).is_err());
        follower.rollback();
        prop_assert_eq!(run.datastore.snapshot().hashes(), follower.snapshot().hashes());
    }

    #[test]
    fn recovers_from_snapshot_and_log(transactions in transactions(), at in any::<Pick>()) {
        let directory = tempfile::tempdir().expect("a directory");
        let mut run = start();
        let at = at.index(transactions.len());
        for (number, transaction) in transactions.iter().enumerate() {
            run.transaction(transaction);
            if number == at {
                let store = SnapshotStore::open(directory.path()).expect("a new store");
                let snapshot = run.datastore.snapshot();
                snapshot.write_to(&store, LogOffset::new(run.payloads.len() as u64)).expect("a snapshot");
            }
        }
        let log = log_of(&run.payloads, 2);
        let mut store = SnapshotStore::open(directory.path()).expect("the store");
        let (mut copy, report) = Datastore::recover(Path::new("test"), &mut store, &log).expect("recovered");
        prop_assert_eq!(report.next_offset.get(), run.payloads.len() as u64);
        prop_assert!(report.snapshot_offset.is_some());
        assert_same(&run.datastore, &copy);
        prop_assert_eq!(run.datastore.snapshot().hashes(), copy.snapshot().hashes());
        run.issue(&mut copy);
        // The recovered database goes on like the old one.
        run.payloads.clear();
        run.datastore = copy;
        for model in &run.tables {
            run.datastore.set_watched(model.id, true);
        }
        for model in &mut run.tables {
            // Sequences went on to their reserved bounds; what they issue now is no longer predicted.
            model.sequences.clear();
        }
        for transaction in &transactions {
            let mut transaction = transaction.clone();
            transaction.ops.retain(|(table, _)| def().tables[*table].sequences.is_empty());
            run.transaction(&transaction);
        }
    }

    #[test]
    fn records_and_schemas_are_enough_to_follow(transactions in transactions()) {
        let mut run = start();
        for transaction in &transactions {
            run.transaction(transaction);
        }
        let mut followed = followed(&run.payloads, &run.datastore);
        for schema in run.datastore.schemas() {
            let mut expected = rows_of(&run.datastore, schema);
            let mut found = followed.remove(&schema.id).unwrap_or_default();
            expected.sort();
            found.sort();
            prop_assert_eq!(found, expected, "{}", schema.name);
        }
    }

    #[test]
    fn any_moment_of_the_past_is_found_again(transactions in transactions(), snapshot_at in any::<Pick>(), end in any::<Pick>()) {
        let directory = tempfile::tempdir().expect("a directory");
        let mut run = start();
        let mut pasts = vec![run.datastore.snapshot().hashes()];
        let snapshot_at = snapshot_at.index(transactions.len());
        for (number, transaction) in transactions.iter().enumerate() {
            run.transaction(transaction);
            if pasts.len() < run.payloads.len() {
                pasts.push(run.datastore.snapshot().hashes());
            }
            if number == snapshot_at {
                let store = SnapshotStore::open(directory.path()).expect("a new store");
                let snapshot = run.datastore.snapshot();
                snapshot.write_to(&store, LogOffset::new(run.payloads.len() as u64)).expect("a snapshot");
            }
        }
        // Three transactions in a frame: the end is mostly inside of one.
        let log = log_of(&run.payloads, 3);
        let end = 1 + end.index(pasts.len());
        let mut store = SnapshotStore::open(directory.path()).expect("the store");
        let recovered = Datastore::recover_until(Path::new("test"), &mut store, &log, LogOffset::new(end as u64));
        let (mut past, report) = recovered.expect("recovered");
        prop_assert_eq!(report.next_offset.get(), end as u64);
        prop_assert_eq!(&past.snapshot().hashes(), &pasts[end - 1]);
        let beyond = LogOffset::new(run.payloads.len() as u64 + 1);
        let beyond = Datastore::recover_until(Path::new("test"), &mut store, &log, beyond);
        prop_assert!(beyond.is_err(), "the log does not reach so far");
    }
}
