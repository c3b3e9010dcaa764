//! Every kind of validation error, and what is accepted right next to it (02 §8).

use crate::common::*;
use lightcone_schema::raw::*;
use lightcone_schema::ValidationError as E;
use lightcone_schema::*;
use lightcone_types::{AlgebraicType as T, ColId, ProductType, TypeRef};

#[test]
fn identifiers() {
    for bad in [
        "",
        "1a",
        "a-b",
        "a.b",
        "a b",
        "$",
        "e\u{301}",
        &"x".repeat(5000),
    ] {
        assert!(check_identifier(bad).is_err(), "{bad:?}");
        let build = one_table(bad, &[ID], |_| {});
        assert!(
            build.errors().iter().any(|e| matches!(e, E::Identifier(_))),
            "{bad:?}"
        );
    }
    for good in ["type", "select", "_a1", "é", "用户", "x\u{301}y"] {
        assert_eq!(check_identifier(good), Ok(()), "{good:?}");
    }
    // Only underscores: nothing is left after conversion.
    refused!(
        one_table("__", &[ID], |_| {}),
        E::Identifier(IdentifierError::Empty)
    );
    refused!(
        one_table("t", &[("_", T::U8)], |_| {}),
        E::Identifier(IdentifierError::Empty)
    );
    assert!(texts(one_table("t-u", &[ID], |_| {}))[0]
        .starts_with("module contains invalid identifier: "));
}

#[test]
fn error_report() {
    let mut build = one_table("st_x", &[ID], |_| {});
    build.table("st_y", &[ID]);
    let error = ModuleDef::validate(RawModuleDef::V10(build.raw())).unwrap_err();
    assert_eq!(
        error.to_string(),
        "Errors occurred:\nTable name is reserved for system use: st_x\n\nTable name is reserved for system use: st_y\n\n"
    );
}

#[test]
fn object_names() {
    let mut build = Build::default();
    build.table("p", &[ID]);
    build.table("p", &[ID]);
    assert_eq!(
        texts(build),
        [
            "name `p` is used for multiple entities",
            "name `p` is used for multiple entities"
        ][..1]
    );
    // A source name of one meets the canonical name of another.
    let mut build = Build::default();
    build.table("fooBar", &[ID]);
    build.table("foo_bar", &[ID]);
    refused!(build, E::DuplicateName { .. });
    let index_as_table = one_table("p", &[ID], |t| t.indexes.push(btree("p", &[0])));
    refused!(index_as_table, E::DuplicateName { .. });
    // The same index twice, under different source names.
    let twice = one_table("p", &[ID], |t| {
        t.indexes = vec![btree("a", &[0]), btree("b", &[0])]
    });
    refused!(twice, E::DuplicateName { .. });
}

#[test]
fn function_names() {
    let mut build = one_table("a", &[ID], |_| {});
    build.reducers = vec![reducer("a", ProductType::default())];
    build.clone().valid();
    build.reducers.push(reducer("_a", ProductType::default()));
    assert_eq!(
        texts(build),
        ["Name a is used for multiple reducers, procedures and/or views"]
    );
}

#[test]
fn type_names() {
    let mut build = Build::default();
    build.named_type("aB", T::unit());
    build.named_type("a_b", T::unit());
    assert_eq!(texts(build), ["name `AB` is used for multiple types"]);
}

#[test]
fn row_types() {
    let mut build = one_table("p", &[ID], |t| t.product_type_ref = TypeRef(5));
    assert_eq!(
        texts(build.clone()),
        ["Table p has invalid product_type_ref &5"]
    );
    build.named_type("E", T::simple_enum(["a"]));
    build.tables[0].product_type_ref = TypeRef(1);
    refused!(build, E::InvalidProductTypeRef { .. });

    let mut unnamed = Build::default();
    unnamed.table("p", &[ID]);
    unnamed.types[0] = T::Product(ProductType {
        elements: vec![lightcone_types::ProductTypeElement {
            name: None,
            algebraic_type: T::U8,
        }],
    });
    refused!(
        unnamed,
        E::UnnamedTypeElement { .. },
        E::UnnamedColumn { .. }
    );

    refused!(
        one_table("p", &[("aB", T::U8), ("a_b", T::U8)], |_| {}),
        E::DuplicateColumnName { .. }
    );
    refused!(
        one_table("p", &[("a", T::U8), ("a", T::U8)], |_| {}),
        E::DuplicateColumnName { .. }
    );
    refused!(
        one_table("t", &[ID], |t| t.table_type = TableKind::System),
        E::SystemTable { .. }
    );
}

#[test]
fn recursive_columns() {
    let mut build = Build::default();
    let node = build.named_type("Node", T::product([("next", T::option(T::reference(0)))]));
    build.reducers = vec![reducer("walk", ProductType::new([("node", T::Ref(node))]))];
    build.clone().valid();
    build.table("t", &[("node", T::Ref(node))]);
    assert!(texts(build)[0].contains("Found recursive type reference &0"));
}

#[test]
fn keys_and_indexes() {
    one_table("p", &[ID, ("b", T::U8)], keyed).valid();
    let missing = one_table("p", &[ID], |t| t.primary_key = cols(&[0]));
    assert_eq!(
        texts(missing),
        ["table `p` column `id` is primary key but has no unique constraint"]
    );
    refused!(
        one_table("p", &[ID], |t| t.primary_key = cols(&[0, 0])),
        E::RepeatedPrimaryKey { .. }
    );
    refused!(
        one_table("p", &[ID], |t| t.primary_key = cols(&[4])),
        E::ColumnNotFound { .. }
    );
    let bad_index = one_table("p", &[ID], |t| t.indexes.push(btree("x", &[9])));
    assert_eq!(
        texts(bad_index),
        ["column `9` referenced by def p_col_9_idx_btree not found in table `p`"]
    );
    refused!(
        one_table("p", &[ID], |t| t.indexes.push(btree("x", &[0, 0]))),
        E::DuplicateColumns { .. }
    );
    refused!(
        one_table("p", &[ID], |t| t.indexes.push(btree("x", &[]))),
        E::EmptyColumnList { .. }
    );
    let no_index = one_table("p", &[ID], |t| t.constraints.push(unique(&[0])));
    assert_eq!(
        texts(no_index),
        ["No index found to support unique constraint `p_id_key` for columns `{ColId(0)}`"]
    );
    let nameless = one_table("p", &[ID], |t| {
        t.indexes.push(RawIndexDefV10 {
            source_name: None,
            ..btree("x", &[0])
        });
    });
    refused!(nameless, E::IndexWithoutSourceName { .. });
    // An index over the same set in another order supports a constraint.
    let def = one_table("p", &[ID, ("b", T::U8)], |t| {
        t.constraints.push(unique(&[1, 0]));
        t.indexes
            .push(index("x", IndexAlgorithm::Hash(cols(&[0, 1]))));
    })
    .valid();
    assert_eq!(def.tables[0].constraints[0].name, "p_b_id_key");
    assert_eq!(def.tables[0].constraints[0].columns, cols(&[0, 1]));
    assert!(def.tables[0].indexes[0].unique);
}

#[test]
fn direct_indexes() {
    let direct = |ty: T| {
        let mut build = Build::default();
        build.named_type("E", T::simple_enum(["a", "b"]));
        build.named_type("N", T::sum([("a", T::U8)]));
        build
            .table("p", &[("c", ty)])
            .indexes
            .push(index("x", IndexAlgorithm::Direct(ColId(0))));
        build
    };
    for good in [T::U8, T::U16, T::U32, T::U64, T::reference(0)] {
        direct(good).valid();
    }
    for bad in [T::I8, T::String, T::U128, T::Bool, T::reference(1)] {
        refused!(direct(bad), E::DirectIndexOnBadType { .. });
    }
}

#[test]
fn sequences() {
    let with = |change: fn(&mut RawSequenceDefV10)| {
        one_table("p", &[ID, ("s", T::String)], |t| {
            let mut sequence = sequence(0);
            change(&mut sequence);
            t.sequences.push(sequence);
        })
    };
    with(|_| {}).valid();
    refused!(
        with(|s| s.column = ColId(1)),
        E::InvalidSequenceColumnType { .. }
    );
    refused!(with(|s| s.column = ColId(7)), E::ColumnNotFound { .. });
    // Also those that could issue values: since 2.12 there are no options.
    let refusal = |change| texts(with(change)).concat();
    for (change, text) in [
        (
            (|s: &mut RawSequenceDefV10| s.increment = 0) as fn(&mut RawSequenceDefV10),
            "`increment` with value 0, should be 1",
        ),
        (
            |s| s.increment = -3,
            "`increment` with value -3, should be 1",
        ),
        (
            |s| s.start = Some(5),
            "`start` with value 5, should be none",
        ),
        (
            |s| s.min_value = Some(i128::MIN),
            "`min_value` with value -170141183460469231731687303715884105728, should be none",
        ),
        (
            |s| s.max_value = Some(10),
            "`max_value` with value 10, should be none",
        ),
    ] {
        let text = format!("sequence definition `p_id_seq` specifies unsupported option {text}");
        let refusal = refusal(change);
        assert!(refusal.contains(&text), "{refusal}");
    }
    let two = one_table("p", &[ID], |t| {
        t.sequences = vec![
            sequence(0),
            RawSequenceDefV10 {
                source_name: Some("s".into()),
                ..sequence(0)
            },
        ];
    });
    refused!(two, E::OneAutoInc { .. });
}

#[test]
fn default_values() {
    let with = |values: Vec<(u16, Vec<u8>)>| {
        one_table("p", &[ID, ("s", T::option(T::String))], |t| {
            t.default_values = values
                .into_iter()
                .map(|(c, value)| RawColumnDefaultValueV10 {
                    col_id: ColId(c),
                    value,
                })
                .collect();
        })
    };
    let def = with(vec![(1, vec![9]), (1, vec![1, 77])]);
    refused!(def, E::ColumnDefaultValueMalformed { .. });
    let def = with(vec![(1, vec![0, 0, 0, 0, 0]), (1, vec![1, 77])]).valid();
    assert_eq!(
        def.tables[0].columns[1].default.as_deref(),
        Some(&[1][..]),
        "the last counts, without the rest"
    );
    refused!(
        with(vec![(0, vec![1])]),
        E::ColumnDefaultValueMalformed { .. }
    );
    refused!(with(vec![(2, vec![])]), E::ColumnNotFound { .. });

    let mut raw = RawModuleDefV9::default();
    let default = |table: &str| {
        RawMiscModuleExportV9::ColumnDefaultValue(RawColumnDefaultValueV9 {
            table: table.into(),
            col_id: ColId(0),
            value: vec![1; 8],
        })
    };
    raw.tables = one_table("p", &[ID], |_| {}).valid().to_raw_v9().tables;
    raw.typespace.types = vec![T::product([ID])];
    raw.misc_exports = vec![default("p"), default("p"), default("q")];
    let errors = ModuleDef::validate(RawModuleDef::V9(raw))
        .unwrap_err()
        .errors;
    assert!(
        matches!(
            &errors[..],
            [
                E::TableNotFound { .. },
                E::MultipleColumnDefaultValues { .. }
            ]
        ),
        "{errors:?}"
    );
}

#[test]
fn type_uses() {
    let declared = |ty: T| {
        let mut build = Build::default();
        build.named_type("X", ty);
        build
    };
    let use_of = |ty: T| declared(T::product([("f", ty)]));
    for good in [
        T::U8,
        T::String,
        T::unit(),
        T::never(),
        T::bytes(),
        T::identity(),
        T::schedule_at(),
        T::option(T::array(T::result(T::reference(0), T::timestamp()))),
    ] {
        use_of(good).valid();
    }
    let bad = use_of(T::sum([("a", T::U8)]));
    assert!(texts(bad)[0].starts_with("error at typespace ref `&0`: internal codegen error: "));
    refused!(
        use_of(T::option(T::product([("x", T::U8)]))),
        E::TypeUse { .. }
    );
    refused!(declared(T::U8), E::InvalidTypeDef { .. });
    refused!(declared(T::option(T::U8)), E::InvalidTypeDef { .. });
    refused!(
        declared(T::simple_enum((0..257).map(|i| format!("v{i}")))),
        E::TypeUse { .. }
    );
    declared(T::simple_enum((0..256).map(|i| format!("v{i}")))).valid();
    let unsorted = |custom_ordering| {
        let mut build = declared(T::product([("b", T::U8), ("a", T::U8)]));
        build.named[0].custom_ordering = custom_ordering;
        build
    };
    unsorted(true).valid();
    refused!(unsorted(false), E::TypeHasIncorrectOrdering { .. });
    let mut dangling = Build::default();
    dangling.named_type("X", T::unit());
    dangling.types.clear();
    refused!(dangling, E::InvalidTypeDef { .. });

    // Undeclared entries are followed; a cycle that passes through no declared type is an error.
    let types = vec![
        T::reference(1),
        T::array(T::reference(2)),
        T::U8,
        T::array(T::reference(4)),
        T::reference(3),
    ];
    let mut chain = Build {
        types,
        ..Build::default()
    };
    chain.reducers = vec![reducer("ok", ProductType::new([("a", T::reference(0))]))];
    chain.clone().valid();
    chain
        .reducers
        .push(reducer("bad", ProductType::new([("a", T::reference(3))])));
    refused!(
        chain,
        E::TypeUse {
            reason: TypeUseError::Cycle(TypeRef(3)),
            ..
        }
    );
}
