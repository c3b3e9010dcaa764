//! Client messages: the vectors of 05 §16.1 and 09 §8.4, and the errors of 05 §8.

use crate::common::read::{arguments, client_message};
use lightcone_types::{Encode, Reader};
use lightcone_vectors::{each, named, sections_are};
use lightcone_wire::{ClientMessage, ClientPayload, Error, Protocol};
use serde_json::Value;

const FILE: &str = "05-client-messages.json";
const BENCHMARK: &str = "09-wire.json";

fn bytes_of(name: &str) -> Vec<u8> {
    named(FILE, "messages", name).hex()
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
    sections_are(FILE, &["messages", "payloads", "refusals"]);
    each(FILE, "messages", |entry| {
        let (json, bytes) = (&entry.0["message"], entry.hex());
        let args = arguments(json);
        let message = client_message(json, &args);
        let mut reader = Reader::new(&bytes);
        assert_eq!(ClientMessage::decode(&mut reader).unwrap(), message);
        assert!(reader.is_empty());
        assert_eq!(message.to_vec(), bytes);
        // Each is a payload of version 2 too.
        assert_eq!(messages(Protocol::V2, &bytes), [Ok(message)]);
    });
}

#[test]
fn version_3_payloads_hold_many_messages() {
    each(FILE, "payloads", |entry| {
        assert_eq!(entry.text("protocol"), "v3");
        let (payload, json) = (entry.hex(), entry.list("messages"));
        let args: Vec<Vec<u8>> = json.iter().map(arguments).collect();
        let expected: Vec<_> = (json.iter().zip(&args))
            .map(|(message, args)| Ok(client_message(message, args)))
            .collect();
        assert!(expected.len() > 1);
        assert_eq!(messages(Protocol::V3, &payload), expected);
        // Version 2 ignores what follows its one message.
        assert_eq!(messages(Protocol::V2, &payload), expected[..1]);
    });
}

#[test]
fn transfers_as_the_benchmark_client_sends_them() {
    let frame = "three calls of one macrotask on a version 3 connection";
    let frame = named(BENCHMARK, "client_frames", frame);
    let payload = frame.hex();
    assert_eq!(payload.len() as i64, frame.number("bytes"));
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

/// The arguments of a call as the benchmark's functions take them.
fn benchmark_arguments(function: &str, args: &Value) -> Vec<u8> {
    let types = match function {
        "transfer" => &["u32", "u32", "i64"][..],
        "seed" => &["u32", "i64"],
        "ycsb_update" => &["String", "u8", "String"],
        "ycsb_read" => &["String"],
        "job_lease" => &["u32", "u32", "u32"],
        "job_ack" => &["u64", "u64"],
        unknown => panic!("no test knows {unknown}"),
    };
    let args = args.as_object().expect("arguments");
    assert_eq!(args.len(), types.len());
    let mut out = Vec::new();
    for (value, ty) in args.values().zip(types) {
        let number = value.as_i64();
        match *ty {
            "u8" => out.push(number.unwrap() as u8),
            "u32" => (number.unwrap() as u32).encode(&mut out),
            "u64" | "i64" => number.unwrap().encode(&mut out),
            _ => value.as_str().unwrap().encode(&mut out),
        }
    }
    out
}

#[test]
fn calls_of_the_benchmark_client() {
    let sections = [
        "note",
        "client_messages",
        "client_frames",
        "server_messages",
    ];
    sections_are(BENCHMARK, &sections);
    each(BENCHMARK, "client_messages", |entry| {
        let (function, bytes) = (entry.text("function"), entry.hex());
        let request_id = entry.number("request_id") as u32;
        let args = &benchmark_arguments(function, &entry.0["args"]);
        let message = match entry.text("kind") {
            "CallReducer" => ClientMessage::CallReducer {
                request_id,
                reducer: function,
                args,
            },
            _ => ClientMessage::CallProcedure {
                request_id,
                procedure: function,
                args,
            },
        };
        assert_eq!(message.to_vec(), bytes);
        assert_eq!(messages(Protocol::V2, &bytes), [Ok(message)]);
    });
    each(BENCHMARK, "client_frames", |entry| {
        let message = |name: &Value| named(BENCHMARK, "client_messages", name.as_str().unwrap());
        let names = entry.list("messages").iter();
        let joined: Vec<u8> = names.flat_map(|name| message(name).hex()).collect();
        assert_eq!(joined, entry.hex());
        assert_eq!(joined.len() as i64, entry.number("bytes"));
    });
}

#[test]
fn names_and_arguments_borrow_from_the_payload() {
    let bytes = &bytes_of("call_reducer");
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
    each(FILE, "refusals", |entry| {
        let mut tried = 0;
        for protocol in Protocol::PREFERENCE {
            if entry.list("protocols").contains(&protocol.name().into()) {
                assert_eq!(error_text(protocol, &entry.hex()), entry.text("reason"));
                tried += 1;
            }
        }
        assert_eq!(tried, entry.list("protocols").len());
    });
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
    let call = &bytes_of("call_reducer_without_arguments");
    let payload = [&call[..], &[9], &call[..]].concat();
    let all = messages(Protocol::V3, &payload);
    assert_eq!(all.len(), 2, "nothing is read behind an error");
    assert!(all[0].is_ok() && all[1].is_err());
}
