//! The transaction record: what one commit looks like in the log. Drawn in `docs/on-disk-formats.md`.
//!
//! Records keep effects, never calls. Where a table has a unique index, a changed row is logged once, as the new row
//! ("put": it replaces the row with the same key), and a deleted row as its key.

use lightcone_types::TableId;

/// First byte of a transaction record, and its version.
pub const TRANSACTION: u8 = 1;
/// First byte of a clock record: when the transactions after it were committed. It has no offset of its own.
pub const CLOCK: u8 = 2;

/// How the rows of a group are to be applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum GroupKind {
    /// Points of the table's first unique index.
    DeleteByKey = 0,
    /// Whole rows.
    DeleteRow = 1,
    /// Rows that replace the row with the same key in the first unique index, or are new.
    Put = 2,
    Insert = 3,
    /// Rows of an event table, which are not stored.
    Event = 4,
}

impl GroupKind {
    fn from_u8(byte: u8) -> Option<GroupKind> {
        use GroupKind::*;
        [DeleteByKey, DeleteRow, Put, Insert, Event]
            .get(usize::from(byte))
            .copied()
    }
}

/// Rows of one table and kind in a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Group<'a> {
    pub table: TableId,
    pub kind: GroupKind,
    pub row_count: u32,
    /// Rows or points back to back; they delimit themselves.
    pub rows: &'a [u8],
}

/// One record of a payload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Record<'a> {
    /// Microseconds since the Unix epoch.
    Clock(i64),
    Transaction(Vec<Group<'a>>),
}

/// Why a payload is not a list of records.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("byte {position} of the payload: {detail}")]
pub struct RecordError {
    pub position: usize,
    pub detail: &'static str,
}

/// Appends an unsigned LEB128 number.
pub(crate) fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Appends a clock record.
pub fn put_clock(out: &mut Vec<u8>, timestamp_us: i64) {
    out.push(CLOCK);
    out.extend_from_slice(&timestamp_us.to_le_bytes());
}

/// Reads the records of a log frame's payload.
pub struct Records<'a> {
    payload: &'a [u8],
    position: usize,
}

impl<'a> Records<'a> {
    pub fn new(payload: &'a [u8]) -> Records<'a> {
        Records {
            payload,
            position: 0,
        }
    }

    fn error(&self, detail: &'static str) -> RecordError {
        RecordError {
            position: self.position,
            detail,
        }
    }

    fn take(&mut self, count: usize) -> Result<&'a [u8], RecordError> {
        let rest = &self.payload[self.position..];
        let taken = rest
            .get(..count)
            .ok_or_else(|| self.error("the record ends early"))?;
        self.position += count;
        Ok(taken)
    }

    fn varint(&mut self, max: u64) -> Result<u64, RecordError> {
        let mut value = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = self.take(1)?[0];
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return if value <= max {
                    Ok(value)
                } else {
                    Err(self.error("a number is too large"))
                };
            }
        }
        Err(self.error("a number does not end"))
    }

    fn transaction(&mut self) -> Result<Vec<Group<'a>>, RecordError> {
        let count = self.varint(u64::from(u32::MAX))?;
        let mut groups = Vec::new();
        for _ in 0..count {
            let table = TableId(self.varint(u64::from(u32::MAX))? as u32);
            let kind = GroupKind::from_u8(self.take(1)?[0])
                .ok_or_else(|| self.error("unknown group kind"))?;
            let row_count = self.varint(u64::from(u32::MAX))? as u32;
            let bytes = self.varint(u64::from(u32::MAX))? as usize;
            groups.push(Group {
                table,
                kind,
                row_count,
                rows: self.take(bytes)?,
            });
        }
        Ok(groups)
    }
}

impl<'a> Iterator for Records<'a> {
    type Item = Result<Record<'a>, RecordError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.position == self.payload.len() {
            return None;
        }
        let record = match self.take(1).map(|bytes| bytes[0]) {
            Ok(TRANSACTION) => self.transaction().map(Record::Transaction),
            Ok(CLOCK) => self.take(8).map(|bytes| {
                Record::Clock(i64::from_le_bytes(bytes.try_into().expect("eight bytes")))
            }),
            Ok(_) => Err(self.error("unknown record kind")),
            Err(error) => Err(error),
        };
        if record.is_err() {
            self.position = self.payload.len();
        }
        Some(record)
    }
}
