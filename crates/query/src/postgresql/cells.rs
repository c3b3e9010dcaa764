//! Answers: how large they may be, and the values in them.

use lightcone_types::{AlgebraicType, AlgebraicValue};

use super::failure::{state, Done, Failure};
use super::formats::{write, write_list, Format};

/// An answer has at most so many columns, as one of PostgreSQL has, and so many values.
pub const COLUMNS_MAX: usize = 1_664;
const CELLS_MAX: usize = 1 << 18;

/// Refuses an answer that would be too large, before it is made.
///
/// # Errors
/// It has too many columns, or too many values.
pub fn check_size(rows: usize, columns: usize) -> Done<()> {
    let message = if columns > COLUMNS_MAX {
        format!("target lists can have at most {COLUMNS_MAX} entries")
    } else if rows.saturating_mul(columns) > CELLS_MAX {
        format!(
            "the answer would have more than {CELLS_MAX} values: ask for fewer columns, or for some of the tables"
        )
    } else {
        return Ok(());
    };
    Err(Failure::new(state::LIMIT_REACHED, message))
}

/// A value of a row of an answer.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    Null,
    Value(AlgebraicValue),
    /// An array, whose elements may be NULL, which those of tables never are.
    List(Vec<Option<AlgebraicValue>>),
}

impl Cell {
    /// Writes it in a format. False: it is NULL, and nothing is written.
    pub fn write(&self, ty: &AlgebraicType, format: Format, out: &mut Vec<u8>) -> bool {
        match self {
            Cell::Null => return false,
            Cell::Value(value) => write(ty, value, format, out),
            Cell::List(elements) => write_list(ty, elements, format, out),
        }
        true
    }
}
