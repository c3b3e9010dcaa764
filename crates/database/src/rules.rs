//! Row-level security rules, checked as queries when a module is published (08 §9.1). They are not evaluated yet.

use lightcone_engine::Datastore;
use lightcone_query::check_rule;
use lightcone_schema::ModuleDef;
use lightcone_types::{Identity, TableId};

use crate::catalog::{CatalogView, WithoutEnvironment};
use crate::error::Error;

/// The rules of a module whose tables the datastore has, each with the table whose rows it lets through.
///
/// # Errors
/// A rule is no query over these tables; the text says which rule, and what is wrong where.
pub(crate) fn checked(
    datastore: &Datastore,
    def: &ModuleDef,
    owner: Identity,
) -> Result<Vec<(TableId, String)>, Error> {
    if def.row_level_security.is_empty() {
        return Ok(Vec::new());
    }
    let catalog = CatalogView::new(datastore, def);
    let check = |sql: &String| match check_rule(sql, &WithoutEnvironment(&catalog), owner) {
        Ok(table) => Ok((table.id, sql.clone())),
        Err(reason) => Err(Error::Module(format!(
            "failed to create row-level security: `{sql}`: {reason} [LC0406]"
        ))),
    };
    def.row_level_security.iter().map(check).collect()
}

/// The same for a module that has no tables yet.
///
/// # Errors
/// As [`checked`].
pub(crate) fn check(def: &ModuleDef, owner: Identity) -> Result<(), Error> {
    let mut datastore = Datastore::new();
    datastore.begin();
    datastore.bootstrap();
    datastore.create_tables(def)?;
    datastore.create_views(def)?;
    checked(&datastore, def, owner).map(drop)
}
