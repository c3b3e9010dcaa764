//! `__call_http_handler__` (spec 04 §5.2, §6.2).

use lightcone_host::{Counted, HandlerResponse, HostLimits, ProcedureOutcome};

use crate::common::{small_limits, Running};

fn failed(outcome: ProcedureOutcome<HandlerResponse>) -> String {
    match outcome {
        ProcedureOutcome::Failed { message } => message,
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_hook_gets_what_the_chapter_says_and_returns_two_arrays() {
    let mut module = Running::http_handler(
        "log(id, timestamp, typeof timestamp, request instanceof Uint8Array, request.join(), body instanceof Uint8Array, body.join(), this === hooks, sender.toString(16), String.fromCharCode(...jwt));\n\
         return [new Uint8Array([9, 1, 2, 9]).subarray(1, 3), body];",
        small_limits(),
    );
    for body in [&[7_u8, 8][..], &[]] {
        let (outcome, committed) = module.call_http_handler(&[5, 6], body);
        let response = HandlerResponse {
            head: Counted::constant(vec![1, 2]),
            body: Counted::constant(body.to_vec()),
        };
        assert_eq!(outcome, ProcedureOutcome::Returned(response));
        assert_eq!(committed, 0);
    }
    assert_eq!(
        module.console.messages(),
        [
            "Info: 0 1700000000000000 bigint true 5,6 true 7,8 true 1234 {\"sub\":\"s\"}",
            "Info: 0 1700000000000000 bigint true 5,6 true  true 1234 {\"sub\":\"s\"}",
        ]
    );
}

#[test]
fn handlers_open_transactions_as_procedures_do() {
    let mut module = Running::http_handler(
        "log(attempt(() => sys.table_id_from_name('person')));\n\
         sys.procedure_start_mut_tx();\n\
         const row = new Uint8Array(13); row[0] = 3; row[12] = 7;\n\
         sys.datastore_insert_bsatn(sys.table_id_from_name('person'), row.buffer, 13);\n\
         sys.procedure_commit_mut_tx();\n\
         sys.procedure_start_mut_tx();\n\
         return [body, body];",
        small_limits(),
    );
    let (outcome, committed) = module.call_http_handler(&[], &[1]);
    assert!(
        matches!(outcome, ProcedureOutcome::Returned(_)),
        "{outcome:?}"
    );
    assert_eq!(committed, 1);
    let logs = module.console.messages();
    assert!(logs[0].starts_with("Info: errno 2 "), "{logs:?}");
    assert_eq!(
        logs[1],
        "Error: aborting dangling anonymous transaction in procedure test_procedure"
    );
}

#[test]
fn what_is_no_response_is_a_failure() {
    for (body, text) in [
        (
            "return 'text';",
            "Uncaught TypeError: Expected tuple return from `__call_http_handler__`, got string",
        ),
        (
            "return [body];",
            "Uncaught TypeError: Expected tuple return from `__call_http_handler__`, got ",
        ),
        (
            "return [body, body, body];",
            "Uncaught TypeError: Expected tuple return from `__call_http_handler__`, got ",
        ),
        (
            "return [body, 'text'];",
            "Uncaught TypeError: Expected tuple return from `__call_http_handler__`, got ",
        ),
        (
            "return;",
            "Uncaught TypeError: Expected tuple return from `__call_http_handler__`, got undefined",
        ),
        (
            "return Object.defineProperty([body, body], 1, { get() { throw new RangeError('odd'); } });",
            "Uncaught RangeError: odd",
        ),
        ("throw new SenderError('no');", "no"),
        (
            "throw new TypeError('broken');",
            "Uncaught TypeError: broken",
        ),
    ] {
        let mut module = Running::http_handler(body, small_limits());
        for _ in 0..2 {
            let (outcome, _) = module.call_http_handler(&[1], &[2]);
            let message = failed(outcome);
            assert!(message.starts_with(text), "{body}: {message}");
        }
    }
}

#[test]
fn a_module_of_an_older_package_says_that_it_has_none() {
    let mut module = Running::procedure("return args;", small_limits());
    let message = failed(module.call_http_handler(&[1], &[2]).0);
    assert!(
        message.starts_with("Uncaught TypeError: the module has no hook `__call_http_handler__`"),
        "{message}"
    );
    assert_eq!(
        module.call_procedure(&[4]).0,
        ProcedureOutcome::Returned(vec![4])
    );
}

#[test]
fn endless_handlers_are_stopped() {
    let limits = HostLimits {
        call_ms_max: 100,
        ..small_limits()
    };
    let mut module = Running::http_handler("if (body[0]) for (;;); return [body, body];", limits);
    match module.call_http_handler(&[], &[1]).0 {
        ProcedureOutcome::TimedOut { message } => {
            assert!(message.contains("[LC0720]"), "{message}")
        }
        other => panic!("{other:?}"),
    }
    if module.instance.is_poisoned() {
        module.replace();
    }
    let (outcome, _) = module.call_http_handler(&[], &[0]);
    assert!(
        matches!(outcome, ProcedureOutcome::Returned(_)),
        "{outcome:?}"
    );
}
