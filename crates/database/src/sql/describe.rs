//! What a statement is before it is run: the types of its parameters and of its result.

use std::sync::Arc;

use lightcone_query::{ParameterText, Statement};
use lightcone_types::{AlgebraicType, ProductType};

use crate::budget::Holder;
use crate::calls::Caller;
use crate::decode::COMPILED_HERE_BYTES_MAX;
use crate::error::SqlError;
use crate::handle::DatabaseHandle;
use crate::reads::Once;
use crate::sql::permitted;

/// A statement that compiles.
#[derive(Clone, Debug)]
pub struct Described {
    pub parameters: Vec<AlgebraicType>,
    /// None if it gives no rows.
    pub columns: Option<ProductType>,
}

impl DatabaseHandle {
    /// Compiles a statement without running it.
    ///
    /// # Errors
    /// What it is refused for, whatever the values of its parameters.
    pub async fn describe(
        &self,
        holder: &Holder,
        caller: &Caller,
        text: Arc<ParameterText>,
    ) -> Result<Described, SqlError> {
        let shared = &self.shared;
        let module = shared.module();
        let rights = shared.rights_of(&caller.identity, caller.rights);
        let identity = caller.identity;
        // Each parameter may take one more compilation.
        let bytes = text.text().len() * (text.count() + 1);
        let compile = move || {
            let (parameters, statement) = text
                .describe(&module.catalog, &rights.caller(identity))
                .map_err(|error| SqlError::Query(error.to_string()))?;
            let statement = permitted(statement, rights, identity)?;
            let columns = match &statement {
                Statement::Select(plan) => Some(plan.output_type()),
                Statement::Write(_) => None,
            };
            Ok(Described {
                parameters,
                columns,
            })
        };
        if bytes <= COMPILED_HERE_BYTES_MAX {
            return compile();
        }
        let (job, described) = Once::new(compile);
        shared.read(holder.budget(), Box::new(job));
        described.await.map_err(|_| SqlError::ModuleGone)?
    }

    /// Does other work for a client on the threads for reads.
    ///
    /// # Errors
    /// The server stops, or has a bug that ended the work.
    pub async fn run_beside<T: Send + 'static>(
        &self,
        holder: &Holder,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, SqlError> {
        let (job, done) = Once::new(work);
        self.shared.read(holder.budget(), Box::new(job));
        done.await.map_err(|_| SqlError::ModuleGone)
    }
}
