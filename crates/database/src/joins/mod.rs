//! Live joins: from the changes of tables in one transaction to the changes of joins over them (08 §14).
//!
//! The writer does this right after a commit, when the tables are in the state that the transaction left: partners of a changed
//! row are looked up by an index. What comes out are changes like those of a table, with a key that says whose parameters they
//! are; fan-out finds the subscribers by it. So a change costs what it concerns, however many have subscribed.

mod delta;
mod shape;

use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use lightcone_engine::{Datastore, DeltaBatch, DeltaKind};
use lightcone_types::TableId;
use rustc_hash::FxHashMap;

use self::delta::Delta;

pub(crate) use self::shape::{JoinShape, JoinShapes};
use crate::live_query::LiveQuery;

/// Rows for which indexes are built at once, and how many more there may be after each second: building takes the writer some
/// 300 ns for each.
const INDEX_ROWS_MAX: u64 = 4_000_000;
const INDEX_ROWS_PER_SECOND: u64 = 100_000;
/// Indexes that one table has for joins, beside its own: each makes a change of the table dearer.
const HELD_INDEXES_MAX: usize = 4;

/// Keys that somebody has subscribed to. Clients choose them: they are hashed with a secret.
type Keys = hashbrown::HashMap<Box<[u8]>, usize>;

/// A shape with subscribers.
struct Live {
    shape: Arc<JoinShape>,
    /// How many subscriptions there are for each key.
    keys: Keys,
    /// It was too much for a transaction, and is not evaluated any more.
    has_failed: bool,
}

/// The live joins of a database.
#[derive(Default)]
pub(crate) struct Joins {
    shapes: FxHashMap<TableId, Live>,
    /// Shapes by the tables that they read.
    by_table: FxHashMap<TableId, Vec<TableId>>,
    delta: Delta,
    concerned: Vec<TableId>,
    /// Rows that indexes were built for, less what has been forgiven since.
    index_rows: u64,
    forgiven_at: Option<Instant>,
}

impl Joins {
    pub fn is_empty(&self) -> bool {
        self.shapes.is_empty()
    }

    /// Whether the indexes that these queries need are there, or may be built now.
    ///
    /// # Errors
    /// What the client is told otherwise.
    pub fn may_add(
        &mut self,
        datastore: &Datastore,
        queries: &[Arc<LiveQuery>],
        now: Instant,
    ) -> Result<(), String> {
        self.forgive(now);
        let mut rows = self.index_rows;
        let shapes = queries.iter().filter_map(|query| query.join.as_ref());
        for side in shapes.flat_map(|shape| &shape.sides) {
            let Some(table) = datastore.table(side.table.id) else {
                continue;
            };
            if table.index_on(side.join_column).is_some() {
                continue;
            }
            rows += table.rows().row_count();
            if rows > INDEX_ROWS_MAX || table.held_indexes() >= HELD_INDEXES_MAX {
                let column = side.table.column(side.join_column);
                let column = column.map_or("", |column| &column.name);
                return Err(format!("the join needs an index on the column `{column}` of `{}`, which has none, and building it for the subscription would take too long now: add an index to the module, or try again later [LC0716]", side.table.name));
            }
        }
        Ok(())
    }

    fn forgive(&mut self, now: Instant) {
        let since = *self.forgiven_at.get_or_insert(now);
        let seconds = now.saturating_duration_since(since).as_secs();
        if seconds > 0 {
            let rows = seconds.saturating_mul(INDEX_ROWS_PER_SECOND);
            self.index_rows = self.index_rows.saturating_sub(rows);
            self.forgiven_at = Some(now);
        }
    }

    /// One more subscription has this shape with this key.
    pub fn add(&mut self, datastore: &mut Datastore, shape: &Arc<JoinShape>, key: &[u8]) {
        let index_rows = &mut self.index_rows;
        let live = self.shapes.entry(shape.id).or_insert_with(|| {
            for side in &shape.sides {
                let table = datastore.table(side.table.id);
                let missing = table.filter(|table| table.index_on(side.join_column).is_none());
                *index_rows += missing.map_or(0, |table| table.rows().row_count());
            }
            hold_indexes(datastore, shape);
            for side in &shape.sides {
                let of_table = self.by_table.entry(side.table.id).or_default();
                if !of_table.contains(&shape.id) {
                    of_table.push(shape.id);
                }
            }
            Live {
                shape: shape.clone(),
                keys: Keys::default(),
                has_failed: false,
            }
        });
        match live.keys.get_mut(key) {
            Some(count) => *count += 1,
            None => drop(live.keys.insert(key.into(), 1)),
        }
    }

    /// Undoes one [`add`](Self::add).
    pub fn remove(&mut self, datastore: &mut Datastore, shape: &JoinShape, key: &[u8]) {
        let Some(live) = self.shapes.get_mut(&shape.id) else {
            return;
        };
        if let Some(count) = live.keys.get_mut(key) {
            *count -= 1;
            if *count == 0 {
                live.keys.remove(key);
            }
        }
        if !live.keys.is_empty() {
            return;
        }
        self.shapes.remove(&shape.id);
        for side in &shape.sides {
            datastore.release_index(side.table.id, side.join_column);
            if let Some(of_table) = self.by_table.get_mut(&side.table.id) {
                of_table.retain(|id| *id != shape.id);
                if of_table.is_empty() {
                    self.by_table.remove(&side.table.id);
                }
            }
        }
    }

    /// Holds all indexes again, in tables that took the place of others.
    pub fn hold_all_indexes(&self, datastore: &mut Datastore) {
        for live in self.shapes.values() {
            hold_indexes(datastore, &live.shape);
        }
    }

    /// Appends the changes of joins to those of the tables, which are `ops`, of a transaction that was just committed. If a
    /// changed row has more than `partners_max` partners in all joins, on average, those with most have failed: gives whether
    /// some have.
    pub fn evaluate(
        &mut self,
        datastore: &Datastore,
        deltas: &mut DeltaBatch,
        ops: Range<usize>,
        partners_max: usize,
    ) -> bool {
        self.concerned.clear();
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
        let budget = ops.len().saturating_mul(partners_max);
        let mut left = Allowance {
            steps: budget,
            bytes: BYTES_MAX,
        };
        // The most that one shape took, and which.
        let mut most = (0, *self.concerned.first().expect("some are concerned"));
        for id in &self.concerned {
            let Some(live) = self.shapes.get_mut(id).filter(|live| !live.has_failed) else {
                continue;
            };
            let changed = deltas.ops(ops.clone());
            let shape = &live.shape;
            let before = left.steps;
            let found = self.delta.find(
                shape,
                datastore,
                (deltas, changed),
                |key| live.keys.contains_key(key),
                &mut left,
            );
            let spent = before - left.steps;
            if found.is_none() {
                live.has_failed = true;
                some_failed = true;
                left.steps = before;
                // Who has taken most fails too, so that others have something left.
                if most.0 > spent {
                    left.steps += most.0;
                    if let Some(greedy) = self.shapes.get_mut(&most.1) {
                        greedy.has_failed = true;
                    }
                    most.0 = 0;
                }
                continue;
            }
            if spent > most.0 {
                most = (spent, *id);
            }
            self.delta.for_each(|kind, key, row| {
                deltas.push_keyed(*id, kind, key, row);
            });
        }
        some_failed
    }

    /// Whether a shape is evaluated no more.
    pub fn has_failed(&self, shape: &JoinShape) -> bool {
        let live = self.shapes.get(&shape.id);
        live.is_some_and(|live| live.has_failed)
    }
}

fn hold_indexes(datastore: &mut Datastore, shape: &JoinShape) {
    for side in &shape.sides {
        datastore.hold_index(side.table.id, side.join_column);
    }
}

/// Bytes that the changes of joins in one transaction take before equal rows are counted together.
const BYTES_MAX: usize = 256 << 20;

/// What finding the changes of joins in one transaction may still take.
struct Allowance {
    steps: usize,
    bytes: usize,
}

/// The kind of a change that is there so often, or went so often.
fn kind_of(weight: isize) -> DeltaKind {
    match weight > 0 {
        true => DeltaKind::Insert,
        false => DeltaKind::Delete,
    }
}
