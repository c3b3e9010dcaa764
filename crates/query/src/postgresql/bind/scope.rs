//! What names mean at a place of a question.

use std::cell::{Cell, RefCell};

use sqlparser::ast::Ident;

use super::super::column_type::Type;
use super::super::failure::{state, Done, Failure};
use super::super::plan::*;
use super::super::value::Value;
use super::syntax::folded;

/// What names mean at a place.
pub(super) struct Scope<'s> {
    pub columns: Vec<ScopeColumn>,
    /// Tables that have any column, and no rows.
    pub loose: Vec<String>,
    pub keys: Vec<RowKey>,
    /// Columns that questions inside of this one mean.
    pub meant_inside: RefCell<Vec<usize>>,
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
            meant_inside: RefCell::default(),
            outer,
        }
    }

    /// Binds what may mean any row of a group.
    pub fn of_all_rows<T>(&self, bind: impl FnOnce() -> T) -> T {
        let meant = self.meant_inside.take();
        let bound = bind();
        self.meant_inside.replace(meant);
        bound
    }

    /// How many scopes there are, with those around it.
    pub fn depth(&self) -> usize {
        1 + self.outer.map_or(0, Scope::depth)
    }

    /// Columns here and around it: so many are looked at for a name, at most.
    pub fn width(&self) -> usize {
        let around = std::iter::successors(Some(self), |scope| scope.outer);
        around.map(|scope| 1 + scope.columns.len()).sum()
    }

    /// The column that a name means, and its type.
    pub fn column(&self, names: &[Ident]) -> Done<(Bound, Type)> {
        let (name, qualifiers) = names.split_last().expect("a name has a part");
        let (name, table) = (Name::new(name), qualifiers.last().map(Name::new));
        let mut scope = Some(self);
        let mut up = 0;
        while let Some(here) = scope {
            if let Some((at, column)) = here.own(table.as_ref(), &name)? {
                column.is_used.set(true);
                if up > 0 {
                    here.meant_inside.borrow_mut().push(at);
                }
                return Ok((Bound::Column { up, at }, column.ty.clone()));
            }
            let is_loose = |table: &Name<'_>| here.loose.contains(&table.folded);
            if table.as_ref().is_some_and(is_loose) {
                return Ok((Bound::Constant(Value::Null), Type::TEXT));
            }
            up += 1;
            scope = here.outer;
        }
        let mut scope = Some(self);
        while let Some(here) = scope.filter(|_| table.is_none()) {
            if !here.loose.is_empty() {
                return Ok((Bound::Constant(Value::Null), Type::TEXT));
            }
            scope = here.outer;
        }
        let names: Vec<&str> = names.iter().map(|name| &*name.value).collect();
        let message = format!("column \"{}\" does not exist", names.join("."));
        Err(Failure::new(state::NO_SUCH_COLUMN, message))
    }

    /// The column of this scope: as it is written, or else as PostgreSQL folds it.
    fn own(
        &self,
        table: Option<&Name<'_>>,
        name: &Name<'_>,
    ) -> Done<Option<(usize, &ScopeColumn)>> {
        for wanted in [name.written, name.folded.as_str()] {
            let is_meant = |column: &ScopeColumn| match table {
                Some(table) => column.name == wanted && table.is(&column.table),
                None => !column.is_hidden && column.name == wanted,
            };
            let columns = self.columns.iter().enumerate();
            let mut found = columns.filter(|(_, column)| is_meant(column));
            let first = found.next();
            if first.is_some() && table.is_none() && found.next().is_some() {
                let message = format!("column reference \"{}\" is ambiguous", name.written);
                return Err(Failure::new(state::AMBIGUOUS_COLUMN, message));
            }
            if first.is_some() {
                return Ok(first);
            }
        }
        Ok(None)
    }
}

/// A name that is looked for, folded once.
struct Name<'n> {
    written: &'n str,
    folded: String,
}

impl<'n> Name<'n> {
    fn new(name: &'n Ident) -> Name<'n> {
        Name {
            written: &name.value,
            folded: folded(name),
        }
    }

    fn is(&self, known: &str) -> bool {
        self.written == known || self.folded == known
    }
}
