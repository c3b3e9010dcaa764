//! Rust bindings for the crate `spacetimedb-sdk` (07 §8.2): the list of files.

mod items;
mod root;
mod style;
mod types;

use std::collections::BTreeSet;

use lightcone_types::TypeRef;

use crate::bindings::{GeneratedFile, Options};
use crate::error::Result;
use crate::module::{file_stem, Level};

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
    // Columns belong to the row type in the query builder: its first table writes them.
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
