//! What the parser makes of a text: names are not resolved, nothing has a type.

use std::ops::Range;

use crate::lexer::Comparison;

/// Position of an [`Expression`] in its [`Expressions`].
pub(crate) type ExpressionId = u32;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Expression {
    /// Converted to the type of the column that it meets.
    Literal(Value),
    /// `:sender`
    Sender,
    Column(ColumnName),
    Compare(Comparison, ExpressionId, ExpressionId),
    And(ExpressionId, ExpressionId),
    Or(ExpressionId, ExpressionId),
    Not(ExpressionId),
    /// A column is like a pattern.
    Like(ExpressionId, String),
    /// A column has no value.
    IsNull(ExpressionId),
    /// A subquery has a row. Not of the reference's language, as all that follows.
    Exists(Box<Select>),
    /// A column is among the values of a subquery's only column.
    InSelect(ExpressionId, Box<Select>),
}

/// A column as written: `relation` is dot-joined.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ColumnName {
    pub relation: Option<String>,
    pub name: String,
}

/// An expression tree in one vector: operands stand before what uses them, the root stands last.
///
/// Trees of hostile texts are thousands deep, so nothing here or later walks them by recursion.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Expressions(pub Vec<Expression>);

impl Expressions {
    pub fn push(&mut self, expression: Expression) -> ExpressionId {
        self.0.push(expression);
        // A text of `QUERY_BYTES_MAX` has fewer tokens than that, and no token makes two expressions.
        (self.0.len() - 1) as ExpressionId
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TableRef {
    /// As written, dot-joined.
    pub name: String,
    /// What columns call it: the alias, or the name.
    pub alias: String,
    /// In parentheses behind the name: those of a view.
    pub arguments: Vec<Value>,
    /// With parentheses, how it is written.
    pub call: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Join {
    pub table: TableRef,
    /// The two columns of `ON`; without them, a cross product.
    pub on: Option<(ColumnName, ColumnName)>,
    /// `LEFT JOIN`: what has no partner comes without one. Not of the reference's language.
    pub outer: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Projection {
    /// `*`
    Star,
    /// `relation.*`
    RelationStar(String),
    /// Columns and aggregates. The reference's language has only columns, or `COUNT(*) AS alias`.
    Items(Vec<SelectItem>),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SelectItem {
    Column(ColumnItem),
    Aggregate(AggregateName, String),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Function {
    Count,
    Sum,
    Min,
    Max,
    Avg,
}

impl Function {
    const NAMES: [(Function, &'static str); 5] = [
        (Function::Count, "count"),
        (Function::Sum, "sum"),
        (Function::Min, "min"),
        (Function::Max, "max"),
        (Function::Avg, "avg"),
    ];

    pub fn of(name: &str) -> Option<Function> {
        let is_it = |(_, known): &&(Function, &str)| known.eq_ignore_ascii_case(name);
        let found = Function::NAMES.iter().find(is_it);
        found.map(|(function, _)| *function)
    }

    pub fn name(self) -> &'static str {
        Function::NAMES[self as usize].1
    }
}

/// An aggregate as written: `COUNT(*)` has no column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AggregateName {
    pub function: Function,
    pub column: Option<ColumnName>,
}

impl AggregateName {
    /// A name for the column that it is, the same however it was written. No column of a table is called so.
    pub fn text(&self) -> String {
        let function = self.function.name();
        match &self.column {
            None => format!("{function}(*)"),
            Some(ColumnName { relation, name }) => {
                let relation = relation.iter().map(|relation| format!("{relation}."));
                format!("{function}({}{name})", relation.collect::<String>())
            }
        }
    }
}

/// What rows are sorted by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OrderItem {
    pub target: OrderTarget,
    pub descending: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum OrderTarget {
    /// A result column, counted from 1.
    Position(usize),
    Column(ColumnName),
    Aggregate(AggregateName),
}

/// The clauses of a query that the reference does not have.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Shape {
    pub distinct: bool,
    pub group_by: Vec<ColumnName>,
    /// Aggregates in it are columns called by their [`AggregateName::text`].
    pub having: Option<Expressions>,
    pub having_aggregates: Vec<AggregateName>,
    pub order_by: Vec<OrderItem>,
    pub offset: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ColumnItem {
    pub column: ColumnName,
    pub alias: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Select {
    pub projection: Projection,
    pub from: TableRef,
    pub joins: Vec<Join>,
    pub condition: Option<Expressions>,
    /// The number after `LIMIT` as written.
    pub limit: Option<String>,
    /// What stands behind `AS OF`, and where in the text the clause is. Not of the reference's language.
    pub as_of: Option<(String, Range<usize>)>,
    pub shape: Shape,
}

/// What a literal is written as. Where values are written, unlike in conditions, that matters (08 §4.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ValueKind {
    Bool,
    Number,
    Text,
    Hex,
}

/// A literal as written (08 §4).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Value {
    pub kind: ValueKind,
    /// A number with its sign, the content of a string, the digits of a hex literal; `TRUE` or `FALSE` of a Bool.
    pub text: String,
}

/// A statement that changes rows of a table, as written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Write {
    pub table: String,
    pub change: Change,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// Columns and tuples.
    Insert(Option<Vec<String>>, Vec<Vec<Value>>),
    /// Columns, dot-joined if they were qualified, with their values, and a condition.
    Update(Vec<(String, Value)>, Option<Expressions>),
    Delete(Option<Expressions>),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Statement {
    Select(Box<Select>),
    /// A query whose plan is wanted.
    Explain(Box<Select>),
    Write(Write),
    /// A variable and its new value.
    Set(String, Value),
    Show(String),
}
