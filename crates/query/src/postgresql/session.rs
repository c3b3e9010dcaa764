//! What a question asks of the session that it is read for.

use std::sync::Arc;

use lightcone_schema::TableSchema;
use lightcone_types::ProductType;

use super::column_type::Type;
use super::failure::Done;
use super::value::Value;

/// A table whose rows are made when a question reads it.
pub struct VirtualTable {
    pub name: &'static str,
    pub columns: Vec<(&'static str, Type)>,
    /// The places of those by which its rows are told apart. None: it has no primary key.
    pub key: Vec<usize>,
}

impl VirtualTable {
    /// One that has whatever column is asked for, and no rows.
    pub fn is_loose(&self) -> bool {
        self.columns.is_empty()
    }
}

/// A table that a statement changes.
pub struct Target {
    pub schema: Arc<TableSchema>,
    /// What its columns have that a new row does not name, in BSATN.
    pub defaults: Vec<Option<Vec<u8>>>,
}

/// What names mean to a session, and what it sees: tables, functions, settings, rights.
pub trait Session: Sync {
    /// The virtual table of a name, which may have its schema before it.
    fn table(&self, name: &[String]) -> Option<VirtualTable>;

    /// The rows of a virtual table; of a column, only those with this value may be wanted.
    fn rows(&self, table: &VirtualTable, wanted: Option<(usize, &Value)>) -> Vec<Vec<Value>>;

    /// The columns of what a query of the ad hoc language reads.
    ///
    /// # Errors
    /// What it is refused for: names that there are not, or that the caller does not see.
    fn columns(&self, query: &str) -> Done<ProductType>;

    /// A table whose rows are to be changed.
    ///
    /// # Errors
    /// There is none, or its rows are not changed by the caller.
    fn target(&self, name: &str) -> Done<Target>;

    /// A function of what the session sees, of so many arguments, by its number, and what it gives.
    fn function(&self, name: &str, count: usize) -> Option<(usize, Type)>;

    fn call(&self, function: usize, arguments: &[Value]) -> Value;

    /// The name of a relation of this number.
    fn relation(&self, oid: i64) -> Option<String>;

    /// The number of a relation of this name.
    fn oid(&self, name: &str) -> Option<i64>;
}
