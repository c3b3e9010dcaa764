//! Empty: the feature `test-utils` of `spacetimedb` 2.14 depends on a crate of this name and uses nothing of it.
