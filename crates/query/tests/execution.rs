//! The cases of 08 §20 that are queries: small databases, what each caller gets, and the estimates of §16.

use std::collections::HashMap;
use std::sync::Arc;

use crate::columns::column_type;
use crate::common::database::Database;
use crate::common::{encode_row, table};
use lightcone_query::{Caller, Query};
use lightcone_schema::{IndexAlgorithm, IndexSchema, TableSchema};
use lightcone_table::Table;
use lightcone_types::{AlgebraicType as T, AlgebraicValue as V, Identity, IndexId};
use lightcone_vectors::{each, Entry};
use serde_json::Value;

fn identity(name: &str) -> Identity {
    let mut bytes = [0; 32];
    bytes[..name.len()].copy_from_slice(name.as_bytes());
    Identity::from_le_bytes(bytes)
}

fn caller(step: &Value) -> Caller {
    let name = step["caller"].as_str().unwrap_or("owner");
    Caller {
        identity: identity(name),
        is_owner: name == "owner",
    }
}

fn value(json: &Value, ty: &T) -> V {
    let number = || json.as_u64().expect("a number");
    match *ty {
        T::U8 => V::U8(number() as u8),
        T::U32 => V::U32(number() as u32),
        T::I32 => V::I32(json.as_i64().expect("a number") as i32),
        T::Bool => V::Bool(json.as_bool().expect("a truth value")),
        T::String => V::String(json.as_str().expect("a text").into()),
        _ if *ty == T::identity() => {
            let identity = identity(json.as_str().expect("a name"));
            V::Product(vec![V::U256(identity.to_u256())])
        }
        T::U64 => V::U64(number()),
        _ => panic!("no values of {}", ty.type_name()),
    }
}

fn encoded(row: &Value, types: &[T]) -> Vec<u8> {
    let values = row.as_array().expect("a row").iter().zip(types);
    let values: Vec<V> = values.map(|(json, ty)| value(json, ty)).collect();
    encode_row(&values)
}

fn index(position: usize, columns: &[Value], schema: &TableSchema, unique: bool) -> IndexSchema {
    let column = |name: &Value| {
        let found = schema.column_by_name(name.as_str().expect("a name"));
        found.expect("a column")
    };
    IndexSchema {
        id: IndexId(position as u32),
        name: format!("i{position}"),
        accessor: None,
        algorithm: IndexAlgorithm::BTree(columns.iter().map(column).collect()),
        unique,
    }
}

/// The database of a case; None if its tables are not to be had here.
fn database(entry: &Entry) -> Option<Database> {
    let mut tables = HashMap::new();
    for (number, (name, columns)) in entry.0["tables"].as_object()?.iter().enumerate() {
        let columns: Vec<(&str, T)> = (columns.as_array()?.iter())
            .map(|column| {
                let ty = column_type(column[1].as_str().expect("a type"));
                (column[0].as_str().expect("a name"), ty)
            })
            .collect();
        let mut schema = table(4096 + number as u32, name, &columns);
        let unique = entry.0["uniqueKeys"][name].as_str();
        let unique = unique.map(|column| index(0, &[column.into()], &schema, true));
        let others = entry.0["indexes"][name].as_array().into_iter().flatten();
        let others = others.enumerate().map(|(position, columns)| {
            index(
                position + 1,
                columns.as_array().expect("columns"),
                &schema,
                false,
            )
        });
        schema.indexes = unique
            .into_iter()
            .chain(others.collect::<Vec<_>>())
            .collect();
        let mut table = Table::new(Arc::new(schema));
        let types: Vec<T> = columns.iter().map(|(_, ty)| ty.clone()).collect();
        for row in entry.0["rows"][table.schema.name.as_str()].as_array()? {
            table.insert(&encoded(row, &types)).expect("rows differ");
        }
        tables.insert(table.schema.id, table);
    }
    let mut database = Database {
        tables,
        rules: HashMap::new(),
    };
    for rule in entry.0["rules"].as_array().into_iter().flatten() {
        let rule = rule.as_str().expect("a text");
        let table = lightcone_query::check_rule(rule, &database, identity("owner"));
        let table = table.expect("a rule");
        let rules = database.rules.entry(table.id).or_default();
        rules.push(rule.to_owned());
    }
    Some(database)
}

/// `<a>` stands for the digits of an identity.
fn text(step: &Value) -> Option<String> {
    let mut text = step["sql"].as_str()?.to_owned();
    for name in ["a", "b", "c"] {
        text = text.replace(&format!("<{name}>"), &identity(name).to_hex());
    }
    Some(text)
}

fn rows(database: &Database, query: Query, caller: &Caller) -> Vec<Vec<u8>> {
    let rows = database.rows(query, caller.identity, 1 << 20, usize::MAX);
    let mut rows = rows.expect("it is small");
    rows.sort_unstable();
    rows
}

fn check(database: &Database, step: &Value, text: &str, row_limit: Option<u64>) {
    let caller = caller(step);
    let query = database.query(text, &caller);
    let estimate = query.estimated_rows(&caller.identity, database);
    let limit = row_limit.filter(|limit| !caller.is_owner && estimate > *limit);
    if let (Some(expected), Some(limit)) = (step["error"].as_str(), limit) {
        let message =
            format!("Estimated cardinality ({estimate} rows) exceeds limit ({limit} rows)");
        return assert_eq!(message, expected, "{text}");
    }
    assert!(limit.is_none(), "{text}: {estimate}");
    let types: Vec<T> = query
        .output_type()
        .elements
        .into_iter()
        .map(|element| element.algebraic_type)
        .collect();
    let names: Vec<_> = query
        .output_type()
        .elements
        .into_iter()
        .map(|element| {
            element
                .name
                .map(|name| name.to_string())
                .unwrap_or_default()
        })
        .collect();
    let found = rows(database, query, &caller);
    if let Some(count) = step["count"].as_u64() {
        assert_eq!(found.len() as u64, count, "{text}");
    }
    if let Some(columns) = step["columns"].as_array() {
        assert_eq!(columns, &names);
    }
    if let Some(expected) = step["rows"].as_array() {
        let mut expected: Vec<_> = expected.iter().map(|row| encoded(row, &types)).collect();
        expected.sort_unstable();
        assert_eq!(found, expected, "{text}");
    }
}

/// Cases with statements that change rows before, or that read views and system tables, are checked by the server.
#[test]
fn queries_of_the_chapter() {
    let checked = std::cell::Cell::new(0);
    each("08-execution.json", "", |entry| {
        if entry.0["views"].is_array() || entry.text("name") == "system tables" {
            return;
        }
        let database = database(entry).expect("tables");
        let mut row_limit = None;
        for step in entry.0["steps"].as_array().expect("steps") {
            let Some(text) = text(step) else { continue };
            let verb = text.split(' ').next().unwrap_or_default().to_lowercase();
            match &verb[..] {
                "select" => {
                    check(&database, step, &text, row_limit);
                    checked.set(checked.get() + 1);
                }
                "set" => row_limit = text.rsplit(' ').next().and_then(|n| n.parse().ok()),
                "show" => {}
                // The rows are others from here on, but for those of variables.
                _ if text.contains("st_var") => {}
                _ => return,
            }
        }
    });
    assert!(checked.get() > 30, "{} queries", checked.get());
}

#[test]
fn a_join_without_an_index_is_bounded_in_memory() {
    let columns = [("a", T::U32), ("b", T::U32)];
    let mut database = Database::default();
    for (id, name) in [(4096, "x"), (4097, "y")] {
        let rows = (0..1000u32).map(|a| encode_row(&[V::U32(a), V::U32(a % 7)]));
        database.add(table(id, name, &columns), rows);
    }
    let owner = caller(&Value::Null);
    let text = "SELECT x.* FROM x JOIN y ON x.a = y.a";
    let run = |bytes| {
        let query = database.query(text, &owner);
        database.rows(query, owner.identity, bytes, usize::MAX)
    };
    assert_eq!(run(100_000).map(|rows| rows.len()), Ok(1000));
    let refused = run(10_000).expect_err("36 bytes a row").to_string();
    assert!(refused.ends_with("[LC0410]"), "{refused}");
}
