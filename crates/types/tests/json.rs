//! SATS-JSON: what is accepted, what is refused and how refusals read (spec 1.7).

use lightcone_types::bsatn::Encode;
use lightcone_types::json::{
    args_from_json, parse, product_type_from_json, product_type_to_json, type_from_json,
    type_to_json, typespace_from_json, typespace_to_json, value_from_json, value_to_json_named,
    value_to_json_untyped,
};
use lightcone_types::{
    AlgebraicType as T, AlgebraicValue as V, Identity, ProductType, ProductTypeElement, SumType,
    SumTypeVariant, Typespace, I256, U256,
};

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

#[test]
fn illustrations() {
    let ty = T::product([
        ("foo", T::U32),
        ("bar", T::bytes()),
        ("quux", T::sum([("Hash", T::bytes()), ("Unit", T::unit())])),
        ("opt", T::option(T::F64)),
        ("res", T::result(T::U32, T::String)),
        ("id", T::identity()),
    ]);
    let value = V::Product(vec![
        42u32.into(),
        V::Bytes(vec![64, 64, 255, 10]),
        V::sum(0, V::Bytes(vec![0x54, 0xa3])),
        V::some(3.5.into()),
        V::sum(0, 1u32.into()),
        Identity::ZERO.into(),
    ]);
    let texts = [
        r#"{"foo":42,"bar":"4040FF0a","quux":{"Hash":"54a3"},"opt":{"some":3.5},"res":{"ok":1},"id":["0x0"]}"#,
        r#"[42,[64,64,255,10],[0,"54a3"],[0,3.5],{"0":1},{"__identity__":"0x00"}]"#,
    ];
    accepts(ty.clone(), &texts, value.clone());
    let other = V::Product(vec![
        1u32.into(),
        V::Bytes(vec![]),
        V::enum_tag(1),
        V::none(),
        V::sum(1, "no".into()),
        Identity::from_u256(U256::ONE).into(),
    ]);
    let text =
        r#"{"foo":1,"bar":"","quux":{"Unit":[]},"opt":null,"res":{"err":"no"},"id":["0x1"]}"#;
    accepts(ty.clone(), &[text], other);
    let mut named = String::new();
    value_to_json_named(Typespace::EMPTY, &ty, &value, &mut named);
    assert_eq!(
        named,
        r#"{"foo":42,"bar":"4040ff0a","quux":{"Hash":"54a3"},"opt":{"some":3.5},"res":{"ok":1},"id":{"__identity__":"0x0"}}"#
    );
    assert_eq!(
        untyped(&value),
        r#"[42,"4040ff0a",[0,"54a3"],[0,3.5],[0,1],["0x0"]]"#
    );
}

#[test]
fn primitives() {
    accepts(T::Bool, &["true", " true\n"], true);
    rejects(T::Bool, &["1", "\"true\"", "null", "True", "tru", ""]);
    accepts(T::U8, &["255"], 255u8);
    rejects(
        T::U8,
        &[
            "256", "-1", "\"1\"", "1.0", "1e1", "-0", "01", "+1", "0x1", "null",
        ],
    );
    accepts(T::I64, &["-9223372036854775808"], i64::MIN);
    rejects(
        T::I64,
        &["-9223372036854775809", "9223372036854775808", "-0"],
    );
    accepts(T::U64, &["18446744073709551615"], u64::MAX);
    rejects(T::U64, &["18446744073709551616"]);
    accepts(
        T::U128,
        &["340282366920938463463374607431768211455"],
        u128::MAX,
    );
    rejects(
        T::U128,
        &[
            "340282366920938463463374607431768211456",
            "-1",
            "-0",
            "\"1\"",
            "1.0",
        ],
    );
    accepts(
        T::I128,
        &["-170141183460469231731687303715884105728"],
        i128::MIN,
    );
    accepts(T::I128, &["-0", "0"], 0i128);
    rejects(
        T::I128,
        &["170141183460469231731687303715884105728", "\"0\"", "1e3"],
    );
    let max = format!("\"0x{}\"", "f".repeat(64));
    accepts(
        T::U256,
        &[&max, &max.to_uppercase().replace("0X", "+0x")],
        U256::MAX,
    );
    accepts(
        T::U256,
        &[
            "\"0x000a\"",
            "\"0xA\"",
            &format!("\"0x{}a\"", "0".repeat(90)),
        ],
        U256::new(10),
    );
    let too_large = format!("\"0x1{}\"", "0".repeat(64));
    rejects(
        T::U256,
        &[
            "10", "\"10\"", "\"0x\"", "\"0X1\"", "\"-0x1\"", "\"0x+1\"", &too_large,
        ],
    );
    let min = format!("\"-0x8{}\"", "0".repeat(63));
    accepts(T::I256, &[&min], I256::MIN);
    accepts(T::I256, &["\"-0x1\""], I256::MINUS_ONE);
    accepts(T::I256, &["\"+0x1\"", "\"0x1\""], I256::ONE);
    rejects(
        T::I256,
        &[
            &min.replace('-', ""),
            &min.replace('8', "9"),
            "\"--0x1\"",
            "-1",
        ],
    );
    accepts(T::F64, &["1", "1.0", "1e0", "10E-1"], 1.0f64);
    accepts(T::F64, &["-0", "-0.0"], -0.0f64);
    rejects(
        T::F64,
        &[
            "null", "\"1\"", "1e400", "NaN", "Infinity", ".5", "5.", "1e",
        ],
    );
    accepts(T::F32, &["1e40"], f32::INFINITY);
    accepts(T::F32, &["-1e40"], f32::NEG_INFINITY);
    accepts(T::F32, &["0.1"], 0.1f32);
}

#[test]
fn strings() {
    accepts(
        T::String,
        &[r#""a\"\\\/\b\f\n\r\t\u00e9""#],
        "a\"\\/\u{8}\u{c}\n\r\té",
    );
    accepts(
        T::String,
        &[r#""\ud83e\udd76""#, "\"🥶\"", r#""\uD83E\uDD76""#],
        "🥶",
    );
    rejects(
        T::String,
        &[
            r#""\ud83e""#,
            r#""\udd76""#,
            r#""\ud83e\u0041""#,
            r#""\x""#,
            "\"a\nb\"",
            "\"",
            "5",
            r#""\u12""#,
        ],
    );
    assert_eq!(
        untyped(&"\"\\/\u{8}\n\u{1}\u{7f}é".into()),
        r#""\"\\/\b\n\u0001é""#.replace('é', "\u{7f}é")
    );
}

#[test]
fn compounds() {
    accepts(
        T::bytes(),
        &["\"010A\"", "[1,10]", "\"010a\""],
        V::Bytes(vec![1, 10]),
    );
    rejects(
        T::bytes(),
        &["\"1\"", "\"0x01\"", "[256]", "[-1]", "5", "\"zz\"", "\"é\""],
    );
    accepts(
        T::array(T::I8),
        &["[1,-1]"],
        V::Array(vec![1i8.into(), (-1i8).into()]),
    );
    rejects(T::array(T::I8), &["\"01\"", "{}", "[1,]", "[1", "[1 2]"]);
    accepts(T::unit(), &["[]", "{}"], V::unit());
    rejects(T::unit(), &["null", "[1]", "{\"a\":1}"]);
    let ab = || T::product([("a", T::U8), ("b", T::U8)]);
    let texts = [
        r#"{"a":1,"b":2}"#,
        r#"{"b":2,"a":1}"#,
        "[1,2]",
        "{\"\\u0061\":1,\"b\":2}",
    ];
    accepts(ab(), &texts, V::Product(vec![1u8.into(), 2u8.into()]));
    rejects(
        ab(),
        &[
            "[1]",
            "[1,2,3]",
            r#"{"a":1}"#,
            r#"{"a":1,"b":2,"c":3}"#,
            r#"{"a":1,"a":1,"b":2}"#,
            r#"{"a":1,"b":2,}"#,
            r#"{"a":1,"b":null}"#,
        ],
    );
    let unnamed = ProductTypeElement {
        name: None,
        algebraic_type: T::U8,
    };
    let tuple = T::Product(ProductType {
        elements: vec![unnamed],
    });
    accepts(tuple.clone(), &["[1]"], V::Product(vec![1u8.into()]));
    rejects(tuple, &[r#"{"0":1}"#, "{}"]);
    rejects(T::identity(), &["\"0x1\"", "[1]", "null"]);
    rejects(T::timestamp(), &["5", "[\"5\"]"]);
    accepts(T::timestamp(), &["[5]"], V::Product(vec![5i64.into()]));
}

#[test]
fn sums() {
    let ty = || T::sum([("A", T::U8), ("b", T::unit()), ("0", T::String)]);
    let texts = [
        r#"{"A":5}"#,
        r#"{"0":5}"#,
        "[0,5]",
        r#"["A",5]"#,
        r#"["0",5]"#,
    ];
    accepts(ty(), &texts, V::sum(0, 5u8.into()));
    // A key that reads as a tag is the tag even though a variant has that name.
    accepts(ty(), &[r#"{"2":"x"}"#, r#"[2,"x"]"#], V::sum(2, "x".into()));
    rejects(
        ty(),
        &[
            r#""b""#,
            "1",
            "null",
            "{}",
            "[]",
            "[0]",
            "[0,5,6]",
            r#"{"A":5,"b":[]}"#,
            "[3,1]",
            r#"{"a":5}"#,
            "[1.0,[]]",
            "[-1,5]",
            r#"{"b":null}"#,
            r#"{"256":5}"#,
            "[256,5]",
        ],
    );
    rejects(T::never(), &["[0,[]]", "{}", "null"]);
    let unnamed = SumTypeVariant {
        name: None,
        algebraic_type: T::U8,
    };
    let ty = T::Sum(SumType {
        variants: vec![unnamed],
    });
    accepts(ty, &["[0,5]", r#"{"0":5}"#], V::sum(0, 5u8.into()));
    accepts(
        T::option(T::U8),
        &["null", "[1,[]]", r#"{"none":{}}"#],
        V::none(),
    );
    rejects(T::option(T::U8), &["5", r#""none""#, r#"{"some":null}"#]);
    accepts(T::option(T::option(T::U8)), &["null"], V::none());
    accepts(
        T::option(T::option(T::U8)),
        &[r#"{"some":null}"#],
        V::some(V::none()),
    );
    rejects(T::sum([("none", T::unit()), ("some", T::U8)]), &["null"]);
    rejects(T::result(T::unit(), T::unit()), &["null"]);
    let time = V::sum(1, V::Product(vec![5i64.into()]));
    let texts = [
        r#"{"Time":{"__timestamp_micros_since_unix_epoch__":5}}"#,
        "[1,[5]]",
    ];
    accepts(T::schedule_at(), &texts, time);
}

#[test]
fn emission() {
    let check = |value: V, text: &str| assert_eq!(untyped(&value), text);
    check(u64::MAX.into(), "18446744073709551615");
    check(i128::MIN.into(), "-170141183460469231731687303715884105728");
    check(U256::ZERO.into(), "\"0x0\"");
    check(I256::MINUS_ONE.into(), "\"-0x1\"");
    check(I256::new(-10).into(), "\"-0xa\"");
    check(1.0f64.into(), "1.0");
    check(1e16f64.into(), "1e16");
    check(1e-7f64.into(), "1e-7");
    check(0.1f32.into(), "0.1");
    check(f32::INFINITY.into(), "null");
    check(f64::NAN.into(), "null");
    check(V::Bytes(vec![]), "\"\"");
    check(V::enum_tag(1), "[1,[]]");
    check(V::unit(), "[]");
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
    assert_eq!(product_type_from_json(text).unwrap(), *product);
    let unnamed = ProductTypeElement {
        name: None,
        algebraic_type: T::F32,
    };
    let tuple = T::Product(ProductType {
        elements: vec![unnamed],
    });
    let mut out = String::new();
    type_to_json(&tuple, &mut out);
    assert_eq!(
        out,
        r#"{"Product":{"elements":[{"name":{"none":[]},"algebraic_type":{"F32":[]}}]}}"#
    );
    assert_eq!(type_from_json(&out).unwrap(), tuple);
    assert_eq!(type_from_json(r#"[5,[]]"#).unwrap(), T::Bool);
    assert!(type_from_json(r#"{"u8":[]}"#).is_err());
    assert!(type_from_json(r#"{"Product":{"elements":[],"extra":1}}"#).is_err());
    let typespace = Typespace::new(vec![ty, tuple]);
    let mut out = String::new();
    typespace_to_json(&typespace, &mut out);
    assert_eq!(typespace_from_json(&out).unwrap(), typespace);
}

fn args(text: &str) -> Result<Vec<u8>, String> {
    let params = ProductType::new([("id", T::reference(0)), ("userName", T::String)]);
    let typespace = Typespace::new(vec![T::U32]);
    args_from_json(&typespace, &params, "add", text).map_err(|e| e.to_string())
}

#[test]
fn arguments() {
    let expected = (5u32.to_vec().into_iter())
        .chain("x".to_owned().to_vec())
        .collect::<Vec<u8>>();
    assert_eq!(args(r#"[5,"x"]"#), Ok(expected.clone()));
    assert_eq!(args(r#" {"userName":"x","id":5} "#), Ok(expected));
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
            "{\"id\":5,\n\"user_name\":\"x\"}",
            "unknown reducer argument `user_name`, expected `id` or `userName` at line 2 column 15",
        ),
        ("", "EOF while parsing a value at line 1 column 0"),
        ("[5,\"x\"] 1", "trailing characters at line 1 column 9"),
    ] {
        assert_eq!(args(text).unwrap_err(), message, "{text}");
    }
    let none = ProductType::unit();
    assert_eq!(
        args_from_json(Typespace::EMPTY, &none, "f", "[]").unwrap(),
        Vec::<u8>::new()
    );
    assert_eq!(
        args_from_json(Typespace::EMPTY, &none, "f", "{}").unwrap(),
        Vec::<u8>::new()
    );
    assert!(args_from_json(Typespace::EMPTY, &none, "f", "null").is_err());
}

#[test]
fn error_texts() {
    let color = T::simple_enum(["Red", "Green", "Blue"]);
    let row = T::product([(
        "pos",
        T::product([("xs", T::array(T::U8.clone().into_pair()))]),
    )]);
    for (ty, text, message) in [
        (
            &color,
            r#"{"red":[]}"#,
            "unknown variant `red`, expected one of `Red`, `Green`, `Blue`",
        ),
        (
            &color,
            "{}",
            "expected map representing sum type to have exactly one field",
        ),
        (
            &color,
            "[0]",
            "expected seq representing sum type to have exactly two fields",
        ),
        (
            &T::bytes(),
            "\"0x\"",
            "invalid value: string \"0x\", expected a byte array or hex string",
        ),
        (
            &T::unit(),
            "[1]",
            "invalid length 1, expected product type <product> with 0 elements",
        ),
        (&row, r#"{"x":1}"#, "unknown field `x`, expected `pos`"),
        (&row, "{}", "missing field `pos`"),
        (
            &row,
            r#"{"pos":{"xs":[[1,2],[3,true]]}}"#,
            "invalid type: boolean `true`, expected u8",
        ),
    ] {
        let error = value_from_json(Typespace::EMPTY, ty, text).unwrap_err();
        assert_eq!(error.message(), message, "{text}");
    }
    let error = read(&row, r#"{"pos":{"xs":[[1,2],[3,true]]}}"#).unwrap_err();
    assert!(error.starts_with("pos.xs[1][1]: invalid type"), "{error}");
}

trait IntoPair {
    fn into_pair(self) -> T;
}

impl IntoPair for T {
    fn into_pair(self) -> T {
        T::product([("0", self.clone()), ("1", self)])
    }
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
