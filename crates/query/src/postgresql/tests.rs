//! A session that sees only tables with an id and a name, for tests.

use std::sync::Arc;

use lightcone_schema::{
    ColumnSchema, IndexAlgorithm, IndexSchema, TableAccess, TableKind, TableSchema,
};
use lightcone_types::{AlgebraicType, ColId, IndexId, ProductType, TableId};

use super::bind::{Question, TableRead, Write};
use super::cells::Cell;
use super::column_type::Type;
use super::failure::{state, Failure};
use super::formats::Format;
use super::question::Unread;
use super::read::is_large;
use super::run::STEPS_MAX;
use super::session::{Session, Target, VirtualTable};
use super::tokens::{tokens, Token};
use super::value::Value;

pub struct Tables;

impl Session for Tables {
    fn table(&self, _: &[String]) -> Option<VirtualTable> {
        None
    }

    fn rows(&self, _: &VirtualTable, _: Option<(usize, &Value)>) -> Vec<Vec<Value>> {
        Vec::new()
    }

    fn columns(&self, query: &str) -> Result<ProductType, Failure> {
        if query.contains("unseen") {
            return Err(Failure::new(state::NO_SUCH_TABLE, "no such table"));
        }
        let columns = [("id", AlgebraicType::U32), ("name", AlgebraicType::String)];
        Ok(ProductType::new(columns))
    }

    fn target(&self, name: &str) -> Result<Target, Failure> {
        if name == "unseen" {
            return Err(Failure::new(state::NO_SUCH_TABLE, "no such table"));
        }
        let column = |name: &str, ty| ColumnSchema {
            name: name.to_owned(),
            accessor: None,
            ty,
        };
        let schema = TableSchema {
            id: TableId(4096),
            name: name.to_owned(),
            accessor: None,
            columns: vec![
                column("id", AlgebraicType::U32),
                column("name", AlgebraicType::String),
            ],
            primary_key: Some(ColId(0)),
            indexes: vec![IndexSchema {
                id: IndexId(1),
                name: "by_id".to_owned(),
                accessor: None,
                algorithm: IndexAlgorithm::BTree(vec![ColId(0)]),
                unique: true,
            }],
            constraints: Vec::new(),
            sequences: Vec::new(),
            schedule: None,
            outbox: None,
            access: TableAccess::Public,
            kind: TableKind::User,
            is_event: false,
            view: None,
        };
        Ok(Target {
            schema: Arc::new(schema),
            defaults: Vec::new(),
        })
    }

    fn function(&self, _: &str, _: usize) -> Option<(usize, Type)> {
        None
    }

    fn call(&self, _: usize, _: &[Value]) -> Value {
        Value::Null
    }

    fn relation(&self, _: i64) -> Option<String> {
        None
    }

    fn oid(&self, _: &str) -> Option<i64> {
        None
    }
}

/// Reads and binds a question to nothing.
pub fn read(text: &str, is_described: bool) -> Result<Question, Failure> {
    read_with(text, |tokens| {
        Question::read(text, tokens, &Tables, is_described)
    })
}

/// Reads and binds a statement that changes rows.
pub fn read_write(text: &str, is_described: bool) -> Result<Write, Failure> {
    read_with(text, |tokens| {
        Write::read(text, tokens, &Tables, is_described)
    })
}

fn read_with<T: Send>(
    text: &str,
    read: impl FnOnce(Vec<Token>) -> Result<T, Unread> + Send,
) -> Result<T, Failure> {
    let unclosed = || Failure::unsupported("a quote or comment does not end");
    let tokens = tokens(text).ok_or_else(unclosed)?;
    let is_large = is_large(&tokens);
    let read = || read(tokens);
    let question = match is_large {
        false => read(),
        // As much stack as the door for PostgreSQL gives.
        true => std::thread::scope(|scope| {
            let thread = std::thread::Builder::new().stack_size(16 << 20);
            let thread = thread.spawn_scoped(scope, read).expect("a thread");
            thread.join().expect("no panic")
        }),
    };
    question.map_err(|(Unread::Text(failure) | Unread::Failed(failure))| failure)
}

#[test]
fn tables_that_are_joined_by_equal_columns_are_read_as_one() {
    let queries = |text: &str| {
        let question = read(text, false).expect("a question");
        let queries = question.tables.iter().map(|table| table.query.clone());
        queries.collect::<Vec<_>>()
    };
    let first = r#"SELECT t0."id" AS c0, t0."name" AS c1"#;
    for text in [
        "SELECT upper(a.name) FROM a JOIN b ON a.id = b.id AND a.id > 7 WHERE b.name = 'x'",
        "SELECT upper(a.name) FROM a, b WHERE a.id > 7 AND b.name = 'x' AND b.id = a.id",
    ] {
        let both = [format!(
            r#"{first}, t1."id" AS c2, t1."name" AS c3 FROM "a" AS t0 JOIN "b" AS t1 ON t0."id" = t1."id" WHERE t0."id" > 7 AND t1."name" = 'x'"#
        )];
        assert_eq!(queries(text), both, "{text}");
    }
    for text in [
        "SELECT upper(a.name) FROM a LEFT JOIN b ON a.id = b.id",
        "SELECT upper(a.name) FROM a JOIN b ON a.id + 1 = b.id",
        "SELECT upper(a.name) FROM a JOIN b ON a.id = b.id FULL JOIN generate_series(1, 2) x ON x = a.id",
    ] {
        assert_eq!(queries(text).len(), 2, "{text}");
    }
    assert!(read("SELECT 1 FROM unseen", false).is_err());
}

/// What is read of a table with numbers from 0, and a few names.
fn pieces(table: &TableRead, rows: u32) -> Vec<Vec<u8>> {
    let row = |number: u32| {
        let name = [1, 0, 0, 0, b'a' + (number % 3) as u8];
        let mut row = vec![0];
        for (place, _) in &table.columns {
            match place {
                0 => row.extend(number.to_le_bytes()),
                _ => row.extend(name),
            }
        }
        row
    };
    let numbers: Vec<u32> = (0..rows).collect();
    let pieces = numbers.chunks(1_000);
    pieces
        .map(|piece| piece.iter().flat_map(|number| row(*number)).collect())
        .collect()
}

fn answer(text: &str, rows: u32, steps_max: usize) -> Result<String, Failure> {
    let question = read(text, false)?;
    let tables = question.tables.iter().map(|table| pieces(table, rows));
    let tables: Vec<_> = tables.collect();
    let pieces = tables
        .iter()
        .map(|pieces| pieces.iter().map(Vec::as_slice).collect());
    let pieces: Vec<Vec<&[u8]>> = pieces.collect();
    let rows = question.answer(&Tables, &pieces, &|| Ok(()), steps_max)?;
    let shown = |row: &Vec<Cell>| {
        let cells = row.iter().zip(question.columns()).map(|(cell, (_, ty))| {
            let mut out = Vec::new();
            cell.write(&ty, Format::Text, &mut out);
            String::from_utf8(out).expect("a text")
        });
        cells.collect::<Vec<_>>().join("|")
    };
    Ok(rows.iter().map(shown).collect::<Vec<_>>().join(" / "))
}

/// A table has far more values than a question may hold.
#[test]
fn what_is_left_of_a_large_table_is_what_counts() {
    for (text, expected) in [
        ("SELECT upper(name), count(*), max(id), sum(id % 2), count(DISTINCT id % 5) FROM t GROUP BY 1 ORDER BY 1", "A|10000|29997|5000|5 / B|10000|29998|5000|5 / C|10000|29999|5000|5"),
        ("SELECT id FROM t WHERE id % 10000 = 7", "7 / 10007 / 20007"),
        ("SELECT count(*), min(upper(t.name)), bool_and(t.id >= 0), avg(x) FROM t JOIN generate_series(1, 3) x ON x = t.id + 0", "3|A|t|2"),
        ("SELECT count(*) FROM t WHERE id + 0 < 5 OR id = (SELECT max(id + 0) FROM t u)", "6"),
    ] {
        assert_eq!(answer(text, 30_000, 50_000).as_deref(), Ok(expected), "{text}");
    }
    for text in [
        "SELECT array_agg(id + 1) FROM t",
        "SELECT count(DISTINCT id + 1) FROM t",
        "SELECT id + 1, count(*) FROM t GROUP BY 1",
        "SELECT id + 1 FROM t",
        "SELECT count(*) FROM t JOIN t u ON t.id % 2 = u.id",
        "SELECT count(*) FROM t JOIN generate_series(1, 200) x ON x + t.id < 0",
    ] {
        let refused = answer(text, 30_000, 50_000).map_err(|failure| failure.state);
        assert_eq!(refused, Err(state::LIMIT_REACHED), "{text}");
    }
}

/// The state of the failure that a question ends with, of tables with two rows.
fn refusal(text: &str) -> Option<&'static str> {
    let failure = answer(text, 2, STEPS_MAX).err();
    failure.map(|failure| failure.state)
}

fn check_answers(questions: &[(&str, &str)]) {
    for (text, expected) in questions {
        let found = answer(text, 2, STEPS_MAX);
        assert_eq!(found.as_deref(), Ok(*expected), "{text}");
    }
}

fn check_refusals(state: &str, questions: &[&str]) {
    for text in questions {
        assert_eq!(refusal(text), Some(state), "{text}");
    }
}

/// Each of these lists has the one before it many times.
#[test]
fn lists_that_share_lists_are_refused_at_once() {
    let written = |copies: usize| format!("ARRAY[{}]", vec!["x"; copies].join(", "));
    let read = "ARRAY(SELECT x FROM generate_series(1, 30) n)".to_owned();
    for (floors, list) in [(14, written(8)), (5, written(30)), (5, read)] {
        let mut text = "WITH a0 AS (SELECT 1 AS x)".to_owned();
        for floor in 1..=floors {
            let before = floor - 1;
            text += &format!(", a{floor} AS (SELECT {list} AS x FROM a{before})");
        }
        text += &format!(" SELECT x FROM a{floors}");
        assert_eq!(refusal(&text), Some(state::LIMIT_REACHED), "{text}");
    }
    check_answers(&[(
        "SELECT cardinality(ARRAY[x, x]), x FROM (SELECT ARRAY[1, 2] AS x) a",
        "2|{1,2}",
    )]);
}

#[test]
fn lists_in_texts_have_a_bound_of_elements() {
    let (short, long) = (",".repeat(110_000), ",".repeat(200_000));
    for (text, state) in [
        (
            format!("SELECT count(*) FROM unnest('{{{long}}}') x"),
            state::INVALID_TEXT,
        ),
        (format!("SELECT '{{{long}}}'::text[]"), state::INVALID_TEXT),
        (
            format!("SELECT string_to_array('{long}', ',')"),
            state::LIMIT_REACHED,
        ),
        (
            format!("SELECT count(*) FROM unnest('{{{short}}}') x"),
            state::LIMIT_REACHED,
        ),
        (
            format!("SELECT count(*) FROM generate_subscripts('{{{short}}}', 1) x"),
            state::LIMIT_REACHED,
        ),
    ] {
        assert_eq!(refusal(&text), Some(state), "{}", &text[..40]);
    }
}

#[test]
fn joins_do_not_keep_what_follows_from_rows_before_it() {
    check_refusals(
        state::FEATURE_NOT_SUPPORTED,
        &[
            "SELECT t.id FROM t RIGHT JOIN LATERAL (SELECT t.id AS n) l ON true",
            "SELECT t.id FROM t FULL JOIN unnest(ARRAY[t.id]) x ON true",
            "SELECT t.id FROM t RIGHT JOIN (t u JOIN LATERAL (SELECT t.id AS n) l ON true) ON true",
            "SELECT t.id FROM t, (t u RIGHT JOIN t v ON true JOIN LATERAL (SELECT t.id AS n) l ON true)",
        ],
    );
    check_answers(&[
        (
            "SELECT t.id, x FROM t FULL JOIN generate_series(1, 3) x ON x = t.id ORDER BY 1, 2",
            "0| / 1|1 / |2 / |3",
        ),
        (
            "SELECT u.id, l.n FROM t, (t u JOIN LATERAL (SELECT t.id + 10 AS n) l ON true) ORDER BY 1, 2",
            "0|10 / 0|11 / 1|10 / 1|11",
        ),
    ]);
}

#[test]
fn casts_round_and_refuse_as_postgresql_does() {
    check_answers(&[
        ("SELECT 1.5::numeric, 1.5::decimal * 2", "1.5|3"),
        ("SELECT 2.5::int, (-2.5)::int8, 3.5::int2", "3|-3|4"),
        (
            "SELECT 2.5::float8::int, '-2.5'::float8::int, 3.5::real::int",
            "2|-2|4",
        ),
        (
            "SELECT round(2.5), round(-2.5), round(2.5::float8)",
            "3|-3|2",
        ),
        ("SELECT (1 + 1.5)::int, (1 + 1.5::float8)::int", "3|2"),
        (
            "SELECT sum(x), sum(x * 10) FROM (VALUES (0.1), (0.2), (0.3)) v(x)",
            "0.6|6",
        ),
        ("SELECT '2025-01-01'::timestamp(3)", "2025-01-01"),
    ]);
    check_refusals(
        state::OUT_OF_RANGE,
        &[
            "SELECT 1e30::int8",
            "SELECT 'NaN'::float8::int4",
            "SELECT 70000::int2",
        ],
    );
    check_refusals(
        state::FEATURE_NOT_SUPPORTED,
        &["SELECT 1.25::numeric(10, 1)", "SELECT 'abc'::varchar(2)"],
    );
}

#[test]
fn a_question_that_names_itself_is_refused() {
    let text = "WITH RECURSIVE x AS (SELECT 1 AS n) SELECT n FROM x";
    check_refusals(state::FEATURE_NOT_SUPPORTED, &[text]);
}

#[test]
fn what_aggregates_keep_is_counted() {
    let longest = format!(
        "SELECT max(concat(id, '{}')) FROM t WHERE id % 20 = 0 GROUP BY id",
        "x".repeat(600)
    );
    let refused = answer(&longest, 30_000, 50_000).map_err(|failure| failure.state);
    assert_eq!(refused, Err(state::LIMIT_REACHED));
}

#[test]
fn nulls_stand_where_a_question_wants_them() {
    let numbers = "FROM unnest('{2,NULL,1}'::int[]) x";
    check_answers(&[
        (
            &*format!("SELECT array_agg(x ORDER BY x NULLS FIRST), array_agg(x ORDER BY x DESC) {numbers}"),
            "{NULL,1,2}|{NULL,2,1}",
        ),
        (
            &*format!("SELECT x, row_number() OVER (ORDER BY x DESC NULLS LAST) {numbers} ORDER BY 2"),
            "2|1 / 1|2 / |3",
        ),
    ]);
}

#[test]
fn what_is_unknown_does_not_hide_what_is_false() {
    check_answers(&[
        (
            "SELECT 5 BETWEEN NULL AND 3, 5 BETWEEN NULL AND 7, 5 BETWEEN 5 AND 5",
            "f||t",
        ),
        (
            "SELECT (NULL, 1) NOT IN ((2, 3)), (NULL, 1) = (2, 1), (NULL, 1) <> (2, 3)",
            "t||t",
        ),
    ]);
}

#[test]
fn nulls_in_arrays_are_equal_and_last_and_in_rows_unknown() {
    check_answers(&[
        (
            "SELECT ARRAY[NULL, 1] = ARRAY[NULL, 1], ARRAY[1, NULL] <> ARRAY[1, NULL], ARRAY[NULL, 1] = ARRAY[2, 1]",
            "t|f|f",
        ),
        (
            "SELECT ARRAY[1, NULL] > ARRAY[1, 2], ARRAY[NULL]::int[] IN (ARRAY[NULL]::int[]), '{NULL}'::int[] = ARRAY[NULL]::int[]",
            "t|t|t",
        ),
        (
            "SELECT (1, NULL) = (1, NULL), (1, NULL) IN (SELECT 1, NULL), (1, 2) IN (SELECT 1, 2)",
            "||t",
        ),
    ]);
}

#[test]
fn what_tells_rows_apart_is_no_part_of_a_union() {
    check_answers(&[(
        "SELECT DISTINCT ON (x % 2) 7 FROM generate_series(1, 3) x UNION SELECT 7",
        "7",
    )]);
}

#[test]
fn functions_of_texts_are_those_of_postgresql() {
    check_answers(&[
        ("SELECT left('abc', -1), left('abc', -7), left('abc', 2), left('abc', NULL)", "ab||ab|"),
        ("SELECT substring('abc', NULL::int), replace('abc', 'b', NULL)", "|"),
        ("SELECT split_part('a,b,c', ',', -1), split_part('a,b,c', ',', 2), split_part('a', ',', 5), split_part('a', ',', NULL)", "c|b||"),
        ("SELECT string_to_array('', ','), string_to_array('ab', NULL), string_to_array('a,b', ',', 'b')", "{}|{a,b}|{a,NULL}"),
        ("SELECT concat_ws(NULL, 'a', 'b'), concat_ws('-', 'a', NULL, 'b'), array_to_string(ARRAY[1, 2], NULL)", "|a-b|"),
        ("SELECT string_agg(x::text, CASE x WHEN 2 THEN '-' ELSE '+' END ORDER BY x) FROM generate_series(1, 3) x", "1-2+3"),
    ]);
    let long = format!(
        "SELECT replace('{}', 'x', '{}')",
        "x".repeat(2_000),
        "y".repeat(1_000)
    );
    assert_eq!(refusal(&long), Some(state::LIMIT_REACHED));
    check_refusals(
        state::INVALID_PARAMETER_VALUE,
        &["SELECT split_part('a', ',', 0)"],
    );
}

#[test]
fn functions_refuse_another_number_of_arguments() {
    check_refusals(
        state::NO_SUCH_FUNCTION,
        &[
            "SELECT left('abc')",
            "SELECT left('abc', 1, 2)",
            "SELECT lower()",
            "SELECT lower('a', 'b')",
            "SELECT round(1.5, 2)",
            "SELECT substring('abc')",
            "SELECT coalesce()",
            "SELECT nullif(1)",
            "SELECT concat_ws(',')",
            "SELECT sum(*) FROM t",
            "SELECT max(id, id) FROM t",
            "SELECT string_agg(name) FROM t",
            "SELECT generate_series(1)",
            "SELECT * FROM generate_series(1)",
            "SELECT * FROM unnest(ARRAY[1], ARRAY[2])",
        ],
    );
    check_refusals(state::FEATURE_NOT_SUPPORTED, &["SELECT * FROM lower('A')"]);
    let failure = read("SELECT left('abc', 1, true)", false).err();
    let message = failure.map(|failure| failure.message);
    let expected = "function left(text, integer, boolean) does not exist here";
    assert_eq!(message.as_deref(), Some(expected));
    check_answers(&[(
        "SELECT count(*), count(id), coalesce(NULL, 1), concat('a'), format('a'), trim('  a ') FROM t WHERE id = 1",
        "1|1|1|a|a|a",
    )]);
}

#[test]
fn an_aggregate_of_a_question_around_it_is_refused() {
    let text = "SELECT (SELECT count(t.id) FROM t u) FROM t";
    check_refusals(state::FEATURE_NOT_SUPPORTED, &[text]);
    check_answers(&[(
        "SELECT (SELECT count(t.id + u.id) FROM t u) FROM t",
        "2 / 2",
    )]);
}

#[test]
fn parts_of_a_union_have_types_that_match() {
    check_answers(&[
        ("SELECT NULL UNION ALL SELECT 1", " / 1"),
        ("SELECT '1' UNION SELECT 1", "1"),
        ("SELECT 1 UNION ALL SELECT 1.5", "1 / 1.5"),
    ]);
    check_refusals(
        state::DATATYPE_MISMATCH,
        &[
            "SELECT 1 UNION SELECT name FROM t",
            "SELECT name FROM t UNION SELECT true",
        ],
    );
    check_refusals(state::INVALID_TEXT, &["SELECT 'x' UNION SELECT 1"]);
}
