//! Real bundles: modules written against the published package, as its bundler emits them (§13).

use lightcone_host::ReducerOutcome;
use lightcone_types::Encode;

use crate::common::Running;

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn the_minimal_module_describes_itself_as_in_the_vectors() {
    let module = Running::bundle("minimal");
    assert_eq!(
        hex(module.module.describe()),
        "020f00000000020000000203000000000100000073040004000000626c6f62030700010000006f010200000000040000\
         00736f6d650700040000006e6f6e65020000000002000000000102000000000000000100000042000000000100000000\
         040000004e6f6f70010000000102000000000302000000010000006203000000000100000073040004000000626c6f62\
         030700010000006f01020000000004000000736f6d650700040000006e6f6e6502000000000102000000000404000000\
         6e6f6f700000000001020000000004040000000005000000000d00000000060000000007000000000b000000000c0000\
         000008000000000a0000000009010e00000000"
    );
}

#[test]
fn the_minimal_module_is_called() {
    let mut module = Running::bundle("minimal");
    let args = [0x02, 0, 0, 0, 0xc3, 0xa9, 3, 0, 0, 0, 1, 2, 3, 0, 7];
    assert_eq!(module.call(0, &args), ReducerOutcome::Ok);
    let messages = module.console.messages();
    assert_eq!(messages.len(), 1);
    assert!(
        messages[0].starts_with("Info: { s: 'é', blob: Uint8Array"),
        "{messages:?}"
    );
    assert!(messages[0].ends_with(" false 0000000000000000000000000000000000000000000000000000000000001234 1700000000000000n"), "{messages:?}");
    assert_eq!(module.call(1, &[]), ReducerOutcome::Ok);
    assert!(module.fatal(2).starts_with("Uncaught TypeError"));
    match module.call(0, &[1]) {
        ReducerOutcome::Fatal { message } => {
            assert!(message.starts_with("Uncaught RangeError"), "{message}")
        }
        other => panic!("{other:?}"),
    }
}

fn person(name: &str, age: u8) -> Vec<u8> {
    let mut args = Vec::new();
    name.encode(&mut args);
    args.push(age);
    args
}

#[test]
fn the_person_module_runs() {
    let mut module = Running::bundle("person");
    assert_eq!(
        module.call_named("add", &person("bob", 7)),
        ReducerOutcome::Ok
    );
    assert_eq!(
        module.call_named("add", &person("eve", 8)),
        ReducerOutcome::Ok
    );
    assert_eq!(
        module.console.messages(),
        [
            "Info: inserted { id: 1n, name: 'bob', age: 7 }",
            "Info: inserted { id: 2n, name: 'eve', age: 8 }"
        ]
    );
    match module.call_named("crash", &[]) {
        ReducerOutcome::Fatal { message } => {
            // The position is that of the source, by the bundle's map.
            assert!(
                message.starts_with("Uncaught Error: boom\n\tat "),
                "{message}"
            );
            assert!(message.contains("tests/modules/person.ts:20:"), "{message}");
            assert_eq!(message.lines().count(), 2, "{message}");
        }
        other => panic!("{other:?}"),
    }
    let panic = module.console.take().remove(0);
    assert!(panic.contains("tests/modules/person.ts\",\"line_number\":20,\"function\":\"test_reducer\",\"message\":\"Uncaught Error: boom\""), "{panic}");
    assert_eq!(
        module.call_named("fail", &[]),
        ReducerOutcome::UserError("no way".into())
    );
    assert_eq!(module.call_named("rnd", &[]), ReducerOutcome::Ok);
    let messages = module.console.messages();
    assert!(
        messages[0].starts_with("Info: Timing span \\\"x")
            || messages[0].starts_with("Info: Timing span "),
        "{messages:?}"
    );
    assert_eq!(
        messages[1..],
        [
            "Error: e true 64",
            "Warn: w true 36",
            "Debug: d",
            "Trace: t"
        ]
    );
    assert_eq!(module.call_named("scan", &[]), ReducerOutcome::Ok);
    assert_eq!(
        module.console.messages(),
        [
            "Info: bob,eve 2n 1 1 1 1 1",
            "Info: zed null",
            "Info: true true 0",
            "Info: UniqueAlreadyExists: Value with given unique identifier already exists true",
            "Info: first 3n",
            "Info: 1n 0n",
        ]
    );
}

#[test]
fn transfers_keep_the_sum() {
    let mut module = Running::bundle("transfer");
    let seed = [&100_u32.to_le_bytes()[..], &1000_i64.to_le_bytes()].concat();
    assert_eq!(module.call_named("seed", &seed), ReducerOutcome::Ok);
    let transfer = |from: u32, to: u32, amount: i64| {
        [
            &from.to_le_bytes()[..],
            &to.to_le_bytes(),
            &amount.to_le_bytes(),
        ]
        .concat()
    };
    for turn in 0..20_000_u32 {
        let (from, to) = (turn * 7 % 100, (turn * 7 + 13) % 100);
        assert_eq!(
            module.call_named("transfer", &transfer(from, to, 1)),
            ReducerOutcome::Ok
        );
    }
    assert_eq!(
        module.call_named("transfer", &transfer(1, 2, 1_000_000)),
        ReducerOutcome::UserError("insufficient balance".into())
    );
    let datastore = &module.datastore;
    let accounts = datastore.table_id_from_name("accounts").unwrap();
    let mut sum = 0;
    datastore
        .table(accounts)
        .unwrap()
        .rows()
        .for_each(|_, row| {
            sum += i64::from_le_bytes(row[4..12].try_into().unwrap());
        });
    assert_eq!(sum, 100_000);
}

#[test]
fn the_coverage_module_finds_nothing_wrong() {
    let mut module = Running::bundle("coverage");
    for name in [
        "init",
        "connected",
        "store_values",
        "indexes",
        "iterators",
        "sequences",
        "host_errors",
        "context",
        "logging",
        "disconnected",
    ] {
        let outcome = module.call_named(name, &[]);
        assert_eq!(
            outcome,
            ReducerOutcome::Ok,
            "{name}: {:?}",
            module.console.take()
        );
    }
    let messages = module.console.messages();
    assert!(
        messages.contains(&"Info: auth false none".to_owned()),
        "{messages:?}"
    );
    assert!(
        messages.contains(&"Error: shown".to_owned()),
        "{messages:?}"
    );
    let mut text = Vec::new();
    "refused".encode(&mut text);
    assert_eq!(
        module.call_named("user_error", &text),
        ReducerOutcome::UserError("refused".into())
    );
    for name in ["crash", "recurse_forever"] {
        assert!(
            matches!(module.call_named(name, &[]), ReducerOutcome::Fatal { .. }),
            "{name}"
        );
    }
    assert_eq!(module.call_named("still_works", &[]), ReducerOutcome::Ok);
}
