//! `__call_view__` and `__call_view_anon__` (spec 03 §11.7, §14).

use crate::common;
use crate::common::{Running, IDENTITY_HEX};
use lightcone_host::{ReadSet, ReadView, ViewCall, ViewOutcome};
use lightcone_types::Identity;

/// A module with the bodies of its views, whose locals are `$id`, `$s0`, `$args` and `$sink`.
fn views(definitions: &str, sender_body: &str, anonymous_body: &str) -> Running {
    Running::start(&format!(
        r#"(module
            (import "spacetime_10.0" "bytes_sink_write" (func $write (param i32 i32 i32) (result i32)))
            (import "spacetime_10.0" "datastore_insert_bsatn" (func $insert (param i32 i32 i32) (result i32)))
            (import "spacetime_10.0" "datastore_table_scan_bsatn" (func $scan (param i32 i32) (result i32)))
            (memory (export "memory") 1)
            {definitions}
            (func (export "__describe_module__") (param i32))
            (func (export "__call_reducer__") (param i32 i64 i64 i64 i64 i64 i64 i64 i32 i32) (result i32) (i32.const 0))
            (func (export "__call_view__") (param $id i32)
                (param $s0 i64) (param $s1 i64) (param $s2 i64) (param $s3 i64) (param $args i32) (param $sink i32) (result i32)
                {sender_body})
            (func (export "__call_view_anon__") (param $id i32) (param $args i32) (param $sink i32) (result i32)
                {anonymous_body}))"#
    ))
}

fn call(module: &mut Running, id: u32, sender: Option<Identity>) -> (ViewOutcome, ReadSet) {
    let call = ViewCall {
        id,
        name: &"test_view".into(),
        sender,
        args: &[],
    };
    let mut reads = ReadSet::default();
    module.datastore.begin();
    let view = ReadView::of(&mut module.datastore);
    let outcome = module.instance.call_view(view, &call, &mut reads);
    module.datastore.rollback();
    (outcome, reads)
}

fn sender() -> Option<Identity> {
    Identity::from_hex(IDENTITY_HEX).ok()
}

#[test]
fn views_get_who_looks_and_return_what_their_code_says() {
    // The length 6 stands at 100; at 8 is a header with no rows, behind it a byte that is the lowest of the identity.
    let body = "(i32.store (i32.const 100) (i32.const 6))
        (i64.store8 (i32.const 13) (local.get $s0))
        (drop (call $write (local.get $sink) (i32.const 8) (i32.const 100)))
        (i32.add (local.get $id) (local.get $args))";
    let mut module = views(
        "",
        body,
        &body
            .replace("$s0", "$s")
            .replace("(i64.store8 (i32.const 13) (local.get $s))", ""),
    );
    let with_sender = |code, sender| call(&mut module, code, sender).0;
    let mut with_sender = with_sender;
    let rows = ViewOutcome::Rows(vec![0, 0, 0, 0, 0x20]);
    assert_eq!(with_sender(2, sender()), rows, "a header first");
    let legacy = ViewOutcome::Rows(vec![0, 0, 0, 0, 0, 0x20]);
    assert_eq!(with_sender(0, sender()), legacy, "the array alone");
    for code in [1, 3] {
        let outcome = with_sender(code, sender());
        assert!(matches!(outcome, ViewOutcome::Failed { .. }), "{code}");
    }
    let outcome = with_sender(2, None);
    assert!(matches!(outcome, ViewOutcome::Rows(_)), "{outcome:?}");
}

#[test]
fn views_read_and_do_not_write_and_may_trap() {
    let mut module = views(
        "",
        // A system table: every database has it.
        "(drop (call $scan (i32.const 1) (i32.const 8)))
         (call $insert (i32.const 4096) (i32.const 8) (i32.const 4))",
        "unreachable",
    );
    let (outcome, reads) = call(&mut module, 0, sender());
    let ViewOutcome::Failed { message } = outcome else {
        panic!("{outcome:?}");
    };
    assert!(message.ends_with("unknown code 19"), "{message}");
    let read: Vec<_> = reads
        .tables()
        .map(|(id, reads)| (id.0, reads.whole))
        .collect();
    assert_eq!(read, [(1, true)]);
    assert!(!module.instance.is_poisoned());

    let (outcome, _) = call(&mut module, 0, None);
    assert!(matches!(outcome, ViewOutcome::Failed { .. }), "{outcome:?}");
    assert!(module.instance.is_poisoned());
}

#[test]
fn a_module_without_views_says_so() {
    let mut module = Running::start(&common::reducer(
        "(import \"spacetime_10.0\" \"bytes_sink_write\" (func (param i32 i32 i32) (result i32)))",
        "(i32.const 0)",
    ));
    let (outcome, _) = call(&mut module, 0, sender());
    let ViewOutcome::Failed { message } = outcome else {
        panic!("{outcome:?}");
    };
    assert!(message.contains("`__call_view__`"), "{message}");
}
