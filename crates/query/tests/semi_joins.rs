//! Queries that begin with a subquery, against SQLite, and what they keep and look at.

use std::cell::Cell;

use crate::both::{Both, Row, COLUMNS, TABLES, TEXTS};
use crate::common;
use crate::common::database::Database;
use crate::common::{btree, encode_row, guest, owner, table};
use lightcone_types::{AlgebraicType as T, AlgebraicValue as V, TableId};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

/// Enough rows for indexes to pay, and few enough values for several rows of each.
fn rows() -> impl Strategy<Value = Vec<Row>> {
    let option = prop::option::of(0..2u32);
    let row = (0..40u32, -9..9i64, 0..TEXTS.len(), -20..20i8, option);
    let row = row.prop_map(|(a, b, s, f, o)| Row { a, b, s, f, o });
    prop::collection::vec(row, 0..120)
}

/// Most columns have an index, so that rows can be found from either side.
fn indexes() -> impl Strategy<Value = Vec<Vec<u16>>> {
    let one = prop::sample::subsequence(vec![0u16, 1, 2, 3], 2..5);
    let two = prop::option::of(prop::sample::subsequence(vec![0u16, 1, 2, 3], 2..3).prop_shuffle());
    (one, two).prop_map(|(one, two)| one.into_iter().map(|at| vec![at]).chain(two).collect())
}

fn literal(column: usize, number: i64) -> String {
    match column {
        0 => (number.unsigned_abs() % 40).to_string(),
        1 => (number % 9).to_string(),
        2 => format!("'{}'", TEXTS[number.unsigned_abs() as usize % TEXTS.len()]),
        _ => format!("{:?}", (number % 20) as f64 / 2.0),
    }
}

/// `name.column operator constant`.
fn own(name: &'static str) -> impl Strategy<Value = String> {
    let operator = prop::sample::select(vec!["=", "=", "=", "<", ">=", "<>"]);
    (0..4usize, operator, -40..40i64)
        .prop_map(move |(at, op, n)| format!("{name}.{} {op} {}", COLUMNS[at], literal(at, n)))
}

/// `left.column operator right.column`, mostly for equal ones.
fn link(left: &'static str, right: &'static str) -> impl Strategy<Value = String> {
    let operator = prop_oneof![12 => Just("="), 1 => Just("<"), 1 => Just("<>")];
    (0..4usize, operator)
        .prop_map(move |(at, op)| format!("{left}.{0} {op} {right}.{0}", COLUMNS[at]))
}

/// A subquery that is mostly about few rows of its own: with a join, others inside, conditions on what is around it.
fn subquery(around: &'static str) -> impl Strategy<Value = String> {
    let table = || prop::sample::select(TABLES.to_vec());
    let join = (
        any::<bool>(),
        table(),
        0..4usize,
        prop::option::of(own("z")),
    );
    let inner = (
        any::<bool>(),
        table(),
        link("w", "y"),
        own("w"),
        prop::bool::weighted(0.2),
    );
    let parts = (
        prop::option::weighted(0.3, join),
        prop::option::weighted(0.2, inner),
        prop::option::weighted(0.3, link(around, "y")),
        prop::option::weighted(0.15, own(around)),
        prop::option::weighted(0.3, own("y")),
    );
    let not = prop_oneof![5 => Just(""), 1 => Just("NOT ")];
    let linked = (link("y", around), own("y"), 0..4usize);
    (not, any::<bool>(), table(), linked, parts).prop_map(
        move |(not, is_in, table, (link, own, listed), (join, inner, second, of_around, third))| {
            let mut text = format!("FROM {table} y");
            let mut conditions = vec![own];
            if let Some((is_left, other, on, of_join)) = join {
                let join = if is_left { "LEFT JOIN" } else { "JOIN" };
                text += &format!(" {join} {other} z ON y.{0} = z.{0}", COLUMNS[on]);
                conditions.extend(of_join);
            }
            if let Some((is_not, other, link, own, is_far)) = inner {
                let not = if is_not { "NOT " } else { "" };
                let far = if is_far {
                    format!(" AND w.a >= {around}.a")
                } else {
                    String::new()
                };
                conditions.push(format!(
                    "{not}EXISTS (SELECT 1 FROM {other} w WHERE {link} AND {own}{far})"
                ));
            }
            conditions.extend(second.into_iter().chain(of_around).chain(third));
            if is_in {
                let (text, conditions) = (text, conditions.join(" AND "));
                let listed = COLUMNS[listed];
                return format!(
                    "{around}.{listed} {not}IN (SELECT y.{listed} {text} WHERE {conditions})"
                );
            }
            conditions.push(link);
            format!(
                "{not}EXISTS (SELECT 1 {text} WHERE {})",
                conditions.join(" AND ")
            )
        },
    )
}

/// A subquery that reads nothing of what is around it.
fn alone() -> impl Strategy<Value = String> {
    let table = prop::sample::select(TABLES.to_vec());
    let not = prop::sample::select(vec!["", "NOT "]);
    let or = prop::option::weighted(0.2, own("x"));
    (not, table, own("u"), or).prop_map(|(not, table, own, or)| {
        let exists = format!("{not}EXISTS (SELECT 1 FROM {table} u WHERE {own})");
        match or {
            Some(or) => format!("({or} OR {exists})"),
            None => exists,
        }
    })
}

#[derive(Clone, Debug)]
struct Case {
    rows: Vec<Vec<Row>>,
    indexes: Vec<Vec<Vec<u16>>>,
    output: &'static str,
    from: String,
    subquery: String,
    conditions: Vec<String>,
    /// The subquery is a row-level security rule of the first table.
    is_rule: bool,
    piece: usize,
}

fn case() -> impl Strategy<Value = Case> {
    let joined = prop::sample::select(vec!["", "", "JOIN", "JOIN", "LEFT JOIN"]);
    let from = (joined, prop::sample::select(TABLES.to_vec()), 0..4usize);
    let from = from.prop_map(|(join, table, on)| match join {
        "" => "FROM r x".to_owned(),
        _ => format!("FROM r x {join} {table} v ON x.{0} = v.{0}", COLUMNS[on]),
    });
    let second = prop::option::weighted(0.3, subquery("x"));
    let alone = prop::option::weighted(0.3, alone());
    let conditions = (prop::option::weighted(0.3, own("x")), second, alone);
    let output = vec!["x.a, x.b, x.s, x.f", "COUNT(*) AS n", "DISTINCT x.s"];
    let found = (
        prop::collection::vec(rows(), 2),
        prop::collection::vec(indexes(), 2),
    );
    (
        found,
        prop::sample::select(output),
        from,
        subquery("x"),
        conditions,
        prop::bool::weighted(0.2),
        prop::sample::select(vec![1usize, 50, 1 << 20]),
    )
        .prop_map(
            |((rows, indexes), output, from, subquery, (own, second, alone), is_rule, piece)| {
                // The rule is about `r`, wherever it stands, and rules have no outer joins.
                let is_rule = is_rule
                    && from == "FROM r x"
                    && !subquery.contains(" r ")
                    && !subquery.contains("LEFT JOIN");
                Case {
                    rows,
                    indexes,
                    output,
                    from,
                    conditions: (own.into_iter().chain(second).chain(alone))
                        .filter(|_| !is_rule)
                        .collect(),
                    subquery,
                    is_rule,
                    piece,
                }
            },
        )
}

fn sorted(mut rows: Vec<Vec<String>>) -> Vec<Vec<String>> {
    rows.sort_unstable();
    rows
}

#[test]
fn answers_are_those_of_sqlite_from_either_side() {
    let (count, led, led_rules) = (Cell::new(0), Cell::new(0), Cell::new(0));
    let config = Config {
        failure_persistence: None,
        ..Config::with_cases(common::cases(1500))
    };
    let result = TestRunner::new(config).run(&case(), |case| {
        let mut both = Both::new(&case.rows, &case.indexes);
        let select = format!("SELECT {} {}", case.output, case.from);
        let mut all = vec![case.subquery.clone()];
        all.extend(case.conditions.iter().cloned());
        let theirs = format!("{select} WHERE {}", all.join(" AND "));
        // Under rules EXPLAIN tells no order: the same condition in the query itself does.
        let plan = both.ours(&format!("EXPLAIN {theirs}"), 1 << 20);
        let ours = match case.is_rule {
            true => {
                let rule = format!("SELECT x.* FROM r x WHERE {}", case.subquery);
                both.ours.rules.insert(TableId(4096), vec![rule]);
                select
            }
            false => theirs.clone(),
        };
        let found = sorted(both.ours(&ours, case.piece));
        prop_assert_eq!(found, sorted(both.theirs(&theirs)), "{}", theirs);
        let leads = plan.iter().any(|line| line[0].contains("leading exists: "));
        count.set(count.get() + 1);
        led.set(led.get() + u32::from(leads));
        led_rules.set(led_rules.get() + u32::from(leads && case.is_rule));
        Ok(())
    });
    result.unwrap_or_else(|error| panic!("{error}"));
    let (count, led, led_rules) = (count.get(), led.get(), led_rules.get());
    println!("{led} of {count} begin with a subquery, {led_rules} by a rule");
    assert!(
        led * 4 > count && led_rules > 0,
        "{led} of {count}, {led_rules} by rules"
    );
}

const MIB: usize = 1 << 20;

/// Messages in rooms, and who is in which room: of the members, number 0 is in as many rooms as is said, each other one in one.
fn rooms(messages: u32, rooms: u32, of_first: u32) -> Database {
    let mut database = Database::default();
    let columns = [("id", T::U32), ("room", T::U32)];
    let mut schema = table(4096, "message", &columns);
    schema.indexes.push(btree(&[1]));
    let message = |n: u32| encode_row(&[V::U32(n), V::U32(n % rooms)]);
    database.add(schema, (0..messages).map(message));
    let columns = [("id", T::U32), ("room", T::U32), ("member", T::U32)];
    let mut schema = table(4097, "member", &columns);
    schema.indexes.extend([btree(&[1]), btree(&[2])]);
    let member = |n: u32| {
        let (room, member) = match n < of_first {
            true => (n, 0),
            false => (n % rooms, n),
        };
        encode_row(&[V::U32(n), V::U32(room), V::U32(member)])
    };
    database.add(schema, (0..2 * of_first.max(rooms)).map(member));
    database
}

const MINE: &str = "FROM message m WHERE EXISTS \
     (SELECT 1 FROM member x WHERE x.room = m.room AND x.member = 0)";

fn run(database: &Database, text: &str, bytes_max: usize) -> Vec<Vec<u8>> {
    let query = database.query(text, &owner());
    let rows = database.rows(query, owner().identity, bytes_max, 1 << 12);
    rows.unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn plan(database: &Database, text: &str, bytes_max: usize) -> Vec<String> {
    let lines = run(database, &format!("EXPLAIN {text}"), bytes_max).into_iter();
    let line = |row: Vec<u8>| String::from_utf8(row[4..].to_vec()).expect("text");
    lines.map(line).collect()
}

#[test]
fn what_is_looked_at_is_what_is_found() {
    let database = rooms(100_000, 1000, 3);
    let lines = plan(&database, &format!("SELECT m.* {MINE}"), MIB);
    assert!(
        lines[0].starts_with("    leading exists: member #1: index"),
        "{lines:?}"
    );
    assert!(lines[0].contains("; looked at 3, found 3"), "{lines:?}");
    assert!(lines[0].ends_with(", 3 distinct"), "{lines:?}");
    assert!(lines[1].contains("; looked at 300, found 300"), "{lines:?}");
    assert_eq!(
        run(&database, &format!("SELECT m.* {MINE}"), MIB).len(),
        300
    );
}

#[test]
fn a_subquery_of_many_rows_does_not_lead() {
    let database = rooms(1000, 100, 100);
    for text in [
        "SELECT m.* FROM message m WHERE EXISTS (SELECT 1 FROM member x WHERE x.room = m.room)",
        "SELECT m.* FROM message m WHERE NOT EXISTS \
         (SELECT 1 FROM member x WHERE x.room = m.room AND x.member = 150)",
        "SELECT m.* FROM message m WHERE m.id = 7 OR EXISTS \
         (SELECT 1 FROM member x WHERE x.room = m.room AND x.member = 150)",
        "SELECT m.* FROM message m WHERE EXISTS \
         (SELECT 1 FROM member x WHERE x.room <= m.room AND x.member = 150)",
    ] {
        let lines = plan(&database, text, MIB);
        assert!(lines[0].starts_with("  message #0: all rows"), "{lines:?}");
    }
}

/// Number 0 is in more rooms than fit into memory, and than a plan counts.
#[test]
fn more_values_than_fit_into_memory_are_found_from_the_outside() {
    let database = rooms(30_000, 10_000, 7_500);
    let select = "SELECT m.id, m.room FROM message m";
    let exists = "EXISTS (SELECT 1 FROM member x WHERE x.room = m.room AND x.member = 0";
    let not = "NOT EXISTS (SELECT 1 FROM member v WHERE v.room = m.id AND v.member = 0)";
    let within = "m.room IN (SELECT x.room FROM member x WHERE x.member = 0)";
    for (text, found) in [
        (format!("{select} WHERE {exists})"), 22_500),
        (format!("{select} WHERE {exists} AND x.id = m.id)"), 7_500),
        (
            format!("{select} JOIN member v ON v.room = m.room WHERE {exists})"),
            45_000,
        ),
        (
            format!("{select} LEFT JOIN member v ON v.room = m.id WHERE {exists})"),
            30_000,
        ),
        (format!("{select} WHERE {exists}) AND {not}"), 15_000),
        (
            format!("{select} WHERE {within} ORDER BY m.id LIMIT 40 OFFSET 7"),
            40,
        ),
    ] {
        let sorted = |bytes_max| {
            let mut rows = run(&database, &text, bytes_max);
            rows.sort_unstable();
            rows
        };
        let all = sorted(64 * MIB);
        assert_eq!(all.len(), found, "{text}");
        let lines = plan(&database, &text, 64 * MIB);
        assert!(lines[0].ends_with(", 7500 distinct"), "{text}: {lines:?}");
        assert!(sorted(MIB / 2) == all, "{text}");
        // What is told is how the rest was found.
        let lines = plan(&database, &text, MIB / 2);
        assert!(!lines[0].contains("leading"), "{text}: {lines:?}");
    }
}

/// 30,000 messages without an index on their ids, notes on them, and member 0, who is in 3,000 rooms, of which some have messages.
fn notes(has_messages: impl Fn(u32) -> bool) -> Database {
    let mut database = Database::default();
    let columns = [("id", T::U32), ("room", T::U32)];
    let mut schema = table(4096, "message", &columns);
    schema.indexes.push(btree(&[1]));
    let message = |n: u32| encode_row(&[V::U32(n), V::U32(n % 10_000)]);
    database.add(schema, (0..30_000).map(message));
    let columns = [("id", T::U32), ("room", T::U32), ("member", T::U32)];
    let mut schema = table(4097, "member", &columns);
    schema.indexes.extend([btree(&[1]), btree(&[2])]);
    let member = |n: u32| {
        let room = if has_messages(n) { n } else { n + 100_000 };
        encode_row(&[V::U32(n), V::U32(room), V::U32(0)])
    };
    database.add(schema, (0..3000).map(member));
    let schema = table(4098, "note", &[("id", T::U32), ("message", T::U32)]);
    let note = |n: u32| encode_row(&[V::U32(n), V::U32(n % 30_000)]);
    database.add(schema, (0..40_000).map(note));
    database
}

/// What is enough memory for a query from the outside is enough for it when a subquery leads.
#[test]
fn leading_takes_no_memory_from_hash_tables() {
    // How many rows a condition leaves for the hash table is not known before.
    let all = "SELECT n.id FROM message m JOIN note n ON n.message = m.id WHERE";
    let some = format!("{all} n.id >= 0 AND");
    let exists = "EXISTS (SELECT 1 FROM member x WHERE x.room = m.room AND x.member = 0)";
    type HasMessages = fn(u32) -> bool;
    let has_messages: [(&str, HasMessages); 4] = [
        (all, |n| n >= 2900),
        (&some, |n| n >= 2900),
        (all, |n| n < 100),
        (&some, |n| n % 30 == 29),
    ];
    for (select, has_messages) in has_messages {
        let database = notes(has_messages);
        let found = |text: &str, bytes_max: usize| {
            let query = database.query(text, &owner());
            database.rows(query, owner().identity, bytes_max, 1 << 20)
        };
        let outside = format!("{select} (m.id = 4294967295 OR {exists})");
        let mut expected = found(&outside, 64 * MIB).expect("enough");
        expected.sort_unstable();
        assert_eq!(expected.len(), 400);
        let (mut less, mut enough) = (0, 4 * MIB);
        while enough - less > 4096 {
            let half = (less + enough) / 2;
            match found(&outside, half) {
                Ok(_) => enough = half,
                Err(_) => less = half,
            }
        }
        let led = format!("{select} {exists}");
        let lines = plan(&database, &led, 64 * MIB);
        assert!(lines[0].contains("leading exists"), "{lines:?}");
        assert!(lines[2].contains("note #1: hash table"), "{lines:?}");
        for more in [1 << 14, 1 << 16, enough / 2] {
            let rows = found(&led, enough + more);
            let mut rows = rows.unwrap_or_else(|error| panic!("{enough} + {more}: {error}"));
            rows.sort_unstable();
            assert!(rows == expected, "{enough} + {more}");
        }
    }
}

/// A hash table is needed when some values have led to their rows already, and there is no memory for it: a row comes once, or the
/// query is refused.
#[test]
fn no_row_is_lost_where_memory_ends() {
    let text = "SELECT m.id FROM message m WHERE \
         EXISTS (SELECT 1 FROM member x WHERE x.room = m.room AND x.member = 0) AND \
         NOT EXISTS (SELECT 1 FROM a z JOIN b w ON w.k = z.k WHERE z.m = m.id AND w.c >= 1)";
    // The first and the second message of a room.
    for late in [10, 4010] {
        let mut database = rooms(8000, 4000, 1100);
        let mut schema = table(4098, "a", &[("m", T::U32), ("k", T::U32)]);
        schema.indexes.push(btree(&[0]));
        database.add(schema, [encode_row(&[V::U32(late), V::U32(9999)])]);
        let schema = table(4099, "b", &[("k", T::U32), ("c", T::U32)]);
        let b = |n: u32| encode_row(&[V::U32(n), V::U32(1)]);
        database.add(schema, (0..4000).map(b));
        let lines = plan(&database, text, MIB);
        assert!(lines[0].contains("leading exists"), "{lines:?}");
        assert!(lines[3].contains("b #3: hash table"), "{lines:?}");
        let mut expected = run(&database, text, MIB);
        expected.sort_unstable();
        assert_eq!(expected.len(), 2200);
        let (mut found, mut refused) = (0, 0);
        for bytes_max in (1 << 17..170_000).step_by(400) {
            let query = database.query(text, &owner());
            match database.rows(query, owner().identity, bytes_max, 1 << 20) {
                Ok(mut rows) => {
                    rows.sort_unstable();
                    assert!(rows == expected, "{bytes_max} bytes");
                    found += 1;
                }
                Err(_) => refused += 1,
            }
        }
        assert!(found > 0 && refused > 0, "{found} found, {refused} refused");
    }
}

#[test]
fn row_limits_count_what_a_leading_subquery_finds() {
    let database = rooms(100_000, 1000, 3);
    let estimate = |text: &str| {
        let query = database.query(text, &guest());
        query.estimated_rows(&guest().identity, &database)
    };
    let few = estimate(&format!("SELECT m.* {MINE}"));
    assert_eq!(
        few,
        3 + 3 * 64,
        "64 is how far the rows of a room are counted"
    );
    let not = MINE.replace("EXISTS", "NOT EXISTS");
    assert!(estimate(&format!("SELECT m.* {not}")) > 100_000);
    let all =
        "SELECT m.* FROM message m WHERE EXISTS (SELECT 1 FROM member x WHERE x.room = m.room)";
    assert!(estimate(all) > 100_000);
}
