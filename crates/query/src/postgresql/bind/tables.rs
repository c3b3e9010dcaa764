//! Tables of the module in a question: which of their columns and rows are read, by a query of the ad hoc language. So their
//! rights, rules and indexes are what they always are.

use std::sync::Arc;

use sqlparser::ast::{Ident, ObjectName};

use super::super::cast::literal;
use super::super::column_type::Type;
use super::super::failure::{state, Done, Failure};
use super::super::plan::*;
use super::draft::Draft;
use super::scope::Scope;
use super::syntax::parts;
use super::Binder;
use crate::scalar::Scalar;
use crate::words::quoted;

/// Tables of the module in one question, each counted where it stands.
const TABLES_MAX: usize = 64;
/// Comparisons with constants by which one of them is read.
const CONDITIONS_MAX: usize = 32;
/// Values of a list by which it is read.
const LISTED_MAX: usize = 256;

impl Binder<'_> {
    /// Finds a table of the module: as it is written, or else as PostgreSQL folds it.
    pub(super) fn found<T>(
        &self,
        name: &ObjectName,
        find: impl Fn(&str) -> Done<T>,
    ) -> Done<(String, T)> {
        let folded = parts(name)?;
        let schema = folded.len().checked_sub(2).map(|at| &*folded[at]);
        let written = name.0.last().and_then(|part| part.as_ident());
        let Some(Ident { value, .. }) = written.filter(|_| schema.is_none_or(|s| s == "public"))
        else {
            let message = format!("relation \"{}\" does not exist", folded.join("."));
            return Err(Failure::new(state::NO_SUCH_TABLE, message));
        };
        let find = |name: &str| find(name).map(|found| (name.to_owned(), found));
        let folded = folded.last().filter(|folded| *folded != value);
        find(value).or_else(|error| match folded {
            Some(folded) => find(folded).map_err(|_| error),
            None => Err(error),
        })
    }

    /// A table of the module.
    pub(super) fn stored(&mut self, name: &ObjectName) -> Done<(Source, String, Columns)> {
        if self.drafts.len() == TABLES_MAX {
            return Err(format!("it reads more than {TABLES_MAX} tables").into());
        }
        let (name, found) = self.found(name, |name| {
            let query = format!("SELECT * FROM {}", quoted(name));
            self.session.columns(&query)
        })?;
        let (mut columns, mut types) = (Vec::new(), Vec::new());
        for column in found.elements {
            let name = column.name().unwrap_or_default().to_owned();
            types.push((name.clone(), Type::Of(column.algebraic_type.clone())));
            columns.push((name, Arc::new(column.algebraic_type)));
        }
        let number = self.drafts.len();
        self.drafts.push(Draft::new(number, &name, columns));
        Ok((Source::Stored(number), name, types))
    }

    /// Reads tables that are joined by equal columns as one: only rows that have partners are read.
    pub(super) fn read_joined(&mut self, plan: &mut CorePlan, scope: &mut Scope<'_>) {
        let mut at = 1;
        // A condition of a join must hold before one that keeps what has no partner.
        while at < plan.steps.len() && plan.steps.iter().all(|step| !step.keeps_right) {
            if !self.is_read_joined(&plan.steps[at - 1..=at], &plan.filter, scope) {
                at += 1;
                continue;
            }
            let step = plan.steps.remove(at);
            plan.steps[at - 1].width += step.width;
            plan.filter.extend(step.on);
            plan.is_filtered_before = false;
        }
    }

    fn is_read_joined(
        &mut self,
        steps: &[Step],
        filter: &[Condition],
        scope: &mut Scope<'_>,
    ) -> bool {
        let (Source::Stored(one), Source::Stored(other)) = (&steps[0].source, &steps[1].source)
        else {
            return false;
        };
        let (one, other) = (*one, *other);
        if self.drafts[one].is_target || self.drafts[other].is_target {
            return false;
        }
        let conditions = steps[1].on.iter().chain(filter);
        let equal = conditions.filter_map(|of| self.equal(&of.bound, scope, (one, other)));
        let equal: Vec<_> = equal.collect();
        if equal.is_empty() || steps.iter().any(|step| step.keeps_left) {
            return false;
        }
        let joined = self.drafts[one].joined(&self.drafts[other], &equal);
        // There may be too many relations, if rules are drawn in.
        if self.session.columns(&joined.text(true)).is_err() {
            return false;
        }
        let width = self.drafts[one].columns.len();
        for (table, at) in scope.columns.iter_mut().filter_map(|of| of.of.as_mut()) {
            if *table == other {
                (*table, *at) = (one, width + *at);
            }
        }
        self.drafts[one] = joined;
        self.drafts[other].is_joined = true;
        true
    }

    /// The columns of two tables that a condition compares, if it means the same in the ad hoc language.
    fn equal(
        &self,
        bound: &Bound,
        scope: &Scope<'_>,
        (one, other): (usize, usize),
    ) -> Option<(usize, usize)> {
        let Bound::Call(Call::Operator(Operator::EQUAL), both) = bound else {
            return None;
        };
        let column = |bound: &Bound| match bound {
            Bound::Column { up: 0, at } => scope.columns[*at].of,
            _ => None,
        };
        let (left, right) = (column(&both[0])?, column(&both[1])?);
        let (own, of) = match (left.0 == one, right.0 == one) {
            (true, false) => (left, right),
            (false, true) => (right, left),
            _ => return None,
        };
        let ty = |(table, at): (usize, usize)| &self.drafts[table].columns[at].1;
        let is_same = of.0 == other && ty(own) == ty(of) && Scalar::of(ty(own)).is_some();
        is_same.then_some((own.1, of.1))
    }

    /// Notes which columns of tables a question uses.
    pub(super) fn note_used(&mut self, scope: &Scope<'_>) {
        for column in scope.columns.iter().filter(|column| column.is_used.get()) {
            if let Some((table, at)) = column.of {
                self.drafts[table].is_used[at] = true;
            }
        }
    }

    /// Reads tables whose columns begin behind so many others only as far as conditions may hold, which are looked at again.
    /// True: all of them hold of what is read.
    pub(super) fn read_where(
        &mut self,
        conditions: &[Condition],
        scope: &Scope<'_>,
        start: usize,
    ) -> bool {
        let mut are_all = true;
        // Others hold for all rows, or for none.
        for condition in conditions.iter().filter(|condition| condition.needs > 0) {
            let found = self.written(&condition.bound, scope, start);
            let Some((table, written)) = found else {
                are_all = false;
                continue;
            };
            let known = &mut self.drafts[table].conditions;
            match known.len() < CONDITIONS_MAX {
                true => known.push(written),
                false => are_all = false,
            }
        }
        are_all
    }

    /// A comparison of a column with constants in the ad hoc language, and the table that it is of. It has to mean the same.
    fn written(&self, bound: &Bound, scope: &Scope<'_>, start: usize) -> Option<(usize, String)> {
        let column = |bound: &Bound| match bound {
            Bound::Column { up: 0, at } if *at >= start => scope.columns[*at].of,
            _ => None,
        };
        let literal = |(table, at): (usize, usize), bound: &Bound| match bound {
            Bound::Constant(value) => literal(&self.drafts[table].columns[at].1, value),
            _ => None,
        };
        let name = |(table, at): (usize, usize)| self.drafts[table].columns[at].0.as_str();
        match bound {
            Bound::Call(Call::Operator(Operator::Compare(comparison)), both) => {
                let (of, value, comparison) = match (column(&both[0]), column(&both[1])) {
                    (Some(of), None) => (of, &both[1], *comparison),
                    (None, Some(of)) => (of, &both[0], comparison.flipped()),
                    _ => return None,
                };
                let (name, sign) = (name(of), comparison.as_str());
                Some((of.0, format!("{name} {sign} {}", literal(of, value)?)))
            }
            Bound::Call(Call::In, list) if (2..=1 + LISTED_MAX).contains(&list.len()) => {
                let of = column(&list[0])?;
                let list = list[1..].iter().map(|value| literal(of, value));
                let list = list.collect::<Option<Vec<_>>>()?.join(", ");
                Some((of.0, format!("{} IN ({list})", name(of))))
            }
            _ => None,
        }
    }

    /// Of a question on one table that gives some of its rows, only the first are read.
    pub(super) fn read_first(
        &mut self,
        body: &Body,
        keys: &[SortKey],
        limit: Option<&Bound>,
        offset: Option<&Bound>,
    ) {
        let Body::Core(core) = body else {
            return;
        };
        let [step] = &core.steps[..] else {
            return;
        };
        let Source::Stored(table) = step.source else {
            return;
        };
        let gives_others = core.is_grouped || !core.extras.is_empty() || core.distinct.is_some();
        let count = |bound: Option<&Bound>| match bound {
            None => Some(0),
            Some(Bound::Constant(value)) => value.int().and_then(|n| u64::try_from(n).ok()),
            Some(_) => None,
        };
        let rows = match (limit.and_then(|limit| count(Some(limit))), count(offset)) {
            (Some(limit), Some(offset)) => limit.saturating_add(offset),
            _ => return,
        };
        if gives_others || !core.is_filtered_before {
            return;
        }
        let draft = &mut self.drafts[table];
        let mut order = Vec::new();
        for key in keys {
            let at = match core.items.get(key.at) {
                Some(Bound::Column { up: 0, at }) => *at,
                _ => return,
            };
            let (name, ty) = &draft.columns[at];
            if ty.as_option().is_some() {
                return;
            }
            let direction = if key.is_descending { " DESC" } else { "" };
            order.push(format!("{name}{direction}"));
        }
        draft.end = match order.is_empty() {
            true => format!(" LIMIT {rows}"),
            false => format!(" ORDER BY {} LIMIT {rows}", order.join(", ")),
        };
    }
}
