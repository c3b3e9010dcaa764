//! Rows as SATS-JSON in the untyped form (01 §1.7): an array of arrays.

use lightcone_types::json::bsatn_to_json_untyped;
use lightcone_types::{Reader, Typespace};

use super::rows::{ResultRow, RowEncoder};

/// Memory for the text of a row that is kept for the next one.
const ROW_KEPT_BYTES: usize = 64 << 10;

/// Writes rows as SATS-JSON.
#[derive(Default)]
pub struct JsonRows {
    has_rows: bool,
    /// The row under construction.
    text: String,
}

impl RowEncoder for JsonRows {
    fn begin(&mut self, out: &mut Vec<u8>) {
        out.push(b'[');
    }

    fn row(&mut self, row: &ResultRow<'_>, out: &mut Vec<u8>) {
        let text = &mut self.text;
        text.clear();
        text.push_str(if self.has_rows { ",[" } else { "[" });
        self.has_rows = true;
        let typespace = Typespace::default();
        for (nth, (ty, value)) in row.columns().enumerate() {
            if nth > 0 {
                text.push(',');
            }
            bsatn_to_json_untyped(&typespace, ty, &mut Reader::new(value), text)
                .expect("stored rows decode");
        }
        text.push(']');
        out.extend_from_slice(text.as_bytes());
        // One huge row must not be kept twice for long.
        text.shrink_to(ROW_KEPT_BYTES);
    }

    fn end(&mut self, out: &mut Vec<u8>) {
        out.push(b']');
    }

    fn bytes_max(&self, row_bytes: usize) -> usize {
        // Text of bytes is twice as long, and is there twice for a moment.
        4 * row_bytes
    }
}
