//! Steps for views. Rows of views are in memory only, so nothing of theirs is carried over.

use lightcone_schema::{ModuleDef, RawVersion, SequentialIds, TableSchema, ViewDef};

use super::work::{Done, MigrationError, MigrationWork};
use crate::datastore::Datastore;
use crate::system as st;

fn view_of<'d>(new: &'d ModuleDef, name: &str) -> Result<&'d ViewDef, MigrationError> {
    new.view(name)
        .ok_or_else(|| MigrationError::Plan(format!("the new definition has no view `{name}`")))
}

impl Datastore {
    pub(super) fn add_view(&mut self, view: &str, new: &ModuleDef) -> Done {
        self.create_view(view_of(new, view)?, new.version == RawVersion::V10)?;
        Ok(())
    }

    pub(super) fn remove_view(&mut self, view: &str, work: &mut MigrationWork<'_>) -> Done {
        let id = self.delete_view_parts(view)?;
        self.delete_catalog_of(st::ST_VIEW_ID, &id)?;
        self.remove_table_of(view, work)
    }

    /// Deletes what is only said of a view, and gives its id.
    fn delete_view_parts(&mut self, view: &str) -> Result<u32, MigrationError> {
        let Some(of_view) = self.stored_table(view)?.view else {
            return Err(MigrationError::Plan(format!("`{view}` is no view")));
        };
        self.delete_catalog_of(st::ST_VIEW_PARAM_ID, &of_view.id)?;
        self.delete_catalog_of(st::ST_VIEW_COLUMN_ID, &of_view.id)?;
        Ok(of_view.id)
    }

    /// What is only said of the view: its own columns and parameters. Its table has steps of its own.
    pub(super) fn update_view(&mut self, view: &str, new: &ModuleDef) -> Done {
        let id = self.delete_view_parts(view)?;
        self.put_view_parts(id, view_of(new, view)?)?;
        Ok(())
    }

    /// Makes the backing tables anew that are not as the definition says (02 §14.5), in the open transaction. Returns their names.
    ///
    /// # Errors
    /// The transaction is too large.
    pub fn mend_views(&mut self, def: &ModuleDef) -> Result<Vec<String>, MigrationError> {
        let mut mended = Vec::new();
        let mut never_ends = || true;
        let mut work = MigrationWork::new(u64::MAX, &mut never_ends);
        for view in &def.views {
            if self.view_differs(view, def) {
                self.remove_view(&view.name, &mut work)?;
                self.add_view(&view.name, def)?;
                mended.push(view.name.clone());
            }
        }
        Ok(mended)
    }

    /// Whether the view has a backing table whose rows are not those of the definition.
    pub fn view_differs(&self, view: &ViewDef, def: &ModuleDef) -> bool {
        let Some(stored) = self.view_table(&view.name) else {
            return false;
        };
        let has_keys = def.version == RawVersion::V10;
        let expected = view.to_backing_schema(has_keys, &mut SequentialIds::default());
        let columns = |schema: &TableSchema| -> Vec<_> {
            let columns = schema.columns.iter();
            columns.map(|c| (c.name.clone(), c.ty.clone())).collect()
        };
        let indexes = |schema: &TableSchema| -> Vec<_> {
            let indexes = schema.indexes.iter();
            indexes.map(|i| (i.algorithm.clone(), i.unique)).collect()
        };
        let is_anonymous = |schema: &TableSchema| schema.view.is_some_and(|view| view.is_anonymous);
        columns(stored) != columns(&expected)
            || indexes(stored) != indexes(&expected)
            || is_anonymous(stored) != is_anonymous(&expected)
    }
}
