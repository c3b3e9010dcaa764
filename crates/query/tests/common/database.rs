//! Tables with rows, and queries on them.

use std::collections::HashMap;
use std::sync::Arc;

use lightcone_query::{compile_statement, Caller, Catalog, ExecuteError, Progress, Query, Run};
use lightcone_schema::TableSchema;
use lightcone_table::{Table, TableView, Tables};
use lightcone_types::{Identity, ProductTypeElement, TableId};

#[derive(Default)]
pub struct Database {
    pub tables: HashMap<TableId, Table>,
    pub rules: HashMap<TableId, Vec<String>>,
}

impl Tables for Database {
    fn table(&self, id: TableId) -> Option<&TableView> {
        self.tables.get(&id).map(|table| &**table)
    }
}

impl Catalog for Database {
    fn table(&self, name: &str) -> Option<Arc<TableSchema>> {
        let mut tables = self.tables.values();
        let found = tables.find(|table| table.schema.name == name)?;
        Some(found.schema.clone())
    }

    fn parameters(&self, _: TableId) -> &[ProductTypeElement] {
        &[]
    }

    fn rules(&self, table: TableId) -> &[String] {
        self.rules.get(&table).map_or(&[], Vec::as_slice)
    }
}

impl Database {
    /// A table of these rows, in BSATN. Rows that are there already are left out.
    pub fn add(&mut self, schema: TableSchema, rows: impl IntoIterator<Item = Vec<u8>>) {
        let mut table = Table::new(Arc::new(schema));
        for row in rows {
            let _ = table.insert(&row);
        }
        self.tables.insert(table.schema.id, table);
    }

    /// A query of the ad hoc language.
    pub fn query(&self, text: &str, caller: &Caller) -> Query {
        let statement = compile_statement(text, self, caller);
        let statement = statement.unwrap_or_else(|e| panic!("{text}: {e}"));
        statement.into_query().expect("a query")
    }

    /// The rows in BSATN as they come, found in pieces of so many steps.
    pub fn rows(
        &self,
        query: Query,
        sender: Identity,
        memory_bytes_max: usize,
        piece: usize,
    ) -> Result<Vec<Vec<u8>>, ExecuteError> {
        let mut run = Run::new(Arc::new(query), sender, memory_bytes_max);
        let mut rows = Vec::new();
        loop {
            let mut steps = piece;
            let progress = run.run(self, &mut steps, |row| {
                rows.push(row.to_vec());
                true
            });
            if progress? == Progress::Done {
                return Ok(rows);
            }
        }
    }
}
