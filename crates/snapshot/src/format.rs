//! The bytes of packs and manifests. Drawn in `docs/on-disk-formats.md`; numbers are little-endian.

use std::fmt;

use lightcone_storage::{u32_at, u64_at, FilePosition, LogOffset};

/// The version this code writes, and the only one it reads.
pub(crate) const FORMAT_VERSION: u32 = 1;
const PACK_MAGIC: [u8; 8] = *b"LCSNPACK";
const MANIFEST_MAGIC: [u8; 8] = *b"LCSNMANI";

/// The header of a pack; the objects follow, back to back.
pub(crate) const PACK_HEADER_BYTES: usize = 32;
pub(crate) const PACK_HEADER_END: FilePosition = FilePosition::new(PACK_HEADER_BYTES as u64);
const MANIFEST_HEADER_BYTES: usize = 48;
const PACK_ENTRY_BYTES: usize = 16;
const OBJECT_ENTRY_BYTES: usize = 48;
const CHECKSUM_BYTES: usize = 32;

pub const OBJECT_BYTES_MAX: usize = u32::MAX as usize;

/// The blake3 hash of an object: its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectHash(pub [u8; 32]);

impl ObjectHash {
    pub fn of(object: &[u8]) -> ObjectHash {
        ObjectHash(*blake3::hash(object).as_bytes())
    }
}

impl fmt::Display for ObjectHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// The header of pack `number`. It is constant, so it is checked by comparing.
pub(crate) fn pack_header(number: u64) -> [u8; PACK_HEADER_BYTES] {
    let mut bytes = [0; PACK_HEADER_BYTES];
    bytes[0..8].copy_from_slice(&PACK_MAGIC);
    bytes[8..12].copy_from_slice(&FORMAT_VERSION.to_le_bytes());
    bytes[16..24].copy_from_slice(&number.to_le_bytes());
    bytes
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PackEntry {
    pub number: u64,
    pub end: FilePosition,
}

/// Where an object lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ObjectEntry {
    pub hash: ObjectHash,
    pub pack: u32,
    pub bytes: u32,
    pub position: FilePosition,
}

/// The table of contents of a snapshot.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Manifest {
    pub offset: LogOffset,
    pub packs: Vec<PackEntry>,
    pub objects: Vec<ObjectEntry>,
    pub engine: Vec<u8>,
}

#[derive(Debug)]
pub(crate) enum ManifestError {
    Damaged(FilePosition, String),
    Version(u32),
}

impl Manifest {
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(
            MANIFEST_HEADER_BYTES
                + self.packs.len() * PACK_ENTRY_BYTES
                + self.objects.len() * OBJECT_ENTRY_BYTES
                + self.engine.len()
                + CHECKSUM_BYTES,
        );
        bytes.extend(MANIFEST_MAGIC);
        bytes.extend(FORMAT_VERSION.to_le_bytes());
        bytes.extend([0; 4]);
        bytes.extend(self.offset.get().to_le_bytes());
        bytes.extend((self.packs.len() as u64).to_le_bytes());
        bytes.extend((self.objects.len() as u64).to_le_bytes());
        bytes.extend((self.engine.len() as u64).to_le_bytes());
        for pack in &self.packs {
            bytes.extend(pack.number.to_le_bytes());
            bytes.extend(pack.end.get().to_le_bytes());
        }
        for object in &self.objects {
            bytes.extend(object.hash.0);
            bytes.extend(object.pack.to_le_bytes());
            bytes.extend(object.bytes.to_le_bytes());
            bytes.extend(object.position.get().to_le_bytes());
        }
        bytes.extend(&self.engine);
        let checksum = blake3::hash(&bytes);
        bytes.extend(checksum.as_bytes());
        bytes
    }

    pub fn decode(bytes: &[u8]) -> Result<Manifest, ManifestError> {
        let damaged = |at: usize, found: &str| {
            let at = FilePosition::new(at as u64);
            Err(ManifestError::Damaged(at, found.to_owned()))
        };
        if bytes.len() < MANIFEST_HEADER_BYTES + CHECKSUM_BYTES {
            return damaged(bytes.len(), "the file is too short for a manifest");
        }
        if bytes[0..8] != MANIFEST_MAGIC {
            return damaged(0, "it does not begin with \"LCSNMANI\"");
        }
        let (content, checksum) = bytes.split_at(bytes.len() - CHECKSUM_BYTES);
        if blake3::hash(content).as_bytes() != checksum {
            return damaged(
                content.len(),
                "the checksum at the end does not fit the contents",
            );
        }
        let version = u32_at(content, 8);
        if version != FORMAT_VERSION {
            return Err(ManifestError::Version(version));
        }
        let (packs, objects, engine) = (
            u64_at(content, 24),
            u64_at(content, 32),
            u64_at(content, 40),
        );
        // In 128 bits these sums cannot overflow.
        let expected = MANIFEST_HEADER_BYTES as u128
            + u128::from(packs) * PACK_ENTRY_BYTES as u128
            + u128::from(objects) * OBJECT_ENTRY_BYTES as u128
            + u128::from(engine);
        if expected != content.len() as u128 {
            return damaged(24, "the counts do not fit the length of the file");
        }
        let objects_at = MANIFEST_HEADER_BYTES + packs as usize * PACK_ENTRY_BYTES;
        let engine_at = objects_at + objects as usize * OBJECT_ENTRY_BYTES;
        let packs: Vec<PackEntry> = content[MANIFEST_HEADER_BYTES..objects_at]
            .chunks_exact(PACK_ENTRY_BYTES)
            .map(|entry| PackEntry {
                number: u64_at(entry, 0),
                end: FilePosition::new(u64_at(entry, 8)),
            })
            .collect();
        let mut objects = Vec::with_capacity(objects as usize);
        for (index, entry) in content[objects_at..engine_at]
            .chunks_exact(OBJECT_ENTRY_BYTES)
            .enumerate()
        {
            let mut hash = [0; 32];
            hash.copy_from_slice(&entry[..32]);
            let object = ObjectEntry {
                hash: ObjectHash(hash),
                pack: u32_at(entry, 32),
                bytes: u32_at(entry, 36),
                position: FilePosition::new(u64_at(entry, 40)),
            };
            let end = object.position.get().checked_add(object.bytes.into());
            let inside = packs
                .get(object.pack as usize)
                .is_some_and(|pack| end.is_some_and(|end| end <= pack.end.get()));
            if !inside || object.position < PACK_HEADER_END {
                return damaged(
                    objects_at + index * OBJECT_ENTRY_BYTES,
                    "an object lies outside its pack",
                );
            }
            objects.push(object);
        }
        Ok(Manifest {
            offset: LogOffset::new(u64_at(content, 16)),
            packs,
            objects,
            engine: content[engine_at..].to_vec(),
        })
    }
}

pub(crate) fn manifest_name(offset: LogOffset) -> String {
    format!("{offset:020}.manifest")
}

pub(crate) fn pack_name(number: u64) -> String {
    format!("{number:020}.pack")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pins the layout that `docs/on-disk-formats.md` draws.
    #[test]
    fn bytes_of_a_manifest() {
        let manifest = Manifest {
            offset: LogOffset::new(9),
            packs: vec![PackEntry {
                number: 3,
                end: FilePosition::new(100),
            }],
            objects: vec![ObjectEntry {
                hash: ObjectHash([0xab; 32]),
                pack: 0,
                bytes: 68,
                position: FilePosition::new(32),
            }],
            engine: b"engine".to_vec(),
        };
        let bytes = manifest.encode();
        let word = |value: u64| value.to_le_bytes();
        let content = [
            b"LCSNMANI\x01\0\0\0\0\0\0\0".as_slice(),
            &[word(9), word(1), word(1), word(6), word(3), word(100)].concat(),
            &[0xab; 32],
            &[0, 0, 0, 0, 68, 0, 0, 0],
            &word(32),
            b"engine",
        ]
        .concat();
        assert_eq!(bytes[..bytes.len() - 32], content);
        assert_eq!(
            bytes[bytes.len() - 32..],
            *blake3::hash(&content).as_bytes()
        );
        assert_eq!(Manifest::decode(&bytes).unwrap(), manifest);
    }

    #[test]
    fn bytes_of_a_pack_header() {
        let expected = b"LCSNPACK\x01\0\0\0\0\0\0\0\x07\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0";
        assert_eq!(pack_header(7), *expected);
    }

    #[test]
    fn every_flipped_bit_of_a_manifest_is_found() {
        let bytes = Manifest {
            offset: LogOffset::new(1),
            engine: b"x".to_vec(),
            ..Manifest::default()
        }
        .encode();
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(
                matches!(Manifest::decode(&flipped), Err(ManifestError::Damaged(..))),
                "bit {bit}"
            );
        }
        for length in 0..bytes.len() {
            assert!(Manifest::decode(&bytes[..length]).is_err());
        }
    }
}
