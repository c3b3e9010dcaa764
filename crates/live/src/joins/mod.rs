//! Live joins: from the changes of tables in one transaction to the changes of joins over them (08 §14).
//!
//! The writer does this for subscriptions right after a commit, and for views right before it, when the tables are in the state
//! that the transaction leaves: partners of a changed row are looked up by an index. What comes out are changes like those of a
//! table, with a key that says whose parameters they are; fan-out finds the subscribers by it, and views their instances. So a
//! change costs what it concerns, however many have subscribed.

mod allowance;
mod changes;
mod delta;
mod exists;
mod matches;
mod parts;
mod path;
mod shape;
mod shapes;
mod subquery;

use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use lightcone_table::{CurrentTables, DeltaBatch};
use lightcone_types::TableId;
use rustc_hash::FxHashMap;

use self::allowance::Allowance;
use self::changes::Ops;
use self::delta::{Delta, Keys};

pub use self::matches::{Answers, Reading, STEPS_PER_ROW};
pub use self::shape::JoinShape;
pub use self::shapes::JoinShapes;
use crate::held_indexes::{Asker, IndexBuilding};
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

/// A shape that somebody uses.
struct Live<K> {
    shape: Arc<JoinShape>,
    keys: Keys<K>,
    /// It was too much for a transaction, and is not evaluated any more.
    has_failed: bool,
    /// What was looked at for it.
    lately: RowsLately,
}

/// The live joins of a database, with what their users keep for each key: those of subscriptions, or those of views.
pub struct Joins<K> {
    shapes: FxHashMap<TableId, Live<K>>,
    /// Shapes by the tables that they read.
    by_table: FxHashMap<TableId, Vec<TableId>>,
    delta: Delta,
    concerned: Vec<TableId>,
    /// What has failed in the last transaction that was evaluated.
    just_failed: Vec<TableId>,
    /// Rows that it has looked at.
    rows_looked_at: usize,
    building: IndexBuilding,
}

/// How many subscriptions there are for each key.
pub type SubscribedJoins = Joins<usize>;

impl<K> Default for Joins<K> {
    fn default() -> Joins<K> {
        Joins {
            shapes: FxHashMap::default(),
            by_table: FxHashMap::default(),
            delta: Delta::default(),
            concerned: Vec::new(),
            just_failed: Vec::new(),
            rows_looked_at: 0,
            building: IndexBuilding::default(),
        }
    }
}

impl<K: Default> Joins<K> {
    pub fn is_empty(&self) -> bool {
        self.shapes.is_empty()
    }

    /// Whether a shape reads this table.
    pub fn has_table(&self, table: TableId) -> bool {
        self.by_table.contains_key(&table)
    }

    /// Whether the indexes that these shapes need are there, or may be built now.
    ///
    /// # Errors
    /// What the client is told otherwise.
    pub fn may_add<'j>(
        &mut self,
        tables: &dyn CurrentTables,
        shapes: impl Iterator<Item = &'j JoinShape>,
        asker: Asker<'_>,
        now: Instant,
    ) -> Result<(), String> {
        let columns = shapes.flat_map(JoinShape::looked_up_by);
        self.building.check(tables, columns, asker, now)
    }

    /// What is kept for a key of a shape, which is live from now on. Builds the indexes that are missing.
    pub fn key_mut(
        &mut self,
        tables: &mut dyn CurrentTables,
        shape: &Arc<JoinShape>,
        key: &[u8],
    ) -> &mut K {
        let building = &mut self.building;
        let live = self.shapes.entry(shape.id).or_insert_with(|| {
            for (schema, column) in shape.looked_up_by() {
                building.hold(tables, schema.id, column);
            }
            for table in shape.tables() {
                let of_table = self.by_table.entry(table).or_default();
                if !of_table.contains(&shape.id) {
                    of_table.push(shape.id);
                }
            }
            Live {
                shape: shape.clone(),
                keys: Keys::default(),
                has_failed: false,
                lately: RowsLately::default(),
            }
        });
        if !live.keys.contains_key(key) {
            live.keys.insert(key.into(), K::default());
        }
        live.keys.get_mut(key).expect("it is there")
    }

    /// Changes what is kept for a key; false says that nobody asks for it any more.
    pub fn release(
        &mut self,
        tables: &mut dyn CurrentTables,
        shape: &JoinShape,
        key: &[u8],
        change: impl FnOnce(&mut K) -> bool,
    ) {
        let Some(live) = self.shapes.get_mut(&shape.id) else {
            return;
        };
        let Some(kept) = live.keys.get_mut(key) else {
            return;
        };
        if change(kept) {
            return;
        }
        live.keys.remove(key);
        if !live.keys.is_empty() {
            return;
        }
        self.shapes.remove(&shape.id);
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

    /// What is kept for a key.
    pub fn kept(&self, shape: TableId, key: &[u8]) -> Option<&K> {
        self.shapes.get(&shape)?.keys.get(key)
    }

    /// Holds all indexes again, in tables that took the place of others.
    pub fn hold_all_indexes(&self, tables: &mut dyn CurrentTables) {
        let shapes = self.shapes.values().map(|live| &live.shape);
        for (schema, column) in shapes.flat_map(|shape| shape.looked_up_by()) {
            tables.hold_index(schema.id, column);
        }
    }

    /// Appends the changes of joins to those of the tables, which are `ops`, of a transaction that was just committed, or is
    /// about to be. If a changed row has more than `partners_max` partners in all joins, on average, or all of them are too
    /// many, those with most have failed: gives whether some have. What is a fair share of it is always granted.
    pub fn evaluate(
        &mut self,
        tables: &dyn CurrentTables,
        deltas: &mut DeltaBatch,
        ops: Range<usize>,
        partners_max: usize,
    ) -> bool {
        self.concerned.clear();
        self.just_failed.clear();
        self.rows_looked_at = 0;
        let changed = deltas.ops(ops.clone());
        for of_table in changed.chunk_by(|a, b| a.table == b.table) {
            if let Some(shapes) = self.by_table.get(&of_table[0].table) {
                self.concerned.extend_from_slice(shapes);
            }
        }
        if self.concerned.is_empty() {
            return false;
        }
        // In the order of ids, as fan-out expects it of tables.
        self.concerned.sort_unstable();
        self.concerned.dedup();
        let mut some_failed = false;
        let steps_max = STEPS_MAX.max(partners_max);
        let mut left = Allowance {
            steps: ops.len().saturating_mul(partners_max).min(steps_max),
            bytes: BYTES_MAX,
        };
        let mut left_in_all = Allowance {
            steps: left.steps.saturating_mul(ALLOWANCES_MAX),
            bytes: BYTES_MAX_IN_ALL,
        };
        // Whatever others take, each may take as much: half of what is allowed, once more.
        let share = left.divided_by(2 * self.concerned.len());
        // The most that one shape took, and which.
        let mut most: Option<(Allowance, TableId)> = None;
        for id in &self.concerned {
            let Some(live) = self.shapes.get_mut(id).filter(|live| !live.has_failed) else {
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
            let spent = granted.minus(unused);
            left_in_all = left_in_all.minus(spent);
            live.lately.add(spent.steps);
            self.rows_looked_at += spent.steps;
            if found.is_none() {
                live.has_failed = true;
                some_failed = true;
                self.just_failed.push(*id);
                // Who has taken more than was left for this one fails too, so that others have something left.
                let greedier = most.take_if(|(most, _)| most.steps > granted.steps);
                if let Some((spent, greedy)) = greedier {
                    left = left.plus(spent);
                    if let Some(greedy) = self.shapes.get_mut(&greedy) {
                        greedy.has_failed = true;
                        self.just_failed.push(greedy.shape.id);
                    }
                }
                continue;
            }
            left = left.minus(spent);
            if most.is_none_or(|(most, _)| spent.steps > most.steps) {
                most = Some((spent, *id));
            }
            self.delta.write(*id, deltas);
        }
        self.delta.clear();
        some_failed
    }

    /// Rows that the last transaction that was [evaluated](Self::evaluate) has looked at.
    pub fn rows_looked_at(&self) -> usize {
        self.rows_looked_at
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

    /// The shapes that have failed in the last transaction that was [evaluated](Self::evaluate).
    pub fn just_failed(&self) -> &[TableId] {
        &self.just_failed
    }

    /// Whether a shape is evaluated no more.
    pub fn has_failed(&self, shape: &JoinShape) -> bool {
        let live = self.shapes.get(&shape.id);
        live.is_some_and(|live| live.has_failed)
    }

    /// Calls `visit` with what is kept for the keys of shapes that have failed, which are evaluated again from now on.
    pub fn forgive_failed(&mut self, mut visit: impl FnMut(&K)) {
        for live in self.shapes.values_mut() {
            if std::mem::take(&mut live.has_failed) {
                live.keys.values().for_each(&mut visit);
            }
        }
    }
}

impl SubscribedJoins {
    /// One more subscription has this shape with this key.
    pub fn add(&mut self, tables: &mut dyn CurrentTables, shape: &Arc<JoinShape>, key: &[u8]) {
        *self.key_mut(tables, shape, key) += 1;
    }

    /// Undoes one [`add`](Self::add).
    pub fn remove(&mut self, tables: &mut dyn CurrentTables, shape: &JoinShape, key: &[u8]) {
        self.release(tables, shape, key, |count| {
            *count -= 1;
            *count > 0
        });
    }
}
