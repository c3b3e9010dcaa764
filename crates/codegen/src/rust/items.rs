//! The files of tables, reducers and procedures.

use std::collections::BTreeSet;

use lightcone_schema::case::to_snake;

use super::style::{self, import_types, snake, start};
use super::types::rust_type;
use crate::error::Result;
use crate::module::{Column, Function, Level, Table};
use crate::text::{filled, joined, Text};

/// `<snake>_table.rs`: the handle of a table in the client's cache.
pub(super) fn table(level: &Level, table: &Table, writes_columns: bool) -> Result<String> {
    let row = level.row_type(table)?;
    let pascal = style::pascal(&table.accessor)?;
    let mut mentioned = BTreeSet::from([row]);
    for column in &table.columns {
        level.types.mentioned(&column.ty, &mut mentioned);
    }
    let delete_id = match table.is_event {
        true => String::new(),
        false => format!("pub struct {pascal}DeleteCallbackId(__sdk::CallbackId);"),
    };
    let mut callbacks_of_rows = callbacks(&pascal, row, "insert", "Insert");
    if !table.is_event {
        let delete = callbacks(&pascal, row, "delete", "Delete");
        callbacks_of_rows.push_str(&format!("\n{delete}"));
    }
    let mut constraints = Vec::new();
    let mut unique = String::new();
    for (column, ty) in unique_columns(level, table)? {
        let field = snake(&column.accessor)?;
        // A field without what makes it a Rust identifier.
        let plain = to_snake(field.trim_start_matches("r#"));
        unique += &filled(
            include_str!("unique.rs.txt"),
            &[
                ("name", &table.name),
                ("pascal", &pascal),
                ("row", row),
                ("column", &style::pascal(&column.accessor)?),
                ("field", &field),
                ("plain", &plain),
                ("type", &ty),
            ],
        );
        constraints.push(format!(
            "_table.add_unique_constraint::<{ty}>(\"{plain}\", |row| &row.{field});"
        ));
    }

    let mut text = start();
    import_types(&mut text, &mentioned);
    let kind = ["Table", "EventTable"][usize::from(table.is_event)];
    let method = snake(&table.accessor)?;
    let constraints = joined(constraints);
    let values: [(&str, &str); 8] = [
        ("name", &table.name),
        ("pascal", &pascal),
        ("row", row),
        ("method", &method),
        ("kind", kind),
        ("delete id", &delete_id),
        ("insert and delete", &callbacks_of_rows),
        ("constraints", &constraints),
    ];
    text.template(include_str!("table.rs.txt"), &values);
    if table.primary_key().is_some() && !table.is_event {
        let handle = format!("{pascal}TableHandle<'ctx>");
        text.blank();
        text.line(format!(
            "pub struct {pascal}UpdateCallbackId(__sdk::CallbackId);"
        ));
        text.blank();
        let open = format!("impl<'ctx> __sdk::TableWithPrimaryKey for {handle} {{");
        text.block(open, "}", |text| {
            let update = callbacks(&pascal, row, "update", "Update");
            text.blank().lines(&update);
        });
    }
    text.lines(&unique);
    text.template(include_str!("queries.rs.txt"), &values);
    if writes_columns {
        columns(&mut text, level, table, row)?;
    }
    Ok(text.finish())
}

fn callbacks(pascal: &str, row: &str, event: &str, capital: &str) -> String {
    let rows = match event {
        "update" => format!("&{row}, &{row}"),
        _ => format!("&{row}"),
    };
    let values = [
        ("pascal", pascal),
        ("event", event),
        ("Event", capital),
        ("rows", &rows),
    ];
    filled(include_str!("callbacks.rs.txt"), &values)
}

fn unique_columns<'a>(level: &Level, table: &'a Table) -> Result<Vec<(&'a Column, String)>> {
    let mut unique = Vec::new();
    if table.is_event {
        return Ok(unique);
    }
    for (position, column) in table.columns.iter().enumerate() {
        let is_unique = table.constraints.iter().any(|c| c.columns == [position]);
        if is_unique {
            let place = format!("column `{}` of `{}`", column.name, table.name);
            unique.push((column, rust_type(&level.types, &column.ty, &place)?));
        }
    }
    Ok(unique)
}

/// The columns for the query builder, and which of them are indexed.
fn columns(text: &mut Text, level: &Level, table: &Table, row: &str) -> Result<()> {
    let mut all = Vec::new();
    for column in &table.columns {
        let place = format!("column `{}` of `{}`", column.name, table.name);
        let ty = rust_type(&level.types, &column.ty, &place)?;
        all.push((snake(&column.accessor)?, ty, column.name.as_str()));
    }
    let is_indexed = |position: &usize| table.indexes.iter().any(|i| i.columns == [*position]);
    let indexed = (0..all.len()).filter(is_indexed);
    let indexed: Vec<_> = indexed.map(|position| all[position].clone()).collect();
    for (doc, kind, tr, method, columns) in [
        ("columns", "Col", "HasCols", "cols", &all),
        ("indexed columns", "IxCol", "HasIxCols", "ix_cols", &indexed),
    ] {
        let builder = format!("__sdk::__query_builder::{kind}");
        let fields = columns.iter();
        let fields = fields.map(|(field, ty, _)| format!("pub {field}: {builder}<{row}, {ty}>,"));
        let values = columns
            .iter()
            .map(|(field, _, name)| format!("{field}: {builder}::new(table_name, \"{name}\"),"));
        text.template(
            include_str!("columns.rs.txt"),
            &[
                ("doc", doc),
                ("row", row),
                ("kind", kind),
                ("trait", tr),
                ("method", method),
                ("fields", &joined(fields)),
                ("values", &joined(values)),
            ],
        );
    }
    if !table.is_event {
        text.blank().line(format!(
            "impl __sdk::__query_builder::CanBeLookupTable for {row} {{}}"
        ));
    }
    Ok(())
}

pub(super) struct Parameters(Vec<(String, String)>);

impl Parameters {
    pub fn new(level: &Level, function: &Function) -> Result<Self> {
        let mut fields = Vec::new();
        for (name, ty) in &function.params {
            let place = format!("parameter `{name}` of `{}`", function.name);
            fields.push((snake(name)?, rust_type(&level.types, ty, &place)?));
        }
        Ok(Self(fields))
    }

    /// A text for each name and type.
    pub fn each(&self, text: impl Fn(&str, &str) -> String) -> Vec<String> {
        self.0.iter().map(|(name, ty)| text(name, ty)).collect()
    }
}

pub(super) const REDUCER: &str = include_str!("reducer.rs.txt");
pub(super) const PROCEDURE: &str = include_str!("procedure.rs.txt");

/// `<snake>_reducer.rs` or `<snake>_procedure.rs`.
pub(super) fn function(level: &Level, function: &Function, template: &str) -> Result<String> {
    let parameters = Parameters::new(level, function)?;
    let mut mentioned = BTreeSet::new();
    for ty in function.types() {
        level.types.mentioned(ty, &mut mentioned);
    }
    let place = format!("the result of `{}`", function.name);
    let returned = rust_type(&level.types, &function.return_type, &place)?;
    let pascal = style::pascal(&function.accessor)?;
    let each = |text: fn(&str, &str) -> String| parameters.each(text);
    let fields = joined(each(|name, ty| format!("pub {name}: {ty},")));
    let moved = joined(each(|name, _| format!("{name}: args.{name},")));
    let declared = each(|name, ty| format!("{name}: {ty}, ")).concat();
    let names = each(|name, _| format!("{name}, ")).concat();
    let mut text = start();
    import_types(&mut text, &mentioned);
    text.template(
        &format!("{}{template}", include_str!("arguments.rs.txt")),
        &[
            ("name", &function.name),
            ("pascal", &pascal),
            ("args", &format!("{pascal}Args")),
            ("method", &snake(&function.accessor)?),
            ("then", &format!("{}_then", to_snake(&function.accessor))),
            ("returned", &returned),
            ("fields", &fields),
            ("moved", &moved),
            ("declared", &declared),
            ("names", &names),
        ],
    );
    Ok(text.finish())
}
