//! How a fragment is evaluated: its relations as steps behind each other, and how the rows of each are found.

use std::sync::Arc;

use lightcone_table::RangeBounds;
use lightcone_types::ColId;

use crate::condition::ColumnAt;
use crate::predicate::Predicate;
use crate::scalar::Scalar;

/// A part of the key of an index.
#[derive(Clone, Debug)]
pub(crate) enum KeyPart {
    /// In BSATN.
    Constant(Box<[u8]>),
    /// Of a relation that is read before.
    Column(ColumnAt),
}

/// How the rows of a relation are found.
#[derive(Clone, Debug)]
pub(crate) enum Access {
    Scan,
    /// All rows with a key.
    Point {
        index: usize,
        key: Vec<KeyPart>,
    },
    /// The rows whose keys begin with some values, and may have bounds behind them.
    Range {
        index: usize,
        prefix: Vec<KeyPart>,
        /// Of the next column, as [`RangeBounds`] wants it.
        start: Box<[u8]>,
        end: Box<[u8]>,
    },
    /// All rows are put into a hash table once, and found there by these columns: own ones, and those that they must equal.
    Hash {
        columns: Vec<(ColId, Scalar, ColumnAt)>,
    },
}

/// One relation, in the order in which they are read.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    pub relation: u16,
    pub access: Access,
    /// What must hold of the row alone.
    pub own: Option<Predicate>,
    /// What must hold of the row with those of the relations before it.
    pub joined: Option<Predicate>,
    /// How many rows there are for the rows of the relations before it, about.
    pub rows: f64,
    /// Rows that are looked at for them, and beside that once, for a hash table.
    pub looked_at: f64,
    pub built: f64,
    /// The group that begins here, and those that end here, from the innermost outwards.
    pub opens: Option<usize>,
    pub closes: Vec<usize>,
    /// The step to go back to when there are no more rows here.
    pub back: Option<usize>,
    /// One match is all that is wanted of it.
    pub is_once: bool,
    /// It is the last one, and each row that is found for it is a match.
    pub is_plain_end: bool,
}

/// What a group of relations does with the matches of those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GroupKind {
    /// `LEFT JOIN`: all its matches, or one without rows.
    Outer,
    /// Once, if it has a match.
    Exists,
    /// Once, if it has none.
    NotExists,
    /// Once, with rows if it has a match.
    Whether,
}

impl GroupKind {
    pub fn takes_match(self) -> bool {
        self != GroupKind::NotExists
    }

    pub fn takes_none(self) -> bool {
        self != GroupKind::Exists
    }

    /// Its first match settles it.
    pub fn is_once(self) -> bool {
        self != GroupKind::Outer
    }
}

/// Steps behind each other that are a `LEFT JOIN` or a subquery. Groups may stand in groups.
#[derive(Clone, Debug)]
pub(crate) struct Group {
    pub kind: GroupKind,
    /// Positions of steps.
    pub first: usize,
    pub last: usize,
    /// What must hold when it is known whether there is a match.
    pub after: Option<Predicate>,
}

/// How a fragment is evaluated for one caller, on tables of about the sizes that it was made for.
#[derive(Clone, Debug)]
pub(crate) struct Strategy {
    pub steps: Vec<Step>,
    pub groups: Vec<Group>,
    /// The subquery that the first steps are, if the query begins with one.
    pub leading: Option<Leading>,
    /// The step to go on with behind a match of all.
    pub end: usize,
    /// Nothing can match.
    pub is_never: bool,
}

/// The subquery that a query begins with.
#[derive(Clone, Debug)]
pub(crate) struct Leading {
    /// The positions of its first and its last step. Before it stand only subqueries that read nothing of the query.
    pub first: usize,
    pub last: usize,
    /// Its columns, and those around it that must equal them.
    pub own: Vec<ColumnAt>,
    pub around: Vec<ColumnAt>,
    /// It has one match at most.
    pub is_single: bool,
    /// How the rest is found when it has more values than can be kept.
    pub otherwise: Option<Arc<Strategy>>,
}

impl Access {
    /// The range of an index, if its prefix is this.
    pub fn range<'r>(&'r self, key: &'r [u8]) -> Option<RangeBounds<'r>> {
        match self {
            Access::Range {
                prefix, start, end, ..
            } => Some(RangeBounds {
                prefix: key,
                prefix_columns: prefix.len(),
                start,
                end,
            }),
            _ => None,
        }
    }
}

impl Strategy {
    /// The same, but that each match is looked at before it is visited.
    pub fn with_matches_checked(mut self) -> Strategy {
        if let Some(last) = self.steps.last_mut() {
            last.is_plain_end = false;
        }
        self
    }
}
