//! Server messages: the vectors of 05 §16.2, §16.3, §16.5 and 09 §8.4, written by the
//! writers, decoded, and encoded again.

use crate::common::read::Tables;
use crate::common::{connection_id, hex, identity, person, row_list as list, score, TIMESTAMP};
use lightcone_types::{Encode, Reader, TimeDuration, Timestamp};
use lightcone_vectors::{each, each_but, from_hex, named, sections_are, Entry};
use lightcone_wire::rows::row_list;
use lightcone_wire::{
    server, skip_server_message, ClientMessage, Error, ProcedureStatus, QueryRows, QuerySetUpdate,
    ReducerOutcome, RowList, RowListSize, RowSize, ServerMessage, SingleTableRows,
    SubscribeSetResult, TableUpdate, TableUpdateRows,
};

const SCORE: RowSize = RowSize::Fixed(5);
const PERSON: RowSize = RowSize::Variable;

const FILE: &str = "05-server-messages.json";
const ROW_LISTS: &str = "05-row-lists.json";
const CAPTURED: &str = "05-captured.json";

/// The written bytes are those of the vector of a name, and they decode to `message`.
fn check(write: impl FnOnce(&mut Vec<u8>), message: ServerMessage, name: &str) {
    let vector = named(FILE, "vectors", name).hex();
    // Writers append: what is already there stays.
    let mut out = vec![0xaa];
    write(&mut out);
    assert_eq!(out[0], 0xaa);
    assert_eq!(out[1..], vector, "written {message:?}");
    check_decoding(&vector, &message);
}

fn check_decoding(bytes: &[u8], message: &ServerMessage) {
    let mut reader = Reader::new(bytes);
    assert_eq!(&ServerMessage::decode(&mut reader).unwrap(), message);
    assert!(reader.is_empty());
    assert_eq!(message.to_vec(), bytes);
    let mut reader = Reader::new(bytes);
    skip_server_message(&mut reader).unwrap();
    assert!(reader.is_empty());
}

/// The further tests write the same messages with the writers that the server has.
#[test]
fn vectors_decode_and_encode() {
    sections_are(FILE, &["tables", "vectors"]);
    let tables = Tables::of(FILE);
    each(FILE, "vectors", |entry| {
        let message = tables.server_message(&entry.0["message"]);
        check_decoding(&entry.hex(), &message);
    });
}

fn slices(rows: &[Vec<u8>]) -> impl Iterator<Item = &[u8]> + Clone {
    rows.iter().map(Vec::as_slice)
}

/// A `SingleTableRows` as the server writes it.
fn entry(name: &str, rows: &[Vec<u8>]) -> Vec<u8> {
    let mut out = name.to_vec();
    let count = row_list(&mut out, RowSize::Variable, slices(rows)).unwrap();
    assert_eq!(count as usize, rows.len());
    out
}

/// A `TableUpdateRows` of a stored table as the server writes it.
fn stored(size: RowSize, inserts: &[Vec<u8>], deletes: &[Vec<u8>]) -> Vec<u8> {
    let mut out = Vec::new();
    server::persistent_rows(&mut out, size, slices(inserts), slices(deletes)).unwrap();
    out
}

/// The same of an event table.
fn events(size: RowSize, rows: &[Vec<u8>]) -> Vec<u8> {
    let mut out = Vec::new();
    server::event_rows(&mut out, size, slices(rows)).unwrap();
    out
}

/// A `QuerySetUpdate` of tables with their entries.
fn query_set(id: u32, tables: &[(&str, &[Vec<u8>])]) -> Vec<u8> {
    let mut out = (id, tables.len() as u32).to_vec();
    for (name, entries) in tables {
        (name, entries.len() as u32).encode(&mut out);
        out.extend(entries.concat());
    }
    out
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

fn check_row_list(size: RowSize, rows: &[Vec<u8>], vector: &[u8]) {
    let mut pushed = vec![1, 2, 3];
    let mut counted = RowListSize::default();
    rows.iter().for_each(|row| counted.add(row.len()));
    let mut sized = counted.begin(&mut pushed).unwrap();
    rows.iter().for_each(|row| sized.push(&mut pushed, row));
    assert!(sized.is_complete());
    assert_eq!(pushed[3..], *vector);
    let mut walked = Vec::new();
    let count = row_list(&mut walked, size, slices(rows)).unwrap();
    assert_eq!((&walked[..], count as usize), (vector, rows.len()));
    let mut reader = Reader::new(vector);
    let decoded = RowList::decode(&mut reader).unwrap();
    assert!(reader.is_empty());
    assert_eq!(decoded.iter().collect::<Vec<_>>(), rows);
    assert_eq!(decoded, list(rows));
    assert_eq!(decoded.to_vec(), vector);
}

#[test]
fn row_lists() {
    sections_are(ROW_LISTS, &["tables", "vectors"]);
    let tables = Tables::of(ROW_LISTS);
    each(ROW_LISTS, "vectors", |entry| {
        let rows: Vec<Vec<u8>> = (entry.list("row_hex").iter())
            .map(|row| from_hex(row.as_str().expect("hex")))
            .collect();
        if let Some(table) = entry.0["table"].as_str() {
            let values = entry.list("rows").iter();
            let encoded: Vec<_> = values.map(|row| tables.row(table, row)).collect();
            assert_eq!(encoded, rows);
        }
        let size = entry.0["row_size"].as_u64().map(|size| size as usize);
        check_row_list(RowSize::new(size), &rows, &entry.hex());
    });
    let mut out = Vec::new();
    assert_eq!(row_list(&mut out, SCORE, slices(&scores())), Ok(2));
    assert_eq!(out, named(ROW_LISTS, "vectors", "fixed_size_rows").hex());
}

#[test]
fn row_sizes_that_the_hint_cannot_express() {
    assert_eq!(RowSize::new(None), RowSize::Variable);
    assert_eq!(RowSize::new(Some(0)), RowSize::Variable);
    assert_eq!(RowSize::new(Some(65_535)), RowSize::Fixed(65_535));
    assert_eq!(RowSize::new(Some(65_536)), RowSize::Variable);
    let rows = vec![vec![1; 65_536], vec![2; 65_536]];
    let mut out = Vec::new();
    assert_eq!(row_list(&mut out, RowSize::Variable, slices(&rows)), Ok(2));
    assert_eq!(out[0], 1, "rows longer than 65535 bytes have offsets");
    let decoded = RowList::decode(&mut Reader::new(&out)).unwrap();
    assert_eq!(decoded.iter().collect::<Vec<_>>(), rows);
}

#[test]
fn a_list_of_no_rows_is_the_same_for_all_sizes() {
    for size in [SCORE, PERSON] {
        let mut out = vec![7];
        assert_eq!(row_list(&mut out, size, []), Ok(0));
        assert_eq!(out, hex("07 01 00000000 00000000"));
    }
}

#[test]
fn bulk_rows_and_single_rows_mix() {
    let rows = [scores(), vec![person(1, "Alice")], scores()].concat();
    let mut size = RowListSize::default();
    size.add_many(2, 5);
    size.add(rows[2].len());
    size.add_many(2, 5);
    size.add_many(0, 5);
    // The head of a list with offsets, five offsets, the data.
    assert_eq!((size.rows(), size.encoded_bytes()), (5, 9 + 5 * 8 + 33));
    let mut out = Vec::new();
    let mut sized = size.begin(&mut out).unwrap();
    rows.iter().for_each(|row| sized.push(&mut out, row));
    assert!(sized.is_complete());
    assert_eq!(out.len(), size.encoded_bytes());
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
        "initial_connection",
    );
    check(
        |out| {
            server::subscribe_applied(out, 1, 7, 2);
            out.extend(entry("score", &scores()));
            out.extend(entry("person", &persons()));
        },
        ServerMessage::SubscribeApplied {
            request_id: 1,
            query_set_id: 7,
            rows: QueryRows {
                tables: vec![table("score", &scores()), table("person", &persons())],
            },
        },
        "subscribe_applied",
    );
    check(
        |out| server::subscribe_applied(out, 1, 7, 0),
        ServerMessage::SubscribeApplied {
            request_id: 1,
            query_set_id: 7,
            rows: QueryRows::default(),
        },
        "subscribe_applied_without_tables",
    );
    check(
        |out| {
            server::unsubscribe_applied(out, 2, 7, 1);
            out.extend(entry("score", &scores()));
        },
        ServerMessage::UnsubscribeApplied {
            request_id: 2,
            query_set_id: 7,
            rows: Some(QueryRows {
                tables: vec![table("score", &scores())],
            }),
        },
        "unsubscribe_applied",
    );
    check(
        |out| server::unsubscribe_applied_without_rows(out, 2, 7),
        ServerMessage::UnsubscribeApplied {
            request_id: 2,
            query_set_id: 7,
            rows: None,
        },
        "unsubscribe_applied_without_rows",
    );
    for (request_id, vector) in [
        (Some(1), "subscription_error"),
        (None, "late_subscription_error"),
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

fn insert_alice() -> Vec<u8> {
    query_set(
        7,
        &[("person", &[stored(PERSON, &[person(1, "Alice")], &[])])],
    )
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
        |out| server::transaction_update(out, &insert_alice(), 1),
        ServerMessage::TransactionUpdate {
            query_sets: alice_inserted(),
        },
        "transaction_update",
    );
    check(
        |out| {
            let set = query_set(7, &[("boom", &[events(PERSON, &scores())])]);
            server::transaction_update(out, &set, 1);
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
        "transaction_update_event_table",
    );
}

#[test]
fn transaction_update_of_two_sets() {
    let (old, new, boom) = (score(1, 10), score(1, 11), score(9, 1));
    let changed = persistent(std::slice::from_ref(&new), std::slice::from_ref(&old));
    check(
        |out| {
            let (old, new) = (std::slice::from_ref(&old), std::slice::from_ref(&new));
            let entry = stored(SCORE, new, old);
            let boom = events(SCORE, std::slice::from_ref(&boom));
            let mut sets = query_set(
                0,
                &[("boom", &[boom]), ("score", std::slice::from_ref(&entry))],
            );
            sets.extend(query_set(
                1,
                &[("score", &[entry, stored(SCORE, new, &[])])],
            ));
            server::transaction_update(out, &sets, 2);
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
        "transaction_update_two_sets",
    );
}

#[test]
fn deletes_alone() {
    let gone = [score(1, 10)];
    assert_eq!(stored(SCORE, &[], &gone), persistent(&[], &gone).to_vec());
}

#[test]
fn results() {
    check(
        |out| {
            server::one_off_query_ok(out, 3, 1);
            out.extend(entry("score", &scores()));
        },
        ServerMessage::OneOffQueryResult {
            request_id: 3,
            result: Ok(QueryRows {
                tables: vec![table("score", &scores())],
            }),
        },
        "one_off_query_result",
    );
    check(
        |out| server::one_off_query_err(out, 3, "bad"),
        ServerMessage::OneOffQueryResult {
            request_id: 3,
            result: Err("bad".into()),
        },
        "one_off_query_result_error",
    );
    let set = |query_set_id, outcome| SubscribeSetResult {
        query_set_id,
        outcome,
    };
    check(
        |out| {
            server::subscribe_batch_applied(out, 8, 3);
            server::set_applied(out, 7, 1);
            out.extend(entry("score", &scores()));
            server::set_applied(out, 8, 0);
            server::set_error(out, 9, "bad");
        },
        ServerMessage::SubscribeBatchApplied {
            request_id: 8,
            results: vec![
                set(
                    7,
                    Ok(QueryRows {
                        tables: vec![table("score", &scores())],
                    }),
                ),
                set(8, Ok(QueryRows::default())),
                set(9, Err("bad".into())),
            ],
        },
        "subscribe_batch_applied",
    );
    let reducer = |result| ServerMessage::ReducerResult {
        request_id: 4,
        timestamp: TIMESTAMP,
        result,
    };
    check(
        |out| server::reducer_result_ok(out, 4, TIMESTAMP, &[], (&insert_alice(), 1)),
        reducer(ReducerOutcome::Ok {
            ret_value: vec![],
            query_sets: alice_inserted(),
        }),
        "reducer_result_ok",
    );
    check(
        |out| server::reducer_result_ok(out, 4, TIMESTAMP, &[], (&[], 0)),
        reducer(ReducerOutcome::Ok {
            ret_value: vec![],
            query_sets: vec![],
        }),
        "reducer_result_ok_without_sets",
    );
    check(
        |out| server::reducer_result_ok(out, 4, TIMESTAMP, &[1, 2], (&[], 0)),
        reducer(ReducerOutcome::Ok {
            ret_value: vec![1, 2],
            query_sets: vec![],
        }),
        "reducer_result_ok_return_value",
    );
    check(
        |out| server::reducer_result_ok_empty(out, 4, TIMESTAMP),
        reducer(ReducerOutcome::OkEmpty),
        "reducer_result_ok_empty",
    );
    check(
        |out| server::reducer_result_err(out, 4, TIMESTAMP, "nope"),
        reducer(ReducerOutcome::Err(hex("04000000 6e6f7065"))),
        "reducer_result_err",
    );
    assert_eq!(
        ReducerOutcome::error_text(&hex("04000000 6e6f7065")),
        "nope"
    );
    assert_eq!(ReducerOutcome::error_text(b"no"), "no");
    check(
        |out| server::reducer_result_internal_error(out, 4, TIMESTAMP, "no such reducer"),
        reducer(ReducerOutcome::InternalError("no such reducer".into())),
        "reducer_result_internal_error",
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
        "procedure_result",
    );
    check(
        |out| server::procedure_result_internal_error(out, 6, "no such procedure"),
        ServerMessage::ProcedureResult {
            status: ProcedureStatus::InternalError("no such procedure".into()),
            timestamp: Timestamp(0),
            total_host_execution_duration: TimeDuration(0),
            request_id: 6,
        },
        "procedure_result_internal_error",
    );
}

#[test]
fn replies_to_the_benchmark_client() {
    let reply = |name| named("09-wire.json", "server_messages", name).hex();
    let vector = [
        reply("done, nothing to tell"),
        reply("refused"),
        reply("done, with empty lists"),
    ];
    let mut out = Vec::new();
    server::reducer_result_ok_empty(&mut out, 0, TIMESTAMP);
    server::reducer_result_err(&mut out, 1, TIMESTAMP, "insufficient_funds");
    server::reducer_result_ok(&mut out, 2, TIMESTAMP, &[], (&[], 0));
    assert_eq!(out, vector.concat());
}

/// What a read of one row returns: an option of a key and its fields.
fn returned_row(value: &serde_json::Value) -> Vec<u8> {
    let row = &value["some"];
    let mut out = vec![0];
    row["key"].as_str().expect("a key").encode(&mut out);
    for field in row["fields"].as_array().expect("fields") {
        field.as_str().expect("a field").encode(&mut out);
    }
    out
}

#[test]
fn all_replies_to_the_benchmark_client() {
    each("09-wire.json", "server_messages", |entry| {
        let timestamp = Timestamp(entry.number("timestamp_us"));
        let request_id = entry.number("request_id") as u32;
        let mut out = Vec::new();
        match entry.0["outcome"].as_str() {
            Some("OkEmpty") => server::reducer_result_ok_empty(&mut out, request_id, timestamp),
            Some("Err") => {
                server::reducer_result_err(&mut out, request_id, timestamp, entry.text("error"));
            }
            Some("Ok") => {
                server::reducer_result_ok(&mut out, request_id, timestamp, &[], (&[], 0));
            }
            _ => {
                let took = TimeDuration(entry.number("duration_us"));
                let value = returned_row(&entry.0["value"]);
                server::procedure_result_returned(&mut out, request_id, timestamp, took, &value);
            }
        }
        assert_eq!(out, entry.hex());
    });
}

#[test]
fn captured_from_the_reference() {
    sections_are(CAPTURED, &["tables", "payloads", "patterns"]);
    let tables = Tables::of(CAPTURED);
    each(CAPTURED, "payloads", |entry| {
        let payload = entry.hex();
        let body = lightcone_wire::payload::decode_body(&payload, 1 << 20).unwrap();
        let message = tables.server_message(&entry.0["message"]);
        check_decoding(&body, &message);
    });
    each_but(2, CAPTURED, "patterns", check_close);
}

/// The parts of a frame of which each has its bytes.
fn check_close(entry: &Entry) {
    let parts = entry.list("parts");
    let bytes = |part: usize| from_hex(parts[part]["hex"].as_str().expect("hex"));
    let reason = String::from_utf8(bytes(2)).unwrap();
    assert_eq!(reason, parts[2]["what"]);
    // The code has two bytes.
    assert_eq!(bytes(0), [0x88, reason.len() as u8 + 2]);
    assert_eq!(bytes(1), 1011u16.to_be_bytes());
    let error = ClientMessage::decode(&mut Reader::new(&[9])).unwrap_err();
    assert_eq!(error.to_string(), reason);
}
