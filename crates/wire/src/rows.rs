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

/// Appends one row list to a buffer, row by row.
///
/// With [`RowSize::Fixed`], or as long as all rows have the same length, rows are written where
/// they stay and nothing is allocated. Only when lengths turn out to differ does it keep them, four
/// bytes each, and moves the data once at the end to make room for the offsets; use [`row_list`]
/// where the rows can be walked twice.
///
/// A writer that is dropped without [`finish`](Self::finish) leaves the list of no rows.
#[derive(Debug)]
pub struct RowListWriter<'a> {
    out: &'a mut Vec<u8>,
    /// Where the list starts in `out`.
    start: usize,
    /// Length of every row so far; meaningful once `rows > 0`.
    uniform_bytes: usize,
    rows: usize,
    /// Lengths of all rows; empty while they are equal.
    lengths: Vec<u32>,
    finished: bool,
}

impl<'a> RowListWriter<'a> {
    pub fn new(out: &'a mut Vec<u8>) -> Self {
        let start = out.len();
        out.extend_from_slice(&[0; FIXED_HEADER_BYTES]);
        Self {
            out,
            start,
            uniform_bytes: 0,
            rows: 0,
            lengths: Vec::new(),
            finished: false,
        }
    }

    #[inline]
    pub fn rows(&self) -> usize {
        self.rows
    }

    #[inline]
    pub fn data_bytes(&self) -> usize {
        self.out.len() - self.start - FIXED_HEADER_BYTES
    }

    #[inline]
    pub fn push(&mut self, row: &[u8]) {
        self.out.extend_from_slice(row);
        self.count_row(row.len());
    }

    /// Appends a row that `encode` writes to the end of the buffer.
    #[inline]
    pub fn push_with(&mut self, encode: impl FnOnce(&mut Vec<u8>)) {
        let start = self.out.len();
        encode(self.out);
        let length = self
            .out
            .len()
            .checked_sub(start)
            .expect("an encoder only appends");
        self.count_row(length);
    }

    /// Appends many rows of `row_bytes` each, which lie back to back.
    ///
    /// # Panics
    /// If `rows` is not a whole number of rows.
    pub fn push_many(&mut self, row_bytes: u16, rows: &[u8]) {
        let row_bytes = usize::from(row_bytes);
        if rows.is_empty() {
            return;
        }
        assert!(
            row_bytes != 0 && rows.len().is_multiple_of(row_bytes),
            "rows of a fixed size fill their buffer"
        );
        let count = rows.len() / row_bytes;
        self.out.extend_from_slice(rows);
        if self.lengths.is_empty() && (self.rows == 0 || self.uniform_bytes == row_bytes) {
            self.uniform_bytes = row_bytes;
            self.rows += count;
        } else {
            for _ in 0..count {
                self.count_row(row_bytes);
            }
        }
    }

    #[inline]
    fn count_row(&mut self, bytes: usize) {
        if self.rows == 0 {
            self.uniform_bytes = bytes;
        } else if bytes != self.uniform_bytes || !self.lengths.is_empty() {
            self.keep_length(bytes);
        }
        self.rows += 1;
    }

    /// Keeps the length of a row. One beyond `u32` makes the list too large anyway, which
    /// [`finish`](Self::finish) reports from the length of the data.
    fn keep_length(&mut self, bytes: usize) {
        let clamp = |bytes| u32::try_from(bytes).unwrap_or(u32::MAX);
        if self.lengths.is_empty() {
            self.lengths.resize(self.rows, clamp(self.uniform_bytes));
        }
        self.lengths.push(clamp(bytes));
    }

    /// Completes the list and returns the number of its rows. A list that is too large for its
    /// 32-bit lengths is an error and leaves the list of no rows.
    pub fn finish(mut self) -> Result<u32, Error> {
        let data_bytes = self.data_bytes();
        let (Ok(rows), Ok(data_len)) = (u32::try_from(self.rows), u32::try_from(data_bytes)) else {
            return Err(Error::RowListTooLarge);
        };
        if rows == 0 {
            return Ok(0);
        }
        self.finished = true;
        let data_start = self.start + FIXED_HEADER_BYTES;
        if self.lengths.is_empty() {
            if let RowSize::Fixed(size) = RowSize::new(Some(self.uniform_bytes)) {
                let header = &mut self.out[self.start..data_start];
                header[1..3].copy_from_slice(&size.to_le_bytes());
                header[3..7].copy_from_slice(&data_len.to_le_bytes());
                return Ok(rows);
            }
        }
        let offsets_start = self.start + 5;
        let offsets_bytes = self.rows * 8;
        let moved_to = offsets_start + offsets_bytes + 4;
        let data_end = self.out.len();
        self.out.resize(moved_to + data_bytes, 0);
        self.out.copy_within(data_start..data_end, moved_to);
        let header = &mut self.out[self.start..moved_to];
        header[0] = 1;
        header[1..5].copy_from_slice(&rows.to_le_bytes());
        let mut offset = 0u64;
        for (row, slot) in header[5..5 + offsets_bytes].chunks_exact_mut(8).enumerate() {
            slot.copy_from_slice(&offset.to_le_bytes());
            offset += self
                .lengths
                .get(row)
                .map_or(self.uniform_bytes as u64, |&length| u64::from(length));
        }
        header[5 + offsets_bytes..].copy_from_slice(&data_len.to_le_bytes());
        Ok(rows)
    }
}

impl Drop for RowListWriter<'_> {
    fn drop(&mut self) {
        if !self.finished {
            self.out.truncate(self.start);
            self.out.extend_from_slice(&EMPTY_ROW_LIST);
        }
    }
}

/// Appends a list of rows that can be walked more than once; allocates nothing and moves nothing.
/// Returns the number of rows; on an error nothing is appended.
///
/// With [`RowSize::Fixed`] every row must have that length.
pub fn row_list<'r, I>(out: &mut Vec<u8>, size: RowSize, rows: I) -> Result<u32, Error>
where
    I: IntoIterator<Item = &'r [u8]>,
    I::IntoIter: Clone,
{
    let rows = rows.into_iter();
    let (count, data_bytes, size) = match size {
        RowSize::Fixed(bytes) => {
            let count = rows.clone().count();
            (count, count.saturating_mul(usize::from(bytes)), size)
        }
        RowSize::Variable => measure(rows.clone()),
    };
    let (Ok(count_u32), Ok(data_len)) = (u32::try_from(count), u32::try_from(data_bytes)) else {
        return Err(Error::RowListTooLarge);
    };
    if count == 0 {
        out.extend_from_slice(&EMPTY_ROW_LIST);
        return Ok(0);
    }
    match size {
        RowSize::Fixed(bytes) => {
            out.reserve(FIXED_HEADER_BYTES + data_bytes);
            out.push(0);
            bytes.encode(out);
        }
        RowSize::Variable => {
            out.reserve(9 + 8 * count + data_bytes);
            out.push(1);
            count_u32.encode(out);
            let mut offset = 0u64;
            for row in rows.clone() {
                offset.encode(out);
                offset += row.len() as u64;
            }
        }
    }
    data_len.encode(out);
    let data_start = out.len();
    for row in rows {
        out.extend_from_slice(row);
    }
    debug_assert_eq!(
        out.len() - data_start,
        data_bytes,
        "rows have the size of their type"
    );
    Ok(count_u32)
}

/// Number of rows, their bytes, and the size they share, if any.
fn measure<'r>(rows: impl Iterator<Item = &'r [u8]>) -> (usize, usize, RowSize) {
    let (mut count, mut data_bytes, mut shared) = (0usize, 0usize, None);
    for row in rows {
        if count == 0 {
            shared = Some(row.len());
        } else if shared != Some(row.len()) {
            shared = None;
        }
        count += 1;
        data_bytes += row.len();
    }
    (count, data_bytes, RowSize::new(shared))
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
        match self.shared() {
            _ if rows == 0 => out.extend_from_slice(&EMPTY_ROW_LIST),
            RowSize::Fixed(bytes) => {
                out.push(0);
                bytes.encode(out);
                data_len.encode(out);
            }
            RowSize::Variable => {
                out.push(1);
                rows.encode(out);
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

/// Appends a list of rows of `row_bytes` each, which lie back to back. Returns the number of rows;
/// on an error nothing is appended.
///
/// # Panics
/// If `rows` is not a whole number of rows.
pub fn row_list_fixed(out: &mut Vec<u8>, row_bytes: u16, rows: &[u8]) -> Result<u32, Error> {
    let mut writer = RowListWriter::new(out);
    writer.push_many(row_bytes, rows);
    writer.finish()
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
    /// The list of these rows, with the hint that the writers choose.
    pub fn from_rows<'r, I>(rows: I) -> Self
    where
        I: IntoIterator<Item = &'r [u8]>,
        I::IntoIter: Clone,
    {
        let rows = rows.into_iter();
        let first = rows.clone().next().map(<[u8]>::len);
        let uniform = first.filter(|&first| rows.clone().all(|row| row.len() == first));
        let data: Vec<u8> = rows.clone().flatten().copied().collect();
        let sizes = match RowSize::new(uniform) {
            RowSize::Fixed(bytes) => Sizes::Fixed(bytes),
            RowSize::Variable => Sizes::Offsets(
                rows.scan(0u64, |offset, row| {
                    let start = *offset;
                    *offset += row.len() as u64;
                    Some(start)
                })
                .collect(),
            ),
        };
        Self { sizes, data }
    }

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
            Sizes::Fixed(bytes) => {
                out.push(0);
                bytes.encode(out);
            }
            Sizes::Offsets(offsets) => {
                out.push(1);
                offsets.encode(out);
            }
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
