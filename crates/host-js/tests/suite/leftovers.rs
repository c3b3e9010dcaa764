//! Nothing of a call runs in another one: what a stopped call left is dropped, what any other call left has run in it (§2).

use lightcone_host::{HostLimits, ReducerOutcome};

use crate::common::{script, small_limits, Running};

const LATE: &str = "let late = 0; const table = () => sys.table_id_from_name('person');\n\
    const leak = (what) => { late++; log('late', what);\n\
      const row = new Uint8Array([5,0,0,0,0,0,0,0, 1,0,0,0, 65, 7]); sys.datastore_insert_bsatn(table(), row.buffer, row.length); };\n\
    const endless = () => { for (;;); };\n\
    const trap = () => { for (;;) sys.datastore_table_scan_bsatn(table()); };";

/// What each of them leaves must not run in a later call.
const STOPPED: &[&str] = &[
    "Promise.resolve().then(() => leak('job')); endless();",
    "Promise.reject(1).catch(() => leak('rejection')).finally(() => leak('finally')); endless();",
    "(async () => { await null; leak('await'); })(); endless();",
    "(async () => { for await (const x of (async function* () { yield 1; yield 2; })()) leak('loop'); })(); endless();",
    "Promise.resolve({ then(resolve) { leak('thenable'); resolve(); } }); endless();",
    "(async () => { await null; endless(); })(); Promise.resolve().then(() => leak('behind'));",
    "Promise.resolve().then(() => { Promise.resolve().then(() => leak('nested')); endless(); });",
    "for (let i = 0; i < 10000; i++) Promise.resolve().then(() => leak(i)); endless();",
    "Promise.resolve().then(() => leak('job of a trap')); trap();",
    "(async () => { try { trap(); } finally { await null; leak('finally of a trap'); } })();",
    "Promise.resolve().then(trap); Promise.resolve().then(() => leak('behind a trap'));",
];

#[test]
fn what_a_stopped_call_left_is_dropped() {
    let limits = HostLimits {
        iterators_max: 3,
        ..small_limits()
    };
    let cases: String = STOPPED
        .iter()
        .enumerate()
        .map(|(id, body)| format!("case {id}: {{ {body} break; }}\n"))
        .collect();
    let mut module = Running::script_with(
        LATE,
        &format!(
            "globalThis.calls = (globalThis.calls ?? 0) + 1;\n\
             switch (id) {{ {cases} default: log('calls', calls > 1, late, sys.datastore_table_row_count(table())); }}"
        ),
        limits,
    );
    for (id, body) in STOPPED.iter().enumerate() {
        let outcome = module.call(id as u32, &[]);
        assert!(
            matches!(
                outcome,
                ReducerOutcome::TimedOut { .. } | ReducerOutcome::Fatal { .. }
            ),
            "{body}: {outcome:?}"
        );
        module.console.take();
        let is_kept = !module.instance.is_poisoned();
        if !is_kept {
            module.replace();
        }
        for call in 0..2 {
            assert_eq!(module.call(1000, &[]), ReducerOutcome::Ok, "{body}");
            let kept = is_kept || call > 0;
            assert_eq!(
                module.console.messages(),
                [format!("Info: calls {kept} 0 0")],
                "{body}, call {call}"
            );
        }
    }
}

/// V8 keeps the isolate with its globals; only what was queued goes (§5.3).
#[cfg(feature = "v8")]
#[test]
fn a_stopped_call_with_jobs_keeps_the_isolate() {
    let mut module = Running::script_with(
        LATE,
        "if (id === 0) { globalThis.kept = 'kept'; Promise.resolve().then(() => leak('job')); endless(); }\n\
         log(kept); Promise.resolve().then(() => log('its own job'));",
        small_limits(),
    );
    for _ in 0..3 {
        assert!(matches!(
            module.call(0, &[]),
            ReducerOutcome::TimedOut { .. }
        ));
        assert!(!module.instance.is_poisoned());
        module.console.take();
        assert_eq!(module.call(1, &[]), ReducerOutcome::Ok);
        assert_eq!(
            module.console.messages(),
            ["Info: kept", "Info: its own job"]
        );
    }
}

/// Also after an exception, and after a procedure: what was queued runs before the call is over.
#[test]
fn what_a_call_left_runs_in_it() {
    let mut module = Running::script(
        "log('call', id);\n\
         (async () => { await null; await null; log('job of', id); })(); Promise.reject(1);\n\
         if (id === 1) throw new Error('x'); if (id === 2) throw new SenderError('y'); if (id === 3) return 5;",
    );
    for id in 0..4 {
        let outcome = module.call(id, &[]);
        assert_eq!(outcome == ReducerOutcome::Ok, id == 0, "{outcome:?}");
        let messages = module.console.messages();
        assert!(
            messages.contains(&format!("Info: job of {id}")),
            "{messages:?}"
        );
        assert!(!messages
            .iter()
            .any(|m| m.contains("job of") && *m != format!("Info: job of {id}")));
    }
}

/// A function that waits for ever stays where it is; a registry never calls back.
#[test]
fn what_waits_for_ever_never_runs() {
    let limits = HostLimits {
        call_ms_max: 30_000,
        ..small_limits()
    };
    let mut module = Running::script_with(
        "const registry = new FinalizationRegistry((what) => log('late', what)); let finalized = 0;",
        "(async () => { try { await new Promise(() => {}); } finally { log('late', id); } })();\n\
         for (let i = 0; i < 100; i++) registry.register({ i, fill: new Array(100).fill(i) }, i);\n\
         let garbage; for (let i = 0; i < 20000; i++) garbage = new Array(50).fill({ i });\n\
         log('call', garbage.length);",
        limits,
    );
    for id in 0..20 {
        assert_eq!(module.call(id, &[]), ReducerOutcome::Ok);
        assert_eq!(module.console.messages(), ["Info: call 50"]);
    }
}

/// What loading left has run before the first call.
#[test]
fn what_the_load_phase_left_does_not_run_in_a_call() {
    let program = script(
        "const ran = []; const late = (what) => () => { ran.push(what + ' ' + attempt(() => sys.table_id_from_name('person')).slice(0, 5)); };\n\
         Promise.resolve().then(late('evaluation'));",
        "log(ran.join());",
    )
    .replace(
        "[sys.moduleHooks]() {",
        "[sys.moduleHooks]() { Promise.resolve().then(late('hooks'));",
    );
    let mut module = Running::loaded(&program, small_limits());
    assert_eq!(module.logs(), ["evaluation Error,hooks errno"]);
}
