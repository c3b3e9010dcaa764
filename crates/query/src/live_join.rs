//! What live joins are made of: the parts of a fragment by what they are about.

use std::sync::Arc;

use lightcone_schema::TableSchema;
use lightcone_table::RowLayout;
use lightcone_types::{ColId, Identity};

use crate::admission::is_tree;
use crate::condition::{ColumnAt, Condition, Constant, Node, NodeId, SubqueryId};
use crate::error::LIVE_RELATIONS_MAX;
use crate::predicate::{Predicate, PredicateCompiler};
use crate::query::{Fragment, JoinOn, Output, Query};

/// One of the relations of a live join.
#[derive(Clone, Debug)]
pub struct JoinRelation {
    pub table: Arc<TableSchema>,
    /// The subquery that it is of, if it is of one.
    pub subquery: Option<usize>,
    /// Columns that must equal the caller or a constant: the plan's parameters, with their values for the caller in BSATN.
    pub parameters: Vec<(ColId, Box<[u8]>)>,
    /// What else must hold of a row of this relation alone.
    pub predicate: Option<Predicate>,
}

/// Columns of two relations that must be equal.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct JoinEdge {
    pub ends: [ColumnAt; 2],
    /// That they are.
    pub on: Predicate,
}

/// A condition on rows of several relations together, or on none.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Residual {
    /// What it reads.
    pub columns: Vec<ColumnAt>,
    pub predicate: Predicate,
}

/// A condition on subqueries, and maybe on rows beside them.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Guard {
    /// A subquery without a match is to it one whose first relation has no row.
    pub predicate: Predicate,
    /// What it reads outside of the subqueries.
    pub columns: Vec<ColumnAt>,
    pub subqueries: Vec<usize>,
    pub says: GuardSays,
}

/// What a condition says of its subqueries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum GuardSays {
    /// That its only one has a match, and nothing else.
    Match,
    /// That its only one has none, and nothing else.
    NoMatch,
    Other,
}

/// A subquery: of what is around it only matters whether it has a match.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct LiveSubquery {
    pub relations: Vec<u16>,
    /// The subquery that it stands in, if it stands in one.
    pub parent: Option<usize>,
    /// What must hold of a match, the equalities of its [`LiveJoin::links`] included.
    pub residuals: Vec<Residual>,
    pub guards: Vec<Guard>,
}

/// A join of several relations as live evaluation needs it. But for the values of its parameters, it is the same for many
/// queries: of all callers, unless it [`is_of_caller`](Self::is_of_caller).
#[derive(Clone, Debug)]
pub struct LiveJoin {
    /// Those of subqueries included.
    pub relations: Vec<JoinRelation>,
    /// A tree over the relations that are not of a subquery.
    pub edges: Vec<JoinEdge>,
    /// Columns of subqueries that must be equal to others, of the same subquery or around it.
    pub links: Vec<[ColumnAt; 2]>,
    /// Which relation's rows come out.
    pub returned: usize,
    /// In their place, the values of these columns come out, one behind the other.
    pub columns: Option<Vec<ColumnAt>>,
    pub residuals: Vec<Residual>,
    pub guards: Vec<Guard>,
    pub subqueries: Vec<LiveSubquery>,
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
        let fragment = self;
        let own = fragment.relations_of_no_subquery();
        let joins = fragment.joins_of_no_subquery();
        if fragment.tables.len() > LIVE_RELATIONS_MAX || !is_tree(&joins, &own) {
            return None;
        }
        let condition = fragment.condition.bind(sender);
        let tables = fragment.tables.iter();
        let layouts: Vec<_> = tables.map(|table| RowLayout::of(&table.columns)).collect();
        let parts = Parts {
            unbound: &fragment.condition,
            condition: &condition,
            compiler: PredicateCompiler::new(&condition, layouts.iter().collect()),
        };
        let around = Conjuncts::of(&condition, &condition.conjuncts, &own, &joins);
        let subqueries = condition.subqueries.iter();
        let within: Vec<_> = subqueries
            .map(|s| Conjuncts::of(&condition, &s.conjuncts, &s.relations, &[]))
            .collect();
        let edge = |(join, on): (&JoinOn, &Vec<NodeId>)| {
            Some(JoinEdge {
                ends: [join.left, join.right],
                on: parts.compiler.compile(on)?,
            })
        };
        let edges = joins.iter().zip(&around.on).map(edge);
        let subqueries = condition.subqueries.iter().zip(&within);
        Some(LiveJoin {
            relations: relations(fragment, &parts, &around, &within),
            edges: edges.collect::<Option<_>>()?,
            links: within.iter().flat_map(|of| of.links.clone()).collect(),
            returned: usize::from(returned),
            columns: None,
            residuals: parts.residuals(&around.across),
            guards: parts.guards(&around.guards),
            subqueries: subqueries
                .map(|(subquery, of)| LiveSubquery {
                    relations: subquery.relations.clone(),
                    parent: subquery.parent.map(usize::from),
                    residuals: parts.residuals(&of.across),
                    guards: parts.guards(&of.guards),
                })
                .collect(),
            is_of_caller: parts.are_of_caller(&around)
                || within.iter().any(|w| parts.are_of_caller(w)),
        })
    }
}

fn relations(
    fragment: &Fragment,
    parts: &Parts<'_>,
    around: &Conjuncts,
    within: &[Conjuncts],
) -> Vec<JoinRelation> {
    let by_relation = fragment
        .condition
        .subqueries_by_relation(fragment.tables.len());
    let relation = |(number, table): (usize, &Arc<TableSchema>)| {
        let subquery = by_relation[number].map(usize::from);
        let conjuncts = subquery.map_or(around, |subquery| &within[subquery]);
        let is_own = |(relation, _): &&(u16, NodeId)| usize::from(*relation) == number;
        let own: Vec<_> = conjuncts
            .own
            .iter()
            .filter(is_own)
            .map(|own| own.1)
            .collect();
        let is_its = |(at, _): &&(ColumnAt, Box<[u8]>)| usize::from(at.relation) == number;
        let parameters = conjuncts.parameters.iter().filter(is_its);
        JoinRelation {
            table: table.clone(),
            subquery,
            parameters: parameters
                .map(|(at, value)| (at.column, value.clone()))
                .collect(),
            predicate: parts.compiler.compile(&own),
        }
    };
    fragment.tables.iter().enumerate().map(relation).collect()
}

impl Fragment {
    /// The joins between relations that are not of a subquery.
    pub(crate) fn joins_of_no_subquery(&self) -> Vec<JoinOn> {
        let by_relation = self.condition.subqueries_by_relation(self.tables.len());
        let is_around = |at: ColumnAt| by_relation[usize::from(at.relation)].is_none();
        let is_own = |join: &&JoinOn| is_around(join.left) && is_around(join.right);
        self.joins.iter().filter(is_own).copied().collect()
    }
}

impl Condition {
    /// By relation: the subquery that it is of.
    pub(crate) fn subqueries_by_relation(&self, count: usize) -> Vec<Option<SubqueryId>> {
        let mut by_relation = vec![None; count];
        for (number, subquery) in self.subqueries.iter().enumerate() {
            for relation in &subquery.relations {
                by_relation[usize::from(*relation)] = Some(number as SubqueryId);
            }
        }
        by_relation
    }

    /// The conjuncts of a subquery that compare one of its columns with one of another relation, which is its own or around it.
    pub(crate) fn links(&self, subquery: SubqueryId) -> Vec<[ColumnAt; 2]> {
        let subquery = &self.subqueries[usize::from(subquery)];
        let conjuncts = subquery.conjuncts.iter();
        let link = |id: &NodeId| self.link(*id, &subquery.relations);
        conjuncts.filter_map(link).collect()
    }

    fn link(&self, conjunct: NodeId, relations: &[u16]) -> Option<[ColumnAt; 2]> {
        let [left, right] = self.nodes[conjunct as usize].equal_columns()?;
        let is_own = relations.contains(&left.relation) || relations.contains(&right.relation);
        (is_own && left.relation != right.relation).then_some([left, right])
    }
}

/// Compiles the parts of a condition.
struct Parts<'c> {
    /// As the text says it.
    unbound: &'c Condition,
    /// The same for one caller: nothing in it is `:sender`.
    condition: &'c Condition,
    compiler: PredicateCompiler<'c>,
}

impl Parts<'_> {
    /// Conditions that always hold are left out.
    fn residuals(&self, conjuncts: &[NodeId]) -> Vec<Residual> {
        let residual = |id: &NodeId| {
            Some(Residual {
                columns: self.condition.columns_of(*id),
                predicate: self.compiler.compile(&[*id])?,
            })
        };
        conjuncts.iter().filter_map(residual).collect()
    }

    fn guards(&self, conjuncts: &[NodeId]) -> Vec<Guard> {
        let guard = |id: &NodeId| {
            let named = self.condition.subqueries_of(*id);
            Some(Guard {
                predicate: self.compiler.compile(&[*id])?,
                columns: self.condition.columns_of(*id),
                subqueries: named.into_iter().map(usize::from).collect(),
                says: self.says(*id),
            })
        };
        conjuncts.iter().filter_map(guard).collect()
    }

    fn says(&self, conjunct: NodeId) -> GuardSays {
        let node = |id: NodeId| &self.condition.nodes[id as usize];
        let is_exists = |id: NodeId| matches!(node(id), Node::Exists { .. });
        match node(conjunct) {
            Node::Exists { .. } => GuardSays::Match,
            Node::Not(inner) if is_exists(*inner) => GuardSays::NoMatch,
            _ => GuardSays::Other,
        }
    }

    fn are_of_caller(&self, conjuncts: &Conjuncts) -> bool {
        let own = conjuncts.own.iter().map(|(_, id)| id);
        let mut all = own.chain(&conjuncts.across).chain(&conjuncts.guards);
        all.any(|id| self.unbound.conjunct_reads_sender(*id))
    }
}

/// The conjuncts of a query or subquery, by what they are about.
struct Conjuncts {
    parameters: Vec<(ColumnAt, Box<[u8]>)>,
    /// On one relation.
    own: Vec<(u16, NodeId)>,
    /// By join.
    on: Vec<Vec<NodeId>>,
    links: Vec<[ColumnAt; 2]>,
    across: Vec<NodeId>,
    guards: Vec<NodeId>,
}

impl Conjuncts {
    /// Nothing in the condition is `:sender` any more. `relations` are those of the query or subquery.
    fn of(
        condition: &Condition,
        conjuncts: &[NodeId],
        relations: &[u16],
        joins: &[JoinOn],
    ) -> Conjuncts {
        let mut sorted = Conjuncts {
            parameters: Vec::new(),
            own: Vec::new(),
            on: vec![Vec::new(); joins.len()],
            links: Vec::new(),
            across: Vec::new(),
            guards: Vec::new(),
        };
        for &id in conjuncts {
            sorted.add(condition, id, relations, joins);
        }
        sorted
    }

    /// What is said twice is one parameter, and of two that exclude each other, a third says nothing more.
    fn add_parameter(&mut self, column: ColumnAt, value: &[u8]) {
        let known = self.parameters.iter().filter(|(at, _)| *at == column);
        let (mut count, mut is_known) = (0, false);
        for (_, other) in known {
            count += 1;
            is_known |= **other == *value;
        }
        if count < 2 && !is_known {
            self.parameters.push((column, value.into()));
        }
    }

    fn add(&mut self, condition: &Condition, id: NodeId, relations: &[u16], joins: &[JoinOn]) {
        if !condition.subqueries_of(id).is_empty() {
            return self.guards.push(id);
        }
        let node = &condition.nodes[id as usize];
        if let Some((column, Constant::Value(value))) = node.equal_value() {
            if relations.contains(&column.relation) {
                return self.add_parameter(column, value);
            }
        }
        if let Some([left, right]) = node.equal_columns() {
            let is_it = |join: &JoinOn| (join.left, join.right) == (left, right);
            if let Some(join) = joins.iter().position(is_it) {
                return self.on[join].push(id);
            }
        }
        let link = condition.link(id, relations);
        self.links
            .extend(link.filter(|link| !self.links.contains(link)));
        match condition.relations_of(id)[..] {
            [relation] if relations.contains(&relation) => self.own.push((relation, id)),
            _ => self.across.push(id),
        }
    }
}
