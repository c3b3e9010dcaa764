//! `Tables/<Pascal>.g.cs`: the handle of a table in the client's cache, and its columns for queries.

use lightcone_types::AlgebraicType;

use super::style::{member, other_than, pascal, UNIT};
use super::types::csharp_type;
use crate::error::Result;
use crate::module::{Level, Shape, Table};
use crate::text::{filled, joined, Text};

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

pub(super) fn file(level: &Level, table: &Table) -> Result<Text> {
    let row = level.row_type(table)?;
    let name = pascal(&table.accessor)?;
    let columns = columns(level, table, row)?;
    let indexes = indexes(table, &columns, &format!("{name}Handle"))?;
    let base = match table.is_event {
        true => "RemoteEventTableHandle",
        false => "RemoteTableHandle",
    };
    let key = table.columns.iter().position(|c| c.is_primary_key);
    let key = key.filter(|_| !table.is_event).map(|key| {
        let field = &columns[key].field;
        format!("\nprotected override object GetPrimaryKey({row} row) => row.{field};")
    });
    let index_classes = indexes.iter();
    let index_classes: String = index_classes
        .map(|index| index_class(index, &name, row, &columns))
        .collect();
    let made = indexes.iter();
    let made = made.map(|index| format!("{} = new {}(this);", index.member, index.class));
    let mut text = Text::new(UNIT);
    text.template(
        include_str!("table.cs.txt"),
        &[
            ("name", &name),
            ("base", base),
            ("row", row),
            ("wire name", &table.name),
            ("indexes", &index_classes),
            ("make indexes", &joined(made)),
            ("primary key", &key.unwrap_or_default()),
        ],
    );
    let all: Vec<&Column> = columns.iter().collect();
    let indexed = |position: &usize| table.indexes.iter().any(|i| i.columns == [*position]);
    let positions = (0..columns.len()).filter(indexed);
    let indexed: Vec<&Column> = positions.map(|position| &columns[position]).collect();
    for (kind, columns) in [("Col", all), ("IxCol", indexed)] {
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
        Shape::Special(special) => special.facts().literals.is_some(),
        Shape::Primitive(_) => true,
        Shape::Named(name) => types.named(name).is_some_and(AlgebraicType::is_simple_enum),
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

fn index_class(index: &Index, name: &str, row: &str, columns: &[Column]) -> String {
    let parts: Vec<&Column> = index.columns.iter().map(|c| &columns[*c]).collect();
    let (key, value) = match parts.as_slice() {
        [column] => (column.ty.clone(), format!("row.{}", column.field)),
        columns => {
            let types = columns.iter().map(|c| format!("{} {}", c.ty, c.field));
            let values = columns.iter().map(|c| format!("row.{}", c.field));
            let tuple = |parts: Vec<String>| format!("({})", parts.join(", "));
            (tuple(types.collect()), tuple(values.collect()))
        }
    };
    filled(
        include_str!("index.cs.txt"),
        &[
            ("class", &index.class),
            ("base", index.base),
            ("key", &key),
            ("row", row),
            ("value", &value),
            ("name", name),
            ("member", &index.member),
        ],
    )
}

fn query_columns(text: &mut Text, class: &str, kind: &str, row: &str, columns: &[&Column]) {
    let (mut members, mut values) = (String::new(), String::new());
    for column in columns {
        // Nullable columns have types of their own.
        let ty = match column.ty.strip_suffix('?') {
            Some(some) => format!("global::SpacetimeDB.Nullable{kind}<{row}, {some}>"),
            None => format!("global::SpacetimeDB.{kind}<{row}, {}>", column.ty),
        };
        let member = other_than(&column.field, class);
        let wire_name = &column.wire_name;
        members += &format!("public {ty} {member} {{ get; }}\n");
        values += &format!("{member} = new {ty}(tableName, \"{wire_name}\");\n");
    }
    if !columns.is_empty() {
        members.push('\n');
    }
    text.template(
        include_str!("columns.cs.txt"),
        &[("class", class), ("members", &members), ("values", &values)],
    );
}
