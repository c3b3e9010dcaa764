//! Writing a snapshot.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use lightcone_storage::{write_all_at, File, OpenMode};

use crate::error::SnapshotError;
use crate::format::{
    manifest_name, pack_header, pack_name, Manifest, ObjectEntry, PackEntry, OBJECT_BYTES_MAX,
    PACK_HEADER_BYTES,
};
use crate::store::{Busy, Shared};
use crate::ObjectHash;

/// Small objects are gathered up to this size before they are written.
const BUFFER_BYTES: usize = 1 << 20;
/// A long pack is synced in pieces, so that the log's syncs never wait for all of it.
const SYNC_BYTES: u64 = 8 << 20;

/// What a snapshot consists of, and what of it was new.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SnapshotStats {
    /// Objects in the snapshot.
    pub objects: u64,
    /// Their bytes.
    pub object_bytes: u64,
    /// Objects that were written.
    pub new_objects: u64,
    /// Their bytes.
    pub new_object_bytes: u64,
}

/// A snapshot being written. Nothing of it counts before [`SnapshotWriter::finish`]; dropped, it leaves nothing.
pub struct SnapshotWriter {
    shared: Arc<Shared>,
    offset: u64,
    /// Objects that need not be written again.
    stored: HashMap<ObjectHash, Stored>,
    /// Index into `objects` of every object of this snapshot.
    index: HashMap<ObjectHash, u32>,
    /// `pack` is a pack number here until the end.
    objects: Vec<(ObjectHash, Stored)>,
    pack_number: u64,
    pack: Option<PackFile>,
    stats: SnapshotStats,
    finished: bool,
    _busy: Busy,
}

/// Where an object is stored.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stored {
    pub pack: u64,
    pub bytes: u32,
    pub position: u64,
}

struct PackFile {
    file: Box<dyn File>,
    path: PathBuf,
    buffer: Vec<u8>,
    /// Bytes in the file, without the buffer.
    written: u64,
    synced: u64,
}

impl PackFile {
    fn flush(&mut self, object: &[u8]) -> Result<(), SnapshotError> {
        let parts: [&[u8]; 2] = [&self.buffer, object];
        write_all_at(&*self.file, &parts, self.written)
            .map_err(SnapshotError::io("write", &self.path))?;
        self.written += (self.buffer.len() + object.len()) as u64;
        self.buffer.clear();
        if self.written - self.synced >= SYNC_BYTES {
            self.sync()?;
        }
        Ok(())
    }

    fn sync(&mut self) -> Result<(), SnapshotError> {
        self.synced = self.written;
        self.file
            .sync_data()
            .map_err(SnapshotError::io("sync", &self.path))
    }
}

impl SnapshotWriter {
    pub(crate) fn new(
        shared: Arc<Shared>,
        busy: Busy,
        offset: u64,
        pack_number: u64,
        stored: HashMap<ObjectHash, Stored>,
    ) -> SnapshotWriter {
        SnapshotWriter {
            shared,
            offset,
            stored,
            index: HashMap::new(),
            objects: Vec::new(),
            pack_number,
            pack: None,
            stats: SnapshotStats::default(),
            finished: false,
            _busy: busy,
        }
    }

    /// Adds an object, and writes it unless it is stored already.
    pub fn put(&mut self, object: &[u8]) -> Result<ObjectHash, SnapshotError> {
        if object.len() > OBJECT_BYTES_MAX {
            let reason = format!(
                "an object has at most {OBJECT_BYTES_MAX} bytes, and this one has {}",
                object.len()
            );
            return Err(SnapshotError::Misuse { reason });
        }
        let hash = ObjectHash::of(object);
        if self.reuse(&hash) {
            return Ok(hash);
        }
        let pack = self.open_pack()?;
        let position = pack.written + pack.buffer.len() as u64;
        if pack.buffer.len() + object.len() > BUFFER_BYTES {
            pack.flush(object)?;
        } else {
            pack.buffer.extend_from_slice(object);
        }
        self.stats.new_objects += 1;
        self.stats.new_object_bytes += object.len() as u64;
        self.add(
            hash,
            Stored {
                pack: self.pack_number,
                bytes: object.len() as u32,
                position,
            },
        );
        Ok(hash)
    }

    /// Adds an object by its name if it is stored already; otherwise false, and the object has to be [put](Self::put).
    /// For callers who still know the hash of an unchanged page and need not read or hash it again.
    pub fn reuse(&mut self, hash: &ObjectHash) -> bool {
        if self.index.contains_key(hash) {
            return true;
        }
        match self.stored.get(hash) {
            Some(stored) => {
                self.add(*hash, *stored);
                true
            }
            None => false,
        }
    }

    fn add(&mut self, hash: ObjectHash, stored: Stored) {
        self.stats.objects += 1;
        self.stats.object_bytes += u64::from(stored.bytes);
        self.index.insert(hash, self.objects.len() as u32);
        self.objects.push((hash, stored));
    }

    fn open_pack(&mut self) -> Result<&mut PackFile, SnapshotError> {
        if self.pack.is_none() {
            let path = self
                .shared
                .directory
                .join(format!("{}.tmp", pack_name(self.pack_number)));
            let file = self
                .shared
                .storage
                .open(&path, OpenMode::CreateNew)
                .map_err(SnapshotError::io("create", &path))?;
            let buffer = pack_header(self.pack_number).to_vec();
            self.pack = Some(PackFile {
                file,
                path,
                buffer,
                written: 0,
                synced: 0,
            });
        }
        Ok(self.pack.as_mut().expect("just made"))
    }

    /// Publishes the snapshot, durably, with the engine's own description of it.
    pub fn finish(mut self, manifest: &[u8]) -> Result<SnapshotStats, SnapshotError> {
        let storage = self.shared.storage.clone();
        let directory = self.shared.directory.clone();
        let mut pack_bytes = PACK_HEADER_BYTES as u64;
        if let Some(pack) = &mut self.pack {
            pack.flush(&[])?;
            pack.sync()?;
            pack_bytes = pack.written;
            let path = directory.join(pack_name(self.pack_number));
            storage
                .rename(&pack.path, &path)
                .map_err(SnapshotError::io("name", &path))?;
            // The pack must be there before the manifest that needs it.
            storage
                .sync_directory(&directory)
                .map_err(SnapshotError::io("sync", &directory))?;
        }
        let bytes = self.contents(pack_bytes, manifest).encode();
        let path = directory.join(manifest_name(self.offset));
        let temporary = directory.join(format!("{}.tmp", manifest_name(self.offset)));
        let file = storage
            .open(&temporary, OpenMode::CreateNew)
            .map_err(SnapshotError::io("create", &temporary))?;
        write_all_at(&*file, &[&bytes], 0).map_err(SnapshotError::io("write", &temporary))?;
        file.sync_data()
            .map_err(SnapshotError::io("sync", &temporary))?;
        storage
            .rename(&temporary, &path)
            .map_err(SnapshotError::io("name", &path))?;
        storage
            .sync_directory(&directory)
            .map_err(SnapshotError::io("sync", &directory))?;
        self.finished = true;
        Ok(self.stats)
    }

    /// The table of contents, with pack numbers turned into indexes.
    fn contents(&self, pack_bytes: u64, engine: &[u8]) -> Manifest {
        let mut packs: Vec<PackEntry> = Vec::new();
        let mut pack_index: HashMap<u64, u32> = HashMap::new();
        let mut objects = Vec::with_capacity(self.objects.len());
        for (hash, stored) in &self.objects {
            let index = *pack_index.entry(stored.pack).or_insert_with(|| {
                packs.push(PackEntry {
                    number: stored.pack,
                    bytes: PACK_HEADER_BYTES as u64,
                });
                packs.len() as u32 - 1
            });
            let pack = &mut packs[index as usize];
            pack.bytes = match stored.pack == self.pack_number {
                true => pack_bytes,
                false => pack.bytes.max(stored.position + u64::from(stored.bytes)),
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

impl Drop for SnapshotWriter {
    fn drop(&mut self) {
        if self.finished {
            return;
        }
        // Best effort: what stays is removed when the store is opened or pruned.
        if let Some(pack) = &self.pack {
            let _ = self.shared.storage.remove(&pack.path);
        }
        let _ = self.shared.storage.remove(
            &self
                .shared
                .directory
                .join(format!("{}.tmp", manifest_name(self.offset))),
        );
    }
}
