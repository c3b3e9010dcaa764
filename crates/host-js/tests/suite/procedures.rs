//! `__call_procedure__` and its transactions (spec 04 §6.2, 03 §10).

use lightcone_host::{Account, HostEnv, HostLimits, InstanceAccounts, Kind, ProcedureOutcome};

use crate::common::{config, small_limits, Running};

/// The BSATN of a person without a name: id, length of the name, age.
const INSERT: &str = "const row = new Uint8Array(13); row[0] = args[0]; row[12] = 7;\n\
    const insert = () => sys.datastore_insert_bsatn(sys.table_id_from_name('person'), row.buffer, 13);";

fn failed(outcome: ProcedureOutcome<Vec<u8>>) -> String {
    match outcome {
        ProcedureOutcome::Failed { message } => message,
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_hook_gets_what_the_chapter_says_and_returns_bytes() {
    let mut module = Running::procedure(
        "log(id, sender, connection, timestamp, args instanceof Uint8Array, args.join(), args.buffer.byteLength);\n\
         return new Uint8Array([9, 1, 2, 9]).subarray(1, 3);",
        small_limits(),
    );
    let (outcome, committed) = module.call_procedure(&[5, 6]);
    assert_eq!(outcome, ProcedureOutcome::Returned(vec![1, 2]));
    assert_eq!(committed, 0);
    assert_eq!(
        module.console.messages(),
        ["Info: 0 4660 7 1700000000000000 true 5,6 2"]
    );
    let (outcome, _) = module.call_procedure(&[]);
    assert_eq!(outcome, ProcedureOutcome::Returned(vec![1, 2]));
}

/// docs/js-abi.md.
#[test]
fn the_direct_hook_gets_calls_in_the_buffer() {
    let mut module = Running::direct_procedure(
        "const fast = globalThis[Symbol.for('lightcone.sys.1')], call = new DataView(fast.callBuffer);\n\
         log(id, length, call.getBigUint64(0, true), call.getBigUint64(32, true), call.getBigInt64(48, true), length && call.getUint8(64 + length - 1), this === hooks);\n\
         if (length === 1) fast.callBuffer.transfer();\n\
         return kept.subarray(0, length);",
        "log('standard', args.length); return args.subarray(0, 1);",
        small_limits(),
    );
    let returned = |module: &mut Running, args: &[u8]| match module.call_procedure(args).0 {
        ProcedureOutcome::Returned(value) => value,
        other => panic!("{other:?}"),
    };
    assert_eq!(returned(&mut module, &[5, 6]), [1, 2]);
    assert!(returned(&mut module, &[]).is_empty());
    assert_eq!(returned(&mut module, &[3; 4032]).len(), 4032);
    assert_eq!(returned(&mut module, &[3; 4033]), [3]);
    // From here on the buffer is gone.
    assert_eq!(returned(&mut module, &[9]), [1]);
    assert_eq!(returned(&mut module, &[9, 9]), [9]);
    assert_eq!(
        module.console.messages(),
        [
            "Info: 0 2 4660 7 1700000000000000 6 true",
            "Info: 0 0 4660 7 1700000000000000 0 true",
            "Info: 0 4032 4660 7 1700000000000000 3 true",
            "Info: standard 4033",
            "Info: 0 1 4660 7 1700000000000000 9 true",
            "Info: standard 2",
        ]
    );
}

#[test]
fn transactions_start_end_and_are_needed() {
    let mut module = Running::procedure(
        &format!(
            "{INSERT}\n\
             log(attempt(() => sys.table_id_from_name('person')));\n\
             log(attempt(() => sys.procedure_commit_mut_tx()), attempt(() => sys.procedure_abort_mut_tx()));\n\
             log(typeof sys.procedure_start_mut_tx(), attempt(() => sys.procedure_start_mut_tx()));\n\
             insert();\n\
             log(attempt(() => sys.procedure_http_request(new Uint8Array(0), new Uint8Array(0))));\n\
             log(sys.procedure_commit_mut_tx());\n\
             sys.procedure_start_mut_tx(); row[0]++; insert(); log(sys.procedure_abort_mut_tx());\n\
             sys.procedure_start_mut_tx();\n\
             log(sys.datastore_table_row_count(sys.table_id_from_name('person')));\n\
             const rows = sys.datastore_table_scan_bsatn(sys.table_id_from_name('person'));\n\
             sys.procedure_commit_mut_tx();\n\
             log(attempt(() => sys.row_iter_bsatn_advance(rows, new ArrayBuffer(100))));\n\
             return new Uint8Array(0);"
        ),
        small_limits(),
    );
    let (outcome, committed) = module.call_procedure(&[3]);
    let logs = module.console.messages();
    assert_eq!(outcome, ProcedureOutcome::Returned(Vec::new()), "{logs:?}");
    assert_eq!(committed, 1, "what changed nothing left nothing");
    let starts = [
        "Info: errno 2 ",
        "Info: errno 18 ",
        "Info: bigint errno 17 ",
        "Info: errno 17 ",
        "Info: undefined",
        "Info: undefined",
        "Info: 1",
        "Info: errno 6 ",
    ];
    assert_eq!(logs.len(), starts.len(), "{logs:?}");
    for (log, start) in logs.iter().zip(starts) {
        assert!(log.starts_with(start), "{logs:?}");
    }
    assert!(logs[1].contains(" errno 18 "), "{logs:?}");
}

#[test]
fn what_is_left_open_is_rolled_back_and_told() {
    let mut module = Running::procedure(
        &format!("{INSERT}\nsys.procedure_start_mut_tx(); insert(); return new Uint8Array(0);"),
        small_limits(),
    );
    for _ in 0..2 {
        let (outcome, committed) = module.call_procedure(&[3]);
        assert_eq!(outcome, ProcedureOutcome::Returned(Vec::new()));
        assert_eq!(committed, 0);
        assert_eq!(
            module.console.messages(),
            ["Error: aborting dangling anonymous transaction in procedure test_procedure"]
        );
    }
}

#[test]
fn failures_keep_what_was_committed() {
    for (end, text) in [
        ("throw new SenderError('no');", "no"),
        (
            "throw new TypeError('broken');",
            "Uncaught TypeError: broken",
        ),
        (
            "return 7;",
            "Uncaught TypeError: Expected `Uint8Array` return from `__call_procedure__`",
        ),
        (
            "sys.procedure_http_request(new Uint8Array(0), new Uint8Array(0));",
            "Uncaught TypeError: failed to decode http request: ",
        ),
    ] {
        let mut module = Running::procedure(
            &format!("{INSERT}\nsys.procedure_start_mut_tx(); insert(); sys.procedure_commit_mut_tx(); {end}"),
            small_limits(),
        );
        let (outcome, committed) = module.call_procedure(&[3]);
        let message = failed(outcome);
        assert!(message.starts_with(text), "{message}");
        assert_eq!(committed, 1, "{text}");
    }
}

#[test]
fn a_procedure_that_never_ends_is_stopped() {
    let mut module = Running::procedure(
        "if (args[0] === 1) { sys.procedure_start_mut_tx(); for (;;); } return new Uint8Array(0);",
        small_limits(),
    );
    let (outcome, committed) = module.call_procedure(&[1]);
    assert!(
        matches!(outcome, ProcedureOutcome::TimedOut { message } if message.ends_with("[LC0720]"))
    );
    assert_eq!(committed, 0);
    let (outcome, _) = module.call_procedure(&[2]);
    assert_eq!(outcome, ProcedureOutcome::Returned(Vec::new()));
}

#[test]
fn what_a_procedure_commits_is_bounded() {
    let mut module = Running::procedure(
        &format!(
            "{INSERT}\n\
             for (let i = 0; i < 100; i++) {{ sys.procedure_start_mut_tx(); row[1]++; insert(); sys.procedure_commit_mut_tx(); }}"
        ),
        HostLimits {
            procedure_bytes_max: 500,
            ..small_limits()
        },
    );
    let (outcome, committed) = module.call_procedure(&[3]);
    let message = failed(outcome);
    assert!(
        message.ends_with("procedure-bytes-max = 500 [LC0724]"),
        "{message}"
    );
    assert!((2..100).contains(&committed), "{committed}");
}

/// What a call leaves behind is no more than what an isolate keeps: garbage is given back even without another call.
#[cfg(feature = "v8")]
#[test]
fn an_isolate_gives_back_what_its_largest_call_had() {
    let limits = HostLimits {
        call_ms_max: 30_000,
        memory_bytes_max: 1 << 30,
        ..small_limits()
    };
    let mut module = Running::procedure(
        "const kept = []; for (let i = 0; i < args[0] * 128; i++) kept.push(new Array(1024).fill(i + 0.5));\n\
         return new Uint8Array(0);",
        limits.clone(),
    );
    let memory = Account::root(Kind::Procedures, 1 << 30);
    let mut config = config(limits, module.console.clone());
    config.accounts = InstanceAccounts::of(memory.clone());
    let made = module.module.instantiate(HostEnv::new(config));
    module.instance = made.unwrap_or_else(|error| panic!("{error}"));
    // Where V8 collects by itself is a matter of luck.
    for mebibytes in [50, 100, 140, 200, 220, 250] {
        let (outcome, _) = module.call_procedure(&[mebibytes]);
        assert_eq!(outcome, ProcedureOutcome::Returned(Vec::new()));
        let kept = memory.used();
        assert!(kept <= 96 << 20, "{mebibytes} MiB: {kept}");
    }
}

/// What the isolates of a database's procedures have together is theirs only as long as they use it.
#[test]
fn isolates_of_procedures_have_one_memory() {
    const MEMORY_BYTES: usize = 128 << 20;
    let limits = HostLimits {
        call_ms_max: 30_000,
        memory_bytes_max: 1 << 30,
        ..small_limits()
    };
    let mut module = Running::procedure(
        "const mebibytes = args[0], kept = [];\n\
         if (args[1] === 1) try { kept.push(new ArrayBuffer(mebibytes * 2 ** 20)); log('got it'); } catch (error) { log(error.name); }\n\
         else for (let i = 0; i < mebibytes * 128; i++) kept.push(new Array(1024).fill(i + 0.5));\n\
         return new Uint8Array(0);",
        limits.clone(),
    );
    let memory = Account::root(Kind::Procedures, MEMORY_BYTES);
    let instance = |module: &Running| {
        let mut config = config(limits.clone(), module.console.clone());
        config.accounts = InstanceAccounts::of(memory.clone());
        let made = module.module.instantiate(HostEnv::new(config));
        made.unwrap_or_else(|error| panic!("{error}"))
    };
    module.instance = instance(&module);
    for mebibytes in [0, 50] {
        let (outcome, _) = module.call_procedure(&[mebibytes, 0]);
        assert_eq!(outcome, ProcedureOutcome::Returned(Vec::new()));
        assert!(memory.used() > 0);
    }
    let (outcome, _) = module.call_procedure(&[250, 0]);
    let message = failed(outcome);
    assert!(
        message.contains("procedure-memory-bytes-max = 134217728") && message.ends_with("[LC0722]"),
        "{message}"
    );
    module.instance = instance(&module);
    let (outcome, _) = module.call_procedure(&[0, 0]);
    assert_eq!(outcome, ProcedureOutcome::Returned(Vec::new()));
    assert!(memory.used() <= 40 << 20, "the other isolate is gone");
    // What another one has, this one lacks.
    let others = MEMORY_BYTES - memory.used() - (20 << 20);
    memory.take(others).expect("it is left");
    for (mebibytes, said) in [(30, "RangeError"), (10, "got it")] {
        let (outcome, _) = module.call_procedure(&[mebibytes, 1]);
        assert_eq!(outcome, ProcedureOutcome::Returned(Vec::new()));
        let messages = module.console.messages();
        if cfg!(feature = "v8") {
            assert_eq!(messages, [format!("Info: {said}")]);
        }
    }
    memory.give_back(others);
    module.replace();
    assert_eq!(memory.used(), 0);
}
