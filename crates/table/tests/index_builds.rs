//! Indexes that are built beside a table that goes on changing.

use crate::common::*;
use lightcone_table::{IndexBuild, Inserted, RowId, Table};
use lightcone_types::{AlgebraicType as T, AlgebraicValue as V, ColId};
use proptest::prelude::*;

/// The column that indexes are for.
const COLUMN: ColId = ColId(1);

#[derive(Debug, Clone)]
enum Op {
    /// Inserts the key with this value and text, or replaces its row.
    Put(u32, i64, usize),
    Delete(u32),
    /// Takes in so many rows, or changes, elsewhere.
    Build(usize),
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let op = prop_oneof![
        8 => (0..60_u32, -4..4_i64, 0..40_usize).prop_map(|(key, value, text)| Op::Put(key, value, text)),
        3 => (0..60_u32).prop_map(Op::Delete),
        3 => (1..20_usize).prop_map(Op::Build),
    ];
    prop::collection::vec(op, 1..150)
}

fn find(table: &Table, key: u32) -> Option<RowId> {
    let mut found = None;
    let index = &table.indexes()[0];
    let visit = |id| found = Some(id);
    index
        .for_point(table.rows(), table.layout(), &key.to_le_bytes(), visit)
        .expect("a good point");
    found
}

fn change(table: &mut Table, op: &Op, has_text: bool) {
    match op {
        Op::Put(key, value, text) => {
            let mut values = vec![V::U32(*key), V::I64(*value)];
            if has_text {
                values.push(V::Bytes(vec![7; *text]));
            }
            let row = row(&values);
            match find(table, *key) {
                Some(id) => drop(table.replace(id, &row).expect("there is room")),
                None => assert!(matches!(table.insert(&row), Ok(Inserted::New(_)))),
            }
        }
        Op::Delete(key) => {
            if let Some(id) = find(table, *key) {
                table.delete(id);
            }
        }
        Op::Build(_) => {}
    }
}

/// Every row is found by its value, and nothing else is.
fn check(table: &Table) {
    let index = table.index_on(COLUMN).expect("it was taken");
    assert_eq!(index.row_count() as u64, table.rows().row_count());
    table.rows().for_each(|id, row| {
        let value = table.layout().column(row, usize::from(COLUMN.0));
        let mut found = false;
        let visit = |other| found |= other == id;
        let walked = index.for_point(table.rows(), table.layout(), value, visit);
        walked.expect("a good point");
        assert!(found);
    });
}

proptest! {
    #![proptest_config(config(100))]

    #[test]
    fn an_index_catches_up(before in ops(), during in ops(), has_text in any::<bool>()) {
        let mut columns = vec![T::U32, T::I64];
        if has_text {
            columns.push(T::bytes());
        }
        let mut table = Table::new(schema(&columns, &[(hash(&[0]), true)]));
        before.iter().for_each(|op| change(&mut table, op, has_text));
        table.begin_index(COLUMN, 1 << 20);
        let frozen = table.freeze();
        let mut build = IndexBuild::new(&frozen, COLUMN);
        let mut has_more = true;
        let mut changes = None;
        let mut applied = 0;
        for op in &during {
            change(&mut table, op, has_text);
            let Op::Build(count) = op else { continue };
            match &changes {
                None if has_more => has_more = build.add_rows(&frozen, *count),
                None => changes = table.take_index_changes(COLUMN),
                Some(noted) => {
                    applied = build.apply(noted, applied, *count);
                    if applied == noted.len() {
                        (changes, applied) = (table.take_index_changes(COLUMN), 0);
                    }
                }
            }
        }
        while has_more {
            has_more = build.add_rows(&frozen, 7);
        }
        if let Some(noted) = &changes {
            build.apply(noted, applied, usize::MAX);
        }
        let rest = table.take_index_changes(COLUMN).expect("they are few");
        build.apply(&rest, 0, usize::MAX);
        prop_assert!(table.take_index(COLUMN, build).is_empty());
        check(&table);
        // It is one of the table's from then on.
        before.iter().for_each(|op| change(&mut table, op, has_text));
        check(&table);
        table.release_index(COLUMN);
    }
}

/// What is noted is bounded, and what is built for a table that was emptied is of no use.
#[test]
fn building_is_given_up() {
    let mut table = Table::new(schema(&[T::U32, T::I64], &[(hash(&[0]), true)]));
    let put = |table: &mut Table, key| change(table, &Op::Put(key, 1, 0), false);
    table.begin_index(COLUMN, 4 << 10);
    (0..1000).for_each(|key| put(&mut table, key));
    assert!(table.take_index_changes(COLUMN).is_none());
    table.begin_index(COLUMN, 4 << 10);
    put(&mut table, 2000);
    assert_eq!(
        table
            .take_index_changes(COLUMN)
            .map(|changes| changes.len()),
        Some(1)
    );
    table.clear();
    assert!(table.take_index_changes(COLUMN).is_none());
    table.begin_index(COLUMN, 4 << 10);
    table.give_up_index(COLUMN);
    assert!(table.take_index_changes(COLUMN).is_none());
    assert!(table.index_on(COLUMN).is_none());
}
