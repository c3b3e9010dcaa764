//! Live joins: from the changes of tables in one transaction to the changes of joins over them (08 §14).
//!
//! The writer does this right after a commit, when the tables are in the state that the transaction left: partners of a changed
//! row are looked up by an index. What comes out are changes like those of a table, with a key that says whose parameters they
//! are; fan-out finds the subscribers by it. So a change costs what it concerns, however many have subscribed.

mod delta;
mod shape;

use std::ops::Range;
use std::sync::Arc;

use lightcone_engine::{Datastore, DeltaBatch, DeltaKind};
use lightcone_types::TableId;
use rustc_hash::FxHashMap;

use self::delta::Delta;

pub(crate) use self::shape::{JoinShape, JoinShapes};

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
}

impl Joins {
    pub fn is_empty(&self) -> bool {
        self.shapes.is_empty()
    }

    /// One more subscription has this shape with this key.
    pub fn add(&mut self, datastore: &mut Datastore, shape: &Arc<JoinShape>, key: &[u8]) {
        let live = self.shapes.entry(shape.id).or_insert_with(|| {
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

    /// Appends the changes of joins to those of the tables, which are `ops`, of a transaction that was just committed. Shapes
    /// for which a changed row has more than `partners_max` partners, on average, have failed: gives whether some have.
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
        for id in &self.concerned {
            let Some(live) = self.shapes.get_mut(id).filter(|live| !live.has_failed) else {
                continue;
            };
            let changed = deltas.ops(ops.clone());
            let shape = &live.shape;
            let found = self.delta.find(
                shape,
                datastore,
                (deltas, changed),
                |key| live.keys.contains_key(key),
                partners_max,
            );
            if found.is_none() {
                live.has_failed = true;
                some_failed = true;
                continue;
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

/// The kind of a change that is there so often, or went so often.
fn kind_of(weight: isize) -> DeltaKind {
    match weight > 0 {
        true => DeltaKind::Insert,
        false => DeltaKind::Delete,
    }
}
