//! Finding the rows that a window is short of, by an index.

use lightcone_query::RowOrder;
use lightcone_table::{Index, RangeBounds, TableView};
use lightcone_types::ColId;

use super::shape::{Access, WindowShape};
use super::window::Entry;

/// Rows are put in order when there are so many more than twice those that are wanted.
const SPARE_ROWS: usize = 64;
/// Rows between two looks at the clock.
const ROWS_BETWEEN_LOOKS: usize = 1 << 12;
/// A bound of an index's column that is none, and the tag of one that belongs to the range (03 §8.3).
const UNBOUNDED: &[u8] = &[2];
const INCLUDED: u8 = 0;

/// The rows of one window that are looked for.
pub(super) struct Wanted<'w> {
    pub shape: &'w WindowShape,
    pub key: &'w [u8],
    /// They come behind this one.
    pub after: Option<&'w Entry>,
    pub rows: usize,
}

/// What was found, in order, and whether there are no others.
pub(super) struct Found {
    pub entries: Vec<Entry>,
    pub is_complete: bool,
}

impl Wanted<'_> {
    /// Finds them, looking at no more rows than `rows_left`, of which it takes what it has looked at, and asking `is_late` now and
    /// then. None: there would be more to look at.
    pub fn find(
        &self,
        table: &TableView,
        access: &Access,
        rows_left: &mut usize,
        is_late: &mut dyn FnMut() -> bool,
    ) -> Option<Found> {
        let mut search = Search {
            wanted: self,
            rows_left,
            is_late,
            looked_at: 0,
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
    fn walk(&self, table: &TableView, access: &Access, search: &mut Search<'_>) -> Option<()> {
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
            Access::Scan => {
                rows.walk(None, |_, row| search.look_at(row, false));
                Ok(())
            }
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

    /// The bound where rows behind `after` begin.
    fn first_value(&self) -> Option<Vec<u8>> {
        let shape = self.shape;
        let column = usize::from(shape.first_column.0);
        let value = shape.layout.column(self.after?.row(), column);
        Some([&[INCLUDED], value].concat())
    }
}

struct Search<'w> {
    wanted: &'w Wanted<'w>,
    rows_left: &'w mut usize,
    is_late: &'w mut dyn FnMut() -> bool,
    looked_at: usize,
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

impl Search<'_> {
    /// False: no more rows are wanted.
    fn look_at(&mut self, row: &[u8], in_order: bool) -> bool {
        let Wanted {
            shape, key, after, ..
        } = *self.wanted;
        // What is left after that of the one row too many is for nobody.
        let Some(rows_left) = self.rows_left.checked_sub(shape.cost_in_rows(row.len())) else {
            *self.rows_left = 0;
            self.is_too_much = true;
            return false;
        };
        *self.rows_left = rows_left;
        self.looked_at += 1;
        if self.looked_at.is_multiple_of(ROWS_BETWEEN_LOOKS) && (self.is_late)() {
            self.is_too_much = true;
            return false;
        }
        if in_order && self.entries.len() >= self.wanted.rows && self.is_of_next_group(row) {
            self.is_over = true;
            return false;
        }
        if !shape.admits(row) {
            return true;
        }
        shape.write_key(row, &mut self.key);
        if self.key != key {
            return true;
        }
        let key_len = shape.write_entry(row, &mut self.entry);
        if after.is_some_and(|after| self.entry[..] <= *after.bytes()) {
            return true;
        }
        if in_order {
            self.first.clear();
            let order = &self.first_order;
            order.push_key(&shape.layout, row, &mut self.first);
        }
        self.entries.push(Entry::new(&self.entry, key_len));
        if self.entries.len() > self.wanted.rows.saturating_mul(2) + SPARE_ROWS {
            self.cut();
        }
        true
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
