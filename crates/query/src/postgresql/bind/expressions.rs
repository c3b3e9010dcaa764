//! Expressions: what their names mean, and of which type they are.

use std::sync::Arc;

use sqlparser::ast::{
    AccessExpr, Array, BinaryOperator, CastKind, DataType, Expr, Function, FunctionArguments,
    Ident, InTarget, Query, Subscript, TypedString, UnaryOperator, Value as Literal, ValueWithSpan,
};

use super::super::column_type::{common, Type};
use super::super::failure::{state, Done, Failure};
use super::super::functions::function;
use super::super::patterns::{Like, Pattern};
use super::super::plan::{self, Bound, Made, Operator, Plan};
use super::super::types::{name_of_oid, oid, oid_of};
use super::super::value::Value;
use super::scope::Scope;
use super::syntax::*;
use super::Binder;

/// The tree of an expression is so high at most: what reads it afterwards calls itself for each floor.
const HEIGHT_MAX: usize = 96;

/// Columns that are looked at for the names of one question.
const LOOKED_MAX: usize = 16_000_000;

/// An expression with its type.
pub(super) type Typed = (Bound, Type);
/// Two expressions with their types.
type Two = ([Bound; 2], Type, Type);

impl Binder<'_> {
    pub(super) fn list<'e>(
        &mut self,
        list: impl Iterator<Item = &'e Expr>,
        scope: &Scope<'_>,
    ) -> Done<(Vec<Bound>, Vec<Type>)> {
        let (mut bound, mut types) = (Vec::new(), Vec::new());
        for expr in list {
            let (one, ty) = self.expr(expr, scope)?;
            bound.push(one);
            types.push(ty);
        }
        Ok((bound, types))
    }

    fn two(&mut self, left: &Expr, right: &Expr, scope: &Scope<'_>) -> Done<Two> {
        let (left, left_type) = self.expr(left, scope)?;
        let (right, right_type) = self.expr(right, scope)?;
        let both = [
            self.compared(left, &left_type, &right_type),
            self.compared(right, &right_type, &left_type),
        ];
        Ok((both, left_type, right_type))
    }

    /// A column as a part of an expression: of an option, what it holds.
    pub(super) fn column(&mut self, names: &[Ident], scope: &Scope<'_>) -> Done<Typed> {
        self.looked = self.looked.saturating_add(scope.width());
        if self.looked > LOOKED_MAX {
            let message = format!("for its names, more than {LOOKED_MAX} columns are looked at");
            return Err(Failure::new(state::LIMIT_REACHED, message));
        }
        let (bound, ty) = scope.column(names)?;
        if let Bound::Column { up, .. } = bound {
            self.reached = self.reached.min(scope.depth() - up);
        }
        Ok((bound, ty.operand()))
    }

    /// A value that is compared with one of another type: a text is what it denotes there.
    pub(super) fn compared(&mut self, bound: Bound, ty: &Type, other: &Type) -> Bound {
        let cast = |bound| Bound::call(plan::Call::Cast(ty.clone(), other.clone()), [bound]);
        match (ty, other) {
            (Type::Parameter(number), other) => {
                self.parameters.entry(*number).or_insert(other.clone());
                bound
            }
            (&Type::TEXT, Type::Of(at)) if other.is_whole() || other.kept().is_some() => {
                // Shared by the values of all rows, as a type may be large.
                let at = Arc::new(at.clone());
                match &bound {
                    Bound::Constant(Value::Text(text)) => match Value::typed(text, &at) {
                        Some(typed) => Bound::Constant(typed),
                        None => Bound::call(plan::Call::Typed(at), [bound]),
                    },
                    _ if other.is_whole() => bound,
                    _ => Bound::call(plan::Call::Typed(at), [bound]),
                }
            }
            // A name is compared with the number that it stands for.
            (&Type::TEXT, Type::Relation | Type::Kind) => cast(bound),
            _ => bound,
        }
    }

    fn inner(&mut self, query: &Query, scope: &Scope<'_>) -> Done<Arc<Plan>> {
        self.query(query, Some(scope)).map(Arc::new)
    }

    pub(super) fn expr(&mut self, expr: &Expr, scope: &Scope<'_>) -> Done<Typed> {
        self.height += 1;
        if self.height > HEIGHT_MAX {
            return Err(
                format!("more than {HEIGHT_MAX} operators stand behind and in each other").into(),
            );
        }
        let bound = self.bound(expr, scope);
        self.height -= 1;
        bound
    }

    fn bound(&mut self, expr: &Expr, scope: &Scope<'_>) -> Done<Typed> {
        let is_insensitive = matches!(expr, Expr::ILike { .. });
        Ok(match expr {
            Expr::Nested(inner) => self.expr(inner, scope)?,
            Expr::Collate { expr, collation: _ } => self.expr(expr, scope)?,
            Expr::Value(ValueWithSpan {
                value: Literal::Placeholder(written),
                ..
            }) if self.is_described => parameter(written)?,
            Expr::Value(literal) => constant(literal)?,
            Expr::Identifier(name) => match of_word(name) {
                Some(call) => self.call(call, scope)?,
                None => self.column(std::slice::from_ref(name), scope)?,
            },
            Expr::CompoundIdentifier(names) => self.column(names, scope)?,
            Expr::UnaryOp { op, expr } => match op {
                UnaryOperator::Not => (self.expr(expr, scope)?.0.negated(true), Type::BOOL),
                UnaryOperator::Plus => self.expr(expr, scope)?,
                UnaryOperator::Minus => {
                    let (bound, ty) = self.expr(expr, scope)?;
                    (Bound::call(plan::Call::Negative, [bound]), calculated(ty))
                }
                op => return Err(format!("operator {op} is not supported").into()),
            },
            Expr::BinaryOp { op, .. } if matches!(op, BinaryOperator::And | BinaryOperator::Or) => {
                let (list, _) = self.list(chain(expr, op).into_iter(), scope)?;
                let bound = match op {
                    BinaryOperator::And => Bound::And(list),
                    _ => Bound::Or(list),
                };
                (bound, Type::BOOL)
            }
            Expr::BinaryOp { left, op, right } => match operator(op)? {
                Operator::Like(like) => {
                    let (both, ..) = self.two(left, right, scope)?;
                    (matches(both, like)?, Type::BOOL)
                }
                operator => {
                    let (both, left, right) = self.two(left, right, scope)?;
                    let ty = result_of(operator, left, right);
                    (Bound::call(plan::Call::Operator(operator), both), ty)
                }
            },
            Expr::Like {
                negated,
                any,
                expr,
                pattern,
                escape_char,
            }
            | Expr::ILike {
                negated,
                any,
                expr,
                pattern,
                escape_char,
            } => {
                let is_backslash = |escape: &&Expr| text_of(escape) == Some("\\");
                if escape_char
                    .as_deref()
                    .filter(|escape| !is_backslash(escape))
                    .is_some()
                {
                    return Err("ESCAPE with anything but a backslash".into());
                }
                let like = Like {
                    is_not: *negated,
                    is_regular: false,
                    ignores_case: is_insensitive,
                };
                if *any {
                    let any = plan::Call::Any(Operator::Like(like));
                    return self.quantified(any, expr, pattern, scope);
                }
                let (both, ..) = self.two(expr, pattern, scope)?;
                (matches(both, like)?, Type::BOOL)
            }
            Expr::IsNull(one) => self.is_null(one, false, scope)?,
            Expr::IsNotNull(one) => self.is_null(one, true, scope)?,
            Expr::IsTrue(one) => self.is_truth(one, true, false, scope)?,
            Expr::IsNotTrue(one) => self.is_truth(one, true, true, scope)?,
            Expr::IsFalse(one) => self.is_truth(one, false, false, scope)?,
            Expr::IsNotFalse(one) => self.is_truth(one, false, true, scope)?,
            Expr::IsDistinctFrom(left, right) => is_same(self.two(left, right, scope)?.0, true),
            Expr::IsNotDistinctFrom(left, right) => is_same(self.two(left, right, scope)?.0, false),
            Expr::Between { .. } => {
                apart!(expr, Expr::Between { expr negated low high } passing {});
                let (value, ty) = self.expr(expr, scope)?;
                let mut bound = vec![value];
                for end in [low, high] {
                    let (end, of) = self.expr(end, scope)?;
                    bound.push(self.compared(end, &of, &ty));
                }
                let (between, _) = function("between", &[Type::BOOL; 3]).expect("there is one");
                let between = Bound::Call(plan::Call::Function(between), bound);
                (between.negated(*negated), Type::BOOL)
            }
            Expr::In {
                expr,
                target,
                negated,
                global: false,
            } => {
                let (bound, ty) = self.expr(expr, scope)?;
                let found = match target {
                    InTarget::List(list) => {
                        let (list, types) = self.list(list.iter(), scope)?;
                        let list = list.into_iter().zip(types);
                        let list = list.map(|(bound, of)| self.compared(bound, &of, &ty));
                        let list: Vec<Bound> = list.collect();
                        Bound::Call(plan::Call::In, [bound].into_iter().chain(list).collect())
                    }
                    InTarget::Subquery(query) => {
                        Bound::Select(Made::Has, Some(bound.into()), self.inner(query, scope)?)
                    }
                    _ => return Err("a kind of IN that PostgreSQL does not have".into()),
                };
                (found.negated(*negated), Type::BOOL)
            }
            Expr::AnyOp { .. } => {
                apart!(expr, Expr::AnyOp { left compare_op right } passing { is_some });
                let any = plan::Call::Any(operator(compare_op)?);
                self.quantified(any, left, right, scope)?
            }
            Expr::AllOp { .. } => {
                apart!(expr, Expr::AllOp { left compare_op right } passing {});
                let all = plan::Call::All(operator(compare_op)?);
                self.quantified(all, left, right, scope)?
            }
            Expr::Case { .. } => {
                apart!(expr, Expr::Case { operand conditions else_result } passing { case_token end_token });
                let operand = match operand {
                    Some(operand) => Some(self.expr(operand, scope)?.0.into()),
                    None => None,
                };
                let (mut branches, mut types) = (Vec::new(), Vec::new());
                let met = conditions
                    .iter()
                    .map(|of| (Some(&of.condition), &of.result));
                let otherwise = else_result.as_deref().map(|otherwise| (None, otherwise));
                for (condition, made) in met.chain(otherwise) {
                    if let Some(condition) = condition {
                        branches.push(self.expr(condition, scope)?.0);
                    }
                    let (made, ty) = self.expr(made, scope)?;
                    types.extend((made != Bound::Constant(Value::Null)).then_some(ty));
                    branches.push(made);
                }
                (Bound::Case(operand, branches), common(&types))
            }
            Expr::Cast {
                kind: CastKind::Cast | CastKind::DoubleColon,
                expr,
                data_type,
                format: None,
            } => {
                let (bound, from) = self.expr(expr, scope)?;
                self.cast(bound, from, data_type)?
            }
            // `regclass 'person'`
            Expr::TypedString(TypedString {
                data_type,
                value,
                uses_odbc_syntax: false,
            }) => {
                let (bound, from) = constant(value)?;
                self.cast(bound, from, data_type)?
            }
            Expr::Exists { subquery, negated } => {
                let exists = Bound::Select(Made::Exists, None, self.inner(subquery, scope)?);
                (exists.negated(*negated), Type::BOOL)
            }
            Expr::Subquery(query) => {
                let plan = self.inner(query, scope)?;
                let ty = one_column(&plan)?.operand();
                (Bound::Select(Made::Scalar, None, plan), ty)
            }
            // `ARRAY(SELECT …)`
            Expr::Function(Function {
                name,
                args: FunctionArguments::Subquery(query),
                ..
            }) if parts(name)? == ["array"] => self.array_of(query, scope)?,
            Expr::Array(Array {
                elem: list,
                named: _,
            })
            | Expr::Tuple(list) => {
                let made = match expr {
                    Expr::Tuple(_) => plan::Call::Row,
                    _ => plan::Call::Array,
                };
                let (list, types) = self.list(list.iter(), scope)?;
                (Bound::Call(made, list), common(&types).list())
            }
            Expr::CompoundFieldAccess { root, access_chain } => {
                refuse_if(
                    access_chain.len() > HEIGHT_MAX,
                    "such a chain of subscripts",
                )?;
                // `t.list[1]`
                let behind = access_chain.iter().map_while(|access| match access {
                    AccessExpr::Dot(Expr::Identifier(name)) => Some(name),
                    _ => None,
                });
                let (mut bound, rest) = match names(root) {
                    Some(first) if behind.clone().next().is_some() => {
                        let names: Vec<Ident> = first.iter().chain(behind).cloned().collect();
                        let rest = &access_chain[names.len() - first.len()..];
                        (self.column(&names, scope)?, rest)
                    }
                    _ => (self.expr(root, scope)?, &access_chain[..]),
                };
                for access in rest {
                    bound = self.accessed(bound, access, scope)?;
                }
                bound
            }
            expr => match Call::of(expr)? {
                Some(call) => self.call(call, scope)?,
                None => return Err("an expression that the catalogue does not have".into()),
            },
        })
    }

    fn is_truth(
        &mut self,
        expr: &Expr,
        truth: bool,
        is_not: bool,
        scope: &Scope<'_>,
    ) -> Done<Typed> {
        let (bound, _) = self.expr(expr, scope)?;
        Ok(is_same([bound, Bound::Constant(truth.into())], is_not))
    }

    fn is_null(&mut self, expr: &Expr, is_not: bool, scope: &Scope<'_>) -> Done<Typed> {
        let (bound, _) = self.expr(expr, scope)?;
        let is_null = Bound::call(plan::Call::IsNull, [bound]);
        Ok((is_null.negated(is_not), Type::BOOL))
    }

    /// `left = ANY (list)`, `left <> ALL (SELECT …)`
    fn quantified(
        &mut self,
        quantifier: plan::Call,
        left: &Expr,
        mut right: &Expr,
        scope: &Scope<'_>,
    ) -> Done<Typed> {
        while let Expr::Nested(inner) = right {
            right = inner;
        }
        let both = match right {
            Expr::Subquery(query) => {
                let (left, _) = self.expr(left, scope)?;
                [left, self.array_of(query, scope)?.0]
            }
            list => {
                let (left, left_type) = self.expr(left, scope)?;
                let (list, ty) = self.expr(list, scope)?;
                // A list is sent as text.
                if let Type::Parameter(nth) = ty {
                    self.parameters.entry(nth).or_insert(Type::TEXT);
                }
                [self.compared(left, &left_type, &ty.element()), listed(list)]
            }
        };
        Ok((Bound::call(quantifier, both), Type::BOOL))
    }

    fn array_of(&mut self, query: &Query, scope: &Scope<'_>) -> Done<Typed> {
        let plan = self.inner(query, scope)?;
        let ty = one_column(&plan)?.operand();
        Ok((Bound::Select(Made::Array, None, plan), ty.list()))
    }

    /// An element of a list, or one half of a pair.
    fn accessed(
        &mut self,
        (of, ty): (Bound, Type),
        access: &AccessExpr,
        scope: &Scope<'_>,
    ) -> Done<Typed> {
        let place = |n| Bound::Constant(Value::Int(n));
        let (at, made) = match access {
            AccessExpr::Subscript(Subscript::Index { index }) => {
                let (at, _) = self.expr(index, scope)?;
                // Those of a vector begin at 0.
                let at = match ty {
                    Type::Vector => {
                        Bound::call(plan::Call::Operator(Operator::Add), [at, place(1)])
                    }
                    _ => at,
                };
                (at, ty.element())
            }
            AccessExpr::Dot(Expr::Identifier(field)) => {
                let field = folded(field);
                match (ty, field.as_str()) {
                    (Type::Pair, "x") => (place(1), Type::INT4),
                    (Type::Pair, "n") => (place(2), Type::INT4),
                    _ => {
                        return Err(format!("column \"{field}\" not found in data type").into());
                    }
                }
            }
            _ => return Err("a part of an array is not supported".into()),
        };
        Ok((Bound::call(plan::Call::Element, [of, at]), made))
    }

    /// What does not change is cast once, unless it cannot be: that is told when a row needs it.
    fn cast(&mut self, bound: Bound, from: Type, data_type: &DataType) -> Done<Typed> {
        let name = type_name(data_type);
        let to = Type::named(&name).ok_or_else(|| format!("type \"{name}\" does not exist"))?;
        let is_of_time = name.starts_with("time") || name.starts_with("interval");
        let has_length = data_type.to_string().contains('(');
        refuse_if(has_length && !is_of_time, "a length or precision in a cast")?;
        if let Some(at) = from.kept() {
            // Of these, nothing is made but their text.
            let is_of_type = name_of_oid(oid_of(at)) == name;
            if is_of_type || name == "timestamp" && oid_of(at) == oid::TIMESTAMP {
                return Ok((bound, from));
            }
            let texts = ["text", "varchar", "character varying", "bpchar", "name"];
            refuse_if(!texts.contains(&&*name), &format!("a cast to {name}"))?;
        }
        if let Type::Parameter(_) = from {
            self.compared(Bound::Constant(Value::Null), &from, &to);
        }
        if let Bound::Constant(value) = &bound {
            if let Ok(cast) = value.clone().cast(&from, &to, self.session) {
                return Ok((Bound::Constant(cast), to));
            }
        }
        Ok((Bound::call(plan::Call::Cast(from, to.clone()), [bound]), to))
    }
}

fn parameter(written: &str) -> Done<Typed> {
    let number = written
        .strip_prefix('$')
        .and_then(|number| number.parse().ok());
    let number = number.and_then(|number: u16| number.checked_sub(1));
    let number = number.ok_or_else(|| format!("the parameter {written} is not supported"))?;
    Ok((Bound::Constant(Value::Null), Type::Parameter(number)))
}

fn constant(literal: &ValueWithSpan) -> Done<Typed> {
    let (value, ty) = match &literal.value {
        Literal::Null => (Value::Null, Type::TEXT),
        Literal::Boolean(is) => (Value::Bool(*is), Type::BOOL),
        Literal::Number(number, false) => match (number.parse::<i64>(), number.parse()) {
            (Ok(number), _) if i32::try_from(number).is_ok() => (Value::Int(number), Type::INT4),
            (Ok(number), _) => (Value::Int(number), Type::INT8),
            (_, Ok(number)) => (Value::Float(number), Type::Decimal),
            _ => return Err(format!("{number:?} is no number").into()),
        },
        literal => match text(literal) {
            Some(text) => (Value::Text(text.into()), Type::TEXT),
            None => return Err(format!("the constant {literal} is not supported").into()),
        },
    };
    Ok((Bound::Constant(value), ty))
}

fn is_same(both: [Bound; 2], is_not: bool) -> (Bound, Type) {
    let is_same = Bound::call(plan::Call::IsSame, both);
    (is_same.negated(is_not), Type::BOOL)
}

/// A list that is written as a text is read once, and not for each row.
fn listed(list: Bound) -> Bound {
    match &list {
        Bound::Constant(written @ Value::Text(_)) => match written.list() {
            Some(list) => Bound::Constant(Value::List(list)),
            None => list,
        },
        _ => list,
    }
}

fn one_column(plan: &Plan) -> Done<Type> {
    match &plan.columns[..] {
        [(_, ty)] => Ok(ty.clone()),
        _ => Err("subquery must return only one column".into()),
    }
}

/// The type of what is calculated from a value: no number is smaller than it must be.
fn calculated(ty: Type) -> Type {
    match ty {
        ty if ty.is_whole() => Type::INT8,
        Type::FLOAT4 => Type::FLOAT,
        ty => ty,
    }
}

fn result_of(operator: Operator, left: Type, right: Type) -> Type {
    // A parameter has the type of what it meets, and a number is written as one of 32 bits at least.
    let (left, right) = match (left, right) {
        (Type::Parameter(_), Type::INT2) | (Type::INT2, Type::Parameter(_)) => {
            (Type::INT4, Type::INT4)
        }
        (Type::Parameter(_), other) | (other, Type::Parameter(_)) => (other.clone(), other),
        both => both,
    };
    match operator {
        Operator::Concatenate if left.is_list() => left,
        Operator::Concatenate if right.is_list() => right,
        Operator::Concatenate => Type::TEXT,
        Operator::Add
        | Operator::Subtract
        | Operator::Multiply
        | Operator::Divide
        | Operator::Remainder
        | Operator::BitAnd => common(&[left, right].map(calculated)),
        _ => Type::BOOL,
    }
}

/// A pattern that does not change is read once.
fn matches([left, right]: [Bound; 2], like: Like) -> Done<Bound> {
    Ok(match &right {
        Bound::Constant(Value::Text(written)) => {
            Bound::Matches(left.into(), like, Pattern::new(written, like)?)
        }
        _ => Bound::call(plan::Call::Operator(Operator::Like(like)), [left, right]),
    })
}
