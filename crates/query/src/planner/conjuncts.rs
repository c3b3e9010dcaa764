//! What must hold of the relations of a query and of its subqueries, by where it can be looked at.

use super::strategy::GroupKind;
use crate::admission::finds_equals;
use crate::condition::{Condition, Node, NodeId, Subquery, SubqueryId};
use crate::query::Fragment;

/// The conjuncts by the relations that they read. Blocks are the query itself, which is number 0, and its subqueries behind it.
pub(super) struct Conjuncts {
    /// Conjuncts of the query that read nothing.
    pub of_none: Vec<NodeId>,
    /// By relation: what only reads it, and stands in the same block.
    pub own: Vec<Vec<NodeId>>,
    /// All others, of any block.
    pub open: Vec<Open>,
    /// By relation, and by subquery: positions among the open ones.
    by_relation: Vec<Vec<usize>>,
    by_subquery: Vec<Vec<usize>>,
    /// By block: what can be looked at from its next step on.
    ready: Vec<Vec<NodeId>>,
    /// By relation, and by subquery: its block.
    pub block_of: Vec<usize>,
    pub block_of_subquery: Vec<usize>,
    subqueries: Vec<Placed>,
    is_bound: Vec<bool>,
}

/// A conjunct that waits for relations to be bound, and for subqueries to be settled.
pub(super) struct Open {
    pub id: NodeId,
    pub block: usize,
    waits_for: usize,
}

/// A subquery among the steps.
struct Placed {
    kind: GroupKind,
    /// The block that it stands in.
    parent: usize,
    /// Relations around it that it reads.
    reads: Vec<u16>,
    is_placed: bool,
}

impl Conjuncts {
    /// `leading` is a subquery that the query begins with: what it says of relations around it is said of these then.
    pub fn of(
        condition: &Condition,
        fragment: &Fragment,
        leading: Option<SubqueryId>,
    ) -> Conjuncts {
        let relations = fragment.tables.len();
        let count = condition.subqueries.len();
        let block = blocks(condition, fragment);
        let mut block_of = vec![0; relations];
        for (number, subquery) in condition.subqueries.iter().enumerate() {
            for &relation in &subquery.relations {
                block_of[usize::from(relation)] = block[number];
            }
        }
        let parent = |number: usize| match condition.subqueries[number].parent {
            Some(parent) => block[usize::from(parent)],
            None => 0,
        };
        let placed = |number: usize| Placed {
            kind: GroupKind::Whether,
            parent: parent(number),
            reads: Vec::new(),
            // One that is a join by now has no place of its own, and one that leads is there first.
            is_placed: block[number] != number + 1
                || leading.is_some_and(|leading| usize::from(leading) == number),
        };
        let mut conjuncts = Conjuncts {
            of_none: Vec::new(),
            own: vec![Vec::new(); relations],
            open: Vec::new(),
            by_relation: vec![Vec::new(); relations],
            by_subquery: vec![Vec::new(); count],
            ready: vec![Vec::new(); count + 1],
            block_of,
            block_of_subquery: block.clone(),
            subqueries: (0..count).map(placed).collect(),
            is_bound: vec![false; relations],
        };
        conjuncts.add_all(condition, &condition.conjuncts, 0);
        let leads = |block: usize| leading.is_some_and(|at| usize::from(at) + 1 == block);
        for (number, subquery) in condition.subqueries.iter().enumerate() {
            let block = conjuncts.block_of_subquery[number];
            for &id in &subquery.conjuncts {
                let is_said_around = leads(block) && conjuncts.reads_query(condition, id);
                conjuncts.add(condition, id, if is_said_around { 0 } else { block });
            }
        }
        for outer in &fragment.outer {
            let block = conjuncts.block_of[usize::from(outer.own.relation)];
            conjuncts.reads(block, outer.other.relation);
        }
        conjuncts
    }

    fn add_all(&mut self, condition: &Condition, ids: &[NodeId], block: usize) {
        for &id in ids {
            self.add(condition, id, block);
        }
    }

    fn add(&mut self, condition: &Condition, id: NodeId, block: usize) {
        if let Some((subquery, kind)) = settles(condition, id) {
            // It holds whenever its group lets a row through.
            let subquery = &mut self.subqueries[usize::from(subquery)];
            subquery.kind = kind;
            return;
        }
        let relations = condition.relations_of(id);
        let subqueries = condition.subqueries_of(id);
        for &relation in &relations {
            self.reads(block, relation);
        }
        match (&relations[..], &subqueries[..]) {
            ([], []) if block == 0 => return self.of_none.push(id),
            ([], []) => return self.ready[block].push(id),
            ([relation], []) if self.block_of[usize::from(*relation)] == block => {
                return self.own[usize::from(*relation)].push(id);
            }
            _ => {}
        }
        let place = self.open.len();
        for &relation in &relations {
            self.by_relation[usize::from(relation)].push(place);
        }
        for &subquery in &subqueries {
            self.by_subquery[usize::from(subquery)].push(place);
        }
        self.open.push(Open {
            id,
            block,
            waits_for: relations.len() + subqueries.len(),
        });
    }

    /// Does it read relations of the query itself?
    pub fn reads_query(&self, condition: &Condition, id: NodeId) -> bool {
        let relations = condition.relations_of(id);
        let mut blocks = relations.iter().map(|at| self.block_of[usize::from(*at)]);
        blocks.any(|block| block == 0)
    }

    /// Does a subquery that stands in this block read relations of the query itself?
    pub fn has_subquery_on_query(&self, block: usize) -> bool {
        let mut within = self.subqueries.iter().zip(&self.block_of_subquery);
        within.any(|(subquery, own)| {
            let mut reads = subquery.reads.iter();
            *own != block
                && subquery.parent == block
                && reads.any(|at| self.block_of[usize::from(*at)] == 0)
        })
    }

    /// Is this a condition of the query itself, that the subquery has a match, and no join by now?
    pub fn is_semi_join(&self, subquery: SubqueryId) -> bool {
        let number = usize::from(subquery);
        let placed = &self.subqueries[number];
        placed.kind == GroupKind::Exists
            && placed.parent == 0
            && self.block_of_subquery[number] == number + 1
    }

    /// A block reads a relation: so do those around it, up to the one that has it.
    fn reads(&mut self, mut block: usize, relation: u16) {
        while block != self.block_of[usize::from(relation)] && block != 0 {
            let subquery = &mut self.subqueries[block - 1];
            if !subquery.reads.contains(&relation) {
                subquery.reads.push(relation);
            }
            block = subquery.parent;
        }
    }

    /// A subquery of a block of which all is bound that it reads. It is placed next.
    pub fn next_subquery(&mut self, block: usize) -> Option<SubqueryId> {
        let is_bound = &self.is_bound;
        let is_next = |subquery: &Placed| {
            let mut reads = subquery.reads.iter();
            !subquery.is_placed
                && subquery.parent == block
                && reads.all(|&relation| is_bound[usize::from(relation)])
        };
        let next = self.subqueries.iter().position(is_next)?;
        self.subqueries[next].is_placed = true;
        Some(next as SubqueryId)
    }

    pub fn kind(&self, subquery: SubqueryId) -> GroupKind {
        self.subqueries[usize::from(subquery)].kind
    }

    /// What can be looked at in a block, now that a relation of it is bound.
    pub fn complete_with(&mut self, relation: usize, block: usize) -> Vec<NodeId> {
        self.is_bound[relation] = true;
        let waiting = std::mem::take(&mut self.by_relation[relation]);
        self.arrived(&waiting);
        std::mem::take(&mut self.ready[block])
    }

    /// The same, now that it is known whether a subquery of it has a match.
    pub fn complete_with_subquery(&mut self, subquery: SubqueryId, block: usize) -> Vec<NodeId> {
        let waiting = std::mem::take(&mut self.by_subquery[usize::from(subquery)]);
        self.arrived(&waiting);
        std::mem::take(&mut self.ready[block])
    }

    fn arrived(&mut self, waiting: &[usize]) {
        for &place in waiting {
            let open = &mut self.open[place];
            open.waits_for -= 1;
            if open.waits_for == 0 {
                self.ready[open.block].push(open.id);
            }
        }
    }
}

/// Is this conjunct nothing but that a subquery has a match, or that it has none?
fn settles(condition: &Condition, id: NodeId) -> Option<(SubqueryId, GroupKind)> {
    let node = &condition.nodes[id as usize];
    let (node, kind) = match node {
        Node::Not(inner) => (&condition.nodes[*inner as usize], GroupKind::NotExists),
        node => (node, GroupKind::Exists),
    };
    match node {
        Node::Exists { subquery, .. } => Some((*subquery, kind)),
        _ => None,
    }
}

/// The block of each subquery. One that must have a match, and can have only one, is a join: it belongs to the block around it,
/// and its relations are read in whatever order is best.
fn blocks(condition: &Condition, fragment: &Fragment) -> Vec<usize> {
    let count = condition.subqueries.len();
    let mut must_exist = vec![false; count];
    let of_subqueries = condition
        .subqueries
        .iter()
        .map(|subquery| &subquery.conjuncts);
    for conjuncts in of_subqueries.chain([&condition.conjuncts]) {
        for &id in conjuncts {
            if let Some((subquery, GroupKind::Exists)) = settles(condition, id) {
                must_exist[usize::from(subquery)] = true;
            }
        }
    }
    let mut blocks: Vec<usize> = (1..=count).collect();
    // What a subquery stands in is behind it.
    for number in (0..count).rev() {
        let subquery = &condition.subqueries[number];
        if must_exist[number] && has_one_match(condition, fragment, subquery) {
            let parent = subquery.parent;
            blocks[number] = parent.map_or(0, |parent| blocks[usize::from(parent)]);
        }
    }
    blocks
}

/// Is there a unique index all of whose columns the subquery fixes?
fn has_one_match(condition: &Condition, fragment: &Fragment, subquery: &Subquery) -> bool {
    let [relation] = subquery.relations[..] else {
        return false;
    };
    // With `LEFT JOIN`, the order counts.
    if !fragment.outer.is_empty() {
        return false;
    }
    let table = &fragment.tables[usize::from(relation)];
    let is_fixed = |column: lightcone_types::ColId| {
        let is_own =
            |at: &crate::condition::ColumnAt| at.relation == relation && at.column == column;
        let mut conjuncts = subquery.conjuncts.iter();
        conjuncts.any(|&id| match &condition.nodes[id as usize] {
            Node::ColumnConstant(column, test, _) => test.is_equal() && is_own(column),
            node => node.equal_columns().is_some_and(|[left, right]| {
                is_own(&left) && right.relation != relation
                    || is_own(&right) && left.relation != relation
            }),
        })
    };
    table.indexes.iter().any(|index| {
        let mut columns = index.algorithm.columns().iter();
        index.unique
            && finds_equals(table, &index.algorithm)
            && columns.all(|&column| is_fixed(column))
    })
}
