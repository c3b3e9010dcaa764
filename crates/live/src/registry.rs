//! The shapes that queries are compiled to: those of equal plans are one, for as long as it is used.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

/// The shapes of one kind of one version of a module.
pub(crate) struct Registry<P, S>(Mutex<Known<P, S>>);

struct Known<P, S> {
    shapes: HashMap<P, Weak<S>>,
    /// Those that are gone are removed when there are so many.
    sweep_at: usize,
}

impl<P, S> Default for Registry<P, S> {
    fn default() -> Registry<P, S> {
        Registry(Mutex::new(Known {
            shapes: HashMap::new(),
            sweep_at: 0,
        }))
    }
}

impl<P: Eq + Hash, S> Registry<P, S> {
    /// The shape of a plan, which is made if there is none.
    pub fn find_or_make(&self, plan: P, make: impl FnOnce() -> Option<S>) -> Option<Arc<S>> {
        let mut known = self.0.lock();
        let Known { shapes, sweep_at } = &mut *known;
        if let Some(shape) = shapes.get(&plan).and_then(Weak::upgrade) {
            return Some(shape);
        }
        if shapes.len() >= *sweep_at {
            shapes.retain(|_, shape| shape.strong_count() > 0);
            *sweep_at = 2 * shapes.len() + 64;
        }
        let shape = Arc::new(make()?);
        shapes.insert(plan, Arc::downgrade(&shape));
        Some(shape)
    }
}
