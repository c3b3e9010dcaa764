//! Groups that are kept up to date, against SQLite: after every change, the rows that came and did not go are those of the query.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::common;
use crate::common::{encode_row, layout, table, Tables};
use lightcone_query::{compile_aggregate, Caller, LiveGroups, Query};
use lightcone_types::bsatn::decode_value;
use lightcone_types::{AlgebraicType as T, AlgebraicValue as V, Identity, Reader, Typespace};
use proptest::prelude::*;
use rusqlite::types::Value;

const QUERIES: &[&str] = &[
    "SELECT COUNT(*) AS n FROM r",
    "SELECT COUNT(*) AS n, SUM(b) AS b, MIN(f) AS low, MAX(f) AS high, AVG(b) AS mean FROM r WHERE a < 2",
    "SELECT a, COUNT(*) AS n, SUM(f) AS f, AVG(f) AS mean, MAX(b) AS high FROM r GROUP BY a",
    "SELECT s, a, MIN(b) AS low, MAX(s) AS last FROM r WHERE b <> 1 GROUP BY s, a",
    "SELECT a, SUM(b) AS total FROM r GROUP BY a HAVING COUNT(*) > 3 AND total > -20",
    "SELECT DISTINCT COUNT(*) AS n, MIN(a) AS low FROM r GROUP BY s",
];
const TEXTS: [&str; 4] = ["", "a", "ab", "b"];

type Row = (u32, i64, usize, i8);

fn row() -> impl Strategy<Value = Row> {
    // Many different values, so that not all can be kept.
    (0..4_u32, -300..300_i64, 0..TEXTS.len(), -2..3_i8)
}

fn tables() -> Tables {
    let columns = [
        ("a", T::U32),
        ("b", T::I64),
        ("s", T::String),
        ("f", T::F64),
    ];
    Tables(vec![Arc::new(table(4096, "r", &columns))])
}

fn encode((a, b, s, f): &Row) -> Vec<u8> {
    encode_row(&[
        V::U32(*a),
        V::I64(*b),
        V::String(TEXTS[*s].into()),
        V::F64(f64::from(*f) / 2.0),
    ])
}

/// A result row in a form that both have.
fn shown(query: &Query, row: &[u8]) -> String {
    let mut reader = Reader::new(row);
    let values = query.output_type().elements.into_iter().map(|element| {
        let ty = element.algebraic_type;
        let value = decode_value(&Typespace::default(), &ty, &mut reader);
        let value = match value.expect("a value of the column") {
            V::Sum { tag: 0, value } => *value,
            value => value,
        };
        match value {
            V::U32(n) => n.to_string(),
            V::U64(n) => n.to_string(),
            V::I64(n) => n.to_string(),
            V::I128(n) => n.to_string(),
            V::F64(f) => format!("{f:?}"),
            V::String(text) => format!("'{text}'"),
            V::Sum { .. } => "NULL".to_owned(),
            other => panic!("{other:?}"),
        }
    });
    values.collect::<Vec<_>>().join(", ")
}

fn of_sqlite(sqlite: &rusqlite::Connection, text: &str) -> BTreeSet<String> {
    let mut statement = sqlite.prepare(text).expect("a query");
    let columns = statement.column_count();
    let rows = statement.query_map([], |row| {
        let value = |column| {
            Ok(match row.get::<_, Value>(column)? {
                Value::Null => "NULL".to_owned(),
                Value::Integer(n) => n.to_string(),
                Value::Real(f) => format!("{f:?}"),
                Value::Text(text) => format!("'{text}'"),
                Value::Blob(_) => panic!("no bytes"),
            })
        };
        let values: Result<Vec<String>, rusqlite::Error> = (0..columns).map(value).collect();
        Ok(values?.join(", "))
    });
    rows.expect("rows").map(|row| row.expect("a row")).collect()
}

/// A query with its groups, and the rows that came out.
struct Watched {
    text: &'static str,
    query: Query,
    groups: LiveGroups,
    rows: BTreeSet<String>,
}

impl Watched {
    fn new(text: &'static str) -> Watched {
        let caller = Caller {
            identity: Identity::ZERO,
            is_owner: true,
        };
        // Views have each row once.
        let plain = text.replace("DISTINCT ", "");
        let query = compile_aggregate(&plain, &tables(), &caller).expect("an aggregate");
        let groups = LiveGroups::new(&query, &caller.identity).expect("a plain one");
        Watched {
            text,
            query,
            groups,
            rows: BTreeSet::new(),
        }
    }

    fn admits(&self, row: &[u8]) -> bool {
        let plan = self.query.rows_plan(&Identity::ZERO).expect("one table");
        let predicate = plan.predicate.as_ref();
        predicate.is_none_or(|predicate| predicate.matches(&layout(&plan.table), row))
    }

    fn change(&mut self, all: &BTreeSet<Row>, come: &[Row], gone: &[Row]) {
        for row in come.iter().map(encode) {
            if self.admits(&row) {
                self.groups.add(&row);
            }
        }
        for row in gone.iter().map(encode) {
            if self.admits(&row) {
                self.groups.remove(&row);
            }
        }
        if self.groups.is_stale() {
            *self = Watched::new(self.text);
            return self.change(&all.clone(), &all.iter().copied().collect::<Vec<_>>(), &[]);
        }
        for change in self.groups.take_changes() {
            if let Some(row) = change.gone {
                assert!(self.rows.remove(&shown(&self.query, &row)), "{}", self.text);
            }
            if let Some(row) = change.come {
                assert!(self.rows.insert(shown(&self.query, &row)), "{}", self.text);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: common::cases(24), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn rows_that_came_and_did_not_go_are_the_result(
        steps in prop::collection::vec(
            (prop::collection::vec(row(), 0..40), prop::collection::vec(any::<prop::sample::Index>(), 0..50), any::<bool>()),
            1..16,
        ),
    ) {
        let sqlite = rusqlite::Connection::open_in_memory().expect("memory");
        sqlite
            .execute_batch("CREATE TABLE r (a INTEGER, b INTEGER, s TEXT, f REAL)")
            .expect("a table");
        let mut watched: Vec<Watched> = QUERIES.iter().map(|text| Watched::new(text)).collect();
        let mut all: BTreeSet<Row> = BTreeSet::new();
        for (inserts, deletes, from_one_end) in steps {
            let before: Vec<Row> = all.iter().copied().collect();
            let mut gone: BTreeSet<Row> = BTreeSet::new();
            if !before.is_empty() {
                let chosen = deletes.iter().enumerate().map(|(nth, index)| match from_one_end {
                    true => before[nth.min(before.len() - 1)],
                    false => *index.get(&before),
                });
                gone.extend(chosen);
            }
            let inserts: BTreeSet<Row> = inserts.into_iter().collect();
            let come: Vec<Row> = inserts.difference(&all).copied().collect();
            let gone: Vec<Row> = gone.into_iter().collect();
            for (a, b, s, f) in &come {
                let values = (a, b, TEXTS[*s], f64::from(*f) / 2.0);
                sqlite.execute("INSERT INTO r VALUES (?, ?, ?, ?)", values).expect("a row");
            }
            for (a, b, s, f) in &gone {
                let values = (a, b, TEXTS[*s], f64::from(*f) / 2.0);
                let delete = "DELETE FROM r WHERE a = ? AND b = ? AND s = ? AND f = ?";
                sqlite.execute(delete, values).expect("a row");
            }
            all.extend(&come);
            all.retain(|row| !gone.contains(row));
            for watched in &mut watched {
                watched.change(&all, &come, &gone);
                prop_assert_eq!(&watched.rows, &of_sqlite(&sqlite, watched.text), "{}", watched.text);
            }
        }
    }
}

/// What was kept is counted again when all of it has gone.
#[test]
fn extremes_are_found_again_when_those_that_were_kept_are_gone() {
    let mut watched = Watched::new("SELECT MIN(b) AS low, MAX(b) AS high FROM r");
    let all: BTreeSet<Row> = (0..1000).map(|b| (0, b, 0, 0)).collect();
    watched.change(&all, &all.iter().copied().collect::<Vec<_>>(), &[]);
    assert!(watched.rows.contains("0, 999"));
    assert!(
        watched.groups.memory_bytes() < 100_000,
        "not all values are kept"
    );
    let (gone, stays): (Vec<Row>, Vec<Row>) = all.iter().partition(|row| row.1 < 300);
    let stays: BTreeSet<Row> = stays.into_iter().collect();
    for row in &gone {
        watched.groups.remove(&encode(row));
    }
    assert!(watched.groups.is_stale());
    watched.change(&stays, &[], &[]);
    assert!(watched.rows.contains("300, 999"));
}
