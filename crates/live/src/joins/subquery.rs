//! How the matches of a subquery are found for the rows around it.

use lightcone_query::{ColumnAt, Guard, GuardSays, LiveJoin};
use lightcone_types::ColId;

use super::parts::{place_of, promise, sorted, Parts};
use super::path::Members;

/// Of the indexes by which the rows of a relation may be found, so many are compared beside the first.
const OTHERS_MAX: usize = 4;

/// A subquery of a shape; or all that the row that comes out is joined with, as if that were one.
pub(super) struct Subquery {
    pub relations: Vec<usize>,
    /// Conditions that can be said before any of its rows is known.
    pub start: Vec<usize>,
    /// One for each relation.
    pub probes: Vec<Probe>,
    pub guards: Vec<Guard>,
    /// The columns around it that decide whether it has a match.
    pub reads: Vec<ColumnAt>,
}

/// Rows of a relation are looked for.
pub(super) struct Probe {
    /// By this column, which equals the other one.
    pub to: ColumnAt,
    pub from: ColumnAt,
    /// The join whose columns these are; none in a subquery, where they are among the residuals.
    pub edge: Option<usize>,
    /// Or in other ways, if there is an index for them.
    pub others: Vec<(ColId, Sought)>,
    /// Its parameters, with their columns.
    pub parameters: Vec<(usize, ColId)>,
    /// The conditions that can be said with such a row.
    pub residuals: Vec<usize>,
}

/// What a column is to equal.
pub(super) enum Sought {
    Column(ColumnAt),
    Parameter(usize),
}

/// A subquery whose matches say for whom a row around it is, or for whom it is not: its rows have all values of keys that the
/// row around has not.
pub(super) struct Driver {
    pub subquery: usize,
    /// The condition that it has a match, or that it has none.
    pub guard: usize,
    pub is_negated: bool,
    /// Where the values of the key are.
    pub key: Vec<ColumnAt>,
}

/// One that must have a match is better: it says for whom. The other one leaves all others.
pub(super) fn driver_of(parts: &Parts) -> Option<Driver> {
    let find = |says: GuardSays| {
        let guards = parts.guards.iter().enumerate();
        let mut guards = guards.filter(|(_, guard)| guard.says == says);
        guards.find_map(|(number, guard)| {
            let subquery = guard.subqueries[0];
            Some(Driver {
                subquery,
                guard: number,
                is_negated: says == GuardSays::NoMatch,
                key: Members::of(parts, Some(subquery)).key_of(parts)?,
            })
        })
    };
    find(GuardSays::Match).or_else(|| find(GuardSays::NoMatch))
}

impl Subquery {
    /// The parts have its relations, links, residuals and parameters.
    pub fn new(parts: &Parts, join: &LiveJoin, number: usize) -> Subquery {
        let of = &join.subqueries[number];
        let relations = of.relations.iter().map(|r| usize::from(*r)).collect();
        let rest = (relations, &of.guards[..], reads(join, number));
        Subquery::over(parts, Some(number), rest)
    }

    /// What the row that comes out is joined with.
    pub fn around(parts: &Parts) -> Subquery {
        let others = parts.around().filter(|number| *number != parts.returned);
        let rest = (others.collect(), &parts.guards[..], Vec::new());
        Subquery::over(parts, None, rest)
    }

    fn over(
        parts: &Parts,
        number: Option<usize>,
        (relations, guards, reads): (Vec<usize>, &[Guard], Vec<ColumnAt>),
    ) -> Subquery {
        let mut progress = Progress {
            parts,
            number,
            members: Members::of(parts, number),
            missing: relations.clone(),
            checked: vec![false; parts.residuals.len()],
        };
        let start = progress.residuals();
        let mut probes = Vec::with_capacity(relations.len());
        while let Some(probe) = progress.next() {
            probes.push(probe);
        }
        Subquery {
            relations,
            start,
            probes,
            guards: guards.to_vec(),
            reads,
        }
    }
}

/// What a subquery and those in it read around it.
fn reads(join: &LiveJoin, number: usize) -> Vec<ColumnAt> {
    let is_within = |mut subquery: Option<usize>| {
        while let Some(inner) = subquery {
            if inner == number {
                return true;
            }
            subquery = join.subqueries[inner].parent;
        }
        false
    };
    let subqueries = join.subqueries.iter().enumerate();
    let within = subqueries.filter(|(inner, _)| is_within(Some(*inner)));
    let columns = within.flat_map(|(_, subquery)| {
        let residuals = subquery.residuals.iter().flat_map(|r| &r.columns);
        residuals.chain(subquery.guards.iter().flat_map(|guard| &guard.columns))
    });
    let is_around = |at: &&ColumnAt| !is_within(join.relations[place_of(**at)].subquery);
    sorted(columns.filter(is_around).copied())
}

struct Progress<'s> {
    parts: &'s Parts,
    /// None for what is in no subquery.
    number: Option<usize>,
    members: Members,
    /// Relations that are not looked for yet.
    missing: Vec<usize>,
    checked: Vec<bool>,
}

impl Progress<'_> {
    fn is_known(&self, at: ColumnAt) -> bool {
        !self.missing.contains(&place_of(at))
    }

    /// The conditions that can be said now, and could not be said before.
    fn residuals(&mut self) -> Vec<usize> {
        let all = self.parts.residuals.iter().enumerate();
        let own = all.filter(|(_, (subquery, _))| *subquery == self.number);
        let is_new = |number: &usize| {
            let (_, residual) = &self.parts.residuals[*number];
            !self.checked[*number] && residual.columns.iter().all(|at| self.is_known(*at))
        };
        let new: Vec<usize> = own.map(|(number, _)| number).filter(is_new).collect();
        for number in &new {
            self.checked[*number] = true;
        }
        new
    }

    /// The links and joins that lead to a relation that is missing: which join, from and to.
    fn links(&self) -> impl Iterator<Item = (Option<usize>, ColumnAt, ColumnAt)> + '_ {
        let joins = self.parts.edges.iter().enumerate();
        let joins = joins.map(|(number, edge)| (Some(number), edge.ends));
        let links = self.parts.links.iter().map(|ends| (None, *ends));
        joins.chain(links).filter_map(|(edge, [left, right])| {
            let is_missing = |at: ColumnAt| self.missing.contains(&place_of(at));
            let is_around = |at: ColumnAt| self.members.has(at) && !is_missing(at);
            if is_missing(left) && is_around(right) {
                return Some((edge, right, left));
            }
            (is_missing(right) && is_around(left)).then_some((edge, left, right))
        })
    }

    fn next(&mut self) -> Option<Probe> {
        let (edge, from, to) = self
            .links()
            .max_by_key(|(_, _, to)| promise(self.parts, *to))?;
        let relation = place_of(to);
        let others = self.links().filter(|link| place_of(link.2) == relation);
        let others = others.filter(|link| *link != (edge, from, to));
        let others = others.map(|(_, from, to)| (to.column, Sought::Column(from)));
        let parameters: Vec<_> = self.parts.parameters.of_relation(relation).collect();
        let by_parameter = parameters.iter();
        let by_parameter =
            by_parameter.map(|(number, column)| (*column, Sought::Parameter(*number)));
        let table = &self.parts.relations[relation].table;
        let has_index = |(column, _): &(ColId, Sought)| table.has_index_on(*column);
        let others = by_parameter.chain(others).filter(has_index);
        let others = others.take(OTHERS_MAX).collect();
        self.missing.retain(|missing| *missing != relation);
        Some(Probe {
            to,
            from,
            edge,
            others,
            parameters,
            residuals: self.residuals(),
        })
    }
}
