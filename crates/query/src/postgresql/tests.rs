//! A session that sees only tables with an id and a name, for tests.

use lightcone_types::{AlgebraicType, ProductType};

use super::bind::Question;
use super::column_type::Type;
use super::failure::{state, Failure};
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
