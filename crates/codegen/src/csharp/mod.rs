//! C# bindings for the package `SpacetimeDB.ClientSDK` (07 §8.2): the list of files, and their frame.

mod functions;
mod root;
mod style;
mod tables;
mod types;

use std::collections::BTreeMap;

use lightcone_types::AlgebraicType;

use self::style::{is_identifier, pascal, UNIT};
use crate::bindings::{GeneratedFile, Options};
use crate::error::{Error, Result};
use crate::module::{Function, Level};
use crate::text::{Text, HEADER};

pub(crate) fn generate(
    level: &Level,
    namespace: &str,
    options: &Options,
) -> Result<Vec<GeneratedFile>> {
    if !namespace.split('.').all(is_identifier) {
        return Err(Error::CsharpNamespace(namespace.to_owned()));
    }
    let mut files = Vec::new();
    let mut add = |path: String, body: Text| {
        let text = file(&path, namespace, options, body);
        files.push(GeneratedFile::new(path, text));
    };
    for (name, reference) in &level.types.sorted {
        let body = types::file(level, name, *reference)?;
        add(format!("Types/{name}.g.cs"), body);
    }
    for (name, some) in nested_options(level)? {
        let body = types::nested_option_file(&name, &some);
        add(format!("Types/{name}.g.cs"), body);
    }
    for table in &level.tables {
        let body = tables::file(level, table)?;
        add(format!("Tables/{}.g.cs", pascal(&table.accessor)?), body);
    }
    for reducer in &level.reducers {
        let body = functions::reducer(level, reducer)?;
        add(
            format!("Reducers/{}.g.cs", pascal(&reducer.accessor)?),
            body,
        );
    }
    for procedure in &level.procedures {
        let body = functions::procedure(level, procedure)?;
        add(
            format!("Procedures/{}.g.cs", pascal(&procedure.accessor)?),
            body,
        );
    }
    add(ROOT.to_owned(), root::file(level)?);
    Ok(files)
}

/// All options of options in the module.
fn nested_options(level: &Level) -> Result<BTreeMap<String, String>> {
    let mut found = BTreeMap::new();
    for reference in level.types.sorted.values() {
        let definition = level.types.get(*reference).into_iter();
        for (_, part) in definition.flat_map(AlgebraicType::parts) {
            types::nested_options(&level.types, part, &mut found)?;
        }
    }
    let functions = level.reducers.iter().chain(&level.procedures);
    for ty in functions.flat_map(Function::types) {
        types::nested_options(&level.types, ty, &mut found)?;
    }
    Ok(found)
}

const ROOT: &str = "SpacetimeDBClient.g.cs";
const USED: &str = "using System;\nusing System.Collections.Generic;\nusing System.Runtime.Serialization;\nusing SpacetimeDB.ClientApi;\n";

/// A file around the content of its namespace.
fn file(path: &str, namespace: &str, options: &Options, body: Text) -> String {
    let mut text = Text::new(UNIT);
    text.lines(HEADER).blank();
    if path == ROOT {
        text.line(format!(
            "// This was generated using spacetimedb cli version {} (commit {}).",
            options.cli_version, options.commit
        ));
        text.blank();
    }
    text.line("#nullable enable").blank();
    text.lines(USED);
    text.blank().line(format!("namespace {namespace}"));
    text.block("{", "}", |text| {
        // Inside of the namespace, so that its names come before those of other namespaces.
        text.line("using SpacetimeDB;").blank();
        text.lines(&body.finish());
    });
    text.finish()
}
