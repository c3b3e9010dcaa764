//! How many rows plans look at, and what they may tell.

use crate::common::database::Database;
use crate::common::{btree, encode_row, guest, owner, table};
use lightcone_query::Caller;
use lightcone_schema::IndexSchema;
use lightcone_types::{AlgebraicType as T, AlgebraicValue as V, TableId};

/// A table of `U32` columns, with some indexes.
fn add<const N: usize>(
    database: &mut Database,
    name: &str,
    columns: [&str; N],
    indexes: &[IndexSchema],
    rows: impl Iterator<Item = [u32; N]>,
) {
    let id = 4096 + database.tables.len() as u32;
    let columns: Vec<_> = columns.iter().map(|column| (*column, T::U32)).collect();
    let mut schema = table(id, name, &columns);
    schema.indexes.extend(indexes.iter().cloned());
    database.add(schema, rows.map(|row| encode_row(&row.map(V::U32))));
}

fn unique(column: u16) -> IndexSchema {
    IndexSchema {
        unique: true,
        ..btree(&[column])
    }
}

fn plan(database: &Database, text: &str, caller: &Caller) -> Vec<String> {
    let query = database.query(&format!("EXPLAIN {text}"), caller);
    let rows = database.rows(query, caller.identity, 64 << 20, 1 << 12);
    let lines = rows.unwrap_or_else(|error| panic!("{text}: {error}"));
    let line = |row: Vec<u8>| String::from_utf8(row[4..].to_vec()).expect("text");
    lines.into_iter().map(line).collect()
}

fn looked_at(lines: &[String]) -> u64 {
    let number = |line: &String| {
        let (_, number) = line.split_once("; looked at ")?;
        number.split_once(',')?.0.parse::<u64>().ok()
    };
    lines.iter().filter_map(number).sum()
}

/// Of 100,000 events, so many are of kind 7, of all users in turn. Other kinds have ten.
fn events(of_kind: u32, users: u32) -> Database {
    let mut database = Database::default();
    let event = |n: u32| [n, if n < of_kind { 7 } else { 100 + n / 10 }, n % users];
    add(
        &mut database,
        "events",
        ["id", "kind", "user_id"],
        &[btree(&[1])],
        (0..100_000).map(event),
    );
    add(
        &mut database,
        "users",
        ["id"],
        &[unique(0)],
        (0..users).map(|n| [n]),
    );
    database
}

const EVENTS_OF_USERS: &str =
    "SELECT u.* FROM events e JOIN users u ON e.user_id = u.id WHERE e.kind = 7";

#[test]
fn what_a_named_key_has_is_estimated_without_a_jump() {
    for of_kind in [1000, 1100, 1500, 4000] {
        let lines = plan(&events(of_kind, 8000), EVENTS_OF_USERS, &owner());
        assert!(
            lines[0].contains("events #0: index"),
            "{of_kind}: {lines:?}"
        );
        assert_eq!(looked_at(&lines), 2 * u64::from(of_kind), "{lines:?}");
    }
    // More than are counted: neither so few as that, nor all that it could be.
    let lines = plan(&events(5000, 8000), EVENTS_OF_USERS, &owner());
    assert!(lines[0].contains("about 6400 rows"), "{lines:?}");
}

#[test]
fn the_same_rows_are_not_looked_at_for_each_of_many() {
    let lines = plan(&events(9000, 3000), EVENTS_OF_USERS, &owner());
    assert!(lines[0].contains("users #1: all rows"), "{lines:?}");
    assert!(lines[1].contains("hash table"), "{lines:?}");
    assert_eq!(looked_at(&lines), 3000 + 100_000 + 9000, "{lines:?}");
    // For few, the index is better than a hash table of all rows.
    let lines = plan(&events(9000, 1), EVENTS_OF_USERS, &owner());
    assert_eq!(looked_at(&lines), 1 + 9000, "{lines:?}");
}

fn vip() -> Database {
    let mut database = Database::default();
    add(
        &mut database,
        "users",
        ["id"],
        &[unique(0)],
        (0..20_000).map(|n| [n]),
    );
    let index = [btree(&[1])];
    add(
        &mut database,
        "vip",
        ["id", "user_id"],
        &index,
        (0..400).map(|n| [n, n / 2]),
    );
    add(
        &mut database,
        "log",
        ["id", "level"],
        &[],
        (0..20_000).map(|n| [n, n % 9]),
    );
    database
}

#[test]
fn what_reads_nothing_of_the_query_is_settled_once() {
    let database = vip();
    let of_vip =
        "SELECT u.* FROM users u WHERE EXISTS (SELECT 1 FROM vip v WHERE v.user_id = u.id)";
    let none = "EXISTS (SELECT 1 FROM log m WHERE m.level = 9)";
    let lines = plan(&database, &format!("{of_vip} AND NOT {none}"), &owner());
    assert!(lines[0].starts_with("    not exists: log #2"), "{lines:?}");
    assert!(
        lines[1].starts_with("    leading exists: vip #1"),
        "{lines:?}"
    );
    assert!(lines[1].ends_with(", 200 distinct"), "{lines:?}");
    assert!(lines[2].starts_with("  users #0: index"), "{lines:?}");
    assert_eq!(looked_at(&lines), 20_000 + 400 + 200, "{lines:?}");
    let lines = plan(&database, &format!("{of_vip} AND {none}"), &owner());
    assert_eq!(looked_at(&lines), 20_000, "{lines:?}");
}

/// Each user has ten events; only the newest are late.
#[test]
fn a_limit_is_not_led_by_a_scan() {
    let mut database = Database::default();
    add(
        &mut database,
        "users",
        ["id"],
        &[unique(0)],
        (0..2000).map(|n| [n]),
    );
    let event = |n: u32| [n % 2000, n, n, n];
    let columns = ["user_id", "ts", "size", "place"];
    add(
        &mut database,
        "events",
        columns,
        &[btree(&[0])],
        (0..20_000).map(event),
    );
    let late = "e.user_id = u.id AND e.ts >= 19000 AND e.size > 1 AND e.place > 1";
    let text =
        format!("SELECT u.id FROM users u WHERE EXISTS (SELECT 1 FROM events e WHERE {late})");
    let lines = plan(&database, &text, &owner());
    assert!(
        lines[0].contains("leading exists: events #1: all rows"),
        "{lines:?}"
    );
    let lines = plan(&database, &format!("{text} LIMIT 1"), &owner());
    assert!(lines[0].contains("users #0"), "{lines:?}");
    assert!(looked_at(&lines) < 2000 + 11_000, "{lines:?}");
    // All are wanted in the end.
    for all in [" LIMIT 5000", " ORDER BY u.id LIMIT 1"] {
        let lines = plan(&database, &format!("{text}{all}"), &owner());
        assert!(lines[0].contains("leading exists"), "{all}: {lines:?}");
    }
}

/// Under row-level security, plans are the same however many rows of a key are hidden.
#[test]
fn plans_do_not_tell_how_many_rows_are_hidden() {
    let mut database = Database::default();
    // Room 5 has 500 messages, others ten.
    let message = |n: u32| {
        [
            n,
            if (4000..4500).contains(&n) {
                5
            } else {
                1000 + n / 10
            },
            n % 3,
        ]
    };
    let columns = ["id", "room", "open"];
    add(
        &mut database,
        "message",
        columns,
        &[unique(0), btree(&[1])],
        (0..10_000).map(message),
    );
    let rows = (0..).flat_map(|k| std::iter::repeat_n(k, 100 * k as usize));
    let rows = rows.enumerate().map(|(at, k)| [at as u32, k, at as u32]);
    add(
        &mut database,
        "p",
        ["id", "n", "x"],
        &[btree(&[1]), btree(&[2])],
        rows.take(4500),
    );
    let rule = "SELECT m.* FROM message m WHERE m.open = 1".to_owned();
    database.rules.insert(TableId(4096), vec![rule]);
    let lines = |room: u32, k: u32, caller: &Caller| {
        let text = format!(
            "SELECT m.id FROM message m JOIN p ON p.x = m.id WHERE m.room = {room} AND p.n = {k}"
        );
        let mut lines = plan(&database, &text, caller);
        lines.retain(|line| !line.starts_with("rule"));
        let relation = |line: &String| line.trim().split('#').next().map(str::to_owned);
        lines.iter().filter_map(relation).collect::<Vec<_>>()
    };
    let mut is_told = false;
    for k in 1..9 {
        assert_eq!(lines(5, k, &guest()), lines(1001, k, &guest()), "p.n = {k}");
        is_told |= lines(5, k, &owner()) != lines(1001, k, &owner());
    }
    assert!(is_told, "the owner's plans depend on it");
}

#[test]
fn row_limits_count_what_is_planned() {
    let mut database = Database::default();
    add(
        &mut database,
        "users",
        ["id"],
        &[unique(0)],
        (0..2000).map(|n| [n]),
    );
    let event = |n: u32| [n, n % 2000, u32::from(n < 800)];
    let columns = ["id", "user_id", "kind"];
    let indexes = [btree(&[1]), btree(&[2])];
    add(
        &mut database,
        "events",
        columns,
        &indexes,
        (0..20_000).map(event),
    );
    let text = "SELECT u.id FROM users u WHERE EXISTS \
         (SELECT 1 FROM events e WHERE e.user_id = u.id AND e.kind = 1)";
    let lines = plan(&database, text, &owner());
    assert!(lines[0].contains("users #0"), "{lines:?}");
    let query = database.query(text, &guest());
    let rows = query.estimated_rows(&guest().identity, &database);
    assert!(rows >= 2000, "{rows}");
}
