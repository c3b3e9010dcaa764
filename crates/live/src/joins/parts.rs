//! The parts of a join, by what they are about, and what can be said of rows by them.

use std::collections::HashMap;
use std::sync::Arc;

use lightcone_query::{
    ColumnAt, Guard, JoinEdge, LiveJoin, Predicate, Residual, Tuple, LIVE_RELATIONS_MAX,
};
use lightcone_schema::TableSchema;
use lightcone_table::RowLayout;
use lightcone_types::{AlgebraicType, ColId};

use super::allowance::STEPS_PER_ROW;

/// A join, but for the values of its parameters.
pub struct Parts {
    pub relations: Vec<Relation>,
    /// Which relation's rows come out.
    pub returned: usize,
    /// In their place, the values of these columns come out, one behind the other.
    pub(super) columns: Option<Vec<ColumnAt>>,
    pub(super) edges: Vec<JoinEdge>,
    /// Columns of subqueries that equal others: they are among the residuals too.
    pub(super) links: Vec<[ColumnAt; 2]>,
    /// Each with the subquery that it is of.
    pub(super) residuals: Vec<(Option<usize>, Residual)>,
    /// Conditions with subqueries.
    pub(super) guards: Vec<Guard>,
    /// By subquery: the one that it stands in.
    pub(super) parents: Vec<Option<usize>>,
    pub(super) parameters: Parameters,
    /// The relation that is an event table: its rows alone change the result (08 §11).
    pub(super) event: Option<usize>,
}

/// The columns whose values are a key.
pub(super) struct Parameters {
    /// In the order of the values in keys.
    pub columns: Vec<ColumnAt>,
    /// By parameter: the first one that has the same value in all keys.
    pub first_equal: Vec<usize>,
    /// Of keys, as if they were rows.
    pub layout: RowLayout,
}

impl Parameters {
    pub fn value<'k>(&self, key: &'k [u8], parameter: usize) -> &'k [u8] {
        self.layout.column(key, parameter)
    }

    /// Those of a relation, with their columns.
    pub fn of_relation(&self, relation: usize) -> impl Iterator<Item = (usize, ColId)> + '_ {
        let all = self.columns.iter().enumerate();
        let own = all.filter(move |(_, at)| place_of(**at) == relation);
        own.map(|(parameter, at)| (parameter, at.column))
    }
}

/// One of the relations.
pub struct Relation {
    pub table: Arc<TableSchema>,
    pub layout: RowLayout,
    /// The subquery that it is of.
    pub(super) subquery: Option<usize>,
    /// The columns by which its rows are looked up.
    pub looked_up_by: Vec<ColId>,
    pub(super) predicate: Option<Predicate>,
    pub(super) has_parameter: bool,
    /// The columns that its rows matter by, once they are admitted. None if that is all of a row.
    pub(super) matters: Option<Vec<ColId>>,
}

impl Relation {
    /// Whether a row may be part of a match.
    pub fn admits(&self, row: &[u8]) -> bool {
        let predicate = self.predicate.as_ref();
        predicate.is_none_or(|predicate| predicate.matches(&self.layout, row))
    }

    /// What looking at a row takes, counted in rows without a condition.
    #[inline]
    pub(super) fn cost_in_rows(&self, row: &[u8]) -> usize {
        1 + self.steps(row) / STEPS_PER_ROW
    }

    /// Steps of its condition on a row.
    #[inline]
    pub(super) fn steps(&self, row: &[u8]) -> usize {
        let predicate = self.predicate.as_ref();
        predicate.map_or(0, |predicate| predicate.steps(row.len()))
    }

    pub fn value<'r>(&self, row: &'r [u8], column: ColId) -> &'r [u8] {
        self.layout.column(row, usize::from(column.0))
    }
}

/// These, in order, each once.
pub(super) fn sorted<T: Ord>(items: impl Iterator<Item = T>) -> Vec<T> {
    let mut items: Vec<T> = items.collect();
    items.sort_unstable();
    items.dedup();
    items
}

/// The relation that a column is of.
pub(super) fn place_of(at: ColumnAt) -> usize {
    usize::from(at.relation)
}

/// A row of each relation; those that are not known yet are empty.
pub(super) type Rows<'r> = [&'r [u8]; LIVE_RELATIONS_MAX];

/// These, as predicates want them.
struct Match<'m> {
    relations: &'m [Relation],
    rows: &'m Rows<'m>,
}

impl Tuple for Match<'_> {
    #[inline]
    fn row(&self, relation: u16) -> Option<(&RowLayout, &[u8])> {
        let number = usize::from(relation);
        let relation = self.relations.get(number)?;
        Some((&relation.layout, self.rows[number]))
    }
}

/// The same for conditions with subqueries: one without a match is a first relation without a row.
struct Guarded<'m> {
    rows: Match<'m>,
    without_match: u32,
}

impl Tuple for Guarded<'_> {
    fn row(&self, relation: u16) -> Option<(&RowLayout, &[u8])> {
        match self.without_match >> relation & 1 {
            0 => self.rows.row(relation),
            _ => None,
        }
    }
}

impl Parts {
    pub(super) fn new(join: &LiveJoin, columns: Vec<ColumnAt>, first_equal: Vec<usize>) -> Parts {
        let relations = (0..join.relations.len()).map(|number| relation_of(join, number));
        let around = join.residuals.iter().map(|residual| (None, residual));
        let within = join.subqueries.iter().enumerate();
        let within = within.flat_map(|(number, subquery)| {
            let own = subquery.residuals.iter();
            own.map(move |residual| (Some(number), residual))
        });
        let residuals = around.chain(within);
        let residuals = residuals.map(|(of, residual)| (of, residual.clone()));
        let types = columns.iter().map(|at| type_of(join, *at).clone());
        let types: Vec<AlgebraicType> = types.collect();
        Parts {
            relations: relations.collect(),
            returned: join.returned,
            columns: join.columns.clone(),
            edges: join.edges.clone(),
            links: join.links.clone(),
            residuals: residuals.collect(),
            guards: join.guards.clone(),
            parents: join.subqueries.iter().map(|of| of.parent).collect(),
            parameters: Parameters {
                layout: RowLayout::new(&types),
                columns,
                first_equal,
            },
            event: join.relations.iter().position(|r| r.table.is_event),
        }
    }

    /// The value of a column of one of the rows.
    pub(super) fn value<'r>(&self, rows: &Rows<'r>, at: ColumnAt) -> &'r [u8] {
        let number = place_of(at);
        self.relations[number].value(rows[number], at.column)
    }

    /// Whether the columns of a join are equal.
    pub(super) fn joins(&self, edge: usize, rows: &Rows<'_>) -> bool {
        self.edges[edge].on.matches_tuple(&Match {
            relations: &self.relations,
            rows,
        })
    }

    /// Whether that holds which can be said now.
    pub(super) fn admits(&self, residuals: &[usize], rows: &Rows<'_>) -> bool {
        let relations = &self.relations;
        let of = |number: &usize| &self.residuals[*number].1.predicate;
        let mut residuals = residuals.iter().map(of);
        residuals.all(|residual| residual.matches_tuple(&Match { relations, rows }))
    }

    /// What [`admits`](Self::admits) takes, counted in rows without a condition.
    pub(super) fn cost_in_rows(&self, residuals: &[usize], rows: &Rows<'_>) -> usize {
        let of = |number: &usize| &self.residuals[*number].1.predicate;
        steps_of(residuals.iter().map(of), rows) / STEPS_PER_ROW
    }

    /// The same of a condition with subqueries.
    pub(super) fn guard_cost_in_rows(&self, guard: &Guard, rows: &Rows<'_>) -> usize {
        steps_of(std::iter::once(&guard.predicate), rows) / STEPS_PER_ROW
    }

    /// Whether a condition with subqueries holds, of which those have no match whose first relations' bits are set.
    pub(super) fn guard_holds(&self, guard: &Guard, rows: &Rows<'_>, without_match: u32) -> bool {
        let relations = &self.relations;
        guard.predicate.matches_tuple(&Guarded {
            rows: Match { relations, rows },
            without_match,
        })
    }

    /// Appends the values that come out of a match, where that is not a row.
    pub(super) fn write_values(&self, columns: &[ColumnAt], rows: &Rows<'_>, out: &mut Vec<u8>) {
        for at in columns {
            out.extend_from_slice(self.value(rows, *at));
        }
    }

    /// Writes the values of these columns, which is a key.
    pub(super) fn write_key(&self, rows: &Rows<'_>, columns: &[ColumnAt], key: &mut Vec<u8>) {
        key.clear();
        self.write_values(columns, rows, key);
    }

    /// The relations that are not of a subquery.
    pub(super) fn around(&self) -> impl Iterator<Item = usize> + '_ {
        let all = 0..self.relations.len();
        all.filter(|number| self.relations[*number].subquery.is_none())
    }
}

/// How few rows are expected to be found by a column.
pub(super) fn promise(parts: &Parts, to: ColumnAt) -> (bool, bool, bool) {
    let relation = &parts.relations[place_of(to)];
    let mut indexes = relation.table.indexes.iter();
    let is_unique = indexes.any(|index| index.unique && *index.algorithm.columns() == [to.column]);
    (
        is_unique,
        relation.has_parameter,
        relation.predicate.is_some(),
    )
}

/// Steps of predicates on rows.
fn steps_of<'p>(predicates: impl Iterator<Item = &'p Predicate>, rows: &Rows<'_>) -> usize {
    let row_bytes = rows.iter().map(|row| row.len()).sum();
    predicates.map(|predicate| predicate.steps(row_bytes)).sum()
}

fn type_of(join: &LiveJoin, at: ColumnAt) -> &AlgebraicType {
    let column = join.relations[place_of(at)].table.column(at.column);
    &column.expect("columns of a join are its tables'").ty
}

/// By parameter: the first one that has the same value. In joins without subqueries itself: all rows of a match are there when
/// its key is asked for.
pub(super) fn first_equal(join: &LiveJoin, parameters: &[(ColumnAt, &[u8])]) -> Vec<usize> {
    if join.subqueries.is_empty() {
        return (0..parameters.len()).collect();
    }
    // Values come from clients, and are hashed with a secret.
    let mut firsts: HashMap<&[u8], Vec<usize>> = HashMap::new();
    let first = |(number, (at, value)): (usize, &(ColumnAt, _))| {
        let with_value = firsts.entry(*value).or_default();
        let is_same = |first: &&usize| type_of(join, parameters[**first].0) == type_of(join, *at);
        if let Some(first) = with_value.iter().find(is_same) {
            return *first;
        }
        with_value.push(number);
        number
    };
    parameters.iter().enumerate().map(first).collect()
}

fn relation_of(join: &LiveJoin, number: usize) -> Relation {
    let relation = &join.relations[number];
    let columns = relation.table.columns.iter();
    let types: Vec<AlgebraicType> = columns.map(|c| c.ty.clone()).collect();
    let ends = join.edges.iter().flat_map(|edge| &edge.ends);
    let links = join.links.iter().flatten();
    let within = join.subqueries.iter();
    let residuals = within.clone().flat_map(|subquery| &subquery.residuals);
    let residuals = residuals
        .chain(&join.residuals)
        .flat_map(|residual| &residual.columns);
    let guards = within.flat_map(|subquery| &subquery.guards);
    let guards = guards.chain(&join.guards).flat_map(|guard| &guard.columns);
    let read = ends.chain(links).chain(residuals).chain(guards);
    let read = read.chain(join.columns.iter().flatten());
    let read = read
        .filter(|at| place_of(**at) == number)
        .map(|at| at.column);
    let parameters = relation.parameters.iter().map(|(column, _)| *column);
    let matters = sorted(read.chain(parameters));
    Relation {
        table: relation.table.clone(),
        layout: RowLayout::new(&types),
        subquery: relation.subquery,
        looked_up_by: Vec::new(),
        predicate: relation.predicate.clone(),
        has_parameter: !relation.parameters.is_empty(),
        matters: (number != join.returned || join.columns.is_some()).then_some(matters),
    }
}
