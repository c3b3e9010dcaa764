//! Reducer calls: arguments, outcomes, logs (§5.2, §6.2, §9).

use lightcone_host::ReducerOutcome;

use crate::common::Running;

#[test]
fn the_hook_gets_what_the_chapter_says() {
    let mut module = Running::script(
        "log(id, sender, connection, timestamp, args instanceof DataView, args.byteLength, args.byteLength && args.getUint8(1), this === hooks);",
    );
    assert_eq!(module.logs(), ["0 4660 7 1700000000000000 true 0 0 true"]);
    for length in [2, 2, 600, 5000] {
        assert_eq!(module.call(3, &vec![9; length]), ReducerOutcome::Ok);
        assert_eq!(
            module.console.messages(),
            [format!(
                "Info: 3 4660 7 1700000000000000 true {length} 9 true"
            )]
        );
    }
}

#[test]
fn outcomes() {
    let mut module = Running::script(
        "class Odd { get message() { throw 1; } }\n\
         switch (id) {\n\
           case 0: throw new SenderError('no way');\n\
           case 1: throw new Error('boom');\n\
           case 2: return 5;\n\
           case 3: throw 'str';\n\
           case 4: throw null;\n\
           case 5: throw {};\n\
           case 6: throw Symbol('q');\n\
           case 7: { const e = new SenderError(); delete e.message; Object.defineProperty(e, 'message', { value: undefined }); throw e; }\n\
           case 8: { const e = new SenderError('x'); Object.defineProperty(e, 'message', { get() { throw 1; } }); throw e; }\n\
           case 9: throw new Proxy({}, { getPrototypeOf() { throw new Error('trap'); } });\n\
         }",
    );
    assert_eq!(
        module.call(0, &[]),
        ReducerOutcome::UserError("no way".into())
    );
    assert!(module.fatal(1).starts_with("Uncaught Error: boom\n\tat "));
    assert_eq!(
        module.fatal(2),
        "Uncaught TypeError: Reducer returned a value other than `undefined`"
    );
    assert!(module.fatal(3).starts_with("Uncaught str"));
    assert!(module.fatal(4).starts_with("Uncaught null"));
    assert!(module.fatal(5).starts_with("Uncaught #<Object>"));
    assert!(module.fatal(6).starts_with("Uncaught Symbol(q)"));
    assert_eq!(
        module.call(7, &[]),
        ReducerOutcome::UserError("undefined".into())
    );
    module.fatal(8);
    module.fatal(9);
    assert!(
        !module.instance.is_poisoned(),
        "exceptions do not cost the isolate"
    );
    assert_eq!(module.call(10, &[]), ReducerOutcome::Ok);
}

#[test]
fn an_uncaught_exception_is_a_panic_record() {
    let mut module = Running::script("(function mine() { throw new Error('boom'); })();");
    module.fatal(0);
    let lines = module.console.take();
    assert_eq!(lines.len(), 1);
    let line = &lines[0];
    assert!(
        line.starts_with(
            "{\"level\":\"Panic\",\"filename\":\"spacetimedb_module\",\"line_number\":"
        ),
        "{line}"
    );
    assert!(line.contains("\"function\":\"test_reducer\",\"message\":\"Uncaught Error: boom\",\"trace\":[{\"module_name\":\"spacetimedb_module:"), "{line}");
    assert!(line.contains("\"func_name\":\"mine\"},"), "{line}");
    assert!(
        line.contains("\"func_name\":\"__call_reducer__\"}"),
        "{line}"
    );

    let mut module = Running::script("return 1;");
    module.fatal(0);
    assert_eq!(
        module.console.take(),
        ["{\"level\":\"Panic\",\"function\":\"test_reducer\",\"message\":\"Uncaught TypeError: Reducer returned a value other than `undefined`\",\"trace\":[]}"]
    );
}

#[test]
fn frames_of_the_library_are_cut() {
    let mut module = Running::script(
        "function __spacetimedb_end_short_backtrace(f) { f(); }\n\
         __spacetimedb_end_short_backtrace(function author() { throw new Error('x'); });",
    );
    let text = module.fatal(0);
    assert!(text.contains("at author ("), "{text}");
    assert!(!text.contains("short_backtrace"), "{text}");
    assert!(!text.contains("__call_reducer__"), "{text}");
}

#[test]
fn console_records_name_the_caller_of_the_console_method() {
    let mut module = Running::script("\n\nlog('here');");
    assert_eq!(module.call(0, &[]), ReducerOutcome::Ok);
    let line = &module.console.take()[0];
    assert!(
        line.contains("\"filename\":\"spacetimedb_module\",\"line_number\":"),
        "{line}"
    );
    assert!(
        line.contains("\"function\":\"test_reducer\",\"message\":\"here\"}"),
        "{line}"
    );

    let mut module = Running::script(
        "for (const level of [0, 1, 2, 3, 4, 256, 101]) sys.console_log(level, 'x');",
    );
    assert_eq!(module.call(0, &[]), ReducerOutcome::Ok);
    assert_eq!(
        module.console.messages(),
        ["Error: x", "Warn: x", "Info: x", "Debug: x", "Trace: x", "Error: x", "Panic: x"]
    );
}

#[test]
fn timers_end_with_the_call() {
    let mut module = Running::script(
        "if (id === 0) { const t = sys.console_timer_start('a\"b'); sys.console_timer_end(t); globalThis.left = sys.console_timer_start('y'); }\n\
         else log(attempt(() => sys.console_timer_end(left)));",
    );
    assert_eq!(module.call(0, &[]), ReducerOutcome::Ok);
    assert!(module.console.messages()[0].starts_with("Info: Timing span "));
    assert_eq!(module.call(1, &[]), ReducerOutcome::Ok);
    assert_eq!(
        module.console.messages(),
        ["Info: errno 7 The provided console timer does not exist"]
    );
}

#[test]
fn iterators_end_with_the_call_and_globals_do_not() {
    let mut module = Running::script(
        "if (id === 0) globalThis.left = sys.datastore_table_scan_bsatn(sys.table_id_from_name('person'));\n\
         else log(left, attempt(() => sys.row_iter_bsatn_close(left)));",
    );
    assert_eq!(module.call(0, &[]), ReducerOutcome::Ok);
    assert_eq!(module.call(1, &[]), ReducerOutcome::Ok);
    assert_eq!(
        module.console.messages(),
        ["Info: 1 errno 6 The provided row iterator is not valid"]
    );
}

#[test]
fn micro_tasks_run_before_the_transaction_ends() {
    let mut module = Running::script(
        "const table = sys.table_id_from_name('person');\n\
         if (id === 0) Promise.resolve().then(() => {\n\
           const row = new Uint8Array([5,0,0,0,0,0,0,0, 1,0,0,0, 65, 7]);\n\
           log('task', sys.datastore_insert_bsatn(table, row.buffer, row.length));\n\
         });\n\
         else log(sys.datastore_table_row_count(table));",
    );
    assert_eq!(module.logs(), ["task 0"]);
    assert_eq!(module.call(1, &[]), ReducerOutcome::Ok);
    assert_eq!(module.console.messages(), ["Info: 1"]);
}
