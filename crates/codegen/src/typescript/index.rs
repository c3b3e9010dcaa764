//! `index.ts`, the root file (07 §8.1).

use std::collections::BTreeMap;

use lightcone_schema::case::to_camel;

use super::style::{import, item_name, item_path, property, quoted, start, Context};
use crate::error::{Error, Result};
use crate::module::{Function, Level, Module, Table};
use crate::text::Text;

pub(super) fn index(context: &Context<'_>, module: &Module) -> Result<String> {
    let has_procedures = module.procedures().next().is_some();
    let has_reducers = module.reducers().next().is_some();
    let has_tables = module.tables().next().is_some();
    let aliases = aliases(module);

    let mut uses = vec![
        "DbConnectionBuilder",
        "DbConnectionImpl",
        "SubscriptionBuilderImpl",
    ];
    uses.extend(["convertToAccessorMap", "makeQueryBuilder"]);
    uses.extend(has_procedures.then_some("procedureSchema"));
    uses.push("procedures");
    uses.extend(has_reducers.then_some("reducerSchema"));
    uses.extend(["reducers", "schema"]);
    uses.extend(has_tables.then_some("table"));
    uses.extend([
        "type DbConnectionConfig",
        "type ErrorContextInterface",
        "type EventContextInterface",
        "type QueryBuilder",
        "type ReducerEventContextInterface",
        "type RemoteModule",
        "type SubscriptionEventContextInterface",
        "type SubscriptionHandleImpl",
    ]);
    let mut text = start();
    text.line(format!(
        "// This was generated using spacetimedb cli version {} (commit {}).",
        context.options.cli_version, context.options.commit
    ));
    text.blank();
    import(&mut text, context, &uses);
    import_items(&mut text, module);
    schemas(&mut text, module);
    remote_module(&mut text, context);
    accessors(&mut text, &aliases, module)?;
    connection(&mut text, &aliases);
    Ok(text.finish())
}

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
    (
        item_name(level, accessor, suffix),
        item_path(level, accessor, kind),
    )
}

/// The key of a table: its camel name; with the namespaces before it for those of submodules.
fn table_key(level: &Level, table: &Table) -> String {
    let mut key: Vec<String> = level.path.clone();
    key.push(to_camel(&table.accessor));
    key.join(".")
}

fn schemas(text: &mut Text, module: &Module) {
    text.blank()
        .line("/** The tables and views of the module. */");
    text.block("const tablesSchema = __schema({", "});", |text| {
        for (level, table) in module.tables() {
            let key = property(&table_key(level, table));
            let row = item_name(level, &table.accessor, "Row");
            text.block(
                format!("{key}: __table({{"),
                format!("}}, {row}),"),
                |text| {
                    table_options(text, table);
                },
            );
        }
    });
    text.blank()
        .line("/** The reducers of the module that clients may call. */");
    text.block("const reducersSchema = __reducers(", ");", |text| {
        for (level, reducer) in module.reducers() {
            let name = item_name(level, &reducer.accessor, "Reducer");
            text.line(format!(
                "__reducerSchema({}, {name}),",
                quoted(&reducer.name)
            ));
        }
    });
    text.blank()
        .line("/** The procedures of the module that clients may call. */");
    text.block("const proceduresSchema = __procedures(", ");", |text| {
        for (level, procedure) in module.procedures() {
            let name = item_name(level, &procedure.accessor, "Procedure");
            text.line(format!(
                "__procedureSchema({}, {name}.params, {name}.returnType),",
                quoted(&procedure.name)
            ));
        }
    });
}

fn table_options(text: &mut Text, table: &Table) {
    let columns = |positions: &[usize]| {
        let names: Vec<String> = positions
            .iter()
            .filter_map(|at| table.columns.get(*at))
            .map(|column| quoted(&to_camel(&column.accessor)))
            .collect();
        format!("[{}]", names.join(", "))
    };
    text.line(format!("name: {},", quoted(&table.name)));
    if table.indexes.is_empty() {
        text.line("indexes: [],");
    } else {
        text.block("indexes: [", "],", |text| {
            for index in &table.indexes {
                // The client keeps every index as a B-tree.
                text.line(format!(
                    "{{ accessor: {}, name: {}, algorithm: \"btree\", columns: {} }},",
                    quoted(&index.accessor),
                    quoted(&index.name),
                    columns(&index.columns)
                ));
            }
        });
    }
    if table.constraints.is_empty() {
        text.line("constraints: [],");
    } else {
        text.block("constraints: [", "],", |text| {
            for constraint in &table.constraints {
                text.line(format!(
                    "{{ name: {}, constraint: \"unique\", columns: {} }},",
                    quoted(&constraint.name),
                    columns(&constraint.columns)
                ));
            }
        });
    }
    if table.is_event {
        text.line("event: true,");
    }
}

fn remote_module(text: &mut Text, context: &Context<'_>) {
    let version = quoted(&context.options.cli_version);
    text.blank()
        .line("/** The module, as the client package sees it. */");
    text.block(
        "const REMOTE_MODULE = {",
        "} satisfies __RemoteModule<\n  typeof tablesSchema.schemaType,\n  typeof reducersSchema.reducersType,\n  typeof proceduresSchema\n>;",
        |text| {
            text.block("versionInfo: {", "},", |text| {
                text.line(format!("cliVersion: {version} as const,"));
            });
            text.line("tables: tablesSchema.schemaType.tables,");
            text.line("reducers: reducersSchema.reducersType.reducers,");
            text.line("...proceduresSchema,");
        },
    );
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

fn accessors(text: &mut Text, aliases: &[(String, String)], module: &Module) -> Result<()> {
    text.blank();
    if aliases.is_empty() {
        text.line("/** Queries on the tables and views, to subscribe to. */");
        text.line(
            "export const tables: __QueryBuilder<typeof tablesSchema.schemaType> = __makeQueryBuilder(tablesSchema.schemaType);",
        );
    } else {
        alias_helper(text, aliases);
        text.blank();
        text.line("type __Queries = __QueryBuilder<typeof tablesSchema.schemaType>;");
        alias_type(text, "Tables", "__Queries", aliases);
        text.line("/** Queries on the tables and views, to subscribe to. */");
        text.line("export const tables: Tables = __withAliases<__Queries, Tables>(__makeQueryBuilder(tablesSchema.schemaType));");
    }
    let names = |functions: Vec<&Function>| -> Vec<String> {
        let keys = functions
            .iter()
            .map(|function| accessor_key(&function.name));
        keys.collect()
    };
    let reducers = names(module.reducers().map(|(_, function)| function).collect());
    let procedures = names(module.procedures().map(|(_, function)| function).collect());
    accessor_map(
        text,
        "reducers",
        "reducersSchema.reducersType.reducers",
        &reducers,
    )?;
    accessor_map(
        text,
        "procedures",
        "proceduresSchema.procedures",
        &procedures,
    )
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
        let (name, rest) = match path.split_once('.') {
            Some((name, rest)) => (name, Some(rest)),
            None => (path, None),
        };
        let is_taken = match rest {
            Some(_) => self.functions.contains_key(name),
            None => self.functions.contains_key(name) || self.namespaces.contains_key(name),
        };
        if is_taken {
            return Err(Error::SameName(name.to_owned()));
        }
        match rest {
            Some(rest) => {
                let below = self.namespaces.entry(name.to_owned()).or_default();
                below.insert(rest, key)?;
            }
            None => {
                self.functions.insert(name.to_owned(), key.to_owned());
            }
        }
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

fn alias_helper(text: &mut Text, aliases: &[(String, String)]) {
    text.line("/** Names that tables have in the module, and those that clients write. */");
    text.block(
        "const __ALIASES: Readonly<Record<string, string>> = {",
        "};",
        |text| {
            for (accessor, camel) in aliases {
                text.line(format!("{}: {},", property(accessor), quoted(camel)));
            }
        },
    );
    text.blank();
    text.block("function __withAliases<T extends object, A extends T>(target: T): A {", "}", |text| {
        text.line("const all = Object.create(Object.getPrototypeOf(target), Object.getOwnPropertyDescriptors(target));");
        text.block("for (const [alias, name] of Object.entries(__ALIASES)) {", "}", |text| {
            text.block("if (!(alias in all)) {", "}", |text| {
                text.line("Object.defineProperty(all, alias, { enumerable: true, get: () => all[name] });");
            });
        });
        text.line("return all;");
    });
}

fn alias_type(text: &mut Text, name: &str, base: &str, aliases: &[(String, String)]) {
    text.block(format!("export type {name} = {base} & {{"), "};", |text| {
        for (accessor, camel) in aliases {
            text.line(format!("/** @deprecated Use `{camel}`. */"));
            text.line(format!(
                "readonly {}: {base}[{}];",
                property(accessor),
                quoted(camel)
            ));
        }
    });
}

fn connection(text: &mut Text, aliases: &[(String, String)]) {
    for (doc, name) in [
        ("row callbacks", "EventContext"),
        ("reducer callbacks", "ReducerEventContext"),
        ("subscription callbacks", "SubscriptionEventContext"),
        ("error callbacks", "ErrorContext"),
    ] {
        text.blank().line(format!("/** The context of {doc}. */"));
        text.line(format!(
            "export type {name} = __{name}Interface<typeof REMOTE_MODULE>;"
        ));
    }
    text.blank()
        .line("/** A subscription, to end it and to ask after it. */");
    text.line("export type SubscriptionHandle = __SubscriptionHandleImpl<typeof REMOTE_MODULE>;");
    text.blank().line("/** Sets a subscription up. */");
    text.line("export class SubscriptionBuilder extends __SubscriptionBuilderImpl<typeof REMOTE_MODULE> {}");
    text.blank().line("/** Sets a connection up. */");
    text.line("export class DbConnectionBuilder extends __DbConnectionBuilder<DbConnection> {}");
    if !aliases.is_empty() {
        text.blank();
        text.line("type __Db = __DbConnectionImpl<typeof REMOTE_MODULE>[\"db\"];");
        text.line("/** The tables and views in a connection's cache. */");
        alias_type(text, "DbView", "__Db", aliases);
    }
    text.blank()
        .line("/** A connection to a database that runs the module. */");
    text.block("export class DbConnection extends __DbConnectionImpl<typeof REMOTE_MODULE> {", "}", |text| {
        if !aliases.is_empty() {
            text.line("declare db: DbView;");
            text.blank();
            text.block(
                "constructor(config: __DbConnectionConfig<typeof REMOTE_MODULE>) {",
                "}",
                |text| {
                    text.line("super(config);");
                    text.line("this.db = __withAliases<__Db, DbView>(this.db);");
                },
            );
            text.blank();
        }
        text.line("/** Creates a new connection builder. */");
        text.block("static builder = (): DbConnectionBuilder => {", "};", |text| {
            text.line("return new DbConnectionBuilder(REMOTE_MODULE, (config: __DbConnectionConfig<typeof REMOTE_MODULE>) => new DbConnection(config));");
        });
        text.blank();
        text.line("/** Creates a new subscription builder. */");
        text.block("override subscriptionBuilder = (): SubscriptionBuilder => {", "};", |text| {
            text.line("return new SubscriptionBuilder(this);");
        });
    });
}
