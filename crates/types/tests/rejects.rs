//! Bytes a host must reject, or may only accept as what they say (01 §1.12.5, 1.12.10).

use crate::common::{decode, sats_value};
use crate::typed::Typed as _;
use lightcone_types::bsatn::{decode_value, Decode, Encode, Reader};
use lightcone_types::{AlgebraicType as T, Typespace};
use lightcone_vectors::{each, sections_are, Entry};
use spacetimedb_sats as sats;

const FILE: &str = "01-rejects.json";

#[test]
fn all_sections_are_read() {
    sections_are(FILE, &["values", "types", "typescript_results"]);
}

#[test]
fn defective_results_of_a_client_do_not_decode_to_the_wrong_thing() {
    each(FILE, "typescript_results", |entry| {
        let (defective, right) = (entry.hex(), entry.bytes("right_hex"));
        let mut reader = Reader::new(&defective);
        let value = decode_value(Typespace::EMPTY, &entry.ty(), &mut reader).unwrap();
        assert_eq!(Ok(&value), entry.read(entry.text("read_as")).as_ref());
        // The surplus byte stays behind; whether that is an error is up to the site (01 §1.5.2).
        assert_eq!(reader.remaining(), entry.bytes("left_over"));
        assert_ne!(value.to_vec(), right);
        let right = decode(Typespace::EMPTY, &entry.ty(), &right).unwrap();
        assert_ne!(right, value);
    });
}

/// The kind of error that a text is of.
fn kind(message: &str) -> &'static str {
    if message.starts_with("data too short") {
        "BufferLength"
    } else if message.starts_with("unknown tag") {
        "InvalidTag"
    } else if message.ends_with("(must be 0 or 1)") {
        "InvalidBool"
    } else {
        assert_eq!(message, "invalid utf8");
        "InvalidUtf8"
    }
}

fn check_message(entry: &Entry, ours: &str, theirs: &str) {
    assert_eq!(ours, entry.text("message"));
    assert_eq!(ours, theirs, "published text");
    assert_eq!(kind(ours), entry.text("error"));
}

#[test]
fn rejected_inputs() {
    each(FILE, "values", |entry| {
        let (ty, bytes) = (entry.ty(), entry.hex());
        let ours = decode(Typespace::EMPTY, &ty, &bytes).unwrap_err();
        let theirs = sats_value(Typespace::EMPTY, &ty, &bytes).unwrap_err();
        check_message(entry, &ours, &theirs);
    });
    each(FILE, "types", |entry| {
        let bytes = entry.hex();
        let ours = T::from_slice(&bytes).unwrap_err();
        let theirs = sats::bsatn::from_slice::<sats::AlgebraicType>(&bytes).unwrap_err();
        check_message(entry, &ours.to_string(), &theirs.to_string());
    });
}
