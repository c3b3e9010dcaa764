//! Differences between two definitions (02 §14.4): each is found, and named readably.

mod common;

use common::*;
use lightcone_schema::raw::*;
use lightcone_schema::*;
use lightcone_types::{AlgebraicType as T, ColId, ProductType};

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
    build.reducers = vec![reducer("run", ProductType::new([("row", T::reference(0))]))];
    build
}

fn changes(change: impl FnOnce(&mut Build)) -> Vec<String> {
    let mut new = base();
    change(&mut new);
    let differences = diff(&base().valid(), &new.valid());
    assert_eq!(differences.to_string().is_empty(), differences.is_empty());
    differences
        .changes
        .iter()
        .map(ToString::to_string)
        .collect()
}

/// Replaces the fields of table `p`.
fn fields(build: &mut Build, fields: &[(&str, T)]) {
    build.types[0] = T::product(fields.iter().cloned());
}

#[test]
fn functions_never_count() {
    let none: [&str; 0] = [];
    assert_eq!(changes(|_| {}), none);
    assert_eq!(changes(|b| b.reducers.clear()), none);
    assert_eq!(
        changes(|b| b
            .reducers
            .push(reducer("more", ProductType::new([("a", T::U8)])))),
        none
    );
    assert_eq!(
        changes(|b| {
            b.named_type("Unused", T::product([("a", T::U8)]));
        }),
        none
    );
    // Default values are used only for added columns.
    assert_eq!(
        changes(|b| {
            let value = RawColumnDefaultValueV10 {
                col_id: ColId(0),
                value: vec![0; 8],
            };
            b.tables[0].default_values.push(value);
        }),
        none
    );
}

#[test]
fn tables() {
    assert_eq!(changes(|b| drop(b.tables.pop())), ["table `q` is gone"]);
    assert_eq!(
        changes(|b| {
            b.table("r", &[("x", T::U8)]);
        }),
        ["table `r` is new"]
    );
    assert_eq!(
        changes(|b| b.tables[1].table_access = TableAccess::Private),
        ["table `q`: access changes from public to private"]
    );
    assert_eq!(
        changes(|b| b.tables[1].is_event = true),
        ["table `q`: becomes an event table"]
    );
    assert_eq!(
        changes(|b| b.tables[0].primary_key.clear()),
        ["table `p`: primary key changes from `id` to none"]
    );
    assert_eq!(
        changes(|b| b.tables[1].source_name = "Q".into()),
        ["table `q`: accessor name changes from `q` to `Q`"]
    );
}

#[test]
fn table_columns() {
    let at = || ("at", T::schedule_at());
    assert_eq!(
        changes(|b| fields(b, &[("id", T::U64), ("name", T::U8), at()])),
        ["table `p`: column `name` changes type from String to U8"]
    );
    assert_eq!(
        changes(|b| fields(b, &[("id", T::U64), ("Name", T::String), at()])),
        ["table `p`: column `name`: accessor name changes from `name` to `Name`"]
    );
    assert_eq!(
        changes(|b| fields(
            b,
            &[("id", T::U64), ("name", T::String), at(), ("lvl", T::U16)]
        )),
        ["table `p`: column `lvl` of type U16 is new, without a default value"]
    );
    let moved = changes(|b| {
        fields(b, &[("id", T::U64), at(), ("name", T::String)]);
        b.tables[0].indexes[1] = btree("p_name", &[2]);
    });
    assert_eq!(
        moved,
        [
            "table `p`: column `name` moves from position 1 to 2",
            "table `p`: column `at` moves from position 2 to 1"
        ]
    );
    let renamed = changes(|b| fields(b, &[("id", T::U64), ("title", T::String), at()]));
    assert_eq!(
        renamed,
        [
            "table `p`: column `name` is gone",
            "table `p`: column `title` of type String is new, without a default value",
            "table `p`: index `p_name_idx_btree` is gone",
            "table `p`: index `p_title_idx_btree` is new",
        ]
    );
}

#[test]
fn objects_of_tables() {
    assert_eq!(
        changes(|b| b.tables[0].indexes[1].algorithm = IndexAlgorithm::Hash(cols(&[1]))),
        [
            "table `p`: index `p_name_idx_btree` is gone",
            "table `p`: index `p_name_idx_hash` is new"
        ]
    );
    assert_eq!(
        changes(|b| b.tables[0].indexes[1].accessor_name = Some("n".into())),
        ["table `p`: index `p_name_idx_btree`: accessor name changes from none to `n`"]
    );
    assert_eq!(
        changes(|b| b.tables[0].indexes[1].source_name = Some("n".into())),
        ["table `p`: index `p_name_idx_btree`: source name changes from `p_name` to `n`"]
    );
    assert_eq!(
        changes(|b| b.tables[0].constraints.push(unique(&[1]))),
        ["table `p`: unique constraint `p_name_key` on (name) is new"]
    );
    assert_eq!(
        changes(|b| b.tables[0].sequences.clear()),
        ["table `p`: auto-increment sequence `p_id_seq` is gone"]
    );
    assert_eq!(
        changes(|b| b.tables[0].sequences[0].start = Some(5)),
        ["table `p`: auto-increment sequence `p_id_seq` changes its column or parameters"]
    );
    // Defaults spelled out are the same sequence.
    assert!(changes(|b| b.tables[0].sequences[0].start = Some(1)).is_empty());
    assert_eq!(
        changes(|b| b
            .rest
            .push(RawModuleDefV10Section::Schedules(vec![RawScheduleDefV10 {
                source_name: None,
                table_name: "p".into(),
                schedule_at_col: ColId(2),
                function_name: "run".into(),
            }]))),
        ["table `p`: becomes a scheduled table of `run`"]
    );
}

#[test]
fn views_and_rules() {
    use RawModuleDefV10Section as S;
    let view = |is_anonymous, row| {
        S::Views(vec![RawViewDefV10 {
            source_name: "v".into(),
            index: 0,
            is_public: true,
            is_anonymous,
            params: ProductType::default(),
            return_type: T::array(T::reference(row)),
        }])
    };
    assert_eq!(changes(|b| b.rest.push(view(true, 0))), ["view `v` is new"]);
    let with = |section: S| {
        let mut build = base();
        build.rest.push(section);
        build.valid()
    };
    let text = |old: S, new: S| diff(&with(old), &with(new)).to_string();
    assert_eq!(
        text(view(true, 1), view(false, 1)),
        "- view `v`: is no longer anonymous"
    );
    assert!(text(view(true, 1), view(true, 0))
        .starts_with("- view `v`: columns change from (x: U8) to (id: U64, "));
    let rules = |rules: &[&str]| {
        S::RowLevelSecurity(
            rules
                .iter()
                .map(|sql| RawRowLevelSecurityDef { sql: (*sql).into() })
                .collect(),
        )
    };
    assert_eq!(
        text(rules(&["a", "b"]), rules(&["b", "c"])),
        "- row-level security rule `a` is gone\n- row-level security rule `c` is new"
    );
    assert_eq!(text(rules(&["a", "b"]), rules(&["b", "a"])), "");
}
