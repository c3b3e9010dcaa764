//! Names and types of a condition (08 §3, §6), and values where one is written (08 §4.2).

use std::cmp::Ordering;

use lightcone_types::{AlgebraicType, SpecialProduct};

use crate::ast::{ColumnName, Expression, ExpressionId, Expressions, Select, Value, ValueKind};
use crate::condition::{ColumnAt, Condition, Constant, Node, NodeId, SenderAs, Test};
use crate::error::{Result, SqlError};
use crate::lexer::Comparison;
use crate::literal;
use crate::scalar::Scalar;
use crate::scope::Scope;

/// The error for a value of type `inferred` where one of type `expected` belongs.
pub(crate) fn unexpected(expected: &AlgebraicType, inferred: &AlgebraicType) -> SqlError {
    SqlError::UnexpectedType {
        expected: expected.type_name(),
        inferred: inferred.type_name(),
    }
}

fn expect_equal(actual: &AlgebraicType, expected: &AlgebraicType) -> Result<()> {
    if actual == expected {
        Ok(())
    } else {
        Err(unexpected(actual, expected))
    }
}

fn comparable(operator: Comparison, ty: &AlgebraicType) -> Result<Scalar> {
    Scalar::of(ty).ok_or_else(|| SqlError::InvalidOperator {
        operator: operator.as_str(),
        ty: ty.type_name(),
    })
}

/// The two columns of an `ON`: of different relations, of one comparable type.
pub(crate) fn check_join(
    scope: &Scope,
    left: &ColumnName,
    right: &ColumnName,
) -> Result<(ColumnAt, ColumnAt, Scalar)> {
    let (left, right) = (scope.column(left)?, scope.column(right)?);
    if left.at.relation == right.at.relation {
        return Err(SqlError::NonInnerJoin);
    }
    expect_equal(right.ty, left.ty)?;
    let scalar = comparable(Comparison::Equal, left.ty)?;
    Ok((left.at, right.at, scalar))
}

/// An expression with its type, as far as it has one by itself.
#[derive(Clone, Copy)]
enum Typed<'a> {
    /// A literal other than a Bool.
    Text(&'a str),
    Bool(bool),
    Sender,
    Column(ColumnAt),
    /// A comparison or a connective.
    Truth(NodeId),
}

/// A side of a comparison when its type is known.
enum Side {
    Constant(Constant),
    Column(ColumnAt),
    Truth(NodeId),
}

/// A checked subquery.
pub(crate) struct CheckedSubquery {
    pub relations: Vec<u16>,
    pub condition: Condition,
    /// Of its select list, if that is one column.
    pub column: Option<ColumnAt>,
}

/// Checks a subquery, and adds its relations to the scope.
pub(crate) type CheckSubquery<'c> = dyn FnMut(&Select, &mut Scope) -> Result<CheckedSubquery> + 'c;

struct Checker<'a, 'c> {
    scope: &'a mut Scope,
    check_subquery: &'a mut CheckSubquery<'c>,
    identity_type: AlgebraicType,
    typed: Vec<Typed<'a>>,
    /// By expression: it stands under an odd number of `NOT`s.
    is_negated: Vec<bool>,
    condition: Condition,
}

/// Checks a condition without subqueries. `:sender` stays a parameter.
pub(crate) fn check_condition(expressions: &Expressions, scope: &mut Scope) -> Result<Condition> {
    check_with_subqueries(expressions, scope, &mut |_, _| {
        Err(SqlError::Subquery("subqueries stand in WHERE"))
    })
}

/// Checks a condition. `:sender` stays a parameter.
pub(crate) fn check_with_subqueries(
    expressions: &Expressions,
    scope: &mut Scope,
    check_subquery: &mut CheckSubquery<'_>,
) -> Result<Condition> {
    let mut checker = Checker {
        scope,
        check_subquery,
        identity_type: AlgebraicType::identity(),
        typed: Vec::with_capacity(expressions.0.len()),
        is_negated: negations(expressions),
        condition: Condition::default(),
    };
    for expression in &expressions.0 {
        let typed = checker.expression(expression)?;
        checker.typed.push(typed);
    }
    if let Some(root) = expressions.0.len().checked_sub(1) {
        let root = checker.truth(root as ExpressionId)?;
        checker.condition.add_conjuncts(root);
    }
    Ok(checker.condition)
}

/// By expression: it stands under an odd number of `NOT`s. What uses an expression stands behind it.
fn negations(expressions: &Expressions) -> Vec<bool> {
    let mut is_negated = vec![false; expressions.0.len()];
    for (id, expression) in expressions.0.iter().enumerate().rev() {
        match expression {
            Expression::And(left, right) | Expression::Or(left, right) => {
                is_negated[*left as usize] = is_negated[id];
                is_negated[*right as usize] = is_negated[id];
            }
            Expression::Not(inner) => is_negated[*inner as usize] = !is_negated[id],
            _ => {}
        }
    }
    is_negated
}

impl<'a> Checker<'a, '_> {
    fn push(&mut self, node: Node) -> NodeId {
        self.condition.push(node)
    }

    fn expression(&mut self, expression: &'a Expression) -> Result<Typed<'a>> {
        let node = match expression {
            Expression::Literal(Value { kind, text }) => {
                return Ok(match kind {
                    ValueKind::Bool => Typed::Bool(text == "TRUE"),
                    _ => Typed::Text(text),
                })
            }
            Expression::Sender => return Ok(Typed::Sender),
            Expression::Column(name) => {
                return self
                    .scope
                    .column(name)
                    .map(|column| Typed::Column(column.at))
            }
            Expression::Compare(comparison, left, right) => {
                let (left, right) = (self.typed(*left), self.typed(*right));
                return self.compare(*comparison, left, right).map(Typed::Truth);
            }
            Expression::Exists(select) => {
                let subquery = (self.check_subquery)(select, self.scope)?;
                self.condition
                    .add_subquery(&subquery.condition, subquery.relations)
            }
            Expression::InSelect(left, select) => self.is_in(*left, select)?,
            Expression::Like(column, pattern) => self.like(*column, pattern)?,
            Expression::IsNull(column) => self.is_null(*column)?,
            Expression::And(left, right) => Node::And(self.truth(*left)?, self.truth(*right)?),
            Expression::Or(left, right) => Node::Or(self.truth(*left)?, self.truth(*right)?),
            Expression::Not(inner) => Node::Not(self.truth(*inner)?),
        };
        Ok(Typed::Truth(self.push(node)))
    }

    fn typed(&self, id: ExpressionId) -> Typed<'a> {
        self.typed[id as usize]
    }

    /// A column is among the values of a subquery: that has a match with an equal value.
    ///
    /// Where a row may be missing, a comparison may be neither true nor false. Then so is `IN`: nothing follows from it, nor
    /// from `NOT IN`. What is negated counts as true unless it is false.
    fn is_in(&mut self, left: ExpressionId, select: &Select) -> Result<Node> {
        let mut subquery = (self.check_subquery)(select, self.scope)?;
        let Some(column) = subquery.column else {
            return Err(SqlError::Subquery(
                "the subquery behind IN has one column in its select list",
            ));
        };
        let place = self.typed.len();
        let left = self.typed(left);
        let condition = std::mem::take(&mut self.condition);
        self.condition = std::mem::take(&mut subquery.condition);
        let mut holds = self.compare(Comparison::Equal, left, Typed::Column(column))?;
        let sides = match left {
            Typed::Column(left) => [Some(left), Some(column)],
            _ => [Some(column), None],
        };
        for side in sides.into_iter().flatten() {
            if self.is_negated[place] && self.scope.is_optional(side.relation) {
                let is_missing = self.push(Node::IsNull {
                    column: side,
                    is_option: false,
                });
                holds = self.push(Node::Or(holds, is_missing));
            }
        }
        self.condition.conjuncts.push(holds);
        subquery.condition = std::mem::replace(&mut self.condition, condition);
        let node = self
            .condition
            .add_subquery(&subquery.condition, subquery.relations);
        Ok(node)
    }

    fn like(&self, column: ExpressionId, pattern: &str) -> Result<Node> {
        match self.typed(column) {
            Typed::Column(column) if *self.scope.type_at(column) == AlgebraicType::String => {
                Ok(Node::Like {
                    column,
                    pattern: pattern.into(),
                })
            }
            other => Err(SqlError::InvalidOperator {
                operator: "LIKE",
                ty: self.own_type(other)?.type_name(),
            }),
        }
    }

    /// Only an option may have no value. An option without a value is one byte.
    fn is_null(&self, column: ExpressionId) -> Result<Node> {
        let Typed::Column(column) = self.typed(column) else {
            return Ok(Node::Constant(false));
        };
        let is_option = self.scope.type_at(column).as_option().is_some();
        if self.scope.is_optional(column.relation) {
            return Ok(Node::IsNull { column, is_option });
        }
        Ok(match is_option {
            true => is_true(column),
            false => Node::Constant(false),
        })
    }

    /// The node of an expression that must be a Bool.
    fn truth(&mut self, id: ExpressionId) -> Result<NodeId> {
        let side = self.with_type(self.typed(id), &AlgebraicType::Bool)?;
        Ok(self.truth_of_side(side))
    }

    fn truth_of_side(&mut self, side: Side) -> NodeId {
        match side {
            Side::Truth(node) => node,
            Side::Constant(constant) => {
                self.push(Node::Constant(constant == Constant::Value([1].into())))
            }
            Side::Column(column) => self.push(is_true(column)),
        }
    }

    /// The type an expression has without any expectation.
    fn own_type(&self, typed: Typed<'_>) -> Result<AlgebraicType> {
        match typed {
            Typed::Text(_) => Err(SqlError::UntypedLiteral),
            Typed::Bool(_) | Typed::Truth(_) => Ok(AlgebraicType::Bool),
            Typed::Sender => Ok(self.identity_type.clone()),
            Typed::Column(column) => Ok(self.scope.type_at(column).clone()),
        }
    }

    /// An expression where a value of type `expected` belongs.
    fn with_type(&self, typed: Typed<'_>, expected: &AlgebraicType) -> Result<Side> {
        match typed {
            Typed::Text(text) => match literal::encode(text, expected) {
                Some(bsatn) => Ok(Side::Constant(Constant::Value(bsatn.into()))),
                None => Err(SqlError::InvalidLiteral {
                    text: text.to_owned(),
                    ty: expected.type_name(),
                }),
            },
            Typed::Bool(value) => {
                expect_equal(&AlgebraicType::Bool, expected)?;
                Ok(Side::Constant(Constant::Value([u8::from(value)].into())))
            }
            Typed::Sender if expected.is_bytes() => {
                Ok(Side::Constant(Constant::Sender(SenderAs::Bytes)))
            }
            Typed::Sender => {
                // An identity is a number of 256 bits, and a bare one in system tables.
                if *expected != AlgebraicType::HASH {
                    expect_equal(&self.identity_type, expected)?;
                }
                Ok(Side::Constant(Constant::Sender(SenderAs::Identity)))
            }
            Typed::Column(column) => {
                expect_equal(self.scope.type_at(column), expected)?;
                Ok(Side::Column(column))
            }
            Typed::Truth(node) => {
                expect_equal(&AlgebraicType::Bool, expected)?;
                Ok(Side::Truth(node))
            }
        }
    }

    fn compare(
        &mut self,
        comparison: Comparison,
        left: Typed<'_>,
        right: Typed<'_>,
    ) -> Result<NodeId> {
        let left_is_constant = matches!(left, Typed::Text(_) | Typed::Bool(_) | Typed::Sender);
        let ty = self.own_type(if left_is_constant { right } else { left })?;
        let left = self.with_type(left, &ty)?;
        let right = self.with_type(right, &ty)?;
        let test = Test {
            scalar: comparable(comparison, &ty)?,
            comparison,
        };
        let node = match (left, right) {
            (Side::Constant(left), Side::Constant(right)) => compare_constants(test, left, right),
            (Side::Column(column), Side::Constant(constant)) => {
                Node::ColumnConstant(column, test, constant)
            }
            (Side::Constant(constant), Side::Column(column)) => {
                Node::ColumnConstant(column, test.flipped(), constant)
            }
            (Side::Column(left), Side::Column(right)) => Node::Columns(left, right, test),
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
        Ok(self.push(node))
    }
}

/// A Bool column is true; of an option, that it has no value.
fn is_true(column: ColumnAt) -> Node {
    let one = Constant::Value([1].into());
    Node::ColumnConstant(column, Test::equal(Scalar::BOOL), one)
}

/// Two constants of one type.
fn compare_constants(test: Test, left: Constant, right: Constant) -> Node {
    use Constant::{Sender, Value};
    match (left, right) {
        (Value(left), Value(right)) => test.holds(&left, &right),
        // Of one type, so in one form.
        (Sender(_), Sender(_)) => Node::Constant(test.comparison.holds(Ordering::Equal)),
        (Sender(form), Value(constant)) => Node::SenderConstant(form, test, constant),
        (Value(constant), Sender(form)) => Node::SenderConstant(form, test.flipped(), constant),
    }
}

/// A value as a `ty`, in BSATN.
pub(crate) fn encode_value(value: &Value, ty: &AlgebraicType) -> Result<Vec<u8>> {
    let own = match value.kind {
        ValueKind::Bool => Some(AlgebraicType::Bool),
        ValueKind::Text if !is_written_as_text(ty) => Some(AlgebraicType::String),
        ValueKind::Text | ValueKind::Number | ValueKind::Hex => None,
    };
    match own {
        Some(own) if own != *ty => return Err(unexpected(&own, ty)),
        Some(AlgebraicType::Bool) => return Ok(vec![u8::from(value.text == "TRUE")]),
        _ => {}
    }
    literal::encode(&value.text, ty).ok_or_else(|| SqlError::InvalidLiteral {
        text: value.text.clone(),
        ty: ty.type_name(),
    })
}

/// Types beside String that a string stands for. The reference takes strings for String only (08 §4.2, EXT).
pub(crate) fn is_written_as_text(ty: &AlgebraicType) -> bool {
    let is_special = |special: SpecialProduct| special.facts().literals.is_some();
    *ty == AlgebraicType::String || ty.is_bytes() || ty.special_product().is_some_and(is_special)
}
