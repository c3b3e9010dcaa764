//! What an evaluation gives: matches, how far it is, and why it cannot go on.

use lightcone_table::{RowId, RowLayout, TableView};
use lightcone_types::AlgebraicType;

use crate::condition::ColumnAt;
use crate::predicate::Tuple;

/// Why a query cannot be evaluated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ExecuteError {
    #[error("the query keeps more than {bytes_max} bytes in memory to join, sort or group: make an index on the join columns, or read fewer rows or tables [LC0410]")]
    Memory { bytes_max: usize },
    #[error("Estimated cardinality exceeds limit ({rows_max} rows)")]
    Matches { rows_max: u64 },
}

/// The tags of an option.
pub(crate) const SOME: u8 = 0;
pub(crate) const NOTHING: u8 = 1;

/// Where an evaluation is after a piece of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// The steps are used up; there is more to do.
    Paused,
    /// `visit` wants no more matches.
    Stopped,
    Done,
}

/// One match: a row of each relation of the fragment.
pub struct Match<'m> {
    tables: &'m [&'m TableView],
    ids: &'m [Option<RowId>],
}

impl<'m> Match<'m> {
    #[inline]
    pub(super) fn new(tables: &'m [&'m TableView], ids: &'m [Option<RowId>]) -> Match<'m> {
        Match { tables, ids }
    }

    /// The row of a relation; `None` if it has none here.
    pub(crate) fn id(&self, relation: u16) -> Option<RowId> {
        self.ids[usize::from(relation)]
    }

    /// A column's value in BSATN; `None` if its relation has no row here.
    pub fn column(&self, at: ColumnAt) -> Option<&[u8]> {
        let (layout, row) = self.row(at.relation)?;
        Some(layout.column(row, usize::from(at.column.0)))
    }

    /// Writes a column's value in BSATN. Where the relation may have no row, it is an option.
    pub(crate) fn push_value(&self, at: ColumnAt, is_optional: bool, out: &mut Vec<u8>) {
        match self.typed(at) {
            Some((ty, value)) => {
                if is_optional && ty.as_option().is_none() {
                    out.push(SOME);
                }
                out.extend_from_slice(value);
            }
            None => out.push(NOTHING),
        }
    }

    /// A column's type and value.
    pub(crate) fn typed(&self, at: ColumnAt) -> Option<(&AlgebraicType, &[u8])> {
        let (layout, row) = self.row(at.relation)?;
        let column = usize::from(at.column.0);
        Some((layout.column_type(column), layout.column(row, column)))
    }
}

impl Tuple for Match<'_> {
    #[inline]
    fn row(&self, relation: u16) -> Option<(&RowLayout, &[u8])> {
        let id = self.ids[usize::from(relation)]?;
        let table = self.tables[usize::from(relation)];
        Some((table.layout(), table.row(id)))
    }
}
