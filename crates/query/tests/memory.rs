//! What a query keeps in memory, and that it is counted.

use crate::common::database::Database;
use crate::common::{btree, encode_row, guest, owner, table};
use lightcone_query::ExecuteError;
use lightcone_types::{AlgebraicType as T, AlgebraicValue as V, TableId};

const MIB: usize = 1 << 20;

/// A table `t` of so many rows: ascending ids, and texts of so many bytes.
fn rows(count: u32, text_bytes: usize) -> Database {
    let mut schema = table(4096, "t", &[("id", T::U32), ("text", T::String)]);
    schema.indexes.push(btree(&[0]));
    let text = "a".repeat(text_bytes);
    let row = |id| encode_row(&[V::U32(id), V::String(text.as_str().into())]);
    let mut database = Database::default();
    database.add(schema, (0..count).map(row));
    database
}

fn run(database: &Database, text: &str, bytes_max: usize) -> Result<Vec<Vec<u8>>, ExecuteError> {
    let query = database.query(text, &owner());
    database.rows(query, owner().identity, bytes_max, 1 << 17)
}

#[test]
fn the_best_value_so_far_takes_its_own_place() {
    // 4 bytes of each, kept, would be more than a MiB.
    let database = rows(300_000, 0);
    let max = run(&database, "SELECT MAX(id) AS m, MIN(id) AS n FROM t", MIB).expect("small");
    let mut expected = vec![0];
    expected.extend(299_999u32.to_le_bytes());
    expected.extend([0; 5]);
    assert_eq!(max, [expected]);
}

#[test]
fn a_limit_keeps_only_the_rows_that_come_out() {
    let database = rows(3000, 10_000);
    for order in ["id DESC", "text, id DESC"] {
        let text = format!("SELECT * FROM t ORDER BY {order} LIMIT 20 OFFSET 10");
        let found = run(&database, &text, MIB).expect("30 rows");
        assert_eq!(found.len(), 20);
        assert_eq!(found[0][..4], 2989u32.to_le_bytes());
        assert_eq!(found[19][..4], 2970u32.to_le_bytes());
    }
    let all = run(&database, "SELECT * FROM t ORDER BY id", MIB);
    assert_eq!(all, Err(ExecuteError::Memory { bytes_max: MIB }));
}

#[test]
fn loops_and_plans_are_counted() {
    let database = rows(3000, 0);
    let joined: String = (1..300).map(|n| format!(" JOIN t x{n}")).collect();
    let text = format!("SELECT COUNT(*) AS n FROM t x0{joined} LIMIT 1");
    let refused = run(&database, &text, 1 << 16);
    assert!(refused.is_err(), "300 loops take more than 64 KiB");
    // Each loop keeps a batch of ids of its rows.
    let joined: String = (1..100).map(|n| format!(" JOIN t x{n}")).collect();
    let columns = format!("SELECT x0.id FROM t x0{joined} LIMIT 1");
    assert!(run(&database, &columns, 1 << 18).is_err());
    assert_eq!(run(&database, &columns, MIB).map(|rows| rows.len()), Ok(1));
    // A plan has a line for each relation, and each combination of rules.
    let mut database = rows(10, 0);
    let rule = |id| format!("SELECT t.* FROM t WHERE t.id = {id}");
    let rules = vec![rule(1), rule(2)];
    database.rules.insert(TableId(4096), rules);
    let joined: String = (1..6).map(|n| format!(" JOIN t x{n}")).collect();
    let run = |text: &str| {
        let query = database.query(text, &guest());
        database.rows(query, guest().identity, 1 << 14, 1 << 17)
    };
    let text = format!("SELECT x0.id FROM t x0{joined}");
    assert_eq!(run(&text).map(|rows| rows.len()), Ok(64));
    assert!(run(&format!("EXPLAIN {text}")).is_err(), "384 lines");
}
