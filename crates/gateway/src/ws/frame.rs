//! WebSocket frames of the server's side (RFC 6455): a reader that takes messages out of the bytes as they arrive,
//! and functions that append frames to a buffer.
//!
//! The reader works in the receive buffer: a message in one frame is unmasked in place and handed on without a copy.

use bytes::{Buf as _, Bytes, BytesMut};

/// Longest payload of a control frame.
const CONTROL_BYTES_MAX: usize = 125;

pub(super) const CONTINUATION: u8 = 0;
pub(super) const TEXT: u8 = 1;
pub(super) const BINARY: u8 = 2;
const CLOSE: u8 = 8;
pub(super) const PING: u8 = 9;
pub(super) const PONG: u8 = 10;

/// What a client sent.
#[derive(Debug, PartialEq, Eq)]
pub enum Event {
    Binary(Bytes),
    /// A text message; it was valid UTF-8.
    Text,
    Ping(Bytes),
    Pong,
    /// The payload of the Close: empty, or a code and a reason.
    Close(Bytes),
}

/// A violation of RFC 6455 or of the size limit. The connection is dropped without a Close (05 §3.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    #[error("reserved bits are set")]
    ReservedBits,
    #[error("reserved opcode")]
    Opcode,
    #[error("unmasked frame")]
    Unmasked,
    #[error("control frame that is fragmented or too long")]
    Control,
    #[error("continuation without a start, or start inside a message")]
    Fragmentation,
    #[error("message is too long")]
    TooLong,
    #[error("text is not UTF-8")]
    Utf8,
    #[error("malformed close frame")]
    Close,
}

/// Cuts received bytes into messages.
#[derive(Debug)]
pub struct FrameReader {
    buffer: BytesMut,
    message_bytes_max: usize,
    /// The opcode and the bytes so far of a fragmented message.
    partial: Option<(u8, BytesMut)>,
}

struct Header {
    fin: bool,
    opcode: u8,
    mask: [u8; 4],
    header_bytes: usize,
    payload_bytes: usize,
}

impl FrameReader {
    pub fn new(received: &[u8], message_bytes_max: usize) -> FrameReader {
        FrameReader {
            buffer: BytesMut::from(received),
            message_bytes_max,
            partial: None,
        }
    }

    /// Where received bytes are to be appended.
    pub fn buffer(&mut self) -> &mut BytesMut {
        &mut self.buffer
    }

    /// Bytes of messages that are not complete yet.
    pub fn pending_bytes(&self) -> usize {
        self.buffer.len() + self.partial_bytes()
    }

    fn partial_bytes(&self) -> usize {
        self.partial.as_ref().map_or(0, |(_, data)| data.len())
    }

    /// The next complete message or control frame, or `None` until more bytes are there.
    pub fn next_event(&mut self) -> Result<Option<Event>, FrameError> {
        loop {
            let Some(header) = self.header()? else {
                return Ok(None);
            };
            if self.buffer.len() - header.header_bytes < header.payload_bytes {
                return Ok(None);
            }
            self.buffer.advance(header.header_bytes);
            let mut payload = self.buffer.split_to(header.payload_bytes);
            unmask(&mut payload, header.mask);
            if header.opcode >= CLOSE {
                return control(header.opcode, payload).map(Some);
            }
            let (opcode, data) = match self.partial.take() {
                None => (header.opcode, payload),
                Some((opcode, mut data)) => {
                    data.extend_from_slice(&payload);
                    (opcode, data)
                }
            };
            if !header.fin {
                self.partial = Some((opcode, data));
                continue;
            }
            return match opcode {
                TEXT if std::str::from_utf8(&data).is_err() => Err(FrameError::Utf8),
                TEXT => Ok(Some(Event::Text)),
                _ => Ok(Some(Event::Binary(data.freeze()))),
            };
        }
    }

    /// Reads and checks the header of the next frame; everything that can be refused is refused here, before its
    /// payload has arrived.
    fn header(&self) -> Result<Option<Header>, FrameError> {
        let [first, second, ..] = self.buffer[..] else {
            return Ok(None);
        };
        let (fin, opcode) = (first & 0x80 != 0, first & 0x0f);
        if first & 0x70 != 0 {
            return Err(FrameError::ReservedBits);
        }
        if second & 0x80 == 0 {
            return Err(FrameError::Unmasked);
        }
        let rest = &self.buffer[2..];
        let short = usize::from(second & 0x7f);
        let (length_bytes, payload_bytes) = match short {
            126 => match rest.first_chunk::<2>() {
                Some(bytes) => (2, usize::from(u16::from_be_bytes(*bytes))),
                None => return Ok(None),
            },
            127 => match rest.first_chunk::<8>() {
                Some(bytes) => {
                    let length = u64::from_be_bytes(*bytes);
                    (8, usize::try_from(length).map_err(|_| FrameError::TooLong)?)
                }
                None => return Ok(None),
            },
            short => (0, short),
        };
        match opcode {
            CLOSE | PING | PONG => {
                if !fin || payload_bytes > CONTROL_BYTES_MAX {
                    return Err(FrameError::Control);
                }
            }
            CONTINUATION | TEXT | BINARY => {
                if (opcode == CONTINUATION) != self.partial.is_some() {
                    return Err(FrameError::Fragmentation);
                }
                let left = self.message_bytes_max.saturating_sub(self.partial_bytes());
                if payload_bytes > left {
                    return Err(FrameError::TooLong);
                }
            }
            _ => return Err(FrameError::Opcode),
        }
        let Some(mask) = rest[length_bytes..].first_chunk::<4>() else {
            return Ok(None);
        };
        Ok(Some(Header {
            fin,
            opcode,
            mask: *mask,
            header_bytes: 2 + length_bytes + 4,
            payload_bytes,
        }))
    }
}

fn control(opcode: u8, payload: BytesMut) -> Result<Event, FrameError> {
    match opcode {
        PING => Ok(Event::Ping(payload.freeze())),
        PONG => Ok(Event::Pong),
        _ => {
            let is_valid = match payload.split_first_chunk::<2>() {
                None => payload.is_empty(),
                Some((code, reason)) => {
                    let code = u16::from_be_bytes(*code);
                    matches!(code, 1000..=1003 | 1007..=1014 | 3000..=4999)
                        && std::str::from_utf8(reason).is_ok()
                }
            };
            match is_valid {
                true => Ok(Event::Close(payload.freeze())),
                false => Err(FrameError::Close),
            }
        }
    }
}

/// Eight bytes at a time; the compiler widens it further.
fn unmask(payload: &mut [u8], mask: [u8; 4]) {
    let narrow = u64::from(u32::from_ne_bytes(mask));
    let wide = narrow << 32 | narrow;
    let (words, tail) = payload.as_chunks_mut::<8>();
    for word in words {
        *word = (u64::from_ne_bytes(*word) ^ wide).to_ne_bytes();
    }
    for (byte, key) in tail.iter_mut().zip(mask.iter().cycle()) {
        *byte ^= key;
    }
}

/// Appends the header of an unmasked frame.
pub(super) fn put_header(out: &mut Vec<u8>, fin: bool, opcode: u8, payload_bytes: usize) {
    out.push(if fin { 0x80 | opcode } else { opcode });
    if payload_bytes < 126 {
        out.push(payload_bytes as u8);
    } else if let Ok(short) = u16::try_from(payload_bytes) {
        out.push(126);
        out.extend_from_slice(&short.to_be_bytes());
    } else {
        out.push(127);
        out.extend_from_slice(&(payload_bytes as u64).to_be_bytes());
    }
}

/// Appends a control frame.
pub(super) fn put_control(out: &mut Vec<u8>, opcode: u8, payload: &[u8]) {
    let payload = &payload[..payload.len().min(CONTROL_BYTES_MAX)];
    put_header(out, true, opcode, payload.len());
    out.extend_from_slice(payload);
}

/// Appends a Close frame; the reason is shortened to what fits.
pub(super) fn put_close(out: &mut Vec<u8>, payload: &ClosePayload) {
    match payload {
        ClosePayload::Echo(bytes) => put_control(out, CLOSE, bytes),
        ClosePayload::Reason(code, reason) => {
            let reason = lightcone_wire::payload::close_reason(reason);
            let payload = [code.to_be_bytes().as_slice(), reason.as_bytes()].concat();
            put_control(out, CLOSE, &payload);
        }
    }
}

/// What a Close frame says.
#[derive(Clone, Debug)]
pub(super) enum ClosePayload {
    Echo(Bytes),
    Reason(u16, String),
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn client_frame(fin: bool, opcode: u8, mask: [u8; 4], payload: &[u8]) -> Vec<u8> {
        let mut frame = Vec::new();
        put_header(&mut frame, fin, opcode, payload.len());
        frame[1] |= 0x80;
        frame.extend_from_slice(&mask);
        frame.extend(
            payload
                .iter()
                .zip(mask.iter().cycle())
                .map(|(byte, key)| byte ^ key),
        );
        frame
    }

    fn read_all(
        bytes: &[u8],
        step: usize,
        message_bytes_max: usize,
    ) -> Result<Vec<Event>, FrameError> {
        let mut reader = FrameReader::new(&[], message_bytes_max);
        let mut events = Vec::new();
        for chunk in bytes.chunks(step.max(1)) {
            reader.buffer().extend_from_slice(chunk);
            while let Some(event) = reader.next_event()? {
                events.push(event);
            }
        }
        Ok(events)
    }

    const MASK: [u8; 4] = [1, 2, 3, 4];

    /// RFC 6455 §5.7.
    #[test]
    fn examples_of_the_standard() {
        let hello = [
            0x81, 0x85, 0x37, 0xfa, 0x21, 0x3d, 0x7f, 0x9f, 0x4d, 0x51, 0x58,
        ];
        assert_eq!(read_all(&hello, 1, 100), Ok(vec![Event::Text]));
        let ping = [
            0x89, 0x85, 0x37, 0xfa, 0x21, 0x3d, 0x7f, 0x9f, 0x4d, 0x51, 0x58,
        ];
        assert_eq!(
            read_all(&ping, 100, 100),
            Ok(vec![Event::Ping(Bytes::from_static(b"Hello"))])
        );
        let mut out = Vec::new();
        put_header(&mut out, true, BINARY, 256);
        assert_eq!(out, [0x82, 0x7e, 0x01, 0x00]);
        out.clear();
        put_header(&mut out, true, BINARY, 65536);
        assert_eq!(out, [0x82, 0x7f, 0, 0, 0, 0, 0, 1, 0, 0]);
    }

    #[test]
    fn violations() {
        let cases: [(Vec<u8>, FrameError); 12] = [
            (vec![0x82, 0x01, 0x00], FrameError::Unmasked),
            (vec![0xc2, 0x80], FrameError::ReservedBits),
            (client_frame(true, 3, MASK, b""), FrameError::Opcode),
            (client_frame(true, 11, MASK, b""), FrameError::Opcode),
            (client_frame(false, PING, MASK, b""), FrameError::Control),
            (
                client_frame(true, PING, MASK, &[0; 126]),
                FrameError::Control,
            ),
            (
                client_frame(true, CONTINUATION, MASK, b""),
                FrameError::Fragmentation,
            ),
            (
                [
                    client_frame(false, BINARY, MASK, b"a"),
                    client_frame(true, BINARY, MASK, b"b"),
                ]
                .concat(),
                FrameError::Fragmentation,
            ),
            (
                client_frame(true, BINARY, MASK, &[0; 101]),
                FrameError::TooLong,
            ),
            (
                [
                    client_frame(false, BINARY, MASK, &[0; 60]),
                    client_frame(true, 0, MASK, &[0; 41]),
                ]
                .concat(),
                FrameError::TooLong,
            ),
            (client_frame(true, TEXT, MASK, &[0xff]), FrameError::Utf8),
            (client_frame(true, CLOSE, MASK, &[3]), FrameError::Close),
        ];
        for (bytes, error) in cases {
            assert_eq!(read_all(&bytes, 7, 100), Err(error), "{bytes:?}");
        }
        // A huge announced length is refused from the header alone.
        let mut huge = vec![0x82, 0xff];
        huge.extend_from_slice(&u64::MAX.to_be_bytes());
        assert_eq!(read_all(&huge, 100, 100), Err(FrameError::TooLong));
    }

    #[test]
    fn close_payloads_fit() {
        let mut out = Vec::new();
        put_close(&mut out, &ClosePayload::Reason(1011, "é".repeat(200)));
        assert!(out.len() <= 2 + CONTROL_BYTES_MAX);
        assert_eq!(&out[2..4], &1011u16.to_be_bytes());
        assert!(std::str::from_utf8(&out[4..]).is_ok());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// Messages come out whole and in order, whatever the fragments and the reads.
        #[test]
        fn fragments_and_reads_do_not_matter(
            messages in prop::collection::vec((prop::collection::vec(any::<u8>(), 0..300), 1usize..100), 1..6),
            mask in any::<[u8; 4]>(),
            step in 1usize..200,
            ping in any::<bool>(),
        ) {
            let (mut bytes, mut expected) = (Vec::new(), Vec::new());
            for (message, fragment) in &messages {
                let parts: Vec<&[u8]> =
                    if message.is_empty() { vec![&[]] } else { message.chunks(*fragment).collect() };
                for (index, part) in parts.iter().enumerate() {
                    let opcode = if index == 0 { BINARY } else { CONTINUATION };
                    bytes.extend(client_frame(index + 1 == parts.len(), opcode, mask, part));
                    if ping {
                        bytes.extend(client_frame(true, PING, mask, b"p"));
                        if index + 1 < parts.len() {
                            expected.push(Event::Ping(Bytes::from_static(b"p")));
                        }
                    }
                }
                expected.push(Event::Binary(Bytes::copy_from_slice(message)));
                if ping {
                    expected.push(Event::Ping(Bytes::from_static(b"p")));
                }
            }
            prop_assert_eq!(read_all(&bytes, step, 1000), Ok(expected));
        }

        #[test]
        fn any_bytes_are_answered(bytes in prop::collection::vec(any::<u8>(), 0..200), step in 1usize..50) {
            let _ = read_all(&bytes, step, 64);
        }
    }
}
