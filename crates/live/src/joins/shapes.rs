//! Which shapes there are, and their ids.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, LazyLock, Mutex, PoisonError, Weak};

use lightcone_query::{ColumnAt, LiveJoin};

use super::parts::first_equal;
use super::shape::JoinShape;
use super::shape_id::ShapeId;

/// The shapes of all live joins of one version of a module.
#[derive(Default)]
pub struct JoinShapes(Mutex<Registry>);

#[derive(Default)]
struct Registry {
    /// By a hash of all that makes a shape, with a secret: nobody finds two with one hash.
    shapes: HashMap<u128, Weak<JoinShape>>,
    /// Those that are gone are removed when there are so many.
    sweep_at: usize,
}

/// A hash of a join without the values of its parameters.
fn hash_of(join: &LiveJoin, parameters: &[ColumnAt], first_equal: &[usize]) -> u128 {
    static SECRETS: LazyLock<[RandomState; 2]> = LazyLock::new(Default::default);
    let relations = join.relations.iter();
    let tables: Vec<_> = relations.map(|r| (r.table.id, r.subquery)).collect();
    let own: Vec<_> = join.relations.iter().map(|r| &r.predicate).collect();
    let within = (&join.links, &join.guards, &join.subqueries);
    // Compiled predicates are written out: the texts differ if the predicates do.
    let predicates = format!("{own:?} {:?} {:?} {within:?}", join.edges, join.residuals);
    let output = (join.returned, &join.columns);
    let content = (tables, output, parameters, first_equal, predicates);
    let half = |number: usize| u128::from(SECRETS[number].hash_one(&content));
    half(0) << 64 | half(1)
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
        let hash = hash_of(join, &parameters, &first_equal);
        let mut registry = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Registry { shapes, sweep_at } = &mut *registry;
        if let Some(shape) = shapes.get(&hash).and_then(Weak::upgrade) {
            return (shape, key.into());
        }
        if shapes.len() >= *sweep_at {
            shapes.retain(|_, shape| shape.strong_count() > 0);
            *sweep_at = 2 * shapes.len() + 64;
        }
        let shape = Arc::new(JoinShape::new(
            ShapeId::take(),
            join,
            parameters,
            first_equal,
        ));
        shapes.insert(hash, Arc::downgrade(&shape));
        (shape, key.into())
    }
}
