//! Expressions: what their names mean, and of which type they are.

use std::rc::Rc;

use super::super::functions::{aggregate, common, function, series};
use super::super::patterns::Pattern;
use super::super::plan::*;
use super::super::syntax::*;
use super::super::values::{Type, Value};
use super::scope::Scope;
use super::unbound::{Done, Unbound};
use super::{Binder, Extras};

/// Two expressions with their types.
type Two = (Box<(Bound, Bound)>, Type, Type);

impl Binder<'_> {
    pub(super) fn list(
        &mut self,
        list: &[Expr],
        scope: &Scope<'_>,
        extras: &mut Extras<'_>,
    ) -> Done<(Vec<Bound>, Vec<Type>)> {
        let mut bound = Vec::with_capacity(list.len());
        let mut types = Vec::with_capacity(list.len());
        for expr in list {
            let (one, ty) = self.expr(expr, scope, extras)?;
            bound.push(one);
            types.push(ty);
        }
        Ok((bound, types))
    }

    fn boxed(
        &mut self,
        expr: &Expr,
        scope: &Scope<'_>,
        extras: &mut Extras<'_>,
    ) -> Done<Box<Bound>> {
        self.expr(expr, scope, extras)
            .map(|(bound, _)| Box::new(bound))
    }

    fn two(&mut self, two: &(Expr, Expr), scope: &Scope<'_>, extras: &mut Extras<'_>) -> Done<Two> {
        let (left, left_type) = self.expr(&two.0, scope, extras)?;
        let (right, right_type) = self.expr(&two.1, scope, extras)?;
        // A name is compared with the number that it stands for.
        let named = |bound, ty, other| match (ty, other) {
            (Type::Text, Type::Relation | Type::Kind) => Bound::Cast(Box::new(bound), ty, other),
            _ => bound,
        };
        let both = (
            named(left, left_type, right_type),
            named(right, right_type, left_type),
        );
        Ok((Box::new(both), left_type, right_type))
    }

    fn inner(&mut self, select: &Select, scope: &Scope<'_>) -> Done<Rc<Plan>> {
        self.select(select, Some(scope)).map(Rc::new)
    }

    pub(super) fn expr(
        &mut self,
        expr: &Expr,
        scope: &Scope<'_>,
        extras: &mut Extras<'_>,
    ) -> Done<(Bound, Type)> {
        Ok(match expr {
            Expr::Null => (Bound::Constant(Value::Null), Type::Text),
            Expr::Bool(is) => (Bound::Constant(Value::Bool(*is)), Type::Bool),
            Expr::Int(number) => {
                let ty = if i32::try_from(*number).is_ok() {
                    Type::Int4
                } else {
                    Type::Int8
                };
                (Bound::Constant(Value::Int(*number)), ty)
            }
            Expr::Float(number) => (Bound::Constant(Value::Float(*number)), Type::Float),
            Expr::Text(text) => (
                Bound::Constant(Value::Text(text.as_str().into())),
                Type::Text,
            ),
            Expr::Column(parts) => scope.column(parts)?,
            Expr::Call(call) => self.call(call, scope, extras)?,
            Expr::Not(one) => (Bound::Not(self.boxed(one, scope, extras)?), Type::Bool),
            Expr::Negative(one) => {
                let (bound, ty) = self.expr(one, scope, extras)?;
                (Bound::Negative(Box::new(bound)), ty)
            }
            Expr::And(list) => (Bound::And(self.list(list, scope, extras)?.0), Type::Bool),
            Expr::Or(list) => (Bound::Or(self.list(list, scope, extras)?.0), Type::Bool),
            Expr::Binary(Operator::Like(like), two) => {
                let (both, ..) = self.two(two, scope, extras)?;
                (matches(*both, *like)?, Type::Bool)
            }
            Expr::Binary(operator, two) => {
                let (both, left, right) = self.two(two, scope, extras)?;
                (
                    Bound::Binary(*operator, both),
                    result_of(*operator, left, right),
                )
            }
            Expr::IsNull(one) => (Bound::IsNull(self.boxed(one, scope, extras)?), Type::Bool),
            Expr::IsSame(two) => (Bound::IsSame(self.two(two, scope, extras)?.0), Type::Bool),
            Expr::InList(one, list) => {
                let (bound, ty) = self.expr(one, scope, extras)?;
                let (list, types) = self.list(list, scope, extras)?;
                let named = |(bound, of)| match (ty, of) {
                    (Type::Relation | Type::Kind, Type::Text) => {
                        Bound::Cast(Box::new(bound), of, ty)
                    }
                    _ => bound,
                };
                let list = list.into_iter().zip(types).map(named);
                (Bound::InList(Box::new(bound), list.collect()), Type::Bool)
            }
            Expr::InSelect(one, select) => {
                let bound = self.boxed(one, scope, extras)?;
                (
                    Bound::InSelect(bound, self.inner(select, scope)?),
                    Type::Bool,
                )
            }
            Expr::Any(operator, two) => {
                let both = listed(self.two(two, scope, extras)?.0);
                (Bound::Any(*operator, both), Type::Bool)
            }
            Expr::All(operator, two) => {
                let both = listed(self.two(two, scope, extras)?.0);
                (Bound::All(*operator, both), Type::Bool)
            }
            Expr::Case {
                operand,
                branches,
                otherwise,
            } => {
                let operand = match operand {
                    Some(operand) => Some(self.boxed(operand, scope, extras)?),
                    None => None,
                };
                let (mut bound, mut types) = (Vec::new(), Vec::new());
                for (condition, value) in branches {
                    let (condition, _) = self.expr(condition, scope, extras)?;
                    let (made, ty) = self.expr(value, scope, extras)?;
                    bound.push((condition, made));
                    if !matches!(value, Expr::Null) {
                        types.push(ty);
                    }
                }
                let otherwise = match otherwise {
                    Some(value) => {
                        let (made, ty) = self.expr(value, scope, extras)?;
                        if !matches!(**value, Expr::Null) {
                            types.push(ty);
                        }
                        Some(Box::new(made))
                    }
                    None => None,
                };
                let case = Bound::Case {
                    operand,
                    branches: bound,
                    otherwise,
                };
                (case, common(&types))
            }
            Expr::Cast(one, name) => {
                let to =
                    Type::named(name).ok_or_else(|| format!("type \"{name}\" does not exist"))?;
                let (bound, from) = self.expr(one, scope, extras)?;
                (self.cast(bound, from, to), to)
            }
            Expr::Exists(select) => (Bound::Exists(self.inner(select, scope)?), Type::Bool),
            Expr::Scalar(select) => {
                let plan = self.inner(select, scope)?;
                let ty = one_column(&plan)?;
                (Bound::Scalar(plan), ty)
            }
            Expr::ArrayOfSelect(select) => {
                let plan = self.inner(select, scope)?;
                let ty = one_column(&plan)?;
                (Bound::ArrayOfSelect(plan), ty.list())
            }
            Expr::Array(list) => {
                let (list, types) = self.list(list, scope, extras)?;
                (Bound::Array(list), common(&types).list())
            }
            Expr::Element(two) => {
                let (mut both, of, _) = self.two(two, scope, extras)?;
                if of == Type::Vector {
                    // Those begin at 0.
                    let one = Bound::Constant(Value::Int(1));
                    both.1 = Bound::Binary(Operator::Add, Box::new((both.1, one)));
                }
                (Bound::Element(both), of.element())
            }
            Expr::Field(one, field) => {
                let (bound, ty) = self.expr(one, scope, extras)?;
                let nth = match (ty, field.as_str()) {
                    (Type::Pair, "x") => 1,
                    (Type::Pair, "n") => 2,
                    _ => return Err(format!("column \"{field}\" not found in data type").into()),
                };
                let place = Bound::Constant(Value::Int(nth));
                (Bound::Element(Box::new((bound, place))), Type::Int4)
            }
        })
    }

    /// What does not change is cast once, unless it cannot be: that is told when a row needs it.
    fn cast(&self, bound: Bound, from: Type, to: Type) -> Bound {
        if let Bound::Constant(value) = &bound {
            if let Ok(cast) = value.clone().cast(from, to, self.seen) {
                return Bound::Constant(cast);
            }
        }
        Bound::Cast(Box::new(bound), from, to)
    }

    fn call(
        &mut self,
        made: &Call,
        scope: &Scope<'_>,
        extras: &mut Extras<'_>,
    ) -> Done<(Bound, Type)> {
        let name = made.name.as_str();
        if let Some(window) = &made.over {
            if name != "row_number" {
                return Err(format!("{name}() OVER is not supported").into());
            }
            let (partition, _) = self.list(&window.partition, scope, &mut None)?;
            let order = self.sorted(&window.order, scope)?;
            return extra(extras, Extra::RowNumber { partition, order }, Type::Int8);
        }
        if let Some((series, columns)) = series(name, None) {
            let (arguments, types) = self.list(&made.arguments, scope, &mut None)?;
            let ty = match (&columns[..], types.first()) {
                ([_], Some(ty)) if name == "unnest" => ty.element(),
                ([(_, ty)], _) => *ty,
                _ => Type::Pair,
            };
            return extra(extras, Extra::Series { series, arguments }, ty);
        }
        if aggregate(name, None).is_some() {
            let (arguments, types) = self.list(&made.arguments, scope, &mut None)?;
            let (aggregate, ty) = aggregate(name, types.first().copied()).expect("it is one");
            let filter = match &made.filter {
                Some(filter) => Some(self.expr(filter, scope, &mut None)?.0),
                None => None,
            };
            let made = Extra::Aggregate {
                aggregate,
                arguments,
                is_distinct: made.is_distinct,
                order: self.sorted(&made.order, scope)?,
                filter,
            };
            return extra(extras, made, ty);
        }
        let (arguments, types) = self.list(&made.arguments, scope, extras)?;
        let found =
            function(name, &types).ok_or_else(|| format!("function {name}() is not supported"))?;
        Ok((Bound::Call(Called(found.0), arguments), found.1))
    }

    fn sorted(&mut self, order: &[Order], scope: &Scope<'_>) -> Done<Vec<(Bound, bool)>> {
        let mut sorted = Vec::new();
        for by in order {
            let (bound, _) = self.expr(&by.expr, scope, &mut None)?;
            sorted.push((bound, by.is_descending));
        }
        Ok(sorted)
    }
}

fn extra(extras: &mut Extras<'_>, made: Extra, ty: Type) -> Done<(Bound, Type)> {
    let list = extras.as_deref_mut();
    let list = list.ok_or(Unbound::from(
        "a function of several rows stands where there is one",
    ))?;
    list.push(made);
    Ok((Bound::Extra(list.len() - 1), ty))
}

/// A list that is written as a text is read once, and not for each row.
fn listed(mut both: Box<(Bound, Bound)>) -> Box<(Bound, Bound)> {
    if let Bound::Constant(written @ Value::Text(_)) = &both.1 {
        if let Some(list) = written.list() {
            both.1 = Bound::Constant(Value::List(list));
        }
    }
    both
}

fn one_column(plan: &Plan) -> Done<Type> {
    match &plan.columns[..] {
        [(_, ty)] => Ok(*ty),
        _ => Err("subquery must return only one column".into()),
    }
}

fn result_of(operator: Operator, left: Type, right: Type) -> Type {
    match operator {
        Operator::Concatenate if left.is_list() => left,
        Operator::Concatenate if right.is_list() => right,
        Operator::Concatenate => Type::Text,
        Operator::Add
        | Operator::Subtract
        | Operator::Multiply
        | Operator::Divide
        | Operator::Remainder
        | Operator::BitAnd => common(&[left, right]),
        _ => Type::Bool,
    }
}

fn matches(both: (Bound, Bound), like: Like) -> Done<Bound> {
    let (left, right) = both;
    let written = match right {
        Bound::Constant(Value::Text(written)) => written,
        right => return Ok(Bound::Binary(Operator::Like(like), Box::new((left, right)))),
    };
    let pattern = match like.is_regular {
        true => Pattern::regular(&written, like.ignores_case),
        false => Pattern::like(&written, like.ignores_case),
    };
    let pattern = pattern.ok_or_else(|| format!("the pattern {written:?} is not supported"))?;
    Ok(Bound::Matches(Box::new(left), like, pattern))
}
