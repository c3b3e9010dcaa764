//! Which shapes of joins there are.

use std::sync::Arc;

use lightcone_query::{ColumnAt, LiveJoin};

use super::parts::first_equal;
use super::shape::JoinShape;
use crate::registry::Registry;
use crate::shape_id::ShapeId;

/// The shapes of all live joins of one version of a module.
#[derive(Default)]
pub struct JoinShapes(Registry<JoinShape>);

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
        let relations = join.relations.iter();
        let tables: Vec<_> = relations.map(|r| (r.table.id, r.subquery)).collect();
        let own: Vec<_> = join.relations.iter().map(|r| &r.predicate).collect();
        let within = (&join.links, &join.guards, &join.subqueries);
        let predicates = format!("{own:?} {:?} {:?} {within:?}", join.edges, join.residuals);
        let output = (join.returned, &join.columns);
        let content = (
            tables,
            output,
            parameters.clone(),
            first_equal.clone(),
            predicates,
        );
        let make = || {
            let id = ShapeId::take();
            Some(JoinShape::new(id, join, parameters, first_equal))
        };
        let shape = self.0.find_or_make(&content, make);
        (shape.expect("a shape is always made"), key.into())
    }
}
