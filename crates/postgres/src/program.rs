//! A statement of PostgreSQL's language that the writer runs: its plan, and what its names mean.

use std::sync::Arc;

use lightcone_database::{Program, Reading, SqlStats, Written};
use lightcone_query::postgresql::{Change, Store, Write};
use lightcone_schema::TableSchema;
use lightcone_types::AlgebraicType;

use super::catalogue::{Catalogue, Read};
use super::failure::Failure;

pub(super) struct Statement {
    catalogue: Catalogue,
    read: Read<Write>,
}

impl Statement {
    /// # Errors
    /// It reads views.
    pub fn new(catalogue: Catalogue, read: impl Into<Read<Write>>) -> Result<Statement, Failure> {
        let read = read.into();
        if read.readings.iter().any(Reading::reads_views) {
            let message = "what changes rows, and what stands behind it in a transaction block, reads no views";
            return Err(Failure::unsupported(message));
        }
        Ok(Statement {
            catalogue: catalogue.for_later(),
            read,
        })
    }

    /// The columns of the rows that it gives. None: it gives none.
    pub fn columns(&self) -> Option<Vec<(String, AlgebraicType)>> {
        self.read.statement.columns()
    }
}

impl Program for Statement {
    fn table(&self) -> Option<&Arc<TableSchema>> {
        let change = self.read.statement.change.as_ref();
        change.map(|change| &change.table)
    }

    fn readings(&self) -> &[Reading] {
        &self.read.readings
    }

    fn target(&self) -> Option<usize> {
        let mut tables = self.read.statement.question.tables.iter();
        tables.position(|table| table.is_target)
    }

    fn run(
        &self,
        rows: &[Vec<u8>],
        look: &(dyn Fn() -> Result<(), Failure> + Sync),
        store: &mut dyn Store,
    ) -> Result<Written, Failure> {
        let changed = self.catalogue.change(&self.read, rows, look, store)?;
        let mut stats = SqlStats::default();
        match self.read.statement.change.as_ref().map(|of| &of.change) {
            None => {}
            Some(Change::Insert { .. }) => stats.rows_inserted = changed.count,
            Some(Change::Update { .. }) => stats.rows_updated = changed.count,
            Some(Change::Delete) => stats.rows_deleted = changed.count,
        }
        Ok(Written::new(stats, changed.rows))
    }
}
