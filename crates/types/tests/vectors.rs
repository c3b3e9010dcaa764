//! Every byte vector of spec 1.12 that is a value or a type (see `rejects.rs` for the others), each also put before the published decoder.

mod common;

use common::{bytes, decode, decode_type, sats_typespace, sats_value};
use lightcone_types::bsatn::{Decode, Encode};
use lightcone_types::{
    AlgebraicType as T, AlgebraicValue as V, ConnectionId, Identity, ProductType,
    ProductTypeElement, TimeDuration, Timestamp, Typespace, Uuid, I256, U256,
};
use spacetimedb_sats as sats;

fn check_in(typespace: &Typespace, ty: &T, value: V, hex: &str) {
    let expected = bytes(hex);
    assert_eq!(value.to_vec(), expected, "encoding of {value:?}");
    assert_eq!(
        decode(typespace, ty, &expected),
        Ok(value),
        "decoding of {hex} as {ty}"
    );
    let theirs = sats_value(typespace, ty, &expected).expect("published decoder accepts");
    assert_eq!(
        sats::bsatn::to_vec(&theirs).unwrap(),
        expected,
        "published encoding of {theirs:?}"
    );
}

fn check(ty: T, value: impl Into<V>, hex: &str) {
    check_in(Typespace::EMPTY, &ty, value.into(), hex);
}

#[test]
fn integers() {
    check(T::Bool, false, "00");
    check(T::Bool, true, "01");
    check(T::U8, 0u8, "00");
    check(T::U8, 255u8, "ff");
    check(T::I8, -1i8, "ff");
    check(T::I8, -128i8, "80");
    check(T::I8, 127i8, "7f");
    check(T::U16, 1u16, "0100");
    check(T::U16, 0x1234u16, "3412");
    check(T::U16, 65535u16, "ffff");
    check(T::I16, -2i16, "feff");
    check(T::I16, -32768i16, "0080");
    check(T::U32, 1u32, "01000000");
    check(T::U32, 0x12345678u32, "78563412");
    check(T::U32, 4294967295u32, "ffffffff");
    check(T::I32, -1i32, "ffffffff");
    check(T::I32, -2147483648i32, "00000080");
    check(T::U64, 1u64, "0100000000000000");
    check(T::U64, 0x0123456789abcdefu64, "efcdab8967452301");
    check(T::U64, u64::MAX, "ffffffffffffffff");
    check(T::I64, -1i64, "ffffffffffffffff");
    check(T::I64, i64::MIN, "0000000000000080");
    check(T::U128, 1u128, "01000000000000000000000000000000");
    let ascending = 0x000102030405060708090a0b0c0d0e0fu128;
    check(T::U128, ascending, "0f0e0d0c0b0a09080706050403020100");
    check(T::U128, u128::MAX, "ffffffffffffffffffffffffffffffff");
    check(T::I128, -1i128, "ffffffffffffffffffffffffffffffff");
    check(T::I128, i128::MIN, "00000000000000000000000000000080");
    check(T::I128, 1i128 << 64, "00000000000000000100000000000000");
    check(T::U256, U256::ONE, &format!("01{}", "00".repeat(31)));
    let be: [u8; 32] = std::array::from_fn(|i| i as u8);
    let ascending = "1f1e1d1c1b1a191817161514131211100f0e0d0c0b0a09080706050403020100";
    check(T::U256, U256::from_be_bytes(be), ascending);
    check(T::U256, U256::MAX, &"ff".repeat(32));
    check(T::I256, I256::MINUS_ONE, &"ff".repeat(32));
    check(T::I256, I256::MIN, &format!("{}80", "00".repeat(31)));
    check(T::I256, I256::new(42), &format!("2a{}", "00".repeat(31)));
}

#[test]
fn floats() {
    for (value, hex) in [
        (0.0f32, "00000000"),
        (-0.0, "00000080"),
        (1.0, "0000803f"),
        (-1.5, "0000c0bf"),
        (std::f32::consts::PI, "db0f4940"),
        (f32::INFINITY, "0000807f"),
        (f32::NEG_INFINITY, "000080ff"),
        (f32::from_bits(0x7fc00000), "0000c07f"),
        (f32::from_bits(1), "01000000"),
        (f32::MAX, "ffff7f7f"),
    ] {
        check(T::F32, value, hex);
    }
    for (value, hex) in [
        (0.0f64, "0000000000000000"),
        (-0.0, "0000000000000080"),
        (1.0, "000000000000f03f"),
        (-1.5, "000000000000f8bf"),
        (std::f64::consts::PI, "182d4454fb210940"),
        (0.1, "9a9999999999b93f"),
        (f64::INFINITY, "000000000000f07f"),
        (f64::NEG_INFINITY, "000000000000f0ff"),
        (f64::from_bits(0x7ff8 << 48), "000000000000f87f"),
        (f64::from_bits(1), "0100000000000000"),
        (f64::MAX, "ffffffffffffef7f"),
    ] {
        check(T::F64, value, hex);
    }
}

fn array(elements: impl IntoIterator<Item = impl Into<V>>) -> V {
    V::Array(elements.into_iter().map(Into::into).collect())
}

fn product(elements: impl IntoIterator<Item = V>) -> V {
    V::Product(elements.into_iter().collect())
}

#[test]
fn strings_and_arrays() {
    check(T::String, "", "00000000");
    check(T::String, "a", "0100000061");
    check(T::String, "Hello", "0500000048656c6c6f");
    check(T::String, "héllo", "0600000068c3a96c6c6f");
    check(T::String, "\u{1f976}", "04000000f09fa5b6");
    check(T::String, "\0", "0100000000");
    check(
        T::String,
        "x".repeat(300),
        &format!("2c010000{}", "78".repeat(300)),
    );
    check(T::bytes(), V::Bytes(vec![]), "00000000");
    check(T::bytes(), V::Bytes(vec![1, 15, 0x2c]), "03000000010f2c");
    check(T::array(T::I8), array([-1i8, 2]), "02000000ff02");
    check(
        T::array(T::Bool),
        array([true, false, true]),
        "03000000010001",
    );
    check(T::array(T::U16), array([1u16, 2]), "0200000001000200");
    check(
        T::array(T::I32),
        array([-1i32, 0, 1]),
        "03000000ffffffff0000000001000000",
    );
    check(T::array(T::U64), array([1u64]), "010000000100000000000000");
    check(
        T::array(T::F64),
        array([1.0f64]),
        "01000000000000000000f03f",
    );
    check(
        T::array(T::String),
        array(["ab", ""]),
        "0200000002000000616200000000",
    );
    let nested = array([V::Bytes(vec![1]), V::Bytes(vec![])]);
    check(T::array(T::bytes()), nested, "02000000010000000100000000");
    check(
        T::array(T::unit()),
        array([V::unit(), V::unit(), V::unit()]),
        "03000000",
    );
    let rows = array([
        product([7u8.into(), "x".into()]),
        product([8u8.into(), "".into()]),
    ]);
    let row_type = T::product([("a", T::U8), ("b", T::String)]);
    check(T::array(row_type), rows, "020000000701000000780800000000");
    let options = array([V::some(1u16.into()), V::none()]);
    check(T::array(T::option(T::U16)), options, "0200000000010001");
}

#[test]
fn products() {
    check(T::unit(), V::unit(), "");
    let ty = T::product([("a", T::U8), ("b", T::U32)]);
    check(ty, product([1u8.into(), 2u32.into()]), "0102000000");
    let ty = T::product([("x", T::F32), ("y", T::F32)]);
    check(
        ty,
        product([1.0f32.into(), (-2.0f32).into()]),
        "0000803f000000c0",
    );
    let ty = T::product([
        ("id", T::U64),
        ("name", T::String),
        ("tags", T::array(T::String)),
    ]);
    let value = product([42u64.into(), "Bob".into(), array(["a"])]);
    check(
        ty,
        value,
        "2a0000000000000003000000426f62010000000100000061",
    );
    let inner = T::product([("b", T::product([("c", T::Bool)]))]);
    let ty = T::product([("a", inner), ("d", T::U16)]);
    check(
        ty,
        product([product([product([true.into()])]), 513u16.into()]),
        "010102",
    );
    let ty = T::product([("flag", T::Bool), ("big", T::U128), ("s", T::String)]);
    let value = product([true.into(), 5u128.into(), "é".into()]);
    check(ty, value, "010500000000000000000000000000000002000000c3a9");
}

fn composite_type() -> T {
    T::product([
        ("b", T::Bool),
        ("i8", T::I8),
        ("u16", T::U16),
        ("i32", T::I32),
        ("u64", T::U64),
        ("f32", T::F32),
        ("f64", T::F64),
        ("s", T::String),
        ("bytes", T::bytes()),
        ("opt", T::option(T::U8)),
        ("e", T::simple_enum(["Red", "Green", "Blue"])),
        ("who", T::identity()),
        ("u256", T::U256),
    ])
}

const COMPOSITE_ROW: &str = "
01fb2c0190eefeff00e40b54020000000000003f000000000000d0bf0300000041c3b102000000dead00090102000000000000000000000000000000
000000000000000000000000000000000300000000000000000000000000000000000000000000000000000000000000";

const COMPOSITE_TYPE: &str = "
020d00000000010000006205000200000069380600030000007531360900030000006933320a00030000007536340d00030000006633321200030000
00663634130001000000730400050000006279746573030700030000006f707401020000000004000000736f6d650700040000006e6f6e6502000000
000001000000650103000000000300000052656402000000000005000000477265656e02000000000004000000426c75650200000000000300000077
686f0201000000000c0000005f5f6964656e746974795f5f1100040000007532353611";

#[test]
fn composite_row() {
    let value = product([
        true.into(),
        (-5i8).into(),
        300u16.into(),
        (-70000i32).into(),
        10000000000u64.into(),
        0.5f32.into(),
        (-0.25f64).into(),
        "Añ".into(),
        V::Bytes(vec![0xde, 0xad]),
        V::some(9u8.into()),
        V::enum_tag(1),
        Identity::from_u256(U256::new(2)).into(),
        U256::new(3).into(),
    ]);
    assert_eq!(bytes(COMPOSITE_ROW).len(), 108);
    check(composite_type(), value, COMPOSITE_ROW);
    check_type(composite_type(), COMPOSITE_TYPE);
}

fn list_typespace() -> Typespace {
    Typespace::new(vec![
        T::sum([("Nil", T::unit()), ("Cons", T::reference(1))]),
        T::product([("head", T::U8), ("tail", T::reference(0))]),
    ])
}

#[test]
fn sums() {
    let color = || T::simple_enum(["Red", "Green", "Blue"]);
    check(color(), V::enum_tag(0), "00");
    check(color(), V::enum_tag(2), "02");
    let pair = T::product([("a", T::U8), ("b", T::U8)]);
    let ty = T::sum([
        ("Nothing", T::unit()),
        ("Num", T::I32),
        ("Text", T::String),
        ("Pair", pair),
    ]);
    check(ty.clone(), V::enum_tag(0), "00");
    check(ty.clone(), V::sum(1, (-1i32).into()), "01ffffffff");
    check(ty.clone(), V::sum(2, "hi".into()), "02020000006869");
    check(ty, V::sum(3, product([1u8.into(), 2u8.into()])), "030102");
    check(T::option(T::U32), V::some(7u32.into()), "0007000000");
    check(T::option(T::U32), V::none(), "01");
    check(T::option(T::String), V::some("".into()), "0000000000");
    check(T::option(T::unit()), V::some(V::unit()), "00");
    check(
        T::option(T::option(T::U8)),
        V::some(V::some(1u8.into())),
        "000001",
    );
    let one = V::some(Identity::from_u256(U256::ONE).into());
    check(
        T::option(T::identity()),
        one,
        &format!("0001{}", "00".repeat(31)),
    );
    check(
        T::result(T::U32, T::U32),
        V::sum(0, 7u32.into()),
        "0007000000",
    );
    check(
        T::result(T::U32, T::U32),
        V::sum(1, 7u32.into()),
        "0107000000",
    );
    check(
        T::result(T::U32, T::String),
        V::sum(0, 7u32.into()),
        "0007000000",
    );
    let cons = |head: u8, tail: V| V::sum(1, product([head.into(), tail]));
    let list = cons(1, cons(2, V::enum_tag(0)));
    check_in(&list_typespace(), &T::reference(0), list, "0101010200");
    let bound = |inner: T| {
        T::sum([
            ("included", inner.clone()),
            ("excluded", inner),
            ("unbounded", T::unit()),
        ])
    };
    check(bound(T::U32), V::sum(0, 5u32.into()), "0005000000");
    check(bound(T::String), V::sum(1, "ab".into()), "01020000006162");
    check(bound(T::U32), V::enum_tag(2), "02");
}

#[test]
fn native_sums() {
    use std::ops::Bound;
    assert_eq!(Bound::Included(5u32).to_vec(), bytes("0005000000"));
    assert_eq!(
        Bound::Excluded("ab".to_owned()).to_vec(),
        bytes("01020000006162")
    );
    assert_eq!(Bound::<u32>::Unbounded.to_vec(), bytes("02"));
    assert_eq!(
        Bound::<u32>::from_slice(&bytes("0005000000")),
        Ok(Bound::Included(5))
    );
    assert_eq!(Bound::<u32>::from_slice(&bytes("02")), Ok(Bound::Unbounded));
    assert_eq!(Some(7u32).to_vec(), bytes("0007000000"));
    assert_eq!(Option::<u32>::from_slice(&bytes("01")), Ok(None));
    assert_eq!(Err::<u32, _>(7u32).to_vec(), bytes("0107000000"));
    assert_eq!(vec![1u8, 15, 44].to_vec(), bytes("03000000010f2c"));
    assert_eq!(
        Vec::<u8>::from_slice(&bytes("03000000010f2c")),
        Ok(vec![1, 15, 44])
    );
}

#[test]
fn special_types() {
    let hex = "c20035600353a2e93544d898c6ed0eac323e200c0468300f22958f8b472a265d";
    let alice = Identity::from_hex(hex).unwrap();
    let le = "5d262a478b8f95220f3068040c203e32ac0eedc698d84435e9a25303603500c2";
    check(T::identity(), alice, le);
    assert_eq!(alice.to_vec(), bytes(le));
    assert_eq!(Identity::from_slice(&bytes(le)), Ok(alice));
    check(
        T::identity(),
        Identity::from_u256(U256::ONE),
        &format!("01{}", "00".repeat(31)),
    );
    let id = ConnectionId::from_hex("000102030405060708090a0b0c0d0e0f").unwrap();
    assert_eq!(id.0, 5233100606242806050955395731361295);
    check(T::connection_id(), id, "0f0e0d0c0b0a09080706050403020100");
    assert_eq!(id.to_vec(), bytes("0f0e0d0c0b0a09080706050403020100"));
    check(T::connection_id(), ConnectionId::ZERO, &"00".repeat(16));
    check(T::timestamp(), Timestamp(0), "0000000000000000");
    check(
        T::timestamp(),
        Timestamp(1739788245123456),
        "80c15504542e0600",
    );
    check(T::timestamp(), Timestamp(-1), "ffffffffffffffff");
    check(
        T::time_duration(),
        TimeDuration(1_000_000),
        "40420f0000000000",
    );
    check(
        T::time_duration(),
        TimeDuration(-1_500_000),
        "a01ce9ffffffffff",
    );
    let uuids = [
        (
            "01888d6e-5c00-7000-8000-000000000000",
            "00000000000000800070005c6e8d8801",
        ),
        (
            "00000000-0000-0000-0000-000000000000",
            "00000000000000000000000000000000",
        ),
        (
            "00000000-0000-4000-8000-000000000000",
            "00000000000000800040000000000000",
        ),
        (
            "0000647e-5180-7000-8000-000200000000",
            "0000000002000080007080517e640000",
        ),
    ];
    for (text, hex) in uuids {
        let uuid = Uuid::parse_text(text).unwrap();
        assert_eq!(uuid.to_string(), text);
        check(T::uuid(), uuid, hex);
    }
    assert_eq!(
        Uuid::parse_text(uuids[0].0),
        Ok(Uuid(2038248931870793702824066173118709760))
    );
    let interval = V::sum(0, TimeDuration(1_000_000).into());
    check(T::schedule_at(), interval, "0040420f0000000000");
    check(
        T::schedule_at(),
        V::sum(1, Timestamp(1).into()),
        "010100000000000000",
    );
}

fn check_type(ty: T, hex: &str) {
    let expected = bytes(hex);
    assert_eq!(ty.to_vec(), expected, "encoding of {ty}");
    assert_eq!(decode_type(&expected), ty, "decoding of {hex}");
    let theirs: sats::AlgebraicType = sats::bsatn::from_slice(&expected).unwrap();
    assert_eq!(sats::bsatn::to_vec(&theirs).unwrap(), expected);
}

#[test]
fn types() {
    let leaves = [
        T::String,
        T::Bool,
        T::I8,
        T::U8,
        T::I16,
        T::U16,
        T::I32,
        T::U32,
        T::I64,
        T::U64,
        T::I128,
        T::U128,
        T::I256,
        T::U256,
        T::F32,
        T::F64,
    ];
    for (tag, ty) in (4u8..).zip(leaves) {
        check_type(ty, &format!("{tag:02x}"));
    }
    check_type(T::reference(0), "0000000000");
    check_type(T::reference(258), "0002010000");
    check_type(T::unit(), "0200000000");
    check_type(T::never(), "0100000000");
    check_type(T::bytes(), "0307");
    check_type(T::array(T::array(T::String)), "030304");
    let ab = T::product([("a", T::U8), ("b", T::String)]);
    check_type(ab, "02020000000001000000610700010000006204");
    let unnamed = ProductTypeElement {
        name: None,
        algebraic_type: T::U8,
    };
    check_type(
        T::Product(ProductType {
            elements: vec![unnamed],
        }),
        "02010000000107",
    );
    let sum = T::sum([("A", T::unit()), ("B", T::U32)]);
    check_type(sum, "010200000000010000004102000000000001000000420b");
    check_type(
        T::option(T::U8),
        "01020000000004000000736f6d650700040000006e6f6e650200000000",
    );
    check_type(
        T::result(T::U8, T::String),
        "010200000000020000006f6b07000300000065727204",
    );
    check_type(
        T::identity(),
        "0201000000000c0000005f5f6964656e746974795f5f11",
    );
    check_type(
        T::connection_id(),
        "020100000000110000005f5f636f6e6e656374696f6e5f69645f5f0f",
    );
    check_type(
        T::timestamp(),
        "020100000000250000005f5f74696d657374616d705f6d6963726f735f73696e63655f756e69785f65706f63\
         685f5f0c",
    );
    check_type(
        T::time_duration(),
        "020100000000180000005f5f74696d655f6475726174696f6e5f6d6963726f735f5f0c",
    );
    check_type(T::uuid(), "020100000000080000005f5f757569645f5f0f");
    check_type(
        T::schedule_at(),
        "01020000000008000000496e74657276616c020100000000180000005f5f74696d655f6475726174696f6e5f\
         6d6963726f735f5f0c000400000054696d65020100000000250000005f5f74696d657374616d705f6d696372\
         6f735f73696e63655f756e69785f65706f63685f5f0c",
    );
    for (typespace, hex) in [
        (Typespace::default(), "00000000"),
        (
            Typespace::new(vec![T::U8, T::product([("x", T::reference(0))])]),
            "020000000702010000000001000000780000000000",
        ),
        (
            list_typespace(),
            "02000000010200000000030000004e696c02000000000004000000436f6e730001000000020200000000\
             04000000686561640700040000007461696c0000000000",
        ),
    ] {
        assert_eq!(typespace.to_vec(), bytes(hex));
        assert_eq!(Typespace::from_slice(&bytes(hex)), Ok(typespace.clone()));
        assert_eq!(
            sats::bsatn::to_vec(&sats_typespace(&typespace)).unwrap(),
            bytes(hex)
        );
    }
}
