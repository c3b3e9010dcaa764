//! Faulty modules end with an error for their caller, and the next call works (§5.3, §8).

use std::panic::{catch_unwind, AssertUnwindSafe};

use lightcone_host::{HostLimits, ReducerOutcome};

use crate::common::{refusal, script, small_limits, Running, PANICS};

#[test]
fn an_endless_loop_is_stopped_and_the_isolate_stays() {
    let mut module = Running::script(
        "globalThis.count = (globalThis.count ?? 0) + 1;\n\
         if (id === 0) for (;;) { try { for (;;); } catch { log('caught'); } finally { log('finally'); } }\n\
         log('alive', count);",
    );
    for _ in 0..2 {
        match module.call(0, &[]) {
            ReducerOutcome::TimedOut { message } => {
                assert!(message.contains("call-ms-max = 300"), "{message}");
            }
            other => panic!("{other:?}"),
        }
        assert_eq!(
            module.console.messages(),
            [""; 0],
            "no code of the module ran"
        );
    }
    assert!(!module.instance.is_poisoned());
    assert_eq!(module.call(1, &[]), ReducerOutcome::Ok);
    assert_eq!(module.console.messages(), ["Info: alive 3"]);
}

#[test]
fn the_time_limit_of_the_next_calls_can_be_another() {
    let mut module = Running::script("for (;;);");
    module.instance.limit_calls(900);
    let start = std::time::Instant::now();
    match module.call(0, &[]) {
        ReducerOutcome::TimedOut { message } => {
            assert!(message.contains("call-ms-max = 900"), "{message}");
        }
        other => panic!("{other:?}"),
    }
    assert!(start.elapsed().as_millis() >= 850);
}

#[test]
fn endless_micro_tasks_are_stopped() {
    let mut module = Running::script(
        "if (id === 0) { const again = () => { Promise.resolve().then(again); }; again(); }",
    );
    assert!(matches!(
        module.call(0, &[]),
        ReducerOutcome::TimedOut { .. }
    ));
    if module.instance.is_poisoned() {
        module.replace();
    }
    // What was queued is either gone or stopped again, but the instance can be called.
    let _ = module.call(1, &[]);
}

#[test]
fn an_endless_evaluation_fails_the_publish() {
    let limits = HostLimits {
        load_ms_max: 100,
        ..small_limits()
    };
    let error = Running::load(b"for (;;);", limits)
        .err()
        .unwrap()
        .to_string();
    assert!(error.contains("load-ms-max = 100"), "{error}");
}

#[test]
fn the_stack_ends_in_a_range_error() {
    // A busy machine takes its time to get that deep.
    let limits = HostLimits {
        call_ms_max: 30_000,
        ..small_limits()
    };
    let mut module = Running::script_with(
        "",
        "const deeper = (n) => n === 0 ? 0 : 1 + deeper(n - 1);\n\
         if (id === 0) { const endless = () => endless() + 1; endless(); }\n\
         if (id === 1) { let depth = 0; const count = () => { depth++; count(); }; try { count(); } catch (e) { log(e instanceof RangeError, depth > 1000); } }\n\
         if (id === 2) log(deeper(1000));\n\
         if (id === 3) { let nested = []; for (let i = 0; i < 1e5; i++) nested = [nested]; log(attempt(() => JSON.stringify(nested).length)); }",
        limits,
    );
    let message = module.fatal(0);
    assert!(message.contains("RangeError"), "{message}");
    module.console.take();
    for (id, expected) in [(1, "true true"), (2, "1000")] {
        assert_eq!(module.call(id, &[]), ReducerOutcome::Ok);
        assert_eq!(module.console.messages(), [format!("Info: {expected}")]);
    }
    assert_eq!(module.call(3, &[]), ReducerOutcome::Ok);
    // Some engines can.
    let message = module.console.messages().remove(0);
    assert!(
        message.contains("RangeError") || message == "Info: 200002",
        "{message}"
    );
}

/// Every way to fill the memory ends the call, and only that.
#[test]
fn endless_allocation_is_stopped() {
    let limits = HostLimits {
        call_ms_max: 30_000,
        ..small_limits()
    };
    let mut module = Running::script_with(
        "const keep = [];",
        "try { switch (id) {\n\
           case 1: for (;;) keep.push({ a: keep.length });\n\
           case 2: { let s = 'x'; for (;;) { s += s; keep.push(s.slice(1) + 'y'); keep.push([...s].length); } }\n\
           case 3: for (const map = new Map(); ; ) map.set(map.size, new Array(100).fill(map.size));\n\
           case 4: for (;;) keep.push(new Uint8Array(1 << 20).fill(1));\n\
           case 5: for (;;) keep.push(new Array(1 << 20).fill(1.5));\n\
           case 6: for (;;) keep.push(() => keep.length + Math.max(...keep.map(Number)));\n\
           case 7: { const text = 'ab'.repeat(1 << 20); for (let i = 0; ; i++) keep.push((text + i).split('')); }\n\
           case 8: for (let n = 1n; ; n = n ** 2n + 1n) keep.push(n | 3n);\n\
           case 9: JSON.parse('[' + '{\"a\":[1,2,3]},'.repeat(3e6) + '1]');\n\
         } } finally { if (id < 0) log(1); }",
        limits,
    );
    for id in 1..=9 {
        match module.call(id, &[]) {
            ReducerOutcome::Fatal { message } => {
                assert!(
                    message.contains("memory-bytes-max = 67108864")
                        || message.contains("RangeError"),
                    "{id}: {message}"
                );
            }
            other => panic!("{id}: {other:?}"),
        }
        if module.instance.is_poisoned() {
            module.replace();
        } else {
            // A RangeError that the module could have caught; what it kept is gone with a new isolate only.
            module.replace();
        }
        assert_eq!(module.call(0, &[]), ReducerOutcome::Ok, "after {id}");
    }
}

#[test]
fn array_buffers_count_and_are_given_back() {
    let limits = HostLimits {
        call_ms_max: 30_000,
        ..small_limits()
    };
    let mut module = Running::script_with(
        "",
        "log(attempt(() => new ArrayBuffer(1 << 30).byteLength));\n\
         for (let i = 0; i < 64; i++) new Uint8Array(8 << 20)[0] = 1;\n\
         log('done');",
        limits,
    );
    let logs = module.logs();
    // QuickJS has an error of its own for it.
    let refused = ["RangeError", "InternalError: out of memory"];
    assert!(
        refused.iter().any(|text| logs[0].starts_with(text)),
        "{logs:?}"
    );
    assert_eq!(logs[1], "done");
}

/// What the host makes for a module counts like what the module makes itself.
#[test]
fn encoded_texts_count_as_all_buffers_do() {
    let limits = HostLimits {
        call_ms_max: 30_000,
        ..small_limits()
    };
    let mut module = Running::script_with(
        "const kept = [], encoder = new TextEncoder();",
        "const text = 'x'.repeat(1 << 22);\n\
         for (let i = 0; i < 100; i++) encoder.encode(text);\n\
         log(attempt(() => { for (let i = 0; i < 100; i++) kept.push(encoder.encode(text)); return 'all of them'; }));\n\
         log(kept.length > 4 && kept.length <= 16 && kept.every((bytes) => bytes.length === 1 << 22 && bytes[7] === 120));\n\
         kept.length = 0;\n\
         log(encoder.encode('\\u00e9\\ud800').join(), encoder.encode('').length);",
        limits,
    );
    for _ in 0..2 {
        let logs = module.logs();
        let refused = ["RangeError", "InternalError: out of memory"];
        assert!(
            refused.iter().any(|text| logs[0].starts_with(text)),
            "{logs:?}"
        );
        assert_eq!(logs[1..], ["true", "195,169,239,191,189 0"]);
    }
}

/// A limit of the host that no errno expresses ends the call; nothing of the module runs any more in it.
#[test]
fn a_doomed_call_runs_no_more_code() {
    let limits = HostLimits {
        iterators_max: 3,
        ..small_limits()
    };
    let mut module = Running::script_with(
        "",
        "const table = sys.table_id_from_name('person');\n\
         if (id === 0) { try { for (let i = 0; i < 10; i++) sys.datastore_table_scan_bsatn(table); log('after'); }\n\
           catch { log('caught'); } finally { log('finally'); sys.identity(); } }\n\
         log('alive');",
        limits,
    );
    let message = module.fatal(0);
    assert!(message.contains("iterators-max = 3"), "{message}");
    assert_eq!(module.console.take(), [""; 0]);
    if module.instance.is_poisoned() {
        module.replace();
    }
    assert_eq!(module.call(1, &[]), ReducerOutcome::Ok);
    assert_eq!(module.console.messages(), ["Info: alive"]);
}

#[test]
fn a_failed_call_leaves_nothing_behind() {
    let mut module = Running::script(
        "const table = sys.table_id_from_name('person');\n\
         const row = new Uint8Array([5,0,0,0,0,0,0,0, 1,0,0,0, 65, 7]);\n\
         if (id === 0) { sys.datastore_insert_bsatn(table, row.buffer, row.length); throw new Error('x'); }\n\
         log(sys.datastore_table_row_count(table));",
    );
    for _ in 0..100 {
        module.fatal(0);
    }
    module.console.take();
    assert_eq!(module.call(1, &[]), ReducerOutcome::Ok);
    assert_eq!(module.console.messages(), ["Info: 0"]);
}

/// A bug of the host is none of the module: it goes on where the call came from, and no code of the module runs meanwhile.
#[test]
fn a_panic_of_a_host_function_goes_on_behind_the_call() {
    let mut module = Running::script(&format!(
        "try {{ log('{PANICS}'); }} catch {{ log('caught'); }} finally {{ log('finally'); }}"
    ));
    let panicked = catch_unwind(AssertUnwindSafe(|| module.call(0, &[]))).unwrap_err();
    let text = panicked.downcast_ref::<String>().expect("a text");
    assert!(text.contains("a bug of the host"), "{text}");
    assert_eq!(module.console.take(), [""; 0]);
}

/// The database makes an instance on one thread and uses it on another.
#[test]
fn an_instance_can_move_to_another_thread() {
    let mut module = Running::script("log('called');");
    assert_eq!(module.logs(), ["called"]);
    for _ in 0..3 {
        module = std::thread::spawn(move || {
            assert_eq!(module.logs(), ["called"]);
            module
        })
        .join()
        .unwrap();
    }
    assert_eq!(module.logs(), ["called"]);
    std::thread::spawn(move || drop(module)).join().unwrap();
}

/// Several isolates of one thread, used in turn and dropped in any order.
#[test]
fn instances_share_a_thread() {
    let mut first = Running::script("log('first');");
    let mut second = Running::script("log('second');");
    assert_eq!(first.logs(), ["first"]);
    assert_eq!(second.logs(), ["second"]);
    assert_eq!(first.logs(), ["first"]);
    drop(first);
    assert_eq!(second.logs(), ["second"]);
}

#[test]
fn memory_runs_out_while_loading() {
    let text = refusal(&script(
        "const keep = []; for (;;) keep.push({ a: keep.length });",
        "",
    ));
    assert!(text.contains("memory-bytes-max"), "{text}");
}

/// No memory beside the limits: what could take it is absent or refuses.
#[test]
fn there_is_no_memory_without_a_limit() {
    let mut module = Running::script(
        "log(typeof WebAssembly);\n\
         log(attempt(() => new ArrayBuffer(8, { maxByteLength: 2 ** 40 }).resizable || 'fixed').slice(0, 10));\n\
         log(attempt(() => new SharedArrayBuffer(2 ** 32).byteLength).slice(0, 10));\n\
         class Mine extends ArrayBuffer {}\n\
         const mine = new Mine(4), plain = new ArrayBuffer(4);\n\
         log(mine instanceof Mine, mine instanceof ArrayBuffer, plain instanceof ArrayBuffer, plain.constructor === ArrayBuffer, plain.slice(1).byteLength, new Uint8Array(plain).length, new Uint8Array(2).buffer instanceof ArrayBuffer, Object.prototype.toString.call(plain));",
    );
    let logs = module.logs();
    assert_eq!(logs[0], "undefined");
    assert!(logs[1] == "RangeError" || logs[1] == "fixed", "{logs:?}");
    assert_eq!(logs[2], "RangeError");
    assert_eq!(logs[3], "true true true true 3 4 true [object ArrayBuffer]");
}
