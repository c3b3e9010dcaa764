//! Declarations of the environment (2.11): section 15, its bounds, and its place in the schema.

use crate::common::{from_hex, Build};
use crate::module_def;
use lightcone_schema::raw::*;
use lightcone_schema::*;
use lightcone_types::bsatn::{Decode, Encode};

/// Made by hand: `API_KEY`, any text, and `MODE`, which may be missing.
const SECTION: &str =
    "0f02000000070000004150495f4b45590000040000004d4f44450202000000030000006465760400000070726f6401";

fn variable(name: &str, ty: RawEnvVarTypeV10) -> RawEnvironmentDeclarationV10 {
    let name = name.to_owned();
    let optional = false;
    RawEnvironmentDeclarationV10 { name, ty, optional }
}

fn with(declared: Vec<RawEnvironmentDeclarationV10>) -> RawModuleDef {
    let mut build = Build::default();
    build
        .rest
        .push(RawModuleDefV10Section::Environment(declared));
    RawModuleDef::V10(build.raw())
}

/// The text of a refusal.
fn refused(declared: Vec<RawEnvironmentDeclarationV10>) -> String {
    ModuleDef::validate(with(declared))
        .expect_err("refused")
        .to_string()
}

#[test]
fn the_section_has_the_bytes_of_the_chapter() {
    let bytes = from_hex(SECTION);
    let definition = [&[2, 1, 0, 0, 0][..], &bytes[..]].concat();
    let raw = RawModuleDef::from_slice(&definition).expect("a definition");
    assert_eq!(raw.to_vec(), definition);
    module_def::fuzz_module_def(&definition);
    let def = ModuleDef::validate(raw).expect("valid");
    let declared: Vec<_> = def.environment().collect();
    assert_eq!(declared[0].0, "API_KEY");
    assert_eq!(
        (&declared[0].1.ty, declared[0].1.optional),
        (&EnvironmentType::String, false)
    );
    let values = ["dev".to_owned(), "prod".to_owned()];
    assert_eq!(declared[1].1.ty, EnvironmentType::Union(values.into()));
    assert!(declared[1].1.optional);
    assert!(declared[1].1.ty.permits("dev") && !declared[1].1.ty.permits("test"));
}

#[test]
fn the_schema_begins_with_it() {
    let union = RawEnvVarTypeV10::Union(vec!["b".into(), "a".into(), "b".into()]);
    let literal = RawEnvVarTypeV10::StringLiteral("x".into());
    let declared = vec![variable("Z", union), variable("A", literal)];
    let def = ModuleDef::validate(with(declared)).expect("valid");
    let json = def.schema_json(RawVersion::V10);
    let expected = r#"{"sections":[{"Environment":[{"name":"A","ty":{"StringLiteral":"x"},"optional":false},{"name":"Z","ty":{"Union":["a","b"]},"optional":false}]},"#;
    assert!(json.starts_with(expected), "{json}");
    let again = RawModuleDef::from_schema_json(RawVersion::V10, &json).expect("readable");
    let again = ModuleDef::validate(again).expect("valid");
    assert!(again.environment().eq(def.environment()));
    assert!(!def.schema_json(RawVersion::V9).contains("Environment"));
    // A module that says that it has none is not one that says nothing.
    let def = ModuleDef::validate(with(Vec::new())).expect("valid");
    assert!(def
        .schema_json(RawVersion::V10)
        .starts_with(r#"{"sections":[{"Environment":[]},"#));
    let def = ModuleDef::validate(RawModuleDef::V10(Build::default().raw())).expect("valid");
    assert!(!def.schema_json(RawVersion::V10).contains("Environment"));
}

#[test]
fn declarations_are_bounded() {
    use RawEnvVarTypeV10 as T;
    for name in ["", "1A", "A-B", "A.B", "Ä", "a b"] {
        let text = refused(vec![variable(name, T::String)]);
        let start = format!("invalid environment declaration: environment key {name:?}: ");
        assert!(text.contains(&start), "{text}");
    }
    let key = |bytes: usize| vec![variable(&"k".repeat(bytes), T::String)];
    assert!(ModuleDef::validate(with(key(256))).is_ok());
    assert!(refused(key(257)).contains("257 bytes"));
    let literal = |bytes: usize| vec![variable("K", T::StringLiteral("v".repeat(bytes)))];
    assert!(ModuleDef::validate(with(literal(8192))).is_ok());
    assert!(refused(literal(8193)).contains("8193 bytes"));
    let union = |count: usize| {
        let values = (0..count).map(|number| number.to_string());
        vec![variable("K", T::Union(values.collect()))]
    };
    assert!(ModuleDef::validate(with(union(256))).is_ok());
    assert!(refused(union(0)).contains("1 to 256") && refused(union(257)).contains("257"));
    let many = |count: usize| {
        let all = (0..count).map(|number| variable(&format!("K{number}"), T::String));
        all.collect::<Vec<_>>()
    };
    assert!(ModuleDef::validate(with(many(256))).is_ok());
    assert!(refused(many(257)).contains("at most 256"));
    let twice = vec![variable("K", T::String), variable("K", T::String)];
    assert!(refused(twice).contains("more than once"));
    // 2 MiB of literals, and the keys.
    let large = |count: usize| {
        let values = (0..count).map(|number| format!("{number:08192}"));
        vec![variable("K", T::Union(values.collect()))]
    };
    assert!(ModuleDef::validate(with(large(255))).is_ok());
    assert!(refused(large(256)).contains("2097153 bytes"));
}

#[test]
fn submodules_declare_none() {
    let of = |declared| {
        let RawModuleDef::V10(module) = with(declared) else {
            unreachable!("it was just made");
        };
        let namespace = "child".to_owned();
        let submodule = RawSubmoduleV10 { namespace, module };
        let mut build = Build::default();
        build
            .rest
            .push(RawModuleDefV10Section::Submodules(vec![submodule]));
        ModuleDef::validate(RawModuleDef::V10(build.raw()))
    };
    assert!(of(Vec::new()).is_ok());
    let error = of(vec![variable("K", RawEnvVarTypeV10::String)]).expect_err("refused");
    let text = "submodule \"child\" cannot declare environment variables";
    assert!(error.to_string().contains(text), "{error}");
}
