//! `index.ts`, the root file (07 §8.1).

use std::collections::BTreeMap;

use lightcone_schema::case::to_camel;

use super::style::{import, item_name, item_path, property, quoted, start, Context};
use crate::error::{Error, Result};
use crate::module::{Function, Level, Module, Table};
use crate::text::{filled, joined, Text};

pub(super) fn index(context: &Context<'_>, module: &Module) -> Result<String> {
    let has_procedures = module.procedures().next().is_some();
    let has_reducers = module.reducers().next().is_some();
    let has_tables = module.tables().next().is_some();
    let aliases = aliases(module);

    let uses = USES.split(", ").filter(|name| match *name {
        "procedureSchema" => has_procedures,
        "reducerSchema" => has_reducers,
        "table" => has_tables,
        _ => true,
    });
    let uses: Vec<&str> = uses.collect();
    let mut text = start();
    text.line(format!(
        "// This was generated using spacetimedb cli version {} (commit {}).",
        context.options.cli_version, context.options.commit
    ));
    text.blank();
    import(&mut text, context, &uses);
    import_items(&mut text, module);
    schemas(&mut text, context, module);
    tables(&mut text, &aliases);
    accessors(&mut text, module)?;
    connection(&mut text, &aliases);
    Ok(text.finish())
}

/// What is imported from the client package, where the module has something that needs it.
const USES: &str =
    "DbConnectionBuilder, DbConnectionImpl, SubscriptionBuilderImpl, convertToAccessorMap, makeQueryBuilder, procedureSchema, \
     procedures, reducerSchema, reducers, schema, table, type DbConnectionConfig, type ErrorContextInterface, \
     type EventContextInterface, type QueryBuilder, type ReducerEventContextInterface, type RemoteModule, \
     type SubscriptionEventContextInterface, type SubscriptionHandleImpl";

fn import_items(text: &mut Text, module: &Module) {
    text.blank();
    for (level, reducer) in module.reducers() {
        let (name, path) = item(level, &reducer.accessor, "Reducer", "reducer");
        text.line(format!("import {name} from \"./{path}\";"));
    }
    for (level, procedure) in module.procedures() {
        let (name, path) = item(level, &procedure.accessor, "Procedure", "procedure");
        text.line(format!("import * as {name} from \"./{path}\";"));
    }
    for (level, table) in module.tables() {
        let (name, path) = item(level, &table.accessor, "Row", "table");
        text.line(format!("import {name} from \"./{path}\";"));
    }
}

fn item(level: &Level, accessor: &str, suffix: &str, kind: &str) -> (String, String) {
    let name = item_name(level, accessor, suffix);
    (name, item_path(level, accessor, kind))
}

/// The key of a table: its camel name; with the namespaces before it for those of submodules.
fn table_key(level: &Level, table: &Table) -> String {
    let path = level.path.iter().map(|namespace| format!("{namespace}."));
    path.chain([to_camel(&table.accessor)]).collect()
}

fn schemas(text: &mut Text, context: &Context<'_>, module: &Module) {
    let tables = module.tables().map(|(level, table)| {
        let key = property(&table_key(level, table));
        let row = item_name(level, &table.accessor, "Row");
        format!("{key}: __table({{\n{}}}, {row}),", table_options(table))
    });
    let reducers = module.reducers().map(|(level, reducer)| {
        let name = item_name(level, &reducer.accessor, "Reducer");
        format!("__reducerSchema({}, {name}),", quoted(&reducer.name))
    });
    let procedures = module.procedures().map(|(level, procedure)| {
        let name = item_name(level, &procedure.accessor, "Procedure");
        format!(
            "__procedureSchema({}, {name}.params, {name}.returnType),",
            quoted(&procedure.name)
        )
    });
    text.template(
        include_str!("schemas.ts.txt"),
        &[
            ("tables", &joined(tables)),
            ("reducers", &joined(reducers)),
            ("procedures", &joined(procedures)),
            ("version", &quoted(&context.options.cli_version)),
        ],
    );
}

/// The members of a table's object, indented in it.
fn table_options(table: &Table) -> String {
    let columns = |positions: &[usize]| {
        let columns = positions.iter().filter_map(|at| table.columns.get(*at));
        let names = columns.map(|column| quoted(&to_camel(&column.accessor)));
        format!("[{}]", names.collect::<Vec<_>>().join(", "))
    };
    let list = |member: &str, elements: Vec<String>| match elements[..] {
        [] => format!("  {member}: [],\n"),
        _ => format!("  {member}: [\n    {}\n  ],\n", elements.join("\n    ")),
    };
    // The client keeps every index as a B-tree.
    let indexes = table.indexes.iter().map(|index| {
        format!(
            "{{ accessor: {}, name: {}, algorithm: \"btree\", columns: {} }},",
            quoted(&index.accessor),
            quoted(&index.name),
            columns(&index.columns)
        )
    });
    let constraints = table.constraints.iter().map(|constraint| {
        let (name, columns) = (quoted(&constraint.name), columns(&constraint.columns));
        format!("{{ name: {name}, constraint: \"unique\", columns: {columns} }},")
    });
    let event = ["", "  event: true,\n"][usize::from(table.is_event)];
    let view = ["", "  takesArguments: true,\n"][usize::from(table.takes_arguments)];
    format!("  name: {},\n", quoted(&table.name))
        + &list("indexes", indexes.collect())
        + &list("constraints", constraints.collect())
        + event
        + view
}

/// Tables whose source name differs from the client's name: old code uses the former.
fn aliases(module: &Module) -> Vec<(String, String)> {
    let root = module.levels.iter().take(1);
    let tables = root.flat_map(|level| level.tables.iter());
    let pairs = tables.map(|table| (table.accessor.clone(), to_camel(&table.accessor)));
    pairs
        .filter(|(accessor, camel)| accessor != camel)
        .collect()
}

fn tables(text: &mut Text, aliases: &[(String, String)]) {
    if aliases.is_empty() {
        text.line("/** Queries on the tables and views, to subscribe to. */");
        text.line(
            "export const tables: __QueryBuilder<typeof tablesSchema.schemaType> = __makeQueryBuilder(tablesSchema.schemaType);",
        );
        return;
    }
    let names = aliases.iter();
    let names = names.map(|(name, camel)| format!("{}: {},", property(name), quoted(camel)));
    let (names, queries) = (joined(names), alias_members("__Queries", aliases));
    let values = [("names", &*names), ("queries", &*queries)];
    text.template(include_str!("aliases.ts.txt"), &values);
}

fn accessors(text: &mut Text, module: &Module) -> Result<()> {
    let keys = |functions: Vec<(&Level, &Function)>| -> Vec<String> {
        let names = functions.into_iter().map(|(_, function)| &function.name);
        names.map(|name| accessor_key(name)).collect()
    };
    let (reducers, procedures) = (module.reducers(), module.procedures());
    let all = "reducersSchema.reducersType.reducers";
    accessor_map(text, "reducers", all, &keys(reducers.collect()))?;
    let all = "proceduresSchema.procedures";
    accessor_map(text, "procedures", all, &keys(procedures.collect()))
}

/// The key of a function in `convertToAccessorMap`: its database name, where a separator and the letter behind it become a capital
/// letter. Namespaces come before it, with dots.
fn accessor_key(name: &str) -> String {
    let mut key = String::new();
    let mut follows_separator = false;
    for letter in name.chars() {
        if matches!(letter, '_' | '-') {
            follows_separator = true;
            continue;
        }
        match follows_separator {
            true => key.extend(letter.to_uppercase()),
            false if key.is_empty() => key.extend(letter.to_lowercase()),
            false => key.push(letter),
        }
        follows_separator = false;
    }
    key
}

/// `export const reducers`: one object, with objects in it for the namespaces of submodules.
fn accessor_map(text: &mut Text, kind: &str, all: &str, keys: &[String]) -> Result<()> {
    text.blank().line(format!(
        "/** The {kind}, by the names that clients write. */"
    ));
    if !keys.iter().any(|key| key.contains('.')) {
        text.line(format!(
            "export const {kind} = __convertToAccessorMap({all});"
        ));
        return Ok(());
    }
    let mut tree = Namespace::default();
    for key in keys {
        tree.insert(key, key)?;
    }
    let map = format!("__{kind}ByKey");
    text.lines(&format!("const {map} = __convertToAccessorMap({all});"));
    text.block(format!("export const {kind} = {{"), "};", |text| {
        tree.write(text, &map);
    });
    Ok(())
}

/// Functions by the last part of their key, and namespaces.
#[derive(Default)]
struct Namespace {
    functions: BTreeMap<String, String>,
    namespaces: BTreeMap<String, Namespace>,
}

impl Namespace {
    fn insert(&mut self, path: &str, key: &str) -> Result<()> {
        let (name, rest) = path.split_once('.').unwrap_or((path, ""));
        let is_function = self.functions.contains_key(name);
        if is_function || (rest.is_empty() && self.namespaces.contains_key(name)) {
            return Err(Error::SameName(name.to_owned()));
        }
        if !rest.is_empty() {
            let below = self.namespaces.entry(name.to_owned()).or_default();
            return below.insert(rest, key);
        }
        self.functions.insert(name.to_owned(), key.to_owned());
        Ok(())
    }

    fn write(&self, text: &mut Text, map: &str) {
        for (name, key) in &self.functions {
            text.line(format!("{}: {map}[{}],", property(name), quoted(key)));
        }
        for (name, below) in &self.namespaces {
            text.block(format!("{}: {{", property(name)), "},", |text| {
                below.write(text, map);
            });
        }
    }
}

fn alias_members(base: &str, aliases: &[(String, String)]) -> String {
    joined(aliases.iter().map(|(accessor, camel)| {
        let (member, name) = (property(accessor), quoted(camel));
        format!("/** @deprecated Use `{camel}`. */\nreadonly {member}: {base}[{name}];")
    }))
}

fn connection(text: &mut Text, aliases: &[(String, String)]) {
    let (mut view, mut constructor) = (String::new(), "");
    if !aliases.is_empty() {
        let members = alias_members("__Db", aliases);
        view = filled(include_str!("view.ts.txt"), &[("members", &members)]);
        constructor = include_str!("constructor.ts.txt");
    }
    text.template(
        include_str!("connection.ts.txt"),
        &[("view", &view), ("constructor", constructor)],
    );
}
