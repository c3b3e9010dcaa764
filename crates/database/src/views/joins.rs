//! The joins of views' queries: those that differ in values only are kept up to date together, from what changes (08 §10.4).

use std::sync::Arc;
use std::time::Instant;

use lightcone_engine::Datastore;
use lightcone_live::{Asker, JoinShape, Joins};
use lightcone_types::TableId;
use rustc_hash::FxHashSet;

use super::changes::RowChanges;

/// The instances that have one key of one shape; mostly one.
enum Instances {
    One(u32),
    Many(FxHashSet<u32>),
}

impl Default for Instances {
    fn default() -> Instances {
        Instances::Many(FxHashSet::default())
    }
}

impl Instances {
    fn insert(&mut self, instance: u32) {
        match self {
            Instances::Many(many) if many.is_empty() => *self = Instances::One(instance),
            Instances::Many(many) => drop(many.insert(instance)),
            Instances::One(one) if *one == instance => {}
            Instances::One(one) => {
                *self = Instances::Many(FxHashSet::from_iter([*one, instance]));
            }
        }
    }

    /// Whether there are others.
    fn remove(&mut self, instance: u32) -> bool {
        match self {
            Instances::One(one) => *one != instance,
            Instances::Many(many) => {
                many.remove(&instance);
                !many.is_empty()
            }
        }
    }

    fn for_each(&self, visit: impl FnMut(u32)) {
        match self {
            Instances::One(one) => [*one].into_iter().for_each(visit),
            Instances::Many(many) => many.iter().copied().for_each(visit),
        }
    }
}

/// The joins of all instances. By key, the instances.
#[derive(Default)]
pub(super) struct ViewJoins(Joins<Instances>);

/// A join, and the key of an instance's query.
type JoinKey<'q> = (&'q Arc<JoinShape>, &'q [u8]);

impl ViewJoins {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn has_table(&self, table: TableId) -> bool {
        self.0.has_table(table)
    }

    /// From now on, the instance hears of what concerns its join.
    ///
    /// # Errors
    /// The indexes that it needs cannot be built now.
    pub fn add(
        &mut self,
        datastore: &mut Datastore,
        (shape, key): JoinKey<'_>,
        instance: u32,
        now: Instant,
    ) -> Result<(), String> {
        let shapes = std::iter::once(&**shape);
        self.0.may_add(datastore, shapes, Asker::Module, now)?;
        self.0.key_mut(datastore, shape, key).insert(instance);
        Ok(())
    }

    /// The instance has another join now, or none: undoes what [`add`](Self::add) did for `old`.
    pub fn replace(
        &mut self,
        datastore: &mut Datastore,
        (old, new): (JoinKey<'_>, Option<JoinKey<'_>>),
        instance: u32,
    ) {
        let (shape, key) = old;
        if new.is_some_and(|new| new.0.id == shape.id && new.1 == key) {
            return;
        }
        let remove = |instances: &mut Instances| instances.remove(instance);
        self.0.release(datastore, shape, key, remove);
    }

    /// Holds all indexes again, in tables that took the place of others.
    pub fn hold_all_indexes(&self, datastore: &mut Datastore) {
        self.0.hold_all_indexes(datastore);
    }

    /// Finds what the noted rows of tables change in joins, and lists it for the instances. Calls `concerned` with each of these, and
    /// whether finding its change was too much: then it is to be evaluated again.
    pub fn evaluate(
        &mut self,
        datastore: &Datastore,
        changes: &mut RowChanges,
        partners_max: usize,
        mut concerned: impl FnMut(u32, bool),
    ) {
        let noted = changes.batch.position();
        if noted == 0 || self.0.is_empty() {
            return;
        }
        let batch = &mut changes.batch;
        if self.0.evaluate(datastore, batch, 0..noted, partners_max) {
            let mut failed = |instance| concerned(instance, true);
            self.0
                .forgive_failed(|instances| instances.for_each(&mut failed));
        }
        for place in noted..changes.batch.position() {
            let op = changes.batch.ops(place..place + 1)[0];
            let instances = self.0.kept(op.table, changes.batch.key(&op));
            let Some(instances) = instances else {
                continue;
            };
            instances.for_each(|instance| {
                changes.list_found(instance, place);
                concerned(instance, false);
            });
        }
    }
}
