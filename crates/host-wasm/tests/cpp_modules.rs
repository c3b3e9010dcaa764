//! A module in C++ with the binding of `templates/basic-cpp`, on the real datastore. Without clang for WebAssembly these tests
//! say so, and test nothing.

use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;

use crate::common::*;
use crate::modules;
use lightcone_engine::CommitOutput;
use lightcone_host::{
    HostLimits, ProcedureOutcome, ReadSet, ReadView, ReducerOutcome, ViewCall, ViewOutcome,
};
use lightcone_schema::{Lifecycle, ModuleDef, TableAccess, Visibility};
use lightcone_types::{AlgebraicType, Identity, Typespace};

/// What `scripts/cpp-module.sh` ends with where there is no compiler.
const SKIPPED: i32 = 77;

/// `modules/coverage-cpp`, if it can be built here.
fn program() -> Option<&'static [u8]> {
    static PROGRAM: OnceLock<Option<Vec<u8>>> = OnceLock::new();
    let program = PROGRAM.get_or_init(|| {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join("coverage-cpp.wasm");
        let status = Command::new(root.join("scripts/cpp-module.sh"))
            .arg(root.join("modules/coverage-cpp"))
            .arg(&out)
            .status()
            .expect("scripts/cpp-module.sh runs");
        if status.code() == Some(SKIPPED) {
            return None;
        }
        assert!(status.success(), "scripts/cpp-module.sh: {status}");
        Some(std::fs::read(&out).expect("the script wrote the module"))
    });
    program.as_deref()
}

/// A database that runs the module, one transaction per call.
struct Database {
    running: Running,
    def: ModuleDef,
}

impl Database {
    fn start() -> Option<Database> {
        let limits = HostLimits {
            call_ms_max: 5000,
            load_ms_max: 5000,
            memory_bytes_max: 128 << 20,
            ..HostLimits::default()
        };
        let mut running = Running::start_binary(program()?, limits);
        let def = ModuleDef::from_bsatn(running.module.describe())
            .unwrap_or_else(|errors| panic!("{errors}"));
        running.datastore = modules::database(&def);
        Some(Database { running, def })
    }

    fn call(&mut self, reducer: &str, args: &[u8]) -> ReducerOutcome {
        let (id, _) = self.def.reducer(reducer).expect("a reducer");
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
        outcome
    }

    fn call_procedure(&mut self, procedure: &str, args: &[u8]) -> ProcedureOutcome<Vec<u8>> {
        let procedures = &self.def.root.procedures;
        let id = procedures.iter().position(|p| p.name == procedure);
        self.running
            .call_procedure(id.expect("a procedure") as u32, args)
    }

    fn rows(&self, table: &str) -> u64 {
        let datastore = &self.running.datastore;
        let id = datastore.table_id_from_name(table).expect("a table");
        datastore.table(id).expect("a table").rows().row_count()
    }

    fn log(&self) -> String {
        self.running.console.lines().join("\n")
    }
}

fn text(text: &str) -> Vec<u8> {
    [&(text.len() as u32).to_le_bytes()[..], text.as_bytes()].concat()
}

#[test]
fn everything_that_the_module_can_check_itself() {
    let Some(mut database) = Database::start() else {
        return;
    };
    for (reducer, args) in [
        ("init", vec![]),
        ("connected", vec![]),
        ("check_context", vec![]),
        ("check_tables", vec![]),
        ("check_indexes", vec![]),
        ("check_large_scan", 3000_u32.to_le_bytes().to_vec()),
        ("disconnected", vec![]),
    ] {
        assert_eq!(
            database.call(reducer, &args),
            ReducerOutcome::Ok,
            "{reducer}"
        );
    }
    let log = database.log();
    assert!(log.contains(r#""message":"made""#), "{log}");
    assert!(log.contains(r#""message":"connected 0102""#), "{log}");
}

#[test]
fn the_definition_says_what_the_macros_say() {
    let Some(Database { def, .. }) = Database::start() else {
        return;
    };
    let table = |name: &str| {
        let found = def.root.tables.iter().find(|table| table.name == name);
        found.unwrap_or_else(|| panic!("no table {name}"))
    };
    let person = table("person");
    assert_eq!(person.primary_key.map(|column| column.index()), Some(0));
    let indexes: Vec<&str> = person.indexes.iter().map(|i| i.name.as_str()).collect();
    for index in [
        "person_age_name_idx_btree",
        "person_age_idx_hash",
        "person_id_idx_btree",
        "person_name_idx_btree",
    ] {
        assert!(indexes.contains(&index), "{index} in {indexes:?}");
    }
    assert_eq!(indexes.len(), 4, "{indexes:?}");
    assert_eq!(person.constraints.len(), 2);
    assert_eq!(person.sequences.len(), 1);
    assert_eq!(table("secret").access, TableAccess::Private);
    assert!(table("happening").is_event && !person.is_event);
    let lifecycle = |name: &str| def.reducer(name).expect("a reducer").1.lifecycle;
    assert_eq!(lifecycle("init"), Some(Lifecycle::Init));
    assert_eq!(lifecycle("connected"), Some(Lifecycle::OnConnect));
    assert_eq!(lifecycle("disconnected"), Some(Lifecycle::OnDisconnect));
    assert_eq!(lifecycle("add"), None);
    let tick = def.reducer("tick").expect("a reducer").1;
    assert_eq!(tick.visibility, Visibility::Private);
    let add = def.reducer("add").expect("a reducer").1;
    let names: Vec<_> = add.params.elements.iter().map(|e| e.name()).collect();
    assert_eq!(names, [Some("name"), Some("age")]);
}

#[test]
fn failures_undo_what_the_call_did() {
    let Some(mut database) = Database::start() else {
        return;
    };
    let bob = [text("bob"), vec![7]].concat();
    assert_eq!(database.call("add", &bob), ReducerOutcome::Ok);
    assert_eq!(
        database.call("add", &bob),
        ReducerOutcome::UserError("bob is there already".into())
    );
    assert_eq!(
        database.call("fail", &text("because")),
        ReducerOutcome::UserError("because".into())
    );
    assert_eq!(database.rows("secret"), 0);
    for reducer in ["panic", "break_unique"] {
        let outcome = database.call(reducer, &[]);
        assert!(
            matches!(outcome, ReducerOutcome::Fatal { .. }),
            "{outcome:?}"
        );
        database.running.replace();
    }
    assert_eq!(database.rows("person"), 1);
    let log = database.log();
    assert!(
        log.contains(r#""message":"printed 1""#),
        "stdout is the log: {log}"
    );
    assert!(
        log.contains(r#""level":"Panic""#) && log.contains("that is the end"),
        "{log}"
    );
    assert!(
        log.contains("inserting a row failed with error 12"),
        "{log}"
    );
}

#[test]
fn scheduled_rows_get_their_numbers() {
    let Some(mut database) = Database::start() else {
        return;
    };
    let outcome = database.call("start_timer", &text("soon"));
    assert_eq!(outcome, ReducerOutcome::Ok);
    assert_eq!(database.rows("timer"), 1);
    // As the host calls it: with the row.
    let row = [
        &1_u64.to_le_bytes()[..],
        &[1],
        &1_700_000_000_000_000_i64.to_le_bytes(),
        &text("soon"),
    ]
    .concat();
    assert_eq!(database.call("tick", &row), ReducerOutcome::Ok);
    let log = database.log();
    assert!(log.contains(r#""message":"timer 1""#), "{log}");
    assert!(log.contains(r#""message":"tick soon by itself""#), "{log}");
}

#[test]
fn views_are_of_their_viewer_or_of_all() {
    let Some(mut database) = Database::start() else {
        return;
    };
    for name in ["ann", "bob"] {
        let args = [text(name), vec![7]].concat();
        assert_eq!(database.call("add", &args), ReducerOutcome::Ok);
    }
    let mut view = |sender: Option<Identity>| {
        let call = ViewCall {
            id: 0,
            name: &"test_view".into(),
            sender,
            args: &[],
        };
        database.running.datastore.begin();
        let rows = ReadView::of(&mut database.running.datastore);
        let mut reads = ReadSet::default();
        let outcome = database.running.instance.call_view(rows, &call, &mut reads);
        database.running.datastore.rollback();
        match outcome {
            ViewOutcome::Rows(rows) => u32::from_le_bytes(rows[..4].try_into().expect("a count")),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(view(Identity::from_hex(IDENTITY_HEX).ok()), 2);
    assert_eq!(view(Some(Identity::ZERO)), 0);
    assert_eq!(view(None), 1);
}

#[test]
fn procedures_commit_or_not() {
    let Some(mut database) = Database::start() else {
        return;
    };
    for (keep, count) in [(0, 1_u64), (1, 1), (0, 2)] {
        let outcome = database.call_procedure(
            "count_and_add",
            &[text(&count.to_string()), vec![keep]].concat(),
        );
        assert_eq!(
            outcome,
            ProcedureOutcome::Returned(count.to_le_bytes().to_vec())
        );
    }
    assert_eq!(database.rows("secret"), 1);
}

/// Random values of every type come back from a table byte by byte.
#[test]
fn values_of_every_type_come_back_as_they_went() {
    let Some(mut database) = Database::start() else {
        return;
    };
    let mut random = Random(1);
    for round in 0..200_u32 {
        for procedure in ["echo_numbers", "echo_others"] {
            let mut def = database.def.root.procedures.iter();
            let def = def.find(|p| p.name == procedure);
            let ty = def.expect("a procedure").return_type.clone();
            let mut value = Vec::new();
            random.value(&database.def.root.typespace, &ty, &mut value);
            // The key.
            value[..4].copy_from_slice(&round.to_le_bytes());
            let outcome = database.call_procedure(procedure, &value);
            assert_eq!(outcome, ProcedureOutcome::Returned(value), "round {round}");
        }
    }
    assert_eq!(database.rows("others"), 200);
}

/// A linear congruential generator.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }

    /// The BSATN of a value.
    fn value(&mut self, typespace: &Typespace, ty: &AlgebraicType, out: &mut Vec<u8>) {
        use AlgebraicType as T;
        let bytes = match ty {
            T::Ref(reference) => {
                let ty = typespace.get(*reference).expect("a type");
                return self.value(typespace, ty, out);
            }
            T::Product(product) => {
                for element in &product.elements {
                    self.value(typespace, &element.algebraic_type, out);
                }
                return;
            }
            T::Sum(sum) => {
                let tag = self.below(sum.variants.len() as u64) as usize;
                out.push(tag as u8);
                return self.value(typespace, &sum.variants[tag].algebraic_type, out);
            }
            T::Array(element) => {
                let count = self.below(4) as u32;
                out.extend(count.to_le_bytes());
                for _ in 0..count {
                    self.value(typespace, element, out);
                }
                return;
            }
            T::String => {
                let words = ["", "a", "žluťoučký", "\0", "𝄞"];
                let word = words[self.below(words.len() as u64) as usize];
                return out.extend(text(word));
            }
            T::Bool => {
                let value = self.below(2) as u8;
                return out.push(value);
            }
            T::Integer(integer) => integer.bytes(),
            T::F32 => 4,
            T::F64 => 8,
        };
        out.extend((0..bytes).map(|_| self.below(256) as u8));
    }
}
