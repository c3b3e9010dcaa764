//! Finding what a query reads: by an index on the writer, or in a frozen table on another thread.

use std::sync::Arc;

use lightcone_engine::Datastore;
use lightcone_query::{Predicate, Projection, SelectPlan};
use lightcone_schema::{IndexSchema, TableSchema};
use lightcone_table::{RowId, RowLayout, TableView};
use lightcone_types::ColId;
use lightcone_wire::rows::RowSize;

use crate::budget::{Charge, ClientBudget};
use crate::error::ReadError;
use crate::frozen::{FrozenTable, FrozenTables};
use crate::row_limit::FoundRows;
use crate::running_query::RunningQuery;
use lightcone_live::{BoundQuery, BoundWindow};
use lightcone_live::{Entry, Windows};

/// A table with at most so many rows is scanned on the writer; freezing it would cost more.
const SCAN_ON_WRITER_ROWS_MAX: u64 = 256;
/// What the queries of one request may look at and copy on the writer. Beyond it they are scans on another thread.
const WRITER_ROWS_MAX: usize = 65_536;
const WRITER_BYTES_MAX: usize = 1 << 20;
/// Steps of predicates ([`Predicate::steps`]) that the queries of one request may take on the writer: about a millisecond.
const WRITER_STEPS_MAX: usize = 1 << 18;

/// Memory for rows that were found is reserved in pieces of this size.
const FOUND_BYTES: usize = 64 << 10;

/// Rows a query found, or what is needed to find them elsewhere.
pub(crate) enum Source {
    /// Concatenated rows.
    Rows {
        rows: Rows,
        table_is_empty: bool,
        limit: FoundRows,
    },
    /// All rows are counted, and this is how many there are.
    Count(u64),
    Shared(SharedRows),
    View(View),
    /// A query on several tables. What was found is kept until all is, as far as it has to be counted first.
    Running(Box<RunningQuery>, Found),
}

/// Rows that were found so far, with their memory.
#[derive(Default)]
pub(crate) struct Found {
    rows: Rows,
    charge: Charge,
    is_complete: bool,
}

/// Rows that the writer keeps as well, and does not copy.
pub(crate) struct SharedRows {
    entries: Vec<Entry>,
    table_is_empty: bool,
    /// They are too many to be written on the writer.
    is_deferred: bool,
    /// For list and rows: the writer may drop them meanwhile.
    _charge: Charge,
}

/// A frozen table, and how its rows are found.
pub(crate) struct View {
    table: Arc<FrozenTable>,
    /// An index and the point to look up there; without it, all rows are looked at.
    point: Option<(usize, Vec<u8>)>,
    limit: FoundRows,
}

/// A place in a source: what comes before it was visited.
#[derive(Clone, Copy, Default)]
pub(crate) struct Cursor {
    page: usize,
    after: Option<RowId>,
    /// Rows that matched.
    rows: u64,
}

impl Cursor {
    pub fn is_at_start(&self) -> bool {
        self.page == 0 && self.after.is_none()
    }
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

    fn memory_bytes(&self) -> usize {
        self.bytes.capacity() + self.ends.capacity() * size_of::<usize>()
    }

    pub fn iter(&self) -> impl Iterator<Item = &[u8]> + Clone {
        (0..self.ends.len()).map(|index| {
            let start = if index == 0 { 0 } else { self.ends[index - 1] };
            &self.bytes[start..self.ends[index]]
        })
    }
}

/// The queries of one request, and what they may still do on the writer.
pub(crate) struct Finder<'d> {
    datastore: &'d mut Datastore,
    frozen: &'d mut FrozenTables,
    windows: &'d Windows,
    /// Without it, only what can be found here is.
    may_freeze: bool,
    /// Rows that queries of the caller may find ([`crate::row_limit::of`]).
    row_limit: Option<u64>,
    left: &'d mut Allowance,
}

/// What is left of the work that the queries of one request may do on the writer.
pub(crate) struct Allowance {
    rows: usize,
    steps: usize,
    bytes: usize,
}

impl Default for Allowance {
    fn default() -> Allowance {
        Allowance {
            rows: WRITER_ROWS_MAX,
            steps: WRITER_STEPS_MAX,
            bytes: WRITER_BYTES_MAX,
        }
    }
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

impl<'d> Finder<'d> {
    pub fn new(
        datastore: &'d mut Datastore,
        frozen: &'d mut FrozenTables,
        windows: &'d Windows,
        may_freeze: bool,
        row_limit: Option<u64>,
        left: &'d mut Allowance,
    ) -> Finder<'d> {
        Finder {
            datastore,
            frozen,
            windows,
            may_freeze,
            row_limit,
            left,
        }
    }

    /// Finds the rows of a plan in the committed state. Only what an index answers, and small tables, run here.
    ///
    /// The plan's table may be gone or replaced since it was compiled; the result is empty then. None: it would have to be
    /// frozen, and may not.
    pub fn find(&mut self, asked: &BoundQuery) -> Option<Source> {
        match asked {
            BoundQuery::Table(plan) => self.find_plan(plan),
            BoundQuery::Tables(query, sender) if self.may_freeze => {
                let max = self.row_limit.filter(|_| query.has_rules());
                let (datastore, frozen) = (&mut *self.datastore, &mut *self.frozen);
                let running = RunningQuery::new(datastore, frozen, query, *sender, max);
                Some(Source::Running(Box::new(running), Found::default()))
            }
            BoundQuery::Tables(..) => None,
            BoundQuery::Window(_) => unreachable!("only subscriptions are made windows"),
        }
    }

    /// The number of all rows of a plan's table.
    pub fn count(&self, plan: &SelectPlan) -> Source {
        let table = self.datastore.table(plan.table.id);
        Source::Count(table.map_or(0, |table| table.rows().row_count()))
    }

    /// Of the rows that it gives, or counts.
    fn limit_of_plan(&self, plan: &SelectPlan) -> FoundRows {
        let max = self.row_limit.filter(|_| plan.fragment.is_some());
        let gives = match plan.projection {
            Projection::Row | Projection::Columns(_) => plan.limit,
            Projection::Count(_) => None,
        };
        FoundRows {
            max: max.filter(|max| gives.is_none_or(|rows| rows > *max)),
        }
    }

    /// The rows of a window, within what the client may have.
    ///
    /// # Errors
    /// They are more.
    pub fn find_window(
        &mut self,
        asked: &BoundWindow,
        budget: &Arc<ClientBudget>,
    ) -> Result<Source, ReadError> {
        let entries = self.windows.entries(asked);
        if asked.query.has_rules() {
            let limit = FoundRows {
                max: self.row_limit,
            };
            limit.check(entries.len() as u64)?;
        }
        let bytes = entries.iter().map(|entry| entry.bytes().len());
        let bytes = bytes.sum::<usize>() + size_of_val(entries);
        let charge = budget.reserve(bytes)?;
        let left = &mut *self.left;
        let is_deferred = entries.len() > left.rows || bytes > left.bytes;
        if !is_deferred {
            left.rows -= entries.len();
            left.bytes -= bytes;
        }
        let table = self.datastore.table(asked.shape.table.id);
        Ok(Source::Shared(SharedRows {
            entries: entries.to_vec(),
            table_is_empty: table.is_none_or(|table| table.rows().row_count() == 0),
            is_deferred,
            _charge: charge,
        }))
    }

    fn find_plan(&mut self, plan: &SelectPlan) -> Option<Source> {
        let limit = self.limit_of_plan(plan);
        let none = |table_is_empty| Source::Rows {
            rows: Rows::default(),
            table_is_empty,
            limit,
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
        let left = &mut *self.left;
        // False: it is too much for the writer.
        let mut look_at = |row: &[u8]| {
            let kept = left.look_at(table.layout(), predicate, row);
            if kept == Some(true) {
                rows.push(row);
            }
            kept.is_some()
        };
        let mut complete = false;
        let point = usable_index(plan, &table.schema.indexes);
        if let Some((position, point)) = &point {
            let index = &table.indexes()[*position];
            complete = true;
            let visit = |id| {
                complete = complete && look_at(table.row(id));
                complete
            };
            let found = index.walk_point(table.rows(), table.layout(), point, None, visit);
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
                limit,
            });
        }
        if !self.may_freeze {
            return None;
        }
        let table = self.frozen.freeze(self.datastore, plan.table.id);
        let table = table.expect("the table was just there");
        Some(Source::View(View {
            table,
            point,
            limit,
        }))
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
        match self {
            Source::View(_) | Source::Running(..) => true,
            Source::Shared(rows) => rows.is_deferred,
            Source::Rows { .. } | Source::Count(_) => false,
        }
    }

    /// A query over a table without rows contributes no entry to `SubscribeApplied` (05 §7.1).
    pub fn table_is_empty(&self) -> bool {
        match self {
            Source::Rows { table_is_empty, .. } => *table_is_empty,
            Source::Shared(rows) => rows.table_is_empty,
            Source::Count(_) | Source::View(_) | Source::Running(..) => false,
        }
    }

    /// Bytes of the rows that were found on the writer, and are not reserved yet.
    pub fn held_bytes(&self) -> usize {
        match self {
            Source::Rows { rows, .. } => rows.bytes.len() + rows.ends.len() * size_of::<usize>(),
            Source::Count(_) | Source::Shared(_) | Source::View(_) | Source::Running(..) => 0,
        }
    }

    /// The frozen table, if all of its rows are looked at.
    pub fn whole_table(&self) -> Option<&TableView> {
        match self {
            Source::View(View {
                table, point: None, ..
            }) => Some(table),
            _ => None,
        }
    }

    /// Calls `visit` with the next rows that match. False: there are none behind them.
    ///
    /// # Errors
    /// The table was frozen too long ago, or there are more rows than the caller's queries may find.
    pub fn step(
        &self,
        asked: &BoundQuery,
        cursor: &mut Cursor,
        mut visit: impl FnMut(&[u8]),
    ) -> Result<bool, ReadError> {
        let mut rows = 0;
        let has_more = self.visit(asked, cursor, |row| {
            rows += 1;
            visit(row);
        })?;
        cursor.rows += rows;
        if let Source::Rows { limit, .. } | Source::View(View { limit, .. }) = self {
            limit.check(cursor.rows)?;
        }
        Ok(has_more)
    }

    fn visit(
        &self,
        asked: &BoundQuery,
        cursor: &mut Cursor,
        mut visit: impl FnMut(&[u8]),
    ) -> Result<bool, ReadError> {
        match (self, asked) {
            (Source::Rows { rows, .. }, _) => {
                rows.iter().for_each(visit);
                Ok(false)
            }
            (Source::Shared(rows), _) => Ok(rows.step(cursor, visit)),
            (Source::Running(_, found), _) => {
                found.rows.iter().for_each(visit);
                Ok(false)
            }
            (Source::View(view), _) if view.table.is_ended() => Err(ReadError::Ended),
            (Source::View(view), BoundQuery::Table(plan)) => {
                let layout = view.table.layout();
                Ok(view.step(cursor, |row| match &plan.predicate {
                    Some(predicate) if !predicate.matches(layout, row) => {}
                    _ => visit(row),
                }))
            }
            (Source::Count(_) | Source::View(_), _) => Ok(false),
        }
    }

    /// Finds a little more of what is kept until all is found. False: there is nothing to be found so.
    pub fn find_more(&mut self, budget: &Arc<ClientBudget>) -> Result<bool, ReadError> {
        let Source::Running(running, found) = self else {
            return Ok(false);
        };
        if found.is_complete {
            return Ok(false);
        }
        let mut kept = Ok(());
        let rows = &mut found.rows;
        let charge = &mut found.charge;
        let has_more = running.step(budget, |row| {
            rows.push(row);
            // In pieces, as a budget is shared by threads.
            if rows.memory_bytes() > charge.bytes() {
                kept = charge.grow_in(budget, FOUND_BYTES + row.len());
            }
            kept.is_ok()
        })?;
        kept?;
        found.is_complete = !has_more;
        Ok(true)
    }
}

/// Rows of an index, or a window, that are looked at in one step.
const STEP_ROWS: usize = 1024;

impl SharedRows {
    /// Visits the next rows. False: there are no more.
    fn step(&self, cursor: &mut Cursor, mut visit: impl FnMut(&[u8])) -> bool {
        let start = cursor.page * STEP_ROWS;
        let end = (start + STEP_ROWS).min(self.entries.len());
        let entries = self.entries[start..end].iter();
        entries.for_each(|entry| visit(entry.row()));
        cursor.page += 1;
        end < self.entries.len()
    }
}

impl View {
    /// Visits the rows of a page, or as many of an index. False: there are no more.
    fn step(&self, cursor: &mut Cursor, mut visit: impl FnMut(&[u8])) -> bool {
        let table = &self.table;
        let Some((position, point)) = &self.point else {
            let pages = table.rows().page_count();
            if cursor.page < pages {
                let rows = table.rows();
                rows.for_each_of_page(cursor.page, |_, row| visit(row));
                cursor.page += 1;
            }
            return cursor.page < pages;
        };
        let mut left = STEP_ROWS;
        let index = &table.indexes()[*position];
        let found = index.walk_point(table.rows(), table.layout(), point, cursor.after, |id| {
            visit(table.row(id));
            cursor.after = Some(id);
            left -= 1;
            left > 0
        });
        found.expect("the writer has looked up the same point");
        left == 0
    }
}

/// What is known of the size of a table's rows.
pub(crate) fn row_size(table: &TableSchema) -> RowSize {
    let columns = table.declared_columns().iter();
    let types: Option<usize> = columns
        .map(|column| lightcone_types::bsatn::fixed_size(&column.ty))
        .sum();
    RowSize::new(types)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::MemoryBudget;
    use crate::testing::{machine, Items};
    use lightcone_live::{Holder, IndexBuilding, IndexUser, WindowLimits, WindowUser};

    fn is_deferred(found: Option<Source>) -> bool {
        found.expect("it may be frozen").is_deferred()
    }

    /// One without a limit of rows.
    fn finder_of<'d>(
        items: &'d mut Items,
        frozen: &'d mut FrozenTables,
        windows: &'d Windows,
        may_freeze: bool,
        left: &'d mut Allowance,
    ) -> Finder<'d> {
        let datastore = &mut items.datastore;
        Finder::new(datastore, frozen, windows, may_freeze, None, left)
    }

    #[test]
    fn only_cheap_conditions_are_checked_on_the_writer() {
        let (mut frozen, windows) = (FrozenTables::default(), Windows::default());
        let mut items = Items::new(256, 100);
        let cheap = items.plan("id <> 7");
        let long = items.plan(&format!("id = 1000{}", " OR id = 1000".repeat(3000)));
        let texts = items.plan(&format!("one <> two{}", " OR one <> two".repeat(100)));
        let mut left = Allowance::default();
        let mut finder = finder_of(&mut items, &mut frozen, &windows, true, &mut left);
        let Some(Source::Rows { rows, .. }) = finder.find_plan(&cheap) else {
            panic!("256 rows are few");
        };
        assert_eq!(rows.ends.len(), 255);
        assert!(is_deferred(finder.find_plan(&long)), "768,000 comparisons");
        let mut left = Allowance::default();
        let mut finder = finder_of(&mut items, &mut frozen, &windows, true, &mut left);
        assert!(is_deferred(finder.find_plan(&texts)), "6 MB of comparisons");
        let mut left = Allowance::default();
        let mut finder = finder_of(&mut items, &mut frozen, &windows, false, &mut left);
        assert!(finder.find_plan(&cheap).is_some());
        assert!(finder.find_plan(&long).is_none());
    }

    #[test]
    fn rows_of_windows_are_shared_and_reserved() {
        let mut frozen = FrozenTables::default();
        let mut items = Items::new(300, 1000);
        let mut windows = Windows::default();
        let window = items.live_window("ORDER BY id LIMIT 300");
        let asked = match &window.query {
            BoundQuery::Window(asked) => asked.clone(),
            _ => panic!("it is a window"),
        };
        let limits = WindowLimits {
            rows_max: 300,
            windows_max: 10,
            bytes_max: 10 << 20,
            rows_read_max: 1000,
        };
        let user = WindowUser {
            limits,
            is_modest: true,
            index_user: IndexUser::Module,
            now: std::time::Instant::now(),
        };
        let added = windows.add(
            (&mut items.datastore, &mut IndexBuilding::default()),
            [&asked].into_iter(),
            Holder::Set,
            user,
        );
        assert_eq!(added, Ok(()));
        let all = MemoryBudget::new(machine(), 100 << 20);
        let client = ClientBudget::new(&all, 3 << 20);
        let mut left = Allowance::default();
        let mut finder = finder_of(&mut items, &mut frozen, &windows, false, &mut left);
        let mut find = || finder.find_window(&asked, &client);
        let first = find().expect("600 KB");
        assert!(!first.is_deferred());
        let second = find().expect("there is room");
        assert!(second.is_deferred(), "together more than a MiB");
        let (mut cursor, mut rows) = (Cursor::default(), 0);
        let asked_window = BoundQuery::Window(asked.clone());
        while second
            .step(&asked_window, &mut cursor, |_| rows += 1)
            .expect("it is there")
        {}
        assert_eq!(rows, 300);
        let others: Vec<_> = (0..10).map(|_| find()).take_while(Result::is_ok).collect();
        assert_eq!(others.len(), 3, "five of them are in 3 MiB");
        let is_same = |source: &Source| match (source, &first) {
            (Source::Shared(a), Source::Shared(b)) => {
                std::ptr::eq(a.entries[0].row(), b.entries[0].row())
            }
            _ => false,
        };
        assert!(is_same(&second), "the rows are not copied");
        drop((first, second, others));
        assert!(find().is_ok());
    }

    #[test]
    fn what_was_too_much_was_done_all_the_same() {
        let (mut frozen, windows) = (FrozenTables::default(), Windows::default());
        let mut items = Items::new(256, 10);
        let long = items.plan(&format!("id = 1000{}", " OR id = 1000".repeat(3000)));
        let mut left = Allowance::default();
        let mut finder = finder_of(&mut items, &mut frozen, &windows, true, &mut left);
        for _ in 0..100 {
            assert!(is_deferred(finder.find_plan(&long)));
        }
        assert!(finder.left.steps < 3001, "the second one was not tried");
        assert!(finder.left.rows < WRITER_ROWS_MAX - 87);
    }
}
