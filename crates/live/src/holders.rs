//! Who is told of the changes of a query.

use rustc_hash::FxHashSet;

/// One who hears of what changes.
#[derive(Clone, Copy)]
pub enum Holder {
    /// A query set, one of several.
    Set,
    /// An instance of a view, by its number.
    Instance(u32),
}

/// Who has a query: how many query sets, and which instances of views.
#[derive(Default)]
pub(crate) struct Holders {
    pub sets: usize,
    pub instances: FxHashSet<u32>,
}

impl Holders {
    /// False: the instance has it already.
    pub fn add(&mut self, holder: Holder) -> bool {
        match holder {
            Holder::Set => self.sets += 1,
            Holder::Instance(instance) => return self.instances.insert(instance),
        }
        true
    }

    /// False: the instance has not had it.
    pub fn remove(&mut self, holder: Holder) -> bool {
        match holder {
            Holder::Set => self.sets -= 1,
            Holder::Instance(instance) => return self.instances.remove(&instance),
        }
        true
    }

    pub fn are_none(&self) -> bool {
        self.sets == 0 && self.instances.is_empty()
    }
}
