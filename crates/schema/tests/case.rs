//! Case conversion: the table of 02 §8.2, and agreement with the crate version that defines it.

use convert_case::{Case, Casing};
use lightcone_schema::case::{to_camel, to_pascal, to_snake};
use proptest::prelude::*;

#[test]
fn table() {
    lightcone_vectors::each("02-case.json", "", |entry| {
        let input = entry.text("input");
        assert_eq!(to_snake(input), entry.text("snake"), "snake of {input}");
        assert_eq!(to_camel(input), entry.text("camel"), "camel of {input}");
        assert_eq!(to_pascal(input), entry.text("pascal"), "pascal of {input}");
        agree(input);
    });
}

fn agree(name: &str) {
    assert_eq!(
        to_snake(name),
        name.to_case(Case::Snake),
        "snake of {name:?}"
    );
    assert_eq!(
        to_camel(name),
        name.to_case(Case::Camel),
        "camel of {name:?}"
    );
    assert_eq!(
        to_pascal(name),
        name.to_case(Case::Pascal),
        "pascal of {name:?}"
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]
    #[test]
    fn agrees_on_ascii(name in "[a-cA-C0-2_ -]{0,12}") {
        agree(&name);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]
    #[test]
    fn agrees_on_any_text(name in "([a-bA-B0-9_]|[ßéÉǅΣσςİı用\u{301}\u{200d}٣]|\\PC){0,10}") {
        agree(&name);
    }
}
