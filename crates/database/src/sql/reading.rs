//! What a larger question reads of tables: compiled one by one, and read in one state.

use std::sync::Arc;

use lightcone_live::BoundQuery;
use lightcone_query::compile_postgresql;
use lightcone_types::ProductType;

use super::RowEncoder;
use crate::budget::{HeldBytes, Holder};
use crate::calls::Caller;
use crate::catalog::WithoutEnvironment;
use crate::error::{Refusal, SqlError};
use crate::handle::DatabaseHandle;
use crate::module::Module;

/// Compiles queries for one caller, against the tables as they were when it was made.
pub struct Compiler {
    module: Arc<Module>,
    caller: lightcone_query::Caller,
}

/// A query that is read as a part of a question.
#[derive(Clone)]
pub struct Reading {
    query: BoundQuery,
}

impl Reading {
    pub fn text(&self) -> &str {
        self.query.text()
    }

    pub fn columns(&self) -> ProductType {
        self.query.output_type()
    }
}

impl Compiler {
    /// Compiles a query.
    ///
    /// # Errors
    /// What it is refused for: names that there are not, or that the caller does not see.
    pub fn compile(&self, text: &str) -> Result<Reading, SqlError> {
        let catalog = WithoutEnvironment(&self.module.catalog);
        let statement = compile_postgresql(text, &catalog, &self.caller);
        let query = statement.map_err(Refusal::from)?.into_query();
        let query = query.ok_or(SqlError::Writes)?;
        Ok(Reading {
            query: BoundQuery::new(query, self.caller.identity),
        })
    }
}

impl DatabaseHandle {
    pub fn compiler(&self, caller: &Caller) -> Compiler {
        let rights = self.shared.rights_of(&caller.identity, caller.rights);
        Compiler {
            module: self.shared.module(),
            caller: rights.caller(caller.identity),
        }
    }

    /// The rows of several queries in one committed and durable state.
    ///
    /// # Errors
    /// As 06 §5.14.
    pub async fn read_all<E: RowEncoder + 'static>(
        &self,
        holder: &Holder,
        caller: Caller,
        readings: Vec<Reading>,
        encoder: impl FnMut() -> E,
    ) -> Result<Vec<Vec<HeldBytes>>, SqlError> {
        let bytes = readings.iter().map(|reading| reading.text().len()).sum();
        let plans = readings.into_iter().map(|reading| reading.query).collect();
        let read = self.read(holder.budget(), caller, Ok(plans), true, bytes, encoder);
        let rows = read.await?.into_iter().map(|(_, rows)| rows);
        Ok(rows.collect())
    }
}
