//! What a question reads, and how it is joined.

use std::rc::Rc;

use super::super::functions::series;
use super::super::plan::*;
use super::super::relations::relation;
use super::super::syntax::*;
use super::super::values::Type;
use super::scope::{RowKey, Scope, ScopeColumn};
use super::unbound::{Done, Unbound};
use super::{renamed, Binder, READ_VALUES_MAX, WIDTH_MAX};

impl Binder<'_> {
    pub(super) fn from(&mut self, list: &[From], scope: &mut Scope<'_>) -> Done<Vec<Step>> {
        let mut steps = Vec::new();
        for from in list {
            let start = scope.columns.len();
            let source = self.source(from, scope)?;
            if scope.columns.len() > WIDTH_MAX {
                return Err(format!("it reads more than {WIDTH_MAX} columns").into());
            }
            let on = match &from.on {
                On::Nothing => Vec::new(),
                On::Expr(expr) => self.conditions(expr, scope)?,
                On::Using(names) => {
                    let mut on = Vec::new();
                    for name in names {
                        on.push(using(name, start, scope)?);
                    }
                    on
                }
            };
            steps.push(Step {
                source,
                keeps_left: matches!(from.join, Join::Left | Join::Full),
                keeps_right: matches!(from.join, Join::Right | Join::Full),
                start,
                width: scope.columns.len() - start,
                on,
            });
        }
        Ok(steps)
    }

    /// Binds what is read, and adds its columns.
    fn source(&mut self, from: &From, scope: &mut Scope<'_>) -> Done<PlanSource> {
        let (source, name, mut columns) = match &from.source {
            Source::Group(list) => {
                let steps = self.from(list, scope)?;
                return Ok(PlanSource::Group(steps));
            }
            Source::Relation(parts) => {
                let name = parts.last().cloned().unwrap_or_default();
                let of_with = self
                    .with
                    .iter()
                    .rev()
                    .find(|(known, _)| parts.len() == 1 && *known == name);
                if let Some((_, plan)) = of_with {
                    let source = PlanSource::Select {
                        plan: plan.clone(),
                        is_lateral: false,
                    };
                    (source, name, plan.columns.clone())
                } else {
                    let found = relation(self.seen, parts, self.is_described);
                    let found = found.ok_or_else(|| {
                        format!("relation \"{}\" is not supported", parts.join("."))
                    })?;
                    let values = found.rows.len().saturating_mul(found.columns.len());
                    self.read_values = self.read_values.saturating_add(values);
                    if self.read_values > READ_VALUES_MAX {
                        return Err(format!(
                            "it reads more than {READ_VALUES_MAX} values of the catalogue"
                        )
                        .into());
                    }
                    if found.is_loose {
                        scope
                            .loose
                            .push(from.alias.clone().unwrap_or_else(|| name.clone()));
                    }
                    let start = scope.columns.len();
                    scope.keys.push(RowKey {
                        columns: start..start + found.columns.len(),
                        key: found.key.iter().map(|at| start + at).collect(),
                    });
                    let columns = found
                        .columns
                        .iter()
                        .map(|(name, ty)| ((*name).to_owned(), *ty));
                    (
                        PlanSource::Rows(Rc::new(found.rows)),
                        name,
                        columns.collect(),
                    )
                }
            }
            Source::Select { select, is_lateral } => {
                let plan = match is_lateral {
                    true => self.select(select, Some(scope))?,
                    false => self.select(select, scope.outer)?,
                };
                let columns = plan.columns.clone();
                let source = PlanSource::Select {
                    plan: Rc::new(plan),
                    is_lateral: *is_lateral,
                };
                (source, String::new(), columns)
            }
            Source::Function { call, is_numbered } => {
                let Expr::Call(call) = call else {
                    return Err("only functions give rows".into());
                };
                let (arguments, types) = self.list(&call.arguments, scope, &mut None)?;
                let found = series(&call.name, types.first().copied());
                let (series, columns) =
                    found.ok_or_else(|| format!("{}() does not give rows", call.name))?;
                let mut columns: Vec<(String, Type)> = columns
                    .iter()
                    .map(|(name, ty)| ((*name).to_owned(), *ty))
                    .collect();
                if let ([column], Some(alias)) = (&mut columns[..], &from.alias) {
                    column.0.clone_from(alias);
                }
                if *is_numbered {
                    columns.push(("ordinality".to_owned(), Type::Int8));
                }
                let source = PlanSource::Function {
                    series,
                    arguments,
                    is_numbered: *is_numbered,
                };
                (source, call.name.clone(), columns)
            }
        };
        renamed(&mut columns, &from.columns);
        let table = from.alias.clone().unwrap_or(name);
        for (name, ty) in columns {
            scope.columns.push(ScopeColumn {
                table: table.clone(),
                name,
                ty,
                is_hidden: false,
            });
        }
        Ok(source)
    }

    /// The conditions that all have to hold.
    pub(super) fn conditions(&mut self, expr: &Expr, scope: &Scope<'_>) -> Done<Vec<Condition>> {
        let list = match expr {
            Expr::And(list) => &list[..],
            one => std::slice::from_ref(one),
        };
        let mut conditions = Vec::new();
        for expr in list {
            let (bound, _) = self.expr(expr, scope, &mut None)?;
            conditions.push(condition(bound));
        }
        Ok(conditions)
    }
}

fn condition(bound: Bound) -> Condition {
    let needs = bound.needs().unwrap_or(usize::MAX);
    Condition { bound, needs }
}

/// `left.name = right.name`, of which one is seen.
fn using(name: &str, start: usize, scope: &mut Scope<'_>) -> Done<Condition> {
    let missing = || {
        let text = format!("column \"{name}\" specified in USING clause does not exist");
        Unbound::from(text)
    };
    let is_named = |column: &ScopeColumn| column.name == name && !column.is_hidden;
    let left = scope.columns[..start]
        .iter()
        .position(is_named)
        .ok_or_else(missing)?;
    let right = scope.columns[start..]
        .iter()
        .position(is_named)
        .ok_or_else(missing)?;
    let right = start + right;
    scope.columns[right].is_hidden = true;
    let column = |at| Bound::Column { up: 0, at };
    let both = Box::new((column(left), column(right)));
    Ok(condition(Bound::Binary(Operator::Equal, both)))
}
