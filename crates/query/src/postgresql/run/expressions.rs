//! The value of an expression.

use std::cmp::Ordering;
use std::sync::Arc;

use lightcone_types::AlgebraicType;

use super::super::column_type::Type;
use super::super::failure::{state, Done, Failure};
use super::super::functions::{call, malformed};
use super::super::patterns::{Like, Pattern};
use super::super::plan::*;
use super::super::value::{weight, List, Value};
use super::{Env, Runner};
use crate::lexer::Comparison;

/// Lists in each other, as PostgreSQL has them: their texts get longer with each.
const LISTS_NESTED_MAX: usize = 6;

impl Runner<'_> {
    /// A list, unless it is too large or too many are in each other.
    pub(super) fn list(&self, list: impl Into<List>) -> Done<Value> {
        let list = list.into();
        if list.depth() > LISTS_NESTED_MAX {
            let message = format!("more than {LISTS_NESTED_MAX} arrays are in each other");
            return Err(Failure::new(state::LIMIT_REACHED, message));
        }
        let list = Value::List(list);
        self.work(list.weight())?;
        Ok(list)
    }

    pub(super) fn row(&self, row: &[Value]) -> Done<Value> {
        self.list(List::from(row.to_vec()).into_row())
    }

    pub fn values(&self, list: &[Bound], env: &Env<'_>) -> Done<Vec<Value>> {
        list.iter().map(|bound| self.value(bound, env)).collect()
    }

    pub fn value(&self, bound: &Bound, env: &Env<'_>) -> Done<Value> {
        self.work(1)?;
        match bound {
            Bound::Constant(value) => Ok(value.clone()),
            Bound::Column { up, at } => {
                let mut env = env;
                for _ in 0..*up {
                    let outer = env.outer;
                    env = outer.expect("as many questions are around as when it was bound");
                }
                Ok(env.row[*at].clone())
            }
            Bound::Extra(nth) => Ok(env.extras.get(*nth).cloned().into()),
            Bound::Call(call, arguments) => self.called(call, &self.values(arguments, env)?),
            Bound::And(list) => self.logical(list, false, env),
            Bound::Or(list) => self.logical(list, true, env),
            Bound::Matches(one, like, pattern) => {
                self.matches(&self.value(one, env)?, *like, pattern)
            }
            Bound::Case(operand, branches) => self.case(operand.as_deref(), branches, env),
            Bound::Select(made, one, plan) => self.select(*made, one.as_deref(), plan, env),
        }
    }

    /// All of them are true, or one of them is.
    fn logical(&self, list: &[Bound], deciding: bool, env: &Env<'_>) -> Done<Value> {
        decided(list.iter().map(|bound| self.value(bound, env)), deciding)
    }

    fn case(&self, operand: Option<&Bound>, branches: &[Bound], env: &Env<'_>) -> Done<Value> {
        let operand = operand
            .map(|operand| self.value(operand, env))
            .transpose()?;
        for branch in branches.chunks(2) {
            let [condition, made] = branch else {
                return self.value(&branch[0], env);
            };
            let condition = self.value(condition, env)?;
            let is_met = match &operand {
                Some(operand) => self.compared(operand, &condition)? == Some(Ordering::Equal),
                None => condition.truth() == Some(true),
            };
            if is_met {
                return self.value(made, env);
            }
        }
        Ok(Value::Null)
    }

    /// What is made of the rows of a question.
    fn select(&self, made: Made, one: Option<&Bound>, plan: &Plan, env: &Env<'_>) -> Done<Value> {
        let wanted = one.map(|one| self.value(one, env)).transpose()?;
        let rows = self.inner(plan, Some(env))?;
        let first = |row: &Vec<Value>| row.first().cloned();
        Ok(match made {
            Made::Exists => Value::Bool(!rows.is_empty()),
            Made::Scalar if rows.len() > 1 => {
                let message = "more than one row returned by a subquery used as an expression";
                return Err(Failure::new(state::CARDINALITY, message));
            }
            Made::Scalar => rows.first().and_then(first).into(),
            Made::Array => {
                self.work(rows.len())?;
                self.list(rows.iter().filter_map(first).collect::<List>())?
            }
            Made::Has => {
                let wanted = wanted.unwrap_or(Value::Null);
                let is_it = |row: &Vec<Value>| match &row[..] {
                    [value] => self.binary(Operator::EQUAL, &wanted, value),
                    row => self.binary(Operator::EQUAL, &wanted, &self.row(row)?),
                };
                decided(rows.iter().map(is_it), true)?
            }
        })
    }

    fn compared(&self, a: &Value, b: &Value) -> Done<Option<Ordering>> {
        self.work(a.comparing(b))?;
        Ok(a.compare(b))
    }

    fn called(&self, called: &Call, values: &[Value]) -> Done<Value> {
        Ok(match (called, values) {
            (Call::Function(_) | Call::OfSession(_), values) => {
                self.work(weight(values))?;
                let made = match called {
                    Call::Function(function) => call(*function, values)?,
                    Call::OfSession(function) => self.session.call(*function, values),
                    _ => Value::Null,
                };
                self.work(made.weight())?;
                made
            }
            (Call::Operator(operator), [left, right]) => self.binary(*operator, left, right)?,
            (Call::Any(operator), [left, list]) => self.quantified(*operator, left, list, true)?,
            (Call::All(operator), [left, list]) => self.quantified(*operator, left, list, false)?,
            (Call::Cast(from, to), [value]) => self.cast(value, from, to)?,
            (Call::Typed(to), [Value::Text(text)]) => self.typed(text, to)?,
            (Call::Typed(_), [value]) => value.clone(),
            (Call::Not, [value]) => value.truth().map(|is| !is).into(),
            (Call::Negative, [value]) => negative(value)?,
            (Call::IsNull, [value]) => value.is_null().into(),
            (Call::IsSame, [left, right]) => {
                let order = self.compared(left, right)?;
                let is_same = order == Some(Ordering::Equal);
                (is_same || left.is_null() && right.is_null()).into()
            }
            (Call::In, [wanted, list @ ..]) => {
                let is_it = |value| self.binary(Operator::EQUAL, wanted, value);
                decided(list.iter().map(is_it), true)?
            }
            (Call::Array, list) => self.list(list.to_vec())?,
            (Call::Row, row) => self.row(row)?,
            (Call::Element, [list, at]) => {
                self.work(list.weight())?;
                let at = at.int().and_then(|at| at.checked_sub(1));
                let at = at.and_then(|at| usize::try_from(at).ok());
                let found = list.list().zip(at);
                found.and_then(|(list, at)| list.get(at).cloned()).into()
            }
            _ => Value::Null,
        })
    }

    fn cast(&self, value: &Value, from: &Type, to: &Type) -> Done<Value> {
        self.work(value.weight())?;
        if let (Value::Text(text), Type::Of(at)) = (value, to) {
            if to.is_whole() || to.kept().is_some() {
                return self.typed(text, &Arc::new(at.clone()));
            }
        }
        let made = value.clone().cast(from, to, self.session)?;
        // The elements of a list are read, made and cast.
        self.work(3 * made.weight())?;
        Ok(made)
    }

    fn typed(&self, text: &str, to: &Arc<AlgebraicType>) -> Done<Value> {
        self.work(1 + text.len() / 16)?;
        Value::typed(text, to).ok_or_else(|| {
            let message = format!("{text:?} is no value of the column's type");
            Failure::new(state::INVALID_TEXT, message)
        })
    }

    /// A comparison with one of a list, or with all of them.
    fn quantified(
        &self,
        operator: Operator,
        left: &Value,
        list: &Value,
        is_any: bool,
    ) -> Done<Value> {
        if list.is_null() {
            return Ok(Value::Null);
        }
        self.work(list.weight())?;
        let list = list.list().ok_or_else(malformed)?;
        let is_it = |value| self.binary(operator, left, value);
        decided(list.iter().map(is_it), is_any)
    }

    fn matches(&self, value: &Value, like: Like, pattern: &Pattern) -> Done<Value> {
        if value.is_null() {
            return Ok(Value::Null);
        }
        let shown = value.shown();
        self.work(pattern.weight(&shown))?;
        Ok(Value::Bool(pattern.matches(&shown) != like.is_not))
    }

    fn binary(&self, operator: Operator, left: &Value, right: &Value) -> Done<Value> {
        self.work(1)?;
        if let Operator::Like(like) = operator {
            if right.is_null() {
                return Ok(Value::Null);
            }
            let written = right.shown();
            self.work(Pattern::making(&written, like.is_regular))?;
            return self.matches(left, like, &Pattern::new(&written, like)?);
        }
        if left.is_null() || right.is_null() {
            return Ok(Value::Null);
        }
        let order = self.compared(left, right)?;
        Ok(match operator {
            Operator::Compare(comparison) => match order {
                None if left.differs(right)
                    && matches!(comparison, Comparison::Equal | Comparison::NotEqual) =>
                {
                    Value::Bool(comparison == Comparison::NotEqual)
                }
                order => order.map(|order| comparison.holds(order)).into(),
            },
            Operator::Concatenate => {
                self.work(left.weight().saturating_add(right.weight()))?;
                match (left, right) {
                    (Value::List(a), Value::List(b)) => self.list([&a[..], &b[..]].concat())?,
                    (Value::List(a), b) => {
                        self.list(a.iter().chain([b]).cloned().collect::<List>())?
                    }
                    (a, b) => [&*a.shown(), &*b.shown()].concat().into(),
                }
            }
            operator => calculated(operator, left, right)?,
        })
    }
}

/// One truth decides, if it is among these. NULL if one of them may be it.
fn decided(values: impl Iterator<Item = Done<Value>>, deciding: bool) -> Done<Value> {
    let mut decided = Value::Bool(!deciding);
    for value in values {
        match value?.truth() {
            Some(is) if is == deciding => return Ok(deciding.into()),
            None => decided = Value::Null,
            Some(_) => {}
        }
    }
    Ok(decided)
}

fn negative(value: &Value) -> Done<Value> {
    match value {
        Value::Null => Ok(Value::Null),
        Value::Float(number) => Ok(Value::Float(-number)),
        Value::Stored(_) => Err(Failure::out_of_range()),
        value => {
            let negative = value.int().ok_or_else(no_numbers)?.checked_neg();
            negative.map(Value::Int).ok_or_else(Failure::out_of_range)
        }
    }
}

fn calculated(operator: Operator, left: &Value, right: &Value) -> Done<Value> {
    if let (Value::Stored(stored), _) | (_, Value::Stored(stored)) = (left, right) {
        return Err(match stored.is_number() {
            true => Failure::out_of_range(),
            false => Failure::unsupported("nothing is calculated from values of this type"),
        });
    }
    let is_division = matches!(operator, Operator::Divide | Operator::Remainder);
    if let (Value::Float(_), _) | (_, Value::Float(_)) = (left, right) {
        let (Some(a), Some(b)) = (left.float(), right.float()) else {
            return Err(no_numbers());
        };
        if is_division && b == 0.0 {
            return Err(division_by_zero());
        }
        return Ok(Value::Float(match operator {
            Operator::Add => a + b,
            Operator::Subtract => a - b,
            Operator::Multiply => a * b,
            Operator::Divide => a / b,
            Operator::BitAnd => return Err(no_numbers()),
            _ => a % b,
        }));
    }
    let (Some(a), Some(b)) = (left.int(), right.int()) else {
        return Err(no_numbers());
    };
    let made = match operator {
        Operator::Add => a.checked_add(b),
        Operator::Subtract => a.checked_sub(b),
        Operator::Multiply => a.checked_mul(b),
        Operator::Divide => a.checked_div(b),
        Operator::BitAnd => Some(a & b),
        _ => a.checked_rem(b),
    };
    made.map(Value::Int)
        .ok_or_else(|| match is_division && b == 0 {
            true => division_by_zero(),
            false => Failure::out_of_range(),
        })
}

fn no_numbers() -> Failure {
    Failure::unsupported("nothing is calculated from these values")
}

fn division_by_zero() -> Failure {
    Failure::new(state::DIVISION_BY_ZERO, "division by zero")
}
