//! `env_get`: the order of its checks, its sources, what a view has read, and a procedure without a transaction (spec 03 §8.10).

#[path = "common/host.rs"]
mod host;

use std::collections::BTreeMap;
use std::sync::Arc;

use host::Host;
use lightcone_engine::{CommitOutput, Datastore, ModuleRecord, ST_ENV_ID};
use lightcone_host::{
    AbiError, Errno, HostConfig, HostEnv, HostLimits, HostTrap, Lent, NullConsole, OpenTransaction,
    ProgramVariables, ReadProgress, ReadView, Secrets, Transactions,
};
use lightcone_types::{Hash, Identity, Timestamp};

const PROGRAM: Hash = Hash([5; 32]);

/// A database that runs a program with a hash, and has these variables.
fn database(program: Hash, variables: &[(&str, &str)]) -> Datastore {
    let mut datastore = Datastore::new();
    datastore.begin();
    datastore.bootstrap();
    let record = ModuleRecord {
        database_identity: Identity::ZERO,
        owner_identity: Identity::ZERO,
        program_kind: 0,
        program_hash: program,
        program: vec![1; 100],
    };
    datastore.set_module_record(&record).expect("it fits");
    let variables = variables.iter();
    let variables = variables.map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
    datastore
        .set_environment(&variables.collect())
        .expect("they fit");
    let mut output = CommitOutput::default();
    datastore.commit(&mut output).expect("the record fits");
    datastore
}

/// Declares a required variable and two optional ones.
fn host() -> Host {
    let variables = [("NEEDED", false), ("MAY_BE", true), ("EMPTY", true)];
    let variables = variables.map(|(key, optional)| (key.to_owned(), optional));
    let program = ProgramVariables {
        hash: PROGRAM,
        variables: BTreeMap::from(variables),
        secrets: Arc::new(Secrets::in_memory()),
    };
    Host::of(HostConfig {
        program: Some(Arc::new(program)),
        ..HostConfig::new(Identity::ZERO, Arc::new(NullConsole), HostLimits::default())
    })
}

fn in_reducer<R>(datastore: &mut Datastore, body: impl FnOnce(&mut HostEnv) -> R) -> R {
    datastore.begin();
    let lent = Lent::Transaction(OpenTransaction::of(datastore));
    let result = host().call(lent, body);
    datastore.rollback();
    result
}

/// Both parts of the host call.
fn get(env: &mut HostEnv, key: &str) -> Result<Option<String>, AbiError> {
    assert!(
        env.ask_variable(key)?.is_none(),
        "there is nothing to wait for"
    );
    env.variable(key)
}

fn trap(trap: HostTrap) -> Result<Option<String>, AbiError> {
    Err(AbiError::Trap(trap))
}

#[test]
fn checks_come_in_their_order() {
    let wrong = || Err(AbiError::Errno(Errno::HOST_CALL_FAILURE));
    let mut tables = database(PROGRAM, &[("NEEDED", "1"), ("OTHER", "2"), ("EMPTY", "")]);
    in_reducer(&mut tables, |env| {
        for key in ["", "1A", "A-B", "Ä", &"k".repeat(257)] {
            assert_eq!(get(env, key), wrong(), "{key}");
        }
        assert_eq!(
            get(env, &"k".repeat(256)),
            trap(HostTrap::UndeclaredVariable)
        );
        assert_eq!(
            get(env, "OTHER"),
            trap(HostTrap::UndeclaredVariable),
            "stored, not declared"
        );
        assert_eq!(get(env, "NEEDED"), Ok(Some("1".to_owned())));
        assert_eq!(get(env, "EMPTY"), Ok(Some(String::new())));
        assert_eq!(get(env, "MAY_BE"), Ok(None));
    });
    in_reducer(&mut database(PROGRAM, &[]), |env| {
        assert_eq!(get(env, "NEEDED"), trap(HostTrap::MissingVariable));
    });
    in_reducer(&mut database(Hash::ZERO, &[]), |env| {
        assert_eq!(
            get(env, "OTHER"),
            trap(HostTrap::UndeclaredVariable),
            "before the program"
        );
        assert_eq!(get(env, "NEEDED"), trap(HostTrap::ProgramReplaced));
        assert_eq!(get(env, "MAY_BE"), trap(HostTrap::ProgramReplaced));
    });
    // In the load phase nothing is lent, and a submodule's functions have its namespace before their names.
    let mut host = host();
    host.call_again(|env| {
        assert_eq!(get(env, "1A"), wrong(), "before who asks");
        assert_eq!(get(env, "NEEDED"), trap(HostTrap::EnvironmentAccess));
    });
    let mut tables = database(PROGRAM, &[("NEEDED", "1")]);
    in_reducer(&mut tables, |env| {
        env.begin_script_call(&"child.function".into());
        assert_eq!(get(env, "NEEDED"), trap(HostTrap::EnvironmentAccess));
    });
}

#[test]
fn values_have_sources() {
    let mut tables = database(PROGRAM, &[("NEEDED", "abc"), ("EMPTY", "")]);
    in_reducer(&mut tables, |env| {
        assert_eq!(env.variable_source("MAY_BE"), Ok(0));
        let source = env.variable_source("NEEDED").expect("a source");
        assert_eq!(env.source_remaining(source), Ok(3));
        // The empty one is there until it is read.
        let empty = env.variable_source("EMPTY").expect("a source");
        assert!(empty > source);
        assert_eq!(env.source_remaining(empty), Ok(0));
        assert_eq!(
            env.source_read(empty, &mut [0; 8]),
            Ok((0, ReadProgress::Finished))
        );
        let gone = AbiError::Errno(Errno::NO_SUCH_BYTES);
        assert_eq!(env.source_remaining(empty), Err(gone.clone()));
        assert_eq!(env.source_read(empty, &mut [0; 8]), Err(gone));
        // 255 more are alive at a time, and an empty one counts.
        for _ in 1..256 {
            env.variable_source("EMPTY").expect("a source");
        }
        let full = AbiError::Errno(Errno::NO_SPACE);
        assert_eq!(env.variable_source("NEEDED"), Err(full));
        assert_eq!(env.variable_source("MAY_BE"), Ok(0), "it needs none");
        let mut buffer = [0; 8];
        assert_eq!(
            env.source_read(source, &mut buffer),
            Ok((3, ReadProgress::Finished))
        );
        assert_eq!(&buffer[..3], b"abc");
        assert!(env.variable_source("NEEDED").is_ok());
    });
}

#[test]
fn a_view_has_read_all_variables() {
    let mut tables = database(PROGRAM, &[("NEEDED", "1")]);
    for key in ["NEEDED", "MAY_BE", "OTHER"] {
        tables.begin();
        let view = Lent::Read(ReadView::of(&mut tables));
        let reads = host().call(view, |env| {
            env.begin_reads();
            let _ = get(env, key);
            env.end_reads()
        });
        let read: Vec<_> = reads.tables().collect();
        assert!(
            matches!(read[..], [(ST_ENV_ID, reads)] if reads.whole),
            "{key}: {reads:?}"
        );
        tables.rollback();
    }
}

/// Begins transactions on the spot, and counts them.
struct AtOnce {
    tables: Datastore,
    begun: usize,
}

impl Transactions for AtOnce {
    fn begin(&mut self) -> Result<OpenTransaction<'_>, HostTrap> {
        self.begun += 1;
        self.tables.begin();
        Ok(OpenTransaction::of(&mut self.tables))
    }

    fn commit(&mut self) -> Result<(), HostTrap> {
        unreachable!("nothing is changed")
    }

    fn rollback(&mut self) {
        self.tables.rollback();
    }

    fn now(&self) -> Timestamp {
        Timestamp(0)
    }

    fn committed_bytes(&self) -> usize {
        usize::MAX - 1
    }
}

#[test]
fn a_procedure_reads_without_a_transaction() {
    let mut transactions = AtOnce {
        tables: database(PROGRAM, &[("NEEDED", "1")]),
        begun: 0,
    };
    host().call(Lent::Transactions(&mut transactions), |env| {
        assert_eq!(get(env, "NEEDED"), Ok(Some("1".to_owned())));
        assert_eq!(get(env, "OTHER"), trap(HostTrap::UndeclaredVariable));
        assert!(!env.has_transaction());
    });
    assert_eq!(transactions.begun, 2);
    assert!(!transactions.tables.in_transaction());
}
