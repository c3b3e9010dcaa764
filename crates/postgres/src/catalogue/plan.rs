//! A question whose names are bound to places, and whose types are known.

use std::sync::Arc;

use super::functions::{Aggregate, Function, Series};
use super::patterns::Pattern;
use super::values::{Type, Value};

/// Names and types of columns, in their order.
pub(super) type Columns = Vec<(String, Type)>;

pub(super) struct Plan {
    pub columns: Columns,
    pub body: Body,
    /// It stands in no other question, so it means no columns of one.
    pub is_closed: bool,
    pub others: Vec<(SetOperation, Plan)>,
    pub order: Vec<SortKey>,
    pub limit: Option<Bound>,
    pub offset: Option<Bound>,
}

impl Plan {
    /// One whose rows come out as they are made.
    pub fn new(columns: Columns, body: Body, is_closed: bool) -> Plan {
        Plan {
            columns,
            body,
            is_closed,
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

pub(super) enum Body {
    Core(Box<CorePlan>),
    Values(Vec<Vec<Bound>>),
    Nested(Box<Plan>),
}

#[derive(Default)]
pub(super) struct CorePlan {
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
pub(super) struct Step {
    pub source: PlanSource,
    pub keeps_left: bool,
    pub keeps_right: bool,
    pub start: usize,
    pub width: usize,
    pub on: Vec<Condition>,
}

pub(super) enum PlanSource {
    Rows(Arc<Vec<Vec<Value>>>),
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

pub(super) struct Condition {
    pub bound: Bound,
    /// It can be looked at when so many columns are there.
    pub needs: usize,
}

pub(super) struct SortKey {
    pub at: usize,
    pub is_descending: bool,
    pub nulls_first: bool,
}

/// What is computed for a row, or for a group, besides its columns.
pub(super) enum Extra {
    Aggregate {
        aggregate: Aggregate,
        arguments: Vec<Bound>,
        is_distinct: bool,
        order: Vec<(Bound, bool)>,
        filter: Option<Bound>,
    },
    RowNumber {
        partition: Vec<Bound>,
        order: Vec<(Bound, bool)>,
    },
    Series {
        series: Series,
        arguments: Vec<Bound>,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SetOperation {
    Union,
    UnionAll,
    Except,
    Intersect,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operator {
    Equal,
    Unequal,
    Less,
    AtMost,
    Greater,
    AtLeast,
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
    BitAnd,
    Concatenate,
    Like(Like),
}

/// A comparison of a text with a pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Like {
    pub is_not: bool,
    pub is_regular: bool,
    pub ignores_case: bool,
}

/// A function that is called.
#[derive(Clone, Copy)]
pub(super) struct Called(pub Function);

impl PartialEq for Called {
    fn eq(&self, other: &Called) -> bool {
        std::ptr::fn_addr_eq(self.0, other.0)
    }
}

/// An expression.
#[derive(PartialEq)]
pub(super) enum Bound {
    Constant(Value),
    /// A column of this question, or of one around it.
    Column {
        up: usize,
        at: usize,
    },
    Extra(usize),
    Call(Called, Vec<Bound>),
    Not(Box<Bound>),
    Negative(Box<Bound>),
    And(Vec<Bound>),
    Or(Vec<Bound>),
    Binary(Operator, Box<(Bound, Bound)>),
    /// With a pattern that does not change.
    Matches(Box<Bound>, Like, Pattern),
    IsNull(Box<Bound>),
    IsSame(Box<(Bound, Bound)>),
    InList(Box<Bound>, Vec<Bound>),
    InSelect(Box<Bound>, Arc<Plan>),
    Any(Operator, Box<(Bound, Bound)>),
    All(Operator, Box<(Bound, Bound)>),
    Case {
        operand: Option<Box<Bound>>,
        branches: Vec<(Bound, Bound)>,
        otherwise: Option<Box<Bound>>,
    },
    Cast(Box<Bound>, Type, Type),
    Exists(Arc<Plan>),
    Scalar(Arc<Plan>),
    ArrayOfSelect(Arc<Plan>),
    Array(Vec<Bound>),
    Element(Box<(Bound, Bound)>),
}

impl Bound {
    /// Visits what it consists of. False: it has a question inside, of which nothing is visited.
    pub fn each<'b>(&'b self, visit: &mut dyn FnMut(&'b Bound)) -> bool {
        match self {
            Bound::Constant(_) | Bound::Column { .. } | Bound::Extra(_) => {}
            Bound::Call(_, list) | Bound::And(list) | Bound::Or(list) | Bound::Array(list) => {
                list.iter().for_each(visit);
            }
            Bound::Not(one)
            | Bound::Negative(one)
            | Bound::Matches(one, ..)
            | Bound::IsNull(one)
            | Bound::Cast(one, ..) => visit(one),
            Bound::Binary(_, two) | Bound::Any(_, two) | Bound::All(_, two) => {
                visit(&two.0);
                visit(&two.1);
            }
            Bound::IsSame(two) | Bound::Element(two) => {
                visit(&two.0);
                visit(&two.1);
            }
            Bound::InList(one, list) => {
                visit(one);
                list.iter().for_each(visit);
            }
            Bound::Case {
                operand,
                branches,
                otherwise,
            } => {
                operand.iter().for_each(|one| visit(one));
                for (condition, value) in branches {
                    visit(condition);
                    visit(value);
                }
                otherwise.iter().for_each(|one| visit(one));
            }
            Bound::InSelect(..) | Bound::Exists(_) | Bound::Scalar(_) | Bound::ArrayOfSelect(_) => {
                return false;
            }
        }
        true
    }

    /// How many columns have to be there before it can be looked at. None: it has a question inside.
    pub fn needs(&self) -> Option<usize> {
        if let Bound::Column { up: 0, at } = self {
            return Some(at + 1);
        }
        let mut needs = Some(0);
        let is_plain = self.each(&mut |inner| {
            needs = needs.and_then(|so_far: usize| Some(so_far.max(inner.needs()?)));
        });
        needs.filter(|_| is_plain)
    }
}
