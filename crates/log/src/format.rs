//! The bytes of a segment. Drawn in `docs/on-disk-formats.md`; numbers are little-endian.

use crc32c::crc32c_append;
use lightcone_storage::{number_in_name, u32_at, u64_at, FilePosition, LogOffset};

use crate::epoch::Epoch;

/// The size of the header block. Frames never share a disk block with it.
pub(crate) const SEGMENT_HEADER_BYTES: usize = 4096;
pub(crate) const FRAMES_START: FilePosition = FilePosition::new(SEGMENT_HEADER_BYTES as u64);
/// The used part of the header block; the other bytes are zero.
const SEGMENT_HEADER_USED: usize = 96;
const SEGMENT_MAGIC: [u8; 8] = *b"LCLOGSEG";
/// The version this code writes, and the only one it reads.
pub(crate) const FORMAT_VERSION: u32 = 1;

pub(crate) const FRAME_HEADER_BYTES: usize = 48;
pub(crate) const FRAME_MAGIC: [u8; 4] = *b"LCF1";

pub const PAYLOAD_BYTES_MAX: usize = 1 << 30;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SegmentHeader {
    pub database: [u8; 32],
    /// Counts from 0, so a missing segment shows without reading the others.
    pub number: u64,
    /// The offset of the first transaction that may be in the segment.
    pub first_offset: LogOffset,
    /// When the segment was begun.
    pub epoch: Epoch,
    /// The hash of the last frame before this segment; 0 in the first.
    pub previous_hash: u64,
    /// Part of every frame checksum of the segment. A client cannot know it, so rows with bytes like a frame are never taken for
    /// one.
    pub salt: u64,
    /// The frames before it were there when the file got its name. A frame behind it was written after the name was durable. 0 in
    /// files of older servers.
    pub named_end: FilePosition,
}

pub(crate) enum SegmentHeaderError {
    Damaged(&'static str),
    Version(u32),
}

impl SegmentHeader {
    pub fn encode(&self) -> Vec<u8> {
        let mut block = vec![0; SEGMENT_HEADER_BYTES];
        block[0..8].copy_from_slice(&SEGMENT_MAGIC);
        block[8..12].copy_from_slice(&FORMAT_VERSION.to_le_bytes());
        block[16..48].copy_from_slice(&self.database);
        block[48..56].copy_from_slice(&self.number.to_le_bytes());
        block[56..64].copy_from_slice(&self.first_offset.get().to_le_bytes());
        block[64..72].copy_from_slice(&self.epoch.get().to_le_bytes());
        block[72..80].copy_from_slice(&self.previous_hash.to_le_bytes());
        block[80..88].copy_from_slice(&self.salt.to_le_bytes());
        block[88..96].copy_from_slice(&self.named_end.get().to_le_bytes());
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
        if version != FORMAT_VERSION {
            return Err(SegmentHeaderError::Version(version));
        }
        let mut database = [0; 32];
        database.copy_from_slice(&block[16..48]);
        Ok(SegmentHeader {
            database,
            number: u64_at(block, 48),
            first_offset: LogOffset::new(u64_at(block, 56)),
            epoch: Epoch::new(u64_at(block, 64)),
            previous_hash: u64_at(block, 72),
            salt: u64_at(block, 80),
            named_end: FilePosition::new(u64_at(block, 88)),
        })
    }

    /// Over the whole block except the checksum itself.
    fn checksum(block: &[u8]) -> u32 {
        debug_assert!(block.len() >= SEGMENT_HEADER_USED);
        crc32c_append(
            crc32c_append(0, &block[..12]),
            &block[16..SEGMENT_HEADER_BYTES],
        )
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FrameHeader {
    pub payload_checksum: u32,
    pub payload_bytes: u32,
    /// The number of transactions; 0 for a mark that only raises the epoch or closes the log.
    pub count: u32,
    /// Bytes right before this frame that were not synced when it was written. A damaged place before these was on the disk, so it
    /// is no torn tail.
    pub unsynced_bytes: u32,
    pub first_offset: LogOffset,
    pub epoch: Epoch,
    pub previous_hash: u64,
}

impl FrameHeader {
    /// The header's bytes in a segment with `salt`, at `position`, and the frame's hash.
    pub fn encode(&self, salt: u64, position: FilePosition) -> ([u8; FRAME_HEADER_BYTES], u64) {
        let mut bytes = [0; FRAME_HEADER_BYTES];
        bytes[0..4].copy_from_slice(&FRAME_MAGIC);
        bytes[8..12].copy_from_slice(&self.payload_checksum.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.payload_bytes.to_le_bytes());
        bytes[16..20].copy_from_slice(&self.count.to_le_bytes());
        bytes[20..24].copy_from_slice(&self.unsynced_bytes.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.first_offset.get().to_le_bytes());
        bytes[32..40].copy_from_slice(&self.epoch.get().to_le_bytes());
        bytes[40..48].copy_from_slice(&self.previous_hash.to_le_bytes());
        let checksum = Self::checksum(&bytes, salt, position);
        bytes[4..8].copy_from_slice(&checksum.to_le_bytes());
        (bytes, self.hash(checksum))
    }

    /// The header and the frame's hash, if these bytes are a header written at this place.
    pub fn decode(
        bytes: &[u8; FRAME_HEADER_BYTES],
        salt: u64,
        position: FilePosition,
    ) -> Option<(FrameHeader, u64)> {
        let checksum = u32_at(bytes, 4);
        if bytes[0..4] != FRAME_MAGIC || checksum != Self::checksum(bytes, salt, position) {
            return None;
        }
        let header = FrameHeader {
            payload_checksum: u32_at(bytes, 8),
            payload_bytes: u32_at(bytes, 12),
            count: u32_at(bytes, 16),
            unsynced_bytes: u32_at(bytes, 20),
            first_offset: LogOffset::new(u64_at(bytes, 24)),
            epoch: Epoch::new(u64_at(bytes, 32)),
            previous_hash: u64_at(bytes, 40),
        };
        Some((header, header.hash(checksum)))
    }

    /// The header checksum covers the payload checksum and the hash of the frame before, so it stands for this frame and all
    /// before.
    fn hash(&self, header_checksum: u32) -> u64 {
        u64::from(header_checksum) << 32 | u64::from(self.payload_checksum)
    }

    fn checksum(bytes: &[u8; FRAME_HEADER_BYTES], salt: u64, position: FilePosition) -> u32 {
        let mut checksum = crc32c_append(0, &salt.to_le_bytes());
        checksum = crc32c_append(checksum, &position.get().to_le_bytes());
        checksum = crc32c_append(checksum, &bytes[0..4]);
        crc32c_append(checksum, &bytes[8..])
    }

    pub fn frame_bytes(&self) -> u64 {
        FRAME_HEADER_BYTES as u64 + u64::from(self.payload_bytes)
    }

    /// After its last transaction; none in an impossible header.
    pub fn next_offset(&self) -> Option<LogOffset> {
        self.first_offset.checked_add(self.count.into())
    }
}

pub(crate) fn payload_checksum(parts: &[&[u8]]) -> u32 {
    parts
        .iter()
        .fold(0, |checksum, part| crc32c_append(checksum, part))
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
    fn bytes_of_a_frame_header() {
        let header = FrameHeader {
            payload_checksum: payload_checksum(&[b"1234", b"56789"]),
            payload_bytes: 9,
            count: 2,
            unsynced_bytes: 0x64,
            first_offset: LogOffset::new(0x0102_0304_0506_0708),
            epoch: Epoch::new(3),
            previous_hash: 0x1112_1314_1516_1718,
        };
        let (bytes, hash) = header.encode(5, FRAMES_START);
        // The check value of CRC-32C for "123456789" is e3069283.
        let expected = [
            b"LCF1".as_slice(),
            &crc32c_append(
                0,
                &[
                    &5u64.to_le_bytes(),
                    &4096u64.to_le_bytes(),
                    b"LCF1".as_slice(),
                    &bytes[8..],
                ]
                .concat(),
            )
            .to_le_bytes(),
            &[
                0x83, 0x92, 0x06, 0xe3, 9, 0, 0, 0, 2, 0, 0, 0, 0x64, 0, 0, 0,
            ],
            &[8, 7, 6, 5, 4, 3, 2, 1, 3, 0, 0, 0, 0, 0, 0, 0],
            &[0x18, 0x17, 0x16, 0x15, 0x14, 0x13, 0x12, 0x11],
        ]
        .concat();
        assert_eq!(bytes.as_slice(), expected);
        assert_eq!(
            FrameHeader::decode(&bytes, 5, FRAMES_START),
            Some((header, hash))
        );
        assert_eq!(FrameHeader::decode(&bytes, 6, FRAMES_START), None);
        assert_eq!(FrameHeader::decode(&bytes, 5, FRAMES_START + 1), None);
    }

    #[test]
    fn bytes_of_a_segment_header() {
        let header = SegmentHeader {
            database: [7; 32],
            number: 1,
            first_offset: LogOffset::new(2),
            epoch: Epoch::new(3),
            previous_hash: 4,
            salt: 5,
            named_end: FilePosition::new(6),
        };
        let bytes = header.encode();
        assert_eq!(bytes.len(), 4096);
        assert_eq!(bytes[0..12], *b"LCLOGSEG\x01\0\0\0");
        assert_eq!(bytes[16..48], [7; 32]);
        for (field, at) in (1u8..=6).zip((48..).step_by(8)) {
            assert_eq!(bytes[at..at + 8], [field, 0, 0, 0, 0, 0, 0, 0]);
        }
        assert!(bytes[96..].iter().all(|byte| *byte == 0));
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
