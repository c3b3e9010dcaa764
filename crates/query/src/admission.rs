//! What may be subscribed to, and how two relations are joined in a live query (08 §13, §11).

use std::sync::Arc;

use lightcone_schema::{IndexAlgorithm, TableSchema};
use lightcone_types::{ColId, Identity};

use crate::condition::{ColumnAt, Condition, Constant, Node, NodeId};
use crate::error::SqlError;
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
        return admit_window(query);
    }
    let admit = |fragment| admit_fragment(fragment, returned);
    query.fragments.iter().try_for_each(admit)
}

/// A window is kept up to date if one table alone decides what is in it.
fn admit_window(query: &Query) -> Result<(), SqlError> {
    let is_refused = |why| Err(SqlError::Window(why));
    match &query.tables[..] {
        [table] if table.is_event => return is_refused("rows of an event table do not stay in it"),
        [_] => {}
        _ => return is_refused("it reads one table, and this one is a join"),
    }
    match &query.fragments[..] {
        [fragment] if fragment.tables.len() == 1 => Ok(()),
        _ => is_refused("its table has a row-level security rule with a join, or several rules"),
    }
}

fn admit_fragment(fragment: &Fragment, returned: u16) -> Result<(), SqlError> {
    let count = fragment.tables.len();
    if count == 1 {
        return Ok(());
    }
    if fragment.joins.len() < count - 1 {
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
    match count {
        2 => Ok(()),
        _ => Err(SqlError::TooManyTables(count)),
    }
}

/// An index of the table that finds the rows with a value in a column: its last column is that one, and constants are known
/// for those before it.
pub(crate) fn probe_index(fragment: &Fragment, at: ColumnAt) -> Option<IndexProbe> {
    let table = &fragment.tables[usize::from(at.relation)];
    let fixed = |column: &ColId| {
        let at = ColumnAt {
            relation: at.relation,
            column: *column,
        };
        let mut equalities = fragment.condition.equalities();
        equalities.find(|equality| equality.column == at)
    };
    let probe = |(index, schema): (usize, &lightcone_schema::IndexSchema)| {
        let (last, before) = schema.algorithm.columns().split_last()?;
        if *last != at.column || !finds_equals(table, &schema.algorithm) {
            return None;
        }
        let prefix: Option<Vec<_>> = before.iter().map(fixed).collect();
        let prefix = prefix?.into_iter();
        Some(IndexProbe {
            index,
            prefix: prefix.map(|equality| equality.constant.clone()).collect(),
        })
    };
    table.indexes.iter().enumerate().find_map(probe)
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

/// How rows of a side are found for a value of its join column.
#[derive(Clone, Debug)]
pub struct IndexProbe {
    /// Position among the table's indexes.
    pub index: usize,
    /// What stands before the value in the index's key.
    prefix: Vec<Constant>,
}

impl IndexProbe {
    /// Appends the part of the key that stands before the join column's value.
    pub fn key_prefix(&self, sender: &Identity, out: &mut Vec<u8>) {
        for constant in &self.prefix {
            out.extend_from_slice(&constant.bound(sender));
        }
    }
}

/// One of the two relations of a live join.
#[derive(Clone, Debug)]
pub struct JoinSide {
    pub table: Arc<TableSchema>,
    pub join_column: ColId,
    /// None if rows for a value of the join column can only be found by looking at all.
    pub probe: Option<IndexProbe>,
    /// Columns that must equal the caller or a constant: the plan's parameters, with their values for the caller in BSATN.
    pub parameters: Vec<(ColId, Box<[u8]>)>,
    /// What else must hold of a row of this relation alone.
    pub predicate: Option<Predicate>,
}

/// A join of two relations as live evaluation needs it. But for the values of its parameters, it is the same for many queries:
/// of all callers, unless it [`is_of_caller`](Self::is_of_caller).
#[derive(Clone, Debug)]
pub struct LiveJoin {
    pub sides: [JoinSide; 2],
    /// Which side's rows come out.
    pub returned: usize,
    /// The equality of the join columns of a pair.
    pub on: Predicate,
    /// What must hold of a pair beside the equality of the join columns: relation 0 is the first side, 1 the second.
    pub residual: Option<Predicate>,
    /// A predicate has the caller in it otherwise than as an equality, so it is good for him alone.
    pub is_of_caller: bool,
}

impl Query {
    /// How the matches of an admitted fragment on two relations are kept up to date, for this caller.
    pub fn live_join(&self, fragment: &Fragment, sender: &Identity) -> Option<LiveJoin> {
        let (Output::Row(returned), 2) = (&self.output, fragment.tables.len()) else {
            return None;
        };
        let JoinOn { left, right } = *fragment.joins.first()?;
        let columns = match left.relation {
            0 => [left.column, right.column],
            _ => [right.column, left.column],
        };
        let conjuncts = Conjuncts::of(&fragment.condition, [left, right], sender);
        let bound = fragment.condition.bind(sender);
        let layouts = [layout(&fragment.tables[0]), layout(&fragment.tables[1])];
        let compiler = PredicateCompiler::new(&bound, layouts.iter().collect());
        let side = |relation: usize| {
            let at = ColumnAt {
                relation: relation as u16,
                column: columns[relation],
            };
            JoinSide {
                table: fragment.tables[relation].clone(),
                join_column: columns[relation],
                probe: probe_index(fragment, at),
                parameters: conjuncts.parameters[relation].clone(),
                predicate: compiler.compile(&conjuncts.own[relation]),
            }
        };
        Some(LiveJoin {
            sides: [side(0), side(1)],
            returned: usize::from(fragment.own[usize::from(*returned)]),
            on: compiler.compile(&conjuncts.on)?,
            residual: compiler.compile(&conjuncts.pair),
            is_of_caller: conjuncts.is_of_caller,
        })
    }
}

/// The conjuncts of a join of two relations, by what they are about.
#[derive(Default)]
struct Conjuncts {
    parameters: [Vec<(ColId, Box<[u8]>)>; 2],
    own: [Vec<NodeId>; 2],
    on: Vec<NodeId>,
    pair: Vec<NodeId>,
    is_of_caller: bool,
}

impl Conjuncts {
    fn of(condition: &Condition, on: [ColumnAt; 2], sender: &Identity) -> Conjuncts {
        let mut conjuncts = Conjuncts::default();
        let relations = condition.relations_of_conjuncts();
        for (&id, relations) in condition.conjuncts.iter().zip(relations) {
            match &condition.nodes[id as usize] {
                // Equal values of a column have equal bytes, but for floats.
                Node::ColumnConstant {
                    column,
                    scalar,
                    comparison: Comparison::Equal,
                    constant,
                } if !scalar.is_float() => {
                    let of_side = &mut conjuncts.parameters[usize::from(column.relation)];
                    of_side.push((column.column, constant.bound(sender)));
                    continue;
                }
                Node::Columns {
                    left,
                    right,
                    comparison: Comparison::Equal,
                    ..
                } if [*left, *right] == on => {
                    conjuncts.on.push(id);
                    continue;
                }
                _ => {}
            }
            conjuncts.is_of_caller |= condition.conjunct_reads_sender(id);
            match relations[..] {
                [relation] => conjuncts.own[usize::from(relation)].push(id),
                _ => conjuncts.pair.push(id),
            }
        }
        conjuncts
    }
}
