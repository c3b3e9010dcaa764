//! Evaluating a fragment on tables, a bounded piece of work at a time.
//!
//! Relations are nested loops in the order of the plan, each over what an index, a hash table or a scan finds for the rows
//! of the ones before it. Where each loop stands is kept in a list, so nothing recurses over the number of relations, and
//! the evaluation can stop after any row and go on later. Row ids are taken from a table in batches.

mod distinct;
mod found;
mod hash_table;
mod leading;
mod loops;

use std::sync::Arc;

use lightcone_table::{RowId, TableView};
use lightcone_types::{ColId, Identity};

use self::distinct::Distinct;
use self::hash_table::{HashTable, ENTRY_BYTES, NONE};
use self::loops::{push_key, spend, step_bytes, takes, Loop, Read, BATCH, ROW_STEPS};
use crate::condition::ColumnAt;
use crate::planner::{plan, Access, Group, Samples, Step, Strategy};
use crate::predicate::Predicate;
use crate::query::Fragment;
use crate::scalar::Scalar;

pub use self::found::{ExecuteError, Match, Progress};
pub(crate) use self::found::{NOTHING, SOME};

/// So many relations are looked at for one step.
const RELATIONS_PER_STEP: usize = 8;

/// The evaluation of one fragment for one caller. Each piece of work is given the same tables.
pub struct Execution {
    strategy: Arc<Strategy>,
    loops: Vec<Loop>,
    /// The innermost loop that runs.
    depth: usize,
    /// The present row of each relation.
    ids: Vec<Option<RowId>>,
    /// By group: there was a match, or it was said that there is none.
    is_settled: Vec<bool>,
    /// Values by which a subquery has led to its rows.
    distinct: Distinct,
    /// There were more of these than could be kept: matches with them, in these columns, were visited already.
    visited_by: Option<Vec<ColumnAt>>,
    /// A match was visited: for the last of these values, and for those before it.
    is_value_visited: bool,
    has_visited: bool,
    is_done: bool,
    memory_bytes: usize,
    memory_bytes_max: usize,
}

/// What a piece of work is given.
struct Pass<'p> {
    strategy: &'p Strategy,
    tables: &'p [&'p TableView],
    steps: &'p mut usize,
}

impl Execution {
    /// Plans the evaluation. `tables` are those of the fragment's relations, in their order. `matches_wanted` are enough, if not
    /// all of them are needed.
    pub(crate) fn new(
        fragment: &Fragment,
        sender: &Identity,
        tables: &[&TableView],
        matches_wanted: Option<u64>,
        samples: &mut Samples,
        memory_bytes_max: usize,
    ) -> Execution {
        let strategy = plan(fragment, sender, tables, matches_wanted, samples);
        let mut loops: Vec<Loop> = Vec::new();
        loops.resize_with(strategy.steps.len(), Loop::default);
        let strategy = Arc::new(strategy);
        let mut execution = Execution {
            is_done: strategy.is_never,
            strategy: strategy.clone(),
            loops,
            depth: 0,
            ids: vec![None; tables.len()],
            is_settled: vec![false; strategy.groups.len()],
            distinct: Distinct::new(&strategy, memory_bytes_max),
            visited_by: None,
            is_value_visited: false,
            has_visited: false,
            memory_bytes: step_bytes(&strategy),
            memory_bytes_max,
        };
        execution.enter(&strategy.steps[0], tables);
        execution
    }

    /// Evaluates until the steps are used up, `visit` returns false, or all matches were visited.
    ///
    /// # Errors
    /// It takes more memory than it may.
    pub fn run(
        &mut self,
        tables: &[&TableView],
        steps: &mut usize,
        mut visit: impl FnMut(&Match<'_>) -> bool,
    ) -> Result<Progress, ExecuteError> {
        let mut strategy = self.strategy.clone();
        self.check_memory()?;
        while !self.is_done {
            if !Arc::ptr_eq(&strategy, &self.strategy) {
                strategy = self.strategy.clone();
            }
            if *steps == 0 {
                return Ok(Progress::Paused);
            }
            spend(steps, 1);
            let depth = self.depth;
            let step = &strategy.steps[depth];
            let state = &mut self.loops[depth];
            let pass = &mut Pass {
                strategy: &strategy,
                tables,
                steps,
            };
            let is_match = match state.ids.get(state.at) {
                Some(_) if step.is_plain_end => match self.visit_all(step, pass, &mut visit) {
                    true => false,
                    false => return Ok(Progress::Stopped),
                },
                Some(&id) => {
                    state.at += 1;
                    self.ids[usize::from(step.relation)] = Some(id);
                    self.joins(step, id, pass) && self.take(step, pass)
                }
                None if state.is_exhausted => self.leave(step, pass),
                None => {
                    let refilled = self.refill(step, tables, steps);
                    let counted = refilled.and_then(|()| self.count_memory(depth));
                    match counted {
                        Err(error) if !self.gives_up_leading(tables) => return Err(error),
                        _ => false,
                    }
                }
            };
            if is_match {
                self.is_value_visited = true;
                if !visit(&Match::new(tables, &self.ids)) {
                    return Ok(Progress::Stopped);
                }
            }
        }
        Ok(Progress::Done)
    }

    /// Visits the rows of the last loop that were found, each of which is a match. False if no more are wanted.
    #[inline]
    fn visit_all(
        &mut self,
        step: &Step,
        pass: &mut Pass<'_>,
        visit: &mut impl FnMut(&Match<'_>) -> bool,
    ) -> bool {
        self.is_value_visited = true;
        let state = &mut self.loops[self.depth];
        while let Some(&id) = state.ids.get(state.at) {
            state.at += 1;
            state.read.found += 1;
            self.ids[usize::from(step.relation)] = Some(id);
            spend(pass.steps, 1);
            let found = Match::new(pass.tables, &self.ids);
            if !visit(&found) {
                return false;
            }
        }
        true
    }

    /// Does the present row go with those of the relations before it?
    #[inline]
    fn joins(&mut self, step: &Step, id: RowId, pass: &mut Pass<'_>) -> bool {
        if let Some(joined) = &step.joined {
            let row_bytes = pass.tables[usize::from(step.relation)].row(id).len();
            spend(pass.steps, joined.steps(row_bytes));
            if !joined.matches_tuple(&Match::new(pass.tables, &self.ids)) {
                return false;
            }
        }
        self.loops[self.depth].read.found += 1;
        true
    }

    /// The present row of a loop is a match: goes on with the next loop. True if it was the last.
    #[inline]
    fn take(&mut self, step: &Step, pass: &mut Pass<'_>) -> bool {
        let is_settled = step.closes.is_empty() || self.settle(&step.closes, true, pass);
        is_settled && self.go_on(pass)
    }

    /// Goes behind the present loop, whose row is a match with all before it. True if they are one of all, and it is to be visited.
    #[inline]
    fn go_on(&mut self, pass: &mut Pass<'_>) -> bool {
        let strategy = pass.strategy;
        if self.depth + 1 < strategy.steps.len() {
            if let Some(leading) = &strategy.leading {
                if leading.last == self.depth && !self.leads(leading, pass) {
                    return false;
                }
            }
            self.depth += 1;
            self.enter(&strategy.steps[self.depth], pass.tables);
            return false;
        }
        self.depth = strategy.end;
        let Some(columns) = &self.visited_by else {
            return true;
        };
        let found = Match::new(pass.tables, &self.ids);
        let is_visited = self.distinct.has(columns, &found);
        spend(pass.steps, self.distinct.steps());
        !is_visited
    }

    /// There are no more rows in the present loop. If it began a group that has had no match, that may be one.
    fn leave(&mut self, step: &Step, pass: &mut Pass<'_>) -> bool {
        if let Some(opened) = step.opens.filter(|&group| !self.is_settled[group]) {
            self.is_settled[opened] = true;
            let group = &pass.strategy.groups[opened];
            spend(pass.steps, (group.last - group.first) / RELATIONS_PER_STEP);
            for step in &pass.strategy.steps[group.first..=group.last] {
                self.ids[usize::from(step.relation)] = None;
            }
            if group.kind.takes_none() {
                self.depth = group.last;
                let closes = &pass.strategy.steps[group.last].closes;
                let inner = closes.iter().position(|&closed| closed == opened);
                let around = inner.map_or(&[][..], |inner| &closes[inner..]);
                return self.settle(around, false, pass) && self.go_on(pass);
            }
        }
        self.ids[usize::from(step.relation)] = None;
        self.go_back(step.back);
        false
    }

    fn go_back(&mut self, to: Option<usize>) {
        match to {
            Some(depth) => self.depth = depth,
            None => self.is_done = true,
        }
    }

    /// The present row ends groups, from the innermost outwards: with a match, or the innermost without one. False if that
    /// is not what is wanted; then it is known where to go on.
    fn settle(&mut self, closes: &[usize], mut is_match: bool, pass: &mut Pass<'_>) -> bool {
        for &closed in closes {
            let group = &pass.strategy.groups[closed];
            self.is_settled[closed] = true;
            let is_wanted = match is_match {
                true => group.kind.takes_match(),
                false => group.kind.takes_none(),
            };
            // What is around it has a match then.
            is_match = true;
            if is_wanted && self.holds(group.after.as_ref(), pass) {
                continue;
            }
            if group.kind.is_once() {
                self.go_back(pass.strategy.steps[group.first].back);
            }
            return false;
        }
        true
    }

    fn holds(&self, predicate: Option<&Predicate>, pass: &mut Pass<'_>) -> bool {
        let Some(predicate) = predicate else {
            return true;
        };
        let tuple = Match::new(pass.tables, &self.ids);
        let rows = self.ids.iter().zip(pass.tables);
        let row_bytes = rows.filter_map(|(id, table)| Some(table.row((*id)?).len()));
        // Looking at every relation costs something, too.
        let looked_at = self.ids.len() / RELATIONS_PER_STEP;
        spend(
            pass.steps,
            predicate.steps(row_bytes.max().unwrap_or(0)) + looked_at,
        );
        predicate.matches_tuple(&tuple)
    }

    /// Begins the loop at the present depth for the present rows.
    fn enter(&mut self, step: &Step, tables: &[&TableView]) {
        let tuple = Match::new(tables, &self.ids);
        let state = &mut self.loops[self.depth];
        state.ids.clear();
        state.at = 0;
        state.after = None;
        state.is_exhausted = false;
        state.batch = if step.is_once { 1 } else { BATCH };
        state.key.clear();
        if let Some(group) = step.opens {
            self.is_settled[group] = false;
        }
        match &step.access {
            Access::Scan => {}
            Access::Point { key: parts, .. } | Access::Range { prefix: parts, .. } => {
                state.is_exhausted = !push_key(parts, &tuple, &mut state.key);
            }
            Access::Hash { columns } => {
                if let Some(table) = &state.hash {
                    let hash = table.hash_of_tuple(columns, &tuple);
                    state.place = hash.map_or(NONE, |hash| table.first(hash));
                    state.wanted_hash = hash.unwrap_or_default();
                }
            }
        }
    }

    /// Finds more rows for the present loop. Looks at one row at least.
    fn refill(
        &mut self,
        step: &Step,
        tables: &[&TableView],
        steps: &mut usize,
    ) -> Result<(), ExecuteError> {
        let table = tables[usize::from(step.relation)];
        let (rows, layout) = (table.rows(), table.layout());
        let state = &mut self.loops[self.depth];
        if let Access::Hash { columns } = &step.access {
            if state.hash.as_ref().is_none_or(|table| !table.is_built) {
                return self.build(step, columns, tables, steps);
            }
            let tuple = Match::new(tables, &self.ids);
            return {
                state.probe(columns, table, &tuple, steps);
                Ok(())
            };
        }
        state.ids.clear();
        state.at = 0;
        let batch = state.next_batch();
        let (ids, last) = (&mut state.ids, &mut state.after);
        let looked_at = &mut state.read.looked_at;
        let after = *last;
        let mut is_exhausted = true;
        let mut look_at = |id: RowId, row: &[u8]| {
            *last = Some(id);
            *looked_at += 1;
            spend(steps, ROW_STEPS);
            if takes(step.own.as_ref(), layout, row, steps) {
                ids.push(id);
            }
            is_exhausted = ids.len() < batch && *steps > 0;
            is_exhausted
        };
        let by_id = |look_at: &mut dyn FnMut(RowId, &[u8]) -> bool, id| look_at(id, table.row(id));
        match &step.access {
            Access::Point { index, .. } => {
                let index = &table.indexes()[*index];
                let visit = |id| by_id(&mut look_at, id);
                let walked = index.walk_point(rows, layout, &state.key, after, visit);
                walked.expect("keys are values of the columns");
            }
            Access::Range { index, .. } => {
                let index = &table.indexes()[*index];
                let range = step.access.range(&state.key).expect("it is a range");
                let visit = |id| by_id(&mut look_at, id);
                let walked = index.walk_range(rows, layout, range, after, visit);
                walked.expect("bounds are values of the columns of an ordered index");
            }
            Access::Scan | Access::Hash { .. } => rows.walk(after, look_at),
        }
        spend(steps, 1);
        state.is_exhausted = is_exhausted;
        Ok(())
    }

    /// Counts what a loop has taken for its rows since it was counted last.
    #[inline]
    fn count_memory(&mut self, depth: usize) -> Result<(), ExecuteError> {
        let state = &mut self.loops[depth];
        let taken = state.memory_bytes();
        if taken == state.counted_bytes {
            return Ok(());
        }
        self.memory_bytes = self.memory_bytes + taken - state.counted_bytes;
        state.counted_bytes = taken;
        self.check_memory()
    }

    fn check_memory(&self) -> Result<(), ExecuteError> {
        match self.memory_bytes > self.memory_bytes_max {
            true => Err(ExecuteError::Memory {
                bytes_max: self.memory_bytes_max,
            }),
            false => Ok(()),
        }
    }

    /// Puts more rows into the hash table of the present loop.
    fn build(
        &mut self,
        step: &Step,
        columns: &[(ColId, Scalar, ColumnAt)],
        tables: &[&TableView],
        steps: &mut usize,
    ) -> Result<(), ExecuteError> {
        let table = tables[usize::from(step.relation)];
        let (rows, layout) = (table.rows(), table.layout());
        let state = &mut self.loops[self.depth];
        let hashed = state.hash.get_or_insert_with(HashTable::default);
        let others = self.memory_bytes - state.counted_bytes;
        let entries_max = (self.memory_bytes_max - others) / ENTRY_BYTES;
        let (mut is_complete, mut looked_at) = (true, 0);
        rows.walk(state.after, |id, row| {
            state.after = Some(id);
            state.read.looked_at += 1;
            spend(steps, ROW_STEPS);
            looked_at += 1;
            if takes(step.own.as_ref(), layout, row, steps) {
                hashed.push(columns, layout, row, id);
            }
            is_complete =
                hashed.ids.len() <= entries_max && *steps > 0 && looked_at < BATCH * BATCH;
            is_complete
        });
        if hashed.ids.len() > entries_max {
            return Err(ExecuteError::Memory {
                bytes_max: self.memory_bytes_max,
            });
        }
        if is_complete {
            hashed.build();
            self.enter(step, tables);
        }
        Ok(())
    }

    /// The relations in the order in which they are read, with what was read of each.
    pub(crate) fn steps(&self) -> impl Iterator<Item = (&Step, Read)> {
        let read = self.loops.iter().map(|state| state.read);
        self.strategy.steps.iter().zip(read)
    }

    pub(crate) fn groups(&self) -> &[Group] {
        &self.strategy.groups
    }

    /// Memory for loops and hash tables, in bytes.
    pub fn memory_bytes(&self) -> usize {
        self.memory_bytes
    }
}
