//! The windows of one shape: what the changes of a table do to them.

use std::collections::HashMap;
use std::sync::Arc;

use lightcone_table::{CurrentTables, DeltaBatch, DeltaKind, DeltaOp, RowAt};
use lightcone_types::{Identity, TableId};
use slab::Slab;
use smallvec::SmallVec;

use super::allowance::{Allowance, Spent};
use super::fill::Wanted;
use super::limits::{Room, WindowLimits};
use super::shape::WindowShape;
use super::source::Source;
use super::window::{Changes, Entry, Extent, Window};
use crate::bound_query::BoundWindow;
use crate::holders::{Holder, Holders};
use crate::joins::{kind_of, Answers, Reading};
use crate::key::Key;
use crate::work::RowsLately;

/// What a window takes beside its rows and its key.
const WINDOW_BYTES: usize = 256;
/// Memory above this is not kept for the next transaction.
const BYTES_KEPT_MAX: usize = 1 << 20;

/// Rows of windows, by caller and text.
pub(super) type Before = HashMap<(Identity, String), Vec<Entry>>;

/// A window that has holders.
pub(super) struct Live {
    /// As its first holder has asked for it.
    pub asked: Arc<BoundWindow>,
    pub extent: Extent,
    pub window: Window,
    /// Which of the shape's ways finds its rows.
    pub access: usize,
    pub holders: Holders,
    /// It was too much, and is not kept up to date any more.
    pub has_failed: bool,
    /// It has the changes of the present transaction, but clients were not told.
    is_new: bool,
    /// What the present transaction has changed.
    pub changes: Changes,
    is_touched: bool,
    /// Rows that were looked at for it in the present transaction.
    pub rows_read: usize,
    /// Bytes when they were last counted.
    bytes: usize,
}

impl Live {
    fn memory_bytes(&self) -> usize {
        WINDOW_BYTES + 3 * self.asked.key.len() + self.window.memory_bytes()
    }

    /// The rows that come out.
    pub fn shown(&self) -> &[Entry] {
        self.window.shown(self.extent)
    }

    /// It was too much, and what it has changed so far is not told: that is no state of it.
    fn give_up(&mut self) {
        self.has_failed = true;
        self.changes.clear();
    }
}

pub(super) struct ShapeWindows {
    pub shape: Arc<WindowShape>,
    /// By key. Clients choose keys: they are hashed with a secret.
    by_key: hashbrown::HashMap<Box<[u8]>, u32>,
    /// By source, and its key.
    by_source: Vec<hashbrown::HashMap<Key, SmallVec<[u32; 1]>>>,
    pub windows: Slab<Live>,
    /// What was looked at for them.
    pub lately: RowsLately,
}

/// A shape that a transaction concerns.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Concerned {
    pub shape: TableId,
    /// By which of its sources; 0 if it has none.
    pub source: usize,
    /// The changes of the source's table or join.
    pub ops: (usize, usize),
}

impl Concerned {
    pub fn rows(&self) -> usize {
        self.ops.1 - self.ops.0
    }
}

/// A window that is short of rows. Those that miss much the same rows come one behind the other.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Short {
    /// A hash of its own parameters, and how its last sort key begins.
    pub like: (u64, u128),
    pub window: u32,
}

/// Reused from transaction to transaction.
#[derive(Default)]
pub(super) struct Scratch {
    /// The windows of a shape that a transaction has changed.
    pub touched: Vec<u32>,
    pub short: Vec<Short>,
    pub answers: Answers,
    key: Vec<u8>,
    entry: Vec<u8>,
}

impl ShapeWindows {
    pub fn new(shape: Arc<WindowShape>) -> ShapeWindows {
        let of_source = |_: &Source| hashbrown::HashMap::default();
        ShapeWindows {
            by_source: shape.sources.iter().map(of_source).collect(),
            shape,
            by_key: hashbrown::HashMap::default(),
            windows: Slab::new(),
            lately: RowsLately::default(),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.by_key.is_empty()
    }

    pub fn find(&self, key: &[u8]) -> Option<&Live> {
        let window = *self.by_key.get(key)?;
        self.windows.get(window as usize)
    }

    /// Numbers are of windows that are there.
    pub fn live(&mut self, window: u32) -> &mut Live {
        &mut self.windows[window as usize]
    }

    /// False: there is no such window yet.
    pub fn add_holder(&mut self, key: &[u8], holder: Holder) -> bool {
        let Some(&window) = self.by_key.get(key) else {
            return false;
        };
        self.live(window).holders.add(holder);
        true
    }

    /// Makes a window for its first holder. Gives its bytes.
    ///
    /// # Errors
    /// What the client is told: finding its rows would take too much, or there are too many bytes.
    pub fn add_window(
        &mut self,
        tables: &dyn CurrentTables,
        (asked, holder): (&Arc<BoundWindow>, Holder),
        (room, bytes_of_others): (&mut Room<'_>, usize),
    ) -> Result<usize, String> {
        let mut reading = Reading {
            tables,
            answers: &mut room.answers,
            rows_left: room.rows_left,
        };
        let found = find_all(&self.shape, &mut reading, asked);
        room.rows_left = reading.rows_left;
        let Some((window, access)) = found else {
            let table = &self.shape.table.name;
            return Err(format!("finding the rows of the subscription with ORDER BY would take more than the {} rows of `{table}` that limits.window-rows-read-max allows to look at: add an index to the module that begins with the columns of `=` in WHERE and goes on with the first one of ORDER BY [LC0728]", room.user.limits.rows_read_max));
        };
        let number = self.windows.vacant_key() as u32;
        let mut holders = Holders::default();
        holders.add(holder);
        let mut live = Live {
            asked: asked.clone(),
            extent: self.shape.extent.of_window(number),
            window,
            access,
            holders,
            has_failed: false,
            is_new: room.is_publish,
            changes: Changes::default(),
            is_touched: false,
            rows_read: 0,
            bytes: 0,
        };
        live.bytes = live.memory_bytes();
        let bytes = live.bytes;
        if bytes_of_others.saturating_add(bytes) > room.bytes_max(bytes) {
            return Err(format!("the rows of all windows (ORDER BY … LIMIT) that clients are subscribed to would take more than the {} bytes of limits.windows-bytes-max, of which half is for few small windows of each connection [LC0727]", room.user.limits.bytes_max));
        }
        self.windows.insert(live);
        self.by_key.insert(asked.key.clone(), number);
        let keys = self.shape.source_keys(&asked.key);
        for (of_source, key) in self.by_source.iter_mut().zip(keys) {
            of_source.entry(key.into()).or_default().push(number);
        }
        Ok(bytes)
    }

    /// The bytes of the window, if this was its last holder.
    pub fn remove_holder(&mut self, key: &[u8], holder: Holder) -> Option<usize> {
        let window = *self.by_key.get(key)?;
        let live = self.live(window);
        live.holders.remove(holder);
        if !live.holders.are_none() {
            return None;
        }
        let bytes = live.bytes;
        self.by_key.remove(key);
        let keys = self.shape.source_keys(key);
        for (of_source, key) in self.by_source.iter_mut().zip(keys) {
            let Some(windows) = of_source.get_mut(key) else {
                continue;
            };
            if let Some(place) = windows.iter().position(|known| *known == window) {
                windows.swap_remove(place);
            }
            if windows.is_empty() {
                of_source.remove(key);
            }
        }
        self.windows.remove(window as usize);
        Some(bytes)
    }

    /// What its windows change is told no more.
    #[cold]
    pub fn give_up(&mut self) {
        let windows = self.windows.iter_mut();
        windows.for_each(|(_, live)| live.give_up());
    }

    /// Gives the bytes that are free now.
    pub fn fail(&mut self, window: u32) -> usize {
        let live = self.live(window);
        live.give_up();
        live.window = Window::default();
        let before = live.bytes;
        live.bytes = live.memory_bytes();
        before - live.bytes
    }

    /// The bytes of the windows that have not failed.
    pub fn sizes(&self) -> impl Iterator<Item = (usize, u32)> + '_ {
        let kept = self.windows.iter().filter(|(_, live)| !live.has_failed);
        kept.map(|(number, live)| (live.bytes, number as u32))
    }

    pub fn some_failed(&self) -> bool {
        self.windows.iter().any(|(_, live)| live.has_failed)
    }

    /// The windows that have failed, with each of the instances of views that have them.
    pub fn failed(&self) -> impl Iterator<Item = (Arc<BoundWindow>, u32)> + '_ {
        let failed = self.windows.iter().filter(|(_, live)| live.has_failed);
        failed.flat_map(|(_, live)| {
            let instances = live.holders.instances.iter();
            instances.map(|instance| (live.asked.clone(), *instance))
        })
    }

    /// How many rows its windows keep at most.
    pub fn kept_rows(&self) -> usize {
        self.by_key.len() * self.shape.extent.kept_rows()
    }

    /// Finds the rows of all windows anew, looking at no more rows than `rows_left`, of which it takes what it has looked at. Gives
    /// their bytes.
    pub fn rebuild(
        &mut self,
        tables: &dyn CurrentTables,
        rows_left: &mut usize,
        limits: WindowLimits,
    ) -> usize {
        let mut bytes = 0;
        let mut answers = Answers::default();
        let (shape, windows) = (self.shape.clone(), &mut self.windows);
        for (_, live) in windows.iter_mut() {
            let granted = limits.rows_read_max.min(*rows_left);
            let mut reading = Reading {
                tables,
                answers: &mut answers,
                rows_left: granted,
            };
            let found = find_all(&shape, &mut reading, &live.asked);
            *rows_left -= granted - reading.rows_left;
            live.has_failed |= found.is_none();
            (live.window, live.access) = found.unwrap_or_default();
            live.bytes = live.memory_bytes();
            bytes += live.bytes;
        }
        bytes
    }

    /// Brings windows up to date as far as the changes of the table say how; they may be short of rows then. Rows that came are
    /// first, so that as few as possible have to be looked for.
    pub fn apply(&mut self, deltas: &DeltaBatch, concerned: &[Concerned], scratch: &mut Scratch) {
        scratch.touched.clear();
        for kind in [DeltaKind::Insert, DeltaKind::Delete] {
            for of_source in concerned {
                let Concerned { source, ops, .. } = *of_source;
                let changed = deltas.ops(ops.0..ops.1).iter();
                for op in changed.filter(|op| op.kind == kind) {
                    match self.by_source.is_empty() {
                        true => self.apply_row(kind, deltas.row(op), scratch),
                        false => self.apply_source(deltas, source, op, scratch),
                    }
                }
            }
        }
    }

    /// A source gives a row now, or gives it less often than before.
    fn apply_source(
        &mut self,
        deltas: &DeltaBatch,
        source: usize,
        op: &DeltaOp,
        scratch: &mut Scratch,
    ) {
        let (shape, row) = (&*self.shape, deltas.row(op));
        let key = match shape.sources[source].join() {
            Some(_) => deltas.key(op),
            None if shape.sources[source].write_key(&shape.layout, row, &mut scratch.key) => {
                &scratch.key
            }
            None => return,
        };
        let Some(numbers) = self.by_source[source].get(key) else {
            return;
        };
        let key_len = shape.write_entry(row, &mut scratch.entry);
        // Of all windows that the row comes into.
        let mut entry = None;
        for &number in numbers {
            let live = &mut self.windows[number as usize];
            if live.has_failed || live.is_new || live.window.is_beyond(&scratch.entry) {
                continue;
            }
            let (extent, changes) = (live.extent, &mut live.changes);
            match op.kind {
                DeltaKind::Insert => {
                    let make = || Entry::new(&scratch.entry, key_len);
                    let make = || entry.get_or_insert_with(make).clone();
                    let entry = (&scratch.entry[..], 1);
                    live.window.insert(entry, make, extent, changes);
                }
                DeltaKind::Delete => live.window.remove(&scratch.entry, extent, changes),
            }
            if !std::mem::replace(&mut live.is_touched, true) {
                scratch.touched.push(number);
            }
        }
    }

    #[inline]
    fn apply_row(&mut self, kind: DeltaKind, row: &[u8], scratch: &mut Scratch) {
        let shape = &*self.shape;
        if !shape.admits(row) {
            return;
        }
        shape.write_key(row, &mut scratch.key);
        let Some(&number) = self.by_key.get(&*scratch.key) else {
            return;
        };
        let live = &mut self.windows[number as usize];
        if live.has_failed || live.is_new {
            return;
        }
        let (extent, window) = (live.extent, &mut live.window);
        // Most rows are beyond by their key alone.
        shape.write_sort_key(row, &mut scratch.entry);
        if window.is_beyond(&scratch.entry) {
            return;
        }
        let key_len = scratch.entry.len();
        scratch.entry.extend_from_slice(row);
        if window.is_beyond(&scratch.entry) {
            return;
        }
        match kind {
            DeltaKind::Insert => {
                let make = || Entry::new(&scratch.entry, key_len);
                window.insert((&scratch.entry, 0), make, extent, &mut live.changes);
            }
            DeltaKind::Delete => window.remove(&scratch.entry, extent, &mut live.changes),
        }
        if !std::mem::replace(&mut live.is_touched, true) {
            scratch.touched.push(number);
        }
    }

    /// Appends how the rows of new windows differ from those that clients have.
    pub fn tell_new(&mut self, before: &Before, deltas: &mut DeltaBatch, scratch: &mut Scratch) {
        scratch.touched.clear();
        for (number, live) in self.windows.iter_mut() {
            if !std::mem::take(&mut live.is_new) {
                continue;
            }
            let Some(rows) = before.get(&live.asked.caller_and_text()) else {
                continue;
            };
            let (extent, changes) = (live.extent, &mut live.changes);
            for entry in rows {
                changes.push(entry, -1, extent);
            }
            for entry in live.window.shown(extent) {
                changes.push(entry, 1, extent);
            }
            scratch.touched.push(number as u32);
        }
        self.finish(deltas, scratch);
    }

    /// By how much the bytes of the touched windows have changed.
    pub fn count_bytes(&mut self, scratch: &Scratch) -> isize {
        let mut change = 0;
        for &number in &scratch.touched {
            let live = self.live(number);
            let bytes = live.memory_bytes();
            change += bytes as isize - live.bytes as isize;
            live.bytes = bytes;
        }
        change
    }

    /// Appends what has changed in the touched windows.
    pub fn finish(&mut self, deltas: &mut DeltaBatch, scratch: &mut Scratch) {
        let shape = self.shape.clone();
        // Windows share the rows that come into several: these are written once.
        let mut written: HashMap<*const u8, RowAt> = HashMap::new();
        let is_alone = scratch.touched.len() == 1;
        for &number in &scratch.touched {
            let live = self.live(number);
            live.is_touched = false;
            live.rows_read = 0;
            for (entry, weight) in live.changes.net() {
                let (kind, row) = (kind_of(*weight), entry.row());
                let at = match is_alone {
                    true => deltas.write_row(row),
                    false => *written
                        .entry(row.as_ptr())
                        .or_insert_with(|| deltas.write_row(row)),
                };
                let key = deltas.write_row(&live.asked.key);
                deltas.push_written(shape.id, kind, key, at);
            }
            live.changes.clear();
        }
        scratch.key.shrink_to(BYTES_KEPT_MAX);
        scratch.entry.shrink_to(BYTES_KEPT_MAX);
        scratch.touched.shrink_to(BYTES_KEPT_MAX / size_of::<u32>());
        scratch.short.shrink_to(BYTES_KEPT_MAX / size_of::<Short>());
    }
}

/// All rows of a window, and the way by which they were found.
fn find_all(
    shape: &WindowShape,
    reading: &mut Reading<'_>,
    asked: &BoundWindow,
) -> Option<(Window, usize)> {
    let mut window = Window::default();
    let wanted = Wanted {
        shape,
        key: &asked.key,
        query: (&asked.query, asked.sender),
        after: None,
        rows: shape.extent.kept_rows(),
        is_any_source: false,
    };
    let ways: Vec<usize> = (0..shape.accesses.len()).collect();
    let (found, access) = wanted.find_by_any(reading, &ways, None)?;
    let changes = &mut Changes::default();
    window.extend(found.entries, found.is_complete, shape.extent, changes);
    Some((window, access))
}

/// A window of a shape was too much, and with it maybe another one, of this shape or not.
#[cold]
pub(super) fn give_up(
    windows: &mut Slab<Live>,
    spent: Spent,
    allowance: &mut Allowance,
    greedy: &mut Vec<Spent>,
) {
    let greedier = allowance.fail(spent);
    for failed in [Some(spent), greedier].into_iter().flatten() {
        if failed.shape == spent.shape {
            windows[failed.window as usize].give_up();
        }
        greedy.push(failed);
    }
}
