//! A database with the records of its transactions, and what comes of them when they are read again.

use std::path::Path;
use std::sync::Arc;

use lightcone_engine::{CommitOutput, Datastore, Replayer};
use lightcone_log::{Epoch, Frame, Log, LogOffset, MemoryLog};
use lightcone_schema::ModuleDef;
use lightcone_snapshot::SnapshotStore;
use lightcone_storage::sim::SimStorage;

pub struct History {
    pub datastore: Datastore,
    records: Vec<Vec<u8>>,
}

impl History {
    pub fn new(definition: &ModuleDef) -> History {
        let mut datastore = Datastore::new();
        datastore.begin();
        datastore.bootstrap();
        datastore.create_tables(definition).expect("names are free");
        let mut history = History::of(datastore);
        history.commit();
        history
    }

    /// From here on.
    pub fn of(datastore: Datastore) -> History {
        History {
            datastore,
            records: Vec::new(),
        }
    }

    pub fn commit(&mut self) {
        let mut output = CommitOutput::default();
        if self.datastore.commit(&mut output).expect("the record fits") {
            self.records.push(output.records);
        }
    }

    /// What each transaction that changed something left, the first one first.
    pub fn records(&self) -> &[Vec<u8>] {
        &self.records
    }

    /// From the log alone.
    pub fn replayed(&self) -> Datastore {
        self.replayed_behind(Datastore::new(), 0)
    }

    pub fn replayed_behind(&self, datastore: Datastore, first: usize) -> Datastore {
        let mut replayer = Replayer::new(datastore, LogOffset::new(first as u64));
        for (offset, record) in self.records.iter().enumerate().skip(first) {
            let offset = LogOffset::new(offset as u64);
            replayer
                .apply(offset, 1, record)
                .expect("records of a database fit it");
        }
        replayer.finish().expect("the catalog is right")
    }

    /// A snapshot of the database as it is, read back, and how many transactions are in it.
    pub fn through_a_snapshot(&mut self) -> (Datastore, usize) {
        let storage = Arc::new(SimStorage::new(1));
        let directory = Path::new("data/snapshots");
        let offset = self.records.len();
        let mut snapshots = SnapshotStore::open_on(storage, directory).expect("a directory");
        let snapshot = self.datastore.snapshot();
        snapshot
            .write_to(&snapshots, LogOffset::new(offset as u64))
            .expect("it is written");
        let mut log = MemoryLog::new();
        for (offset, record) in self.records.iter().enumerate() {
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
}
