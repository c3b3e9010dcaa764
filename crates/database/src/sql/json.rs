//! Rows as SATS-JSON in the untyped form (01 §1.7): an array of arrays.

use lightcone_types::json::bsatn_to_json_untyped;
use lightcone_types::{Reader, Typespace};

use super::rows::{ResultRow, RowEncoder};

/// Writes rows as SATS-JSON.
#[derive(Default)]
pub struct JsonRows {
    has_rows: bool,
}

impl RowEncoder for JsonRows {
    type Out = String;

    fn begin(&mut self, out: &mut String) {
        out.push('[');
    }

    fn row(&mut self, row: &ResultRow<'_>, out: &mut String) {
        out.push_str(if self.has_rows { ",[" } else { "[" });
        self.has_rows = true;
        let typespace = Typespace::default();
        for (nth, (ty, value)) in row.columns().enumerate() {
            if nth > 0 {
                out.push(',');
            }
            bsatn_to_json_untyped(&typespace, ty, &mut Reader::new(value), out)
                .expect("stored rows decode");
        }
        out.push(']');
    }

    fn end(&mut self, out: &mut String) {
        out.push(']');
    }

    fn bytes_max(&self, row: &ResultRow<'_>) -> usize {
        // Text of bytes is twice as long.
        2 * row.bytes_len()
    }
}
