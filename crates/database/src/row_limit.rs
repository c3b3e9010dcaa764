//! The row limit: queries of those who may not see all rows that are estimated to look at more rows are refused (08 §16). Those
//! into which rules are drawn have no estimate, which would tell of rows that the rules hide; the rows that they find are counted.

use lightcone_engine::{Datastore, ST_VAR_ID};
use lightcone_types::Reader;

use crate::error::Refusal;
use crate::rights::Rights;
use lightcone_live::BoundQuery;

/// U64 among the variants of a variable's value (08 §12.5).
const U64_TAG: u8 = 8;

/// Checks queries together.
///
/// # Errors
/// What a client is told whose queries are too much.
pub(crate) fn check<'p>(
    datastore: &Datastore,
    rights: Rights,
    queries: impl IntoIterator<Item = &'p BoundQuery>,
) -> Result<(), Refusal> {
    let Some(limit) = of(datastore, rights) else {
        return Ok(());
    };
    let (mut rows, mut reads_views) = (0_u64, false);
    for asked in queries {
        rows = rows.saturating_add(estimate_asked(datastore, asked));
        reads_views |= asked.reads_views();
    }
    match (rows > limit, reads_views) {
        (false, _) => Ok(()),
        // How many rows a view has is not for the caller.
        (true, true) => Err(exceeded(limit)),
        (true, false) => Err(Refusal(format!(
            "Estimated cardinality ({rows} rows) exceeds limit ({limit} rows)"
        ))),
    }
}

/// The limit for a caller with these rights, if there is one.
pub(crate) fn of(datastore: &Datastore, rights: Rights) -> Option<u64> {
    match rights.sees_all_rows() {
        true => None,
        false => row_limit(datastore),
    }
}

fn exceeded(limit: u64) -> Refusal {
    Refusal(format!(
        "Estimated cardinality exceeds limit ({limit} rows)"
    ))
}

/// How many rows a query may find.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FoundRows {
    pub max: Option<u64>,
}

impl FoundRows {
    /// # Errors
    /// There are more.
    pub fn check(self, found: u64) -> Result<(), Refusal> {
        match self.max {
            Some(max) if found > max => Err(exceeded(max)),
            _ => Ok(()),
        }
    }
}

fn estimate_asked(datastore: &Datastore, asked: &BoundQuery) -> u64 {
    match asked {
        BoundQuery::Table(plan) => plan.estimated_rows(datastore),
        BoundQuery::Tables(query, sender) => query.estimated_rows(sender, datastore),
        BoundQuery::Window(asked) if asked.query.has_rules() => 0,
        BoundQuery::Window(asked) => {
            let rows = asked.query.estimated_rows(&asked.sender, datastore);
            match asked.shape.is_walked_in_order() {
                true => rows.min(asked.shape.extent.end as u64),
                false => rows,
            }
        }
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
