//! Rows of a database as messages of the protocol, written beside the writer.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

use lightcone_query::postgresql::{with_length, write_bsatn, Format};

use super::copy::CopyRows;
use super::messages::put_message;
use super::sizes::written_bytes_max;
use crate::database::{ResultRow, RowEncoder};

/// What else a message of a row takes for each column.
const COLUMN_BYTES: usize = 16;

/// Leaves rows as they are, for a question that goes on with them. A byte stands before each: a row may have none of its own.
pub(super) struct FoundRows;

impl RowEncoder for FoundRows {
    type Out = Vec<u8>;

    fn begin(&mut self, _: &mut Vec<u8>) {}

    fn row(&mut self, row: &ResultRow<'_>, out: &mut Vec<u8>) {
        out.push(0);
        row.columns()
            .for_each(|(_, value)| out.extend_from_slice(value));
    }

    fn end(&mut self, _: &mut Vec<u8>) {}

    fn bytes_max(&self, row: &ResultRow<'_>) -> usize {
        1 + row.bytes_len()
    }
}

/// Writes rows as messages.
pub(super) struct DataRows {
    shape: Shape,
    count: Arc<AtomicU64>,
}

/// What a row is written as.
pub(super) enum Shape {
    /// Messages `DataRow`; columns without a format are text.
    Fields(Vec<Format>),
    /// Lines of `COPY`.
    Lines(CopyRows),
}

impl DataRows {
    /// `count` is raised with every row.
    pub fn new(shape: Shape, count: Arc<AtomicU64>) -> DataRows {
        DataRows { shape, count }
    }
}

impl RowEncoder for DataRows {
    type Out = Vec<u8>;

    fn begin(&mut self, _: &mut Vec<u8>) {}

    fn row(&mut self, row: &ResultRow<'_>, out: &mut Vec<u8>) {
        self.count.fetch_add(1, Ordering::Relaxed);
        let formats = match &mut self.shape {
            Shape::Fields(formats) => formats,
            Shape::Lines(lines) => return lines.row(row, out),
        };
        put_message(out, b'D', |out| {
            let place = out.len();
            out.extend([0; 2]);
            let mut columns = 0_u16;
            for (ty, value) in row.columns() {
                let format = formats.get(usize::from(columns));
                let format = format.copied().unwrap_or_default();
                with_length(out, |out| write_bsatn(ty, value, format, out));
                columns += 1;
            }
            out[place..place + 2].copy_from_slice(&columns.to_be_bytes());
        });
    }

    fn end(&mut self, _: &mut Vec<u8>) {}

    fn bytes_max(&self, row: &ResultRow<'_>) -> usize {
        let columns = row.columns();
        // Escapes of a line at most double it.
        let factor = match self.shape {
            Shape::Fields(_) => 1,
            Shape::Lines(_) => 2,
        };
        columns
            .map(|(ty, value)| COLUMN_BYTES + factor * written_bytes_max(ty, value))
            .sum()
    }
}
