//! Views whose query is a join: those that differ in values only are kept up to date together, from what changes (08 §10.4).
//!
//! A join gives a row as often as it has matches, and a view has it once; so an instance counts the rows that it was given more
//! than once. Aggregates of a join are kept by group ([`JoinedGroups`]), from the values of its matches.

use std::sync::Arc;
use std::time::Instant;

use lightcone_engine::Datastore;
use lightcone_query::Query;
use lightcone_table::{DeltaBatch, DeltaKind};
use lightcone_types::{Identity, TableId};
use rustc_hash::FxHashSet;

use super::failures::ViewError;
use super::joined_groups::JoinedGroups;
use super::query::{check_bytes, Rows};
use super::{Row, ViewHost};
use lightcone_live::Asker;
use lightcone_live::{JoinShape, JoinShapes, Joins};

/// Memory above this is not kept for the next transaction.
const KEPT_BYTES_MAX: usize = 64 << 10;
const KEPT_ROWS_MAX: usize = 1024;

/// A row, or what comes out of a match, and how much more often, or less, a join gives it.
pub(super) type Change<'r> = (&'r [u8], isize);

/// The join of an instance.
pub(super) struct ViewJoin {
    shape: Arc<JoinShape>,
    key: Box<[u8]>,
    pub result: JoinResult,
}

/// What the instance has of it.
pub(super) enum JoinResult {
    Rows(JoinedRows),
    Groups(JoinedGroups),
}

impl ViewJoin {
    /// None: it is not a join that can be kept up to date.
    pub fn new(query: &Query, sender: &Identity, shapes: &JoinShapes) -> Option<ViewJoin> {
        let (join, result) = match JoinedGroups::new(query, *sender) {
            Some((join, groups)) => (join, JoinResult::Groups(groups)),
            None => {
                let [fragment] = &query.fragments[..] else {
                    return None;
                };
                let join = query.live_join(fragment, sender)?;
                (join, JoinResult::Rows(JoinedRows::default()))
            }
        };
        let (shape, key) = shapes.shape_of(&join);
        Some(ViewJoin { shape, key, result })
    }

    /// Brings the rows of the instance up to date.
    ///
    /// # Errors
    /// There are too many bytes of rows, and those of [`Datastore::change_view_rows`]. The join must be evaluated again then.
    pub fn change(
        &mut self,
        host: ViewHost<'_>,
        datastore: &mut Datastore,
        rows: Rows<'_>,
        changes: Vec<Change<'_>>,
    ) -> Result<(), ViewError> {
        match &mut self.result {
            JoinResult::Rows(joined) => joined.change(host, datastore, rows, changes),
            JoinResult::Groups(groups) => groups.change(host, datastore, rows, &changes),
        }
    }

    fn is_like(&self, other: &ViewJoin) -> bool {
        self.shape.id == other.shape.id && self.key == other.key
    }
}

/// Rows that a join gives, each once.
#[derive(Default)]
pub(super) struct JoinedRows {
    /// How often it gives a row beyond the first time. Clients choose rows: they are hashed with a secret.
    repeated: hashbrown::HashMap<Box<[u8]>, isize>,
    /// Of all that the join gives, the repetitions included.
    bytes: usize,
}

impl JoinedRows {
    /// Notes what evaluating the join gave: rows one behind the other, and where each ends.
    pub fn count(&mut self, bytes: &[u8], mut start: usize, ends: &[usize]) {
        self.repeated.clear();
        self.bytes = bytes.len();
        let mut rows = Vec::with_capacity(ends.len());
        for &end in ends {
            rows.push(&bytes[start..end]);
            start = end;
        }
        rows.sort_unstable();
        for equal in rows.chunk_by(|a, b| a == b).filter(|rows| rows.len() > 1) {
            let more = equal.len() as isize - 1;
            self.repeated.insert(equal[0].into(), more);
        }
    }

    fn change(
        &mut self,
        host: ViewHost<'_>,
        datastore: &mut Datastore,
        (view, instance): Rows<'_>,
        mut changes: Vec<Change<'_>>,
    ) -> Result<(), ViewError> {
        let more = changes.iter().map(|(row, more)| row.len() as isize * more);
        self.bytes = self.bytes.saturating_add_signed(more.sum());
        check_bytes(host, self.bytes)?;
        changes.sort_unstable_by_key(|(row, _)| *row);
        changes.dedup_by(|next, kept| {
            let is_same = next.0 == kept.0;
            if is_same {
                kept.1 += next.1;
            }
            is_same
        });
        let (mut gone, mut come) = (Vec::new(), Vec::new());
        for (row, more) in changes {
            if more > 0 {
                self.repeat(row, more - 1);
                come.push(row);
            } else if more < 0 && !self.repeat(row, more) {
                gone.push(row);
            }
        }
        let (gone, come) = (gone.into_iter(), come.into_iter());
        Ok(
            datastore.change_view_rows(view, instance, gone, come, |row| {
                self.repeat(row, 1);
            })?,
        )
    }

    /// A row is given so much more often beyond the first time, or less. False: it is not given any more.
    fn repeat(&mut self, row: &[u8], more: isize) -> bool {
        if more == 0 {
            return true;
        }
        let after = self.repeated.get(row).copied().unwrap_or(0) + more;
        if after > 0 {
            self.repeated.insert(row.into(), after);
        } else {
            self.repeated.remove(row);
        }
        after >= 0
    }
}

/// Changed rows of the tables that joins read.
pub(super) struct NotedRows(DeltaBatch);

impl NotedRows {
    /// Tables come in the order of their ids.
    pub fn note(&mut self, table: TableId, Row { old, new }: Row<'_>) {
        let images = [(DeltaKind::Delete, old), (DeltaKind::Insert, new)];
        for (kind, row) in images {
            if let Some(row) = row {
                self.0.push_keyed(table, kind, &[], row);
            }
        }
    }
}

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

/// The joins of all instances, and what a transaction means for them.
#[derive(Default)]
pub(super) struct ViewJoins {
    /// By key, the instances.
    live: Joins<Instances>,
    /// The changed rows of the tables that joins read, and behind them those of the joins.
    changes: DeltaBatch,
    /// Instances with what concerns them of it; sorted.
    of_instances: Vec<(u32, u32)>,
}

impl ViewJoins {
    pub fn is_empty(&self) -> bool {
        self.live.is_empty()
    }

    pub fn has_table(&self, table: TableId) -> bool {
        self.live.has_table(table)
    }

    /// From now on, the instance hears of what concerns its join.
    ///
    /// # Errors
    /// The indexes that it needs cannot be built now.
    pub fn add(
        &mut self,
        datastore: &mut Datastore,
        join: &ViewJoin,
        instance: u32,
        now: Instant,
    ) -> Result<(), String> {
        let shapes = std::iter::once(&*join.shape);
        let of_module = Asker::Module;
        self.live.may_add(datastore, shapes, of_module, now)?;
        let instances = self.live.key_mut(datastore, &join.shape, &join.key);
        instances.insert(instance);
        Ok(())
    }

    /// The instance has another join now, or none: undoes what [`add`](Self::add) did for `old`.
    pub fn replace(
        &mut self,
        datastore: &mut Datastore,
        (old, new): (&ViewJoin, Option<&ViewJoin>),
        instance: u32,
    ) {
        if new.is_some_and(|new| new.is_like(old)) {
            return;
        }
        let remove = |instances: &mut Instances| instances.remove(instance);
        self.live.release(datastore, &old.shape, &old.key, remove);
    }

    /// Holds all indexes again, in tables that took the place of others.
    pub fn hold_all_indexes(&self, datastore: &mut Datastore) {
        self.live.hold_all_indexes(datastore);
    }

    /// Where the changed rows of tables that joins read are to be noted.
    pub fn begin(&mut self) -> NotedRows {
        NotedRows(std::mem::take(&mut self.changes))
    }

    /// Finds the instances that the rows concern which were noted. Calls `failed` with those of joins for which that was too
    /// much: they are to be evaluated again.
    pub fn evaluate(
        &mut self,
        datastore: &Datastore,
        changes: NotedRows,
        partners_max: usize,
        mut failed: impl FnMut(u32),
    ) {
        self.changes = changes.0;
        let noted = self.changes.position();
        if noted == 0 {
            return;
        }
        let changes = &mut self.changes;
        if self
            .live
            .evaluate(datastore, changes, 0..noted, partners_max)
        {
            self.live
                .forgive_failed(|instances| instances.for_each(&mut failed));
        }
        let found = changes.ops(noted..changes.position());
        for (op, place) in found.iter().zip(noted as u32..) {
            if let Some(instances) = self.live.kept(op.table, changes.key(op)) {
                instances.for_each(|instance| self.of_instances.push((instance, place)));
            }
        }
        self.of_instances.sort_unstable();
    }

    /// The instances that [`evaluate`](Self::evaluate) found.
    pub fn concerned(&self) -> impl Iterator<Item = u32> + '_ {
        let runs = self.of_instances.chunk_by(|a, b| a.0 == b.0);
        runs.map(|run| run[0].0)
    }

    /// How the rows of an instance's join have changed.
    pub fn of(&self, instance: u32) -> Vec<Change<'_>> {
        let start = self.of_instances.partition_point(|(of, _)| *of < instance);
        let listed = self.of_instances[start..].iter();
        let listed = listed.take_while(|(of, _)| *of == instance);
        let change = |(_, place): &(u32, u32)| {
            let place = *place as usize;
            let op = &self.changes.ops(place..place + 1)[0];
            let more = match op.kind {
                DeltaKind::Insert => 1,
                DeltaKind::Delete => -1,
            };
            (self.changes.row(op), more)
        };
        listed.map(change).collect()
    }

    /// The transaction is done with.
    pub fn clear(&mut self) {
        let is_large =
            self.changes.bytes_len() > KEPT_BYTES_MAX || self.changes.position() > KEPT_ROWS_MAX;
        match is_large {
            true => self.changes = DeltaBatch::default(),
            false => self.changes.clear(),
        }
        self.of_instances.clear();
        self.of_instances.shrink_to(KEPT_ROWS_MAX);
    }
}
