//! Client messages: the vectors of spec 05 §16.1 and 09 §8.4, and the errors of 05 §8.

mod common;

use common::hex;
use lightcone_types::{Encode, Reader};
use lightcone_wire::{ClientMessage, ClientPayload, Error, Protocol};

const PERSON: &str = "SELECT * FROM person";

fn vectors() -> Vec<(ClientMessage<'static>, Vec<u8>)> {
    vec![
        (
            ClientMessage::Subscribe {
                request_id: 1,
                query_set_id: 7,
                query_strings: vec![PERSON],
            },
            hex("00 01000000 07000000 01000000 14000000 53454c454354202a2046524f4d20706572736f6e"),
        ),
        (
            ClientMessage::Subscribe {
                request_id: 258,
                query_set_id: 1,
                query_strings: vec!["SELECT * FROM a", "SELECT * FROM b"],
            },
            hex(
                "00 02010000 01000000 02000000 0f000000 53454c454354202a2046524f4d2061 \
                 0f000000 53454c454354202a2046524f4d2062",
            ),
        ),
        (
            ClientMessage::Unsubscribe {
                request_id: 2,
                query_set_id: 7,
                send_dropped_rows: true,
            },
            hex("01 02000000 07000000 01"),
        ),
        (
            ClientMessage::Unsubscribe {
                request_id: 2,
                query_set_id: 7,
                send_dropped_rows: false,
            },
            hex("01 02000000 07000000 00"),
        ),
        (
            ClientMessage::OneOffQuery {
                request_id: 3,
                query_string: PERSON,
            },
            hex("02 03000000 14000000 53454c454354202a2046524f4d20706572736f6e"),
        ),
        (
            ClientMessage::CallReducer {
                request_id: 4,
                reducer: "add",
                args: b"\x05\0\0\0Alice\x1e",
            },
            hex("03 04000000 00 03000000 616464 0a000000 05000000 416c696365 1e"),
        ),
        (
            ClientMessage::CallReducer {
                request_id: 5,
                reducer: "tick",
                args: &[],
            },
            hex("03 05000000 00 04000000 7469636b 00000000"),
        ),
        (
            ClientMessage::CallProcedure {
                request_id: 6,
                procedure: "fetch",
                args: &[42, 0, 0, 0],
            },
            hex("04 06000000 00 05000000 6665746368 04000000 2a000000"),
        ),
    ]
}

fn messages(protocol: Protocol, payload: &[u8]) -> Vec<Result<ClientMessage<'_>, Error>> {
    ClientPayload::new(protocol, payload).collect()
}

fn error_text(protocol: Protocol, payload: &[u8]) -> String {
    let all = messages(protocol, payload);
    all.last()
        .expect("there is a message or an error")
        .clone()
        .expect_err("payload is refused")
        .to_string()
}

#[test]
fn vectors_decode_and_encode() {
    for (message, bytes) in vectors() {
        let mut reader = Reader::new(&bytes);
        assert_eq!(ClientMessage::decode(&mut reader).unwrap(), message);
        assert!(reader.is_empty());
        assert_eq!(message.to_vec(), bytes);
    }
}

#[test]
fn version_3_payloads_hold_many_messages() {
    let all = vectors();
    let payload = [all[0].1.clone(), all[5].1.clone()].concat();
    assert_eq!(
        messages(Protocol::V3, &payload),
        [Ok(all[0].0.clone()), Ok(all[5].0.clone())]
    );
    let from_typescript = hex(
        "00 00000000 00000000 01000000 14000000 53454c454354202a2046524f4d20706572736f6e \
         03 01000000 00 03000000 616464 0a000000 05000000 416c696365 1e",
    );
    let ids: Vec<u32> = ClientPayload::new(Protocol::V3, &from_typescript)
        .map(|message| message.unwrap().request_id())
        .collect();
    assert_eq!(ids, [0, 1]);
    // Version 2 ignores what follows its one message.
    assert_eq!(messages(Protocol::V2, &payload), [Ok(all[0].0.clone())]);
}

#[test]
fn transfers_as_the_benchmark_client_sends_them() {
    let payload = hex(
        "030000000000080000007472616e7366657210000000110000002a0000000100000000000000
         030100000000080000007472616e7366657210000000000000009f8601000100000000000000
         03020000000004000000736565640c000000a086010000ca9a3b00000000",
    );
    assert_eq!(payload.len(), 106);
    let args = |from: u32, to: u32, amount: i64| {
        [
            &from.to_le_bytes()[..],
            &to.to_le_bytes()[..],
            &amount.to_le_bytes()[..],
        ]
        .concat()
    };
    let (first, second) = (args(17, 42, 1), args(0, 99_999, 1));
    let third = [
        &100_000u32.to_le_bytes()[..],
        &1_000_000_000i64.to_le_bytes()[..],
    ]
    .concat();
    let expected = [
        (0, "transfer", &first),
        (1, "transfer", &second),
        (2, "seed", &third),
    ]
    .map(|(request_id, reducer, args)| {
        Ok(ClientMessage::CallReducer {
            request_id,
            reducer,
            args,
        })
    });
    assert_eq!(messages(Protocol::V3, &payload), expected);
}

#[test]
fn names_and_arguments_borrow_from_the_payload() {
    let bytes = &vectors()[5].1;
    match ClientMessage::decode(&mut Reader::new(bytes)).unwrap() {
        ClientMessage::CallReducer { reducer, args, .. } => {
            let range = bytes.as_ptr_range();
            assert!(range.contains(&reducer.as_ptr()) && range.contains(&args.as_ptr()));
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn refusals_have_the_texts_of_the_reference() {
    for protocol in Protocol::PREFERENCE {
        let text = |payload: &str| error_text(protocol, &hex(payload));
        assert_eq!(text("09"), "unknown tag 0x9 for sum type ClientMessage");
        assert_eq!(text("ff"), "unknown tag 0xff for sum type ClientMessage");
        assert_eq!(
            text("02 0300"),
            "data too short for u32: Expected 4, given 2"
        );
        assert_eq!(
            text("01 02000000 07000000 02"),
            "unknown tag 0x2 for sum type UnsubscribeFlags"
        );
        assert_eq!(
            text("03 04000000 01 03000000 616464 00000000"),
            "invalid call reducer flag 1"
        );
        assert_eq!(
            text("04 04000000 01 03000000 616464 00000000"),
            "invalid call procedure flag 1"
        );
        assert_eq!(text("02 03000000 02000000 c328"), "invalid utf8");
        assert_eq!(
            text("03 04000000 00 03000000 616464 0a000000 00"),
            "data too short for [u8]: Expected 10, given 1"
        );
        // A count that promises more queries than there are.
        assert_eq!(
            text("00 01000000 07000000 ffffffff 01000000 61"),
            "data too short for u32: Expected 4, given 0"
        );
    }
    assert_eq!(
        error_text(Protocol::V2, &[]),
        "data too short for u8: Expected 1, given 0"
    );
    assert_eq!(
        error_text(Protocol::V3, &[]),
        "v3 websocket binary payload must contain at least one v2 client message"
    );
    assert_eq!(
        Error::TextMessage(Protocol::V2).to_string(),
        "v2 websocket does not support text messages"
    );
    assert_eq!(
        Error::TextMessage(Protocol::V3).to_string(),
        "v3 websocket does not support text messages"
    );
}

#[test]
fn messages_before_an_undecodable_one_stand() {
    let call = &vectors()[6].1;
    let payload = [&call[..], &[9], &call[..]].concat();
    let all = messages(Protocol::V3, &payload);
    assert_eq!(all.len(), 2, "nothing is read behind an error");
    assert!(all[0].is_ok() && all[1].is_err());
}
