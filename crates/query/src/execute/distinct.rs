//! The values by which a subquery has led to rows around it.

use std::collections::HashSet;

use lightcone_table::RowId;

use super::found::Match;
use super::hash_table;
use super::loops::{step_bytes, BATCH, ROW_STEPS};
use crate::condition::ColumnAt;
use crate::planner::{Access, Step, Strategy};
use crate::sort_key::push_sort_key;

/// What a value takes beside its bytes: its pointer and length, its place in a table that is half empty, and the allocator's part.
const ENTRY_BYTES: usize = 64;

/// Bytes of a value that are hashed and compared in one step.
const STEP_VALUE_BYTES: usize = 16;

/// So large a part of a query's memory may values take at least, if it is not known what else needs it, and at most.
const PART_MIN: usize = 64;
const PART_MAX: usize = 2;

/// What a match of the subquery is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Met {
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
    pub fn forget_last(&mut self) {
        if self.values.remove(self.value.as_slice()) {
            self.memory_bytes -= self.value.len() + ENTRY_BYTES;
        }
    }

    pub fn meet(&mut self, columns: &[ColumnAt], tuple: &Match<'_>, others_max: usize) -> Met {
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

    /// How many different values were met.
    pub fn len(&self) -> usize {
        self.values.len()
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
