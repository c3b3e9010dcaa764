//! Which shapes of joins there are.

use std::sync::Arc;

use lightcone_query::{
    ColumnAt, Guard, JoinEdge, JoinRelation, LiveJoin, LiveSubquery, Predicate, Residual,
};
use lightcone_types::TableId;

use super::parts::first_equal;
use super::shape::JoinShape;
use crate::registry::Registry;
use crate::shape_id::ShapeId;

/// The shapes of all live joins of one version of a module.
#[derive(Default)]
pub struct JoinShapes(Registry<Plan, JoinShape>);

/// What makes a shape: a join without the values of its parameters.
#[derive(PartialEq, Eq, Hash)]
struct Plan {
    relations: Vec<(TableId, Option<usize>, Option<Predicate>)>,
    parameters: Vec<ColumnAt>,
    first_equal: Vec<usize>,
    edges: Vec<JoinEdge>,
    links: Vec<[ColumnAt; 2]>,
    output: (usize, Option<Vec<ColumnAt>>),
    residuals: Vec<Residual>,
    guards: Vec<Guard>,
    subqueries: Vec<LiveSubquery>,
}

impl JoinShapes {
    /// The shape of a join, and the key that its parameters have.
    pub fn shape_of(&self, join: &LiveJoin) -> (Arc<JoinShape>, Box<[u8]>) {
        let mut values = Vec::new();
        for (relation, of_relation) in join.relations.iter().enumerate() {
            for (column, value) in &of_relation.parameters {
                let (relation, column) = (relation as u16, *column);
                values.push((ColumnAt { relation, column }, &**value));
            }
        }
        let first_equal = first_equal(join, &values);
        let key = values
            .iter()
            .map(|(_, value)| *value)
            .collect::<Vec<_>>()
            .concat();
        let parameters: Vec<ColumnAt> = values.into_iter().map(|(at, _)| at).collect();
        let relation = |of: &JoinRelation| (of.table.id, of.subquery, of.predicate.clone());
        let plan = Plan {
            relations: join.relations.iter().map(relation).collect(),
            parameters: parameters.clone(),
            first_equal: first_equal.clone(),
            edges: join.edges.clone(),
            links: join.links.clone(),
            output: (join.returned, join.columns.clone()),
            residuals: join.residuals.clone(),
            guards: join.guards.clone(),
            subqueries: join.subqueries.clone(),
        };
        let make = || {
            let id = ShapeId::take();
            Some(JoinShape::new(id, join, parameters, first_equal))
        };
        let shape = self.0.find_or_make(plan, make);
        (shape.expect("a shape is always made"), key.into())
    }
}
