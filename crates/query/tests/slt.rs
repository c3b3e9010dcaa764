//! The ad hoc language by files of cases (`slt/*.slt`), in the format of sqllogictest.
//!
//! Beside its `statement error`, `query` and `skipif sqlite` there are records for what it says in SQL and we do not:
//! `table NAME` with a column a line (`name type [unique | index]`), `----` and a row a line; `rule TEXT` for row-level
//! security; `caller guest | owner`. What has no `skipif` is asked of SQLite too. `UPDATE_GOLDEN=1` writes what comes out.

use std::path::Path;

use crate::columns::column_type;
use crate::common::database::Database;
use crate::common::values::{decode, shown};
use crate::common::{encode_row, guest, owner, table};
use lightcone_query::{check_rule, compile_statement, Caller, Statement};
use lightcone_schema::{IndexAlgorithm, IndexSchema};
use lightcone_types::{AlgebraicType as T, AlgebraicValue as V, ColId, IndexId, TableId};
use rusqlite::types::Value;

/// A record: its lines, and what was expected below `----`.
struct Record {
    head: Vec<String>,
    expected: Option<Vec<String>>,
}

fn records(text: &str) -> Vec<Record> {
    let blocks = text.split("\n\n").map(|block| block.trim_matches('\n'));
    let record = |block: &str| {
        let mut lines = block.lines().map(str::to_owned);
        let head = lines.by_ref().take_while(|line| line != "----").collect();
        let has_expected = block.lines().any(|line| line == "----");
        Record {
            head,
            expected: has_expected.then(|| lines.collect()),
        }
    };
    blocks
        .filter(|block| !block.is_empty())
        .map(record)
        .collect()
}

impl Record {
    fn text(&self) -> String {
        let mut text = self.head.join("\n");
        if let Some(expected) = &self.expected {
            text += "\n----";
            for line in expected {
                text += "\n";
                text += line;
            }
        }
        text
    }

    /// Its lines without comments.
    fn lines(&self) -> Vec<&str> {
        let lines = self.head.iter().map(String::as_str);
        lines.filter(|line| !line.starts_with('#')).collect()
    }
}

/// What a file has made so far.
struct Session {
    database: Database,
    sqlite: rusqlite::Connection,
    caller: Caller,
}

impl Session {
    fn new() -> Session {
        let sqlite = rusqlite::Connection::open_in_memory().expect("memory");
        let set = "PRAGMA case_sensitive_like = ON";
        sqlite.execute_batch(set).expect("a setting");
        Session {
            database: Database::default(),
            sqlite,
            caller: owner(),
        }
    }

    /// Runs a record, and gives what came out, if something is expected.
    fn run(&mut self, record: &Record) -> Option<Vec<String>> {
        let mut lines = record.lines();
        let mut asks_sqlite = true;
        while lines.first() == Some(&"skipif sqlite") {
            asks_sqlite = false;
            lines.remove(0);
        }
        let (first, rest) = lines.split_first()?;
        let (word, argument) = first.split_once(' ').unwrap_or((first, ""));
        match word {
            "table" => {
                let rows = record.expected.as_ref().expect("rows");
                self.table(argument, rest, rows);
                Some(rows.clone())
            }
            "rule" => {
                let checked = check_rule(argument, &self.database, owner().identity);
                let table = checked.unwrap_or_else(|e| panic!("{argument}: {e}"));
                let rules = self.database.rules.entry(table.id).or_default();
                rules.push(argument.to_owned());
                None
            }
            "caller" => {
                self.caller = match argument {
                    "guest" => guest(),
                    _ => owner(),
                };
                None
            }
            "statement" => {
                let text = rest.join("\n");
                let compiled = compile_statement(&text, &self.database, &self.caller);
                let error = compiled.map(drop).expect_err(&text).to_string();
                Some(vec![error])
            }
            "query" => Some(self.query(argument, &rest.join("\n"), asks_sqlite)),
            _ => panic!("no record {first}"),
        }
    }

    fn table(&mut self, name: &str, columns: &[&str], rows: &[String]) {
        let words: Vec<Vec<&str>> = (columns.iter())
            .map(|line| line.split_whitespace().collect())
            .collect();
        let columns: Vec<(&str, T)> = (words.iter())
            .map(|words| (words[0], column_type(words[1])))
            .collect();
        let number = self.database.tables.len() as u32;
        let mut schema = table(4096 + number, name, &columns);
        for (column, words) in words
            .iter()
            .enumerate()
            .filter(|(_, words)| words.len() > 2)
        {
            schema.indexes.push(IndexSchema {
                id: IndexId(column as u32),
                name: format!("{name}_{}", words[0]),
                accessor: None,
                algorithm: IndexAlgorithm::BTree(vec![ColId(column as u16)]),
                unique: words[2] == "unique",
            });
        }
        let listed: Vec<_> = words.iter().map(|words| words[0]).collect();
        let create = format!("CREATE TABLE {name} ({})", listed.join(", "));
        self.sqlite.execute_batch(&create).expect("a table");
        let rows: Vec<Vec<V>> = (rows.iter())
            .map(|row| {
                let values = row.split(' ').zip(&columns);
                values.map(|(text, (_, ty))| value(text, ty)).collect()
            })
            .collect();
        for row in &rows {
            let places = vec!["?"; row.len()].join(", ");
            let insert = format!("INSERT INTO {name} VALUES ({places})");
            let values = rusqlite::params_from_iter(row.iter().map(of_sqlite));
            self.sqlite.execute(&insert, values).expect("a row");
        }
        let encoded = rows.iter().map(|row| encode_row(row));
        self.database.add(schema, encoded.collect::<Vec<_>>());
        let count = self.database.tables[&TableId(4096 + number)]
            .rows()
            .row_count();
        assert_eq!(count, rows.len() as u64, "rows of {name} differ");
    }

    fn query(&self, options: &str, text: &str, asks_sqlite: bool) -> Vec<String> {
        let compiled = compile_statement(text, &self.database, &self.caller);
        let query = match compiled.unwrap_or_else(|e| panic!("{text}: {e}")) {
            Statement::Select(query) => query,
            Statement::Write(_) | Statement::Past(..) => panic!("{text}: no query"),
        };
        let types: Vec<T> = (query.output_type().elements.into_iter())
            .map(|element| element.algebraic_type)
            .collect();
        // Work is done in small pieces: that must not matter.
        let rows = self.database.rows(query, self.caller.identity, 1 << 20, 7);
        let rows = rows.unwrap_or_else(|e| panic!("{text}: {e}"));
        let shown = |row: &Vec<u8>| {
            let values = decode(row, &types).into_iter();
            let values: Vec<_> = values.map(|value| shown(value, shown_text)).collect();
            values.join(" ")
        };
        let is_sorted = options.contains("rowsort");
        let sorted = |mut rows: Vec<String>| {
            if is_sorted {
                rows.sort_unstable();
            }
            rows
        };
        let rows = sorted(rows.iter().map(shown).collect());
        if asks_sqlite {
            assert_eq!(rows, sorted(self.theirs(text)), "SQLite: {text}");
        }
        rows
    }

    fn theirs(&self, text: &str) -> Vec<String> {
        let prepared = self.sqlite.prepare(text);
        let mut statement = prepared.unwrap_or_else(|e| panic!("SQLite: {text}: {e}"));
        let count = statement.column_count();
        let row = |row: &rusqlite::Row<'_>| {
            let value = |column| {
                Ok(match row.get::<_, Value>(column)? {
                    Value::Null => "NULL".to_owned(),
                    Value::Integer(n) => n.to_string(),
                    Value::Real(f) => format!("{f:?}"),
                    Value::Text(text) => shown_text(&text),
                    Value::Blob(_) => panic!("no bytes"),
                })
            };
            let values: Result<Vec<String>, rusqlite::Error> = (0..count).map(value).collect();
            Ok(values?.join(" "))
        };
        let rows = statement.query_map([], row).expect("rows");
        rows.map(|row| row.expect("a row")).collect()
    }
}

fn value(text: &str, ty: &T) -> V {
    if let Some(some) = ty.as_option() {
        return match text {
            "NULL" => V::none(),
            text => V::some(value(text, some)),
        };
    }
    match *ty {
        T::U32 => V::U32(text.parse().expect("a number")),
        T::U64 => V::U64(text.parse().expect("a number")),
        T::I64 => V::I64(text.parse().expect("a number")),
        T::F64 => V::F64(text.parse().expect("a number")),
        T::Bool => V::Bool(text == "1"),
        T::String if text == "(empty)" => V::String("".into()),
        T::String => V::String(text.into()),
        _ if *ty == T::identity() => {
            let caller = if text == "guest" { guest() } else { owner() };
            V::Product(vec![V::U256(caller.identity.to_u256())])
        }
        _ => panic!("no values of {}", ty.type_name()),
    }
}

fn of_sqlite(value: &V) -> Value {
    match value {
        V::U32(n) => Value::Integer(i64::from(*n)),
        V::U64(n) => Value::Integer(*n as i64),
        V::I64(n) => Value::Integer(*n),
        V::F64(f) => Value::Real(*f),
        V::Bool(b) => Value::Integer(i64::from(*b)),
        V::String(text) => Value::Text(text.to_string()),
        V::Sum { tag: 0, value } => of_sqlite(value),
        _ => Value::Null,
    }
}

fn shown_text(text: &str) -> String {
    match text {
        "" => "(empty)".to_owned(),
        text => text.to_owned(),
    }
}

fn check(name: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/slt")
        .join(name);
    let text = std::fs::read_to_string(&path).expect("a file");
    let mut session = Session::new();
    let mut records = records(&text);
    let updates = std::env::var_os("UPDATE_GOLDEN").is_some();
    for record in &mut records {
        let Some(found) = session.run(record) else {
            continue;
        };
        match updates {
            true => record.expected = Some(found),
            false => assert_eq!(Some(&found), record.expected.as_ref(), "{}", record.text()),
        }
    }
    if updates {
        let texts: Vec<_> = records.iter().map(Record::text).collect();
        std::fs::write(&path, texts.join("\n\n") + "\n").expect("it can be written");
    }
}

macro_rules! files {
    ($($name:ident),*) => {$(
        #[test]
        fn $name() {
            check(concat!(stringify!($name), ".slt"));
        }
    )*

        /// No file is left out.
        #[test]
        fn all_files_are_checked() {
            let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/slt");
            for file in std::fs::read_dir(directory).expect("files") {
                let name = file.expect("a file").file_name();
                let name = name.to_str().and_then(|name| name.strip_suffix(".slt"));
                assert!([$(stringify!($name)),*].contains(&name.expect("a name")), "{name:?}");
            }
        }
    };
}

files!(conditions, joins, groups, order, subqueries, rules, explain, errors);
