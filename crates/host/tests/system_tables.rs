//! Modules read system tables, and do not write to them.

use std::sync::Arc;

use lightcone_engine::{system_tables, CommitOutput, Datastore};
use lightcone_host::{AbiError, Errno, HostConfig, HostEnv, HostLimits, HostTrap, NullConsole};
use lightcone_types::{Identity, TableId};

fn env_in_transaction() -> HostEnv {
    let mut datastore = Box::new(Datastore::new());
    datastore.begin();
    datastore.bootstrap();
    datastore.commit(&mut CommitOutput::default());
    datastore.begin();
    let mut env = HostEnv::new(HostConfig {
        database_identity: Identity::ZERO,
        console: Arc::new(NullConsole),
        limits: HostLimits::default(),
    });
    env.begin_call(Some(datastore), &"evil".into(), &[]);
    env
}

fn is_refused<T: std::fmt::Debug>(result: Result<T, AbiError>, table: &str) {
    match result.expect_err(table) {
        AbiError::Trap(trap @ HostTrap::SystemTable(_)) => {
            let text = trap.to_string();
            assert!(text.contains(table) && text.contains("[LC0326]"), "{text}");
        }
        other => panic!("{table}: {other:?}"),
    }
}

#[test]
fn no_way_of_writing_reaches_a_system_table() {
    let mut env = env_in_transaction();
    let rows = |env: &mut HostEnv, id| env.table_row_count(id).expect("system tables are readable");
    for table in system_tables() {
        let (id, name) = (table.id, table.name.as_str());
        let before = rows(&mut env, id);
        is_refused(env.clear(id), name);
        is_refused(env.insert(id, &mut [0; 64]), name);
        is_refused(env.delete_all_by_eq(id, &[0; 4]), name);
        for index in &table.indexes {
            is_refused(env.update(id, index.id, &mut [0; 64]), name);
            is_refused(env.delete_by_index_point(index.id, &[0; 64]), name);
            is_refused(
                env.delete_by_index_range(index.id, &[], 0, &[2], &[2]),
                name,
            );
        }
        assert_eq!(rows(&mut env, id), before, "{name}");
    }
    let datastore = env.end_call().expect("given back");
    assert_eq!(datastore.change_count(), 0);
}

#[test]
fn ids_that_nobody_has_are_no_such_table() {
    let mut env = env_in_transaction();
    for id in [0, 21, 4095, u32::MAX] {
        let error = env.clear(TableId(id)).expect_err("no such table");
        assert_eq!(error, AbiError::Errno(Errno::NO_SUCH_TABLE), "{id}");
    }
    let error = env
        .delete_by_index_point(lightcone_types::IndexId(0), &[])
        .expect_err("no such index");
    assert_eq!(error, AbiError::Errno(Errno::NO_SUCH_INDEX));
}
