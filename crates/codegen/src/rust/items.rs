//! The files of tables, reducers and procedures.

use std::collections::BTreeSet;

use lightcone_schema::case::to_snake;

use super::style::{self, import_types, row_type, snake, start};
use super::types::rust_type;
use crate::error::Result;
use crate::module::{Column, Function, Level, Table};
use crate::text::Text;

/// `<snake>_table.rs`: the handle of a table in the client's cache.
pub(super) fn table(level: &Level, table: &Table, writes_columns: bool) -> Result<String> {
    let row = row_type(level, table.row_type, &table.name)?;
    let pascal = style::pascal(&table.accessor)?;
    let method = snake(&table.accessor)?;
    let name = &table.name;
    let mut mentioned = BTreeSet::from([row.as_str()]);
    for column in &table.columns {
        level.types.mentioned(&column.ty, &mut mentioned);
    }
    let unique = unique_columns(level, table)?;

    let mut text = start();
    import_types(&mut text, &mentioned);
    text.blank().lines(&format!(
        "/// The table `{name}` in the client's cache.\n\
         pub struct {pascal}TableHandle<'ctx> {{\n    imp: __sdk::TableHandle<{row}>,\n    ctx: std::marker::PhantomData<&'ctx super::RemoteTables>,\n}}\n\
         \n\
         /// Adds `{method}()` to a context's `db`.\n\
         #[allow(non_camel_case_types)]\n\
         pub trait {pascal}TableAccess {{\n    fn {method}(&self) -> {pascal}TableHandle<'_>;\n}}\n\
         \n\
         impl {pascal}TableAccess for super::RemoteTables {{\n    fn {method}(&self) -> {pascal}TableHandle<'_> {{\n        {pascal}TableHandle {{\n            imp: self.imp.get_table::<{row}>(\"{name}\"),\n            ctx: std::marker::PhantomData,\n        }}\n    }}\n}}\n\
         \n\
         pub struct {pascal}InsertCallbackId(__sdk::CallbackId);"
    ));
    if !table.is_event {
        text.line(format!(
            "pub struct {pascal}DeleteCallbackId(__sdk::CallbackId);"
        ));
    }
    text.blank();
    let kind = if table.is_event {
        "EventTable"
    } else {
        "Table"
    };
    text.block(
        format!("impl<'ctx> __sdk::{kind} for {pascal}TableHandle<'ctx> {{"),
        "}",
        |text| {
            text.lines(&format!(
                "type Row = {row};\ntype EventContext = super::EventContext;\n\n\
             fn count(&self) -> u64 {{\n    self.imp.count()\n}}\n\n\
             fn iter(&self) -> impl Iterator<Item = {row}> + '_ {{\n    self.imp.iter()\n}}"
            ));
            callbacks(text, &pascal, &row, "insert", "Insert");
            if !table.is_event {
                callbacks(text, &pascal, &row, "delete", "Delete");
            }
        },
    );
    if table.primary_key().is_some() && !table.is_event {
        text.blank().line(format!(
            "pub struct {pascal}UpdateCallbackId(__sdk::CallbackId);"
        ));
        text.blank().block(
            format!("impl<'ctx> __sdk::TableWithPrimaryKey for {pascal}TableHandle<'ctx> {{"),
            "}",
            |text| callbacks(text, &pascal, &row, "update", "Update"),
        );
    }
    for (column, ty) in &unique {
        let (column, field) = (style::pascal(&column.accessor)?, snake(&column.accessor)?);
        text.blank().lines(&format!(
            "/// The unique index on `{field}` of `{name}`.\n\
             pub struct {pascal}{column}Unique<'ctx> {{\n    imp: __sdk::UniqueConstraintHandle<{row}, {ty}>,\n    phantom: std::marker::PhantomData<&'ctx super::RemoteTables>,\n}}\n\
             \n\
             impl<'ctx> {pascal}TableHandle<'ctx> {{\n    /// The unique index on `{field}`.\n    pub fn {field}(&self) -> {pascal}{column}Unique<'ctx> {{\n        {pascal}{column}Unique {{\n            imp: self.imp.get_unique_constraint::<{ty}>(\"{plain}\"),\n            phantom: std::marker::PhantomData,\n        }}\n    }}\n}}\n\
             \n\
             impl<'ctx> {pascal}{column}Unique<'ctx> {{\n    /// The subscribed row whose `{field}` is `value`.\n    pub fn find(&self, value: &{ty}) -> Option<{row}> {{\n        self.imp.find(value)\n    }}\n}}",
            plain = to_snake(&column_name(&field)),
        ));
    }
    text.blank().block(
        "pub(super) fn register_table(client_cache: &mut __sdk::ClientCache<super::RemoteModule>) {",
        "}",
        |text| {
            text.line(format!("let _table = client_cache.get_or_make_table::<{row}>(\"{name}\");"));
            for (column, ty) in &unique {
                // The name was checked above.
                let field = snake(&column.accessor).unwrap_or_default();
                text.line(format!(
                    "_table.add_unique_constraint::<{ty}>(\"{}\", |row| &row.{field});",
                    to_snake(&column_name(&field))
                ));
            }
        },
    );
    text.blank().lines(&format!(
        "pub(super) fn parse_table_update(raw_updates: __ws::v2::TableUpdate) -> __sdk::Result<__sdk::TableUpdate<{row}>> {{\n    \
             __sdk::TableUpdate::parse_table_update(raw_updates).map_err(|e| {{\n        \
                 __sdk::InternalError::failed_parse(\"TableUpdate<{row}>\", \"TableUpdate\").with_cause(e).into()\n    \
             }})\n}}"
    ));
    text.blank().lines(&format!(
        "/// Adds `{method}()` to queries: `q.from.{method}()`.\n\
         pub trait {pascal}QueryTableAccess {{\n    fn {method}(&self) -> __sdk::__query_builder::Table<{row}>;\n}}\n\
         \n\
         impl {pascal}QueryTableAccess for __sdk::QueryTableAccessor {{\n    fn {method}(&self) -> __sdk::__query_builder::Table<{row}> {{\n        __sdk::__query_builder::Table::new(\"{name}\")\n    }}\n}}"
    ));
    if writes_columns {
        columns(&mut text, level, table, &row)?;
    }
    Ok(text.finish())
}

/// The name of a field without `r#`.
fn column_name(field: &str) -> String {
    field.trim_start_matches("r#").to_owned()
}

fn callbacks(text: &mut Text, pascal: &str, row: &str, event: &str, kind: &str) {
    let rows = if event == "update" {
        format!("&{row}, &{row}")
    } else {
        format!("&{row}")
    };
    text.blank().lines(&format!(
        "type {kind}CallbackId = {pascal}{kind}CallbackId;\n\n\
         fn on_{event}(\n    &self,\n    callback: impl FnMut(&Self::EventContext, {rows}) + Send + 'static,\n) -> {pascal}{kind}CallbackId {{\n    \
             {pascal}{kind}CallbackId(self.imp.on_{event}(Box::new(callback)))\n}}\n\n\
         fn remove_on_{event}(&self, callback: {pascal}{kind}CallbackId) {{\n    self.imp.remove_on_{event}(callback.0)\n}}"
    ));
}

/// Unique columns with their types.
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
    let indexed: Vec<_> = all
        .iter()
        .enumerate()
        .filter(|(position, _)| table.indexes.iter().any(|i| i.columns == [*position]))
        .map(|(_, column)| column.clone())
        .collect();
    for (doc, kind, tr, method, columns) in [
        ("columns", "Col", "HasCols", "cols", &all),
        ("indexed columns", "IxCol", "HasIxCols", "ix_cols", &indexed),
    ] {
        text.blank()
            .line(format!("/// The {doc} of `{row}`, for queries."));
        text.block(format!("pub struct {row}{kind}s {{"), "}", |text| {
            for (field, ty, _) in columns {
                text.line(format!(
                    "pub {field}: __sdk::__query_builder::{kind}<{row}, {ty}>,"
                ));
            }
        });
        text.blank().block(
            format!("impl __sdk::__query_builder::{tr} for {row} {{"),
            "}",
            |text| {
                text.line(format!("type {kind}s = {row}{kind}s;"));
                text.block(
                    format!("fn {method}(table_name: &'static str) -> Self::{kind}s {{"),
                    "}",
                    |text| {
                        text.block(format!("{row}{kind}s {{"), "}", |text| {
                            for (field, _, name) in columns {
                                text.line(format!(
                            "{field}: __sdk::__query_builder::{kind}::new(table_name, \"{name}\"),"
                        ));
                            }
                        });
                    },
                );
            },
        );
    }
    if !table.is_event {
        text.blank().line(format!(
            "impl __sdk::__query_builder::CanBeLookupTable for {row} {{}}"
        ));
    }
    Ok(())
}

/// Parameters as `a: u32, b: String`, and as `a, b`.
struct Parameters {
    fields: Vec<(String, String)>,
}

impl Parameters {
    fn new(level: &Level, function: &Function) -> Result<Self> {
        let mut fields = Vec::new();
        for (name, ty) in &function.params {
            let place = format!("parameter `{name}` of `{}`", function.name);
            fields.push((snake(name)?, rust_type(&level.types, ty, &place)?));
        }
        Ok(Self { fields })
    }

    fn declared(&self) -> String {
        self.fields
            .iter()
            .map(|(name, ty)| format!("{name}: {ty}, "))
            .collect()
    }

    fn names(&self) -> String {
        self.fields
            .iter()
            .map(|(name, _)| format!("{name}, "))
            .collect()
    }

    fn write_struct(&self, text: &mut Text, name: &str) {
        text.line(
            "#[derive(__lib::ser::Serialize, __lib::de::Deserialize, Clone, PartialEq, Debug)]",
        );
        text.line("#[sats(crate = __lib)]");
        text.block(format!("pub(super) struct {name} {{"), "}", |text| {
            for (field, ty) in &self.fields {
                text.line(format!("pub {field}: {ty},"));
            }
        });
        text.blank()
            .block(format!("impl __sdk::InModule for {name} {{"), "}", |text| {
                text.line("type Module = super::RemoteModule;");
            });
    }
}

/// `<snake>_reducer.rs`.
pub(super) fn reducer(level: &Level, reducer: &Function) -> Result<String> {
    let parameters = Parameters::new(level, reducer)?;
    let mut mentioned = BTreeSet::new();
    reducer
        .params
        .iter()
        .for_each(|(_, ty)| level.types.mentioned(ty, &mut mentioned));
    let pascal = style::pascal(&reducer.accessor)?;
    let args = format!("{pascal}Args");
    let (method, declared, names) = (
        snake(&reducer.accessor)?,
        parameters.declared(),
        parameters.names(),
    );
    let then = format!("{}_then", to_snake(&reducer.accessor));

    let mut text = start();
    import_types(&mut text, &mentioned);
    text.blank();
    parameters.write_struct(&mut text, &args);
    text.blank().block(
        format!("impl From<{args}> for super::Reducer {{"),
        "}",
        |text| {
            text.block(format!("fn from(args: {args}) -> Self {{"), "}", |text| {
                text.block(format!("Self::{pascal} {{"), "}", |text| {
                    for (field, _) in &parameters.fields {
                        text.line(format!("{field}: args.{field},"));
                    }
                });
            });
        },
    );
    let callback = "callback: impl FnOnce(&super::ReducerEventContext, Result<Result<(), String>, __sdk::InternalError>) + Send + 'static";
    text.blank().lines(&format!(
        "/// Adds the reducer `{name}` to a context's `reducers`.\n\
         #[allow(non_camel_case_types)]\n\
         pub trait {method} {{\n    \
             /// Calls the reducer and does not wait for its outcome; an error here means that it was not even sent.\n    \
             fn {method}(&self, {declared}) -> __sdk::Result<()> {{\n        self.{then}({names}|_, _| {{}})\n    }}\n\n    \
             /// Calls the reducer; `callback` gets its outcome.\n    \
             fn {then}(&self, {declared}{callback}) -> __sdk::Result<()>;\n}}\n\
         \n\
         impl {method} for super::RemoteReducers {{\n    \
             fn {then}(&self, {declared}{callback}) -> __sdk::Result<()> {{\n        self.imp.invoke_reducer_with_callback::<{args}>({args} {{ {names}}}, callback)\n    }}\n}}",
        name = reducer.name,
    ));
    Ok(text.finish())
}

/// `<snake>_procedure.rs`.
pub(super) fn procedure(level: &Level, procedure: &Function) -> Result<String> {
    let parameters = Parameters::new(level, procedure)?;
    let mut mentioned = BTreeSet::new();
    procedure
        .params
        .iter()
        .for_each(|(_, ty)| level.types.mentioned(ty, &mut mentioned));
    level
        .types
        .mentioned(&procedure.return_type, &mut mentioned);
    let place = format!("the result of `{}`", procedure.name);
    let returned = rust_type(&level.types, &procedure.return_type, &place)?;
    let args = format!("{}Args", style::pascal(&procedure.accessor)?);
    let (method, declared, names) = (
        snake(&procedure.accessor)?,
        parameters.declared(),
        parameters.names(),
    );
    let then = format!("{}_then", to_snake(&procedure.accessor));

    let mut text = start();
    import_types(&mut text, &mentioned);
    text.blank();
    parameters.write_struct(&mut text, &args);
    let callback = format!(
        "callback: impl FnOnce(&super::ProcedureEventContext, Result<{returned}, __sdk::InternalError>) + Send + 'static"
    );
    text.blank().lines(&format!(
        "/// Adds the procedure `{name}` to a context's `procedures`.\n\
         #[allow(non_camel_case_types)]\n\
         pub trait {method} {{\n    \
             /// Calls the procedure and does not wait for its outcome.\n    \
             fn {method}(&self, {declared}) {{\n        self.{then}({names}|_, _| {{}});\n    }}\n\n    \
             /// Calls the procedure; `callback` gets what it returns.\n    \
             fn {then}(&self, {declared}{callback});\n}}\n\
         \n\
         impl {method} for super::RemoteProcedures {{\n    \
             fn {then}(&self, {declared}{callback}) {{\n        self.imp.invoke_procedure_with_callback::<_, {returned}>(\"{name}\", {args} {{ {names}}}, callback);\n    }}\n}}",
        name = procedure.name,
    ));
    Ok(text.finish())
}
