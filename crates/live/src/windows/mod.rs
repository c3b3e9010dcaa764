//! Live windows: the first rows of an order, `ORDER BY … LIMIT n`, kept up to date from the changes of their table (08 §13.7).
//!
//! The writer keeps the rows of each window, and some behind them, in order. Right after a commit it finds the windows that a
//! changed row belongs to by the values of their parameters, and the row's place in them ([`shape_windows`]); what comes into a
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
mod refill;
mod shape;
mod shape_windows;
mod source;
mod window;

use std::ops::Range;
use std::sync::Arc;

use lightcone_table::{CurrentTables, DeltaBatch};
use lightcone_types::TableId;
use rustc_hash::FxHashMap;

use self::allowance::{Allowance, Spent};
use self::limits::Room;
use self::shape_windows::{Before, Concerned, Live, Scratch, ShapeWindows};

pub use self::limits::{WindowLimits, WindowUser};
pub use self::shape::{WindowShape, WindowShapes};
pub use self::window::Entry;
use crate::bound_query::BoundWindow;
use crate::held_indexes::IndexBuilding;
use crate::holders::Holder;

/// Within a transaction, windows may have more bytes than there may be by such a part, until all of them are up to date.
const EXCESS_PART: usize = 4;

/// The live windows of the query sets of a database, or those of its views.
#[derive(Default)]
pub struct Windows {
    shapes: FxHashMap<TableId, ShapeWindows>,
    /// Shapes, and which of their sources, by the table or join that they read.
    by_table: FxHashMap<TableId, Vec<(TableId, usize)>>,
    count: usize,
    bytes: usize,
    concerned: Vec<Concerned>,
    /// Rows that were looked at for the last transaction that was evaluated, or for new windows.
    rows_looked_at: usize,
    scratch: Scratch,
    /// While a module is published: the rows that clients have of windows that are gone.
    before: Option<Before>,
}

impl Windows {
    pub fn is_empty(&self) -> bool {
        self.shapes.is_empty()
    }

    /// Counts a holder of windows, who may have them already if he is an instance of a view. For the first one of a window, its rows are
    /// looked for, by an index that is held for it if the table has none that helps.
    ///
    /// # Errors
    /// What the client is told: one of them is too much. None is counted then.
    pub fn add<'w>(
        &mut self,
        (tables, indexes): (&mut dyn CurrentTables, &mut IndexBuilding),
        windows: impl Iterator<Item = &'w Arc<BoundWindow>> + Clone,
        holder: Holder,
        user: WindowUser<'_>,
    ) -> Result<(), String> {
        let mut room = Room::new(user);
        let mut all = windows.clone().enumerate();
        let added = all.try_for_each(|(position, window)| {
            let added = self.add_one((tables, indexes), (window, holder), &mut room);
            added.map_err(|error| (position, error))
        });
        self.rows_looked_at = user.limits.rows_read_max - room.rows_left;
        added.map_err(|(position, error)| {
            self.remove(tables, windows.take(position), holder);
            error
        })
    }

    fn add_one(
        &mut self,
        (tables, indexes): (&mut dyn CurrentTables, &mut IndexBuilding),
        (window, holder): (&Arc<BoundWindow>, Holder),
        room: &mut Room<'_>,
    ) -> Result<(), String> {
        let (shape, limits) = (&window.shape, room.user.limits);
        if shape.extent.end > limits.rows_max {
            return Err(format!("a subscription with ORDER BY has at most {} rows, those that OFFSET leaves out counted: use a smaller LIMIT, or raise limits.window-rows-max [LC0727]", limits.rows_max));
        }
        if let Some(windows) = self.shapes.get_mut(&shape.id) {
            if windows.add_holder(&window.key, holder) {
                return Ok(());
            }
        }
        if self.count >= limits.windows_max {
            return Err(format!("clients are subscribed to {} different windows (ORDER BY … LIMIT), as many as limits.windows-max allows [LC0727]", self.count));
        }
        if !room.user.is_modest && self.count >= limits.windows_max.div_ceil(2) {
            return Err(format!("clients are subscribed to {} different windows (ORDER BY … LIMIT), half of the {} that limits.windows-max allows: the others are for connections with few of them [LC0727]", self.count, limits.windows_max));
        }
        self.hold((tables, indexes), shape, room.user)?;
        let windows = self.shapes.get_mut(&shape.id).expect("it is held");
        room.is_publish = self.before.is_some();
        let added = windows.add_window(tables, (window, holder), (room, self.bytes));
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
    pub fn remove<'w>(
        &mut self,
        tables: &mut dyn CurrentTables,
        windows: impl Iterator<Item = &'w Arc<BoundWindow>>,
        holder: Holder,
    ) {
        for window in windows {
            let Some(windows) = self.shapes.get_mut(&window.shape.id) else {
                continue;
            };
            if let Some(before) = &mut self.before {
                let rows = before.entry(window.caller_and_text());
                let live = windows.find(&window.key);
                rows.or_insert_with(|| live.map_or(&[][..], Live::shown).to_vec());
            }
            if let Some(bytes) = windows.remove_holder(&window.key, holder) {
                self.bytes -= bytes;
                self.count -= 1;
                self.let_go_if_unused(tables, &window.shape);
            }
        }
    }

    /// Takes the windows that have failed from the instances of views that have them, and gives these.
    pub fn drop_failed(&mut self, tables: &mut dyn CurrentTables) -> Vec<u32> {
        let windows = self.shapes.values().flat_map(ShapeWindows::failed);
        let failed: Vec<(Arc<BoundWindow>, u32)> = windows.collect();
        for (window, instance) in &failed {
            let holder = Holder::Instance(*instance);
            self.remove(tables, std::iter::once(window), holder);
        }
        failed.into_iter().map(|(_, instance)| instance).collect()
    }

    /// A module is published: windows that come from now on are filled in the open transaction, so that its changes are in them.
    pub fn begin_publish(&mut self) {
        self.before = Some(Before::default());
    }

    /// The transaction was taken back, and the new windows go.
    pub fn abandon_publish(&mut self) {
        self.before = None;
    }

    /// The transaction is committed. Appends how the rows of the new windows differ from those that clients have.
    pub fn end_publish(&mut self, deltas: &mut DeltaBatch) {
        let before = self.before.take().unwrap_or_default();
        for windows in self.shapes.values_mut() {
            windows.tell_new(&before, deltas, &mut self.scratch);
        }
    }

    /// Forgets all windows.
    pub fn clear(&mut self, tables: &mut dyn CurrentTables) {
        let columns = self.shapes.values().flat_map(|of| of.shape.held_columns());
        columns.for_each(|(table, column)| tables.release_index(table.id, column));
        *self = Windows::default();
    }

    /// Makes a place for the windows of a shape, and the indexes that they need.
    fn hold(
        &mut self,
        (tables, indexes): (&mut dyn CurrentTables, &mut IndexBuilding),
        shape: &Arc<WindowShape>,
        user: WindowUser<'_>,
    ) -> Result<(), String> {
        if self.shapes.contains_key(&shape.id) {
            return Ok(());
        }
        let columns = shape.held_columns();
        indexes.check(tables, columns, user.index_user, user.now)?;
        for (table, column) in shape.held_columns() {
            indexes.hold(tables, table.id, column);
        }
        self.shapes
            .insert(shape.id, ShapeWindows::new(shape.clone()));
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

    fn find(&self, shape: TableId, key: &[u8]) -> Option<&Live> {
        self.shapes.get(&shape)?.find(key)
    }

    /// The rows of a window.
    pub fn entries(&self, window: &BoundWindow) -> &[Entry] {
        let live = self.find(window.shape.id, &window.key);
        live.map_or(&[], Live::shown)
    }

    /// Whether the rows of a window are known.
    pub fn has(&self, window: &BoundWindow) -> bool {
        self.find(window.shape.id, &window.key).is_some()
    }

    /// Whether windows of the table, or join, are kept up to date.
    pub fn reads(&self, table: TableId) -> bool {
        self.by_table.contains_key(&table)
    }

    /// The instances of views that have a window.
    pub fn instances_of_key(&self, shape: TableId, key: &[u8]) -> impl Iterator<Item = u32> + '_ {
        let live = self.find(shape, key).into_iter();
        live.flat_map(|live| live.holders.instances.iter().copied())
    }

    /// Whether a window is kept up to date no more.
    pub fn has_failed(&self, window: &BoundWindow) -> bool {
        let live = self.find(window.shape.id, &window.key);
        live.is_some_and(|live| live.has_failed)
    }

    /// Makes all windows anew, over tables that took the place of others. No client is told what has changed. Each may look at as many
    /// rows as when it was made, and all together at no more than in a transaction with as many changes as they keep rows. Gives
    /// whether some have failed.
    pub fn rebuild(&mut self, tables: &mut dyn CurrentTables, limits: WindowLimits) -> bool {
        let all = self.shapes.values();
        let kept_rows = all.map(ShapeWindows::kept_rows);
        let mut allowance = Allowance::of(kept_rows.sum(), limits);
        self.bytes = 0;
        let mut some_failed = false;
        for windows in self.shapes.values_mut() {
            for (table, column) in windows.shape.held_columns() {
                tables.hold_index(table.id, column);
            }
            self.bytes += windows.rebuild(tables, &mut allowance.rows_in_all, limits);
            some_failed |= windows.some_failed();
        }
        some_failed
    }

    /// Joins have failed, so that it is not known any more what they give: windows that have one of them as a source say nothing from now
    /// on, until their query sets end with it. Rows that they have kept behind those that come out may be in none by now.
    pub fn give_up_with(&mut self, failed_joins: &[TableId]) {
        for join in failed_joins {
            for (shape, _) in self.by_table.get(join).into_iter().flatten() {
                if let Some(windows) = self.shapes.get_mut(shape) {
                    windows.give_up();
                }
            }
        }
    }

    /// Appends the changes of windows to those of tables and joins, which are `ops`, of a transaction that was just committed. Gives
    /// whether some windows have failed: they took too much to be filled again, or all together have too many bytes. `done` hears of
    /// each shape when it is up to date.
    pub fn evaluate(
        &mut self,
        tables: &dyn CurrentTables,
        deltas: &mut DeltaBatch,
        ops: Range<usize>,
        limits: WindowLimits,
        mut done: impl FnMut(TableId),
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
            let Some(windows) = self.shapes.get_mut(&concerned[0].shape) else {
                continue;
            };
            let scratch = &mut self.scratch;
            allowance.look_at(concerned.iter().map(Concerned::rows).sum());
            windows.apply(deltas, concerned, scratch);
            windows.fill_touched(tables, scratch, &mut allowance, &mut greedy);
            windows.lately.add(allowance.spent - self.rows_looked_at);
            self.rows_looked_at = allowance.spent;
            let change = windows.count_bytes(scratch);
            self.bytes = self.bytes.saturating_add_signed(change);
            // Before each of very many windows says what it has.
            let excess = self.bytes.saturating_sub(limits.bytes_max);
            if excess > limits.bytes_max / EXCESS_PART {
                self.fail_largest(limits.bytes_max);
                some_failed = true;
            }
            if let Some(windows) = self.shapes.get_mut(&concerned[0].shape) {
                windows.finish(deltas, &mut self.scratch);
            }
            done(concerned[0].shape);
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

    /// Rows that were looked at when windows were last [added](Self::add), or [evaluated](Self::evaluate).
    pub fn rows_looked_at(&self) -> usize {
        self.rows_looked_at
    }

    /// See [`WorkBudget::halvings`](crate::WorkBudget::halvings).
    pub fn halve_rows_lately(&mut self, times: u32) {
        let shapes = self.shapes.values_mut();
        shapes.for_each(|windows| windows.lately.halve(times));
    }

    /// Shapes, and how many rows were looked at for each lately.
    pub fn rows_lately(&self) -> impl Iterator<Item = (TableId, u64)> + '_ {
        let shapes = self.shapes.iter();
        shapes.map(|(id, windows)| (*id, windows.lately.rows()))
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
        if let Some(windows) = self.shapes.get_mut(&shape) {
            self.bytes -= windows.fail(window);
        }
    }

    /// Until the others have no more bytes than these.
    #[cold]
    fn fail_largest(&mut self, bytes_max: usize) {
        let all = self.shapes.iter();
        let mut windows: Vec<(usize, TableId, u32)> = all
            .flat_map(|(id, windows)| {
                let windows = windows.sizes();
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
