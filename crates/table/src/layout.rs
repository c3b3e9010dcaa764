//! The layout of a row, and whether bytes are a row at all.

use std::ops::Range;

use lightcone_schema::ColumnSchema;
use lightcone_types::bsatn::{fixed_size, min_size, DecodeError, Reader};
use lightcone_types::AlgebraicType;

/// The walk over the encoding of one type. Adjacent parts that are valid for every bit pattern are merged.
#[derive(Debug, Clone)]
enum Shape {
    /// Bytes for which every pattern is valid.
    Plain(usize),
    /// 0 or 1.
    Bool,
    String,
    Array {
        element: Box<Shape>,
        /// The size of each element, if all have the same.
        element_bytes: Option<usize>,
        element_bytes_min: usize,
    },
    Product(Vec<Shape>),
    Sum(Vec<Shape>),
}

/// The most elements an array of zero-sized values may claim, as they cost no input (01 §1.5.3).
const ZERO_SIZED_ELEMENTS_MAX: u32 = 1 << 20;

impl Shape {
    fn of(ty: &AlgebraicType) -> Shape {
        use AlgebraicType as T;
        match ty {
            T::Bool => Shape::Bool,
            T::Integer(integer) => Shape::Plain(integer.bytes()),
            T::F32 => Shape::Plain(4),
            T::F64 => Shape::Plain(8),
            T::String => Shape::String,
            T::Array(element) => Shape::Array {
                element_bytes: fixed_size(element),
                element_bytes_min: min_size(element),
                element: Box::new(Shape::of(element)),
            },
            T::Product(product) => {
                let mut parts: Vec<Shape> = Vec::new();
                for element in &product.elements {
                    match (parts.last_mut(), Shape::of(&element.algebraic_type)) {
                        (Some(Shape::Plain(size)), Shape::Plain(more)) => *size += more,
                        (_, shape) => parts.push(shape),
                    }
                }
                match parts.len() {
                    0 => Shape::Plain(0),
                    1 => parts.remove(0),
                    _ => Shape::Product(parts),
                }
            }
            T::Sum(sum) => Shape::Sum(
                sum.variants
                    .iter()
                    .map(|v| Shape::of(&v.algebraic_type))
                    .collect(),
            ),
            T::Ref(_) => unreachable!("row types are resolved before a layout is made"),
        }
    }

    /// Checks one value at the reader's position and moves behind it.
    fn check(&self, reader: &mut Reader<'_>) -> Result<(), DecodeError> {
        match self {
            Shape::Plain(size) => reader.read_slice(*size).map(drop),
            Shape::Bool => reader.read_bool().map(drop),
            Shape::String => reader.read_str().map(drop),
            Shape::Array {
                element,
                element_bytes_min,
                ..
            } => {
                let count = reader.read_count(*element_bytes_min)?;
                if *element_bytes_min == 0 && count > ZERO_SIZED_ELEMENTS_MAX {
                    return Err(DecodeError::Other(format!(
                        "an array of {count} values without size is over the limit of {ZERO_SIZED_ELEMENTS_MAX}"
                    ).into()));
                }
                if let Shape::Plain(size) = **element {
                    return reader.read_slice(size * count as usize).map(drop);
                }
                (0..count).try_for_each(|_| element.check(reader))
            }
            Shape::Product(parts) => parts.iter().try_for_each(|part| part.check(reader)),
            Shape::Sum(variants) => {
                let tag = reader.read_u8()?;
                match variants.get(tag as usize) {
                    Some(payload) => payload.check(reader),
                    None => Err(DecodeError::unknown_tag(tag)),
                }
            }
        }
    }

    /// The length of the value at the start of `bytes`, which were checked when they were stored.
    fn stored_len(&self, bytes: &[u8]) -> usize {
        let count =
            |bytes: &[u8]| u32::from_le_bytes(bytes[..4].try_into().expect("four bytes")) as usize;
        match self {
            Shape::Plain(size) => *size,
            Shape::Bool => 1,
            Shape::String => 4 + count(bytes),
            Shape::Array {
                element,
                element_bytes,
                ..
            } => match *element_bytes {
                Some(size) => 4 + size * count(bytes),
                None => (0..count(bytes)).fold(4, |at, _| at + element.stored_len(&bytes[at..])),
            },
            Shape::Product(parts) => parts
                .iter()
                .fold(0, |at, part| at + part.stored_len(&bytes[at..])),
            Shape::Sum(variants) => 1 + variants[bytes[0] as usize].stored_len(&bytes[1..]),
        }
    }
}

/// The layout of a row type: column positions and validity, compiled once per table.
#[derive(Debug, Clone)]
pub struct RowLayout {
    types: Vec<AlgebraicType>,
    shapes: Vec<Shape>,
    /// Constant start of a column, where all columns before it have a fixed size.
    constant_starts: Vec<Option<usize>>,
    fixed_size: Option<usize>,
    /// Every byte string of the fixed size is a row.
    all_patterns_valid: bool,
}

impl RowLayout {
    /// The layout of rows with these columns.
    ///
    /// # Panics
    /// As [`new`](Self::new).
    pub fn of(columns: &[ColumnSchema]) -> RowLayout {
        let types: Vec<AlgebraicType> = columns.iter().map(|column| column.ty.clone()).collect();
        RowLayout::new(&types)
    }

    /// Compiles the layout of a row with these ref-free column types.
    ///
    /// # Panics
    /// If a type contains a `Ref`.
    pub fn new(types: &[AlgebraicType]) -> RowLayout {
        let shapes: Vec<Shape> = types.iter().map(Shape::of).collect();
        let mut start = Some(0);
        let mut constant_starts = Vec::with_capacity(shapes.len());
        for ty in types {
            constant_starts.push(start);
            start = start.zip(stored_size(ty)).map(|(at, size)| at + size);
        }
        RowLayout {
            types: types.to_vec(),
            constant_starts,
            fixed_size: start,
            all_patterns_valid: shapes.iter().all(|s| matches!(s, Shape::Plain(_))),
            shapes,
        }
    }

    /// The size of every row in bytes, if all rows have the same.
    #[inline]
    pub fn fixed_size(&self) -> Option<usize> {
        self.fixed_size
    }

    pub fn column_count(&self) -> usize {
        self.shapes.len()
    }

    pub fn column_type(&self, column: usize) -> &AlgebraicType {
        &self.types[column]
    }

    /// Start of a column that lies at the same place in every row.
    #[inline]
    pub fn constant_start(&self, column: usize) -> Option<usize> {
        self.constant_starts[column]
    }

    /// The constant size of a column's values in bytes, if they have one.
    pub fn column_size(&self, column: usize) -> Option<usize> {
        stored_size(&self.types[column])
    }

    /// The bytes of `row` that hold `column`. `row` must be a valid row.
    pub fn column_range(&self, row: &[u8], column: usize) -> Range<usize> {
        let start = match self.constant_starts[column] {
            Some(start) => start,
            None => self.shapes[..column]
                .iter()
                .fold(0, |at, shape| at + shape.stored_len(&row[at..])),
        };
        start..start + self.shapes[column].stored_len(&row[start..])
    }

    /// The value of `column` in a valid `row`.
    #[inline]
    pub fn column<'r>(&self, row: &'r [u8], column: usize) -> &'r [u8] {
        &row[self.column_range(row, column)]
    }

    /// Checks that `bytes` start with a row and returns the row's length.
    ///
    /// # Errors
    /// As 01 §1.5.1. A row type of fixed size takes no other length (01 §1.5.2); other row types ignore what follows.
    #[inline]
    pub fn validate(&self, bytes: &[u8]) -> Result<usize, DecodeError> {
        match self.fixed_size {
            Some(size) if bytes.len() != size => Err(DecodeError::InvalidLen {
                expected: size,
                given: bytes.len(),
            }),
            Some(size) if self.all_patterns_valid => Ok(size),
            _ => self.check_row(bytes),
        }
    }

    /// Like [`validate`](Self::validate) for a row at the start of a longer list of rows.
    ///
    /// # Errors
    /// As 01 §1.5.1.
    pub fn validate_prefix(&self, bytes: &[u8]) -> Result<usize, DecodeError> {
        self.check_row(bytes)
    }

    /// The length of the valid row at the start of `bytes`.
    pub fn stored_len(&self, bytes: &[u8]) -> usize {
        match self.fixed_size {
            Some(size) => size,
            None => self
                .shapes
                .iter()
                .fold(0, |at, shape| at + shape.stored_len(&bytes[at..])),
        }
    }

    /// Checks one value of `column` at the start of `bytes` and returns its length.
    ///
    /// # Errors
    /// As 01 §1.5.1.
    pub fn check_column(&self, column: usize, bytes: &[u8]) -> Result<usize, DecodeError> {
        let mut reader = Reader::new(bytes);
        self.shapes[column].check(&mut reader)?;
        Ok(bytes.len() - reader.remaining().len())
    }

    fn check_row(&self, bytes: &[u8]) -> Result<usize, DecodeError> {
        let mut reader = Reader::new(bytes);
        for shape in &self.shapes {
            shape.check(&mut reader)?;
        }
        Ok(bytes.len() - reader.remaining().len())
    }
}

/// The constant size of values of a type, as pages know it: pages of a type with a sum without variants have always been slotted.
fn stored_size(ty: &AlgebraicType) -> Option<usize> {
    fixed_size(ty).filter(|_| !holds_empty_sum(ty))
}

fn holds_empty_sum(ty: &AlgebraicType) -> bool {
    let is_empty = matches!(ty, AlgebraicType::Sum(sum) if sum.variants.is_empty());
    is_empty || ty.parts().any(|(_, part)| holds_empty_sum(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_a_type_with_an_empty_sum_are_slotted_as_they_always_were() {
        let never = AlgebraicType::sum::<&str>([]);
        let either = AlgebraicType::sum([("a", AlgebraicType::U8), ("b", never)]);
        assert_eq!(fixed_size(&either), Some(2));
        assert_eq!(RowLayout::new(&[either]).fixed_size(), None);
    }
}
