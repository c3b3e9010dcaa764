//! `mod.rs`: the types that `spacetimedb-sdk` is generic over, made of the module's tables and functions.

use super::style::{pascal, row_type, snake, start};
use crate::bindings::Options;
use crate::error::Result;
use crate::module::{file_stem, Level, Table};
use crate::text::Text;

struct TableNames<'a> {
    table: &'a Table,
    field: String,
    file: String,
    row: String,
}

struct ReducerNames {
    variant: String,
    file: String,
    name: String,
    fields: Vec<(String, String)>,
}

impl ReducerNames {
    /// `Self::Add { name, age }` as a pattern, or with the same names as an expression.
    fn braced(&self) -> String {
        let names: Vec<&str> = self.fields.iter().map(|(name, _)| name.as_str()).collect();
        format!("{{ {} }}", names.join(", "))
    }
}

pub(super) fn file(level: &Level, options: &Options) -> Result<String> {
    let mut tables = Vec::new();
    for table in &level.tables {
        tables.push(TableNames {
            table,
            field: snake(&table.accessor)?,
            file: file_stem(&table.accessor, "table"),
            row: row_type(level, table.row_type, &table.name)?,
        });
    }
    let mut reducers = Vec::new();
    for reducer in &level.reducers {
        let mut fields = Vec::new();
        for (name, ty) in &reducer.params {
            let place = format!("parameter `{name}` of `{}`", reducer.name);
            fields.push((
                snake(name)?,
                super::types::rust_type(&level.types, ty, &place)?,
            ));
        }
        reducers.push(ReducerNames {
            variant: pascal(&reducer.accessor)?,
            file: file_stem(&reducer.accessor, "reducer"),
            name: reducer.name.clone(),
            fields,
        });
    }

    let mut text = Text::new("    ");
    text.lines(&start().finish().replace(
        "#![allow",
        &format!(
            "// This was generated using spacetimedb cli version {} (commit {}).\n\n#![allow",
            options.cli_version, options.commit
        ),
    ));
    modules(&mut text, level)?;
    reducer_enum(&mut text, &reducers);
    update(&mut text, &tables);
    applied(&mut text, &tables);
    remote_module(&mut text, &tables);
    text.blank().lines(include_str!("contexts.rs.txt"));
    Ok(text.finish())
}

fn modules(text: &mut Text, level: &Level) -> Result<()> {
    text.blank();
    let mut uses = Vec::new();
    for name in level.types.sorted.keys() {
        let file = file_stem(name, "type");
        text.line(format!("pub mod {file};"));
        uses.push(format!("pub use {file}::{name};"));
    }
    for table in &level.tables {
        let file = file_stem(&table.accessor, "table");
        text.line(format!("pub mod {file};"));
        uses.push(format!("pub use {file}::*;"));
    }
    for (functions, kind) in [
        (&level.reducers, "reducer"),
        (&level.procedures, "procedure"),
    ] {
        for function in functions {
            let file = file_stem(&function.accessor, kind);
            text.line(format!("pub mod {file};"));
            uses.push(format!("pub use {file}::{};", snake(&function.accessor)?));
        }
    }
    text.blank();
    uses.iter().for_each(|line| {
        text.line(line);
    });
    Ok(())
}

fn reducer_enum(text: &mut Text, reducers: &[ReducerNames]) {
    text.blank()
        .line("/// One value for every reducer, with its arguments.");
    text.line("#[derive(Clone, PartialEq, Debug)]");
    text.block("pub enum Reducer {", "}", |text| {
        for reducer in reducers {
            let fields: Vec<String> = reducer
                .fields
                .iter()
                .map(|(name, ty)| format!("{name}: {ty}"))
                .collect();
            text.line(format!("{} {{ {} }},", reducer.variant, fields.join(", ")));
        }
    });
    text.blank()
        .lines("impl __sdk::InModule for Reducer {\n    type Module = RemoteModule;\n}");
    text.blank()
        .block("impl __sdk::Reducer for Reducer {", "}", |text| {
            text.block("fn reducer_name(&self) -> &'static str {", "}", |text| {
                if reducers.is_empty() {
                    text.line("match *self {}");
                    return;
                }
                text.block("match self {", "}", |text| {
                    for r in reducers {
                        text.line(format!(
                            "Reducer::{} {{ .. }} => \"{}\",",
                            r.variant, r.name
                        ));
                    }
                });
            });
            text.blank();
            text.block(
                "fn args_bsatn(&self) -> Result<Vec<u8>, __sats::bsatn::EncodeError> {",
                "}",
                |text| {
                    if reducers.is_empty() {
                        text.line("match *self {}");
                        return;
                    }
                    text.block("match self.clone() {", "}", |text| {
                        for r in reducers {
                            let braced = r.braced();
                            text.line(format!(
                        "Reducer::{} {braced} => __sats::bsatn::to_vec(&{}::{}Args {braced}),",
                        r.variant, r.file, r.variant
                    ));
                        }
                    });
                },
            );
        });
}

/// A match over names of tables that appends to a field each, and refuses other names.
fn append_rows(
    text: &mut Text,
    tables: &[TableNames<'_>],
    name: &str,
    kind: &str,
    rows: &dyn Fn(&TableNames<'_>) -> String,
) {
    text.block(format!("match &{name}[..] {{"), "}", |text| {
        for table in tables {
            text.line(format!(
                "\"{}\" => db_update.{}.append({}),",
                table.table.name,
                table.field,
                rows(table)
            ));
        }
        text.line(format!(
            "unknown => return Err(__sdk::InternalError::unknown_name(\"table\", unknown, \"{kind}\").into()),"
        ));
    });
}

fn update(text: &mut Text, tables: &[TableNames<'_>]) {
    text.blank().line("/// The rows of a message, by table.");
    text.line("#[derive(Default, Debug)]");
    text.block("pub struct DbUpdate {", "}", |text| {
        for table in tables {
            text.line(format!(
                "{}: __sdk::TableUpdate<{}>,",
                table.field, table.row
            ));
        }
    });
    text.blank().block(
        "impl TryFrom<__ws::v2::TransactionUpdate> for DbUpdate {",
        "}",
        |text| {
            text.line("type Error = __sdk::Error;").blank();
            text.block(
                "fn try_from(raw: __ws::v2::TransactionUpdate) -> Result<Self, Self::Error> {",
                "}",
                |text| {
                    text.line("let mut db_update = DbUpdate::default();");
                    text.block(
                        "for table_update in __sdk::transaction_update_iter_table_updates(raw) {",
                        "}",
                        |text| {
                            append_rows(
                                text,
                                tables,
                                "table_update.table_name",
                                "DatabaseUpdate",
                                &|table| {
                                    format!("{}::parse_table_update(table_update)?", table.file)
                                },
                            );
                        },
                    );
                    text.line("Ok(db_update)");
                },
            );
        },
    );
    text.blank()
        .lines("impl __sdk::InModule for DbUpdate {\n    type Module = RemoteModule;\n}");
    text.blank().block("impl __sdk::DbUpdate for DbUpdate {", "}", |text| {
        text.block(
            "fn apply_to_client_cache(&self, cache: &mut __sdk::ClientCache<RemoteModule>) -> AppliedDiff<'_> {",
            "}",
            |text| {
                text.line("let mut diff = AppliedDiff::default();");
                for table in tables {
                    text.line(apply(table));
                }
                text.line("diff");
            },
        );
        for (method, rows) in [
            ("parse_initial_rows", "parse_row_list_as_inserts"),
            ("parse_unsubscribe_rows", "parse_row_list_as_deletes"),
        ] {
            text.blank();
            text.block(format!("fn {method}(raw: __ws::v2::QueryRows) -> __sdk::Result<Self> {{"), "}", |text| {
                text.line("let mut db_update = DbUpdate::default();");
                text.block("for table_rows in raw.tables {", "}", |text| {
                    append_rows(text, tables, "table_rows.table", "QueryRows", &|_| {
                        format!("__sdk::{rows}(table_rows.rows)?")
                    });
                });
                text.line("Ok(db_update)");
            });
        }
    });
}

fn apply(table: &TableNames<'_>) -> String {
    let TableNames { field, row, .. } = table;
    if table.table.is_event {
        return format!("diff.{field} = self.{field}.into_event_diff();");
    }
    let name = &table.table.name;
    let by_key = match table.table.primary_key() {
        // An invalid name was refused with the table.
        Some(key) => format!(
            ".with_updates_by_pk(|row| &row.{})",
            snake(&key.accessor).unwrap_or_default()
        ),
        None => String::new(),
    };
    format!("diff.{field} = cache.apply_diff_to_table::<{row}>(\"{name}\", &self.{field}){by_key};")
}

fn applied(text: &mut Text, tables: &[TableNames<'_>]) {
    text.blank()
        .line("/// What a message changed in the cache.");
    text.line("#[derive(Default)]");
    text.block("pub struct AppliedDiff<'r> {", "}", |text| {
        for table in tables {
            text.line(format!(
                "{}: __sdk::TableAppliedDiff<'r, {}>,",
                table.field, table.row
            ));
        }
        text.line("__unused: std::marker::PhantomData<&'r ()>,");
    });
    text.blank()
        .lines("impl __sdk::InModule for AppliedDiff<'_> {\n    type Module = RemoteModule;\n}");
    text.blank().block("impl<'r> __sdk::AppliedDiff<'r> for AppliedDiff<'r> {", "}", |text| {
        text.block(
            "fn invoke_row_callbacks(&self, event: &EventContext, callbacks: &mut __sdk::DbCallbacks<RemoteModule>) {",
            "}",
            |text| {
                for table in tables {
                    text.line(format!(
                        "callbacks.invoke_table_row_callbacks::<{}>(\"{}\", &self.{}, event);",
                        table.row, table.table.name, table.field
                    ));
                }
            },
        );
    });
}

fn remote_module(text: &mut Text, tables: &[TableNames<'_>]) {
    text.blank().line("/// The module itself, as a type.");
    text.line("#[derive(Debug)]")
        .line("pub struct RemoteModule;");
    text.blank()
        .lines("impl __sdk::InModule for RemoteModule {\n    type Module = Self;\n}");
    text.blank().block("impl __sdk::SpacetimeModule for RemoteModule {", "}", |text| {
        for name in [
            "DbConnection", "EventContext", "ReducerEventContext", "ProcedureEventContext",
            "SubscriptionEventContext", "ErrorContext", "Reducer",
        ] {
            text.line(format!("type {name} = {name};"));
        }
        text.lines(
            "type DbView = RemoteTables;\ntype Reducers = RemoteReducers;\ntype Procedures = RemoteProcedures;\n\
             type DbUpdate = DbUpdate;\ntype AppliedDiff<'r> = AppliedDiff<'r>;\n\
             type SubscriptionHandle = SubscriptionHandle;\ntype QueryBuilder = __sdk::QueryBuilder;",
        );
        text.blank();
        text.block("fn register_tables(client_cache: &mut __sdk::ClientCache<Self>) {", "}", |text| {
            for table in tables {
                text.line(format!("{}::register_table(client_cache);", table.file));
            }
        });
        let names: Vec<String> = tables.iter().map(|t| format!("\"{}\"", t.table.name)).collect();
        text.blank().line(format!(
            "const ALL_TABLE_NAMES: &'static [&'static str] = &[{}];",
            names.join(", ")
        ));
    });
}
