//! Evaluating a query: its fragments one after the other, and what comes out of their matches.

use std::sync::Arc;

use lightcone_table::{RowLayout, Tables};
use lightcone_types::{AlgebraicType, Identity};

use crate::collect::{Groups, Memory, Seen, Sorter};
use crate::condition::ColumnAt;
use crate::execute::{ExecuteError, Execution, Match, Progress};
use crate::explain::{explain_fragment, explain_result};
use crate::grouping::OrderKey;
use crate::planner::Samples;
use crate::predicate::Tuple;
use crate::query::{Fragment, Output, Query};
use crate::sort_key::{push_sort_key, sort_key, FirstWord};

/// Steps for each row that is sorted, grouped or compared with those that came already.
const KEPT_STEPS: usize = 16;

/// The evaluation of a query for one caller, a bounded piece of work at a time.
pub struct Run {
    query: Arc<Query>,
    sender: Identity,
    phase: Phase,
    /// Of the fragment that is being evaluated.
    execution: Option<Execution>,
    groups: Option<Groups>,
    outlet: Outlet,
    samples: Samples,
    memory_bytes_max: usize,
    /// Matches so far, and how many there may be.
    matches: u64,
    matches_max: u64,
    /// The lines of the plan, if it is wanted, and how many of them came out.
    lines: Vec<String>,
    lines_out: usize,
}

/// What is being worked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// The matches of the fragment at a position.
    Matches(usize),
    /// The rows of the group at a position, or the count.
    Groups(usize),
    /// The sorted row at a position.
    Sorted(usize),
    Done,
}

/// Where rows pass on their way out.
struct Outlet {
    /// Of the rows; with the hidden columns of groups.
    layout: RowLayout,
    row: Vec<u8>,
    key: Vec<u8>,
    count: u64,
    seen: Option<Seen>,
    sorter: Option<Sorter>,
    /// Of the last row that is wanted, for the fragment that is being evaluated.
    first_word: Option<FirstWord>,
    /// Rows that are still to be left out, and that may still come.
    skip: u64,
    left: u64,
    /// Rows that matter in the end.
    rows_max: usize,
    memory: Memory,
    failed: Option<ExecuteError>,
}

impl Run {
    /// `memory_bytes_max` is for what a fragment has to keep to find its matches, and as much for what the result needs.
    pub fn new(query: Arc<Query>, sender: Identity, memory_bytes_max: usize) -> Run {
        let groups = match &query.output {
            Output::Groups(grouping) => Some(Groups::new(grouping, &sender)),
            _ => None,
        };
        let layout = match &groups {
            Some(groups) => groups.layout.clone(),
            None => {
                let columns = query.row_type().elements.into_iter();
                let types: Vec<_> = columns.map(|column| column.algebraic_type).collect();
                RowLayout::new(&types)
            }
        };
        let left = query.limit.unwrap_or(u64::MAX);
        let rows_max = left.saturating_add(query.offset);
        Run {
            outlet: Outlet {
                layout,
                row: Vec::new(),
                key: Vec::new(),
                count: 0,
                seen: query.distinct.then(Seen::default),
                sorter: (!query.order.is_empty()).then(|| Sorter::new(query.is_order_of_rows())),
                first_word: None,
                skip: query.offset,
                left,
                rows_max: usize::try_from(rows_max).unwrap_or(usize::MAX),
                memory: Memory::new(memory_bytes_max),
                failed: None,
            },
            phase: match query.limit {
                Some(0) => Phase::Done,
                _ => Phase::Matches(0),
            },
            query,
            sender,
            execution: None,
            groups,
            samples: Samples::default(),
            memory_bytes_max,
            matches: 0,
            matches_max: u64::MAX,
            lines: Vec::new(),
            lines_out: 0,
        }
    }

    /// Fails when more matches have been found.
    pub fn limit_matches(&mut self, matches_max: u64) {
        self.matches_max = matches_max;
    }

    /// What the evaluation keeps beside its result, in bytes.
    pub fn memory_bytes(&self) -> usize {
        let execution = self.execution.as_ref().map_or(0, Execution::memory_bytes);
        execution + self.outlet.memory.bytes
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
        if !query.explain {
            return self.find(&query, tables, steps, visit);
        }
        while self.phase != Phase::Done {
            if self.find(&query, tables, steps, |_| true)? == Progress::Paused {
                return Ok(Progress::Paused);
            }
        }
        if self.lines_out == 0 {
            self.lines.extend(explain_result(&query));
        }
        while let Some(line) = self.lines.get(self.lines_out) {
            self.lines_out += 1;
            let mut row = (line.len() as u32).to_le_bytes().to_vec();
            row.extend_from_slice(line.as_bytes());
            if !visit(&row) {
                return Ok(Progress::Stopped);
            }
        }
        Ok(Progress::Done)
    }

    /// The rows.
    fn find(
        &mut self,
        query: &Query,
        tables: &dyn Tables,
        steps: &mut usize,
        mut visit: impl FnMut(&[u8]) -> bool,
    ) -> Result<Progress, ExecuteError> {
        while self.phase != Phase::Done {
            let progress = match self.phase {
                Phase::Matches(number) => match query.fragments.get(number) {
                    Some(fragment) => {
                        self.run_fragment(query, fragment, number, tables, steps, &mut visit)?
                    }
                    None => {
                        self.phase = Phase::Groups(0);
                        Progress::Done
                    }
                },
                Phase::Groups(place) => self.run_groups(query, place, steps, &mut visit)?,
                Phase::Sorted(place) => self.run_sorted(place, steps, &mut visit),
                Phase::Done => Progress::Done,
            };
            if self.outlet.left == 0 && self.outlet.sorter.is_none() {
                self.phase = Phase::Done;
            } else if progress != Progress::Done {
                return Ok(progress);
            }
        }
        Ok(Progress::Done)
    }

    fn run_fragment(
        &mut self,
        query: &Query,
        fragment: &Fragment,
        number: usize,
        tables: &dyn Tables,
        steps: &mut usize,
        visit: &mut impl FnMut(&[u8]) -> bool,
    ) -> Result<Progress, ExecuteError> {
        let Some(tables) = fragment.read(tables) else {
            self.phase = Phase::Matches(number + 1);
            return Ok(Progress::Done);
        };
        let is_count = matches!(query.output, Output::Count(_)) && !query.explain;
        if let ([table], true, true) = (
            &tables[..],
            is_count,
            fragment.condition.conjuncts.is_empty(),
        ) {
            self.outlet.count += table.rows().row_count();
            self.phase = Phase::Matches(number + 1);
            return Ok(Progress::Done);
        }
        if let (Output::Groups(grouping), Some(groups), None) =
            (&query.output, &mut self.groups, &self.execution)
        {
            groups.begin(grouping, fragment, &tables);
        }
        let execution = self.execution.get_or_insert_with(|| {
            let samples = &mut self.samples;
            Execution::new(
                fragment,
                &self.sender,
                &tables,
                query.matches_wanted(),
                samples,
                self.memory_bytes_max,
            )
        });
        let (outlet, groups) = (&mut self.outlet, &mut self.groups);
        let keeps = groups.is_some() || outlet.keeps();
        let mut kept = 0;
        let kept_max = self.matches_max.saturating_sub(self.matches);
        let progress = execution.run(&tables, steps, |found| {
            kept += 1;
            if kept as u64 > kept_max {
                return false;
            }
            let taken = match (&query.output, &mut *groups) {
                (Output::Count(_), _) => {
                    outlet.count += 1;
                    Ok(true)
                }
                (Output::Groups(grouping), Some(groups)) => {
                    let added = groups.add(grouping, fragment, found, &mut outlet.memory);
                    added.map(|()| true)
                }
                _ => outlet.take_match(query, fragment, found, visit),
            };
            outlet.go_on(taken)
        })?;
        self.matches += kept as u64;
        if self.matches > self.matches_max {
            let rows_max = self.matches_max;
            return Err(ExecuteError::Matches { rows_max });
        }
        if keeps {
            *steps = steps.saturating_sub(kept * KEPT_STEPS);
        }
        self.outlet.check()?;
        let is_over = progress == Progress::Done || self.outlet.left == 0;
        if let (true, true, Some(execution)) = (query.explain, is_over, &self.execution) {
            let lines = explain_fragment(query, fragment, number, execution);
            let bytes = lines.iter().map(|line| line.len() + size_of::<String>());
            self.outlet.memory.take(bytes.sum())?;
            self.lines.extend(lines);
        }
        if progress == Progress::Done {
            self.execution = None;
            self.outlet.first_word = None;
            self.phase = Phase::Matches(number + 1);
        }
        Ok(progress)
    }

    /// The count, or the rows of groups.
    fn run_groups(
        &mut self,
        query: &Query,
        place: usize,
        steps: &mut usize,
        visit: &mut impl FnMut(&[u8]) -> bool,
    ) -> Result<Progress, ExecuteError> {
        let next = match (&query.output, &self.groups) {
            (Output::Count(_), _) if place == 0 => {
                let row = self.outlet.count.to_le_bytes();
                self.outlet.row.clear();
                self.outlet.row.extend_from_slice(&row);
                Some(true)
            }
            (Output::Groups(grouping), Some(groups)) => {
                groups.row(grouping, place, &mut self.outlet.row)
            }
            _ => None,
        };
        let Some(is_wanted) = next else {
            self.phase = Phase::Sorted(0);
            return Ok(Progress::Done);
        };
        self.phase = Phase::Groups(place + 1);
        if *steps == 0 {
            self.phase = Phase::Groups(place);
            return Ok(Progress::Paused);
        }
        *steps = steps.saturating_sub(KEPT_STEPS);
        if !is_wanted {
            return Ok(Progress::Done);
        }
        let shown = match &query.output {
            Output::Groups(grouping) => grouping.shown,
            _ => usize::MAX,
        };
        match self.outlet.take_row(query, shown, |_| None, visit)? {
            true => Ok(Progress::Done),
            false => Ok(Progress::Stopped),
        }
    }

    fn run_sorted(
        &mut self,
        place: usize,
        steps: &mut usize,
        visit: &mut impl FnMut(&[u8]) -> bool,
    ) -> Progress {
        let outlet = &mut self.outlet;
        let row = outlet.sorter.as_mut().and_then(|sorter| sorter.row(place));
        let (Some(row), true) = (row, outlet.left > 0) else {
            self.phase = Phase::Done;
            return Progress::Done;
        };
        if *steps == 0 {
            return Progress::Paused;
        }
        *steps = steps.saturating_sub(1);
        self.phase = Phase::Sorted(place + 1);
        if outlet.skip > 0 {
            outlet.skip -= 1;
            return Progress::Done;
        }
        outlet.left -= 1;
        match visit(row) {
            true => Progress::Done,
            false => Progress::Stopped,
        }
    }
}

/// The first column of an order, whether it descends, and where its value begins in a key. None if that depends on the row.
fn first_of_order(query: &Query, fragment: &Fragment) -> Option<(ColumnAt, bool, usize)> {
    let first = query.order.first()?;
    let (at, start) = match (first.by, &query.output) {
        (OrderKey::Column(at), _) => (at, 1),
        (OrderKey::Result(place), Output::Columns(listed)) => (listed[place].0, 0),
        _ => return None,
    };
    // What may have no row has keys of its own.
    let is_optional = query.is_optional(at);
    (!is_optional).then(|| (fragment.column(at), first.descending, start))
}

impl Outlet {
    /// Is anything kept of each row?
    fn keeps(&self) -> bool {
        self.seen.is_some() || self.sorter.is_some()
    }

    /// Remembers what went wrong. False: no more matches are wanted.
    fn go_on(&mut self, taken: Result<bool, ExecuteError>) -> bool {
        match taken {
            Ok(go_on) => go_on && (self.left > 0 || self.sorter.is_some()),
            Err(error) => {
                self.failed = Some(error);
                false
            }
        }
    }

    fn check(&mut self) -> Result<(), ExecuteError> {
        match self.failed.take() {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }

    fn take_match(
        &mut self,
        query: &Query,
        fragment: &Fragment,
        found: &Match<'_>,
        visit: &mut impl FnMut(&[u8]) -> bool,
    ) -> Result<bool, ExecuteError> {
        let is_behind = match &self.first_word {
            Some(first) => first.is_behind(found.typed(first.at)),
            None => self.is_behind_all(query, fragment, found),
        };
        if is_behind {
            return Ok(true);
        }
        write_row(query, fragment, found, &mut self.row);
        let read = |at| found.typed(fragment.column(at));
        let go_on = self.take_row(query, usize::MAX, read, visit)?;
        self.first_word = self.last_first_word(query, fragment, found);
        Ok(go_on)
    }

    /// Does the first column of the order say already that a match is not among the rows that are wanted?
    fn is_behind_all(&mut self, query: &Query, fragment: &Fragment, found: &Match<'_>) -> bool {
        let (Some(sorter), Some((at, descending, start))) =
            (&self.sorter, first_of_order(query, fragment))
        else {
            return false;
        };
        let Some((ty, value)) = found.typed(at) else {
            return false;
        };
        self.key.clear();
        self.key.resize(start, u8::from(descending));
        push_sort_key(ty, value, descending, &mut self.key);
        sorter.refuses(&self.key, self.rows_max)
    }

    /// The first column of the last row that is wanted, if there are as many as that, and it is an integer.
    fn last_first_word(
        &self,
        query: &Query,
        fragment: &Fragment,
        found: &Match<'_>,
    ) -> Option<FirstWord> {
        let last = self.sorter.as_ref()?.last_key(self.rows_max)?;
        let (at, descending, start) = first_of_order(query, fragment)?;
        let (ty, value) = found.typed(at)?;
        FirstWord::new(at, descending, ty, last.get(start..start + value.len())?)
    }

    /// The present row goes on its way: it is left out, kept, or visited. Its first `shown` columns come out.
    fn take_row<'v>(
        &mut self,
        query: &Query,
        shown: usize,
        read: impl Fn(ColumnAt) -> Option<(&'v AlgebraicType, &'v [u8])>,
        visit: &mut impl FnMut(&[u8]) -> bool,
    ) -> Result<bool, ExecuteError> {
        if self.sorter.is_some() {
            sort_key(&query.order, &self.layout, &self.row, read, &mut self.key);
        }
        if shown < self.layout.column_count() {
            let end = self.layout.column_range(&self.row, shown).start;
            self.row.truncate(end);
        }
        if let Some(seen) = &mut self.seen {
            let columns = shown.min(self.layout.column_count());
            if !seen.is_new(&self.layout, columns, &self.row, &mut self.memory)? {
                return Ok(true);
            }
        }
        if let Some(sorter) = &mut self.sorter {
            sorter.push(&self.key, &self.row, self.rows_max, &mut self.memory)?;
            return Ok(true);
        }
        if self.skip > 0 {
            self.skip -= 1;
            return Ok(true);
        }
        self.left -= 1;
        Ok(visit(&self.row))
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
                found.push_value(fragment.column(*at), query.is_optional(*at), out);
            }
        }
        Output::Count(_) | Output::Groups(_) => {}
    }
}
