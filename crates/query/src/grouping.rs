//! Groups and orders of a checked query.

use std::sync::Arc;

use lightcone_schema::{ColumnSchema, TableAccess, TableKind, TableSchema};
use lightcone_table::RowLayout;
use lightcone_types::{AlgebraicType, Identity, TableId};

use crate::condition::{ColumnAt, Condition};
use crate::predicate::{Predicate, PredicateCompiler};
use crate::scalar::Scalar;

/// How the values of a column become one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Aggregate {
    Count,
    Sum(Scalar),
    Min(Scalar),
    Max(Scalar),
    Average(Scalar),
}

/// A value of a group.
#[derive(Clone, Debug)]
pub(crate) enum GroupItem {
    /// The value that its rows have in common: a position among the keys.
    Key(usize),
    Aggregate {
        aggregate: Aggregate,
        /// None counts rows.
        column: Option<ColumnAt>,
        /// There may be no rows, and so no value.
        is_optional: bool,
    },
}

impl GroupItem {
    pub fn is_count(&self) -> bool {
        let aggregate = match self {
            GroupItem::Key(_) => None,
            GroupItem::Aggregate { aggregate, .. } => Some(*aggregate),
        };
        aggregate == Some(Aggregate::Count)
    }
}

/// Rows in groups, each of which becomes one.
#[derive(Clone, Debug)]
pub struct Grouping {
    /// Columns, and whether each may have no row.
    pub(crate) keys: Vec<(ColumnAt, bool)>,
    pub(crate) items: Vec<GroupItem>,
    /// The items as the columns of a table of groups. Those behind the first `shown` are for `HAVING` and `ORDER BY`.
    pub(crate) row: Arc<TableSchema>,
    pub(crate) shown: usize,
    /// On that table.
    pub(crate) having: Option<Arc<Condition>>,
}

impl Grouping {
    /// Its aggregates, each with the column that it is of.
    pub(crate) fn aggregates(&self) -> impl Iterator<Item = (Aggregate, Option<ColumnAt>)> + '_ {
        self.items.iter().filter_map(|item| match item {
            GroupItem::Key(_) => None,
            GroupItem::Aggregate {
                aggregate, column, ..
            } => Some((*aggregate, *column)),
        })
    }

    /// What `HAVING` says of the rows of groups, for this caller.
    pub(crate) fn having(&self, layout: &RowLayout, sender: &Identity) -> Option<Predicate> {
        let bound = self.having.as_ref()?.bind(sender);
        PredicateCompiler::new(&bound, vec![layout]).compile(&bound.conjuncts)
    }

    /// One group of all rows, with their number under this name.
    pub(crate) fn count(name: &str) -> Grouping {
        let column = ColumnSchema {
            name: name.to_owned(),
            accessor: None,
            ty: AlgebraicType::U64,
        };
        Grouping {
            keys: Vec::new(),
            items: vec![GroupItem::Aggregate {
                aggregate: Aggregate::Count,
                column: None,
                is_optional: false,
            }],
            row: Arc::new(table_of_groups(vec![column])),
            shown: 1,
            having: None,
        }
    }
}

/// What rows are sorted by: a column that is read, or one that comes out of groups.
#[derive(Clone, Debug)]
pub(crate) struct Order {
    pub by: OrderKey,
    pub descending: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OrderKey {
    Column(ColumnAt),
    /// Position among the columns of the result, hidden ones of groups included.
    Result(usize),
}

/// The rows of groups as those of a table, so that conditions on them are checked like all others.
pub(crate) fn table_of_groups(columns: Vec<ColumnSchema>) -> TableSchema {
    TableSchema {
        id: TableId(0),
        name: String::new(),
        accessor: None,
        columns,
        primary_key: None,
        indexes: Vec::new(),
        constraints: Vec::new(),
        sequences: Vec::new(),
        schedule: None,
        outbox: None,
        access: TableAccess::Public,
        kind: TableKind::User,
        is_event: false,
        view: None,
    }
}
