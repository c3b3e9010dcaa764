//! In which order the other relations of a join are found for a row of one of them.

use lightcone_query::ColumnAt;

use super::parts::{place_of, promise, Parts};

/// From a row of one relation to the matches that it is part of; from a row of a subquery to all around it that it may concern.
pub(super) struct Path {
    /// What can be said of the first row.
    pub start: Known,
    /// One for each other relation.
    pub hops: Vec<Hop>,
    /// Whether the key is known at the end.
    pub has_key: bool,
    /// It leads from a subquery to what is around it.
    pub is_of_subquery: bool,
    /// The parameters that are known at the end, with their columns.
    pub parameters: Vec<(usize, ColumnAt)>,
}

/// Rows of a relation are looked up for a row that is known.
pub(super) struct Hop {
    pub from: ColumnAt,
    pub to: ColumnAt,
    /// The join whose columns these are; none for those of subqueries, which are among the residuals.
    pub edge: Option<usize>,
    pub known: Known,
}

/// What can be said when one more row is known, and could not be said before.
pub(super) struct Known {
    /// These conditions on several rows.
    pub residuals: Vec<usize>,
    /// The key: the values of these columns.
    pub key: Option<Vec<ColumnAt>>,
}

/// Relations, and the subqueries that they are of.
#[derive(Clone)]
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

    fn without(&self, relations: Vec<usize>) -> Members {
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

impl Path {
    /// The way from the rows of `start`.
    pub fn new(parts: &Parts, start: usize) -> Path {
        let subquery = parts.relations[start].subquery;
        let all = Members::of(parts, subquery);
        if subquery.is_none() {
            return Path::over(parts, start, all);
        }
        // The rows around a subquery are wanted, and for whom they are: what else the subquery reads leads to the same rows
        // more often.
        let path = Path::over(parts, start, all.clone());
        let short = Path::over(parts, start, all.without(path.side_ways(parts, false)));
        match short.has_key || !path.has_key {
            true => short,
            false => Path::over(parts, start, all.without(path.side_ways(parts, true))),
        }
    }

    fn over(parts: &Parts, start: usize, members: Members) -> Path {
        let mut progress = Progress {
            parts,
            members: &members,
            key: members.key_of(parts),
            is_bound: vec![false; parts.relations.len()],
            checked: vec![false; parts.residuals.len()],
        };
        let has_key = progress.key.is_some();
        let first = progress.bind(start);
        let mut hops = Vec::with_capacity(parts.relations.len() - 1);
        while let Some((edge, from, to)) = progress.best_edge() {
            let known = progress.bind(place_of(to));
            hops.push(Hop {
                from,
                to,
                edge,
                known,
            });
        }
        let parameters = parts.parameters.columns.iter().copied().enumerate();
        let parameters = parameters.filter(|(_, at)| members.has(*at));
        Path {
            start: first,
            hops,
            has_key,
            is_of_subquery: parts.relations[start].subquery.is_some(),
            parameters: parameters.collect(),
        }
    }

    /// Relations of subqueries that lead to no others; those with parameters are none, if they are wanted.
    fn side_ways(&self, parts: &Parts, wants_parameters: bool) -> Vec<usize> {
        let mut side_ways = Vec::new();
        for (number, hop) in self.hops.iter().enumerate().rev() {
            let relation = place_of(hop.to);
            let mut behind = self.hops[number + 1..].iter();
            let leads_on = behind.any(|next| {
                place_of(next.from) == relation && !side_ways.contains(&place_of(next.to))
            });
            let mut parameters = parts.parameters.of_relation(relation);
            let is_wanted = wants_parameters && parameters.next().is_some();
            if parts.relations[relation].subquery.is_some() && !leads_on && !is_wanted {
                side_ways.push(relation);
            }
        }
        side_ways
    }
}

struct Progress<'s> {
    parts: &'s Parts,
    members: &'s Members,
    /// Where the key is, until it is known.
    key: Option<Vec<ColumnAt>>,
    is_bound: Vec<bool>,
    /// By residual.
    checked: Vec<bool>,
}

impl Progress<'_> {
    fn is_bound(&self, at: ColumnAt) -> bool {
        self.is_bound[place_of(at)]
    }

    fn bind(&mut self, relation: usize) -> Known {
        self.is_bound[relation] = true;
        let mut residuals = Vec::new();
        for (number, (subquery, residual)) in self.parts.residuals.iter().enumerate() {
            let is_known = residual.columns.iter().all(|at| self.is_bound(*at));
            if is_known && !self.checked[number] && self.members.has_residuals_of(*subquery) {
                residuals.push(number);
                self.checked[number] = true;
            }
        }
        // Parameters that are known by an equal one are not waited for; all others are, as they have to fit.
        let mut parameters = self.parts.parameters.columns.iter();
        let has_key = parameters.all(|at| self.is_bound(*at) || !self.members.has(*at));
        let key = if has_key { self.key.take() } else { None };
        Known { residuals, key }
    }

    /// The join that is followed next: to at most one row, or else to rows that most is said of.
    fn best_edge(&self) -> Option<(Option<usize>, ColumnAt, ColumnAt)> {
        let leads_on = |(edge, [left, right]): (usize, [ColumnAt; 2])| match (
            self.is_bound(left),
            self.is_bound(right),
        ) {
            (true, false) => Some((edge, left, right)),
            (false, true) => Some((edge, right, left)),
            _ => None,
        };
        let joins = self.parts.edges.len();
        let edges = self.parts.edges.iter().map(|edge| edge.ends);
        let edges = edges.chain(self.parts.links.iter().copied());
        let of_members = |(_, _, to): &(usize, ColumnAt, ColumnAt)| self.members.has(*to);
        let next = edges.enumerate().filter_map(leads_on).filter(of_members);
        let best =
            next.max_by_key(|(edge, _, to)| (promise(self.parts, *to), std::cmp::Reverse(*edge)));
        best.map(|(edge, from, to)| ((edge < joins).then_some(edge), from, to))
    }
}
