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

    /// Brings the changes behind a position into the order of their tables' ids.
    pub fn sort_from(&mut self, start: usize) {
        self.ops[start..].sort_by_key(|op| op.table);
    }

    /// Drops the changes behind a position that are of other tables than these.
    pub fn retain_from(&mut self, start: usize, is_wanted: impl Fn(TableId) -> bool) {
        let mut kept = start;
        let (mut last, mut is_kept) = (None, false);
        for place in start..self.ops.len() {
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
        // Otherwise the bytes are kept until all are cleared.
        if kept == 0 {
            self.bytes.clear();
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
    fn what_is_not_wanted_is_gone() {
        let mut batch = DeltaBatch::default();
        let ids = |batch: &DeltaBatch| -> Vec<u32> {
            let ops = batch.ops(0..batch.position());
            ops.iter().map(|op| op.table.0).collect()
        };
        for (wanted, left) in [(7, &[][..]), (9, &[9, 9]), (5, &[9, 9, 5])] {
            let start = batch.position();
            for id in [5, 9, 9, 2, 3] {
                batch.push(TableId(id), DeltaKind::Insert, &[id as u8; 10]);
            }
            batch.sort_from(start);
            batch.retain_from(start, |table| table.0 == wanted);
            assert_eq!(ids(&batch), left);
            assert_eq!(batch.bytes_len() == 0, left.is_empty());
        }
        let last = batch.ops(2..3)[0];
        assert_eq!(batch.row(&last), [5; 10]);
    }
}
