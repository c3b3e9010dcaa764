//! What live joins have in common: all that differ in the values of their parameters are one shape, and are kept up to date
//! together.

use std::sync::Arc;

use lightcone_query::{
    ColumnAt, JoinEdge, LiveJoin, Predicate, Residual, Tuple, LIVE_RELATIONS_MAX,
};
use lightcone_schema::TableSchema;
use lightcone_table::RowLayout;
use lightcone_types::{AlgebraicType, ColId, TableId};

use super::path::{Known, Path};
use super::shapes::ShapeId;

/// Steps of a shape for each changed row and relation, before those of its predicates: looking the row's partners up.
const LOOK_UP_STEPS: usize = 32;

/// A join, but for the values of its parameters.
pub(crate) struct JoinShape {
    /// Stands in the place of a table: changes of the join's rows are those of this "table".
    pub id: TableId,
    _id: ShapeId,
    pub relations: Vec<Relation>,
    /// Which relation's rows come out.
    pub returned: usize,
    /// In their place, the values of these columns come out, one behind the other.
    pub(super) columns: Option<Vec<ColumnAt>>,
    pub(super) edges: Vec<JoinEdge>,
    pub(super) residuals: Vec<Residual>,
    /// In the order of the values in keys.
    pub(super) parameters: Vec<ColumnAt>,
    /// By the relation whose rows have changed.
    pub(super) paths: Vec<Path>,
    /// The relation that is an event table: its rows alone change the result (08 §11).
    pub(super) event: Option<usize>,
}

/// One of the relations.
pub(crate) struct Relation {
    pub table: Arc<TableSchema>,
    pub layout: RowLayout,
    /// The columns by which its rows are looked up.
    pub looked_up_by: Vec<ColId>,
    predicate: Option<Predicate>,
    /// The columns that its rows matter by, once they are admitted. None if that is all of a row.
    pub(super) matters: Option<Vec<ColId>>,
}

impl Relation {
    /// Whether a row may be part of a match.
    pub fn admits(&self, row: &[u8]) -> bool {
        let predicate = self.predicate.as_ref();
        predicate.is_none_or(|predicate| predicate.matches(&self.layout, row))
    }

    pub fn value<'r>(&self, row: &'r [u8], column: ColId) -> &'r [u8] {
        self.layout.column(row, usize::from(column.0))
    }

    pub(super) fn has_predicate(&self) -> bool {
        self.predicate.is_some()
    }
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

impl JoinShape {
    pub(super) fn new(id: ShapeId, join: &LiveJoin, parameters: Vec<ColumnAt>) -> JoinShape {
        let relations = (0..join.relations.len()).map(|number| relation_of(join, number));
        let mut shape = JoinShape {
            id: id.as_table(),
            _id: id,
            relations: relations.collect(),
            returned: join.returned,
            columns: join.columns.clone(),
            edges: join.edges.clone(),
            residuals: join.residuals.clone(),
            parameters,
            paths: Vec::new(),
            event: join.relations.iter().position(|r| r.table.is_event),
        };
        let starts = 0..shape.relations.len();
        shape.paths = starts.map(|start| Path::new(&shape, start)).collect();
        shape
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
    pub(super) fn admits(&self, known: &Known, rows: &Rows<'_>) -> bool {
        let relations = &self.relations;
        let of = |number: &usize| &self.residuals[*number].predicate;
        let mut residuals = known.residuals.iter().map(of);
        residuals.all(|residual| residual.matches_tuple(&Match { relations, rows }))
    }

    /// Appends what comes out of a match.
    #[inline]
    pub(super) fn write_output(&self, rows: &Rows<'_>, out: &mut Vec<u8>) {
        let Some(columns) = &self.columns else {
            return out.extend_from_slice(rows[self.returned]);
        };
        for at in columns {
            out.extend_from_slice(self.value(rows, *at));
        }
    }

    /// Writes the values of the parameters; their relations' rows are known.
    pub(super) fn write_key(&self, rows: &Rows<'_>, key: &mut Vec<u8>) {
        key.clear();
        for at in &self.parameters {
            key.extend_from_slice(self.value(rows, *at));
        }
    }

    pub fn returned_table(&self) -> &Arc<TableSchema> {
        &self.relations[self.returned].table
    }

    /// The tables that it reads, one that stands in it twice twice.
    pub fn tables(&self) -> impl Iterator<Item = TableId> + '_ {
        self.relations.iter().map(|relation| relation.table.id)
    }

    /// The tables and columns that its rows are looked up by.
    pub fn looked_up_by(&self) -> impl Iterator<Item = (&Arc<TableSchema>, ColId)> + '_ {
        self.relations.iter().flat_map(|relation| {
            let columns = relation.looked_up_by.iter();
            columns.map(|column| (&relation.table, *column))
        })
    }

    fn predicates(&self) -> impl Iterator<Item = &Predicate> {
        let own = self.relations.iter().filter_map(|r| r.predicate.as_ref());
        own.chain(self.residuals.iter().map(|residual| &residual.predicate))
    }

    /// Bytes of memory.
    pub fn memory_bytes(&self) -> usize {
        let count = self.relations.len();
        let on = self.edges.iter().map(|edge| &edge.on);
        let predicates = self.predicates().chain(on).map(Predicate::memory_bytes);
        let columns = self.residuals.iter().map(|residual| residual.columns.len());
        size_of::<JoinShape>()
            + count * size_of::<Relation>()
            + count * count * size_of::<super::path::Hop>()
            + (columns.sum::<usize>() + self.parameters.capacity()) * size_of::<ColumnAt>()
            + predicates.sum::<usize>()
    }

    /// What a changed row costs that is looked at for this shape.
    pub fn steps(&self, row_bytes: usize) -> usize {
        let predicates = self
            .predicates()
            .map(|predicate| predicate.steps(row_bytes));
        LOOK_UP_STEPS * (self.relations.len() - 1) + predicates.sum::<usize>()
    }
}

fn relation_of(join: &LiveJoin, number: usize) -> Relation {
    let relation = &join.relations[number];
    let types: Vec<AlgebraicType> = relation
        .table
        .columns
        .iter()
        .map(|c| c.ty.clone())
        .collect();
    let of_relation = |at: &&ColumnAt| place_of(**at) == number;
    let ends = join.edges.iter().flat_map(|edge| &edge.ends);
    let mut looked_up_by: Vec<ColId> = ends.filter(of_relation).map(|at| at.column).collect();
    looked_up_by.sort_unstable();
    looked_up_by.dedup();
    let read = join.residuals.iter().flat_map(|residual| &residual.columns);
    let read = read.chain(join.columns.iter().flatten());
    let read = read.filter(of_relation).map(|at| at.column);
    let parameters = relation.parameters.iter().map(|(column, _)| *column);
    let mut matters: Vec<ColId> = looked_up_by
        .iter()
        .copied()
        .chain(read)
        .chain(parameters)
        .collect();
    matters.sort_unstable();
    matters.dedup();
    Relation {
        table: relation.table.clone(),
        layout: RowLayout::new(&types),
        looked_up_by,
        predicate: relation.predicate.clone(),
        matters: (number != join.returned || join.columns.is_some()).then_some(matters),
    }
}
