//! Small results that are made here, without asking a database.

use lightcone_types::{AlgebraicType, AlgebraicValue, ProductType};

use super::failure::{state, Failure};
use super::messages::put_message;
use super::values::{with_length, write, write_list, Format};

/// A result made here has at most so many columns, as one of PostgreSQL has, and so many values.
pub(super) const COLUMNS_MAX: usize = 1_664;
const CELLS_MAX: usize = 1 << 18;

pub(super) fn too_many_columns() -> Failure {
    let message = format!("target lists can have at most {COLUMNS_MAX} entries");
    Failure::new(state::LIMIT_REACHED, message)
}

/// Refuses a result that would be too large, before it is made.
pub(super) fn check_size(rows: usize, columns: usize) -> Result<(), Failure> {
    if columns > COLUMNS_MAX {
        return Err(too_many_columns());
    }
    if rows.saturating_mul(columns) > CELLS_MAX {
        let message = format!(
            "the answer would have more than {CELLS_MAX} values: ask for fewer columns, or for some of the tables"
        );
        return Err(Failure::new(state::LIMIT_REACHED, message));
    }
    Ok(())
}

/// A value of a row.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Cell {
    Null,
    Value(AlgebraicValue),
    /// An array, whose elements may be NULL, which those of tables never are.
    List(Vec<Option<AlgebraicValue>>),
}

impl From<Option<AlgebraicValue>> for Cell {
    fn from(value: Option<AlgebraicValue>) -> Cell {
        value.map_or(Cell::Null, Cell::Value)
    }
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

/// Columns, and rows of values.
#[derive(Clone, Debug, Default)]
pub(super) struct SmallTable {
    pub columns: Vec<(String, AlgebraicType)>,
    pub rows: Vec<Vec<Cell>>,
}

impl SmallTable {
    /// One value in one row.
    pub fn of(name: &str, ty: AlgebraicType, value: AlgebraicValue) -> SmallTable {
        SmallTable {
            columns: vec![(name.to_owned(), ty)],
            rows: vec![vec![Cell::Value(value)]],
        }
    }

    pub fn text(name: &str, value: &str) -> SmallTable {
        SmallTable::of(name, AlgebraicType::String, text(value))
    }

    /// Bytes of its texts, which no message is shorter than.
    pub fn text_bytes(&self) -> usize {
        let bytes = |cell: &Cell| match cell {
            Cell::Value(AlgebraicValue::String(text)) => text.len(),
            _ => 0,
        };
        self.rows.iter().flatten().map(bytes).sum()
    }

    pub fn column_types(&self) -> ProductType {
        ProductType::new(
            self.columns
                .iter()
                .map(|(name, ty)| (name.as_str(), ty.clone())),
        )
    }

    /// The rows as messages.
    pub fn messages(&self, formats: &[Format]) -> Vec<u8> {
        let mut out = Vec::new();
        for row in &self.rows {
            put_message(&mut out, b'D', |out| {
                out.extend((row.len() as u16).to_be_bytes());
                for (nth, (value, (_, ty))) in row.iter().zip(&self.columns).enumerate() {
                    let format = formats.get(nth).copied().unwrap_or_default();
                    match value {
                        Cell::Null => out.extend((-1_i32).to_be_bytes()),
                        cell => with_length(out, |out| {
                            cell.write(ty, format, out);
                        }),
                    }
                }
            });
        }
        out
    }
}

pub(super) fn text(value: &str) -> AlgebraicValue {
    AlgebraicValue::String(value.into())
}
