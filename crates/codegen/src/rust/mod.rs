//! Rust bindings for the crate `spacetimedb-sdk` (07 §8.2): which files there are, and what those of single things hold.

mod items;
mod root;
mod types;

use std::collections::BTreeSet;

use lightcone_schema::case::{to_pascal, to_snake};
use lightcone_types::TypeRef;

use crate::error::{Error, Result};
use crate::module::{file_stem, Level};
use crate::text::Text;
use crate::{GeneratedFile, Options, HEADER};

pub(crate) fn generate(level: &Level, options: &Options) -> Result<Vec<GeneratedFile>> {
    let mut files = Vec::new();
    let mut add = |stem: &str, text: String| {
        files.push(GeneratedFile {
            path: format!("{stem}.rs"),
            text,
        });
    };
    for (name, reference) in &level.types.sorted {
        add(
            &file_stem(name, "type"),
            types::file(level, name, *reference)?,
        );
    }
    // Columns belong to the row type in the query builder: the first table that has the type writes them.
    let mut described: BTreeSet<TypeRef> = BTreeSet::new();
    for table in &level.tables {
        let is_first = described.insert(table.row_type);
        add(
            &file_stem(&table.accessor, "table"),
            items::table(level, table, is_first)?,
        );
    }
    for reducer in &level.reducers {
        add(
            &file_stem(&reducer.accessor, "reducer"),
            items::reducer(level, reducer)?,
        );
    }
    for procedure in &level.procedures {
        add(
            &file_stem(&procedure.accessor, "procedure"),
            items::procedure(level, procedure)?,
        );
    }
    add("mod", root::file(level, options)?);
    Ok(files)
}

/// A file up to its imports.
fn start() -> Text {
    let mut text = Text::new("    ");
    text.lines(HEADER).blank();
    text.line("#![allow(unused, clippy::all)]");
    text.line("use spacetimedb_sdk::__codegen::{self as __sdk, __lib, __sats, __ws};");
    text
}

/// Words that a field cannot be called without `r#`.
const KEYWORDS: [&str; 47] = [
    "abstract", "as", "async", "await", "become", "box", "break", "const", "continue", "do", "dyn",
    "else", "enum", "extern", "false", "final", "fn", "for", "gen", "if", "impl", "in", "let",
    "loop", "macro", "match", "mod", "move", "mut", "override", "priv", "pub", "ref", "return",
    "static", "struct", "trait", "true", "try", "type", "typeof", "unsafe", "unsized", "use",
    "virtual", "where", "while",
];

fn no_name(name: &str) -> Error {
    Error::Name {
        name: name.to_owned(),
        language: "Rust",
    }
}

/// A field, method or parameter.
fn snake(name: &str) -> Result<String> {
    let snake = to_snake(name);
    match snake.as_str() {
        "self" | "super" | "crate" | "_" | "" => Err(no_name(name)),
        word if word.starts_with(|c: char| c.is_ascii_digit()) => Ok(format!("_{word}")),
        word if word == "yield" || KEYWORDS.contains(&word) => Ok(format!("r#{word}")),
        _ => Ok(snake),
    }
}

/// A type or variant.
fn pascal(name: &str) -> Result<String> {
    let pascal = to_pascal(name);
    match pascal.as_str() {
        "Self" | "" => Err(no_name(name)),
        _ => Ok(pascal),
    }
}

/// The name of the row type of a table.
fn row_type(level: &Level, reference: TypeRef, table: &str) -> Result<String> {
    level
        .types
        .name(reference)
        .map(str::to_owned)
        .ok_or_else(|| Error::Unnamed {
            place: format!("table `{table}`"),
        })
}

/// `use super::x_type::X;` for each type.
fn import_types(text: &mut Text, types: &BTreeSet<&str>) {
    for name in types {
        text.line(format!("use super::{}::{name};", file_stem(name, "type")));
    }
}
