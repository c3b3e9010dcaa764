//! The windows of one shape: what the changes of a table do to them.

use std::ops::Range;
use std::sync::Arc;

use lightcone_engine::{Datastore, DeltaBatch, DeltaKind};

use super::fill::{Found, Wanted};
use super::shape::WindowShape;
use super::window::{Changes, Entry, Window};
use super::{Allowance, Room, Spent, WindowLimits};

/// What a window takes beside its rows and its key.
const WINDOW_BYTES: usize = 256;
/// Memory above this is not kept for the next transaction.
const BYTES_KEPT_MAX: usize = 1 << 20;

/// A window with subscribers.
struct Live {
    key: Box<[u8]>,
    window: Window,
    /// Which of the shape's ways finds its rows.
    access: usize,
    subscribers: usize,
    /// It was too much, and is not kept up to date any more.
    has_failed: bool,
    /// What the present transaction has changed.
    changes: Changes,
    is_touched: bool,
    /// Bytes when they were last counted.
    bytes: usize,
}

impl Live {
    fn memory_bytes(&self) -> usize {
        WINDOW_BYTES + 2 * self.key.len() + self.window.memory_bytes()
    }
}

pub(super) struct OfShape {
    pub shape: Arc<WindowShape>,
    /// By key. Clients choose keys: they are hashed with a secret.
    by_key: hashbrown::HashMap<Box<[u8]>, u32>,
    windows: Vec<Option<Live>>,
    free: Vec<u32>,
}

/// Reused from transaction to transaction.
#[derive(Default)]
pub(super) struct Scratch {
    /// The windows of a shape that a transaction has changed.
    touched: Vec<u32>,
    key: Vec<u8>,
    entry: Vec<u8>,
}

impl OfShape {
    pub fn new(shape: Arc<WindowShape>) -> OfShape {
        OfShape {
            shape,
            by_key: hashbrown::HashMap::default(),
            windows: Vec::new(),
            free: Vec::new(),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.by_key.is_empty()
    }

    fn find(&self, key: &[u8]) -> Option<&Live> {
        let window = *self.by_key.get(key)?;
        self.windows[window as usize].as_ref()
    }

    fn live(&mut self, window: u32) -> &mut Live {
        let live = self.windows[window as usize].as_mut();
        live.expect("numbers are of windows that are there")
    }

    /// False: there is no such window yet.
    pub fn add_subscriber(&mut self, key: &[u8]) -> bool {
        let Some(&window) = self.by_key.get(key) else {
            return false;
        };
        self.live(window).subscribers += 1;
        true
    }

    /// Makes a window for its first subscriber. Gives its bytes.
    ///
    /// # Errors
    /// What the client is told: finding its rows would take too much, or there are too many bytes.
    pub fn add_window(
        &mut self,
        datastore: &Datastore,
        key: &[u8],
        limits: WindowLimits,
        (room, bytes_of_others): (&mut Room, usize),
    ) -> Result<usize, String> {
        let found = self.find_all(datastore, key, &mut room.rows_left);
        let Some((window, access)) = found else {
            let table = &self.shape.table.name;
            return Err(format!("finding the rows of the subscription with ORDER BY would take more than the {} rows of `{table}` that limits.window-rows-read-max allows to look at: add an index to the module that begins with the columns of `=` in WHERE and goes on with the first one of ORDER BY [LC0728]", limits.rows_read_max));
        };
        let mut live = Live {
            key: key.into(),
            window,
            access,
            subscribers: 1,
            has_failed: false,
            changes: Changes::default(),
            is_touched: false,
            bytes: 0,
        };
        live.bytes = live.memory_bytes();
        let bytes = live.bytes;
        if bytes_of_others.saturating_add(bytes) > room.bytes_max(limits, bytes) {
            return Err(format!("the rows of all windows (ORDER BY … LIMIT) that clients are subscribed to would take more than the {} bytes of limits.windows-bytes-max, of which half is for few small windows of each connection [LC0727]", limits.bytes_max));
        }
        let window = match self.free.pop() {
            Some(window) => {
                self.windows[window as usize] = Some(live);
                window
            }
            None => {
                self.windows.push(Some(live));
                (self.windows.len() - 1) as u32
            }
        };
        self.by_key.insert(key.into(), window);
        Ok(bytes)
    }

    /// The bytes of the window, if this was its last subscriber.
    pub fn remove_subscriber(&mut self, key: &[u8]) -> Option<usize> {
        let window = *self.by_key.get(key)?;
        let live = self.live(window);
        live.subscribers -= 1;
        if live.subscribers > 0 {
            return None;
        }
        let bytes = live.bytes;
        self.by_key.remove(key);
        self.windows[window as usize] = None;
        self.free.push(window);
        Some(bytes)
    }

    /// All rows of a window, and the way by which they were found.
    fn find_all(
        &self,
        datastore: &Datastore,
        key: &[u8],
        rows_left: &mut usize,
    ) -> Option<(Window, usize)> {
        let shape = &*self.shape;
        let mut window = Window::default();
        let Some(table) = datastore.table(shape.table.id) else {
            return Some((window, 0));
        };
        let wanted = Wanted {
            shape,
            key,
            after: None,
            rows: shape.extent.kept_rows(),
        };
        let last = shape.accesses.len().saturating_sub(1);
        let tried = shape.accesses.iter().enumerate();
        let mut found = tried.filter_map(|(number, access)| {
            // What comes next has something left, if this is not the way.
            let kept_back = if number == last { 0 } else { *rows_left / 2 };
            let mut rows = *rows_left - kept_back;
            let found = wanted.find(table, access, &mut rows, &mut || false);
            *rows_left = rows + kept_back;
            Some((found?, number))
        });
        let (found, access) = found.next()?;
        let Found {
            entries,
            is_complete,
        } = found;
        window.extend(entries, is_complete, shape.extent, &mut Changes::default());
        Some((window, access))
    }

    /// The rows of a window that come out.
    pub fn entries(&self, key: &[u8]) -> &[Entry] {
        let live = self.find(key);
        live.map_or(&[], |live| live.window.shown(self.shape.extent))
    }

    pub fn has(&self, key: &[u8]) -> bool {
        self.by_key.contains_key(key)
    }

    pub fn has_failed(&self, key: &[u8]) -> bool {
        self.find(key).is_some_and(|live| live.has_failed)
    }

    /// Gives the bytes that are free now.
    pub fn fail(&mut self, window: u32) -> usize {
        let live = self.live(window);
        live.has_failed = true;
        live.window = Window::default();
        let before = live.bytes;
        live.bytes = live.memory_bytes();
        before - live.bytes
    }

    /// The bytes of the windows that have not failed.
    pub fn sizes(&self) -> impl Iterator<Item = (usize, u32)> + '_ {
        let windows = self.windows.iter().enumerate();
        windows.filter_map(|(number, live)| {
            let live = live.as_ref().filter(|live| !live.has_failed)?;
            Some((live.bytes, number as u32))
        })
    }

    pub fn some_failed(&self) -> bool {
        self.windows.iter().flatten().any(|live| live.has_failed)
    }

    /// Finds the rows of all windows anew. Gives their bytes.
    pub fn rebuild(&mut self, datastore: &Datastore, limits: WindowLimits) -> usize {
        let mut bytes = 0;
        for number in 0..self.windows.len() {
            let Some(live) = &self.windows[number] else {
                continue;
            };
            let found = self.find_all(datastore, &live.key, &mut { limits.rows_read_max });
            let live = self.live(number as u32);
            live.has_failed |= found.is_none();
            (live.window, live.access) = found.unwrap_or_default();
            live.bytes = live.memory_bytes();
            bytes += live.bytes;
        }
        bytes
    }

    /// Brings windows up to date as far as the changes of the table say how; they may be short of rows then. Rows that came are
    /// first, so that as few as possible have to be looked for.
    pub fn apply(&mut self, (deltas, ops): (&DeltaBatch, Range<usize>), scratch: &mut Scratch) {
        scratch.touched.clear();
        for kind in [DeltaKind::Insert, DeltaKind::Delete] {
            let changed = deltas.ops(ops.clone()).iter();
            for op in changed.filter(|op| op.kind == kind) {
                self.apply_row(kind, deltas.row(op), scratch);
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
        let live = self.windows[number as usize].as_mut();
        let live = live.expect("keys are of windows that are there");
        if live.has_failed {
            return;
        }
        let (extent, window) = (shape.extent, &mut live.window);
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
                window.insert(&scratch.entry, key_len, extent, &mut live.changes);
            }
            DeltaKind::Delete => window.remove(&scratch.entry, extent, &mut live.changes),
        }
        if !std::mem::replace(&mut live.is_touched, true) {
            scratch.touched.push(number);
        }
    }

    /// Looks for the rows that the touched windows are short of. Those that take too much are `greedy`.
    pub fn fill_touched(
        &mut self,
        datastore: &Datastore,
        scratch: &Scratch,
        allowance: &mut Allowance,
        greedy: &mut Vec<Spent>,
    ) {
        let shape = self.shape.clone();
        for &number in &scratch.touched {
            let live = self.live(number);
            live.window.trim(shape.extent);
            let rows = live.window.missing_rows(shape.extent);
            if rows == 0 {
                continue;
            }
            let Some(table) = datastore.table(shape.table.id) else {
                continue;
            };
            let wanted = Wanted {
                shape: &shape,
                key: &live.key,
                after: live.window.last(),
                rows,
            };
            let may_look_at = allowance.rows.min(allowance.rows_in_all);
            let mut rows_left = may_look_at;
            let access = &shape.accesses[live.access];
            let found = wanted.find(table, access, &mut rows_left, &mut || false);
            let spent = Spent {
                rows: may_look_at - rows_left,
                shape: shape.id,
                window: number,
            };
            allowance.rows -= spent.rows;
            allowance.rows_in_all -= spent.rows;
            let Some(found) = found else {
                // Nobody hears of what it has changed so far: that is no state of it.
                live.has_failed = true;
                live.changes.clear();
                allowance.rows += spent.rows;
                greedy.push(spent);
                // Who has taken most fails too, so that others have something left.
                if allowance.most.is_some_and(|most| most.rows > spent.rows) {
                    let most = allowance.most.take();
                    allowance.rows += most.map_or(0, |most| most.rows);
                    greedy.extend(most);
                }
                continue;
            };
            if allowance.most.is_none_or(|most| spent.rows > most.rows) {
                allowance.most = Some(spent);
            }
            let Found {
                entries,
                is_complete,
            } = found;
            let changes = &mut live.changes;
            live.window
                .extend(entries, is_complete, shape.extent, changes);
        }
    }

    /// Appends what has changed in the touched windows. Gives by how much their bytes have changed.
    pub fn finish(&mut self, deltas: &mut DeltaBatch, scratch: &mut Scratch) -> isize {
        let shape = self.shape.clone();
        let mut change = 0;
        for &number in &scratch.touched {
            let live = self.live(number);
            live.is_touched = false;
            for (entry, weight) in live.changes.net() {
                let kind = match *weight > 0 {
                    true => DeltaKind::Insert,
                    false => DeltaKind::Delete,
                };
                deltas.push_keyed(shape.id, kind, &live.key, entry.row());
            }
            live.changes.clear();
            let bytes = live.memory_bytes();
            change += bytes as isize - live.bytes as isize;
            live.bytes = bytes;
        }
        scratch.key.shrink_to(BYTES_KEPT_MAX);
        scratch.entry.shrink_to(BYTES_KEPT_MAX);
        scratch.touched.shrink_to(BYTES_KEPT_MAX / size_of::<u32>());
        change
    }
}
