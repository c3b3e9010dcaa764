//! Slotted pages with rows of all sizes, page images, damaged images, and snapshots beside a busy writer.

use std::collections::BTreeMap;

use crate::common::*;
use lightcone_table::{Inserted, Table};
use lightcone_types::{AlgebraicType as T, AlgebraicValue as V};
use proptest::prelude::*;
use proptest::sample::Index as Pick;

#[derive(Debug, Clone)]
enum Op {
    /// Inserts the key with a text of this size in bytes, or replaces its row.
    Put(u32, usize),
    Delete(u32),
    Snapshot,
    Reload,
}

fn size() -> impl Strategy<Value = usize> {
    prop_oneof![
        6 => 0..60_usize,
        3 => 200..3_000_usize,
        2 => 3_000..16_000_usize,
        // Around the border between shared pages and pages of their own.
        2 => 16_360..16_400_usize,
        1 => 60_000..140_000_usize,
    ]
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let op = prop_oneof![
        12 => (0..24_u32, size()).prop_map(|(key, size)| Op::Put(key, size)),
        6 => (0..24_u32).prop_map(Op::Delete),
        1 => Just(Op::Snapshot),
        1 => Just(Op::Reload),
    ];
    prop::collection::vec(op, 1..120)
}

fn keyed_row(key: u32, size: usize, fill: u8) -> Vec<u8> {
    row(&[V::U32(key), V::Bytes(vec![fill; size])])
}

fn new_table() -> Table {
    Table::new(schema(&[T::U32, T::bytes()], &[(hash(&[0]), true)]))
}

fn contents(table: &Table) -> BTreeMap<u32, Vec<u8>> {
    let mut rows = BTreeMap::new();
    table.rows().for_each(|_, row| {
        let key = u32::from_le_bytes(row[..4].try_into().expect("four bytes"));
        assert!(rows.insert(key, row.to_vec()).is_none(), "one row a key");
    });
    rows
}

fn put(table: &mut Table, row: &[u8]) {
    let found = table.indexes()[0].find_row(table.rows(), table.layout(), row);
    match found {
        Some(id) => drop(table.replace(id, row).expect("there is room")),
        None => assert!(matches!(table.insert(row), Ok(Inserted::New(_)))),
    }
}

fn delete(table: &mut Table, key: u32) -> bool {
    let mut found = None;
    table.indexes()[0]
        .for_point(table.rows(), table.layout(), &key.to_le_bytes(), |id| {
            found = Some(id)
        })
        .expect("a good point");
    found.into_iter().for_each(|id| table.delete(id));
    found.is_some()
}

fn reloaded(table: &mut Table) -> Table {
    let snapshot = table.snapshot();
    let mut copy = new_table();
    copy.load(snapshot.rows.pages()).expect("good pages");
    copy
}

proptest! {
    #![proptest_config(config(60))]

    #[test]
    fn rows_of_all_sizes(ops in ops()) {
        let mut table = new_table();
        let mut model: BTreeMap<u32, Vec<u8>> = BTreeMap::new();
        let mut snapshots = Vec::new();
        for (number, op) in ops.iter().enumerate() {
            match *op {
                Op::Put(key, size) => {
                    let row = keyed_row(key, size, number as u8);
                    put(&mut table, &row);
                    model.insert(key, row);
                }
                Op::Delete(key) => prop_assert_eq!(delete(&mut table, key), model.remove(&key).is_some()),
                Op::Snapshot => snapshots.push((table.snapshot(), model.clone())),
                Op::Reload => table = reloaded(&mut table),
            }
            prop_assert!(contents(&table) == model, "after {:?}", op);
        }
        for (snapshot, model) in &snapshots {
            let mut rows = 0;
            snapshot.rows.for_each(|_, row| {
                rows += 1;
                let key = u32::from_le_bytes(row[..4].try_into().expect("four bytes"));
                assert_eq!(model.get(&key).map(|r| &r[..]), Some(row));
            });
            prop_assert_eq!(rows, model.len());
        }
    }

    /// A damaged image is refused, or is still a page of good rows with which the table works.
    #[test]
    fn damaged_images(
        sizes in prop::collection::vec(size(), 1..30),
        deleted in prop::collection::vec(0..30_u32, 0..10),
        damage in prop::collection::vec((any::<Pick>(), any::<u8>()), 1..4),
        in_header in any::<bool>(),
        cut in prop::option::weighted(0.2, any::<Pick>()),
        then in ops(),
    ) {
        let mut table = new_table();
        for (key, &size) in sizes.iter().enumerate() {
            put(&mut table, &keyed_row(key as u32, size, 7));
        }
        for &key in &deleted {
            delete(&mut table, key);
        }
        let snapshot = table.snapshot();
        let mut images: Vec<Vec<u8>> = snapshot.rows.pages().map(<[u8]>::to_vec).collect();
        let page = damage[0].0.index(images.len());
        let image = &mut images[page];
        for (place, byte) in &damage {
            let place = match in_header {
                true => place.index(16.min(image.len())),
                // The slots at the end.
                false if image.len() == 65_536 => 65_536 - 1 - place.index(4 * sizes.len()),
                false => place.index(image.len()),
            };
            image[place] = *byte;
        }
        if let Some(cut) = cut {
            let length = cut.index(image.len());
            image.truncate(length);
        }
        let mut loaded = new_table();
        if loaded.load(images.iter().map(|image| &image[..])).is_err() {
            return Ok(());
        }
        // Rows may be other rows now, but what the table says must hold together.
        let mut rows = 0;
        loaded.rows().for_each(|id, row| {
            rows += 1;
            assert_eq!(loaded.find_equal(row), Some(id));
        });
        prop_assert_eq!(loaded.rows().row_count(), rows);
        let mut model = contents(&loaded);
        for op in &then {
            match *op {
                Op::Put(key, size) => {
                    let row = keyed_row(key, size, 9);
                    put(&mut loaded, &row);
                    model.insert(key, row);
                }
                Op::Delete(key) => prop_assert_eq!(delete(&mut loaded, key), model.remove(&key).is_some()),
                Op::Snapshot | Op::Reload => {}
            }
        }
        prop_assert!(contents(&loaded) == model);
    }

    #[test]
    fn damaged_dense_images(keys in prop::collection::vec(0..300_u32, 1..100), place in any::<Pick>(), byte: u8,
                            cut in prop::option::weighted(0.2, any::<Pick>())) {
        let columns = [T::U32, T::Bool];
        let new = || Table::new(schema(&columns, &[(hash(&[0]), true)]));
        let mut table = new();
        for key in keys {
            let _ = table.insert(&row(&[V::U32(key), V::Bool(true)]));
        }
        let mut image = table.snapshot().rows.pages().next().expect("a page").to_vec();
        let place = place.index(2_000);
        image[place] = byte;
        if let Some(cut) = cut {
            let length = cut.index(image.len());
            image.truncate(length);
        }
        let mut loaded = new();
        if loaded.load([&image[..]].into_iter()).is_ok() {
            let mut rows = 0;
            loaded.rows().for_each(|id, row| {
                rows += 1;
                assert!(row[4] < 2);
                assert_eq!(loaded.find_equal(row), Some(id));
            });
            prop_assert_eq!(loaded.rows().row_count(), rows);
        }
    }
}

/// Rows of one size that are too large for dense pages, and for any shared page, stay where they are.
#[test]
fn large_rows_of_one_size() {
    for columns in [130, 500, 600] {
        let types = vec![T::U256; columns];
        let mut table = Table::new(schema(
            &types,
            &[(hash(&[0]), true), (btree(&[1, 0]), false)],
        ));
        let row_of = |key: u8, other: u8| {
            let mut row = vec![other; columns * 32];
            row[..32].fill(key);
            row
        };
        for key in 0..4 {
            assert!(matches!(
                table.insert(&row_of(key, 1)),
                Ok(Inserted::New(_))
            ));
        }
        for round in 2..5 {
            for key in 0..4 {
                let row = row_of(key, round);
                let id = table.indexes()[0]
                    .find_row(table.rows(), table.layout(), &row)
                    .expect("the key is there");
                assert_eq!(table.replace(id, &row), Ok(id), "{columns} columns");
                assert_eq!(table.row(id), row);
                assert_eq!(table.find_equal(&row), Some(id));
            }
        }
        assert_eq!(table.rows().row_count(), 4);
    }
}

/// Pages are reused: a table that stays small does not grow, whatever is inserted and deleted.
#[test]
fn churn_does_not_grow() {
    let mut table = new_table();
    let mut largest = 0;
    for round in 0..4_000_u32 {
        put(
            &mut table,
            &keyed_row(round, (round as usize * 37) % 900, 1),
        );
        if round >= 50 {
            assert!(delete(&mut table, round - 50));
        }
        if round % 97 == 0 {
            put(&mut table, &keyed_row(round, 20_000, 1));
        }
        largest = largest.max(table.rows().heap_bytes());
    }
    assert!(
        largest < 1 << 20,
        "50 rows of some 20 KiB in all took {largest} bytes"
    );
}

/// A snapshot is read on another thread while the writer changes the same pages.
#[test]
fn snapshot_beside_a_writer() {
    let mut table = new_table();
    for key in 0..300 {
        put(&mut table, &keyed_row(key, 50 + key as usize, 1));
    }
    for round in 2..6_u8 {
        let before = contents(&table);
        let snapshot = table.snapshot();
        std::thread::scope(|scope| {
            let reader = scope.spawn(move || {
                for _ in 0..5 {
                    let mut rows = BTreeMap::new();
                    snapshot.rows.for_each(|_, row| {
                        rows.insert(
                            u32::from_le_bytes(row[..4].try_into().expect("four bytes")),
                            row.to_vec(),
                        );
                    });
                    assert!(rows == before, "the snapshot changed");
                }
            });
            for key in (0..300).step_by(3) {
                put(
                    &mut table,
                    &keyed_row(key, 40 + (key as usize * usize::from(round)) % 400, round),
                );
                delete(&mut table, key + 1);
                put(&mut table, &keyed_row(key + 1, 10, round));
            }
            reader.join().expect("the reader is content");
        });
    }
}

/// Without a snapshot pages change in place; with one, only touched pages are copied.
#[test]
fn only_touched_pages_are_copied() {
    let mut table = Table::new(schema(&[T::U32, T::U64], &[(hash(&[0]), true)]));
    for key in 0..40_000_u32 {
        table
            .insert(&row(&[V::U32(key), V::U64(0)]))
            .expect("a new key");
    }
    let before = table.snapshot();
    let changed = row(&[V::U32(3), V::U64(1)]);
    let id = table.indexes()[0]
        .find_row(table.rows(), table.layout(), &changed)
        .expect("the key is there");
    table.replace(id, &changed).expect("same size");
    let after = table.snapshot();
    let same = before
        .rows
        .pages()
        .zip(after.rows.pages())
        .filter(|(a, b)| a.as_ptr() == b.as_ptr());
    assert_eq!(before.rows.pages().len(), after.rows.pages().len());
    assert_eq!(same.count(), before.rows.pages().len() - 1);
}
