//! Steps for what belongs to a table: indexes, constraints, sequences, its schedule.

use lightcone_schema::{IndexSchema, ModuleDef, TableDef, TableSchema};
use lightcone_types::ColId;

use super::stored::{part, table_of};
use super::work::{Done, MigrationError, MigrationWork};
use crate::datastore::Datastore;
use crate::error::SchemaError;
use crate::system as st;

impl Datastore {
    pub(super) fn remove_index(
        &mut self,
        table: &str,
        index: &str,
        work: &mut MigrationWork<'_>,
    ) -> Done {
        let schema = self.stored_table(table)?;
        let index = part(&schema.indexes, |index| &index.name, "index", index)?;
        self.delete_index_rows(index)?;
        self.follow(schema.id, work)
    }

    pub(super) fn delete_index_rows(&mut self, index: &IndexSchema) -> Done {
        self.delete_catalog_of(st::ST_INDEX_ID, index.id.0)?;
        self.delete_catalog_named(st::ST_INDEX_ACCESSOR_ID, &index.name)?;
        Ok(())
    }

    pub(super) fn add_index(
        &mut self,
        table: &str,
        index: &str,
        new: &ModuleDef,
        work: &mut MigrationWork<'_>,
    ) -> Done {
        let (schema, def) = (self.stored_table(table)?, table_of(new, table)?);
        let added = part(&def.indexes, |index| &index.name, "index", index)?;
        self.create_index(schema.id, added)?;
        // It is built once: a constraint that comes with it is there from the start.
        if added.unique {
            let columns = added.algorithm.column_set();
            self.create_missing_constraints(&schema, def, |of| of == columns)?;
        }
        self.follow_unique(&schema, &format!("index `{index}`"), work)
    }

    pub(super) fn add_constraint(
        &mut self,
        table: &str,
        constraint: &str,
        new: &ModuleDef,
        work: &mut MigrationWork<'_>,
    ) -> Done {
        let (schema, def) = (self.stored_table(table)?, table_of(new, table)?);
        let added = part(&def.constraints, |c| &c.name, "constraint", constraint)?;
        let has_index = |index: &IndexSchema| index.algorithm.column_set() == added.columns;
        if !schema.indexes.iter().any(has_index) {
            return Err(MigrationError::Plan(format!(
                "the constraint `{constraint}` has no index"
            )));
        }
        let is_new = self.create_missing_constraints(&schema, def, |of| of == added.columns)?;
        if !is_new {
            return Ok(());
        }
        self.follow_unique(&schema, &format!("constraint `{constraint}`"), work)
    }

    /// Whether there were some.
    fn create_missing_constraints(
        &mut self,
        schema: &TableSchema,
        def: &TableDef,
        is_wanted: impl Fn(&[ColId]) -> bool,
    ) -> Result<bool, MigrationError> {
        let is_there = |name: &str| schema.constraints.iter().any(|c| c.name == name);
        let mut some = false;
        for constraint in &def.constraints {
            if is_wanted(&constraint.columns) && !is_there(&constraint.name) {
                self.create_constraint(schema.id, constraint)?;
                some = true;
            }
        }
        Ok(some)
    }

    /// Has a table follow the catalog, which wants keys to be unique.
    fn follow_unique(
        &mut self,
        schema: &TableSchema,
        what: &str,
        work: &mut MigrationWork<'_>,
    ) -> Done {
        self.follow(schema.id, work).map_err(|error| match error {
            MigrationError::Schema(reason @ SchemaError::NotUnique { .. }) => {
                MigrationError::NotUnique {
                    what: what.to_owned(),
                    reason: Box::new(reason),
                }
            }
            error => error,
        })
    }

    pub(super) fn remove_constraint(
        &mut self,
        table: &str,
        constraint: &str,
        work: &mut MigrationWork<'_>,
    ) -> Done {
        let schema = self.stored_table(table)?;
        let removed = part(&schema.constraints, |c| &c.name, "constraint", constraint)?;
        self.delete_catalog_of(st::ST_CONSTRAINT_ID, removed.id.0)?;
        self.follow(schema.id, work)
    }

    pub(super) fn remove_sequence(
        &mut self,
        table: &str,
        sequence: &str,
        work: &mut MigrationWork<'_>,
    ) -> Done {
        let schema = self.stored_table(table)?;
        let removed = part(&schema.sequences, |s| &s.name, "sequence", sequence)?;
        self.delete_catalog_of(st::ST_SEQUENCE_ID, removed.id.0)?;
        self.follow(schema.id, work)
    }

    pub(super) fn add_sequence(
        &mut self,
        table: &str,
        sequence: &str,
        new: &ModuleDef,
        work: &mut MigrationWork<'_>,
    ) -> Done {
        let (schema, def) = (self.stored_table(table)?, table_of(new, table)?);
        let added = part(&def.sequences, |s| &s.name, "sequence", sequence)?;
        self.create_sequence(schema.id, added)?;
        self.follow(schema.id, work)
    }

    pub(super) fn remove_schedule(&mut self, table: &str, work: &mut MigrationWork<'_>) -> Done {
        let schema = self.stored_table(table)?;
        let Some(removed) = &schema.schedule else {
            return Err(MigrationError::Plan(format!("`{table}` has no schedule")));
        };
        self.delete_catalog_of(st::ST_SCHEDULED_ID, removed.id.0)?;
        self.follow(schema.id, work)
    }

    pub(super) fn add_schedule(
        &mut self,
        table: &str,
        new: &ModuleDef,
        work: &mut MigrationWork<'_>,
    ) -> Done {
        let (schema, def) = (self.stored_table(table)?, table_of(new, table)?);
        let Some(added) = &def.schedule else {
            return Err(MigrationError::Plan(format!("`{table}` gets no schedule")));
        };
        self.create_schedule(schema.id, added)?;
        self.follow(schema.id, work)
    }

    pub(super) fn change_index_source_name(
        &mut self,
        table: &str,
        index: &str,
        new: &ModuleDef,
        work: &mut MigrationWork<'_>,
    ) -> Done {
        let (schema, def) = (self.stored_table(table)?, table_of(new, table)?);
        let changed = part(&def.indexes, |index| &index.name, "index", index)?;
        self.delete_catalog_named(st::ST_INDEX_ACCESSOR_ID, &changed.name)?;
        self.put_index_accessor(&changed.name, &changed.source_name)?;
        self.follow(schema.id, work)
    }
}
