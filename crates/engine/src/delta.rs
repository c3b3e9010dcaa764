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
    start: u32,
    len: u32,
    /// Bytes before `start` that say who is concerned, where that is not in the row itself.
    key_len: u32,
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
        &self.bytes[op.start as usize..(op.start + op.len) as usize]
    }

    /// What says who is concerned by a row that came from [`push_keyed`](Self::push_keyed); empty for others.
    #[inline]
    pub fn key(&self, op: &DeltaOp) -> &[u8] {
        &self.bytes[(op.start - op.key_len) as usize..op.start as usize]
    }

    /// Adds a change that was derived from those of tables.
    pub fn push_keyed(&mut self, table: TableId, kind: DeltaKind, key: &[u8], row: &[u8]) {
        self.bytes.extend_from_slice(key);
        self.push(table, kind, row);
        if let Some(op) = self.ops.last_mut() {
            op.key_len = key.len() as u32;
        }
    }

    /// Bytes of row data held.
    pub fn bytes_len(&self) -> usize {
        self.bytes.len()
    }

    pub(crate) fn push(&mut self, table: TableId, kind: DeltaKind, row: &[u8]) {
        let start = u32::try_from(self.bytes.len()).expect("a batch is cut far below 4 GiB");
        self.bytes.extend_from_slice(row);
        self.ops.push(DeltaOp {
            table,
            kind,
            start,
            len: row.len() as u32,
            key_len: 0,
        });
    }
}
