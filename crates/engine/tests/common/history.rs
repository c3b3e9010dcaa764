//! A database with the records of its transactions, and what comes of them when they are read again.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use lightcone_engine::record::{Group, GroupKind, Records};
use lightcone_engine::{
    Catalog, Change, CommitOutput, Datastore, RecoveryError, Replayer, SYSTEM_TABLE_ID_MAX,
};
use lightcone_log::{Epoch, Frame, Log, LogOffset, MemoryLog};
use lightcone_schema::{ModuleDef, TableSchema};
use lightcone_snapshot::SnapshotStore;
use lightcone_storage::sim::SimStorage;
use lightcone_types::bsatn::encode_value;
use lightcone_types::TableId;

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
        let (catalog, at) =
            Catalog::until(&mut snapshots, LogOffset::MAX).expect("the snapshot is good");
        assert_eq!(at, LogOffset::new(offset as u64));
        let schemas = self.datastore.schemas();
        let mut schemas: Vec<_> = schemas
            .filter(|schema| schema.id.0 > SYSTEM_TABLE_ID_MAX)
            .collect();
        let mut known: Vec<_> = catalog.schemas().collect();
        schemas.sort_by_key(|schema| schema.id);
        known.sort_by_key(|schema| schema.id);
        assert_eq!(known, schemas);
        let recovered = Datastore::recover(Path::new("data"), &mut snapshots, &log);
        (recovered.expect("the snapshot is good").0, offset)
    }

    /// The rows of the user's tables by name, by what is told of the records and nothing else.
    pub fn followed(&self) -> BTreeMap<String, Vec<Vec<u8>>> {
        let mut catalog = Catalog::default();
        let mut tables: BTreeMap<TableId, (Arc<TableSchema>, Vec<Row>)> = BTreeMap::new();
        for (offset, records) in self.records.iter().enumerate() {
            let offset = LogOffset::new(offset as u64);
            for record in Records::new(records) {
                let told = catalog.follow(offset, &record.expect("a record"), |_, change| {
                    tell(&mut tables, change);
                    Ok::<_, RecoveryError>(())
                });
                told.expect("records of a database fit its catalog");
            }
        }
        let by_name = tables.into_values().map(|(schema, rows)| {
            let mut rows: Vec<_> = rows.iter().map(|row| row.concat()).collect();
            rows.sort();
            (schema.name.clone(), rows)
        });
        by_name.collect()
    }
}

/// The bytes of each value.
type Row = Vec<Vec<u8>>;

fn tell(tables: &mut BTreeMap<TableId, (Arc<TableSchema>, Vec<Row>)>, change: Change<'_>) {
    match change {
        Change::Rows(schema, group) => {
            let (known, rows) = tables.get_mut(&schema.id).expect("it was told of");
            assert_eq!(*known, *schema);
            change_rows(rows, schema, group);
        }
        Change::Table {
            before,
            now,
            copied,
        } => {
            let had = before.and_then(|before| tables.remove(&before.id));
            let copied = copied.map(|(from, suffix)| {
                let mut rows = tables[&from.id].1.clone();
                rows.iter_mut().for_each(|row| row.push(suffix.to_vec()));
                rows
            });
            if let Some(now) = now {
                let rows = copied.or(had.map(|(_, rows)| rows)).unwrap_or_default();
                // The values behind each other, cut anew by the columns that there are now.
                let bytes: Vec<u8> = rows.iter().flatten().flatten().copied().collect();
                let all = Group {
                    table: now.id,
                    kind: GroupKind::Insert,
                    index: None,
                    row_count: rows.len() as u32,
                    rows: &bytes,
                };
                let rows = values(&now, &all);
                tables.insert(now.id, (now, rows));
            }
        }
    }
}

fn values(schema: &TableSchema, group: &Group<'_>) -> Vec<Row> {
    let bytes = |value| {
        let mut bytes = Vec::new();
        encode_value(&value, &mut bytes);
        bytes
    };
    let entries = group.entries(schema);
    let entries = entries.map(|values| values.expect("the rows fit the schema"));
    entries
        .map(|row| row.into_iter().map(bytes).collect())
        .collect()
}

fn change_rows(rows: &mut Vec<Row>, schema: &TableSchema, group: &Group<'_>) {
    let entries = values(schema, group);
    let columns = group.key_columns(schema).unwrap_or_default();
    let key = |row: &Row| -> Row {
        let columns = columns.iter();
        columns.map(|c| row[usize::from(c.0)].clone()).collect()
    };
    match group.kind {
        GroupKind::DeleteByKey => rows.retain(|row| !entries.contains(&key(row))),
        GroupKind::DeleteRow => rows.retain(|row| !entries.contains(row)),
        GroupKind::Put => {
            rows.retain(|row| entries.iter().all(|new| key(new) != key(row)));
            rows.extend(entries);
        }
        GroupKind::Insert => rows.extend(entries),
        _ => {}
    }
}
