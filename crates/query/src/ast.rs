//! What the parser makes of a text: names are not resolved, nothing has a type.

use crate::dml::{Value, Write};
use crate::lexer::Comparison;

/// A literal as written (08 §4).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Literal {
    Bool(bool),
    /// The text that is converted to the type of the column it meets: a number with its sign, the content of a string,
    /// the digits of a hex literal.
    Text(String),
}

/// Position of an [`Expression`] in its [`Expressions`].
pub(crate) type ExpressionId = u32;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Expression {
    Literal(Literal),
    /// `:sender`
    Sender,
    Column(ColumnName),
    Compare(Comparison, ExpressionId, ExpressionId),
    And(ExpressionId, ExpressionId),
    Or(ExpressionId, ExpressionId),
    Not(ExpressionId),
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
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Join {
    pub table: TableRef,
    /// The two columns of `ON`; without them, a cross product.
    pub on: Option<(ColumnName, ColumnName)>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Projection {
    /// `*`
    Star,
    /// `relation.*`
    RelationStar(String),
    Columns(Vec<ColumnItem>),
    /// `COUNT(*) AS alias`
    Count(String),
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
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Statement {
    Select(Box<Select>),
    Write(Write),
    /// A variable and its new value.
    Set(String, Value),
    Show(String),
}
