//! Payloads: the vectors of spec 05 §16.4, coalescing (§3.3), compression (§3.2), handshake tokens
//! (§2.3) and close reasons (§3.6).

mod common;

use common::{connection_id, hex, identity};
use lightcone_types::Encode;
use lightcone_wire::payload::{
    body_ranges, close_reason, decode_body, decode_messages, encode_payload,
    COALESCED_BODY_BYTES_MAX, COMPRESS_ABOVE_BYTES,
};
use lightcone_wire::{server, Compression, CompressionPolicy, Error, Protocol, ServerMessage};

const SUBSCRIBE_APPLIED: &str =
    "010100000007000000020000000500000073636f72650005000a000000010000000a020000001406000000706572736f6e
     010200000000000000000000000d00000000000000180000000100000005000000416c6963650200000003000000426f62";
const GZIP: &str = "02 1f8b0800000000000403358c410a8030100367952a14bc79f03bfa14cb1e0471a5fd3f48a0e6943043cc8019188004b412d54964402c0bac13
     f07a6df198f69fa597adcb3ad8efabb8a41138e2fc00e076edc362000000";
const BROTLI: &str = "01 8b30000080aaaaaaea1f550dd4144001ec6607bb5dcd4e4753d0830118981aa8424deeb607b6a01d0688618081c7d0712a13bf109011913
     06b1f4d52d0632959f7157f1bb37f81d1e616e231489d9ce7fbd416b1e0eaf7";

#[test]
fn uncompressed_payloads() {
    let vector = hex(
        "00 00 1d1c1b1a191817161514131211100f0e0d0c0b0a0908070605040302010000c2 \
         0f0e0d0c0b0a09080706050403020100 03000000 746f6b",
    );
    let (mut body, mut payload) = (Vec::new(), Vec::new());
    server::initial_connection(&mut body, identity(), connection_id(), "tok");
    encode_payload(&mut payload, &body, Compression::None);
    assert_eq!(payload, vector);

    let two = [
        hex("00"),
        hex(SUBSCRIBE_APPLIED),
        hex("0401000000070000000100000006000000706572736f6e0100000000000d000d0000000100000005000000416c696365010000000000000000"),
    ]
    .concat();
    let body = decode_body(&two, 1 << 20).unwrap();
    let messages = decode_messages(Protocol::V3, &body).unwrap();
    assert_eq!(messages.len(), 2);
    assert!(matches!(
        messages[1],
        ServerMessage::TransactionUpdate { .. }
    ));
    let joined: Vec<u8> = messages.iter().flat_map(Encode::to_vec).collect();
    assert_eq!(joined, two[1..]);
    assert_eq!(decode_messages(Protocol::V2, &body).unwrap().len(), 1);
}

#[test]
fn compressed_payloads_decode() {
    for vector in [GZIP, BROTLI] {
        let payload = hex(vector);
        let body = decode_body(&payload, 1 << 20).unwrap();
        assert_eq!(*body, hex(SUBSCRIBE_APPLIED));
    }
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
    for vector in [GZIP, BROTLI] {
        let mut payload = hex(vector);
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
