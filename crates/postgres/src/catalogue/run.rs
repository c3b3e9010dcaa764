//! Carrying a plan out, within a bound on its work.

mod expressions;
mod joins;
mod sort;

use std::cell::{Cell, OnceCell};
use std::cmp::Ordering;
use std::collections::{HashMap, HashSet};
use std::sync::atomic;
use std::sync::Arc;
use std::time::{Duration, Instant};

use lightcone_types::Reader;

use self::sort::sorted;
use super::super::failure::{state, Failure};
use super::bind::{Question, TableRead};
use super::cancelled::Cancelled;
use super::functions::{rows_of, Aggregate};
use super::plan::*;
use super::seen::Seen;
use super::stored::Types;
use super::values::Value;
use lightcone_database::HeldBytes;

/// The work of one question: values that are looked at or copied. All that it holds was made in so many steps.
pub(super) const STEPS_MAX: usize = 2_000_000;
/// What a question may take of a thread for reads, whatever its steps cost.
const TIME_MAX: Duration = Duration::from_secs(5);
/// Pieces of work between two looks at the clock, and at whether the client still wants the answer.
const PIECES_PER_LOOK: usize = 64;
/// Work of so many steps is a piece more.
const STEPS_PER_PIECE: usize = 256;
/// Rows of a series.
const SERIES_ROWS_MAX: usize = 100_000;

type Row = Vec<Value>;
type Done<T> = Result<T, Failure>;

/// The rows of a table of the module in BSATN, in pieces.
pub(in super::super) type Pieces = Vec<HeldBytes>;

/// A table of the module that was read.
struct Table<'r> {
    read: &'r TableRead,
    pieces: &'r [HeldBytes],
    rows: OnceCell<Arc<Vec<Row>>>,
}

/// Runs questions, of which one may stand in another.
pub(super) struct Runner<'r> {
    seen: &'r Seen<'r>,
    types: &'r Types,
    tables: Vec<Table<'r>>,
    steps_max: usize,
    steps: Cell<usize>,
    pieces: Cell<usize>,
    until: Instant,
    cancelled: &'r Cancelled,
}

/// What the names of an expression mean.
#[derive(Clone, Copy)]
pub(super) struct Env<'e> {
    row: &'e [Value],
    extras: &'e [Value],
    outer: Option<&'e Env<'e>>,
}

impl<'e> Env<'e> {
    /// Of a row before anything is made of several.
    pub fn new(row: &'e [Value], outer: Option<&'e Env<'e>>) -> Env<'e> {
        Env {
            row,
            extras: &[],
            outer,
        }
    }
}

/// A value by which rows are told apart: with its kind, as PostgreSQL writes it.
type Key = Vec<(u8, Arc<str>)>;

fn kind(value: &Value) -> u8 {
    match value {
        Value::Null => 0,
        Value::Bool(_) => 1,
        Value::Int(_) | Value::Float(_) => 2,
        Value::Text(_) => 3,
        Value::List(_) => 4,
        Value::Stored(stored) if stored.is_number() => 2,
        Value::Stored(_) => 5,
    }
}

impl<'r> Runner<'r> {
    /// `rows` are those of the tables of the question.
    pub fn new(
        seen: &'r Seen<'r>,
        question: &'r Question,
        rows: &'r [Pieces],
        cancelled: &'r Cancelled,
    ) -> Runner<'r> {
        let tables = question.tables.iter().zip(rows);
        let table = |(read, pieces): (&'r TableRead, &'r Pieces)| Table {
            read,
            pieces,
            rows: OnceCell::new(),
        };
        Runner {
            seen,
            types: &question.types,
            tables: tables.map(table).collect(),
            steps_max: STEPS_MAX,
            steps: Cell::new(0),
            pieces: Cell::new(0),
            until: Instant::now() + TIME_MAX,
            cancelled,
        }
    }

    fn work(&self, steps: usize) -> Done<()> {
        let done = self.steps.get().saturating_add(steps);
        self.steps.set(done);
        if done > self.steps_max {
            return Err(Failure::new(
                state::LIMIT_REACHED,
                format!("the question takes more than {} steps: ask for fewer rows or tables, or for less at once", self.steps_max),
            ));
        }
        let pieces = self.pieces.get() + 1 + steps / STEPS_PER_PIECE;
        if pieces < PIECES_PER_LOOK {
            self.pieces.set(pieces);
            return Ok(());
        }
        self.pieces.set(0);
        self.look()
    }

    /// Ends when the question is cancelled, or takes too long.
    fn look(&self) -> Done<()> {
        if self.cancelled.load(atomic::Ordering::Relaxed) {
            return Err(Failure::cancelled());
        }
        if self.until < Instant::now() {
            let message = format!(
                "the question takes more than {} s: ask for less at once",
                TIME_MAX.as_secs()
            );
            return Err(Failure::new(state::LIMIT_REACHED, message));
        }
        Ok(())
    }

    /// By what rows are told apart.
    fn key<'v>(&self, values: impl IntoIterator<Item = &'v Value>) -> Done<Key> {
        let mut key = Key::new();
        for value in values {
            self.work(value.weight())?;
            let shown = match value {
                // Zero has two signs.
                Value::Float(number) if *number == 0.0 => "0".into(),
                value => value.shown(),
            };
            key.push((kind(value), shown));
        }
        Ok(key)
    }

    /// The rows whose keys are wanted.
    fn kept(&self, rows: Vec<Row>, mut is_wanted: impl FnMut(Key) -> bool) -> Done<Vec<Row>> {
        let mut kept = Vec::new();
        for row in rows {
            if is_wanted(self.key(&row)?) {
                kept.push(row);
            }
        }
        Ok(kept)
    }

    /// Ends before so many steps.
    pub fn within(mut self, steps_max: usize) -> Runner<'r> {
        self.steps_max = steps_max;
        self
    }

    /// The rows of a table of the module.
    fn stored(&self, at: usize) -> Done<Arc<Vec<Row>>> {
        let table = &self.tables[at];
        if let Some(rows) = table.rows.get() {
            return Ok(rows.clone());
        }
        let mut rows = Vec::new();
        for piece in table.pieces {
            let mut rest: &[u8] = piece.as_ref();
            // A byte stands before each row.
            while let Some((_, behind)) = rest.split_first() {
                self.work(table.read.width)?;
                let mut reader = Reader::new(behind);
                let mut row = vec![Value::Null; table.read.width];
                for (place, ty) in &table.read.columns {
                    row[*place] = Value::of_stored(ty, &mut reader);
                    self.work(row[*place].weight())?;
                }
                rows.push(row);
                rest = reader.remaining();
            }
        }
        Ok(table.rows.get_or_init(|| Arc::new(rows)).clone())
    }

    /// All rows of a question.
    pub fn rows(&self, plan: &Plan, outer: Option<&Env<'_>>) -> Done<Vec<Row>> {
        let mut rows = self.body(&plan.body, outer)?;
        // Of rows that are the same to `DISTINCT ON`, the first in the order is wanted.
        let is_sorted_first = plan.others.is_empty();
        if !is_sorted_first {
            rows = self.distinct(&plan.body, rows)?;
        }
        for (operation, other) in &plan.others {
            rows = self.with(rows, *operation, self.rows(other, outer)?)?;
        }
        if !plan.order.is_empty() {
            rows = sorted(rows, &mut |a, b| self.compared(a, b, &plan.order))?;
        }
        if is_sorted_first {
            rows = self.distinct(&plan.body, rows)?;
        }
        let env = Env::new(&[], outer);
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

    /// Rows and others, as an operation puts them together.
    fn with(
        &self,
        mut rows: Vec<Row>,
        operation: SetOperation,
        others: Vec<Row>,
    ) -> Done<Vec<Row>> {
        match operation {
            SetOperation::UnionAll | SetOperation::Union => {
                self.work(others.len())?;
                rows.extend(others);
            }
            SetOperation::Except | SetOperation::Intersect => {
                let mut keys = HashSet::new();
                for row in &others {
                    keys.insert(self.key(row)?);
                }
                let is_kept = operation == SetOperation::Intersect;
                rows = self.kept(rows, |key| keys.contains(&key) == is_kept)?;
            }
        }
        if operation == SetOperation::UnionAll {
            return Ok(rows);
        }
        let mut known = HashSet::new();
        self.kept(rows, |key| known.insert(key))
    }

    fn body(&self, body: &Body, outer: Option<&Env<'_>>) -> Done<Vec<Row>> {
        match body {
            Body::Nested(plan) => self.rows(plan, outer),
            Body::Values(list) => {
                let env = Env::new(&[], outer);
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
            let env = Env::new(&row, outer);
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
    fn distinct(&self, body: &Body, rows: Vec<Row>) -> Done<Vec<Row>> {
        let Body::Core(core) = body else {
            return Ok(rows);
        };
        let Some(places) = &core.distinct else {
            return Ok(rows);
        };
        let (mut known, mut kept) = (HashSet::new(), Vec::new());
        for row in rows {
            if known.insert(self.key(places.iter().map(|at| &row[*at]))?) {
                kept.push(row);
            }
        }
        Ok(kept)
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
        self.work(arguments.iter().map(Value::weight).sum())?;
        let rows = rows_of(series, &arguments, SERIES_ROWS_MAX)?;
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
            let env = Env::new(&row, outer);
            let key = self.key(&self.values(&core.group, &env)?)?;
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
            let env = Env::new(row, outer);
            if let Some(filter) = filter {
                if self.value(filter, &env)?.truth() != Some(true) {
                    continue;
                }
            }
            let value = self.values(arguments, &env)?;
            let is_counted = value
                .first()
                .is_none_or(|value| !value.is_null() || *aggregate == Aggregate::ListOf);
            if !is_counted || *is_distinct && !known.insert(self.key(&value)?) {
                continue;
            }
            let keys = order.iter().map(|(by, _)| self.value(by, &env));
            values.push((keys.collect::<Done<_>>()?, value));
        }
        if !order.is_empty() {
            values = sorted(values, &mut |(a, _), (b, _)| self.ordered(a, b, order))?;
        }
        let weights = values.iter().filter_map(|(_, value)| value.first());
        self.work(weights.map(Value::weight).sum())?;
        let count = values.len();
        let mut firsts = values
            .iter()
            .filter_map(|(_, value)| value.first().cloned());
        Ok(match aggregate {
            Aggregate::Count => Value::Int(count as i64),
            Aggregate::Min => firsts.min_by(Value::order).unwrap_or(Value::Null),
            Aggregate::Max => firsts.max_by(Value::order).unwrap_or(Value::Null),
            Aggregate::Sum | Aggregate::Average if count == 0 => Value::Null,
            Aggregate::Sum | Aggregate::Average
                if firsts.clone().any(|value| value.float().is_none()) =>
            {
                let message = "a sum is of numbers";
                return Err(Failure::new(state::INVALID_TEXT, message));
            }
            Aggregate::Average => {
                let sum: f64 = firsts.filter_map(|value| value.float()).sum();
                Value::Float(sum / count as f64)
            }
            Aggregate::Sum if firsts.clone().any(|value| matches!(value, Value::Float(_))) => {
                Value::Float(firsts.filter_map(|value| value.float()).sum())
            }
            Aggregate::Sum => {
                let mut numbers = firsts.map(|value| value.int());
                let sum = numbers.try_fold(0, |sum: i64, number| sum.checked_add(number?));
                Value::Int(sum.ok_or_else(Failure::out_of_range)?)
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
                let shown: Vec<Arc<str>> = firsts.map(|value| value.shown()).collect();
                self.work(count.saturating_mul(1 + separator.len() / 16))?;
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
                let key = self.key(&self.values(partition, &env)?)?;
                let by = order.iter().map(|(by, _)| self.value(by, &env));
                keys.push((key, by.collect::<Done<_>>()?, at));
            }
            keys = sorted(keys, &mut |(a, a_by, _), (b, b_by, _)| {
                let bytes: usize = a.iter().map(|(_, text)| text.len()).sum();
                self.work(1 + bytes / 64)?;
                match a.cmp(b) {
                    Ordering::Equal => self.ordered(a_by, b_by, order),
                    unequal => Ok(unequal),
                }
            })?;
            let mut number = 0;
            for place in 0..keys.len() {
                let is_new = place == 0 || keys[place].0 != keys[place - 1].0;
                number = if is_new { 1 } else { number + 1 };
                rows[keys[place].2].1[nth] = Value::Int(number);
            }
        }
        Ok(())
    }

    fn compared(&self, a: &Row, b: &Row, keys: &[SortKey]) -> Done<Ordering> {
        for key in keys {
            let (a, b) = (&a[key.at], &b[key.at]);
            self.work(a.comparing(b))?;
            let order = match (a.is_null(), b.is_null()) {
                (false, false) if key.is_descending => b.order(a),
                (false, false) => a.order(b),
                (true, true) => Ordering::Equal,
                (true, false) if key.nulls_first => Ordering::Less,
                (false, true) if !key.nulls_first => Ordering::Less,
                _ => Ordering::Greater,
            };
            if order.is_ne() {
                return Ok(order);
            }
        }
        Ok(Ordering::Equal)
    }

    fn ordered(&self, a: &[Value], b: &[Value], by: &[(Bound, bool)]) -> Done<Ordering> {
        for ((a, b), (_, is_descending)) in a.iter().zip(b).zip(by) {
            self.work(a.comparing(b))?;
            let order = if *is_descending {
                b.order(a)
            } else {
                a.order(b)
            };
            if order.is_ne() {
                return Ok(order);
            }
        }
        Ok(Ordering::Equal)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use lightcone_schema::raw::RawModuleDefV10;
    use lightcone_schema::{ModuleDef, RawModuleDef};

    use super::super::super::commands::Asker;
    use super::super::{bind, read};
    use super::*;
    use lightcone_database::Rights;

    #[test]
    fn a_question_takes_only_so_long() {
        let raw = RawModuleDef::V10(RawModuleDefV10 {
            sections: Vec::new(),
        });
        let module = Arc::new(ModuleDef::validate(raw).expect("a module"));
        let seen = Seen::new(&module, Rights::default(), Asker::default());
        let text = "SELECT count(*) FROM generate_series(1, 1000) x WHERE x % 2 = 0";
        let query = super::super::super::tokens::tokens(text).map(read::read);
        let query = query.expect("tokens").expect("a question");
        let no_table = |_: &str| Err(lightcone_database::SqlError::ModuleGone);
        let Ok(question) = bind::bind(&query, &seen, &no_table, false) else {
            panic!("it is bound");
        };
        let cancelled = Cancelled::new(false);
        let late = Runner {
            until: Instant::now(),
            ..Runner::new(&seen, &question, &[], &cancelled)
        };
        let failure = late
            .rows(&question.plan, None)
            .expect_err("its time is over");
        assert_eq!(failure.state, state::LIMIT_REACHED);
        assert!(
            failure.message.contains("more than 5 s"),
            "{}",
            failure.message
        );
    }
}
