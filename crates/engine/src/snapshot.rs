//! Frozen copies of the whole database: for reads beside the writer, and for snapshots on disk.

use std::cmp::Reverse;
use std::sync::Arc;

use lightcone_log::LogOffset;
use lightcone_snapshot::{ObjectHash, Snapshot, SnapshotError, SnapshotStats, SnapshotStore};
use lightcone_table::{FrozenPage, RowStore, TablePart, TableSnapshot, TableView};
use lightcone_types::bsatn::{Encode, Reader};
use lightcone_types::TableId;

use crate::copy_room::CopyRoom;
use crate::datastore::Datastore;
use crate::error::RecoveryError;
use crate::processors::{do_all, Processors, Work};
use crate::system::SYSTEM_TABLE_ID_MAX;
use crate::table_state::TableState;

/// Version of the engine's part of a snapshot manifest.
const MANIFEST_VERSION: u32 = 1;
/// So many pages in a row are read, checked and put into memory by one thread, if they have not more bytes than
/// [`PART_BYTES`]: some have 16 MiB, and have to be a part alone.
const PART_PAGES: usize = 64;
const PART_BYTES: u64 = 4 << 20;
/// While a snapshot is written, the pages that it alone holds are counted about so often.
const COUNTS: usize = 256;

/// The committed state of all tables at one offset. Cheap to take: pages are shared until the writer touches them.
pub struct DatastoreSnapshot {
    pub(crate) tables: Vec<TableSnapshot>,
}

/// Stands for the rows of a table, in any order and at any place. It finds faults of machines and programs; who may choose rows
/// can find others with the same hash.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct TableHash(u128);

impl TableHash {
    /// The sum of the hashes of the rows. A writer that kept it up to date would pay for it in each transaction.
    fn of(rows: &RowStore) -> TableHash {
        let mut sum = 0_u128;
        rows.for_each(|_, row| {
            let mut first = [0; 16];
            first.copy_from_slice(&blake3::hash(row).as_bytes()[..16]);
            sum = sum.wrapping_add(u128::from_le_bytes(first));
        });
        TableHash(sum)
    }

    pub const fn to_le_bytes(self) -> [u8; 16] {
        self.0.to_le_bytes()
    }
}

/// A table and the hashes of its pages.
pub(crate) type TablePages = (TableId, Vec<ObjectHash>);

/// A page on its way to the disk.
struct Page {
    frozen: FrozenPage,
    /// Where its hash belongs.
    table: usize,
    number: usize,
}

/// The pages that are still to be written.
struct Unwritten {
    /// Those that may be the writer's too, the next one last.
    shared: Vec<Page>,
    /// Those that take memory of their own, since the writer has copied them.
    copied: Vec<Page>,
    /// Pages until they are counted again.
    uncounted: usize,
    count_every: usize,
}

impl Unwritten {
    fn new(mut pages: Vec<Page>) -> Unwritten {
        pages.reverse();
        Unwritten {
            count_every: pages.len() / COUNTS + 1,
            shared: pages,
            copied: Vec::new(),
            uncounted: 0,
        }
    }

    /// The next page, and how much memory is free when it is gone: first those that the writer waits for.
    fn next(&mut self, room: &CopyRoom) -> Option<(Page, u64)> {
        if self.uncounted == 0 {
            self.count(room);
        }
        self.uncounted -= 1;
        match self.copied.pop() {
            Some(page) => {
                let bytes = page.frozen.bytes().len() as u64;
                Some((page, bytes))
            }
            None => self.shared.pop().map(|page| (page, 0)),
        }
    }

    fn count(&mut self, room: &CopyRoom) {
        self.uncounted = self.count_every;
        let shared = std::mem::take(&mut self.shared).into_iter();
        let (copied, shared): (Vec<_>, Vec<_>) = shared.partition(|page| page.frozen.is_alone());
        self.shared = shared;
        self.copied.extend(copied);
        let bytes = self.copied.iter().map(|page| page.frozen.bytes().len());
        room.set_held(bytes.sum::<usize>() as u64);
    }
}

impl Datastore {
    /// Freezes the committed state.
    ///
    /// # Panics
    /// Inside a transaction, whose changes are not committed.
    pub fn snapshot(&mut self) -> DatastoreSnapshot {
        assert!(
            !self.transaction.open,
            "a snapshot is taken between transactions"
        );
        DatastoreSnapshot {
            tables: self
                .tables
                .iter_mut()
                .flatten()
                .filter(|state| !state.is_view())
                .map(|state| state.table.snapshot())
                .collect(),
        }
    }

    /// Freezes the committed rows of one table, with its indexes.
    ///
    /// # Panics
    /// Inside a transaction.
    pub fn freeze_table(&mut self, table: TableId) -> Option<Arc<TableView>> {
        assert!(
            !self.transaction.open,
            "a view is taken between transactions"
        );
        let slot = self.slot(table).ok()?;
        Some(self.at_mut(slot).table.freeze())
    }

    /// `may_go_on` is asked all the time, on this thread.
    pub(crate) fn load_snapshot(
        &mut self,
        snapshot: &Snapshot,
        processors: Processors,
        may_go_on: &dyn Fn() -> bool,
    ) -> Result<(), RecoveryError> {
        let user = self.load_catalog(snapshot, |_| true)?;
        self.load_tables(snapshot, &user, processors, may_go_on)
    }

    /// Loads these system tables, and makes the others as they say, without rows. Returns what pages those have.
    pub(crate) fn load_catalog(
        &mut self,
        snapshot: &Snapshot,
        is_wanted: impl Fn(TableId) -> bool,
    ) -> Result<Vec<TablePages>, RecoveryError> {
        let wrong = |detail: String| RecoveryError::Manifest {
            offset: snapshot.offset,
            detail,
        };
        let tables = decode_manifest(&snapshot.manifest).map_err(wrong)?;
        let (mut catalog, user): (Vec<_>, Vec<_>) = tables
            .into_iter()
            .partition(|(id, _)| id.0 <= SYSTEM_TABLE_ID_MAX);
        catalog.retain(|(id, _)| is_wanted(*id));
        self.load_tables(snapshot, &catalog, Processors::One, &|| true)?;
        self.sync_with_catalog()?;
        Ok(user)
    }

    fn load_tables(
        &mut self,
        snapshot: &Snapshot,
        tables: &[TablePages],
        processors: Processors,
        may_go_on: &dyn Fn() -> bool,
    ) -> Result<(), RecoveryError> {
        let offset = snapshot.offset;
        let wrong = move |detail: String| RecoveryError::Manifest { offset, detail };
        let page_count = tables.iter().map(|(_, pages)| pages.len()).sum();
        let (mut slots, mut loads): (Vec<_>, Vec<Work<'_, TablePart>>) = (Vec::new(), Vec::new());
        for (id, pages) in tables {
            let slot = self
                .slot(*id)
                .map_err(|_| wrong(format!("table {} is not in the catalog", id.0)))?;
            let mut first = 0;
            while first < pages.len() {
                let hashes = &pages[first..][..part_pages(snapshot, &pages[first..])];
                let part = self.at_mut(slot).table.part(first);
                slots.push(slot);
                loads.push(Box::new(move || load_part(snapshot, part, hashes)));
                first += hashes.len();
            }
        }
        let parts = do_all(loads, page_count, processors, may_go_on)?;
        for (slot, part) in slots.into_iter().zip(parts) {
            let appended = self.at_mut(slot).table.append(part);
            appended.map_err(|error| wrong(error.to_string()))?;
        }
        let is_loaded =
            |state: &&mut TableState| tables.iter().any(|(id, _)| *id == state.table.schema.id);
        let states = self.tables.iter_mut().flatten().filter(is_loaded);
        let mut states: Vec<&mut TableState> = states.collect();
        // The longest work first.
        states.sort_by_key(|state| Reverse(state.table.rows().row_count()));
        let builds = states
            .into_iter()
            .flat_map(|state| state.table.index_builds())
            .map(|build| -> Work<'_, ()> {
                Box::new(move || build().map_err(|error| wrong(error.to_string())))
            });
        do_all(builds.collect(), page_count, processors, &|| true).map(drop)
    }
}

/// How many of these pages are in the next part; one at least.
fn part_pages(snapshot: &Snapshot, hashes: &[ObjectHash]) -> usize {
    let mut bytes = 0;
    // Who reads a page that is not there says so.
    let fits = |hash: &&ObjectHash| {
        bytes += snapshot.bytes_of(hash).map_or(0, u64::from);
        bytes <= PART_BYTES
    };
    let pages = hashes.iter().take(PART_PAGES);
    pages.take_while(fits).count().max(1)
}

/// Reads pages of a table, and checks them.
fn load_part(
    snapshot: &Snapshot,
    mut part: TablePart,
    hashes: &[ObjectHash],
) -> Result<TablePart, RecoveryError> {
    let mut image = Vec::new();
    for hash in hashes {
        snapshot.read_into(hash, &mut image)?;
        let loaded = part.load(&image, Some(hash.0));
        loaded.map_err(|error| RecoveryError::Manifest {
            offset: snapshot.offset,
            detail: error.to_string(),
        })?;
    }
    Ok(part)
}

impl Datastore {
    /// Forgets all that is only there for live reads: rows of views, held indexes, and which tables' changes are wanted.
    pub fn forget_live(&mut self) {
        self.unwatch_all();
        for state in self.tables.iter_mut().flatten() {
            state.table.forget_held();
            if state.is_view() {
                state.table.clear();
            }
        }
        self.hold_catalog_indexes();
    }
}

impl DatastoreSnapshot {
    /// As [`Datastore::page_bytes`].
    pub fn page_bytes(&self) -> u64 {
        let tables = self.tables.iter();
        tables.map(|table| table.rows.heap_bytes() as u64).sum()
    }

    pub fn tables(&self) -> &[TableSnapshot] {
        &self.tables
    }

    /// The hashes of all tables, sorted by table: databases with equal ones have equal rows.
    pub fn hashes(&self) -> Vec<(TableId, TableHash)> {
        let hashes = self.tables.iter();
        let hashes = hashes.map(|table| (table.schema.id, TableHash::of(&table.rows)));
        let mut hashes: Vec<(TableId, TableHash)> = hashes.collect();
        hashes.sort_by_key(|(id, _)| *id);
        hashes
    }

    /// Writes the state to disk as the snapshot of all transactions before `next_offset`.
    ///
    /// # Errors
    /// Writing failed; the store is as before.
    pub fn write_to(
        self,
        store: &SnapshotStore,
        next_offset: LogOffset,
    ) -> Result<SnapshotStats, SnapshotError> {
        let room = CopyRoom::new(u64::MAX);
        let written = self.write_while(store, next_offset, &room, || true)?;
        Ok(written.expect("it was not given up"))
    }

    /// [`write_to`](Self::write_to), given up when `may_go_on` says no: asked before every page that is read or written. None if it
    /// was; nothing is left behind then.
    ///
    /// A page that has not changed since a snapshot has told its hash is named, and neither read nor hashed. Each page is let go of
    /// as soon as it is on its way to the disk: the writer copies those that are held before it changes them. Those that it has copied
    /// are written first, and `room` bounds them.
    ///
    /// # Errors
    /// As [`write_to`](Self::write_to).
    pub fn write_while(
        self,
        store: &SnapshotStore,
        next_offset: LogOffset,
        room: &CopyRoom,
        mut may_go_on: impl FnMut() -> bool,
    ) -> Result<Option<SnapshotStats>, SnapshotError> {
        let mut writer = store.begin(next_offset)?;
        // First those that need not be written, as they can go at once.
        let mut tables: Vec<TablePages> = Vec::with_capacity(self.tables.len());
        let mut unwritten = Vec::new();
        for table in self.tables {
            let mut hashes = Vec::with_capacity(table.rows.page_count());
            for (number, frozen) in table.rows.into_pages().enumerate() {
                if !may_go_on() {
                    return Ok(None);
                }
                let known = frozen.hash().map(ObjectHash);
                hashes.push(known.unwrap_or(ObjectHash([0; 32])));
                if !known.is_some_and(|hash| writer.reuse(&hash)) {
                    unwritten.push(Page {
                        frozen,
                        table: tables.len(),
                        number,
                    });
                } else if frozen.is_alone() {
                    let bytes = frozen.bytes().len() as u64;
                    drop(frozen);
                    room.let_go(bytes);
                }
            }
            tables.push((table.schema.id, hashes));
        }
        let mut unwritten = Unwritten::new(unwritten);
        while let Some((page, freed_bytes)) = unwritten.next(room) {
            if !may_go_on() {
                return Ok(None);
            }
            let hash = writer.put(page.frozen.bytes())?;
            page.frozen.set_hash(hash.0);
            tables[page.table].1[page.number] = hash;
            drop(page);
            room.let_go(freed_bytes);
        }
        room.end();
        let mut manifest = MANIFEST_VERSION.to_vec();
        (tables.len() as u32).encode(&mut manifest);
        for (id, hashes) in tables {
            id.0.encode(&mut manifest);
            (hashes.len() as u32).encode(&mut manifest);
            for hash in hashes {
                manifest.extend_from_slice(&hash.0);
            }
        }
        writer.finish(&manifest).map(Some)
    }
}

/// Bytes of all pages of a snapshot, each as often as it is named.
pub(crate) fn snapshot_bytes(snapshot: &Snapshot) -> Result<u64, RecoveryError> {
    let tables = decode_manifest(&snapshot.manifest);
    let tables = tables.map_err(|detail| RecoveryError::Manifest {
        offset: snapshot.offset,
        detail,
    })?;
    let pages = tables.iter().flat_map(|(_, pages)| pages);
    let mut bytes = pages.map(|hash| snapshot.bytes_of(hash).map(u64::from));
    Ok(bytes.try_fold(0, |sum, bytes| bytes.map(|bytes| sum + bytes))?)
}

/// Tables and the hashes of their pages.
pub(crate) fn decode_manifest(bytes: &[u8]) -> Result<Vec<TablePages>, String> {
    let text = |error: lightcone_types::DecodeError| error.to_string();
    let reader = &mut Reader::new(bytes);
    let version = reader.read_u32().map_err(text)?;
    if version != MANIFEST_VERSION {
        return Err(format!("version {version} of the manifest is not known (this program writes {MANIFEST_VERSION})"));
    }
    let mut tables = Vec::new();
    for _ in 0..reader.read_count(8).map_err(text)? {
        let id = TableId(reader.read_u32().map_err(text)?);
        let count = reader.read_count(32).map_err(text)?;
        let mut pages = Vec::with_capacity(count as usize);
        for _ in 0..count {
            let hash = reader.read_slice(32).map_err(text)?;
            pages.push(ObjectHash(hash.try_into().expect("32 bytes")));
        }
        tables.push((id, pages));
    }
    match reader.remaining().is_empty() {
        true => Ok(tables),
        false => Err(format!(
            "{} bytes follow the last table",
            reader.remaining().len()
        )),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use lightcone_storage::sim::SimStorage;

    use super::*;

    #[test]
    fn a_part_has_few_pages_and_few_bytes() {
        let storage = Arc::new(SimStorage::new(1));
        let mut store = SnapshotStore::open_on(storage, Path::new("data")).expect("a directory");
        let mut writer = store.begin(LogOffset::new(1)).expect("a file");
        let mut put = |byte, len| writer.put(&vec![byte; len]).expect("it is written");
        let (small, large, largest) = (put(1, 64 << 10), put(2, 2 << 20), put(3, 5 << 20));
        writer.finish(&[]).expect("it is written");
        let snapshot = store.latest().expect("a directory").expect("a snapshot");
        let pages = |hashes: &[ObjectHash]| part_pages(&snapshot, hashes);
        assert_eq!(pages(&[small; 100]), 64);
        assert_eq!(pages(&[large; 100]), 2);
        assert_eq!(pages(&[large, small, large, small]), 2);
        assert_eq!(pages(&[largest; 2]), 1);
        assert_eq!(pages(&[small, largest]), 1);
        assert_eq!(pages(&[ObjectHash([0; 32])]), 1, "it is not there");
    }
}
