//! Modules built with the published crate `spacetimedb`, on the real datastore.

use std::sync::OnceLock;

use crate::common::*;
use crate::modules;
use lightcone_engine::{CommitOutput, ST_CONNECTION_CREDENTIALS_ID};
use lightcone_host::{HostLimits, ReducerOutcome};
use lightcone_schema::ModuleDef;
use lightcone_types::{ConnectionId, Identity};

fn coverage() -> &'static [u8] {
    static PROGRAM: OnceLock<Vec<u8>> = OnceLock::new();
    PROGRAM.get_or_init(|| modules::program("coverage"))
}

/// A database that runs a module, one transaction per call.
struct Database {
    running: Running,
    def: ModuleDef,
}

impl Database {
    fn start(program: &[u8], limits: HostLimits) -> Database {
        let mut running = Running::start_binary(program, limits);
        let def = ModuleDef::from_bsatn(running.module.describe())
            .unwrap_or_else(|errors| panic!("{errors}"));
        running.datastore = modules::database(&def);
        Database { running, def }
    }

    fn coverage() -> Database {
        let limits = HostLimits {
            call_ms_max: 2000,
            memory_bytes_max: 64 << 20,
            ..HostLimits::default()
        };
        Database::start(coverage(), limits)
    }

    fn call(&mut self, reducer: &str, args: &[u8]) -> ReducerOutcome {
        let (id, _) = self
            .def
            .reducer(reducer)
            .unwrap_or_else(|| panic!("no reducer {reducer}"));
        self.running.datastore.begin();
        let outcome = self.running.call(id as u32, args);
        let datastore = &mut self.running.datastore;
        match outcome {
            ReducerOutcome::Ok => {
                datastore
                    .commit(&mut CommitOutput::default())
                    .expect("the record fits");
            }
            _ => datastore.rollback(),
        }
        assert!(!datastore.in_transaction());
        outcome
    }

    fn rows(&self, table: &str) -> u64 {
        let datastore = &self.running.datastore;
        let id = datastore
            .table_id_from_name(table)
            .unwrap_or_else(|| panic!("no table {table}"));
        datastore.table(id).unwrap().rows().row_count()
    }

    fn next_call_works(&mut self) {
        if self.running.instance.is_poisoned() {
            self.running.replace();
        }
        let args = [&1u32.to_le_bytes()[..], &text("after")].concat();
        assert_eq!(self.call("set_mark", &args), ReducerOutcome::Ok);
        assert_eq!(self.rows("marks"), 1, "nothing of the failed call remains");
    }
}

fn text(text: &str) -> Vec<u8> {
    [&(text.len() as u32).to_le_bytes()[..], text.as_bytes()].concat()
}

#[test]
fn everything_that_a_module_can_check_itself() {
    let mut database = Database::coverage();
    for reducer in [
        "init",
        "check_numbers",
        "check_specials",
        "check_shapes",
        "check_set_semantics",
        "check_scans",
        "check_unique",
        "check_direct",
        "check_btrees",
        "check_sequences",
        "check_random",
        "who_am_i",
        "log_timer",
    ] {
        assert_eq!(database.call(reducer, &[]), ReducerOutcome::Ok, "{reducer}");
    }
    assert_eq!(
        database.call("check_large_scan", &5000u32.to_le_bytes()),
        ReducerOutcome::Ok
    );
    let lines = database.running.console.lines().join("\n");
    assert!(lines.contains("coverage module initialised"), "{lines}");
    assert!(
        lines.contains(&format!("database {IDENTITY_HEX}")),
        "{lines}"
    );
    assert!(
        lines.contains(r#""message":"Timing span \"a span\": "#),
        "{lines}"
    );
}

#[test]
fn claims_come_from_the_credentials_of_the_connection() {
    let mut database = Database::coverage();
    let sender = Identity::from_claims("issuer", "subject");
    // The library derives the identity from the claims and compares it with the sender.
    assert_ne!(sender, Identity::from_hex(IDENTITY_HEX).unwrap());
    let datastore = &mut database.running.datastore;
    datastore.begin();
    let connection = ConnectionId::from_hex(CONNECTION_HEX).unwrap();
    let row = [
        &connection.0.to_le_bytes()[..],
        &text(r#"{"iss":"issuer","sub":"subject","iat":1}"#),
    ]
    .concat();
    datastore
        .insert(ST_CONNECTION_CREDENTIALS_ID, &row, &mut Vec::new())
        .unwrap();
    datastore
        .commit(&mut CommitOutput::default())
        .expect("the record fits");
    match database.call("check_claims", &[]) {
        ReducerOutcome::UserError(text) => assert!(text.starts_with("identity: got "), "{text}"),
        ReducerOutcome::Fatal { message } => {
            let lines = database.running.console.lines().join("\n");
            assert!(lines.contains("Panic"), "{message}\n{lines}");
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn panics_leave_a_record_with_frames() {
    let mut database = Database::coverage();
    let outcome = database.call("panic", &text("oh no"));
    assert!(
        matches!(&outcome, ReducerOutcome::Fatal { message } if message.contains("unreachable")),
        "{outcome:?}"
    );
    let lines = database.running.console.lines();
    let panic = lines
        .iter()
        .find(|line| line.contains("\"Panic\""))
        .expect("a Panic record");
    assert!(panic.contains("\"message\":\"oh no\""), "{panic}");
    assert!(panic.contains("\"function\":\"test_reducer\""), "{panic}");
    assert!(panic.contains("coverage_rs::faults::panic"), "{panic}");
    assert!(!panic.contains("::h0"), "demangled without hashes: {panic}");
    database.next_call_works();
}

#[test]
fn faults_end_their_call_only() {
    let mut database = Database::coverage();
    assert_eq!(
        database.call("fail", &text("sorry")),
        ReducerOutcome::UserError("sorry".into())
    );
    assert!(!database.running.instance.is_poisoned());
    database.next_call_works();
    for (reducer, args, part) in [
        ("break_unique", &[][..], "unreachable"),
        ("trap", &[], "unreachable"),
        ("divide", &[0; 4], "unreachable"),
        ("read_past_end", &[], "out of bounds memory access"),
        (
            "allocate_without_end",
            &[],
            "memory-bytes-max = 67108864 [LC0722]",
        ),
        // The Rust stack of large frames lies at the start of linear memory and runs out first.
        ("overflow_stack", &[], "out of bounds memory access"),
    ] {
        match database.call(reducer, args) {
            ReducerOutcome::Fatal { message } => {
                assert!(message.contains(part), "{reducer}: {message}")
            }
            other => panic!("{reducer}: {other:?}"),
        }
        assert!(database.running.instance.is_poisoned(), "{reducer}");
        database.next_call_works();
    }
    assert!(matches!(
        database.call("loop_for_ever", &[]),
        ReducerOutcome::TimedOut { .. }
    ));
    database.next_call_works();
    database
        .running
        .datastore
        .set_transaction_bytes_max(1 << 20);
    match database.call("insert_without_end", &[]) {
        ReducerOutcome::Fatal { message } => assert!(message.contains("[LC0702]"), "{message}"),
        other => panic!("{other:?}"),
    }
    database.next_call_works();
}

#[test]
fn leaked_iterators_end_with_the_call() {
    let limits = HostLimits {
        iterators_max: 100,
        ..HostLimits::default()
    };
    let mut database = Database::start(coverage(), limits);
    for _ in 0..3 {
        assert_eq!(
            database.call("leak_iterators", &90u32.to_le_bytes()),
            ReducerOutcome::Ok
        );
    }
    match database.call("leak_iterators", &101u32.to_le_bytes()) {
        ReducerOutcome::Fatal { message } => assert!(
            message.contains("iterators-max = 100 [LC0724]"),
            "{message}"
        ),
        other => panic!("{other:?}"),
    }
}

#[test]
fn transfers() {
    let mut database = Database::start(&modules::program("transfer"), HostLimits::default());
    let seed = [&1000u32.to_le_bytes()[..], &100i64.to_le_bytes()].concat();
    assert_eq!(database.call("seed", &seed), ReducerOutcome::Ok);
    assert_eq!(database.rows("accounts"), 1000);
    let transfer = |from: u32, to: u32, amount: i64| {
        [
            &from.to_le_bytes()[..],
            &to.to_le_bytes(),
            &amount.to_le_bytes(),
        ]
        .concat()
    };
    for account in 0..999 {
        assert_eq!(
            database.call("transfer", &transfer(account, account + 1, 60)),
            ReducerOutcome::Ok
        );
    }
    let refused = |text: &str| ReducerOutcome::UserError(text.into());
    assert_eq!(
        database.call("transfer", &transfer(1, 1, 60)),
        refused("same_account")
    );
    assert_eq!(
        database.call("transfer", &transfer(0, 1, 60)),
        refused("insufficient_funds")
    );
    assert_eq!(
        database.call("transfer", &transfer(0, 1000, 1)),
        refused("account_missing")
    );
    assert_eq!(
        database.call("transfer", &transfer(0, 1, 0)),
        refused("non_positive_amount")
    );
    assert_eq!(database.rows("accounts"), 1000);
    assert_eq!(database.running.console.lines().len(), 1);
}
