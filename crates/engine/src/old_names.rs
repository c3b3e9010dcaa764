//! Names of tables that only a migration function reads (02 §14.8), at times when they are not there: modules look all of their
//! tables up before they use one.

use rustc_hash::FxHashSet;

use lightcone_schema::ModuleDef;
use lightcone_types::{IndexId, TableId};

/// Stands for an old table that is not there: no table ever has this id. A call that uses it fails with
/// [`NoOldTable`](crate::error::DatastoreError::NoOldTable), not with "no such table".
pub(crate) const ABSENT_OLD_TABLE: TableId = TableId(0xf01d_ab1e);
pub(crate) const ABSENT_OLD_INDEX: IndexId = IndexId(0xf01d_1dec);

/// What the program that runs calls its old tables and their indexes.
#[derive(Default)]
pub(crate) struct OldNames {
    pub tables: FxHashSet<String>,
    pub indexes: FxHashSet<String>,
}

impl OldNames {
    /// Those that a definition declares.
    pub fn of(def: &ModuleDef) -> OldNames {
        let mut names = OldNames::default();
        let old_tables = def.migration.iter().flat_map(|m| &m.old_tables);
        for table in old_tables {
            names.tables.insert(table.name.clone());
            for index in &table.indexes {
                names.indexes.insert(index.name.clone());
                names.indexes.insert(index.source_name.clone());
            }
        }
        names
    }
}
