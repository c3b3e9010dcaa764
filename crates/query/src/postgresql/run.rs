//! Carrying a plan out, within a bound on its work.

mod expressions;
mod groups;
mod joins;
mod stored;

use std::cell::{Cell, RefCell};
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use super::bind::Question;
use super::failure::{state, Done, Failure};
use super::functions::{rows_of, Series};
use super::plan::*;
use super::session::Session;
use super::value::{weight, Value};

/// The work of one question: values that are looked at or copied. All that it holds was made in so many steps.
pub const STEPS_MAX: usize = 2_000_000;
/// Work of which nothing is left may be so many times as much.
const FORGOTTEN_MAX: usize = 50;
/// So large a part of the steps may a batch of rows take before anything is made of it.
const BATCH_PART: usize = 64;
/// Pieces of work between two looks at whether the answer is still wanted.
const PIECES_PER_LOOK: usize = 64;
/// Work of so many steps is a piece more.
const STEPS_PER_PIECE: usize = 256;
/// Rows of a series.
const SERIES_ROWS_MAX: usize = 100_000;

type Row = Vec<Value>;
type Rows = Rc<Vec<Row>>;

/// The rows of a table of the module in BSATN, in pieces. A byte stands before each row.
pub type Pieces<'p> = Vec<&'p [u8]>;

/// Ends the work on a question, if that takes too long or its answer is not wanted any more.
pub type Look<'l> = &'l dyn Fn() -> Done<()>;

/// Runs questions, of which one may stand in another.
pub struct Runner<'r> {
    session: &'r dyn Session,
    question: &'r Question,
    pieces: &'r [Pieces<'r>],
    /// Rows of tables of the module, of virtual tables, and of questions that have the same wherever they stand.
    stored: RefCell<HashMap<usize, Rows>>,
    made: RefCell<HashMap<&'static str, Option<Rows>>>,
    closed: RefCell<HashMap<*const Plan, Rows>>,
    look: Look<'r>,
    steps_max: usize,
    steps: Cell<usize>,
    forgotten: Cell<usize>,
    /// Steps in which rows were made that are kept for what reads them next.
    shared: Cell<usize>,
    since_look: Cell<usize>,
}

/// What the names of an expression mean.
#[derive(Clone, Copy)]
pub struct Env<'e> {
    row: &'e [Value],
    extras: &'e [Value],
    outer: Option<&'e Env<'e>>,
}

impl<'e> Env<'e> {
    /// Of a row before anything is made of several.
    pub fn new(row: &'e [Value], outer: Option<&'e Env<'e>>) -> Env<'e> {
        Env::of(row, &[], outer)
    }

    fn of(row: &'e [Value], extras: &'e [Value], outer: Option<&'e Env<'e>>) -> Env<'e> {
        Env { row, extras, outer }
    }
}

impl<'r> Runner<'r> {
    /// `pieces` are those of the tables of the question. It ends before so many steps.
    pub fn new(
        session: &'r dyn Session,
        question: &'r Question,
        pieces: &'r [Pieces<'r>],
        look: Look<'r>,
        steps_max: usize,
    ) -> Runner<'r> {
        Runner {
            session,
            question,
            pieces,
            stored: RefCell::default(),
            made: RefCell::default(),
            closed: RefCell::default(),
            look,
            steps_max,
            steps: Cell::new(0),
            forgotten: Cell::new(0),
            shared: Cell::new(0),
            since_look: Cell::new(0),
        }
    }

    fn work(&self, steps: usize) -> Done<()> {
        let done = self.steps.get().saturating_add(steps);
        self.steps.set(done);
        if done > self.steps_max {
            return Err(self.too_many_steps());
        }
        let since_look = self.since_look.get() + 1 + steps / STEPS_PER_PIECE;
        if since_look < PIECES_PER_LOOK {
            self.since_look.set(since_look);
            return Ok(());
        }
        self.since_look.set(0);
        (self.look)()
    }

    fn too_many_steps(&self) -> Failure {
        let steps_max = self.steps_max;
        let message = format!("the question takes more than {steps_max} steps: ask for fewer rows or tables, or for less at once");
        Failure::new(state::LIMIT_REACHED, message)
    }

    /// Does work of which only so many steps are left, and rows that are shared.
    fn forgetting(&self, work: impl FnOnce() -> Done<usize>) -> Done<()> {
        let (before, shared) = (self.steps.get(), self.shared.get());
        let left = before + work()? + self.shared.get() - shared;
        let done = self.steps.get();
        self.steps.set(left.min(done));
        let forgotten = self.forgotten.get() + done.saturating_sub(left);
        self.forgotten.set(forgotten);
        match forgotten / FORGOTTEN_MAX > self.steps_max {
            true => Err(self.too_many_steps()),
            false => Ok(()),
        }
    }

    /// Makes rows that are kept for what reads them next.
    fn sharing(&self, make: impl FnOnce() -> Done<Vec<Row>>) -> Done<Rows> {
        let (before, shared) = (self.steps.get(), self.shared.get());
        let rows = make()?;
        self.shared
            .set(shared + self.steps.get().saturating_sub(before));
        Ok(Rc::new(rows))
    }

    /// By what rows are told apart.
    fn key<'v>(&self, values: impl IntoIterator<Item = &'v Value>) -> Done<Vec<u8>> {
        let mut key = Vec::new();
        for value in values {
            self.work(value.weight())?;
            value.push_key(&mut key);
        }
        Ok(key)
    }

    /// By what rows are sorted: values, whether each descends, and whether its NULLs come first.
    fn sort_key<'v>(
        &self,
        values: impl IntoIterator<Item = (&'v Value, bool, bool)>,
        key: &mut Vec<u8>,
    ) -> Done<()> {
        for (value, is_descending, nulls_first) in values {
            self.work(value.weight())?;
            key.push(u8::from(value.is_null() != nulls_first));
            let start = key.len();
            value.push_key(key);
            if is_descending {
                key[start..].iter_mut().for_each(|byte| *byte = !*byte);
            }
        }
        Ok(())
    }

    /// Sorts by keys; what is equal stays in its order.
    fn sorted<T>(&self, mut keyed: Vec<(Vec<u8>, T)>) -> Done<Vec<(Vec<u8>, T)>> {
        let count = keyed.len();
        self.work(count * count.checked_ilog2().unwrap_or(0) as usize)?;
        keyed.sort_by(|(a, _), (b, _)| a.cmp(b));
        Ok(keyed)
    }

    /// The rows whose keys are wanted.
    fn kept(&self, rows: Vec<Row>, mut is_wanted: impl FnMut(Vec<u8>) -> bool) -> Done<Vec<Row>> {
        let mut kept = Vec::new();
        for row in rows {
            if is_wanted(self.key(&row)?) {
                kept.push(row);
            }
        }
        Ok(kept)
    }

    /// The rows of a question inside of another: once, if they are the same wherever it stands.
    fn inner(&self, plan: &Plan, outer: Option<&Env<'_>>) -> Done<Rows> {
        if !plan.is_closed {
            return self.rows(plan, outer).map(Rc::new);
        }
        let known = self.closed.borrow().get(&std::ptr::from_ref(plan)).cloned();
        if let Some(rows) = known {
            return Ok(rows);
        }
        let rows = self.sharing(|| self.rows(plan, None))?;
        self.closed.borrow_mut().insert(plan, rows.clone());
        Ok(rows)
    }

    /// All rows of a question.
    pub fn rows(&self, plan: &Plan, outer: Option<&Env<'_>>) -> Done<Vec<Row>> {
        let mut rows = self.body(&plan.body, outer)?;
        // Of rows that are the same to `DISTINCT ON`, the first in the order is wanted.
        let is_sorted_first = plan.others.is_empty();
        if !is_sorted_first {
            rows = self.distinct(&plan.body, rows)?;
            // What only told them apart is not compared with others.
            rows.iter_mut()
                .for_each(|row| row.truncate(plan.columns.len()));
        }
        for (operation, other) in &plan.others {
            rows = self.with(rows, *operation, self.rows(other, outer)?)?;
        }
        if !plan.order.is_empty() {
            let mut keyed = Vec::with_capacity(rows.len());
            for row in rows {
                let mut key = Vec::new();
                let by = |key: &SortKey| (&row[key.at], key.is_descending, key.nulls_first);
                self.sort_key(plan.order.iter().map(by), &mut key)?;
                keyed.push((key, row));
            }
            let keyed = self.sorted(keyed)?.into_iter();
            rows = keyed.map(|(_, row)| row).collect();
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
                list.iter().map(|row| self.values(row, &env)).collect()
            }
            Body::Core(core) => self.core(core, outer),
        }
    }

    fn core(&self, core: &CorePlan, outer: Option<&Env<'_>>) -> Done<Vec<Row>> {
        let mut groups = self.groups_of(core);
        let mut rows = Vec::new();
        self.batches(core, outer, &mut |batch| {
            let mut held = 0;
            for row in batch {
                match &mut groups {
                    Some(groups) => held += self.add(core, groups, row, outer)?,
                    None => {
                        let extras = vec![Value::Null; core.extras.len()];
                        held += weight(&row) + extras.len();
                        rows.push((row, extras));
                    }
                }
            }
            Ok(held)
        })?;
        if let Some(groups) = groups {
            rows = self.made_of(core, groups)?;
        }
        self.number(core, &mut rows, outer)?;
        let mut made = Vec::new();
        for (row, extras) in rows {
            self.items(core, &row, extras, outer, &mut made)?;
        }
        Ok(made)
    }

    /// Visits the rows of which something is made, those that begin with a table of the module in batches: what was done for rows is
    /// forgotten, but for the steps that `visit` gives.
    fn batches(
        &self,
        core: &CorePlan,
        outer: Option<&Env<'_>>,
        visit: &mut dyn FnMut(Vec<Row>) -> Done<usize>,
    ) -> Done<()> {
        // A join that keeps what has no partner must not see its rows filtered before.
        let is_early = !core.steps.iter().any(|step| step.keeps_right);
        let early: &[Condition] = if is_early { &core.filter } else { &[] };
        let is_left = |condition: &&Condition| {
            !is_early || condition.needs == 0 || condition.needs > core.width
        };
        let mut take = |rows: Vec<Row>| {
            let mut kept = Vec::new();
            for row in rows {
                let env = Env::new(&row, outer);
                if self.holds(core.filter.iter().filter(is_left), &env)? {
                    kept.push(row);
                }
            }
            visit(kept)
        };
        let start = vec![Vec::new()];
        let (first, rest) = match core.steps.split_first() {
            // Inside of another question, its rows may be read again.
            Some(split) if is_early && outer.is_none() => split,
            _ => return take(self.read(&core.steps, start, early, outer)?).map(drop),
        };
        let Source::Stored(table) = first.source else {
            return take(self.read(&core.steps, start, early, outer)?).map(drop);
        };
        let mut reading = self.reading(table);
        while !reading.is_at_end() {
            self.forgetting(|| {
                let batch = self.batch(&mut reading, self.steps_max / BATCH_PART)?;
                let ripe = first.ripe(early);
                let rows = self.joined(first, start.clone(), Rc::new(batch), &[], &ripe, outer)?;
                take(self.read(rest, rows, early, outer)?)
            })?;
        }
        Ok(())
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
            if let Extra::Series {
                series: of,
                arguments,
            } = extra
            {
                let rows = self.series(*of, arguments, &Env::of(row, &extras, outer))?;
                series.push((nth, rows));
            }
        }
        let count = series.iter().map(|(_, rows)| rows.len()).max();
        for at in 0..count.unwrap_or(1) {
            for (nth, rows) in &series {
                extras[*nth] = match rows.get(at).map(Vec::as_slice) {
                    Some([value]) => value.clone(),
                    Some(row) => self.row(row)?,
                    None => Value::Null,
                };
            }
            let env = Env::of(row, &extras, outer);
            if let Some(having) = &core.having {
                if self.value(having, &env)?.truth() != Some(true) {
                    continue;
                }
            }
            made.push(self.values(&core.items, &env)?);
        }
        Ok(())
    }

    fn series(&self, series: Series, arguments: &[Bound], env: &Env<'_>) -> Done<Vec<Row>> {
        let arguments = self.values(arguments, env)?;
        self.work(weight(&arguments))?;
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
}
