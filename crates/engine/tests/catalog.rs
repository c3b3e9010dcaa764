//! System tables: bootstrap rows, row vectors (02 §11.4, §16.6), names and ids.

use crate::common::*;
use lightcone_engine::{system_tables, CommitOutput, Datastore, ModuleRecord, Replayer};
use lightcone_log::LogOffset;
use lightcone_types::bsatn::{Decode, Reader};
use lightcone_types::{AlgebraicType as T, AlgebraicValue as V, Hash, Identity, TableId};

fn hex(text: &str) -> Vec<u8> {
    (0..text.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&text[at..at + 2], 16).expect("hex"))
        .collect()
}

fn assert_row(datastore: &Datastore, table: u32, text: &str) {
    let rows = rows(datastore, TableId(table));
    assert!(
        rows.contains(&hex(text)),
        "table {table} has no row {text}, but {rows:02x?}"
    );
}

fn bootstrapped() -> Datastore {
    creating(&module(Vec::new()))
}

#[test]
fn bootstrap_rows() {
    let datastore = bootstrapped();
    let count = |table| rows(&datastore, TableId(table)).len();
    let counts: Vec<_> = (1..=26).map(count).collect();
    assert_eq!(
        counts[..5],
        [26, 102, 8, 37, 33],
        "tables, columns, sequences, indexes, constraints"
    );
    assert!(counts[5..].iter().all(|&count| count == 0), "no other rows");
}

/// The names of a system table's rows by id: its first column is the id and the one at `name_at` the name.
fn names(datastore: &Datastore, table: u32, skip: usize) -> Vec<(u32, String)> {
    let list = rows(datastore, TableId(table)).into_iter().map(|row| {
        let reader = &mut Reader::new(&row);
        let id = reader.read_u32().expect("an id");
        reader.read_slice(skip).expect("what is before the name");
        (id, reader.read_str().expect("a name").to_owned())
    });
    let mut list: Vec<_> = list.collect();
    list.sort();
    list
}

fn numbered(names: &[&str]) -> Vec<(u32, String)> {
    (1..)
        .zip(names.iter().map(|&name| name.to_owned()))
        .collect()
}

#[test]
fn bootstrap_names_and_ids() {
    let datastore = bootstrapped();
    let tables = [
        "st_table",
        "st_column",
        "st_sequence",
        "st_index",
        "st_constraint",
        "st_module",
        "st_client",
        "st_var",
        "st_scheduled",
        "st_row_level_security",
        "st_connection_credentials",
        "st_view",
        "st_view_param",
        "st_view_column",
        "st_view_sub",
        "st_view_arg",
        "st_event_table",
        "st_table_accessor",
        "st_index_accessor",
        "st_column_accessor",
        "st_env",
        "st_outbound_stream",
        "st_outbound_msg",
        "st_inbound_stream",
        "st_inbound_msg",
        "st_outbox",
    ];
    assert_eq!(names(&datastore, 1, 0), numbered(&tables));
    let constraints = [
        "st_table_table_id_key",
        "st_table_table_name_key",
        "st_column_table_id_col_pos_key",
        "st_sequence_sequence_id_key",
        "st_index_index_id_key",
        "st_constraint_constraint_id_key",
        "st_client_identity_connection_id_key",
        "st_var_name_key",
        "st_scheduled_schedule_id_key",
        "st_scheduled_table_id_key",
        "st_row_level_security_sql_key",
        "st_connection_credentials_connection_id_key",
        "st_view_view_id_key",
        "st_view_view_name_key",
        "st_view_param_view_id_param_pos_key",
        "st_view_column_view_id_col_pos_key",
        "st_view_arg_id_key",
        "st_view_arg_bytes_key",
        "st_event_table_table_id_key",
        "st_table_accessor_table_name_key",
        "st_table_accessor_accessor_name_key",
        "st_index_accessor_index_name_key",
        "st_index_accessor_accessor_name_key",
        "st_column_accessor_table_name_col_name_key",
        "st_column_accessor_table_name_accessor_name_key",
        "st_env_key_key",
        "st_outbound_stream_stream_id_key",
        "st_outbound_stream_outbox_table_id_target_identity_key",
        "st_outbound_msg_stream_id_seq_key",
        "st_inbound_stream_sender_identity_stream_id_key",
        "st_inbound_msg_sender_identity_stream_id_seq_key",
        "st_outbound_msg_stream_id_msg_id_key",
        "st_outbox_table_id_key",
    ];
    assert_eq!(names(&datastore, 5, 0), numbered(&constraints));
    let indexes = [
        "st_table_table_id_idx_btree",
        "st_table_table_name_idx_btree",
        "st_column_table_id_col_pos_idx_btree",
        "st_sequence_sequence_id_idx_btree",
        "st_index_index_id_idx_btree",
        "st_constraint_constraint_id_idx_btree",
        "st_client_identity_connection_id_idx_btree",
        "st_var_name_idx_btree",
        "st_scheduled_schedule_id_idx_btree",
        "st_scheduled_table_id_idx_btree",
        "st_row_level_security_table_id_idx_btree",
        "st_row_level_security_sql_idx_btree",
        "st_connection_credentials_connection_id_idx_btree",
        "st_view_view_id_idx_btree",
        "st_view_view_name_idx_btree",
        "st_view_param_view_id_param_pos_idx_btree",
        "st_view_column_view_id_col_pos_idx_btree",
        "st_view_sub_identity_idx_btree",
        "st_view_sub_has_subscribers_idx_btree",
        "st_view_sub_view_id_arg_id_identity_idx_btree",
        "st_view_arg_id_idx_btree",
        "st_view_arg_bytes_idx_btree",
        "st_event_table_table_id_idx_btree",
        "st_table_accessor_table_name_idx_btree",
        "st_table_accessor_accessor_name_idx_btree",
        "st_index_accessor_index_name_idx_btree",
        "st_index_accessor_accessor_name_idx_btree",
        "st_column_accessor_table_name_col_name_idx_btree",
        "st_column_accessor_table_name_accessor_name_idx_btree",
        "st_env_key_idx_btree",
        "st_outbound_stream_stream_id_idx_btree",
        "st_outbound_stream_outbox_table_id_target_identity_idx_btree",
        "st_outbound_msg_stream_id_seq_idx_btree",
        "st_inbound_stream_sender_identity_stream_id_idx_btree",
        "st_inbound_msg_sender_identity_stream_id_seq_idx_btree",
        "st_outbound_msg_stream_id_msg_id_idx_btree",
        "st_outbox_table_id_idx_btree",
    ];
    assert_eq!(names(&datastore, 4, 4), numbered(&indexes));
    for row in rows(&datastore, TableId(4)) {
        let reader = &mut Reader::new(&row[8..]);
        reader.read_str().expect("a name");
        assert_eq!(reader.read_u8(), Ok(1), "all are BTree");
    }
    let sequences = [
        "st_table_table_id_seq",
        "st_index_index_id_seq",
        "st_constraint_constraint_id_seq",
        "st_scheduled_schedule_id_seq",
        "st_sequence_sequence_id_seq",
        "st_view_view_id_seq",
        "st_view_arg_id_seq",
        "st_outbound_stream_stream_id_seq",
    ];
    assert_eq!(names(&datastore, 3, 0), numbered(&sequences));
    for row in rows(&datastore, TableId(3)) {
        let reader = &mut Reader::new(&row[4..]);
        reader.read_str().expect("a name");
        reader.read_u32().expect("a table");
        assert_eq!(reader.read_u16(), Ok(0), "column 0");
        let mut numbers = || reader.read_i128().expect("a number");
        let found = [numbers(), numbers(), numbers(), numbers(), numbers()];
        assert_eq!(
            found,
            [1, 4097, 1, i128::MAX, 4096],
            "increment, start, min, max, allocated"
        );
    }
}

/// Every definition of the code is what the rows of the catalog say.
#[test]
fn catalog_describes_system_tables() {
    let datastore = bootstrapped();
    for schema in system_tables() {
        assert_eq!(datastore.schema(schema.id), Some(&schema));
        assert_eq!(datastore.table_id_from_name(&schema.name), Some(schema.id));
        let columns = rows(&datastore, TableId(2))
            .into_iter()
            .filter(|row| row[..4] == schema.id.0.to_le_bytes());
        let mut columns: Vec<_> = columns
            .map(|row| {
                let reader = &mut Reader::new(&row[4..]);
                let position = reader.read_u16().expect("a position");
                let name = reader.read_str().expect("a name").to_owned();
                let ty = T::from_slice(reader.read_bytes().expect("a type")).expect("a type");
                (position, name, ty)
            })
            .collect();
        columns.sort_by_key(|column| column.0);
        let expected: Vec<_> = (0..)
            .zip(&schema.columns)
            .map(|(n, column)| (n, column.name.clone(), column.ty.clone()))
            .collect();
        assert_eq!(columns, expected);
    }
    assert_row(
        &datastore,
        1,
        "020000000900000073745f636f6c756d6e0600000073797374656d060000007075626c696301",
    );
}

#[test]
fn row_vectors() {
    let at = T::schedule_at();
    let mut datastore = creating(&module(vec![
        table(
            "person",
            &[
                ("id", T::U64),
                ("name", T::String),
                ("nick", T::option(T::String)),
            ],
        )
        .btree(&[0], true)
        .primary_key(0)
        .sequence(0),
        table("q", &[("a", T::U8)]),
        table("tick", &[("id", T::U64), ("at", at)])
            .btree(&[0], true)
            .schedule("tick_sched", "run_tick", 1),
    ]));
    insert(
        &mut datastore,
        "person",
        &[V::U64(0), "a".into(), V::none()],
    )
    .expect("inserted");
    datastore
        .commit(&mut CommitOutput::default())
        .expect("the record fits");
    assert_row(
        &datastore,
        1,
        "0010000006000000706572736f6e0400000075736572060000007075626c696300010000000000",
    );
    assert_row(&datastore, 2, "001000000100040000006e616d650100000004");
    assert_row(
        &datastore,
        2,
        "001000000200040000006e69636b1d00000001020000000004000000736f6d650400040000006e6f6e650200000000",
    );
    assert_row(
        &datastore,
        4,
        "001000000010000013000000706572736f6e5f69645f6964785f627472656501010000000000",
    );
    assert_row(
        &datastore,
        5,
        "001000000d000000706572736f6e5f69645f6b65790010000001010000000000",
    );
    assert_row(
        &datastore,
        3,
        "001000000d000000706572736f6e5f69645f736571001000000000010000000000000000000000000000000100000000000000000000\
         000000000001000000000000000000000000000000ffffffffffffffffffffffffffffff7f01100000000000000000000000000000",
    );
    // The vector has table 4098, which is `tick` here too.
    assert_row(
        &datastore,
        9,
        "00100000021000000800000072756e5f7469636b0a0000007469636b5f73636865640100",
    );
    for (table, text) in [
        (12, "00100000070000006c65616465727300031000000101"),
        (8, "09000000726f775f6c696d6974080500000000000000"),
    ] {
        datastore.begin();
        datastore
            .insert(TableId(table), &hex(text), &mut Vec::new())
            .expect("a row of the table");
        datastore
            .commit(&mut CommitOutput::default())
            .expect("the record fits");
        assert_row(&datastore, table, text);
    }
}

#[test]
fn index_row_vectors() {
    let direct = creating(&module(vec![
        table("p", &[("id", T::U8), ("slot", T::U8)]).direct(1, false)
    ]));
    assert_row(
        &direct,
        4,
        "001000000010000011000000705f736c6f745f6964785f646972656374020100",
    );
    let columns = [("id", T::U8), ("slot", T::U8), ("tag", T::U8)];
    let hash = creating(&module(vec![table("p", &columns).hash(&[2], false)]));
    assert_row(
        &hash,
        4,
        "00100000001000000e000000705f7461675f6964785f6861736803010000000200",
    );
}

#[test]
fn ids_of_user_objects() {
    let tables = || {
        module(vec![
            table("b", &[("x", T::U8)]).btree(&[0], true).sequence(0),
            table("a", &[("x", T::U8)]).btree(&[0], true).sequence(0),
        ])
    };
    let mut datastore = creating(&tables());
    let mut output = CommitOutput::default();
    datastore.commit(&mut output).expect("the record fits");
    for (name, id) in [("a", 4096), ("b", 4097)] {
        let schema = datastore.schema(TableId(id)).expect("the table exists");
        assert_eq!(
            (
                &schema.name[..],
                schema.indexes[0].id.0,
                schema.constraints[0].id.0,
                schema.sequences[0].id.0
            ),
            (name, id, id, id)
        );
    }
    // After a restart the counters go on at what was reserved (02 §11.1).
    let mut replayer = Replayer::new(Datastore::new(), LogOffset::FIRST);
    replayer
        .apply(LogOffset::FIRST, 1, &output.records)
        .expect("the record fits");
    let mut copy = replayer.finish().expect("a good catalog");
    assert_same(&datastore, &copy);
    copy.begin();
    copy.create_tables(&module(vec![table("c", &[("x", T::U8)])]))
        .expect("the name is free");
    assert_eq!(copy.table_id_from_name("c"), Some(TableId(8192)));
    // Without a restart they just go on.
    datastore.begin();
    datastore
        .create_tables(&module(vec![table("c", &[("x", T::U8)])]))
        .expect("the name is free");
    assert_eq!(datastore.table_id_from_name("c"), Some(TableId(4098)));
}

#[test]
fn rolled_back_tables_are_gone() {
    let mut datastore = creating(&module(vec![table("a", &[("x", T::U8)]).btree(&[0], true)]));
    let mut output = CommitOutput::default();
    datastore.commit(&mut output).expect("the record fits");
    let before = state(&datastore);
    datastore.begin();
    datastore
        .create_tables(&module(vec![table("c", &[("x", T::U8)])
            .btree(&[0], true)
            .sequence(0)]))
        .expect("free");
    insert(&mut datastore, "c", &[V::U8(0)]).expect("inserted");
    let index = index_id(&datastore, "c_x_idx_btree");
    datastore.rollback();
    assert_eq!(datastore.table_id_from_name("c"), None);
    assert_eq!(datastore.index_id_from_name("c_x_idx_btree"), None);
    datastore.begin();
    assert!(datastore
        .index_scan_point(index, &[1], &mut Default::default())
        .is_err());
    datastore.rollback();
    assert_eq!(state(&datastore), before);
}

#[test]
fn accessors_and_canonical_names() {
    let mut def = module(vec![
        table("a", &[("x", T::U8)]).btree(&[0], true),
        table("b", &[("x", T::U8)]),
    ]);
    def.tables[0].source_name = "b".into();
    def.tables[0].indexes[0].source_name = "ByX".into();
    def.tables[0].columns[0].source_name = "X".into();
    def.tables[1].source_name = "Other".into();
    let mut datastore = creating(&def);
    let mut output = CommitOutput::default();
    datastore.commit(&mut output).expect("the record fits");
    let mut replayer = Replayer::new(Datastore::new(), LogOffset::FIRST);
    replayer
        .apply(LogOffset::FIRST, 1, &output.records)
        .expect("the record fits");
    let copy = replayer.finish().expect("a good catalog");
    for datastore in [&datastore, &copy] {
        assert_eq!(datastore.table_id_from_name("a"), Some(TableId(4096)));
        assert_eq!(
            datastore.table_id_from_name("b"),
            Some(TableId(4097)),
            "canonical names go first"
        );
        assert_eq!(datastore.table_id_from_name("Other"), Some(TableId(4097)));
        assert_eq!(
            datastore.index_id_from_name("ByX"),
            datastore.index_id_from_name("a_x_idx_btree")
        );
        assert_eq!(
            datastore.schema(TableId(4096)).expect("exists").columns[0]
                .accessor
                .as_deref(),
            Some("X")
        );
    }
    assert_same(&datastore, &copy);
}

#[test]
fn module_record_is_replaced() {
    let mut datastore = bootstrapped();
    let mut record = ModuleRecord {
        database_identity: Identity::from_le_bytes([1; 32]),
        owner_identity: Identity::from_le_bytes([2; 32]),
        program_kind: 0,
        program_hash: Hash([3; 32]),
        program: vec![4; 100_000],
    };
    datastore
        .set_module_record(&record)
        .expect("in a transaction");
    datastore
        .commit(&mut CommitOutput::default())
        .expect("the record fits");
    assert_eq!(datastore.module_record().as_ref(), Some(&record));
    record.program = vec![5; 10];
    record.program_kind = 1;
    datastore.begin();
    datastore
        .set_module_record(&record)
        .expect("in a transaction");
    datastore
        .commit(&mut CommitOutput::default())
        .expect("the record fits");
    assert_eq!(datastore.module_record().as_ref(), Some(&record));
    assert_eq!(rows(&datastore, TableId(6)).len(), 1);
}
