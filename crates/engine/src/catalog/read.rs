//! Tables built again from the rows of the catalog.

use lightcone_schema::{
    ColumnSchema, ConstraintSchema, IndexAlgorithm, IndexSchema, OutboxDef, ScheduleSchema,
    SequenceSchema, TableAccess, TableKind, TableSchema, ViewSchema,
};
use lightcone_table::{RangeBounds, RowId};
use lightcone_types::bsatn::{Decode, Encode, Reader};
use lightcone_types::{AlgebraicType, ColId, DecodeError, Hash, SequenceId, TableId};
use rustc_hash::FxHashSet;

use super::check::check_schema;
use crate::datastore::Datastore;
use crate::error::{RecoveryError, SchemaError};
use crate::system::{self as st, SYSTEM_TABLE_ID_MAX};
use crate::table_state::{sequences_of, Described};

/// No bound, in a range.
const UNBOUNDED: u8 = 2;

impl Datastore {
    /// Makes the tables in memory those of the catalog: builds the missing ones, drops the removed ones. Tables that are there stay as
    /// they are.
    pub(crate) fn sync_with_catalog(&mut self) -> Result<(), RecoveryError> {
        let mut listed = Vec::new();
        let table = &self
            .state(st::ST_TABLE_ID)
            .expect("system tables exist")
            .table;
        table.rows().for_each(|_, row| listed.push(row.to_vec()));
        let mut ids = Vec::with_capacity(listed.len());
        for row in listed {
            let id = TableId(u32::from_le_bytes(
                row[..4].try_into().expect("checked rows start with the id"),
            ));
            ids.push(id);
            if id.0 > SYSTEM_TABLE_ID_MAX && self.slot(id).is_err() {
                let described = self.described(id, &row)?;
                self.add_table(described.into_state());
            }
        }
        let ids: FxHashSet<_> = ids.into_iter().collect();
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

    /// What the catalog says of a table; none if nothing.
    pub(crate) fn describe(&self, id: TableId) -> Result<Option<Described>, SchemaError> {
        let Some(row) = self.catalog_row(st::ST_TABLE_ID, &id.0.to_vec()) else {
            return Ok(None);
        };
        self.described(id, row).map(Some)
    }

    fn described(&self, id: TableId, row: &[u8]) -> Result<Described, SchemaError> {
        let described = self.read_table_row(id, row);
        described.map_err(|error| SchemaError::Catalog {
            table: id,
            detail: error.to_string(),
        })
    }

    /// The row of a system table with this key in its first index, which is unique.
    pub(crate) fn catalog_row(&self, table: TableId, key: &[u8]) -> Option<&[u8]> {
        let table = &self.state(table).expect("system tables exist").table;
        let found = table.indexes()[0].find_point(table.rows(), table.layout(), key);
        found.ok()?.map(|id| table.row(id))
    }

    /// Puts the stored position back into the system tables' own sequences.
    pub(crate) fn restore_sequences(&mut self) {
        for slot in 0..self.tables.len() {
            let Some(state) = &self.tables[slot] else {
                continue;
            };
            let stored = |s: &SequenceSchema| self.stored_allocation(s.id).unwrap_or(s.start);
            let sequences = sequences_of(&state.table.schema, stored);
            if let Some(state) = &mut self.tables[slot] {
                state.sequences = sequences;
            }
        }
    }

    fn stored_allocation(&self, sequence: SequenceId) -> Option<i128> {
        let row = self.catalog_row(st::ST_SEQUENCE_ID, &sequence.0.to_vec())?;
        let allocated = row[row.len() - 16..].try_into().ok()?;
        Some(i128::from_le_bytes(allocated))
    }

    /// Rows of a system table with this value in a column.
    pub(crate) fn catalog_ids(&self, table: TableId, column: ColId, value: &[u8]) -> Vec<RowId> {
        let table = &self.state(table).expect("system tables exist").table;
        let (rows, layout) = (table.rows(), table.layout());
        let mut found = Vec::new();
        let begins = |index: &IndexSchema| index.algorithm.columns().first() == Some(&column);
        let position = || table.schema.indexes.iter().position(begins);
        let looked_up = if let Some(index) = table.index_on(column) {
            index.for_point(rows, layout, value, |id| found.push(id))
        } else if let Some(position) = position() {
            let range = RangeBounds {
                prefix: value,
                prefix_columns: 1,
                start: &[UNBOUNDED],
                end: &[UNBOUNDED],
            };
            table.indexes()[position].for_range(rows, layout, range, |id| found.push(id))
        } else {
            // Slow, but right: the index is not held any more.
            rows.for_each(|id, row| {
                if layout.column(row, usize::from(column.0)) == value {
                    found.push(id);
                }
            });
            Ok(())
        };
        looked_up.expect("the value is one of the column's type");
        found
    }

    /// The rows of [`catalog_ids`](Self::catalog_ids).
    fn catalog_rows(&self, table: TableId, column: ColId, value: &[u8]) -> Vec<&[u8]> {
        let ids = self.catalog_ids(table, column, value);
        let table = &self.state(table).expect("system tables exist").table;
        ids.into_iter().map(|id| table.row(id)).collect()
    }

    /// The rows of a system table that are parts of this table.
    fn parts(&self, of: TableId, (table, column): (TableId, ColId)) -> Vec<&[u8]> {
        self.catalog_rows(table, column, &of.0.to_vec())
    }

    fn read_table_row(&self, id: TableId, row: &[u8]) -> Result<Described, DecodeError> {
        type Row = (TableId, String, String, String, Option<Vec<ColId>>);
        let (_, name, kind, access, primary_key): Row = Decode::from_slice(row)?;
        let kind = match kind == TableKind::System.as_str() {
            true => TableKind::System,
            false => TableKind::User,
        };
        let access = match access == TableAccess::Public.as_str() {
            true => TableAccess::Public,
            false => TableAccess::Private,
        };
        let primary_key = primary_key.and_then(|columns| columns.first().copied());
        let constraints = self.read_constraints(id)?;
        let columns = self.read_columns(id, &name)?;
        let (sequences, allocated): (Vec<_>, Vec<_>) = self.read_sequences(id)?.into_iter().unzip();
        let event_table = self.catalog_row(st::ST_EVENT_TABLE_ID, &id.0.to_vec());
        let is_event = event_table.is_some();
        let view = self.read_view(id, &name)?;
        let schema = TableSchema {
            id,
            accessor: self.accessor(st::ST_TABLE_ACCESSOR_ID, &[&name])?,
            indexes: self.read_indexes(id, &constraints)?,
            schedule: self.read_schedule(id)?,
            outbox: self.read_outbox(id)?,
            name,
            columns,
            primary_key,
            constraints,
            sequences,
            access,
            kind,
            is_event,
            view,
        };
        check_schema(&schema).map_err(|detail| DecodeError::Other(detail.into()))?;
        Ok(Described { schema, allocated })
    }

    fn read_columns(&self, id: TableId, table: &str) -> Result<Vec<ColumnSchema>, DecodeError> {
        let mut columns = Vec::new();
        for position in 0..=u16::MAX {
            let mut key = id.0.to_vec();
            position.encode(&mut key);
            let Some(row) = self.catalog_row(st::ST_COLUMN_ID, &key) else {
                break;
            };
            let (name, ty): (String, Vec<u8>) = Decode::from_slice(&row[key.len()..])?;
            let ty = AlgebraicType::from_slice(&ty)?;
            let accessor = self.accessor(st::ST_COLUMN_ACCESSOR_ID, &[table, &name])?;
            columns.push(ColumnSchema { name, accessor, ty });
        }
        Ok(columns)
    }

    /// The accessor in the last column of the row with these names.
    fn accessor(&self, table: TableId, names: &[&str]) -> Result<Option<String>, DecodeError> {
        let key: Vec<u8> = names.iter().flat_map(|name| name.to_vec()).collect();
        let row = self.catalog_row(table, &key);
        row.map(|row| Decode::from_slice(&row[key.len()..]))
            .transpose()
    }

    fn read_constraints(&self, id: TableId) -> Result<Vec<ConstraintSchema>, DecodeError> {
        let mut constraints = Vec::new();
        for row in self.parts(id, st::CONSTRAINTS_BY_TABLE) {
            let reader = &mut Reader::new(row);
            let (constraint, name, table, tag): (_, _, TableId, u8) = Decode::decode(reader)?;
            if table == id && tag == 1 {
                constraints.push(ConstraintSchema {
                    id: constraint,
                    name,
                    columns: Decode::decode(reader)?,
                });
            }
        }
        constraints.sort_by_key(|constraint| constraint.id.0);
        Ok(constraints)
    }

    fn read_indexes(
        &self,
        id: TableId,
        constraints: &[ConstraintSchema],
    ) -> Result<Vec<IndexSchema>, DecodeError> {
        let mut indexes = Vec::new();
        for row in self.parts(id, st::INDEXES_BY_TABLE) {
            let reader = &mut Reader::new(row);
            let (index, table, name): (_, TableId, String) = Decode::decode(reader)?;
            if table != id {
                continue;
            }
            let algorithm = match reader.read_u8()? {
                1 => IndexAlgorithm::BTree(Decode::decode(reader)?),
                2 => IndexAlgorithm::Direct(Decode::decode(reader)?),
                3 => IndexAlgorithm::Hash(Decode::decode(reader)?),
                tag => return Err(DecodeError::unknown_tag(tag)),
            };
            let set = algorithm.column_set();
            indexes.push(IndexSchema {
                id: index,
                accessor: self.accessor(st::ST_INDEX_ACCESSOR_ID, &[&name])?,
                name,
                unique: constraints
                    .iter()
                    .any(|constraint| constraint.columns == set),
                algorithm,
            });
        }
        indexes.sort_by_key(|index| index.id.0);
        Ok(indexes)
    }

    /// Sequences of a table with their stored positions.
    fn read_sequences(&self, id: TableId) -> Result<Vec<(SequenceSchema, i128)>, DecodeError> {
        let mut sequences = Vec::new();
        for row in self.parts(id, st::SEQUENCES_BY_TABLE) {
            let (sequence, name, table, rest): (_, _, TableId, _) = Decode::from_slice(row)?;
            if table != id {
                continue;
            }
            let (column, increment, start, (min_value, max_value, allocated)) = rest;
            let schema = SequenceSchema {
                id: sequence,
                name,
                column,
                start,
                min_value,
                max_value,
                increment,
            };
            sequences.push((schema, allocated));
        }
        sequences.sort_by_key(|(sequence, _)| sequence.id.0);
        Ok(sequences)
    }

    /// The view whose rows the table holds: it has the table's name.
    fn read_view(&self, id: TableId, name: &str) -> Result<Option<ViewSchema>, DecodeError> {
        for row in self.catalog_rows(st::ST_VIEW_ID, ColId(1), &name.to_vec()) {
            type Row = (u32, String, Option<TableId>, bool, bool);
            let (view, _name, table, _is_public, is_anonymous): Row = Decode::from_slice(row)?;
            if table == Some(id) {
                return Ok(Some(ViewSchema {
                    id: view,
                    is_anonymous,
                }));
            }
        }
        Ok(None)
    }

    fn read_outbox(&self, id: TableId) -> Result<Option<OutboxDef>, DecodeError> {
        let Some(row) = self.catalog_row(st::ST_OUTBOX_ID, &id.0.to_vec()) else {
            return Ok(None);
        };
        type Row = (TableId, String, ColId, Vec<ColId>, (Option<String>, String));
        let (_, remote_reducer, target_column, arg_columns, (on_result, hash)): Row =
            Decode::from_slice(row)?;
        let no_hash = |_| DecodeError::Other("the hash of an outbox is none".into());
        Ok(Some(OutboxDef {
            remote_reducer,
            target_column,
            arg_columns,
            on_result,
            signature_hash: Hash::from_hex(&hash).map_err(no_hash)?,
        }))
    }

    fn read_schedule(&self, id: TableId) -> Result<Option<ScheduleSchema>, DecodeError> {
        for row in self.parts(id, (st::ST_SCHEDULED_ID, ColId(1))) {
            let (schedule, table, function_name, name, at_column): (_, TableId, _, _, _) =
                Decode::from_slice(row)?;
            if table == id {
                return Ok(Some(ScheduleSchema {
                    id: schedule,
                    name,
                    function_name,
                    at_column,
                }));
            }
        }
        Ok(None)
    }
}
