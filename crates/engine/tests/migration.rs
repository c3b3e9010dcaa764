//! Migrations: random pairs of schemas with data against databases made from scratch, replay from the log alone and from any
//! snapshot, steps that fail, and each step by hand.

mod common;
#[path = "common/definitions.rs"]
mod definitions;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use common::{assert_same, config, rows, state};
use definitions::{definition, row_of, Algorithm, Kind, Table, Tables};
use lightcone_engine::{
    CommitOutput, Datastore, MigrationError, MigrationWork, Replayer, RowBuffer,
};
use lightcone_log::{Epoch, Frame, Log, LogOffset, MemoryLog};
use lightcone_schema::raw::{RawModuleDefV10Section as Section, RawViewDefV10};
use lightcone_schema::{plan, ModuleDef, Step, TableSchema};
use lightcone_snapshot::SnapshotStore;
use lightcone_storage::sim::SimStorage;
use lightcone_types::{AlgebraicType as T, ProductType, TableId, TypeRef};
use proptest::prelude::*;

const NO_LIMIT: u64 = u64::MAX;

/// A database with the records of all its transactions.
struct World {
    datastore: Datastore,
    tables: Tables,
    records: Vec<Vec<u8>>,
}

impl World {
    fn new(tables: &Tables) -> World {
        let mut datastore = Datastore::new();
        datastore.begin();
        datastore.bootstrap();
        datastore
            .create_tables(&definition(tables))
            .expect("names are free");
        let mut world = World {
            datastore,
            tables: tables.clone(),
            records: Vec::new(),
        };
        world.commit();
        world
    }

    fn commit(&mut self) {
        let mut output = CommitOutput::default();
        if self.datastore.commit(&mut output) {
            self.records.push(output.records);
        }
    }

    fn id(&self, table: &str) -> TableId {
        common::table_id(&self.datastore, table)
    }

    /// One transaction: rows come, and some go.
    fn write(&mut self, writes: &[(u8, u32, bool)]) {
        self.datastore.begin();
        let names: Vec<String> = self.tables.keys().cloned().collect();
        for (table, seed, is_put) in writes {
            let name = &names[usize::from(*table) % names.len()];
            let table = &self.tables[name];
            let id = self.id(name);
            let row = row_of(table, *seed);
            if *is_put || table.is_event {
                // A key that is taken.
                let _ = self.datastore.insert(id, &row, &mut Vec::new());
            } else {
                let mut list = 1_u32.to_le_bytes().to_vec();
                list.extend(&row);
                self.datastore.delete_all_by_eq(id, &list).expect("rows");
            }
        }
        self.commit();
    }

    /// Takes the steps to other tables, or so many of them, in an open transaction.
    fn take_steps(&mut self, new: &Tables, count: usize) -> Result<usize, MigrationError> {
        let (old, new) = (definition(&self.tables), definition(new));
        let plan = plan(&old, &new).unwrap_or_else(|refused| panic!("{refused}"));
        take(
            &mut self.datastore,
            &old,
            &new,
            &plan.steps[..count.min(plan.steps.len())],
        )
    }

    fn migrate(&mut self, new: &Tables) -> Result<(), MigrationError> {
        self.datastore.begin();
        match self.take_steps(new, usize::MAX) {
            Ok(_) => {
                self.commit();
                self.tables = new.clone();
                Ok(())
            }
            Err(error) => {
                self.datastore.rollback();
                Err(error)
            }
        }
    }

    /// From the log alone.
    fn replayed(&self) -> Datastore {
        self.replayed_behind(Datastore::new(), 0)
    }

    fn replayed_behind(&self, datastore: Datastore, first: usize) -> Datastore {
        let mut replayer = Replayer::new(datastore, LogOffset::new(first as u64));
        for (offset, record) in self.records.iter().enumerate().skip(first) {
            let offset = LogOffset::new(offset as u64);
            replayer
                .apply(offset, 1, record)
                .expect("records of a database fit it");
        }
        replayer.finish().expect("the catalog is right")
    }
}

fn take(
    datastore: &mut Datastore,
    old: &ModuleDef,
    new: &ModuleDef,
    steps: &[Step],
) -> Result<usize, MigrationError> {
    let mut may_go_on = || true;
    let mut work = MigrationWork::new(NO_LIMIT, &mut may_go_on);
    datastore.check_tables(old)?;
    for step in steps {
        datastore.precheck(step, new, &mut work)?;
    }
    for step in steps {
        datastore.migrate(step, new, &mut work)?;
    }
    Ok(steps.len())
}

/// A snapshot of a database, read back, and how many transactions are in it.
fn through_a_snapshot(world: &mut World) -> (Datastore, usize) {
    let storage = Arc::new(SimStorage::new(1));
    let directory = Path::new("data/snapshots");
    let offset = world.records.len();
    let mut snapshots = SnapshotStore::open_on(storage, directory).expect("a directory");
    let snapshot = world.datastore.snapshot();
    snapshot
        .write_to(&snapshots, LogOffset::new(offset as u64))
        .expect("it is written");
    let mut log = MemoryLog::new();
    for (offset, record) in world.records.iter().enumerate() {
        let frame = Frame {
            first_offset: LogOffset::new(offset as u64),
            count: 1,
            payload: &[record],
        };
        log.append(Epoch::new(1), frame).expect("it is kept");
    }
    let recovered = Datastore::recover(Path::new("data"), &mut snapshots, &log);
    (recovered.expect("the snapshot is good").0, offset)
}

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

// ---- Random schemas -----------------------------------------------------------------------------------------------------

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
            // A table that goes and comes again is another one to the test, and the same one to the plan.
            let (before, is_possible) = {
                let before = user_rows(&world);
                let possible = is_possible(&before, &old, &new);
                (before, possible)
            };
            if plan(&definition(&old), &definition(&new)).is_err() {
                continue;
            }
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
            snapshots.push(through_a_snapshot(&mut world));
        }
        let replayed = world.replayed();
        assert_same(&replayed, &world.datastore);
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

// ---- By hand ------------------------------------------------------------------------------------------------------------

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
    let mut again = World {
        datastore: world.replayed(),
        tables: world.tables.clone(),
        records: Vec::new(),
    };
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
    let (from_snapshot, offset) = through_a_snapshot(&mut world);
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
        // A row that nobody logs.
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
    let record = world.records.last().expect("a record");
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
