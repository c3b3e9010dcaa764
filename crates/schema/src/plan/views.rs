//! The changes of views (02 §14.4).

use lightcone_types::{AlgebraicType, ProductType};

use super::compatible::upgradable;
use super::planner::{by_name, Pair, Planner};
use super::step::Step;
use crate::def::{ModuleDef, ViewDef};
use crate::raw::RawVersion;

impl Planner<'_> {
    pub(super) fn views(&mut self) {
        let (old, new) = (self.old, self.new);
        by_name(
            [&old.views, &new.views],
            |view| &view.name,
            |view, pair| match pair {
                Pair::Added => self.step(Step::AddView { view }),
                Pair::Removed => {
                    self.step(Step::RemoveView { view });
                    self.disconnect();
                }
                Pair::Both(before, after) if !self.takes_over(before, after) => {
                    self.step(Step::RemoveView { view: view.clone() });
                    self.step(Step::AddView { view });
                    self.disconnect();
                }
                Pair::Both(before, after) => self.kept_view(before, after),
            },
        );
    }

    /// Whether the stored rows of the old view fit the new one, and clients can go on with it.
    fn takes_over(&self, old: &ViewDef, new: &ViewDef) -> bool {
        old.is_anonymous == new.is_anonymous
            && stored_key(self.old, old) == stored_key(self.new, new)
            && same_columns(old, new)
            && same_parameters(old, new)
    }

    fn kept_view(&mut self, old: &ViewDef, new: &ViewDef) {
        let table = || new.name.clone();
        let types = |view: &ViewDef| -> Vec<AlgebraicType> {
            view.columns.iter().map(|c| c.ty.clone()).collect()
        };
        if types(old) != types(new) {
            self.step(Step::ChangeColumns { table: table() });
        }
        if old.source_name != new.source_name {
            self.step(Step::ChangeTableAccessorName { table: table() });
        }
        self.column_accessors(&new.name, &old.columns, &new.columns);
        if old.is_public != new.is_public {
            self.step(Step::ChangeAccess { table: table() });
        }
        self.step(Step::UpdateView { view: table() });
    }
}

/// The column by which the rows of the view are unique where they are stored (02 §10.3).
fn stored_key<'a>(module: &ModuleDef, view: &'a ViewDef) -> Option<&'a str> {
    let key = view
        .primary_key
        .filter(|_| module.version == RawVersion::V10)?;
    view.columns.get(key.index()).map(|c| c.name.as_str())
}

fn same_columns(old: &ViewDef, new: &ViewDef) -> bool {
    old.columns.len() == new.columns.len()
        && old.columns.iter().zip(&new.columns).all(|(old, new)| {
            old.name == new.name && (old.ty == new.ty || upgradable(&old.ty, &new.ty).is_ok())
        })
}

fn same_parameters(old: &ViewDef, new: &ViewDef) -> bool {
    match (resolved_parameters(old), resolved_parameters(new)) {
        (Some(old), Some(new)) => old == new || upgradable(&old.into(), &new.into()).is_ok(),
        // Recursive types: nothing is stored by them, so only the same text is the same.
        (None, None) => old.params == new.params,
        _ => false,
    }
}

/// Parameters may hold refs, whose numbers mean nothing across definitions.
fn resolved_parameters(view: &ViewDef) -> Option<ProductType> {
    view.params_typespace.resolve_product(&view.params).ok()
}
