//! The values and types of 01 §1.12 (see `rejects.rs` for what is refused), each also put before the published decoder.

use crate::common::{decode, decode_type, sats_typespace, sats_value};
use crate::typed::Typed as _;
use lightcone_types::bsatn::{Decode, Encode};
use lightcone_types::{
    AlgebraicType as T, AlgebraicValue as V, ConnectionId, Identity, TimeDuration, Timestamp,
    Typespace, Uuid, I256, U256,
};
use lightcone_vectors::{each, named, sections_are, Entry};
use spacetimedb_sats as sats;

const VALUES: &str = "01-values.json";
const TYPES: &str = "01-types.json";

/// The value of an entry and its bytes mean each other, here and in the published crate.
fn check(entry: &Entry) {
    let (typespace, ty, bytes) = (entry.typespace(), entry.ty(), entry.hex());
    let value = decode(&typespace, &ty, &bytes).expect("the bytes are a value");
    assert_eq!(value.to_vec(), bytes, "encoding of {value:?}");
    if !entry.0["value"].is_null() {
        assert_eq!(entry.read(entry.text("value")), Ok(value));
    } else {
        assert!(is_without_json(&value), "{value:?} has a text in SATS-JSON");
    }
    let theirs = sats_value(&typespace, &ty, &bytes).expect("published decoder accepts");
    assert_eq!(
        sats::bsatn::to_vec(&theirs).unwrap(),
        bytes,
        "published encoding of {theirs:?}"
    );
}

fn is_without_json(value: &V) -> bool {
    match value {
        V::F32(float) => !float.is_finite(),
        V::F64(float) => !float.is_finite(),
        _ => false,
    }
}

/// `value` is what the entry of a name says, where the file's own text would not show a mistake.
fn says(section: &str, name: &str, value: impl Into<V>) {
    let (entry, value) = (named(VALUES, section, name), value.into());
    assert_eq!(value.to_vec(), entry.hex(), "{name}");
    let decoded = decode(&entry.typespace(), &entry.ty(), &entry.hex());
    assert_eq!(decoded, Ok(value), "{name}");
}

#[test]
fn all_sections_are_read() {
    let sections = [
        "integers",
        "floats",
        "strings_and_arrays",
        "products",
        "sums",
        "special_types",
    ];
    sections_are(VALUES, &sections);
    sections_are(TYPES, &["types", "typespaces"]);
}

#[test]
fn integers() {
    each(VALUES, "integers", check);
    // Widths whose JSON is text: the constructors of the other crate agree with it.
    says("integers", "U256 2^256-1", U256::MAX);
    says("integers", "I256 -1", I256::MINUS_ONE);
    says("integers", "I256 -2^255", I256::MIN);
}

#[test]
fn floats() {
    each(VALUES, "floats", check);
    // These have no text in JSON.
    says("floats", "F32 +infinity", f32::INFINITY);
    says("floats", "F32 -infinity", f32::NEG_INFINITY);
    says("floats", "F32 quiet NaN", f32::from_bits(0x7fc0_0000));
    says("floats", "F64 +infinity", f64::INFINITY);
    says("floats", "F64 -infinity", f64::NEG_INFINITY);
    says("floats", "F64 quiet NaN", f64::from_bits(0x7ff8 << 48));
    // The ends of what JSON can say.
    says("floats", "F32 smallest subnormal", f32::from_bits(1));
    says("floats", "F32 largest finite", f32::MAX);
    says("floats", "F64 smallest subnormal", f64::from_bits(1));
    says("floats", "F64 largest finite", f64::MAX);
}

#[test]
fn strings_and_arrays() {
    each(VALUES, "strings_and_arrays", check);
    says("strings_and_arrays", "String of 300 x", "x".repeat(300));
}

#[test]
fn products() {
    each(VALUES, "products", check);
}

#[test]
fn composite_row() {
    let row = named(VALUES, "products", "composite row, 108 bytes");
    assert_eq!(row.hex().len(), 108);
    let ty = named(TYPES, "types", "composite row of 01-values.json");
    assert_eq!(ty.ty(), row.ty());
}

#[test]
fn sums() {
    each(VALUES, "sums", check);
    let list = named(VALUES, "sums", "recursive list [1, 2]").typespace();
    let same = named(TYPES, "typespaces", "recursive list of 01-values.json").typespace();
    assert_eq!(list, same);
}

/// A native value and the entry of a name encode alike, and the bytes decode to it.
fn native<N: Encode + Decode + PartialEq + std::fmt::Debug>(section: &str, name: &str, value: N) {
    let bytes = named(VALUES, section, name).hex();
    assert_eq!(value.to_vec(), bytes, "{name}");
    assert_eq!(N::from_slice(&bytes), Ok(value), "{name}");
}

#[test]
fn native_sums() {
    use std::ops::Bound;
    native("sums", "Bound<U32> included 5", Bound::Included(5u32));
    let excluded = Bound::Excluded("ab".to_owned());
    native("sums", "Bound<String> excluded \"ab\"", excluded);
    native("sums", "Bound<U32> unbounded", Bound::<u32>::Unbounded);
    native("sums", "Option<U32> some 7", Some(7u32));
    native("sums", "Option<U32> none", None::<u32>);
    let err = named(VALUES, "sums", "Result<U32, U32> err 7").hex();
    assert_eq!(Err::<u32, _>(7u32).to_vec(), err);
    let bytes = vec![1u8, 15, 44];
    native("strings_and_arrays", "bytes 01 0f 2c", bytes);
}

#[test]
fn special_types() {
    each(VALUES, "special_types", check);
    let section = "special_types";
    let alice = Identity::from_claims("localhost", "alice");
    native(section, "Identity of localhost and alice", alice);
    says(section, "Identity of localhost and alice", alice);
    says(section, "Identity 1", Identity::from_u256(U256::ONE));
    let hex = "000102030405060708090a0b0c0d0e0f";
    let id = ConnectionId::from_hex(hex).unwrap();
    native(section, &format!("ConnectionId {hex}"), id);
    says(section, &format!("ConnectionId {hex}"), id);
    says(section, "ConnectionId 0", ConnectionId::ZERO);
    says(section, "Timestamp of the epoch", Timestamp(0));
    says(section, "TimeDuration 1 s", TimeDuration(1_000_000));
    let interval = V::sum(0, TimeDuration(1_000_000).into());
    says(section, "ScheduleAt Interval 1 s", interval);
    each(VALUES, section, check_uuid_text);
}

/// The note of an entry about a UUID is the UUID's text.
fn check_uuid_text(entry: &Entry) {
    if entry.ty() != T::uuid() {
        return;
    }
    let text = entry.text("note").strip_prefix("text ").expect("a text");
    let uuid = Uuid::parse_text(text).unwrap();
    assert_eq!(uuid.to_string(), text);
    assert_eq!(V::from(uuid).to_vec(), entry.hex());
}

fn check_type(entry: &Entry) {
    let (ty, bytes) = (entry.ty(), entry.hex());
    assert_eq!(ty.to_vec(), bytes, "encoding of {ty}");
    assert_eq!(decode_type(&bytes), ty, "decoding as {ty}");
    let theirs: sats::AlgebraicType = sats::bsatn::from_slice(&bytes).unwrap();
    assert_eq!(sats::bsatn::to_vec(&theirs).unwrap(), bytes);
}

fn check_typespace(entry: &Entry) {
    let (typespace, bytes) = (entry.typespace(), entry.hex());
    assert_eq!(typespace.to_vec(), bytes);
    assert_eq!(Typespace::from_slice(&bytes), Ok(typespace.clone()));
    let theirs = sats_typespace(&typespace);
    assert_eq!(sats::bsatn::to_vec(&theirs).unwrap(), bytes);
}

#[test]
fn types() {
    each(TYPES, "types", check_type);
    each(TYPES, "typespaces", check_typespace);
    for (name, ty) in [
        ("unit", T::unit()),
        ("never", T::never()),
        ("bytes", T::bytes()),
        ("Option<U8>", T::option(T::U8)),
        ("Result<U8, String>", T::result(T::U8, T::String)),
        ("Identity", T::identity()),
        ("ConnectionId", T::connection_id()),
        ("Timestamp", T::timestamp()),
        ("TimeDuration", T::time_duration()),
        ("Uuid", T::uuid()),
        ("ScheduleAt", T::schedule_at()),
    ] {
        assert_eq!(named(TYPES, "types", name).ty(), ty, "{name}");
    }
}
