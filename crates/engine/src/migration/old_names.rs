//! Names of tables that only a migration function reads (02 §14.8), at times when they are not there: modules look all of their
//! tables up before they use one.

use rustc_hash::FxHashSet;

use lightcone_schema::ModuleDef;
use lightcone_types::{IndexId, TableId};

use crate::datastore::Datastore;

/// No table ever has this id, nor would anybody take it for one that no table has. Whoever uses it is told that the old table is
/// not there.
pub(crate) const ABSENT_OLD_TABLE: TableId = TableId(0xf01d_ab1e);
pub(crate) const ABSENT_OLD_INDEX: IndexId = IndexId(0xf01d_1dec);

/// What the program that runs calls its old tables and their indexes.
#[derive(Default)]
pub(crate) struct OldNames {
    tables: FxHashSet<String>,
    indexes: FxHashSet<String>,
}

impl Datastore {
    /// The program whose code runs from now on is that of this definition: only names of old tables that it declares are known.
    pub fn know_old_tables(&mut self, def: &ModuleDef) {
        let mut names = OldNames::default();
        let old_tables = def.migration.iter().flat_map(|m| &m.old_tables);
        for table in old_tables {
            names.tables.insert(table.name.clone());
            for index in &table.indexes {
                names.indexes.insert(index.name.clone());
                names.indexes.insert(index.source_name.clone());
            }
        }
        self.old_names = names;
    }

    /// What the name of a declared old table gives that is not there.
    pub fn absent_old_table(&self, name: &str) -> Option<TableId> {
        let is_known = self.old_names.tables.contains(name);
        is_known.then_some(ABSENT_OLD_TABLE)
    }

    /// The same of an index.
    pub fn absent_old_index(&self, name: &str) -> Option<IndexId> {
        let is_known = self.old_names.indexes.contains(name);
        is_known.then_some(ABSENT_OLD_INDEX)
    }
}
