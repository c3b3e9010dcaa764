//! Payloads and manifests that are damaged in all ways: errors, never panics or large allocations.

mod common;

use common::*;
use lightcone_engine::fuzzing::{fuzz_log_payload, fuzz_manifest};
use lightcone_engine::{CommitOutput, Datastore, Replayer};
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
    datastore.commit(&mut output);
    output.records
}

proptest! {
    #![proptest_config(config(150))]

    #[test]
    fn any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        fuzz_log_payload(&bytes);
        fuzz_manifest(&bytes);
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
