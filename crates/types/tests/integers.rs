//! The integer types: each is as its row of the table says.

use lightcone_types::bsatn::Reader;
use lightcone_types::{AlgebraicType, AlgebraicValue, Encode, IntegerType, Typespace};
use proptest::prelude::*;

/// The value of a type at the start of bytes.
fn value(ty: IntegerType, bytes: &[u8]) -> AlgebraicValue {
    let mut reader = Reader::new(bytes);
    let ty = AlgebraicType::Integer(ty);
    let value = lightcone_types::bsatn::decode_value(Typespace::EMPTY, &ty, &mut reader);
    value.expect("every pattern is an integer")
}

proptest! {
    #[test]
    fn bytes_are_read_as_the_values_are(
        one in prop::collection::vec(any::<u8>(), 32),
        other in prop::collection::vec(any::<u8>(), 32),
        share in 0_usize..33,
    ) {
        let mut other = other;
        other[share..].copy_from_slice(&one[share..]);
        for &ty in IntegerType::ALL {
            let (left, right) = (value(ty, &one), value(ty, &other));
            prop_assert_eq!(left.integer_type(), Some(ty));
            prop_assert_eq!(left.to_vec(), &one[..ty.bytes()]);
            prop_assert_eq!(ty.compare(&one, &other), Some(left.value_cmp(&right)));
            prop_assert_eq!(ty.compare(&one, &other[..ty.bytes() - 1]), None);
            let text = left.as_number().expect("a number").to_string();
            prop_assert_eq!(ty.to_i128(&one), text.parse().ok());
            prop_assert_eq!(left.to_i128(), text.parse().ok());
            prop_assert_eq!(ty.parse(&text), Some(one[..ty.bytes()].to_owned()));
        }
    }
}

#[test]
fn names_ranges_and_tags_are_those_of_the_interface() {
    let mut tag = 6;
    for bytes in [1, 2, 4, 8, 16, 32] {
        for sign in ["I", "U"] {
            let ty = IntegerType::ALL[usize::from(tag) - 6];
            let name = format!("{sign}{}", 8 * bytes);
            assert_eq!((ty.name(), ty as u8), (&*name, tag));
            assert_eq!(ty.rust_name(), name.to_lowercase());
            assert_eq!((ty.bytes(), ty.is_signed()), (bytes, sign == "I"));
            assert_eq!(ty.fits_u64(), sign == "U" && bytes <= 8);
            tag += 1;
        }
    }
    assert_eq!(tag, AlgebraicType::F32.tag());
    let range = |ty: AlgebraicType| ty.integer().expect("an integer").range_i128();
    assert_eq!(range(AlgebraicType::I8), (-128, 127));
    assert_eq!(range(AlgebraicType::U64), (0, u64::MAX.into()));
    assert_eq!(range(AlgebraicType::U128), (0, i128::MAX));
    assert_eq!(range(AlgebraicType::U256), (0, i128::MAX));
    assert_eq!(range(AlgebraicType::I256), (i128::MIN, i128::MAX));
}

#[test]
fn integers_of_all_widths_are_read() {
    use AlgebraicType as T;
    let integer = |ty: T, bytes: &[u8]| ty.integer()?.to_i128(bytes);
    assert_eq!(integer(T::U8, &[200]), Some(200));
    assert_eq!(integer(T::I8, &[200]), Some(-56));
    assert_eq!(integer(T::I64, &(-3_i64).to_le_bytes()), Some(-3));
    assert_eq!(integer(T::U128, &u128::MAX.to_le_bytes()), None);
    assert_eq!(integer(T::I128, &i128::MIN.to_le_bytes()), Some(i128::MIN));
    let mut wide = [0; 32];
    wide[0] = 7;
    assert_eq!(integer(T::U256, &wide), Some(7));
    wide[16] = 1;
    assert_eq!(integer(T::U256, &wide), None);
    assert_eq!(integer(T::I256, &[0xff; 32]), Some(-1));
    assert_eq!(integer(T::U256, &[0xff; 32]), None);
    assert_eq!(integer(T::F32, &[0; 4]), None);
}
