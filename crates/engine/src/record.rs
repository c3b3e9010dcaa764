//! The transaction record: what one commit looks like in the log. Drawn in `docs/on-disk-formats.md`.
//!
//! Records keep effects, never calls. Where a table has a unique index, a changed row is logged once, as the new row
//! ("put": it replaces the row with the same key), and a deleted row as its key. The groups of a record are applied one after
//! the other: rows of the catalog, then that a table is to be as the catalog says, then its rows.

use lightcone_schema::TableSchema;
use lightcone_types::bsatn::decode_value;
use lightcone_types::{
    AlgebraicType, AlgebraicValue, ColId, DecodeError, Reader, TableId, Typespace,
};

/// First byte of a transaction record of the first version: tables are made those of the catalog between its rows and all others,
/// and keys are those of the first unique index. Not written any more.
pub const TRANSACTION_1: u8 = 1;
/// First byte of a clock record: when the transactions after it were committed. It has no offset of its own.
pub const CLOCK: u8 = 2;
/// First byte of a transaction record, and its version.
pub const TRANSACTION: u8 = 3;

/// The bits of a group's kind byte that are the kind; the others are the position of the index whose keys name rows.
const KIND_BITS: u32 = 3;
/// In the place of a position: it follows as a number of its own.
const LONG_POSITION: usize = (1 << (8 - KIND_BITS)) - 1;

/// How the rows of a group are to be applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum GroupKind {
    /// Points of a unique index.
    DeleteByKey = 0,
    /// Whole rows.
    DeleteRow = 1,
    /// Rows that replace the row with the same key in a unique index, or are new.
    Put = 2,
    Insert = 3,
    /// Rows of an event table, which are not stored.
    Event = 4,
    /// The table is to be as the catalog describes it now: made, changed, or gone if it does not. There are no rows.
    Schema = 5,
    /// The table takes in all rows of another: the id of that (a `u32`), then bytes that are put behind each row.
    Copy = 6,
}

impl GroupKind {
    fn from_u8(byte: u8) -> Option<GroupKind> {
        use GroupKind::*;
        [DeleteByKey, DeleteRow, Put, Insert, Event, Schema, Copy]
            .get(usize::from(byte))
            .copied()
    }
}

/// Rows of one table and kind in a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Group<'a> {
    pub table: TableId,
    pub kind: GroupKind,
    /// Position of the index by whose keys rows are named, among those of the table in the order of their ids. None in records
    /// of the first version, where it is the first unique one.
    pub index: Option<usize>,
    pub row_count: u32,
    /// Rows or points back to back; they delimit themselves.
    pub rows: &'a [u8],
}

impl<'a> Group<'a> {
    /// The values of the rows or keys of the group, for a table that is as `schema` says: what others are told of a change needs no
    /// tables. Kinds without rows have none.
    pub fn entries(&self, schema: &TableSchema) -> Entries<'a> {
        let (columns, left) = match self.kind {
            GroupKind::Schema | GroupKind::Copy => (Some(Vec::new()), 0),
            GroupKind::DeleteByKey => {
                let columns = self.key_columns(schema).unwrap_or_default().iter();
                let columns = columns.map(|column| Some(schema.column(*column)?.ty.clone()));
                let columns: Option<Vec<AlgebraicType>> = columns.collect();
                (
                    columns.filter(|columns| !columns.is_empty()),
                    self.row_count,
                )
            }
            _ => {
                let columns = schema.columns.iter().map(|column| column.ty.clone());
                (Some(columns.collect()), self.row_count)
            }
        };
        Entries {
            columns,
            left,
            rows: Reader::new(self.rows),
        }
    }

    /// The columns of the index by whose keys rows are named, in its order. Keys are equal if the index has it so, which is not always
    /// bit by bit (01 §1.6.2).
    pub fn key_columns<'s>(&self, schema: &'s TableSchema) -> Option<&'s [ColId]> {
        let index = match self.index {
            Some(position) => schema.indexes.get(position),
            None => schema.indexes.iter().find(|index| index.unique),
        };
        Some(index.filter(|index| index.unique)?.algorithm.columns())
    }
}

/// The values of one row or key after the other. An error is the last.
pub struct Entries<'a> {
    /// None if the table has no such index.
    columns: Option<Vec<AlgebraicType>>,
    left: u32,
    rows: Reader<'a>,
}

impl Entries<'_> {
    fn read(&mut self) -> Result<Vec<AlgebraicValue>, DecodeError> {
        let columns = self.columns.as_ref();
        let columns = columns.ok_or_else(|| DecodeError::other("the table has no such index"))?;
        if columns.is_empty() {
            self.rows.count_empty_value()?;
        }
        let typespace = Typespace::default();
        let mut values = Vec::with_capacity(columns.len());
        for ty in columns {
            values.push(decode_value(&typespace, ty, &mut self.rows)?);
        }
        match self.rows.remaining().len() {
            bytes if bytes > 0 && self.left == 0 => Err(DecodeError::extra_bytes(bytes)),
            _ => Ok(values),
        }
    }
}

impl Iterator for Entries<'_> {
    type Item = Result<Vec<AlgebraicValue>, DecodeError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        let read = self.read();
        if read.is_err() {
            self.left = 0;
        }
        Some(read)
    }
}

/// One record of a payload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Record<'a> {
    /// Microseconds since the Unix epoch.
    Clock(i64),
    /// Of the first version.
    Transaction1(Vec<Group<'a>>),
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
#[inline]
pub(crate) fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Appends a group.
pub(crate) fn put_group(
    out: &mut Vec<u8>,
    table: TableId,
    kind: (GroupKind, usize),
    row_count: usize,
    rows: &[u8],
) {
    put_group_head(out, table, kind, row_count, rows.len());
    out.extend_from_slice(rows);
}

/// Appends what comes before the rows of a group.
#[inline]
pub(crate) fn put_group_head(
    out: &mut Vec<u8>,
    table: TableId,
    (kind, index): (GroupKind, usize),
    row_count: usize,
    row_bytes: usize,
) {
    put_varint(out, u64::from(table.0));
    out.push(kind as u8 | (index.min(LONG_POSITION) << KIND_BITS) as u8);
    if index >= LONG_POSITION {
        put_varint(out, index as u64);
    }
    put_varint(out, row_count as u64);
    put_varint(out, row_bytes as u64);
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

    /// What comes behind the records so far.
    pub fn rest(&self) -> &'a [u8] {
        &self.payload[self.position..]
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

    fn transaction(&mut self, is_first_version: bool) -> Result<Vec<Group<'a>>, RecordError> {
        let count = self.varint(u64::from(u32::MAX))?;
        let mut groups = Vec::new();
        for _ in 0..count {
            let table = TableId(self.varint(u64::from(u32::MAX))? as u32);
            let byte = self.take(1)?[0];
            let (kind, index) = match is_first_version {
                true => (byte, None),
                false => (byte & ((1 << KIND_BITS) - 1), Some(self.position(byte)?)),
            };
            let kind = GroupKind::from_u8(kind)
                .filter(|kind| !is_first_version || *kind < GroupKind::Schema)
                .ok_or_else(|| self.error("unknown group kind"))?;
            let row_count = self.varint(u64::from(u32::MAX))? as u32;
            let bytes = self.varint(u64::from(u32::MAX))? as usize;
            groups.push(Group {
                table,
                kind,
                index,
                row_count,
                rows: self.take(bytes)?,
            });
        }
        Ok(groups)
    }

    /// The position of an index behind, or in, this kind byte.
    fn position(&mut self, byte: u8) -> Result<usize, RecordError> {
        match usize::from(byte >> KIND_BITS) {
            LONG_POSITION => self.varint(u64::from(u16::MAX)).map(|index| index as usize),
            index => Ok(index),
        }
    }
}

impl<'a> Iterator for Records<'a> {
    type Item = Result<Record<'a>, RecordError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.position == self.payload.len() {
            return None;
        }
        let record = match self.take(1).map(|bytes| bytes[0]) {
            Ok(TRANSACTION) => self.transaction(false).map(Record::Transaction),
            Ok(TRANSACTION_1) => self.transaction(true).map(Record::Transaction1),
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
