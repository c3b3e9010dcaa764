//! Names of tables and of indexes.

use rustc_hash::FxHashMap;

/// What is called how: a canonical name goes before an accessor that is like it.
#[derive(Clone)]
pub(crate) struct Names<I> {
    canonical: FxHashMap<String, I>,
    /// Those that are not the canonical name of the same thing. Two things may have one while a table takes another's place.
    accessors: FxHashMap<String, Vec<I>>,
}

impl<I> Default for Names<I> {
    fn default() -> Self {
        Names {
            canonical: FxHashMap::default(),
            accessors: FxHashMap::default(),
        }
    }
}

impl<I: Copy + PartialEq> Names<I> {
    pub fn get(&self, name: &str) -> Option<I> {
        let by_accessor = || self.accessors.get(name)?.first();
        self.canonical.get(name).or_else(by_accessor).copied()
    }

    pub fn insert(&mut self, id: I, name: &str, accessor: Option<&str>) {
        self.canonical.insert(name.to_owned(), id);
        if let Some(accessor) = accessor.filter(|accessor| *accessor != name) {
            let called = self.accessors.entry(accessor.to_owned()).or_default();
            called.push(id);
        }
    }

    /// Undoes an [`insert`](Self::insert). What took the name since keeps it.
    pub fn remove(&mut self, id: I, name: &str, accessor: Option<&str>) {
        if self.canonical.get(name) == Some(&id) {
            self.canonical.remove(name);
        }
        let Some(accessor) = accessor.filter(|accessor| *accessor != name) else {
            return;
        };
        if let Some(called) = self.accessors.get_mut(accessor) {
            called.retain(|other| *other != id);
            if called.is_empty() {
                self.accessors.remove(accessor);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn canonical_names_go_first_and_names_outlive_other_things_of_that_name() {
        let mut names = Names::default();
        names.insert(1, "users", Some("Users"));
        names.insert(2, "Users", Some("Users"));
        assert_eq!((names.get("users"), names.get("Users")), (Some(1), Some(2)));
        names.remove(2, "Users", Some("Users"));
        assert_eq!(names.get("Users"), Some(1));
        // Another takes its place before it goes.
        names.insert(3, "users", Some("Users"));
        names.remove(1, "users", Some("Users"));
        assert_eq!((names.get("users"), names.get("Users")), (Some(3), Some(3)));
        names.remove(3, "users", Some("Users"));
        assert_eq!((names.get("users"), names.get("Users")), (None, None));
        assert!(names.accessors.is_empty());
    }
}
