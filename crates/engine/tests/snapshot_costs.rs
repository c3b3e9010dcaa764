//! What a snapshot costs: the pages that have changed are read, hashed and written, and each is let go of on its way.

use std::path::Path;
use std::sync::Arc;

use crate::common::*;
use lightcone_engine::{CommitOutput, CopyRoom, Datastore};
use lightcone_log::{Epoch, Frame, Log, LogOffset, MemoryLog};
use lightcone_snapshot::{SnapshotError, SnapshotStats, SnapshotStore};
use lightcone_storage::sim::SimStorage;
use lightcone_types::{AlgebraicType as T, TableId};

const ROWS: u32 = 6_000;
/// A page holds a hundred rows or so.
const ROW_BYTES: usize = 4 + 16 * 32;

struct World {
    datastore: Datastore,
    snapshots: SnapshotStore,
    transactions: u64,
}

impl World {
    /// Many pages of rows.
    fn new(storage: &SimStorage) -> World {
        let names: Vec<String> = (0..17).map(|column| format!("c{column}")).collect();
        let types = std::iter::once(T::U32).chain(std::iter::repeat_n(T::U256, 16));
        let columns: Vec<(&str, T)> = names.iter().map(|name| &**name).zip(types).collect();
        let mut datastore = creating(&module(vec![table("wide", &columns)
            .hash(&[0], true)
            .btree(&[1, 0], false)]));
        let wide = table_id(&datastore, "wide");
        for id in 0..ROWS {
            let inserted = datastore.insert(wide, &wide_row(id, 0), &mut Vec::new());
            inserted.expect("the key is free");
        }
        commit(&mut datastore);
        World {
            datastore,
            snapshots: open(storage),
            transactions: 1,
        }
    }

    fn table(&self) -> TableId {
        table_id(&self.datastore, "wide")
    }

    fn replace(&mut self, id: u32, value: u8) {
        replace(&mut self.datastore, id, value);
        self.transactions += 1;
    }

    /// As a database does it, which keeps two.
    fn snapshot(&mut self) -> SnapshotStats {
        let offset = LogOffset::new(self.transactions);
        let stats = self.datastore.snapshot().write_to(&self.snapshots, offset);
        let stats = stats.expect("it is written");
        self.snapshots.prune(2).expect("old ones go");
        stats
    }

    /// What the newest snapshot has.
    fn recovered(&self, storage: &SimStorage) -> World {
        let mut snapshots = open(storage);
        let mut log = MemoryLog::new();
        let frame = Frame {
            first_offset: LogOffset::FIRST,
            count: self.transactions as u32,
            payload: &[],
        };
        log.append(Epoch::new(1), frame).expect("it counts");
        let recovered = Datastore::recover(Path::new("data"), &mut snapshots, &log);
        World {
            datastore: recovered.expect("the snapshot is good").0,
            snapshots,
            transactions: self.transactions,
        }
    }
}

fn open(storage: &SimStorage) -> SnapshotStore {
    let directory = Path::new("data/snapshots");
    SnapshotStore::open_on(Arc::new(storage.clone()), directory).expect("a directory")
}

fn wide_row(id: u32, value: u8) -> Vec<u8> {
    let mut row = vec![value; ROW_BYTES];
    row[..4].copy_from_slice(&id.to_le_bytes());
    row
}

fn commit(datastore: &mut Datastore) {
    let committed = datastore.commit(&mut CommitOutput::default());
    assert!(committed.expect("the record fits"));
}

fn replace(datastore: &mut Datastore, id: u32, value: u8) {
    let by_id = index_id(datastore, "wide_c0_idx_hash");
    let wide = table_id(datastore, "wide");
    datastore.begin();
    let updated = datastore.update(wide, by_id, &wide_row(id, value), &mut Vec::new());
    updated.expect("the row is there");
    commit(datastore);
}

#[test]
fn a_snapshot_costs_what_has_changed() {
    let storage = SimStorage::new(1);
    let mut world = World::new(&storage);
    let whole = world.snapshot();
    assert!(whole.hashed_bytes >= whole.object_bytes, "{whole:?}");
    world.replace(1, 1);
    // Two in a row share no file, so this one is written as a whole too.
    let second = world.snapshot();
    assert_eq!(second.new_objects, second.objects);
    for round in 2..6 {
        world.replace(1, round);
        world.replace(ROWS - 1, round);
        let stats = world.snapshot();
        assert_eq!(stats.objects, whole.objects);
        // Those of the row and of the last one.
        assert!(stats.hashed_bytes < whole.object_bytes / 20, "{stats:?}");
        assert!(stats.new_object_bytes <= stats.hashed_bytes, "{stats:?}");
        let recovered = world.recovered(&storage);
        assert_same(&world.datastore, &recovered.datastore);
    }
    // What was read from a snapshot is known as well, and old ones are gone by now.
    let mut world = world.recovered(&storage);
    world.replace(2, 1);
    let stats = world.snapshot();
    assert!(stats.hashed_bytes < whole.object_bytes / 20, "{stats:?}");
    world.replace(3, 1);
    world.snapshot();
    assert_same(&world.datastore, &world.recovered(&storage).datastore);
}

#[test]
fn pages_are_let_go_of_as_they_are_written() {
    let storage = SimStorage::new(1);
    let mut world = World::new(&storage);
    let frozen = world.datastore.snapshot();
    let (wide, snapshots) = (world.table(), open(&storage));
    let datastore = &mut world.datastore;
    let mut asked = 0;
    let mut copied = Vec::new();
    let page_count = datastore.table(wide).expect("a table").rows().page_count();
    let room = CopyRoom::new(u64::MAX);
    let written = frozen.write_while(&snapshots, LogOffset::new(1), &room, || {
        asked += 1;
        // All pages are asked for once before anything is written, and system tables come first.
        if asked == 2 * page_count {
            let mut released = |id| {
                let before = datastore.table(wide).expect("a table").released_bytes();
                replace(datastore, id, 9);
                datastore.table(wide).expect("a table").released_bytes() - before
            };
            copied = vec![released(0), released(ROWS - 1)];
        }
        true
    });
    let stats = written
        .expect("it is written")
        .expect("it was not given up");
    assert_eq!(stats.objects, stats.new_objects);
    assert_eq!(copied[0], 0, "the first page is written, and let go of");
    assert!(copied[1] > 0, "the last one is not written yet");
    // What was written is the state before.
    let copy = world.recovered(&storage).datastore;
    let first = rows(&copy, wide).into_iter().find(|row| row[..4] == [0; 4]);
    assert_eq!(first.expect("a row"), wide_row(0, 0));
}

#[test]
fn pages_that_were_copied_are_written_first_and_have_a_bound() {
    let storage = SimStorage::new(1);
    let mut world = World::new(&storage);
    let (wide, snapshots) = (world.table(), open(&storage));
    let before = rows(&world.datastore, wide);
    let frozen = world.datastore.snapshot();
    let pages: usize = frozen.tables().iter().map(|t| t.rows.page_count()).sum();
    let datastore = &mut world.datastore;
    let page_bytes = datastore.table(wide).expect("a table").rows().pages();
    let page_bytes = page_bytes.last().expect("a page").len() as u64;
    // Two may be copied, and four are.
    let room = CopyRoom::new(2 * page_bytes);
    room.begin(datastore);
    let (mut asked, mut has_room_again) = (0, None);
    let written = frozen.write_while(&snapshots, LogOffset::new(1), &room, || {
        asked += 1;
        if asked == pages + 1 {
            for nth in 1..=4 {
                assert_eq!(room.has_room(datastore), nth < 4);
                replace(datastore, ROWS - 100 * nth, 9);
            }
        }
        if asked > pages && room.has_room(datastore) {
            has_room_again.get_or_insert(asked - pages);
        }
        true
    });
    assert!(written.expect("it is written").is_some());
    // Behind the one that was on its way then, and two that were copied.
    assert_eq!(has_room_again, Some(4));
    let copy = world.recovered(&storage).datastore;
    assert_eq!(rows(&copy, wide), before);
}

/// Pages are read on all processors, and what is said of a damaged file does not depend on which is first.
#[test]
fn the_first_damaged_page_is_named() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut world = World::new(&SimStorage::new(1));
    let mut snapshots = SnapshotStore::open(directory.path()).expect("a directory");
    let wide = world.table();
    let table = world.datastore.table(wide).expect("a table");
    assert!(table.rows().page_count() > 64, "they are in two parts");
    let written = world.datastore.snapshot();
    let written = written.write_to(&snapshots, LogOffset::new(1));
    written.expect("it is written");
    let pack = directory.path().join(format!("{:020}.pack", 0));
    let mut bytes = std::fs::read(&pack).expect("a pack");
    let (first, last) = (bytes.len() / 2, bytes.len() - 1_000);
    for place in [first, last] {
        bytes[place] ^= 4;
    }
    std::fs::write(&pack, bytes).expect("it is written");
    let loaded = Datastore::of_snapshot(&mut snapshots, u64::MAX);
    assert!(loaded.is_err());
    let SnapshotError::Damaged {
        file, byte_offset, ..
    } = &snapshots.problems()[0].error
    else {
        panic!("it is damaged: {:?}", snapshots.problems());
    };
    assert_eq!(*file, pack);
    let byte_offset = byte_offset.get() as usize;
    assert!(byte_offset <= first && first - byte_offset < 65_536);
}

/// A page that is written to after a snapshot has told its hash is another page.
#[test]
fn a_changed_page_is_never_taken_for_what_it_was() {
    let storage = SimStorage::new(1);
    let mut world = World::new(&storage);
    for round in 1..8 {
        // Between two snapshots, during the next, and while nothing is frozen.
        world.replace(u32::from(round), round);
        world.snapshot();
        let recovered = world.recovered(&storage);
        assert_same(&world.datastore, &recovered.datastore);
        if round % 3 == 0 {
            world = recovered;
        }
    }
}
