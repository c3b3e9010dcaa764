//! Carrying a plan out, within a bound on its work.

mod expressions;
mod joins;

use std::cell::Cell;
use std::cmp::Ordering;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;
use std::time::{Duration, Instant};

use super::super::failure::{state, Failure};
use super::functions::{rows_of, Aggregate};
use super::plan::*;
use super::seen::Seen;
use super::syntax::SetOperation;
use super::values::Value;

/// The work of one question: values that are looked at or copied. All that it holds was made in so many steps.
const STEPS_MAX: usize = 2_000_000;
/// What a question may take of a thread for reads, whatever its steps cost.
const TIME_MAX: Duration = Duration::from_secs(5);
/// Pieces of work between two looks at the clock.
const LOOKS_PER_CLOCK: usize = 64;
/// Rows of a series.
const SERIES_ROWS_MAX: usize = 100_000;

type Row = Vec<Value>;
type Done<T> = Result<T, Failure>;

/// Runs questions, of which one may stand in another.
pub(super) struct Runner<'r> {
    seen: &'r Seen<'r>,
    steps: Cell<usize>,
    looks: Cell<usize>,
    until: Instant,
}

/// What the names of an expression mean.
#[derive(Clone, Copy)]
pub(super) struct Env<'e> {
    row: &'e [Value],
    extras: &'e [Value],
    outer: Option<&'e Env<'e>>,
}

/// A value by which rows are told apart: with its kind, as PostgreSQL writes it.
type Key = Vec<(u8, Rc<str>)>;

fn key_of<'v>(values: impl Iterator<Item = &'v Value>) -> Key {
    let kind = |value: &Value| match value {
        Value::Null => 0,
        Value::Bool(_) => 1,
        Value::Int(_) | Value::Float(_) => 2,
        Value::Text(_) => 3,
        Value::List(_) => 4,
    };
    values.map(|value| (kind(value), value.shown())).collect()
}

impl<'r> Runner<'r> {
    pub fn new(seen: &'r Seen<'r>) -> Runner<'r> {
        Runner {
            seen,
            steps: Cell::new(0),
            looks: Cell::new(0),
            until: Instant::now() + TIME_MAX,
        }
    }

    fn work(&self, steps: usize) -> Done<()> {
        let done = self.steps.get().saturating_add(steps);
        self.steps.set(done);
        self.looks.set(self.looks.get().wrapping_add(1));
        if self.looks.get().is_multiple_of(LOOKS_PER_CLOCK) && self.until < Instant::now() {
            let message = format!(
                "the question to the catalogue takes more than {} s: ask for less at once",
                TIME_MAX.as_secs()
            );
            return Err(Failure::new(state::LIMIT_REACHED, message));
        }
        if done <= STEPS_MAX {
            return Ok(());
        }
        Err(Failure::new(
            state::LIMIT_REACHED,
            format!("the question to the catalogue takes more than {STEPS_MAX} steps: ask for fewer tables, or for less at once"),
        ))
    }

    /// All rows of a question.
    pub fn rows(&self, plan: &Plan, outer: Option<&Env<'_>>) -> Done<Vec<Row>> {
        let mut rows = self.body(&plan.body, outer)?;
        // Of rows that are the same to `DISTINCT ON`, the first in the order is wanted.
        let is_sorted_first = plan.others.is_empty();
        if !is_sorted_first {
            self.distinct(&plan.body, &mut rows)?;
        }
        for (operation, other) in &plan.others {
            let others = self.rows(other, outer)?;
            self.work((rows.len() + others.len()) * plan.columns.len())?;
            let keys = |rows: &[Row]| {
                rows.iter()
                    .map(|row| key_of(row.iter()))
                    .collect::<HashSet<_>>()
            };
            match operation {
                SetOperation::UnionAll | SetOperation::Union => rows.extend(others),
                SetOperation::Except => {
                    let others = keys(&others);
                    rows.retain(|row| !others.contains(&key_of(row.iter())));
                }
                SetOperation::Intersect => {
                    let others = keys(&others);
                    rows.retain(|row| others.contains(&key_of(row.iter())));
                }
            }
            if *operation != SetOperation::UnionAll {
                let mut known = HashSet::new();
                rows.retain(|row| known.insert(key_of(row.iter())));
            }
        }
        if !plan.order.is_empty() {
            // A comparison may look at several values.
            self.work(rows.len().saturating_mul(plan.order.len() * 8))?;
            rows.sort_by(|a, b| compared(a, b, &plan.order));
        }
        if is_sorted_first {
            self.distinct(&plan.body, &mut rows)?;
        }
        let env = Env {
            row: &[],
            extras: &[],
            outer,
        };
        if let Some(offset) = &plan.offset {
            let offset = self.value(offset, &env)?.int().unwrap_or(0);
            rows.drain(..usize::try_from(offset).unwrap_or(0).min(rows.len()));
        }
        if let Some(limit) = &plan.limit {
            if let Some(limit) = self.value(limit, &env)?.int() {
                rows.truncate(usize::try_from(limit).unwrap_or(0));
            }
        }
        // What only ordered them.
        rows.iter_mut()
            .for_each(|row| row.truncate(plan.columns.len()));
        Ok(rows)
    }

    fn body(&self, body: &Body, outer: Option<&Env<'_>>) -> Done<Vec<Row>> {
        match body {
            Body::Nested(plan) => self.rows(plan, outer),
            Body::Values(list) => {
                let env = Env {
                    row: &[],
                    extras: &[],
                    outer,
                };
                let row =
                    |row: &Vec<Bound>| row.iter().map(|value| self.value(value, &env)).collect();
                list.iter().map(row).collect()
            }
            Body::Core(core) => self.core(core, outer),
        }
    }

    fn core(&self, core: &CorePlan, outer: Option<&Env<'_>>) -> Done<Vec<Row>> {
        // A join that keeps what has no partner must not see its rows filtered before.
        let is_early = !core.steps.iter().any(|step| step.keeps_right);
        let early: &[Condition] = if is_early { &core.filter } else { &[] };
        let read = self.read(&core.steps, vec![Vec::new()], early, outer)?;
        let mut kept = Vec::new();
        for row in read {
            let env = Env {
                row: &row,
                extras: &[],
                outer,
            };
            let is_left = |condition: &&Condition| {
                !is_early || condition.needs == 0 || condition.needs > core.width
            };
            if self.holds(core.filter.iter().filter(is_left), &env)? {
                kept.push(row);
            }
        }
        let mut rows: Vec<(Row, Vec<Value>)> = match core.is_grouped {
            true => self.groups(core, kept, outer)?,
            false => {
                let nothing = vec![Value::Null; core.extras.len()];
                kept.into_iter().map(|row| (row, nothing.clone())).collect()
            }
        };
        self.number(core, &mut rows, outer)?;
        let mut made = Vec::new();
        for (row, extras) in rows {
            self.items(core, &row, extras, outer, &mut made)?;
        }
        Ok(made)
    }

    /// Keeps the first of rows that are the same to `DISTINCT`.
    fn distinct(&self, body: &Body, rows: &mut Vec<Row>) -> Done<()> {
        let Body::Core(core) = body else {
            return Ok(());
        };
        if let Some(places) = &core.distinct {
            let mut known = HashSet::new();
            self.work(rows.len() * places.len())?;
            rows.retain(|row| known.insert(key_of(places.iter().map(|at| &row[*at]))));
        }
        Ok(())
    }

    /// The values that come out for a row: several times if a function among them gives several.
    fn items(
        &self,
        core: &CorePlan,
        row: &[Value],
        mut extras: Vec<Value>,
        outer: Option<&Env<'_>>,
        made: &mut Vec<Row>,
    ) -> Done<()> {
        let mut series = Vec::new();
        for (nth, extra) in core.extras.iter().enumerate() {
            let Extra::Series {
                series: of,
                arguments,
            } = extra
            else {
                continue;
            };
            let env = Env {
                row,
                extras: &extras,
                outer,
            };
            series.push((nth, self.series(*of, arguments, &env)?));
        }
        let count = series.iter().map(|(_, rows)| rows.len()).max();
        for at in 0..count.unwrap_or(1) {
            for (nth, rows) in &series {
                extras[*nth] = match rows.get(at) {
                    Some(row) if row.len() == 1 => row[0].clone(),
                    Some(row) => Value::List(row.clone().into()),
                    None => Value::Null,
                };
            }
            let env = Env {
                row,
                extras: &extras,
                outer,
            };
            if let Some(having) = &core.having {
                if self.value(having, &env)?.truth() != Some(true) {
                    continue;
                }
            }
            let items = core.items.iter().map(|item| self.value(item, &env));
            made.push(items.collect::<Done<Row>>()?);
        }
        Ok(())
    }

    fn series(
        &self,
        series: super::functions::Series,
        arguments: &[Bound],
        env: &Env<'_>,
    ) -> Done<Vec<Row>> {
        let arguments = self.values(arguments, env)?;
        let rows = rows_of(series, &arguments, SERIES_ROWS_MAX);
        let rows = rows.ok_or_else(|| {
            let message = format!("a series has more than {SERIES_ROWS_MAX} rows");
            Failure::new(state::LIMIT_REACHED, message)
        })?;
        self.work(2 * rows.len())?;
        Ok(rows)
    }

    fn holds<'c>(
        &self,
        conditions: impl Iterator<Item = &'c Condition>,
        env: &Env<'_>,
    ) -> Done<bool> {
        for condition in conditions {
            if self.value(&condition.bound, env)?.truth() != Some(true) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The first row of each group, with its aggregates.
    fn groups(
        &self,
        core: &CorePlan,
        rows: Vec<Row>,
        outer: Option<&Env<'_>>,
    ) -> Done<Vec<(Row, Vec<Value>)>> {
        let mut places: HashMap<Key, usize> = HashMap::new();
        let mut groups: Vec<Vec<Row>> = Vec::new();
        for row in rows {
            let env = Env {
                row: &row,
                extras: &[],
                outer,
            };
            let key = key_of(self.values(&core.group, &env)?.iter());
            let at = *places.entry(key).or_insert(groups.len());
            if at == groups.len() {
                groups.push(Vec::new());
            }
            groups[at].push(row);
        }
        if groups.is_empty() && core.group.is_empty() {
            groups.push(Vec::new());
        }
        let mut made = Vec::new();
        for group in groups {
            let mut extras = vec![Value::Null; core.extras.len()];
            for (nth, extra) in core.extras.iter().enumerate() {
                if let Extra::Aggregate { .. } = extra {
                    extras[nth] = self.aggregate(extra, &group, outer)?;
                }
            }
            let first = group.into_iter().next();
            made.push((
                first.unwrap_or_else(|| vec![Value::Null; core.width]),
                extras,
            ));
        }
        Ok(made)
    }

    fn aggregate(&self, extra: &Extra, rows: &[Row], outer: Option<&Env<'_>>) -> Done<Value> {
        let Extra::Aggregate {
            aggregate,
            arguments,
            is_distinct,
            order,
            filter,
        } = extra
        else {
            return Ok(Value::Null);
        };
        let mut values: Vec<(Vec<Value>, Vec<Value>)> = Vec::new();
        let mut known = HashSet::new();
        for row in rows {
            let env = Env {
                row,
                extras: &[],
                outer,
            };
            if let Some(filter) = filter {
                if self.value(filter, &env)?.truth() != Some(true) {
                    continue;
                }
            }
            let value = self.values(arguments, &env)?;
            let is_counted = value
                .first()
                .is_none_or(|value| !value.is_null() || *aggregate == Aggregate::ListOf);
            if !is_counted || *is_distinct && !known.insert(key_of(value.iter())) {
                continue;
            }
            let keys = order.iter().map(|(by, _)| self.value(by, &env));
            values.push((keys.collect::<Done<_>>()?, value));
        }
        values.sort_by(|(a, _), (b, _)| ordered(a, b, order));
        let count = values.len();
        let mut firsts = values
            .iter()
            .filter_map(|(_, value)| value.first().cloned());
        Ok(match aggregate {
            Aggregate::Count => Value::Int(count as i64),
            Aggregate::Min => firsts.min_by(Value::order).unwrap_or(Value::Null),
            Aggregate::Max => firsts.max_by(Value::order).unwrap_or(Value::Null),
            Aggregate::Sum if count == 0 => Value::Null,
            Aggregate::Sum => {
                Value::Int(firsts.filter_map(|v| v.int()).fold(0, i64::saturating_add))
            }
            Aggregate::ListOf if count == 0 => Value::Null,
            Aggregate::ListOf => Value::List(firsts.collect()),
            Aggregate::Joined if count == 0 => Value::Null,
            Aggregate::Joined => {
                let separator = values
                    .first()
                    .and_then(|(_, value)| value.get(1))
                    .map(Value::shown);
                let separator = separator.unwrap_or_default();
                let shown: Vec<Rc<str>> = firsts.map(|value| value.shown()).collect();
                let weights = values.iter().filter_map(|(_, value)| value.first());
                let weight: usize = weights.map(Value::weight).sum();
                self.work(weight.saturating_add(count * (1 + separator.len() / 16)))?;
                Value::Text(shown.join(&separator).into())
            }
            Aggregate::AnyTrue if count == 0 => Value::Null,
            Aggregate::AnyTrue => Value::Bool(firsts.any(|value| value.truth() == Some(true))),
            Aggregate::AllTrue if count == 0 => Value::Null,
            Aggregate::AllTrue => Value::Bool(firsts.all(|value| value.truth() == Some(true))),
        })
    }

    /// Gives rows their numbers.
    fn number(
        &self,
        core: &CorePlan,
        rows: &mut [(Row, Vec<Value>)],
        outer: Option<&Env<'_>>,
    ) -> Done<()> {
        for (nth, extra) in core.extras.iter().enumerate() {
            let Extra::RowNumber { partition, order } = extra else {
                continue;
            };
            let mut keys: Vec<(Key, Vec<Value>, usize)> = Vec::new();
            for (at, (row, extras)) in rows.iter().enumerate() {
                let env = Env { row, extras, outer };
                let key = key_of(self.values(partition, &env)?.iter());
                let by = order.iter().map(|(by, _)| self.value(by, &env));
                keys.push((key, by.collect::<Done<_>>()?, at));
            }
            self.work(keys.len() * 8)?;
            keys.sort_by(|(a, a_by, _), (b, b_by, _)| {
                a.cmp(b).then_with(|| ordered(a_by, b_by, order))
            });
            let mut number = 0;
            for place in 0..keys.len() {
                let is_new = place == 0 || keys[place].0 != keys[place - 1].0;
                number = if is_new { 1 } else { number + 1 };
                rows[keys[place].2].1[nth] = Value::Int(number);
            }
        }
        Ok(())
    }
}

fn compared(a: &Row, b: &Row, keys: &[SortKey]) -> Ordering {
    for key in keys {
        let (a, b) = (&a[key.at], &b[key.at]);
        let order = match (a.is_null(), b.is_null()) {
            (false, false) if key.is_descending => b.order(a),
            (false, false) => a.order(b),
            (true, true) => Ordering::Equal,
            (true, false) if key.nulls_first => Ordering::Less,
            (false, true) if !key.nulls_first => Ordering::Less,
            _ => Ordering::Greater,
        };
        if order.is_ne() {
            return order;
        }
    }
    Ordering::Equal
}

fn ordered(a: &[Value], b: &[Value], by: &[(Bound, bool)]) -> Ordering {
    for ((a, b), (_, is_descending)) in a.iter().zip(b).zip(by) {
        let order = if *is_descending {
            b.order(a)
        } else {
            a.order(b)
        };
        if order.is_ne() {
            return order;
        }
    }
    Ordering::Equal
}
