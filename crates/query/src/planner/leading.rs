//! Semi-joins from the inside: a query that begins with the rows of a subquery, where these are few.
//!
//! `EXISTS` and `IN` are looked up for each row around them, unless the query is *led* by one: its matches are found by its own
//! conditions first, then the rows around by the columns that must equal its own. Of matches with equal values only the first
//! counts, so each row around comes once: two different values never lead to the same one.

use std::sync::Arc;

use super::conjuncts::Conjuncts;
use super::cost::{cost, cost_of_first};
use super::links::{links, Links};
use super::order::{plan_from, PlanInput};
use super::samples::Samples;
use super::strategy::{Access, Strategy};
use crate::condition::{ColumnAt, SubqueryId};

/// So many subqueries of a query are tried: each takes as long as planning it without.
const LEADING_TRIED_MAX: usize = 8;
/// And so many terms of conditions are gone through for them.
const LED_NODES_MAX: usize = 1 << 16;
/// Queries over more relations are not planned twice.
const LED_RELATIONS_MAX: usize = 64;
/// How many times cheaper it must be, as costs are guessed.
const GAIN: f64 = 2.0;

/// This strategy, or one that begins with a subquery if that is cheaper by far.
pub(super) fn cheaper(
    strategy: Strategy,
    planned: PlanInput<'_>,
    samples: &mut Samples,
) -> Strategy {
    if strategy.is_never {
        return strategy;
    }
    let Some(links) = leader(&strategy, planned, samples) else {
        return strategy;
    };
    let mut led = plan_from(planned, samples, Some(&links), true);
    if let Some(leading) = &mut led.leading {
        leading.otherwise = Some(Arc::new(strategy.with_matches_checked()));
    }
    led
}

/// The subquery with which a query is cheaper by far than by this strategy.
pub(super) fn leader(
    strategy: &Strategy,
    planned: PlanInput<'_>,
    samples: &mut Samples,
) -> Option<Links> {
    let (fragment, condition, tables) = (planned.fragment, planned.condition, planned.tables);
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
        let led = plan_from(planned, samples, Some(&links), false);
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
