//! What clients are subscribed to, for those who look at a database.

use lightcone_live::{QueryShape, QueryShapeKind};
use lightcone_schema::TableSchema;
use lightcone_types::ColId;

/// Queries that are looked at when a list of their shapes is wanted, so that messages do not wait for it.
pub(crate) const QUERIES_LOOKED_AT_MAX: usize = 50_000;
pub(crate) const SHAPES_LISTED_MAX: usize = 500;

/// The shapes of live queries.
#[derive(Debug, Default)]
pub struct LiveShapes {
    pub listed: Vec<LiveShape>,
    /// All of them are listed, with all their queries.
    pub is_whole: bool,
}

/// Live queries that differ in values only.
#[derive(Debug)]
pub struct LiveShape {
    /// Whose rows come out.
    pub table: String,
    /// `rows`, `join` or `window`.
    pub kind: &'static str,
    /// The column that must have one value.
    pub by: Option<String>,
    /// There are other conditions.
    pub is_filtered: bool,
    pub queries: u64,
    /// A client counts as often as it has query sets with one of them.
    pub subscribers: u64,
    /// Transactions that concerned them, and rows that these inserted and deleted, since each was subscribed to.
    pub changes: u64,
    pub changed_rows: u64,
}

impl LiveShape {
    pub(crate) fn new(shape: &QueryShape, table: &TableSchema) -> LiveShape {
        let column = |by: ColId| table.columns.get(usize::from(by.0));
        LiveShape {
            table: table.name.clone(),
            kind: match shape.kind {
                QueryShapeKind::Rows => "rows",
                QueryShapeKind::Join => "join",
                QueryShapeKind::Window => "window",
            },
            by: shape.by.and_then(column).map(|column| column.name.clone()),
            is_filtered: shape.is_filtered,
            queries: 0,
            subscribers: 0,
            changes: 0,
            changed_rows: 0,
        }
    }
}
