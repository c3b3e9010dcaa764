//! What may be subscribed to, and what live joins are made of (08 §13, §11).

use std::sync::Arc;

use lightcone_schema::{IndexAlgorithm, TableSchema};
use lightcone_types::{ColId, Identity};

use crate::condition::{ColumnAt, Condition, Constant, Node, NodeId};
use crate::error::{SqlError, LIVE_RELATIONS_MAX};
use crate::lexer::Comparison;
use crate::predicate::{Predicate, PredicateCompiler};
use crate::query::{Fragment, JoinOn, Output, Query};
use crate::select_plan::layout;

/// Is this query admissible as a subscription (08 §13)? A query on one relation always is.
///
/// # Errors
/// Those of 08 §13, for the first fragment that is not.
pub fn admit_subscription(query: &Query) -> Result<(), SqlError> {
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
fn admit_window(query: &Query, returned: u16) -> Result<(), SqlError> {
    let is_refused = |why| Err(SqlError::Window(why));
    match &query.tables[..] {
        [table] if table.is_event => return is_refused("rows of an event table do not stay in it"),
        [_] => {}
        _ => return is_refused("it reads one table, and this one is a join"),
    }
    let mut fragments = query.fragments.iter();
    if fragments.any(|fragment| !fragment.condition.subqueries.is_empty()) {
        return is_refused("its table has a row-level security rule with a subquery");
    }
    let admit = |fragment| admit_fragment(fragment, returned);
    query.fragments.iter().try_for_each(admit)
}

fn admit_fragment(fragment: &Fragment, returned: u16) -> Result<(), SqlError> {
    let count = fragment.tables.len();
    if count == 1 {
        return Ok(());
    }
    // What is refused for its number of relations anyway is not worth a closer look.
    let is_joined = match count <= LIVE_RELATIONS_MAX {
        true => is_tree(&fragment.joins, count),
        false => fragment.joins.len() >= count - 1,
    };
    if !is_joined {
        return Err(SqlError::JoinWithoutIndex);
    }
    let is_event = |at: ColumnAt| fragment.tables[usize::from(at.relation)].is_event;
    for join in &fragment.joins {
        // Rows of an event table are never looked up, so the index must be the other's.
        let usable = |at: ColumnAt, other: ColumnAt| {
            (!is_event(at) || is_event(other)) && probe_index(fragment, at).is_some()
        };
        if !usable(join.left, join.right) && !usable(join.right, join.left) {
            return Err(SqlError::JoinWithoutIndex);
        }
    }
    let returned = fragment.own[usize::from(returned)];
    let mut events = (0..count).filter(|&relation| fragment.tables[relation].is_event);
    match (events.next(), events.next()) {
        (None, _) => {}
        (Some(event), None) if event == usize::from(returned) => {}
        _ => return Err(SqlError::EventTableLookedUp),
    }
    match count <= LIVE_RELATIONS_MAX {
        true => Ok(()),
        false => Err(SqlError::TooManyTables(count)),
    }
}

/// Do these joins lead from each of `count` relations to each other one, without a detour?
fn is_tree(joins: &[JoinOn], count: usize) -> bool {
    if joins.len() != count - 1 {
        return false;
    }
    let mut reached = vec![false; count];
    let mut pending = vec![0];
    while let Some(relation) = pending.pop() {
        reached[usize::from(relation)] = true;
        for join in joins {
            let (left, right) = (join.left.relation, join.right.relation);
            for (from, to) in [(left, right), (right, left)] {
                if from == relation && !reached[usize::from(to)] {
                    pending.push(to);
                }
            }
        }
    }
    !reached.contains(&false)
}

/// An index of the table that finds the rows with a value in a column: its last column is that one, and constants are known
/// for those before it. Its position among the table's.
pub(crate) fn probe_index(fragment: &Fragment, at: ColumnAt) -> Option<usize> {
    let table = &fragment.tables[usize::from(at.relation)];
    let is_fixed = |column: &ColId| {
        let at = ColumnAt {
            relation: at.relation,
            column: *column,
        };
        let mut equalities = fragment.condition.equalities();
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

/// One of the relations of a live join.
#[derive(Clone, Debug)]
pub struct JoinRelation {
    pub table: Arc<TableSchema>,
    /// Columns that must equal the caller or a constant: the plan's parameters, with their values for the caller in BSATN.
    pub parameters: Vec<(ColId, Box<[u8]>)>,
    /// What else must hold of a row of this relation alone.
    pub predicate: Option<Predicate>,
}

/// Columns of two relations that must be equal.
#[derive(Clone, Debug)]
pub struct JoinEdge {
    pub ends: [ColumnAt; 2],
    /// That they are.
    pub on: Predicate,
}

/// A condition on rows of several relations together, or on none.
#[derive(Clone, Debug)]
pub struct Residual {
    /// What it reads.
    pub columns: Vec<ColumnAt>,
    pub predicate: Predicate,
}

/// A join of several relations as live evaluation needs it. But for the values of its parameters, it is the same for many
/// queries: of all callers, unless it [`is_of_caller`](Self::is_of_caller).
#[derive(Clone, Debug)]
pub struct LiveJoin {
    pub relations: Vec<JoinRelation>,
    /// A tree over the relations.
    pub edges: Vec<JoinEdge>,
    /// Which relation's rows come out.
    pub returned: usize,
    /// In their place, the values of these columns come out, one behind the other.
    pub columns: Option<Vec<ColumnAt>>,
    pub residuals: Vec<Residual>,
    /// A predicate has the caller in it otherwise than as an equality, so it is good for him alone.
    pub is_of_caller: bool,
}

impl Query {
    /// How the matches of an admitted fragment on several relations are kept up to date, for this caller.
    pub fn live_join(&self, fragment: &Fragment, sender: &Identity) -> Option<LiveJoin> {
        let Output::Row(returned) = &self.output else {
            return None;
        };
        let is_ordered = !self.order.is_empty() || self.offset > 0 || self.limit.is_some();
        if self.explain || self.distinct || is_ordered {
            return None;
        }
        fragment.live_join(fragment.own[usize::from(*returned)], sender)
    }
}

impl Fragment {
    /// How the matches of an admitted fragment on several relations are kept up to date, of which these rows come out.
    pub(crate) fn live_join(&self, returned: u16, sender: &Identity) -> Option<LiveJoin> {
        let count = self.tables.len();
        if count > LIVE_RELATIONS_MAX || !is_tree(&self.joins, count) {
            return None;
        }
        let condition = self.condition.bind(sender);
        let conjuncts = Conjuncts::of(&condition, self);
        let layouts: Vec<_> = self.tables.iter().map(|table| layout(table)).collect();
        let compiler = PredicateCompiler::new(&condition, layouts.iter().collect());
        let relation = |(number, table): (usize, &Arc<TableSchema>)| JoinRelation {
            table: table.clone(),
            parameters: conjuncts.parameters[number].clone(),
            predicate: compiler.compile(&conjuncts.own[number]),
        };
        let edge = |(join, on): (&JoinOn, &Vec<NodeId>)| {
            Some(JoinEdge {
                ends: [join.left, join.right],
                on: compiler.compile(on)?,
            })
        };
        let residual = |id: &NodeId| {
            let residual = |predicate| Residual {
                columns: condition.columns_of(*id),
                predicate,
            };
            compiler.compile(&[*id]).map(residual)
        };
        let edges = self.joins.iter().zip(&conjuncts.on).map(edge);
        let is_of_caller = |id: &NodeId| self.condition.conjunct_reads_sender(*id);
        Some(LiveJoin {
            relations: self.tables.iter().enumerate().map(relation).collect(),
            edges: edges.collect::<Option<_>>()?,
            returned: usize::from(returned),
            columns: None,
            residuals: conjuncts.across.iter().filter_map(residual).collect(),
            is_of_caller: conjuncts.own.iter().flatten().any(is_of_caller)
                || conjuncts.across.iter().any(is_of_caller),
        })
    }
}

/// The conjuncts of a join, by what they are about.
struct Conjuncts {
    /// By relation.
    parameters: Vec<Vec<(ColId, Box<[u8]>)>>,
    own: Vec<Vec<NodeId>>,
    /// By join.
    on: Vec<Vec<NodeId>>,
    across: Vec<NodeId>,
}

impl Conjuncts {
    /// Nothing in the condition, which is the fragment's, is `:sender` any more.
    fn of(condition: &Condition, fragment: &Fragment) -> Conjuncts {
        let count = fragment.tables.len();
        let mut conjuncts = Conjuncts {
            parameters: vec![Vec::new(); count],
            own: vec![Vec::new(); count],
            on: vec![Vec::new(); fragment.joins.len()],
            across: Vec::new(),
        };
        let relations = condition.relations_of_conjuncts();
        for (&id, relations) in condition.conjuncts.iter().zip(relations) {
            match &condition.nodes[id as usize] {
                // Equal values of a column have equal bytes, but for floats.
                Node::ColumnConstant {
                    column,
                    scalar,
                    comparison: Comparison::Equal,
                    constant: Constant::Value(value),
                } if !scalar.is_float() => {
                    let of_relation = &mut conjuncts.parameters[usize::from(column.relation)];
                    of_relation.push((column.column, value.clone()));
                    continue;
                }
                Node::Columns {
                    left,
                    right,
                    comparison: Comparison::Equal,
                    ..
                } => {
                    let is_it = |join: &JoinOn| (join.left, join.right) == (*left, *right);
                    if let Some(join) = fragment.joins.iter().position(is_it) {
                        conjuncts.on[join].push(id);
                        continue;
                    }
                }
                _ => {}
            }
            match relations[..] {
                [relation] => conjuncts.own[usize::from(relation)].push(id),
                _ => conjuncts.across.push(id),
            }
        }
        conjuncts
    }
}
