//! What a statement is before it is run: the types of its parameters and of its result.

use std::sync::Arc;

use lightcone_query::{ParameterText, Statement};
use lightcone_types::{AlgebraicType, Identity, ProductType};

use crate::decode::COMPILED_HERE_BYTES_MAX;
use crate::error::SqlError;
use crate::handle::DatabaseHandle;
use crate::reads::Once;

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
        identity: Identity,
        text: Arc<ParameterText>,
    ) -> Result<Described, SqlError> {
        let shared = &self.shared;
        let module = shared.module();
        let rights = lightcone_query::Caller {
            identity,
            is_owner: identity == shared.options.owner,
        };
        // Each parameter may take one more compilation.
        let bytes = text.text().len() * (text.count() + 1);
        let compile = move || {
            let (parameters, statement) = text
                .describe(&module.catalog, &rights)
                .map_err(|error| SqlError::Query(error.to_string()))?;
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
        shared.read(&shared.client_budget(), Box::new(job));
        described.await.map_err(|_| SqlError::ModuleGone)?
    }
}
