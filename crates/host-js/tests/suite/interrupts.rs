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
            "const again = () => { Promise.resolve().then(again); }; again()",
            "Promise.resolve({ then: endless })",
        ],
        &["Info: finally"],
    );
}

/// Where the stack ends, functions of all kinds end in an exception.
#[test]
fn every_kind_of_function_may_meet_the_end_of_the_stack() {
    // Exceptions at the end of the stack are V8's own business, and slow there.
    let rooms = if cfg!(feature = "v8") { "1" } else { "12" };
    let mut module = Running::script_with(
        // Long traces at each of thousands of depths would take minutes.
        "Error.stackTraceLimit = 10;\n\
         const sync = [() => 1, (a, b, c, d) => [a, b, c, d], function () { return arguments.length; },\n\
           () => new Promise((done) => done(1)), () => Promise.reject(1).catch(() => {}), () => [3, 1, 2].sort((a, b) => a - b),\n\
           () => JSON.stringify({ toJSON: () => 1 }), () => 'a'.replace(/a/, () => 'b'), () => new Error('e').stack.length,\n\
           () => attempt(() => sys.table_id_from_name('missing')), () => sys.console_log(4, 'x'), () => new TextDecoder('utf-8').decode(new Uint8Array(3)),\n\
           () => { using x = { [Symbol.dispose]() {} }; }, () => { for (const x of new Set([1])) return x; }, () => BigInt(2) ** 70n,\n\
           () => new (class extends Map { constructor() { super([[1, 2]]); } })(), () => eval('1 + 1'), () => structured.call?.(1)];\n\
         const kinds = [...sync, async () => 1, async () => { await 1; }, async () => { throw 1; }, async (a, b) => { try { await a; } finally { b; } },\n\
           () => [...(function* () { yield 1; })()], async () => { for await (const x of (async function* () { yield 1; })()) x; },\n\
           () => { (async () => { await null; await null; })(); }, () => Promise.all([1, 2]), () => Promise.resolve({ then(f) { f(1); } })];\n\
         const structured = {};",
        &"const kind = kinds[id];\n\
         const deeper = (room) => { try { const result = kind(1, 2, 3, 4); result?.catch?.(() => {}); } catch {} return deeper(room); };\n\
         for (let room = 0; room < ROOMS; room++) {\n\
           const wide = new Function('deeper', 'kind', 'let ' + Array.from({ length: room * 3 + 1 }, (_, i) => 'v' + i + ' = ' + i).join() + '; return () => { try { const r = kind(1, 2, 3, 4); r?.catch?.(() => {}); } catch {} return deeper() + v0; };');\n\
           const again = wide(() => again(), kind);\n\
           try { again(); } catch (e) { if (!(e instanceof RangeError)) throw e; }\n\
           const pad = (n) => n === 0 ? again() : pad(n - 1) + 1;\n\
           try { pad(room); } catch (e) { if (!(e instanceof RangeError)) throw e; }\n\
         }\n\
         try { deeper(0); } catch (e) { if (!(e instanceof RangeError)) throw e; }"
            .replace("ROOMS", rooms),
        lightcone_host::HostLimits {
            stack_bytes_max: 512 << 10,
            call_ms_max: 60_000,
            ..lightcone_host::HostLimits::default()
        },
    );
    for id in 0..27 {
        let outcome = module.call(id, &[]);
        module.console.take();
        assert_eq!(outcome, ReducerOutcome::Ok, "{id}");
    }
}
