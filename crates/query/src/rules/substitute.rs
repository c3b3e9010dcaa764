//! A query with fragments in the place of its relations. What a fragment returns is what the relation was.
//!
//! Of a subquery only matters whether it has a match. Where rules make several of one, it has a match if one of them has.

use std::collections::HashMap;
use std::sync::Arc;

use lightcone_schema::TableSchema;

use crate::condition::{Condition, Node, NodeId, Subquery, SubqueryId};
use crate::error::{Result, SqlError, RELATIONS_MAX};
use crate::query::{Fragment, JoinOn, OuterJoin};

/// A query becomes at most so many fragments: the numbers of rules of its relations multiply.
pub const FRAGMENTS_MAX: usize = 256;
/// Conditions of all fragments of a query together have at most so many nodes, as each repeats the query's own.
pub(super) const NODES_MAX: usize = 1 << 18;
/// By relation: the fragments that may take its place, of which each gives a query of its own.
type Choices = [Option<Arc<[Fragment]>>];

/// How many queries the choices for some relations make.
pub(super) fn combinations(choices: &Choices, relations: &[u16]) -> Result<usize> {
    let of_relation = |relation: &u16| match &choices[usize::from(*relation)] {
        Some(fragments) => fragments.len(),
        None => 1,
    };
    let counts = relations.iter().map(of_relation);
    match counts.fold(1, usize::saturating_mul) {
        count if count > FRAGMENTS_MAX => Err(too_many()),
        count => Ok(count),
    }
}

/// The query with one of the combinations of its choices. `own` are its relations outside of subqueries.
pub(super) fn substitute(
    query: &Fragment,
    choices: &Choices,
    own: &[u16],
    number: usize,
) -> Result<Fragment> {
    let mut made = Substitution {
        query,
        choices,
        tables: Vec::new(),
        condition: Condition::default(),
        joins: Vec::new(),
        outer: Vec::new(),
        rules: query.rules.clone(),
        guarded: Vec::new(),
        moved: vec![0; query.tables.len()],
        copies: 0,
    };
    let (_, conjuncts) = made.block(own, &query.condition.conjuncts, number)?;
    made.condition.conjuncts = conjuncts;
    let to_moved = |relation: u16| made.moved[usize::from(relation)];
    let joins = query.joins.iter().map(|on| on.moved(to_moved));
    made.joins.extend(joins);
    Ok(Fragment {
        own: query.own.iter().map(|&own| to_moved(own)).collect(),
        tables: made.tables,
        condition: Arc::new(made.condition),
        joins: made.joins,
        outer: made.outer,
        number: None,
        rules: made.rules,
        guarded: made.guarded,
    })
}

struct Substitution<'q> {
    query: &'q Fragment,
    choices: &'q Choices,
    tables: Vec<Arc<TableSchema>>,
    condition: Condition,
    joins: Vec<JoinOn>,
    outer: Vec<OuterJoin>,
    rules: Vec<Arc<str>>,
    guarded: Vec<u16>,
    /// Where the relations of the query are now.
    moved: Vec<u16>,
    /// Subqueries so far.
    copies: usize,
}

impl Substitution<'_> {
    /// A query or subquery: its relations, and what must hold of them.
    fn block(
        &mut self,
        relations: &[u16],
        conjuncts: &[NodeId],
        mut number: usize,
    ) -> Result<(Vec<u16>, Vec<NodeId>)> {
        let (mut placed, mut holds) = (Vec::new(), Vec::new());
        for &relation in relations {
            self.relation(relation, &mut number, (&mut placed, &mut holds))?;
        }
        for outer in &self.query.outer {
            if relations.contains(&outer.own.relation) {
                let moved = outer.moved(|relation| self.moved[usize::from(relation)]);
                self.outer.push(moved);
            }
        }
        for &conjunct in conjuncts {
            let copied = self.copy(conjunct)?;
            holds.push(copied);
        }
        Ok((placed, holds))
    }

    fn relation(
        &mut self,
        relation: u16,
        number: &mut usize,
        (placed, holds): (&mut Vec<u16>, &mut Vec<NodeId>),
    ) -> Result<()> {
        let base = self.tables.len() as u16;
        let place = usize::from(relation);
        match &self.choices[place] {
            None => {
                self.moved[place] = base;
                self.tables.push(self.query.tables[place].clone());
                placed.push(base);
            }
            Some(fragments) => {
                let rule = &fragments[*number % fragments.len()];
                *number /= fragments.len();
                self.moved[place] = base + rule.own[0];
                self.tables.extend(rule.tables.iter().cloned());
                self.guarded.extend(base..self.tables.len() as u16);
                // Those of the rule's own subqueries stay in these.
                let own = rule.relations_of_no_subquery().into_iter();
                placed.extend(own.map(|relation| base + relation));
                holds.extend(self.condition.take_in(&rule.condition, &|at| base + at));
                self.rules.extend(rule.rules.iter().cloned());
                self.joins
                    .extend(rule.joins.iter().map(|on| on.moved(|at| base + at)));
            }
        }
        match self.tables.len() > RELATIONS_MAX {
            true => Err(SqlError::TooManyRelations),
            false => Ok(()),
        }
    }

    /// Copies a tree of the query's condition.
    fn copy(&mut self, root: NodeId) -> Result<NodeId> {
        let condition = &self.query.condition;
        let mut copied: HashMap<NodeId, NodeId> = HashMap::new();
        for id in condition.tree(root) {
            let new = match &condition.nodes[id as usize] {
                Node::Exists { subquery, .. } => self.subquery(*subquery)?,
                node => {
                    let moved = &self.moved;
                    let node = node.with(
                        |operand| copied[&operand],
                        |relation| moved[usize::from(relation)],
                    );
                    self.condition.push(node)
                }
            };
            copied.insert(id, new);
        }
        Ok(copied[&root])
    }

    /// Copies a subquery, once for each combination of its choices. Gives the node that one of them has a match.
    fn subquery(&mut self, subquery: SubqueryId) -> Result<NodeId> {
        let condition = &self.query.condition;
        let Subquery {
            relations,
            conjuncts,
            ..
        } = &condition.subqueries[usize::from(subquery)];
        let mut any = None;
        for number in 0..combinations(self.choices, relations)? {
            self.copies += 1;
            // Each copy may be as long as the text.
            if self.copies > FRAGMENTS_MAX || self.condition.nodes.len() > NODES_MAX {
                return Err(too_many());
            }
            let nested = self.condition.subqueries.len();
            let (relations, conjuncts) = self.block(relations, conjuncts, number)?;
            let exists = self.condition.close_subquery(nested, relations, conjuncts);
            let exists = self.condition.push(exists);
            any = Some(match any {
                None => exists,
                Some(any) => self.condition.push(Node::Or(any, exists)),
            });
        }
        Ok(any.expect("one combination at least"))
    }
}

pub(super) fn too_many() -> SqlError {
    SqlError::RulesMultiply {
        fragments_max: FRAGMENTS_MAX,
    }
}

impl OuterJoin {
    fn moved(&self, relation: impl Fn(u16) -> u16) -> OuterJoin {
        let mut outer = *self;
        outer.own.relation = relation(outer.own.relation);
        outer.other.relation = relation(outer.other.relation);
        outer
    }
}

impl JoinOn {
    fn moved(&self, relation: impl Fn(u16) -> u16) -> JoinOn {
        let mut on = *self;
        on.left.relation = relation(on.left.relation);
        on.right.relation = relation(on.right.relation);
        on
    }
}
