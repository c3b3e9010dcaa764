//! Evaluating a query: its fragments one after the other, and what comes out of their matches.

use std::sync::Arc;

use lightcone_table::TableView;
use lightcone_types::{Identity, TableId};

use crate::execute::{ExecuteError, Execution, Match, Progress};
use crate::predicate::Tuple;
use crate::query::{Fragment, Output, Query};

/// The tables that a query reads, in one state.
pub trait Tables {
    /// None if the table is gone; then nothing matches.
    fn table(&self, id: TableId) -> Option<&TableView>;
}

/// The evaluation of a query for one caller, a bounded piece of work at a time.
pub struct Run {
    query: Arc<Query>,
    sender: Identity,
    /// Position of the fragment that is being evaluated.
    fragment: usize,
    /// Of that fragment.
    execution: Option<Execution>,
    /// Matches so far of a query that counts them, else rows that came out.
    count: u64,
    row: Vec<u8>,
    memory_bytes_max: usize,
}

impl Run {
    /// `memory_bytes_max` is for what a fragment has to keep to find its matches.
    pub fn new(query: Arc<Query>, sender: Identity, memory_bytes_max: usize) -> Run {
        Run {
            query,
            sender,
            fragment: 0,
            execution: None,
            count: 0,
            row: Vec::new(),
            memory_bytes_max,
        }
    }

    /// What the evaluation keeps beside its result, in bytes.
    pub fn memory_bytes(&self) -> usize {
        self.execution.as_ref().map_or(0, Execution::memory_bytes)
    }

    /// Evaluates until about so many steps are done, `visit` returns false, or all rows were visited. A row is the BSATN of
    /// a value of the query's [`output_type`](Query::output_type). The tables must stay the same from piece to piece.
    ///
    /// # Errors
    /// It takes more memory than it may.
    pub fn run(
        &mut self,
        tables: &dyn Tables,
        steps: &mut usize,
        mut visit: impl FnMut(&[u8]) -> bool,
    ) -> Result<Progress, ExecuteError> {
        let query = self.query.clone();
        let is_count = matches!(query.output, Output::Count(_));
        if query.limit == Some(0) {
            return Ok(Progress::Done);
        }
        while let Some(fragment) = query.fragments.get(self.fragment) {
            let progress = self.run_fragment(&query, fragment, tables, steps, &mut visit)?;
            match progress {
                Progress::Done => {
                    self.fragment += 1;
                    self.execution = None;
                }
                Progress::Paused => return Ok(Progress::Paused),
                Progress::Stopped if query.limit == Some(self.count) => {
                    self.fragment = query.fragments.len();
                }
                Progress::Stopped => return Ok(Progress::Stopped),
            }
        }
        if is_count && self.fragment == query.fragments.len() {
            self.fragment += 1;
            visit(&self.count.to_le_bytes());
        }
        Ok(Progress::Done)
    }

    fn run_fragment(
        &mut self,
        query: &Query,
        fragment: &Fragment,
        tables: &dyn Tables,
        steps: &mut usize,
        visit: &mut impl FnMut(&[u8]) -> bool,
    ) -> Result<Progress, ExecuteError> {
        let of_fragment = fragment.tables.iter().map(|schema| tables.table(schema.id));
        let Some(tables) = of_fragment.collect::<Option<Vec<_>>>() else {
            return Ok(Progress::Done);
        };
        let is_count = matches!(query.output, Output::Count(_));
        if let ([table], true, true) = (
            &tables[..],
            is_count,
            fragment.condition.conjuncts.is_empty(),
        ) {
            self.count += table.rows().row_count();
            return Ok(Progress::Done);
        }
        let execution = self.execution.get_or_insert_with(|| {
            Execution::new(fragment, &self.sender, &tables, self.memory_bytes_max)
        });
        let (count, row) = (&mut self.count, &mut self.row);
        let limit = query.limit.unwrap_or(u64::MAX);
        execution.run(&tables, steps, |found| {
            *count += 1;
            if is_count {
                return true;
            }
            write_row(query, fragment, found, row);
            visit(row) && *count < limit
        })
    }
}

/// What comes out of a match.
fn write_row(query: &Query, fragment: &Fragment, found: &Match<'_>, out: &mut Vec<u8>) {
    out.clear();
    match &query.output {
        Output::Row(relation) => {
            let own = fragment.own[usize::from(*relation)];
            if let Some((_, row)) = found.row(own) {
                let hidden = fragment.tables[usize::from(own)].hidden_bytes();
                out.extend_from_slice(&row[hidden..]);
            }
        }
        Output::Columns(listed) => {
            for (at, _) in listed {
                let value = found.column(fragment.column(*at));
                out.extend_from_slice(value.unwrap_or_default());
            }
        }
        Output::Count(_) => {}
    }
}
