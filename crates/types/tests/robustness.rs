//! Decoders on hostile input: no panic, no hang, no allocation out of proportion (01 §1.5.3).

use crate::{common, fuzzing};
use lightcone_types::bsatn::{
    decode_value, validate, Decode, DecodeError, Encode, Reader, EMPTY_VALUES_MAX, MAX_DEPTH,
};
use lightcone_types::{json, AlgebraicType as T, AlgebraicValue as V, TypeError, Typespace};
use proptest::prelude::*;

fn decode_in(typespace: &Typespace, ty: &T, bytes: &[u8]) -> Result<V, DecodeError> {
    let value = decode_value(typespace, ty, &mut Reader::new(bytes));
    let valid = validate(typespace, ty, &mut Reader::new(bytes));
    assert_eq!(value.as_ref().map(drop).map_err(Clone::clone), valid);
    value
}

#[test]
fn huge_counts_of_empty_values_end_early() {
    let huge = u32::MAX.to_vec();
    for element in [T::unit(), T::product([("a", T::unit()), ("b", T::unit())])] {
        let error = decode_in(Typespace::EMPTY, &T::array(element), &huge).unwrap_err();
        assert!(error.to_string().contains("empty values"), "{error}");
    }
    assert!(Vec::<()>::from_slice(&huge).is_err());
    let many = EMPTY_VALUES_MAX as u32;
    assert!(decode_in(Typespace::EMPTY, &T::array(T::unit()), &many.to_vec()).is_ok());
    // Payloads of unit variants are paid for by their tags.
    let count = 3 * EMPTY_VALUES_MAX;
    let mut bytes = (count as u32).to_vec();
    bytes.resize(bytes.len() + count, 1);
    assert!(decode_in(Typespace::EMPTY, &T::array(T::option(T::U8)), &bytes).is_ok());
}

#[test]
fn huge_counts_do_not_allocate() {
    let huge = u32::MAX.to_vec();
    for element in [
        T::U8,
        T::U64,
        T::String,
        T::identity(),
        T::option(T::unit()),
    ] {
        assert!(decode_in(Typespace::EMPTY, &T::array(element), &huge).is_err());
    }
    assert!(Vec::<u64>::from_slice(&huge).is_err());
    assert!(Vec::<String>::from_slice(&huge).is_err());
    assert!(Vec::<u8>::from_slice(&huge).is_err());
    assert!(Typespace::from_slice(&huge).is_err());
    assert!(Reader::new(&huge).read_count(1).is_err());
    assert!(Reader::new(&huge).read_count(usize::MAX).is_err());
    assert_eq!(Reader::new(&2u32.to_vec()).read_count(0), Ok(2));
}

/// Found by fuzzing: JSON took an empty array whose element type does not exist, BSATN did not.
#[test]
fn empty_arrays_need_an_element_type() {
    let ty = T::array(T::reference(7));
    let bsatn = decode_in(Typespace::EMPTY, &ty, &0u32.to_vec()).unwrap_err();
    let json = json::value_from_json(Typespace::EMPTY, &ty, "[]").unwrap_err();
    for error in [bsatn.to_string(), json.to_string()] {
        assert!(error.contains("out of bounds"), "{error}");
    }
}

#[test]
fn nesting_is_limited() {
    let list = Typespace::new(vec![
        T::sum([("Nil", T::unit()), ("Cons", T::reference(1))]),
        T::product([("head", T::unit()), ("tail", T::reference(0))]),
    ]);
    let nested = |depth: usize| {
        let mut bytes = vec![1; depth];
        bytes.push(0);
        bytes
    };
    assert!(decode_in(&list, &T::reference(0), &nested(MAX_DEPTH / 2 - 1)).is_ok());
    assert!(decode_in(&list, &T::reference(0), &nested(MAX_DEPTH / 2 + 1)).is_err());
    assert!(decode_in(&list, &T::reference(0), &nested(1_000_000)).is_err());
    let mut bytes = vec![3; MAX_DEPTH];
    bytes.push(4);
    assert!(T::from_slice(&bytes).is_ok());
    bytes.insert(0, 3);
    assert!(T::from_slice(&bytes).is_err());
    assert!(T::from_slice(&vec![3; 1_000_000]).is_err());
}

#[test]
fn bad_references_are_errors() {
    let cycle = Typespace::new(vec![T::reference(1), T::reference(0)]);
    let endless = Typespace::new(vec![T::product([("a", T::reference(0))])]);
    let arrays = Typespace::new(vec![T::array(T::reference(0))]);
    for (typespace, ty, message) in [
        (
            Typespace::EMPTY,
            T::reference(7),
            "Type reference &7 out of bounds",
        ),
        (&cycle, T::reference(0), "Found recursive type reference &"),
        (
            &cycle,
            T::array(T::reference(1)),
            "Found recursive type reference &",
        ),
        (&endless, T::reference(0), "nested deeper"),
    ] {
        let error = decode_in(typespace, &ty, &[1; 64]).unwrap_err().to_string();
        assert!(error.contains(message), "{error}");
        let mut out = String::new();
        assert!(
            json::bsatn_to_json_named(typespace, &ty, &mut Reader::new(&[1; 64]), &mut out)
                .is_err()
        );
        assert!(json::value_from_json(typespace, &ty, "[[[[[1]]]]]").is_err());
    }
    assert!(decode_in(&arrays, &T::reference(0), &[0; 4]).is_ok());
    assert_eq!(
        cycle.resolve(&T::reference(0)),
        Err(TypeError::Recursive(lightcone_types::TypeRef(0)))
    );
    assert_eq!(
        Typespace::EMPTY
            .resolve(&T::reference(7))
            .unwrap_err()
            .to_string(),
        "Type reference &7 out of bounds"
    );
    assert_eq!(
        endless.resolve(&T::reference(0)).unwrap_err().to_string(),
        "Found recursive type reference &0"
    );
}

#[test]
fn exponential_types_are_errors() {
    let levels = 64u32;
    let mut types: Vec<T> = (1..levels)
        .map(|next| T::product([("a", T::reference(next)), ("b", T::reference(next))]))
        .collect();
    types.push(T::unit());
    let bomb = Typespace::new(types);
    assert_eq!(bomb.resolve(&T::reference(0)), Err(TypeError::TooLarge));
    let error = decode_in(&bomb, &T::reference(0), &[]).unwrap_err();
    assert!(error.to_string().contains("empty values"), "{error}");
    let chain: Vec<T> = (1..=1000)
        .map(|next| T::array(T::reference(next)))
        .collect();
    assert_eq!(
        Typespace::new(chain).resolve(&T::reference(0)),
        Err(TypeError::TooDeep)
    );
}

#[test]
fn resolution_keeps_names_and_shared_types() {
    let typespace = Typespace::new(vec![
        T::product([("x", T::reference(1)), ("y", T::reference(1))]),
        T::option(T::U8),
    ]);
    let expected = T::product([("x", T::option(T::U8)), ("y", T::option(T::U8))]);
    assert_eq!(typespace.resolve(&T::reference(0)), Ok(expected));
}

fn type_names() -> Vec<(T, &'static str)> {
    vec![
        (T::identity(), "(__identity__: U256)"),
        (T::option(T::U64), "(some: U64 | none: ())"),
        (T::never(), "(|)"),
        (T::array(T::bytes()), "Array<Array<U8>>"),
        (
            T::product([("a", T::U8), ("b", T::String)]),
            "(a: U8, b: String)",
        ),
    ]
}

#[test]
fn type_names_in_messages() {
    for (ty, name) in type_names() {
        assert_eq!(ty.type_name(), name);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn fuzz_entry_points_survive_noise(data in any::<Vec<u8>>()) {
        fuzzing::fuzz_value(&data);
        fuzzing::fuzz_type(&data);
        fuzzing::fuzz_json(&data);
    }

    #[test]
    fn fuzz_entry_points_survive_near_misses(
        (ty, value) in common::any_typed_value(),
        flips in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..3),
    ) {
        let mut data = Typespace::default().to_vec();
        ty.encode(&mut data);
        let json_start = data.len();
        value.encode(&mut data);
        for (at, byte) in &flips {
            let at = at.index(data.len());
            data[at] = *byte;
        }
        fuzzing::fuzz_value(&data);
        let mut typespace = Typespace::new(vec![ty]).to_vec();
        for (at, byte) in &flips {
            let at = at.index(typespace.len());
            typespace[at] = *byte;
        }
        fuzzing::fuzz_type(&typespace);
        let mut text = String::new();
        json::value_to_json_untyped(&value, &mut text);
        data.truncate(json_start);
        data.extend_from_slice(text.as_bytes());
        fuzzing::fuzz_json(&data);
    }

    #[test]
    fn json_parser_agrees_with_a_general_one(text in "[\\[\\]{}:,\"\\\\ntrue0-9.eE+\\- a]{0,24}") {
        let theirs = serde_json::from_str::<serde_json::Value>(&text);
        // Numbers out of the range of binary64 fail later here, when their type is known.
        let range = theirs.as_ref().is_err_and(|e| e.to_string().contains("out of range"));
        prop_assert!(range || json::parse(&text).is_ok() == theirs.is_ok(), "{} {:?}", text, theirs);
    }
}
