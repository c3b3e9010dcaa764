//! Small results that are made here, without asking a database.

use lightcone_types::{AlgebraicType, AlgebraicValue, ProductType};

use super::failure::{state, Failure};
use super::messages::put_message;
use super::values::{with_length, write, Format};

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

/// Columns, and rows of values; None is NULL.
#[derive(Clone, Debug, Default)]
pub(super) struct SmallTable {
    pub columns: Vec<(String, AlgebraicType)>,
    pub rows: Vec<Vec<Option<AlgebraicValue>>>,
}

impl SmallTable {
    /// One value in one row.
    pub fn of(name: &str, ty: AlgebraicType, value: AlgebraicValue) -> SmallTable {
        SmallTable {
            columns: vec![(name.to_owned(), ty)],
            rows: vec![vec![Some(value)]],
        }
    }

    pub fn text(name: &str, value: &str) -> SmallTable {
        SmallTable::of(name, AlgebraicType::String, text(value))
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
                        Some(value) => with_length(out, |out| write(ty, value, format, out)),
                        None => out.extend((-1_i32).to_be_bytes()),
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
