//! Queries that a subquery leads: of its matches with equal values, only the first goes on to the rows around it.

use std::collections::HashSet;

use lightcone_table::TableView;

use super::{spend, step_bytes, Execution, Loop, Match, ROW_STEPS};
use crate::collect::push_sort_key;
use crate::condition::ColumnAt;
use crate::planner::{Leading, Strategy};

/// What a value takes beside its bytes: its pointer and length, its place in a table that is half empty, and the allocator's part.
const ENTRY_BYTES: usize = 64;

/// Bytes of a value that are hashed and compared in one step.
const STEP_VALUE_BYTES: usize = 16;

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
}

impl Distinct {
    fn meet(&mut self, columns: &[ColumnAt], tuple: &Match<'_>, bytes_max: usize) -> Met {
        if self.has(columns, tuple) {
            return Met::Again;
        }
        let bytes = self.value.len() + ENTRY_BYTES;
        if self.memory_bytes + bytes > bytes_max {
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
        // One half is for what comes behind it.
        let others = self.memory_bytes - self.distinct.memory_bytes;
        let bytes_max =
            (self.memory_bytes_max / 2).min(self.memory_bytes_max.saturating_sub(others));
        let before = self.distinct.memory_bytes;
        let met = self.distinct.meet(&leading.own, &found, bytes_max);
        self.memory_bytes += self.distinct.memory_bytes - before;
        spend(steps, self.distinct.steps());
        match met {
            Met::First => {}
            Met::Again => self.go_back(strategy.steps[self.depth + 1].back),
            Met::TooMany => self.begin_otherwise(leading, tables),
        }
        met == Met::First
    }

    /// Finds the other matches from the outside. What the subquery has led to so far is left out.
    fn begin_otherwise(&mut self, leading: &Leading, tables: &[&TableView]) {
        let otherwise = leading.otherwise.as_ref();
        let otherwise = otherwise.expect("who leads a query takes the place of another plan");
        self.visited_by = Some(leading.around.clone());
        self.memory_bytes = step_bytes(otherwise) + self.distinct.memory_bytes;
        self.loops.clear();
        self.loops.resize_with(otherwise.steps.len(), Loop::default);
        self.ids.fill(None);
        self.is_settled = vec![false; otherwise.groups.len()];
        self.depth = 0;
        self.strategy = otherwise.clone();
        self.enter(&otherwise.steps[0], tables);
    }

    /// The position of the last step of the subquery that leads, and how many different values it had; none if it has one match
    /// at most.
    pub(crate) fn leading(&self) -> Option<(usize, Option<usize>)> {
        let leading = self.strategy.leading.as_ref()?;
        let values = (!leading.is_single).then_some(self.distinct.values.len());
        Some((leading.last, values))
    }
}
