//! Payloads: the vectors of 05 §16.4, coalescing (§3.3), compression (§3.2), handshake tokens
//! (§2.3) and close reasons (§3.6).

use crate::common::{connection_id, identity};
use lightcone_types::Encode;
use lightcone_vectors::{each, named, Entry};
use lightcone_wire::payload::{
    body_ranges, close_reason, decode_body, decode_messages, encode_payload,
    COALESCED_BODY_BYTES_MAX, COMPRESS_ABOVE_BYTES,
};
use lightcone_wire::{server, Compression, CompressionPolicy, Error, Protocol};

const FILE: &str = "05-payloads.json";

/// The bytes of the messages that a payload of the file holds.
fn messages_of(entry: &Entry) -> Vec<Vec<u8>> {
    let message = |name: &serde_json::Value| {
        let name = name.as_str().expect("a name");
        named("05-server-messages.json", "vectors", name).hex()
    };
    entry.list("messages").iter().map(message).collect()
}

fn compression_of(entry: &Entry) -> Compression {
    Compression::from_query_value(entry.text("compression")).expect("a compression")
}

fn protocols_of(entry: &Entry) -> Vec<Protocol> {
    let all = Protocol::PREFERENCE.into_iter();
    let named = |protocol: &Protocol| entry.list("protocols").contains(&protocol.name().into());
    let protocols: Vec<Protocol> = all.filter(named).collect();
    assert_eq!(protocols.len(), entry.list("protocols").len());
    protocols
}

#[test]
fn payloads_decode() {
    each(FILE, "", |entry| {
        let (payload, expected) = (entry.hex(), messages_of(entry));
        assert_eq!(payload[0], compression_of(entry).tag());
        let body = decode_body(&payload, 1 << 20).unwrap();
        assert_eq!(*body, entry.bytes("body_hex"));
        assert_eq!(*body, expected.concat());
        for protocol in protocols_of(entry) {
            let messages = decode_messages(protocol, &body).unwrap();
            let again: Vec<Vec<u8>> = messages.iter().map(Encode::to_vec).collect();
            assert_eq!(again, expected, "{}", protocol.name());
        }
        // Version 2 has one message in a payload.
        assert_eq!(decode_messages(Protocol::V2, &body).unwrap().len(), 1);
    });
}

#[test]
fn uncompressed_payloads() {
    each(FILE, "", |entry| {
        if compression_of(entry) != Compression::None {
            return;
        }
        let mut payload = Vec::new();
        encode_payload(&mut payload, &entry.bytes("body_hex"), Compression::None);
        assert_eq!(payload, entry.hex());
    });
    let mut body = Vec::new();
    server::initial_connection(&mut body, identity(), connection_id(), "tok");
    let vector = named(FILE, "", "initial_connection");
    assert_eq!(body, vector.bytes("body_hex"));
}

#[test]
fn compression_round_trips() {
    let body: Vec<u8> = (0..100_000u32)
        .flat_map(|n| (n / 7).to_le_bytes())
        .collect();
    for compression in [Compression::None, Compression::Brotli, Compression::Gzip] {
        for body in [&body[..], &body[..1], &[]] {
            let mut payload = vec![];
            encode_payload(&mut payload, body, compression);
            assert_eq!(payload[0], compression.tag());
            assert_eq!(*decode_body(&payload, body.len()).unwrap(), *body);
        }
        let mut payload = vec![];
        encode_payload(&mut payload, &body, compression);
        if compression != Compression::None {
            assert!(payload.len() < body.len() / 2);
        }
        let limit_bytes = body.len() - 1;
        assert_eq!(
            decode_body(&payload, limit_bytes),
            Err(Error::BodyTooLarge { limit_bytes })
        );
        assert_eq!(
            Compression::from_query_value(compression.query_value()),
            Some(compression)
        );
    }
    assert_eq!(Compression::from_query_value("gzip"), None);
}

#[test]
fn damaged_payloads_are_refused() {
    assert_eq!(decode_body(&[], 10), Err(Error::EmptyServerPayload));
    assert_eq!(decode_body(&[3, 0], 10), Err(Error::UnknownCompression(3)));
    assert_eq!(
        decode_messages(Protocol::V3, &[]),
        Err(Error::EmptyServerPayload)
    );
    for name in ["gzip", "brotli"] {
        let mut payload = named(FILE, "", name).hex();
        payload.truncate(payload.len() / 2);
        let error = decode_body(&payload, 1 << 20).unwrap_err();
        assert!(
            error
                .to_string()
                .contains("body of a server payload is damaged"),
            "{error}"
        );
    }
}

#[test]
fn policies() {
    use {Compression as C, CompressionPolicy as P};
    assert_eq!(P::default(), P::KeepOrder);
    let (small, large) = (COMPRESS_ABOVE_BYTES, COMPRESS_ABOVE_BYTES + 1);
    for asked in [C::None, C::Brotli, C::Gzip] {
        for policy in [P::Never, P::KeepOrder, P::AsAsked] {
            assert_eq!(policy.choose(asked, small), C::None);
        }
        assert_eq!(P::Never.choose(asked, large), C::None);
        assert_eq!(P::AsAsked.choose(asked, large), asked);
    }
    assert_eq!(P::KeepOrder.choose(C::Brotli, large), C::Brotli);
    assert_eq!(P::KeepOrder.choose(C::Gzip, large), C::None);
}

#[test]
fn bodies_take_what_fits() {
    let ends = |lengths: &[usize]| -> Vec<usize> {
        lengths
            .iter()
            .scan(0, |end, length| {
                *end += *length;
                Some(*end)
            })
            .collect()
    };
    let taken = |protocol, lengths: &[usize]| -> Vec<usize> {
        body_ranges(protocol, &ends(lengths))
            .map(|range| range.len())
            .collect()
    };
    let max = COALESCED_BODY_BYTES_MAX;
    assert_eq!(taken(Protocol::V3, &[]), [0usize; 0]);
    assert_eq!(taken(Protocol::V3, &[14; 40]), [560]);
    assert_eq!(taken(Protocol::V2, &[14; 3]), [14; 3]);
    assert_eq!(taken(Protocol::V3, &[max - 1, 1, 1]), [max, 1]);
    assert_eq!(taken(Protocol::V3, &[1, max, 1]), [1, max, 1]);
    assert_eq!(taken(Protocol::V3, &[5, max + 9, 3, 4]), [5, max + 9, 7]);
    // Messages of 100 022 bytes come at most five to a payload.
    assert_eq!(taken(Protocol::V3, &[100_022; 7]), [500_110, 200_044]);
}

#[test]
fn sub_protocols() {
    let select = |lines: &[&str]| Protocol::select(lines.iter().copied());
    let (v2, v3) = (Some(Protocol::V2), Some(Protocol::V3));
    assert_eq!(select(&["v3.bsatn.spacetimedb, v2.bsatn.spacetimedb"]), v3);
    assert_eq!(select(&["v2.bsatn.spacetimedb,v3.bsatn.spacetimedb"]), v3);
    assert_eq!(
        select(&["v2.bsatn.spacetimedb", "v3.bsatn.spacetimedb"]),
        v3
    );
    assert_eq!(select(&["v1.json.spacetimedb ,\tv2.bsatn.spacetimedb"]), v2);
    assert_eq!(
        select(&["V2.bsatn.spacetimedb", "v1.bsatn.spacetimedb"]),
        None
    );
    assert_eq!(select(&[]), None);
}

#[test]
fn close_reasons_fit_into_a_frame() {
    assert_eq!(close_reason("module exited"), "module exited");
    assert_eq!(close_reason(&"x".repeat(124)), "x".repeat(123));
    assert_eq!(close_reason(&"é".repeat(62)), "é".repeat(61));
}
