//! Migrations with a function: old tables under other names, new ones in their places, counters, replay from the log and from a
//! snapshot, and functions that fail.

use std::collections::BTreeSet;

use crate::common::{assert_same, config, rows, state, table_id};
use crate::definitions::{row_of, with_sections, Algorithm, Kind, Table, Tables};
use crate::history::History;
use lightcone_engine::{Datastore, DatastoreError, MigrationError, MigrationWork};
use lightcone_schema::raw::{RawModuleDefV10Section as Section, RawReducerDefV10};
use lightcone_schema::{
    plan, IndexSchema, MigrationPlan, ModuleDef, Step, TableAccess, Visibility,
};
use lightcone_types::{AlgebraicType as T, ColId, ProductType};
use proptest::prelude::*;

/// A program with these tables and a migration function, which knows the old ones.
fn program(tables: &Tables, old: &Tables) -> ModuleDef {
    let mut all = tables.clone();
    for (name, table) in old {
        let mut table = table.clone();
        table.is_private = true;
        all.insert(format!("__old_{name}"), table);
    }
    let function = RawReducerDefV10 {
        source_name: "__migrate".to_owned(),
        params: ProductType::new::<&str>([]),
        visibility: Visibility::ClientCallable,
        ok_return_type: T::unit(),
        err_return_type: T::String,
    };
    with_sections(&all, vec![Section::Reducers(vec![function])])
}

/// A database with these tables, and the rows of these seeds in each.
fn filled(tables: &Tables, seeds: &[u32]) -> History {
    let mut world = History::new(&program(tables, &Tables::new()));
    world.datastore.begin();
    for (name, table) in tables {
        let id = table_id(&world.datastore, name);
        for seed in seeds {
            // A key that is taken.
            let _ = world
                .datastore
                .insert(id, &row_of(table, *seed), &mut Vec::new());
        }
    }
    world.commit();
    world
}

/// Takes the steps of a plan, with this in the place of the module's function.
fn migrate(
    datastore: &mut Datastore,
    (old, new): (&ModuleDef, &ModuleDef),
    plan: &MigrationPlan,
    function: impl FnOnce(&mut Datastore),
) -> Result<(), MigrationError> {
    let mut may_go_on = || true;
    let mut work = MigrationWork::new(u64::MAX, &mut may_go_on);
    datastore.check_tables(old)?;
    for step in &plan.steps {
        datastore.precheck(step, new, &mut work)?;
    }
    let mut function = Some(function);
    for step in &plan.steps {
        datastore.migrate(step, new, &mut work)?;
        if *step == Step::RunMigration {
            datastore.carry_counters(plan)?;
            function.take().expect("it runs once")(datastore);
            let added = plan.steps.iter().filter_map(|step| match step {
                Step::AddTable { table } => Some(table.as_str()),
                _ => None,
            });
            datastore.settle_counters(&added.collect::<BTreeSet<_>>(), &mut work)?;
        }
    }
    Ok(())
}

fn named<const N: usize>(tables: [(&str, Table); N]) -> Tables {
    tables
        .into_iter()
        .map(|(name, table)| (name.to_owned(), table))
        .collect()
}

fn player() -> Table {
    Table::new(&[Kind::U32, Kind::Text]).key().sequence()
}

#[test]
fn a_table_is_replaced_by_what_the_function_writes() {
    let old_tables = named([
        ("player", player()),
        ("stays", Table::new(&[Kind::U32]).key()),
    ]);
    let mut world = filled(&old_tables, &[1, 2, 3]);
    let old = program(&old_tables, &Tables::new());
    let new_tables = named([
        (
            "player",
            Table::new(&[Kind::U32, Kind::I64, Kind::Text])
                .key()
                .sequence(),
        ),
        ("stays", Table::new(&[Kind::U32]).key()),
        (
            "more",
            Table::new(&[Kind::U32, Kind::Text]).key().sequence(),
        ),
    ]);
    let new = program(&new_tables, &named([("player", player())]));
    let plan = plan(&old, &new).expect("the function makes it possible");
    assert_eq!(
        plan.set_aside().collect::<Vec<_>>(),
        [("player", "__old_player")]
    );
    assert!(plan.breaks_clients() && plan.changes_tables());
    let stays = rows(&world.datastore, table_id(&world.datastore, "stays"));

    world.datastore.begin();
    migrate(&mut world.datastore, (&old, &new), &plan, |datastore| {
        let (from, to) = (
            table_id(datastore, "__old_player"),
            table_id(datastore, "player"),
        );
        assert_eq!(datastore.row_count(from).expect("it is there"), 3);
        assert_eq!(datastore.row_count(to).expect("it is there"), 0);
        // It is not written to.
        let row = row_of(&player(), 7);
        for refused in [
            datastore.insert(from, &row, &mut Vec::new()).map(|()| 0),
            datastore.clear(from),
        ] {
            assert!(
                matches!(refused, Err(DatastoreError::OldTable { .. })),
                "{refused:?}"
            );
        }
        // It is found by its index, which the declaration names.
        let index = datastore
            .index_id_from_name("__old_player_0_[0]_BTree")
            .expect("an index that was there, under its new name");
        let mut found = lightcone_engine::RowBuffer::default();
        datastore
            .index_scan_point(index, &2_u32.to_le_bytes(), &mut found)
            .expect("a key");
        assert!(found.bytes.starts_with(&2_u32.to_le_bytes()));
        let more = table_id(datastore, "more");
        for id in [9_u32, 40] {
            let row = [&id.to_le_bytes()[..], &[0; 8], &[0; 4]].concat();
            datastore
                .insert(to, &row, &mut Vec::new())
                .expect("a free key");
            let row = [&(id + 100).to_le_bytes()[..], &[0; 4]].concat();
            datastore
                .insert(more, &row, &mut Vec::new())
                .expect("a free key");
        }
    })
    .expect("it works");
    world.commit();

    assert_eq!(world.datastore.table_id_from_name("__old_player"), None);
    assert_eq!(
        rows(&world.datastore, table_id(&world.datastore, "stays")),
        stays
    );
    world
        .datastore
        .check_tables(&new)
        .expect("as the new program defines them");
    // Counters go on behind what the function has written.
    world.datastore.begin();
    for (table, expected) in [("player", 41_u32), ("more", 141)] {
        let id = table_id(&world.datastore, table);
        let len = if table == "player" { 16 } else { 8 };
        let mut generated = Vec::new();
        world
            .datastore
            .insert(id, &vec![0; len], &mut generated)
            .expect("a free key");
        assert_eq!(generated, expected.to_le_bytes(), "{table}");
    }
    world.commit();
    let replayed = world.replayed();
    assert_same(&replayed, &world.datastore);
    let (snapshot, first) = world.through_a_snapshot();
    assert_same(&world.replayed_behind(snapshot, first), &world.datastore);
}

/// Columns that keep their name keep their counter, so that rows that are gone do not give their numbers to others.
#[test]
fn counters_of_columns_that_stay_go_on() {
    let old_tables = named([("player", player())]);
    let mut world = filled(&old_tables, &[]);
    world.datastore.begin();
    let id = table_id(&world.datastore, "player");
    for name in 0..3_u8 {
        let row = [&[0; 4][..], &[1, 0, 0, 0, b'a' + name]].concat();
        world
            .datastore
            .insert(id, &row, &mut Vec::new())
            .expect("a free key");
    }
    world.commit();
    let old = program(&old_tables, &Tables::new());
    let new_tables = named([(
        "player",
        Table::new(&[Kind::U32, Kind::I64]).key().sequence(),
    )]);
    let new = program(&new_tables, &old_tables);
    let plan = plan(&old, &new).expect("a plan");
    world.datastore.begin();
    migrate(&mut world.datastore, (&old, &new), &plan, |datastore| {
        let to = table_id(datastore, "player");
        let mut generated = Vec::new();
        datastore
            .insert(to, &[0; 12], &mut generated)
            .expect("a free key");
        assert_eq!(generated, 4_u32.to_le_bytes());
    })
    .expect("it works");
    world.commit();
    // What a restart reserves is behind what was issued.
    let mut replayed = world.replayed();
    replayed.begin();
    let to = table_id(&replayed, "player");
    let mut generated = Vec::new();
    replayed
        .insert(to, &[0; 12], &mut generated)
        .expect("a free key");
    assert!(u32::from_le_bytes(generated[..4].try_into().expect("a u32")) > 4);
}

/// Programs use the last value of a type for what is none: a counter does not go on behind it.
#[test]
fn a_row_with_the_last_value_leaves_the_counter_where_it_is() {
    let old_tables = named([("player", player())]);
    let mut world = filled(&old_tables, &[1]);
    let old = program(&old_tables, &Tables::new());
    let new_tables = named([(
        "player",
        Table::new(&[Kind::U32, Kind::I64]).key().sequence(),
    )]);
    let new = program(&new_tables, &old_tables);
    let plan = plan(&old, &new).expect("a plan");
    world.datastore.begin();
    migrate(&mut world.datastore, (&old, &new), &plan, |datastore| {
        let to = table_id(datastore, "player");
        for id in [u32::MAX, 100] {
            let row = [&id.to_le_bytes()[..], &[0; 8]].concat();
            datastore
                .insert(to, &row, &mut Vec::new())
                .expect("a free key");
        }
    })
    .expect("it works");
    world.commit();
    world.datastore.begin();
    let to = table_id(&world.datastore, "player");
    let mut generated = Vec::new();
    world
        .datastore
        .insert(to, &[0; 12], &mut generated)
        .expect("a free key");
    assert_eq!(generated, 101_u32.to_le_bytes());
    world.datastore.rollback();
    // Nothing was counted before the end of the process.
    let mut again = world.replayed();
    again.begin();
    let mut generated = Vec::new();
    let to = table_id(&again, "player");
    again
        .insert(to, &[0; 12], &mut generated)
        .expect("a free key");
    assert!(u32::from_le_bytes(generated[..4].try_into().expect("a u32")) > 100);
}

#[test]
fn looking_for_the_highest_value_may_be_ended() {
    let tables = named([("player", Table::new(&[Kind::U32]).key().sequence())]);
    let mut world = filled(&tables, &[]);
    world.datastore.begin();
    let id = table_id(&world.datastore, "player");
    for row in 1..2000_u32 {
        let inserted = world
            .datastore
            .insert(id, &row.to_le_bytes(), &mut Vec::new());
        inserted.expect("a free key");
    }
    let mut may_go_on = || false;
    let mut work = MigrationWork::new(u64::MAX, &mut may_go_on);
    let tables = BTreeSet::from(["player"]);
    let ended = world.datastore.settle_counters(&tables, &mut work);
    assert!(matches!(ended, Err(MigrationError::TooLong)), "{ended:?}");
}

/// Its columns are what counts; the rest is as the function declares it, or out of its way.
#[test]
fn an_old_table_has_the_parts_that_are_declared() {
    let was = Table::new(&[Kind::U32, Kind::Text, Kind::U32])
        .key()
        .sequence()
        .index(&[2], Algorithm::BTree);
    let old_tables = named([("player", was)]);
    let mut world = filled(&old_tables, &[1, 2, 3]);
    let old = program(&old_tables, &Tables::new());
    let declared = Table::new(&[Kind::U32, Kind::Text, Kind::U32])
        .unique(&[0])
        .index(&[1], Algorithm::BTree);
    let new_tables = named([("player", Table::new(&[Kind::I64]))]);
    let new = program(&new_tables, &named([("player", declared)]));
    let plan = plan(&old, &new).expect("a plan");
    let migration = new.migration.clone().expect("it has a function");
    world.datastore.begin();
    migrate(&mut world.datastore, (&old, &new), &plan, |datastore| {
        let id = table_id(datastore, "__old_player");
        let schema = datastore.schema(id).expect("it is there").clone();
        assert_eq!(schema.access, TableAccess::Private);
        assert_eq!(schema.primary_key, None);
        let declared = &migration.old_tables[0].constraints[0].name;
        let constraints: Vec<_> = schema.constraints.iter().map(|c| &c.name).collect();
        assert_eq!(constraints, [declared]);
        assert_eq!(schema.indexes.len(), 3);
        // One that was there, one that is declared beside, and one that is not declared.
        for (index, key) in [
            ("__old_player_0_[0]_BTree", &[2, 0, 0, 0][..]),
            ("__old_player_1_[1]_BTree", &[0, 0, 0, 0]),
        ] {
            let index = datastore.index_id_from_name(index).expect("it is there");
            let mut found = lightcone_engine::RowBuffer::default();
            datastore
                .index_scan_point(index, key, &mut found)
                .expect("a key");
            assert!(!found.bytes.is_empty());
        }
        let of_column = |index: &&IndexSchema| *index.algorithm.columns() == [ColId(2)];
        let undeclared = schema.indexes.iter().find(of_column);
        assert!(undeclared.expect("it stays").name.starts_with("__old_"));
    })
    .expect("it works");
    world.commit();
    assert_same(&world.replayed(), &world.datastore);
}

/// Declared types may be wider than the table's, and then rows may have to move.
#[test]
fn what_setting_aside_rewrites_is_bounded() {
    let with = |kind| named([("player", Table::new(&[kind, Kind::Text]).key())]);
    let mut world = filled(&with(Kind::Simple(2)), &[1, 2]);
    let old = program(&with(Kind::Simple(2)), &Tables::new());
    let replaced = named([("player", Table::new(&[Kind::Simple(3)]))]);
    for (declared, fits) in [(Kind::Simple(2), true), (Kind::Simple(3), false)] {
        let new = program(&replaced, &with(declared));
        let plan = plan(&old, &new).expect("a plan");
        world.datastore.begin();
        let mut may_go_on = || true;
        let mut work = MigrationWork::new(100, &mut may_go_on);
        let set_aside = &plan.steps[0];
        assert!(matches!(set_aside, Step::SetAsideTable { .. }));
        let taken = world.datastore.migrate(set_aside, &new, &mut work);
        assert_eq!(taken.is_ok(), fits, "{taken:?}");
        world.datastore.rollback();
    }
}

/// Counters are in the catalog when nothing has been counted, too, and do not begin anew where they do not fit.
#[test]
fn a_counter_goes_on_if_its_column_can_hold_it() {
    let counting = |kind| Table::new(&[kind, Kind::Text]).key().sequence();
    let wide = named([("player", counting(Kind::I64))]);
    let other = |kind| {
        let table = Table::new(&[kind]).key().sequence();
        named([("player", table)])
    };
    let mut world = filled(&named([("player", counting(Kind::U32))]), &[]);
    let first = program(&named([("player", counting(Kind::U32))]), &Tables::new());
    let second = program(&other(Kind::I64), &named([("player", counting(Kind::U32))]));
    let highest = 5_000_000_000_i64;
    world.datastore.begin();
    let planned = plan(&first, &second).expect("a plan");
    migrate(
        &mut world.datastore,
        (&first, &second),
        &planned,
        |datastore| {
            let to = table_id(datastore, "player");
            let row = highest.to_le_bytes();
            datastore
                .insert(to, &row, &mut Vec::new())
                .expect("a free key");
        },
    )
    .expect("it works");
    world.commit();
    // Wider columns again, and nothing is written.
    let third = program(&wide, &other(Kind::I64));
    let planned = plan(&second, &third).expect("a plan");
    world.datastore.begin();
    migrate(&mut world.datastore, (&second, &third), &planned, |_| {}).expect("it works");
    world.commit();
    let mut again = world.replayed();
    again.begin();
    let mut generated = Vec::new();
    let to = table_id(&again, "player");
    let inserted = again.insert(to, &[0; 12], &mut generated);
    inserted.expect("a free key");
    let generated = i64::from_le_bytes(generated[..8].try_into().expect("an i64"));
    assert!(generated > highest, "{generated}");
    let narrow = program(&other(Kind::U32), &wide);
    let planned = plan(&third, &narrow).expect("a plan");
    world.datastore.begin();
    let refused = migrate(&mut world.datastore, (&third, &narrow), &planned, |_| {});
    assert!(
        matches!(&refused, Err(MigrationError::CounterTooHigh { value, .. }) if *value > i128::from(highest)),
        "{refused:?}"
    );
    world.datastore.rollback();
}

/// Of a table that is gone no row is lost unseen by others taking its place, so it need not be read.
#[test]
fn a_table_that_goes_need_not_be_read() {
    let old_tables = named([("a", player()), ("b", player())]);
    let mut world = filled(&old_tables, &[1, 2]);
    let old = program(&old_tables, &Tables::new());
    let new_tables = named([("b", Table::new(&[Kind::U32, Kind::I64]).key().sequence())]);
    let new = program(&new_tables, &old_tables);
    let plan = plan(&old, &new).expect("a plan");
    for reads in [true, false] {
        world.datastore.begin();
        let mut checked = Ok(());
        migrate(&mut world.datastore, (&old, &new), &plan, |datastore| {
            datastore.note_reads();
            if reads {
                let id = table_id(datastore, "__old_b");
                datastore.row_count(id).expect("it is there");
            }
            checked = datastore.check_reads(&plan);
        })
        .expect("it works");
        assert_eq!(checked.is_ok(), reads, "{checked:?}");
        world.datastore.rollback();
    }
}

#[test]
fn an_old_table_that_is_not_there_says_so() {
    let tables = named([("a", player())]);
    let mut datastore = filled(&tables, &[]).datastore;
    assert_eq!(datastore.absent_old_table("__old_a"), None);
    datastore.know_old_tables(&program(&tables, &tables));
    let id = datastore.absent_old_table("__old_a");
    let id = id.expect("the program declares it");
    assert!(datastore.absent_old_index("__old_a_0_[0]_BTree").is_some());
    // Others are as little there as any table that never was.
    assert_eq!(datastore.absent_old_table("__old_b"), None);
    assert_eq!(datastore.absent_old_index("__old_a_0_[1]_BTree"), None);
    datastore.begin();
    let error = datastore.row_count(id).expect_err("there is none");
    assert!(matches!(error, DatastoreError::NoOldTable), "{error}");
    assert_eq!(
        error.errno(),
        None,
        "a module cannot take it for an empty table"
    );
}

fn kinds() -> impl Strategy<Value = Vec<Kind>> {
    let kind = prop_oneof![
        Just(Kind::U32),
        Just(Kind::I64),
        Just(Kind::Text),
        (1..4_u8).prop_map(Kind::Simple),
    ];
    prop::collection::vec(kind, 1..4)
}

fn any_table() -> impl Strategy<Value = Table> {
    let indexed = prop::collection::vec((any::<u8>(), any::<bool>(), any::<bool>()), 0..3);
    (kinds(), indexed, any::<bool>(), any::<bool>()).prop_map(|(kinds, indexed, key, counted)| {
        let mut table = Table::new(&kinds);
        for (column, is_hash, is_unique) in indexed {
            let column = u16::from(column) % kinds.len() as u16;
            let algorithm = if is_hash {
                Algorithm::Hash
            } else {
                Algorithm::BTree
            };
            table = table.index(&[column], algorithm);
            if is_unique {
                table = table.unique(&[column]);
            }
        }
        if key {
            table = table.key();
        }
        if counted && matches!(kinds[0], Kind::U32 | Kind::I64) {
            table = table.sequence();
        }
        table
    })
}

/// As it was: other indexes, and other keys, if rows allow them. The columns are what counts.
fn declared(table: &Table, keeps_parts: bool) -> Table {
    match keeps_parts {
        true => table.clone(),
        false => Table {
            columns: table.columns.clone(),
            ..Table::default()
        },
    }
}

proptest! {
    #![proptest_config(config(150))]

    #[test]
    fn whatever_the_tables_a_function_replaces_them_or_nothing_happens(
        was in prop::collection::btree_map("[ab]", any_table(), 1..3),
        is_to_be in prop::collection::btree_map("[abc]", any_table(), 0..4),
        keeps_parts in any::<bool>(),
        seeds in prop::collection::vec(any::<u32>(), 0..12),
        written in prop::collection::vec(any::<u32>(), 0..12),
        fails in any::<bool>(),
    ) {
        let mut world = filled(&was, &seeds);
        let untouched = filled(&was, &seeds);
        let old = program(&was, &Tables::new());
        let known: Tables = was.iter().map(|(name, table)| (name.clone(), declared(table, keeps_parts))).collect();
        let new = program(&is_to_be, &known);
        let plan = plan(&old, &new).expect("the function knows all tables");
        let aside: Vec<(String, String)> =
            plan.set_aside().map(|(table, old)| (table.to_owned(), old.to_owned())).collect();
        let before = state(&world.datastore);
        world.datastore.begin();
        let done = migrate(&mut world.datastore, (&old, &new), &plan, |datastore| {
            for (table, old) in &aside {
                assert_eq!(&rows(datastore, table_id(datastore, old)), &before[table]);
            }
            for (name, table) in &is_to_be {
                let id = table_id(datastore, name);
                for seed in &written {
                    let _ = datastore.insert(id, &row_of(table, *seed), &mut Vec::new());
                    if seed % 5 == 0 {
                        let _ = datastore.clear(id);
                    }
                }
            }
        });
        prop_assert!(done.is_ok(), "{:?}", done);
        if fails {
            world.datastore.rollback();
            assert_same(&world.datastore, &untouched.datastore);
            world.datastore.check_tables(&old).expect("as before");
            // Nothing is used up that a later migration gets.
            world.datastore.begin();
            migrate(&mut world.datastore, (&old, &new), &plan, |_| {}).expect("it works");
            world.commit();
            let mut other = untouched;
            other.datastore.begin();
            migrate(&mut other.datastore, (&old, &new), &plan, |_| {}).expect("it works");
            other.commit();
            assert_same(&world.datastore, &other.datastore);
        } else {
            world.commit();
            world.datastore.check_tables(&new).expect("as the new program defines them");
            for (_, old) in &aside {
                prop_assert_eq!(world.datastore.table_id_from_name(old), None);
            }
        }
        let replayed = world.replayed();
        assert_same(&replayed, &world.datastore);
        let (snapshot, first) = world.through_a_snapshot();
        assert_same(&world.replayed_behind(snapshot, first), &world.datastore);
    }
}
