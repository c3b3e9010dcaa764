//! The bytes of a segment. Drawn in `docs/on-disk-formats.md`; numbers are little-endian.

use crc32c::{crc32c, crc32c_append};
use lightcone_storage::{number_in_name, u32_at, u64_at, FilePosition, LogOffset};

use crate::chain::{Chain, Epoch, LogHash};

/// The size of the header block. Frames never share a disk block with it.
pub(crate) const SEGMENT_HEADER_BYTES: usize = 4096;
pub(crate) const FRAMES_START: FilePosition = FilePosition::new(SEGMENT_HEADER_BYTES as u64);
const SEGMENT_MAGIC: [u8; 8] = *b"LCLOGSEG";
/// The version this code writes.
pub(crate) const FORMAT_VERSION: u32 = 2;
/// The version it only reads.
pub(crate) const FORMAT_1: u32 = 1;

pub(crate) const FRAME_HEADER_BYTES: usize = 52;
/// Frames of all versions begin with this byte.
pub(crate) const FRAME_FIRST_BYTE: u8 = FRAME_MAGIC[0];
const FRAME_MAGIC: [u8; 4] = *b"LCF2";

pub const PAYLOAD_BYTES_MAX: usize = 1 << 30;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SegmentHeader {
    pub version: u32,
    pub database: [u8; 32],
    /// Counts from 0, so a missing segment shows without reading the others.
    pub number: u64,
    /// Where the segment begins.
    pub start: Chain,
    /// Part of every frame checksum of the segment. A client cannot know it, so rows with bytes like a frame are never taken for
    /// one.
    pub salt: u64,
    /// The frames before it were there when the file got its name. A frame behind it was written after the name was durable. 0 in
    /// files of older servers.
    pub named_end: FilePosition,
    /// How often the log was cut before the segment was made. A segment with fewer cuts than the one before was cut away.
    pub cuts: u64,
}

pub(crate) enum SegmentHeaderError {
    Damaged(&'static str),
    Version(u32),
}

impl SegmentHeader {
    pub fn encode(&self) -> Vec<u8> {
        debug_assert_eq!(self.version, FORMAT_VERSION);
        let mut block = vec![0; SEGMENT_HEADER_BYTES];
        block[0..8].copy_from_slice(&SEGMENT_MAGIC);
        block[8..12].copy_from_slice(&FORMAT_VERSION.to_le_bytes());
        block[16..48].copy_from_slice(&self.database);
        block[48..56].copy_from_slice(&self.number.to_le_bytes());
        block[56..64].copy_from_slice(&self.start.next_offset.get().to_le_bytes());
        block[64..72].copy_from_slice(&self.start.epoch.get().to_le_bytes());
        block[72..88].copy_from_slice(&self.start.hash.to_le_bytes());
        block[88..96].copy_from_slice(&self.salt.to_le_bytes());
        block[96..104].copy_from_slice(&self.named_end.get().to_le_bytes());
        block[104..112].copy_from_slice(&self.cuts.to_le_bytes());
        let checksum = Self::checksum(&block);
        block[12..16].copy_from_slice(&checksum.to_le_bytes());
        block
    }

    pub fn decode(block: &[u8]) -> Result<SegmentHeader, SegmentHeaderError> {
        if block.len() < SEGMENT_HEADER_BYTES {
            return Err(SegmentHeaderError::Damaged(
                "the file ends inside its header block",
            ));
        }
        if block[0..8] != SEGMENT_MAGIC {
            return Err(SegmentHeaderError::Damaged(
                "it does not begin with \"LCLOGSEG\"",
            ));
        }
        if u32_at(block, 12) != Self::checksum(block) {
            return Err(SegmentHeaderError::Damaged(
                "the checksum of the header block is wrong",
            ));
        }
        let version = u32_at(block, 8);
        let (hash, rest, cuts) = match version {
            FORMAT_VERSION => (hash_at(block, 72), 88, u64_at(block, 104)),
            FORMAT_1 => (LogHash::new(u64_at(block, 72).into()), 80, 0),
            _ => return Err(SegmentHeaderError::Version(version)),
        };
        let mut database = [0; 32];
        database.copy_from_slice(&block[16..48]);
        Ok(SegmentHeader {
            version,
            database,
            number: u64_at(block, 48),
            start: Chain::at(
                LogOffset::new(u64_at(block, 56)),
                Epoch::new(u64_at(block, 64)),
                hash,
            ),
            salt: u64_at(block, rest),
            named_end: FilePosition::new(u64_at(block, rest + 8)),
            cuts,
        })
    }

    /// Over the whole block except the checksum itself.
    fn checksum(block: &[u8]) -> u32 {
        crc32c_append(
            crc32c_append(0, &block[..12]),
            &block[16..SEGMENT_HEADER_BYTES],
        )
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FrameHeader {
    pub payload_bytes: u32,
    /// The number of transactions; 0 for a mark that only raises the epoch or closes the log.
    pub count: u32,
    /// Bytes right before this frame that were not synced when it was written. A damaged place before these was on the disk, so it
    /// is no torn tail.
    pub unsynced_bytes: u32,
    pub first_offset: LogOffset,
    pub epoch: Epoch,
    /// Behind this frame.
    pub hash: LogHash,
    /// In a segment of format 1, what is to be checked there.
    pub checks_1: Option<Checks1>,
}

/// What a header of format 1 says of the payload and of the frame before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Checks1 {
    pub payload_checksum: u32,
    pub previous_hash: u64,
}

impl FrameHeader {
    /// The header of a frame with this payload behind a place, and the place behind the frame.
    pub fn behind(
        place: Chain,
        epoch: Epoch,
        count: u32,
        unsynced_bytes: u32,
        payload: &[&[u8]],
    ) -> (FrameHeader, Chain) {
        let after = place.after(epoch, count, payload);
        let header = FrameHeader {
            payload_bytes: payload.iter().map(|part| part.len() as u32).sum(),
            count,
            unsynced_bytes,
            first_offset: place.next_offset,
            epoch,
            hash: after.hash,
            checks_1: None,
        };
        (header, after)
    }

    /// The header's bytes in a segment with `salt`, at `position`.
    pub fn encode(&self, salt: u64, position: FilePosition) -> [u8; FRAME_HEADER_BYTES] {
        let mut bytes = [0; FRAME_HEADER_BYTES];
        bytes[0..4].copy_from_slice(&FRAME_MAGIC);
        bytes[8..12].copy_from_slice(&self.payload_bytes.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.count.to_le_bytes());
        bytes[16..20].copy_from_slice(&self.unsynced_bytes.to_le_bytes());
        bytes[20..28].copy_from_slice(&self.first_offset.get().to_le_bytes());
        bytes[28..36].copy_from_slice(&self.epoch.get().to_le_bytes());
        bytes[36..52].copy_from_slice(&self.hash.to_le_bytes());
        let checksum = frame_checksum(&bytes, salt, position);
        bytes[4..8].copy_from_slice(&checksum.to_le_bytes());
        bytes
    }

    /// The header at `position`, if these bytes are one that was written there.
    pub fn decode(bytes: &[u8], salt: u64, position: FilePosition) -> Option<FrameHeader> {
        if bytes[0..4] != FRAME_MAGIC || u32_at(bytes, 4) != frame_checksum(bytes, salt, position) {
            return None;
        }
        Some(FrameHeader {
            payload_bytes: u32_at(bytes, 8),
            count: u32_at(bytes, 12),
            unsynced_bytes: u32_at(bytes, 16),
            first_offset: LogOffset::new(u64_at(bytes, 20)),
            epoch: Epoch::new(u64_at(bytes, 28)),
            hash: hash_at(bytes, 36),
            checks_1: None,
        })
    }

    /// Of a frame of this format.
    pub fn frame_bytes(&self) -> u64 {
        FRAME_HEADER_BYTES as u64 + u64::from(self.payload_bytes)
    }

    /// Whether a log takes such a frame.
    pub fn is_possible(&self) -> bool {
        let bytes_max = if self.count > 0 { PAYLOAD_BYTES_MAX } else { 0 };
        self.payload_bytes as usize <= bytes_max
    }

    /// After its last transaction; none in an impossible header.
    pub fn next_offset(&self) -> Option<LogOffset> {
        self.first_offset.checked_add(self.count.into())
    }

    /// Whether frame and payload are what was written behind all that has the hash `before`.
    pub fn follows(&self, before: LogHash, payload: &[u8]) -> bool {
        match &self.checks_1 {
            Some(checks) => {
                u128::from(checks.previous_hash) == before.get()
                    && checks.payload_checksum == crc32c(payload)
            }
            None => {
                self.hash == before.after(self.epoch, self.first_offset, self.count, &[payload])
            }
        }
    }
}

/// Of the header of a frame, without the checksum itself: it belongs to this place of this file.
pub(crate) fn frame_checksum(bytes: &[u8], salt: u64, position: FilePosition) -> u32 {
    let mut checksum = crc32c_append(0, &salt.to_le_bytes());
    checksum = crc32c_append(checksum, &position.get().to_le_bytes());
    checksum = crc32c_append(checksum, &bytes[0..4]);
    crc32c_append(checksum, &bytes[8..])
}

fn hash_at(bytes: &[u8], at: usize) -> LogHash {
    LogHash::from_le_bytes(bytes[at..at + 16].try_into().expect("16 bytes"))
}

pub(crate) fn segment_name(first_offset: LogOffset) -> String {
    format!("{first_offset:020}.segment")
}

pub(crate) fn parse_segment_name(name: &str) -> Option<LogOffset> {
    number_in_name(name, "segment").map(LogOffset::new)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pins the layout that `docs/on-disk-formats.md` draws.
    #[test]
    fn bytes_of_a_frame() {
        let before = LogHash::new(0x0102);
        let (epoch, first_offset) = (Epoch::new(3), LogOffset::new(0x0102_0304_0506_0708));
        let header = FrameHeader {
            payload_bytes: 9,
            count: 2,
            unsynced_bytes: 0x64,
            first_offset,
            epoch,
            hash: before.after(epoch, first_offset, 2, &[b"1234", b"56789"]),
            checks_1: None,
        };
        let bytes = header.encode(5, FRAMES_START);
        let offset = [8, 7, 6, 5, 4, 3, 2, 1];
        let checked = [
            &[5, 0, 0, 0, 0, 0, 0, 0, 0, 16, 0, 0, 0, 0, 0, 0],
            b"LCF2".as_slice(),
            &bytes[8..],
        ];
        let mut hashed = vec![2, 1];
        hashed.resize(16, 0);
        hashed.extend([3, 0, 0, 0, 0, 0, 0, 0]);
        hashed.extend(offset);
        hashed.extend([2, 0, 0, 0]);
        hashed.extend(b"123456789");
        let hash = blake3::hash(&hashed);
        let expected = [
            b"LCF2".as_slice(),
            &crc32c(&checked.concat()).to_le_bytes(),
            &[9, 0, 0, 0, 2, 0, 0, 0, 0x64, 0, 0, 0],
            &offset,
            &[3, 0, 0, 0, 0, 0, 0, 0],
            &hash.as_bytes()[..16],
        ];
        assert_eq!(bytes.as_slice(), expected.concat());
        assert_eq!(FrameHeader::decode(&bytes, 5, FRAMES_START), Some(header));
        assert_eq!(FrameHeader::decode(&bytes, 6, FRAMES_START), None);
        assert_eq!(FrameHeader::decode(&bytes, 5, FRAMES_START + 1), None);
        assert!(header.follows(before, b"123456789"));
        assert!(!header.follows(before, b"123456788"));
        assert!(!header.follows(LogHash::new(0x0103), b"123456789"));
    }

    #[test]
    fn bytes_of_a_segment_header() {
        let header = SegmentHeader {
            version: FORMAT_VERSION,
            database: [7; 32],
            number: 1,
            start: Chain::at(LogOffset::new(2), Epoch::new(3), LogHash::new(4 | 5 << 64)),
            salt: 6,
            named_end: FilePosition::new(7),
            cuts: 8,
        };
        let bytes = header.encode();
        assert_eq!(bytes.len(), 4096);
        assert_eq!(bytes[0..12], *b"LCLOGSEG\x02\0\0\0");
        assert_eq!(bytes[16..48], [7; 32]);
        for (field, at) in (1u8..=8).zip((48..).step_by(8)) {
            assert_eq!(bytes[at..at + 8], [field, 0, 0, 0, 0, 0, 0, 0]);
        }
        assert!(bytes[112..].iter().all(|byte| *byte == 0));
        assert!(matches!(SegmentHeader::decode(&bytes), Ok(decoded) if decoded == header));
    }

    #[test]
    fn names_of_segments() {
        assert_eq!(
            segment_name(LogOffset::new(42)),
            "00000000000000000042.segment"
        );
        assert_eq!(
            parse_segment_name(&segment_name(LogOffset::MAX)),
            Some(LogOffset::MAX)
        );
        for name in [
            "42.segment",
            "00000000000000000042.segment.removed",
            "99999999999999999999.segment",
            "lock",
        ] {
            assert_eq!(parse_segment_name(name), None);
        }
    }
}
