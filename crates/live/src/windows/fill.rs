//! Finding the rows that a window is short of: by an index, or by the query.

use std::sync::Arc;

use lightcone_query::{Progress, Query, RowOrder, Run};
use lightcone_table::{Index, RangeBounds, TableView};
use lightcone_types::{ColId, Identity};

use super::shape::{Access, WindowShape};
use super::window::{Entry, Weight};
use crate::joins::{Reading, STEPS_PER_ROW};

/// Rows are put in order when there are so many more than twice those that are wanted.
const SPARE_ROWS: usize = 64;
/// Copying so many bytes counts as much as looking a row up.
const BYTES_PER_ROW: usize = 1 << 12;
/// What a query keeps to find the rows: hash tables of joins, and the first rows so far.
const QUERY_MEMORY_BYTES_MAX: usize = 64 << 20;
/// A bound of an index's column that is none, and the tag of one that belongs to the range (03 §8.3).
const UNBOUNDED: &[u8] = &[2];
const INCLUDED: u8 = 0;

/// The rows of one window that are looked for.
#[derive(Clone, Copy)]
pub(super) struct Wanted<'w> {
    pub shape: &'w WindowShape,
    pub key: &'w [u8],
    /// What gives them, and for whom.
    pub query: (&'w Query, Identity),
    /// They come behind this one.
    pub after: Option<&'w Entry>,
    pub rows: usize,
    /// Its sources are not asked.
    pub is_any_source: bool,
}

/// What was found, in order, and whether there are no others.
pub(super) struct Found {
    pub entries: Vec<Entry>,
    pub is_complete: bool,
}

impl Wanted<'_> {
    /// Finds them. None: there would be more to look at than may be.
    pub fn find(&self, reading: &mut Reading<'_>, access: &Access) -> Option<Found> {
        let Some(table) = reading.tables.table(self.shape.table.id) else {
            return Some(Found {
                entries: Vec::new(),
                is_complete: true,
            });
        };
        if let Access::Query = access {
            return self.run(reading);
        }
        let mut search = Search {
            wanted: self,
            reading,
            is_too_much: false,
            is_over: false,
            was_cut: false,
            entries: Vec::new(),
            key: Vec::new(),
            entry: Vec::new(),
            first_order: RowOrder(vec![(self.shape.first_column, self.shape.descending)]),
            first: Vec::new(),
            next_first: Vec::new(),
        };
        self.walk(table, access, &mut search)?;
        search.finish()
    }

    /// Shows the search all rows that may be wanted. None if the index is gone, which is too much as well.
    fn walk(&self, table: &TableView, access: &Access, search: &mut Search<'_, '_>) -> Option<()> {
        let index_at = |position: Option<usize>, held: Option<ColId>| match position {
            Some(position) => table.indexes().get(position),
            None => table.index_on(held?),
        };
        let (rows, layout) = (table.rows(), table.layout());
        let values = |of: &[usize]| -> Vec<u8> {
            let value = |parameter: &usize| self.shape.value(self.key, *parameter);
            of.iter().flat_map(|p| value(p).iter().copied()).collect()
        };
        let walked = match access {
            Access::Query => return None,
            Access::Point { index, columns } => {
                let index = index_at(*index, self.shape.held_column())?;
                let point = values(columns);
                index.walk_point(rows, layout, &point, None, |id| {
                    search.look_at(table.row(id), false)
                })
            }
            Access::Ordered { index, prefix } => {
                let index: &Index = index_at(*index, Some(self.shape.first_column))?;
                let bound = self.first_value();
                let bound = bound.as_deref().unwrap_or(UNBOUNDED);
                let prefix_values = values(prefix);
                let range = |start, end| RangeBounds {
                    prefix: &prefix_values,
                    prefix_columns: prefix.len(),
                    start,
                    end,
                };
                let visit = |id| search.look_at(table.row(id), true);
                match self.shape.descending {
                    true => index.walk_range_back(range(UNBOUNDED, bound), visit),
                    false => index.walk_range(rows, layout, range(bound, UNBOUNDED), None, visit),
                }
            }
        };
        walked.ok()
    }

    /// Finds them as the query does when it is asked once, among its first rows.
    fn run(&self, reading: &mut Reading<'_>) -> Option<Found> {
        let rows_max = self.shape.extent.kept_rows();
        let (query, sender) = self.query;
        let query = Arc::new(query.first_rows(rows_max as u64));
        let mut run = Run::new(query, sender, QUERY_MEMORY_BYTES_MAX);
        let (mut entries, mut rows) = (Vec::new(), 0);
        let mut entry = Vec::new();
        let steps_max = reading.rows_left.saturating_mul(STEPS_PER_ROW);
        let mut steps = steps_max;
        let progress = run.run(reading.tables, &mut steps, |row| {
            rows += 1;
            let key_len = self.shape.write_entry(row, &mut entry);
            let is_behind = |after: &Entry| entry[..] > *after.bytes();
            if self.after.is_none_or(is_behind) {
                entries.push(Entry::new(&entry, key_len));
            }
            true
        });
        reading.spend((steps_max - steps).div_ceil(STEPS_PER_ROW).max(1))?;
        if progress.ok()? == Progress::Paused {
            return None;
        }
        // It gives each once.
        let weigh = |entry: Entry| {
            let weight = self.shape.weight(reading, self.key, entry.row())?;
            Some(entry.with_weight(weight))
        };
        let entries = entries.into_iter().map(weigh);
        Some(Found {
            entries: entries.collect::<Option<_>>()?,
            is_complete: rows < rows_max,
        })
    }

    /// The bound where rows behind `after` begin.
    fn first_value(&self) -> Option<Vec<u8>> {
        let shape = self.shape;
        let column = usize::from(shape.first_column.0);
        let value = shape.layout.column(self.after?.row(), column);
        Some([&[INCLUDED], value].concat())
    }
}

struct Search<'w, 'r> {
    wanted: &'w Wanted<'w>,
    reading: &'w mut Reading<'r>,
    is_too_much: bool,
    /// All that is wanted was found.
    is_over: bool,
    /// Rows were found that are not wanted.
    was_cut: bool,
    entries: Vec<Entry>,
    key: Vec<u8>,
    entry: Vec<u8>,
    /// Rows that are walked in order come in groups of one value of the first column.
    first_order: RowOrder,
    first: Vec<u8>,
    next_first: Vec<u8>,
}

impl Search<'_, '_> {
    /// False: no more rows are wanted.
    fn look_at(&mut self, row: &[u8], in_order: bool) -> bool {
        let goes_on = self.take(row, in_order);
        self.is_too_much |= goes_on.is_none();
        goes_on == Some(true)
    }

    /// As above. None: there would be more to look at than may be.
    fn take(&mut self, row: &[u8], in_order: bool) -> Option<bool> {
        let Wanted {
            shape, key, after, ..
        } = *self.wanted;
        self.reading.spend(shape.cost_in_rows(row.len()))?;
        if in_order && self.entries.len() >= self.wanted.rows && self.is_of_next_group(row) {
            self.is_over = true;
            return Some(false);
        }
        if shape.sources.is_empty() {
            if !shape.admits(row) {
                return Some(true);
            }
            shape.write_key(row, &mut self.key);
            if self.key != key {
                return Some(true);
            }
        }
        let key_len = shape.write_entry(row, &mut self.entry);
        if after.is_some_and(|after| self.entry[..] <= *after.bytes()) {
            return Some(true);
        }
        let mut weight = Weight::ONCE;
        if !shape.sources.is_empty() && !self.wanted.is_any_source {
            weight = shape.weight(self.reading, key, row)?;
            if weight.times == 0 {
                return Some(true);
            }
        }
        if in_order {
            self.first.clear();
            let order = &self.first_order;
            order.push_key(&shape.layout, row, &mut self.first);
        }
        // Rows that are found are copied.
        self.reading.spend(row.len() / BYTES_PER_ROW)?;
        let entry = Entry::new(&self.entry, key_len);
        self.entries.push(entry.with_weight(weight));
        if self.entries.len() > self.wanted.rows.saturating_mul(2) + SPARE_ROWS {
            self.cut();
        }
        Some(true)
    }

    /// Whether all rows from here on come behind those that were found.
    fn is_of_next_group(&mut self, row: &[u8]) -> bool {
        self.next_first.clear();
        let layout = &self.wanted.shape.layout;
        self.first_order.push_key(layout, row, &mut self.next_first);
        self.next_first > self.first
    }

    /// Drops what is not wanted.
    fn cut(&mut self) {
        self.entries.sort_unstable();
        if self.entries.len() > self.wanted.rows {
            self.entries.truncate(self.wanted.rows);
            self.was_cut = true;
        }
    }

    fn finish(mut self) -> Option<Found> {
        if self.is_too_much {
            return None;
        }
        self.cut();
        Some(Found {
            entries: self.entries,
            is_complete: !self.is_over && !self.was_cut,
        })
    }
}
