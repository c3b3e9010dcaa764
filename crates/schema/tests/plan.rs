//! What a changed definition means (02 §14.4, §14.5): one test per rule, and the order of steps.

use crate::common::*;
use lightcone_schema::raw::*;
use lightcone_schema::*;
use lightcone_types::{AlgebraicType as T, ColId, ProductType};
use RawModuleDefV10Section as S;

/// Table `p` (id, name, at), `q` (x), event table `e` (a, b), view `v` of rows like `q`'s.
fn base() -> Build {
    let mut build = Build::default();
    let table = build.table(
        "p",
        &[
            ("id", T::U64),
            ("name", T::String),
            ("at", T::schedule_at()),
        ],
    );
    table.primary_key = cols(&[0]);
    table.constraints = vec![unique(&[0])];
    table.indexes = vec![btree("p_id", &[0]), btree("p_name", &[1])];
    table.sequences = vec![sequence(0)];
    build.table("q", &[("x", T::U8)]);
    let event = build.table("e", &[("a", T::U8), ("b", T::String)]);
    event.is_event = true;
    event.indexes = vec![btree("e_b", &[1])];
    build.reducers = vec![
        reducer("run", ProductType::new([("row", T::reference(0))])),
        reducer("walk", ProductType::new([("row", T::reference(0))])),
    ];
    build
}

fn view(change: impl FnOnce(&mut RawViewDefV10)) -> S {
    let mut view = RawViewDefV10 {
        source_name: "v".into(),
        index: 0,
        is_public: true,
        is_anonymous: true,
        params: ProductType::default(),
        return_type: T::array(T::reference(1)),
    };
    change(&mut view);
    S::Views(vec![view])
}

fn with(section: S) -> Build {
    let mut build = base();
    build.rest.push(section);
    build
}

/// The steps in short: kind, table and part.
fn short(plan: &MigrationPlan) -> Vec<String> {
    let text = |step: &Step| {
        let parts = [Some(step.kind().as_str()), step.table(), step.part()];
        let parts: Vec<&str> = parts.into_iter().flatten().collect();
        parts.join(" ")
    };
    plan.steps.iter().map(text).collect()
}

fn between(old: Build, new: Build) -> Vec<String> {
    short(&plan(&old.valid(), &new.valid()).expect("a plan"))
}

fn steps(change: impl FnOnce(&mut Build)) -> Vec<String> {
    let mut new = base();
    change(&mut new);
    between(base(), new)
}

fn reasons(change: impl FnOnce(&mut Build)) -> Vec<String> {
    let mut new = base();
    change(&mut new);
    let refused = plan(&base().valid(), &new.valid()).expect_err("no plan");
    refused.reasons.iter().map(ToString::to_string).collect()
}

/// Replaces the fields of a table.
fn fields(build: &mut Build, table: usize, fields: &[(&str, T)]) {
    let row = build.tables[table].product_type_ref;
    build.types[row.0 as usize] = T::product(fields.iter().cloned());
}

fn default(column: u16, value: &[u8]) -> RawColumnDefaultValueV10 {
    RawColumnDefaultValueV10 {
        col_id: ColId(column),
        value: value.to_vec(),
    }
}

fn p_fields() -> Vec<(&'static str, T)> {
    vec![
        ("id", T::U64),
        ("name", T::String),
        ("at", T::schedule_at()),
    ]
}

#[test]
fn functions_never_count() {
    let none: [&str; 0] = [];
    assert_eq!(steps(|_| {}), none);
    assert_eq!(steps(|b| b.reducers.clear()), none);
    let more = ProductType::new([("a", T::U8)]);
    assert_eq!(steps(|b| b.reducers.push(reducer("more", more))), none);
    assert_eq!(
        steps(|b| b.reducers[0].visibility = Visibility::Private),
        none
    );
    assert_eq!(
        steps(|b| {
            b.named_type("Unused", T::product([("a", T::U8)]));
        }),
        none
    );
    // Default values are used only for added columns.
    assert_eq!(
        steps(|b| b.tables[0].default_values.push(default(0, &[0; 8]))),
        none
    );
}

#[test]
fn tables_added_and_removed() {
    let added = |b: &mut Build| {
        let table = b.table("r", &[ID]);
        keyed(table);
        table.sequences = vec![sequence(0)];
    };
    assert_eq!(steps(added), ["AddTable r"]);
    let mut old = base();
    added(&mut old);
    assert_eq!(
        between(old, base()),
        ["RemoveTable r", "DisconnectAllUsers"]
    );
}

#[test]
fn access_names_and_keys_of_tables() {
    assert_eq!(
        steps(|b| b.tables[1].table_access = TableAccess::Private),
        ["ChangeAccess q"]
    );
    assert_eq!(
        steps(|b| b.tables[1].source_name = "Q".into()),
        ["ChangeTableAccessorName q"]
    );
    assert_eq!(
        steps(|b| b.tables[0].primary_key.clear()),
        ["ChangePrimaryKey p"]
    );
    assert_eq!(
        reasons(|b| b.tables[1].is_event = true),
        ["Making table q an event table requires a manual migration; give the new one another name [LC0220]"]
    );
    assert!(reasons(|b| b.tables[2].is_event = false)[0]
        .starts_with("Making table e a table that keeps"));
}

#[test]
fn columns_added() {
    let add = |b: &mut Build| {
        let mut columns = p_fields();
        columns.push(("lvl", T::U16));
        fields(b, 0, &columns);
    };
    assert_eq!(
        steps(|b| {
            add(b);
            b.tables[0].default_values.push(default(3, &[7, 0]));
        }),
        ["AddColumns p", "DisconnectAllUsers"]
    );
    assert_eq!(
        reasons(add),
        ["Adding column lvl to table p needs a default value for the rows that are there; give it one [LC0221]"]
    );
    // Not at the end: with a default too.
    let inserted = reasons(|b| {
        fields(b, 1, &[("new", T::U8), ("x", T::U8)]);
        b.tables[1].default_values.push(default(0, &[7]));
    });
    assert_eq!(
        inserted,
        ["Moving column x of table q from position 0 to 1 requires a manual migration; keep the order, and put new \
          columns at the end [LC0222]"]
    );
}

#[test]
fn columns_removed_renamed_and_moved() {
    let gone = "Removing column name from table p requires a manual migration; keep it (a new name means removing and adding) [LC0220]";
    assert_eq!(
        reasons(|b| {
            fields(b, 0, &[("id", T::U64), ("at", T::schedule_at())]);
            b.tables[0].indexes.pop();
        }),
        [gone]
    );
    let renamed = reasons(|b| {
        let mut columns = p_fields();
        columns[1].0 = "title";
        fields(b, 0, &columns);
        b.tables[0].default_values.push(default(1, &[0; 4]));
    });
    assert_eq!(renamed, [gone]);
    let moved = reasons(|b| {
        let mut columns = p_fields();
        columns.swap(1, 2);
        fields(b, 0, &columns);
        b.tables[0].indexes[1] = btree("p_name", &[2]);
    });
    assert_eq!(moved.len(), 2);
    assert!(moved[0].starts_with("Moving column name of table p from position 1 to 2 "));
    assert!(moved[1].starts_with("Moving column at of table p from position 2 to 1 "));
    assert_eq!(
        steps(|b| {
            let mut columns = p_fields();
            columns[1].0 = "Name";
            fields(b, 0, &columns);
        }),
        ["ChangeColumnAccessorName p name"]
    );
}

/// The text that the reference's answer has, up to the code (06 §5.4).
#[test]
fn types_of_columns() {
    assert_eq!(
        reasons(|b| fields(b, 1, &[("x", T::String)])),
        ["Changing the type of column x in table q from U8 to String requires a manual migration [LC0220]"]
    );
    let colors = |names: &[&'static str]| {
        let mut build = base();
        let sum = T::simple_enum(names.iter().copied());
        let color = build.named_type("Color", sum);
        fields(&mut build, 1, &[("x", T::Ref(color))]);
        build
    };
    assert_eq!(
        between(colors(&["red"]), colors(&["red", "blue"])),
        ["ChangeColumns q"]
    );
    let refused = plan(
        &colors(&["red", "blue"]).valid(),
        &colors(&["red", "green"]).valid(),
    );
    assert_eq!(
        refused.expect_err("no plan").to_string(),
        "Errors occurred:\nChanging the type of column x in table q from (red: () | blue: ()) to (red: () | green: ()) requires \
         a manual migration (variant 1 was `blue` and is `green`; keep its name, and put new variants at the end) [LC0220]\n\n"
    );
    // Both at once: one step.
    let mut new = colors(&["red", "blue"]);
    let color = new.types.len() as u32 - 1;
    fields(&mut new, 1, &[("x", T::reference(color)), ("y", T::U8)]);
    new.tables[1].default_values.push(default(1, &[1]));
    assert_eq!(
        between(colors(&["red"]), new),
        ["AddColumns q", "DisconnectAllUsers"]
    );
}

#[test]
fn columns_of_event_tables() {
    let reschema = ["ReschemaEventTable e", "DisconnectAllUsers"];
    let change = |columns: &[(&str, T)], index: u16| {
        steps(|b| {
            fields(b, 2, columns);
            b.tables[2].indexes = vec![btree("e_b", &[index])];
        })
    };
    // Removed, moved, added without default, another type, and one that could stay as it is.
    assert_eq!(change(&[("b", T::String)], 0), reschema);
    assert_eq!(change(&[("b", T::String), ("a", T::U8)], 0), reschema);
    assert_eq!(
        change(&[("a", T::U8), ("b", T::String), ("c", T::U8)], 1),
        reschema
    );
    assert_eq!(change(&[("a", T::String), ("b", T::String)], 1), reschema);
    assert_eq!(
        change(&[("A", T::U8), ("b", T::String)], 1),
        ["ChangeColumnAccessorName e a"]
    );
    let with_enum = |names: &[&'static str]| {
        let mut build = base();
        let sum = build.named_type("Color", T::simple_enum(names.iter().copied()));
        fields(&mut build, 2, &[("a", T::Ref(sum)), ("b", T::String)]);
        build
    };
    assert_eq!(
        between(with_enum(&["red"]), with_enum(&["red", "blue"])),
        reschema
    );
    // An index over a column that is gone goes first.
    assert_eq!(
        steps(|b| {
            fields(b, 2, &[("a", T::U8), ("c", T::U8)]);
            b.tables[2].indexes = vec![btree("e_c", &[1])];
        }),
        [
            "RemoveIndex e e_b_idx_btree",
            "ReschemaEventTable e",
            "AddIndex e e_c_idx_btree",
            "DisconnectAllUsers"
        ]
    );
}

#[test]
fn indexes() {
    assert_eq!(
        steps(|b| b.tables[1].indexes.push(btree("i", &[0]))),
        ["AddIndex q q_x_idx_btree"]
    );
    assert_eq!(
        steps(|b| drop(b.tables[0].indexes.pop())),
        ["RemoveIndex p p_name_idx_btree"]
    );
    // Another organisation has another name, unless the name was given.
    assert_eq!(
        steps(|b| b.tables[0].indexes[1].algorithm = IndexAlgorithm::Hash(cols(&[1]))),
        [
            "RemoveIndex p p_name_idx_btree",
            "AddIndex p p_name_idx_hash"
        ]
    );
    let named = |algorithm: IndexAlgorithm| {
        let mut build = base();
        build.tables[0].indexes[1].algorithm = algorithm;
        build.rest.push(S::ExplicitNames(ExplicitNames {
            entries: vec![ExplicitNameEntry::Index(NameMapping {
                source_name: "p_name".into(),
                canonical_name: "by_name".into(),
            })],
        }));
        build
    };
    let btree_name = || named(IndexAlgorithm::BTree(cols(&[1])));
    assert_eq!(
        between(btree_name(), named(IndexAlgorithm::Hash(cols(&[1])))),
        ["RemoveIndex p by_name", "AddIndex p by_name"]
    );
    assert_eq!(
        between(btree_name(), named(IndexAlgorithm::BTree(cols(&[1, 0])))),
        ["RemoveIndex p by_name", "AddIndex p by_name"]
    );
    assert_eq!(
        steps(|b| b.tables[0].indexes[1].source_name = Some("n".into())),
        ["ChangeIndexSourceName p p_name_idx_btree"]
    );
    assert_eq!(
        reasons(|b| b.tables[0].indexes[1].accessor_name = Some("n".into())),
        ["Changing the accessor of index p_name_idx_btree of table p from none to n requires a manual migration; keep it, or \
          give the index another name [LC0220]"]
    );
}

#[test]
fn constraints() {
    assert_eq!(
        steps(|b| b.tables[0].constraints.push(unique(&[1]))),
        ["AddConstraint p p_name_key"]
    );
    assert_eq!(
        steps(|b| {
            b.tables[0].primary_key.clear();
            b.tables[0].constraints.clear();
        }),
        ["RemoveConstraint p p_id_key", "ChangePrimaryKey p"]
    );
}

/// Only version 9 gives names to constraints.
#[test]
fn a_constraint_on_other_columns_is_refused() {
    let module = |columns: &[u16]| {
        let table = RawTableDefV9 {
            name: "p".into(),
            product_type_ref: lightcone_types::TypeRef(0),
            primary_key: vec![],
            indexes: vec![RawIndexDefV9 {
                name: None,
                accessor_name: None,
                algorithm: IndexAlgorithm::BTree(cols(columns)),
            }],
            constraints: vec![RawConstraintDefV9 {
                name: Some("only_once".into()),
                data: RawConstraintData::Unique(RawUniqueConstraintData {
                    columns: cols(columns),
                }),
            }],
            sequences: vec![],
            schedule: None,
            table_type: TableKind::User,
            table_access: TableAccess::Public,
        };
        let raw = RawModuleDefV9 {
            typespace: lightcone_types::Typespace {
                types: vec![T::product([("a", T::U8), ("b", T::U8)])],
            },
            tables: vec![table],
            reducers: vec![],
            types: vec![],
            misc_exports: vec![],
            row_level_security: vec![],
        };
        ModuleDef::validate(RawModuleDef::V9(raw)).expect("valid")
    };
    let refused = plan(&module(&[0]), &module(&[1])).expect_err("no plan");
    let text = refused.reasons[0].to_string();
    assert!(
        text.starts_with("Changing unique constraint only_once of table p from (a) to (b) "),
        "{text}"
    );
}

#[test]
fn sequences() {
    assert_eq!(
        steps(|b| b.tables[1].sequences.push(sequence(0))),
        ["AddSequence q q_x_seq"]
    );
    assert_eq!(
        steps(|b| b.tables[0].sequences.clear()),
        ["RemoveSequence p p_id_seq"]
    );
}

#[test]
fn schedules() {
    let scheduled = |function: &str| {
        with(S::Schedules(vec![RawScheduleDefV10 {
            source_name: None,
            table_name: "p".into(),
            schedule_at_col: ColId(2),
            function_name: function.into(),
        }]))
    };
    assert_eq!(between(base(), scheduled("run")), ["AddSchedule p"]);
    assert_eq!(between(scheduled("run"), base()), ["RemoveSchedule p"]);
    assert_eq!(
        between(scheduled("run"), scheduled("walk")),
        ["RemoveSchedule p", "AddSchedule p"]
    );
    assert!(between(scheduled("run"), scheduled("run")).is_empty());
}

#[test]
fn views() {
    let same = || with(view(|_| {}));
    let replaced = ["RemoveView v", "AddView v", "DisconnectAllUsers"];
    assert_eq!(between(base(), same()), ["AddView v"]);
    assert_eq!(
        between(same(), base()),
        ["RemoveView v", "DisconnectAllUsers"]
    );
    assert_eq!(between(same(), same()), ["UpdateView v"]);
    assert_eq!(
        between(same(), with(view(|v| v.is_public = false))),
        ["ChangeAccess v", "UpdateView v"]
    );
    assert_eq!(
        between(same(), with(view(|v| v.source_name = "V".into()))),
        ["ChangeTableAccessorName v", "UpdateView v"]
    );
    assert_eq!(
        between(same(), with(view(|v| v.is_anonymous = false))),
        replaced
    );
    // Other columns.
    let of_p = with(view(|v| v.return_type = T::array(T::reference(0))));
    assert_eq!(between(same(), of_p), replaced);
    let parameters = |ty: T| with(view(|v| v.params = ProductType::new([("a", ty)])));
    assert_eq!(between(same(), parameters(T::U8)), replaced);
    assert_eq!(between(parameters(T::U8), parameters(T::U16)), replaced);
    assert_eq!(
        between(parameters(T::U8), parameters(T::U8)),
        ["UpdateView v"]
    );
    // Another shape of the answer is the same rows.
    let option = with(view(|v| v.return_type = T::option(T::reference(1))));
    assert_eq!(between(same(), option), ["UpdateView v"]);
}

#[test]
fn keys_and_types_of_views() {
    let keyed = |is_keyed: bool| {
        let mut build = with(view(|_| {}));
        if is_keyed {
            build
                .rest
                .push(S::ViewPrimaryKeys(vec![RawViewPrimaryKeyDefV10 {
                    view_source_name: "v".into(),
                    columns: vec!["x".into()],
                }]));
        }
        build
    };
    assert_eq!(
        between(keyed(false), keyed(true)),
        ["RemoveView v", "AddView v", "DisconnectAllUsers"]
    );
    assert_eq!(between(keyed(true), keyed(true)), ["UpdateView v"]);
    let colors = |names: &[&'static str]| {
        let mut build = base();
        let color = build.named_type("Color", T::simple_enum(names.iter().copied()));
        let row = build.named_type("Row", T::product([("c", T::Ref(color))]));
        build
            .rest
            .push(view(|v| v.return_type = T::array(T::Ref(row))));
        build
    };
    assert_eq!(
        between(colors(&["red"]), colors(&["red", "blue"])),
        ["ChangeColumns v", "UpdateView v"]
    );
    assert_eq!(
        between(colors(&["red", "blue"]), colors(&["red"])),
        ["RemoveView v", "AddView v", "DisconnectAllUsers"]
    );
}

#[test]
fn row_level_security() {
    let rules = |rules: &[&str]| {
        let rules = rules
            .iter()
            .map(|sql| RawRowLevelSecurityDef { sql: (*sql).into() });
        with(S::RowLevelSecurity(rules.collect()))
    };
    assert_eq!(
        between(rules(&["a", "b"]), rules(&["b", "c"])),
        [
            "RemoveRowLevelSecurity a",
            "RemoveRowLevelSecurity b",
            "AddRowLevelSecurity b",
            "AddRowLevelSecurity c",
            "DisconnectAllUsers"
        ]
    );
    // The same set: no client notices.
    assert_eq!(
        between(rules(&["a", "b"]), rules(&["b", "a"])),
        [
            "RemoveRowLevelSecurity a",
            "RemoveRowLevelSecurity b",
            "AddRowLevelSecurity a",
            "AddRowLevelSecurity b",
        ]
    );
    let (old, new) = (rules(&["a"]).valid(), rules(&["a"]).valid());
    let same = plan(&old, &new).expect("a plan");
    assert!(same.keeps_schema(&old, &new) && !same.breaks_clients());
}

/// Everything at once comes in the order of the chapter; within a kind by namespace path, then by name.
#[test]
fn steps_are_sorted() {
    let module = |tables: &[&str], inner: &[&str]| {
        let level = |tables: &[&str]| {
            let mut build = Build::default();
            for name in tables {
                let table = build.table(name, &[("x", T::U8)]);
                table.indexes.push(btree(&format!("{name}_i"), &[0]));
            }
            build
        };
        let mut build = level(tables);
        build.rest.push(S::Submodules(vec![RawSubmoduleV10 {
            namespace: "a".into(),
            module: level(inner).raw(),
        }]));
        build
    };
    assert_eq!(
        between(
            module(&["old", "stays"], &["gone", "kept"]),
            module(&["stays", "z"], &["b", "kept"])
        ),
        [
            "RemoveTable old",
            "RemoveTable a.gone",
            "AddTable z",
            "AddTable a.b",
            "DisconnectAllUsers"
        ]
    );
    let many = steps(|b| {
        b.tables[0].indexes.pop();
        b.tables[0].sequences.clear();
        b.tables[0].constraints.push(unique(&[2]));
        b.tables[0].indexes.push(btree("p_at", &[2]));
        b.tables[0].table_access = TableAccess::Private;
        b.tables[1].indexes.push(btree("i", &[0]));
        b.table("a", &[("x", T::U8)]);
        b.rest.push(view(|_| {}));
    });
    assert_eq!(
        many,
        [
            "RemoveIndex p p_name_idx_btree",
            "RemoveSequence p p_id_seq",
            "AddTable a",
            "AddIndex p p_at_idx_btree",
            "AddIndex q q_x_idx_btree",
            "AddConstraint p p_at_key",
            "AddView v",
            "ChangeAccess p",
        ]
    );
}

/// All reasons are listed, and only so many.
#[test]
fn refusals_are_collected_and_bounded() {
    let wide = |ty: T| {
        let mut build = Build::default();
        for table in 0..300 {
            build.table(&format!("t{table:03}"), &[("x", ty.clone())]);
        }
        build.valid()
    };
    let refused = plan(&wide(T::U8), &wide(T::U16)).expect_err("no plan");
    assert_eq!((refused.reasons.len(), refused.not_shown), (256, 44));
    let text = refused.to_string();
    assert!(text.starts_with("Errors occurred:\nChanging the type of column x in table "));
    assert!(text.ends_with("... and 44 more\n\n"));
    // A type may be as long as it likes.
    let long = T::simple_enum((0..200).map(|n| format!("variant{n}")));
    let mut build = Build::default();
    let color = build.named_type("Long", long);
    build.table("t000", &[("x", T::Ref(color))]);
    let refused = plan(&wide(T::U8), &build.valid()).expect_err("no plan");
    let text = refused.to_string();
    assert!(
        text.contains("variant4: ()") && text.contains("... requires a manual"),
        "{text}"
    );
    assert!(text.len() < 1000, "{} bytes", text.len());
}
