//! Server messages: the vectors of spec 05 §16.2, §16.3, §16.5 and 09 §8.4, written by the
//! writers, decoded, and encoded again.

mod common;

use common::{connection_id, hex, identity, person, score, TIMESTAMP};
use lightcone_types::{Encode, Reader, TimeDuration, Timestamp};
use lightcone_wire::rows::{row_list, row_list_fixed};
use lightcone_wire::{
    server, skip_server_message, Error, ProcedureStatus, QueryRows, QuerySetUpdate, ReducerOutcome,
    RowList, RowListWriter, RowSize, ServerMessage, SingleTableRows, TableUpdate, TableUpdateRows,
};

const SCORE: RowSize = RowSize::Fixed(5);
const PERSON: RowSize = RowSize::Variable;

/// The written bytes are the vector's, and they decode to `message`.
fn check(write: impl FnOnce(&mut Vec<u8>), message: ServerMessage, vector: &str) {
    let vector = hex(vector);
    // Writers append: what is already there stays.
    let mut out = vec![0xaa];
    write(&mut out);
    assert_eq!(out[0], 0xaa);
    assert_eq!(out[1..], vector, "written {message:?}");
    let mut reader = Reader::new(&vector);
    assert_eq!(ServerMessage::decode(&mut reader).unwrap(), message);
    assert!(reader.is_empty());
    assert_eq!(message.to_vec(), vector);
    let mut reader = Reader::new(&vector);
    skip_server_message(&mut reader).unwrap();
    assert!(reader.is_empty());
}

fn list(rows: &[Vec<u8>]) -> RowList {
    RowList::from_rows(rows.iter().map(Vec::as_slice))
}

fn push_all(mut writer: RowListWriter<'_>, rows: &[Vec<u8>]) {
    for row in rows {
        writer.push(row);
    }
    assert_eq!(writer.finish().unwrap() as usize, rows.len());
}

fn scores() -> Vec<Vec<u8>> {
    vec![score(1, 10), score(2, 20)]
}

fn persons() -> Vec<Vec<u8>> {
    vec![person(1, "Alice"), person(2, "Bob")]
}

fn table(name: &str, rows: &[Vec<u8>]) -> SingleTableRows {
    SingleTableRows {
        table: name.into(),
        rows: list(rows),
    }
}

fn update(name: &str, rows: Vec<TableUpdateRows>) -> TableUpdate {
    TableUpdate {
        table_name: name.into(),
        rows,
    }
}

fn persistent(inserts: &[Vec<u8>], deletes: &[Vec<u8>]) -> TableUpdateRows {
    TableUpdateRows::Persistent {
        inserts: list(inserts),
        deletes: list(deletes),
    }
}

#[test]
fn row_lists() {
    let cases: [(RowSize, Vec<Vec<u8>>, &str); 6] = [
        (SCORE, scores(), "00 0500 0a000000 010000000a 0200000014"),
        (
            PERSON,
            persons(),
            "01 02000000 0000000000000000 0d00000000000000 18000000 \
             01000000 05000000 416c696365 02000000 03000000 426f62",
        ),
        (
            PERSON,
            vec![person(1, "Alice")],
            "00 0d00 0d000000 01000000 05000000 416c696365",
        ),
        (
            PERSON,
            vec![person(1, "Alice"), person(4, "Carol")],
            "00 0d00 1a000000 01000000 05000000 416c696365 04000000 05000000 4361726f6c",
        ),
        (PERSON, vec![], "01 00000000 00000000"),
        (
            RowSize::new(Some(0)),
            vec![vec![], vec![], vec![]],
            "01 03000000 0000000000000000 0000000000000000 0000000000000000 00000000",
        ),
    ];
    for (size, rows, vector) in cases {
        let vector = hex(vector);
        let mut pushed = vec![1, 2, 3];
        push_all(RowListWriter::new(&mut pushed), &rows);
        assert_eq!(pushed[3..], vector);
        let mut walked = Vec::new();
        let count = row_list(&mut walked, size, rows.iter().map(Vec::as_slice)).unwrap();
        assert_eq!((walked, count as usize), (vector.clone(), rows.len()));
        let mut reader = Reader::new(&vector);
        let decoded = RowList::decode(&mut reader).unwrap();
        assert!(reader.is_empty());
        assert_eq!(decoded.iter().collect::<Vec<_>>(), rows);
        assert_eq!(decoded, list(&rows));
        assert_eq!(decoded.to_vec(), vector);
    }
    let mut out = Vec::new();
    assert_eq!(row_list_fixed(&mut out, 5, &scores().concat()), Ok(2));
    assert_eq!(out, hex("00 0500 0a000000 010000000a 0200000014"));
}

#[test]
fn row_sizes_that_the_hint_cannot_express() {
    assert_eq!(RowSize::new(None), RowSize::Variable);
    assert_eq!(RowSize::new(Some(0)), RowSize::Variable);
    assert_eq!(RowSize::new(Some(65_535)), RowSize::Fixed(65_535));
    assert_eq!(RowSize::new(Some(65_536)), RowSize::Variable);
    let rows = vec![vec![1; 65_536], vec![2; 65_536]];
    let mut out = Vec::new();
    push_all(RowListWriter::new(&mut out), &rows);
    assert_eq!(out[0], 1, "rows longer than 65535 bytes have offsets");
    let decoded = RowList::decode(&mut Reader::new(&out)).unwrap();
    assert_eq!(decoded.iter().collect::<Vec<_>>(), rows);
}

#[test]
fn a_dropped_row_writer_leaves_no_rows() {
    let mut out = vec![7];
    let mut writer = RowListWriter::new(&mut out);
    writer.push(&[1, 2, 3]);
    drop(writer);
    assert_eq!(out, hex("07 01 00000000 00000000"));
}

#[test]
fn bulk_rows_and_single_rows_mix() {
    let mut out = Vec::new();
    let mut writer = RowListWriter::new(&mut out);
    writer.push_many(5, &scores().concat());
    writer.push_with(|out| out.extend(person(1, "Alice")));
    writer.push_many(5, &scores().concat());
    writer.push_many(5, &[]);
    assert_eq!((writer.rows(), writer.data_bytes()), (5, 33));
    writer.finish().unwrap();
    let rows = [scores(), vec![person(1, "Alice")], scores()].concat();
    assert_eq!(
        RowList::decode(&mut Reader::new(&out)).unwrap(),
        list(&rows)
    );
}

#[test]
fn inconsistent_row_lists_are_refused() {
    let refused = |vector: &str| RowList::decode(&mut Reader::new(&hex(vector))).unwrap_err();
    for (vector, text) in [
        ("00 0000 00000000", "fixed row size is 0"),
        (
            "00 0500 06000000 000000000000",
            "data is not a whole number of rows",
        ),
        (
            "01 01000000 0100000000000000 02000000 0000",
            "first offset is not 0",
        ),
        (
            "01 03000000 0000000000000000 0200000000000000 0100000000000000 02000000 0000",
            "offsets do not ascend",
        ),
        (
            "01 02000000 0000000000000000 0300000000000000 02000000 0000",
            "offset is beyond the data",
        ),
        ("01 00000000 01000000 00", "data without offsets"),
    ] {
        assert_eq!(refused(vector), Error::RowList(text));
    }
    assert_eq!(
        refused("01 ffffffff 00000000").to_string(),
        "data too short for [u8]: Expected 34359738360, given 4"
    );
    assert_eq!(
        refused("02").to_string(),
        "unknown tag 0x2 for sum type RowSizeHint"
    );
}

#[test]
fn connection_and_subscriptions() {
    check(
        |out| server::initial_connection(out, identity(), connection_id(), "tok"),
        ServerMessage::InitialConnection {
            identity: identity(),
            connection_id: connection_id(),
            token: "tok".into(),
        },
        "00 1d1c1b1a191817161514131211100f0e0d0c0b0a0908070605040302010000c2 \
         0f0e0d0c0b0a09080706050403020100 03000000 746f6b",
    );
    check(
        |out| {
            let mut tables = server::subscribe_applied(out, 1, 7);
            push_all(tables.table("score"), &scores());
            push_all(tables.table("person"), &persons());
            assert_eq!(tables.len(), 2);
        },
        ServerMessage::SubscribeApplied {
            request_id: 1,
            query_set_id: 7,
            rows: QueryRows {
                tables: vec![table("score", &scores()), table("person", &persons())],
            },
        },
        "01 01000000 07000000 02000000 \
         05000000 73636f7265   00 0500 0a000000 010000000a 0200000014 \
         06000000 706572736f6e 01 02000000 0000000000000000 0d00000000000000 18000000 \
                               01000000 05000000 416c696365 02000000 03000000 426f62",
    );
    check(
        |out| assert!(server::subscribe_applied(out, 1, 7).is_empty()),
        ServerMessage::SubscribeApplied {
            request_id: 1,
            query_set_id: 7,
            rows: QueryRows::default(),
        },
        "01 01000000 07000000 00000000",
    );
    check(
        |out| {
            let mut entry = Vec::new();
            "score".encode(&mut entry);
            row_list_fixed(&mut entry, 5, &scores().concat()).unwrap();
            server::unsubscribe_applied(out, 2, 7).encoded(&entry, 1);
        },
        ServerMessage::UnsubscribeApplied {
            request_id: 2,
            query_set_id: 7,
            rows: Some(QueryRows {
                tables: vec![table("score", &scores())],
            }),
        },
        "02 02000000 07000000 00 01000000 05000000 73636f7265 00 0500 0a000000 010000000a 0200000014",
    );
    check(
        |out| server::unsubscribe_applied_without_rows(out, 2, 7),
        ServerMessage::UnsubscribeApplied {
            request_id: 2,
            query_set_id: 7,
            rows: None,
        },
        "02 02000000 07000000 01",
    );
    for (request_id, vector) in [
        (Some(1), "03 00 01000000 07000000 03000000 626164"),
        (None, "03 01 07000000 03000000 626164"),
    ] {
        check(
            |out| server::subscription_error(out, request_id, 7, "bad"),
            ServerMessage::SubscriptionError {
                request_id,
                query_set_id: 7,
                error: "bad".into(),
            },
            vector,
        );
    }
}

fn insert_alice(mut sets: server::QuerySetsWriter<'_>) {
    let mut tables = sets.query_set(7);
    let mut update = tables.table("person");
    let alice = person(1, "Alice");
    update.persistent().inserts(PERSON, [&alice[..]]).unwrap();
}

fn alice_inserted() -> Vec<QuerySetUpdate> {
    vec![QuerySetUpdate {
        query_set_id: 7,
        tables: vec![update(
            "person",
            vec![persistent(&[person(1, "Alice")], &[])],
        )],
    }]
}

#[test]
fn transaction_updates() {
    check(
        |out| insert_alice(server::transaction_update(out)),
        ServerMessage::TransactionUpdate {
            query_sets: alice_inserted(),
        },
        "04 01000000 07000000 01000000 06000000 706572736f6e 01000000 \
         00 00 0d00 0d000000 01000000 05000000 416c696365 01 00000000 00000000",
    );
    check(
        |out| {
            let mut sets = server::transaction_update(out);
            push_all(sets.query_set(7).table("boom").events(), &scores());
            assert_eq!(sets.len(), 1);
        },
        ServerMessage::TransactionUpdate {
            query_sets: vec![QuerySetUpdate {
                query_set_id: 7,
                tables: vec![update(
                    "boom",
                    vec![TableUpdateRows::Event {
                        events: list(&scores()),
                    }],
                )],
            }],
        },
        "04 01000000 07000000 01000000 04000000 626f6f6d 01000000 01 \
         00 0500 0a000000 010000000a 0200000014",
    );
}

#[test]
fn transaction_update_of_two_sets() {
    let (old, new, boom) = (score(1, 10), score(1, 11), score(9, 1));
    let changed = persistent(std::slice::from_ref(&new), std::slice::from_ref(&old));
    check(
        |out| {
            let mut entry = Vec::new();
            let mut rows = server::persistent_rows(&mut entry);
            rows.inserts(SCORE, [&new[..]]).unwrap();
            rows.deletes(SCORE, [&old[..]]).unwrap();

            let mut sets = server::transaction_update(out);
            let mut tables = sets.query_set(0);
            push_all(tables.table("boom").events(), std::slice::from_ref(&boom));
            tables.table("score").encoded(&entry, 1);
            let mut tables = sets.query_set(1);
            let mut update = tables.table("score");
            update.encoded(&entry, 1);
            update.persistent().inserts(SCORE, [&new[..]]).unwrap();
        },
        ServerMessage::TransactionUpdate {
            query_sets: vec![
                QuerySetUpdate {
                    query_set_id: 0,
                    tables: vec![
                        update(
                            "boom",
                            vec![TableUpdateRows::Event {
                                events: list(std::slice::from_ref(&boom)),
                            }],
                        ),
                        update("score", vec![changed.clone()]),
                    ],
                },
                QuerySetUpdate {
                    query_set_id: 1,
                    tables: vec![update(
                        "score",
                        vec![changed, persistent(std::slice::from_ref(&new), &[])],
                    )],
                },
            ],
        },
        "04 02000000
         00000000 02000000
            04000000 626f6f6d   01000000 01 00 0500 05000000 0900000001
            05000000 73636f7265 01000000 00 00 0500 05000000 010000000b 00 0500 05000000 010000000a
         01000000 01000000
            05000000 73636f7265 02000000 00 00 0500 05000000 010000000b 00 0500 05000000 010000000a
                                         00 00 0500 05000000 010000000b 01 00000000 00000000",
    );
}

#[test]
fn deletes_alone() {
    let mut out = Vec::new();
    let gone = score(1, 10);
    let mut rows = server::persistent_rows(&mut out);
    rows.deletes(SCORE, [&gone[..]]).unwrap();
    assert_eq!(out, persistent(&[], &[gone]).to_vec());
}

#[test]
fn results() {
    check(
        |out| push_all(server::one_off_query_ok(out, 3).table("score"), &scores()),
        ServerMessage::OneOffQueryResult {
            request_id: 3,
            result: Ok(QueryRows {
                tables: vec![table("score", &scores())],
            }),
        },
        "05 03000000 00 01000000 05000000 73636f7265 00 0500 0a000000 010000000a 0200000014",
    );
    check(
        |out| server::one_off_query_err(out, 3, "bad"),
        ServerMessage::OneOffQueryResult {
            request_id: 3,
            result: Err("bad".into()),
        },
        "05 03000000 01 03000000 626164",
    );
    let reducer = |result| ServerMessage::ReducerResult {
        request_id: 4,
        timestamp: TIMESTAMP,
        result,
    };
    check(
        |out| insert_alice(server::reducer_result_ok(out, 4, TIMESTAMP, &[])),
        reducer(ReducerOutcome::Ok {
            ret_value: vec![],
            query_sets: alice_inserted(),
        }),
        "06 04000000 00401e18240a0600 00 00000000 01000000 07000000 01000000 06000000 706572736f6e \
         01000000 00 00 0d00 0d000000 01000000 05000000 416c696365 01 00000000 00000000",
    );
    check(
        |out| assert!(server::reducer_result_ok(out, 4, TIMESTAMP, &[]).is_empty()),
        reducer(ReducerOutcome::Ok {
            ret_value: vec![],
            query_sets: vec![],
        }),
        "06 04000000 00401e18240a0600 00 00000000 00000000",
    );
    check(
        |out| {
            server::reducer_result_ok(out, 4, TIMESTAMP, &[1, 2]);
        },
        reducer(ReducerOutcome::Ok {
            ret_value: vec![1, 2],
            query_sets: vec![],
        }),
        "06 04000000 00401e18240a0600 00 02000000 0102 00000000",
    );
    check(
        |out| server::reducer_result_ok_empty(out, 4, TIMESTAMP),
        reducer(ReducerOutcome::OkEmpty),
        "06 04000000 00401e18240a0600 01",
    );
    check(
        |out| server::reducer_result_err(out, 4, TIMESTAMP, "nope"),
        reducer(ReducerOutcome::Err(hex("04000000 6e6f7065"))),
        "06 04000000 00401e18240a0600 02 08000000 04000000 6e6f7065",
    );
    assert_eq!(
        ReducerOutcome::error_text(&hex("04000000 6e6f7065")),
        "nope"
    );
    assert_eq!(ReducerOutcome::error_text(b"no"), "no");
    check(
        |out| server::reducer_result_internal_error(out, 4, TIMESTAMP, "no such reducer"),
        reducer(ReducerOutcome::InternalError("no such reducer".into())),
        "06 04000000 00401e18240a0600 03 0f000000 6e6f20737563682072656475636572",
    );
    check(
        |out| {
            let took = TimeDuration(1500);
            server::procedure_result_returned(out, 6, TIMESTAMP, took, &[42, 0, 0, 0])
        },
        ServerMessage::ProcedureResult {
            status: ProcedureStatus::Returned(vec![42, 0, 0, 0]),
            timestamp: TIMESTAMP,
            total_host_execution_duration: TimeDuration(1500),
            request_id: 6,
        },
        "07 00 04000000 2a000000 00401e18240a0600 dc05000000000000 06000000",
    );
    check(
        |out| server::procedure_result_internal_error(out, 6, "no such procedure"),
        ServerMessage::ProcedureResult {
            status: ProcedureStatus::InternalError("no such procedure".into()),
            timestamp: Timestamp(0),
            total_host_execution_duration: TimeDuration(0),
            request_id: 6,
        },
        "07 01 11000000 6e6f20737563682070726f636564757265 0000000000000000 0000000000000000 06000000",
    );
}

#[test]
fn replies_to_the_benchmark_client() {
    let vector = hex("060000000000401e18240a060001
         060100000000401e18240a0600021600000012000000696e73756666696369656e745f66756e6473
         060200000000401e18240a0600000000000000000000");
    let mut out = Vec::new();
    server::reducer_result_ok_empty(&mut out, 0, TIMESTAMP);
    server::reducer_result_err(&mut out, 1, TIMESTAMP, "insufficient_funds");
    server::reducer_result_ok(&mut out, 2, TIMESTAMP, &[]);
    assert_eq!(out, vector);
}

#[test]
fn captured_from_the_reference() {
    let decode = |vector: &str| {
        let payload = hex(vector);
        let body = lightcone_wire::payload::decode_body(&payload, 1 << 20).unwrap();
        let mut reader = Reader::new(&body);
        let message = ServerMessage::decode(&mut reader).unwrap();
        assert!(reader.is_empty());
        assert_eq!(message.to_vec(), *body);
        message
    };
    assert_eq!(
        decode("00 06 04000000 d8e48178c6600600 02 08000000 04000000 6e6f7065"),
        ServerMessage::ReducerResult {
            request_id: 4,
            timestamp: Timestamp(i64::from_le_bytes(*b"\xd8\xe4\x81\x78\xc6\x60\x06\x00")),
            result: ReducerOutcome::Err(hex("04000000 6e6f7065")),
        }
    );
    decode("00 06 04000000 18bd8378c6600600 03 0f000000 6e6f20737563682072656475636572");
    decode("00 01 01000000 07000000 00000000");
    let empty = decode("00 05 03000000 00 01000000 06000000 706572736f6e 01 00000000 00000000");
    assert_eq!(
        empty,
        ServerMessage::OneOffQueryResult {
            request_id: 3,
            result: Ok(QueryRows {
                tables: vec![table("person", &[])],
            }),
        }
    );
    decode(
        "00 06 06000000 78478978c6600600 00 00000000 01000000 07000000 01000000 04000000 626f6f6d \
         01000000 01 00 0500 05000000 0900000001",
    );
}
