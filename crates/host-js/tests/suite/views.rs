//! `__call_view__`, `__call_view_anon__` and what they read (spec 04 §6.2, 03 §14).

use lightcone_host::{HostLimits, ReadSet, ReadView, ViewCall, ViewOutcome};
use lightcone_types::Identity;

use crate::common::{identity, script, small_limits, Running, SENDER};

/// A module around the bodies of its hooks for views.
fn views(sender_body: &str, anonymous_body: &str, limits: HostLimits) -> Running {
    let hooks = format!(
        "__call_view__(id, sender, args) {{ {sender_body} }}, __call_view_anon__(id, args) {{ {anonymous_body} }}"
    );
    let program = script("", "").replace("__call_view__: none, __call_view_anon__: none", &hooks);
    Running::loaded(&program, limits)
}

fn call(module: &mut Running, sender: Option<Identity>) -> (ViewOutcome, ReadSet) {
    let call = ViewCall {
        id: 3,
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
    Some(identity(SENDER))
}

fn failed(outcome: ViewOutcome) -> String {
    match outcome {
        ViewOutcome::Failed { message } => message,
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_hooks_get_what_the_chapter_says_and_return_rows_or_queries() {
    let mut module = views(
        "log(id, sender, args instanceof Uint8Array, args.length, this === hooks);\n\
         return { data: new Uint8Array([9, 0, 1, 0, 0, 0, 7, 9]).subarray(1, 7) };",
        "log(id, args instanceof Uint8Array, args.length, arguments.length, this === hooks);\n\
         return { data: new Uint8Array([1, 2, 0, 0, 0, 104, 105]) };",
        small_limits(),
    );
    let (rows, reads) = call(&mut module, sender());
    assert_eq!(rows, ViewOutcome::Rows(vec![1, 0, 0, 0, 7]));
    assert_eq!(reads, ReadSet::default());
    let (query, _) = call(&mut module, None);
    assert_eq!(query, ViewOutcome::Query("hi".into()));
    let messages = module.console.messages();
    assert!(messages[0].starts_with("Info: 3 "), "{messages:?}");
    assert!(messages[0].ends_with(" true 0 true"), "{messages:?}");
    assert_eq!(messages[1], "Info: 3 true 0 2 true");
}

#[test]
fn what_a_view_reads_is_noted_and_it_cannot_write() {
    let mut module = views(
        "const table = sys.table_id_from_name('person'), index = sys.index_id_from_name('person_id_idx_btree');\n\
         const key = new Uint8Array(8).buffer;\n\
         log(attempt(() => sys.datastore_insert_bsatn(table, new Uint8Array(13).buffer, 13)));\n\
         log(attempt(() => sys.datastore_clear === undefined ? sys21.datastore_clear(table) : sys.datastore_clear(table)));\n\
         log(attempt(() => sys.procedure_start_mut_tx()));\n\
         sys.datastore_index_scan_point_bsatn(index, key, 8);\n\
         sys.datastore_table_row_count(table);\n\
         return { data: new Uint8Array(5) };",
        "sys.datastore_table_scan_bsatn(sys.table_id_from_name('person'));\n\
         throw new Error('after reading');",
        small_limits(),
    );
    let (outcome, reads) = call(&mut module, sender());
    assert_eq!(outcome, ViewOutcome::Rows(vec![0; 4]));
    let messages = module.console.messages();
    assert!(messages[0].contains("errno 19"), "{messages:?}");
    assert!(messages[1].contains("errno 19"), "{messages:?}");
    assert!(messages[2].contains("errno 17"), "{messages:?}");
    let (_, of_table) = reads.tables().next().expect("it has read");
    assert!(of_table.count && !of_table.whole);
    assert_eq!(of_table.points.len(), 1);
    assert!(of_table.points.iter().all(|(_, key)| **key == [0; 8]));

    let (outcome, reads) = call(&mut module, None);
    assert!(failed(outcome).contains("after reading"));
    let (_, of_table) = reads.tables().next().expect("it has read");
    assert!(of_table.whole, "also if it fails");
    assert!(!module.instance.is_poisoned());
}

#[test]
fn senseless_results_and_endless_views_fail() {
    for result in ["undefined", "{}", "{ data: [1] }", "new Uint8Array(5)"] {
        let mut module = views(&format!("return {result};"), "", small_limits());
        let text = failed(call(&mut module, sender()).0);
        assert!(text.contains("data: Uint8Array"), "{result}: {text}");
    }
    let mut module = views(
        "for (;;);",
        "return { data: new Uint8Array(5) };",
        small_limits(),
    );
    assert!(matches!(
        call(&mut module, sender()).0,
        ViewOutcome::TimedOut { .. }
    ));
    if module.instance.is_poisoned() {
        module.replace();
    }
    assert_eq!(call(&mut module, None).0, ViewOutcome::Rows(vec![0; 4]));
}
