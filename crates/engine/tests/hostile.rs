//! Payloads and manifests that are damaged in all ways: errors, never panics or large allocations.

use std::sync::LazyLock;

use crate::common::*;
use crate::definitions::{definition, row_of, Algorithm, Kind, Table, Tables};
use lightcone_engine::fuzzing::{fuzz_log_payload, fuzz_manifest};
use lightcone_engine::{CommitOutput, Datastore, MigrationWork, Replayer};
use lightcone_log::LogOffset;
use lightcone_types::{AlgebraicType as T, AlgebraicValue as V};
use proptest::prelude::*;
use proptest::sample::Index as Pick;

/// A payload that creates tables of all kinds and fills them.
fn payload() -> Vec<u8> {
    let mut datastore = creating(&module(vec![
        table("a", &[("id", T::U32), ("n", T::I64)])
            .hash(&[0], true)
            .sequence(0),
        table("b", &[("k", T::U8), ("s", T::String)])
            .direct(0, true)
            .btree(&[1], false),
        table("c", &[("x", T::option(T::F64)), ("y", T::Bool)]),
        table("e", &[("x", T::U8)]).event(),
    ]));
    for n in 0..3 {
        insert(&mut datastore, "a", &[V::U32(0), V::I64(n)]).expect("a new key");
        insert(&mut datastore, "b", &[V::U8(n as u8), "text".into()]).expect("a new key");
        insert(
            &mut datastore,
            "c",
            &[V::some(V::F64(n as f64)), V::Bool(true)],
        )
        .expect("a new row");
        insert(&mut datastore, "e", &[V::U8(n as u8)]).expect("a new row");
    }
    let mut output = CommitOutput::default();
    datastore.commit(&mut output).expect("the record fits");
    output.records
}

/// The records of a database with rows, and of a migration that copies, moves and drops tables.
static MIGRATION: LazyLock<[Vec<u8>; 2]> = LazyLock::new(|| {
    let t = Table::new(&[Kind::U32, Kind::Payload(0)]).key().sequence();
    let u = Table::new(&[Kind::I64, Kind::Payload(0)]).index(&[1], Algorithm::Hash);
    let names = ["t", "u", "v"].map(str::to_owned);
    let old: Tables = names
        .into_iter()
        .zip([t, u, Table::new(&[Kind::Text])])
        .collect();
    let mut new = old.clone();
    new.remove("v");
    new.entry("t".to_owned())
        .and_modify(|t| t.columns.push((Kind::Text, 5)));
    new.entry("u".to_owned()).and_modify(|u| {
        u.columns[1].0 = Kind::Payload(2);
        u.make_unique(&[0]);
    });
    let mut datastore = Datastore::new();
    datastore.begin();
    datastore.bootstrap();
    datastore
        .create_tables(&definition(&old))
        .expect("names are free");
    for name in ["t", "u"] {
        let table = table_id(&datastore, name);
        for seed in 2..6 {
            let row = row_of(&old[name], seed);
            datastore
                .insert(table, &row, &mut Vec::new())
                .expect("a new key");
        }
    }
    let (mut before, mut after) = (CommitOutput::default(), CommitOutput::default());
    datastore.commit(&mut before).expect("the record fits");
    datastore.begin();
    let (old, new) = (definition(&old), definition(&new));
    let mut may_go_on = || true;
    let mut work = MigrationWork::new(u64::MAX, &mut may_go_on);
    for step in lightcone_schema::plan(&old, &new).expect("a plan").steps {
        datastore
            .migrate(&step, &new, &mut work)
            .expect("rows allow it");
    }
    datastore.commit(&mut after).expect("the record fits");
    [before.records, after.records]
});

proptest! {
    #![proptest_config(config(150))]

    #[test]
    fn any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        fuzz_log_payload(&bytes);
        fuzz_manifest(&bytes);
    }

    #[test]
    fn changed_migrations(changes in prop::collection::vec((any::<Pick>(), any::<u8>()), 0..4)) {
        let [before, after] = &*MIGRATION;
        let mut bytes = after.clone();
        for (place, byte) in changes {
            let place = place.index(bytes.len());
            bytes[place] = byte;
        }
        let mut replayer = Replayer::new(Datastore::new(), LogOffset::FIRST);
        replayer.apply(LogOffset::FIRST, 1, before).expect("it is whole");
        if replayer.apply(LogOffset::new(1), 1, &bytes).is_ok() {
            let Ok(mut datastore) = replayer.finish() else {
                return Ok(());
            };
            datastore.begin();
            let schemas: Vec<_> = datastore.schemas().cloned().collect();
            for schema in schemas {
                for row in rows(&datastore, schema.id) {
                    let _ = datastore.insert(schema.id, &row, &mut Vec::new());
                }
                let _ = datastore.clear(schema.id);
            }
            datastore.rollback();
        } else {
            prop_assert_ne!(&bytes, after);
        }
    }

    #[test]
    fn changed_payloads(changes in prop::collection::vec((any::<Pick>(), any::<u8>()), 1..6),
                        cut in prop::option::weighted(0.1, any::<Pick>())) {
        let mut bytes = payload();
        for (place, byte) in changes {
            let place = place.index(bytes.len());
            bytes[place] = byte;
        }
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        fuzz_log_payload(&bytes);
        let mut replayer = Replayer::new(Datastore::new(), LogOffset::FIRST);
        if replayer.apply(LogOffset::FIRST, 1, &bytes).is_ok() {
            if let Ok(mut datastore) = replayer.finish() {
                // What passed as a database works as one.
                datastore.begin();
                let schemas: Vec<_> = datastore.schemas().cloned().collect();
                for schema in schemas {
                    for row in rows(&datastore, schema.id) {
                        let _ = datastore.insert(schema.id, &row, &mut Vec::new());
                    }
                    let zeros = [0; 64];
                    for length in 0..64 {
                        let _ = datastore.insert(schema.id, &zeros[..length], &mut Vec::new());
                    }
                    let _ = datastore.clear(schema.id);
                }
                datastore.rollback();
            }
        }
    }
}
