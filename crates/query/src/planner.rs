//! In which order the relations of a fragment are read, and how the rows of each are found.
//!
//! The order is greedy: next comes the relation that has the fewest rows for what is known by then. What is known of a
//! relation changes only when a relation is bound that it is joined with, so planning takes a time that grows with the
//! number of relations times that of the joins of one, however many there are in a hostile text.
//!
//! Relations of a subquery come behind what it reads of the query, unless the query is cheaper from the inside (`leading`).

mod access;
mod conjuncts;
mod cost;
mod leading;
mod links;
mod order;
mod samples;
mod strategy;

use lightcone_table::TableView;
use lightcone_types::Identity;

use self::leading::{cheaper, leader};
use self::order::plan_from;
use crate::condition::SubqueryId;
use crate::query::Fragment;

pub(crate) use self::order::PlanInput;
pub(crate) use self::samples::Samples;
pub(crate) use self::strategy::{Access, Group, GroupKind, KeyPart, Leading, Step, Strategy};

/// Plans a fragment. `tables` are those of its relations, in their order.
pub(crate) fn plan(
    fragment: &Fragment,
    sender: &Identity,
    tables: &[&TableView],
    matches_wanted: Option<u64>,
    samples: &mut Samples,
) -> Strategy {
    let condition = &fragment.condition.bind(sender);
    let planned = PlanInput {
        fragment,
        condition,
        tables,
        matches_wanted,
    };
    let strategy = plan_from(planned, samples, None, true);
    cheaper(strategy, planned, samples)
}

/// The subquery that a fragment is planned to begin with.
pub(crate) fn leading_subquery(
    planned: PlanInput<'_>,
    samples: &mut Samples,
) -> Option<SubqueryId> {
    let strategy = plan_from(planned, samples, None, false);
    leader(&strategy, planned, samples).map(|links| links.subquery)
}
