//! Bytes a host must reject, or may only accept as what they say (spec 1.12.5, 1.12.10).

mod common;

use common::{bytes, decode, sats_value};
use lightcone_types::bsatn::{decode_value, Decode, Reader};
use lightcone_types::{AlgebraicType as T, AlgebraicValue as V, Typespace};
use spacetimedb_sats as sats;

#[test]
fn defective_results_of_a_client_do_not_decode_to_the_wrong_thing() {
    let err = decode(
        Typespace::EMPTY,
        &T::result(T::U32, T::String),
        &bytes("0100000000"),
    );
    assert_eq!(err, Ok(V::sum(1, "".into())));
    // The surplus byte stays behind; whether that is an error is up to the site (spec 1.5.2).
    let defective = bytes("010100000037");
    let mut r = Reader::new(&defective);
    let err = decode_value(Typespace::EMPTY, &T::result(T::String, T::U32), &mut r);
    assert_eq!(err, Ok(V::sum(1, 1u32.into())));
    assert_eq!(r.remaining(), [0x37]);
}

#[test]
fn rejected_inputs() {
    let color = T::simple_enum(["Red", "Green", "Blue"]);
    for (ty, hex, message) in [
        (T::Bool, "02", "byte 2 not valid as `bool` (must be 0 or 1)"),
        (color, "03", "unknown tag 0x3 for sum type <unknown>"),
        (
            T::option(T::U8),
            "02",
            "unknown tag 0x2 for sum type <unknown>",
        ),
        (T::never(), "00", "unknown tag 0x0 for sum type <unknown>"),
        (T::never(), "", "data too short for u8: Expected 1, given 0"),
        (
            T::U32,
            "010203",
            "data too short for u32: Expected 4, given 3",
        ),
        (
            T::F32,
            "010203",
            "data too short for u32: Expected 4, given 3",
        ),
        (
            T::F64,
            "010203",
            "data too short for u64: Expected 8, given 3",
        ),
        (
            T::I256,
            "010203",
            "data too short for i256: Expected 32, given 3",
        ),
        (
            T::String,
            "050000006162",
            "data too short for [u8]: Expected 5, given 2",
        ),
        (
            T::String,
            "0500",
            "data too short for u32: Expected 4, given 2",
        ),
        (T::String, "02000000c328", "invalid utf8"),
        (
            T::array(T::U16),
            "02000000010002",
            "data too short for u16: Expected 2, given 1",
        ),
        (
            T::bytes(),
            "ffffffff00",
            "data too short for [u8]: Expected 4294967295, given 1",
        ),
    ] {
        let error = decode(Typespace::EMPTY, &ty, &bytes(hex)).unwrap_err();
        assert_eq!(error, message, "{hex} as {ty}");
        let theirs = sats_value(Typespace::EMPTY, &ty, &bytes(hex)).unwrap_err();
        assert_eq!(error, theirs, "{hex} as {ty}, published text");
    }
    let error = T::from_slice(&bytes("14")).unwrap_err();
    assert_eq!(
        error.to_string(),
        "unknown tag 0x14 for sum type AlgebraicType"
    );
    let theirs = sats::bsatn::from_slice::<sats::AlgebraicType>(&bytes("14")).unwrap_err();
    assert_eq!(error.to_string(), theirs.to_string());
}
