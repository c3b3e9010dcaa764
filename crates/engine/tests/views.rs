//! Backing tables of views: what the catalog says of them, who writes them, and where their rows are not (02 §10.3).

use crate::common;
use crate::common::{module, row, table};
use lightcone_engine::{CommitOutput, Datastore, DatastoreError, RowBuffer, ViewInstance};
use lightcone_schema::{ColumnDef, ModuleDef, TableSchema, ViewDef};
use lightcone_table::DeltaKind;
use lightcone_types::{
    AlgebraicType as T, AlgebraicValue as V, ColId, Encode, ProductType, TypeRef,
};
use proptest::prelude::*;

const A: ViewInstance = [1; 32];
const B: ViewInstance = [2; 32];

/// A module with a table and a view of `id` and `text`, keyed by `id` if that is wanted.
fn definition(has_key: bool) -> ModuleDef {
    let mut def = module(vec![table("t", &[("x", T::U32)])]);
    let column = |name: &str, ty: T| ColumnDef {
        name: name.into(),
        source_name: format!("{name}Source"),
        ty,
        default: None,
    };
    def.views = vec![ViewDef {
        name: "mine".into(),
        source_name: "mineSource".into(),
        index: 0,
        id: 0,
        is_public: true,
        is_anonymous: false,
        params: ProductType::unit(),
        params_typespace: def.typespace.clone(),
        return_type: T::U8,
        is_query: false,
        row_type: TypeRef(0),
        columns: vec![column("id", T::U32), column("text", T::String)],
        primary_key: has_key.then_some(ColId(0)),
    }];
    def
}

fn created(has_key: bool) -> (Datastore, std::sync::Arc<TableSchema>, CommitOutput) {
    let def = definition(has_key);
    let mut datastore = common::creating(&def);
    assert_eq!(datastore.create_views(&def).expect("created"), 1);
    assert_eq!(datastore.create_views(&def).expect("again"), 0);
    let schema = datastore.view_table("mine").expect("it is there").clone();
    datastore.set_watched(schema.id, true);
    let mut output = CommitOutput::default();
    assert!(datastore.commit(&mut output).expect("the record fits"));
    output.clear();
    (datastore, schema, output)
}

fn array(rows: &[(u32, &str)]) -> Vec<u8> {
    let mut bytes = (rows.len() as u32).to_vec();
    for (id, text) in rows {
        bytes.extend(row(&[V::U32(*id), V::String((*text).into())]));
    }
    bytes
}

/// The rows of an instance, sorted and without what is hidden.
fn rows_of(datastore: &Datastore, schema: &TableSchema, instance: &ViewInstance) -> Vec<Vec<u8>> {
    let mut rows = rows_in_order(datastore, schema, instance);
    rows.sort();
    rows
}

/// The same as they are found.
fn rows_in_order(
    datastore: &Datastore,
    schema: &TableSchema,
    instance: &ViewInstance,
) -> Vec<Vec<u8>> {
    let mut found = RowBuffer::default();
    datastore
        .index_scan_point(schema.indexes[0].id, instance, &mut found)
        .expect("a point");
    let table = datastore.table(schema.id).expect("it is there");
    let mut rows = Vec::new();
    let mut rest = &found.bytes[..];
    while !rest.is_empty() {
        let length = table.layout().validate_prefix(rest).expect("a row");
        rows.push(rest[32..length].to_vec());
        rest = &rest[length..];
    }
    rows
}

#[test]
fn the_catalog_describes_them() {
    let (datastore, schema, _) = created(true);
    let names: Vec<_> = schema.columns.iter().map(|c| c.name.as_str()).collect();
    assert_eq!(names, ["arg_hash", "id", "text"]);
    let view = schema.view.expect("it is of a view");
    assert_eq!((view.id, view.is_anonymous), (4096, false));
    let indexes: Vec<_> = schema.indexes.iter().map(|i| i.name.as_str()).collect();
    assert_eq!(
        indexes,
        ["mine_arg_hash_idx_btree", "mine_arg_hash_id_idx_btree"]
    );
    assert_eq!(schema.column_by_name("arg_hash"), None, "it is hidden");
    assert_eq!(
        schema.column_by_accessor_or_name("idSource"),
        Some(ColId(1))
    );
    assert_eq!(datastore.table_id_from_name("mineSource"), Some(schema.id));
    // Made again from the catalog, it is the same.
    let (_, without_key, _) = created(false);
    assert_eq!(without_key.indexes.len(), 1);
}

#[test]
fn only_the_database_writes_them() {
    let (mut datastore, schema, _) = created(false);
    datastore.begin();
    let full = [&A[..], &row(&[V::U32(1), V::String("a".into())])].concat();
    let refused = |result: Result<(), DatastoreError>| {
        let error = result.expect_err("it is refused");
        assert!(matches!(error, DatastoreError::View { .. }), "{error}");
        assert_eq!(error.errno(), None, "it ends the call");
    };
    refused(datastore.insert(schema.id, &full, &mut Vec::new()));
    refused(datastore.clear(schema.id).map(drop));
    refused(
        datastore
            .delete_all_by_eq(schema.id, &[&1_u32.to_le_bytes()[..], &full].concat())
            .map(drop),
    );
    refused(
        datastore
            .delete_by_index_point(schema.indexes[0].id, &A)
            .map(drop),
    );
    datastore.rollback();
}

#[test]
fn their_rows_are_in_deltas_and_in_nothing_else() {
    let (mut datastore, schema, mut output) = created(false);
    datastore.begin();
    datastore
        .replace_view_rows(schema.id, &A, &array(&[(1, "a"), (2, "b"), (1, "a")]))
        .expect("rows");
    assert!(
        !datastore.commit(&mut output).expect("the record fits"),
        "there is no record"
    );
    assert!(output.records.is_empty());
    assert_eq!(output.deltas.position(), 2, "equal rows are one");
    output.clear();

    // Beside a change that is logged, and only what differs.
    let t = common::table_id(&datastore, "t");
    datastore.begin();
    datastore
        .insert(t, &row(&[V::U32(5)]), &mut Vec::new())
        .expect("a row");
    datastore
        .replace_view_rows(schema.id, &A, &array(&[(2, "b"), (3, "c")]))
        .expect("rows");
    assert!(datastore.commit(&mut output).expect("the record fits"));
    let kinds: Vec<_> = output
        .deltas
        .ops(0..2)
        .iter()
        .map(|op| (op.table, op.kind))
        .collect();
    assert_eq!(
        kinds,
        [
            (schema.id, DeltaKind::Delete),
            (schema.id, DeltaKind::Insert)
        ]
    );
    let text = b"c";
    assert!(!output
        .records
        .windows(4 + 4 + 1)
        .any(|w| w.ends_with(text) && w[4..8] == 1_u32.to_le_bytes()));

    let snapshot = datastore.snapshot();
    assert!(snapshot
        .tables()
        .iter()
        .all(|table| table.schema.id != schema.id));
}

#[test]
fn wrong_rows_leave_everything_as_it_was() {
    let (mut datastore, schema, mut output) = created(true);
    datastore.begin();
    datastore
        .replace_view_rows(schema.id, &A, &array(&[(1, "a"), (2, "b")]))
        .expect("rows");
    datastore
        .replace_view_rows(schema.id, &B, &array(&[(1, "of another")]))
        .expect("rows");
    datastore.commit(&mut output).expect("the record fits");
    let before = rows_of_committed(&mut datastore, &schema);
    let mut short = array(&[(3, "c")]);
    short.truncate(short.len() - 1);
    for wrong in [
        array(&[(2, "new"), (9, "x"), (9, "y")]),
        short,
        vec![5, 0, 0, 0],
        Vec::new(),
    ] {
        datastore.begin();
        let changes = datastore.change_count();
        assert!(datastore.replace_view_rows(schema.id, &A, &wrong).is_err());
        assert_eq!(datastore.change_count(), changes);
        datastore.commit(&mut output).expect("the record fits");
        assert_eq!(rows_of_committed(&mut datastore, &schema), before);
    }
}

fn rows_of_committed(datastore: &mut Datastore, schema: &TableSchema) -> [Vec<Vec<u8>>; 2] {
    datastore.begin();
    let rows = [
        rows_of(datastore, schema, &A),
        rows_of(datastore, schema, &B),
    ];
    datastore.rollback();
    rows
}

/// Whatever was there before, and whatever has become free meanwhile.
#[test]
fn rows_come_in_the_order_in_which_they_were_returned() {
    let (mut datastore, schema, mut output) = created(true);
    let lists: [&[u32]; 6] = [
        &[1, 2],
        &[7, 3, 9, 1, 2, 8, 4],
        &[3, 9, 2, 4],
        &[5, 3, 9, 2, 4, 11, 10],
        &[4, 5],
        &[9, 8, 7, 6, 5, 4, 3, 2, 1, 0],
    ];
    for list in lists {
        for instance in [&A, &B] {
            let rows: Vec<(u32, &str)> = list.iter().map(|id| (*id, "text")).collect();
            datastore.begin();
            let replaced = datastore.replace_view_rows(schema.id, instance, &array(&rows));
            replaced.expect("rows");
            let expected: Vec<_> = rows
                .iter()
                .map(|(id, text)| row(&[V::U32(*id), V::String((*text).into())]))
                .collect();
            assert_eq!(rows_in_order(&datastore, &schema, instance), expected);
            output.clear();
            datastore.commit(&mut output).expect("the record fits");
        }
    }
    // What only moves is no change.
    datastore.begin();
    let turned: Vec<(u32, &str)> = (0..10).map(|id| (id, "text")).collect();
    let replaced = datastore.replace_view_rows(schema.id, &A, &array(&turned));
    replaced.expect("rows");
    output.clear();
    datastore.commit(&mut output).expect("the record fits");
    assert_eq!(output.deltas.position(), 0);
}

proptest! {
    #![proptest_config(common::config(64))]

    /// Whatever comes, good or wrong, committed or taken back: an instance has the rows of its last good evaluation.
    #[test]
    fn instances_have_their_last_rows(
        has_key in any::<bool>(),
        steps in prop::collection::vec((any::<bool>(), prop::collection::vec((0_u32..4, 0_usize..3), 0..5), any::<bool>()), 1..20),
    ) {
        let (mut datastore, schema, mut output) = created(has_key);
        let mut expected = [Vec::new(), Vec::new()];
        for (is_second, rows, is_kept) in steps {
            let rows: Vec<(u32, &str)> = rows.iter().map(|(id, n)| (*id, ["a", "bb", "ccc"][*n])).collect();
            let instance = if is_second { &B } else { &A };
            datastore.begin();
            let result = datastore.replace_view_rows(schema.id, instance, &array(&rows));
            let mut distinct: Vec<Vec<u8>> = rows.iter().map(|(id, text)| row(&[V::U32(*id), V::String((*text).into())])).collect();
            distinct.sort();
            distinct.dedup();
            let mut ids: Vec<_> = distinct.iter().map(|row| row[..4].to_vec()).collect();
            ids.dedup();
            prop_assert_eq!(result.is_ok(), !has_key || ids.len() == distinct.len());
            let is_good = result.is_ok();
            if is_kept {
                datastore.commit(&mut output).expect("the record fits");
            } else {
                datastore.rollback();
            }
            if is_good && is_kept {
                expected[usize::from(is_second)] = distinct;
            }
            prop_assert_eq!(&rows_of_committed(&mut datastore, &schema), &expected);
        }
    }
}
