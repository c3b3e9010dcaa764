//! Properties: what is encoded decodes to itself, no input panics.

use crate::{common, fuzzing};
use lightcone_types::{ConnectionId, Encode, Identity, Reader, TimeDuration, Timestamp};
use lightcone_wire::rows::row_list;
use lightcone_wire::{
    payload, ClientMessage, Compression, ProcedureStatus, Protocol, QueryRows, QuerySetUpdate,
    ReducerOutcome, RowList, RowListSize, RowSize, ServerMessage, SingleTableRows, SubscribeSet,
    SubscribeSetResult, TableUpdate, TableUpdateRows,
};
use proptest::collection::vec;
use proptest::prelude::*;

fn rows() -> impl Strategy<Value = Vec<Vec<u8>>> {
    prop_oneof![
        vec(vec(any::<u8>(), 0..6), 0..6),
        (0usize..6).prop_flat_map(|length| vec(vec(any::<u8>(), length), 0..6)),
    ]
}

fn row_lists() -> impl Strategy<Value = RowList> {
    rows().prop_map(|rows| common::row_list(&rows))
}

fn query_rows() -> impl Strategy<Value = QueryRows> {
    vec(
        (".{0,5}", row_lists()).prop_map(|(table, rows)| SingleTableRows { table, rows }),
        0..4,
    )
    .prop_map(|tables| QueryRows { tables })
}

fn query_sets() -> impl Strategy<Value = Vec<QuerySetUpdate>> {
    let entry = prop_oneof![
        (row_lists(), row_lists())
            .prop_map(|(inserts, deletes)| TableUpdateRows::Persistent { inserts, deletes }),
        row_lists().prop_map(|events| TableUpdateRows::Event { events }),
    ];
    let table = (".{0,5}", vec(entry, 0..3))
        .prop_map(|(table_name, rows)| TableUpdate { table_name, rows });
    vec(
        (any::<u32>(), vec(table, 0..3)).prop_map(|(query_set_id, tables)| QuerySetUpdate {
            query_set_id,
            tables,
        }),
        0..3,
    )
}

fn set_results() -> impl Strategy<Value = SubscribeSetResult> {
    let outcome = proptest::result::maybe_ok(query_rows(), ".{0,9}");
    (any::<u32>(), outcome).prop_map(|(query_set_id, outcome)| SubscribeSetResult {
        query_set_id,
        outcome,
    })
}

fn server_messages() -> impl Strategy<Value = ServerMessage> {
    let id = any::<u32>;
    let outcome = prop_oneof![
        (vec(any::<u8>(), 0..4), query_sets()).prop_map(|(ret_value, query_sets)| {
            ReducerOutcome::Ok {
                ret_value,
                query_sets,
            }
        }),
        Just(ReducerOutcome::OkEmpty),
        vec(any::<u8>(), 0..9).prop_map(ReducerOutcome::Err),
        ".{0,9}".prop_map(ReducerOutcome::InternalError),
    ];
    let status = prop_oneof![
        vec(any::<u8>(), 0..9).prop_map(ProcedureStatus::Returned),
        ".{0,9}".prop_map(ProcedureStatus::InternalError),
    ];
    prop_oneof![
        (any::<[u8; 32]>(), any::<u128>(), ".{0,9}").prop_map(|(identity, id, token)| {
            ServerMessage::InitialConnection {
                identity: Identity::from_le_bytes(identity),
                connection_id: ConnectionId(id),
                token,
            }
        }),
        (id(), id(), query_rows()).prop_map(|(request_id, query_set_id, rows)| {
            ServerMessage::SubscribeApplied {
                request_id,
                query_set_id,
                rows,
            }
        }),
        (id(), id(), proptest::option::of(query_rows())).prop_map(
            |(request_id, query_set_id, rows)| ServerMessage::UnsubscribeApplied {
                request_id,
                query_set_id,
                rows,
            }
        ),
        (any::<Option<u32>>(), id(), ".{0,9}").prop_map(|(request_id, query_set_id, error)| {
            ServerMessage::SubscriptionError {
                request_id,
                query_set_id,
                error,
            }
        }),
        query_sets().prop_map(|query_sets| ServerMessage::TransactionUpdate { query_sets }),
        (id(), proptest::result::maybe_ok(query_rows(), ".{0,9}")).prop_map(
            |(request_id, result)| ServerMessage::OneOffQueryResult { request_id, result }
        ),
        (id(), vec(set_results(), 0..3)).prop_map(|(request_id, results)| {
            ServerMessage::SubscribeBatchApplied {
                request_id,
                results,
            }
        }),
        (id(), any::<i64>(), outcome).prop_map(|(request_id, timestamp, result)| {
            ServerMessage::ReducerResult {
                request_id,
                timestamp: Timestamp(timestamp),
                result,
            }
        }),
        (status, any::<i64>(), any::<i64>(), id()).prop_map(
            |(status, timestamp, duration, request_id)| ServerMessage::ProcedureResult {
                status,
                timestamp: Timestamp(timestamp),
                total_host_execution_duration: TimeDuration(duration),
                request_id,
            }
        ),
    ]
}

/// Bytes that are often nearly a message: a message with some bytes changed and its end cut.
fn damaged(bytes: Vec<u8>) -> impl Strategy<Value = Vec<u8>> {
    let length = bytes.len();
    (vec((0..length, any::<u8>()), 0..4), 0..=length, Just(bytes)).prop_map(
        |(changes, end, mut bytes)| {
            for (at, byte) in changes {
                bytes[at] = byte;
            }
            bytes.truncate(end);
            bytes
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn client_messages_round_trip(
        ids in any::<(u32, u32)>(),
        flag in any::<bool>(),
        texts in vec(".{0,12}", 1..4),
        args in vec(any::<u8>(), 0..20),
    ) {
        let messages = [
            ClientMessage::Subscribe {
                request_id: ids.0,
                query_set_id: ids.1,
                query_strings: texts.iter().map(String::as_str).collect(),
            },
            ClientMessage::SubscribeBatch {
                request_id: ids.0,
                sets: (0..texts.len())
                    .map(|first| SubscribeSet {
                        query_set_id: ids.1.wrapping_add(first as u32),
                        query_strings: texts[first..].iter().map(String::as_str).collect(),
                    })
                    .collect(),
            },
            ClientMessage::Unsubscribe {
                request_id: ids.0,
                query_set_id: ids.1,
                send_dropped_rows: flag,
            },
            ClientMessage::OneOffQuery { request_id: ids.0, query_string: &texts[0] },
            ClientMessage::CallReducer { request_id: ids.0, reducer: &texts[0], args: &args },
            ClientMessage::CallProcedure { request_id: ids.0, procedure: &texts[0], args: &args },
        ];
        let mut bytes = Vec::new();
        for message in &messages {
            message.encode(&mut bytes);
        }
        let decoded: Result<Vec<_>, _> =
            lightcone_wire::ClientPayload::new(Protocol::V3, &bytes).collect();
        prop_assert_eq!(decoded.unwrap(), messages);
    }

    #[test]
    fn server_messages_round_trip(messages in vec(server_messages(), 1..4)) {
        let body: Vec<u8> = messages.iter().flat_map(Encode::to_vec).collect();
        for compression in [Compression::None, Compression::Gzip, Compression::Brotli] {
            let mut bytes = Vec::new();
            payload::encode_payload(&mut bytes, &body, compression);
            let body = payload::decode_body(&bytes, 1 << 20).unwrap();
            prop_assert_eq!(payload::decode_messages(Protocol::V3, &body).unwrap(), &messages[..]);
            fuzzing::fuzz_server_payload(&bytes);
        }
    }

    #[test]
    fn row_writers_agree(rows in rows()) {
        let expected = common::row_list_bytes(&rows);
        let mut walked = Vec::new();
        row_list(&mut walked, RowSize::Variable, rows.iter().map(Vec::as_slice)).unwrap();
        prop_assert_eq!(&walked, &expected);
        let mut size = RowListSize::default();
        rows.iter().for_each(|row| size.add(row.len()));
        let mut sized = Vec::new();
        let mut list = size.begin(&mut sized).unwrap();
        rows.iter().for_each(|row| list.push(&mut sized, row));
        prop_assert!(list.is_complete());
        prop_assert_eq!(&sized, &expected);
        prop_assert_eq!(size.encoded_bytes(), expected.len());
        let decoded = RowList::decode(&mut Reader::new(&expected)).unwrap();
        prop_assert_eq!(decoded.iter().collect::<Vec<_>>(), rows);
    }

    #[test]
    fn damaged_server_messages_do_not_panic(
        payload in server_messages().prop_flat_map(|message| damaged(message.to_vec())),
        compression in 0u8..4,
    ) {
        let mut bytes = vec![compression];
        bytes.extend(payload);
        fuzzing::fuzz_server_payload(&bytes);
    }

    #[test]
    fn any_bytes_do_not_panic(bytes in vec(any::<u8>(), 0..200)) {
        fuzzing::fuzz_client_message(&bytes);
        fuzzing::fuzz_server_payload(&bytes);
    }

    #[test]
    fn damaged_client_messages_do_not_panic(
        bytes in (any::<u8>(), ".{0,9}", vec(any::<u8>(), 0..9)).prop_flat_map(|(id, name, args)| {
            let request_id = u32::from(id);
            let message = ClientMessage::CallReducer { request_id, reducer: &name, args: &args };
            let set = SubscribeSet { query_set_id: 7, query_strings: vec![&name, "b"] };
            let batch = ClientMessage::SubscribeBatch { request_id, sets: vec![set.clone(), set] };
            prop_oneof![damaged(message.to_vec()), damaged(batch.to_vec())]
        }),
    ) {
        fuzzing::fuzz_client_message(&bytes);
    }
}
