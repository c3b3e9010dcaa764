//! What the command line needs to know of a module: its functions and the shape of its rows.

use std::sync::Arc;

use lightcone_schema::raw::{
    ExplicitNameEntry, ExplicitNames, NameMapping, RawMiscModuleExportV9, RawModuleDef,
    RawModuleDefV10, RawModuleDefV10Section, RawModuleDefV9, RawVersion,
};
use lightcone_types::{AlgebraicType, ColId, Identity, ProductType, TypeRef, Typespace};
use strsim::levenshtein;

use crate::error::Result;
use crate::http::{self, Client};

/// The definition of a running module, as the server tells it.
#[derive(Debug, Default)]
pub struct Schema {
    pub reducers: Vec<Function>,
    pub procedures: Vec<Function>,
    /// Tables and views: everything that rows can come from.
    pub tables: Vec<Rows>,
    /// The server's JSON, for `describe`.
    pub json: String,
}

/// A reducer or a procedure, under the name that calls it.
#[derive(Clone, Debug)]
pub struct Function {
    pub name: String,
    pub params: ProductType,
    pub typespace: Arc<Typespace>,
}

/// A table or a view, under the name that subscriptions report.
#[derive(Clone, Debug)]
pub struct Rows {
    pub name: String,
    pub row: AlgebraicType,
    pub typespace: Arc<Typespace>,
    /// Rows stay in it: it is no view, and no event table.
    pub is_stored: bool,
    /// Number and name of the column that is the primary key, if SQL has literals of its type that are as in JSON, or nearly.
    pub key: Option<(usize, String)>,
}

impl Schema {
    /// Asks for version 10, then 9 (07 §4.3).
    pub async fn fetch(client: &Client, database: &Identity) -> Result<Self> {
        let path = |version: u8| format!("/v1/database/{database}/schema?version={version}");
        let response = client.send(client.get(&path(10))).await?;
        if !response.status().is_client_error() {
            return Self::parse(RawVersion::V10, http::success_json(response).await?);
        }
        let json = client.json(client.get(&path(9))).await?;
        Self::parse(RawVersion::V9, json)
    }

    pub fn parse(version: RawVersion, json: String) -> Result<Self> {
        let raw = RawModuleDef::from_schema_json(version, &json).map_err(caused!(
            "LC0616",
            "the server's description of the module is not one this program can read"
        ))?;
        let mut schema = Self::default();
        match raw {
            RawModuleDef::V10(raw) => schema.add_v10("", raw),
            RawModuleDef::V9(raw) => schema.add_v9(raw),
        }
        schema.json = json;
        Ok(schema)
    }

    fn add_v9(&mut self, raw: RawModuleDefV9) {
        let typespace = Arc::new(raw.typespace);
        let function = |name, params| Function::new(name, params, &typespace);
        for table in raw.tables {
            let key = key_of(&table.primary_key, table.product_type_ref, &typespace);
            self.add_rows(table.name, table.product_type_ref, &typespace, true, key);
        }
        let reducers = raw.reducers.into_iter();
        self.reducers
            .extend(reducers.map(|r| function(r.name, r.params)));
        for export in raw.misc_exports {
            match export {
                RawMiscModuleExportV9::Procedure(p) => {
                    self.procedures.push(function(p.name, p.params))
                }
                RawMiscModuleExportV9::View(view) => {
                    self.add_view(view.name, &view.return_type, &typespace)
                }
                RawMiscModuleExportV9::ColumnDefaultValue(_) => {}
            }
        }
    }

    /// Adds a module's definitions under `prefix`, then those of its submodules.
    fn add_v10(&mut self, prefix: &str, raw: RawModuleDefV10) {
        use RawModuleDefV10Section as Section;
        let (mut typespace, mut names) = (Typespace::default(), ExplicitNames::default());
        for section in &raw.sections {
            match section {
                Section::Typespace(found) => typespace = found.clone(),
                Section::ExplicitNames(found) => names = found.clone(),
                _ => {}
            }
        }
        let typespace = Arc::new(typespace);
        let name_of = |source: String, kind: Named| {
            let chosen = names
                .entries
                .iter()
                .rev()
                .find_map(|entry| kind(entry).filter(|mapping| mapping.source_name == source));
            let name = chosen.map_or(&source, |mapping| &mapping.canonical_name);
            format!("{prefix}{name}")
        };
        let table_names: Named = |entry| match entry {
            ExplicitNameEntry::Table(mapping) => Some(mapping),
            _ => None,
        };
        let called: Named = |entry| match entry {
            ExplicitNameEntry::Function(mapping) => Some(mapping),
            _ => None,
        };
        let namespace: Named = |entry| match entry {
            ExplicitNameEntry::Namespace(mapping) => Some(mapping),
            _ => None,
        };
        let function = |source, params| Function::new(name_of(source, called), params, &typespace);
        for section in raw.sections {
            match section {
                Section::Tables(tables) => tables.into_iter().for_each(|table| {
                    let name = name_of(table.source_name, table_names);
                    let is_stored = !table.is_event;
                    let row = table.product_type_ref;
                    let key = key_of(&table.primary_key, row, &typespace);
                    self.add_rows(name, row, &typespace, is_stored, key);
                }),
                Section::Views(views) => views.into_iter().for_each(|view| {
                    let name = name_of(view.source_name, called);
                    self.add_view(name, &view.return_type, &typespace);
                }),
                Section::Reducers(reducers) => {
                    let reducers = reducers.into_iter();
                    self.reducers
                        .extend(reducers.map(|r| function(r.source_name, r.params)));
                }
                Section::Procedures(list) => {
                    let procedures = list.into_iter();
                    self.procedures
                        .extend(procedures.map(|p| function(p.source_name, p.params)));
                }
                Section::Submodules(submodules) => submodules.into_iter().for_each(|below| {
                    self.add_v10(
                        &format!("{}.", name_of(below.namespace, namespace)),
                        below.module,
                    );
                }),
                _ => {}
            }
        }
    }

    fn add_rows(
        &mut self,
        name: String,
        row: TypeRef,
        typespace: &Arc<Typespace>,
        is_stored: bool,
        key: Option<(usize, String)>,
    ) {
        self.tables.push(Rows {
            name,
            row: AlgebraicType::Ref(row),
            typespace: typespace.clone(),
            is_stored,
            key,
        });
    }

    fn add_view(&mut self, name: String, return_type: &AlgebraicType, typespace: &Arc<Typespace>) {
        if let Some(row) = view_row(return_type) {
            self.add_rows(name, row, typespace, false, None);
        }
    }

    pub fn rows(&self, table: &str) -> Option<&Rows> {
        self.tables.iter().find(|t| t.name == table)
    }
}

fn key_of(primary_key: &[ColId], row: TypeRef, typespace: &Typespace) -> Option<(usize, String)> {
    let [ColId(column)] = primary_key else {
        return None;
    };
    let AlgebraicType::Product(row) = typespace.get(row)? else {
        return None;
    };
    let number = usize::from(*column);
    let column = row.elements.get(number)?;
    match column.algebraic_type {
        AlgebraicType::U256 | AlgebraicType::I256 => None,
        AlgebraicType::String | AlgebraicType::Integer(_) => {
            Some((number, column.name()?.to_owned()))
        }
        _ => None,
    }
}

/// The explicit name in an entry, if it is one of that kind.
type Named = fn(&ExplicitNameEntry) -> Option<&NameMapping>;

/// The row type inside of a view's answer: an array, an option, or a query of rows.
fn view_row(return_type: &AlgebraicType) -> Option<TypeRef> {
    match return_type {
        AlgebraicType::Ref(row) => Some(*row),
        AlgebraicType::Array(element) => view_row(element),
        _ => view_row(return_type.parts().next()?.1),
    }
}

impl Function {
    fn new(name: String, params: ProductType, typespace: &Arc<Typespace>) -> Self {
        Self {
            name,
            params,
            typespace: typespace.clone(),
        }
    }

    /// `transfer(from: U32, to: U32)`, for errors.
    pub fn signature(&self) -> String {
        let params = self.params.elements.iter().map(|param| {
            let ty = self.typespace.resolve(&param.algebraic_type);
            let ty = ty.map_or_else(|_| "?".into(), |ty| ty.type_name());
            match param.name() {
                Some(name) => format!("{name}: {ty}"),
                None => ty,
            }
        });
        format!("{}({})", self.name, params.collect::<Vec<_>>().join(", "))
    }
}

/// The names closest to `wanted`, best first.
pub fn similar<'a>(wanted: &str, names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let distance = |name: &str| levenshtein(&wanted.to_lowercase(), &name.to_lowercase());
    let mut scored: Vec<(usize, &str)> = names.map(|name| (distance(name), name)).collect();
    scored.retain(|(distance, name)| *distance <= name.len().max(wanted.len()) / 2);
    scored.sort();
    scored.into_iter().map(|(_, name)| name).take(5).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXAMPLE: &str = r#"{"sections":[
 {"Typespace":{"types":[
   {"Product":{"elements":[{"name":{"some":"id"},"algebraic_type":{"U64":[]}},{"name":{"some":"name"},"algebraic_type":{"String":[]}}]}}]}},
 {"Tables":[{"source_name":"person","product_type_ref":0,"primary_key":[0],"indexes":[],"constraints":[],"sequences":[],
   "table_type":{"User":[]},"table_access":{"Public":[]},"default_values":[],"is_event":false}]},
 {"Reducers":[{"source_name":"addOne","params":{"elements":[{"name":{"some":"name"},"algebraic_type":{"String":[]}}]},
   "visibility":{"ClientCallable":[]},"ok_return_type":{"Product":{"elements":[]}},"err_return_type":{"String":[]}}]},
 {"ExplicitNames":{"entries":[{"Table":{"source_name":"person","canonical_name":"people"}},
                              {"Function":{"source_name":"addOne","canonical_name":"add_one"}}]}}]}"#;

    #[test]
    fn canonical_names_are_used() {
        let schema =
            Schema::parse(RawVersion::V10, EXAMPLE.into()).expect("an example of the chapter");
        assert_eq!(schema.reducers[0].signature(), "add_one(name: String)");
        let rows = schema.rows("people").expect("the table");
        assert!(rows.typespace.resolve(&rows.row).is_ok());
        assert!(schema.rows("person").is_none());
    }

    #[test]
    fn suggestions_are_near() {
        let names = ["transfer", "seed", "transform"];
        assert_eq!(
            similar("trasfer", names.into_iter()),
            ["transfer", "transform"]
        );
        assert!(similar("xyz", names.into_iter()).is_empty());
    }
}
