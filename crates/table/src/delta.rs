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

/// How far a batch went.
#[derive(Debug, Clone, Copy)]
pub struct BatchEnd {
    pub ops: usize,
    bytes: usize,
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

    /// The same, with the place where its rows start.
    pub fn end(&self) -> BatchEnd {
        BatchEnd {
            ops: self.ops.len(),
            bytes: self.bytes.len(),
        }
    }

    /// Brings the changes behind a place into the order of their tables' ids.
    pub fn sort_from(&mut self, start: BatchEnd) {
        self.ops[start.ops..].sort_by_key(|op| op.table);
    }

    /// Drops the changes behind a place that are of other tables than these.
    pub fn retain_from(&mut self, start: BatchEnd, is_wanted: impl Fn(TableId) -> bool) {
        let mut kept = start.ops;
        let (mut last, mut is_kept) = (None, false);
        for place in start.ops..self.ops.len() {
            let op = self.ops[place];
            if last.replace(op.table) != Some(op.table) {
                is_kept = is_wanted(op.table);
            }
            if is_kept {
                self.ops[kept] = op;
                kept += 1;
            }
        }
        self.ops.truncate(kept);
        // Otherwise these bytes are kept until all are cleared.
        if kept == start.ops {
            self.bytes.truncate(start.bytes);
        }
    }

    /// The changes between two positions, grouped by table.
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

    /// What says who is concerned by a row that comes from a join or window; empty for others.
    #[inline]
    pub fn key(&self, op: &DeltaOp) -> &[u8] {
        self.written(op.key)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nobody_wants_of_a_transaction_leaves_no_bytes() {
        let mut batch = DeltaBatch::default();
        let ids = |batch: &DeltaBatch| -> Vec<u32> {
            let ops = batch.ops(0..batch.position());
            ops.iter().map(|op| op.table.0).collect()
        };
        batch.push(TableId(1), DeltaKind::Insert, b"first");
        for wanted in [[7, 7], [5, 9]] {
            let start = batch.end();
            for id in [5, 9, 9, 2, 3] {
                batch.push(TableId(id), DeltaKind::Insert, &[id as u8; 10]);
            }
            batch.sort_from(start);
            batch.retain_from(start, |table| wanted.contains(&table.0));
            if wanted == [7, 7] {
                assert_eq!((ids(&batch), batch.bytes_len()), (vec![1], 5));
            }
        }
        assert_eq!(ids(&batch), [1, 5, 9, 9]);
        let last = batch.ops(3..4)[0];
        assert_eq!(batch.row(&last), [9; 10]);
    }
}
