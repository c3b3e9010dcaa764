//! Live joins: from the changes of tables in one transaction to the changes of joins over them (08 §14).
//!
//! The writer does this when a transaction is sealed, once for query sets and views, when the tables are in the state that the
//! transaction leaves: partners of a changed row are looked up by an index. What comes out are changes like those of a table, with
//! a key that says whose parameters they are; fan-out finds the subscribers by it, and views their instances. So a change costs
//! what it concerns, however many have subscribed. Shapes over the rows of views follow when these have changed.

mod allowance;
mod changes;
mod delta;
mod exists;
mod matches;
mod parts;
mod path;
mod progress;
mod shape;
mod shapes;
mod subquery;

use std::ops::Range;
use std::sync::Arc;

use lightcone_table::{CurrentTables, DeltaBatch, DeltaOp};
use lightcone_types::TableId;
use rustc_hash::FxHashMap;

use self::allowance::Allowance;
use self::changes::Ops;
use self::delta::{Delta, Keys};

pub use self::allowance::{MATCHES_COUNTED_MAX, STEPS_PER_ROW};
pub(crate) use self::delta::kind_of;
pub use self::matches::{Answers, Reading};
pub use self::shape::JoinShape;
pub use self::shapes::JoinShapes;
use crate::held_indexes::IndexBuilding;
use crate::holders::{Holder, Holders};
use crate::work::RowsLately;

/// Rows that the joins of one transaction look at, however many rows it has changed: less than a second of the writer's time.
const STEPS_MAX: usize = 1 << 24;
/// Bytes that the changes of joins in one transaction take before equal rows are counted together.
const BYTES_MAX: usize = 256 << 20;
/// Bytes of all changes of a round, with those of its joins.
const DELTA_BYTES_MAX: usize = 2 << 30;

/// Joins that are too much give back what they have taken, but only until all of them have taken so many times what is allowed.
const ALLOWANCES_MAX: usize = 4;
/// The same of bytes.
const BYTES_MAX_IN_ALL: usize = 512 << 20;

/// A shape in use.
struct Live {
    shape: Arc<JoinShape>,
    keys: Keys,
    /// How many query sets have it, and how many instances of views.
    sets: usize,
    instances: usize,
    /// It was too much for a transaction: the query sets that have it are to end, and hear of no change any more.
    has_failed: bool,
    /// What was looked at for it.
    lately: RowsLately,
}

/// The live joins of a database: those of query sets and those of views.
#[derive(Default)]
pub struct Joins {
    shapes: FxHashMap<TableId, Live>,
    /// Shapes by the tables that they read.
    by_table: FxHashMap<TableId, Vec<TableId>>,
    /// How many shapes read views.
    over_views: usize,
    /// Instances of views, each counted once for each key that it has.
    instances: usize,
    delta: Delta,
    concerned: Vec<TableId>,
}

/// What the joins of one transaction may take, and have taken.
pub struct JoinWork {
    /// Partners that a changed row has in all joins, on average.
    partners_max: usize,
    spent: Allowance,
    spent_in_all: Allowance,
    /// Rows that were looked at for query sets.
    pub rows_looked_at: usize,
    /// The shapes that were too much.
    pub failed: Vec<TableId>,
    /// Query sets have one of them.
    pub has_failed_sets: bool,
}

impl JoinWork {
    pub fn new(partners_max: usize) -> JoinWork {
        JoinWork {
            partners_max,
            spent: Allowance::default(),
            spent_in_all: Allowance::default(),
            rows_looked_at: 0,
            failed: Vec::new(),
            has_failed_sets: false,
        }
    }
}

impl Joins {
    pub fn is_empty(&self) -> bool {
        self.shapes.is_empty()
    }

    /// Whether an instance of a view has a join.
    #[inline]
    pub fn has_instances(&self) -> bool {
        self.instances > 0
    }

    /// Whether the join of an instance reads this table.
    pub fn has_table_of_instances(&self, table: TableId) -> bool {
        let of_table = self.by_table.get(&table).into_iter().flatten();
        let mut shapes = of_table.filter_map(|id| self.shapes.get(id));
        shapes.any(|live| live.instances > 0)
    }

    /// Whether the changes of a shape are for query sets.
    pub fn is_told(&self, shape: TableId) -> bool {
        let live = self.shapes.get(&shape);
        live.is_some_and(|live| live.sets > 0 && !live.has_failed)
    }

    /// From now on, a holder hears of the changes of a shape for a key. Builds the indexes that are missing, which was [checked](IndexBuilding::check).
    pub fn add(
        &mut self,
        (tables, indexes): (&mut dyn CurrentTables, &mut IndexBuilding),
        (shape, key): (&Arc<JoinShape>, &[u8]),
        holder: Holder,
    ) {
        let live = self.shapes.entry(shape.id).or_insert_with(|| {
            for (schema, column) in shape.looked_up_by() {
                indexes.hold(tables, schema.id, column);
            }
            for table in shape.tables() {
                let of_table = self.by_table.entry(table).or_default();
                if !of_table.contains(&shape.id) {
                    of_table.push(shape.id);
                }
            }
            self.over_views += usize::from(shape.reads_views());
            Live {
                shape: shape.clone(),
                keys: Keys::default(),
                sets: 0,
                instances: 0,
                has_failed: false,
                lately: RowsLately::default(),
            }
        });
        if !live.keys.contains_key(key) {
            live.keys.insert(key.into(), Holders::default());
        }
        let holders = live.keys.get_mut(key).expect("it is there");
        match (holders.add(holder), holder) {
            (true, Holder::Instance(_)) => {
                live.instances += 1;
                self.instances += 1;
            }
            (true, Holder::Set) => live.sets += 1,
            (false, _) => {}
        }
    }

    /// Undoes one [`add`](Self::add).
    pub fn remove(
        &mut self,
        tables: &mut dyn CurrentTables,
        (shape, key): (&Arc<JoinShape>, &[u8]),
        holder: Holder,
    ) {
        let Some(live) = self.shapes.get_mut(&shape.id) else {
            return;
        };
        let Some(holders) = live.keys.get_mut(key) else {
            return;
        };
        match (holders.remove(holder), holder) {
            (true, Holder::Instance(_)) => {
                live.instances -= 1;
                self.instances -= 1;
            }
            (true, Holder::Set) => {
                live.sets -= 1;
                live.has_failed &= live.sets > 0;
            }
            (false, _) => {}
        }
        if !holders.are_none() {
            return;
        }
        live.keys.remove(key);
        if !live.keys.is_empty() {
            return;
        }
        self.shapes.remove(&shape.id);
        self.over_views -= usize::from(shape.reads_views());
        for (schema, column) in shape.looked_up_by() {
            tables.release_index(schema.id, column);
        }
        for table in shape.tables() {
            if let Some(of_table) = self.by_table.get_mut(&table) {
                of_table.retain(|id| *id != shape.id);
                if of_table.is_empty() {
                    self.by_table.remove(&table);
                }
            }
        }
    }

    /// The instances that have a key of a shape.
    pub fn instances_of_key(&self, shape: TableId, key: &[u8]) -> impl Iterator<Item = u32> + '_ {
        let live = self.shapes.get(&shape);
        let holders = live.and_then(|live| live.keys.get(key)).into_iter();
        holders.flat_map(|holders| holders.instances.iter().copied())
    }

    /// Those that have one of its keys.
    pub fn instances_of(&self, shape: TableId) -> impl Iterator<Item = u32> + '_ {
        let live = self.shapes.get(&shape).into_iter();
        let holders = live.flat_map(|live| live.keys.values());
        holders.flat_map(|holders| holders.instances.iter().copied())
    }

    /// Holds all indexes again, in tables that took the place of others.
    pub fn hold_all_indexes(&self, tables: &mut dyn CurrentTables) {
        let shapes = self.shapes.values().map(|live| &live.shape);
        for (schema, column) in shapes.flat_map(|shape| shape.looked_up_by()) {
            tables.hold_index(schema.id, column);
        }
    }

    /// Appends the changes of joins to those of the tables, which are `ops`, of a transaction that is sealed: first of shapes that
    /// read no views, then of others. If a changed row has too many partners in all joins, on average, or all of them are too many,
    /// those with most have failed. What is a fair share of it is always granted. `done` hears of each shape
    /// when it has followed.
    pub fn evaluate(
        &mut self,
        tables: &dyn CurrentTables,
        deltas: &mut DeltaBatch,
        ops: Range<usize>,
        over_views: bool,
        work: &mut JoinWork,
        mut done: impl FnMut(TableId),
    ) {
        self.find_concerned(deltas.ops(ops.clone()), over_views);
        if self.concerned.is_empty() {
            return;
        }
        let steps_max = STEPS_MAX.max(work.partners_max);
        let allowed = Allowance {
            steps: ops.len().saturating_mul(work.partners_max).min(steps_max),
            bytes: BYTES_MAX,
        };
        let allowed_in_all = Allowance {
            steps: allowed.steps.saturating_mul(ALLOWANCES_MAX),
            bytes: BYTES_MAX_IN_ALL,
        };
        let mut left = allowed.minus(work.spent);
        let mut left_in_all = allowed_in_all.minus(work.spent_in_all);
        // Whatever others take, each may take as much: half of what is allowed, once more.
        let share = allowed.divided_by(2 * self.concerned.len());
        // The most that a shape of query sets took, and which.
        let mut most: Option<(Allowance, TableId)> = None;
        for id in &self.concerned {
            let may_go_on = |live: &&mut Live| !live.has_failed || live.instances > 0;
            let Some(live) = self.shapes.get_mut(id).filter(may_go_on) else {
                continue;
            };
            let changed = Ops {
                deltas,
                ops: deltas.ops(ops.clone()),
            };
            let room = DELTA_BYTES_MAX.saturating_sub(deltas.bytes_len());
            let granted = left.at_most(left_in_all).at_least(share).with_bytes(room);
            let mut unused = granted;
            let keys = &live.keys;
            let found = self
                .delta
                .find(&live.shape, tables, changed, keys, &mut unused);
            done(*id);
            let spent = granted.minus(unused);
            left_in_all = left_in_all.minus(spent);
            if live.sets > 0 {
                live.lately.add(spent.steps);
                work.rows_looked_at += spent.steps;
            }
            if found.is_none() {
                live.fail(work);
                // Who has taken more than was left for this one fails too, so that others have something left.
                let greedier = most.take_if(|(most, _)| most.steps > granted.steps);
                if let Some((spent, greedy)) = greedier {
                    left = left.plus(spent);
                    if let Some(greedy) = self.shapes.get_mut(&greedy) {
                        greedy.fail(work);
                    }
                }
                continue;
            }
            left = left.minus(spent);
            // What others want takes nothing from the module's views.
            let is_of_view = self.shapes[id].instances > 0;
            if !is_of_view && most.is_none_or(|(most, _)| spent.steps > most.steps) {
                most = Some((spent, *id));
            }
            self.delta.write(*id, deltas);
        }
        self.delta.clear();
        work.spent = allowed.minus(left);
        work.spent_in_all = allowed_in_all.minus(left_in_all);
    }

    /// The shapes that read what has changed: those of views first, as these are the module's.
    fn find_concerned(&mut self, changed: &[DeltaOp], over_views: bool) {
        self.concerned.clear();
        if self.shapes.is_empty() || (over_views && self.over_views == 0) {
            return;
        }
        for of_table in changed.chunk_by(|a, b| a.table == b.table) {
            let shapes = self.by_table.get(&of_table[0].table);
            let shapes = shapes.into_iter().flatten();
            let is_next = |id: &&TableId| self.shapes[*id].shape.reads_views() == over_views;
            self.concerned.extend(shapes.filter(is_next));
        }
        let shapes = &self.shapes;
        let order = |id: &TableId| (shapes[id].instances == 0, *id);
        self.concerned.sort_unstable_by_key(order);
        self.concerned.dedup();
    }

    /// See [`WorkBudget::halvings`](crate::WorkBudget::halvings).
    pub fn halve_rows_lately(&mut self, times: u32) {
        let shapes = self.shapes.values_mut();
        shapes.for_each(|live| live.lately.halve(times));
    }

    /// Shapes, and how many rows were looked at for each lately.
    pub fn rows_lately(&self) -> impl Iterator<Item = (TableId, u64)> + '_ {
        let shapes = self.shapes.iter();
        shapes.map(|(id, live)| (*id, live.lately.rows()))
    }

    /// Whether query sets with a shape are to end.
    pub fn has_failed(&self, shape: &JoinShape) -> bool {
        let live = self.shapes.get(&shape.id);
        live.is_some_and(|live| live.has_failed)
    }
}

impl Live {
    #[cold]
    fn fail(&mut self, work: &mut JoinWork) {
        self.has_failed = self.sets > 0;
        work.has_failed_sets |= self.has_failed;
        work.failed.push(self.shape.id);
    }
}
