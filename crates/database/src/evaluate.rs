//! Finding what a query reads: by an index on the writer, or in frozen pages for a scan on another thread.

use std::sync::Arc;

use lightcone_engine::Datastore;
use lightcone_query::{Predicate, SelectPlan};
use lightcone_schema::IndexSchema;
use lightcone_table::{RowLayout, TableSnapshot};
use lightcone_types::{ColId, TableId};
use lightcone_wire::rows::RowSize;

/// A table with at most so many rows is scanned on the writer; freezing it would cost more.
const SCAN_ON_WRITER_ROWS_MAX: u64 = 256;
/// What the queries of one request may look at and copy on the writer. Beyond it they are scans on another thread.
const WRITER_ROWS_MAX: usize = 65_536;
const WRITER_BYTES_MAX: usize = 1 << 20;
/// Steps of predicates ([`Predicate::steps`]) that the queries of one request may take on the writer: about a millisecond.
const WRITER_STEPS_MAX: usize = 1 << 18;

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
    /// Without it, only what can be found here is.
    may_freeze: bool,
    left: Allowance,
    frozen: Vec<(TableId, Arc<TableSnapshot>)>,
}

/// What is left of the work that the queries of one request may do on the writer.
struct Allowance {
    rows: usize,
    steps: usize,
    bytes: usize,
}

impl Allowance {
    /// Whether a row is to be kept; None if finding out, or keeping it, is too much. What was done for a query that turns out
    /// to be too much was done all the same.
    fn look_at(
        &mut self,
        layout: &RowLayout,
        predicate: Option<&Predicate>,
        row: &[u8],
    ) -> Option<bool> {
        self.rows = self.rows.checked_sub(1)?;
        if let Some(predicate) = predicate {
            self.steps = self.steps.checked_sub(predicate.steps(row.len()))?;
            if !predicate.matches(layout, row) {
                return Some(false);
            }
        }
        self.bytes = self.bytes.checked_sub(row.len())?;
        Some(true)
    }
}

impl Finder<'_> {
    pub fn new(datastore: &mut Datastore, may_freeze: bool) -> Finder<'_> {
        Finder {
            datastore,
            may_freeze,
            left: Allowance {
                rows: WRITER_ROWS_MAX,
                steps: WRITER_STEPS_MAX,
                bytes: WRITER_BYTES_MAX,
            },
            frozen: Vec::new(),
        }
    }

    /// Finds the rows of a plan in the committed state. Only what an index answers, and small tables, run here.
    ///
    /// The plan's table may be gone or replaced since it was compiled; the result is empty then. None: it would have to be
    /// frozen, and may not.
    pub fn find(&mut self, plan: &SelectPlan) -> Option<Source> {
        let none = |table_is_empty| Source::Rows {
            rows: Rows::default(),
            table_is_empty,
        };
        let Some(table) = self.datastore.table(plan.table.id) else {
            return Some(none(true));
        };
        let predicate = plan.predicate.as_ref();
        if table.rows().row_count() == 0 {
            return Some(none(true));
        }
        if predicate.is_some_and(|predicate| predicate.is_never()) {
            return Some(none(false));
        }
        let mut rows = Rows::default();
        let left = &mut self.left;
        // False: it is too much for the writer.
        let mut look_at = |row: &[u8]| {
            let kept = left.look_at(table.layout(), predicate, row);
            if kept == Some(true) {
                rows.push(row);
            }
            kept.is_some()
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
            return Some(Source::Rows {
                rows,
                table_is_empty: false,
            });
        }
        self.may_freeze
            .then(|| Source::Scan(self.freeze(plan.table.id)))
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
pub(crate) fn usable_index(plan: &SelectPlan, indexes: &[IndexSchema]) -> Option<(usize, Vec<u8>)> {
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

    /// Bytes of the rows that were found on the writer.
    pub fn held_bytes(&self) -> usize {
        match self {
            Source::Rows { rows, .. } => rows.bytes.len() + rows.ends.len() * size_of::<usize>(),
            Source::Count(_) | Source::Scan(_) => 0,
        }
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
        .declared_columns()
        .iter()
        .map(|column| lightcone_types::bsatn::fixed_size(&column.ty))
        .sum();
    RowSize::new(types)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Items;

    fn is_deferred(found: Option<Source>) -> bool {
        found.expect("it may be frozen").is_deferred()
    }

    #[test]
    fn only_cheap_conditions_are_checked_on_the_writer() {
        let mut items = Items::new(256, 100);
        let cheap = items.plan("id <> 7");
        let long = items.plan(&format!("id = 1000{}", " OR id = 1000".repeat(3000)));
        let texts = items.plan(&format!("one <> two{}", " OR one <> two".repeat(100)));
        let mut finder = Finder::new(&mut items.datastore, true);
        let Some(Source::Rows { rows, .. }) = finder.find(&cheap) else {
            panic!("256 rows are few");
        };
        assert_eq!(rows.ends.len(), 255);
        assert!(is_deferred(finder.find(&long)), "768,000 comparisons");
        let mut finder = Finder::new(&mut items.datastore, true);
        assert!(is_deferred(finder.find(&texts)), "6 MB of comparisons");
        let mut finder = Finder::new(&mut items.datastore, false);
        assert!(finder.find(&cheap).is_some());
        assert!(finder.find(&long).is_none());
    }

    #[test]
    fn what_was_too_much_was_done_all_the_same() {
        let mut items = Items::new(256, 10);
        let long = items.plan(&format!("id = 1000{}", " OR id = 1000".repeat(3000)));
        let mut finder = Finder::new(&mut items.datastore, true);
        for _ in 0..100 {
            assert!(is_deferred(finder.find(&long)));
        }
        assert!(finder.left.steps < 3001, "the second one was not tried");
        assert!(finder.left.rows < WRITER_ROWS_MAX - 87);
    }
}
