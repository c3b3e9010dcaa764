//! The shapes that queries are compiled to: equal ones are one, for as long as it is used.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hash, RandomState};
use std::sync::{Arc, LazyLock, Mutex, PoisonError, Weak};

/// The shapes of one kind of one version of a module.
pub(crate) struct Registry<S>(Mutex<Known<S>>);

struct Known<S> {
    /// By a hash of all that makes a shape, with a secret, so that no two are found that have one hash.
    shapes: HashMap<u128, Weak<S>>,
    /// Those that are gone are removed when there are so many.
    sweep_at: usize,
}

impl<S> Default for Registry<S> {
    fn default() -> Registry<S> {
        Registry(Mutex::new(Known {
            shapes: HashMap::new(),
            sweep_at: 0,
        }))
    }
}

impl<S> Registry<S> {
    /// The shape of this content, which is made if there is none. `content` has compiled predicates as texts: these differ if the
    /// predicates do.
    pub fn find_or_make(
        &self,
        content: &impl Hash,
        make: impl FnOnce() -> Option<S>,
    ) -> Option<Arc<S>> {
        static SECRETS: LazyLock<[RandomState; 2]> = LazyLock::new(Default::default);
        let half = |number: usize| u128::from(SECRETS[number].hash_one(content));
        let hash = half(0) << 64 | half(1);
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Known { shapes, sweep_at } = &mut *known;
        if let Some(shape) = shapes.get(&hash).and_then(Weak::upgrade) {
            return Some(shape);
        }
        if shapes.len() >= *sweep_at {
            shapes.retain(|_, shape| shape.strong_count() > 0);
            *sweep_at = 2 * shapes.len() + 64;
        }
        let shape = Arc::new(make()?);
        shapes.insert(hash, Arc::downgrade(&shape));
        Some(shape)
    }
}
