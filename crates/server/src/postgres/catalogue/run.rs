//! Carrying a plan out, within a bound on its work.

use std::cell::Cell;
use std::cmp::Ordering;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use super::super::failure::{state, Failure};
use super::functions::{rows_of, Aggregate};
use super::patterns::Pattern;
use super::plan::*;
use super::seen::Seen;
use super::syntax::{Like, Operator, SetOperation};
use super::values::{NoSuch, Value};

/// The work of one question: values that are looked at or copied. All that it holds was made in so many steps.
const STEPS_MAX: usize = 2_000_000;
/// Rows of a series.
const SERIES_ROWS_MAX: usize = 100_000;

type Row = Vec<Value>;
type Done<T> = Result<T, Failure>;

/// Runs questions, of which one may stand in another.
pub(super) struct Runner<'r> {
    seen: &'r Seen<'r>,
    steps: Cell<usize>,
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
        }
    }

    fn work(&self, steps: usize) -> Done<()> {
        let done = self.steps.get().saturating_add(steps);
        self.steps.set(done);
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
        if let Some(places) = &core.distinct {
            let mut known = HashSet::new();
            self.work(made.len() * places.len())?;
            made.retain(|row: &Row| known.insert(key_of(places.iter().map(|at| &row[*at]))));
        }
        Ok(made)
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

    /// Joins what is read, one after the other, to rows that there are.
    fn read(
        &self,
        steps: &[Step],
        rows: Vec<Row>,
        filter: &[Condition],
        outer: Option<&Env<'_>>,
    ) -> Done<Vec<Row>> {
        let mut rows = rows;
        for step in steps {
            let end = step.start + step.width;
            // What can be looked at from here on.
            let ripe: Vec<&Condition> = filter
                .iter()
                .filter(|condition| condition.needs <= end && condition.needs > step.start)
                .collect();
            rows = self.join(step, rows, &ripe, outer)?;
        }
        Ok(rows)
    }

    fn join(
        &self,
        step: &Step,
        left: Vec<Row>,
        ripe: &[&Condition],
        outer: Option<&Env<'_>>,
    ) -> Done<Vec<Row>> {
        let depends = matches!(
            step.source,
            PlanSource::Function { .. }
                | PlanSource::Select {
                    is_lateral: true,
                    ..
                }
        );
        let all = match depends {
            true => Rc::default(),
            false => self.source(step, &[], outer)?,
        };
        let hashed = match depends {
            true => None,
            false => self.hashed(step, &all, ripe)?,
        };
        let mut matched = vec![false; if step.keeps_right { all.len() } else { 0 }];
        let mut rows = Vec::new();
        for left in left {
            let lateral;
            let right = match depends {
                true => {
                    lateral = self.source(step, &left, outer)?;
                    &lateral
                }
                false => &all,
            };
            let mut has_partner = false;
            let mut candidates = Candidates::All(0..right.len());
            if let Some(hashed) = &hashed {
                let env = Env {
                    row: &left,
                    extras: &[],
                    outer,
                };
                // Others may be equal to numbers, and are not written as these are.
                if let wanted @ Value::Int(_) = self.value(hashed.left, &env)? {
                    let found = hashed.rows.get(&key_of([&wanted].into_iter()));
                    candidates = Candidates::Some(found.map_or(&[][..], Vec::as_slice).iter());
                }
            }
            for at in candidates {
                let mut row = left.clone();
                row.extend(right[at].iter().cloned());
                self.work(row.len())?;
                let env = Env {
                    row: &row,
                    extras: &[],
                    outer,
                };
                if !self.holds(step.on.iter(), &env)? {
                    continue;
                }
                has_partner = true;
                if step.keeps_right {
                    matched[at] = true;
                }
                if self.holds(ripe.iter().copied(), &env)? {
                    rows.push(row);
                }
            }
            if !has_partner && step.keeps_left {
                let mut row = left;
                row.resize(step.start + step.width, Value::Null);
                self.work(row.len())?;
                let env = Env {
                    row: &row,
                    extras: &[],
                    outer,
                };
                if self.holds(ripe.iter().copied(), &env)? {
                    rows.push(row);
                }
            }
        }
        for (at, _) in matched.iter().enumerate().filter(|(_, is)| !**is) {
            let mut row = vec![Value::Null; step.start];
            row.extend(all[at].iter().cloned());
            self.work(row.len())?;
            rows.push(row);
        }
        Ok(rows)
    }

    fn source(&self, step: &Step, left: &[Value], outer: Option<&Env<'_>>) -> Done<Rc<Vec<Row>>> {
        let env = Env {
            row: left,
            extras: &[],
            outer,
        };
        Ok(match &step.source {
            PlanSource::Rows(rows) => {
                self.work(rows.len())?;
                rows.clone()
            }
            PlanSource::Select { plan, is_lateral } => {
                let outer = if *is_lateral { Some(&env) } else { outer };
                Rc::new(self.rows(plan, outer)?)
            }
            PlanSource::Function {
                series,
                arguments,
                is_numbered,
            } => {
                let mut rows = self.series(*series, arguments, &env)?;
                if *is_numbered {
                    for (number, row) in (1..).zip(&mut rows) {
                        row.push(Value::Int(number));
                    }
                }
                Rc::new(rows)
            }
            PlanSource::Group(steps) => {
                let before = vec![Value::Null; step.start];
                let mut rows = self.read(steps, vec![before], &[], outer)?;
                rows.iter_mut().for_each(|row| {
                    row.drain(..step.start);
                });
                Rc::new(rows)
            }
        })
    }

    /// The rows of a source by the value that a condition compares with one from the left.
    fn hashed<'s>(
        &self,
        step: &'s Step,
        rows: &[Row],
        ripe: &[&'s Condition],
    ) -> Done<Option<Hashed<'s>>> {
        let conditions = step.on.iter().chain(
            ripe.iter()
                .copied()
                .filter(|_| !step.keeps_left && !step.keeps_right),
        );
        let column = |bound: &Bound| match bound {
            Bound::Column { up: 0, at } if *at >= step.start && *at < step.start + step.width => {
                Some(at - step.start)
            }
            _ => None,
        };
        let is_left = |bound: &Bound| {
            step.start > 0 && bound.needs().is_some_and(|needs| needs <= step.start)
        };
        for condition in conditions {
            let Bound::Binary(Operator::Equal, both) = &condition.bound else {
                continue;
            };
            let (at, left) = match (column(&both.0), column(&both.1)) {
                (Some(at), None) if is_left(&both.1) => (at, &both.1),
                (None, Some(at)) if is_left(&both.0) => (at, &both.0),
                _ => continue,
            };
            // Only values of one kind are equal as they are written.
            let of_kind = |value: &Value| matches!(value, Value::Int(_) | Value::Null);
            if !rows.iter().all(|row| of_kind(&row[at])) {
                continue;
            }
            let mut hashed: HashMap<Key, Vec<usize>> = HashMap::new();
            self.work(rows.len())?;
            for (nth, row) in rows.iter().enumerate() {
                hashed
                    .entry(key_of([&row[at]].into_iter()))
                    .or_default()
                    .push(nth);
            }
            return Ok(Some(Hashed { left, rows: hashed }));
        }
        Ok(None)
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
                self.work(count * (1 + separator.len() / 16))?;
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

    fn values(&self, list: &[Bound], env: &Env<'_>) -> Done<Vec<Value>> {
        list.iter().map(|bound| self.value(bound, env)).collect()
    }

    fn value(&self, bound: &Bound, env: &Env<'_>) -> Done<Value> {
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
                let made = function(self.seen, &values);
                self.work(made.weight())?;
                made
            }
            Bound::Not(one) => optional(self.value(one, env)?.truth().map(|is| !is)),
            Bound::Negative(one) => match self.value(one, env)? {
                Value::Float(number) => Value::Float(-number),
                value => value
                    .int()
                    .map_or(Value::Null, |n| Value::Int(n.saturating_neg())),
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
                    match wanted.compare(&self.value(bound, env)?) {
                        Some(Ordering::Equal) => return Ok(Value::Bool(true)),
                        None => has_null = true,
                        Some(_) => {}
                    }
                }
                optional((!has_null).then_some(false))
            }
            Bound::InSelect(one, plan) => {
                let wanted = self.value(one, env)?;
                let rows = self.rows(plan, Some(env))?;
                self.work(rows.len())?;
                let is_wanted = |row: &Row| match &row[..] {
                    [value] => wanted.compare(value) == Some(Ordering::Equal),
                    row => wanted.compare(&Value::List(row.into())) == Some(Ordering::Equal),
                };
                Value::Bool(rows.iter().any(is_wanted))
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
                        Some(operand) => operand.compare(&condition) == Some(Ordering::Equal),
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
                let invalid = |NoSuch(text)| Failure::new(state::INVALID_TEXT, text);
                value.cast(*from, *to, self.seen).map_err(invalid)?
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
                let at = at.int().and_then(|at| usize::try_from(at - 1).ok());
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
        let Some(list) = self.value(&both.1, env)?.list() else {
            return Ok(Value::Null);
        };
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
            self.work(written.len() / 4)?;
            let pattern = match like.is_regular {
                true => Pattern::regular(&written, like.ignores_case),
                false => Pattern::like(&written, like.ignores_case),
            };
            let unsupported =
                || Failure::unsupported(format!("the pattern {written:?} is not supported"));
            return self.matches(left, like, &pattern.ok_or_else(unsupported)?);
        }
        if left.is_null() || right.is_null() {
            return Ok(Value::Null);
        }
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
            operator => calculated(operator, left, right),
        })
    }
}

fn calculated(operator: Operator, left: &Value, right: &Value) -> Value {
    if let (Value::Float(_), _) | (_, Value::Float(_)) = (left, right) {
        let (Some(a), Some(b)) = (left.float(), right.float()) else {
            return Value::Null;
        };
        return Value::Float(match operator {
            Operator::Add => a + b,
            Operator::Subtract => a - b,
            Operator::Multiply => a * b,
            Operator::Divide => a / b,
            _ => a % b,
        });
    }
    let (Some(a), Some(b)) = (left.int(), right.int()) else {
        return Value::Null;
    };
    let made = match operator {
        Operator::Add => a.checked_add(b),
        Operator::Subtract => a.checked_sub(b),
        Operator::Multiply => a.checked_mul(b),
        Operator::Divide => a.checked_div(b),
        Operator::BitAnd => Some(a & b),
        _ => a.checked_rem(b),
    };
    made.map_or(Value::Null, Value::Int)
}

/// Rows of a source by the text of a value.
struct Hashed<'s> {
    left: &'s Bound,
    rows: HashMap<Key, Vec<usize>>,
}

/// Places of rows that may be partners.
enum Candidates<'c> {
    All(std::ops::Range<usize>),
    Some(std::slice::Iter<'c, usize>),
}

impl Iterator for Candidates<'_> {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        match self {
            Candidates::All(range) => range.next(),
            Candidates::Some(places) => places.next().copied(),
        }
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
