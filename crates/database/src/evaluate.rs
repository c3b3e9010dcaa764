//! Finding what a query reads: by an index on the writer, or in frozen pages for a scan on another thread.

use std::sync::Arc;

use lightcone_engine::Datastore;
use lightcone_query::SelectPlan;
use lightcone_schema::IndexSchema;
use lightcone_table::TableSnapshot;
use lightcone_types::{ColId, TableId};
use lightcone_wire::rows::RowSize;

/// A table with at most so many rows is scanned on the writer; freezing it would cost more.
const SCAN_ON_WRITER_ROWS_MAX: u64 = 256;
/// What the queries of one request may look at and copy on the writer. Beyond it they are scans on another thread.
const WRITER_ROWS_MAX: usize = 65_536;
const WRITER_BYTES_MAX: usize = 1 << 20;

/// Rows a query found, or what is needed to find them elsewhere.
pub(crate) enum Source {
    /// Concatenated rows.
    Rows {
        rows: Rows,
        table_is_empty: bool,
    },
    /// All rows are counted, and this is how many there are.
    Count(u64),
    Scan(Arc<TableSnapshot>),
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

/// The queries of one request: what they may still do on the writer, and the tables they have frozen.
pub(crate) struct Finder<'d> {
    datastore: &'d mut Datastore,
    rows_left: usize,
    bytes_left: usize,
    frozen: Vec<(TableId, Arc<TableSnapshot>)>,
}

impl Finder<'_> {
    pub fn new(datastore: &mut Datastore) -> Finder<'_> {
        Finder {
            datastore,
            rows_left: WRITER_ROWS_MAX,
            bytes_left: WRITER_BYTES_MAX,
            frozen: Vec::new(),
        }
    }

    /// Finds the rows of a plan in the committed state. Only what an index answers, and small tables, run here.
    ///
    /// The plan's table may be gone or replaced since it was compiled; the result is empty then.
    pub fn find(&mut self, plan: &SelectPlan) -> Source {
        let none = |table_is_empty| Source::Rows {
            rows: Rows::default(),
            table_is_empty,
        };
        let Some(table) = self.datastore.table(plan.table.id) else {
            return none(true);
        };
        let predicate = plan.predicate.as_ref();
        if table.rows().row_count() == 0 {
            return none(true);
        }
        if predicate.is_some_and(|predicate| predicate.is_never()) {
            return none(false);
        }
        let mut rows = Rows::default();
        let (mut rows_left, mut bytes_left) = (self.rows_left, self.bytes_left);
        // False: it is too much for the writer.
        let mut look_at = |row: &[u8]| {
            let kept = predicate.is_none_or(|p| p.matches(table.layout(), row));
            let bytes = if kept { row.len() } else { 0 };
            if rows_left == 0 || bytes > bytes_left {
                return false;
            }
            rows_left -= 1;
            bytes_left -= bytes;
            if kept {
                rows.push(row);
            }
            true
        };
        let mut complete = false;
        if let Some((position, point)) = usable_index(plan, &table.schema.indexes) {
            let index = &table.indexes()[position];
            complete = true;
            let visit = |id| {
                complete = complete && look_at(table.row(id));
                complete
            };
            let found = index.walk_point(table.rows(), table.layout(), &point, None, visit);
            complete &= found.is_ok();
        } else if table.rows().row_count() <= SCAN_ON_WRITER_ROWS_MAX {
            complete = true;
            table.rows().walk(None, |_, row| {
                complete = complete && look_at(row);
                complete
            });
        }
        if complete {
            (self.rows_left, self.bytes_left) = (rows_left, bytes_left);
            return Source::Rows {
                rows,
                table_is_empty: false,
            };
        }
        Source::Scan(self.freeze(plan.table.id))
    }

    fn freeze(&mut self, id: TableId) -> Arc<TableSnapshot> {
        if let Some((_, table)) = self.frozen.iter().find(|(frozen, _)| *frozen == id) {
            return table.clone();
        }
        let table = self
            .datastore
            .snapshot_table(id)
            .expect("the table was just there");
        let table = Arc::new(table);
        self.frozen.push((id, table.clone()));
        table
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

impl Source {
    pub fn is_deferred(&self) -> bool {
        matches!(self, Source::Scan(_))
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

    /// The number of pages; what was found on the writer is one.
    pub fn page_count(&self) -> usize {
        match self {
            Source::Scan(table) => table.rows.pages().len(),
            Source::Rows { .. } | Source::Count(_) => 1,
        }
    }

    /// Calls `visit` with the rows of a page that match.
    pub fn for_each_of_page(&self, plan: &SelectPlan, page: usize, mut visit: impl FnMut(&[u8])) {
        match self {
            Source::Rows { rows, .. } => rows.iter().for_each(visit),
            Source::Count(_) => {}
            Source::Scan(table) => {
                let rows = &table.rows;
                rows.for_each_of_page(&rows.pages()[page], |row| match &plan.predicate {
                    Some(predicate) if !predicate.matches(&table.layout, row) => {}
                    _ => visit(row),
                });
            }
        }
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
