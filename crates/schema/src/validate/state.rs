//! What one module level is validated with. `tables`, `functions` and `views` have a method for each of its parts.

use std::collections::HashSet;
use std::sync::Arc;

use lightcone_types::Typespace;

use super::context::Context;
use super::names::{NameRules, ObjectNames};
use super::types::TypeUses;

/// A level whose parts are validated one after the other.
pub(super) struct Level<'a> {
    pub cx: &'a mut Context,
    pub rules: &'a NameRules,
    /// As sent.
    pub source: &'a Typespace,
    /// Names converted.
    pub converted: &'a Arc<Typespace>,
    pub uses: TypeUses<'a>,
    pub objects: ObjectNames,
    /// The names of reducers, procedures and views, which share a namespace.
    pub functions: HashSet<String>,
}

impl Level<'_> {
    /// [`ObjectNames::claim`]
    pub fn claim(&mut self, name: &str, alias: Option<&str>) {
        self.objects.claim(self.cx, name, alias);
    }
}
