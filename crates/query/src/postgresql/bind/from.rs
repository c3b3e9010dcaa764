//! What a question reads, and how it is joined.

use std::cell::Cell;
use std::sync::Arc;

use sqlparser::ast::*;

use super::super::column_type::Type;
use super::super::failure::{Done, Failure};
use super::super::functions::{no_series, series};
use super::super::plan::{Bound, Call, Columns, Condition, Operator, Source, Step};
use super::scope::{RowKey, Scope, ScopeColumn};
use super::syntax::{apart, arguments, chain, folded, parts, refuse_if, Part as _};
use super::{renamed, Binder, WIDTH_MAX};

/// How what is read is joined with what stands before it.
#[derive(Clone, Copy, Default)]
struct Kept {
    left: bool,
    right: bool,
}

impl Binder<'_> {
    pub(super) fn from(
        &mut self,
        list: &[TableWithJoins],
        scope: &mut Scope<'_>,
    ) -> Done<Vec<Step>> {
        let mut steps = Vec::new();
        for from in list {
            let start = scope.columns.len();
            let mut joined = self.joined(from, scope)?;
            // What a join keeps without a partner is of this item alone.
            match start > 0 && joined.iter().any(|step| step.keeps_right) {
                true => steps.push(Step {
                    source: group(joined, start)?,
                    keeps_left: false,
                    keeps_right: false,
                    start,
                    width: scope.columns.len() - start,
                    on: Vec::new(),
                }),
                false => steps.append(&mut joined),
            }
        }
        Ok(steps)
    }

    fn joined(&mut self, from: &TableWithJoins, scope: &mut Scope<'_>) -> Done<Vec<Step>> {
        let TableWithJoins { relation, joins } = from;
        let mut steps = vec![self.step(relation, Kept::default(), None, scope)?];
        for join in joins {
            apart!(join, Join { relation join_operator } without { global } passing {}, "GLOBAL JOIN");
            use JoinOperator as J;
            let (left, right, constraint) = match join_operator {
                J::Join(on) | J::Inner(on) | J::CrossJoin(on) => (false, false, on),
                J::Left(on) | J::LeftOuter(on) => (true, false, on),
                J::Right(on) | J::RightOuter(on) => (false, true, on),
                J::FullOuter(on) => (true, true, on),
                _ => return Err("a kind of JOIN that PostgreSQL does not have".into()),
            };
            let is_cross = matches!(join_operator, J::CrossJoin(_));
            let has_condition = !matches!(constraint, JoinConstraint::None);
            refuse_if(is_cross == has_condition, "JOIN without a condition")?;
            let kept = Kept { left, right };
            steps.push(self.step(relation, kept, Some(constraint), scope)?);
        }
        Ok(steps)
    }

    /// Binds what is read, adds its columns, and then binds how it is joined.
    fn step(
        &mut self,
        factor: &TableFactor,
        kept: Kept,
        constraint: Option<&JoinConstraint>,
        scope: &mut Scope<'_>,
    ) -> Done<Step> {
        let start = scope.columns.len();
        let source = self.source(factor, scope)?;
        refuse_if(
            kept.right && source.depends(start),
            "RIGHT or FULL JOIN of what follows from rows before it",
        )?;
        if scope.columns.len() > WIDTH_MAX {
            return Err(format!("it reads more than {WIDTH_MAX} columns").into());
        }
        let on = match constraint {
            None | Some(JoinConstraint::None) => Vec::new(),
            Some(JoinConstraint::On(expr)) => {
                let on = self.conditions(expr, scope)?;
                if !kept.right {
                    self.read_where(&on, scope, if kept.left { start } else { 0 });
                }
                on
            }
            Some(JoinConstraint::Using(names)) => {
                // Either side of the merged column may be NULL there.
                refuse_if(kept.left && kept.right, "FULL JOIN with USING")?;
                let mut on = Vec::new();
                for name in names {
                    on.push(using(&parts(name)?.join("."), start, kept.right, scope)?);
                }
                on
            }
            Some(JoinConstraint::Natural | JoinConstraint::UsingAlias(..)) => {
                return Err("this kind of JOIN is not supported".into());
            }
        };
        Ok(Step {
            source,
            keeps_left: kept.left,
            keeps_right: kept.right,
            start,
            width: scope.columns.len() - start,
            on,
        })
    }

    /// Binds what is read, and adds its columns.
    fn source(&mut self, factor: &TableFactor, scope: &mut Scope<'_>) -> Done<Source> {
        let (name, arguments, is_numbered, alias) = match factor {
            TableFactor::NestedJoin { .. } => {
                apart!(factor, TableFactor::NestedJoin { table_with_joins } without { alias } passing {}, "an alias of a join");
                let start = scope.columns.len();
                return group(self.joined(table_with_joins, scope)?, start);
            }
            TableFactor::Derived { .. } => {
                apart!(factor, TableFactor::Derived { lateral subquery alias } without { sample } passing {}, "TABLESAMPLE");
                let outer = if *lateral { Some(&*scope) } else { scope.outer };
                let plan = Arc::new(self.query(subquery, outer)?);
                let columns = plan.columns.clone();
                let source = Source::Select {
                    plan,
                    is_lateral: *lateral,
                };
                return self.add(source, String::new(), columns, alias.as_ref(), scope);
            }
            TableFactor::Table { .. } => {
                // No table inherits from another.
                apart!(factor, TableFactor::Table { name alias args with_ordinality }
                    without { with_hints version partitions json_path sample index_directives } passing { inheritance }, "a clause of FROM");
                let Some(called) = args else {
                    let parts = parts(name)?;
                    let (source, name, columns) = match self.named(&parts, alias.as_ref(), scope)? {
                        Some((source, columns)) => {
                            (source, parts.last().cloned().unwrap_or_default(), columns)
                        }
                        None => self.stored(name)?,
                    };
                    return self.add(source, name, columns, alias.as_ref(), scope);
                };
                apart!(called, TableFunctionArgs { args } without { settings } passing {}, "SETTINGS");
                (parts(name)?, arguments(args)?, *with_ordinality, alias)
            }
            TableFactor::Function { .. } => {
                apart!(factor, TableFactor::Function { name args with_ordinality alias } passing { lateral });
                (parts(name)?, arguments(args)?, *with_ordinality, alias)
            }
            TableFactor::UNNEST {
                with_offset: false,
                with_offset_alias: None,
                ..
            } => {
                apart!(factor, TableFactor::UNNEST { alias array_exprs with_ordinality } passing { with_offset with_offset_alias });
                let name = vec!["unnest".to_owned()];
                (name, array_exprs.iter().collect(), *with_ordinality, alias)
            }
            _ => return Err("something in FROM that the catalogue does not have".into()),
        };
        let name = name.last().cloned().unwrap_or_default();
        let alias = alias.as_ref();
        let (source, columns) = self.rows_of(&name, arguments, is_numbered, alias, scope)?;
        self.add(source, name, columns, alias, scope)
    }

    /// Adds the columns of what is read.
    fn add(
        &mut self,
        source: Source,
        name: String,
        mut columns: Columns,
        alias: Option<&TableAlias>,
        scope: &mut Scope<'_>,
    ) -> Done<Source> {
        let table = alias.map_or(name, |alias| folded(&alias.name));
        if let Some(alias) = alias {
            renamed(&mut columns, alias);
        }
        let stored = match &source {
            Source::Stored(table) => Some(*table),
            _ => None,
        };
        for (nth, (name, ty)) in columns.into_iter().enumerate() {
            scope.columns.push(ScopeColumn {
                table: table.clone(),
                name,
                ty,
                is_hidden: false,
                of: stored.map(|table| (table, nth)),
                is_used: Cell::new(false),
            });
        }
        Ok(source)
    }

    /// A table of the catalogue, or a question with a name. None: it is of the module, if there is one.
    fn named(
        &mut self,
        parts: &[String],
        alias: Option<&TableAlias>,
        scope: &mut Scope<'_>,
    ) -> Done<Option<(Source, Columns)>> {
        let name = parts.last().map_or("", String::as_str);
        let is_meant = |(known, _): &&(String, _)| parts.len() == 1 && known == name;
        if let Some((_, plan)) = self.with.iter().rev().find(is_meant) {
            let source = Source::Select {
                plan: plan.clone(),
                is_lateral: false,
            };
            return Ok(Some((source, plan.columns.clone())));
        }
        let Some(found) = self.session.table(parts) else {
            return Ok(None);
        };
        if found.is_loose() {
            let alias = alias.map(|alias| folded(&alias.name));
            scope.loose.push(alias.unwrap_or_else(|| name.to_owned()));
        }
        let start = scope.columns.len();
        scope.keys.push(RowKey {
            columns: start..start + found.columns.len(),
            key: found.key.iter().map(|at| start + at).collect(),
        });
        let columns = owned(&found.columns);
        Ok(Some((Source::Virtual(found), columns)))
    }

    /// A function that gives rows.
    fn rows_of(
        &mut self,
        name: &str,
        arguments: Vec<&Expr>,
        is_numbered: bool,
        alias: Option<&TableAlias>,
        scope: &Scope<'_>,
    ) -> Done<(Source, Columns)> {
        let (arguments, types) = self.list(arguments.into_iter(), scope)?;
        let found = series(name, types.len(), types.first().cloned());
        let (series, columns) = found.ok_or_else(|| no_series(name, &types))?;
        let mut columns = owned(&columns);
        if let ([column], Some(alias)) = (&mut columns[..], alias) {
            column.0 = folded(&alias.name);
        }
        if is_numbered {
            columns.push(("ordinality".to_owned(), Type::INT8));
        }
        let source = Source::Function {
            series,
            arguments,
            is_numbered,
        };
        Ok((source, columns))
    }

    /// The conditions that all have to hold.
    pub(super) fn conditions(&mut self, expr: &Expr, scope: &Scope<'_>) -> Done<Vec<Condition>> {
        let mut conditions = Vec::new();
        for expr in chain(expr, &BinaryOperator::And) {
            let (bound, _) = self.expr(expr, scope)?;
            conditions.push(condition(bound));
        }
        Ok(conditions)
    }
}

/// Joins that are read as one source, behind so many columns.
fn group(steps: Vec<Step>, start: usize) -> Done<Source> {
    let keeps_right = steps.iter().any(|step| step.keeps_right);
    let source = Source::Group(steps);
    // A row without a partner would not have the columns before it.
    refuse_if(
        start > 0 && keeps_right && source.depends(start),
        "RIGHT or FULL JOIN beside what follows from rows before it",
    )?;
    Ok(source)
}

fn owned(columns: &[(&str, Type)]) -> Columns {
    let columns = columns.iter();
    columns
        .map(|(name, ty)| ((*name).to_owned(), ty.clone()))
        .collect()
}

fn condition(bound: Bound) -> Condition {
    let needs = bound.needs().unwrap_or(usize::MAX);
    Condition { bound, needs }
}

/// `left.name = right.name`, of which the one is seen that every row has.
fn using(name: &str, start: usize, keeps_right: bool, scope: &mut Scope<'_>) -> Done<Condition> {
    let missing = || {
        let text = format!("column \"{name}\" specified in USING clause does not exist");
        Failure::from(text)
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
    let hidden = if keeps_right { left } else { right };
    scope.columns[hidden].is_hidden = true;
    scope.columns[left].is_used.set(true);
    scope.columns[right].is_used.set(true);
    let column = |at| Bound::Column { up: 0, at };
    let both = [column(left), column(right)];
    Ok(condition(Bound::call(
        Call::Operator(Operator::EQUAL),
        both,
    )))
}
