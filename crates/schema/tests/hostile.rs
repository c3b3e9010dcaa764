//! Definitions made to cost much: each must be refused quickly, without panic.

use crate::common::*;
use crate::{module_def, module_def_json};
use lightcone_schema::raw::*;
use lightcone_schema::*;
use lightcone_types::bsatn::Encode;
use lightcone_types::{json, AlgebraicType as T, ProductType};
use proptest::prelude::*;

fn refused(build: Build) -> String {
    ModuleDef::validate(RawModuleDef::V10(build.raw()))
        .unwrap_err()
        .to_string()
}

#[test]
fn exponential_column_type() {
    let mut build = Build::default();
    for i in 0..60u32 {
        let next = T::reference(i + 1);
        build.named_type(
            &format!("T{i}"),
            T::product([("a", next.clone()), ("b", next)]),
        );
    }
    build.named_type("Last", T::product([("a", T::U8)]));
    build.table("t", &[("c", T::reference(0))]);
    assert!(refused(build).contains("[LC0206]"));
}

#[test]
fn one_wide_row_type_in_many_tables() {
    let mut build = Build::default();
    let fields: Vec<(String, T)> = (0..1000).map(|i| (format!("c{i}"), T::U8)).collect();
    let row = build.named_type("Row", T::product(fields));
    for i in 0..3000 {
        build.table(&format!("t{i}"), &[]).product_type_ref = row;
    }
    assert!(refused(build).contains("[LC0207]"));
}

#[test]
fn long_names_in_many_indexes() {
    let mut build = Build::default();
    let name = "x".repeat(4000);
    let table = build.table("t", &[(&name, T::U8)]);
    table.indexes = (0..100_000)
        .map(|i| btree(&format!("i{i}"), &[0]))
        .collect();
    let text = refused(build);
    assert!(text.contains("[LC0207]"));
    assert!(text.len() < 1 << 20, "messages stay readable");
    let mut build = Build::default();
    build
        .table("t", &[(&"x".repeat(4000), T::U8)])
        .indexes
        .push(btree("i", &[0; 60_000]));
    refused(build);
}

#[test]
fn long_chain_of_refs() {
    let types = (1..200_000).map(T::reference).collect();
    let mut build = Build {
        types,
        ..Build::default()
    };
    build.types.push(T::U8);
    build.reducers = vec![reducer("f", ProductType::new([("a", T::reference(0))]))];
    refused(build);
}

#[test]
fn deep_types() {
    let nest = |levels: usize, wrap: fn(T) -> T| (0..levels).fold(T::U8, |ty, _| wrap(ty));
    let mut build = Build::default();
    build.types.push(nest(250, |ty| T::product([("a", ty)])));
    build.types.push(nest(250, |ty| T::sum([("A", ty)])));
    build.types.push(nest(250, T::array));
    build.table("t", &[("c", nest(100, T::option))]);
    let bytes = RawModuleDef::V10(build.clone().raw()).to_vec();
    module_def::fuzz_module_def(&bytes);
    build.valid();
    let mut build = Build::default();
    build.types.push(nest(300, T::array));
    let bytes = RawModuleDef::V10(build.raw()).to_vec();
    assert!(ModuleDef::from_bsatn(&bytes)
        .unwrap_err()
        .to_string()
        .contains("nested deeper"));
}

#[test]
fn nested_submodules() {
    let mut module = RawModuleDefV10::default();
    for _ in 0..100 {
        let submodule = RawSubmoduleV10 {
            namespace: "a".into(),
            module,
        };
        module = RawModuleDefV10 {
            sections: vec![RawModuleDefV10Section::Submodules(vec![submodule])],
        };
    }
    let error = ModuleDef::from_bsatn(&RawModuleDef::V10(module).to_vec()).unwrap_err();
    assert!(error.to_string().contains("[LC0203]"), "{error}");
}

#[test]
fn many_errors() {
    let reducers = (0..5000)
        .map(|_| reducer("f", ProductType::default()))
        .collect();
    let build = Build {
        reducers,
        ..Build::default()
    };
    assert!(refused(build).contains("... and 4743 more"));
}

#[test]
fn nested_json() {
    let open = "[".repeat(1_000_000);
    assert!(RawModuleDef::from_json(&open).is_err());
    let open = "{\"a\":".repeat(1_000_000);
    assert!(RawModuleDef::from_json(&open).is_err());
}

#[test]
fn json_rules() {
    let parse = |text: &str| {
        RawModuleDef::from_schema_json(RawVersion::V10, text).map_err(|e| e.to_string())
    };
    assert!(parse(r#" { "sections" : [ {"CaseConversionPolicy":{"None":[]}} ] } "#).is_ok());
    assert!(
        parse(r#"[[[9,[0,{}]]]]"#).is_ok(),
        "arrays for products, tags for names"
    );
    assert_eq!(
        parse(r#"[[[9,[0,{}]]]]"#),
        parse(r#"{"sections":[{"9":{"None":[]}}]}"#)
    );
    let error = parse(r#"{"sections":[{"Tables":[{"x":1}]}]}"#).unwrap_err();
    assert!(
        error.starts_with(
            "sections[0].Tables[0]: unknown field `x`, expected one of `source_name`, "
        ),
        "{error}"
    );
    assert!(error.ends_with(" at line 1 column 30"), "{error}");
    assert!(parse(r#"{"sections":[],"sections":[]}"#)
        .unwrap_err()
        .contains("duplicate field"));
    assert!(parse("{}")
        .unwrap_err()
        .contains("missing field `sections`"));
    assert!(parse(r#"{"sections":[{"Nope":[]}]}"#)
        .unwrap_err()
        .contains("unknown variant `Nope`"));
    assert!(parse(r#"{"sections":[{}]}"#)
        .unwrap_err()
        .contains("exactly one field"));
    assert!(parse(r#"{"sections":[]} x"#)
        .unwrap_err()
        .contains("trailing characters"));
    for text in [
        "",
        "tru",
        "01",
        "1.",
        "\"\\ud800\"",
        "\"\u{1}\"",
        "[1,]",
        "{\"a\" 1}",
        "nul",
        "-",
    ] {
        assert!(json::parse(text).is_err(), "{text:?}");
    }
    let text = json::parse(r#""a\u00e9\ud83d\ude00\n\/""#).unwrap();
    assert_eq!(text.as_str(), Some("aé😀\n/"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        module_def::fuzz_module_def(&bytes);
        let mut v10 = vec![2];
        v10.extend(&bytes);
        module_def::fuzz_module_def(&v10);
    }

    #[test]
    fn any_text(text in "[\\[\\]{}:,\"0-9a-z ]{0,60}") {
        module_def_json::fuzz_module_def_json(text.as_bytes());
    }

    #[test]
    fn json_reader_agrees_with_serde(text in "[\\[\\]{}:,\"\\\\u0-9aetrufls.+-]{0,12}") {
        let theirs = serde_json::from_str::<serde_json::Value>(&text);
        let ours = json::parse(&text);
        // Numbers beyond binary64 are the one thing where a text-keeping reader is more lenient.
        let overflow = theirs.as_ref().is_err_and(|e| e.to_string().contains("number out of range"));
        prop_assert!(overflow || theirs.is_ok() == ours.is_ok(), "{text:?}: {theirs:?} {ours:?}");
    }
}
