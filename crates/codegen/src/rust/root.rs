//! `mod.rs`: the types that `spacetimedb-sdk` is generic over, made of the module's tables and functions.

use super::items::Parameters;
use super::style::{pascal, snake, start};
use crate::bindings::Options;
use crate::error::Result;
use crate::module::{file_stem, Level, Table};
use crate::text::{joined, Text};

struct TableNames<'a> {
    table: &'a Table,
    field: String,
    file: String,
    row: &'a str,
}

struct ReducerNames {
    variant: String,
    file: String,
    name: String,
    /// `name: String, age: u32`.
    declared: String,
    /// `{ name, age }` as a pattern, or with the same names as an expression.
    braced: String,
}

pub(super) fn file(level: &Level, options: &Options) -> Result<String> {
    let mut tables = Vec::new();
    for table in &level.tables {
        tables.push(TableNames {
            table,
            field: snake(&table.accessor)?,
            file: file_stem(&table.accessor, "table"),
            row: level.row_type(table)?,
        });
    }
    let mut reducers = Vec::new();
    for reducer in &level.reducers {
        let parameters = Parameters::new(level, reducer)?;
        let declared = parameters.each(|name, ty| format!("{name}: {ty}"));
        let names = parameters.each(|name, _| name.to_owned());
        reducers.push(ReducerNames {
            variant: pascal(&reducer.accessor)?,
            file: file_stem(&reducer.accessor, "reducer"),
            name: reducer.name.clone(),
            declared: declared.join(", "),
            braced: format!("{{ {} }}", names.join(", ")),
        });
    }
    let (modules, uses) = modules(level)?;
    let of_tables = |line: &dyn Fn(&TableNames<'_>) -> String| joined(tables.iter().map(line));
    let append = |rows: &dyn Fn(&TableNames<'_>) -> String| {
        of_tables(&|t| {
            let (name, field, rows) = (&t.table.name, &t.field, rows(t));
            format!("\"{name}\" => db_update.{field}.append({rows}),")
        })
    };
    let append_rows = |parse: &str| append(&|_| format!("__sdk::{parse}(table_rows.rows)?"));
    let of_reducers = |line: &dyn Fn(&ReducerNames) -> String| joined(reducers.iter().map(line));
    let match_reducers = |value: &str, arm: &dyn Fn(&ReducerNames) -> String| match reducers[..] {
        [] => "match *self {}".to_owned(),
        _ => format!(
            "match {value} {{\n{}}}",
            of_reducers(&|r| format!("    {}", arm(r)))
        ),
    };
    let names = tables.iter().filter(|t| !t.table.takes_arguments);
    let names = names.map(|t| format!("\"{}\"", t.table.name));
    let names = names.collect::<Vec<_>>().join(", ");

    let mut text = Text::new("    ");
    text.lines(&start().finish().replace(
        "#![allow",
        &format!(
            "// This was generated using spacetimedb cli version {} (commit {}).\n\n#![allow",
            options.cli_version, options.commit
        ),
    ));
    text.template(
        include_str!("mod.rs.txt"),
        &[
            ("modules", &modules),
            ("uses", &uses),
            ("reducers", &of_reducers(&|r| format!("{} {{ {} }},", r.variant, r.declared))),
            (
                "reducer names",
                &match_reducers("self", &|r| format!("Reducer::{} {{ .. }} => \"{}\",", r.variant, r.name)),
            ),
            (
                "reducer arguments",
                &match_reducers("self.clone()", &|ReducerNames { variant, file, braced, .. }| {
                    format!("Reducer::{variant} {braced} => __sats::bsatn::to_vec(&{file}::{variant}Args {braced}),")
                }),
            ),
            ("updates", &of_tables(&|t| format!("{}: __sdk::TableUpdate<{}>,", t.field, t.row))),
            ("append updates", &append(&|t| format!("{}::parse_table_update(table_update)?", t.file))),
            ("apply", &of_tables(&apply)),
            ("append inserts", &append_rows("parse_row_list_as_inserts")),
            ("append deletes", &append_rows("parse_row_list_as_deletes")),
            ("diffs", &of_tables(&|t| format!("{}: __sdk::TableAppliedDiff<'r, {}>,", t.field, t.row))),
            (
                "invoke",
                &of_tables(&|t| {
                    format!(
                        "callbacks.invoke_table_row_callbacks::<{}>(\"{}\", &self.{}, event);",
                        t.row, t.table.name, t.field
                    )
                }),
            ),
            ("register", &of_tables(&|t| format!("{}::register_table(client_cache);", t.file))),
            ("names", &names),
        ],
    );
    text.lines(include_str!("contexts.rs.txt"));
    Ok(text.finish())
}

/// Declares the files beside this one, and exports what is in them.
fn modules(level: &Level) -> Result<(String, String)> {
    let (mut modules, mut uses) = (Vec::new(), Vec::new());
    let mut add = |file: String, what: &str| {
        modules.push(format!("pub mod {file};"));
        uses.push(format!("pub use {file}::{what};"));
    };
    for name in level.types.sorted.keys() {
        add(file_stem(name, "type"), name);
    }
    for table in &level.tables {
        add(file_stem(&table.accessor, "table"), "*");
    }
    let reducers = level.reducers.iter().map(|reducer| (reducer, "reducer"));
    let procedures = level
        .procedures
        .iter()
        .map(|procedure| (procedure, "procedure"));
    for (function, kind) in reducers.chain(procedures) {
        let name = snake(&function.accessor)?;
        add(file_stem(&function.accessor, kind), &name);
    }
    Ok((joined(modules), joined(uses)))
}

fn apply(table: &TableNames<'_>) -> String {
    let TableNames { field, row, .. } = table;
    if table.table.is_event {
        return format!("diff.{field} = self.{field}.into_event_diff();");
    }
    let name = &table.table.name;
    // An invalid name was refused with the table.
    let key = table.table.primary_key();
    let key = key.map(|key| snake(&key.accessor).unwrap_or_default());
    let by_key = key.map(|key| format!(".with_updates_by_pk(|row| &row.{key})"));
    let by_key = by_key.unwrap_or_default();
    format!("diff.{field} = cache.apply_diff_to_table::<{row}>(\"{name}\", &self.{field}){by_key};")
}
