//! Scans that give their rows in parts (03 §8.2): modules often read only the first rows of what they ask for.
//!
//! A part ends at a row; the next one goes on behind it. That is only sound as long as the table is not written to, so the caller
//! that holds an unfinished scan takes all of its rows before the first write.

use lightcone_schema::FIRST_USER_ID;
use lightcone_table::{Index, RangeBounds, RowId, Table};
use lightcone_types::{IndexId, TableId};

use crate::datastore::Datastore;
use crate::error::Result;
use crate::row_buffer::RowBuffer;

/// A scan that has stopped before its end, or a finished one. Keeps its buffers when it is used again.
#[derive(Debug, Default)]
pub struct Scan {
    kind: Kind,
    table: TableId,
    /// The last row that was given.
    last: Option<RowId>,
    has_more: bool,
    /// Point, or prefix, start and end, one behind the other.
    bounds: Vec<u8>,
    prefix_bytes: usize,
    start_bytes: usize,
}

#[derive(Clone, Copy, Debug, Default)]
enum Kind {
    #[default]
    Table,
    Point(IndexId),
    Range {
        index: IndexId,
        prefix_columns: u16,
    },
}

impl Scan {
    /// Whether there are rows that no part has given yet.
    #[inline]
    pub fn has_more(&self) -> bool {
        self.has_more
    }

    /// The table that must not change while there are more rows.
    pub fn table(&self) -> TableId {
        self.table
    }

    /// Forgets the rest.
    #[inline]
    pub fn end(&mut self) {
        self.has_more = false;
    }

    fn stopped(&mut self, table: &Table, last: RowId, kind: Kind, bounds: [&[u8]; 3]) {
        self.kind = kind;
        self.table = table.schema.id;
        self.last = Some(last);
        self.has_more = true;
        self.prefix_bytes = bounds[0].len();
        self.start_bytes = bounds[1].len();
        self.bounds.clear();
        self.bounds.extend(bounds.into_iter().flatten());
    }
}

/// Takes rows until a part is full, and says behind which row it stopped if there are more.
struct Part<'a> {
    out: &'a mut RowBuffer,
    bytes_max: usize,
    last: Option<RowId>,
    is_cut: bool,
}

impl<'a> Part<'a> {
    /// All rows at once.
    #[inline]
    fn whole(out: &'a mut RowBuffer) -> Part<'a> {
        Part {
            out,
            bytes_max: usize::MAX,
            last: None,
            is_cut: false,
        }
    }

    /// Of at most `bytes_max` bytes, but at least one row. Of a system table everything comes at once: the engine
    /// itself changes these in between.
    #[inline]
    fn new(table: &Table, bytes_max: usize, out: &'a mut RowBuffer) -> Part<'a> {
        match table.schema.id.0 < FIRST_USER_ID {
            true => Part::whole(out),
            false => Part {
                bytes_max,
                ..Part::whole(out)
            },
        }
    }

    #[inline]
    fn take(&mut self, id: RowId, row: &[u8]) -> bool {
        let bytes = self.out.bytes.len();
        self.is_cut = bytes > 0 && bytes + row.len() > self.bytes_max;
        if !self.is_cut {
            self.out.push_row(row);
            self.last = Some(id);
        }
        !self.is_cut
    }

    #[inline]
    fn finish(self) -> Option<RowId> {
        self.out.finish();
        self.last.filter(|_| self.is_cut)
    }
}

fn table_part(table: &Table, after: Option<RowId>, mut part: Part<'_>) -> Option<RowId> {
    table.rows().walk(after, |id, row| part.take(id, row));
    part.finish()
}

#[inline]
fn point_part(
    (table, index): (&Table, &Index),
    point: &[u8],
    after: Option<RowId>,
    mut part: Part<'_>,
) -> Result<Option<RowId>> {
    let (rows, layout) = (table.rows(), table.layout());
    index.walk_point(rows, layout, point, after, |id| {
        part.take(id, table.row(id))
    })?;
    Ok(part.finish())
}

fn range_part(
    (table, index): (&Table, &Index),
    range: RangeBounds<'_>,
    after: Option<RowId>,
    mut part: Part<'_>,
) -> Result<Option<RowId>> {
    let (rows, layout) = (table.rows(), table.layout());
    index.walk_range(rows, layout, range, after, |id| {
        part.take(id, table.row(id))
    })?;
    Ok(part.finish())
}

/// Scans in parts append rows of up to `bytes_max` bytes, at least one, to the empty buffer `out`.
impl Datastore {
    /// A table that a call reads in the open transaction.
    pub(crate) fn read_table(&self, table: TableId) -> Result<&Table> {
        self.require_transaction()?;
        let table = &self.state(table)?.table;
        self.note_read(table);
        Ok(table)
    }

    /// The same by an index.
    #[inline]
    fn read_index(&self, index: IndexId) -> Result<(&Table, &Index)> {
        self.require_transaction()?;
        let found = self.index(index)?;
        self.note_read(found.0);
        Ok(found)
    }

    /// Begins a scan of all visible rows.
    ///
    /// # Errors
    /// No transaction; no such table.
    pub fn begin_scan(
        &self,
        table: TableId,
        scan: &mut Scan,
        bytes_max: usize,
        out: &mut RowBuffer,
    ) -> Result<()> {
        let table = self.read_table(table)?;
        if let Some(last) = table_part(table, None, Part::new(table, bytes_max, out)) {
            scan.stopped(table, last, Kind::Table, [&[]; 3]);
        }
        Ok(())
    }

    /// Begins a scan of the rows whose key in `index` is `point` (03 §8.2).
    ///
    /// # Errors
    /// No transaction; no such index; the point does not decode.
    #[inline]
    pub fn begin_point_scan(
        &self,
        index: IndexId,
        point: &[u8],
        scan: &mut Scan,
        bytes_max: usize,
        out: &mut RowBuffer,
    ) -> Result<()> {
        let found = self.read_index(index)?;
        let part = Part::new(found.0, bytes_max, out);
        if let Some(last) = point_part(found, point, None, part)? {
            scan.stopped(found.0, last, Kind::Point(index), [point, &[], &[]]);
        }
        Ok(())
    }

    /// Begins a scan of the rows in a range of an ordered index, in key order (03 §8.3).
    ///
    /// # Errors
    /// No transaction; no such index; no order; a part does not decode.
    pub fn begin_range_scan(
        &self,
        index: IndexId,
        range: RangeBounds<'_>,
        scan: &mut Scan,
        bytes_max: usize,
        out: &mut RowBuffer,
    ) -> Result<()> {
        let found = self.read_index(index)?;
        let part = Part::new(found.0, bytes_max, out);
        if let Some(last) = range_part(found, range, None, part)? {
            let kind = Kind::Range {
                index,
                // A range that was just walked has no more columns than the index.
                prefix_columns: range.prefix_columns as u16,
            };
            let bounds = [range.prefix, range.start, range.end];
            scan.stopped(found.0, last, kind, bounds);
        }
        Ok(())
    }

    /// The next part of a scan that has more. Its table was not written to since the part before.
    ///
    /// # Errors
    /// No transaction, or another one whose tables are different.
    pub fn continue_scan(
        &self,
        scan: &mut Scan,
        bytes_max: usize,
        out: &mut RowBuffer,
    ) -> Result<()> {
        self.require_transaction()?;
        let table = &self.state(scan.table)?.table;
        let part = Part::new(table, bytes_max, out);
        let after = scan.last;
        let last = match scan.kind {
            Kind::Table => table_part(table, after, part),
            Kind::Point(index) => point_part(self.index(index)?, &scan.bounds, after, part)?,
            Kind::Range {
                index,
                prefix_columns,
            } => {
                let (prefix, rest) = scan.bounds.split_at(scan.prefix_bytes);
                let (start, end) = rest.split_at(scan.start_bytes);
                let range = RangeBounds {
                    prefix,
                    prefix_columns: usize::from(prefix_columns),
                    start,
                    end,
                };
                range_part(self.index(index)?, range, after, part)?
            }
        };
        scan.has_more = last.is_some();
        scan.last = last.or(scan.last);
        Ok(())
    }

    /// Copies all visible rows at once.
    ///
    /// # Errors
    /// As [`Datastore::begin_scan`].
    pub fn scan(&self, table: TableId, out: &mut RowBuffer) -> Result<()> {
        let table = self.read_table(table)?;
        table_part(table, None, Part::whole(out));
        Ok(())
    }

    /// Copies the rows whose key in `index` is `point` at once.
    ///
    /// # Errors
    /// As [`Datastore::begin_point_scan`].
    #[inline]
    pub fn index_scan_point(
        &self,
        index: IndexId,
        point: &[u8],
        out: &mut RowBuffer,
    ) -> Result<()> {
        let found = self.read_index(index)?;
        point_part(found, point, None, Part::whole(out)).map(drop)
    }

    /// Copies the rows in a range of an ordered index at once.
    ///
    /// # Errors
    /// As [`Datastore::begin_range_scan`].
    pub fn index_scan_range(
        &self,
        index: IndexId,
        range: RangeBounds<'_>,
        out: &mut RowBuffer,
    ) -> Result<()> {
        let found = self.read_index(index)?;
        range_part(found, range, None, Part::whole(out)).map(drop)
    }

    /// The table that an index belongs to.
    #[inline]
    pub fn table_of_index(&self, index: IndexId) -> Option<TableId> {
        let (table, _) = self.index(index).ok()?;
        Some(table.schema.id)
    }
}
