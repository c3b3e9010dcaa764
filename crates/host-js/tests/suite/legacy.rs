//! Version 1 of the ABI (§10): a module made with the last published 1.x package, and programs written by hand.

use lightcone_host::{
    HostLimits, ProcedureOutcome, ReadSet, ReadView, ReducerOutcome, ViewCall, ViewOutcome,
};
use lightcone_types::{Encode as _, Identity};

use crate::common::{identity, refusal, small_limits, Running, SENDER};

/// A program around the body of its reducer hook. `sys` has the functions of all versions 1.x.
fn script(definitions: &str, body: &str) -> String {
    format!(
        "import * as sys10 from 'spacetime:sys@1.0'; import * as sys11 from 'spacetime:sys@1.1';\n\
         import * as sys12 from 'spacetime:sys@1.2'; import * as sys13 from 'spacetime:sys@1.3';\n\
         const sys = {{ ...sys13, ...sys12, ...sys10 }};\n\
         const log = (...values) => sys.console_log(2, values.map(String).join(' '));\n\
         const attempt = (f) => {{ try {{ return String(f()); }} catch (e) {{\n\
           return e.__code_error__ === undefined ? (e.__buffer_too_small__ === undefined ? String(e) : `small ${{e.__buffer_too_small__}}`)\n\
             : `code ${{e.__code_error__}} ${{Object.isSealed(e)}} ${{e.__error_message__}}`; }} }};\n\
         {definitions}\n\
         sys10.register_hooks({{\n\
           __describe_module__: () => new Uint8Array(0),\n\
           __call_reducer__: function (id, sender, connection, timestamp, args) {{ {body}; return {{ tag: 'ok' }}; }},\n\
         }});\n"
    )
}

fn running(definitions: &str, body: &str) -> Running {
    Running::loaded(&script(definitions, body), small_limits())
}

fn person(name: &str, age: u8) -> Vec<u8> {
    let mut args = Vec::new();
    name.encode(&mut args);
    args.push(age);
    args
}

fn view(module: &mut Running, sender: Option<Identity>) -> ViewOutcome {
    let call = ViewCall {
        id: 0,
        name: &"test_view".into(),
        sender,
        args: &[],
    };
    module.datastore.begin();
    let view = ReadView::of(&mut module.datastore);
    let outcome = module
        .instance
        .call_view(view, &call, &mut ReadSet::default());
    module.datastore.rollback();
    outcome
}

#[test]
fn a_module_of_the_last_1_x_package_runs() {
    let mut module = Running::bundle("legacy");
    for (name, age) in [("bob", 7), ("eve", 7)] {
        let outcome = module.call_named("add", &person(name, age));
        assert_eq!(outcome, ReducerOutcome::Ok);
    }
    assert_eq!(
        module.console.messages(),
        [
            "Info: inserted 1 1234 1700000000000000",
            "Info: inserted 2 1234 1700000000000000"
        ]
    );
    assert_eq!(module.call_named("look", &[]), ReducerOutcome::Ok);
    assert_eq!(
        module.console.messages(),
        [
            "Info: bob,eve 2",
            "Info: bob,eve",
            "Info: 9 true ",
            "Info: UniqueAlreadyExists true",
        ]
    );
    assert_eq!(
        module.call_named("fail", &[]),
        ReducerOutcome::UserError("no way".into())
    );
    let ViewOutcome::Rows(rows) = view(&mut module, Some(identity(SENDER))) else {
        panic!("the view has rows")
    };
    let mut row = vec![1, 0, 0, 0];
    1_u64.encode(&mut row);
    row.extend(person("bob", 9));
    assert_eq!(rows, row);
    let (outcome, _) = module.call_procedure(&21_u32.to_le_bytes());
    assert_eq!(
        outcome,
        ProcedureOutcome::Returned(42_u32.to_le_bytes().to_vec())
    );
    assert_eq!(module.console.messages(), ["Info: 1"]);
    // More rows than one buffer of the package takes.
    let many = module.call_named("many", &500_u32.to_le_bytes());
    assert_eq!(many, ReducerOutcome::Ok);
    assert_eq!(module.console.messages(), ["Info: 500"]);
}

/// Positions are those of the source, and traces have no frame of ours.
#[test]
fn exceptions_are_told_as_those_of_other_modules() {
    let mut module = Running::bundle("legacy");
    let ReducerOutcome::Fatal { message } = module.call_named("crash", &[]) else {
        panic!("it throws")
    };
    assert!(
        message.starts_with("Uncaught RangeError: boom\n\tat "),
        "{message}"
    );
    assert!(message.contains("tests/modules/legacy.ts:"), "{message}");
    assert!(!message.contains("end_short"), "{message}");
    let mut module = running("", "throw { tag: 'err', value: 'thrown' }");
    assert!(module.fatal(0).contains("Uncaught #<Object>"));
}

#[test]
fn hooks_get_arrays_of_their_own_and_no_receiver() {
    let mut module = running(
        "const kept = [];",
        "kept.push(args); log(this === undefined, id, sender, connection, timestamp, args.constructor.name, kept.join('|'))",
    );
    for args in [&[1, 2][..], &[3]] {
        assert_eq!(module.call(5, args), ReducerOutcome::Ok);
    }
    assert_eq!(
        module.console.messages(),
        [
            "Info: true 5 4660 7 1700000000000000 Uint8Array 1,2",
            "Info: true 5 4660 7 1700000000000000 Uint8Array 1,2|3"
        ]
    );
}

#[test]
fn reducers_say_how_they_ended() {
    let mut module = running("", "if (id === 1) return { tag: 'err', value: 'no' }; if (id === 2) return 3; if (id === 3) return { tag: 'ok', value: 7 }");
    assert_eq!(module.call(0, &[]), ReducerOutcome::Ok);
    assert_eq!(module.call(1, &[]), ReducerOutcome::UserError("no".into()));
    assert!(module.fatal(2).contains("Reducer returned neither"));
    assert_eq!(module.call(3, &[]), ReducerOutcome::Ok);
}

#[test]
fn rows_go_in_and_out() {
    let mut module = running(
        "const row = (id, name, age) => new Uint8Array([id, 0, 0, 0, 0, 0, 0, 0, name.length, 0, 0, 0, ...[...name].map((c) => c.charCodeAt(0)), age]);\n\
         const rows = (iterator, max) => { const all = []; for (;;) { const { 0: done, 1: bytes } = sys.row_iter_bsatn_advance(iterator, max); all.push(`${done}:${bytes.length}`); if (done) return all.join(' '); } };",
        "const table = sys.table_id_from_name('person'), byName = sys.index_id_from_name('person_name_age_idx_btree');\n\
         const byId = attempt(() => sys.index_id_from_name('person_id_idx_btree'));\n\
         const source = new Uint8Array(40); source.set(row(0, 'bob', 7), 3);\n\
         const bob = source.subarray(3, 3 + 16);\n\
         log(sys.datastore_insert_bsatn(table, bob), bob[0]);\n\
         log(sys.datastore_insert_bsatn(table, row(9, 'eve', 8)).length, sys.datastore_table_row_count(table));\n\
         log(rows(sys.datastore_table_scan_bsatn(table), 1000), rows(sys.datastore_table_scan_bsatn(table), 4294967295));\n\
         log(attempt(() => rows(sys.datastore_table_scan_bsatn(table), 5)));\n\
         const name = new Uint8Array([3, 0, 0, 0, 98, 111, 98]);\n\
         const bound = (tag, ...bytes) => new Uint8Array([tag, ...bytes]);\n\
         log(rows(sys.datastore_index_scan_range_bsatn(byName, name, 1, bound(0, 7), bound(2)), 1000));\n\
         log(rows(sys.datastore_index_scan_range_bsatn(byName, name, 1, bound(1, 7), bound(2)), 1000));\n\
         log(sys.datastore_update_bsatn(table, Number(byId), row(1, 'bob', 9)).length);\n\
         log(rows(sys.datastore_index_scan_point_bsatn(Number(byId), new Uint8Array([1, 0, 0, 0, 0, 0, 0, 0])), 100));\n\
         log(sys.datastore_delete_by_index_scan_point_bsatn(Number(byId), new Uint8Array([1, 0, 0, 0, 0, 0, 0, 0])));\n\
         log(sys.datastore_delete_all_by_eq_bsatn(table, new Uint8Array([1, 0, 0, 0, ...row(9, 'eve', 8)])));\n\
         sys.datastore_insert_bsatn(table, row(0, 'bob', 1)); sys.datastore_insert_bsatn(table, row(0, 'bob', 2));\n\
         log(sys.datastore_delete_by_index_scan_range_bsatn(byName, name, 1, bound(0, 2), bound(2)), sys.datastore_table_row_count(table));",
    );
    assert_eq!(
        module.logs(),
        [
            "1,0,0,0,0,0,0,0 0",
            "0 2",
            "true:32 true:32",
            "small 32",
            "true:16",
            "true:0",
            "0",
            "true:16",
            "1",
            "1",
            "1 1",
        ]
    );
}

#[test]
fn failures_of_the_host_are_sealed_objects() {
    let mut module = running(
        "",
        "log(attempt(() => sys.table_id_from_name('missing')));\n\
         log(attempt(() => sys.row_iter_bsatn_close(7)));\n\
         log(attempt(() => sys.procedure_start_mut_tx()));\n\
         log(attempt(() => sys.datastore_insert_bsatn(1, new ArrayBuffer(4))));\n\
         log(attempt(() => sys.datastore_insert_bsatn(1)));\n\
         log(attempt(() => sys.row_iter_bsatn_advance(1, -1)), attempt(() => sys.row_iter_bsatn_advance(1, 0.5)));\n\
         log(attempt(() => sys.table_id_from_name(3)));\n\
         log(Object.keys(sys.identity()), sys.identity().__identity__, sys.get_jwt_payload(3n).length);",
    );
    assert_eq!(
        module.logs(),
        [
            "code 4 true undefined",
            "code 6 true undefined",
            "code 17 true undefined",
            "TypeError: Expected `Uint8Array`, got object",
            "TypeError: Expected `Uint8Array`, got undefined",
            "TypeError: Expected number for `u32`, got number TypeError: Expected number for `u32`, got number",
            "TypeError: Expected `string`, got Number",
            "__identity__ 49664 0",
        ]
    );
}

#[test]
fn views_return_rows_alone_or_with_their_header() {
    let hooks = "sys11.register_hooks({\n\
         __call_view__: (id, sender, args) => { log(sender, args.length); return new Uint8Array([1, 0, 0, 0, 5]); },\n\
         __call_view_anon__: (id, args) => ({ data: new Uint8Array([1, 2, 0, 0, 0, 104, 105]) }) });";
    let mut module = running(hooks, "");
    assert_eq!(
        view(&mut module, Some(identity(SENDER))),
        ViewOutcome::Rows(vec![1, 0, 0, 0, 5])
    );
    assert_eq!(view(&mut module, None), ViewOutcome::Query("hi".into()));
    assert_eq!(module.console.messages(), ["Info: 4660 0"]);
}

#[test]
fn hooks_that_were_not_registered_are_named() {
    let mut module = running("", "");
    match view(&mut module, None) {
        ViewOutcome::Failed { message } => assert!(
            message.contains("the module has registered no hook `__call_view_anon__`"),
            "{message}"
        ),
        other => panic!("{other:?}"),
    }
    let (outcome, _) = module.call_procedure(&[]);
    assert!(format!("{outcome:?}").contains("`__call_procedure__`"));
}

#[test]
fn hooks_are_registered_once_and_in_one_way() {
    for (program, expected) in [
        (
            script("", "") + "sys10.register_hooks({});",
            "TypeError: cannot call `register_hooks` multiple times",
        ),
        (
            script("sys10.register_hooks(3);", ""),
            "Expected hooks object, got number",
        ),
        (
            script("sys11.register_hooks({ __call_view__() {} });", ""),
            "Expected module function hook `__call_view_anon__`, got undefined",
        ),
        (
            "import { moduleHooks } from 'spacetime:sys@2.0';\n".to_owned()
                + &script("", "")
                + "export default { [moduleHooks]() { return {}; } };",
            "TypeError: cannot call `register_hooks` from different versions",
        ),
        // Without hooks of either kind, version 2 is what is asked for.
        (
            "import 'spacetime:sys@1.0'; export const x = 1;".to_owned(),
            "must export schema as default export",
        ),
        (
            "import 'spacetime:sys@1.4';".to_owned(),
            "It requires sys module v1.4, but that version is not supported by the database.",
        ),
        (
            "import { datastore_clear } from 'spacetime:sys@1.0';".to_owned(),
            "SyntaxError",
        ),
    ] {
        let text = refusal(&program);
        assert!(text.contains(expected), "{program}: {text}");
    }
}

/// The adapter lies in the module's own isolate: what the module does to the language it does to itself.
#[test]
fn a_module_that_replaces_what_the_adapter_uses_harms_only_itself() {
    let mut module = running(
        "",
        "globalThis.Uint8Array = undefined; globalThis.ArrayBuffer = undefined;\n\
         globalThis.Object = undefined; Reflect.set(Set.prototype, 'has', () => { throw 1; });\n\
         log(sys.identity().__identity__)",
    );
    assert_eq!(module.logs(), ["49664"]);
    let endless = "Uint8Array.prototype.slice = () => { for (;;); };";
    let mut module = Running::loaded(
        &(script("", "") + endless),
        HostLimits {
            call_ms_max: 50,
            ..small_limits()
        },
    );
    assert!(matches!(
        module.call(0, &[]),
        ReducerOutcome::TimedOut { .. }
    ));
}
