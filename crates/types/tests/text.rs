//! Cell text (the expected texts are those of the published formatter unless noted), times, UUIDs.

use lightcone_types::text::format_value;
use lightcone_types::{
    AlgebraicType as T, AlgebraicValue as V, ConnectionId, Identity, ProductType,
    ProductTypeElement, TimeDuration, Timestamp, Typespace, Uuid, I256, U256,
};
use lightcone_vectors::{each, file, sections_are, Entry};
use spacetimedb_sats as sats;

const FILE: &str = "01-texts.json";

#[test]
fn all_sections_are_read() {
    let sections = [
        "timestamps",
        "timestamps_read",
        "timestamps_refused",
        "durations",
        "uuids",
    ];
    sections_are(FILE, &sections);
}

fn cell(ty: T, value: impl Into<V>) -> String {
    format_value(Typespace::EMPTY, &ty, &value.into())
}

#[test]
fn scalars() {
    assert_eq!(cell(T::Bool, true), "true");
    assert_eq!(cell(T::I128, -5i128), "-5");
    assert_eq!(
        cell(T::U256, U256::new(1) << 70u32),
        "1180591620717411303424"
    );
    assert_eq!(cell(T::I256, I256::new(-3)), "-3");
    assert_eq!(cell(T::F32, 0.1f32), "0.1");
    assert_eq!(cell(T::F64, 1.0), "1");
    assert_eq!(cell(T::F64, 1e-9), "0.000000001");
    assert_eq!(cell(T::F64, f64::NAN), "NaN");
    assert_eq!(cell(T::F64, f64::NEG_INFINITY), "-inf");
    assert_eq!(cell(T::String, "a\"b\\c é"), "\"a\"b\\c é\"");
    assert_eq!(
        cell(T::String, "a\nb"),
        "\"a\\nb\"",
        "control characters are escaped by us"
    );
    assert_eq!(cell(T::bytes(), V::Bytes(vec![1, 255])), "0x01ff");
    assert_eq!(cell(T::bytes(), V::Bytes(vec![])), "0x");
}

#[test]
fn special_types() {
    let hex = "c20035600353a2e93544d898c6ed0eac323e200c0468300f22958f8b472a265d";
    let alice = Identity::from_claims("localhost", "alice");
    assert_eq!(cell(T::identity(), alice), format!("0x{hex}"));
    assert_eq!(
        cell(T::connection_id(), ConnectionId(5)),
        "0x00000000000000000000000000000005"
    );
    assert_eq!(
        cell(T::timestamp(), Timestamp(1739788245123456)),
        "2025-02-17T10:30:45.123456+00:00"
    );
    assert_eq!(
        cell(T::time_duration(), TimeDuration(-1_500_000)),
        "-1.500000"
    );
    assert_eq!(
        cell(T::uuid(), Uuid(5)),
        "\"00000000-0000-0000-0000-000000000005\""
    );
    let interval = V::sum(0, TimeDuration(1_000_000).into());
    assert_eq!(
        cell(T::schedule_at(), interval),
        "(Interval = (__time_duration_micros__ = +1.000000))"
    );
    let some = V::some(alice.into());
    assert_eq!(
        cell(T::option(T::identity()), some),
        format!("(some = (__identity__ = 0x{hex}))")
    );
}

#[test]
fn products_sums_and_arrays() {
    assert_eq!(cell(T::unit(), V::unit()), "()");
    let ab = || T::product([("a", T::U8), ("b", T::String)]);
    let row = || V::Product(vec![1u8.into(), "x".into()]);
    assert_eq!(cell(ab(), row()), "(a = 1, b = \"x\")");
    let timed = T::product([("id", T::uuid()), ("at", T::timestamp())]);
    let value = V::Product(vec![Uuid(7).into(), Timestamp(5).into()]);
    assert_eq!(
        cell(timed, value),
        "(id = \"00000000-0000-0000-0000-000000000007\", at = 1970-01-01T00:00:00.000005+00:00)"
    );
    let unnamed = || ProductTypeElement {
        name: None,
        algebraic_type: T::U8,
    };
    let pair = T::Product(ProductType {
        elements: vec![unnamed(), unnamed()],
    });
    assert_eq!(
        cell(pair, V::Product(vec![1u8.into(), 2u8.into()])),
        "(col_0 = 1, col_1 = 2)"
    );
    assert_eq!(cell(T::option(T::U32), V::some(5u32.into())), "(some = 5)");
    assert_eq!(cell(T::option(T::U32), V::none()), "(none = ())");
    assert_eq!(cell(T::simple_enum(["A", "B"]), V::enum_tag(1)), "(B = ())");
    // The published formatter glues elements together; ours keeps them apart.
    assert_eq!(
        cell(T::array(ab()), V::Array(vec![row()])),
        "[(a = 1, b = \"x\")]"
    );
    assert_eq!(
        cell(T::array(T::I8), V::Array(vec![1i8.into(), 2i8.into()])),
        "[1, 2]"
    );
}

#[test]
fn a_value_of_another_type_still_has_a_text() {
    assert_eq!(
        cell(T::U8, V::Product(vec![V::some(1u8.into())])),
        "(col_0 = (col_0 = 1))"
    );
    assert_eq!(cell(T::reference(9), "x"), "\"x\"");
}

#[test]
fn timestamps_and_durations() {
    for micros in [
        0,
        1,
        -1,
        1000,
        -1000,
        1739788245123456,
        951_782_400_000_000,
        -62135596800000000,
        -62167219200000001,
        253402300800000000,
        7_000_000_000_000_000_000,
        -7_000_000_000_000_000_000,
    ] {
        let theirs = sats::timestamp::Timestamp::from_micros_since_unix_epoch(micros);
        assert_eq!(Timestamp(micros).to_rfc3339(), theirs.to_rfc3339().unwrap());
        let theirs = sats::time_duration::TimeDuration::from_micros(micros);
        assert_eq!(TimeDuration(micros).to_string(), theirs.to_string());
        assert_eq!(TimeDuration(micros).to_iso8601(), theirs.to_iso8601());
    }
    each(FILE, "timestamps", |entry| {
        let text = Timestamp(entry.number("micros")).to_rfc3339();
        assert_eq!(text, entry.text("text"));
    });
    each(FILE, "durations", |entry| {
        let duration = TimeDuration(entry.number("micros"));
        assert_eq!(duration.to_string(), entry.text("text"));
        assert_eq!(duration.to_iso8601(), entry.text("iso8601"));
        // The published crate cannot negate the least number.
        if duration.0 > i64::MIN {
            let theirs = sats::time_duration::TimeDuration::from_micros(duration.0);
            assert_eq!(duration.to_string(), theirs.to_string());
            assert_eq!(duration.to_iso8601(), theirs.to_iso8601());
        }
    });
}

fn published_timestamp(text: &str) -> Option<Timestamp> {
    let theirs = sats::timestamp::Timestamp::parse_from_rfc3339(text).ok()?;
    Some(Timestamp(theirs.to_micros_since_unix_epoch()))
}

#[test]
fn timestamp_parsing() {
    each(FILE, "timestamps_read", |entry| {
        let expected = Timestamp(entry.number("micros"));
        assert_eq!(Timestamp::parse_rfc3339(entry.text("text")), Ok(expected));
        assert_eq!(published_timestamp(entry.text("text")), Some(expected));
    });
    each(FILE, "timestamps_refused", |entry| {
        let text = entry.0.as_str().expect("a text");
        assert!(Timestamp::parse_rfc3339(text).is_err(), "{text}");
        assert_eq!(published_timestamp(text), None, "{text}");
    });
    // Whatever the published crate makes of these, the same is made here.
    for text in [
        "2025-02-10T15:45:60Z",
        "2024-02-29T00:00:00Z",
        "1900-02-29T00:00:00Z",
        "1969-12-31T23:59:59.9999999Z",
        "0000-01-01T00:00:00Z",
    ] {
        let ours = Timestamp::parse_rfc3339(text).ok();
        assert_eq!(ours, published_timestamp(text), "{text}");
    }
}

#[test]
fn uuid_parsing() {
    let uuids = Entry(file(FILE)["uuids"].take());
    let uuid = Uuid(0x000102030405060708090a0b0c0d0e0f);
    assert_eq!(uuid.to_string(), uuids.text("text"));
    for text in uuids.texts("accepted") {
        assert_eq!(Uuid::parse_text(text), Ok(uuid), "{text}");
    }
    // As many bytes as a UUID has digits, but not as many characters.
    let mut refused = uuids.texts("refused");
    refused.push("000102030405060708090a0b0c0d0eé");
    for text in refused {
        assert!(Uuid::parse_text(text).is_err(), "{text}");
    }
}
