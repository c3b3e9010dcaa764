//! The value of an expression.

use std::cmp::Ordering;

use super::super::super::failure::{state, Failure};
use super::super::patterns::Pattern;
use super::super::plan::*;
use super::super::values::{NoSuch, Type, Value};
use super::{Done, Env, Runner};

impl Runner<'_> {
    pub(super) fn values(&self, list: &[Bound], env: &Env<'_>) -> Done<Vec<Value>> {
        list.iter().map(|bound| self.value(bound, env)).collect()
    }

    pub(super) fn value(&self, bound: &Bound, env: &Env<'_>) -> Done<Value> {
        self.work(1)?;
        let optional = |is: Option<bool>| is.map_or(Value::Null, Value::Bool);
        Ok(match bound {
            Bound::Constant(value) => value.clone(),
            Bound::Column { up, at } => {
                let mut env = env;
                for _ in 0..*up {
                    env = env
                        .outer
                        .expect("as many questions are around as when it was bound");
                }
                env.row[*at].clone()
            }
            Bound::Extra(nth) => env.extras.get(*nth).cloned().unwrap_or(Value::Null),
            Bound::Call(function, arguments) => {
                let values = self.values(arguments, env)?;
                self.work(values.iter().map(Value::weight).sum())?;
                let made = function.0(self.seen, &values);
                self.work(made.weight())?;
                made
            }
            Bound::Not(one) => optional(self.value(one, env)?.truth().map(|is| !is)),
            Bound::Negative(one) => match self.value(one, env)? {
                Value::Float(number) => Value::Float(-number),
                Value::Stored(_) => return Err(Failure::out_of_range()),
                Value::Null => Value::Null,
                value => match value.int() {
                    None => return Err(no_numbers()),
                    Some(number) => {
                        let negative = number.checked_neg();
                        Value::Int(negative.ok_or_else(Failure::out_of_range)?)
                    }
                },
            },
            Bound::And(list) => self.logical(list, false, env)?,
            Bound::Or(list) => self.logical(list, true, env)?,
            Bound::Binary(operator, both) => {
                let (left, right) = (self.value(&both.0, env)?, self.value(&both.1, env)?);
                self.binary(*operator, &left, &right)?
            }
            Bound::Matches(one, like, pattern) => {
                self.matches(&self.value(one, env)?, *like, pattern)?
            }
            Bound::IsNull(one) => Value::Bool(self.value(one, env)?.is_null()),
            Bound::IsSame(both) => {
                let (left, right) = (self.value(&both.0, env)?, self.value(&both.1, env)?);
                self.work(left.comparing(&right))?;
                let is_same = match (left.is_null(), right.is_null()) {
                    (false, false) => left.compare(&right) == Some(Ordering::Equal),
                    (left, right) => left == right,
                };
                Value::Bool(is_same)
            }
            Bound::InList(one, list) => {
                let wanted = self.value(one, env)?;
                let mut has_null = false;
                for bound in list {
                    let value = self.value(bound, env)?;
                    self.work(wanted.comparing(&value))?;
                    match wanted.compare(&value) {
                        Some(Ordering::Equal) => return Ok(Value::Bool(true)),
                        None => has_null = true,
                        Some(_) => {}
                    }
                }
                optional((!has_null).then_some(false))
            }
            Bound::InSelect(one, plan) => {
                let wanted = self.value(one, env)?;
                let mut has_null = false;
                for row in self.rows(plan, Some(env))? {
                    let value = match &row[..] {
                        [value] => value.clone(),
                        row => Value::List(row.into()),
                    };
                    self.work(wanted.comparing(&value))?;
                    match wanted.compare(&value) {
                        Some(Ordering::Equal) => return Ok(Value::Bool(true)),
                        Some(_) => {}
                        None => has_null = true,
                    }
                }
                optional((!has_null).then_some(false))
            }
            Bound::Any(operator, both) => self.quantified(*operator, both, true, env)?,
            Bound::All(operator, both) => self.quantified(*operator, both, false, env)?,
            Bound::Case {
                operand,
                branches,
                otherwise,
            } => {
                let operand = match operand {
                    Some(operand) => Some(self.value(operand, env)?),
                    None => None,
                };
                for (condition, made) in branches {
                    let condition = self.value(condition, env)?;
                    let is_met = match &operand {
                        Some(operand) => {
                            self.work(operand.comparing(&condition))?;
                            operand.compare(&condition) == Some(Ordering::Equal)
                        }
                        None => condition.truth() == Some(true),
                    };
                    if is_met {
                        return self.value(made, env);
                    }
                }
                match otherwise {
                    Some(otherwise) => self.value(otherwise, env)?,
                    None => Value::Null,
                }
            }
            Bound::Cast(one, from, to) => {
                let value = self.value(one, env)?;
                self.work(value.weight())?;
                if let (Value::Text(text), Type::Stored(at) | Type::Whole(at)) = (&value, *to) {
                    let typed = Value::typed(text, self.types.at(at));
                    return typed.ok_or_else(|| {
                        let message = format!("{text:?} is no value of the column's type");
                        Failure::new(state::INVALID_TEXT, message)
                    });
                }
                let invalid = |NoSuch(text)| Failure::new(state::INVALID_TEXT, text);
                let made = value.cast(*from, *to, self.seen).map_err(invalid)?;
                // The elements of a list are read, made and cast.
                self.work(3 * made.weight())?;
                made
            }
            Bound::Exists(plan) => Value::Bool(!self.rows(plan, Some(env))?.is_empty()),
            Bound::Scalar(plan) => {
                let rows = self.rows(plan, Some(env))?;
                if rows.len() > 1 {
                    let message = "more than one row returned by a subquery used as an expression";
                    return Err(Failure::new("21000", message));
                }
                rows.into_iter()
                    .next()
                    .and_then(|row| row.into_iter().next())
                    .unwrap_or(Value::Null)
            }
            Bound::ArrayOfSelect(plan) => {
                let rows = self.rows(plan, Some(env))?;
                Value::List(
                    rows.into_iter()
                        .filter_map(|row| row.into_iter().next())
                        .collect(),
                )
            }
            Bound::Array(list) => Value::List(self.values(list, env)?.into()),
            Bound::Element(both) => {
                let (list, at) = (self.value(&both.0, env)?, self.value(&both.1, env)?);
                self.work(list.weight())?;
                let at = at
                    .int()
                    .and_then(|at| usize::try_from(at.checked_sub(1)?).ok());
                let found = list
                    .list()
                    .zip(at)
                    .and_then(|(list, at)| list.get(at).cloned());
                found.unwrap_or(Value::Null)
            }
        })
    }

    /// All of them are true, or one of them is.
    fn logical(&self, list: &[Bound], deciding: bool, env: &Env<'_>) -> Done<Value> {
        let mut has_null = false;
        for bound in list {
            match self.value(bound, env)?.truth() {
                Some(is) if is == deciding => return Ok(Value::Bool(deciding)),
                None => has_null = true,
                Some(_) => {}
            }
        }
        Ok(if has_null {
            Value::Null
        } else {
            Value::Bool(!deciding)
        })
    }

    fn quantified(
        &self,
        operator: Operator,
        both: &(Bound, Bound),
        is_any: bool,
        env: &Env<'_>,
    ) -> Done<Value> {
        let left = self.value(&both.0, env)?;
        let list = self.value(&both.1, env)?;
        if list.is_null() {
            return Ok(Value::Null);
        }
        self.work(list.weight())?;
        let malformed = || Failure::new(state::INVALID_TEXT, "malformed array literal");
        let list = list.list().ok_or_else(malformed)?;
        let mut has_null = false;
        for value in list.iter() {
            match self.binary(operator, &left, value)?.truth() {
                Some(is) if is == is_any => return Ok(Value::Bool(is_any)),
                None => has_null = true,
                Some(_) => {}
            }
        }
        Ok(if has_null {
            Value::Null
        } else {
            Value::Bool(!is_any)
        })
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
            let pattern = Pattern::new(&written, like.is_regular, like.ignores_case);
            let unsupported =
                || Failure::unsupported(format!("the pattern {written:?} is not supported"));
            return self.matches(left, like, &pattern.ok_or_else(unsupported)?);
        }
        if left.is_null() || right.is_null() {
            return Ok(Value::Null);
        }
        self.work(left.comparing(right))?;
        let order = || left.compare(right);
        let is = |test: fn(Ordering) -> bool| {
            order().map_or(Value::Null, |order| Value::Bool(test(order)))
        };
        Ok(match operator {
            Operator::Equal => is(Ordering::is_eq),
            Operator::Unequal => is(Ordering::is_ne),
            Operator::Less => is(Ordering::is_lt),
            Operator::AtMost => is(Ordering::is_le),
            Operator::Greater => is(Ordering::is_gt),
            Operator::AtLeast => is(Ordering::is_ge),
            Operator::Concatenate => {
                self.work(left.weight() + right.weight())?;
                match (left, right) {
                    (Value::List(a), Value::List(b)) => {
                        Value::List(a.iter().chain(b.iter()).cloned().collect())
                    }
                    (Value::List(a), b) => Value::List(a.iter().chain([b]).cloned().collect()),
                    (a, b) => Value::Text([&*a.shown(), &*b.shown()].concat().into()),
                }
            }
            operator => calculated(operator, left, right)?,
        })
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
