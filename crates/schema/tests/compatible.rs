//! Which types a column may change to (02 §14.6): the table of pairs, laws, and agreement with the published crate
//! `spacetimedb-sats` about sizes and about what fits into the rows that are there.

use lightcone_schema::{upgradable, Layout, Mismatch};
use lightcone_types::bsatn::{decode_value, Encode, Reader};
use lightcone_types::{AlgebraicType as T, Typespace};
use proptest::prelude::*;
use spacetimedb_lib::sats::layout::{AlgebraicTypeLayout, HasLayout, RowTypeLayout};
use spacetimedb_lib::sats::{self, bsatn};

fn layout(ty: &T) -> (u64, u64) {
    let layout = Layout::of(ty);
    (layout.size_bytes, layout.align_bytes)
}

fn why(old: &T, new: &T) -> (String, Mismatch) {
    let found = upgradable(old, new).expect_err("not upgradable");
    (found.within.join(" / "), found.why)
}

const SCALARS: [(T, u64); 15] = [
    (T::Bool, 1),
    (T::I8, 1),
    (T::U8, 1),
    (T::I16, 2),
    (T::U16, 2),
    (T::I32, 4),
    (T::U32, 4),
    (T::F32, 4),
    (T::I64, 8),
    (T::U64, 8),
    (T::F64, 8),
    (T::I128, 16),
    (T::U128, 16),
    (T::I256, 32),
    (T::U256, 32),
];

#[test]
fn sizes_and_alignments() {
    for (ty, bytes) in &SCALARS {
        assert_eq!(layout(ty), (*bytes, *bytes), "{ty}");
    }
    assert_eq!(layout(&T::String), (4, 2));
    assert_eq!(layout(&T::array(T::U256)), (4, 2));
    assert_eq!(layout(&T::unit()), (0, 1));
    assert_eq!(layout(&T::never()), (1, 1));
    assert_eq!(
        layout(&T::product([("a", T::U8), ("b", T::U32), ("c", T::U8)])),
        (12, 4)
    );
    assert_eq!(layout(&T::simple_enum(["a", "b", "c"])), (1, 1));
    assert_eq!(layout(&T::sum([("a", T::U64), ("b", T::U8)])), (16, 8));
    assert_eq!(layout(&T::option(T::String)), (6, 2));
    let triple = T::product([("a", T::U8), ("b", T::U8), ("c", T::U8)]);
    assert_eq!(layout(&T::sum([("a", triple), ("b", T::U16)])), (6, 2));
}

/// Every scalar, String, arrays and unit: each is upgradable to itself and to no other.
#[test]
fn pairs_of_leaves() {
    let scalars = SCALARS.iter().map(|(ty, _)| ty.clone());
    let others = [
        T::String,
        T::bytes(),
        T::array(T::U16),
        T::unit(),
        T::never(),
    ];
    let leaves: Vec<T> = scalars.chain(others).collect();
    for (i, old) in leaves.iter().enumerate() {
        for (j, new) in leaves.iter().enumerate() {
            assert_eq!(upgradable(old, new).is_ok(), i == j, "{old} to {new}");
        }
    }
}

#[test]
fn sums() {
    let red = T::simple_enum(["red"]);
    let both = T::simple_enum(["red", "blue"]);
    assert!(upgradable(&red, &both).is_ok());
    assert!(upgradable(&T::never(), &both).is_ok());
    assert_eq!(
        why(&both, &red).1,
        Mismatch::FewerVariants { old: 2, new: 1 }
    );
    assert_eq!(
        why(&both, &T::simple_enum(["blue", "red"])).1,
        Mismatch::VariantName {
            position: 0,
            old: "red".into(),
            new: "blue".into()
        }
    );
    let number = T::sum([("a", T::U32)]);
    for payload in [
        T::unit(),
        T::U8,
        T::U32,
        T::F32,
        T::product([("x", T::U16)]),
    ] {
        let new = T::sum([("a", T::U32), ("b", payload.clone())]);
        assert!(upgradable(&number, &new).is_ok(), "{payload}");
    }
    // Wider, or only longer.
    assert_eq!(
        why(&number, &T::sum([("a", T::U32), ("b", T::U64)])).1,
        Mismatch::Alignment { old: 4, new: 8 }
    );
    let pair = T::product([("x", T::U32), ("y", T::U8)]);
    assert_eq!(
        why(&number, &T::sum([("a", T::U32), ("b", pair)])).1,
        Mismatch::Size { old: 8, new: 12 }
    );
    let text = T::sum([("a", T::U8)]);
    assert!(upgradable(&text, &T::sum([("a", T::U8), ("b", T::String)])).is_err());
}

#[test]
fn nested_changes() {
    let red = T::simple_enum(["red"]);
    let both = T::simple_enum(["red", "blue"]);
    let wrappers: [fn(T) -> T; 5] = [
        T::array,
        T::option,
        |ty| T::product([("f", ty), ("g", T::U8)]),
        |ty| T::result(ty, T::String),
        |ty| T::array(T::option(T::product([("f", ty)]))),
    ];
    for wrap in wrappers {
        let (old, new) = (wrap(red.clone()), wrap(both.clone()));
        assert!(upgradable(&old, &new).is_ok(), "{old} to {new}");
        assert!(upgradable(&new, &old).is_err(), "{new} to {old}");
    }
    let (place, mismatch) = why(
        &T::array(T::product([("f", T::option(T::U8))])),
        &T::array(T::product([("f", T::option(T::U16))])),
    );
    assert_eq!(place, "the elements / field `f` / variant `some`");
    assert_eq!(
        mismatch,
        Mismatch::Type {
            old: "U8".into(),
            new: "U16".into()
        }
    );
}

#[test]
fn products() {
    let old = T::product([("a", T::U8), ("b", T::U8)]);
    assert_eq!(
        why(&old, &T::product([("a", T::U8)])).1,
        Mismatch::FieldCount { old: 2, new: 1 }
    );
    let more = T::product([("a", T::U8), ("b", T::U8), ("c", T::U8)]);
    assert_eq!(why(&old, &more).1, Mismatch::FieldCount { old: 2, new: 3 });
    assert_eq!(
        why(&old, &T::product([("b", T::U8), ("a", T::U8)])).1,
        Mismatch::FieldName {
            position: 0,
            old: "a".into(),
            new: "b".into()
        }
    );
    let other = T::product([("a", T::U8), ("b", T::I8)]);
    assert_eq!(why(&old, &other).0, "field `b`");
}

/// Few leaves and short sums, so that random pairs often fit.
fn any_type() -> impl Strategy<Value = T> {
    let leaf = prop_oneof![
        Just(T::U8),
        Just(T::U16),
        Just(T::U64),
        Just(T::I256),
        Just(T::String),
        Just(T::unit()),
        Just(T::never()),
        Just(T::bytes()),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        let parts = proptest::collection::vec(inner.clone(), 0..4);
        prop_oneof![
            inner.prop_map(T::array),
            parts.clone().prop_map(|types| T::product(named(types))),
            parts.prop_map(|types| T::sum(named(types))),
        ]
    })
}

fn named(types: Vec<T>) -> Vec<(String, T)> {
    let names = (0..).map(|at| format!("part{at}"));
    names.zip(types).collect()
}

/// The type with more variants in some of its sums, each a copy of one that there is or without payload.
fn grown(ty: &T, choices: &mut impl Iterator<Item = u8>) -> T {
    match ty {
        T::Array(element) => T::array(grown(element, choices)),
        T::Product(product) => {
            let mut product = product.clone();
            for element in &mut product.elements {
                element.algebraic_type = grown(&element.algebraic_type, choices);
            }
            T::Product(product)
        }
        T::Sum(sum) => {
            let mut variants = Vec::new();
            for variant in &sum.variants {
                variants.push(grown(&variant.algebraic_type, choices));
            }
            for _ in 0..choices.next().unwrap_or(0) % 3 {
                let at = usize::from(choices.next().unwrap_or(0));
                let copy = variants.get(at % (variants.len() + 1)).cloned();
                variants.push(copy.unwrap_or(T::unit()));
            }
            T::sum(named(variants))
        }
        leaf => leaf.clone(),
    }
}

/// Bytes of some value of the type, if it has any.
fn some_value(ty: &T, choices: &mut impl Iterator<Item = u8>, out: &mut Vec<u8>) -> bool {
    match ty {
        T::Sum(sum) if sum.variants.is_empty() => false,
        T::Sum(sum) => {
            let tag = usize::from(choices.next().unwrap_or(0)) % sum.variants.len();
            out.push(tag as u8);
            some_value(&sum.variants[tag].algebraic_type, choices, out)
        }
        T::Product(product) => product
            .elements
            .iter()
            .all(|element| some_value(&element.algebraic_type, choices, out)),
        T::Array(element) => {
            let count = u32::from(choices.next().unwrap_or(0) % 3);
            out.extend(count.to_le_bytes());
            (0..count).all(|_| some_value(element, choices, out))
        }
        T::String => {
            out.extend([1, 0, 0, 0, b'a' + choices.next().unwrap_or(0) % 26]);
            true
        }
        leaf => {
            let bytes = Layout::of(leaf).size_bytes;
            out.extend((0..bytes).map(|_| choices.next().unwrap_or(0)));
            true
        }
    }
}

fn reference_type(ty: &T) -> sats::AlgebraicType {
    bsatn::from_slice(&ty.to_vec()).expect("the same encoding")
}

fn reference_row(ty: &T) -> RowTypeLayout {
    let column = sats::ProductTypeElement::new_named(reference_type(ty), "x");
    RowTypeLayout::from(sats::ProductType::new([column].into()))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    #[test]
    fn layouts_are_those_of_the_reference(ty in any_type()) {
        let theirs = AlgebraicTypeLayout::from(reference_type(&ty));
        prop_assert_eq!(layout(&ty), (theirs.size() as u64, theirs.align() as u64));
    }

    #[test]
    fn every_type_is_upgradable_to_itself(ty in any_type()) {
        prop_assert!(upgradable(&ty, &ty).is_ok());
    }

    #[test]
    fn grown_types_are_upgradable(
        ty in any_type(),
        once in proptest::collection::vec(any::<u8>(), 20),
        twice in proptest::collection::vec(any::<u8>(), 20),
        bytes in proptest::collection::vec(any::<u8>(), 300),
    ) {
        let second = grown(&ty, &mut once.into_iter());
        let third = grown(&second, &mut twice.into_iter());
        prop_assert!(upgradable(&ty, &second).is_ok());
        prop_assert!(upgradable(&second, &third).is_ok());
        prop_assert!(upgradable(&ty, &third).is_ok(), "transitive");
        prop_assert_eq!(upgradable(&third, &ty).is_ok(), third == ty, "one way");
        prop_assert!(reference_row(&ty).ensure_compatible_with(&reference_row(&third)).is_ok());
        // What it is for: a stored value is the same value of the new type.
        let mut value = Vec::new();
        if some_value(&ty, &mut bytes.into_iter().cycle(), &mut value) {
            let read = |ty: &T| decode_value(&Typespace::default(), ty, &mut Reader::new(&value)).expect("a value");
            prop_assert_eq!(read(&ty), read(&third));
        }
    }

    #[test]
    fn random_types_follow_the_laws(a in any_type(), b in any_type(), c in any_type()) {
        let fits = |old: &T, new: &T| upgradable(old, new).is_ok();
        if fits(&a, &b) && fits(&b, &c) {
            prop_assert!(fits(&a, &c));
        }
        if fits(&a, &b) && fits(&b, &a) {
            prop_assert_eq!(&a, &b);
        }
        if fits(&a, &b) {
            prop_assert_eq!(layout(&a), layout(&b));
        }
        // It looks at layouts only: what it refuses would be read wrong there.
        let theirs = reference_row(&a).ensure_compatible_with(&reference_row(&b));
        // But for one thing: values of one length may become some of any length here, as their rows are written anew.
        let theirs = theirs.map_err(|error| format!("{error:?}"));
        let is_length = |told: &String| told.contains("fixed: true") && told.contains("fixed: false");
        let is_fine = theirs.as_ref().err().is_none_or(is_length);
        prop_assert!(!fits(&a, &b) || is_fine, "{} to {}: {:?}", a, b, theirs);
    }
}
