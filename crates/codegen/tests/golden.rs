//! The bindings of a module with every type, compared with texts that were looked at, compiled and run (`tests/e2e`,
//! `tests/rust-client`). After a wanted change: `UPDATE_GOLDEN=1 cargo test -p lightcone-codegen`.

use std::path::PathBuf;

use lightcone_codegen::{generate, Bindings, Language, Options, PREFIX};
use lightcone_schema::raw::*;
use lightcone_schema::{ModuleDef, RawModuleDef};
use lightcone_types::{AlgebraicType, ProductType};

fn golden(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("tests/golden")
        .join(name)
}

fn coverage() -> ModuleDef {
    let text = std::fs::read_to_string(golden("coverage.json")).expect("the definition");
    ModuleDef::validate(RawModuleDef::from_json(&text).expect("JSON")).expect("valid")
}

fn options(language: Language) -> Options {
    Options {
        language,
        include_private: false,
        cli_version: "2.10.1".into(),
        commit: "0000000".into(),
    }
}

fn typescript(package: &str) -> Options {
    options(Language::TypeScript {
        package: package.into(),
    })
}

/// All files in one text, for one comparison.
fn joined(bindings: &Bindings) -> String {
    let files = bindings
        .files
        .iter()
        .map(|file| format!("==== {}\n{}", file.path, file.text));
    files.collect()
}

fn compare(name: &str, bindings: &Bindings) {
    let path = golden(name);
    let got = joined(bindings);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, &got).expect("written");
    }
    let want = std::fs::read_to_string(&path).expect("the golden text");
    for (number, (got, want)) in got.lines().zip(want.lines()).enumerate() {
        assert_eq!(got, want, "{name}, line {}", number + 1);
    }
    assert_eq!(got.len(), want.len(), "{name} has another length");
}

#[test]
fn typescript_of_every_type() {
    let bindings = generate(&coverage(), &typescript("spacetimedb")).expect("bindings");
    assert_eq!(bindings.skipped_tables, ["banned", "secrets"]);
    compare("coverage.typescript.txt", &bindings);
}

#[test]
fn rust_of_every_type() {
    compare(
        "coverage.rust.txt",
        &generate(&coverage(), &options(Language::Rust)).expect("bindings"),
    );
}

fn csharp() -> Options {
    options(Language::Csharp {
        namespace: "SpacetimeDB.Types".into(),
    })
}

#[test]
fn csharp_of_every_type() {
    compare(
        "coverage.csharp.txt",
        &generate(&coverage(), &csharp()).expect("bindings"),
    );
}

#[test]
fn every_file_says_that_it_is_generated() {
    for language in [
        Language::Rust,
        csharp().language,
        Language::TypeScript {
            package: "lightcone".into(),
        },
    ] {
        for file in generate(&coverage(), &options(language))
            .expect("bindings")
            .files
        {
            assert!(file.text.starts_with(PREFIX), "{}", file.path);
            assert!(
                file.text.ends_with('\n') && !file.text.contains("\n\n\n"),
                "{}",
                file.path
            );
        }
    }
}

#[test]
fn only_the_import_tells_the_packages_apart() {
    let ours = joined(&generate(&coverage(), &typescript("lightcone")).expect("bindings"));
    let theirs = joined(&generate(&coverage(), &typescript("spacetimedb")).expect("bindings"));
    assert_eq!(
        ours.replace("from \"lightcone\"", "from \"spacetimedb\""),
        theirs
    );
    assert_ne!(ours, theirs);
}

fn file<'a>(bindings: &'a Bindings, path: &str) -> &'a str {
    let found = bindings.files.iter().find(|file| file.path == path);
    &found.unwrap_or_else(|| panic!("no file {path}")).text
}

#[test]
fn private_things_are_there_when_asked_for() {
    let mut options = typescript("spacetimedb");
    let bindings = generate(&coverage(), &options).expect("bindings");
    assert!(!file(&bindings, "index.ts").contains("secrets"));
    options.include_private = true;
    let bindings = generate(&coverage(), &options).expect("bindings");
    assert!(bindings.skipped_tables.is_empty());
    assert!(file(&bindings, "index.ts").contains("secrets: __table({"));
}

/// A module with one table and one reducer, and a submodule like it.
fn with_submodule() -> ModuleDef {
    ModuleDef::validate(with_submodule_raw("User")).expect("valid")
}

/// The root's type has this name.
fn with_submodule_raw(root_type: &str) -> RawModuleDef {
    use RawModuleDefV10Section as S;
    let level = |table: &str, reducer: &str, ty: &str| {
        vec![
            S::Typespace(lightcone_types::Typespace::new(vec![
                AlgebraicType::product([
                    ("id", AlgebraicType::U32),
                    ("nextOne", AlgebraicType::option(AlgebraicType::identity())),
                ]),
            ])),
            S::Types(vec![RawTypeDefV10 {
                source_name: RawScopedTypeNameV10 {
                    scope: vec![],
                    source_name: ty.into(),
                },
                ty: lightcone_types::TypeRef(0),
                custom_ordering: true,
            }]),
            S::Tables(vec![RawTableDefV10 {
                source_name: table.into(),
                product_type_ref: lightcone_types::TypeRef(0),
                primary_key: vec![],
                indexes: vec![],
                constraints: vec![],
                sequences: vec![],
                table_type: lightcone_schema::TableKind::User,
                table_access: lightcone_schema::TableAccess::Public,
                default_values: vec![],
                is_event: false,
            }]),
            S::Reducers(vec![RawReducerDefV10 {
                source_name: reducer.into(),
                params: ProductType::unit(),
                visibility: lightcone_schema::Visibility::ClientCallable,
                ok_return_type: AlgebraicType::unit(),
                err_return_type: AlgebraicType::String,
            }]),
        ]
    };
    let mut sections = level("user", "rootR", root_type);
    sections.push(S::Submodules(vec![RawSubmoduleV10 {
        namespace: "lib".into(),
        module: RawModuleDefV10 {
            sections: level("item", "doIt", "Item"),
        },
    }]));
    RawModuleDef::V10(RawModuleDefV10 { sections })
}

#[test]
fn submodules_have_directories_and_qualified_names() {
    let bindings = generate(&with_submodule(), &typescript("spacetimedb")).expect("bindings");
    let paths: Vec<_> = bindings
        .files
        .iter()
        .map(|file| file.path.as_str())
        .collect();
    assert_eq!(
        paths,
        [
            "index.ts",
            "lib/do_it_reducer.ts",
            "lib/item_table.ts",
            "lib/types.ts",
            "root_r_reducer.ts",
            "types.ts",
            "types/procedures.ts",
            "types/reducers.ts",
            "user_table.ts"
        ]
    );
    let index = file(&bindings, "index.ts");
    for part in [
        "import LibDoItReducer from \"./lib/do_it_reducer\";",
        "\"lib.item\": __table({\n    name: \"lib.item\",",
        "__reducerSchema(\"lib.do_it\", LibDoItReducer),",
        "__reducerSchema(\"root_r\", RootRReducer),",
        "export const reducers = {\n  rootR: __reducersByKey[\"rootR\"],\n  lib: {\n    doIt: __reducersByKey[\"lib.doIt\"],\n  },\n};",
        "export const procedures = __convertToAccessorMap(proceduresSchema.procedures);",
    ] {
        assert!(index.contains(part), "{part} in\n{index}");
    }
    assert!(file(&bindings, "lib/item_table.ts")
        .contains("nextOne: __t.option(__t.identity()).name(\"next_one\"),"));
}

/// Rust and C# have no directories for submodules: their things have longer names.
#[test]
fn submodules_have_prefixes_where_all_names_are_one() {
    let rust = generate(&with_submodule(), &options(Language::Rust)).expect("bindings");
    for (path, part) in [
        ("lib_item_type.rs", "pub struct LibItem {\n    pub id: u32,"),
        (
            "lib_item_table.rs",
            "self.imp.get_table::<LibItem>(\"lib.item\")",
        ),
        (
            "lib_do_it_reducer.rs",
            "impl lib_do_it for super::RemoteReducers",
        ),
        ("mod.rs", "Reducer::LibDoIt { .. } => \"lib.do_it\","),
        ("user_type.rs", "pub next_one: Option<__sdk::Identity>,"),
    ] {
        let text = file(&rust, path);
        assert!(text.contains(part), "{part} in\n{text}");
    }
    let csharp = generate(&with_submodule(), &csharp()).expect("bindings");
    for (path, part) in [
        (
            "Types/LibItem.g.cs",
            "public sealed partial class LibItem\n",
        ),
        ("Tables/LibItem.g.cs", "RemoteTableName => \"lib.item\";"),
        (
            "Tables/LibItem.g.cs",
            "NullableCol<LibItem, global::SpacetimeDB.Identity>(tableName, \"next_one\");",
        ),
        (
            "Reducers/LibDoIt.g.cs",
            "IReducerArgs.ReducerName => \"lib.do_it\";",
        ),
        ("Types/User.g.cs", "[DataMember(Name = \"next_one\")]"),
    ] {
        let text = file(&csharp, path);
        assert!(text.contains(part), "{part} in\n{text}");
    }
}

#[test]
fn names_that_become_the_same_are_refused() {
    let def = ModuleDef::validate(with_submodule_raw("LibItem")).expect("valid");
    for language in [Language::Rust, csharp().language] {
        let error = generate(&def, &options(language)).expect_err("twice");
        assert_eq!(
            error.to_string(),
            "two things of the module and its submodules would both be called `LibItem`; rename one of them"
        );
    }
}

/// A client that subscribes to all tables cannot give a view its arguments.
#[test]
fn views_with_parameters_are_not_among_all_tables() {
    let mut raw = with_submodule_raw("User");
    let RawModuleDef::V10(module) = &mut raw else {
        panic!("it is of version 10");
    };
    let row = AlgebraicType::Ref(lightcone_types::TypeRef(0));
    let view = |name: &str, index, params| RawViewDefV10 {
        source_name: name.into(),
        index,
        is_public: true,
        is_anonymous: true,
        params,
        return_type: AlgebraicType::array(row.clone()),
    };
    let number = ProductType::new([("number", AlgebraicType::U32)]);
    let views = vec![
        view("nearby", 0, number),
        view("all_users", 1, ProductType::unit()),
    ];
    let section = RawModuleDefV10Section::Views(views);
    module.sections.push(section);
    let def = ModuleDef::validate(raw).expect("valid");
    let typescript = generate(&def, &typescript("lightcone")).expect("bindings");
    let index = file(&typescript, "index.ts");
    assert_eq!(index.matches("takesArguments: true,").count(), 1, "{index}");
    let rust = generate(&def, &options(Language::Rust)).expect("bindings");
    let root = file(&rust, "mod.rs");
    let all = root.lines().find(|line| line.contains("ALL_TABLE_NAMES"));
    let all = all.expect("the tables");
    assert!(all.contains("\"all_users\""), "{all}");
    assert!(!all.contains("\"nearby\""), "{all}");
    let csharp = generate(&def, &csharp()).expect("bindings");
    let client = file(&csharp, "SpacetimeDBClient.g.cs");
    assert!(client.contains("From.AllUsers().ToSql()"), "{client}");
    assert!(!client.contains("From.Nearby().ToSql()"), "{client}");
}
