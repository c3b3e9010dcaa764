//! What a migration may take: time is asked for in each step, also of tables without rows, whatever is built over rows counts,
//! and many steps take no longer each than few.

use std::time::{Duration, Instant};

use crate::common;
use crate::definitions::{definition, row_of, Algorithm, Kind, Table, Tables};
use lightcone_engine::{CommitOutput, Datastore, MigrationError, MigrationWork, Replayer};
use lightcone_log::LogOffset;
use lightcone_schema::plan;

/// Enough for what grows with its square to be felt: 4,000 tables took 80 s.
const TABLES: usize = 4000;
const ROWS: u32 = 2000;
/// Of one index or set over [`ROWS`].
const BUILT_BYTES: u64 = ROWS as u64 * 32;

fn open(tables: &Tables) -> (Datastore, Vec<Vec<u8>>) {
    let mut datastore = Datastore::new();
    datastore.begin();
    datastore.bootstrap();
    datastore
        .create_tables(&definition(tables))
        .expect("names are free");
    let records = vec![commit(&mut datastore)];
    (datastore, records)
}

fn commit(datastore: &mut Datastore) -> Vec<u8> {
    let mut output = CommitOutput::default();
    assert!(
        datastore.commit(&mut output).expect("the record fits"),
        "something has changed"
    );
    output.records
}

/// Takes all steps in an open transaction.
fn migrate(
    datastore: &mut Datastore,
    (old, new): (&Tables, &Tables),
    work: &mut MigrationWork<'_>,
) -> Result<usize, MigrationError> {
    let (old, new) = (definition(old), definition(new));
    let steps = plan(&old, &new).expect("a plan").steps;
    for step in &steps {
        datastore.migrate(step, &new, work)?;
    }
    Ok(steps.len())
}

fn one(table: Table) -> Tables {
    Tables::from([("t".to_owned(), table)])
}

#[test]
fn each_step_asks_whether_to_go_on() {
    let plain = || Table::new(&[Kind::U32, Kind::I64]);
    let with_other = |table: Table| {
        let mut tables = one(table);
        tables.insert("other".to_owned(), plain());
        tables
    };
    let mut private = plain();
    private.is_private = true;
    let pairs = [
        (with_other(plain()), one(plain())),
        (one(plain()), with_other(plain())),
        (one(plain()), one(private)),
        (one(plain().index(&[1], Algorithm::BTree)), one(plain())),
        (one(plain().key()), one(plain())),
        (one(plain().key().sequence()), one(plain().key())),
    ];
    for (old, new) in &pairs {
        let (mut datastore, _) = open(old);
        datastore.begin();
        let mut asked = 0;
        let mut may_go_on = || {
            asked += 1;
            true
        };
        let mut work = MigrationWork::new(u64::MAX, &mut may_go_on);
        let steps = migrate(&mut datastore, (old, new), &mut work).expect("it goes on");
        assert!(steps > 0 && asked >= steps, "{asked} times, {steps} steps");
        datastore.rollback();

        datastore.begin();
        let mut may_go_on = || false;
        let mut work = MigrationWork::new(u64::MAX, &mut may_go_on);
        let stopped = migrate(&mut datastore, (old, new), &mut work);
        assert!(
            matches!(stopped, Err(MigrationError::TooLong)),
            "{stopped:?}"
        );
        datastore.rollback();
    }
}

#[test]
fn many_tables_go_and_are_replayed_in_time() {
    let name = |number: usize| format!("t{number}");
    let table = || Table::new(&[Kind::U32, Kind::I64]).key().sequence();
    let old: Tables = (0..TABLES).map(|n| (name(n), table())).collect();
    let new: Tables = (0..1).map(|n| (name(n), table())).collect();
    let (mut datastore, mut records) = open(&old);
    let since = Instant::now();
    datastore.begin();
    let mut may_go_on = || true;
    let mut work = MigrationWork::new(u64::MAX, &mut may_go_on);
    migrate(&mut datastore, (&old, &new), &mut work).expect("they are empty");
    let taken = since.elapsed();
    records.push(commit(&mut datastore));

    let since = Instant::now();
    let mut replayer = Replayer::new(Datastore::new(), LogOffset::new(0));
    for (offset, record) in records.iter().enumerate() {
        let offset = LogOffset::new(offset as u64);
        replayer.apply(offset, 1, record).expect("it fits");
    }
    let replayed = replayer.finish().expect("the catalog is right");
    let again = since.elapsed();
    println!("{TABLES} tables went in {taken:?}, and were replayed in {again:?}");
    common::assert_same(&datastore, &replayed);
    assert_eq!(replayed.table_id_from_name("t1"), None);
    assert!(replayed.table_id_from_name("t0").is_some());
    let enough = Duration::from_secs(30);
    assert!(taken < enough && again < enough, "{taken:?}, {again:?}");
}

#[test]
fn sets_of_rows_and_rebuilt_indexes_count() {
    let kinds = [Kind::U32; 4];
    let columns = [0, 1, 2, 3];
    let plain = Table::new(&kinds);
    let keyed = plain.clone().unique(&columns);
    let indexed = plain.clone().index(&columns, Algorithm::BTree);
    let mut hashed = plain.clone().index(&columns, Algorithm::Hash);
    hashed.unique.insert(columns.to_vec());
    // What is built: the set of rows; and it, with the index that is not unique any more; and the set, with the other index.
    for (new, built) in [(plain, 1), (indexed, 2), (hashed, 2)] {
        let (old, new) = (one(keyed.clone()), one(new));
        let (mut datastore, _) = open(&old);
        let id = common::table_id(&datastore, "t");
        datastore.begin();
        for seed in 0..ROWS {
            datastore
                .insert(id, &row_of(&old["t"], seed), &mut Vec::new())
                .expect("a new row");
        }
        commit(&mut datastore);
        let mut take = |bytes_max| {
            datastore.begin();
            let mut may_go_on = || true;
            let mut work = MigrationWork::new(bytes_max, &mut may_go_on);
            let taken = migrate(&mut datastore, (&old, &new), &mut work);
            datastore.rollback();
            taken
        };
        let bytes = built * BUILT_BYTES;
        let failed = take(bytes - 1).expect_err("it is too much").to_string();
        assert!(failed.contains("LC0229"), "{failed}");
        take(bytes).expect("it is enough");
    }
}
