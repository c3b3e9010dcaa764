//! What a larger question reads of tables: compiled one by one, and read in one state.

use std::sync::Arc;

use lightcone_live::BoundQuery;
use lightcone_query::{compile_postgresql, write_target};
use lightcone_schema::TableSchema;

use super::RowEncoder;
use crate::budget::{HeldBytes, Holder};
use crate::calls::Caller;
use crate::catalog::WithoutEnvironment;
use crate::error::{Refusal, SqlError};
use crate::handle::DatabaseHandle;
use crate::module::Module;
use crate::rights::Rights;
use crate::statements::Reading;

/// Compiles queries for one caller, against the tables as they were when it was made.
#[derive(Clone)]
pub struct Compiler {
    module: Arc<Module>,
    rights: Rights,
    caller: lightcone_query::Caller,
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
            query: Arc::new(query),
            sender: self.caller.identity,
        })
    }

    /// A table whose rows are to be changed.
    ///
    /// # Errors
    /// There is none, or its rows are not changed by the caller.
    pub fn target(&self, name: &str) -> Result<Arc<TableSchema>, SqlError> {
        let target = write_target(name, &self.module.catalog, &self.caller);
        let target = target.map_err(Refusal::from)?;
        match self.rights.writes_rows() {
            true => Ok(target),
            false => Err(SqlError::not_authorized(self.caller.identity)),
        }
    }
}

impl DatabaseHandle {
    pub fn compiler(&self, caller: &Caller) -> Compiler {
        let rights = self.shared.rights_of(&caller.identity, caller.rights);
        Compiler {
            module: self.shared.module(),
            rights,
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
        let plans = readings.into_iter();
        let plan = |of: Reading| BoundQuery::new(Arc::unwrap_or_clone(of.query), of.sender);
        let plans = plans.map(plan).collect();
        let read = self.read(holder.budget(), caller, Ok(plans), true, bytes, encoder);
        let rows = read.await?.into_iter().map(|(_, rows)| rows);
        Ok(rows.collect())
    }
}
