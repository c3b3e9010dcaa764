//! The catalog: tables are described by rows of system tables, and built from them again on recovery (02 §10.1, §11).

mod check;
mod read;
mod views;

use std::sync::Arc;

use lightcone_schema::{
    ColumnDef, ColumnSchema, ConstraintSchema, IndexAlgorithm, IndexDef, IndexSchema, ModuleDef,
    ScheduleDef, ScheduleSchema, SequenceDef, SequenceSchema, TableDef, TableKind, TableSchema,
    UniqueConstraintDef,
};
use lightcone_types::bsatn::{Encode, Reader};
use lightcone_types::{
    AlgebraicType, ColId, ConstraintId, DecodeError, Hash, Identity, IndexId, ScheduleId,
    SequenceId, TableId,
};

use crate::datastore::Datastore;
use crate::error::DatastoreError;
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

impl ModuleRecord {
    fn encode(&self) -> Vec<u8> {
        let mut row = Vec::with_capacity(self.program.len() + 128);
        row.extend_from_slice(self.database_identity.as_le_bytes());
        row.extend_from_slice(self.owner_identity.as_le_bytes());
        self.program_kind.encode(&mut row);
        row.extend_from_slice(&self.program_hash.0);
        self.program.encode(&mut row);
        MODULE_VERSION.encode(&mut row);
        row
    }

    fn decode(row: &[u8]) -> Result<ModuleRecord, DecodeError> {
        let reader = &mut Reader::new(row);
        let mut bytes32 = || -> Result<[u8; 32], DecodeError> {
            Ok(reader.read_slice(32)?.try_into().expect("32 bytes"))
        };
        let (database, owner) = (bytes32()?, bytes32()?);
        Ok(ModuleRecord {
            database_identity: Identity::from_le_bytes(database),
            owner_identity: Identity::from_le_bytes(owner),
            program_kind: reader.read_u8()?,
            program_hash: Hash(reader.read_slice(32)?.try_into().expect("32 bytes")),
            program: reader.read_bytes()?.to_vec(),
        })
    }
}

pub(crate) fn sequence_row(table: TableId, sequence: &SequenceSchema, allocated: i128) -> Vec<u8> {
    row![
        sequence.id.0,
        sequence.name,
        table.0,
        sequence.column.0,
        sequence.increment,
        sequence.start,
        sequence.min_value,
        sequence.max_value,
        allocated,
    ]
}

fn table_row(schema: &TableSchema) -> Vec<u8> {
    let primary_key = schema.primary_key.map(|column| vec![column.0]);
    row![
        schema.id.0,
        schema.name,
        schema.kind.as_str(),
        schema.access.as_str(),
        primary_key
    ]
}

fn column_row(table: TableId, position: usize, name: &str, ty: &AlgebraicType) -> Vec<u8> {
    row![table.0, position as u16, name, ty.to_vec()]
}

fn algorithm_bytes(algorithm: &IndexAlgorithm) -> Vec<u8> {
    let columns = |columns: &[ColId]| columns.iter().map(|c| c.0).collect::<Vec<u16>>();
    match algorithm {
        IndexAlgorithm::BTree(list) => row![1_u8, columns(list)],
        IndexAlgorithm::Direct(column) => row![2_u8, column.0],
        IndexAlgorithm::Hash(list) => row![3_u8, columns(list)],
    }
}

fn index_row(table: TableId, index: &IndexSchema) -> Vec<u8> {
    let mut row = row![index.id.0, table.0, index.name];
    row.extend(algorithm_bytes(&index.algorithm));
    row
}

fn constraint_row(table: TableId, constraint: &ConstraintSchema) -> Vec<u8> {
    let columns: Vec<u16> = constraint.columns.iter().map(|c| c.0).collect();
    row![constraint.id.0, constraint.name, table.0, 1_u8, columns]
}

/// What a definition says of a table, before it and its parts have ids.
fn schema_without_ids(def: &TableDef) -> TableSchema {
    let columns = def.columns.iter().map(|column| ColumnSchema {
        name: column.name.clone(),
        accessor: Some(column.source_name.clone()),
        ty: column.ty.clone(),
    });
    TableSchema {
        id: TableId(0),
        name: def.name.clone(),
        accessor: Some(def.source_name.clone()),
        columns: columns.collect(),
        primary_key: def.primary_key,
        indexes: Vec::new(),
        constraints: Vec::new(),
        sequences: Vec::new(),
        schedule: None,
        access: def.access,
        kind: TableKind::User,
        is_event: def.is_event,
        view: None,
    }
}

impl Datastore {
    /// Writes the catalog rows of the system tables themselves: the first thing in a new database (02 §11.4).
    ///
    /// # Panics
    /// If the database is not empty.
    pub fn bootstrap(&mut self) {
        for schema in st::system_tables() {
            self.write_catalog_rows(&schema)
                .expect("the first rows of an empty catalog fit");
        }
    }

    fn put(&mut self, table: TableId, row: &[u8]) -> Result<Vec<u8>, DatastoreError> {
        let mut generated = Vec::new();
        self.insert(table, row, &mut generated)?;
        Ok(generated)
    }

    /// Inserts a row whose id column is zero and returns the id it got.
    fn put_with_id(&mut self, table: TableId, row: &[u8]) -> Result<u32, DatastoreError> {
        self.note_catalog();
        let generated = self.put(table, row)?;
        Ok(u32::from_le_bytes(
            generated[..]
                .try_into()
                .expect("one u32 column is generated"),
        ))
    }

    fn write_catalog_rows(&mut self, schema: &TableSchema) -> Result<(), DatastoreError> {
        self.put(st::ST_TABLE_ID, &table_row(schema))?;
        for (position, column) in schema.columns.iter().enumerate() {
            let row = column_row(schema.id, position, &column.name, &column.ty);
            self.put(st::ST_COLUMN_ID, &row)?;
        }
        for index in &schema.indexes {
            self.put(st::ST_INDEX_ID, &index_row(schema.id, index))?;
        }
        for constraint in &schema.constraints {
            self.put(st::ST_CONSTRAINT_ID, &constraint_row(schema.id, constraint))?;
        }
        for sequence in &schema.sequences {
            let row = sequence_row(schema.id, sequence, st::SYSTEM_SEQUENCE_FIRST);
            self.put(st::ST_SEQUENCE_ID, &row)?;
        }
        Ok(())
    }

    /// Creates all tables of a module definition, in order of names (02 §13).
    ///
    /// # Errors
    /// A name is in use: validation and the catalog disagree.
    pub fn create_tables(&mut self, def: &ModuleDef) -> Result<(), DatastoreError> {
        for table in &def.tables {
            self.create_table(table)?;
        }
        Ok(())
    }

    /// Keeps a row-level security rule of a table.
    ///
    /// # Errors
    /// The same rule is there already.
    pub fn put_row_level_security(
        &mut self,
        table: TableId,
        sql: &str,
    ) -> Result<(), DatastoreError> {
        let row = row![table.0, sql.to_owned()];
        self.put(st::ST_ROW_LEVEL_SECURITY_ID, &row).map(drop)
    }

    /// Writes the catalog rows of a table and its parts, which get their ids thereby, and makes the table.
    pub(crate) fn create_table(&mut self, def: &TableDef) -> Result<TableId, DatastoreError> {
        let mut schema = schema_without_ids(def);
        let id = self.put_table_row(&schema)?;
        schema.id = id;
        self.put_table_accessor(&schema.name, &def.source_name)?;
        self.put_columns(id, def)?;
        if let Some(schedule) = &def.schedule {
            schema.schedule = Some(self.create_schedule(id, schedule)?);
        }
        if def.is_event {
            self.put_event_table(id)?;
        }
        for index in &def.indexes {
            schema.indexes.push(self.create_index(id, index)?);
        }
        for constraint in &def.constraints {
            let created = self.create_constraint(id, constraint)?;
            schema.constraints.push(created);
        }
        for sequence in &def.sequences {
            schema.sequences.push(self.create_sequence(id, sequence)?);
        }
        self.create(TableState::new(Arc::new(schema), |sequence| sequence.start));
        Ok(id)
    }

    pub(crate) fn create_schedule(
        &mut self,
        table: TableId,
        def: &ScheduleDef,
    ) -> Result<ScheduleSchema, DatastoreError> {
        let row = row![0_u32, table.0, def.function_name, def.name, def.at_column.0];
        Ok(ScheduleSchema {
            id: ScheduleId(self.put_with_id(st::ST_SCHEDULED_ID, &row)?),
            name: def.name.clone(),
            function_name: def.function_name.clone(),
            at_column: def.at_column,
        })
    }

    pub(crate) fn create_index(
        &mut self,
        table: TableId,
        def: &IndexDef,
    ) -> Result<IndexSchema, DatastoreError> {
        let mut index = IndexSchema {
            id: IndexId(0),
            name: def.name.clone(),
            accessor: Some(def.source_name.clone()),
            algorithm: def.algorithm.clone(),
            unique: def.unique,
        };
        index.id = self.put_index(table, &index)?;
        self.put_index_accessor(&def.name, &def.source_name)?;
        Ok(index)
    }

    pub(crate) fn create_constraint(
        &mut self,
        table: TableId,
        def: &UniqueConstraintDef,
    ) -> Result<ConstraintSchema, DatastoreError> {
        let mut constraint = ConstraintSchema {
            id: ConstraintId(0),
            name: def.name.clone(),
            columns: def.columns.clone(),
        };
        constraint.id = self.put_constraint(table, &constraint)?;
        Ok(constraint)
    }

    pub(crate) fn create_sequence(
        &mut self,
        table: TableId,
        def: &SequenceDef,
    ) -> Result<SequenceSchema, DatastoreError> {
        let start = def.start.unwrap_or(1);
        let mut sequence = SequenceSchema {
            id: SequenceId(0),
            name: def.name.clone(),
            column: def.column,
            start,
            min_value: def.min_value.unwrap_or(1),
            max_value: def.max_value.unwrap_or(i128::MAX),
            increment: def.increment,
        };
        sequence.id = self.put_sequence(table, &sequence, start)?;
        Ok(sequence)
    }

    // ---- Single rows. Those of things whose id is 0 get one. ------------------------------------------------------------

    pub(crate) fn put_table_row(
        &mut self,
        schema: &TableSchema,
    ) -> Result<TableId, DatastoreError> {
        let id = self.put_thing(st::ST_TABLE_ID, schema.id.0, &table_row(schema))?;
        Ok(TableId(id))
    }

    pub(crate) fn put_table_accessor(
        &mut self,
        name: &str,
        accessor: &str,
    ) -> Result<(), DatastoreError> {
        self.put(st::ST_TABLE_ACCESSOR_ID, &row![name, accessor])?;
        Ok(())
    }

    /// The columns of a table, with their names in code.
    pub(crate) fn put_columns(
        &mut self,
        table: TableId,
        def: &TableDef,
    ) -> Result<(), DatastoreError> {
        for (position, column) in def.columns.iter().enumerate() {
            self.put_column(table, position, &column.name, &column.ty)?;
            self.put_column_accessor(&def.name, column)?;
        }
        Ok(())
    }

    pub(crate) fn put_column(
        &mut self,
        table: TableId,
        position: usize,
        name: &str,
        ty: &AlgebraicType,
    ) -> Result<(), DatastoreError> {
        self.put(st::ST_COLUMN_ID, &column_row(table, position, name, ty))?;
        Ok(())
    }

    pub(crate) fn put_column_accessor(
        &mut self,
        table: &str,
        column: &ColumnDef,
    ) -> Result<(), DatastoreError> {
        let row = row![table, column.name, column.source_name];
        self.put(st::ST_COLUMN_ACCESSOR_ID, &row)?;
        Ok(())
    }

    pub(crate) fn delete_column_accessor(
        &mut self,
        table: &str,
        column: &str,
    ) -> Result<(), DatastoreError> {
        let schema = self.schema(st::ST_COLUMN_ACCESSOR_ID);
        let by_name = schema.expect("system tables exist").indexes[0].id;
        self.delete_by_index_point(by_name, &row![table, column])?;
        Ok(())
    }

    pub(crate) fn put_event_table(&mut self, table: TableId) -> Result<(), DatastoreError> {
        self.put(st::ST_EVENT_TABLE_ID, &row![table.0])?;
        Ok(())
    }

    pub(crate) fn put_index(
        &mut self,
        table: TableId,
        index: &IndexSchema,
    ) -> Result<IndexId, DatastoreError> {
        let id = self.put_thing(st::ST_INDEX_ID, index.id.0, &index_row(table, index))?;
        Ok(IndexId(id))
    }

    pub(crate) fn put_index_accessor(
        &mut self,
        name: &str,
        accessor: &str,
    ) -> Result<(), DatastoreError> {
        self.put(st::ST_INDEX_ACCESSOR_ID, &row![name, accessor])?;
        Ok(())
    }

    pub(crate) fn put_constraint(
        &mut self,
        table: TableId,
        constraint: &ConstraintSchema,
    ) -> Result<ConstraintId, DatastoreError> {
        let row = constraint_row(table, constraint);
        let id = self.put_thing(st::ST_CONSTRAINT_ID, constraint.id.0, &row)?;
        Ok(ConstraintId(id))
    }

    pub(crate) fn put_sequence(
        &mut self,
        table: TableId,
        sequence: &SequenceSchema,
        allocated: i128,
    ) -> Result<SequenceId, DatastoreError> {
        let row = sequence_row(table, sequence, allocated);
        let id = self.put_thing(st::ST_SEQUENCE_ID, sequence.id.0, &row)?;
        Ok(SequenceId(id))
    }

    fn put_thing(&mut self, table: TableId, id: u32, row: &[u8]) -> Result<u32, DatastoreError> {
        if id == 0 {
            return self.put_with_id(table, row);
        }
        self.put(table, row)?;
        Ok(id)
    }

    /// The program this database runs, if it was published.
    pub fn module_record(&self) -> Option<ModuleRecord> {
        let mut record = None;
        let table = &self.state(st::ST_MODULE_ID).ok()?.table;
        table
            .rows()
            .for_each(|_, row| record = ModuleRecord::decode(row).ok());
        record
    }

    /// Replaces the program in the open transaction.
    ///
    /// # Errors
    /// No transaction, or the program is over the transaction's size limit.
    pub fn set_module_record(&mut self, record: &ModuleRecord) -> Result<(), DatastoreError> {
        self.clear(st::ST_MODULE_ID)?;
        self.put(st::ST_MODULE_ID, &record.encode()).map(drop)
    }
}
