//! Migration functions in definitions: what clients see of them, what is refused, and when a plan has one run (02 §14.8).

use crate::common::*;
use lightcone_schema::raw::*;
use lightcone_schema::*;
use lightcone_types::{AlgebraicType as T, ProductType};

fn function() -> RawReducerDefV10 {
    reducer("__migrate", ProductType::default())
}

fn old() -> Build {
    let mut build = Build::default();
    let player = build.table("player", &[("id", T::U64), ("name", T::String)]);
    player.primary_key = cols(&[0]);
    player.constraints = vec![unique(&[0])];
    player.indexes = vec![btree("player_id", &[0])];
    build.table("rest", &[("x", T::U8)]);
    build.reducers = vec![reducer("migrate", ProductType::default())];
    build
}

/// With the column of players renamed.
fn new(declared: &[(&str, T)]) -> Build {
    let mut build = Build::default();
    build.table("player", &[("id", T::U64), ("full_name", T::String)]);
    build.table("rest", &[("x", T::U8)]);
    build.table("__old_player", declared);
    build.reducers = vec![function(), reducer("migrate", ProductType::default())];
    build
}

const PLAYER: [(&str, T); 2] = [("id", T::U64), ("name", T::String)];

#[test]
fn clients_see_neither_the_function_nor_the_old_tables() {
    let def = new(&PLAYER).valid();
    let migration = def.migration.as_ref().expect("there is one");
    assert_eq!(
        migration.functions,
        MigrationFunctions::Whole(0),
        "its position is its id"
    );
    let (id, function) = def.reducer("__migrate").expect("it is one of the reducers");
    assert_eq!((id, function.visibility), (0, Visibility::Private));
    assert_eq!(def.reducer("migrate").expect("another one").0, 1);
    let names: Vec<_> = def.tables.iter().map(|table| table.name.as_str()).collect();
    assert_eq!(names, ["player", "rest"]);
    // The names stay as they are in the code, whatever the policy.
    assert_eq!(migration.old_tables[0].name, "__old_player");
    for version in [RawVersion::V9, RawVersion::V10] {
        let json = def.schema_json(version);
        assert!(
            !json.contains("__old_") && !json.contains("__migrate"),
            "{json}"
        );
        assert!(json.contains("migrate"));
    }
    // The name of the rows goes too, unless something else uses it.
    let types = |build: Build| build.valid().types.len();
    assert_eq!(types(new(&PLAYER)), 2);
    // With what only these rows refer to.
    let mut nested = new(&PLAYER);
    let kind = nested.named_type("Kind", T::sum([("A", T::unit())]));
    nested.table("__old_rest", &[("kind", T::Ref(kind))]);
    nested.named_type("Migrate", T::unit());
    assert_eq!(types(nested), 2);
    let mut shared = new(&PLAYER);
    let row = T::Ref(lightcone_types::TypeRef(2));
    shared
        .reducers
        .push(reducer("give", ProductType::new([("row", row)])));
    assert_eq!(types(shared), 3);
}

#[test]
fn without_a_function_the_names_mean_nothing() {
    let mut build = new(&PLAYER);
    build.reducers.remove(0);
    let def = build.valid();
    assert!(def.migration.is_none());
    assert!(def.table("old_player").is_some());
}

#[test]
fn wrong_declarations_are_refused() {
    let refused = |change: fn(&mut Build), part: &str| {
        let mut build = new(&PLAYER);
        change(&mut build);
        let texts = texts(build);
        assert!(
            texts
                .iter()
                .any(|text| text.contains(part) && text.ends_with("[LC0235]")),
            "{part}: {texts:?}"
        );
    };
    refused(
        |build| build.reducers[0].params = ProductType::new([("a", T::U8)]),
        "no arguments",
    );
    refused(
        |build| {
            build
                .rest
                .push(RawModuleDefV10Section::LifeCycleReducers(vec![
                    RawLifeCycleReducerDefV10 {
                        lifecycle_spec: Lifecycle::Init,
                        function_name: "__migrate".into(),
                    },
                ]));
        },
        "Init",
    );
    refused(|build| build.tables[2].is_event = true, "event table");
    refused(
        |build| {
            let names = vec![ExplicitNameEntry::Table(NameMapping {
                source_name: "rest".into(),
                canonical_name: "__old_rest".into(),
            })];
            build
                .rest
                .push(RawModuleDefV10Section::ExplicitNames(ExplicitNames {
                    entries: names,
                }));
        },
        "`rest`",
    );
}

fn kinds(plan: &MigrationPlan) -> Vec<&str> {
    plan.steps.iter().map(|step| step.kind().as_str()).collect()
}

#[test]
fn a_function_runs_where_steps_cannot() {
    let old = old().valid();
    let new_def = new(&PLAYER).valid();
    let planned = plan(&old, &new_def).expect("a plan");
    assert_eq!(
        kinds(&planned),
        [
            "SetAsideTable",
            "AddTable",
            "RunMigration",
            "RemoveOldTable",
            "DisconnectAllUsers"
        ]
    );
    let text = planned.text(&old, &new_def, PlanStyle::NoColor);
    for line in [
        "▸ Set aside table: player (the migration function reads it as __old_player)",
        "▸ Runs the migration function",
    ] {
        assert!(text.contains(line), "{text}");
    }
    // Migrated already: nothing is to be done.
    let again = plan(&new_def, &new_def).expect("a plan");
    assert!(again.steps.is_empty() && again.set_aside().next().is_none());
    // A table that is gone, whatever rows it has.
    let mut gone = new(&PLAYER);
    gone.tables.remove(0);
    let planned = plan(&old, &gone.valid()).expect("a plan");
    assert!(kinds(&planned).contains(&"RunMigration") && !kinds(&planned).contains(&"RemoveTable"));
    // Without a declaration it is refused as ever.
    let mut other = new(&PLAYER);
    other.tables[2].source_name = "__old_rest".into();
    let refused = plan(&old, &other.valid()).expect_err("no plan");
    assert!(
        refused
            .to_string()
            .contains("Removing column name from table player"),
        "{refused}"
    );
}

#[test]
fn a_function_that_takes_a_table_for_another_is_refused() {
    let old = old().valid();
    for (declared, part) in [
        (
            vec![("id", T::U64), ("nick", T::String)],
            "column 1 is `name`, and not `nick`",
        ),
        (
            vec![("id", T::U32), ("name", T::String)],
            "column `id` is U64, and not U32",
        ),
        (vec![("id", T::U64)], "it has 2 columns, and not 1"),
    ] {
        let refused = plan(&old, &new(&declared).valid())
            .expect_err(part)
            .to_string();
        assert!(
            refused.contains(part)
                && refused.contains("__old_player")
                && refused.contains("[LC0236]"),
            "{refused}"
        );
    }
}

/// What the steps could do with a table is theirs, unless the function runs anyway.
#[test]
fn tables_that_would_be_rewritten_go_with_those_that_need_the_function() {
    let with_level = |build: &mut Build| {
        let at = build
            .tables
            .iter()
            .position(|table| table.source_name == "rest");
        let row = build.tables[at.expect("it is there")].product_type_ref;
        let T::Product(product) = &mut build.types[row.index()] else {
            panic!("a row is a product");
        };
        product
            .elements
            .push(lightcone_types::ProductTypeElement::new("level", T::U8));
        let table = &mut build.tables[at.expect("it is there")];
        table.default_values = vec![RawColumnDefaultValueV10 {
            col_id: lightcone_types::ColId(1),
            value: vec![1],
        }];
    };
    let mut both = new(&PLAYER);
    both.table("__old_rest", &[("x", T::U8)]);
    with_level(&mut both);
    let planned = plan(&old().valid(), &both.valid()).expect("a plan");
    let aside: Vec<_> = planned.set_aside().map(|(table, _)| table).collect();
    assert_eq!(aside, ["player", "rest"]);

    let mut only_rest = old();
    only_rest.table("__old_rest", &[("x", T::U8)]);
    only_rest.reducers.push(function());
    with_level(&mut only_rest);
    let planned = plan(&old().valid(), &only_rest.valid()).expect("a plan");
    assert_eq!(kinds(&planned), ["AddColumns", "DisconnectAllUsers"]);

    // A constraint that rows may not keep is one that a function can mend.
    let mut unique_names = old();
    unique_names.table("__old_player", &PLAYER);
    unique_names.reducers.push(function());
    let player = &mut unique_names.tables[0];
    player.constraints.push(unique(&[1]));
    player.indexes.push(btree("player_name", &[1]));
    let planned = plan(&old().valid(), &unique_names.clone().valid()).expect("a plan");
    assert!(kinds(&planned).contains(&"RunMigration"));
    // But not one that does not fit the table, nor is the other then anything that needs a function.
    let mut stale = unique_names.clone();
    stale
        .tables
        .retain(|table| table.source_name != "__old_player");
    stale.table("__old_player", &[("id", T::U64)]);
    stale.table("__old_rest", &[("x", T::U8)]);
    with_level(&mut stale);
    let planned = plan(&old().valid(), &stale.valid()).expect("a plan");
    assert!(planned.set_aside().next().is_none());
}

/// They have no rows that a function could bring over.
#[test]
fn event_tables_are_not_replaced() {
    let with_event = |columns: &[(&str, T)]| {
        let mut build = old();
        build.table("happened", columns).is_event = true;
        build
    };
    let mut new = with_event(&[("y", T::String)]);
    new.reducers = vec![function()];
    new.table("__old_happened", &[("x", T::U8)]);
    let planned = plan(&with_event(&[("x", T::U8)]).valid(), &new.valid()).expect("a plan");
    assert!(planned.set_aside().next().is_none());
    // Nor when they go.
    let mut gone = old();
    gone.reducers = vec![function()];
    gone.table("__old_happened", &[("x", T::U8)]);
    let planned = plan(&with_event(&[("x", T::U8)]).valid(), &gone.valid()).expect("a plan");
    assert_eq!(kinds(&planned), ["RemoveTable", "DisconnectAllUsers"]);
}

#[test]
fn a_declaration_that_is_used_up_is_told() {
    // The column gets a third name, and the function is still the one for its first.
    let mut again = new(&PLAYER);
    again.named_type("Unused", T::unit());
    let mut published = old();
    published.reducers = vec![function()];
    published.table("__old_player", &PLAYER);
    let refused = plan(&published.valid(), &again.valid()).expect_err("it would not run");
    assert!(
        matches!(&refused.reasons[0], Refusal::OldTableUsedUp { table, declared } if table == "player" && declared == "__old_player"),
        "{refused}"
    );
    // A table that the steps can change needs it no more.
    let mut more = new(&PLAYER);
    more.tables[0].indexes = vec![btree("player_full_name", &[1])];
    plan(&new(&PLAYER).valid(), &more.valid()).expect("an index comes");
}

#[test]
fn a_table_with_the_name_of_an_old_one_stays_out_of_the_way() {
    for policy in [CaseConversionPolicy::SnakeCase, CaseConversionPolicy::None] {
        let section = || RawModuleDefV10Section::CaseConversionPolicy(policy);
        let mut published = old();
        published.rest.push(section());
        published.table("__old_rest", &[("x", T::U8)]);
        let mut replaced = new(&PLAYER);
        replaced.rest.push(section());
        let refused = plan(&published.clone().valid(), &replaced.valid()).expect_err("names clash");
        assert!(refused.to_string().contains("[LC0255]"), "{refused}");
        // Where no table is replaced, it is removed like any other.
        let mut stays = old();
        stays.rest.push(section());
        stays.reducers.push(function());
        let planned = plan(&published.valid(), &stays.valid()).expect("a plan");
        assert!(kinds(&planned).contains(&"RemoveTable"));
    }
}

/// What a running program declares already was done when it was published.
#[test]
fn a_function_is_not_run_again_on_what_it_has_migrated() {
    let with_level = |is_unique: bool| {
        let mut build = Build::default();
        let player = build.table("player", &PLAYER);
        if is_unique {
            player.constraints = vec![unique(&[1])];
            player.indexes = vec![btree("player_name", &[1])];
        }
        build.table("__old_player", &PLAYER);
        build.reducers = vec![function()];
        build
    };
    // Names and types are as before, and only a constraint comes: the steps do it.
    let planned = plan(&with_level(false).valid(), &with_level(true).valid()).expect("a plan");
    assert!(
        planned.set_aside().next().is_none(),
        "{:?}",
        kinds(&planned)
    );
    assert!(kinds(&planned).contains(&"AddConstraint"));
    // Nor does a table go with its rows because of what an earlier version has declared.
    let mut gone = with_level(false);
    gone.tables.remove(0);
    let planned = plan(&with_level(false).valid(), &gone.valid()).expect("a plan");
    assert!(
        kinds(&planned).contains(&"RemoveTable"),
        "{:?}",
        kinds(&planned)
    );
    // A column was renamed, and the declaration stays behind: it fits no more, and is not needed.
    let mut renamed = new(&PLAYER);
    let player = &mut renamed.tables[0];
    player.constraints = vec![unique(&[1])];
    player.indexes = vec![btree("player_full_name", &[1])];
    let planned = plan(&new(&PLAYER).valid(), &renamed.clone().valid()).expect("a plan");
    assert!(kinds(&planned).contains(&"AddConstraint"));
    // Also of one that is new, and fits no table.
    let mut wrong = new(&[("id", T::U64)]);
    wrong.tables[0] = renamed.tables[0].clone();
    let mut before = new(&PLAYER);
    before.reducers.remove(0);
    before.tables.remove(2);
    let planned = plan(&before.valid(), &wrong.valid()).expect("the steps can do it");
    assert!(kinds(&planned).contains(&"AddConstraint") && planned.set_aside().next().is_none());
}

// ---- Functions for rows ---------------------------------------------------------------------------------------------------

/// The function for the rows of `__old_player`, in the place of the one for all.
fn by_rows() -> Build {
    let mut build = new(&PLAYER);
    let row = T::Ref(build.tables[2].product_type_ref);
    build.reducers[0] = reducer("__migrate_player", ProductType::new([("old", row)]));
    build
}

#[test]
fn functions_for_rows_are_hidden_too() {
    let def = by_rows().valid();
    let migration = def.migration.as_ref().expect("there is one");
    assert_eq!(migration.functions, MigrationFunctions::Rows(vec![Some(0)]));
    assert_eq!(migration.row_function("__old_player"), Some(0));
    let (id, function) = def.reducer("__migrate_player").expect("it is a reducer");
    assert_eq!((id, function.visibility), (0, Visibility::Private));
    for version in [RawVersion::V9, RawVersion::V10] {
        let json = def.schema_json(version);
        assert!(
            !json.contains("__old_") && !json.contains("__migrate"),
            "{json}"
        );
    }
    assert_eq!(def.types.len(), 2);
    // A name like it, and no old table, means nothing.
    let mut build = by_rows();
    build.tables.remove(2);
    assert!(build.valid().migration.is_none());
}

#[test]
fn a_plan_waits_for_the_rows() {
    let old = old().valid();
    let new_def = by_rows().valid();
    let planned = plan(&old, &new_def).expect("a plan");
    assert!(planned.is_backfill() && planned.breaks_clients());
    assert_eq!(
        kinds(&planned),
        [
            "SetAsideTable",
            "AddTable",
            "Backfill",
            "RemoveOldTable",
            "DisconnectAllUsers"
        ]
    );
    let text = planned.text(&old, &new_def, PlanStyle::NoColor);
    for line in [
        "▸ Set aside table: player (its rows are migrated one by one, while the module runs)",
        "▸ Waits until all rows are migrated, before any of the above",
    ] {
        assert!(text.contains(line), "{text}");
    }
    // Used up, as one function for all.
    assert!(plan(&new_def, &new_def).expect("a plan").steps.is_empty());
    // A table that goes needs no function.
    let mut gone = by_rows();
    gone.tables.remove(1);
    gone.table("__old_rest", &[("x", T::U8)]);
    let def = gone.valid();
    let planned = plan(&old, &def).expect("a plan");
    assert_eq!(planned.set_aside().count(), 2);
    let text = planned.text(&old, &def, PlanStyle::NoColor);
    assert!(text.contains("rest (its rows go with it)"), "{text}");
}

#[test]
fn wrong_functions_for_rows_are_refused() {
    let refused = |change: fn(&mut Build), part: &str| {
        let mut build = by_rows();
        change(&mut build);
        let texts = texts(build);
        let is_told = |text: &String| text.contains(part) && text.ends_with("[LC0235]");
        assert!(texts.iter().any(is_told), "{part}: {texts:?}");
    };
    refused(
        |build| build.reducers[0].params = ProductType::default(),
        "must take one argument beside the context, a row of `__old_player`",
    );
    refused(
        |build| {
            let other = T::Ref(build.tables[0].product_type_ref);
            build.reducers[0].params = ProductType::new([("old", other)]);
        },
        "a row of `__old_player`",
    );
    refused(
        |build| build.reducers.push(function()),
        "the one or the others",
    );
    refused(
        |build| {
            build.table("__old_rest", &[("x", T::U8)]);
        },
        "`__migrate_rest` is missing",
    );
}

#[test]
fn rows_that_call_functions_are_not_migrated_one_by_one() {
    let mut before = old();
    before.tables[0].is_event = false;
    let mut build = by_rows();
    build.tables[0].is_event = true;
    let refused = plan(&before.valid(), &build.valid()).expect_err("it keeps no rows");
    assert!(refused.to_string().contains("[LC0246]"), "{refused}");
}
