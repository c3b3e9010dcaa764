//! What names mean at a place of a question.

use std::cell::Cell;

use sqlparser::ast::Ident;

use super::super::super::failure::{state, Failure};
use super::super::plan::*;
use super::super::values::{Type, Value};
use super::syntax::folded;
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
    /// A table of the module that is read, and the column of it.
    pub of: Option<(usize, usize)>,
    pub is_used: Cell<bool>,
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
    pub fn column(&self, names: &[Ident]) -> Done<(Bound, Type)> {
        let (name, qualifiers) = names.split_last().expect("a name has a part");
        let table = qualifiers.last();
        let mut scope = Some(self);
        let mut up = 0;
        while let Some(here) = scope {
            if let Some((at, column)) = here.own(table, name)? {
                column.is_used.set(true);
                return Ok((Bound::Column { up, at }, column.ty));
            }
            if table.is_some_and(|table| here.loose.iter().any(|loose| *loose == folded(table))) {
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
        let names: Vec<&str> = names.iter().map(|name| &*name.value).collect();
        let message = format!("column \"{}\" does not exist", names.join("."));
        Err(Failure::new(state::NO_SUCH_COLUMN, message).into())
    }

    /// The column of this scope: as it is written, or else as PostgreSQL folds it.
    fn own(&self, table: Option<&Ident>, name: &Ident) -> Done<Option<(usize, &ScopeColumn)>> {
        for is in [is_written, is_folded] {
            let is_meant = |column: &ScopeColumn| match table {
                Some(table) => {
                    (is_written(table, &column.table) || is_folded(table, &column.table))
                        && is(name, &column.name)
                }
                None => !column.is_hidden && is(name, &column.name),
            };
            let columns = self.columns.iter().enumerate();
            let mut found = columns.filter(|(_, column)| is_meant(column));
            let first = found.next();
            if first.is_some() && table.is_none() && found.next().is_some() {
                let message = format!("column reference \"{}\" is ambiguous", name.value);
                return Err(Failure::new(state::AMBIGUOUS_COLUMN, message).into());
            }
            if first.is_some() {
                return Ok(first);
            }
        }
        Ok(None)
    }
}

fn is_written(name: &Ident, known: &str) -> bool {
    name.value == known
}

fn is_folded(name: &Ident, known: &str) -> bool {
    name.quote_style.is_none() && name.value.to_lowercase() == known
}
