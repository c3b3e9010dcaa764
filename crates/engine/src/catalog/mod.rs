//! The catalog: tables are described by rows of system tables, and built from them again on recovery (02 §10.1, §11).

mod check;
mod read;
mod views;

use std::sync::Arc;

use lightcone_schema::{
    ConstraintSchema, IndexAlgorithm, IndexSchema, ModuleDef, OutboxDef, ScheduleSchema,
    SequenceSchema, SequentialIds, TableDef, TableSchema,
};
use lightcone_types::bsatn::{Decode, Encode};
use lightcone_types::{ConstraintId, Hash, Identity, IndexId, ScheduleId, SequenceId, TableId};

use crate::datastore::Datastore;
use crate::error::Result;
use crate::system as st;
use crate::table_state::TableState;

/// The row of `st_module`: the program this database runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModuleRecord {
    pub database_identity: Identity,
    pub owner_identity: Identity,
    /// 0 WebAssembly, 1 JavaScript.
    pub program_kind: u8,
    pub program_hash: Hash,
    pub program: Vec<u8>,
}

/// The constant in `st_module.module_version`.
const MODULE_VERSION: &str = "0.0.1";

lightcone_types::bsatn_products! {
    ModuleRecord { database_identity, owner_identity, program_kind, program_hash, program }
}

pub(crate) fn sequence_row(table: TableId, sequence: &SequenceSchema, allocated: i128) -> Vec<u8> {
    let row = (
        sequence.id,
        &sequence.name,
        table,
        sequence.column,
        sequence.increment,
        sequence.start,
        sequence.min_value,
        sequence.max_value,
        allocated,
    );
    row.to_vec()
}

fn table_row(schema: &TableSchema) -> Vec<u8> {
    let (kind, access) = (schema.kind.as_str(), schema.access.as_str());
    let primary_key = schema.primary_key.map(|column| vec![column]);
    (schema.id, &schema.name, kind, access, primary_key).to_vec()
}

fn schedule_row(table: TableId, schedule: &ScheduleSchema) -> Vec<u8> {
    let names = (&schedule.function_name, &schedule.name);
    (schedule.id, table, names, schedule.at_column).to_vec()
}

fn outbox_row(table: TableId, outbox: &OutboxDef) -> Vec<u8> {
    let columns = (outbox.target_column, &outbox.arg_columns);
    let hash = outbox.signature_hash.to_hex();
    (
        table,
        &outbox.remote_reducer,
        columns,
        &outbox.on_result,
        hash,
    )
        .to_vec()
}

fn index_row(table: TableId, index: &IndexSchema) -> Vec<u8> {
    let mut row = (index.id, table, &index.name).to_vec();
    match &index.algorithm {
        IndexAlgorithm::BTree(columns) => (1_u8, columns).encode(&mut row),
        IndexAlgorithm::Direct(column) => (2_u8, column).encode(&mut row),
        IndexAlgorithm::Hash(columns) => (3_u8, columns).encode(&mut row),
    }
    row
}

fn constraint_row(table: TableId, constraint: &ConstraintSchema) -> Vec<u8> {
    let (id, name, columns) = (constraint.id, &constraint.name, &constraint.columns);
    (id, name, table, 1_u8, columns).to_vec()
}

/// A table before it and its parts have ids: they get them when they are [put](Datastore::put_table) into the catalog.
pub(crate) fn without_ids(mut schema: TableSchema) -> TableSchema {
    schema.id = TableId(0);
    for index in &mut schema.indexes {
        index.id = IndexId(0);
    }
    for constraint in &mut schema.constraints {
        constraint.id = ConstraintId(0);
    }
    for sequence in &mut schema.sequences {
        sequence.id = SequenceId(0);
    }
    if let Some(schedule) = &mut schema.schedule {
        schedule.id = ScheduleId(0);
    }
    schema
}

/// What a definition says of a table, [without ids](without_ids).
pub(crate) fn schema_of(def: &TableDef) -> TableSchema {
    without_ids(def.to_schema(&mut SequentialIds::default()))
}

impl Datastore {
    /// Writes the catalog rows of the system tables themselves: the first thing in a new database (02 §11.4).
    ///
    /// # Panics
    /// If the database is not empty.
    pub fn bootstrap(&mut self) {
        for schema in st::system_tables() {
            let allocated = vec![st::SYSTEM_SEQUENCE_FIRST; schema.sequences.len()];
            self.put_table(&mut TableSchema::clone(&schema), &allocated)
                .expect("the first rows of an empty catalog fit");
        }
    }

    /// Of a database that was made before some system tables were there: whether the catalog does not list these yet.
    pub fn lacks_system_tables(&self) -> bool {
        let mut tables = (1..=st::SYSTEM_TABLE_ID_MAX).rev();
        tables.any(|id| self.catalog_row(st::ST_TABLE_ID, &id.to_vec()).is_none())
    }

    /// Lists them, in the open transaction. In memory they are there already, without rows.
    ///
    /// # Errors
    /// The catalog has something else under their names.
    pub fn list_system_tables(&mut self) -> Result<()> {
        for schema in st::system_tables() {
            if self
                .catalog_row(st::ST_TABLE_ID, &schema.id.0.to_vec())
                .is_none()
            {
                let allocated = vec![st::SYSTEM_SEQUENCE_FIRST; schema.sequences.len()];
                self.put_table(&mut TableSchema::clone(&schema), &allocated)?;
            }
        }
        Ok(())
    }

    fn put(&mut self, table: TableId, row: &[u8]) -> Result<Vec<u8>> {
        let mut generated = Vec::new();
        self.insert(table, row, &mut generated)?;
        Ok(generated)
    }

    /// Inserts a row that begins with an id. If that is 0, it gets one. Returns the id.
    fn put_with_id(&mut self, table: TableId, id: u32, row: &[u8]) -> Result<u32> {
        if id != 0 {
            return self.put(table, row).map(|_| id);
        }
        self.note_catalog();
        let generated = self.put(table, row)?;
        let id: [u8; 4] = generated.try_into().expect("one u32 column is generated");
        Ok(u32::from_le_bytes(id))
    }

    /// Creates all tables of a module definition, in order of names (02 §13).
    ///
    /// # Errors
    /// A name is in use: validation and the catalog disagree.
    pub fn create_tables(&mut self, def: &ModuleDef) -> Result<()> {
        for table in &def.tables {
            self.create_table(table)?;
        }
        Ok(())
    }

    /// Keeps a row-level security rule of a table.
    ///
    /// # Errors
    /// The same rule is there already.
    pub fn put_row_level_security(&mut self, table: TableId, sql: &str) -> Result<()> {
        let row = (table, sql).to_vec();
        self.put(st::ST_ROW_LEVEL_SECURITY_ID, &row).map(drop)
    }

    /// Writes the catalog rows of a table and its parts, which get their ids thereby, and makes the table.
    pub(crate) fn create_table(&mut self, def: &TableDef) -> Result<TableId> {
        let mut schema = schema_of(def);
        let starts: Vec<i128> = schema.sequences.iter().map(|s| s.start).collect();
        self.put_table(&mut schema, &starts)?;
        let id = schema.id;
        self.create(TableState::new(Arc::new(schema), |sequence| sequence.start));
        Ok(id)
    }

    /// Writes all that the catalog says of a table. What has no id gets one. Sequences go on at `allocated`, in their order.
    pub(crate) fn put_table(&mut self, schema: &mut TableSchema, allocated: &[i128]) -> Result<()> {
        schema.id = self.put_table_row(schema)?;
        self.put_columns(schema)?;
        self.put_column_accessors(schema)?;
        self.put_parts(schema, allocated)
    }

    /// Writes what the catalog says of a table itself.
    pub(crate) fn put_table_row(&mut self, schema: &TableSchema) -> Result<TableId> {
        let id = self.put_with_id(st::ST_TABLE_ID, schema.id.0, &table_row(schema))?;
        if let Some(accessor) = &schema.accessor {
            self.put(st::ST_TABLE_ACCESSOR_ID, &(&schema.name, accessor).to_vec())?;
        }
        Ok(TableId(id))
    }

    /// Writes what the catalog says of the columns of a table.
    pub(crate) fn put_columns(&mut self, schema: &TableSchema) -> Result<()> {
        for (position, column) in schema.columns.iter().enumerate() {
            let ty = column.ty.to_vec();
            let row = (schema.id, position as u16, &column.name, ty).to_vec();
            self.put(st::ST_COLUMN_ID, &row)?;
        }
        Ok(())
    }

    /// Writes what the catalog says of the columns' accessors.
    pub(crate) fn put_column_accessors(&mut self, schema: &TableSchema) -> Result<()> {
        for column in &schema.columns {
            if let Some(accessor) = &column.accessor {
                let row = (&schema.name, &column.name, accessor).to_vec();
                self.put(st::ST_COLUMN_ACCESSOR_ID, &row)?;
            }
        }
        Ok(())
    }

    /// Writes what the catalog says of all that belongs to a table but its columns.
    pub(crate) fn put_parts(&mut self, schema: &mut TableSchema, allocated: &[i128]) -> Result<()> {
        let table = schema.id;
        if let Some(schedule) = &mut schema.schedule {
            let row = schedule_row(table, schedule);
            let id = self.put_with_id(st::ST_SCHEDULED_ID, schedule.id.0, &row)?;
            schedule.id = ScheduleId(id);
        }
        if let Some(outbox) = &schema.outbox {
            self.put(st::ST_OUTBOX_ID, &outbox_row(table, outbox))?;
        }
        if schema.is_event {
            self.put(st::ST_EVENT_TABLE_ID, &table.to_vec())?;
        }
        for index in &mut schema.indexes {
            let row = index_row(table, index);
            index.id = IndexId(self.put_with_id(st::ST_INDEX_ID, index.id.0, &row)?);
            if let Some(accessor) = &index.accessor {
                self.put(st::ST_INDEX_ACCESSOR_ID, &(&index.name, accessor).to_vec())?;
            }
        }
        for constraint in &mut schema.constraints {
            let row = constraint_row(table, constraint);
            let id = self.put_with_id(st::ST_CONSTRAINT_ID, constraint.id.0, &row)?;
            constraint.id = ConstraintId(id);
        }
        for (sequence, allocated) in schema.sequences.iter_mut().zip(allocated) {
            let row = sequence_row(table, sequence, *allocated);
            let id = self.put_with_id(st::ST_SEQUENCE_ID, sequence.id.0, &row)?;
            sequence.id = SequenceId(id);
        }
        Ok(())
    }

    /// The program this database runs, if it was published.
    pub fn module_record(&self) -> Option<ModuleRecord> {
        let rows = self.state(st::ST_MODULE_ID).ok()?.table.rows();
        let mut record = None;
        rows.for_each(|_, row| record = ModuleRecord::from_slice(row).ok());
        record
    }

    /// The hash of that program alone.
    pub fn program_hash(&self) -> Option<Hash> {
        let rows = self.state(st::ST_MODULE_ID).ok()?.table.rows();
        let mut hash = None;
        // Behind two identities and the kind.
        rows.for_each(|_, row| {
            hash = row
                .get(65..97)
                .and_then(|hash| hash.try_into().ok())
                .map(Hash)
        });
        hash
    }

    /// Replaces the program in the open transaction.
    ///
    /// # Errors
    /// No transaction, or the program is over the transaction's size limit.
    pub fn set_module_record(&mut self, record: &ModuleRecord) -> Result<()> {
        self.clear(st::ST_MODULE_ID)?;
        self.put(st::ST_MODULE_ID, &(&record, MODULE_VERSION).to_vec())
            .map(drop)
    }
}
