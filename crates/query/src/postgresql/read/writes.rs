//! Statements that change rows are read as PostgreSQL reads them, and no text takes long or much stack.

use std::time::{Duration, Instant};

use proptest::prelude::*;

use super::super::tests::read_write;

#[test]
fn forms_that_programs_use() {
    for (text, columns) in [
        ("INSERT INTO t VALUES (1, 'a') RETURNING *", Some(2)),
        ("INSERT INTO \"public\".\"t\" (\"name\", \"id\") VALUES ($1, $2), ('b', 1 + 1) RETURNING \"public\".\"t\".\"id\"", Some(1)),
        ("INSERT INTO t AS x (id, name) SELECT id + 1, upper(name) FROM t WHERE id < 5 RETURNING x.id, x.name || '!' AS shout", Some(2)),
        ("INSERT INTO t (id, name) VALUES (DEFAULT, 'a')", None),
        ("INSERT INTO t DEFAULT VALUES", None),
        ("INSERT INTO t VALUES (1, 'a') ON CONFLICT DO NOTHING", None),
        ("INSERT INTO t VALUES (1, 'a') ON CONFLICT (id) DO UPDATE SET name = EXCLUDED.name, id = t.id WHERE t.name <> excluded.name RETURNING id", Some(1)),
        ("UPDATE t SET name = name || '!', id = id + 1 WHERE id IN (SELECT max(id) FROM t) RETURNING t.*", Some(2)),
        ("UPDATE t AS x SET (id, name) = (1, 'a') WHERE x.id = $1", None),
        ("UPDATE t SET name = y.name FROM t AS y WHERE y.id = t.id + 1 RETURNING y.id, t.id", Some(2)),
        ("DELETE FROM t WHERE 1 = 1", None),
        ("DELETE FROM ONLY t WHERE name LIKE 'a%' RETURNING id", Some(1)),
        ("DELETE FROM t USING t AS y WHERE t.id = y.id RETURNING *", Some(4)),
    ] {
        for is_described in [false, true] {
            if !is_described && text.contains('$') {
                continue;
            }
            match read_write(text, is_described) {
                Ok(write) => {
                    assert_eq!(write.columns().map(|of| of.len()), columns, "{text}");
                }
                Err(failure) => panic!("{text}: {failure:?}"),
            }
        }
    }
}

#[test]
fn what_is_refused_is_refused_as_postgresql_does() {
    for (text, state) in [
        ("INSERT INTO unseen VALUES (1)", "42P01"),
        ("INSERT INTO t (id, nothing) VALUES (1, 2)", "42703"),
        ("INSERT INTO t (id, id) VALUES (1, 2)", "42701"),
        ("INSERT INTO t VALUES (1, 2, 3)", "42601"),
        ("INSERT INTO t (id, name) VALUES (1)", "42601"),
        ("INSERT INTO t VALUES (1, 'a'), (2)", "42601"),
        ("INSERT INTO t VALUES (TRUE, 'a')", "42804"),
        (
            "INSERT INTO t VALUES (1, 'a') ON CONFLICT (name) DO NOTHING",
            "42P10",
        ),
        (
            "INSERT INTO t VALUES (1, 'a') ON CONFLICT DO UPDATE SET id = 1",
            "42601",
        ),
        (
            "INSERT INTO t VALUES (1, 'a') ON CONFLICT ON CONSTRAINT x DO NOTHING",
            "42704",
        ),
        ("UPDATE t SET id = 1, id = 2", "42601"),
        ("UPDATE t SET nothing = 1", "42703"),
        ("UPDATE t SET id = 1 WHERE nothing = 1", "42703"),
        ("DELETE FROM t RETURNING nothing", "42703"),
        ("DELETE FROM t ORDER BY id LIMIT 1", "0A000"),
        ("INSERT INTO t VALUES (1, 'a') RETURNING count(*)", "0A000"),
        ("SELECT 1", "0A000"),
        ("INSERT INTO t VALUES (1, 'a'); DELETE FROM t", "0A000"),
    ] {
        match read_write(text, false) {
            Ok(_) => panic!("{text} is read"),
            Err(failure) => assert_eq!(failure.state, state, "{text}: {failure:?}"),
        }
    }
}

#[test]
fn parameters_have_the_types_of_columns() {
    use lightcone_types::AlgebraicType as T;
    let types = |text: &str, count| {
        let write = read_write(text, true).expect("a statement");
        write.question.parameters(count)
    };
    assert_eq!(
        types("INSERT INTO t VALUES ($1, $2), ($3, lower($4))", 4),
        [T::U32, T::String, T::U32, T::String]
    );
    assert_eq!(
        types("INSERT INTO t (name, id) SELECT $1, $2", 2),
        [T::String, T::U32]
    );
    assert_eq!(
        types("UPDATE t SET id = id + $1, name = $2 WHERE id = $3", 3),
        [T::U32, T::String, T::U32]
    );
}

proptest! {
    #[test]
    fn any_words_are_a_statement_or_not(first in "insert into t|update t set|delete from t|insert", words in prop::collection::vec("select|from|where|values|default|returning|on conflict|do nothing|do update set|excluded\\.name|set|id|name|t|as|case|when|then|end|in|not|and|or|is|null|,|\\(|\\)|\\[|\\]|\\.|=|<|~|::|1|-|'x'|\\*|order by|limit|using|with|union", 0..20), count in prop_oneof![3 => Just(1_usize), 1 => 2..100_usize]) {
        let words = format!("{} ", words.join(" ")).repeat(count);
        let started = Instant::now();
        let _ = read_write(&format!("{first} {words}"), false);
        prop_assert!(started.elapsed() < Duration::from_secs(2), "{words}");
    }
}
