//! SATS-JSON: what is accepted, what is refused and how refusals read (01 §1.7).

use crate::common::{decode, type_from_json, type_to_json, typespace_from_json, typespace_to_json};
use crate::typed::Typed as _;
use lightcone_types::bsatn::Encode;
use lightcone_types::json::{
    args_from_json, parse, product_type_from_node, product_type_to_json, value_from_json,
    value_to_json_named, value_to_json_untyped,
};
use lightcone_types::{
    AlgebraicType as T, AlgebraicValue as V, ProductType, ProductTypeElement, SumType,
    SumTypeVariant, Typespace, I256, U256,
};
use lightcone_vectors::{each, sections_are, Entry};

fn read(ty: &T, text: &str) -> Result<V, String> {
    value_from_json(Typespace::EMPTY, ty, text).map_err(|e| e.to_string())
}

fn accepts(ty: T, texts: &[&str], value: impl Into<V>) {
    let value = value.into();
    for text in texts {
        assert_eq!(read(&ty, text).as_ref(), Ok(&value), "{text} as {ty}");
    }
}

fn rejects(ty: T, texts: &[&str]) {
    for text in texts {
        if let Ok(value) = read(&ty, text) {
            panic!("{text} as {ty} became {value:?}");
        }
    }
}

fn untyped(value: &V) -> String {
    let mut out = String::new();
    value_to_json_untyped(value, &mut out);
    out
}

fn named(entry: &Entry, value: &V) -> String {
    let mut out = String::new();
    value_to_json_named(&entry.typespace(), &entry.ty(), value, &mut out);
    out
}

const FILE: &str = "01-json.json";

#[test]
fn all_sections_are_read() {
    sections_are(FILE, &["accepted", "refused", "emitted", "errors"]);
}

fn value_of(entry: &Entry) -> V {
    decode(&entry.typespace(), &entry.ty(), &entry.hex()).expect("the bytes are a value")
}

#[test]
fn accepted() {
    each(FILE, "accepted", |entry| {
        let value = value_of(entry);
        for text in entry.texts("json") {
            assert_eq!(entry.read(text).as_ref(), Ok(&value), "{text}");
        }
    });
}

#[test]
fn refused() {
    each(FILE, "refused", |entry| {
        for text in entry.texts("json") {
            if let Ok(value) = entry.read(text) {
                panic!("{text} as {} became {value:?}", entry.ty());
            }
        }
    });
}

/// Beyond the file: texts and types that it has no entry for.
#[test]
fn strings() {
    accepts(
        T::String,
        &[r#""a\"\\\/\b\f\n\r\t\u00e9""#],
        "a\"\\/\u{8}\u{c}\n\r\té",
    );
    accepts(T::String, &[r#""\uD83E\uDD76""#], "🥶");
    rejects(T::String, &[r#""\ud83e\u0041""#]);
    rejects(T::bytes(), &["\"é\""]);
    assert_eq!(
        untyped(&"\"\\/\u{8}\n\u{1}\u{7f}é".into()),
        r#""\"\\/\b\n\u0001é""#.replace('é', "\u{7f}é")
    );
}

#[test]
fn wide_integers_at_the_ends_of_their_range() {
    let least = format!("\"-0x8{}\"", "0".repeat(63));
    accepts(T::I256, &[&least], I256::MIN);
    let greatest = format!("\"0x7{}\"", "f".repeat(63));
    accepts(T::I256, &[&greatest], I256::MAX);
    accepts(T::I256, &["\"-0x0\"", "\"+0x000\""], I256::ZERO);
    accepts(T::I256, &["\"-0xA\""], I256::from(-10));
    let beyond = [
        format!("\"0x8{}\"", "0".repeat(63)),
        format!("\"-0x8{}1\"", "0".repeat(62)),
    ];
    rejects(
        T::I256,
        &[&beyond[0], &beyond[1], "\"-0x\"", "\"--0x1\"", "\"0x+1\""],
    );
    let greatest = format!("\"+0x00{}\"", "f".repeat(64));
    accepts(T::U256, &[&greatest], U256::MAX);
    let beyond = format!("\"0x1{}\"", "0".repeat(64));
    rejects(T::U256, &[&beyond, "\"-0x0\"", "\"-0x1\""]);
    for (value, text) in [
        (V::from(I256::MIN), &*least),
        (V::from(I256::from(-10)), "\"-0xa\""),
        (V::from(U256::ZERO), "\"0x0\""),
        (V::from(U256::from(0x100_u16)), "\"0x100\""),
    ] {
        assert_eq!(untyped(&value), text);
    }
}

#[test]
fn unnamed_variants() {
    let unnamed = SumTypeVariant {
        name: None,
        algebraic_type: T::U8,
    };
    let ty = T::Sum(SumType {
        variants: vec![unnamed],
    });
    accepts(ty, &["[0,5]", r#"{"0":5}"#], V::sum(0, 5u8.into()));
}

#[test]
fn emission() {
    each(FILE, "emitted", |entry| {
        let value = value_of(entry);
        assert_eq!(named(entry, &value), entry.text("named"));
        assert_eq!(untyped(&value), entry.text("untyped"));
    });
}

#[test]
fn types_in_json() {
    let ty = T::product([
        ("r", T::reference(3)),
        ("a", T::array(T::U8)),
        ("o", T::option(T::String)),
    ]);
    let text = concat!(
        r#"{"elements":[{"name":{"some":"r"},"algebraic_type":{"Ref":3}},"#,
        r#"{"name":{"some":"a"},"algebraic_type":{"Array":{"U8":[]}}},"#,
        r#"{"name":{"some":"o"},"algebraic_type":{"Sum":{"variants":["#,
        r#"{"name":{"some":"some"},"algebraic_type":{"String":[]}},"#,
        r#"{"name":{"some":"none"},"algebraic_type":{"Product":{"elements":[]}}}]}}}]}"#
    );
    let product = ty.as_product().unwrap();
    let mut out = String::new();
    product_type_to_json(product, &mut out);
    assert_eq!(out, text);
    let node = parse(text).unwrap();
    assert_eq!(product_type_from_node(&node).unwrap(), *product);
    let unnamed = ProductTypeElement {
        name: None,
        algebraic_type: T::F32,
    };
    let tuple = T::Product(ProductType {
        elements: vec![unnamed],
    });
    let out = type_to_json(&tuple);
    assert_eq!(
        out,
        r#"{"Product":{"elements":[{"name":{"none":[]},"algebraic_type":{"F32":[]}}]}}"#
    );
    assert_eq!(type_from_json(&out).unwrap(), tuple);
    assert_eq!(type_from_json(r#"[5,[]]"#).unwrap(), T::Bool);
    assert!(type_from_json(r#"{"u8":[]}"#).is_err());
    assert!(type_from_json(r#"{"Product":{"elements":[],"extra":1}}"#).is_err());
    let typespace = Typespace::new(vec![ty, tuple]);
    let out = typespace_to_json(&typespace);
    assert_eq!(typespace_from_json(&out).unwrap(), typespace);
}

fn args(text: &str) -> Result<Vec<u8>, String> {
    let params = ProductType::new([("id", T::reference(0)), ("userName", T::String)]);
    let typespace = Typespace::new(vec![T::U32]);
    let canonical = ["id", "user_name"].map(str::to_owned);
    args_from_json(&typespace, &params, &canonical, "add", text).map_err(|e| e.to_string())
}

#[test]
fn arguments() {
    let expected = (5u32.to_vec().into_iter())
        .chain("x".to_owned().to_vec())
        .collect::<Vec<u8>>();
    assert_eq!(args(r#"[5,"x"]"#), Ok(expected.clone()));
    assert_eq!(args(r#" {"userName":"x","id":5} "#), Ok(expected.clone()));
    assert_eq!(args(r#" {"user_name":"x","id":5} "#), Ok(expected));
    for (text, message) in [
        (
            "[5]",
            "invalid length 1, expected reducer args for add with 2 elements at line 1 column 3",
        ),
        (
            r#"["5","x"]"#,
            "[0]: invalid type: string \"5\", expected u32 at line 1 column 4",
        ),
        (
            r#"{"id":5}"#,
            "missing reducer argument `userName` at line 1 column 8",
        ),
        (
            r#"{"id":5,"id":5,"userName":"x"}"#,
            "duplicate reducer argument `id` at line 1 column 14",
        ),
        (
            r#"{"id":5,"user_name":"x","userName":"x"}"#,
            "duplicate reducer argument `userName` at line 1 column 38",
        ),
        (
            "{\"id\":5,\n\"username\":\"x\"}",
            "unknown reducer argument `username`, expected `id` or `userName` at line 2 column 14",
        ),
        ("", "EOF while parsing a value at line 1 column 0"),
        ("[5,\"x\"] 1", "trailing characters at line 1 column 9"),
    ] {
        assert_eq!(args(text).unwrap_err(), message, "{text}");
    }
    let none = ProductType::unit();
    assert_eq!(
        args_from_json(Typespace::EMPTY, &none, &[], "f", "[]").unwrap(),
        Vec::<u8>::new()
    );
    assert_eq!(
        args_from_json(Typespace::EMPTY, &none, &[], "f", "{}").unwrap(),
        Vec::<u8>::new()
    );
    assert!(args_from_json(Typespace::EMPTY, &none, &[], "f", "null").is_err());
}

#[test]
fn error_texts() {
    each(FILE, "errors", |entry| {
        let (ty, text) = (entry.ty(), entry.text("json"));
        let error = value_from_json(Typespace::EMPTY, &ty, text).unwrap_err();
        assert_eq!(error.message(), entry.text("message"));
    });
    let pair = T::product([("0", T::U8), ("1", T::U8)]);
    let row = T::product([("pos", T::product([("xs", T::array(pair))]))]);
    let error = read(&row, r#"{"pos":{"xs":[[1,2],[3,true]]}}"#).unwrap_err();
    assert!(error.starts_with("pos.xs[1][1]: invalid type"), "{error}");
}

#[test]
fn nesting_is_limited() {
    let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    assert!(parse(&nested(127)).is_ok());
    let error = parse(&nested(128)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "recursion limit exceeded at line 1 column 128"
    );
    assert!(parse(&"[".repeat(1_000_000)).is_err());
    assert!(serde_json::from_str::<serde_json::Value>(&nested(127)).is_ok());
    assert!(serde_json::from_str::<serde_json::Value>(&nested(128)).is_err());
}

/// The text that is written for a float, and what is read back from it.
fn through_json(ty: &T, value: &V) -> (String, V) {
    let mut text = String::new();
    value_to_json_untyped(value, &mut text);
    let read = read(ty, &text).unwrap_or_else(|error| panic!("{text}: {error}"));
    (text, read)
}

fn survives_64(value: f64) {
    if !value.is_finite() {
        return;
    }
    let (text, read) = through_json(&T::F64, &V::F64(value));
    let V::F64(read) = read else {
        panic!("{text} became another type")
    };
    assert_eq!(read.to_bits(), value.to_bits(), "{value:e} as {text}");
    // What clients in other languages do with the text.
    assert_eq!(
        text.parse().map(f64::to_bits),
        Ok(value.to_bits()),
        "{text}"
    );
}

fn survives_32(value: f32) {
    if !value.is_finite() {
        return;
    }
    let (text, read) = through_json(&T::F32, &V::F32(value));
    let V::F32(read) = read else {
        panic!("{text} became another type")
    };
    assert_eq!(read.to_bits(), value.to_bits(), "{value:e} as {text}");
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(20_000))]

    /// Bit for bit: any bits, decimals as people write them, and neighbours of powers of two.
    #[test]
    fn floats_survive_exactly(
        bits: u64,
        digits in -999_999_999_999_999_999_i64..999_999_999_999_999_999,
        exponent in -340_i32..310,
        power in -1074_i32..1024,
        steps in -3_i64..4,
    ) {
        survives_64(f64::from_bits(bits));
        survives_32(f32::from_bits(bits as u32));
        let decimal = format!("{digits}e{exponent}");
        survives_64(decimal.parse().expect("a number"));
        survives_32(decimal.parse().expect("a number"));
        let of_power = 2_f64.powi(power);
        survives_64(f64::from_bits(of_power.to_bits().saturating_add_signed(steps)));
        let of_power = (of_power as f32).to_bits();
        survives_32(f32::from_bits(of_power.saturating_add_signed(steps as i32)));
    }
}
