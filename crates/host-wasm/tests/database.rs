//! Database calls of a module.

use crate::common::*;
use crate::people::{bytes_of, hex, index_of, row, start, start_with};
use crate::script::Script;
use lightcone_host::HostLimits;
use lightcone_types::ConnectionId;

#[test]
fn unknown_names_and_ids() {
    let (mut running, ids) = start();
    let mut script = Script::default();
    let out = script.lookup("table_id_from_name", "missing");
    script.lookup("index_id_from_name", "person");
    let buffer = script.put(&[7; 8]);
    script.call(
        "datastore_table_row_count",
        &[9999, Script::pointer(buffer)],
    );
    script.call(
        "datastore_table_scan_bsatn",
        &[9999, Script::pointer(buffer)],
    );
    script.call("datastore_clear", &[9999, Script::pointer(buffer)]);
    script.insert(9999, &row(1, "bob", 7));
    script.update(9999, ids.by_id, &row(1, "bob", 7));
    script.update(ids.person, 9999, &row(1, "bob", 7));
    script.with_bytes("datastore_index_scan_point_bsatn", 9999, &[1]);
    script.with_bytes("datastore_delete_by_index_scan_point_bsatn", 9999, &[1]);
    script.with_bytes("datastore_delete_all_by_eq_bsatn", 9999, &[0; 4]);
    script.call("row_iter_bsatn_advance", &[1, 0, 0]);
    script.call("row_iter_bsatn_close", &[0]);
    script.call("procedure_start_mut_tx", &[Script::pointer(buffer)]);
    script.call("procedure_commit_mut_tx", &[]);
    let report = script.run(&mut running);
    assert_eq!(
        report.codes,
        [4, 5, 4, 4, 4, 4, 4, 5, 5, 5, 4, 6, 6, 17, 18]
    );
    assert_eq!(report.u32(out), 0, "out is written on success only");
    assert_eq!(report.bytes(buffer, 8), [7; 8]);
}

#[test]
fn inserts_write_back_what_was_generated() {
    let (mut running, ids) = start();
    let mut script = Script::default();
    let generated = script.insert(ids.person, &row(0, "bob", 7));
    let given = script.insert(ids.person, &row(5, "bob", 7));
    let conflict = script.insert(ids.person, &row(5, "zed", 9));
    let again = script.insert(ids.person, &row(5, "bob", 7));
    let undecodable = script.insert(ids.person, &row(6, "bob", 7)[..15]);
    let count = script.put(&[0; 8]);
    script.call(
        "datastore_table_row_count",
        &[ids.person, Script::pointer(count)],
    );
    let report = script.run(&mut running);
    assert_eq!(report.codes, [0, 0, 12, 0, 3, 0]);
    assert_eq!(report.rows(generated), 100u64.to_le_bytes());
    assert_eq!(report.u32(given.1), 0);
    assert_eq!(
        report.bytes(given.0, 16),
        row(5, "bob", 7),
        "nothing was generated"
    );
    assert_eq!(report.u32(conflict.1), 16, "the length stays on failure");
    assert_eq!(report.u32(again.1), 0, "an identical row is no conflict");
    assert_eq!(report.u32(undecodable.1), 15);
    assert_eq!(report.u64(count), 2);
}

#[test]
fn scans_give_whole_rows_and_the_end_with_the_last() {
    let (mut running, ids) = start();
    let mut script = Script::default();
    script.insert(ids.person, &row(5, "bob", 7));
    script.insert(ids.person, &row(6, "bob", 8));
    let iterator = script.put_u32(0);
    script.call(
        "datastore_table_scan_bsatn",
        &[ids.person, Script::pointer(iterator)],
    );
    // A later write does not show up.
    script.insert(ids.person, &row(7, "eve", 9));
    let small = script.advance(1, 10);
    let middle = script.advance(1, 16);
    let all = script.advance(1, 100);
    script.advance(1, 100);
    script.call("row_iter_bsatn_close", &[1]);
    let point = script.with_bytes(
        "datastore_index_scan_point_bsatn",
        ids.by_id,
        &5u64.to_le_bytes(),
    );
    let found = script.advance(1, 64);
    let nothing = script.with_bytes(
        "datastore_index_scan_point_bsatn",
        ids.by_id,
        &9u64.to_le_bytes(),
    );
    let none = script.advance(1, 0);
    script.with_bytes("datastore_index_scan_point_bsatn", ids.by_id, &[1]);
    let report = script.run(&mut running);
    assert_eq!(
        report.codes,
        [0, 0, 0, 0, 11, 11, -1, 6, 6, 0, -1, 0, -1, 3]
    );
    assert_eq!(report.u32(iterator), 1);
    // The reference answers 32 as well: the size of the chunk, not of a row.
    assert_eq!((report.u32(small.1), report.u32(middle.1)), (32, 32));
    assert_eq!(
        report.rows(all),
        [row(5, "bob", 7), row(6, "bob", 8)].concat()
    );
    assert_eq!(report.u32(point), 1, "freed iterators are reused");
    assert_eq!(report.rows(found), row(5, "bob", 7));
    assert_eq!((report.u32(nothing), report.rows(none)), (1, &[][..]));
}

#[test]
fn iterators_end_with_the_call() {
    let (mut running, ids) = start();
    let mut script = Script::default();
    script.insert(ids.person, &row(5, "bob", 7));
    let out = script.put_u32(0);
    script.call(
        "datastore_table_scan_bsatn",
        &[ids.person, Script::pointer(out)],
    );
    script.call(
        "datastore_table_scan_bsatn",
        &[ids.person, Script::pointer(out)],
    );
    let report = script.run(&mut running);
    assert_eq!((&report.codes[..], report.u32(out)), (&[0, 0, 0][..], 2));
    let mut script = Script::default();
    script.advance(1, 64);
    script.advance(2, 64);
    assert_eq!(script.run(&mut running).codes, [6, 6]);
}

#[test]
fn ranges() {
    let (mut running, ids) = start();
    let mut script = Script::default();
    for (id, name, age) in [
        (1, "abe", 1),
        (2, "bob", 3),
        (3, "bob", 4),
        (4, "bob", 9),
        (5, "cat", 4),
    ] {
        script.insert(ids.person, &row(id, name, age));
    }
    let inserted = script.run(&mut running);
    assert_eq!(inserted.codes, [0; 5]);
    let found = |running: &mut Running, index, prefix: &str, elems, rstart: &str, rend: &str| {
        let mut script = Script::default();
        script.range(
            "datastore_index_scan_range_bsatn",
            index,
            &hex(prefix),
            elems,
            &hex(rstart),
            &hex(rend),
        );
        let rows = script.advance(1, 1000);
        let report = script.run(running);
        match report.codes[..] {
            [0, -1] => Ok(report
                .rows(rows)
                .chunks(16)
                .map(|row| row[0])
                .collect::<Vec<_>>()),
            [errno, _] => Err(errno),
            _ => unreachable!(),
        }
    };
    // The ranges of 03 §16.3, in their order.
    let expected: [&[u8]; 3] = [&[1, 2, 3, 4], &[2, 3, 4], &[3, 4]];
    let file = lightcone_vectors::file("03-rows.json");
    let of_the_chapter = file["ranges"].as_array().expect("ranges");
    assert_eq!(of_the_chapter.len(), expected.len());
    for (range, expected) in of_the_chapter.iter().zip(expected) {
        let text = |member: &str| range[member].as_str().expect(member);
        let keys = found(
            &mut running,
            index_of(range, &ids).expect("an index"),
            text("prefix_hex"),
            range["prefix_elems"].as_u64().expect("a count") as u32,
            text("rstart_hex"),
            text("rend_hex"),
        );
        assert_eq!(keys, Ok(expected.to_vec()), "{range}");
    }
    // Unbounded, inverted, exclusive at both ends.
    assert_eq!(
        found(&mut running, ids.by_name, "", 0, "02", "02"),
        Ok(vec![1, 2, 3, 4, 5])
    );
    assert_eq!(
        found(
            &mut running,
            ids.by_name_age,
            "03000000626f62",
            1,
            "0009",
            "0003"
        ),
        Ok(vec![])
    );
    assert_eq!(
        found(
            &mut running,
            ids.by_name_age,
            "03000000626f62",
            1,
            "0103",
            "0109"
        ),
        Ok(vec![3])
    );
    assert_eq!(
        found(
            &mut running,
            ids.by_name_age,
            "03000000626f62",
            1,
            "0003",
            "0009"
        ),
        Ok(vec![2, 3, 4])
    );
    // No bound, too many columns, bytes that do not decode, an index without order.
    assert_eq!(found(&mut running, ids.by_name, "", 0, "", "02"), Err(3));
    assert_eq!(
        found(&mut running, ids.by_name, "03000000626f62", 1, "02", "02"),
        Err(3)
    );
    assert_eq!(found(&mut running, ids.by_name, "", 0, "03", "02"), Err(3));
    assert_eq!(
        found(&mut running, ids.by_name, "", 0, "00ff", "02"),
        Err(3)
    );
    assert_eq!(found(&mut running, ids.by_age, "", 0, "02", "02"), Err(10));
    // A hash index finds points.
    let mut script = Script::default();
    script.with_bytes("datastore_index_scan_point_bsatn", ids.by_age, &[4]);
    let rows = script.advance(1, 1000);
    let report = script.run(&mut running);
    let mut keys: Vec<u8> = report.rows(rows).chunks(16).map(|row| row[0]).collect();
    keys.sort_unstable();
    assert_eq!((&report.codes[..], &keys[..]), (&[0, -1][..], &[3, 5][..]));
}

#[test]
fn updates() {
    let (mut running, ids) = start();
    let mut script = Script::default();
    script.insert(ids.person, &row(5, "bob", 7));
    let updated = script.update(ids.person, ids.by_id, &row(5, "zed", 9));
    script.update(ids.person, ids.by_id, &row(6, "zed", 9));
    script.update(ids.person, ids.by_name, &row(5, "zed", 9));
    script.update(ids.person, ids.by_id, &row(5, "zed", 9));
    script.update(ids.person, ids.by_id, &[5]);
    script.with_bytes(
        "datastore_index_scan_point_bsatn",
        ids.by_id,
        &5u64.to_le_bytes(),
    );
    let rows = script.advance(1, 64);
    let report = script.run(&mut running);
    assert_eq!(report.codes, [0, 0, 15, 14, 0, 3, 0, -1]);
    assert_eq!(report.u32(updated.1), 0);
    assert_eq!(report.rows(rows), row(5, "zed", 9));
}

#[test]
fn deletes() {
    let (mut running, ids) = start();
    let mut script = Script::default();
    for id in 1..=8 {
        script.insert(ids.person, &row(id, "bob", id as u8));
    }
    let by_point = script.with_bytes(
        "datastore_delete_by_index_scan_point_bsatn",
        ids.by_id,
        &1u64.to_le_bytes(),
    );
    let by_range = script.range(
        "datastore_delete_by_index_scan_range_bsatn",
        ids.by_name_age,
        &hex("03000000626f62"),
        1,
        &[1, 2],
        &[0, 4],
    );
    let alias = script.range(
        "datastore_delete_by_btree_scan_bsatn",
        ids.by_name,
        &[],
        0,
        &hex("010100000063"),
        &[2],
    );
    let mut relation = 2u32.to_le_bytes().to_vec();
    relation.extend(row(5, "bob", 5));
    relation.extend(row(6, "not bob", 6));
    let by_eq = script.with_bytes("datastore_delete_all_by_eq_bsatn", ids.person, &relation);
    script.with_bytes(
        "datastore_delete_all_by_eq_bsatn",
        ids.person,
        &relation[..20],
    );
    let cleared = script.put(&[0; 8]);
    script.call("datastore_clear", &[ids.person, Script::pointer(cleared)]);
    let report = script.run(&mut running);
    assert_eq!(report.codes[8..], [0, 0, 0, 0, 3, 0]);
    assert_eq!(report.u32(by_point), 1);
    assert_eq!(report.u32(by_range), 2, "3 and 4");
    assert_eq!(report.u32(alias), 0);
    assert_eq!(report.u32(by_eq), 1, "rows that are not there are ignored");
    assert_eq!(report.u64(cleared), 4, "2, 6, 7, 8");
}

#[test]
fn without_an_open_transaction_the_answer_is_2() {
    let (mut running, ids) = start();
    running.datastore.rollback();
    let mut script = Script::default();
    let out = script.put(&[0; 8]);
    script.insert(ids.person, &row(5, "bob", 7));
    script.call(
        "datastore_table_row_count",
        &[ids.person, Script::pointer(out)],
    );
    script.with_bytes(
        "datastore_index_scan_point_bsatn",
        ids.by_id,
        &1u64.to_le_bytes(),
    );
    let now = script.put(&[0; 8]);
    script.call("procedure_commit_mut_tx", &[]);
    script.call("procedure_start_mut_tx", &[Script::pointer(now)]);
    script.call("procedure_start_mut_tx", &[Script::pointer(now)]);
    script.insert(ids.person, &row(5, "bob", 7));
    script.call("procedure_commit_mut_tx", &[]);
    script.insert(ids.person, &row(6, "eve", 7));
    assert_eq!(
        script.run_in_procedure(&mut running).codes,
        [2, 2, 2, 18, 0, 17, 0, 0, 2]
    );
}

#[test]
fn the_token_of_the_connection() {
    let (mut running, _) = start();
    let connection = ConnectionId::from_hex(CONNECTION_HEX).unwrap();
    let split = lightcone_vectors::file("03-identity-split.json");
    let mut credentials = bytes_of(&split["connection_id"], "hex");
    assert_eq!(
        credentials,
        connection.0.to_le_bytes(),
        "the bytes of 03 §16.2"
    );
    let payload = br#"{"sub":"me"}"#;
    credentials.extend((payload.len() as u32).to_le_bytes());
    credentials.extend(payload);
    let datastore = &mut running.datastore;
    let table = lightcone_engine::ST_CONNECTION_CREDENTIALS_ID;
    datastore
        .insert(table, &credentials, &mut Vec::new())
        .unwrap();

    let mut script = Script::default();
    let known = script.put(&credentials[..16]);
    let unknown = script.put(&[9; 16]);
    let source = script.put_u32(77);
    let none = script.put_u32(77);
    script.call(
        "get_jwt",
        &[Script::pointer(known), Script::pointer(source)],
    );
    script.call(
        "get_jwt",
        &[Script::pointer(unknown), Script::pointer(none)],
    );
    let (buffer, len) = (script.put(&[0; 64]), script.put_u32(64));
    // The source of the arguments is read to its end already.
    script.call(
        "bytes_source_read",
        &[2, Script::pointer(buffer), Script::pointer(len)],
    );
    let report = script.run(&mut running);
    assert_eq!(report.codes, [0, 0, -1]);
    assert_eq!((report.u32(source), report.u32(none)), (2, 0));
    assert_eq!(report.rows((buffer, len)), payload);
}

#[test]
fn iterators_have_limits() {
    let (mut running, ids) = start_with(HostLimits {
        iterators_max: 2,
        ..small_limits()
    });
    let mut script = Script::default();
    let out = script.put_u32(0);
    for _ in 0..3 {
        script.call(
            "datastore_table_scan_bsatn",
            &[ids.person, Script::pointer(out)],
        );
    }
    let error = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| script.run(&mut running)))
        .err()
        .unwrap();
    let text = error.downcast_ref::<String>().unwrap();
    assert!(text.contains("iterators-max = 2 [LC0724]"), "{text}");
    assert!(running.instance.is_poisoned());
}
