//! The row limit: queries of those who may not see all rows that are estimated to look at more rows are refused (08 §16).

use lightcone_engine::{Datastore, ST_VAR_ID};
use lightcone_query::Tables;
use lightcone_table::TableView;
use lightcone_types::{Reader, TableId};

use crate::asked::Asked;
use crate::rights::Rights;

/// U64 among the variants of a variable's value (08 §12.5).
const U64_TAG: u8 = 8;

/// Checks queries together.
///
/// # Errors
/// What a client is told whose queries are too much.
pub(crate) fn check<'p>(
    datastore: &Datastore,
    rights: Rights,
    queries: impl IntoIterator<Item = &'p Asked>,
) -> Result<(), String> {
    if rights.sees_all_rows() {
        return Ok(());
    }
    let Some(limit) = row_limit(datastore) else {
        return Ok(());
    };
    let (mut rows, mut is_guarded) = (0_u64, false);
    for asked in queries {
        rows = rows.saturating_add(estimate_asked(datastore, asked));
        is_guarded |= asked.is_guarded();
    }
    match (rows > limit, is_guarded) {
        (false, _) => Ok(()),
        // How many rows rules hide is not for the caller.
        (true, true) => Err(format!(
            "Estimated cardinality exceeds limit ({limit} rows)"
        )),
        (true, false) => Err(format!(
            "Estimated cardinality ({rows} rows) exceeds limit ({limit} rows)"
        )),
    }
}

fn estimate_asked(datastore: &Datastore, asked: &Asked) -> u64 {
    let tables = Current(datastore);
    match asked {
        Asked::Plan(plan) => plan.estimated_rows(&tables),
        Asked::Query(query, sender) => query.estimated_rows(sender, &tables),
        Asked::Window(asked) => {
            let rows = asked.query.estimated_rows(&asked.sender, &tables);
            match asked.shape.is_walked_in_order() {
                true => rows.min(asked.shape.extent.end as u64),
                false => rows,
            }
        }
    }
}

/// The tables as they are now.
pub(crate) struct Current<'d>(pub &'d Datastore);

impl Tables for Current<'_> {
    fn table(&self, id: TableId) -> Option<&TableView> {
        self.0.table(id).map(|table| &**table)
    }
}

/// The limit that `SET row_limit` has left in `st_var`.
fn row_limit(datastore: &Datastore) -> Option<u64> {
    let variables = datastore.table(ST_VAR_ID)?;
    let mut limit = None;
    // There is one variable.
    variables.rows().for_each(|_, row| {
        let mut reader = Reader::new(row);
        if reader.read_str() == Ok("row_limit") && reader.read_u8() == Ok(U64_TAG) {
            limit = reader.read_u64().ok();
        }
    });
    limit
}
