//! The system tables: fixed ids, schemas and first rows (02 §11).

use std::sync::Arc;

use lightcone_schema::{
    ColumnSchema, ConstraintSchema, IndexAlgorithm, IndexSchema, SequenceSchema, TableAccess,
    TableKind, TableSchema,
};
use lightcone_types::{AlgebraicType as T, ColId, ConstraintId, IndexId, SequenceId, TableId};

pub const ST_TABLE_ID: TableId = TableId(1);
pub const ST_COLUMN_ID: TableId = TableId(2);
pub const ST_SEQUENCE_ID: TableId = TableId(3);
pub const ST_INDEX_ID: TableId = TableId(4);
pub const ST_CONSTRAINT_ID: TableId = TableId(5);
pub const ST_MODULE_ID: TableId = TableId(6);
pub const ST_CLIENT_ID: TableId = TableId(7);
pub const ST_VAR_ID: TableId = TableId(8);
pub const ST_SCHEDULED_ID: TableId = TableId(9);
pub const ST_ROW_LEVEL_SECURITY_ID: TableId = TableId(10);
pub const ST_CONNECTION_CREDENTIALS_ID: TableId = TableId(11);
pub const ST_EVENT_TABLE_ID: TableId = TableId(17);
pub const ST_VIEW_ID: TableId = TableId(12);
pub const ST_VIEW_PARAM_ID: TableId = TableId(13);
pub const ST_VIEW_COLUMN_ID: TableId = TableId(14);
pub const ST_TABLE_ACCESSOR_ID: TableId = TableId(18);
pub const ST_INDEX_ACCESSOR_ID: TableId = TableId(19);
pub const ST_COLUMN_ACCESSOR_ID: TableId = TableId(20);
/// Variables of the environment, which modules read by `env_get` alone.
pub const ST_ENV_ID: TableId = TableId(21);
pub const ST_ENV_INDEX_ID: IndexId = IndexId(30);
/// Streams and messages of outbox tables, and of those of others (02 §11.5).
pub const ST_OUTBOUND_STREAM_ID: TableId = TableId(22);
pub const ST_OUTBOUND_MSG_ID: TableId = TableId(23);
pub const ST_INBOUND_STREAM_ID: TableId = TableId(24);
pub const ST_INBOUND_MSG_ID: TableId = TableId(25);
pub const ST_OUTBOX_ID: TableId = TableId(26);

/// Where the catalog says of sequences, indexes and constraints whose they are. Its schema has no index on that; the datastore holds one.
pub const SEQUENCES_BY_TABLE: (TableId, ColId) = (ST_SEQUENCE_ID, ColId(2));
pub const INDEXES_BY_TABLE: (TableId, ColId) = (ST_INDEX_ID, ColId(1));
pub const CONSTRAINTS_BY_TABLE: (TableId, ColId) = (ST_CONSTRAINT_ID, ColId(2));

/// The last id that belongs to a system table.
pub const SYSTEM_TABLE_ID_MAX: u32 = 26;
/// The last id that belongs to an index of a system table.
pub const SYSTEM_INDEX_ID_MAX: u32 = 37;
/// The first value a system sequence issues (02 §11.4).
pub const SYSTEM_SEQUENCE_FIRST: i128 = 4096;

/// Whether a table or index of this name is out of reach for the code of modules, and for what their views ask.
pub fn is_restricted(name: &str) -> bool {
    matches!(name, "st_env" | "st_env_key_idx_btree")
}

const LATE_CONSTRAINT_ID: ConstraintId = ConstraintId(32);
const LATE_INDEX_ID: IndexId = IndexId(36);

struct Spec {
    name: &'static str,
    columns: Vec<(&'static str, T)>,
    primary_key: Option<u16>,
    /// Column lists of the unique constraints, each with an index, in order of ids.
    unique: &'static [&'static [u16]],
    /// Column lists of all indexes, in order of ids.
    indexes: &'static [&'static [u16]],
    /// Column 0 draws from a sequence with this id.
    sequence: Option<u32>,
}

fn u16_list() -> T {
    T::Array(Box::new(T::U16))
}

fn index_algorithm() -> T {
    T::sum([
        ("Unused", T::U128),
        ("BTree", u16_list()),
        ("Direct", T::U16),
        ("Hash", u16_list()),
    ])
}

fn constraint_data() -> T {
    T::sum([("Unused", T::U128), ("Unique", u16_list())])
}

#[rustfmt::skip]
fn variable_value() -> T {
    let types = [
        T::Bool, T::I8, T::U8, T::I16, T::U16, T::I32, T::U32, T::I64, T::U64, T::I128, T::U128, T::F32, T::F64, T::String,
    ];
    T::sum(types.map(|ty| (ty.constructor_name(), ty)))
}

#[rustfmt::skip]
fn specs() -> Vec<Spec> {
    let spec = |name, columns: &[(&'static str, T)], primary_key, unique, indexes, sequence| Spec {
        name, columns: columns.to_vec(), primary_key, unique, indexes, sequence,
    };
    vec![
        spec("st_table", &[("table_id", T::U32), ("table_name", T::String), ("table_type", T::String),
            ("table_access", T::String), ("table_primary_key", T::option(u16_list()))],
            Some(0), &[&[0], &[1]], &[&[0], &[1]], Some(1)),
        spec("st_column", &[("table_id", T::U32), ("col_pos", T::U16), ("col_name", T::String), ("col_type", T::bytes())],
            None, &[&[0, 1]], &[&[0, 1]], None),
        spec("st_sequence", &[("sequence_id", T::U32), ("sequence_name", T::String), ("table_id", T::U32),
            ("col_pos", T::U16), ("increment", T::I128), ("start", T::I128), ("min_value", T::I128),
            ("max_value", T::I128), ("allocated", T::I128)],
            Some(0), &[&[0]], &[&[0]], Some(5)),
        spec("st_index", &[("index_id", T::U32), ("table_id", T::U32), ("index_name", T::String),
            ("index_algorithm", index_algorithm())],
            Some(0), &[&[0]], &[&[0]], Some(2)),
        spec("st_constraint", &[("constraint_id", T::U32), ("constraint_name", T::String), ("table_id", T::U32),
            ("constraint_data", constraint_data())],
            Some(0), &[&[0]], &[&[0]], Some(3)),
        spec("st_module", &[("database_identity", T::HASH), ("owner_identity", T::HASH), ("program_kind", T::U8),
            ("program_hash", T::HASH), ("program_bytes", T::bytes()), ("module_version", T::String)],
            None, &[], &[], None),
        spec("st_client", &[("identity", T::HASH), ("connection_id", T::U128)],
            None, &[&[0, 1]], &[&[0, 1]], None),
        spec("st_var", &[("name", T::String), ("value", variable_value())],
            Some(0), &[&[0]], &[&[0]], None),
        spec("st_scheduled", &[("schedule_id", T::U32), ("table_id", T::U32), ("reducer_name", T::String),
            ("schedule_name", T::String), ("at_column", T::U16)],
            Some(0), &[&[0], &[1]], &[&[0], &[1]], Some(4)),
        spec("st_row_level_security", &[("table_id", T::U32), ("sql", T::String)],
            Some(1), &[&[1]], &[&[0], &[1]], None),
        spec("st_connection_credentials", &[("connection_id", T::U128), ("jwt_payload", T::String)],
            Some(0), &[&[0]], &[&[0]], None),
        spec("st_view", &[("view_id", T::U32), ("view_name", T::String), ("table_id", T::option(T::U32)),
            ("is_public", T::Bool), ("is_anonymous", T::Bool)],
            Some(0), &[&[0], &[1]], &[&[0], &[1]], Some(6)),
        spec("st_view_param", &[("view_id", T::U32), ("param_pos", T::U16), ("param_name", T::String),
            ("param_type", T::bytes())],
            None, &[&[0, 1]], &[&[0, 1]], None),
        spec("st_view_column", &[("view_id", T::U32), ("col_pos", T::U16), ("col_name", T::String), ("col_type", T::bytes())],
            None, &[&[0, 1]], &[&[0, 1]], None),
        spec("st_view_sub", &[("view_id", T::U32), ("arg_id", T::U64), ("identity", T::HASH), ("num_subscribers", T::U64),
            ("has_subscribers", T::Bool), ("last_called", T::I64)],
            None, &[], &[&[2], &[4], &[0, 1, 2]], None),
        spec("st_view_arg", &[("id", T::U64), ("bytes", T::bytes())],
            Some(0), &[&[0], &[1]], &[&[0], &[1]], Some(7)),
        spec("st_event_table", &[("table_id", T::U32)],
            Some(0), &[&[0]], &[&[0]], None),
        spec("st_table_accessor", &[("table_name", T::String), ("accessor_name", T::String)],
            None, &[&[0], &[1]], &[&[0], &[1]], None),
        spec("st_index_accessor", &[("index_name", T::String), ("accessor_name", T::String)],
            None, &[&[0], &[1]], &[&[0], &[1]], None),
        spec("st_column_accessor", &[("table_name", T::String), ("col_name", T::String), ("accessor_name", T::String)],
            None, &[&[0, 1], &[0, 2]], &[&[0, 1], &[0, 2]], None),
        spec("st_env", &[("key", T::String), ("value", T::String)],
            Some(0), &[&[0]], &[&[0]], None),
        spec("st_outbound_stream", &[("stream_id", T::U64), ("outbox_table_id", T::U32), ("target_identity", T::HASH),
            ("next_seq", T::U64), ("ack_prefix", T::U64)],
            Some(0), &[&[0], &[1, 2]], &[&[0], &[1, 2]], Some(8)),
        spec("st_outbound_msg", &[("stream_id", T::U64), ("msg_id", T::U64), ("seq", T::U64), ("retry_count", T::U32),
            ("last_transport_error", T::option(T::String)), ("result_status", T::option(T::U8)),
            ("result_payload", T::option(T::bytes()))],
            None, &[&[0, 2], &[0, 1]], &[&[0, 2], &[0, 1]], None),
        spec("st_inbound_stream", &[("sender_identity", T::HASH), ("stream_id", T::U64), ("applied_prefix", T::U64)],
            None, &[&[0, 1]], &[&[0, 1]], None),
        spec("st_inbound_msg", &[("sender_identity", T::HASH), ("stream_id", T::U64), ("seq", T::U64),
            ("result_status", T::U8), ("result_payload", T::bytes())],
            None, &[&[0, 1, 2]], &[&[0, 1, 2]], None),
        spec("st_outbox", &[("table_id", T::U32), ("remote_reducer", T::String), ("target_column", T::U16),
            ("arg_columns", u16_list()), ("on_result_reducer", T::option(T::String)), ("signature_hash", T::String)],
            Some(0), &[&[0]], &[&[0]], None),
    ]
}

/// The schemas of all system tables, in order of ids.
pub fn system_tables() -> Vec<Arc<TableSchema>> {
    let (mut next_constraint, mut next_index) = (1, 1);
    let build = |(position, spec): (usize, Spec)| {
        let mut schema = spec.schema(position as u32 + 1, next_constraint, next_index);
        next_constraint += schema.constraints.len() as u32;
        next_index += schema.indexes.len() as u32;
        match schema.id {
            ST_OUTBOUND_MSG_ID => {
                // Its second key has the numbers behind those of the next tables.
                schema.constraints[1].id = LATE_CONSTRAINT_ID;
                schema.indexes[1].id = LATE_INDEX_ID;
                (next_constraint, next_index) = (next_constraint - 1, next_index - 1);
            }
            ST_INBOUND_MSG_ID => {
                (next_constraint, next_index) = (next_constraint + 1, next_index + 1);
            }
            _ => {}
        }
        Arc::new(schema)
    };
    specs().into_iter().enumerate().map(build).collect()
}

fn columns(positions: &[u16]) -> Vec<ColId> {
    positions.iter().map(|&position| ColId(position)).collect()
}

impl Spec {
    /// The schema with these ids; constraints and indexes are numbered from theirs on.
    fn schema(&self, id: u32, first_constraint: u32, first_index: u32) -> TableSchema {
        let constraints = (first_constraint..).zip(self.unique);
        let constraints = constraints.map(|(id, positions)| ConstraintSchema {
            id: ConstraintId(id),
            name: format!("{}_key", self.joined(positions)),
            columns: columns(positions),
        });
        let indexes = (first_index..).zip(self.indexes);
        let indexes = indexes.map(|(id, positions)| IndexSchema {
            id: IndexId(id),
            name: format!("{}_idx_btree", self.joined(positions)),
            accessor: None,
            algorithm: IndexAlgorithm::BTree(columns(positions)),
            unique: self.unique.contains(positions),
        });
        let sequences = self.sequence.iter().map(|&id| SequenceSchema {
            id: SequenceId(id),
            name: format!("{}_seq", self.joined(&[0])),
            column: ColId(0),
            start: SYSTEM_SEQUENCE_FIRST + 1,
            min_value: 1,
            max_value: i128::MAX,
            increment: 1,
        });
        let columns = self.columns.iter().map(|(name, ty)| ColumnSchema {
            name: (*name).to_owned(),
            accessor: None,
            ty: ty.clone(),
        });
        TableSchema {
            primary_key: self.primary_key.map(ColId),
            indexes: indexes.collect(),
            constraints: constraints.collect(),
            sequences: sequences.collect(),
            schedule: None,
            outbox: None,
            access: match self.name {
                "st_connection_credentials"
                | "st_env"
                | "st_outbound_stream"
                | "st_outbound_msg"
                | "st_inbound_stream"
                | "st_inbound_msg"
                | "st_outbox" => TableAccess::Private,
                _ => TableAccess::Public,
            },
            kind: TableKind::System,
            ..TableSchema::plain(TableId(id), self.name.to_owned(), columns.collect())
        }
    }

    /// The names of the table and of these columns, as names of its parts begin.
    fn joined(&self, positions: &[u16]) -> String {
        let mut joined = self.name.to_owned();
        for &position in positions {
            joined.push('_');
            joined.push_str(self.columns[usize::from(position)].0);
        }
        joined
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_ids_are_those_of_the_last_table_and_index() {
        let tables = system_tables();
        let indexes = tables.iter().flat_map(|table| &table.indexes);
        let last_index = indexes.map(|index| index.id.0).max();
        assert_eq!(last_index, Some(SYSTEM_INDEX_ID_MAX));
        let parts = tables[21..].iter().map(|table| {
            let constraints = table.constraints.iter().map(|part| part.id.0);
            let indexes = table.indexes.iter().map(|part| part.id.0);
            (constraints.collect(), indexes.collect())
        });
        let parts: Vec<(Vec<u32>, Vec<u32>)> = parts.collect();
        let expected = [
            (vec![27, 28], vec![31, 32]),
            (vec![29, 32], vec![33, 36]),
            (vec![30], vec![34]),
            (vec![31], vec![35]),
            (vec![33], vec![37]),
        ];
        assert_eq!(parts, expected);
        assert_eq!(
            tables.last().map(|table| table.id.0),
            Some(SYSTEM_TABLE_ID_MAX)
        );
    }
}
