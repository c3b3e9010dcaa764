//! Database calls of a module, with the byte vectors of 03 §16.3.

mod common;
#[path = "common/script.rs"]
mod script;

use common::*;
use lightcone_engine::Datastore;
use lightcone_host::HostLimits;
use lightcone_schema::raw::*;
use lightcone_schema::{IndexAlgorithm, ModuleDef, TableAccess, TableKind};
use lightcone_types::{AlgebraicType, ColId, ConnectionId, TypeRef, Typespace};
use script::Script;
use serde_json::Value;

/// `person { id: u64 autoinc pk, name: string, age: u8 }`, indexes on (name), (name, age) and a hash index on (age).
fn people() -> Datastore {
    let person = AlgebraicType::product([
        ("id", AlgebraicType::U64),
        ("name", AlgebraicType::String),
        ("age", AlgebraicType::U8),
    ]);
    let index = |name: &str, algorithm| RawIndexDefV9 {
        name: Some(name.into()),
        accessor_name: Some(name.into()),
        algorithm,
    };
    let table = RawTableDefV9 {
        name: "person".into(),
        product_type_ref: TypeRef(0),
        primary_key: vec![ColId(0)],
        indexes: vec![
            index("person_id_idx_btree", IndexAlgorithm::BTree(vec![ColId(0)])),
            index(
                "person_name_idx_btree",
                IndexAlgorithm::BTree(vec![ColId(1)]),
            ),
            index(
                "person_name_age_idx_btree",
                IndexAlgorithm::BTree(vec![ColId(1), ColId(2)]),
            ),
            index("person_age_idx_hash", IndexAlgorithm::Hash(vec![ColId(2)])),
        ],
        constraints: vec![RawConstraintDefV9 {
            name: None,
            data: RawConstraintData::Unique(RawUniqueConstraintData {
                columns: vec![ColId(0)],
            }),
        }],
        sequences: vec![RawSequenceDefV9 {
            name: None,
            column: ColId(0),
            start: Some(100),
            min_value: None,
            max_value: None,
            increment: 1,
        }],
        schedule: None,
        table_type: TableKind::User,
        table_access: TableAccess::Public,
    };
    let def = RawModuleDefV9 {
        typespace: Typespace {
            types: vec![person],
        },
        tables: vec![table],
        types: vec![RawTypeDefV9 {
            name: RawScopedTypeNameV9 {
                scope: vec![],
                name: "Person".into(),
            },
            ty: TypeRef(0),
            custom_ordering: true,
        }],
        ..RawModuleDefV9::default()
    };
    let def =
        ModuleDef::validate(RawModuleDef::V9(def)).unwrap_or_else(|errors| panic!("{errors}"));
    let mut datastore = Datastore::new();
    datastore.begin();
    datastore.bootstrap();
    datastore.create_tables(&def).unwrap();
    datastore.commit(&mut Default::default());
    datastore
}

struct Ids {
    person: u32,
    by_id: u32,
    by_name: u32,
    by_name_age: u32,
    by_age: u32,
}

fn start() -> (Running, Ids) {
    start_with(small_limits())
}

fn start_with(limits: HostLimits) -> (Running, Ids) {
    let mut running = Running::start_with(&script::interpreter(), limits);
    let mut datastore = people();
    datastore.begin();
    running.datastore = datastore;
    let mut script = Script::default();
    let person = script.lookup("table_id_from_name", "person");
    let names = [
        "person_id_idx_btree",
        "person_name_idx_btree",
        "person_name_age_idx_btree",
        "person_age_idx_hash",
    ];
    let indexes = names.map(|name| script.lookup("index_id_from_name", name));
    let report = script.run(&mut running);
    assert_eq!(report.codes, [0; 5]);
    let [by_id, by_name, by_name_age, by_age] = indexes.map(|at| report.u32(at));
    (
        running,
        Ids {
            person: report.u32(person),
            by_id,
            by_name,
            by_name_age,
            by_age,
        },
    )
}

fn row(id: u64, name: &str, age: u8) -> Vec<u8> {
    let mut row = id.to_le_bytes().to_vec();
    row.extend((name.len() as u32).to_le_bytes());
    row.extend(name.as_bytes());
    row.push(age);
    row
}

fn hex(text: &str) -> Vec<u8> {
    (0..text.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap())
        .collect()
}

#[test]
fn unknown_names_and_ids() {
    let (mut running, ids) = start();
    let mut script = Script::default();
    let out = script.lookup("table_id_from_name", "nobody");
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

/// The bytes of 03 §16.3, section by section.
#[test]
fn rows_of_the_chapter() {
    let file = lightcone_vectors::file("03-rows.json");
    let sections: Vec<&String> = file.as_object().unwrap().keys().collect();
    let read = [
        "note",
        "table",
        "inserts",
        "updates",
        "deletes_by_eq",
        "points",
        "ranges",
        "scans",
    ];
    assert_eq!(sections, read);
    each(&file, "inserts", check_insert);
    each(&file, "updates", check_update);
    each(&file, "deletes_by_eq", check_delete_by_eq);
    each(&file, "points", check_point);
    each(&file, "ranges", check_range);
    each(&file, "scans", check_scan);
}

fn each(file: &Value, section: &str, check: impl Fn(&Value)) {
    let entries = file[section].as_array().expect(section);
    assert!(!entries.is_empty(), "{section} has entries");
    for entry in entries {
        println!("{section}: {entry}");
        check(entry);
    }
}

fn bytes_of(entry: &Value, member: &str) -> Vec<u8> {
    hex(entry[member].as_str().expect(member))
}

fn row_of(value: &Value) -> Vec<u8> {
    let age = value["age"].as_u64().expect("age") as u8;
    let name = value["name"].as_str().expect("name");
    row(value["id"].as_u64().expect("id"), name, age)
}

fn rows_of(entry: &Value) -> Vec<Vec<u8>> {
    let rows = entry["value"].as_array().expect("rows");
    rows.iter().map(row_of).collect()
}

/// A table of these rows.
fn holding(rows: &[Vec<u8>]) -> (Running, Ids) {
    let (mut running, ids) = start();
    let mut script = Script::default();
    for row in rows {
        script.insert(ids.person, row);
    }
    assert!(script.run(&mut running).codes.iter().all(|code| *code == 0));
    (running, ids)
}

fn all_rows(running: &mut Running, ids: &Ids) -> Vec<u8> {
    let mut script = Script::default();
    let iterator = script.put_u32(0);
    let arguments = [ids.person, Script::pointer(iterator)];
    script.call("datastore_table_scan_bsatn", &arguments);
    let rows = script.advance(1, 1000);
    let report = script.run(running);
    report.rows(rows).to_vec()
}

fn check_insert(entry: &Value) {
    let (mut running, ids) = start();
    let bytes = bytes_of(entry, "hex");
    assert_eq!(bytes, row_of(&entry["value"]));
    let mut script = Script::default();
    let inserted = script.insert(ids.person, &bytes);
    let report = script.run(&mut running);
    assert_eq!(report.codes, [0]);
    assert_eq!(report.rows(inserted), bytes_of(entry, "write_back_hex"));
}

fn check_update(entry: &Value) {
    let bytes = bytes_of(entry, "hex");
    assert_eq!(bytes, row_of(&entry["value"]));
    let id = entry["value"]["id"].as_u64().expect("id");
    let (mut running, ids) = holding(&[row(id, "before", 0)]);
    let mut script = Script::default();
    let updated = script.update(ids.person, ids.by_id, &bytes);
    let report = script.run(&mut running);
    assert_eq!(report.codes, [0]);
    assert_eq!(report.rows(updated), bytes_of(entry, "write_back_hex"));
    assert_eq!(all_rows(&mut running, &ids), bytes);
}

fn check_delete_by_eq(entry: &Value) {
    let (mut running, ids) = holding(&rows_of(entry));
    let mut script = Script::default();
    let relation = bytes_of(entry, "hex");
    let deleted = script.with_bytes("datastore_delete_all_by_eq_bsatn", ids.person, &relation);
    let report = script.run(&mut running);
    assert_eq!(report.codes, [0]);
    assert_eq!(report.u32(deleted) as usize, rows_of(entry).len());
    assert!(all_rows(&mut running, &ids).is_empty());
}

/// The index over these columns; none where an entry only shows how keys are encoded.
fn index_of(entry: &Value, ids: &Ids) -> Option<u32> {
    let columns = entry["index"].as_array()?;
    let columns: Vec<&str> = columns.iter().filter_map(Value::as_str).collect();
    match columns[..] {
        ["id"] => Some(ids.by_id),
        ["name"] => Some(ids.by_name),
        ["name", "age"] => Some(ids.by_name_age),
        _ => panic!("no index over {columns:?}"),
    }
}

/// The parts of a key, one after the other.
fn key_of(entry: &Value) -> Vec<u8> {
    let mut key = Vec::new();
    let types = entry["types"].as_array().expect("types");
    for (ty, value) in types.iter().zip(entry["value"].as_array().expect("a key")) {
        let number = value.as_i64().unwrap_or_default().to_le_bytes();
        match ty.as_str() {
            Some("u8") => key.extend(&number[..1]),
            Some("u16") => key.extend(&number[..2]),
            Some("u32") => key.extend(&number[..4]),
            Some("u64" | "i64") => key.extend(number),
            Some("string") => {
                let text = value.as_str().expect("a text");
                key.extend((text.len() as u32).to_le_bytes());
                key.extend(text.as_bytes());
            }
            unknown => panic!("no test knows {unknown:?}"),
        }
    }
    key
}

fn check_point(entry: &Value) {
    let bytes = bytes_of(entry, "hex");
    assert_eq!(bytes, key_of(entry));
    let (mut running, ids) = holding(&[row(5, "bob", 7), row(6, "eve", 8)]);
    let Some(index) = index_of(entry, &ids) else {
        return;
    };
    let mut script = Script::default();
    script.with_bytes("datastore_index_scan_point_bsatn", index, &bytes);
    let rows = script.advance(1, 1000);
    let report = script.run(&mut running);
    assert_eq!(report.rows(rows), row(5, "bob", 7));
}

/// Every range of the file holds `bob` of 7, and neither of the others.
fn check_range(entry: &Value) {
    let (mut running, ids) = holding(&[row(4, "cat", 1), row(5, "bob", 7), row(6, "zed", 8)]);
    let mut script = Script::default();
    script.range(
        "datastore_index_scan_range_bsatn",
        index_of(entry, &ids).expect("an index"),
        &bytes_of(entry, "prefix_hex"),
        entry["prefix_elems"].as_u64().expect("a count") as u32,
        &bytes_of(entry, "rstart_hex"),
        &bytes_of(entry, "rend_hex"),
    );
    let rows = script.advance(1, 1000);
    let report = script.run(&mut running);
    assert_eq!(report.rows(rows), row(5, "bob", 7));
}

fn check_scan(entry: &Value) {
    let (mut running, ids) = holding(&rows_of(entry));
    let bytes = bytes_of(entry, "hex");
    assert_eq!(bytes, rows_of(entry).concat());
    assert_eq!(all_rows(&mut running, &ids), bytes);
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
