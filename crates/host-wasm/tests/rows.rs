//! Database calls of a module with the byte vectors of 03 §16.3.

use crate::common::*;
use crate::people::{bytes_of, index_of, row, start, Ids};
use crate::script::Script;
use serde_json::Value;

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
