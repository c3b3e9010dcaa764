//! From messages to WebSocket payloads and back (spec 05 §3).
//!
//! ```text
//! client to server   version 2: message                    version 3: message message …
//! server to client   version 2: tag body(message)          version 3: tag body(message message …)
//! ```
//!
//! `tag` is one byte that says how the body is compressed. Client payloads have neither.

use std::borrow::Cow;
use std::ops::Range;

use lightcone_types::Reader;

use crate::compress::Compression;
use crate::error::Error;
use crate::message::ServerMessage;

pub use crate::compress::COMPRESS_ABOVE_BYTES;
pub use crate::protocol::Protocol;

/// Messages share a payload up to this size of the uncompressed body.
pub const COALESCED_BODY_BYTES_MAX: usize = 512 * 1024;

/// The longest reason that fits into a Close frame.
pub const CLOSE_REASON_BYTES_MAX: usize = 123;

/// Cuts a queue of encoded server messages into the bodies of payloads. Message *i* ends at
/// `ends[i]` of the queue's buffer and starts where the one before ends. Version 2: every message
/// alone. Version 3: as many as fit into [`COALESCED_BODY_BYTES_MAX`]; a larger one alone.
pub fn body_ranges(protocol: Protocol, ends: &[usize]) -> BodyRanges<'_> {
    BodyRanges {
        protocol,
        ends,
        start: 0,
    }
}

#[derive(Clone, Debug)]
pub struct BodyRanges<'a> {
    protocol: Protocol,
    ends: &'a [usize],
    start: usize,
}

impl Iterator for BodyRanges<'_> {
    type Item = Range<usize>;

    #[inline]
    fn next(&mut self) -> Option<Range<usize>> {
        let taken = match (self.protocol, self.ends.len()) {
            (_, 0) => return None,
            (Protocol::V2, _) => 1,
            (Protocol::V3, count) => {
                let limit = self.start + COALESCED_BODY_BYTES_MAX;
                if self.ends[count - 1] <= limit {
                    count
                } else {
                    self.ends.partition_point(|&end| end <= limit).max(1)
                }
            }
        };
        let range = self.start..self.ends[taken - 1];
        self.start = range.end;
        self.ends = &self.ends[taken..];
        Some(range)
    }
}

/// Appends the payload of a body: the tag and the body, compressed with `compression`.
/// [`CompressionPolicy::choose`](crate::CompressionPolicy::choose) says which.
#[inline]
pub fn encode_payload(out: &mut Vec<u8>, body: &[u8], compression: Compression) {
    out.push(compression.tag());
    compression.compress(body, out);
}

/// The body of a server payload, decompressed into at most `limit_bytes`.
pub fn decode_body(payload: &[u8], limit_bytes: usize) -> Result<Cow<'_, [u8]>, Error> {
    let (&tag, data) = payload.split_first().ok_or(Error::EmptyServerPayload)?;
    match Compression::from_tag(tag)? {
        Compression::None if data.len() > limit_bytes => Err(Error::BodyTooLarge { limit_bytes }),
        Compression::None => Ok(Cow::Borrowed(data)),
        compression => compression.decompress(data, limit_bytes).map(Cow::Owned),
    }
}

/// All messages of the body of a server payload. Version 2: one, bytes behind it are ignored.
pub fn decode_messages(protocol: Protocol, body: &[u8]) -> Result<Vec<ServerMessage>, Error> {
    if body.is_empty() {
        return Err(Error::EmptyServerPayload);
    }
    let mut reader = Reader::new(body);
    let mut messages = vec![ServerMessage::decode(&mut reader)?];
    while protocol == Protocol::V3 && !reader.is_empty() {
        messages.push(ServerMessage::decode(&mut reader)?);
    }
    Ok(messages)
}

/// The part of a reason that fits into a Close frame, cut between characters. The reference server
/// sends longer ones, which clients report as a protocol error.
pub fn close_reason(reason: &str) -> &str {
    &reason[..reason.floor_char_boundary(CLOSE_REASON_BYTES_MAX)]
}
