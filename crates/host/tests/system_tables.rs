//! Modules read system tables, and do not write to them.

#[path = "common/host.rs"]
mod host;

use host::Host;
use lightcone_engine::{
    system_tables, CommitOutput, Datastore, ST_ENV_ID, ST_ENV_INDEX_ID, SYSTEM_TABLE_ID_MAX,
};
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
        for table in system_tables()
            .into_iter()
            .filter(|table| table.id != ST_ENV_ID)
        {
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
        for id in [0, SYSTEM_TABLE_ID_MAX + 1, 4095, u32::MAX] {
            let error = env.clear(TableId(id)).expect_err("no such table");
            assert_eq!(error, AbiError::Errno(Errno::NO_SUCH_TABLE), "{id}");
        }
        let error = env
            .delete_by_index_point(lightcone_types::IndexId(0), &[])
            .expect_err("no such index");
        assert_eq!(error, AbiError::Errno(Errno::NO_SUCH_INDEX));
    });
}

/// Variables are read by `env_get` alone: for all else of a module their table is not there.
#[test]
fn the_table_of_variables_is_not_there_for_modules() {
    let table = AbiError::Errno(Errno::NO_SUCH_TABLE);
    let index = AbiError::Errno(Errno::NO_SUCH_INDEX);
    in_transaction(|env| {
        let (id, by_key) = (ST_ENV_ID, ST_ENV_INDEX_ID);
        let range = || RangeBounds::of_first(&[2], &[2]);
        assert_eq!(env.table_id_from_name("st_env"), Err(table.clone()));
        assert_eq!(env.index_id_from_name("st_env_key_idx_btree"), Err(index));
        assert_eq!(env.table_row_count(id), Err(table.clone()));
        assert_eq!(env.table_scan(id), Err(table.clone()));
        assert_eq!(env.index_scan_point(by_key, &[0; 4]), Err(table.clone()));
        assert_eq!(env.index_scan_range(by_key, range()), Err(table.clone()));
        assert_eq!(env.point_read(by_key, &mut [0; 64], 4), Err(table.clone()));
        assert_eq!(env.clear(id), Err(table.clone()));
        assert_eq!(env.insert(id, &mut [0; 64]), Err(table.clone()));
        assert_eq!(env.update(id, by_key, &mut [0; 64]), Err(table.clone()));
        assert_eq!(env.delete_all_by_eq(id, &[0; 4]), Err(table.clone()));
        assert_eq!(
            env.delete_by_index_point(by_key, &[0; 64]),
            Err(table.clone())
        );
        assert_eq!(env.delete_by_index_range(by_key, range()), Err(table));
    });
}
