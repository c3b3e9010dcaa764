//! Semi-joins from the inside: a query that begins with the rows of a subquery, where these are few.
//!
//! `EXISTS` and `IN` are looked up for each row around them, unless the query is *led* by one: its matches are found by its own
//! conditions first, then the rows around by the columns that must equal its own. Of matches with equal values only the first
//! counts, so each row around comes once: two different values never lead to the same one.

use std::sync::Arc;

use lightcone_table::TableView;

use super::conjuncts::Conjuncts;
use super::cost::{cost, cost_of_first};
use super::{plan_from, Access, Compiled, Planned, Samples, Step, Strategy};
use crate::condition::{ColumnAt, Condition, Node, NodeId, SubqueryId};
use crate::lexer::Comparison;
use crate::query::Fragment;

/// So many subqueries of a query are tried: each takes as long as planning it without.
const LEADING_TRIED_MAX: usize = 8;
/// And so many terms of conditions are gone through for them.
const LED_NODES_MAX: usize = 1 << 16;
/// Queries over more relations are not planned twice.
const LED_RELATIONS_MAX: usize = 64;
/// How many times cheaper it must be, as costs are guessed.
const GAIN: f64 = 2.0;

/// The subquery that a query begins with.
#[derive(Clone, Debug)]
pub(crate) struct Leading {
    /// The positions of its first and its last step. Before it stand only subqueries that read nothing of the query.
    pub first: usize,
    pub last: usize,
    /// Its columns, and those around it that must equal them.
    pub own: Vec<ColumnAt>,
    pub around: Vec<ColumnAt>,
    /// It has one match at most.
    pub is_single: bool,
    /// How the rest is found when it has more values than can be kept.
    pub otherwise: Option<Arc<Strategy>>,
}

/// A subquery that may lead, and how it is linked with what is around it.
pub(super) struct Links {
    pub subquery: SubqueryId,
    own: Vec<ColumnAt>,
    around: Vec<ColumnAt>,
}

/// This strategy, or one that begins with a subquery if that is cheaper by far.
pub(super) fn cheaper(strategy: Strategy, planned: Planned<'_>, samples: &mut Samples) -> Strategy {
    if strategy.is_never {
        return strategy;
    }
    let Some(links) = leader(&strategy, planned, samples) else {
        return strategy;
    };
    let mut led = plan_from(planned, samples, Some(&links), Compiled::Yes);
    if let Some(leading) = &mut led.leading {
        leading.otherwise = Some(Arc::new(strategy.with_matches_checked()));
    }
    led
}

/// The subquery with which a query is cheaper by far than by this strategy.
pub(super) fn leader(
    strategy: &Strategy,
    planned: Planned<'_>,
    samples: &mut Samples,
) -> Option<Links> {
    let Planned {
        fragment,
        condition,
        tables,
        ..
    } = planned;
    if condition.subqueries.is_empty() || tables.len() > LED_RELATIONS_MAX {
        return None;
    }
    let conjuncts = Conjuncts::of(condition, fragment, None);
    let mut best = None;
    let mut cost_max = cost(strategy) / GAIN;
    let scan_cost_max = match planned.matches_wanted {
        Some(wanted) => cost_of_first(strategy, wanted) / GAIN,
        None => cost_max,
    };
    let numbers = 0..condition.subqueries.len() as SubqueryId;
    let candidates = numbers.filter_map(|number| links(condition, fragment, &conjuncts, number));
    let tried_max = LEADING_TRIED_MAX.min(LED_NODES_MAX / condition.nodes.len().max(1));
    for links in candidates.take(tried_max) {
        let led = plan_from(planned, samples, Some(&links), Compiled::No);
        let cost = cost(&led);
        let is_cheap = match is_found_by_index(&led) {
            true => cost < cost_max,
            // Its first match may be at the end of a scan, however few matches are wanted.
            false => cost < cost_max.min(scan_cost_max),
        };
        if is_cheap && !hashes_what_is_led(&led) {
            cost_max = cost;
            best = Some(links);
        }
    }
    best
}

/// Are all rows of the subquery that leads found by indexes?
fn is_found_by_index(led: &Strategy) -> bool {
    let Some(leading) = &led.leading else {
        return true;
    };
    let mut own = led.steps[leading.first..=leading.last].iter();
    own.all(|step| matches!(step.access, Access::Point { .. } | Access::Range { .. }))
}

/// A hash table of the rows around would have to be built of all of them.
fn hashes_what_is_led(led: &Strategy) -> bool {
    let Some(leading) = &led.leading else {
        return false;
    };
    let (own, around) = led.steps.split_at(leading.last + 1);
    let is_own = |at: &ColumnAt| own.iter().any(|step| step.relation == at.relation);
    around.iter().any(|step| match &step.access {
        Access::Hash { columns } => columns.iter().any(|(_, _, other)| is_own(other)),
        _ => false,
    })
}

/// How a subquery is linked with what is around it, if it must have a match, and reads of what is around it only columns that its
/// own must equal.
fn links(
    condition: &Condition,
    fragment: &Fragment,
    conjuncts: &Conjuncts,
    subquery: SubqueryId,
) -> Option<Links> {
    let block = usize::from(subquery) + 1;
    if !conjuncts.is_semi_join(subquery) || conjuncts.has_subquery_on_query(block) {
        return None;
    }
    let is_of = |relation: u16, block: usize| conjuncts.block_of[usize::from(relation)] == block;
    let mut outer = fragment.outer.iter();
    if outer.any(|join| is_of(join.own.relation, block) && is_of(join.other.relation, 0)) {
        return None;
    }
    let mut links = Links {
        subquery,
        own: Vec::new(),
        around: Vec::new(),
    };
    // Those of subqueries in it that are joins by now are its own.
    let blocks = condition
        .subqueries
        .iter()
        .zip(&conjuncts.block_of_subquery);
    let own = blocks.filter(|(_, of)| **of == block);
    for &id in own.flat_map(|(subquery, _)| &subquery.conjuncts) {
        if !conjuncts.reads_query(condition, id) {
            continue;
        }
        let relations = condition.relations_of(id);
        let is_around = relations.iter().all(|&relation| is_of(relation, 0));
        if is_around && condition.subqueries_of(id).is_empty() {
            continue;
        }
        let (own, around) = link(condition, id, |at| is_of(at.relation, block))?;
        let is_optional = |at: ColumnAt| {
            let mut outer = fragment.outer.iter();
            outer.any(|join| join.own.relation == at.relation)
        };
        if !is_of(around.relation, 0) || is_optional(own) || is_optional(around) {
            return None;
        }
        links.own.push(own);
        links.around.push(around);
    }
    (!links.own.is_empty()).then_some(links)
}

/// The two columns that a conjunct says are equal, the own one first.
fn link(
    condition: &Condition,
    id: NodeId,
    is_own: impl Fn(ColumnAt) -> bool,
) -> Option<(ColumnAt, ColumnAt)> {
    match condition.nodes[id as usize] {
        Node::Columns {
            left,
            right,
            comparison: Comparison::Equal,
            ..
        } => match (is_own(left), is_own(right)) {
            (true, false) => Some((left, right)),
            (false, true) => Some((right, left)),
            _ => None,
        },
        _ => None,
    }
}

impl Links {
    /// The subquery leads; so far there are its steps, from the first on, and what is settled before them.
    pub fn lead(&self, steps: &[Step], first: usize, tables: &[&TableView]) -> Leading {
        let is_single = |step: &Step| match &step.access {
            Access::Point { index, .. } => {
                tables[usize::from(step.relation)].schema.indexes[*index].unique
            }
            _ => false,
        };
        Leading {
            first,
            last: steps.len() - 1,
            own: self.own.clone(),
            around: self.around.clone(),
            is_single: steps[first..].iter().all(is_single),
            otherwise: None,
        }
    }
}

impl Strategy {
    /// The same, but that each match is looked at before it is visited.
    fn with_matches_checked(mut self) -> Strategy {
        if let Some(last) = self.steps.last_mut() {
            last.is_plain_end = false;
        }
        self
    }
}
