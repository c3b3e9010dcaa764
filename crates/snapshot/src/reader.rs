//! Reading a snapshot.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};

use lightcone_storage::{
    read_exact_at, read_full_at, File, FilePosition, LogOffset, OpenMode, Storage,
};

use crate::error::SnapshotError;
use crate::format::{
    manifest_name, pack_header, pack_name, Manifest, ManifestError, ObjectEntry, ObjectHash,
    FORMAT_VERSION, PACK_HEADER_BYTES,
};

/// An open snapshot. Its packs stay open, so pruning does not disturb it.
pub struct Snapshot {
    /// The first transaction that is not in it.
    pub offset: LogOffset,
    pub manifest: Vec<u8>,
    packs: Vec<Pack>,
    objects: HashMap<ObjectHash, Place>,
    order: Vec<ObjectHash>,
}

struct Pack {
    path: PathBuf,
    file: Box<dyn File>,
}

#[derive(Clone, Copy)]
struct Place {
    pack: u32,
    bytes: u32,
    position: FilePosition,
}

pub(crate) fn load_manifest(
    storage: &dyn Storage,
    directory: &Path,
    offset: LogOffset,
) -> Result<Manifest, SnapshotError> {
    let path = directory.join(manifest_name(offset));
    let file = storage
        .open(&path, OpenMode::Read)
        .map_err(SnapshotError::io("open", &path))?;
    let length = file
        .length()
        .map_err(SnapshotError::io("read the length of", &path))?;
    let mut bytes = vec![0; length as usize];
    let read = read_full_at(&*file, &mut bytes, FilePosition::START)
        .map_err(SnapshotError::io("read", &path))?;
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

impl Snapshot {
    pub(crate) fn open(
        storage: &dyn Storage,
        directory: &Path,
        offset: LogOffset,
    ) -> Result<Snapshot, SnapshotError> {
        let manifest = load_manifest(storage, directory, offset)?;
        let mut packs = Vec::with_capacity(manifest.packs.len());
        for entry in &manifest.packs {
            let path = directory.join(pack_name(entry.number));
            let damaged = |at: FilePosition, found: String| SnapshotError::Damaged {
                file: path.clone(),
                byte_offset: at,
                found,
            };
            let file = match storage.open(&path, OpenMode::Read) {
                Ok(file) => file,
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    return Err(damaged(
                        FilePosition::START,
                        format!(
                            "the file is missing; the snapshot at transaction {offset} needs it"
                        ),
                    ));
                }
                Err(source) => {
                    return Err(SnapshotError::Io {
                        action: "open",
                        path,
                        source,
                    })
                }
            };
            let length = file
                .length()
                .map_err(SnapshotError::io("read the length of", &path))?;
            let end = FilePosition::new(length);
            if end < entry.end {
                return Err(damaged(
                    end,
                    format!("the file ends here, but should have {} bytes", entry.end),
                ));
            }
            let mut header = [0; PACK_HEADER_BYTES];
            read_exact_at(&*file, &mut header, FilePosition::START)
                .map_err(SnapshotError::io("read", &path))?;
            if header != pack_header(entry.number) {
                return Err(damaged(
                    FilePosition::START,
                    "this is not the header of a pack with this number".to_owned(),
                ));
            }
            packs.push(Pack { path, file });
        }
        let place = |object: &ObjectEntry| Place {
            pack: object.pack,
            bytes: object.bytes,
            position: object.position,
        };
        Ok(Snapshot {
            offset,
            manifest: manifest.engine,
            packs,
            objects: manifest
                .objects
                .iter()
                .map(|object| (object.hash, place(object)))
                .collect(),
            order: manifest.objects.iter().map(|object| object.hash).collect(),
        })
    }

    /// In the order in which they were put, which is mostly the order in the files.
    pub fn objects(&self) -> impl ExactSizeIterator<Item = &ObjectHash> {
        self.order.iter()
    }

    pub fn read(&self, hash: &ObjectHash) -> Result<Vec<u8>, SnapshotError> {
        let mut object = Vec::new();
        self.read_into(hash, &mut object)?;
        Ok(object)
    }

    pub fn read_into(&self, hash: &ObjectHash, object: &mut Vec<u8>) -> Result<(), SnapshotError> {
        let Some(place) = self.objects.get(hash) else {
            return Err(SnapshotError::NoSuchObject {
                offset: self.offset,
                hash: *hash,
            });
        };
        let pack = &self.packs[place.pack as usize];
        let damaged = |found: String| SnapshotError::Damaged {
            file: pack.path.clone(),
            byte_offset: place.position,
            found,
        };
        object.resize(place.bytes as usize, 0);
        match read_exact_at(&*pack.file, object, place.position) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                return Err(damaged(format!("the file ends inside object {hash}")))
            }
            read => read.map_err(SnapshotError::io("read", &pack.path))?,
        }
        match ObjectHash::of(object) {
            found if found == *hash => Ok(()),
            found => Err(damaged(format!(
                "object {hash} of {} bytes has hash {found}",
                place.bytes
            ))),
        }
    }

    pub fn verify(&self) -> Result<(), SnapshotError> {
        let mut buffer = Vec::new();
        self.order
            .iter()
            .try_for_each(|hash| self.read_into(hash, &mut buffer))
    }
}
