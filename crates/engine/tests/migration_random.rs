//! Random pairs of schemas with data: migrated databases against databases made from scratch, replay from the log alone and from any
//! snapshot, and steps that are taken back.

use std::collections::BTreeMap;

use crate::common::{assert_same, config, rows, state};
use crate::definitions::{definition, row_of, Algorithm, Kind, Table, Tables};
use crate::migrating::World;
use lightcone_engine::Datastore;
use lightcone_schema::{plan, TableSchema};
use proptest::prelude::*;

/// What a table is, without ids and their order.
fn shape(schema: &TableSchema) -> impl PartialEq + std::fmt::Debug {
    let mut parts: Vec<String> = Vec::new();
    for index in &schema.indexes {
        parts.push(format!(
            "{} {:?} {:?} {}",
            index.name, index.accessor, index.algorithm, index.unique
        ));
    }
    for constraint in &schema.constraints {
        parts.push(format!("{} {:?}", constraint.name, constraint.columns));
    }
    for s in &schema.sequences {
        parts.push(format!(
            "{} {:?} {} {} {} {}",
            s.name, s.column, s.start, s.min_value, s.max_value, s.increment
        ));
    }
    parts.sort();
    (
        schema.name.clone(),
        schema.accessor.clone(),
        schema.columns.clone(),
        schema.primary_key,
        (schema.access, schema.is_event),
        parts,
    )
}

/// That the tables of the user are those of a database made from scratch, with converted rows.
fn assert_as_from_scratch(world: &World, before: &BTreeMap<String, Vec<Vec<u8>>>, old: &Tables) {
    let scratch = World::new(&world.tables);
    for (name, table) in &world.tables {
        let (id, scratch_id) = (world.id(name), scratch.id(name));
        let schema = |datastore: &Datastore, id| shape(datastore.schema(id).expect("it is there"));
        assert_eq!(
            format!("{:?}", schema(&world.datastore, id)),
            format!("{:?}", schema(&scratch.datastore, scratch_id))
        );
        let was = old.get(name).map_or(0, |old| old.columns.len());
        let added = table.columns.iter().skip(was);
        let suffix: Vec<u8> = added.flat_map(|(kind, seed)| kind.bytes(*seed)).collect();
        let converted = before.get(name).into_iter().flatten();
        let mut converted: Vec<Vec<u8>> =
            converted.map(|row| [&row[..], &suffix].concat()).collect();
        converted.sort();
        assert_eq!(rows(&world.datastore, id), converted, "rows of {name}");
    }
    assert_eq!(
        world.datastore.schemas().count(),
        scratch.datastore.schemas().count()
    );
    assert_indexes(&world.datastore);
}

/// That every row is in every index, and that unique keys are refused.
fn assert_indexes(datastore: &Datastore) {
    assert_same(datastore, datastore);
}

fn kind() -> impl Strategy<Value = Kind> {
    prop_oneof![
        Just(Kind::U32),
        Just(Kind::I64),
        Just(Kind::Text),
        (1..4_u8).prop_map(Kind::Simple),
        (0..3_u8).prop_map(Kind::Payload),
    ]
}

fn algorithm() -> impl Strategy<Value = Algorithm> {
    prop_oneof![Just(Algorithm::BTree), Just(Algorithm::Hash)]
}

#[derive(Clone, Debug)]
enum Change {
    AddColumn(Kind, u32),
    Widen(u8),
    Index(Vec<u8>, Algorithm),
    Unique(Vec<u8>),
    Key,
    Sequence,
    Access,
    AddTable(Vec<Kind>),
    RemoveTable,
    /// Of an event table, whose columns may change in any way.
    EventColumns(Vec<Kind>),
}

fn change() -> impl Strategy<Value = (u8, Change)> {
    let change = prop_oneof![
        2 => (kind(), any::<u32>()).prop_map(|(kind, seed)| Change::AddColumn(kind, seed)),
        2 => any::<u8>().prop_map(Change::Widen),
        4 => (prop::collection::vec(any::<u8>(), 1..3), algorithm())
            .prop_map(|(columns, algorithm)| Change::Index(columns, algorithm)),
        3 => prop::collection::vec(any::<u8>(), 1..3).prop_map(Change::Unique),
        1 => Just(Change::Key),
        1 => Just(Change::Sequence),
        1 => Just(Change::Access),
        1 => prop::collection::vec(kind(), 1..4).prop_map(Change::AddTable),
        1 => Just(Change::RemoveTable),
        1 => prop::collection::vec(kind(), 1..4).prop_map(Change::EventColumns),
    ];
    (any::<u8>(), change)
}

fn columns_of(table: &Table, wanted: &[u8]) -> Vec<u16> {
    let count = table.columns.len();
    let mut columns: Vec<u16> = wanted
        .iter()
        .map(|c| (usize::from(*c) % count) as u16)
        .collect();
    columns.sort_unstable();
    columns.dedup();
    columns
}

fn apply(tables: &mut Tables, (which, change): &(u8, Change)) {
    let names: Vec<String> = tables.keys().cloned().collect();
    let name = &names[usize::from(*which) % names.len()];
    match change {
        Change::AddTable(kinds) => {
            let name = format!("n{}", (b'a' + which % 20) as char);
            tables.insert(name, Table::new(kinds));
            return;
        }
        Change::RemoveTable => {
            if tables.len() > 1 {
                tables.remove(name);
            }
            return;
        }
        _ => {}
    }
    let table = tables.get_mut(name).expect("it is there");
    let is_number = matches!(table.columns[0].0, Kind::U32 | Kind::I64);
    match change {
        Change::AddColumn(kind, seed) if table.columns.len() < 6 => {
            table.columns.push((*kind, *seed));
        }
        Change::Widen(column) => {
            let count = table.columns.len();
            let (kind, _) = &mut table.columns[usize::from(*column) % count];
            *kind = match *kind {
                Kind::Simple(count) => Kind::Simple((count + 1).min(5)),
                Kind::Payload(count) => Kind::Payload((count + 1).min(5)),
                kind => kind,
            };
        }
        Change::Index(columns, algorithm) => {
            let index = (columns_of(table, columns), *algorithm);
            let others = table
                .indexes
                .iter()
                .filter(|other| other.0 == index.0)
                .count();
            // A constraint needs one.
            if !table.indexes.contains(&index) {
                table.indexes.insert(index);
            } else if !table.unique.contains(&index.0) || others > 1 {
                table.indexes.remove(&index);
            }
        }
        Change::Unique(columns) => {
            let columns = columns_of(table, columns);
            if !table.unique.contains(&columns) {
                table.make_unique(&columns);
            } else if !(table.has_key && columns == [0]) {
                table.unique.remove(&columns);
            }
        }
        Change::Key => {
            table.has_key = !table.has_key;
            if table.has_key {
                table.make_unique(&[0]);
            }
        }
        Change::Sequence if is_number => table.has_sequence = !table.has_sequence,
        Change::Access => table.is_private = !table.is_private,
        Change::EventColumns(kinds) if table.is_event => {
            *table = Table::new(kinds).event();
        }
        _ => {}
    }
}

fn first_tables() -> Tables {
    let a = Table::new(&[Kind::U32, Kind::Text, Kind::Simple(2)])
        .key()
        .sequence();
    let b = Table::new(&[Kind::I64, Kind::Payload(0)]).index(&[1], Algorithm::Hash);
    let c = Table::new(&[Kind::Text, Kind::U32])
        .unique(&[1])
        .unique(&[0, 1]);
    let e = Table::new(&[Kind::U32]).event();
    let names = ["a", "b", "c", "e"].map(str::to_owned);
    names.into_iter().zip([a, b, c, e]).collect()
}

type Round = (Vec<(u8, u32, bool)>, Vec<(u8, Change)>);

fn round() -> impl Strategy<Value = Round> {
    let write = (any::<u8>(), any::<u32>(), prop::bool::weighted(0.8));
    (
        prop::collection::vec(write, 0..12),
        prop::collection::vec(change(), 1..4),
    )
}

fn user_rows(world: &World) -> BTreeMap<String, Vec<Vec<u8>>> {
    let all = state(&world.datastore);
    all.into_iter()
        .filter(|(name, _)| world.tables.contains_key(name))
        .collect()
}

/// Whether the rows allow the new tables, found out without the engine.
fn is_possible(before: &BTreeMap<String, Vec<Vec<u8>>>, old: &Tables, new: &Tables) -> bool {
    let is_kept = |name: &String| new.contains_key(name);
    if before
        .iter()
        .any(|(name, rows)| !is_kept(name) && !rows.is_empty())
    {
        return false;
    }
    new.iter().all(|(name, table)| {
        let Some(was) = old.get(name) else {
            return true;
        };
        let rows = &before[name];
        let added = table.columns.iter().skip(was.columns.len());
        let suffix: Vec<u8> = added.flat_map(|(kind, seed)| kind.bytes(*seed)).collect();
        let types: Vec<_> = definition(new)
            .table(name)
            .expect("it is there")
            .columns
            .iter()
            .map(|column| column.ty.clone())
            .collect();
        let values: Vec<Vec<Vec<u8>>> = rows
            .iter()
            .map(|row| {
                let row = [&row[..], &suffix].concat();
                let mut reader = lightcone_types::Reader::new(&row);
                types
                    .iter()
                    .map(|ty| {
                        let start = reader.position();
                        lightcone_types::bsatn::decode_value(&Default::default(), ty, &mut reader)
                            .expect("a value");
                        row[start..reader.position()].to_vec()
                    })
                    .collect()
            })
            .collect();
        let is_unique = |columns: &Vec<u16>| {
            let mut keys: Vec<Vec<&Vec<u8>>> = values
                .iter()
                .map(|row| columns.iter().map(|c| &row[usize::from(*c)]).collect())
                .collect();
            keys.sort();
            keys.windows(2).all(|pair| pair[0] != pair[1])
        };
        let is_free = !table.has_sequence
            || was.has_sequence
            || values.iter().all(|row| {
                let bytes = &row[0];
                let is_negative = table.columns[0].0 == Kind::I64 && bytes[7] & 0x80 != 0;
                is_negative || bytes.iter().all(|byte| *byte == 0)
            });
        is_free && table.unique.iter().all(is_unique)
    })
}

proptest! {
    #![proptest_config(config(150))]

    /// Migrations one after the other, with writes between them.
    #[test]
    fn migrated_databases_are_as_from_scratch_and_replay(rounds in prop::collection::vec(round(), 1..5)) {
        let mut world = World::new(&first_tables());
        let mut snapshots = Vec::new();
        for (writes, changes) in &rounds {
            world.write(writes);
            let old = world.tables.clone();
            let mut new = old.clone();
            changes.iter().for_each(|change| apply(&mut new, change));
            // A table that goes and comes again is another one to the test, and the same one to the plan: its rows may fit no column.
            if plan(&definition(&old), &definition(&new)).is_err() {
                continue;
            }
            let before = user_rows(&world);
            let is_possible = is_possible(&before, &old, &new);
            let migrated = world.migrate(&new);
            prop_assert_eq!(migrated.is_ok(), is_possible, "{:?}", migrated);
            match migrated {
                Ok(()) => assert_as_from_scratch(&world, &before, &old),
                Err(_) => {
                    prop_assert_eq!(&before, &user_rows(&world));
                    assert_indexes(&world.datastore);
                }
            }
            world.write(writes);
            snapshots.push(world.through_a_snapshot());
        }
        let replayed = world.replayed();
        assert_same(&replayed, &world.datastore);
        prop_assert_eq!(world.followed(), user_rows(&world));
        for (datastore, first) in snapshots {
            assert_same(&world.replayed_behind(datastore, first), &world.datastore);
        }
    }

    /// A migration that is given up after any of its steps leaves nothing, not even ids that are used up.
    #[test]
    fn what_is_taken_back_leaves_nothing(round in round(), count in 0..12_usize, rest in prop::collection::vec(any::<(u8, u32)>(), 0..6)) {
        let (writes, changes) = &round;
        let mut worlds = [(); 2].map(|()| {
            let mut world = World::new(&first_tables());
            world.write(writes);
            world
        });
        let mut new = worlds[0].tables.clone();
        changes.iter().for_each(|change| apply(&mut new, change));
        prop_assume!(plan(&definition(&worlds[0].tables), &definition(&new)).is_ok());
        let [tried, untouched] = &mut worlds;
        tried.datastore.begin();
        // Rows that change in the same transaction, before.
        let names: Vec<String> = tried.tables.keys().cloned().collect();
        for (table, seed) in &rest {
            let name = &names[usize::from(*table) % names.len()];
            let row = row_of(&tried.tables[name], *seed);
            let id = tried.id(name);
            if seed % 3 == 0 {
                let _ = tried.datastore.clear(id);
            }
            let _ = tried.datastore.insert(id, &row, &mut Vec::new());
        }
        let _ = tried.take_steps(&new, count);
        // And behind.
        for (table, seed) in &rest {
            let name = &names[usize::from(*table) % names.len()];
            let Some(id) = tried.datastore.table_id_from_name(name) else { continue };
            if seed % 2 == 0 {
                let _ = tried.datastore.clear(id);
            }
            if let Some(table) = new.get(name) {
                let _ = tried.datastore.insert(id, &row_of(table, *seed), &mut Vec::new());
            }
        }
        tried.datastore.rollback();
        assert_same(&tried.datastore, &untouched.datastore);
        prop_assert_eq!(tried.migrate(&new).is_ok(), untouched.migrate(&new).is_ok());
        for world in [&mut *tried, &mut *untouched] {
            world.write(writes);
        }
        // Sequences of the user may have issued values that were taken back.
        let is_of_sequences = |name: &str| name == "st_sequence" || name == "a";
        let without = |world: &World| {
            let mut state = state(&world.datastore);
            state.retain(|name, _| !is_of_sequences(name));
            state
        };
        prop_assert_eq!(without(tried), without(untouched));
        assert_same(&tried.replayed(), &tried.datastore);
    }
}
