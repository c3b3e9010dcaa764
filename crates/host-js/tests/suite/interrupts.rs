//! A call is stopped wherever it is: inside callbacks of the language's own functions, and inside those functions.

use lightcone_host::ReducerOutcome;

use crate::common::Running;

/// Runs each program as a call that must be stopped, and checks that nothing of the module ran afterwards: `left` is what
/// it logged before.
fn stopped(programs: &[&str], left: &[&str]) {
    let cases: String = programs
        .iter()
        .enumerate()
        .map(|(id, program)| format!("case {id}: {{ {program}; break; }}\n"))
        .collect();
    let mut module = Running::script(&format!(
        "const endless = () => {{ for (;;); }};\n\
         try {{ switch (id) {{ {cases} default: log('alive'); }} }}\n\
         catch {{ log('caught'); }} finally {{ if (id < {count}) log('finally'); }}",
        count = programs.len()
    ));
    for (id, program) in programs.iter().enumerate() {
        let outcome = module.call(id as u32, &[]);
        let ReducerOutcome::TimedOut { message } = outcome else {
            panic!("{program}: {outcome:?} {:?}", module.console.take());
        };
        assert!(message.contains("call-ms-max = 300"), "{message}");
        assert_eq!(module.console.messages(), left, "{program}");
        if module.instance.is_poisoned() {
            module.replace();
        }
        assert_eq!(module.call(1000, &[]), ReducerOutcome::Ok, "{program}");
        assert_eq!(module.console.messages(), ["Info: alive"], "{program}");
    }
}

#[test]
fn callbacks_are_stopped() {
    stopped(&[
        "[3, 2, 1].sort(endless)",
        "[3, 2, 1].map(endless)",
        "Array.from([1], endless)",
        "Array.from({ [Symbol.iterator]: () => ({ next: endless, return() { log('return'); } }) })",
        "const [x] = { [Symbol.iterator]: () => ({ next: endless, return() { log('return'); } }) }",
        "for (const x of (function* () { try { endless(); } finally { log('generator'); } })());",
        "for (const x of { [Symbol.iterator]: () => ({ next: () => ({}), return() { log('return'); } }) }) endless()",
        "JSON.stringify({ toJSON: endless })",
        "JSON.parse('[1]', endless)",
        "'a'.replace(/a/, endless)",
        "'abc'.replaceAll('b', endless)",
        "new Promise(endless)",
        "new Proxy({}, { get: endless }).x",
        "new Proxy({}, { ownKeys: endless }); Object.keys(new Proxy({}, { ownKeys: endless }))",
        "String({ toString: endless })",
        "1 + { valueOf: endless }",
        "new (class { constructor() { endless(); } })()",
        "class X { static { endless(); } }",
        "using x = { [Symbol.dispose]: endless }",
        "(async () => { try { endless(); } finally { log('async'); } })().catch(() => log('rejected'))",
        "new Map([[{}, 1]]).forEach(endless)",
        "Object.groupBy([1], endless)",
        "Reflect.apply(endless, null, [])",
        "eval('endless()')",
        "new Function('f', 'f()')(endless)",
        "({} instanceof { [Symbol.hasInstance]: endless })",
        "`${{ [Symbol.toPrimitive]: endless }}`",
        "new Uint8Array([1, 2]).sort(endless)",
        "try { try { endless(); } finally { endless(); } } catch { endless(); }",
    ], &[]);
}

#[test]
fn regular_expressions_are_stopped() {
    stopped(&["/^(a+)+$/.test('a'.repeat(64) + 'b')"], &[]);
}

/// Micro-tasks run when the reducer is over, `finally` included, and in its time.
#[test]
fn micro_tasks_are_stopped() {
    stopped(
        &[
            "(async () => { try { await 1; endless(); } finally { log('async'); } })().catch(() => log('rejected'))",
            "Promise.resolve().then(endless).catch(() => log('rejected')).finally(() => log('settled'))",
            "const again = () => Promise.resolve().then(again); again()",
            "Promise.resolve({ then: endless })",
        ],
        &["Info: finally"],
    );
}
