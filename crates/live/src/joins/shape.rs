//! What live joins have in common: all that differ in the values of their parameters are one shape, and are kept up to date
//! together.

use std::ops::Deref;
use std::sync::Arc;

use lightcone_query::{ColumnAt, LiveJoin, Predicate};
use lightcone_schema::TableSchema;
use lightcone_types::{ColId, TableId};

use super::parts::{place_of, sorted, Parts, Relation};
use super::path::Path;
use super::subquery::{driver_of, Driver, Subquery};
use crate::shape_id::ShapeId;

/// Steps of a shape for each changed row and relation, before those of its predicates: looking the row's partners up.
const LOOK_UP_STEPS: usize = 32;

/// A join, but for the values of its parameters.
pub struct JoinShape {
    /// Stands in the place of a table: changes of the join's rows are those of this "table".
    pub id: TableId,
    _id: ShapeId,
    parts: Parts,
    pub(super) subqueries: Vec<Subquery>,
    /// What its row is joined with that comes out.
    pub(super) around: Subquery,
    /// What tells whose a changed row is where it does not say so itself.
    pub(super) driver: Option<Driver>,
    /// Some changed rows do not say whose they are: they are looked at for each key that is held.
    pub tries_all_keys: bool,
    /// By the relation whose rows have changed: for one of a subquery, the way to the rows around it that it may concern.
    pub(super) paths: Vec<Path>,
}

impl Deref for JoinShape {
    type Target = Parts;

    fn deref(&self) -> &Parts {
        &self.parts
    }
}

impl JoinShape {
    pub(super) fn new(
        id: ShapeId,
        join: &LiveJoin,
        columns: Vec<ColumnAt>,
        first_equal: Vec<usize>,
    ) -> JoinShape {
        let mut parts = Parts::new(join, columns, first_equal);
        let subqueries = 0..join.subqueries.len();
        let subqueries: Vec<Subquery> = subqueries
            .map(|number| Subquery::new(&parts, join, number))
            .collect();
        let starts = 0..parts.relations.len();
        let paths: Vec<Path> = starts.map(|start| Path::new(&parts, start)).collect();
        for number in 0..parts.relations.len() {
            parts.relations[number].looked_up_by = looked_up(&paths, &subqueries, number);
        }
        let driver = driver_of(&parts);
        let has_driver = driver.as_ref().is_some_and(|driver| !driver.is_negated);
        let is_unknown = |path: &Path| !path.has_key && (path.is_of_subquery || !has_driver);
        JoinShape {
            id: id.as_table(),
            _id: id,
            tries_all_keys: paths.iter().any(is_unknown),
            around: Subquery::around(&parts),
            parts,
            subqueries,
            driver,
            paths,
        }
    }

    pub fn returned_table(&self) -> &Arc<TableSchema> {
        &self.relations[self.returned].table
    }

    /// The tables that it reads, one that stands in it twice twice.
    pub fn tables(&self) -> impl Iterator<Item = TableId> + '_ {
        self.relations.iter().map(|relation| relation.table.id)
    }

    /// Whether rows of views are among those that are joined: these change after those of tables.
    pub fn reads_views(&self) -> bool {
        self.relations.iter().any(|r| r.table.view.is_some())
    }

    /// Whether it reads an event table, which to a view is empty.
    pub fn reads_events(&self) -> bool {
        self.event.is_some()
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
        let guards = self.subqueries.iter().flat_map(|subquery| &subquery.guards);
        let guards = guards.chain(&self.guards).map(|guard| &guard.predicate);
        let residuals = self.residuals.iter();
        let residuals = residuals.map(|(_, residual)| &residual.predicate);
        own.chain(residuals).chain(guards)
    }

    /// Bytes of memory.
    pub fn memory_bytes(&self) -> usize {
        let count = self.relations.len();
        let on = self.edges.iter().map(|edge| &edge.on);
        let predicates = self.predicates().chain(on).map(Predicate::memory_bytes);
        let residuals = self.residuals.iter();
        let columns = residuals.map(|(_, residual)| residual.columns.len());
        size_of::<JoinShape>()
            + count * size_of::<Relation>()
            + count * count * size_of::<super::path::Hop>()
            + self.subqueries.len() * size_of::<Subquery>()
            + (columns.sum::<usize>() + self.parameters.columns.capacity()) * size_of::<ColumnAt>()
            + predicates.sum::<usize>()
    }

    /// What a changed row costs that is looked at for this shape.
    pub fn steps(&self, row_bytes: usize) -> usize {
        let predicates = self.predicates().map(|of| of.steps(row_bytes));
        LOOK_UP_STEPS * (self.relations.len() - 1) + predicates.sum::<usize>()
    }
}

/// The columns of a relation by which its rows are looked up.
fn looked_up(paths: &[Path], subqueries: &[Subquery], number: usize) -> Vec<ColId> {
    let hops = paths.iter().flat_map(|path| &path.hops).map(|hop| hop.to);
    let probes = subqueries.iter().flat_map(|subquery| &subquery.probes);
    let columns = hops.chain(probes.map(|probe| probe.to));
    let own = columns.filter(|at| place_of(*at) == number);
    sorted(own.map(|at| at.column))
}
