//! What the command line needs to know of a module: its functions and the shape of its rows.

use std::sync::Arc;

use lightcone_schema::raw::{
    ExplicitNameEntry, ExplicitNames, RawMiscModuleExportV9, RawModuleDef, RawModuleDefV10,
    RawModuleDefV10Section, RawVersion,
};
use lightcone_types::{AlgebraicType, Identity, ProductType, TypeRef, Typespace};
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
}

impl Schema {
    /// Asks for version 10, then 9 (07 §4.3).
    pub async fn fetch(client: &Client, database: &Identity) -> Result<Self> {
        let path = |version: u8| format!("/v1/database/{database}/schema?version={version}");
        let response = client.send(client.get(&path(10))).await?;
        let (version, response) = if response.status().is_client_error() {
            (RawVersion::V9, client.send(client.get(&path(9))).await?)
        } else {
            (RawVersion::V10, response)
        };
        Self::parse(version, http::success_json(response).await?)
    }

    pub fn parse(version: RawVersion, json: String) -> Result<Self> {
        let raw = RawModuleDef::from_schema_json(version, &json).map_err(caused!(
            "LC0616",
            "the server's description of the module is not one this program can read",
        ))?;
        let mut schema = match raw {
            RawModuleDef::V10(raw) => {
                let mut schema = Self::default();
                schema.add_v10("", raw);
                schema
            }
            RawModuleDef::V9(raw) => {
                let typespace = Arc::new(raw.typespace);
                let function = |name: String, params: ProductType| Function {
                    name,
                    params,
                    typespace: typespace.clone(),
                };
                let mut schema = Self::default();
                for table in raw.tables {
                    schema.add_rows(
                        table.name,
                        AlgebraicType::Ref(table.product_type_ref),
                        &typespace,
                    );
                }
                schema.reducers = raw
                    .reducers
                    .into_iter()
                    .map(|r| function(r.name, r.params))
                    .collect();
                for export in raw.misc_exports {
                    match export {
                        RawMiscModuleExportV9::Procedure(p) => {
                            schema.procedures.push(function(p.name, p.params))
                        }
                        RawMiscModuleExportV9::View(v) => {
                            schema.add_view(v.name, &v.return_type, &typespace)
                        }
                        RawMiscModuleExportV9::ColumnDefaultValue(_) => {}
                    }
                }
                schema
            }
        };
        schema.json = json;
        Ok(schema)
    }

    /// Adds a module's definitions under `prefix`, then those of its submodules.
    fn add_v10(&mut self, prefix: &str, raw: RawModuleDefV10) {
        let mut typespace = Typespace::default();
        let mut names = ExplicitNames::default();
        for section in &raw.sections {
            match section {
                RawModuleDefV10Section::Typespace(t) => typespace = t.clone(),
                RawModuleDefV10Section::ExplicitNames(n) => names = n.clone(),
                _ => {}
            }
        }
        let typespace = Arc::new(typespace);
        let name_of = |source: String, is_table: bool| {
            let chosen = names.entries.iter().rev().find_map(|entry| match entry {
                ExplicitNameEntry::Table(m) if is_table && m.source_name == source => {
                    Some(m.canonical_name.clone())
                }
                ExplicitNameEntry::Function(m) if !is_table && m.source_name == source => {
                    Some(m.canonical_name.clone())
                }
                _ => None,
            });
            format!("{prefix}{}", chosen.unwrap_or(source))
        };
        for section in raw.sections {
            match section {
                RawModuleDefV10Section::Tables(tables) => {
                    for table in tables {
                        let row = AlgebraicType::Ref(table.product_type_ref);
                        self.add_rows(name_of(table.source_name, true), row, &typespace);
                    }
                }
                RawModuleDefV10Section::Views(views) => {
                    for view in views {
                        self.add_view(
                            name_of(view.source_name, false),
                            &view.return_type,
                            &typespace,
                        );
                    }
                }
                RawModuleDefV10Section::Reducers(reducers) => {
                    self.reducers.extend(reducers.into_iter().map(|r| Function {
                        name: name_of(r.source_name, false),
                        params: r.params,
                        typespace: typespace.clone(),
                    }))
                }
                RawModuleDefV10Section::Procedures(list) => {
                    self.procedures.extend(list.into_iter().map(|p| Function {
                        name: name_of(p.source_name, false),
                        params: p.params,
                        typespace: typespace.clone(),
                    }))
                }
                RawModuleDefV10Section::Submodules(submodules) => {
                    for submodule in submodules {
                        self.add_v10(
                            &format!("{prefix}{}.", submodule.namespace),
                            submodule.module,
                        );
                    }
                }
                _ => {}
            }
        }
    }

    fn add_rows(&mut self, name: String, row: AlgebraicType, typespace: &Arc<Typespace>) {
        self.tables.push(Rows {
            name,
            row,
            typespace: typespace.clone(),
        });
    }

    fn add_view(&mut self, name: String, return_type: &AlgebraicType, typespace: &Arc<Typespace>) {
        if let Some(row) = view_row(return_type) {
            self.add_rows(name, AlgebraicType::Ref(row), typespace);
        }
    }

    pub fn rows(&self, table: &str) -> Option<&Rows> {
        self.tables.iter().find(|t| t.name == table)
    }
}

/// The row type inside of a view's answer: an array, an option, or a query of rows.
fn view_row(return_type: &AlgebraicType) -> Option<TypeRef> {
    match return_type {
        AlgebraicType::Ref(row) => Some(*row),
        AlgebraicType::Array(element) => view_row(element),
        _ => view_row(return_type.parts().next()?.1),
    }
}

impl Function {
    /// `transfer(from: U32, to: U32)`, for errors.
    pub fn signature(&self) -> String {
        let params: Vec<String> = self
            .params
            .elements
            .iter()
            .map(|e| {
                let ty = self
                    .typespace
                    .resolve(&e.algebraic_type)
                    .map_or_else(|_| "?".into(), |t| t.type_name());
                match e.name() {
                    Some(name) => format!("{name}: {ty}"),
                    None => ty,
                }
            })
            .collect();
        format!("{}({})", self.name, params.join(", "))
    }
}

/// The names closest to `wanted`, best first.
pub fn similar<'a>(wanted: &str, names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut scored: Vec<(usize, &str)> = names
        .map(|name| {
            (
                levenshtein(&wanted.to_lowercase(), &name.to_lowercase()),
                name,
            )
        })
        .filter(|(distance, name)| *distance <= name.len().max(wanted.len()) / 2)
        .collect();
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
