//! `Tables/<Pascal>.g.cs`: the handle of a table in the client's cache, and its columns for queries.

use lightcone_types::AlgebraicType;

use super::style::{braced, member, pascal, UNIT};
use super::types::csharp_type;
use crate::error::{Error, Result};
use crate::module::{Level, Shape, Table};
use crate::text::Text;

struct Column {
    /// In the row.
    field: String,
    ty: String,
    wire_name: String,
    /// Whether it can be a key of the client's indexes.
    is_key: bool,
}

/// An index in the client's cache.
struct Index {
    class: String,
    base: &'static str,
    member: String,
    columns: Vec<usize>,
}

pub(super) fn row_type<'a>(level: &'a Level, table: &Table) -> Result<&'a str> {
    level
        .types
        .name(table.row_type)
        .ok_or_else(|| Error::Unnamed {
            place: format!("table `{}`", table.name),
        })
}

pub(super) fn file(level: &Level, table: &Table) -> Result<Text> {
    let row = row_type(level, table)?;
    let name = pascal(&table.accessor)?;
    let columns = columns(level, table, row)?;
    let indexes = indexes(table, &columns, &format!("{name}Handle"))?;
    let mut text = Text::new(UNIT);
    braced(
        &mut text,
        "public sealed partial class RemoteTables",
        |text| {
            handle(text, table, &name, row, &columns, &indexes);
            text.blank();
            text.line(format!("public readonly {name}Handle {name};"));
        },
    );
    let all: Vec<&Column> = columns.iter().collect();
    let indexed = |position: &usize| table.indexes.iter().any(|i| i.columns == [*position]);
    let positions = (0..columns.len()).filter(indexed);
    let indexed: Vec<&Column> = positions.map(|position| &columns[position]).collect();
    for (kind, columns) in [("Col", all), ("IxCol", indexed)] {
        text.blank();
        query_columns(&mut text, &format!("{name}{kind}s"), kind, row, &columns);
    }
    Ok(text)
}

fn columns(level: &Level, table: &Table, row: &str) -> Result<Vec<Column>> {
    let mut columns = Vec::new();
    for column in &table.columns {
        let place = format!("column `{}` of `{}`", column.name, table.name);
        columns.push(Column {
            field: member(&column.accessor, row)?,
            ty: csharp_type(&level.types, &column.ty, &place)?,
            wire_name: column.name.clone(),
            is_key: is_key(level, &column.ty, &place)?,
        });
    }
    Ok(columns)
}

/// Types with equality and hashes, which indexes of the cache need.
fn is_key(level: &Level, ty: &AlgebraicType, place: &str) -> Result<bool> {
    let types = &level.types;
    Ok(match types.shape(ty, place)? {
        Shape::Identity | Shape::ConnectionId | Shape::Timestamp | Shape::Uuid => true,
        Shape::Primitive(_) => true,
        Shape::Named(name) => {
            let definition = types.sorted.get(name).and_then(|r| types.get(*r));
            matches!(definition, Some(AlgebraicType::Sum(sum)) if sum.is_simple_enum())
        }
        _ => false,
    })
}

/// Unique columns first, then the other indexes. Indexes with other keys stay on the server.
fn indexes(table: &Table, columns: &[Column], handle: &str) -> Result<Vec<Index>> {
    let mut indexes = Vec::new();
    if table.is_event {
        return Ok(indexes);
    }
    let is_unique = |positions: &[usize]| table.constraints.iter().any(|c| c.columns == positions);
    for (position, column) in columns.iter().enumerate() {
        if is_unique(&[position]) && column.is_key {
            indexes.push(Index {
                class: format!("{}UniqueIndex", column.field),
                base: "UniqueIndexBase",
                member: other_than(&column.field, handle),
                columns: vec![position],
            });
        }
    }
    for index in &table.indexes {
        let are_keys = index.columns.iter().all(|c| columns[*c].is_key);
        if !are_keys || (index.columns.len() == 1 && is_unique(&index.columns)) {
            continue;
        }
        let name = member(&index.accessor, handle)?;
        indexes.push(Index {
            class: format!("{name}Index"),
            base: "BTreeIndexBase",
            member: name,
            columns: index.columns.clone(),
        });
    }
    Ok(indexes)
}

fn other_than(member: &str, class: &str) -> String {
    match member == class {
        true => format!("{member}_"),
        false => member.to_owned(),
    }
}

fn handle(
    text: &mut Text,
    table: &Table,
    name: &str,
    row: &str,
    columns: &[Column],
    indexes: &[Index],
) {
    let base = match table.is_event {
        true => "RemoteEventTableHandle",
        false => "RemoteTableHandle",
    };
    let head = format!("public sealed class {name}Handle : {base}<EventContext, {row}>");
    braced(text, &head, |text| {
        text.line(format!(
            "protected override string RemoteTableName => \"{}\";",
            table.name
        ));
        for index in indexes {
            text.blank();
            index_class(text, index, name, row, columns);
            text.blank();
            text.line(format!("public readonly {} {};", index.class, index.member));
        }
        text.blank();
        let head = format!("internal {name}Handle(DbConnection conn) : base(conn)");
        braced(text, &head, |text| {
            for index in indexes {
                text.line(format!("{} = new {}(this);", index.member, index.class));
            }
        });
        let key = table.columns.iter().position(|c| c.is_primary_key);
        if let Some(key) = key.filter(|_| !table.is_event) {
            text.blank().line(format!(
                "protected override object GetPrimaryKey({row} row) => row.{};",
                columns[key].field
            ));
        }
    });
}

fn index_class(text: &mut Text, index: &Index, name: &str, row: &str, columns: &[Column]) {
    let parts: Vec<&Column> = index.columns.iter().map(|c| &columns[*c]).collect();
    let (key, value) = match parts.as_slice() {
        [column] => (column.ty.clone(), format!("row.{}", column.field)),
        columns => {
            let types = columns.iter().map(|c| format!("{} {}", c.ty, c.field));
            let values = columns.iter().map(|c| format!("row.{}", c.field));
            let joined = |parts: Vec<String>| format!("({})", parts.join(", "));
            (joined(types.collect()), joined(values.collect()))
        }
    };
    let head = format!(
        "public sealed class {} : {}<{key}>",
        index.class, index.base
    );
    braced(text, &head, |text| {
        text.line(format!(
            "protected override {key} GetKey({row} row) => {value};"
        ));
        text.blank().line(format!(
            "public {}({name}Handle table) : base(table) {{ }}",
            index.class
        ));
    });
}

/// The columns for the query builder.
fn query_columns(text: &mut Text, class: &str, kind: &str, row: &str, columns: &[&Column]) {
    // Nullable columns have types of their own.
    let types: Vec<String> = columns
        .iter()
        .map(|column| match column.ty.strip_suffix('?') {
            Some(some) => format!("global::SpacetimeDB.Nullable{kind}<{row}, {some}>"),
            None => format!("global::SpacetimeDB.{kind}<{row}, {}>", column.ty),
        })
        .collect();
    let members: Vec<String> = columns
        .iter()
        .map(|column| other_than(&column.field, class))
        .collect();
    braced(text, &format!("public sealed class {class}"), |text| {
        for (member, ty) in members.iter().zip(&types) {
            text.line(format!("public {ty} {member} {{ get; }}"));
        }
        if !columns.is_empty() {
            text.blank();
        }
        braced(text, &format!("public {class}(string tableName)"), |text| {
            for ((column, ty), member) in columns.iter().zip(&types).zip(&members) {
                text.line(format!(
                    "{member} = new {ty}(tableName, \"{}\");",
                    column.wire_name
                ));
            }
        });
    });
}
