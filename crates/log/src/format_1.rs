//! Frames as servers wrote them until November 27, 2026. They are read, and written no more.

use lightcone_storage::{u32_at, u64_at, FilePosition, LogOffset};

use crate::chain::{Epoch, LogHash};
use crate::format::{frame_checksum, Checks1, FrameHeader};

pub(crate) const FRAME_HEADER_BYTES: usize = 48;
const FRAME_MAGIC: [u8; 4] = *b"LCF1";

/// The hash of a frame is of 64 bits, and is taken for one of 128.
pub(crate) fn decode(bytes: &[u8], salt: u64, position: FilePosition) -> Option<FrameHeader> {
    let checksum = u32_at(bytes, 4);
    if bytes[0..4] != FRAME_MAGIC || checksum != frame_checksum(bytes, salt, position) {
        return None;
    }
    let payload_checksum = u32_at(bytes, 8);
    Some(FrameHeader {
        payload_bytes: u32_at(bytes, 12),
        count: u32_at(bytes, 16),
        unsynced_bytes: u32_at(bytes, 20),
        first_offset: LogOffset::new(u64_at(bytes, 24)),
        epoch: Epoch::new(u64_at(bytes, 32)),
        hash: LogHash::new(u128::from(checksum) << 32 | u128::from(payload_checksum)),
        checks_1: Some(Checks1 {
            payload_checksum,
            previous_hash: u64_at(bytes, 40),
        }),
    })
}
