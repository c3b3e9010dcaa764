//! Which tables a query can name, and who may read them.

use std::sync::Arc;

use lightcone_schema::{TableAccess, TableSchema};
use lightcone_types::{Identity, ProductTypeElement, TableId};

/// The tables a query can name. Who may read what is decided here in `query`, not by the catalog.
pub trait Catalog {
    /// The table of this name as written, dot-joined: canonical names come first, then accessor names (08 §3).
    fn table(&self, name: &str) -> Option<Arc<TableSchema>>;

    /// The parameters of this table, if it is that of a view.
    fn parameters(&self, table: TableId) -> &[ProductTypeElement];

    /// The row-level security rules of this table: others than the owner see the rows that at least one of them gives
    /// (08 §9). None for a table without rules, whose rows all callers see.
    fn rules(&self, table: TableId) -> &[String];
}

/// On whose behalf a query runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caller {
    /// What `:sender` stands for.
    pub identity: Identity,
    /// The database's owner reads private tables too.
    pub is_owner: bool,
}

pub(crate) fn may_read(access: TableAccess, caller: &Caller) -> bool {
    caller.is_owner || access == TableAccess::Public
}
