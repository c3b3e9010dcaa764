//! What names mean at a place of a question.

use super::super::plan::*;
use super::super::values::{Type, Value};
use super::unbound::Done;

/// What names mean at a place.
pub(super) struct Scope<'s> {
    pub columns: Vec<ScopeColumn>,
    /// Tables that have any column, and no rows.
    pub loose: Vec<String>,
    pub keys: Vec<RowKey>,
    pub outer: Option<&'s Scope<'s>>,
}

pub(super) struct ScopeColumn {
    pub table: String,
    pub name: String,
    pub ty: Type,
    /// It is the same as another one (`USING`).
    pub is_hidden: bool,
}

/// The rows of a relation are told apart by some of its columns: these decide all others.
pub(super) struct RowKey {
    pub columns: std::ops::Range<usize>,
    pub key: Vec<usize>,
}

impl<'s> Scope<'s> {
    /// One without columns of its own.
    pub fn new(outer: Option<&'s Scope<'s>>) -> Scope<'s> {
        Scope {
            columns: Vec::new(),
            loose: Vec::new(),
            keys: Vec::new(),
            outer,
        }
    }

    /// The column that a name means, and its type.
    pub fn column(&self, parts: &[String]) -> Done<(Bound, Type)> {
        let name = parts.last().map_or("", String::as_str);
        let table = parts.len().checked_sub(2).map(|at| parts[at].as_str());
        let mut scope = Some(self);
        let mut up = 0;
        while let Some(here) = scope {
            let is_meant = |column: &ScopeColumn| match table {
                Some(table) => column.table == table && column.name == name,
                None => !column.is_hidden && column.name == name,
            };
            let mut found = here
                .columns
                .iter()
                .enumerate()
                .filter(|(_, column)| is_meant(column));
            if let Some((at, column)) = found.next() {
                if table.is_none() && found.next().is_some() {
                    return Err(format!("column reference \"{name}\" is ambiguous").into());
                }
                return Ok((Bound::Column { up, at }, column.ty));
            }
            if table.is_some_and(|table| here.loose.iter().any(|loose| loose == table)) {
                return Ok((Bound::Constant(Value::Null), Type::Text));
            }
            up += 1;
            scope = here.outer;
        }
        let mut scope = Some(self);
        while let Some(here) = scope.filter(|_| table.is_none()) {
            if !here.loose.is_empty() {
                return Ok((Bound::Constant(Value::Null), Type::Text));
            }
            scope = here.outer;
        }
        Err(format!("column \"{}\" does not exist", parts.join(".")).into())
    }
}
