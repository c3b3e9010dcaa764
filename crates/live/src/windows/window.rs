//! The first rows of an order, and what a change of the rows does to those that come out.

use std::cmp::Ordering;
use std::sync::Arc;

use crate::joins::MATCHES_COUNTED_MAX;

/// What a row in a window takes beside its bytes.
const ENTRY_BYTES: usize = 64;
/// Changes are counted together when there are so many more than the window has rows.
const CHANGES_SPARE: usize = 64;
/// Rows that are kept behind those that come out, so that one that goes is replaced without looking for another: at least, at
/// most, and otherwise as many as half of those.
const SPARE_ROWS_MIN: usize = 16;
const SPARE_ROWS_MAX: usize = 256;

/// Which positions of the order come out.
#[derive(Clone, Copy, Debug)]
pub struct Extent {
    pub start: usize,
    pub end: usize,
    /// Rows that are kept behind these.
    spare: usize,
}

impl Extent {
    pub fn new(start: usize, end: usize) -> Extent {
        Extent {
            start,
            end,
            spare: (end / 2).clamp(SPARE_ROWS_MIN, SPARE_ROWS_MAX),
        }
    }

    /// The same for one of many windows: each keeps another number of spare rows, at least half of them, so that windows with the
    /// same rows do not run out of them all at once.
    pub fn of_window(self, number: u32) -> Extent {
        let less = number as usize % (self.spare / 2);
        Extent {
            spare: self.spare - less,
            ..self
        }
    }

    /// How many rows are kept.
    pub fn kept_rows(self) -> usize {
        self.end.saturating_add(self.spare)
    }

    fn shows(self, position: usize) -> bool {
        (self.start..self.end).contains(&position)
    }
}

/// How often the sources of a window give a row, which is in the window once. Of very many times that it is given by one source,
/// only some are counted.
#[derive(Clone, Copy, Debug, Default)]
pub struct Weight {
    pub times: u64,
    /// It may be more.
    is_least: bool,
}

impl Weight {
    pub const ONCE: Weight = Weight {
        times: 1,
        is_least: false,
    };

    /// A source gives it so often, or more often than is counted.
    pub fn add(&mut self, times: u64) {
        self.times += times;
        self.is_least |= times >= MATCHES_COUNTED_MAX;
    }
}

/// A row behind its sort key: the bytes of both sort as the rows do.
#[derive(Clone, Debug)]
pub struct Entry {
    bytes: Arc<[u8]>,
    key_len: usize,
    weight: Weight,
}

impl PartialEq for Entry {
    fn eq(&self, other: &Entry) -> bool {
        self.bytes == other.bytes
    }
}

impl Eq for Entry {}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Entry) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Entry {
    fn cmp(&self, other: &Entry) -> Ordering {
        self.bytes.cmp(&other.bytes)
    }
}

impl Entry {
    /// Of a sort key with the row behind it.
    pub fn new(bytes: &[u8], key_len: usize) -> Entry {
        Entry {
            bytes: bytes.into(),
            key_len,
            weight: Weight::ONCE,
        }
    }

    pub fn with_weight(self, weight: Weight) -> Entry {
        Entry { weight, ..self }
    }

    pub fn row(&self) -> &[u8] {
        &self.bytes[self.key_len..]
    }

    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub fn memory_bytes(&self) -> usize {
        self.bytes.len() + ENTRY_BYTES
    }
}

/// Rows that came out, or went, with how often. Counted together, these are what a client is to be told.
#[derive(Default)]
pub struct Changes(Vec<(Entry, isize)>);

impl Changes {
    pub fn push(&mut self, entry: &Entry, weight: isize, extent: Extent) {
        self.0.push((entry.clone(), weight));
        let rows = extent.end.saturating_sub(extent.start);
        // At most all rows have come and all have gone, so this is not done for every change.
        if self.0.len() > rows.saturating_mul(4).saturating_add(CHANGES_SPARE) {
            self.net();
        }
    }

    /// Counts equal rows together.
    pub fn net(&mut self) -> &[(Entry, isize)] {
        self.0.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        self.0.dedup_by(|next, kept| {
            let is_same = next.0 == kept.0;
            if is_same {
                kept.1 += next.1;
            }
            is_same
        });
        self.0.retain(|(_, weight)| *weight != 0);
        &self.0
    }

    pub fn clear(&mut self) {
        self.0.clear();
        self.0.shrink_to(CHANGES_SPARE);
    }
}

/// The first rows of an order: all rows up to its last one are in it.
#[derive(Default)]
pub struct Window {
    entries: Vec<Entry>,
    /// There are no rows behind the last one.
    is_complete: bool,
    bytes: usize,
    /// Rows that are given less often by all that was counted, and maybe not at all.
    uncounted: Vec<Entry>,
}

impl Window {
    /// The rows that come out.
    pub fn shown(&self, extent: Extent) -> &[Entry] {
        let end = extent.end.min(self.entries.len());
        self.entries.get(extent.start..end).unwrap_or_default()
    }

    pub fn last(&self) -> Option<&Entry> {
        self.entries.last()
    }

    pub fn memory_bytes(&self) -> usize {
        self.bytes
    }

    /// A row of which nothing is known: it lies behind the last one, and others may too.
    pub fn is_beyond(&self, entry: &[u8]) -> bool {
        let last = self.entries.last();
        !self.is_complete && last.is_none_or(|last| *entry > *last.bytes)
    }

    /// How many rows are missing: none, or so many that they need not be looked for soon again; and how many of them come out.
    pub fn missing_rows(&self, extent: Extent) -> (usize, usize) {
        let rows = self.entries.len();
        match self.is_complete || rows >= extent.end {
            true => (0, 0),
            false => (extent.kept_rows() - rows, extent.end - rows),
        }
    }

    fn place(&self, entry: &[u8]) -> Result<usize, usize> {
        let compare = |known: &Entry| known.bytes[..].cmp(entry);
        self.entries.binary_search_by(compare)
    }

    /// A source gives a row once more, of which this is a sort key with the row behind it; `more` is 0 where a row is given only once.
    /// `make` gives the entry that is kept if it is a new one, and whose bytes other windows may share.
    pub fn insert(
        &mut self,
        (entry, more): (&[u8], u64),
        make: impl FnOnce() -> Entry,
        extent: Extent,
        changes: &mut Changes,
    ) {
        let place = match self.place(entry) {
            Ok(place) => {
                self.entries[place].weight.times += more;
                return;
            }
            Err(place) => place,
        };
        let entry = make();
        self.bytes += entry.memory_bytes();
        self.entries.insert(place, entry);
        self.tell(place, 1, extent, changes);
        // Of very many rows of one transaction, most need not be kept.
        if self.entries.len() > extent.kept_rows().saturating_mul(2) {
            self.trim(extent);
        }
    }

    /// The row at this place has come, or is to go, as `weight` says: which rows come out because of it, and which do no more.
    fn tell(&self, place: usize, weight: isize, extent: Extent, changes: &mut Changes) {
        if place >= extent.end || extent.start >= extent.end {
            return;
        }
        if let Some(entry) = self.entries.get(place.max(extent.start)) {
            changes.push(entry, weight, extent);
        }
        if let Some(entry) = self.entries.get(extent.end) {
            changes.push(entry, -weight, extent);
        }
    }

    /// A source gives a row once less.
    pub fn remove(&mut self, entry: &[u8], extent: Extent, changes: &mut Changes) {
        let Ok(place) = self.place(entry) else {
            return;
        };
        let known = &mut self.entries[place];
        let before = known.weight.times;
        known.weight.times = before.saturating_sub(1);
        match known.weight {
            Weight { times: 1.., .. } => {}
            Weight { is_least: true, .. } if before > 0 => self.uncounted.push(known.clone()),
            Weight { is_least: true, .. } => {}
            _ => self.remove_at(place, extent, changes),
        }
    }

    /// Rows whose weights are to be [set](Self::set_weight).
    pub fn take_uncounted(&mut self) -> Vec<Entry> {
        std::mem::take(&mut self.uncounted)
    }

    /// A row has been counted anew.
    pub fn set_weight(
        &mut self,
        entry: &Entry,
        weight: Weight,
        extent: Extent,
        changes: &mut Changes,
    ) {
        // It may have been dropped as one that need not be kept.
        let Ok(place) = self.place(entry.bytes()) else {
            return;
        };
        self.entries[place].weight = weight;
        if weight.times == 0 {
            self.remove_at(place, extent, changes);
        }
    }

    fn remove_at(&mut self, place: usize, extent: Extent, changes: &mut Changes) {
        self.tell(place, -1, extent, changes);
        self.bytes -= self.entries.remove(place).memory_bytes();
    }

    /// Drops rows that need not be kept.
    pub fn trim(&mut self, extent: Extent) {
        if self.entries.len() <= extent.kept_rows() {
            return;
        }
        let dropped = self.entries.drain(extent.kept_rows()..);
        self.bytes -= dropped.map(|entry| entry.memory_bytes()).sum::<usize>();
        self.is_complete = false;
    }

    /// The next rows behind the last one, in order. They are all if `is_complete`.
    pub fn extend(
        &mut self,
        entries: Vec<Entry>,
        is_complete: bool,
        extent: Extent,
        changes: &mut Changes,
    ) {
        for entry in entries {
            if extent.shows(self.entries.len()) {
                changes.push(&entry, 1, extent);
            }
            self.bytes += entry.memory_bytes();
            self.entries.push(entry);
        }
        self.is_complete = is_complete;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    /// All rows, with the window over them and what a client holds of it.
    struct Model {
        extent: Extent,
        all: BTreeSet<u16>,
        window: Window,
        held: BTreeSet<u16>,
    }

    fn bytes(row: u16) -> [u8; 2] {
        row.to_be_bytes()
    }

    impl Model {
        fn apply(&mut self, inserts: &BTreeSet<u16>, deletes: &BTreeSet<u16>) {
            let mut changes = Changes::default();
            let (extent, window) = (self.extent, &mut self.window);
            for row in inserts.difference(&self.all) {
                let entry = bytes(*row);
                if !window.is_beyond(&entry) {
                    window.insert((&entry, 1), || Entry::new(&entry, 0), extent, &mut changes);
                }
            }
            for row in deletes.intersection(&self.all) {
                window.remove(&bytes(*row), extent, &mut changes);
            }
            self.all = self.all.difference(deletes).copied().collect();
            self.all.extend(inserts);
            self.fill(&mut changes);
            for (entry, weight) in changes.net() {
                let row = entry.row().try_into().map(u16::from_be_bytes);
                let row = row.expect("two bytes");
                let is_new = match weight {
                    1 => self.held.insert(row),
                    -1 => self.held.remove(&row),
                    other => panic!("{row} changes {other} times"),
                };
                assert!(is_new, "{row} {weight}");
            }
        }

        fn fill(&mut self, changes: &mut Changes) {
            let (extent, window) = (self.extent, &mut self.window);
            window.trim(extent);
            let (wanted, _) = window.missing_rows(extent);
            if wanted == 0 {
                return;
            }
            let is_behind = |row: &u16| {
                let last = window.last();
                last.is_none_or(|last| bytes(*row)[..] > *last.bytes())
            };
            let mut found: Vec<u16> = self.all.iter().copied().filter(is_behind).collect();
            let is_complete = found.len() <= wanted;
            found.truncate(wanted);
            let entries = found.into_iter().map(|row| Entry::new(&bytes(row), 0));
            window.extend(entries.collect(), is_complete, extent, changes);
        }

        fn check(&self) {
            let Extent { start, end, .. } = self.extent;
            let shown = self.all.iter().skip(start).take(end - start);
            let shown: Vec<u16> = shown.copied().collect();
            assert!(self.held.iter().eq(&shown), "{:?} {shown:?}", self.held);
            let rows = self.window.shown(self.extent).iter().map(Entry::row);
            assert!(rows.eq(shown.iter().map(|row| bytes(*row))));
            let memory = self.window.entries.iter().map(Entry::memory_bytes);
            assert_eq!(memory.sum::<usize>(), self.window.bytes);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn what_comes_out_is_the_part_of_the_order(
            start in 0..12_usize,
            rows in 0..40_usize,
            steps in prop::collection::vec(
                (prop::collection::btree_set(0..200_u16, 0..60), prop::collection::btree_set(0..200_u16, 0..90)),
                1..40,
            ),
        ) {
            let mut model = Model {
                extent: Extent::new(start, start + rows),
                all: BTreeSet::new(),
                window: Window::default(),
                held: BTreeSet::new(),
            };
            for (inserts, deletes) in &steps {
                let deletes = deletes.difference(inserts).copied().collect();
                model.apply(inserts, &deletes);
                model.check();
            }
        }
    }

    #[test]
    fn many_changes_of_a_small_window_are_counted_together() {
        let extent = Extent::new(0, 10);
        let (mut window, mut changes) = (Window::default(), Changes::default());
        window.extend(Vec::new(), true, extent, &mut changes);
        for row in (0..10_000_u16).rev() {
            let entry = Entry::new(&bytes(row), 0);
            window.insert((&bytes(row), 1), || entry, extent, &mut changes);
            assert!(changes.0.len() <= 4 * 10 + CHANGES_SPARE);
        }
        assert_eq!(changes.net().len(), 10);
    }
}
