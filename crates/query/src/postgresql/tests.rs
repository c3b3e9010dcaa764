//! A session that sees only tables with an id and a name, for tests.

use lightcone_types::{AlgebraicType, ProductType};

use super::bind::{Question, TableRead};
use super::cells::Cell;
use super::column_type::Type;
use super::failure::{state, Failure};
use super::formats::Format;
use super::question::Unread;
use super::read::is_large;
use super::session::{Session, VirtualTable};
use super::tokens::tokens;
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

    fn function(&self, _: &str) -> Option<(usize, Type)> {
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
    let unclosed = || Failure::unsupported("a quote or comment does not end");
    let tokens = tokens(text).ok_or_else(unclosed)?;
    let is_large = is_large(&tokens);
    let read = || Question::read(text, tokens, &Tables, is_described);
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
