//! Why there is no plan (02 §14.2, §14.4).

use std::fmt;

use super::compatible::Incompatible;
use crate::error::write_errors;

/// More reasons are dropped; a definition may have thousands of tables.
const REASONS_MAX: usize = 256;

/// The new definition cannot take over the data of the old one: all reasons, up to a limit.
#[derive(Clone, Debug, Default, PartialEq, Eq, thiserror::Error)]
pub struct Refused {
    /// By table, in order of their names.
    pub reasons: Vec<Refusal>,
    /// Reasons beyond the limit.
    pub not_shown: usize,
}

impl Refused {
    pub(super) fn push(&mut self, reason: Refusal) {
        if self.reasons.len() < REASONS_MAX {
            self.reasons.push(reason);
        } else {
            self.not_shown += 1;
        }
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_errors(f, &self.reasons, self.not_shown)
    }
}

/// A change that no step can make.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("The migration function reads table {table} as {declared}, which does not fit the table: {difference}. Declare {declared} \
             as the published program declares {table}, or publish the version first that leads from one to the other, or delete {declared} (and the function, if it has no other) if its work is done [LC0236]")]
    OldTable {
        table: String,
        declared: String,
        difference: String,
    },
    #[error("The rows of table {table} cannot be migrated one by one: {why}. Write a migration function (`__migrate`) in the place of the \
             functions for rows [LC0246]")]
    NotByRows { table: String, why: &'static str },
    #[error("The migration function cannot replace table {table} as {declared}: the published program declares that already, with the \
             same columns, so its work counts as done. Declare it with the columns that {table} has now; if these are they, publish the running module without \
             {declared} first [LC0257]")]
    OldTableUsedUp { table: String, declared: String },
    #[error("Table {table} of the published program has a name that only tables of a migration function may have. Move its rows to a \
             table with another name, publish that module without {table}, and then this one [LC0255]")]
    TableCalledOld { table: String },
    #[error("Making table {table} {} requires a manual migration; give the new one another name [LC0220]",
        if *is_event { "an event table" } else { "a table that keeps its rows" })]
    EventFlag { table: String, is_event: bool },
    #[error("Adding column {column} to table {table} needs a default value for the rows that are there; give it one [LC0221]")]
    ColumnWithoutDefault { table: String, column: String },
    #[error("Removing column {column} from table {table} requires a manual migration; keep it (a new name means removing and adding) [LC0220]")]
    ColumnRemoved { table: String, column: String },
    #[error("Moving column {column} of table {table} from position {old} to {new} requires a manual migration; \
             keep the order, and put new columns at the end [LC0222]")]
    ColumnMoved {
        table: String,
        column: String,
        old: usize,
        new: usize,
    },
    #[error("Changing the type of column {column} in table {table} from {old} to {new} requires a manual migration{} [LC0220]",
        reason_in_parentheses(why))]
    ColumnType {
        table: String,
        column: String,
        /// As text, cut to a readable length.
        old: String,
        new: String,
        why: Incompatible,
    },
    #[error("Changing unique constraint {constraint} of table {table} from ({}) to ({}) requires a manual migration; \
             give the new one another name [LC0220]", old.join(", "), new.join(", "))]
    ConstraintColumns {
        table: String,
        constraint: String,
        old: Vec<String>,
        new: Vec<String>,
    },
    #[error("Changing the accessor of index {index} of table {table} from {} to {} requires a manual migration; \
             keep it, or give the index another name [LC0220]", name_or_none(old), name_or_none(new))]
    IndexAccessor {
        table: String,
        index: String,
        old: Option<String>,
        new: Option<String>,
    },
    #[error("{} outbox metadata {} table {table} requires a manual migration [LC0220]",
        if *is_added { "Adding" } else { "Removing" }, if *is_added { "to" } else { "from" })]
    Outbox { table: String, is_added: bool },
    #[error("The rows of outbox table {table} cannot be replaced by a migration function: what waits in it has its place in streams to other databases. \
             Add an outbox table with another name, and remove this one when it is empty [LC0220]")]
    OutboxSetAside { table: String },
    #[error("Changing the {what} of outbox table {table} from {old} to {new} requires a manual migration [LC0220]")]
    OutboxColumn {
        what: &'static str,
        table: String,
        old: String,
        new: String,
    },
}

/// Two types that differ as a whole are said already.
fn reason_in_parentheses(why: &Incompatible) -> String {
    match (why.within.is_empty(), &why.why) {
        (true, super::compatible::Mismatch::Type { .. }) => String::new(),
        _ => format!(" ({why})"),
    }
}

fn name_or_none(name: &Option<String>) -> &str {
    name.as_deref().unwrap_or("none")
}
