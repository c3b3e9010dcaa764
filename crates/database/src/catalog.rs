//! The tables as queries see them: a frozen view of the engine's catalog that connection tasks compile against.

use std::sync::Arc;

use lightcone_engine::Datastore;
use lightcone_query::Catalog;
use lightcone_schema::{ModuleDef, TableSchema};
use lightcone_types::TableId;
use rustc_hash::FxHashMap;

/// The names of one version of a database.
pub(crate) struct CatalogView {
    pub schemas: Vec<Arc<TableSchema>>,
    by_name: FxHashMap<String, usize>,
    /// The module has row-level security rules, which are not evaluated yet: only the owner may read user tables.
    row_level_security: bool,
}

impl CatalogView {
    pub fn new(datastore: &Datastore, def: &ModuleDef) -> CatalogView {
        let schemas: Vec<_> = datastore.schemas().cloned().collect();
        let mut by_name = FxHashMap::default();
        for (position, schema) in schemas.iter().enumerate() {
            by_name.insert(schema.name.clone(), position);
        }
        for (position, schema) in schemas.iter().enumerate() {
            if let Some(accessor) = &schema.accessor {
                by_name.entry(accessor.clone()).or_insert(position);
            }
        }
        CatalogView {
            schemas,
            by_name,
            row_level_security: !def.row_level_security.is_empty(),
        }
    }
}

impl Catalog for CatalogView {
    fn table(&self, name: &str) -> Option<Arc<TableSchema>> {
        self.by_name
            .get(name)
            .map(|&position| self.schemas[position].clone())
    }

    fn has_row_level_security(&self, table: TableId) -> bool {
        self.row_level_security && table.0 >= lightcone_schema::table::FIRST_USER_ID
    }
}
