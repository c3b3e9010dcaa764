//! Writes the seeds of our own formats: `cargo run --example seeds` in `fuzz/`, after a change of a format.
//! The other seeds are the byte vectors of the protocols and do not change.

use std::path::Path;
use std::sync::Arc;

use lightcone_backup::{
    FileEntry, Item, LogEntry, Manifest, ObjectHash, Pack, PackEntry, Place, SnapshotEntry,
    SnapshotHead,
};
use lightcone_engine::{CommitOutput, Datastore, MigrationWork};
use lightcone_log::{Epoch, Frame, LocalLog, Log, LogOffset, LogOptions};
use lightcone_schema::{ModuleDef, Step};
use lightcone_snapshot::SnapshotStore;
use lightcone_storage::sim::SimStorage;
use lightcone_types::TableId;

fn write(target: &str, name: &str, bytes: &[u8]) {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("seeds")
        .join(target);
    std::fs::create_dir_all(&directory).expect("the seeds can be written");
    std::fs::write(directory.join(name), bytes).expect("the seeds can be written");
}

/// The records of a database that gets the catalog, the tables of a module, a row that is inserted and deleted, and tables that are
/// as those of a module without any.
fn records() -> (Datastore, Vec<Vec<u8>>) {
    // The smallest module of chapter 02: `person(id: u64 primary key with a sequence, name: string)`.
    let module =
        std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("seeds/module_def/minimal"))
            .expect("the seeds of the protocols are there");
    let def = ModuleDef::from_bsatn(&module).expect("a vector is valid");
    let mut datastore = Datastore::new();
    let mut records = Vec::new();
    let mut transaction = |datastore: &mut Datastore, change: &dyn Fn(&mut Datastore)| {
        let mut output = CommitOutput::default();
        datastore.begin();
        change(datastore);
        datastore.commit(&mut output).expect("the record fits");
        records.push(output.records);
    };
    transaction(&mut datastore, &|datastore| datastore.bootstrap());
    transaction(&mut datastore, &|datastore| {
        datastore.create_tables(&def).expect("new tables")
    });
    let table: TableId = datastore
        .table_id_from_name("person")
        .expect("the module's table");
    // A row is its columns one after the other; 0 asks the sequence for a number.
    let row = |id: u64| [&id.to_le_bytes()[..], &5u32.to_le_bytes(), b"Alice"].concat();
    let narrow = |id: u32| [&id.to_le_bytes()[..], &5u32.to_le_bytes(), b"Alice"].concat();
    transaction(&mut datastore, &|datastore| {
        let mut generated = Vec::new();
        if datastore.insert(table, &narrow(0), &mut generated).is_err() {
            datastore
                .insert(table, &row(0), &mut generated)
                .expect("a row of the table");
        }
    });
    transaction(&mut datastore, &|datastore| {
        datastore.clear(table).expect("the table is there");
    });
    transaction(&mut datastore, &|datastore| {
        let mut may_go_on = || true;
        let mut work = MigrationWork::new(u64::MAX, &mut may_go_on);
        let step = Step::RemoveTable {
            table: "person".to_owned(),
        };
        let removed = datastore.migrate(&step, &def, &mut work);
        removed.expect("the table is empty");
    });
    (datastore, records)
}

/// Items of a backup with these records, and its manifest.
fn write_backup(records: &[Vec<u8>]) {
    let (mut place, mut items) = (Place::default(), Vec::new());
    for record in records {
        let (first_offset, epoch) = (place.offset, Epoch::FIRST);
        let hash = place.hash.after(epoch, first_offset, 1, &[record]);
        let frame = lightcone_backup::Frame {
            first_offset,
            count: 1,
            epoch,
            hash,
            payload: record.clone(),
        };
        place = place.behind(&frame).expect("it follows");
        items.push(Item::Frame(frame));
    }
    let object = ObjectHash::of(b"object");
    items.push(Item::Snapshot(SnapshotHead {
        offset: place.offset,
        objects: vec![object],
        engine: b"engine".to_vec(),
    }));
    items.push(Item::Object(b"object".to_vec()));
    items.push(Item::Pack(Pack {
        hash: object,
        entries: vec![PackEntry {
            object,
            position: 0,
            bytes: 6,
        }],
    }));
    items.push(Item::End(place));
    items.push(Item::Failed("no more".to_owned()));
    for (number, item) in items.iter().enumerate() {
        write("backup_items", &format!("item{number}"), &item.to_vec());
    }
    let file = FileEntry::of(b"object");
    let manifest = Manifest {
        format: lightcone_backup::FORMAT,
        database: "00".repeat(32),
        time: 2,
        end: place,
        epoch: Some(1),
        begins_because: Some("it is the first one".to_owned()),
        snapshot: Some(SnapshotEntry {
            offset: 1,
            file: file.clone(),
            object_bytes: 6,
        }),
        log: vec![LogEntry {
            from: Place::default(),
            end: place,
            newest: Some(1),
            file,
        }],
        added_bytes: 12,
        checksum: String::new(),
    };
    let text = String::from_utf8(manifest.encode()).expect("JSON");
    write("backup_manifest", "one", text.replace('\n', "").as_bytes());
}

fn main() {
    let (mut datastore, records) = records();
    for (number, record) in records.iter().enumerate() {
        // `record0` to `record3` are of the first version.
        write("log_payload", &format!("record{number}-version3"), record);
    }

    write_backup(&records);

    let storage = Arc::new(SimStorage::new(1));
    let directory = Path::new("log");
    let options = LogOptions {
        segment_bytes: 1 << 16,
        preallocate: false,
        ..LogOptions::default()
    };
    let (mut log, _) =
        LocalLog::open_on(storage.clone(), directory, options).expect("an empty directory");
    // The catalog's own rows are long and of no interest here.
    for (offset, record) in records[1..].iter().enumerate() {
        let frame = Frame {
            first_offset: LogOffset::new(offset as u64),
            count: 1,
            payload: &[record],
        };
        log.append(log.tail().epoch, frame)
            .expect("nothing fails here");
    }
    log.sync().expect("nothing fails here");
    for path in storage.files() {
        if let Some(bytes) = storage.file(&path) {
            if path.extension().is_some_and(|e| e != "lock") && bytes.len() > 64 {
                let end = bytes
                    .iter()
                    .rposition(|byte| *byte != 0)
                    .map_or(0, |last| last + 1);
                write("log_segment", "transactions-format2", &bytes[..end]);
            }
        }
    }

    let storage = Arc::new(SimStorage::new(2));
    let store = SnapshotStore::open_on(storage.clone(), Path::new("snapshots"))
        .expect("an empty directory");
    datastore
        .snapshot()
        .write_to(&store, LogOffset::new(4))
        .expect("nothing fails here");
    for path in storage.files() {
        if path.extension().is_some_and(|e| e == "manifest") {
            write(
                "snapshot_manifest",
                "database",
                &storage.file(&path).expect("a listed file"),
            );
        }
    }
    let mut store = store;
    let snapshot = store
        .latest()
        .expect("nothing fails here")
        .expect("the snapshot just written");
    write("engine_manifest", "database", &snapshot.manifest);
}
