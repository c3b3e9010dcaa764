//! Two tables beside the same two in SQLite.

use lightcone_query::Caller;
use lightcone_types::{AlgebraicType as T, AlgebraicValue as V, Identity};
use rusqlite::types::Value;

use crate::common::database::Database;
use crate::common::values::{decode, shown};
use crate::common::{btree, encode_row, table};

pub const TABLES: [&str; 2] = ["r", "s"];
pub const COLUMNS: [&str; 5] = ["a", "b", "s", "f", "o"];
pub const TEXTS: [&str; 6] = ["", "a", "ab", "Ab", "b%", "é_"];

/// A row of either table.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    pub a: u32,
    pub b: i64,
    /// Position among the texts.
    pub s: usize,
    /// In halves.
    pub f: i8,
    pub o: Option<u32>,
}

fn columns() -> [(&'static str, T); 5] {
    [
        ("a", T::U32),
        ("b", T::I64),
        ("s", T::String),
        ("f", T::F64),
        ("o", T::option(T::U32)),
    ]
}

/// The same rows in tables of ours and of SQLite.
pub struct Both {
    pub ours: Database,
    sqlite: rusqlite::Connection,
}

impl Both {
    pub fn new(rows: &[Vec<Row>], indexes: &[Vec<Vec<u16>>]) -> Both {
        let sqlite = rusqlite::Connection::open_in_memory().expect("memory");
        let set = "PRAGMA case_sensitive_like = ON";
        sqlite.execute_batch(set).expect("a setting");
        let mut ours = Database::default();
        for (number, name) in TABLES.iter().enumerate() {
            let create =
                format!("CREATE TABLE {name} (a INTEGER, b INTEGER, s TEXT, f REAL, o INTEGER)");
            sqlite.execute_batch(&create).expect("a table");
            let mut schema = table(4096 + number as u32, name, &columns());
            schema.indexes = indexes[number].iter().map(|c| btree(c)).collect();
            let mut encoded = Vec::new();
            let mut seen: Vec<&Row> = Vec::new();
            for row in &rows[number] {
                if seen.contains(&row) {
                    continue;
                }
                seen.push(row);
                let f = f64::from(row.f) / 2.0;
                encoded.push(encode_row(&[
                    V::U32(row.a),
                    V::I64(row.b),
                    V::String(TEXTS[row.s].into()),
                    V::F64(f),
                    row.o.map_or(V::none(), |o| V::some(V::U32(o))),
                ]));
                let values = (row.a, row.b, TEXTS[row.s], f, row.o);
                let insert = format!("INSERT INTO {name} VALUES (?, ?, ?, ?, ?)");
                sqlite.execute(&insert, values).expect("a row");
            }
            ours.add(schema, encoded);
        }
        Both { ours, sqlite }
    }

    /// What a guest gets, found in pieces of so many steps.
    pub fn ours(&self, text: &str, piece: usize) -> Vec<Vec<String>> {
        let caller = Caller {
            identity: Identity::ZERO,
            is_owner: false,
        };
        let query = self.ours.query(text, &caller);
        let types: Vec<T> = (query.output_type().elements.into_iter())
            .map(|element| element.algebraic_type)
            .collect();
        let rows = self.ours.rows(query, caller.identity, 1 << 20, piece);
        let decoded = |row: Vec<u8>| {
            let values = decode(&row, &types).into_iter();
            values
                .map(|value| shown(value, |text| format!("'{text}'")))
                .collect()
        };
        rows.expect("it is small")
            .into_iter()
            .map(decoded)
            .collect()
    }

    pub fn theirs(&self, text: &str) -> Vec<Vec<String>> {
        let mut statement = self
            .sqlite
            .prepare(text)
            .unwrap_or_else(|e| panic!("{text}: {e}"));
        let count = statement.column_count();
        let rows = statement.query_map([], |row| {
            (0..count)
                .map(|column| {
                    Ok(match row.get::<_, Value>(column)? {
                        Value::Null => "NULL".to_owned(),
                        Value::Integer(n) => n.to_string(),
                        Value::Real(f) => format!("{f:?}"),
                        Value::Text(text) => format!("'{text}'"),
                        Value::Blob(_) => panic!("no bytes"),
                    })
                })
                .collect()
        });
        let rows: Result<Vec<_>, _> = rows.expect("rows").collect();
        rows.expect("rows")
    }
}
