//! The net changes of a batch of transactions, as fan-out consumes them.

use lightcone_types::TableId;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeltaKind {
    Insert,
    Delete,
}

/// One row that appeared or disappeared.
#[derive(Debug, Clone, Copy)]
pub struct DeltaOp {
    /// Or what stands in the place of one.
    pub table: TableId,
    pub kind: DeltaKind,
    row: RowAt,
    /// Who is concerned, where that is not in the row itself.
    key: RowAt,
}

/// Where a row, or a key, is in a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RowAt {
    start: u32,
    len: u32,
}

impl RowAt {
    const NOTHING: RowAt = RowAt { start: 0, len: 0 };
}

/// Changes of many transactions in flat vectors, reused from batch to batch.
#[derive(Debug, Default)]
pub struct DeltaBatch {
    bytes: Vec<u8>,
    ops: Vec<DeltaOp>,
}

impl DeltaBatch {
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.ops.clear();
    }

    /// Marks the place where the next transaction's changes start.
    pub fn position(&self) -> usize {
        self.ops.len()
    }

    /// The changes between two positions, grouped by table in ascending order of ids.
    pub fn ops(&self, range: std::ops::Range<usize>) -> &[DeltaOp] {
        &self.ops[range]
    }

    #[inline]
    pub fn row(&self, op: &DeltaOp) -> &[u8] {
        self.written(op.row)
    }

    #[inline]
    fn written(&self, at: RowAt) -> &[u8] {
        &self.bytes[at.start as usize..][..at.len as usize]
    }

    /// What says who is concerned by a row that came from [`push_keyed`](Self::push_keyed); empty for others.
    #[inline]
    pub fn key(&self, op: &DeltaOp) -> &[u8] {
        self.written(op.key)
    }

    /// Adds a change that was derived from those of tables.
    pub fn push_keyed(&mut self, table: TableId, kind: DeltaKind, key: &[u8], row: &[u8]) {
        let key = self.write_row(key);
        let row = self.write_row(row);
        self.push_written(table, kind, key, row);
    }

    /// Writes a row, or a key, for changes that are [pushed](Self::push_written) later: several may share it.
    pub fn write_row(&mut self, row: &[u8]) -> RowAt {
        let start = u32::try_from(self.bytes.len()).expect("a batch is cut far below 4 GiB");
        self.bytes.extend_from_slice(row);
        let len = row.len() as u32;
        RowAt { start, len }
    }

    /// Adds a change of a row that has been written.
    pub fn push_written(&mut self, table: TableId, kind: DeltaKind, key: RowAt, row: RowAt) {
        self.ops.push(DeltaOp {
            table,
            kind,
            row,
            key,
        });
    }

    /// Bytes of row data held.
    pub fn bytes_len(&self) -> usize {
        self.bytes.len()
    }

    /// Adds a change of a row of a table.
    pub fn push(&mut self, table: TableId, kind: DeltaKind, row: &[u8]) {
        let row = self.write_row(row);
        self.push_written(table, kind, RowAt::NOTHING, row);
    }
}
