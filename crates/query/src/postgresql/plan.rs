//! A question whose names are bound to places, and whose types are known.

use std::sync::Arc;

use lightcone_schema::TableSchema;
use lightcone_types::AlgebraicType;

use super::column_type::Type;
use super::functions::{Aggregate, Series};
use super::patterns::{Like, Pattern};
use super::session::VirtualTable;
use super::value::Value;
use crate::lexer::Comparison;

/// Names and types of columns, in their order.
pub type Columns = Vec<(String, Type)>;

pub struct Plan {
    pub columns: Columns,
    pub body: Body,
    /// It means no columns of a question around it, so it has the same rows wherever it stands.
    pub is_closed: bool,
    pub others: Vec<(SetOperation, Plan)>,
    pub order: Vec<SortKey>,
    pub limit: Option<Bound>,
    pub offset: Option<Bound>,
}

impl Plan {
    /// One whose rows come out as they are made.
    pub fn new(columns: Columns, body: Body) -> Plan {
        Plan {
            columns,
            body,
            is_closed: false,
            others: Vec::new(),
            order: Vec::new(),
            limit: None,
            offset: None,
        }
    }
}

/// A question is the same as itself only.
impl PartialEq for Plan {
    fn eq(&self, other: &Plan) -> bool {
        std::ptr::eq(self, other)
    }
}

pub enum Body {
    Core(Box<CorePlan>),
    Values(Vec<Vec<Bound>>),
    Nested(Box<Plan>),
}

#[derive(Default)]
pub struct CorePlan {
    pub steps: Vec<Step>,
    pub width: usize,
    pub filter: Vec<Condition>,
    /// Tables are read so that the filter holds.
    pub is_filtered_before: bool,
    pub is_grouped: bool,
    pub group: Vec<Bound>,
    pub having: Option<Bound>,
    pub extras: Vec<Extra>,
    /// What comes out, and behind it what only orders the rows and tells them apart.
    pub items: Vec<Bound>,
    /// Rows that agree in these are one.
    pub distinct: Option<Vec<usize>>,
}

/// What is read, behind the columns of the steps before it.
pub struct Step {
    pub source: Source,
    pub keeps_left: bool,
    pub keeps_right: bool,
    pub start: usize,
    pub width: usize,
    pub on: Vec<Condition>,
}

impl Step {
    /// Does what is read follow from the row before it?
    pub fn depends(&self) -> bool {
        self.source.depends(self.start)
    }

    /// The conditions that can be looked at from this step on.
    pub fn ripe<'f>(&self, filter: &'f [Condition]) -> Vec<&'f Condition> {
        let needed = self.start + 1..=self.start + self.width;
        filter
            .iter()
            .filter(|of| needed.contains(&of.needs))
            .collect()
    }
}

pub enum Source {
    Virtual(VirtualTable),
    /// A table of the module: where it is among those that are read.
    Stored(usize),
    Select {
        plan: Arc<Plan>,
        is_lateral: bool,
    },
    Function {
        series: Series,
        arguments: Vec<Bound>,
        is_numbered: bool,
    },
    Group(Vec<Step>),
}

impl Source {
    /// Does it follow from the first columns of the row, so many?
    pub fn depends(&self, start: usize) -> bool {
        match self {
            Source::Select { plan, is_lateral } => *is_lateral && !plan.is_closed,
            Source::Function { arguments, .. } => {
                arguments.iter().any(|bound| bound.is_of_first(start))
            }
            Source::Group(steps) => steps.iter().any(|step| step.source.depends(start)),
            Source::Virtual(_) | Source::Stored(_) => false,
        }
    }
}

pub struct Condition {
    pub bound: Bound,
    /// It can be looked at when so many columns are there.
    pub needs: usize,
}

#[derive(Clone, Copy)]
pub struct SortKey {
    pub at: usize,
    pub is_descending: bool,
    pub nulls_first: bool,
}

/// By what is sorted, whether it descends, and whether its NULLs come first.
pub type Sorted = (Bound, bool, bool);

/// What is computed for a row, or for a group, besides its columns.
pub enum Extra {
    Aggregate {
        aggregate: Aggregate,
        arguments: Vec<Bound>,
        is_distinct: bool,
        order: Vec<Sorted>,
        filter: Option<Bound>,
    },
    RowNumber {
        partition: Vec<Bound>,
        order: Vec<Sorted>,
    },
    Series {
        series: Series,
        arguments: Vec<Bound>,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetOperation {
    Union,
    UnionAll,
    Except,
    Intersect,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    Compare(Comparison),
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
    BitAnd,
    Concatenate,
    Like(Like),
}

impl Operator {
    pub const EQUAL: Operator = Operator::Compare(Comparison::Equal);
}

/// What is made of values that are all there.
#[derive(PartialEq)]
pub enum Call {
    /// By its number in the table of functions.
    Function(usize),
    OfSession(usize),
    Operator(Operator),
    Any(Operator),
    All(Operator),
    /// From a type to another.
    Cast(Type, Type),
    /// A text as a value of a type that keeps it.
    Typed(Arc<AlgebraicType>),
    Not,
    Negative,
    IsNull,
    IsSame,
    /// The first value is one of the others.
    In,
    Array,
    Row,
    Element,
}

/// What is made of the rows of a question that stands in an expression.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Made {
    Exists,
    Scalar,
    Array,
    /// A value is in one of them.
    Has,
}

/// What a statement does with rows of its table.
pub struct TableChange {
    pub table: Arc<TableSchema>,
    /// Of its columns.
    pub types: Vec<Arc<AlgebraicType>>,
    pub change: Change,
    /// What comes out for each changed row, if anything does.
    pub returning: Option<(Columns, Vec<Bound>)>,
}

/// What a statement does with the rows that its question gives.
pub enum Change {
    /// Of each a row is inserted: one value for each column of the table.
    Insert {
        values: Vec<Bound>,
        conflict: Option<Conflict>,
    },
    /// Each begins with a row of the table and its number. Behind them, from this place on, stand new values of columns.
    Update {
        columns: Vec<usize>,
        first: usize,
    },
    Delete,
}

/// What becomes of a row whose key another has.
pub struct Conflict {
    /// The unique indexes that are looked at, by their places.
    pub indexes: Vec<usize>,
    /// None: it is passed over.
    pub update: Option<Overwrite>,
}

/// How the row that is there is changed. Behind its columns stand those of the row that was to be inserted.
pub struct Overwrite {
    pub values: Vec<(usize, Bound)>,
    pub filter: Option<Bound>,
}

/// An expression.
#[derive(PartialEq)]
pub enum Bound {
    Constant(Value),
    /// A column of this question, or of one around it.
    Column {
        up: usize,
        at: usize,
    },
    Extra(usize),
    Call(Call, Vec<Bound>),
    And(Vec<Bound>),
    Or(Vec<Bound>),
    /// With a pattern that does not change.
    Matches(Box<Bound>, Like, Pattern),
    /// Conditions, each before what is made if it holds, and what is made if none does.
    Case(Option<Box<Bound>>, Vec<Bound>),
    Select(Made, Option<Box<Bound>>, Arc<Plan>),
}

impl Bound {
    pub fn call<const N: usize>(call: Call, arguments: [Bound; N]) -> Bound {
        Bound::Call(call, arguments.into())
    }

    /// The same, or its opposite.
    pub fn negated(self, is_not: bool) -> Bound {
        match is_not {
            true => Bound::call(Call::Not, [self]),
            false => self,
        }
    }

    /// What it consists of, without the question that it has inside.
    pub fn parts(&self) -> impl Iterator<Item = &Bound> {
        let (one, list) = match self {
            Bound::Constant(_) | Bound::Column { .. } | Bound::Extra(_) => (None, &[][..]),
            Bound::Call(_, list) | Bound::And(list) | Bound::Or(list) => (None, &list[..]),
            Bound::Matches(one, ..) => (Some(&**one), &[][..]),
            Bound::Case(one, list) => (one.as_deref(), &list[..]),
            Bound::Select(_, one, _) => (one.as_deref(), &[][..]),
        };
        one.into_iter().chain(list)
    }

    /// May it mean one of the first columns, so many?
    fn is_of_first(&self, columns: usize) -> bool {
        match self {
            Bound::Column { up: 0, at } => *at < columns,
            Bound::Select(..) => true,
            bound => bound.parts().any(|part| part.is_of_first(columns)),
        }
    }

    /// Does it mean columns of a question around this one, or else of this one?
    pub fn means(&self, is_around: bool) -> bool {
        match self {
            Bound::Column { up, .. } => (*up > 0) == is_around,
            // What the question inside means is not looked at.
            Bound::Select(..) => !is_around,
            bound => bound.parts().any(|part| part.means(is_around)),
        }
    }

    /// How many columns have to be there before it can be looked at. None: it has a question inside.
    pub fn needs(&self) -> Option<usize> {
        match self {
            Bound::Column { up: 0, at } => Some(at + 1),
            Bound::Select(..) => None,
            bound => bound
                .parts()
                .try_fold(0, |needs, part| Some(needs.max(part.needs()?))),
        }
    }
}
