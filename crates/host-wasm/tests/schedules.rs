//! Rows of schedule tables with a time that is too far away: errno 13, and no row (03 §8.4, §8.5).

use crate::common::*;
use crate::script;
use crate::script::Script;
use lightcone_engine::Datastore;
use lightcone_schema::raw::*;
use lightcone_schema::{IndexAlgorithm, ModuleDef, TableAccess, TableKind};
use lightcone_types::{AlgebraicType, ColId, ProductType, TypeRef, Typespace};

/// `timer { id: u64 autoinc pk, at: ScheduleAt }`, which calls `fire`.
fn timers() -> Datastore {
    let timer = AlgebraicType::product([
        ("id", AlgebraicType::U64),
        ("at", AlgebraicType::schedule_at()),
    ]);
    let table = RawTableDefV9 {
        name: "timer".into(),
        product_type_ref: TypeRef(0),
        primary_key: vec![ColId(0)],
        indexes: vec![RawIndexDefV9 {
            name: Some("timer_id_idx_btree".into()),
            accessor_name: Some("timer_id".into()),
            algorithm: IndexAlgorithm::BTree(vec![ColId(0)]),
        }],
        constraints: vec![RawConstraintDefV9 {
            name: None,
            data: RawConstraintData::Unique(RawUniqueConstraintData {
                columns: vec![ColId(0)],
            }),
        }],
        sequences: vec![RawSequenceDefV9 {
            name: None,
            column: ColId(0),
            start: None,
            min_value: None,
            max_value: None,
            increment: 1,
        }],
        schedule: Some(RawScheduleDefV9 {
            name: None,
            reducer_name: "fire".into(),
            scheduled_at_column: ColId(1),
        }),
        table_type: TableKind::User,
        table_access: TableAccess::Public,
    };
    let fire = RawReducerDefV9 {
        name: "fire".into(),
        params: ProductType::new([("timer", AlgebraicType::Ref(TypeRef(0)))]),
        lifecycle: None,
    };
    let def = RawModuleDefV9 {
        typespace: Typespace { types: vec![timer] },
        tables: vec![table],
        reducers: vec![fire],
        types: vec![RawTypeDefV9 {
            name: RawScopedTypeNameV9 {
                scope: vec![],
                name: "Timer".into(),
            },
            ty: TypeRef(0),
            custom_ordering: true,
        }],
        ..RawModuleDefV9::default()
    };
    let def =
        ModuleDef::validate(RawModuleDef::V9(def)).unwrap_or_else(|errors| panic!("{errors}"));
    let mut datastore = Datastore::new();
    datastore.begin();
    datastore.bootstrap();
    datastore.create_tables(&def).unwrap();
    datastore
        .commit(&mut Default::default())
        .expect("the record fits");
    datastore
}

/// Tag 0 is an interval, 1 a time; microseconds.
fn row(id: u64, tag: u8, us: i64) -> Vec<u8> {
    [&id.to_le_bytes()[..], &[tag], &us.to_le_bytes()].concat()
}

#[test]
fn a_time_too_far_away_is_errno_13_and_leaves_no_row() {
    let mut running = Running::start_with(&script::interpreter(), small_limits());
    let mut datastore = timers();
    let table = datastore.table_id_from_name("timer").expect("exists").0;
    let index = datastore
        .index_id_from_name("timer_id_idx_btree")
        .expect("exists")
        .0;
    datastore.begin();
    running.datastore = datastore;
    let too_long_us = ((1_i64 << 36) - 1) * 1000;

    let mut script = Script::default();
    let first = script.insert(table, &row(0, 0, too_long_us - 1));
    let far = script.insert(table, &row(0, 0, too_long_us));
    script.insert(table, &row(0, 0, -too_long_us));
    script.insert(table, &row(0, 1, i64::MAX));
    script.insert(table, &row(0, 1, i64::MIN));
    script.update(table, index, &row(1, 0, 5));
    script.update(table, index, &row(1, 0, too_long_us));
    script.update(table, index, &row(1, 1, i64::MAX));
    let count = script.put(&[0; 8]);
    script.call(
        "datastore_table_row_count",
        &[table, Script::pointer(count)],
    );
    script.with_bytes(
        "datastore_index_scan_point_bsatn",
        index,
        &[1, 0, 0, 0, 0, 0, 0, 0],
    );
    let found = script.advance(1, 64);
    let report = script.run(&mut running);
    assert_eq!(report.codes, [0, 13, 13, 13, 0, 0, 13, 13, 0, 0, -1]);
    assert_eq!(report.u32(first.1), 8, "the id was generated");
    assert_eq!(report.u32(far.1), 17, "the length stays on failure");
    assert_eq!(report.bytes(far.0, 17), row(0, 0, too_long_us));
    assert_eq!(report.u64(count), 2);
    assert_eq!(report.rows(found), row(1, 0, 5));
}
