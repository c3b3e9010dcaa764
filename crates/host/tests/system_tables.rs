//! Modules read system tables, and do not write to them.

#[path = "common/host.rs"]
mod host;

use host::Host;
use lightcone_engine::{system_tables, CommitOutput, Datastore};
use lightcone_host::{
    AbiError, Errno, HostEnv, HostLimits, HostTrap, Lent, OpenTransaction, RangeBounds,
};
use lightcone_types::TableId;

/// Runs `body` in a transaction that must not change anything.
fn in_transaction(body: impl FnOnce(&mut HostEnv)) {
    let mut datastore = Datastore::new();
    datastore.begin();
    datastore.bootstrap();
    datastore
        .commit(&mut CommitOutput::default())
        .expect("the record fits");
    datastore.begin();
    let transaction = OpenTransaction::of(&mut datastore);
    Host::new(HostLimits::default()).call(Lent::Transaction(transaction), body);
    assert_eq!(datastore.change_count(), 0);
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
    let rows = |env: &mut HostEnv, id| env.table_row_count(id).expect("system tables are readable");
    in_transaction(|env| {
        for table in system_tables() {
            let (id, name) = (table.id, table.name.as_str());
            let before = rows(env, id);
            is_refused(env.clear(id), name);
            is_refused(env.insert(id, &mut [0; 64]), name);
            is_refused(env.delete_all_by_eq(id, &[0; 4]), name);
            for index in &table.indexes {
                is_refused(env.update(id, index.id, &mut [0; 64]), name);
                is_refused(env.delete_by_index_point(index.id, &[0; 64]), name);
                is_refused(
                    env.delete_by_index_range(index.id, RangeBounds::of_first(&[2], &[2])),
                    name,
                );
            }
            assert_eq!(rows(env, id), before, "{name}");
        }
    });
}

#[test]
fn unused_ids_are_no_such_table() {
    in_transaction(|env| {
        for id in [0, 21, 4095, u32::MAX] {
            let error = env.clear(TableId(id)).expect_err("no such table");
            assert_eq!(error, AbiError::Errno(Errno::NO_SUCH_TABLE), "{id}");
        }
        let error = env
            .delete_by_index_point(lightcone_types::IndexId(0), &[])
            .expect_err("no such index");
        assert_eq!(error, AbiError::Errno(Errno::NO_SUCH_INDEX));
    });
}
