//! The kinds of differences, and how each reads.

use std::fmt;

use lightcone_types::{AlgebraicType, ColId};

use crate::table::TableAccess;

/// One difference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SchemaChange {
    TableAdded { table: String },
    TableRemoved { table: String },
    Table { table: String, change: TableChange },
    ViewAdded { view: String },
    ViewRemoved { view: String },
    View { view: String, change: ViewChange },
    RowLevelSecurityAdded { sql: String },
    RowLevelSecurityRemoved { sql: String },
}

/// What differs in a table that both definitions have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TableChange {
    Access {
        old: TableAccess,
        new: TableAccess,
    },
    PrimaryKey {
        old: Option<String>,
        new: Option<String>,
    },
    Accessor {
        old: String,
        new: String,
    },
    EventFlag {
        new: bool,
    },
    ColumnAdded {
        column: String,
        ty: AlgebraicType,
        has_default: bool,
    },
    ColumnRemoved {
        column: String,
    },
    ColumnMoved {
        column: String,
        old: ColId,
        new: ColId,
    },
    ColumnType {
        column: String,
        old: AlgebraicType,
        new: AlgebraicType,
    },
    ColumnAccessor {
        column: String,
        old: String,
        new: String,
    },
    IndexAdded {
        index: String,
    },
    IndexRemoved {
        index: String,
    },
    IndexAlgorithm {
        index: String,
        old: String,
        new: String,
    },
    IndexAccessor {
        index: String,
        old: Option<String>,
        new: Option<String>,
    },
    IndexSourceName {
        index: String,
        old: String,
        new: String,
    },
    ConstraintAdded {
        constraint: String,
        columns: Vec<String>,
    },
    ConstraintRemoved {
        constraint: String,
    },
    ConstraintColumns {
        constraint: String,
        old: Vec<String>,
        new: Vec<String>,
    },
    SequenceAdded {
        sequence: String,
        column: String,
    },
    SequenceRemoved {
        sequence: String,
    },
    SequenceChanged {
        sequence: String,
    },
    ScheduleAdded {
        function: String,
    },
    ScheduleRemoved {
        function: String,
    },
    ScheduleChanged {
        old: String,
        new: String,
    },
}

/// What differs in a view that both definitions have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ViewChange {
    /// Anonymous or not.
    Kind {
        new_is_anonymous: bool,
    },
    Access {
        new_is_public: bool,
    },
    PrimaryKey {
        old: Option<String>,
        new: Option<String>,
    },
    Columns {
        old: String,
        new: String,
    },
    Parameters {
        old: String,
        new: String,
    },
    Accessor {
        old: String,
        new: String,
    },
}

impl fmt::Display for SchemaChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SchemaChange::TableAdded { table } => write!(f, "table `{table}` is new"),
            SchemaChange::TableRemoved { table } => write!(f, "table `{table}` is gone"),
            SchemaChange::Table { table, change } => write!(f, "table `{table}`: {change}"),
            SchemaChange::ViewAdded { view } => write!(f, "view `{view}` is new"),
            SchemaChange::ViewRemoved { view } => write!(f, "view `{view}` is gone"),
            SchemaChange::View { view, change } => write!(f, "view `{view}`: {change}"),
            SchemaChange::RowLevelSecurityAdded { sql } => {
                write!(f, "row-level security rule `{sql}` is new")
            }
            SchemaChange::RowLevelSecurityRemoved { sql } => {
                write!(f, "row-level security rule `{sql}` is gone")
            }
        }
    }
}

impl fmt::Display for TableChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use TableChange as T;
        match self {
            T::Access { old, new } => write!(
                f,
                "access changes from {} to {}",
                old.as_str(),
                new.as_str()
            ),
            T::PrimaryKey { old, new } => {
                write!(
                    f,
                    "primary key changes from {} to {}",
                    name_or_none(old),
                    name_or_none(new)
                )
            }
            T::Accessor { old, new } => write!(f, "accessor name changes from `{old}` to `{new}`"),
            T::EventFlag { new: true } => write!(f, "becomes an event table"),
            T::EventFlag { new: false } => write!(f, "is no longer an event table"),
            T::ColumnAdded {
                column,
                ty,
                has_default,
            } => {
                let default = if *has_default { "with" } else { "without" };
                write!(
                    f,
                    "column `{column}` of type {ty} is new, {default} a default value"
                )
            }
            T::ColumnRemoved { column } => write!(f, "column `{column}` is gone"),
            T::ColumnMoved { column, old, new } => {
                write!(f, "column `{column}` moves from position {old} to {new}")
            }
            T::ColumnType { column, old, new } => {
                write!(f, "column `{column}` changes type from {old} to {new}")
            }
            T::ColumnAccessor { column, old, new } => {
                write!(
                    f,
                    "column `{column}`: accessor name changes from `{old}` to `{new}`"
                )
            }
            T::IndexAdded { index } => write!(f, "index `{index}` is new"),
            T::IndexRemoved { index } => write!(f, "index `{index}` is gone"),
            T::IndexAlgorithm { index, old, new } => {
                write!(f, "index `{index}` changes from {old} to {new}")
            }
            T::IndexAccessor { index, old, new } => write!(
                f,
                "index `{index}`: accessor name changes from {} to {}",
                name_or_none(old),
                name_or_none(new)
            ),
            T::IndexSourceName { index, old, new } => {
                write!(
                    f,
                    "index `{index}`: source name changes from `{old}` to `{new}`"
                )
            }
            T::ConstraintAdded {
                constraint,
                columns,
            } => {
                write!(
                    f,
                    "unique constraint `{constraint}` on ({}) is new",
                    columns.join(", ")
                )
            }
            T::ConstraintRemoved { constraint } => {
                write!(f, "unique constraint `{constraint}` is gone")
            }
            T::ConstraintColumns {
                constraint,
                old,
                new,
            } => write!(
                f,
                "unique constraint `{constraint}` changes from ({}) to ({})",
                old.join(", "),
                new.join(", ")
            ),
            T::SequenceAdded { sequence, column } => {
                write!(
                    f,
                    "auto-increment sequence `{sequence}` on column `{column}` is new"
                )
            }
            T::SequenceRemoved { sequence } => {
                write!(f, "auto-increment sequence `{sequence}` is gone")
            }
            T::SequenceChanged { sequence } => {
                write!(
                    f,
                    "auto-increment sequence `{sequence}` changes its column or parameters"
                )
            }
            T::ScheduleAdded { function } => write!(f, "becomes a scheduled table of `{function}`"),
            T::ScheduleRemoved { function } => {
                write!(f, "is no longer a scheduled table of `{function}`")
            }
            T::ScheduleChanged { old, new } => write!(f, "schedule changes from {old} to {new}"),
        }
    }
}

impl fmt::Display for ViewChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ViewChange::Kind {
                new_is_anonymous: true,
            } => write!(f, "becomes anonymous"),
            ViewChange::Kind {
                new_is_anonymous: false,
            } => write!(f, "is no longer anonymous"),
            ViewChange::Access {
                new_is_public: true,
            } => write!(f, "access changes from private to public"),
            ViewChange::Access {
                new_is_public: false,
            } => write!(f, "access changes from public to private"),
            ViewChange::PrimaryKey { old, new } => {
                write!(
                    f,
                    "primary key changes from {} to {}",
                    name_or_none(old),
                    name_or_none(new)
                )
            }
            ViewChange::Columns { old, new } => write!(f, "columns change from {old} to {new}"),
            ViewChange::Parameters { old, new } => {
                write!(f, "parameters change from {old} to {new}")
            }
            ViewChange::Accessor { old, new } => {
                write!(f, "accessor name changes from `{old}` to `{new}`")
            }
        }
    }
}

fn name_or_none(name: &Option<String>) -> String {
    name.as_ref()
        .map_or_else(|| "none".to_owned(), |name| format!("`{name}`"))
}
