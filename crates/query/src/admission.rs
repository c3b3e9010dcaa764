//! What may be subscribed to (08 §13, §11).

use lightcone_schema::{IndexAlgorithm, TableSchema};
use lightcone_types::ColId;

use crate::condition::{ColumnAt, SubqueryId};
use crate::error::{Result, SqlError, LIVE_RELATIONS_MAX};
use crate::query::{Fragment, JoinOn, Output, Query};

/// Is this query admissible as a subscription (08 §13)? A query on one relation always is.
///
/// # Errors
/// Those of 08 §13, for the first fragment that is not.
pub fn admit_subscription(query: &Query) -> Result<()> {
    let Output::Row(returned) = query.output else {
        return Err(SqlError::ProjectionInSubscription);
    };
    if query.is_window() {
        return admit_window(query, returned);
    }
    let admit = |fragment| admit_fragment(fragment, returned);
    query.fragments.iter().try_for_each(admit)
}

/// A window is kept up to date if it is of one table. Row-level security rules may decide by joins what is in it.
fn admit_window(query: &Query, returned: u16) -> Result<()> {
    let is_refused = |why| Err(SqlError::Window(why));
    match &query.tables[..] {
        [table] if table.is_event => return is_refused("rows of an event table do not stay in it"),
        [_] => {}
        _ => return is_refused("it reads one table, and this one is a join or has a subquery"),
    }
    let mut fragments = query.fragments.iter();
    if fragments.any(|fragment| !fragment.condition.subqueries.is_empty()) {
        return is_refused("its table has a row-level security rule with a subquery");
    }
    let admit = |fragment| admit_fragment(fragment, returned);
    query.fragments.iter().try_for_each(admit)
}

fn admit_fragment(fragment: &Fragment, returned: u16) -> Result<()> {
    let count = fragment.tables.len();
    if count == 1 {
        return Ok(());
    }
    let own = fragment.relations_of_no_subquery();
    let joins = fragment.joins_of_no_subquery();
    // What is refused for its number of relations anyway is not worth a closer look.
    let is_few = count <= LIVE_RELATIONS_MAX;
    let is_joined = match is_few {
        true => is_tree(&joins, &own),
        false => joins.len() >= own.len() - 1,
    };
    if !is_joined
        || !joins
            .iter()
            .all(|join| has_index(fragment, [join.left, join.right]))
    {
        return Err(SqlError::JoinWithoutIndex);
    }
    if is_few {
        let mut subqueries = 0..fragment.condition.subqueries.len() as SubqueryId;
        subqueries.try_for_each(|subquery| admit_subquery(fragment, subquery))?;
    }
    let returned = fragment.own[usize::from(returned)];
    let mut events = (0..count).filter(|&relation| fragment.tables[relation].is_event);
    match (events.next(), events.next()) {
        (None, _) => {}
        (Some(event), None) if event == usize::from(returned) => {}
        _ => return Err(SqlError::EventTableLookedUp),
    }
    match is_few {
        true => Ok(()),
        false => Err(SqlError::TooManyTables(count)),
    }
}

/// A change in a subquery leads to the rows around it that it concerns, and those lead into it, by equal columns with indexes.
fn admit_subquery(fragment: &Fragment, subquery: SubqueryId) -> Result<()> {
    let relations = &fragment.condition.subqueries[usize::from(subquery)].relations;
    let mut links = fragment.condition.links(subquery);
    if let Some(unreached) = first_unreached(relations, &links) {
        let table = &fragment.tables[usize::from(unreached)];
        return Err(SqlError::UnlinkedSubquery(table.name.clone()));
    }
    links.retain(|ends| has_index(fragment, *ends));
    match first_unreached(relations, &links) {
        None => Ok(()),
        Some(_) => Err(SqlError::JoinWithoutIndex),
    }
}

/// The first of the relations of a subquery that no links lead to from around it.
fn first_unreached(relations: &[u16], links: &[[ColumnAt; 2]]) -> Option<u16> {
    let mut unreached = relations.to_vec();
    loop {
        let is_linked = |relation: &u16| {
            links.iter().any(|[left, right]| {
                (left.relation == *relation && !unreached.contains(&right.relation))
                    || (right.relation == *relation && !unreached.contains(&left.relation))
            })
        };
        let Some(linked) = unreached.iter().position(is_linked) else {
            return unreached.first().copied();
        };
        unreached.remove(linked);
    }
}

/// Has one of two equal columns an index? Rows of an event table are never looked up, so it must be the other's then.
fn has_index(fragment: &Fragment, [left, right]: [ColumnAt; 2]) -> bool {
    let is_event = |at: ColumnAt| fragment.tables[usize::from(at.relation)].is_event;
    let usable = |at: ColumnAt, other: ColumnAt| {
        (!is_event(at) || is_event(other)) && probe_index(fragment, at).is_some()
    };
    usable(left, right) || usable(right, left)
}

/// Do these joins lead from each of the relations to each other one, without a detour?
pub(crate) fn is_tree(joins: &[JoinOn], relations: &[u16]) -> bool {
    if joins.len() + 1 != relations.len() {
        return false;
    }
    let (mut reached, mut pending) = (vec![relations[0]], vec![relations[0]]);
    while let Some(relation) = pending.pop() {
        for join in joins {
            let (left, right) = (join.left.relation, join.right.relation);
            for (from, to) in [(left, right), (right, left)] {
                if from == relation && !reached.contains(&to) {
                    reached.push(to);
                    pending.push(to);
                }
            }
        }
    }
    reached.len() == relations.len()
}

/// An index of the table that finds the rows with a value in a column: its last column is that one, and constants are known
/// for those before it. Its position among the table's.
pub(crate) fn probe_index(fragment: &Fragment, at: ColumnAt) -> Option<usize> {
    let table = &fragment.tables[usize::from(at.relation)];
    let condition = &fragment.condition;
    let mut subqueries = condition.subqueries.iter();
    let conjuncts = match subqueries.find(|s| s.relations.contains(&at.relation)) {
        Some(subquery) => &subquery.conjuncts,
        None => &condition.conjuncts,
    };
    let is_fixed = |column: &ColId| {
        let at = ColumnAt {
            relation: at.relation,
            column: *column,
        };
        let mut equalities = condition.equalities_of(conjuncts);
        equalities.any(|equality| equality.column == at)
    };
    table.indexes.iter().position(|index| {
        let columns = index.algorithm.columns();
        columns.split_last().is_some_and(|(last, before)| {
            *last == at.column
                && finds_equals(table, &index.algorithm)
                && before.iter().all(is_fixed)
        })
    })
}

/// Does an index find all equal values? Hash indexes over several columns may tell the two zeros of floats apart.
pub(crate) fn finds_equals(table: &TableSchema, algorithm: &IndexAlgorithm) -> bool {
    let is_float = |column: &ColId| {
        let ty = table.column(*column).map(|column| &column.ty);
        ty.and_then(crate::scalar::Scalar::of)
            .is_some_and(crate::scalar::Scalar::is_float)
    };
    let columns = algorithm.columns();
    match algorithm {
        IndexAlgorithm::Hash(_) => columns.len() == 1 || !columns.iter().any(is_float),
        IndexAlgorithm::BTree(_) | IndexAlgorithm::Direct(_) => true,
    }
}
