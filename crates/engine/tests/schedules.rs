//! Schedule tables: what a commit says about their rows, and times that are refused (03 §8.4, §8.5).

use crate::common::*;
use lightcone_engine::{
    CommitOutput, Datastore, DatastoreError as E, ScheduleAt, ScheduleChange, ScheduleKey,
};
use lightcone_types::bsatn::Encode;
use lightcone_types::{AlgebraicType as T, AlgebraicValue as V, TimeDuration, Timestamp};

const TOO_LONG_US: i64 = ((1 << 36) - 1) * 1000;

fn timers() -> Datastore {
    let columns = [
        ("id", T::U64),
        ("note", T::String),
        ("at", T::schedule_at()),
    ];
    let mut datastore = creating(&module(vec![
        table("other", &[("id", T::U64), ("at", T::schedule_at())])
            .btree(&[0], true)
            .primary_key(0),
        table("timers", &columns)
            .btree(&[0], true)
            .primary_key(0)
            .sequence(0)
            .schedule("timers_sched", "fire", 2),
        table(
            "unnamed",
            &[
                ("name", T::String),
                ("id", T::U64),
                ("at", T::schedule_at()),
            ],
        )
        .btree(&[0], true)
        .btree(&[1], true)
        .primary_key(1)
        .schedule("unnamed_sched", "fire", 2),
    ]));
    datastore
        .commit(&mut CommitOutput::default())
        .expect("the record fits");
    datastore
}

fn at(at: ScheduleAt) -> Vec<u8> {
    let (tag, us) = match at {
        ScheduleAt::Interval(interval) => (0, interval.0),
        ScheduleAt::Time(time) => (1, time.0),
    };
    let mut bytes = vec![tag];
    us.encode(&mut bytes);
    bytes
}

fn every(us: i64) -> ScheduleAt {
    ScheduleAt::Interval(TimeDuration(us))
}

fn once(us: i64) -> ScheduleAt {
    ScheduleAt::Time(Timestamp(us))
}

fn timer(id: u64, note: &str, when: ScheduleAt) -> Vec<u8> {
    [row(&[V::U64(id), V::String(note.into())]), at(when)].concat()
}

fn insert_timer(datastore: &mut Datastore, row: &[u8]) -> Result<Vec<u8>, E> {
    let mut generated = Vec::new();
    datastore.insert(table_id(datastore, "timers"), row, &mut generated)?;
    Ok(generated)
}

fn update_timer(datastore: &mut Datastore, row: &[u8]) -> Result<(), E> {
    let (table, index) = (
        table_id(datastore, "timers"),
        index_id(datastore, "timers_id_idx_btree"),
    );
    datastore.update(table, index, row, &mut Vec::new())
}

/// What a transaction says about schedules, by id.
fn changes(
    datastore: &mut Datastore,
    work: impl FnOnce(&mut Datastore),
) -> Vec<(u64, Option<ScheduleAt>)> {
    let mut output = CommitOutput::default();
    datastore.begin();
    work(datastore);
    datastore.commit(&mut output).expect("the record fits");
    let schedules = output.schedules.iter();
    schedules.map(|change| (change.key.id, change.at)).collect()
}

#[test]
fn a_commit_tells_what_it_changed() {
    let mut datastore = timers();
    let key = |id| ScheduleKey {
        table: table_id(&timers(), "timers"),
        id,
    };
    let came = changes(&mut datastore, |datastore| {
        insert_timer(datastore, &timer(0, "a", every(5))).expect("inserted");
        insert_timer(datastore, &timer(7, "b", once(9))).expect("inserted");
        let other = [row(&[V::U64(1)]), at(every(1))].concat();
        let table = table_id(datastore, "other");
        datastore
            .insert(table, &other, &mut Vec::new())
            .expect("inserted");
    });
    assert_eq!(came, [(1, Some(every(5))), (7, Some(once(9)))]);
    let (row, when) = datastore.schedule_row(key(7)).expect("there");
    assert_eq!((row, when), (&timer(7, "b", once(9))[..], once(9)));
    assert_eq!(datastore.schedule_row(key(8)), None);
    let mut all = datastore.schedules();
    all.sort_by_key(|change| change.key);
    let expected = [(1, every(5)), (7, once(9))].map(|(id, at)| ScheduleChange {
        key: key(id),
        at: Some(at),
    });
    assert_eq!(all, expected);

    // An update plans anew, whatever it changes; what comes to nothing does not.
    let updated = changes(&mut datastore, |datastore| {
        update_timer(datastore, &timer(1, "a long text", every(5))).expect("updated");
        update_timer(datastore, &timer(7, "c", once(9))).expect("updated");
        update_timer(datastore, &timer(7, "b", once(9))).expect("updated");
    });
    assert_eq!(updated, [(1, None), (1, Some(every(5)))]);
    let table = table_id(&datastore, "timers");
    let nothing = changes(&mut datastore, |datastore| {
        insert_timer(datastore, &timer(3, "d", once(1))).expect("inserted");
        datastore.delete_schedule_row(key(3)).expect("deleted");
        datastore.clear(table).expect("cleared");
        insert_timer(datastore, &timer(1, "a long text", every(5))).expect("inserted");
        insert_timer(datastore, &timer(7, "b", once(9))).expect("inserted");
    });
    assert_eq!(nothing, []);
    let mut moved = changes(&mut datastore, |datastore| {
        datastore.clear(table).expect("cleared");
        insert_timer(datastore, &timer(7, "b", once(10))).expect("inserted");
    });
    moved[..2].sort_unstable_by_key(|change| change.0);
    assert_eq!(moved, [(1, None), (7, None), (7, Some(once(10)))]);
    datastore.begin();
    insert_timer(&mut datastore, &timer(4, "e", once(1))).expect("inserted");
    assert!(datastore.delete_schedule_row(key(7)).expect("deleted"));
    assert!(!datastore.delete_schedule_row(key(7)).expect("gone"));
    datastore.rollback();
    let gone = changes(&mut datastore, |datastore| {
        datastore.clear(table).expect("cleared");
    });
    assert_eq!(gone, [(7, None)]);
}

#[test]
fn rows_that_swap_their_keys_keep_their_schedules() {
    let mut datastore = timers();
    let table = table_id(&datastore, "unnamed");
    let by_name = index_id(&datastore, "unnamed_name_idx_btree");
    let unnamed =
        |name: &str, id, when| [row(&[V::String(name.into()), V::U64(id)]), at(when)].concat();
    let none = &mut Vec::new();
    datastore.begin();
    datastore
        .insert(table, &unnamed("a", 1, every(1)), none)
        .expect("inserted");
    datastore
        .insert(table, &unnamed("b", 2, every(2)), none)
        .expect("inserted");
    datastore
        .commit(&mut CommitOutput::default())
        .expect("the record fits");
    let swapped = changes(&mut datastore, |datastore| {
        for (name, id) in [("a", 3), ("b", 1), ("a", 2)] {
            let row = unnamed(name, id, every(5));
            datastore
                .update(table, by_name, &row, &mut Vec::new())
                .expect("updated");
        }
    });
    let mut planned = std::collections::BTreeMap::from([(1, Some(every(1))), (2, Some(every(2)))]);
    planned.extend(swapped);
    assert!(
        planned.values().all(|at| *at == Some(every(5))),
        "{planned:?}"
    );
}

#[test]
fn times_too_far_away_are_refused_and_undone() {
    let mut datastore = timers();
    let table = table_id(&datastore, "timers");
    datastore.begin();
    insert_timer(&mut datastore, &timer(1000, "kept", every(5))).expect("inserted");
    let now = Timestamp::now().0;
    for far in [
        every(TOO_LONG_US),
        every(-TOO_LONG_US),
        every(i64::MIN),
        once(now + TOO_LONG_US + 60_000_000),
        once(i64::MAX),
    ] {
        let error = insert_timer(&mut datastore, &timer(0, "far", far)).expect_err("too far");
        assert_eq!(error.errno(), Some(13), "{far:?}");
        let error = update_timer(&mut datastore, &timer(1000, "far", far)).expect_err("too far");
        assert_eq!(error.errno(), Some(13), "{far:?}");
        // What is wrong besides comes first.
        let error = insert_timer(&mut datastore, &timer(1000, "far", far)).expect_err("no key");
        assert_eq!(error.errno(), Some(12));
        let error = update_timer(&mut datastore, &timer(9, "far", far)).expect_err("no row");
        assert_eq!(error.errno(), Some(15));
    }
    assert_eq!(rows(&datastore, table), [timer(1000, "kept", every(5))]);
    for near in [
        every(TOO_LONG_US - 1),
        once(now + TOO_LONG_US - 1),
        once(i64::MIN),
    ] {
        insert_timer(&mut datastore, &timer(0, "near", near)).expect("inserted");
    }
    // A table without a schedule takes any time.
    let other = [row(&[V::U64(1)]), at(every(i64::MAX))].concat();
    let id = table_id(&datastore, "other");
    datastore
        .insert(id, &other, &mut Vec::new())
        .expect("inserted");
    datastore.rollback();
    assert_eq!(rows(&datastore, table), [] as [Vec<u8>; 0]);
}
