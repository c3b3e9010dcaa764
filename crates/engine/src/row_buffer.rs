//! Rows on their way to a module: whole rows in chunks (03 §7.4).

/// A chunk is closed once it holds at least so many bytes.
const CHUNK_BYTES: usize = 32 * 1024;

/// Concatenated BSATN rows, cut at row boundaries into chunks of at least 32 KiB. Reused between calls.
#[derive(Debug, Default)]
pub struct RowBuffer {
    pub bytes: Vec<u8>,
    /// End of each chunk in `bytes`; the last one is `bytes.len()` once the buffer is finished.
    pub chunk_ends: Vec<usize>,
}

impl RowBuffer {
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.chunk_ends.clear();
    }

    #[inline]
    pub(crate) fn push_row(&mut self, row: &[u8]) {
        self.bytes.extend_from_slice(row);
        let chunk_start = self.chunk_ends.last().copied().unwrap_or(0);
        if self.bytes.len() - chunk_start >= CHUNK_BYTES {
            self.chunk_ends.push(self.bytes.len());
        }
    }

    /// Closes the last chunk.
    #[inline]
    pub(crate) fn finish(&mut self) {
        if self.bytes.len() > self.chunk_ends.last().copied().unwrap_or(0) {
            self.chunk_ends.push(self.bytes.len());
        }
    }
}
