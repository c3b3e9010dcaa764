//! Names and types of a condition (08 §3, §6).

use std::cmp::Ordering;
use std::collections::HashMap;
use std::sync::Arc;

use lightcone_schema::TableSchema;
use lightcone_types::AlgebraicType;

use crate::ast::{ColumnName, Expression, ExpressionId, Expressions, Literal};
use crate::condition::{ColumnAt, Condition, Constant, Node, NodeId, SenderAs};
use crate::error::{SqlError, RELATIONS_MAX};
use crate::lexer::Comparison;
use crate::literal;
use crate::scalar::Scalar;

/// The relations that names can refer to, in the order in which they are joined.
pub(crate) struct Scope {
    relations: Vec<Arc<TableSchema>>,
    by_alias: HashMap<String, usize>,
    /// By relation: it may have no row.
    optional: Vec<bool>,
    /// Columns must say which relation they are of.
    qualified_only: bool,
}

impl Scope {
    pub fn new(qualified_only: bool) -> Scope {
        Scope {
            relations: Vec::new(),
            by_alias: HashMap::new(),
            optional: Vec::new(),
            qualified_only,
        }
    }

    pub fn add(&mut self, alias: &str, table: Arc<TableSchema>) -> Result<(), SqlError> {
        if self.relations.len() >= RELATIONS_MAX {
            return Err(SqlError::TooManyRelations);
        }
        if self
            .by_alias
            .insert(alias.to_owned(), self.relations.len())
            .is_some()
        {
            return Err(SqlError::DuplicateName(alias.to_owned()));
        }
        self.relations.push(table);
        self.optional.push(false);
        Ok(())
    }

    pub fn relation(&self, alias: &str) -> Result<usize, SqlError> {
        self.by_alias
            .get(alias)
            .copied()
            .ok_or_else(|| SqlError::NotInScope(alias.to_owned()))
    }

    /// The last relation may have no row.
    pub fn last_is_optional(&mut self) {
        if let Some(last) = self.optional.last_mut() {
            *last = true;
        }
    }

    pub fn is_optional(&self, relation: u16) -> bool {
        self.optional[usize::from(relation)]
    }

    pub fn has_optional(&self) -> bool {
        self.optional.contains(&true)
    }

    /// The type of a column in a result: an option, if the relation may have no row.
    pub fn result_type(&self, at: ColumnAt) -> AlgebraicType {
        let ty = self.type_at(at).clone();
        match self.is_optional(at.relation) && ty.as_option().is_none() {
            true => AlgebraicType::option(ty),
            false => ty,
        }
    }

    pub fn table(&self, relation: u16) -> &Arc<TableSchema> {
        &self.relations[usize::from(relation)]
    }

    /// The tables, in the order in which they are joined.
    pub fn into_tables(self) -> Vec<Arc<TableSchema>> {
        self.relations
    }

    pub fn tables(&self) -> &[Arc<TableSchema>] {
        &self.relations
    }

    pub fn type_at(&self, at: ColumnAt) -> &AlgebraicType {
        let table = &self.relations[usize::from(at.relation)];
        &table
            .column(at.column)
            .expect("it was found by its name")
            .ty
    }

    pub fn len(&self) -> usize {
        self.relations.len()
    }

    pub fn column(&self, name: &ColumnName) -> Result<ColumnRef<'_>, SqlError> {
        let relation = match &name.relation {
            Some(alias) => self.relation(alias)?,
            None if self.qualified_only => return Err(SqlError::UnqualifiedName),
            None => 0,
        };
        let table = &self.relations[relation];
        let column = table.column_by_accessor_or_name(&name.name);
        match column.and_then(|id| table.column(id).map(|schema| (id, schema))) {
            Some((column, schema)) => Ok(ColumnRef {
                at: ColumnAt {
                    relation: relation as u16,
                    column,
                },
                ty: &schema.ty,
            }),
            None => Err(SqlError::NotInScope(name.name.clone())),
        }
    }

    /// The two columns of an `ON`: of different relations, of one comparable type.
    pub fn check_join(
        &self,
        left: &ColumnName,
        right: &ColumnName,
    ) -> Result<(ColumnAt, ColumnAt, Scalar), SqlError> {
        let (left, right) = (self.column(left)?, self.column(right)?);
        if left.at.relation == right.at.relation {
            return Err(SqlError::NonInnerJoin);
        }
        expect_equal(right.ty, left.ty)?;
        let scalar = comparable(Comparison::Equal, left.ty)?;
        Ok((left.at, right.at, scalar))
    }
}

#[derive(Clone, Copy)]
pub(crate) struct ColumnRef<'a> {
    pub at: ColumnAt,
    pub ty: &'a AlgebraicType,
}

fn unexpected(expected: &AlgebraicType, inferred: &AlgebraicType) -> SqlError {
    SqlError::UnexpectedType {
        expected: expected.type_name(),
        inferred: inferred.type_name(),
    }
}

fn expect_equal(actual: &AlgebraicType, expected: &AlgebraicType) -> Result<(), SqlError> {
    if actual == expected {
        Ok(())
    } else {
        Err(unexpected(actual, expected))
    }
}

fn comparable(operator: Comparison, ty: &AlgebraicType) -> Result<Scalar, SqlError> {
    Scalar::of(ty).ok_or_else(|| SqlError::InvalidOperator {
        operator: operator.as_str(),
        ty: ty.type_name(),
    })
}

/// An expression with its type, as far as it has one by itself.
enum Typed<'a> {
    /// A literal other than a Bool.
    Text(&'a str),
    Bool(bool),
    Sender,
    Column(ColumnRef<'a>),
    /// A comparison or a connective.
    Truth(NodeId),
}

/// A side of a comparison when its type is known.
enum Side {
    Constant(Constant),
    Column(ColumnAt),
    Truth(NodeId),
}

struct Checker<'a> {
    scope: &'a Scope,
    identity_type: AlgebraicType,
    typed: Vec<Typed<'a>>,
    nodes: Vec<Node>,
}

/// Checks a condition. `:sender` stays a parameter.
pub(crate) fn check_condition(
    expressions: &Expressions,
    scope: &Scope,
) -> Result<Condition, SqlError> {
    let mut checker = Checker {
        scope,
        identity_type: AlgebraicType::identity(),
        typed: Vec::with_capacity(expressions.0.len()),
        nodes: Vec::new(),
    };
    for expression in &expressions.0 {
        let typed = checker.expression(expression)?;
        checker.typed.push(typed);
    }
    if let Some(root) = expressions.0.len().checked_sub(1) {
        checker.truth(root as ExpressionId)?;
    }
    Ok(Condition::new(checker.nodes))
}

impl<'a> Checker<'a> {
    fn push(&mut self, node: Node) -> NodeId {
        self.nodes.push(node);
        (self.nodes.len() - 1) as NodeId
    }

    fn expression(&mut self, expression: &'a Expression) -> Result<Typed<'a>, SqlError> {
        let node = match expression {
            Expression::Literal(Literal::Text(text)) => return Ok(Typed::Text(text)),
            Expression::Literal(Literal::Bool(value)) => return Ok(Typed::Bool(*value)),
            Expression::Sender => return Ok(Typed::Sender),
            Expression::Column(name) => return self.scope.column(name).map(Typed::Column),
            Expression::Compare(comparison, left, right) => {
                return self.compare(*comparison, *left, *right)
            }
            Expression::Like(column, pattern) => self.like(*column, pattern)?,
            Expression::IsNull(column) => self.is_null(*column)?,
            Expression::And(left, right) => Node::And(self.truth(*left)?, self.truth(*right)?),
            Expression::Or(left, right) => Node::Or(self.truth(*left)?, self.truth(*right)?),
            Expression::Not(inner) => Node::Not(self.truth(*inner)?),
        };
        Ok(Typed::Truth(self.push(node)))
    }

    fn like(&self, column: ExpressionId, pattern: &str) -> Result<Node, SqlError> {
        match &self.typed[column as usize] {
            Typed::Column(column) if *column.ty == AlgebraicType::String => Ok(Node::Like {
                column: column.at,
                pattern: pattern.into(),
            }),
            _ => Err(SqlError::InvalidOperator {
                operator: "LIKE",
                ty: self.own_type(column)?.type_name(),
            }),
        }
    }

    /// Only an option may have no value. An option without a value is one byte.
    fn is_null(&self, column: ExpressionId) -> Result<Node, SqlError> {
        match &self.typed[column as usize] {
            Typed::Column(column) if self.scope.is_optional(column.at.relation) => {
                Ok(Node::IsNull {
                    column: column.at,
                    is_option: column.ty.as_option().is_some(),
                })
            }
            Typed::Column(column) if column.ty.as_option().is_some() => Ok(Node::ColumnConstant {
                column: column.at,
                scalar: Scalar::U8,
                comparison: Comparison::Equal,
                constant: Constant::Value([1].into()),
            }),
            _ => Ok(Node::Constant(false)),
        }
    }

    /// The node of an expression that must be a Bool.
    fn truth(&mut self, id: ExpressionId) -> Result<NodeId, SqlError> {
        let side = self.with_type(id, &AlgebraicType::Bool)?;
        Ok(self.truth_of_side(side))
    }

    fn truth_of_side(&mut self, side: Side) -> NodeId {
        match side {
            Side::Truth(node) => node,
            Side::Constant(constant) => {
                self.push(Node::Constant(constant == Constant::Value([1].into())))
            }
            Side::Column(column) => self.push(Node::ColumnConstant {
                column,
                scalar: Scalar::U8,
                comparison: Comparison::Equal,
                constant: Constant::Value([1].into()),
            }),
        }
    }

    /// The type an expression has without any expectation.
    fn own_type(&self, id: ExpressionId) -> Result<AlgebraicType, SqlError> {
        match &self.typed[id as usize] {
            Typed::Text(_) => Err(SqlError::UntypedLiteral),
            Typed::Bool(_) | Typed::Truth(_) => Ok(AlgebraicType::Bool),
            Typed::Sender => Ok(self.identity_type.clone()),
            Typed::Column(column) => Ok(column.ty.clone()),
        }
    }

    /// An expression where a value of type `expected` belongs.
    fn with_type(&self, id: ExpressionId, expected: &AlgebraicType) -> Result<Side, SqlError> {
        match &self.typed[id as usize] {
            Typed::Text(text) => match literal::encode(text, expected) {
                Some(bsatn) => Ok(Side::Constant(Constant::Value(bsatn.into()))),
                None => Err(SqlError::InvalidLiteral {
                    text: (*text).to_owned(),
                    ty: expected.type_name(),
                }),
            },
            Typed::Bool(value) => {
                expect_equal(&AlgebraicType::Bool, expected)?;
                Ok(Side::Constant(Constant::Value([u8::from(*value)].into())))
            }
            Typed::Sender if expected.is_bytes() => {
                Ok(Side::Constant(Constant::Sender(SenderAs::Bytes)))
            }
            Typed::Sender => {
                expect_equal(&self.identity_type, expected)?;
                Ok(Side::Constant(Constant::Sender(SenderAs::Identity)))
            }
            Typed::Column(column) => {
                expect_equal(column.ty, expected)?;
                Ok(Side::Column(column.at))
            }
            Typed::Truth(node) => {
                expect_equal(&AlgebraicType::Bool, expected)?;
                Ok(Side::Truth(*node))
            }
        }
    }

    fn compare(
        &mut self,
        comparison: Comparison,
        left: ExpressionId,
        right: ExpressionId,
    ) -> Result<Typed<'a>, SqlError> {
        let left_is_constant = matches!(
            self.typed[left as usize],
            Typed::Text(_) | Typed::Bool(_) | Typed::Sender
        );
        let ty = self.own_type(if left_is_constant { right } else { left })?;
        let left = self.with_type(left, &ty)?;
        let right = self.with_type(right, &ty)?;
        let scalar = comparable(comparison, &ty)?;
        let node = match (left, right) {
            (Side::Constant(left), Side::Constant(right)) => {
                compare_constants(comparison, scalar, left, right)
            }
            (Side::Column(column), Side::Constant(constant)) => Node::ColumnConstant {
                column,
                scalar,
                comparison,
                constant,
            },
            (Side::Constant(constant), Side::Column(column)) => Node::ColumnConstant {
                column,
                scalar,
                comparison: comparison.flipped(),
                constant,
            },
            (Side::Column(left), Side::Column(right)) => Node::Columns {
                left,
                right,
                scalar,
                comparison,
            },
            // Of a row that is not there, a condition is neither true nor false.
            _ if self.scope.has_optional() => {
                return Err(SqlError::Inconsistent(
                    "queries with LEFT JOIN have no comparisons of conditions",
                ))
            }
            (left, right) => {
                let (left, right) = (self.truth_of_side(left), self.truth_of_side(right));
                Node::CompareTruths(comparison, left, right)
            }
        };
        Ok(Typed::Truth(self.push(node)))
    }
}

/// Two constants of one type.
fn compare_constants(
    comparison: Comparison,
    scalar: Scalar,
    left: Constant,
    right: Constant,
) -> Node {
    match (left, right) {
        (Constant::Value(left), Constant::Value(right)) => {
            let ordering = scalar
                .compare(&left, &right)
                .expect("both are values of the type");
            Node::Constant(comparison.holds(ordering))
        }
        // Of one type, so in one form.
        (Constant::Sender(_), Constant::Sender(_)) => {
            Node::Constant(comparison.holds(Ordering::Equal))
        }
        (Constant::Sender(form), Constant::Value(constant)) => Node::SenderConstant {
            form,
            scalar,
            comparison,
            constant,
        },
        (Constant::Value(constant), Constant::Sender(form)) => Node::SenderConstant {
            form,
            scalar,
            comparison: comparison.flipped(),
            constant,
        },
    }
}
