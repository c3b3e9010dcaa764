//! Finding the relations of a join one after the other: what leads on, and what can be said by then.

use lightcone_query::ColumnAt;

use super::parts::{place_of, Parts};

/// Relations, and the subqueries that they are of.
#[derive(Clone, Default)]
pub(super) struct Members {
    subqueries: Vec<usize>,
    relations: Vec<usize>,
}

impl Members {
    /// Those of a query or subquery, and of all around that.
    pub fn of(parts: &Parts, subquery: Option<usize>) -> Members {
        let mut subqueries = Vec::new();
        let mut next = subquery;
        while let Some(subquery) = next {
            subqueries.push(subquery);
            next = parts.parents[subquery];
        }
        let is_member = |relation: &usize| {
            let subquery = parts.relations[*relation].subquery;
            subquery.is_none_or(|subquery| subqueries.contains(&subquery))
        };
        let relations = (0..parts.relations.len()).filter(is_member).collect();
        Members {
            subqueries,
            relations,
        }
    }

    pub fn without(&self, relations: &[usize]) -> Members {
        let mut members = self.clone();
        members.relations.retain(|own| !relations.contains(own));
        members
    }

    pub fn has(&self, at: ColumnAt) -> bool {
        self.relations.contains(&place_of(at))
    }

    pub fn has_residuals_of(&self, subquery: Option<usize>) -> bool {
        subquery.is_none_or(|subquery| self.subqueries.contains(&subquery))
    }

    /// Where the values of a key are in rows of these relations, if all of them are.
    pub fn key_of(&self, parts: &Parts) -> Option<Vec<ColumnAt>> {
        let parameters = &parts.parameters;
        // By parameter: one that is known and equals it.
        let mut known = vec![None; parameters.columns.len()];
        for (at, first) in parameters.columns.iter().zip(&parameters.first_equal) {
            if self.has(*at) {
                known[*first].get_or_insert(*at);
            }
        }
        let columns = parameters.columns.iter().zip(&parameters.first_equal);
        let source = |(at, first): (&ColumnAt, &usize)| match self.has(*at) {
            true => Some(*at),
            false => known[*first],
        };
        columns.map(source).collect()
    }
}

/// Which of the members are known so far, and what was said of them.
pub(super) struct Progress<'s> {
    pub parts: &'s Parts,
    pub members: &'s Members,
    /// By relation.
    is_known: Vec<bool>,
    /// By condition on several rows: it was said, or is not to be.
    is_said: Vec<bool>,
}

impl<'s> Progress<'s> {
    /// With the rows of some of the members. `is_own` says of which queries and subqueries the conditions are to be said.
    pub fn new(
        parts: &'s Parts,
        members: &'s Members,
        known: &Members,
        is_own: impl Fn(Option<usize>) -> bool,
    ) -> Progress<'s> {
        let relations = 0..parts.relations.len();
        let residuals = parts.residuals.iter();
        Progress {
            parts,
            members,
            is_known: relations.map(|r| known.relations.contains(&r)).collect(),
            is_said: residuals.map(|(of, _)| !is_own(*of)).collect(),
        }
    }

    pub fn is_known(&self, at: ColumnAt) -> bool {
        self.is_known[place_of(at)]
    }

    /// The row of one more relation is there. Gives the conditions that can be said now, and could not be said before.
    pub fn add(&mut self, relation: usize) -> Vec<usize> {
        self.is_known[relation] = true;
        self.residuals()
    }

    /// The conditions that can be said, and were not said before.
    pub fn residuals(&mut self) -> Vec<usize> {
        let mut new = Vec::new();
        for (number, (_, residual)) in self.parts.residuals.iter().enumerate() {
            let can_be_said = residual.columns.iter().all(|at| self.is_known(*at));
            if can_be_said && !self.is_said[number] {
                self.is_said[number] = true;
                new.push(number);
            }
        }
        new
    }

    /// The joins and links that lead from a row that is there to a relation that is missing: which join, from and to.
    pub fn leads(&self) -> impl Iterator<Item = (Option<usize>, ColumnAt, ColumnAt)> + '_ {
        let joins = self.parts.edges.iter().enumerate();
        let joins = joins.map(|(number, edge)| (Some(number), edge.ends));
        let links = self.parts.links.iter().map(|ends| (None, *ends));
        let leads = joins.chain(links).filter_map(move |(edge, [left, right])| {
            match (self.is_known(left), self.is_known(right)) {
                (true, false) => Some((edge, left, right)),
                (false, true) => Some((edge, right, left)),
                _ => None,
            }
        });
        leads.filter(move |(_, _, to)| self.members.has(*to))
    }
}
