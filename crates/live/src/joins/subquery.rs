//! How the matches of a subquery are found for the rows around it.

use lightcone_query::{ColumnAt, Guard, GuardSays, LiveJoin};
use lightcone_types::ColId;

use super::parts::{place_of, promise, sorted, Parts};
use super::progress::{Members, Progress};

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
        let members = Members::of(parts, number);
        let known = members.without(&relations);
        let mut progress = Progress::new(parts, &members, &known, |of| of == number);
        Subquery {
            relations,
            start: progress.residuals(),
            probes: std::iter::from_fn(|| next_probe(&mut progress)).collect(),
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

/// The relation that is looked for next, and how.
fn next_probe(progress: &mut Progress<'_>) -> Option<Probe> {
    let parts = progress.parts;
    let best = progress.leads().max_by_key(|lead| promise(parts, lead.2))?;
    let (edge, from, to) = best;
    let relation = place_of(to);
    let others = progress.leads().filter(|lead| *lead != best);
    let others = others.filter(|lead| place_of(lead.2) == relation);
    let others = others.map(|(_, from, to)| (to.column, Sought::Column(from)));
    let parameters: Vec<_> = parts.parameters.of_relation(relation).collect();
    let by_parameter = parameters.iter();
    let by_parameter = by_parameter.map(|(number, column)| (*column, Sought::Parameter(*number)));
    let table = &parts.relations[relation].table;
    let has_index = |(column, _): &(ColId, Sought)| table.has_index_on(*column);
    let others = by_parameter.chain(others).filter(has_index);
    let others = others.take(OTHERS_MAX).collect();
    Some(Probe {
        to,
        from,
        edge,
        others,
        parameters,
        residuals: progress.add(relation),
    })
}
