//! Reading a snapshot.

use std::collections::HashMap;
use std::io;

use lightcone_storage::{Directory, FilePosition, LogOffset, NamedFile, OpenMode};

use crate::error::SnapshotError;
use crate::format::{
    manifest_name, pack_header, pack_name, Manifest, ManifestError, ObjectEntry, ObjectHash,
    FORMAT_VERSION, PACK_HEADER_BYTES,
};

/// An open snapshot. Its packs stay open until they are [closed](Snapshot::close_before), so pruning does not disturb it.
pub struct Snapshot {
    /// The first transaction that is not in it.
    pub offset: LogOffset,
    pub manifest: Vec<u8>,
    packs: Vec<Option<NamedFile>>,
    objects: Vec<ObjectEntry>,
    /// Where an object is among them.
    index: HashMap<ObjectHash, usize>,
}

pub(crate) fn load_manifest(
    directory: &Directory,
    offset: LogOffset,
) -> Result<Manifest, SnapshotError> {
    let path = directory.join(manifest_name(offset));
    let file = directory.open(&path, OpenMode::Read)?;
    let mut bytes = vec![0; file.end()?.get() as usize];
    let read = file.read_full(&mut bytes, FilePosition::START)?;
    bytes.truncate(read);
    let damaged = |at: FilePosition, found| SnapshotError::Damaged {
        file: path.clone(),
        byte_offset: at,
        found,
    };
    let manifest = Manifest::decode(&bytes).map_err(|error| match error {
        ManifestError::Damaged(at, found) => damaged(at, found),
        ManifestError::Version(version) => SnapshotError::Version {
            file: path.clone(),
            version,
            supported: FORMAT_VERSION,
        },
    })?;
    if manifest.offset != offset {
        return Err(damaged(
            FilePosition::new(16),
            format!(
                "it is the manifest of a snapshot at transaction {}",
                manifest.offset
            ),
        ));
    }
    Ok(manifest)
}

/// Those that a snapshot needs, in the order of its manifest.
pub(crate) fn open_packs(
    directory: &Directory,
    manifest: &Manifest,
) -> Result<Vec<NamedFile>, SnapshotError> {
    let mut packs = Vec::with_capacity(manifest.packs.len());
    for entry in &manifest.packs {
        let path = directory.join(pack_name(entry.number));
        let damaged = |at: FilePosition, found: String| SnapshotError::Damaged {
            file: path.clone(),
            byte_offset: at,
            found,
        };
        let opened = directory.open(&path, OpenMode::Read);
        let file = opened.map_err(|error| match error.source.kind() {
            io::ErrorKind::NotFound => damaged(
                FilePosition::START,
                format!(
                    "the file is missing; the snapshot at transaction {} needs it",
                    manifest.offset
                ),
            ),
            _ => error.into(),
        })?;
        let end = file.end()?;
        if end < entry.end {
            return Err(damaged(
                end,
                format!("the file ends here, but should have {} bytes", entry.end),
            ));
        }
        let mut header = [0; PACK_HEADER_BYTES];
        file.read_exact(&mut header, FilePosition::START)?;
        if header != pack_header(entry.number) {
            return Err(damaged(
                FilePosition::START,
                "this is not the header of a pack with this number".to_owned(),
            ));
        }
        packs.push(file);
    }
    Ok(packs)
}

impl Snapshot {
    pub(crate) fn open(
        directory: &Directory,
        offset: LogOffset,
    ) -> Result<Snapshot, SnapshotError> {
        let manifest = load_manifest(directory, offset)?;
        let packs = open_packs(directory, &manifest)?;
        let hashes = manifest.objects.iter().map(|object| object.hash);
        Ok(Snapshot {
            offset,
            manifest: manifest.engine,
            packs: packs.into_iter().map(Some).collect(),
            index: hashes.zip(0..).collect(),
            objects: manifest.objects,
        })
    }

    /// In the order in which they were put, which is mostly the order in the files.
    pub fn objects(&self) -> impl ExactSizeIterator<Item = &ObjectHash> {
        self.objects.iter().map(|object| &object.hash)
    }

    /// File by file.
    pub fn objects_by_file(&self) -> Vec<ObjectHash> {
        let mut objects: Vec<ObjectHash> = self.objects().copied().collect();
        let place = |hash: &ObjectHash| self.place_of(hash).map(|o| (o.pack, o.position)).ok();
        objects.sort_by_cached_key(place);
        objects
    }

    /// Closes the files that come before that of an object [in this order](Self::objects_by_file): of those that were pruned, the disk has
    /// its room back then.
    pub fn close_before(&mut self, hash: &ObjectHash) {
        let pack = self.place_of(hash).map_or(0, |place| place.pack);
        let packs = self.packs.iter_mut().take(pack as usize);
        packs
            .filter_map(Option::take)
            .for_each(|pack| pack.file.forget_cached());
    }

    fn place_of(&self, hash: &ObjectHash) -> Result<&ObjectEntry, SnapshotError> {
        let index = self.index.get(hash);
        let index = index.ok_or(SnapshotError::NoSuchObject {
            offset: self.offset,
            hash: *hash,
        })?;
        Ok(&self.objects[*index])
    }

    /// The length of an object.
    pub fn bytes_of(&self, hash: &ObjectHash) -> Result<u32, SnapshotError> {
        Ok(self.place_of(hash)?.bytes)
    }

    pub fn read(&self, hash: &ObjectHash) -> Result<Vec<u8>, SnapshotError> {
        let mut object = Vec::new();
        self.read_into(hash, &mut object)?;
        Ok(object)
    }

    pub fn read_into(&self, hash: &ObjectHash, object: &mut Vec<u8>) -> Result<(), SnapshotError> {
        let place = self.place_of(hash)?;
        let pack = self.packs[place.pack as usize].as_ref();
        let pack = pack.ok_or_else(|| SnapshotError::Misuse {
            reason: format!("the file of object {hash} was closed"),
        })?;
        let damaged = |found: String| SnapshotError::Damaged {
            file: pack.path.clone(),
            byte_offset: place.position,
            found,
        };
        object.resize(place.bytes as usize, 0);
        match pack.read_exact(object, place.position) {
            Err(error) if error.source.kind() == io::ErrorKind::UnexpectedEof => {
                return Err(damaged(format!("the file ends inside object {hash}")))
            }
            read => read?,
        }
        match ObjectHash::of(object) {
            found if found == *hash => Ok(()),
            found => Err(damaged(format!(
                "object {hash} of {} bytes has hash {found}",
                place.bytes
            ))),
        }
    }

    /// What is read from here on comes from the disk, as far as the system allows it, and what was read is not kept in the cache.
    pub fn forget_cached(&self) {
        let open = self.packs.iter().flatten();
        open.for_each(|pack| pack.file.forget_cached());
    }

    pub fn verify(&self) -> Result<(), SnapshotError> {
        let mut buffer = Vec::new();
        self.objects()
            .try_for_each(|hash| self.read_into(hash, &mut buffer))
    }
}
