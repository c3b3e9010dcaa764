//! Who has a key of a shape.

use rustc_hash::FxHashSet;

/// One who hears of what changes.
#[derive(Clone, Copy)]
pub enum Holder {
    /// A query set, one of several.
    Set,
    /// An instance of a view, by its number.
    Instance(u32),
}

/// The query sets that have a key, and the instances.
#[derive(Default)]
pub(super) struct Holders {
    pub sets: usize,
    pub instances: Instances,
}

impl Holders {
    pub fn are_none(&self) -> bool {
        self.sets == 0 && matches!(self.instances, Instances::None)
    }
}

/// Instances of views; mostly one.
#[derive(Default)]
pub(super) enum Instances {
    #[default]
    None,
    One(u32),
    Many(FxHashSet<u32>),
}

impl Instances {
    /// Whether it is a new one.
    pub fn insert(&mut self, instance: u32) -> bool {
        match self {
            Instances::None => *self = Instances::One(instance),
            Instances::One(one) if *one == instance => return false,
            Instances::One(one) => {
                *self = Instances::Many(FxHashSet::from_iter([*one, instance]));
            }
            Instances::Many(many) => return many.insert(instance),
        }
        true
    }

    /// Whether it was there.
    pub fn remove(&mut self, instance: u32) -> bool {
        let (was_there, is_last) = match self {
            Instances::None => (false, false),
            Instances::One(one) => (*one == instance, *one == instance),
            Instances::Many(many) => (many.remove(&instance), many.is_empty()),
        };
        if is_last {
            *self = Instances::None;
        }
        was_there
    }

    pub fn for_each(&self, visit: impl FnMut(u32)) {
        match self {
            Instances::None => {}
            Instances::One(one) => [*one].into_iter().for_each(visit),
            Instances::Many(many) => many.iter().copied().for_each(visit),
        }
    }
}
