//! Evaluating a query once: by an index on the writer, or by a scan of frozen pages on another thread.

use std::sync::Arc;

use lightcone_engine::Datastore;
use lightcone_query::SelectPlan;
use lightcone_schema::IndexSchema;
use lightcone_table::{RowLayout, TableSnapshot};
use lightcone_types::ColId;
use lightcone_wire::rows::{row_list, RowSize};

/// A table with at most so many rows is scanned on the writer; freezing it would cost more.
const SCAN_ON_WRITER_ROWS_MAX: u64 = 256;

/// Rows a query found, or what is needed to find them elsewhere.
pub(crate) enum Source {
    /// Concatenated rows.
    Rows { rows: Rows, table_is_empty: bool },
    Scan {
        table: TableSnapshot,
        plan: Arc<SelectPlan>,
    },
}

/// Concatenated rows with their boundaries.
#[derive(Default)]
pub(crate) struct Rows {
    pub bytes: Vec<u8>,
    pub ends: Vec<usize>,
}

impl Rows {
    fn push(&mut self, row: &[u8]) {
        self.bytes.extend_from_slice(row);
        self.ends.push(self.bytes.len());
    }

    pub fn iter(&self) -> impl Iterator<Item = &[u8]> + Clone {
        (0..self.ends.len()).map(|index| {
            let start = if index == 0 { 0 } else { self.ends[index - 1] };
            &self.bytes[start..self.ends[index]]
        })
    }
}

/// Finds the rows of a plan in the committed state. Only what an index answers, and small tables, run here.
///
/// The plan's table may be gone or replaced since it was compiled; the result is empty then.
pub(crate) fn find(datastore: &mut Datastore, plan: &Arc<SelectPlan>) -> Source {
    let id = plan.table.id;
    let Some(table) = datastore.table(id) else {
        return Source::Rows {
            rows: Rows::default(),
            table_is_empty: true,
        };
    };
    let table_is_empty = table.rows().row_count() == 0;
    let never = plan
        .predicate
        .as_ref()
        .is_some_and(|predicate| predicate.is_never());
    if table_is_empty || never {
        return Source::Rows {
            rows: Rows::default(),
            table_is_empty,
        };
    }
    let mut rows = Rows::default();
    let keep = |row: &[u8]| {
        plan.predicate
            .as_ref()
            .is_none_or(|p| p.matches(table.layout(), row))
    };
    if let Some((position, point)) = usable_index(plan, &table.schema.indexes) {
        let index = &table.indexes()[position];
        let found = index.for_point(table.rows(), table.layout(), &point, |id| {
            let row = table.row(id);
            if keep(row) {
                rows.push(row);
            }
        });
        if found.is_ok() {
            return Source::Rows {
                rows,
                table_is_empty,
            };
        }
    }
    if table.rows().row_count() <= SCAN_ON_WRITER_ROWS_MAX {
        table.rows().for_each(|_, row| {
            if keep(row) {
                rows.push(row);
            }
        });
        return Source::Rows {
            rows,
            table_is_empty,
        };
    }
    let table = datastore
        .snapshot_table(id)
        .expect("the table was just there");
    Source::Scan {
        table,
        plan: plan.clone(),
    }
}

/// An index all of whose columns the plan fixes, with the point to look up.
fn usable_index(plan: &SelectPlan, indexes: &[IndexSchema]) -> Option<(usize, Vec<u8>)> {
    let value = |column: &ColId| {
        plan.equalities
            .iter()
            .find(|(c, _)| c == column)
            .map(|(_, value)| value)
    };
    indexes.iter().enumerate().find_map(|(position, index)| {
        let values: Option<Vec<_>> = index.algorithm.columns().iter().map(value).collect();
        Some((
            position,
            values?
                .into_iter()
                .flat_map(|value| value.iter().copied())
                .collect(),
        ))
    })
}

/// Calls `visit` with every row of a frozen table that matches, until it returns false.
pub(crate) fn scan(table: &TableSnapshot, plan: &SelectPlan, mut visit: impl FnMut(&[u8]) -> bool) {
    let layout: &RowLayout = &table.layout;
    table.rows.for_each_while(|row| match &plan.predicate {
        Some(predicate) if !predicate.matches(layout, row) => true,
        _ => visit(row),
    });
}

impl Source {
    /// Appends the row list of the result, and says whether the query's table was empty.
    pub fn write_row_list(
        &self,
        plan: &SelectPlan,
        out: &mut Vec<u8>,
    ) -> Result<(), lightcone_wire::Error> {
        let size = row_size(plan);
        match self {
            Source::Rows { rows, .. } => row_list(out, size, rows.iter()).map(drop),
            Source::Scan { table, plan } => {
                let mut list = lightcone_wire::RowListWriter::new(out);
                scan(table, plan, |row| {
                    list.push(row);
                    true
                });
                list.finish().map(drop)
            }
        }
    }

    pub fn is_deferred(&self) -> bool {
        matches!(self, Source::Scan { .. })
    }

    /// A query over a table without rows contributes no entry to `SubscribeApplied` (05 §7.1).
    pub fn table_is_empty(&self) -> bool {
        matches!(
            self,
            Source::Rows {
                table_is_empty: true,
                ..
            }
        )
    }
}

/// What is known of the size of a plan's rows.
pub(crate) fn row_size(plan: &SelectPlan) -> RowSize {
    let types: Option<usize> = plan
        .table
        .columns
        .iter()
        .map(|column| lightcone_types::bsatn::fixed_size(&column.ty))
        .sum();
    RowSize::new(types)
}
