//! Small results that are made here, without asking a database.

use lightcone_query::postgresql::{with_length, Cell, Format};
use lightcone_types::{AlgebraicType, AlgebraicValue, ProductType};

use super::messages::put_message;

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
        SmallTable::texts_of(&self.rows)
    }

    pub fn texts_of(rows: &[Vec<Cell>]) -> usize {
        let bytes = |cell: &Cell| match cell {
            Cell::Null => 0,
            Cell::Value(value) => bytes_of(value),
            Cell::List(list) => {
                let elements = list.iter().flatten().map(bytes_of);
                list.len() * size_of::<AlgebraicValue>() + elements.sum::<usize>()
            }
        };
        rows.iter().flatten().map(bytes).sum()
    }

    pub fn column_types(&self) -> ProductType {
        column_types(&self.columns)
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

pub(super) fn column_types(columns: &[(String, AlgebraicType)]) -> ProductType {
    let columns = columns.iter();
    ProductType::new(columns.map(|(name, ty)| (name.as_str(), ty.clone())))
}

/// What a value takes besides itself.
fn bytes_of(value: &AlgebraicValue) -> usize {
    use AlgebraicValue as V;
    let whole = |of: &AlgebraicValue| size_of::<AlgebraicValue>() + bytes_of(of);
    match value {
        V::String(text) => text.len(),
        V::Bytes(bytes) => bytes.len(),
        V::Array(values) | V::Product(values) => values.iter().map(whole).sum(),
        V::Sum { value, .. } => whole(value),
        _ => 0,
    }
}

pub(super) fn text(value: &str) -> AlgebraicValue {
    AlgebraicValue::String(value.into())
}
