//! Row lists: the rows of one table back to back, with a hint that says where each begins
//! (spec 05 §5.4).
//!
//! ```text
//! equal sizes     00 size:u16                       data length:u32 data
//! any sizes       01 count:u32 offset:u64 × count   data length:u32 data
//! no rows         01 00000000                       00000000
//! ```
//!
//! Which hint a list gets: none for no rows; the first form when all its rows have the same length
//! of 1 to 65535 bytes, be it by their type or by chance; the second otherwise.

use std::ops::Range;

use lightcone_types::{DecodeError, Encode, Reader};

use crate::error::Error;

/// The list of no rows.
pub const EMPTY_ROW_LIST: [u8; 9] = [1, 0, 0, 0, 0, 0, 0, 0, 0];

/// Bytes in front of the data of a list of equally sized rows.
const FIXED_HEADER_BYTES: usize = 1 + 2 + 4;

/// What is known about the length of rows from their type. Computed once per table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowSize {
    /// Every row has this length, which is not 0.
    Fixed(u16),
    /// Rows differ, or are empty, or are too long for the hint of equal sizes.
    Variable,
}

impl RowSize {
    /// From the static BSATN size of the row type, if it has one.
    #[inline]
    pub fn new(static_bytes: Option<usize>) -> Self {
        match static_bytes.map(u16::try_from) {
            Some(Ok(bytes)) if bytes != 0 => Self::Fixed(bytes),
            _ => Self::Variable,
        }
    }
}

/// Appends a list of rows that can be walked more than once; moves nothing.
/// Returns the number of rows; on an error nothing is appended.
///
/// With [`RowSize::Fixed`] every row must have that length.
pub fn row_list<'r, I>(out: &mut Vec<u8>, size: RowSize, rows: I) -> Result<u32, Error>
where
    I: IntoIterator<Item = &'r [u8]>,
    I::IntoIter: Clone,
{
    let rows = rows.into_iter();
    let mut measured = RowListSize::default();
    match size {
        RowSize::Fixed(bytes) => measured.add_many(rows.clone().count(), bytes.into()),
        RowSize::Variable => rows.clone().for_each(|row| measured.add(row.len())),
    }
    let mut list = measured.begin(out)?;
    let data_start = out.len();
    match list.offsets {
        None => rows.for_each(|row| out.extend_from_slice(row)),
        Some(_) => rows.for_each(|row| list.push(out, row)),
    }
    debug_assert_eq!(
        out.len() - data_start,
        measured.data_bytes,
        "rows have the size of their type"
    );
    Ok(measured.rows as u32)
}

/// The size of a list, counted row by row before it is written, so that its memory is reserved at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RowListSize {
    rows: usize,
    data_bytes: usize,
    /// Length of the first row.
    first_bytes: usize,
    differ: bool,
}

impl RowListSize {
    /// Counts a row of this length.
    #[inline]
    pub fn add(&mut self, row_bytes: usize) {
        if self.rows == 0 {
            self.first_bytes = row_bytes;
        } else {
            self.differ |= row_bytes != self.first_bytes;
        }
        self.rows += 1;
        self.data_bytes += row_bytes;
    }

    /// Counts rows that all have this length.
    pub fn add_many(&mut self, rows: usize, row_bytes: usize) {
        if rows > 0 {
            self.add(row_bytes);
            self.rows += rows - 1;
            self.data_bytes = self
                .data_bytes
                .saturating_add((rows - 1).saturating_mul(row_bytes));
        }
    }

    pub fn rows(&self) -> usize {
        self.rows
    }

    fn shared(&self) -> RowSize {
        RowSize::new((!self.differ).then_some(self.first_bytes))
    }

    pub fn encoded_bytes(&self) -> usize {
        match self.shared() {
            _ if self.rows == 0 => EMPTY_ROW_LIST.len(),
            RowSize::Fixed(_) => FIXED_HEADER_BYTES.saturating_add(self.data_bytes),
            RowSize::Variable => self
                .rows
                .saturating_mul(8)
                .saturating_add(self.data_bytes)
                .saturating_add(EMPTY_ROW_LIST.len()),
        }
    }

    /// Starts to write a list of this size at the end of `out`.
    ///
    /// # Errors
    /// The list is too large for its 32-bit lengths; nothing is appended.
    pub fn begin(self, out: &mut Vec<u8>) -> Result<SizedRowList, Error> {
        let (Ok(rows), Ok(data_len)) = (u32::try_from(self.rows), u32::try_from(self.data_bytes))
        else {
            return Err(Error::RowListTooLarge);
        };
        let start = out.len();
        out.reserve(self.encoded_bytes());
        match self.shared() {
            _ if rows == 0 => out.extend_from_slice(&EMPTY_ROW_LIST),
            RowSize::Fixed(bytes) => (0_u8, bytes, data_len).encode(out),
            RowSize::Variable => {
                (1_u8, rows).encode(out);
                out.resize(out.len() + 8 * self.rows, 0);
                data_len.encode(out);
            }
        }
        Ok(SizedRowList {
            size: self,
            written: RowListSize::default(),
            offsets: match self.shared() {
                RowSize::Variable if rows > 0 => Some(start + 5),
                _ => None,
            },
        })
    }
}

/// Writes the rows of a list whose size is known. It does not borrow the buffer, so that a list can be written in parts.
#[derive(Debug)]
pub struct SizedRowList {
    size: RowListSize,
    written: RowListSize,
    /// Where the next row's offset stands, if there are offsets.
    offsets: Option<usize>,
}

impl SizedRowList {
    /// Appends a row to the buffer that the list was begun in, to which nothing else was appended since.
    ///
    /// # Panics
    /// If there are more rows than were counted.
    #[inline]
    pub fn push(&mut self, out: &mut Vec<u8>, row: &[u8]) {
        if let Some(at) = &mut self.offsets {
            let offset = (self.written.data_bytes as u64).to_le_bytes();
            assert!(
                self.written.rows < self.size.rows,
                "every row of the list was counted"
            );
            out[*at..*at + 8].copy_from_slice(&offset);
            *at += 8;
        }
        self.written.add(row.len());
        out.extend_from_slice(row);
    }

    /// Whether all rows were written that had been counted, and these only.
    pub fn is_complete(&self) -> bool {
        self.written == self.size
    }
}

/// A row list as received: the hint has been checked against the data.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct RowList {
    sizes: Sizes,
    data: Vec<u8>,
}

#[derive(Clone, PartialEq, Eq)]
enum Sizes {
    Fixed(u16),
    Offsets(Vec<u64>),
}

impl Default for Sizes {
    fn default() -> Self {
        Self::Offsets(Vec::new())
    }
}

impl RowList {
    pub fn len(&self) -> usize {
        match &self.sizes {
            Sizes::Fixed(bytes) => self.data.len() / usize::from(*bytes),
            Sizes::Offsets(offsets) => offsets.len(),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All rows, back to back.
    pub fn data(&self) -> &[u8] {
        &self.data
    }

    pub fn get(&self, row: usize) -> Option<&[u8]> {
        self.range(row).map(|range| &self.data[range])
    }

    fn range(&self, row: usize) -> Option<Range<usize>> {
        match &self.sizes {
            Sizes::Fixed(bytes) => {
                let bytes = usize::from(*bytes);
                let start = row.checked_mul(bytes)?;
                (start < self.data.len()).then(|| start..start + bytes)
            }
            Sizes::Offsets(offsets) => {
                let start = *offsets.get(row)? as usize;
                let end = offsets
                    .get(row + 1)
                    .map_or(self.data.len(), |&end| end as usize);
                Some(start..end)
            }
        }
    }

    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        (0..self.len()).map(|row| self.get(row).expect("row is below the number of rows"))
    }

    /// Reads a list and checks its hint.
    pub fn decode(r: &mut Reader<'_>) -> Result<Self, Error> {
        let parts = RowListParts::decode(r)?;
        Ok(Self {
            sizes: match parts.fixed_bytes {
                Some(bytes) => Sizes::Fixed(bytes),
                None => Sizes::Offsets(parts.offsets().collect()),
            },
            data: parts.data.to_vec(),
        })
    }
}

impl Encode for RowList {
    fn encode(&self, out: &mut Vec<u8>) {
        match &self.sizes {
            Sizes::Fixed(bytes) => (0_u8, bytes).encode(out),
            Sizes::Offsets(offsets) => (1_u8, offsets).encode(out),
        }
        self.data.encode(out);
    }
}

impl std::fmt::Debug for RowList {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// A row list in place: checked, but nothing copied.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RowListParts<'a> {
    fixed_bytes: Option<u16>,
    offsets: &'a [u8],
    data: &'a [u8],
}

impl<'a> RowListParts<'a> {
    pub(crate) fn decode(r: &mut Reader<'a>) -> Result<Self, Error> {
        match r.read_u8()? {
            0 => {
                let bytes = r.read_u16()?;
                let data = r.read_bytes()?;
                if bytes == 0 {
                    return Err(Error::RowList("fixed row size is 0"));
                }
                if !data.len().is_multiple_of(usize::from(bytes)) {
                    return Err(Error::RowList("data is not a whole number of rows"));
                }
                Ok(Self {
                    fixed_bytes: Some(bytes),
                    offsets: &[],
                    data,
                })
            }
            1 => {
                let count = r.read_count(8)? as usize;
                let offsets = r.read_slice(count * 8)?;
                let data = r.read_bytes()?;
                let parts = Self {
                    fixed_bytes: None,
                    offsets,
                    data,
                };
                parts.check_offsets()?;
                Ok(parts)
            }
            tag => Err(DecodeError::invalid_tag(tag, "RowSizeHint").into()),
        }
    }

    fn offsets(&self) -> impl Iterator<Item = u64> + 'a {
        self.offsets
            .chunks_exact(8)
            .map(|bytes| u64::from_le_bytes(bytes.try_into().expect("chunks of 8 bytes")))
    }

    fn check_offsets(&self) -> Result<(), Error> {
        let mut previous = 0;
        for (row, offset) in self.offsets().enumerate() {
            if row == 0 && offset != 0 {
                return Err(Error::RowList("first offset is not 0"));
            }
            if offset < previous {
                return Err(Error::RowList("offsets do not ascend"));
            }
            previous = offset;
        }
        if previous > self.data.len() as u64 {
            return Err(Error::RowList("offset is beyond the data"));
        }
        if self.offsets.is_empty() && !self.data.is_empty() {
            return Err(Error::RowList("data without offsets"));
        }
        Ok(())
    }

    pub(crate) fn len(&self) -> usize {
        match self.fixed_bytes {
            Some(bytes) => self.data.len() / usize::from(bytes),
            None => self.offsets.len() / 8,
        }
    }
}
