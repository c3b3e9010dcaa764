//! Queries that a subquery leads: of its matches with equal values, only the first goes on to the rows around it.

use std::collections::HashSet;

use lightcone_table::{RowId, TableView};

use super::{hash_table, spend, step_bytes, Execution, Loop, Match, BATCH, ROW_STEPS};
use crate::collect::push_sort_key;
use crate::condition::ColumnAt;
use crate::planner::{Access, Leading, Step, Strategy};

/// What a value takes beside its bytes: its pointer and length, its place in a table that is half empty, and the allocator's part.
const ENTRY_BYTES: usize = 64;

/// Bytes of a value that are hashed and compared in one step.
const STEP_VALUE_BYTES: usize = 16;

/// So large a part of a query's memory may values take at least, if it is not known what else needs it, and at most.
const PART_MIN: usize = 64;
const PART_MAX: usize = 2;

/// What a match of the subquery is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Met {
    /// The first one with its values.
    First,
    /// Rows with its values were found already.
    Again,
    /// A first one, for whose values there is no memory.
    TooMany,
}

/// Values of some columns, all encodings of equal ones in one form.
#[derive(Default)]
pub(super) struct Distinct {
    values: HashSet<Box<[u8]>>,
    value: Vec<u8>,
    pub memory_bytes: usize,
    bytes_max: usize,
}

impl Distinct {
    /// Room for what comes behind the subquery is left, and for the hash tables of the plan that takes its place if need be.
    pub fn new(strategy: &Strategy, memory_bytes_max: usize) -> Distinct {
        let leading = strategy.leading.as_ref();
        let otherwise = leading.and_then(|leading| leading.otherwise.as_ref());
        let Some(otherwise) = otherwise else {
            return Distinct::default();
        };
        let is_hashed = |step: &&Step| matches!(step.access, Access::Hash { .. });
        let hashed = || otherwise.steps.iter().filter(is_hashed);
        let entries: f64 = hashed().map(|step| step.built).sum();
        let batches = otherwise.steps.len() * BATCH * size_of::<RowId>();
        let others = step_bytes(strategy) + batches + entries as usize * hash_table::ENTRY_BYTES;
        let free = memory_bytes_max.saturating_sub(others);
        // Where conditions leave fewer rows for the tables, there is more room than that.
        let min = match hashed().any(|step| step.own.is_some()) {
            true => memory_bytes_max / PART_MIN,
            false => 0,
        };
        Distinct {
            bytes_max: free.clamp(min, memory_bytes_max / PART_MAX),
            ..Distinct::default()
        }
    }

    /// Takes the last value back that was met first.
    fn forget_last(&mut self) {
        if self.values.remove(self.value.as_slice()) {
            self.memory_bytes -= self.value.len() + ENTRY_BYTES;
        }
    }

    fn meet(&mut self, columns: &[ColumnAt], tuple: &Match<'_>, others_max: usize) -> Met {
        if self.has(columns, tuple) {
            return Met::Again;
        }
        let bytes = self.value.len() + ENTRY_BYTES;
        if self.memory_bytes + bytes > self.bytes_max.min(others_max) {
            return Met::TooMany;
        }
        self.memory_bytes += bytes;
        self.values.insert(self.value.as_slice().into());
        Met::First
    }

    /// What the last values that were looked for took.
    pub fn steps(&self) -> usize {
        ROW_STEPS + self.value.len() / STEP_VALUE_BYTES
    }

    /// Were these values met?
    pub fn has(&mut self, columns: &[ColumnAt], tuple: &Match<'_>) -> bool {
        self.value.clear();
        for at in columns {
            let value = tuple.typed(*at);
            let (ty, value) = value.expect("relations that link a subquery have rows");
            push_sort_key(ty, value, false, &mut self.value);
        }
        self.values.contains(self.value.as_slice())
    }
}

impl Execution {
    /// Is the present match of the leading subquery to go on with? If not, it is known where to go on.
    pub(super) fn leads(
        &mut self,
        strategy: &Strategy,
        leading: &Leading,
        tables: &[&TableView],
        steps: &mut usize,
    ) -> bool {
        if leading.is_single {
            return true;
        }
        let found = Match {
            tables,
            ids: &self.ids,
        };
        let before = self.distinct.memory_bytes;
        let others = self.memory_bytes - before;
        let bytes_max = self.memory_bytes_max.saturating_sub(others);
        let met = self.distinct.meet(&leading.own, &found, bytes_max);
        self.memory_bytes += self.distinct.memory_bytes - before;
        spend(steps, self.distinct.steps());
        match met {
            Met::First => {
                self.has_visited |= self.is_value_visited;
                self.is_value_visited = false;
            }
            Met::Again => self.go_back(strategy.steps[self.depth + 1].back),
            Met::TooMany => self.begin_otherwise(leading, tables),
        }
        met == Met::First
    }

    /// There is no memory to go on with: finds the other matches from the outside, which may take less. False if some matches for
    /// the present value were visited and others were not, so that nobody could tell which.
    pub(super) fn gives_up_leading(&mut self, tables: &[&TableView]) -> bool {
        let strategy = self.strategy.clone();
        let Some(leading) = &strategy.leading else {
            return false;
        };
        if self.depth > leading.last || leading.is_single {
            if self.is_value_visited {
                return false;
            }
            self.distinct.forget_last();
        }
        self.begin_otherwise(leading, tables);
        true
    }

    /// Finds the other matches from the outside. What the subquery has led to so far is left out.
    fn begin_otherwise(&mut self, leading: &Leading, tables: &[&TableView]) {
        let otherwise = leading.otherwise.as_ref();
        let otherwise = otherwise.expect("who leads a query takes the place of another plan");
        if self.has_visited || self.is_value_visited {
            self.visited_by = Some(leading.around.clone());
        } else {
            self.distinct = Distinct::default();
        }
        self.memory_bytes = step_bytes(otherwise) + self.distinct.memory_bytes;
        self.loops.clear();
        self.loops.resize_with(otherwise.steps.len(), Loop::default);
        self.ids.fill(None);
        self.is_settled = vec![false; otherwise.groups.len()];
        self.depth = 0;
        self.strategy = otherwise.clone();
        self.enter(&otherwise.steps[0], tables);
    }

    /// The subquery that leads, and how many different values it had; none if it has one match at most.
    pub(crate) fn leading(&self) -> Option<(&Leading, Option<usize>)> {
        let leading = self.strategy.leading.as_ref()?;
        let values = (!leading.is_single).then_some(self.distinct.values.len());
        Some((leading, values))
    }
}
