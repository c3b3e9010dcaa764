//! How a subquery that may lead is linked with what is around it.

use lightcone_table::TableView;

use super::conjuncts::Conjuncts;
use super::strategy::{Access, Leading, Step};
use crate::condition::{ColumnAt, Condition, NodeId, SubqueryId};
use crate::query::Fragment;

/// A subquery that may lead, and how it is linked with what is around it.
pub(super) struct Links {
    pub subquery: SubqueryId,
    own: Vec<ColumnAt>,
    around: Vec<ColumnAt>,
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

/// How a subquery is linked with what is around it, if it must have a match, and reads of what is around it only columns that its
/// own must equal.
pub(super) fn links(
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
    let [left, right] = condition.nodes[id as usize].equal_columns()?;
    match (is_own(left), is_own(right)) {
        (true, false) => Some((left, right)),
        (false, true) => Some((right, left)),
        _ => None,
    }
}
