//! Rows that several windows of a shape are short of, found once for all of them.
//!
//! Where rules are a window's sources, very many windows keep much the same rows, and all are short of the same ones at the same
//! time. What comes behind is walked once, and each of them takes what its sources give.

use super::fill::{Found, Wanted};
use super::shape::{Access, SOURCES_PER_ROW};
use super::window::{Entry, Weight};
use crate::joins::Reading;

/// Rows that are found at a time, at least.
const ROWS_AT_ONCE_MIN: usize = 32;
/// So many rows are shared, at most, and so many bytes of them; who needs more looks for them alone.
const ROWS_MAX: usize = 4096;
const BYTES_MAX: usize = 16 << 20;
/// So many of them are shown to a window for as much as looking at one more.
const SHOWN_PER_ROW: usize = 8;

/// Rows of the table in the order of the windows, one behind the other.
#[derive(Default)]
pub(super) struct Common {
    /// The key of the first window that they were found for, and by which way. Others differ in their sources' keys alone.
    of: Option<(Vec<u8>, usize)>,
    /// They come behind this one.
    start: Option<Entry>,
    rows: Vec<Row>,
    bytes: usize,
    /// There are no others.
    is_complete: bool,
}

struct Row {
    entry: Entry,
    /// How often each source gives it for the first window's keys, as far as that is known.
    weights: Vec<Option<u64>>,
}

impl Row {
    /// How often the sources of a window give it. Those that are `shared` have the same keys as the first window's.
    fn weight(
        &mut self,
        wanted: &Wanted<'_>,
        shared: &[bool],
        reading: &mut Reading<'_>,
    ) -> Option<Weight> {
        let shape = wanted.shape;
        reading.spend(shape.sources.len() / SOURCES_PER_ROW)?;
        self.weights.resize(shape.sources.len(), None);
        let (mut all, row) = (Weight::default(), self.entry.row());
        let sources = shape.sources.iter().zip(shape.source_keys(wanted.key));
        for (number, (source, key)) in sources.enumerate() {
            let known = self.weights[number].filter(|_| shared[number]);
            let weight = match known {
                Some(weight) => weight,
                None => source.weight(&shape.layout, reading, (row, key))?,
            };
            if shared[number] {
                self.weights[number] = Some(weight);
            }
            all.add(weight);
        }
        Some(all)
    }
}

impl Common {
    /// Finds what a window wants by one of its shape's ways. None: there would be too much to look at, or to share.
    pub fn find(
        &mut self,
        wanted: &Wanted<'_>,
        way: usize,
        reading: &mut Reading<'_>,
    ) -> Option<Found> {
        if !self.has_all_behind(wanted, way) {
            *self = Common {
                of: Some((wanted.key.to_vec(), way)),
                start: wanted.after.cloned(),
                ..Common::default()
            };
        }
        let shared = self.shared_sources(wanted);
        let first = (self.rows).partition_point(|row| Some(&row.entry) <= wanted.after);
        let mut place = first;
        let mut entries = Vec::new();
        while entries.len() < wanted.rows {
            if place == self.rows.len() {
                if self.is_complete {
                    break;
                }
                self.extend(wanted, way, reading)?;
                continue;
            }
            let row = &mut self.rows[place];
            place += 1;
            if (place - first).is_multiple_of(SHOWN_PER_ROW) {
                reading.spend(1)?;
            }
            let weight = row.weight(wanted, &shared, reading)?;
            if weight.times > 0 {
                entries.push(row.entry.clone().with_weight(weight));
            }
        }
        Some(Found {
            is_complete: self.is_complete && place == self.rows.len(),
            entries,
        })
    }

    /// Whether each source has the same key for this window as for the first.
    fn shared_sources(&self, wanted: &Wanted<'_>) -> Vec<bool> {
        let shape = wanted.shape;
        let first = self.of.iter().flat_map(|(key, _)| shape.source_keys(key));
        let keys = first.zip(shape.source_keys(wanted.key));
        keys.map(|(first, own)| first == own).collect()
    }

    /// Whether the rows behind the last one of a window are among these, or come behind these.
    fn has_all_behind(&self, wanted: &Wanted<'_>, way: usize) -> bool {
        let own_key = wanted.shape.own_key(wanted.key);
        let is_of = |(key, number): &(Vec<u8>, usize)| {
            wanted.shape.own_key(key) == own_key && *number == way
        };
        let is_behind_start = self.start.as_ref() <= wanted.after;
        let is_near = self.is_complete || wanted.after <= self.rows.last().map(|row| &row.entry);
        self.of.as_ref().is_some_and(is_of) && is_behind_start && is_near
    }

    fn extend(&mut self, wanted: &Wanted<'_>, way: usize, reading: &mut Reading<'_>) -> Option<()> {
        if self.rows.len() >= ROWS_MAX || self.bytes >= BYTES_MAX {
            return None;
        }
        let last = self.rows.last().map(|row| &row.entry);
        let next = Wanted {
            after: last.or(self.start.as_ref()),
            rows: wanted.rows.max(ROWS_AT_ONCE_MIN),
            is_any_source: true,
            ..*wanted
        };
        let access = &wanted.shape.accesses[way];
        let found = next.find(reading, access)?;
        self.is_complete = found.is_complete;
        let bytes = found.entries.iter().map(Entry::memory_bytes);
        self.bytes += bytes.sum::<usize>();
        let rows = found.entries.into_iter().map(|entry| Row {
            entry,
            weights: Vec::new(),
        });
        self.rows.extend(rows);
        Some(())
    }
}

impl Wanted<'_> {
    /// Finds them by the first of these ways that does not look at too many rows, the first one together with other windows, if
    /// there are some. Gives which it was.
    pub fn find_by_any(
        &self,
        reading: &mut Reading<'_>,
        ways: &[usize],
        mut common: Option<&mut Common>,
    ) -> Option<(Found, usize)> {
        let mut found = ways.iter().enumerate().filter_map(|(tried, &number)| {
            // What comes next has something left, if this is not the way: less where what sources give is counted in any way.
            let part = if self.shape.sources.is_empty() { 2 } else { 4 };
            let is_last = tried + 1 == ways.len();
            let kept_back = if is_last { 0 } else { reading.rows_left / part };
            reading.rows_left -= kept_back;
            let access = &self.shape.accesses[number];
            let common = common.take().filter(|_| !matches!(access, Access::Query));
            let together = common.and_then(|common| common.find(self, number, reading));
            let found = together.or_else(|| self.find(reading, access));
            reading.rows_left += kept_back;
            Some((found?, number))
        });
        found.next()
    }
}
