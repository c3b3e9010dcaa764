//! Rust bindings for the crate `spacetimedb-sdk` (07 §8.2): the list of files.

mod items;
pub(crate) mod remote;
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
    let mut add = |stem: &str, text| files.push(GeneratedFile::new(format!("{stem}.rs"), text));
    for (name, reference) in &level.types.sorted {
        let text = types::file(level, name, *reference)?;
        add(&file_stem(name, "type"), text);
    }
    // Columns belong to the row type in the query builder: its first table writes them.
    let mut described: BTreeSet<TypeRef> = BTreeSet::new();
    for table in &level.tables {
        let is_first = described.insert(table.row_type);
        let text = items::table(level, table, is_first)?;
        add(&file_stem(&table.accessor, "table"), text);
    }
    for reducer in &level.reducers {
        let text = items::function(level, reducer, items::REDUCER)?;
        add(&file_stem(&reducer.accessor, "reducer"), text);
    }
    for procedure in &level.procedures {
        let text = items::function(level, procedure, items::PROCEDURE)?;
        add(&file_stem(&procedure.accessor, "procedure"), text);
    }
    add("mod", root::file(level, options)?);
    Ok(files)
}
