//! What a module built with the C# packages has (spec 03 §3.1, §3.3, §11.4), written by hand: `_initialize` and preinit
//! functions of the runtime, a `_start` that only the module itself calls, its own stand-ins for WASI, and exceptions
//! that become code 1. No compiler for C# modules can be had here.

use crate::common::*;
use crate::modules;
use lightcone_engine::CommitOutput;
use lightcone_host::{HostLimits, ReducerOutcome};
use lightcone_schema::raw::*;
use lightcone_schema::{ModuleDef, RawModuleDef};
use lightcone_types::{AlgebraicType, Encode as _, ProductType, TypeRef, Typespace};

/// A table with a counted key, and two reducers.
fn definition() -> Vec<u8> {
    use RawModuleDefV10Section as S;
    let reducer = |name: &str, params: ProductType| RawReducerDefV10 {
        source_name: name.into(),
        params,
        visibility: lightcone_schema::Visibility::ClientCallable,
        ok_return_type: AlgebraicType::unit(),
        err_return_type: AlgebraicType::String,
    };
    let row = [("Id", AlgebraicType::U32), ("Name", AlgebraicType::String)];
    let columns = |columns: &[u16]| columns.iter().map(|c| (*c).into()).collect::<Vec<_>>();
    let sections = vec![
        S::Typespace(Typespace::new(vec![AlgebraicType::product(row)])),
        S::Types(vec![RawTypeDefV10 {
            source_name: RawScopedTypeNameV10 {
                scope: vec![],
                source_name: "Person".into(),
            },
            ty: TypeRef(0),
            custom_ordering: true,
        }]),
        S::Tables(vec![RawTableDefV10 {
            source_name: "Person".into(),
            product_type_ref: TypeRef(0),
            primary_key: columns(&[0]),
            indexes: vec![RawIndexDefV10 {
                source_name: Some("Person_Id_idx_btree".into()),
                accessor_name: Some("Id".into()),
                algorithm: RawIndexAlgorithm::BTree(columns(&[0])),
            }],
            constraints: vec![RawConstraintDefV10 {
                source_name: None,
                data: RawConstraintData::Unique(RawUniqueConstraintData {
                    columns: columns(&[0]),
                }),
            }],
            sequences: vec![RawSequenceDefV10 {
                source_name: None,
                column: 0.into(),
                start: None,
                min_value: None,
                max_value: None,
                increment: 1,
            }],
            table_type: lightcone_schema::TableKind::User,
            table_access: lightcone_schema::TableAccess::Public,
            default_values: vec![],
            is_event: false,
        }]),
        S::Reducers(vec![
            reducer("Add", ProductType::new([("name", AlgebraicType::String)])),
            reducer("Fail", ProductType::unit()),
        ]),
    ];
    let mut out = Vec::new();
    RawModuleDef::V10(RawModuleDefV10 { sections }).encode(&mut out);
    out
}

fn escaped(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("\\{byte:02x}")).collect()
}

/// Below 1000 are texts, from 1000 on is the row, at 2000 the definition.
fn program() -> Vec<u8> {
    let definition = definition();
    let text = format!(
        r#"(module
            (import "spacetime_10.0" "table_id_from_name" (func $table (param i32 i32 i32) (result i32)))
            (import "spacetime_10.0" "index_id_from_name" (func $index (param i32 i32 i32) (result i32)))
            (import "spacetime_10.0" "datastore_insert_bsatn" (func $insert (param i32 i32 i32) (result i32)))
            (import "spacetime_10.0" "bytes_sink_write" (func $write (param i32 i32 i32) (result i32)))
            (import "spacetime_10.0" "bytes_source_read" (func $read (param i32 i32 i32) (result i32)))
            (import "spacetime_10.0" "console_log" (func $log (param i32 i32 i32 i32 i32 i32 i32 i32)))
            (import "spacetime_10.0" "volatile_nonatomic_schedule_immediate" (func (param i32 i32 i32 i32)))
            (import "spacetime_10.0" "datastore_btree_scan_bsatn" (func (param i32 i32 i32 i32 i32 i32 i32 i32 i32) (result i32)))
            (import "spacetime_10.1" "bytes_source_remaining_length" (func $remaining (param i32 i32) (result i32)))
            (import "spacetime_10.2" "get_jwt" (func (param i32 i32) (result i32)))
            (import "spacetime_10.3" "procedure_start_mut_tx" (func (param i32) (result i32)))
            (import "spacetime_10.4" "datastore_index_scan_point_bsatn" (func (param i32 i32 i32 i32) (result i32)))
            (memory (export "memory") 2)
            (global $step (mut i32) (i32.const 0))
            (data (i32.const 100) "Person")
            (data (i32.const 200) "System.Exception: no way")
            (data (i32.const 2000) "{definition}")
            (func $expect (param $step i32)
                (if (i32.ne (global.get $step) (local.get $step)) (then unreachable))
                (global.set $step (i32.add (local.get $step) (i32.const 1))))
            ;; A function of WASI, as the packages bring it: it answers ENOSYS.
            (func $fd_write (param i32 i32 i32 i32) (result i32) (i32.const 52))
            (func (export "_initialize") (call $expect (i32.const 0)))
            (func $start (export "_start") (call $expect (i32.const 1))
                (drop (call $fd_write (i32.const 1) (i32.const 0) (i32.const 0) (i32.const 0))))
            (func (export "__preinit__20_find_reducers") (call $expect (i32.const 2)))
            (func (export "__preinit__10_startup") (call $start))
            (func (export "__describe_module__") (param $sink i32)
                (call $expect (i32.const 3))
                (i32.store (i32.const 16) (i32.const {length}))
                (drop (call $write (local.get $sink) (i32.const 2000) (i32.const 16))))
            (func (export "__call_reducer__") (param $id i32)
                (param i64 i64 i64 i64 i64 i64 i64) (param $args i32) (param $sink i32) (result i32)
                (if (local.get $id) (then
                    (i32.store (i32.const 16) (i32.const 24))
                    (drop (call $write (local.get $sink) (i32.const 200) (i32.const 16)))
                    (return (i32.const 1))))
                (if (call $table (i32.const 100) (i32.const 6) (i32.const 20)) (then unreachable))
                ;; The row: a key of zero, and the argument as it came.
                (i32.store (i32.const 1000) (i32.const 0))
                (if (call $remaining (local.get $args) (i32.const 24)) (then unreachable))
                (drop (call $read (local.get $args) (i32.const 1004) (i32.const 24)))
                (i32.store (i32.const 24) (i32.add (i32.load (i32.const 24)) (i32.const 4)))
                (if (call $insert (i32.load (i32.const 20)) (i32.const 1000) (i32.const 24)) (then unreachable))
                ;; The key that was drawn, as the level of a record.
                (call $log (i32.load (i32.const 1000)) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 7)
                    (i32.const 1008) (i32.load (i32.const 1004)))
                (i32.const 0)))"#,
        definition = escaped(&definition),
        length = definition.len(),
    );
    wat::parse_str(&text).expect("valid text format")
}

fn started() -> (Running, ModuleDef) {
    let mut running = Running::start_binary(&program(), HostLimits::default());
    let def = ModuleDef::from_bsatn(running.module.describe())
        .unwrap_or_else(|errors| panic!("{errors}"));
    running.datastore = modules::database(&def);
    (running, def)
}

#[test]
fn the_runtime_starts_in_its_order_and_reducers_run() {
    let (mut running, def) = started();
    assert_eq!(def.root.tables[0].name, "person");
    let name = [&3_u32.to_le_bytes()[..], b"bob"].concat();
    running.datastore.begin();
    assert_eq!(running.call(0, &name), ReducerOutcome::Ok);
    assert_eq!(running.call(0, &name), ReducerOutcome::Ok);
    running
        .datastore
        .commit(&mut CommitOutput::default())
        .expect("the record fits");
    let lines = running.console.lines();
    assert!(
        lines[0].contains(r#""level":"Warn""#) && lines[0].contains(r#""message":"bob""#),
        "key 1: {lines:?}"
    );
    assert!(lines[1].contains(r#""level":"Info""#), "key 2: {lines:?}");
}

#[test]
fn exceptions_are_user_errors_and_instances_are_made_again() {
    let (mut running, _) = started();
    for _ in 0..2 {
        let outcome = running.call(1, &[]);
        assert_eq!(
            outcome,
            ReducerOutcome::UserError("System.Exception: no way".into())
        );
        running.datastore.rollback();
        // Each instance starts its runtime once, in the same order.
        running.replace();
    }
}

#[test]
fn what_wasi_would_offer_is_not_there() {
    let text = refusal(&reducer(
        r#"(import "spacetime_10.0" "identity" (func (param i32)))
           (import "wasi_snapshot_preview1" "fd_write" (func (param i32 i32 i32 i32) (result i32)))"#,
        "(i32.const 0)",
    ));
    assert!(text.contains("wasi_snapshot_preview1::fd_write"), "{text}");
}
