//! Live windows: the first rows of an order, `ORDER BY … LIMIT n`, kept up to date from the changes of their table (08 §13.7).
//!
//! The writer keeps the rows of each window, and some behind them, in order. Right after a commit it finds the windows that a
//! changed row belongs to by the values of their parameters, and the row's place in them ([`of_shape`]); what comes into a
//! window and what goes are changes like those of a table, with the values as a key by which fan-out finds the subscribers. When
//! so many rows have gone that those behind are used up, more are looked for by an index ([`fill`]).
//!
//! Where row-level security rules decide about rows by several queries, or by joins, these are the window's sources ([`source`]): a
//! row is in it once, with the number of times that they give it. What changes of a source is a change of the table, or of a live join
//! ([`crate::joins`]); a source's key leads to the windows.

mod allowance;
mod common;
mod fill;
mod limits;
mod of_shape;
mod own;
mod refill;
mod shape;
mod source;
mod window;

use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use lightcone_table::{CurrentTables, DeltaBatch};
use lightcone_types::TableId;
use rustc_hash::FxHashMap;

use self::allowance::{Allowance, Spent};
use self::limits::Room;
use self::of_shape::{Concerned, OfShape, Scratch};

pub use self::limits::WindowLimits;
pub use self::own::OwnWindow;
pub use self::shape::{WindowShape, WindowShapes};
pub use self::window::Entry;
use crate::bound_query::BoundWindow;
use crate::held_indexes::{Asker, IndexBuilding, RuleColumns};
use crate::joins::Answers;
use crate::live_query::LiveQuery;

/// Within a transaction, windows may have more bytes than there may be by such a part, until all of them are up to date.
const EXCESS_PART: usize = 4;

/// The live windows of a database.
#[derive(Default)]
pub struct Windows {
    shapes: FxHashMap<TableId, OfShape>,
    /// Shapes, and which of their sources, by the table or join that they read.
    by_table: FxHashMap<TableId, Vec<(TableId, usize)>>,
    count: usize,
    bytes: usize,
    building: IndexBuilding,
    concerned: Vec<Concerned>,
    /// Rows that were looked at for the last transaction that was evaluated.
    rows_looked_at: usize,
    scratch: Scratch,
}

impl Windows {
    pub fn is_empty(&self) -> bool {
        self.shapes.is_empty()
    }

    /// Counts the windows of a set of queries. The first one of its kind has its rows looked for, by an index that is held for it if
    /// the table has none that helps.
    ///
    /// # Errors
    /// What the client is told: one of them is too much. None is counted then.
    pub fn add(
        &mut self,
        tables: &mut dyn CurrentTables,
        queries: &[Arc<LiveQuery>],
        limits: WindowLimits,
        is_modest: bool,
        now: Instant,
    ) -> Result<(), String> {
        let mut room = Room {
            rows_left: limits.rows_read_max,
            answers: Answers::default(),
            is_modest,
        };
        for (position, query) in queries.iter().enumerate() {
            let Some(window) = query.window() else {
                continue;
            };
            let added = self.add_one(tables, window, limits, &mut room, now);
            if let Err(error) = added {
                self.remove(tables, &queries[..position]);
                return Err(error);
            }
        }
        Ok(())
    }

    fn add_one(
        &mut self,
        tables: &mut dyn CurrentTables,
        window: &Arc<BoundWindow>,
        limits: WindowLimits,
        room: &mut Room,
        now: Instant,
    ) -> Result<(), String> {
        let shape = &window.shape;
        if shape.extent.end > limits.rows_max {
            return Err(format!("a subscription with ORDER BY has at most {} rows, those that OFFSET leaves out counted: use a smaller LIMIT, or raise limits.window-rows-max [LC0727]", limits.rows_max));
        }
        if let Some(of_shape) = self.shapes.get_mut(&shape.id) {
            if of_shape.add_subscriber(&window.key) {
                return Ok(());
            }
        }
        if self.count >= limits.windows_max {
            return Err(format!("clients are subscribed to {} different windows (ORDER BY … LIMIT), as many as limits.windows-max allows [LC0727]", self.count));
        }
        if !room.is_modest && self.count >= limits.windows_max.div_ceil(2) {
            return Err(format!("clients are subscribed to {} different windows (ORDER BY … LIMIT), half of the {} that limits.windows-max allows: the others are for connections with few of them [LC0727]", self.count, limits.windows_max));
        }
        self.hold(tables, shape, now)?;
        let of_shape = self.shapes.get_mut(&shape.id).expect("it is held");
        let added = of_shape.add_window(tables, window, limits, (room, self.bytes));
        match &added {
            Ok(bytes) => {
                self.bytes += bytes;
                self.count += 1;
            }
            Err(_) => self.let_go_if_unused(tables, shape),
        }
        added.map(drop)
    }

    /// Undoes one [`add`](Self::add).
    pub fn remove(&mut self, tables: &mut dyn CurrentTables, queries: &[Arc<LiveQuery>]) {
        for window in queries.iter().filter_map(|query| query.window()) {
            let Some(of_shape) = self.shapes.get_mut(&window.shape.id) else {
                continue;
            };
            if let Some(bytes) = of_shape.remove_subscriber(&window.key) {
                self.bytes -= bytes;
                self.count -= 1;
                self.let_go_if_unused(tables, &window.shape);
            }
        }
    }

    /// Makes a place for the windows of a shape, and the indexes that they need.
    fn hold(
        &mut self,
        tables: &mut dyn CurrentTables,
        shape: &Arc<WindowShape>,
        now: Instant,
    ) -> Result<(), String> {
        if self.shapes.contains_key(&shape.id) {
            return Ok(());
        }
        let none = RuleColumns::default();
        let columns = shape.held_columns();
        self.building
            .check(tables, columns, Asker::Client(&none), now)?;
        for (table, column) in shape.held_columns() {
            self.building.hold(tables, table.id, column);
        }
        self.shapes.insert(shape.id, OfShape::new(shape.clone()));
        for (source, table) in shape.read_by_sources().enumerate() {
            let of_table = self.by_table.entry(table).or_default();
            of_table.push((shape.id, source));
        }
        Ok(())
    }

    fn let_go_if_unused(&mut self, tables: &mut dyn CurrentTables, shape: &WindowShape) {
        if self.shapes.get(&shape.id).is_none_or(|of| !of.is_empty()) {
            return;
        }
        self.shapes.remove(&shape.id);
        for (table, column) in shape.held_columns() {
            tables.release_index(table.id, column);
        }
        for table in shape.read_by_sources() {
            if let Some(of_table) = self.by_table.get_mut(&table) {
                of_table.retain(|(id, _)| *id != shape.id);
                if of_table.is_empty() {
                    self.by_table.remove(&table);
                }
            }
        }
    }

    /// The rows of a window.
    pub fn entries(&self, window: &BoundWindow) -> &[Entry] {
        let of_shape = self.shapes.get(&window.shape.id);
        of_shape.map_or(&[], |of_shape| of_shape.entries(&window.key))
    }

    /// Whether the rows of a window are known.
    pub fn has(&self, window: &BoundWindow) -> bool {
        let of_shape = self.shapes.get(&window.shape.id);
        of_shape.is_some_and(|of_shape| of_shape.has(&window.key))
    }

    /// Whether a window is kept up to date no more.
    pub fn has_failed(&self, window: &BoundWindow) -> bool {
        let of_shape = self.shapes.get(&window.shape.id);
        of_shape.is_some_and(|of_shape| of_shape.has_failed(&window.key))
    }

    /// Makes all windows anew, over tables that took the place of others. Nobody is told what has changed. Each may look at as many
    /// rows as when it was made, and all together at no more than in a transaction with as many changes as they keep rows. Gives
    /// whether some have failed.
    pub fn rebuild(&mut self, tables: &mut dyn CurrentTables, limits: WindowLimits) -> bool {
        let of_shapes = self.shapes.values();
        let kept_rows = of_shapes.map(OfShape::kept_rows);
        let mut allowance = Allowance::of(kept_rows.sum(), limits);
        self.bytes = 0;
        let mut some_failed = false;
        for of_shape in self.shapes.values_mut() {
            for (table, column) in of_shape.shape.held_columns() {
                tables.hold_index(table.id, column);
            }
            self.bytes += of_shape.rebuild(tables, &mut allowance.rows_in_all, limits);
            some_failed |= of_shape.some_failed();
        }
        some_failed
    }

    /// Joins have failed, so that nobody knows any more what they give: windows that have one of them as a source say nothing from now
    /// on, until their query sets end with it. Rows that they have kept behind those that come out may be nobody's by now.
    pub fn give_up_with(&mut self, failed_joins: &[TableId]) {
        for join in failed_joins {
            for (shape, _) in self.by_table.get(join).into_iter().flatten() {
                if let Some(of_shape) = self.shapes.get_mut(shape) {
                    of_shape.give_up();
                }
            }
        }
    }

    /// Appends the changes of windows to those of tables and joins, which are `ops`, of a transaction that was just committed. Gives
    /// whether some windows have failed: they took too much to be filled again, or all together have too many bytes.
    pub fn evaluate(
        &mut self,
        tables: &dyn CurrentTables,
        deltas: &mut DeltaBatch,
        ops: Range<usize>,
        limits: WindowLimits,
    ) -> bool {
        self.rows_looked_at = 0;
        self.find_concerned(deltas, ops.clone());
        if self.concerned.is_empty() {
            return false;
        }
        self.scratch.answers.clear();
        let mut allowance = Allowance::of(ops.len(), limits);
        let mut greedy: Vec<Spent> = Vec::new();
        let mut some_failed = false;
        let all_concerned = std::mem::take(&mut self.concerned);
        for concerned in all_concerned.chunk_by(|a, b| a.shape == b.shape) {
            let Some(of_shape) = self.shapes.get_mut(&concerned[0].shape) else {
                continue;
            };
            let scratch = &mut self.scratch;
            of_shape.apply(deltas, concerned, scratch);
            of_shape.fill_touched(tables, scratch, &mut allowance, &mut greedy);
            of_shape.lately.add(allowance.spent - self.rows_looked_at);
            self.rows_looked_at = allowance.spent;
            let change = of_shape.count_bytes(scratch);
            self.bytes = self.bytes.saturating_add_signed(change);
            // Before each of very many windows says what it has.
            let excess = self.bytes.saturating_sub(limits.bytes_max);
            if excess > limits.bytes_max / EXCESS_PART {
                self.fail_largest(limits.bytes_max);
                some_failed = true;
            }
            if let Some(of_shape) = self.shapes.get_mut(&concerned[0].shape) {
                of_shape.finish(deltas, &mut self.scratch);
            }
        }
        self.concerned = all_concerned;
        some_failed |= !greedy.is_empty();
        for spent in greedy {
            self.fail(spent.shape, spent.window);
        }
        if self.bytes > limits.bytes_max {
            self.fail_largest(limits.bytes_max);
            some_failed = true;
        }
        some_failed
    }

    /// Rows that were looked at for the last transaction that was [evaluated](Self::evaluate).
    pub fn rows_looked_at(&self) -> usize {
        self.rows_looked_at
    }

    /// See [`WorkBudget::halvings`](crate::WorkBudget::halvings).
    pub fn halve_rows_lately(&mut self, times: u32) {
        let shapes = self.shapes.values_mut();
        shapes.for_each(|of_shape| of_shape.lately.halve(times));
    }

    /// Shapes, and how many rows were looked at for each lately.
    pub fn rows_lately(&self) -> impl Iterator<Item = (TableId, u64)> + '_ {
        let shapes = self.shapes.iter();
        shapes.map(|(id, of_shape)| (*id, of_shape.lately.rows()))
    }

    /// Those of one shape come one behind the other.
    fn find_concerned(&mut self, deltas: &DeltaBatch, ops: Range<usize>) {
        self.concerned.clear();
        let mut start = ops.start;
        for of_table in deltas.ops(ops).chunk_by(|a, b| a.table == b.table) {
            let ops = (start, start + of_table.len());
            start = ops.1;
            let shapes = self.by_table.get(&of_table[0].table);
            let shapes = shapes.map_or(&[][..], Vec::as_slice);
            let concerned = shapes.iter().map(|(shape, source)| Concerned {
                shape: *shape,
                source: *source,
                ops,
            });
            self.concerned.extend(concerned);
        }
        self.concerned.sort_unstable();
    }

    fn fail(&mut self, shape: TableId, window: u32) {
        if let Some(of_shape) = self.shapes.get_mut(&shape) {
            self.bytes -= of_shape.fail(window);
        }
    }

    /// Until the others have no more bytes than these.
    #[cold]
    fn fail_largest(&mut self, bytes_max: usize) {
        let of_shapes = self.shapes.iter();
        let mut windows: Vec<(usize, TableId, u32)> = of_shapes
            .flat_map(|(id, of_shape)| {
                let windows = of_shape.sizes();
                windows.map(|(bytes, window)| (bytes, *id, window))
            })
            .collect();
        windows.sort_unstable();
        while self.bytes > bytes_max {
            let Some((_, shape, window)) = windows.pop() else {
                return;
            };
            self.fail(shape, window);
        }
    }
}
