//! How many rows a query is estimated to look at, by the arithmetic of 08 §16: what `row_limit` is compared with.
//!
//! It goes by the text's order of joins and by lookups of whole keys, as the limit's users know them, and not by what the
//! planner does.
//!
//! Where row-level security rules are drawn in nothing is estimated: the sizes of tables, and of keys that the text names, would
//! tell of rows that they hide. What such a query finds is counted when it is run ([`crate::Run::limit_matches`]).

use lightcone_table::{TableView, Tables};
use lightcone_types::{ColId, Identity};

use crate::admission::probe_index;
use crate::condition::{
    ColumnAt, Condition, Constant, ConstantConjunct, Node, NodeId, Subquery, SubqueryId,
};
use crate::planner::{leading_subquery, PlanInput, Samples};
use crate::query::{Fragment, JoinOn, Query};
use crate::select_plan::{Projection, SelectPlan};

/// Indexes of more columns are not looked up in by the reference.
const LOOKUP_COLUMNS_MAX: usize = 3;
/// Rows of one key of an index are counted up to this number; of a key with more, all rows of the table count.
const KEY_ROWS_COUNTED_MAX: u64 = 4096;

/// What comes out of a part of a plan, and what it looks at for it.
#[derive(Clone, Copy)]
struct Estimate {
    rows: u64,
    scanned: u64,
}

impl Estimate {
    fn of_table(rows: u64) -> Estimate {
        Estimate {
            rows,
            scanned: rows,
        }
    }

    fn filtered(self) -> Estimate {
        Estimate {
            rows: self.rows,
            scanned: self.scanned.saturating_add(self.rows),
        }
    }
}

/// Relations, of all fragments together, for which rows are estimated.
const ESTIMATED_RELATIONS_MAX: usize = 64;

impl Query {
    /// Row-level security rules are drawn in: numbers of rows are not for the caller.
    pub fn has_rules(&self) -> bool {
        let mut fragments = self.fragments.iter();
        fragments.any(|fragment| !fragment.rules.is_empty())
    }

    /// The rows that are looked at for this caller, about. Tables that are gone have none.
    ///
    /// A query over very many relations is taken for endless: finding out more would hold others up.
    pub fn estimated_rows(&self, sender: &Identity, tables: &dyn Tables) -> u64 {
        if self.read_tables().count() > ESTIMATED_RELATIONS_MAX {
            return u64::MAX;
        }
        let mut samples = Samples::default();
        let of_fragment = |fragment| self.estimate_fragment(fragment, sender, tables, &mut samples);
        let fragments = self.fragments.iter().map(of_fragment);
        fragments.fold(0, u64::saturating_add)
    }

    fn estimate_fragment(
        &self,
        fragment: &Fragment,
        sender: &Identity,
        tables: &dyn Tables,
        samples: &mut Samples,
    ) -> u64 {
        if !fragment.rules.is_empty() {
            return 0;
        }
        let Some(views) = fragment.read(tables) else {
            return 0;
        };
        let condition = fragment.condition.bind(sender);
        // The limit is pushed down to a table that nothing filters or joins.
        let limit = match &views[..] {
            [_] => self.matches_wanted(),
            _ => None,
        };
        let mut estimating = Estimating {
            fragment,
            condition: &condition,
            views: &views,
            limit,
            matches_wanted: self.matches_wanted(),
            samples,
        };
        estimating.fragment()
    }
}

/// The estimate of one fragment.
struct Estimating<'e> {
    fragment: &'e Fragment,
    condition: &'e Condition,
    views: &'e [&'e TableView],
    limit: Option<u64>,
    matches_wanted: Option<u64>,
    samples: &'e mut Samples,
}

impl Estimating<'_> {
    fn fragment(&mut self) -> u64 {
        let terms = Terms::of(self.condition, &self.condition.conjuncts);
        let own = self.fragment.relations_of_no_subquery();
        let first = usize::from(*own.first().expect("a query reads a relation"));
        let plain = self.relation(first, &terms);
        let (leading, first) = match self.led(first, &terms) {
            Some((number, led)) if led.scanned < plain.scanned => (Some(number), led),
            _ => (None, plain),
        };
        let others = own[1..].iter().map(|at| usize::from(*at));
        let joined = others.fold(first, |left, relation| self.join(left, relation, &terms));
        let of_several = terms.relations.iter().filter(|read| read.len() > 1).count();
        let filtered = match of_several > self.fragment.joins.len() {
            true => joined.filtered(),
            false => joined,
        };
        // Any other subquery is found once, and looked up for each match: by equal columns, or else row by row.
        let subqueries = 0..self.condition.subqueries.len();
        let others = subqueries.filter(|number| Some(*number) != leading);
        others.fold(filtered.scanned, |scanned, number| {
            let found = self.subquery(number);
            let looked_up = match self.is_looked_through(number) {
                true => filtered.rows.saturating_mul(found.rows.max(1)),
                false => filtered.rows,
            };
            scanned
                .saturating_add(found.scanned)
                .saturating_add(looked_up)
        })
    }

    fn relation(&self, relation: usize, terms: &Terms<'_>) -> Estimate {
        estimate_relation(terms, relation as u16, self.views[relation], self.limit)
    }

    /// One more relation on the right side.
    fn join(&mut self, left: Estimate, relation: usize, terms: &Terms<'_>) -> Estimate {
        let table = self.views[relation];
        let is_here = |on: &&JoinOn| {
            let last = on.left.relation.max(on.right.relation);
            usize::from(last) == relation
        };
        let on = self.fragment.joins.iter().find(is_here);
        let own = on.map(|on| match usize::from(on.left.relation) == relation {
            true => on.left,
            false => on.right,
        });
        match own.and_then(|own| probe_index(self.fragment, own)) {
            Some(index) => {
                let rows = match table.schema.indexes[index].unique {
                    true => left.rows,
                    false => left
                        .rows
                        .saturating_mul(found_by_key(table, index, self.samples)),
                };
                Estimate {
                    rows,
                    scanned: left.scanned.saturating_add(rows),
                }
            }
            None => {
                let right = self.relation(relation, terms);
                let rows = left.rows.saturating_mul(right.rows);
                let scanned = left.scanned.saturating_add(right.scanned);
                Estimate {
                    rows,
                    scanned: scanned.saturating_add(rows),
                }
            }
        }
    }

    fn subquery(&mut self, number: usize) -> Estimate {
        let subquery = &self.condition.subqueries[number];
        let terms = Terms::of(self.condition, &subquery.conjuncts);
        let mut relations = subquery.relations.iter().map(|at| usize::from(*at));
        let first = relations.next().expect("a subquery reads a relation");
        let first = self.relation(first, &terms);
        relations.fold(first, |left, relation| self.join(left, relation, &terms))
    }

    /// The rows of a relation that a subquery leads to, if the query is planned like that: the join of the two on an index.
    fn led(&mut self, relation: usize, terms: &Terms<'_>) -> Option<(usize, Estimate)> {
        let table = self.views[relation];
        let mut numbers = 0..self.condition.subqueries.len();
        numbers.find(|number| self.leads_to(*number, relation).is_some())?;
        let planned = PlanInput {
            fragment: self.fragment,
            condition: self.condition,
            tables: self.views,
            matches_wanted: self.matches_wanted,
        };
        let number = usize::from(leading_subquery(planned, self.samples)?);
        let index = self.leads_to(number, relation)?;
        let found = self.subquery(number);
        let rows = match table.schema.indexes[index].unique {
            true => found.rows,
            false => found
                .rows
                .saturating_mul(found_by_key(table, index, self.samples)),
        };
        let led = Estimate {
            rows,
            scanned: found.scanned.saturating_add(rows),
        };
        let is_own = |read: &Vec<u16>| read[..] == [relation as u16];
        let is_filtered = terms.relations.iter().any(is_own);
        Some((number, if is_filtered { led.filtered() } else { led }))
    }

    /// The index by which a subquery leads to the rows of a relation: it must have a match, and reads of what is around it only columns
    /// that its own must equal.
    fn leads_to(&self, number: usize, relation: usize) -> Option<usize> {
        let condition = self.condition;
        let is_it = |id: &NodeId| match condition.nodes[*id as usize] {
            Node::Exists { subquery, .. } => usize::from(subquery) == number,
            _ => false,
        };
        let is_inside = |inner: &Subquery| inner.parent.is_some_and(|at| usize::from(at) == number);
        if !condition.conjuncts.iter().any(is_it)
            || condition.subqueries.iter().any(is_inside)
            || !self.fragment.outer.is_empty()
        {
            return None;
        }
        let subquery = &condition.subqueries[number];
        let is_around = |relation: &u16| !subquery.relations.contains(relation);
        let links = condition.links(number as SubqueryId);
        let around =
            |ends: &[ColumnAt; 2]| ends.iter().copied().find(|end| is_around(&end.relation));
        let reads_around = |id: &&NodeId| condition.relations_of(**id).iter().any(is_around);
        let reading = subquery.conjuncts.iter().filter(reads_around).count();
        if reading != links.iter().filter_map(around).count() {
            return None;
        }
        let mut ends = links.iter().filter_map(around);
        ends.find_map(|end| match usize::from(end.relation) == relation {
            true => probe_index(self.fragment, end),
            false => None,
        })
    }

    /// Does a subquery compare its rows with those around it otherwise than by equal columns?
    fn is_looked_through(&self, number: usize) -> bool {
        let condition = self.condition;
        let subquery = &condition.subqueries[number];
        let is_around = |relation: &u16| !subquery.relations.contains(relation);
        let leads_in = |ends: &[ColumnAt; 2]| ends.iter().any(|end| is_around(&end.relation));
        let mut conjuncts = subquery.conjuncts.iter();
        let reads_around = conjuncts.any(|id| condition.relations_of(*id).iter().any(is_around));
        reads_around && !condition.links(number as SubqueryId).iter().any(leads_in)
    }
}

impl SelectPlan {
    /// The rows that are looked at, about. A table that is gone has none.
    pub fn estimated_rows(&self, tables: &dyn Tables) -> u64 {
        let table = tables.table(self.table.id);
        let (Some(table), None) = (table, self.fragment) else {
            return 0;
        };
        let condition = self.condition();
        let limit = match self.projection {
            Projection::Count(_) => None,
            Projection::Row | Projection::Columns(_) => self.limit,
        };
        let terms = Terms::of(condition, &condition.conjuncts);
        estimate_relation(&terms, 0, table, limit).scanned
    }
}

/// What must hold, with the relations that each of it reads.
struct Terms<'c> {
    condition: &'c Condition,
    conjuncts: &'c [NodeId],
    relations: Vec<Vec<u16>>,
}

impl<'c> Terms<'c> {
    fn of(condition: &'c Condition, conjuncts: &'c [NodeId]) -> Terms<'c> {
        let relations = conjuncts.iter().map(|id| condition.relations_of(*id));
        Terms {
            condition,
            conjuncts,
            relations: relations.collect(),
        }
    }

    /// The values that columns of a relation must have.
    fn values_of(&self, relation: u16) -> Vec<(ColId, &'c [u8])> {
        let constants = self.condition.constants_of(self.conjuncts);
        let value = |constant: ConstantConjunct<'c>| match constant.constant {
            Constant::Value(value)
                if constant.column.relation == relation
                    && constant.test.is_equal()
                    && constant.is_bytewise =>
            {
                Some((constant.column.column, &value[..]))
            }
            _ => None,
        };
        constants.filter_map(value).collect()
    }
}

/// One relation with the conditions on it alone.
fn estimate_relation(
    terms: &Terms<'_>,
    relation: u16,
    table: &TableView,
    limit: Option<u64>,
) -> Estimate {
    let (found, handled) = match best_lookup(&terms.values_of(relation), table) {
        Some(lookup) => lookup,
        None => (table.rows().row_count(), 0),
    };
    let is_own = |read: &&Vec<u16>| read[..] == [relation];
    let is_filtered = terms.relations.iter().filter(is_own).count() > handled;
    let found = match limit {
        Some(limit) if !is_filtered => found.min(limit),
        _ => found,
    };
    let found = Estimate::of_table(found);
    match is_filtered {
        true => found.filtered(),
        false => found,
    }
}

/// The rows that an index finds of which all columns are fixed, and how many conditions that takes the place of.
fn best_lookup(values: &[(ColId, &[u8])], table: &TableView) -> Option<(u64, usize)> {
    let value = |column: &ColId| {
        let found = values.iter().find(|(known, _)| known == column);
        found.map(|(_, value)| *value)
    };
    let indexes = table.schema.indexes.iter().enumerate();
    let usable = indexes.filter(|(_, index)| {
        let columns = index.algorithm.columns();
        columns.len() <= LOOKUP_COLUMNS_MAX && columns.iter().all(|column| value(column).is_some())
    });
    let (position, index) = usable.max_by_key(|(_, index)| index.algorithm.columns().len())?;
    let columns = index.algorithm.columns();
    let point: Vec<u8> = columns
        .iter()
        .filter_map(value)
        .flatten()
        .copied()
        .collect();
    Some((rows_of_key(table, position, &point), columns.len()))
}

/// The rows that a key has. Of one with very many, all rows of the table count.
fn rows_of_key(table: &TableView, position: usize, point: &[u8]) -> u64 {
    let index = &table.indexes()[position];
    let count = table.rows().row_count();
    if index.is_unique() {
        return count.min(1);
    }
    let mut found = 0;
    let visit = |_| {
        found += 1;
        found <= KEY_ROWS_COUNTED_MAX
    };
    let walked = index.walk_point(table.rows(), table.layout(), point, None, visit);
    match walked.is_ok() && found <= KEY_ROWS_COUNTED_MAX {
        true => found,
        false => count,
    }
}

/// Rows divided by distinct keys, which are sampled unless each row has its own.
fn found_by_key(table: &TableView, position: usize, samples: &mut Samples) -> u64 {
    match table.schema.indexes[position].unique {
        true => table.rows().row_count().min(1),
        false => samples.rows_per_key(table, position) as u64,
    }
}
