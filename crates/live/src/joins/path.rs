//! In which order the other relations of a join are found for a row of one of them.

use std::cmp::Reverse;

use lightcone_query::ColumnAt;

use super::parts::{place_of, promise, Parts};
use super::progress::{Members, Progress};

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
        let short = Path::over(parts, start, all.without(&path.side_ways(parts, false)));
        match short.has_key || !path.has_key {
            true => short,
            false => Path::over(parts, start, all.without(&path.side_ways(parts, true))),
        }
    }

    fn over(parts: &Parts, start: usize, members: Members) -> Path {
        let mut progress = Progress::new(parts, &members, &Members::default(), |subquery| {
            members.has_residuals_of(subquery)
        });
        let mut key = members.key_of(parts);
        let has_key = key.is_some();
        let first = Known::of(&mut progress, start, &mut key);
        let mut hops = Vec::with_capacity(parts.relations.len() - 1);
        // To at most one row, or else to rows that most is said of; of several such joins, by the first.
        let order = |to: ColumnAt| Reverse(promise(parts, to));
        while let Some((edge, from, to)) = progress.leads().min_by_key(|lead| order(lead.2)) {
            let known = Known::of(&mut progress, place_of(to), &mut key);
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

impl Known {
    /// With the row of one more relation. `key` says where the key is, until it is known.
    fn of(progress: &mut Progress<'_>, relation: usize, key: &mut Option<Vec<ColumnAt>>) -> Known {
        let residuals = progress.add(relation);
        // Parameters that are known by an equal one are not waited for; all others are, as they have to fit.
        let mut parameters = progress.parts.parameters.columns.iter();
        let has_key = parameters.all(|at| progress.is_known(*at) || !progress.members.has(*at));
        let key = if has_key { key.take() } else { None };
        Known { residuals, key }
    }
}
