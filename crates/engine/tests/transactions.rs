//! Single rules of transactions: errors, limits, sequences, net changes.

use crate::common::*;
use lightcone_engine::record::{put_clock, GroupKind, Record, Records};
use lightcone_engine::{
    CommitOutput, Datastore, DatastoreError as E, RangeBounds, Replayer, RowBuffer,
};
use lightcone_log::LogOffset;
use lightcone_types::{AlgebraicType as T, AlgebraicValue as V, IndexId, TableId};

fn accounts() -> (Datastore, Vec<u8>) {
    let mut datastore = creating(&module(vec![
        table("account", &[("id", T::U32), ("balance", T::I64)])
            .hash(&[0], true)
            .primary_key(0),
        table("auto", &[("a", T::U8), ("id", T::U32)])
            .sequence(0)
            .sequence(1)
            .btree(&[1], true),
        table("name", &[("id", T::U32), ("name", T::String)])
            .btree(&[0], true)
            .btree(&[1, 0], false),
        table("pairs", &[("a", T::U8), ("b", T::U8)]),
    ]));
    let mut output = CommitOutput::default();
    datastore.commit(&mut output).expect("the record fits");
    (datastore, output.records)
}

/// Runs a transaction and returns its record's groups as (table name, kind, rows).
fn groups(
    datastore: &mut Datastore,
    work: impl FnOnce(&mut Datastore),
) -> Vec<(String, GroupKind, u32)> {
    let mut output = CommitOutput::default();
    datastore.begin();
    work(datastore);
    datastore.commit(&mut output).expect("the record fits");
    let mut found = Vec::new();
    for record in Records::new(&output.records) {
        let Ok(Record::Transaction(groups)) = record else {
            panic!("{record:?}")
        };
        for group in groups {
            let name = datastore.schema(group.table).expect("exists").name.clone();
            found.push((name, group.kind, group.row_count));
        }
    }
    found
}

fn account(id: u32, balance: i64) -> Vec<u8> {
    row(&[V::U32(id), V::I64(balance)])
}

#[test]
fn errors_and_their_numbers() {
    let (mut datastore, _) = accounts();
    let buffer = &mut RowBuffer::default();
    let generated = &mut Vec::new();
    let table = table_id(&datastore, "account");
    let index = index_id(&datastore, "account_id_idx_hash");
    let ordered = index_id(&datastore, "name_name_id_idx_btree");
    let none = TableId(99);
    for error in [
        datastore.scan(table, buffer).err(),
        datastore.row_count(table).err(),
        datastore.index_scan_point(index, &[], buffer).err(),
        datastore
            .index_scan_range(index, RangeBounds::of_first(&[], &[]), buffer)
            .err(),
        datastore.insert(table, &[], generated).err(),
        datastore.update(table, index, &[], generated).err(),
        datastore.delete_by_index_point(index, &[]).err(),
        datastore
            .delete_by_index_range(index, RangeBounds::of_first(&[], &[]))
            .err(),
        datastore.delete_all_by_eq(table, &[]).err(),
        datastore.clear(table).err(),
    ] {
        assert_eq!(error.and_then(|error| error.errno()), Some(2));
    }
    datastore.begin();
    datastore
        .insert(table, &account(1, 1), generated)
        .expect("a new key");
    let cases = [
        (datastore.scan(none, buffer).err(), 4),
        (datastore.row_count(none).err(), 4),
        (datastore.insert(none, &[], generated).err(), 4),
        (datastore.update(none, index, &[], generated).err(), 4),
        (datastore.delete_all_by_eq(none, &[]).err(), 4),
        (datastore.clear(none).err(), 4),
        (
            datastore.index_scan_point(IndexId(99), &[], buffer).err(),
            5,
        ),
        (
            datastore
                .index_scan_range(IndexId(99), RangeBounds::of_first(&[], &[]), buffer)
                .err(),
            5,
        ),
        (datastore.delete_by_index_point(IndexId(99), &[]).err(), 5),
        (
            datastore
                .update(table, IndexId(99), &account(1, 1), generated)
                .err(),
            5,
        ),
        (
            datastore
                .update(table, ordered, &account(1, 1), generated)
                .err(),
            5,
        ),
        (
            datastore.update(table, IndexId(99), &[1], generated).err(),
            3,
        ),
        (datastore.insert(table, &[1, 2, 3], generated).err(), 3),
        (datastore.insert(table, &[0; 13], generated).err(), 3),
        (datastore.index_scan_point(index, &[1, 2], buffer).err(), 3),
        (datastore.index_scan_point(index, &[], buffer).err(), 3),
        (
            datastore
                .index_scan_range(index, RangeBounds::of_first(&[2], &[2]), buffer)
                .err(),
            10,
        ),
        (
            datastore
                .index_scan_range(
                    ordered,
                    RangeBounds {
                        prefix_columns: 2,
                        ..RangeBounds::of_first(&[2], &[2])
                    },
                    buffer,
                )
                .err(),
            3,
        ),
        (
            datastore
                .index_scan_range(ordered, RangeBounds::of_first(&[], &[2]), buffer)
                .err(),
            3,
        ),
        (
            datastore
                .delete_by_index_range(index, RangeBounds::of_first(&[2], &[2]))
                .err(),
            10,
        ),
        (datastore.delete_all_by_eq(table, &[1, 0, 0, 0, 1]).err(), 3),
        (datastore.delete_all_by_eq(table, &[255; 4]).err(), 3),
        (datastore.insert(table, &account(1, 2), generated).err(), 12),
        (
            datastore
                .update(table, index, &account(2, 2), generated)
                .err(),
            15,
        ),
    ];
    for (number, (error, errno)) in cases.into_iter().enumerate() {
        assert_eq!(
            error.and_then(|error| error.errno()),
            Some(errno),
            "case {number}"
        );
    }
    let (name, plain) = (table_id(&datastore, "name"), row(&[V::U32(1), "a".into()]));
    assert_eq!(
        datastore
            .update(name, ordered, &plain, generated)
            .err()
            .and_then(|e| e.errno()),
        Some(14)
    );
    assert!(
        buffer.bytes.is_empty() && generated.is_empty(),
        "failed calls leave no output"
    );
    assert_eq!(rows(&datastore, table), [account(1, 1)]);
}

#[test]
fn unique_message_names_index_and_table() {
    let (mut datastore, _) = accounts();
    datastore.begin();
    insert(&mut datastore, "account", &[V::U32(1), V::I64(1)]).expect("a new key");
    let error =
        insert(&mut datastore, "account", &[V::U32(1), V::I64(2)]).expect_err("the key is taken");
    assert!(matches!(&error, E::UniqueAlreadyExists { table, index }
        if table == "account" && index == "account_id_idx_hash"));
}

#[test]
fn net_effect_decides_what_is_logged() {
    let (mut datastore, _) = accounts();
    let table = table_id(&datastore, "account");
    let index = index_id(&datastore, "account_id_idx_hash");
    let none: &mut Vec<u8> = &mut Vec::new();
    let found = groups(&mut datastore, |d| {
        for id in 0..40 {
            d.insert(table, &account(id, 0), none).expect("a new key");
        }
    });
    assert_eq!(found, [("account".into(), GroupKind::Insert, 40)]);
    let found = groups(&mut datastore, |d| {
        d.update(table, index, &account(1, 5), none)
            .expect("the key is there");
        d.update(table, index, &account(2, 5), none)
            .expect("the key is there");
        d.update(table, index, &account(1, 6), none)
            .expect("the key is there");
    });
    assert_eq!(found, [("account".into(), GroupKind::Put, 2)]);
    let nothing = groups(&mut datastore, |d| {
        d.update(table, index, &account(1, 9), none)
            .expect("the key is there");
        d.update(table, index, &account(1, 6), none)
            .expect("the key is there");
        d.delete_by_index_point(index, &3_u32.to_le_bytes())
            .expect("a good point");
        d.insert(table, &account(3, 0), none)
            .expect("the key is free");
        d.insert(table, &account(100, 0), none)
            .expect("the key is free");
        d.delete_by_index_point(index, &100_u32.to_le_bytes())
            .expect("a good point");
    });
    assert_eq!(nothing, []);
    // The same through the way of long transactions, with rows that come back in another order.
    let nothing = groups(&mut datastore, |d| {
        let all = scan(d, table);
        assert_eq!(d.clear(table).ok(), Some(40));
        for row in all.chunks(12).rev() {
            d.insert(table, row, none).expect("the key is free");
        }
    });
    assert_eq!(nothing, []);
    let found = groups(&mut datastore, |d| {
        d.delete_by_index_point(index, &3_u32.to_le_bytes())
            .expect("a good point");
        d.insert(table, &account(3, 7), none)
            .expect("the key is free");
        d.insert(table, &account(50, 0), none)
            .expect("the key is free");
        d.delete_by_index_point(index, &4_u32.to_le_bytes())
            .expect("a good point");
        insert(d, "pairs", &[V::U8(1), V::U8(1)]).expect("a new row");
    });
    let account = |kind| ("account".to_owned(), kind, 1);
    assert_eq!(
        found,
        [
            account(GroupKind::DeleteByKey),
            account(GroupKind::Put),
            account(GroupKind::Insert),
            ("pairs".into(), GroupKind::Insert, 1)
        ]
    );
    let found = groups(&mut datastore, |d| drop(d.clear(table_id(d, "pairs"))));
    assert_eq!(found, [("pairs".into(), GroupKind::DeleteRow, 1)]);
}

#[test]
fn only_watched_tables_have_deltas() {
    let (mut datastore, _) = accounts();
    let mut output = CommitOutput::default();
    let pairs = table_id(&datastore, "pairs");
    datastore.set_watched(pairs, true);
    datastore.begin();
    insert(&mut datastore, "pairs", &[V::U8(1), V::U8(2)]).expect("a new row");
    insert(&mut datastore, "account", &[V::U32(1), V::I64(2)]).expect("a new row");
    assert!(datastore.commit(&mut output).expect("the record fits"));
    let ops = output.deltas.ops(0..output.deltas.position());
    assert_eq!(ops.len(), 1);
    assert_eq!(
        (ops[0].table, output.deltas.row(&ops[0])),
        (pairs, &[1, 2][..])
    );
}

/// Transactions that replace rows of one table that is not watched have a way of their own to their record.
#[test]
fn a_record_is_the_same_whether_or_not_a_table_is_watched() {
    let ((mut plain, _), (mut watched, _)) = (accounts(), accounts());
    let table = plain.table_id_from_name("account").expect("exists");
    let index = plain.schema(table).expect("exists").indexes[0].id;
    watched.set_watched(table, true);
    let mut seed = 7_u64;
    let mut next = |below: u64| {
        seed = seed
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) % below
    };
    let mut replacing = 0;
    for _ in 0..2000 {
        let count = 1 + next(5);
        let steps: Vec<_> = (0..count)
            .map(|_| (next(10), next(6) as u32, next(3) as i64))
            .collect();
        let mut records = Vec::new();
        for datastore in [&mut plain, &mut watched] {
            let mut output = CommitOutput::default();
            datastore.begin();
            for &(what, id, balance) in &steps {
                let row = account(id, balance);
                // What is refused changes nothing.
                let _ = match what {
                    0 => datastore.insert(table, &row, &mut Vec::new()),
                    1 => {
                        let deleted = datastore.delete_by_index_point(index, &id.to_le_bytes());
                        deleted.map(drop)
                    }
                    _ => datastore.update(table, index, &row, &mut Vec::new()),
                };
            }
            records.push((
                datastore.commit(&mut output).expect("the record fits"),
                output.records,
            ));
        }
        assert_eq!(records[0], records[1], "{steps:?}");
        replacing += usize::from(records[0].0 && steps.iter().all(|(what, ..)| *what > 1));
    }
    assert!(replacing > 100, "{replacing}");
    let counted = [&plain, &watched].map(|datastore| {
        let counters = datastore.counters(table).expect("exists");
        (counters.inserted.get(), counters.deleted.get())
    });
    assert_eq!(counted[0], counted[1]);
}

#[test]
fn generated_values_come_in_column_order() {
    let (mut datastore, _) = accounts();
    datastore.begin();
    let mut draw =
        |a, id| insert(&mut datastore, "auto", &[V::U8(a), V::U32(id)]).expect("free keys");
    assert_eq!(draw(0, 0), [1, 1, 0, 0, 0]);
    assert_eq!(draw(7, 0), [2, 0, 0, 0]);
    assert_eq!(draw(0, 9), [2]);
    assert_eq!(draw(7, 10), [0; 0]);
    let (table, index) = (
        table_id(&datastore, "auto"),
        index_id(&datastore, "auto_id_idx_btree"),
    );
    let mut generated = Vec::new();
    datastore
        .update(table, index, &row(&[V::U8(0), V::U32(9)]), &mut generated)
        .expect("the key is there");
    assert_eq!(generated, [3], "updates draw too");
}

#[test]
fn narrow_sequences_wrap_to_zero() {
    let (mut datastore, _) = accounts();
    datastore.begin();
    let mut last = Vec::new();
    for id in 1..=257_u32 {
        last.push(insert(&mut datastore, "auto", &[V::U8(0), V::U32(id)]).expect("free keys")[0]);
    }
    assert_eq!(last[253..], [254, 255, 0, 1]);
}

/// What a sequence issued is reserved in the log no later than the commit that uses it (02 §12).
#[test]
fn sequences_survive_rollback_and_restart() {
    let (mut datastore, first) = accounts();
    datastore.begin();
    assert_eq!(
        insert(&mut datastore, "auto", &[V::U8(1), V::U32(0)]).expect("a free key"),
        [1, 0, 0, 0]
    );
    datastore.rollback();
    datastore.begin();
    assert_eq!(
        insert(&mut datastore, "auto", &[V::U8(1), V::U32(0)]).expect("a free key"),
        [2, 0, 0, 0]
    );
    let mut second = CommitOutput::default();
    assert!(datastore.commit(&mut second).expect("the record fits"));
    let restarted = || {
        let mut replayer = Replayer::new(Datastore::new(), LogOffset::FIRST);
        replayer
            .apply(LogOffset::FIRST, 1, &first)
            .expect("the record fits");
        replayer
            .apply(LogOffset::new(1), 1, &second.records)
            .expect("the record fits");
        replayer.finish().expect("a good catalog")
    };
    let mut copy = restarted();
    copy.begin();
    let issued = insert(&mut copy, "auto", &[V::U8(1), V::U32(0)]).expect("a free key");
    assert_eq!(
        u32::from_le_bytes(issued[..].try_into().expect("a u32")),
        4097
    );
}

/// The rows that keep sequences are written even where the transaction has no room left.
#[test]
fn sequences_are_saved_at_the_size_limit() {
    let (mut datastore, first) = accounts();
    datastore.set_transaction_bytes_max(500);
    datastore.begin();
    let mut inserted = 0;
    while insert(&mut datastore, "auto", &[V::U8(1), V::U32(0)]).is_ok() {
        inserted += 1;
    }
    assert!(inserted > 0);
    let mut output = CommitOutput::default();
    assert!(datastore.commit(&mut output).expect("the record fits"));
    let mut replayer = Replayer::new(Datastore::new(), LogOffset::FIRST);
    replayer
        .apply(LogOffset::FIRST, 1, &first)
        .expect("the record fits");
    replayer
        .apply(LogOffset::new(1), 1, &output.records)
        .expect("the record fits");
    let mut copy = replayer.finish().expect("a good catalog");
    assert_same(&datastore, &copy);
    copy.begin();
    let issued = insert(&mut copy, "auto", &[V::U8(1), V::U32(0)]).expect("a free key");
    assert_eq!(
        u32::from_le_bytes(issued[..].try_into().expect("a u32")),
        4097
    );
}

#[test]
fn transaction_size_is_limited() {
    let (mut datastore, _) = accounts();
    datastore.set_transaction_bytes_max(1_000);
    let table = table_id(&datastore, "name");
    datastore.begin();
    let large = row(&[V::U32(1), "x".repeat(2_000).into()]);
    let error = datastore
        .insert(table, &large, &mut Vec::new())
        .expect_err("over the limit");
    assert!(matches!(error, E::TransactionTooLarge { bytes_max: 1_000 }));
    assert_eq!(error.errno(), None, "the call cannot go on");
    // Neither can many small changes use more memory than that.
    let mut changes = 0;
    while insert(&mut datastore, "account", &[V::U32(1), V::I64(0)]).is_ok() {
        changes += 1;
        let index = index_id(&datastore, "account_id_idx_hash");
        if datastore
            .delete_by_index_point(index, &1_u32.to_le_bytes())
            .is_err()
        {
            break;
        }
        assert!(changes < 1_000);
    }
    datastore.rollback();
    assert_eq!(
        rows(&datastore, table_id(&datastore, "account")),
        [[0; 0]; 0]
    );
}

/// A row whose key changes is a key and a row in the record; the undo log has the old row only.
#[test]
fn replaced_rows_of_fixed_size_count_as_old_and_new_rows() {
    const ROWS: u32 = 1_000;
    const BYTES_MAX: usize = 40_000;
    let wide = table("wide", &[("key", T::U256), ("id", T::U32)]);
    let wide = wide.hash(&[0], true).hash(&[1], true);
    let mut datastore = creating(&module(vec![wide.primary_key(0)]));
    let table = table_id(&datastore, "wide");
    let row = |key: u32, id: u32| {
        let mut row = vec![0; 36];
        row[..4].copy_from_slice(&key.to_le_bytes());
        row[32..].copy_from_slice(&id.to_le_bytes());
        row
    };
    for id in 0..ROWS {
        let inserted = datastore.insert(table, &row(id, id), &mut Vec::new());
        inserted.expect("the key is free");
    }
    let mut output = CommitOutput::default();
    datastore.commit(&mut output).expect("the record fits");
    output.clear();
    datastore.set_transaction_bytes_max(BYTES_MAX);
    let by_id = index_id(&datastore, "wide_id_idx_hash");
    datastore.begin();
    let mut replaced = 0;
    let refused = loop {
        let new = row(ROWS + replaced, replaced);
        match datastore.update(table, by_id, &new, &mut Vec::new()) {
            Ok(()) => replaced += 1,
            Err(error) => break error,
        }
    };
    assert!(matches!(refused, E::TransactionTooLarge { .. }));
    assert!(replaced > 300, "{replaced}");
    assert!(datastore.commit(&mut output).expect("the record fits"));
    assert!(
        output.records.len() <= BYTES_MAX,
        "{}",
        output.records.len()
    );
}

/// Whatever makes it so: here sequences with long names, whose rows are written without a limit.
#[test]
fn a_record_that_is_too_large_refuses_its_transaction_alone() {
    let counted = ["a", "b", "c", "d", "e", "f", "g", "h", "i"].map(|name| (name, T::U64));
    let named = |def: Def, column: u16| {
        let name = counted[usize::from(column)].0.repeat(1 << 20);
        def.named_sequence(column, name)
    };
    let counted = (0..9).fold(table("counted", &counted), named);
    let mut datastore = creating(&module(vec![
        counted,
        table("other", &[("id", T::U32)]).sequence(0),
    ]));
    let mut output = CommitOutput::default();
    datastore.commit(&mut output).expect("the record fits");
    let mut records = vec![std::mem::take(&mut output.records)];
    datastore.set_transaction_bytes_max(1_000);
    let before = state(&datastore);
    let draw = |datastore: &mut Datastore| {
        let generated = insert(datastore, "counted", &[const { V::U64(0) }; 9]);
        generated.expect("it fits")[..8].to_vec()
    };
    put_clock(&mut output.records, 1);
    let clock = output.records.clone();
    for _ in 0..2 {
        datastore.begin();
        draw(&mut datastore);
        insert(&mut datastore, "other", &[V::U32(0)]).expect("it fits");
        let error = datastore.commit(&mut output).expect_err("nine names");
        assert!(matches!(error, E::RecordTooLarge { bytes, .. } if bytes > 9 << 20));
        assert!(!datastore.in_transaction());
        assert_eq!(state(&datastore), before);
        assert_eq!(output.records, clock, "what others wrote stays");
    }
    // Others go on, and do not have to write what was not used.
    datastore.begin();
    let third = insert(&mut datastore, "other", &[V::U32(0)]).expect("it fits");
    assert_eq!(third, 3_u32.to_le_bytes());
    output.clear();
    assert!(datastore.commit(&mut output).expect("the record fits"));
    assert!(output.records.len() < 1_000);
    records.push(std::mem::take(&mut output.records));
    // With a higher limit, so does this one, and no value comes twice.
    datastore.set_transaction_bytes_max(16 << 20);
    datastore.begin();
    assert_eq!(draw(&mut datastore), 3_u64.to_le_bytes());
    assert!(datastore.commit(&mut output).expect("the record fits"));
    records.push(std::mem::take(&mut output.records));
    let mut replayer = Replayer::new(Datastore::new(), LogOffset::FIRST);
    for (offset, record) in records.iter().enumerate() {
        let applied = replayer.apply(LogOffset::new(offset as u64), 1, record);
        applied.expect("the record fits");
    }
    let mut copy = replayer.finish().expect("a good catalog");
    copy.begin();
    assert_eq!(draw(&mut copy), 4097_u64.to_le_bytes());
}

/// With the next commit after a value was drawn, also if that was undone, and once.
#[test]
fn sequences_are_saved_once_with_the_next_commit() {
    let (mut datastore, _) = accounts();
    datastore.begin();
    insert(&mut datastore, "auto", &[V::U8(0), V::U32(0)]).expect("a free key");
    datastore.rollback();
    let put = |datastore: &mut Datastore| {
        insert(datastore, "account", &[V::U32(1), V::I64(1)]).expect("a free key");
    };
    let named = |groups: Vec<(String, GroupKind, u32)>| {
        let names = groups.into_iter().map(|(name, _, rows)| (name, rows));
        names.collect::<Vec<_>>()
    };
    let of = |name: &str, rows: u32| (name.to_owned(), rows);
    let saved = named(groups(&mut datastore, put));
    assert_eq!(saved, [of("st_sequence", 2), of("account", 1)]);
    let draw = |datastore: &mut Datastore| {
        insert(datastore, "auto", &[V::U8(0), V::U32(0)]).expect("a free key");
    };
    for _ in 0..2 {
        assert_eq!(named(groups(&mut datastore, draw)), [of("auto", 1)]);
    }
}

#[test]
fn replay_refuses_what_does_not_fit() {
    [1, 3]
        .into_iter()
        .for_each(replay_refuses_what_does_not_fit_in);
}

/// In records of one version.
fn replay_refuses_what_does_not_fit_in(version: u8) {
    let (_, first) = accounts();
    let record = |table: u8, kind: u8, count: u8, rows: &[u8]| {
        let mut bytes = vec![
            version,
            1,
            0x80 + (table & 0x7f),
            0x20,
            kind,
            count,
            rows.len() as u8,
        ];
        bytes.extend_from_slice(rows);
        bytes
    };
    // Table 4096 is `account`.
    let good = record(0, 3, 1, &account(1, 1));
    let apply = |payload: &[u8]| {
        let mut replayer = Replayer::new(Datastore::new(), LogOffset::FIRST);
        replayer
            .apply(LogOffset::FIRST, 1, &first)
            .expect("the record fits");
        let count = Records::new(payload).filter(Result::is_ok).count();
        replayer
            .apply(LogOffset::new(1), count as u32, payload)
            .map_err(|error| error.to_string())
    };
    assert_eq!(apply(&good), Ok(()));
    assert_eq!(
        apply(&[&good[..], &record(0, 2, 1, &account(1, 2))].concat()),
        Ok(()),
        "two records"
    );
    // Behind the kind, the index whose key it is, in the newer version only.
    let (unknown, other_index, no_index) = match version {
        1 => (9, 5 << 3, "unknown group kind"),
        _ => (7, 5 << 3, "no unique index 5"),
    };
    for (bad, text) in [
        ([&good[..], &good].concat(), "holds an inserted row already"),
        (
            [&good[..], &record(0, 3, 1, &account(1, 2))].concat(),
            "unique index",
        ),
        (record(0, 0, 1, &1_u32.to_le_bytes()), "no such row"),
        (record(0, 1, 1, &account(1, 1)), "no such row"),
        (record(99, 3, 1, &account(1, 1)), "does not exist"),
        (record(0, 3, 1, &[1; 13]), "1 bytes follow"),
        (record(0, 3, 2, &[1; 13]), "data too short"),
        (record(0, unknown, 1, &[]), "unknown group kind"),
        (good[..good.len() - 1].to_vec(), "ends early"),
        (vec![77], "unknown record kind"),
        // Table 4099 is `pairs`, which has no unique index.
        (record(3, 0, 1, &[1, 1]), "no unique index 0"),
        (record(3, 2, 1, &[1, 1]), "no unique index 0"),
        (record(0, other_index, 1, &[1, 0, 0, 0]), no_index),
    ] {
        let error = apply(&bad).expect_err(text);
        assert!(
            error.contains(text) && error.starts_with("log record "),
            "{error}"
        );
        assert!(error.ends_with("[LC0530]"), "{error}");
    }
    // Records of transactions that are there already are skipped; gaps are refused.
    let mut replayer = Replayer::new(Datastore::new(), LogOffset::FIRST);
    replayer
        .apply(LogOffset::FIRST, 1, &first)
        .expect("the record fits");
    let mut clock = Vec::new();
    put_clock(&mut clock, 5);
    let both = [&clock[..], &first, &clock, &good].concat();
    replayer
        .apply(LogOffset::FIRST, 2, &both)
        .expect("the first is skipped");
    assert!(replayer.apply(LogOffset::new(3), 1, &good).is_err());
    // With another number of records than its frame has transactions, all later ones would be taken for others.
    let more = record(0, 3, 1, &account(7, 7));
    for count in [0, 2] {
        let error = replayer.apply(LogOffset::new(2), count, &more);
        let error = error.expect_err("one record").to_string();
        assert!(error.contains("and 1 records of them [LC0530]"), "{error}");
    }
}

#[test]
fn chunks_end_at_rows() {
    let (mut datastore, _) = accounts();
    datastore.begin();
    for id in 0..10_000_u32 {
        insert(&mut datastore, "account", &[V::U32(id), V::I64(0)]).expect("a new key");
    }
    let mut buffer = RowBuffer::default();
    datastore
        .scan(table_id(&datastore, "account"), &mut buffer)
        .expect("in a transaction");
    assert_eq!(buffer.bytes.len(), 120_000);
    assert_eq!(buffer.chunk_ends.last(), Some(&120_000));
    let mut start = 0;
    for (number, &end) in buffer.chunk_ends.iter().enumerate() {
        assert_eq!((end - start) % 12, 0);
        assert!(end - start >= 32 * 1024 || number + 1 == buffer.chunk_ends.len());
        start = end;
    }
}

/// Rows come in the order in which they were inserted, also behind transactions that were taken back or that have put rows in the
/// place of others.
#[test]
fn rows_keep_their_order() {
    let (mut datastore, _) = accounts();
    let (fixed, varying) = (
        table_id(&datastore, "account"),
        table_id(&datastore, "name"),
    );
    let name = |id: u32| row(&[V::U32(id), V::String("n".repeat(id as usize % 7).into())]);
    let delete = |datastore: &mut Datastore, ids: std::ops::Range<u32>| {
        for id in ids {
            for index in ["account_id_idx_hash", "name_id_idx_btree"] {
                let index = index_id(datastore, index);
                let point = id.to_le_bytes();
                datastore
                    .delete_by_index_point(index, &point)
                    .expect("deleted");
            }
        }
    };
    let insert_all = |datastore: &mut Datastore, ids: std::ops::Range<u32>| {
        for id in ids {
            for (table, row) in [(fixed, account(id, 0)), (varying, name(id))] {
                let inserted = datastore.insert(table, &row, &mut Vec::new());
                inserted.expect("a free key");
            }
        }
    };
    let mut output = CommitOutput::default();
    datastore.begin();
    insert_all(&mut datastore, 0..10_000);
    datastore.commit(&mut output).expect("the record fits");
    let found = |datastore: &Datastore| {
        [fixed, varying].map(|table| {
            let (mut rows, table) = (Vec::new(), datastore.table(table).expect("it is there"));
            table.rows().for_each(|_, row| rows.extend_from_slice(row));
            rows
        })
    };
    let before = found(&datastore);
    datastore.begin();
    delete(&mut datastore, 100..9_000);
    insert_all(&mut datastore, 20_000..20_100);
    datastore.rollback();
    assert!(found(&datastore) == before);
    // What comes next takes the free places from the first one on.
    datastore.begin();
    delete(&mut datastore, 100..9_000);
    insert_all(&mut datastore, 20_000..28_000);
    datastore.commit(&mut output).expect("the record fits");
    let expected = (0..100).chain(20_000..28_000).chain(9_000..10_000);
    let expected: Vec<u8> = expected.flat_map(|id| account(id, 0)).collect();
    assert!(found(&datastore)[0] == expected);
}
