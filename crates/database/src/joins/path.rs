//! In which order the other relations of a join are found for a row of one of them.

use lightcone_query::ColumnAt;

use super::shape::{place_of, JoinShape};

/// From a row of one relation to the matches that it is part of.
pub(super) struct Path {
    /// What can be said of the first row.
    pub start: Known,
    /// One for each other relation.
    pub hops: Vec<Hop>,
}

/// Rows of a relation are looked up for a row that is known.
pub(super) struct Hop {
    pub from: ColumnAt,
    pub to: ColumnAt,
    /// The join whose columns these are.
    pub edge: usize,
    pub known: Known,
}

/// What can be said when one more row is known, and could not be said before.
pub(super) struct Known {
    /// These conditions on several rows.
    pub residuals: Vec<usize>,
    /// The key: all parameters.
    pub key: bool,
}

impl Path {
    /// The way from the rows of `start`.
    pub fn new(shape: &JoinShape, start: usize) -> Path {
        let mut progress = Progress {
            shape,
            is_bound: vec![false; shape.relations.len()],
            checked: vec![false; shape.residuals.len()],
            has_key: false,
        };
        let first = progress.bind(start);
        let mut hops = Vec::with_capacity(shape.relations.len() - 1);
        while let Some((edge, from, to)) = progress.best_edge() {
            let known = progress.bind(place_of(to));
            hops.push(Hop {
                from,
                to,
                edge,
                known,
            });
        }
        Path { start: first, hops }
    }
}

struct Progress<'s> {
    shape: &'s JoinShape,
    is_bound: Vec<bool>,
    /// By residual.
    checked: Vec<bool>,
    has_key: bool,
}

impl Progress<'_> {
    fn is_bound(&self, at: ColumnAt) -> bool {
        self.is_bound[place_of(at)]
    }

    fn bind(&mut self, relation: usize) -> Known {
        self.is_bound[relation] = true;
        let mut residuals = Vec::new();
        for (number, residual) in self.shape.residuals.iter().enumerate() {
            let is_known = residual.columns.iter().all(|at| self.is_bound(*at));
            if is_known && !self.checked[number] {
                residuals.push(number);
                self.checked[number] = true;
            }
        }
        let mut parameters = self.shape.parameters.iter();
        let has_key = parameters.all(|at| self.is_bound(*at));
        let key = has_key && !std::mem::replace(&mut self.has_key, has_key);
        Known { residuals, key }
    }

    /// The join that is followed next: to at most one row, or else to rows that most is said of.
    fn best_edge(&self) -> Option<(usize, ColumnAt, ColumnAt)> {
        let leads_on = |(edge, [left, right]): (usize, [ColumnAt; 2])| match (
            self.is_bound(left),
            self.is_bound(right),
        ) {
            (true, false) => Some((edge, left, right)),
            (false, true) => Some((edge, right, left)),
            _ => None,
        };
        let edges = self.shape.edges.iter().map(|edge| edge.ends);
        let next = edges.enumerate().filter_map(leads_on);
        next.max_by_key(|(edge, _, to)| (self.promise(*to), std::cmp::Reverse(*edge)))
    }

    fn promise(&self, to: ColumnAt) -> (bool, bool, bool) {
        let relation = &self.shape.relations[place_of(to)];
        let mut indexes = relation.table.indexes.iter();
        let is_unique =
            indexes.any(|index| index.unique && *index.algorithm.columns() == [to.column]);
        let mut parameters = self.shape.parameters.iter();
        let has_parameter = parameters.any(|at| at.relation == to.relation);
        (is_unique, has_parameter, relation.has_predicate())
    }
}
