//! Rows of a database as messages of the protocol, written beside the writer.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

use super::messages::put_message;
use super::values::{with_length, write_bsatn, Format};
use crate::database::{ResultRow, RowEncoder};

/// How much longer than its BSATN the text of a value may be: control characters in nested texts, names of fields.
const GROWTH_MAX: usize = 8;

/// Writes rows as messages `DataRow`.
pub(super) struct DataRows {
    formats: Vec<Format>,
    count: Arc<AtomicU64>,
}

impl DataRows {
    /// Columns without a format are text. `count` is raised with every row.
    pub fn new(formats: Vec<Format>, count: Arc<AtomicU64>) -> DataRows {
        DataRows { formats, count }
    }
}

impl RowEncoder for DataRows {
    type Out = Vec<u8>;

    fn begin(&mut self, _: &mut Vec<u8>) {}

    fn row(&mut self, row: &ResultRow<'_>, out: &mut Vec<u8>) {
        self.count.fetch_add(1, Ordering::Relaxed);
        put_message(out, b'D', |out| {
            let place = out.len();
            out.extend([0; 2]);
            let mut columns = 0_u16;
            for (ty, value) in row.columns() {
                let format = self.formats.get(usize::from(columns));
                let format = format.copied().unwrap_or_default();
                with_length(out, |out| write_bsatn(ty, value, format, out));
                columns += 1;
            }
            out[place..place + 2].copy_from_slice(&columns.to_be_bytes());
        });
    }

    fn end(&mut self, _: &mut Vec<u8>) {}

    fn bytes_max(&self, row_bytes: usize) -> usize {
        GROWTH_MAX * row_bytes
    }
}
