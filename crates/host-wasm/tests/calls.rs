//! Reducer calls: arguments, outcomes, and what faulty modules can't do (spec 03 §4, §7, §9, §11).

use crate::common::*;
use lightcone_host::{Counted, HandlerResponse, HostLimits, ProcedureOutcome, ReducerOutcome};

const BYTES: &str = r#"
    (import "spacetime_10.0" "bytes_source_read" (func $read (param i32 i32 i32) (result i32)))
    (import "spacetime_10.1" "bytes_source_remaining_length" (func $remaining (param i32 i32) (result i32)))
    (import "spacetime_10.0" "bytes_sink_write" (func $write (param i32 i32 i32) (result i32)))"#;

/// `$check` ends the call with a code that tells which check failed.
fn checks(lines: &[&str]) -> String {
    let mut body = String::new();
    for (number, line) in lines.iter().enumerate() {
        body += &format!(
            "(if (i32.eqz {line}) (then (return (i32.const {}))))\n",
            number + 100
        );
    }
    body + "(i32.const 0)"
}

#[test]
fn arguments_arrive_as_the_chapter_says() {
    let body = checks(&[
        "(i32.eq (local.get $id) (i32.const 7))",
        "(i64.eq (local.get $s0) (i64.const 0x191a1b1c1d1e1f20))",
        "(i64.eq (local.get $s1) (i64.const 0x1112131415161718))",
        "(i64.eq (local.get $s2) (i64.const 0x090a0b0c0d0e0f10))",
        "(i64.eq (local.get $s3) (i64.const 0x0102030405060708))",
        "(i64.eq (local.get $c0) (i64.const 0x090a0b0c0d0e0f10))",
        "(i64.eq (local.get $c1) (i64.const 0x0102030405060708))",
        "(i64.eq (local.get $time) (i64.const 1700000000000000))",
        "(i32.eq (local.get $args) (i32.const 0))",
        "(i32.eq (local.get $sink) (i32.const 1))",
        "(i32.eq (call $remaining (i32.const 0) (i32.const 0)) (i32.const 8))",
        "(i32.eq (call $read (i32.const 0) (i32.const 0) (i32.const 0)) (i32.const 8))",
        "(i32.eq (call $write (i32.const 2) (i32.const 0) (i32.const 0)) (i32.const 8))",
    ]);
    let mut running = Running::start(&reducer(BYTES, &body));
    assert_eq!(running.code(7, &[]), 0);
}

#[test]
fn sources_are_read_in_pieces() {
    let body = checks(&[
        "(i32.eq (local.get $args) (i32.const 1))",
        "(i32.eqz (call $remaining (local.get $args) (i32.const 16)))",
        "(i32.eq (i32.load (i32.const 16)) (i32.const 5))",
        // Nothing asked, nothing read.
        "(i32.eqz (block (result i32) (i32.store (i32.const 20) (i32.const 0))
            (call $read (local.get $args) (i32.const 64) (i32.const 20))))",
        "(i32.eqz (i32.load (i32.const 20)))",
        "(i32.eqz (block (result i32) (i32.store (i32.const 20) (i32.const 3))
            (call $read (local.get $args) (i32.const 64) (i32.const 20))))",
        "(i32.eq (i32.load (i32.const 20)) (i32.const 3))",
        "(i32.eqz (call $remaining (local.get $args) (i32.const 16)))",
        "(i32.eq (i32.load (i32.const 16)) (i32.const 2))",
        // The last piece comes with the end.
        "(i32.eq (block (result i32) (i32.store (i32.const 20) (i32.const 100))
            (call $read (local.get $args) (i32.const 67) (i32.const 20))) (i32.const -1))",
        "(i32.eq (i32.load (i32.const 20)) (i32.const 2))",
        "(i64.eq (i64.load (i32.const 64)) (i64.const 0x0504030201))",
        "(i32.eq (call $read (local.get $args) (i32.const 64) (i32.const 20)) (i32.const 8))",
        "(i32.eq (call $remaining (local.get $args) (i32.const 16)) (i32.const 8))",
    ]);
    let mut running = Running::start(&reducer(BYTES, &body));
    assert_eq!(running.code(0, &[1, 2, 3, 4, 5]), 0);
    assert_eq!(
        running.code(0, &[1, 2, 3, 4, 5]),
        0,
        "the second call has fresh handles"
    );
}

#[test]
fn unread_sources_end_with_the_call() {
    let mut running = Running::start(&reducer(
        BYTES,
        "(call $remaining (i32.const 1) (i32.const 16))",
    ));
    assert_eq!(running.code(0, &[1]), 0);
    assert_eq!(running.code(0, &[]), 8);
}

#[test]
fn outcomes() {
    let body = r#"
        (i32.store (i32.const 16) (i32.const 7))
        (drop (call $write (local.get $sink) (i32.const 64) (i32.const 16)))
        (drop (call $write (local.get $sink) (i32.const 64) (i32.const 20)))
        (local.get $id)"#;
    let data = format!(r#"{BYTES} (data (i32.const 64) "sorry \ff")"#);
    let mut running = Running::start(&reducer(&data, body));
    assert_eq!(running.call(0, &[]), ReducerOutcome::Ok);
    assert_eq!(
        running.call(1, &[]),
        ReducerOutcome::UserError("sorry \u{fffd}".into())
    );
    let unknown = ReducerOutcome::Fatal {
        message: "`__call_reducer__` returned the unknown code -1".into(),
    };
    assert_eq!(running.call(u32::MAX, &[]), unknown);
    assert!(!running.instance.is_poisoned());
}

#[test]
fn a_full_sink_answers_9() {
    let limits = HostLimits {
        sink_bytes_max: 10,
        ..small_limits()
    };
    let body = "(i32.store (i32.const 16) (i32.const 11)) (call $write (local.get $sink) (i32.const 64) (i32.const 16))";
    let mut running = Running::start_with(&reducer(BYTES, body), limits);
    assert_eq!(running.code(0, &[]), 9);
}

#[test]
fn a_trap_ends_the_call_and_poisons_the_instance() {
    let body = "(if (local.get $id) (then (call $deep))) (i32.const 0)";
    let deep = "(func $deep (call $_RNvCs1234_7mycrate5inner)) (func $_RNvCs1234_7mycrate5inner unreachable)";
    let mut running = Running::start(&reducer(&format!("{BYTES} {deep}"), body));
    assert_eq!(running.code(0, &[]), 0);
    let message = running.trap(1);
    let expected = "wasm trap: wasm `unreachable` instruction executed\n    at mycrate::inner\n    at deep\n    at ";
    assert!(message.starts_with(expected), "{message}");
    assert!(
        matches!(running.call(0, &[]), ReducerOutcome::Fatal { .. }),
        "a poisoned instance refuses calls"
    );
    running.replace();
    assert_eq!(running.code(0, &[]), 0);
}

#[test]
fn an_endless_loop_is_stopped() {
    let mut running = Running::start(&reducer(
        BYTES,
        "(if (local.get $id) (then (loop br 0))) (i32.const 0)",
    ));
    let start = std::time::Instant::now();
    let message = "the call ran too long and was stopped: call-ms-max = 100 [LC0720]".into();
    assert_eq!(running.call(1, &[]), ReducerOutcome::TimedOut { message });
    let elapsed = start.elapsed().as_millis();
    assert!((95..5000).contains(&elapsed), "{elapsed} ms");
    assert!(running.instance.is_poisoned());
    running.replace();
    assert_eq!(running.code(0, &[]), 0, "the next call has its full time");
}

#[test]
fn the_time_limit_of_the_next_calls_can_be_another() {
    let mut running = Running::start(&reducer(BYTES, "(loop br 0) (i32.const 0)"));
    running.instance.limit_calls(400);
    let start = std::time::Instant::now();
    let message = "the call ran too long and was stopped: call-ms-max = 400 [LC0720]".into();
    assert_eq!(running.call(1, &[]), ReducerOutcome::TimedOut { message });
    assert!(start.elapsed().as_millis() >= 350);
}

#[test]
fn an_endless_loop_of_host_calls_is_stopped() {
    let body = "(loop (drop (call $remaining (i32.const 0) (i32.const 0))) br 0) (i32.const 0)";
    let mut running = Running::start(&reducer(BYTES, body));
    assert!(matches!(
        running.call(1, &[]),
        ReducerOutcome::TimedOut { .. }
    ));
}

#[test]
fn endless_recursion_is_stopped() {
    let recursive =
        "(func $f (param i32) (result i32) (i32.add (call $f (local.get 0)) (i32.const 1)))";
    let mut running = Running::start(&reducer(
        &format!("{BYTES} {recursive}"),
        "(call $f (i32.const 0))",
    ));
    assert_eq!(
        running.trap(0),
        "the module's call stack is exhausted: stack-bytes-max = 524288 [LC0723]"
    );
}

#[test]
fn endless_allocation_is_stopped() {
    let body = "(loop (br_if 0 (i32.ne (memory.grow (i32.const 1)) (i32.const -1)))) unreachable";
    let mut running = Running::start(&reducer(BYTES, body));
    let message = running.trap(0);
    assert!(message.starts_with(
        "the module asked for more memory than it may have: memory-bytes-max = 4194304 [LC0722]"
    ));
    assert!(message.contains("`unreachable`"), "{message}");
    // A module that copes with it goes on, and has what it got.
    let body = "(loop (br_if 0 (i32.ne (memory.grow (i32.const 1)) (i32.const -1)))) (memory.size)";
    let mut running = Running::start(&reducer(BYTES, body));
    assert_eq!(running.code(0, &[]), 64);
}

#[test]
fn wild_pointers_inside_the_module_trap() {
    for body in [
        "(i32.load (i32.const 65536))",
        "(i32.load (i32.const -4))",
        "(i32.load offset=4294967295 (i32.const -1))",
        "(i32.store (i32.const -1) (i32.const 1)) (i32.const 0)",
        "(memory.fill (i32.const 65000) (i32.const 1) (i32.const 1000)) (i32.const 0)",
    ] {
        let message = Running::start(&reducer(BYTES, body)).trap(0);
        assert!(
            message.starts_with("wasm trap: out of bounds memory access"),
            "{body}: {message}"
        );
    }
}

#[test]
fn wild_pointers_given_to_the_host_trap() {
    let imports = r#"
        (import "spacetime_10.0" "bytes_source_read" (func $read (param i32 i32 i32) (result i32)))
        (import "spacetime_10.0" "bytes_sink_write" (func $write (param i32 i32 i32) (result i32)))
        (import "spacetime_10.0" "identity" (func $identity (param i32)))
        (import "spacetime_10.0" "console_timer_start" (func $timer (param i32 i32) (result i32)))
        (import "spacetime_10.0" "table_id_from_name" (func $table (param i32 i32 i32) (result i32)))
        (import "spacetime_10.0" "datastore_index_scan_range_bsatn"
            (func $range (param i32 i32 i32 i32 i32 i32 i32 i32 i32) (result i32)))
        (import "spacetime_10.0" "datastore_insert_bsatn" (func $insert (param i32 i32 i32) (result i32)))
        (data (i32.const 64) "\ff\ff\ff\ff")"#;
    let null = "null pointer passed to a spacetime function";
    let wild = "out of bounds pointer passed to a spacetime function";
    for (call, text) in [
        ("(call $write (local.get $sink) (i32.const 64) (i32.const 0))", null),
        ("(call $write (local.get $sink) (i32.const 0) (i32.const 128))", null),
        ("(call $write (local.get $sink) (i32.const 8) (i32.const 65533))", wild),
        ("(call $write (local.get $sink) (i32.const 8) (i32.const 64))", wild),
        ("(call $read (local.get $args) (i32.const 8) (i32.const 64))", wild),
        ("(block (result i32) (call $identity (i32.const 0)) (i32.const 0))", null),
        ("(block (result i32) (call $identity (i32.const 65505)) (i32.const 0))", wild),
        ("(call $timer (i32.const 0) (i32.const 0))", null),
        ("(call $timer (i32.const -1) (i32.const -1))", wild),
        ("(call $table (i32.const 0) (i32.const 0) (i32.const 0))", null),
        ("(call $table (i32.const 64) (i32.const 1) (i32.const 0))", "invalid utf8 passed to a spacetime function"),
        ("(call $insert (i32.const 1) (i32.const 8) (i32.const 64))", wild),
        (
            "(call $range (i32.const 1) (i32.const 8) (i32.const 1) (i32.const 65536) (i32.const 8) (i32.const 1)
                (i32.const 8) (i32.const 1) (i32.const 8))",
            "`prefix_elems` is a number of columns and must be below 65536, but 65536 was passed",
        ),
        (
            "(call $range (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 1) (i32.const 8) (i32.const 1)
                (i32.const 8) (i32.const 1) (i32.const 8))",
            null,
        ),
    ] {
        let mut running = Running::start(&reducer(imports, call));
        match running.call(0, &[1]) {
            ReducerOutcome::Fatal { message } => assert!(message.starts_with(text), "{call}: {message}"),
            other => panic!("{call}: {other:?}"),
        }
        assert!(running.instance.is_poisoned());
    }
    // The end of memory is a fine place for nothing, which is no bound, and the prefix is not touched without prefix columns.
    let fine = "(call $range (i32.const 1) (i32.const 0) (i32.const 9) (i32.const 0) (i32.const 65536) (i32.const 0)
        (i32.const 65536) (i32.const 0) (i32.const 8))";
    assert_eq!(Running::start(&reducer(imports, fine)).code(0, &[]), 3);
}

#[test]
fn console_records() {
    let imports = r#"
        (import "spacetime_10.0" "console_log" (func $log (param i32 i32 i32 i32 i32 i32 i32 i32)))
        (data (i32.const 64) "targetfile.rsmessage\ff")"#;
    let body = r#"
        (call $log (i32.const 0) (i32.const 64) (i32.const 6) (i32.const 70) (i32.const 7) (i32.const 12)
            (i32.const 77) (i32.const 7))
        (call $log (i32.const 257) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0)
            (i32.const 77) (i32.const 8))
        (call $log (i32.const 9) (i32.const 0) (i32.const 5) (i32.const 0) (i32.const 5) (i32.const -1)
            (i32.const 77) (i32.const 7))
        (call $log (i32.const 2) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const -1)
            (i32.const 0) (i32.const 0))
        (call $log (i32.const 2) (i32.const -1) (i32.const 9) (i32.const 0) (i32.const 0) (i32.const -1)
            (i32.const 77) (i32.const 7))
        (call $log (i32.const 101) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const -1)
            (i32.const 77) (i32.const 7))
        (i32.const 0)"#;
    let named = reducer(imports, body).replace(
        "(func (export \"__call_reducer__\")",
        "(func $_RNvCs1234_7mycrate3run (export \"__call_reducer__\")",
    );
    let mut running = Running::start(&named);
    assert_eq!(running.code(0, &[]), 0);
    assert_eq!(
        running.console.lines(),
        [
            r#"{"level":"Error","target":"target","filename":"file.rs","line_number":12,"function":"test_reducer","message":"message"}"#,
            "{\"level\":\"Warn\",\"line_number\":0,\"function\":\"test_reducer\",\"message\":\"message\u{fffd}\"}",
            r#"{"level":"Debug","function":"test_reducer","message":"message"}"#,
            r#"{"level":"Panic","function":"test_reducer","message":"message","trace":[{"func_name":"mycrate::run"}]}"#,
        ],
        "records with bad pointers are dropped"
    );
}

#[test]
fn timers_live_beyond_the_call() {
    let imports = r#"
        (import "spacetime_10.0" "console_timer_start" (func $start (param i32 i32) (result i32)))
        (import "spacetime_10.0" "console_timer_end" (func $end (param i32) (result i32)))
        (data (i32.const 64) "a\22b")"#;
    let body = "(if (result i32) (local.get $id)
        (then (call $end (local.get $id))) (else (call $start (i32.const 64) (i32.const 3))))";
    let mut running = Running::start(&reducer(imports, body));
    assert_eq!(
        running.call(0, &[]),
        ReducerOutcome::UserError(String::new()),
        "the first timer has id 1"
    );
    assert_eq!(running.code(0, &[]), 2);
    assert_eq!(running.code(2, &[]), 0);
    assert_eq!(running.code(2, &[]), 7);
    assert_eq!(running.code(0, &[]), 2, "ids are reused");
    let lines = running.console.lines();
    let start = r#"{"level":"Info","function":"test_reducer","message":"Timing span \"a\\\"b\": "#;
    assert!(lines[0].starts_with(start), "{}", lines[0]);
}

/// The handler copies its request and its body, reversed in their roles, and returns its id.
const HANDLER: &str = r#"
    (import "spacetime_10.0" "bytes_source_read" (func $read (param i32 i32 i32) (result i32)))
    (import "spacetime_10.0" "bytes_sink_write" (func $write (param i32 i32 i32) (result i32)))
    (func $copy (param $source i32) (param $sink i32)
        (if (local.get $source) (then
            (i32.store (i32.const 4) (i32.const 64))
            (drop (call $read (local.get $source) (i32.const 8) (i32.const 4)))
            (drop (call $write (local.get $sink) (i32.const 8) (i32.const 4))))))
    (func (export "__call_http_handler__") (param $id i32) (param $time i64)
        (param $request i32) (param $body i32) (param $head_sink i32) (param $body_sink i32) (result i32)
        (call $copy (local.get $request) (local.get $body_sink))
        (call $copy (local.get $body) (local.get $head_sink))
        (if (i64.ne (local.get $time) (i64.const 1700000000000000)) (then unreachable))
        (local.get $id))"#;

#[test]
fn http_handlers_get_two_sources_and_two_sinks() {
    let mut running = Running::start(&reducer(HANDLER, "(i32.const 0)"));
    for body in [&b"body"[..], b""] {
        let response = HandlerResponse {
            head: Counted::constant(body.to_vec()),
            body: Counted::constant(b"request".to_vec()),
        };
        assert_eq!(
            running.ask(0, b"request", body),
            ProcedureOutcome::Returned(response)
        );
    }
    assert_eq!(
        running.ask(3, b"request", b"body"),
        ProcedureOutcome::Failed {
            message: "`__call_http_handler__` returned unexpected code 3. Procedures should return code 0 or trap.".into()
        }
    );
    assert!(running.instance.is_poisoned());
    running.replace();
    assert!(matches!(
        running.ask(0, b"", b""),
        ProcedureOutcome::Returned(_)
    ));
}

/// Since 2.14: the sender and its token come behind the id.
#[test]
fn http_handlers_of_the_newer_type_get_their_sender() {
    let handler = HANDLER
        .replace(
            "(param $time i64)",
            "(param $s0 i64) (param $s1 i64) (param $s2 i64) (param $s3 i64) (param $jwt i32) (param $time i64)",
        )
        .replace("(local.get $request) (local.get $body_sink)", "(local.get $jwt) (local.get $body_sink)")
        .replace("(if (i64.ne", "(if (i64.ne (local.get $s3) (i64.const 0)) (then unreachable)) (if (i64.ne");
    let mut running = Running::start(&reducer(&handler, "(i32.const 0)"));
    let response = HandlerResponse {
        head: Counted::constant(b"body".to_vec()),
        body: Counted::constant(br#"{"sub":"s"}"#.to_vec()),
    };
    assert_eq!(
        running.ask(0, b"request", b"body"),
        ProcedureOutcome::Returned(response)
    );
}

#[test]
fn a_module_without_the_export_says_so() {
    let mut running = Running::start(&reducer(BYTES, "(i32.const 0)"));
    assert_eq!(
        running.ask(0, b"", b""),
        ProcedureOutcome::Failed {
            message: "Module defines http handler test_handler but does not export `__call_http_handler__`".into()
        }
    );
    assert_eq!(running.code(0, &[]), 0);
}

#[test]
fn what_procedures_may_is_not_for_reducers() {
    let imports = r#"
        (import "spacetime_10.0" "volatile_nonatomic_schedule_immediate" (func $volatile (param i32 i32 i32 i32)))
        (import "spacetime_10.3" "procedure_sleep_until" (func $sleep (param i64) (result i64)))
        (import "spacetime_10.3" "procedure_http_request" (func $http (param i32 i32 i32 i32 i32) (result i32)))
        (import "spacetime_10.3" "procedure_abort_mut_tx" (func $abort (result i32)))"#;
    for (call, text) in [
        (
            "(i32.wrap_i64 (call $sleep (i64.const 0)))",
            "procedure_sleep_until is only available in async instances",
        ),
        (
            "(call $http (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0))",
            "procedure_http_request is only available in async instances",
        ),
    ] {
        let message = Running::start(&reducer(imports, call)).trap(0);
        assert!(message.starts_with(text), "{message}");
    }
    let volatile =
        "(call $volatile (i32.const 8) (i32.const 0) (i32.const 8) (i32.const 0)) (i32.const 0)";
    assert_eq!(Running::start(&reducer(imports, volatile)).code(0, &[]), 0);
    assert_eq!(
        Running::start(&reducer(imports, "(call $abort)")).code(0, &[]),
        18
    );
}

#[test]
fn modules_in_other_threads_never_notice() {
    let faulty = "(loop (br_if 0 (i32.ne (memory.grow (i32.const 1)) (i32.const -1)))) (loop br 0) unreachable";
    let handles: Vec<_> = (0..2)
        .map(|_| std::thread::spawn(move || Running::start(&reducer(BYTES, faulty)).call(0, &[])))
        .collect();
    let mut healthy = Running::start(&reducer(BYTES, "(local.get $id)"));
    for _ in 0..1000 {
        assert_eq!(healthy.code(0, &[]), 0);
    }
    for handle in handles {
        assert!(matches!(
            handle.join().unwrap(),
            ReducerOutcome::TimedOut { .. }
        ));
    }
}
