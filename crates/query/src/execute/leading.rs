//! Queries that a subquery leads: of its matches with equal values, only the first goes on to the rows around it.

use lightcone_table::TableView;

use super::distinct::{Distinct, Met};
use super::found::Match;
use super::loops::{spend, step_bytes, Loop};
use super::{Execution, Pass};
use crate::planner::Leading;

impl Execution {
    /// Is the present match of the leading subquery to go on with? If not, it is known where to go on.
    pub(super) fn leads(&mut self, leading: &Leading, pass: &mut Pass<'_>) -> bool {
        if leading.is_single {
            return true;
        }
        let found = Match::new(pass.tables, &self.ids);
        let before = self.distinct.memory_bytes;
        let others = self.memory_bytes - before;
        let bytes_max = self.memory_bytes_max.saturating_sub(others);
        let met = self.distinct.meet(&leading.own, &found, bytes_max);
        self.memory_bytes += self.distinct.memory_bytes - before;
        spend(pass.steps, self.distinct.steps());
        match met {
            Met::First => {
                self.has_visited |= self.is_value_visited;
                self.is_value_visited = false;
            }
            Met::Again => self.go_back(pass.strategy.steps[self.depth + 1].back),
            Met::TooMany => self.begin_otherwise(leading, pass.tables),
        }
        met == Met::First
    }

    /// There is no memory to go on with: finds the other matches from the outside, which may take less. False if some matches for
    /// the present value were visited and others were not, as it is not kept which.
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
        let values = (!leading.is_single).then_some(self.distinct.len());
        Some((leading, values))
    }
}
