//! The catalog: tables are described by rows of system tables, and built from them again on recovery (02 §10.1, §11).

use std::sync::Arc;

use lightcone_schema::{
    ColumnSchema, ConstraintSchema, IndexAlgorithm, IndexSchema, ModuleDef, ScheduleSchema,
    SequenceSchema, TableAccess, TableDef, TableKind, TableSchema,
};
use lightcone_types::bsatn::{Decode, Encode, Reader};
use lightcone_types::{
    AlgebraicType, ColId, ConstraintId, DecodeError, Hash, Identity, IndexId, ScheduleId, SequenceId,
    TableId,
};

use crate::datastore::{Datastore, TableState};
use crate::error::{DatastoreError, RecoveryError};
use crate::system::{self as st, SYSTEM_TABLE_ID_MAX};

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

/// Fields one behind the other.
macro_rules! row {
    ($($field:expr),* $(,)?) => {{
        let mut row = Vec::new();
        $( $field.encode(&mut row); )*
        row
    }};
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
    row![schema.id.0, schema.name, schema.kind.as_str(), schema.access.as_str(), primary_key]
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

/// A row read column by column.
struct Fields<'r>(Reader<'r>);

impl<'r> Fields<'r> {
    fn id(&mut self) -> Result<u32, DecodeError> {
        self.0.read_u32()
    }
    fn text(&mut self) -> Result<String, DecodeError> {
        self.0.read_str().map(str::to_owned)
    }
    fn column(&mut self) -> Result<ColId, DecodeError> {
        self.0.read_u16().map(ColId)
    }
    fn columns(&mut self) -> Result<Vec<ColId>, DecodeError> {
        (0..self.0.read_count(2)?).map(|_| self.column()).collect()
    }
}

impl Datastore {
    /// Writes the catalog rows of the system tables themselves: the first thing in a new database (02 §11.4).
    ///
    /// # Panics
    /// If the database is not empty.
    pub fn bootstrap(&mut self) {
        for schema in st::system_tables() {
            self.write_catalog_rows(&schema).expect("the first rows of an empty catalog fit");
        }
    }

    fn put(&mut self, table: TableId, row: &[u8]) -> Result<Vec<u8>, DatastoreError> {
        let mut generated = Vec::new();
        self.insert(table, row, &mut generated)?;
        Ok(generated)
    }

    /// Inserts a row whose id column is zero and returns the id it got.
    fn put_with_id(&mut self, table: TableId, row: &[u8]) -> Result<u32, DatastoreError> {
        let generated = self.put(table, row)?;
        Ok(u32::from_le_bytes(generated[..].try_into().expect("one u32 column is generated")))
    }

    fn write_catalog_rows(&mut self, schema: &TableSchema) -> Result<(), DatastoreError> {
        self.put(st::ST_TABLE_ID, &table_row(schema))?;
        for (position, column) in schema.columns.iter().enumerate() {
            let row = row![schema.id.0, position as u16, column.name, column.ty.to_vec()];
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
        let rules: Vec<_> = def.row_level_security.clone();
        for sql in rules {
            self.put(st::ST_ROW_LEVEL_SECURITY_ID, &row![0_u32, sql])?;
        }
        Ok(())
    }

    fn create_table(&mut self, def: &TableDef) -> Result<TableId, DatastoreError> {
        let mut schema = TableSchema {
            id: TableId(0),
            name: def.name.clone(),
            accessor: Some(def.source_name.clone()),
            columns: def
                .columns
                .iter()
                .map(|column| ColumnSchema {
                    name: column.name.clone(),
                    accessor: Some(column.source_name.clone()),
                    ty: column.ty.clone(),
                })
                .collect(),
            primary_key: def.primary_key,
            indexes: Vec::new(),
            constraints: Vec::new(),
            sequences: Vec::new(),
            schedule: None,
            access: def.access,
            kind: TableKind::User,
            is_event: def.is_event,
        };
        schema.id = TableId(self.put_with_id(st::ST_TABLE_ID, &table_row(&schema))?);
        self.put(st::ST_TABLE_ACCESSOR_ID, &row![schema.name, def.source_name])?;
        for (position, column) in def.columns.iter().enumerate() {
            let row = row![schema.id.0, position as u16, column.name, column.ty.to_vec()];
            self.put(st::ST_COLUMN_ID, &row)?;
            self.put(st::ST_COLUMN_ACCESSOR_ID, &row![schema.name, column.name, column.source_name])?;
        }
        if let Some(schedule) = &def.schedule {
            let row = row![0_u32, schema.id.0, schedule.function_name, schedule.name, schedule.at_column.0];
            schema.schedule = Some(ScheduleSchema {
                id: ScheduleId(self.put_with_id(st::ST_SCHEDULED_ID, &row)?),
                name: schedule.name.clone(),
                function_name: schedule.function_name.clone(),
                at_column: schedule.at_column,
            });
        }
        if def.is_event {
            self.put(st::ST_EVENT_TABLE_ID, &row![schema.id.0])?;
        }
        for index in &def.indexes {
            let mut created = IndexSchema {
                id: IndexId(0),
                name: index.name.clone(),
                accessor: Some(index.source_name.clone()),
                algorithm: index.algorithm.clone(),
                unique: index.unique,
            };
            created.id = IndexId(self.put_with_id(st::ST_INDEX_ID, &index_row(schema.id, &created))?);
            self.put(st::ST_INDEX_ACCESSOR_ID, &row![index.name, index.source_name])?;
            schema.indexes.push(created);
        }
        for constraint in &def.constraints {
            let mut created = ConstraintSchema {
                id: ConstraintId(0),
                name: constraint.name.clone(),
                columns: constraint.columns.clone(),
            };
            let row = constraint_row(schema.id, &created);
            created.id = ConstraintId(self.put_with_id(st::ST_CONSTRAINT_ID, &row)?);
            schema.constraints.push(created);
        }
        for sequence in &def.sequences {
            let start = sequence.start.unwrap_or(1);
            let mut created = SequenceSchema {
                id: SequenceId(0),
                name: sequence.name.clone(),
                column: sequence.column,
                start,
                min_value: sequence.min_value.unwrap_or(1),
                max_value: sequence.max_value.unwrap_or(i128::MAX),
                increment: sequence.increment,
            };
            let row = sequence_row(schema.id, &created, start);
            created.id = SequenceId(self.put_with_id(st::ST_SEQUENCE_ID, &row)?);
            schema.sequences.push(created);
        }
        let id = schema.id;
        let slot = self.add_table(TableState::new(Arc::new(schema), |sequence| sequence.start));
        self.transaction.created_tables.push(slot);
        Ok(id)
    }

    /// The program this database runs, if it was published.
    pub fn module_record(&self) -> Option<ModuleRecord> {
        let mut record = None;
        let table = &self.state(st::ST_MODULE_ID).ok()?.table;
        table.rows().for_each(|_, row| record = ModuleRecord::decode(row).ok());
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

    /// Makes the tables in memory those of the catalog: builds the missing ones, drops the removed ones.
    pub(crate) fn sync_with_catalog(&mut self) -> Result<(), RecoveryError> {
        let mut listed = Vec::new();
        let table = &self.state(st::ST_TABLE_ID).expect("system tables exist").table;
        table.rows().for_each(|_, row| listed.push(row.to_vec()));
        let mut ids = Vec::with_capacity(listed.len());
        for row in listed {
            let id = TableId(u32::from_le_bytes(row[..4].try_into().expect("checked rows start with the id")));
            ids.push(id);
            if id.0 > SYSTEM_TABLE_ID_MAX && self.slot(id).is_err() {
                let state = self
                    .read_table(id, &row)
                    .map_err(|error| RecoveryError::Catalog { table: id, detail: error.to_string() })?;
                self.add_table(state);
            }
        }
        let gone: Vec<_> = self
            .schemas()
            .map(|schema| schema.id)
            .filter(|id| id.0 > SYSTEM_TABLE_ID_MAX && !ids.contains(id))
            .collect();
        for id in gone {
            let slot = self.slot(id).expect("the table was listed");
            self.remove_table(slot);
        }
        Ok(())
    }

    /// Puts the stored position back into the system tables' own sequences.
    pub(crate) fn restore_sequences(&mut self) {
        for slot in 0..self.tables.len() {
            let Some(state) = &self.tables[slot] else { continue };
            let schema = state.table.schema.clone();
            let stored: Vec<_> =
                schema.sequences.iter().map(|s| self.stored_allocation(s.id).unwrap_or(s.start)).collect();
            let sequences = schema.sequences.iter().zip(stored).map(|(sequence, allocated)| {
                let column = &schema.columns[usize::from(sequence.column.0)].ty;
                crate::sequence::Sequence::new(sequence.clone(), column, allocated)
            });
            let mut sequences: Vec<_> = sequences.collect();
            sequences.sort_by_key(|s| s.schema.column);
            if let Some(state) = &mut self.tables[slot] {
                state.sequences = sequences;
            }
        }
        self.sequences_unsaved = false;
    }

    fn stored_allocation(&self, sequence: SequenceId) -> Option<i128> {
        let table = &self.state(st::ST_SEQUENCE_ID).ok()?.table;
        let mut allocated = None;
        table.rows().for_each(|_, row| {
            if row[..4] == sequence.0.to_le_bytes() {
                allocated = row[row.len() - 16..].try_into().ok().map(i128::from_le_bytes);
            }
        });
        allocated
    }

    /// Rows of a system table as readers over their columns.
    fn catalog_rows(&self, table: TableId) -> Vec<&[u8]> {
        let mut rows = Vec::new();
        let table = &self.state(table).expect("system tables exist").table;
        let mut ids = Vec::new();
        table.rows().for_each(|id, _| ids.push(id));
        rows.extend(ids.into_iter().map(|id| table.row(id)));
        rows
    }

    fn read_table(&self, id: TableId, row: &[u8]) -> Result<TableState, DecodeError> {
        let mut fields = Fields(Reader::new(row));
        fields.id()?;
        let name = fields.text()?;
        let kind = if fields.text()? == TableKind::System.as_str() { TableKind::System } else { TableKind::User };
        let access =
            if fields.text()? == TableAccess::Public.as_str() { TableAccess::Public } else { TableAccess::Private };
        let primary_key = match fields.0.read_u8()? {
            0 => fields.columns()?.first().copied(),
            _ => None,
        };
        let constraints = self.read_constraints(id)?;
        let columns = self.read_columns(id, &name)?;
        let (sequences, allocated): (Vec<_>, Vec<_>) = self.read_sequences(id)?.into_iter().unzip();
        let is_event = self.catalog_rows(st::ST_EVENT_TABLE_ID).iter().any(|row| row[..4] == id.0.to_le_bytes());
        let schema = TableSchema {
            id,
            accessor: self.accessor(st::ST_TABLE_ACCESSOR_ID, &[&name])?,
            indexes: self.read_indexes(id, &constraints)?,
            schedule: self.read_schedule(id)?,
            name,
            columns,
            primary_key,
            constraints,
            sequences,
            access,
            kind,
            is_event,
        };
        check_schema(&schema).map_err(|detail| DecodeError::Other(detail.into()))?;
        let position = |sequence: &SequenceSchema| schema_position(&schema, sequence);
        let stored: Vec<i128> = allocated;
        let shared = Arc::new(schema.clone());
        Ok(TableState::new(shared, |sequence| stored[position(sequence)]))
    }

    fn read_columns(&self, id: TableId, table: &str) -> Result<Vec<ColumnSchema>, DecodeError> {
        let mut columns = Vec::new();
        for row in self.catalog_rows(st::ST_COLUMN_ID) {
            let mut fields = Fields(Reader::new(row));
            if fields.id()? != id.0 {
                continue;
            }
            let position = fields.0.read_u16()?;
            let name = fields.text()?;
            let ty = AlgebraicType::from_slice(fields.0.read_bytes()?)?;
            let accessor = self.accessor(st::ST_COLUMN_ACCESSOR_ID, &[table, &name])?;
            columns.push((position, ColumnSchema { name, accessor, ty }));
        }
        columns.sort_by_key(|(position, _)| *position);
        Ok(columns.into_iter().map(|(_, column)| column).collect())
    }

    /// The accessor in the last column of the row that starts with these names.
    fn accessor(&self, table: TableId, names: &[&str]) -> Result<Option<String>, DecodeError> {
        let key: Vec<u8> = names.iter().flat_map(|name| name.to_vec()).collect();
        let rows = self.catalog_rows(table);
        let row = rows.into_iter().find(|row| row.starts_with(&key));
        row.map(|row| Reader::new(&row[key.len()..]).read_str().map(str::to_owned)).transpose()
    }

    fn read_constraints(&self, id: TableId) -> Result<Vec<ConstraintSchema>, DecodeError> {
        let mut constraints = Vec::new();
        for row in self.catalog_rows(st::ST_CONSTRAINT_ID) {
            let mut fields = Fields(Reader::new(row));
            let (constraint, name) = (ConstraintId(fields.id()?), fields.text()?);
            if fields.id()? == id.0 && fields.0.read_u8()? == 1 {
                constraints.push(ConstraintSchema { id: constraint, name, columns: fields.columns()? });
            }
        }
        constraints.sort_by_key(|constraint| constraint.id.0);
        Ok(constraints)
    }

    fn read_indexes(&self, id: TableId, constraints: &[ConstraintSchema]) -> Result<Vec<IndexSchema>, DecodeError> {
        let mut indexes = Vec::new();
        for row in self.catalog_rows(st::ST_INDEX_ID) {
            let mut fields = Fields(Reader::new(row));
            let (index, table, name) = (IndexId(fields.id()?), fields.id()?, fields.text()?);
            if table != id.0 {
                continue;
            }
            let algorithm = match fields.0.read_u8()? {
                1 => IndexAlgorithm::BTree(fields.columns()?),
                2 => IndexAlgorithm::Direct(fields.column()?),
                3 => IndexAlgorithm::Hash(fields.columns()?),
                tag => return Err(DecodeError::InvalidTag { tag, sum_name: None }),
            };
            let set = algorithm.column_set();
            indexes.push(IndexSchema {
                id: index,
                accessor: self.accessor(st::ST_INDEX_ACCESSOR_ID, &[&name])?,
                name,
                unique: constraints.iter().any(|constraint| constraint.columns == set),
                algorithm,
            });
        }
        indexes.sort_by_key(|index| index.id.0);
        Ok(indexes)
    }

    /// Sequences of a table with their stored positions.
    fn read_sequences(&self, id: TableId) -> Result<Vec<(SequenceSchema, i128)>, DecodeError> {
        let mut sequences = Vec::new();
        for row in self.catalog_rows(st::ST_SEQUENCE_ID) {
            let mut fields = Fields(Reader::new(row));
            let (sequence, name, table) = (SequenceId(fields.id()?), fields.text()?, fields.id()?);
            if table != id.0 {
                continue;
            }
            let column = fields.column()?;
            let mut number = || fields.0.read_i128();
            let (increment, start, min_value, max_value) = (number()?, number()?, number()?, number()?);
            let allocated = number()?;
            let schema = SequenceSchema { id: sequence, name, column, start, min_value, max_value, increment };
            sequences.push((schema, allocated));
        }
        sequences.sort_by_key(|(sequence, _)| sequence.id.0);
        Ok(sequences)
    }

    fn read_schedule(&self, id: TableId) -> Result<Option<ScheduleSchema>, DecodeError> {
        for row in self.catalog_rows(st::ST_SCHEDULED_ID) {
            let mut fields = Fields(Reader::new(row));
            let (schedule, table) = (ScheduleId(fields.id()?), fields.id()?);
            if table == id.0 {
                let (function_name, name) = (fields.text()?, fields.text()?);
                return Ok(Some(ScheduleSchema { id: schedule, name, function_name, at_column: fields.column()? }));
            }
        }
        Ok(None)
    }
}

fn schema_position(schema: &TableSchema, sequence: &SequenceSchema) -> usize {
    schema.sequences.iter().position(|other| other.id == sequence.id).expect("the sequence is one of the table")
}

/// Ids are given out one by one, so a larger one is nonsense; tables are found by their ids in vectors.
const ID_MAX: u32 = 1 << 24;
/// The largest constant part of a row in bytes.
const FIXED_BYTES_MAX: usize = 1 << 20;

/// Checks what the rest of the engine relies on: the rows of a catalog are data from a disk.
fn check_schema(schema: &TableSchema) -> Result<(), String> {
    let ids = schema.indexes.iter().map(|index| index.id.0).chain([schema.id.0]);
    if let Some(id) = ids.max().filter(|&id| id > ID_MAX) {
        return Err(format!("the id {id} is too large"));
    }
    let mut fixed_bytes = 0;
    for column in &schema.columns {
        fixed_bytes += constant_bytes(&column.ty).map_err(|error| format!("column `{}` {error}", column.name))?;
    }
    if fixed_bytes > FIXED_BYTES_MAX {
        return Err(format!("a row has {fixed_bytes} bytes of constant size, the limit is {FIXED_BYTES_MAX}"));
    }
    let column = |column: ColId| {
        schema.columns.get(usize::from(column.0)).ok_or_else(|| format!("column {} does not exist", column.0))
    };
    for index in &schema.indexes {
        if index.algorithm.columns().is_empty() {
            return Err(format!("index `{}` has no columns", index.name));
        }
        for &position in index.algorithm.columns() {
            column(position)?;
        }
        if let IndexAlgorithm::Direct(position) = index.algorithm {
            let ty = &column(position)?.ty;
            let unsigned =
                matches!(ty, AlgebraicType::U8 | AlgebraicType::U16 | AlgebraicType::U32 | AlgebraicType::U64);
            if !unsigned && !ty.is_simple_enum() {
                return Err(format!("index `{}` is direct on a column that holds no small number", index.name));
            }
        }
    }
    for sequence in &schema.sequences {
        let ty = &column(sequence.column)?.ty;
        if !is_integer(ty) {
            return Err(format!("sequence `{}` is on a column that holds no integer", sequence.name));
        }
        let range = sequence.min_value..=sequence.max_value;
        if range.is_empty() || !range.contains(&sequence.start) {
            return Err(format!("sequence `{}` starts outside its range", sequence.name));
        }
    }
    Ok(())
}

fn is_integer(ty: &AlgebraicType) -> bool {
    use AlgebraicType as T;
    matches!(
        ty,
        T::I8 | T::U8 | T::I16 | T::U16 | T::I32 | T::U32 | T::I64 | T::U64 | T::I128 | T::U128 | T::I256 | T::U256
    )
}

/// An upper bound of the bytes of a value without its lists; an error if the type holds a reference.
fn constant_bytes(ty: &AlgebraicType) -> Result<usize, String> {
    use AlgebraicType as T;
    fn sum<'t>(mut types: impl Iterator<Item = &'t AlgebraicType>) -> Result<usize, String> {
        types.try_fold(0, |bytes: usize, ty| Ok(bytes.saturating_add(constant_bytes(ty)?)))
    }
    match ty {
        T::Ref(_) => Err("has a type that is not resolved".to_owned()),
        T::Product(product) => sum(product.elements.iter().map(|e| &e.algebraic_type)),
        T::Sum(variants) => Ok(1 + sum(variants.variants.iter().map(|v| &v.algebraic_type))?),
        T::Array(element) => constant_bytes(element).map(|_| 4),
        scalar => Ok(lightcone_types::bsatn::fixed_size(scalar).unwrap_or(4)),
    }
}
