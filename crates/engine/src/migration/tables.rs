//! Steps for whole tables: added, removed, who may read them, their keys and names.

use lightcone_schema::{ModuleDef, TableAccess, TableSchema};
use lightcone_types::{ColId, TableId};

use super::stored::table_of;
use super::work::{Done, MigrationError, MigrationWork};
use crate::datastore::Datastore;
use crate::system as st;

impl Datastore {
    pub(super) fn add_user_table(
        &mut self,
        table: &str,
        new: &ModuleDef,
        work: &mut MigrationWork<'_>,
    ) -> Done {
        let def = table_of(new, table)?;
        if !self.reveal(def, work)? {
            self.create_table(def)?;
        }
        Ok(())
    }

    pub(super) fn remove_user_table(&mut self, table: &str, work: &mut MigrationWork<'_>) -> Done {
        let schema = self.stored_table(table)?;
        let rows = self.row_count(schema.id)?;
        if rows > 0 {
            return Err(MigrationError::NotEmpty {
                table: table.to_owned(),
                rows,
            });
        }
        self.delete_table_rows(&schema)?;
        self.follow(schema.id, work)
    }

    /// Deletes all that the catalog says of a table.
    pub(crate) fn delete_table_rows(&mut self, schema: &TableSchema) -> Done {
        let id = schema.id.0;
        for index in &schema.indexes {
            self.delete_index_rows(index)?;
        }
        for constraint in &schema.constraints {
            self.delete_catalog_of(st::ST_CONSTRAINT_ID, constraint.id.0)?;
        }
        for sequence in &schema.sequences {
            self.delete_catalog_of(st::ST_SEQUENCE_ID, sequence.id.0)?;
        }
        if let Some(schedule) = &schema.schedule {
            self.delete_catalog_of(st::ST_SCHEDULED_ID, schedule.id.0)?;
        }
        self.delete_catalog_of(st::ST_EVENT_TABLE_ID, id)?;
        self.delete_column_rows(schema)?;
        self.delete_catalog_named(st::ST_TABLE_ACCESSOR_ID, &schema.name)?;
        self.delete_catalog_of(st::ST_TABLE_ID, id)?;
        Ok(())
    }

    pub(super) fn delete_column_rows(&mut self, schema: &TableSchema) -> Done {
        self.delete_catalog_of(st::ST_COLUMN_ID, schema.id.0)?;
        self.delete_catalog_named(st::ST_COLUMN_ACCESSOR_ID, &schema.name)?;
        Ok(())
    }

    /// Rewrites the row of a table that says who may read it, and its key.
    pub(super) fn rewrite_table_row(&mut self, schema: &TableSchema) -> Done {
        self.delete_catalog_of(st::ST_TABLE_ID, schema.id.0)?;
        self.put_table_row(schema)?;
        Ok(())
    }

    pub(super) fn change_access(
        &mut self,
        table: &str,
        new: &ModuleDef,
        work: &mut MigrationWork<'_>,
    ) -> Done {
        let mut schema = TableSchema::clone(&*self.stored_table(table)?);
        schema.access = match (new.table(table), new.view(table)) {
            (Some(def), _) => def.access,
            (None, Some(view)) if view.is_public => TableAccess::Public,
            (None, Some(_)) => TableAccess::Private,
            (None, None) => return table_of(new, table).map(drop),
        };
        self.rewrite_table_row(&schema)?;
        self.follow(schema.id, work)
    }

    pub(super) fn change_primary_key(
        &mut self,
        table: &str,
        new: &ModuleDef,
        work: &mut MigrationWork<'_>,
    ) -> Done {
        let mut schema = TableSchema::clone(&*self.stored_table(table)?);
        schema.primary_key = table_of(new, table)?.primary_key;
        self.rewrite_table_row(&schema)?;
        self.follow(schema.id, work)
    }

    pub(super) fn change_table_accessor(
        &mut self,
        table: &str,
        new: &ModuleDef,
        work: &mut MigrationWork<'_>,
    ) -> Done {
        let schema = self.stored_table(table)?;
        let source_name = match (new.table(table), new.view(table)) {
            (Some(def), _) => &def.source_name,
            (None, Some(view)) => &view.source_name,
            (None, None) => return table_of(new, table).map(drop),
        };
        self.delete_catalog_named(st::ST_TABLE_ACCESSOR_ID, &schema.name)?;
        self.put_table_accessor(&schema.name, source_name)?;
        self.follow(schema.id, work)
    }

    pub(super) fn remove_row_level_security(&mut self, sql: &str) -> Done {
        self.delete_catalog_rows(st::ST_ROW_LEVEL_SECURITY_ID, ColId(1), &sql)?;
        Ok(())
    }

    /// Where the column is that was at this place, by its name.
    pub(super) fn column_after(
        schema: &TableSchema,
        new: &lightcone_schema::TableDef,
        column: ColId,
    ) -> Option<ColId> {
        let name = &schema.column(column)?.name;
        let found = new.columns.iter().position(|column| column.name == *name)?;
        u16::try_from(found).ok().map(ColId)
    }

    /// The bytes that the rows of a table take, about.
    pub(super) fn row_bytes(&self, table: TableId) -> Result<u64, MigrationError> {
        Ok(self.state(table)?.table.rows().heap_bytes() as u64)
    }
}
