//! Each step of a migration by hand: what is there afterwards, what is refused, and replay.

use crate::common::{assert_same, rows};
use crate::definitions;
use crate::definitions::{definition, row_of, Algorithm, Kind, Table, Tables};
use crate::migrating::{take, World, NO_LIMIT};
use lightcone_engine::{MigrationWork, RowBuffer};
use lightcone_schema::raw::{RawModuleDefV10Section as Section, RawViewDefV10};
use lightcone_schema::{plan, ModuleDef};
use lightcone_types::{AlgebraicType as T, ProductType, TypeRef};

fn one(table: Table) -> Tables {
    Tables::from([("t".to_owned(), table)])
}

fn insert(world: &mut World, seeds: &[u32]) {
    world.datastore.begin();
    let (id, table) = (world.id("t"), world.tables["t"].clone());
    for seed in seeds {
        let inserted = world
            .datastore
            .insert(id, &row_of(&table, *seed), &mut Vec::new());
        inserted.expect("the key is free");
    }
    world.commit();
}

fn assert_replays(world: &World) {
    assert_same(&world.replayed(), &world.datastore);
}

#[test]
fn added_columns_make_a_new_table_and_keep_the_sequence() {
    let old = Table::new(&[Kind::U32, Kind::Text]).key().sequence();
    let mut world = World::new(&one(old.clone()));
    insert(&mut world, &[0, 0o10, 0o20]);
    let first = world.id("t");
    let mut new = old;
    new.columns.push((Kind::I64, 6));
    world.migrate(&one(new)).expect("it is possible");
    assert_ne!(world.id("t"), first, "02 §14.5");
    assert!(world.datastore.table(first).is_none());
    let ids = |world: &World| {
        let rows = rows(&world.datastore, world.id("t"));
        let mut ids: Vec<u32> = rows
            .iter()
            .map(|row| u32::from_le_bytes(row[..4].try_into().expect("four")))
            .collect();
        ids.sort_unstable();
        ids
    };
    let last_columns: Vec<i64> = rows(&world.datastore, world.id("t"))
        .iter()
        .map(|row| i64::from_le_bytes(row[row.len() - 8..].try_into().expect("eight")))
        .collect();
    assert_eq!(last_columns, [2, 2, 2], "the default of seed 6");
    insert(&mut world, &[0o30]);
    assert_eq!(ids(&world), [1, 2, 3, 4], "the sequence goes on");
    assert_replays(&world);
    let mut again = world.opened_again();
    insert(&mut again, &[0o40]);
    assert_eq!(
        ids(&again),
        [1, 2, 3, 4, 4097],
        "and after a restart behind what was reserved"
    );
}

#[test]
fn an_index_is_there_after_replay_exactly_from_where_it_was_added() {
    let old = Table::new(&[Kind::U32, Kind::Text]).unique(&[1]);
    let mut world = World::new(&one(old.clone()));
    insert(&mut world, &[0o10, 0o21]);
    // The key that names rows in the log is another one from here on.
    let new = old.unique(&[0]);
    world
        .migrate(&one(new.clone()))
        .expect("the keys are different");
    insert(&mut world, &[0o32, 0o43]);
    world.write(&[(0, 0o32, false)]);
    let mut without = new.clone();
    without.unique.remove(&vec![1]);
    without.indexes.retain(|(columns, _)| *columns != [1]);
    world.migrate(&one(without)).expect("an index can go");
    // These would have met in the index that is gone.
    insert(&mut world, &[0o14]);
    assert_replays(&world);
}

#[test]
fn duplicates_are_listed() {
    let old = Table::new(&[Kind::U32, Kind::Text]);
    let mut world = World::new(&one(old.clone()));
    for seed in 0..64 {
        insert(&mut world, &[seed]);
    }
    let error = world
        .migrate(&one(old.clone().unique(&[0])))
        .expect_err("there are duplicates");
    let text = error.to_string();
    assert!(
        text.contains("Cannot add unique")
            && text.contains("(8 rows)")
            && text.contains("[LC0226]"),
        "{text}"
    );
    assert_eq!(text.matches("rows)").count(), 8, "{text}");
    let mut both = old;
    both.columns.push((Kind::I64, 0));
    let error = world
        .migrate(&one(both.unique(&[2])))
        .expect_err("all rows get one default");
    assert!(error.to_string().contains("64 rows"), "{error}");
    assert_replays(&world);
}

#[test]
fn a_table_with_rows_is_not_removed() {
    let two = Tables::from([
        ("t".to_owned(), Table::new(&[Kind::U32])),
        ("u".to_owned(), Table::new(&[Kind::U32])),
    ]);
    let mut world = World::new(&two);
    insert(&mut world, &[1]);
    let mut without = two;
    without.remove("t");
    let error = world
        .migrate(&without)
        .expect_err("it has rows")
        .to_string();
    assert!(
        error.starts_with("Cannot remove table `t`: table contains data."),
        "{error}"
    );
    world.datastore.begin();
    let id = world.id("t");
    world.datastore.clear(id).expect("it is there");
    world.commit();
    world.migrate(&without).expect("it is empty");
    assert!(world.datastore.table_id_from_name("t").is_none());
    assert_replays(&world);
}

#[test]
fn a_sequence_may_not_issue_what_is_there() {
    let old = Table::new(&[Kind::I64, Kind::Text]);
    let mut world = World::new(&one(old.clone()));
    insert(&mut world, &[0, 1, 2, 3, 4]);
    world
        .migrate(&one(old.clone().sequence()))
        .expect("no value is above 0");
    world.migrate(&one(old.clone())).expect("it goes again");
    insert(&mut world, &[7]);
    let error = world
        .migrate(&one(old.sequence()))
        .expect_err("3 is there")
        .to_string();
    assert!(
        error.starts_with("Precheck failed: added sequence t_ca_seq already has values in range"),
        "{error}"
    );
    assert_replays(&world);
}

#[test]
fn rows_move_when_their_size_is_not_constant_any_more() {
    let old = Table::new(&[Kind::U32, Kind::Payload(0)])
        .key()
        .index(&[1], Algorithm::BTree);
    let mut world = World::new(&one(old.clone()));
    insert(&mut world, &[0o1, 0o2, 0o3]);
    let id = world.id("t");
    let mut new = old;
    new.columns[1].0 = Kind::Payload(2);
    world.migrate(&one(new)).expect("they are compatible");
    assert_eq!(world.id("t"), id, "02 §14.5: the same id");
    insert(&mut world, &[0o14, 0o25]);
    assert_replays(&world);
    let (from_snapshot, offset) = world.through_a_snapshot();
    assert_same(
        &world.replayed_behind(from_snapshot, offset),
        &world.datastore,
    );
}

/// `t` of a number and an enum, and a view of its rows.
fn with_view(variants: u8, view: Option<(bool, bool)>) -> ModuleDef {
    let tables = one(Table::new(&[Kind::U32, Kind::Simple(variants)]));
    let views = view.map(|(is_public, is_anonymous)| RawViewDefV10 {
        source_name: "v".to_owned(),
        index: 0,
        is_public,
        is_anonymous,
        params: ProductType::default(),
        // Behind the enum.
        return_type: T::array(T::Ref(TypeRef(1))),
    });
    definitions::with_sections(&tables, vec![Section::Views(views.into_iter().collect())])
}

#[test]
fn views_come_change_and_go() {
    let mut world = World::new(&one(Table::new(&[Kind::U32, Kind::Simple(2)])));
    let versions = [
        (with_view(2, None), None),
        (with_view(2, Some((true, true))), Some("AddView")),
        (with_view(3, Some((true, true))), Some("ChangeColumns")),
        (with_view(3, Some((false, true))), Some("ChangeAccess")),
        (with_view(3, Some((false, false))), Some("RemoveView")),
        (with_view(3, None), Some("RemoveView")),
    ];
    let backing = |world: &World| world.datastore.view_table("v").map(|schema| schema.id);
    for pair in versions.windows(2) {
        let [(old, _), (new, expected)] = pair else {
            unreachable!("windows of two");
        };
        let before = backing(&world);
        // A row that is not logged.
        world.datastore.begin();
        if let Some(table) = before {
            let mut rows = 1_u32.to_le_bytes().to_vec();
            rows.extend([7, 0, 0, 0, 1]);
            let replaced = world.datastore.replace_view_rows(table, &[1; 32], &rows);
            replaced.expect("a row of the view");
        }
        world.commit();
        let steps = plan(old, new).expect("a plan").steps;
        let kinds: Vec<_> = steps.iter().map(|step| step.kind().as_str()).collect();
        assert!(
            expected.is_none_or(|kind| kinds.contains(&kind)),
            "{kinds:?}"
        );
        world.datastore.begin();
        take(&mut world.datastore, old, new, &steps).expect("views have no rows to lose");
        world.datastore.rollback();
        assert_eq!(backing(&world), before, "taken back");
        world.datastore.begin();
        take(&mut world.datastore, old, new, &steps).expect("views have no rows to lose");
        world.commit();
        world.datastore.forget_live();
        let Some(view) = new.view("v") else {
            assert_eq!(backing(&world), None);
            assert_replays(&world);
            continue;
        };
        assert!(!world.datastore.view_differs(view, new), "{kinds:?}");
        let is_kept = !kinds.contains(&"RemoveView") && before.is_some();
        assert_eq!(backing(&world) == before, is_kept, "{kinds:?}");
        assert_replays(&world);
    }
}

#[test]
fn backing_tables_that_differ_are_made_anew() {
    let mut world = World::new(&one(Table::new(&[Kind::U32, Kind::Simple(2)])));
    let (old, new) = (
        with_view(2, Some((true, true))),
        with_view(3, Some((true, false))),
    );
    world.datastore.begin();
    world
        .datastore
        .create_views(&old)
        .expect("the name is free");
    world.commit();
    let view = new.view("v").expect("it has one");
    assert!(world.datastore.view_differs(view, &new));
    world.datastore.begin();
    assert_eq!(
        world.datastore.mend_views(&new).expect("it is possible"),
        ["v"]
    );
    world.commit();
    assert!(!world.datastore.view_differs(view, &new));
    world.datastore.begin();
    assert!(world
        .datastore
        .mend_views(&new)
        .expect("it is possible")
        .is_empty());
    world.datastore.rollback();
    assert_replays(&world);
}

/// Nothing is done to tables that are not what the running program's definition says.
#[test]
fn tables_that_differ_from_the_definition_are_told() {
    let base = || Table::new(&[Kind::U32, Kind::I64]).key();
    let world = World::new(&one(base()));
    let mut private = base();
    private.is_private = true;
    let others = [
        (
            Table::new(&[Kind::U32, Kind::I64]).unique(&[0]),
            "primary key",
        ),
        (private, "access"),
        (
            Table::new(&[Kind::U32, Kind::I64]).key().event(),
            "event table",
        ),
        (Table::new(&[Kind::U32, Kind::U32]).key(), "columns"),
        (base().index(&[1], Algorithm::BTree), "indexes"),
        (base().index(&[1], Algorithm::BTree).unique(&[1]), "indexes"),
        (base().sequence(), "sequences"),
    ];
    for (other, text) in others {
        let refused = world.datastore.check_tables(&definition(&one(other)));
        let refused = refused.expect_err(text).to_string();
        assert!(
            refused.contains(text) && refused.contains("[LC0230]"),
            "{refused}"
        );
    }
    let mut more = one(base());
    more.insert("u".to_owned(), base());
    for def in [more, Tables::new()] {
        assert!(world.datastore.check_tables(&definition(&def)).is_err());
    }
    let same = world.datastore.check_tables(&definition(&one(base())));
    same.expect("it is the one that made them");
}

#[test]
fn a_migration_is_bounded() {
    let old = Table::new(&[Kind::U32, Kind::Text]);
    let mut world = World::new(&one(old.clone()));
    for seed in 0..2000 {
        world.write(&[(0, seed, true)]);
    }
    let mut wider = old.clone();
    wider.columns.push((Kind::I64, 0));
    let (old, new) = (definition(&world.tables), definition(&one(wider)));
    let steps = plan(&old, &new).expect("a plan").steps;
    for (bytes_max, go_on, code) in [(1000, true, "LC0229"), (NO_LIMIT, false, "LC0228")] {
        world.datastore.begin();
        let mut may_go_on = || go_on;
        let mut work = MigrationWork::new(bytes_max, &mut may_go_on);
        let failed = steps
            .iter()
            .try_for_each(|step| world.datastore.migrate(step, &new, &mut work));
        world.datastore.rollback();
        let error = failed.expect_err("it is too much").to_string();
        assert!(error.contains(code), "{error}");
        assert_replays(&world);
    }
}

#[test]
fn ordinary_records_have_grown_by_nothing() {
    let mut world = World::new(&one(Table::new(&[Kind::U32, Kind::I64]).key()));
    insert(&mut world, &[0o1]);
    let record = world.records().last().expect("a record").clone();
    // Version, groups, table, kind, rows, bytes, and the row.
    assert_eq!(record.len(), 1 + 1 + 2 + 1 + 1 + 1 + 12);
    assert_eq!(record[0], 3);
    let mut buffer = RowBuffer::default();
    world.datastore.begin();
    world
        .datastore
        .scan(world.id("t"), &mut buffer)
        .expect("in a transaction");
    assert_eq!(record[7..], buffer.bytes);
    world.datastore.rollback();
}
