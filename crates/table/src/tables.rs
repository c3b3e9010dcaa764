//! Several tables in one state, by their ids.

use lightcone_types::{ColId, TableId};

use crate::{Table, TableView};

/// The tables that a query reads, in one state.
pub trait Tables {
    /// None if the table is gone; then nothing matches.
    fn table(&self, id: TableId) -> Option<&TableView>;
}

/// The tables of a writer, as they are now.
pub trait CurrentTables: Tables {
    /// None if the table is gone.
    fn current(&self, id: TableId) -> Option<&Table>;

    /// Makes sure that a column has an index to look rows up by, as [`Table::hold_index`].
    fn hold_index(&mut self, table: TableId, column: ColId);

    /// Undoes one [`hold_index`](Self::hold_index).
    fn release_index(&mut self, table: TableId, column: ColId);
}
