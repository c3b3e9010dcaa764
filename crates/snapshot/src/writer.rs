//! Writing a snapshot.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use lightcone_storage::{
    read_exact_at, Directory, File, FilePosition, LogOffset, NamedFile, OpenMode,
};

use crate::error::SnapshotError;
use crate::format::{
    manifest_name, pack_header, pack_name, Manifest, ObjectEntry, ObjectHash, PackEntry,
    OBJECT_BYTES_MAX, PACK_HEADER_END,
};
use crate::shared::{Busy, Reusable, Shared, Stored};

/// Small objects are gathered up to this size before they are written.
const BUFFER_BYTES: usize = 1 << 20;
/// A long pack is synced in pieces, so that the log's syncs never wait for all of it.
const SYNC_BYTES: u64 = 8 << 20;
/// Stored objects are read back at most this fast, so that the log and others get at the disk as well.
const READ_BACK_BYTES_PER_SECOND: u64 = 256 << 20;
/// The rate is checked after so many bytes.
const READ_BACK_BURST_BYTES: u64 = 4 << 20;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SnapshotStats {
    pub objects: u64,
    pub object_bytes: u64,
    pub new_objects: u64,
    pub new_object_bytes: u64,
    /// Stored objects that could not be read back intact, and were written again.
    pub mended_objects: u64,
    pub hashed_bytes: u64,
    pub read_back_bytes: u64,
}

/// A snapshot that is written. It counts from [`SnapshotWriter::finish`] on; dropped before, it leaves nothing.
pub struct SnapshotWriter {
    shared: Arc<Shared>,
    offset: LogOffset,
    /// Need not be written again if they can be read back.
    reusable: Reusable,
    read_back: ReadBack,
    /// Index into `objects` of every object of this snapshot.
    index: HashMap<ObjectHash, u32>,
    /// `pack` is a pack number here until `finish`.
    objects: Vec<(ObjectHash, Stored)>,
    pack_number: u64,
    pack: Option<PackFile>,
    stats: SnapshotStats,
    /// The manifest has been renamed.
    named: bool,
    finished: bool,
    _busy: Busy,
}

struct ReadBack {
    buffer: Vec<u8>,
    bytes: u64,
    started: Instant,
    looked_at_bytes: u64,
}

impl ReadBack {
    fn read(&mut self, file: &dyn File, stored: &Stored) -> std::io::Result<&[u8]> {
        self.bytes += u64::from(stored.bytes);
        if self.bytes - self.looked_at_bytes >= READ_BACK_BURST_BYTES {
            self.looked_at_bytes = self.bytes;
            let due = self.bytes as f64 / READ_BACK_BYTES_PER_SECOND as f64;
            let early = Duration::from_secs_f64(due).saturating_sub(self.started.elapsed());
            if !early.is_zero() {
                std::thread::sleep(early);
            }
        }
        self.buffer.resize(stored.bytes as usize, 0);
        read_exact_at(file, &mut self.buffer, stored.position)?;
        Ok(&self.buffer)
    }
}

struct PackFile {
    file: NamedFile,
    buffer: Vec<u8>,
    /// The end of the file, without the buffer.
    end: FilePosition,
    /// All before it is durable.
    synced_end: FilePosition,
}

impl PackFile {
    fn flush(&mut self, object: &[u8]) -> Result<(), SnapshotError> {
        self.file.write(&[&self.buffer, object], self.end)?;
        self.end += (self.buffer.len() + object.len()) as u64;
        self.buffer.clear();
        if self.end - self.synced_end >= SYNC_BYTES {
            self.sync()?;
        }
        Ok(())
    }

    fn sync(&mut self) -> Result<(), SnapshotError> {
        self.synced_end = self.end;
        Ok(self.file.sync()?)
    }
}

impl SnapshotWriter {
    pub(crate) fn new(
        shared: Arc<Shared>,
        busy: Busy,
        offset: LogOffset,
        pack_number: u64,
        reusable: Reusable,
    ) -> SnapshotWriter {
        SnapshotWriter {
            shared,
            offset,
            reusable,
            read_back: ReadBack {
                buffer: Vec::new(),
                bytes: 0,
                started: Instant::now(),
                looked_at_bytes: 0,
            },
            index: HashMap::new(),
            objects: Vec::new(),
            pack_number,
            pack: None,
            stats: SnapshotStats::default(),
            named: false,
            finished: false,
            _busy: busy,
        }
    }

    /// Adds an object; it is written unless it is stored intact.
    pub fn put(&mut self, object: &[u8]) -> Result<ObjectHash, SnapshotError> {
        if object.len() > OBJECT_BYTES_MAX {
            let reason = format!(
                "an object has at most {OBJECT_BYTES_MAX} bytes, and this one has {}",
                object.len()
            );
            return Err(SnapshotError::Misuse { reason });
        }
        let hash = ObjectHash::of(object);
        self.stats.hashed_bytes += object.len() as u64;
        if let Some(stored) = self.reusable.objects.get_mut(&hash) {
            // The bytes are there to be compared with.
            stored.is_checked = true;
        }
        if self.take_over(&hash, |stored| stored == object) {
            return Ok(hash);
        }
        let pack = self.open_pack()?;
        let position = pack.end + pack.buffer.len() as u64;
        if pack.buffer.len() + object.len() > BUFFER_BYTES {
            pack.flush(object)?;
        } else {
            pack.buffer.extend_from_slice(object);
        }
        self.stats.new_objects += 1;
        self.stats.new_object_bytes += object.len() as u64;
        let stored = Stored {
            pack: self.pack_number,
            bytes: object.len() as u32,
            position,
            is_checked: false,
        };
        self.add(hash, stored);
        Ok(hash)
    }

    /// Adds an object by its name if it is stored; otherwise false, and the caller has to [put](Self::put) it. For callers who know
    /// the hash of an unchanged page. Some are read back, others next time ([`READ_BACK_BYTES_MAX`](crate::READ_BACK_BYTES_MAX)).
    pub fn reuse(&mut self, hash: &ObjectHash) -> bool {
        self.take_over(hash, |stored| ObjectHash::of(stored) == *hash)
    }

    /// Adds an object if this snapshot has it, or if it is stored and, where it is to be checked, `is_intact` when it is read back.
    fn take_over(&mut self, hash: &ObjectHash, is_intact: impl FnOnce(&[u8]) -> bool) -> bool {
        if self.index.contains_key(hash) {
            return true;
        }
        let Some(stored) = self.reusable.objects.get(hash).copied() else {
            return false;
        };
        let Some(pack) = self.reusable.packs.get(&stored.pack) else {
            return false;
        };
        if stored.is_checked {
            self.stats.read_back_bytes += u64::from(stored.bytes);
            let read = self.read_back.read(&**pack, &stored);
            if !read.is_ok_and(is_intact) {
                self.stats.mended_objects += 1;
                self.reusable.objects.remove(hash);
                return false;
            }
        }
        self.add(*hash, stored);
        true
    }

    fn add(&mut self, hash: ObjectHash, stored: Stored) {
        self.stats.objects += 1;
        self.stats.object_bytes += u64::from(stored.bytes);
        self.index.insert(hash, self.objects.len() as u32);
        self.objects.push((hash, stored));
    }

    fn open_pack(&mut self) -> Result<&mut PackFile, SnapshotError> {
        if self.pack.is_none() {
            let name = format!("{}.tmp", pack_name(self.pack_number));
            self.pack = Some(PackFile {
                file: create(&self.shared.directory, &name)?,
                buffer: pack_header(self.pack_number).to_vec(),
                end: FilePosition::START,
                synced_end: FilePosition::START,
            });
        }
        Ok(self.pack.as_mut().expect("just made"))
    }

    /// Publishes the snapshot, durably, with the engine's bytes.
    pub fn finish(mut self, manifest: &[u8]) -> Result<SnapshotStats, SnapshotError> {
        let directory = self.shared.directory.clone();
        let mut pack_end = PACK_HEADER_END;
        if let Some(pack) = &mut self.pack {
            pack.flush(&[])?;
            pack.sync()?;
            pack_end = pack.end;
            let path = directory.join(pack_name(self.pack_number));
            directory.name(&pack.file.path, &path)?;
            // The pack must be there before the manifest that needs it.
            directory.sync()?;
        }
        let bytes = self.contents(pack_end, manifest).encode();
        let name = manifest_name(self.offset);
        let file = create(&directory, &format!("{name}.tmp"))?;
        file.write(&[&bytes], FilePosition::START)?;
        file.sync()?;
        directory.name(&file.path, &directory.join(name))?;
        self.named = true;
        directory.sync()?;
        self.finished = true;
        Ok(self.stats)
    }

    /// Turns pack numbers into indexes.
    fn contents(&self, pack_end: FilePosition, engine: &[u8]) -> Manifest {
        let mut packs: Vec<PackEntry> = Vec::new();
        let mut pack_index: HashMap<u64, u32> = HashMap::new();
        let mut objects = Vec::with_capacity(self.objects.len());
        for (hash, stored) in &self.objects {
            let index = *pack_index.entry(stored.pack).or_insert_with(|| {
                packs.push(PackEntry {
                    number: stored.pack,
                    end: PACK_HEADER_END,
                });
                packs.len() as u32 - 1
            });
            let pack = &mut packs[index as usize];
            pack.end = match stored.pack == self.pack_number {
                true => pack_end,
                false => pack.end.max(stored.position + u64::from(stored.bytes)),
            };
            objects.push(ObjectEntry {
                hash: *hash,
                pack: index,
                bytes: stored.bytes,
                position: stored.position,
            });
        }
        Manifest {
            offset: self.offset,
            packs,
            objects,
            engine: engine.to_vec(),
        }
    }
}

/// Makes a file in place of one that an earlier snapshot could neither finish nor remove.
fn create(directory: &Directory, name: &str) -> Result<NamedFile, SnapshotError> {
    let path = directory.join(name);
    directory.remove_if_there(&path)?;
    Ok(directory.open(&path, OpenMode::CreateNew)?)
}

impl Drop for SnapshotWriter {
    fn drop(&mut self) {
        // These pages are not needed in the cache any more.
        for pack in self.reusable.packs.values() {
            pack.forget_cached();
        }
        if self.finished {
            return;
        }
        let directory = &self.shared.directory;
        let manifest = manifest_name(self.offset);
        if self.named {
            // It is unknown whether the name is on the disk: this snapshot must not be relied on.
            let _ = directory.remove(&directory.join(&manifest));
        }
        // Best effort: what stays is removed when the store is opened or pruned.
        if let Some(pack) = &self.pack {
            let _ = directory.remove(&pack.file.path);
        }
        let _ = directory.remove(&directory.join(format!("{manifest}.tmp")));
    }
}
