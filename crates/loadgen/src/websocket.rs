//! The client side of WebSocket (RFC 6455), for binary messages in single frames.

use std::io::Read;

use crate::incoming::{Incoming, Io, Progress};
use crate::Error;

const OP_CONTINUATION: u8 = 0;
const OP_TEXT: u8 = 1;
const OP_BINARY: u8 = 2;
const OP_CLOSE: u8 = 8;
const OP_PING: u8 = 9;
const OP_PONG: u8 = 10;

/// Longest message accepted from the server.
const MESSAGE_BYTES_MAX: u64 = 1 << 30;

/// The key and the answer to it of RFC 6455, section 1.3. The key only proves that the other end
/// speaks WebSocket, so it need not be random.
pub const HANDSHAKE_KEY: &str = "dGhlIHNhbXBsZSBub25jZQ==";
pub const HANDSHAKE_ACCEPT: &str = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=";

/// Makes masks, others for each seed. Frames of clients are masked with real masks, so that the
/// server has the work it has with any client.
#[derive(Debug)]
struct Masks(u64);

impl Masks {
    fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    #[inline]
    fn next(&mut self) -> [u8; 4] {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        ((self.0 >> 16) as u32).to_le_bytes()
    }
}

#[inline]
fn append(
    out: &mut Vec<u8>,
    opcode: u8,
    masks: &mut Masks,
    payload_bytes: usize,
    write: impl FnOnce(&mut Vec<u8>),
) {
    let mask = masks.next();
    out.push(0x80 | opcode);
    match payload_bytes {
        0..=125 => out.push(0x80 | payload_bytes as u8),
        126..=0xffff => {
            out.push(0x80 | 126);
            out.extend_from_slice(&(payload_bytes as u16).to_be_bytes());
        }
        _ => {
            out.push(0x80 | 127);
            out.extend_from_slice(&(payload_bytes as u64).to_be_bytes());
        }
    }
    out.extend_from_slice(&mask);
    let start = out.len();
    write(out);
    debug_assert_eq!(out.len() - start, payload_bytes, "payload as announced");
    apply_mask(&mut out[start..], mask);
}

fn append_bytes(out: &mut Vec<u8>, opcode: u8, masks: &mut Masks, payload: &[u8]) {
    append(out, opcode, masks, payload.len(), |out| {
        out.extend_from_slice(payload)
    });
}

#[inline]
fn apply_mask(payload: &mut [u8], mask: [u8; 4]) {
    let word = u64::from(u32::from_le_bytes(mask)) * 0x1_0000_0001;
    let mut words = payload.chunks_exact_mut(8);
    for bytes in &mut words {
        let masked = u64::from_le_bytes((&*bytes).try_into().expect("chunks of 8 bytes")) ^ word;
        bytes.copy_from_slice(&masked.to_le_bytes());
    }
    for (byte, key) in words.into_remainder().iter_mut().zip(mask.iter().cycle()) {
        *byte ^= key;
    }
}

#[derive(Debug)]
enum Event<'a> {
    Message(&'a [u8]),
    /// A Ping, to be answered with the same payload.
    Ping(&'a [u8]),
    Close(Option<String>),
}

/// The WebSocket of one connection, which an event loop takes over from a blocking one.
#[derive(Debug)]
pub struct WebSocket {
    incoming: Incoming,
    /// Fragments of an incomplete message.
    message: Option<Vec<u8>>,
    masks: Masks,
}

impl WebSocket {
    /// `number` tells connections apart.
    pub fn new(number: u64) -> Self {
        Self {
            incoming: Incoming::default(),
            message: None,
            masks: Masks::new(number + 1),
        }
    }

    /// Appends a frame with a payload of exactly `payload_bytes`, which `write` appends.
    #[inline]
    pub fn append(
        &mut self,
        out: &mut Vec<u8>,
        payload_bytes: usize,
        write: impl FnOnce(&mut Vec<u8>),
    ) {
        append(out, OP_BINARY, &mut self.masks, payload_bytes, write);
    }

    /// Appends a Close with code 1000.
    pub fn append_close(&mut self, out: &mut Vec<u8>) {
        append_bytes(out, OP_CLOSE, &mut self.masks, &1000u16.to_be_bytes());
    }

    /// Reads once and hands over every complete message. Pings are answered in `out`.
    pub fn read(
        &mut self,
        io: Io<'_>,
        mut on_message: impl FnMut(&[u8]) -> Result<(), Error>,
    ) -> Result<Progress, Error> {
        let (incoming, masks) = (&mut self.incoming, &mut self.masks);
        read_events(incoming, &mut self.message, io.stream, io.buffer, |event| {
            match event {
                Event::Message(payload) => on_message(payload)?,
                Event::Ping(payload) => append_bytes(io.out, OP_PONG, masks, payload),
                Event::Close(how) => return Err(Error::Closed(how)),
            }
            Ok(())
        })
    }
}

struct Frame {
    fin: bool,
    opcode: u8,
    payload_start: usize,
    end: usize,
}

/// Reads once and hands over every complete event.
fn read_events(
    incoming: &mut Incoming,
    message: &mut Option<Vec<u8>>,
    stream: &mut dyn Read,
    buffer: &mut Vec<u8>,
    on_event: impl FnMut(Event<'_>) -> Result<(), Error>,
) -> Result<Progress, Error> {
    let frame = parse_head(incoming.partial())?;
    let frame_bytes = frame.map_or(0, |frame| frame.end);
    incoming.read(stream, buffer, frame_bytes, |bytes| {
        take(message, bytes, on_event)
    })
}

/// Hands over the complete events in `bytes` and returns how many bytes they took. `message` keeps the
/// fragments so far of an incomplete message.
fn take(
    message: &mut Option<Vec<u8>>,
    bytes: &[u8],
    mut on_event: impl FnMut(Event<'_>) -> Result<(), Error>,
) -> Result<usize, Error> {
    let mut used = 0;
    while let Some(frame) = parse_head(&bytes[used..])? {
        if frame.end > bytes.len() - used {
            break;
        }
        let payload = &bytes[used + frame.payload_start..used + frame.end];
        used += frame.end;
        match (frame.opcode, frame.fin) {
            (OP_BINARY, true) if message.is_none() => on_event(Event::Message(payload))?,
            (OP_BINARY, false) if message.is_none() => *message = Some(payload.to_vec()),
            (OP_CONTINUATION, fin) => {
                let Some(mut joined) = message.take() else {
                    return Err(protocol("a continuation frame without a message"));
                };
                if (joined.len() + payload.len()) as u64 > MESSAGE_BYTES_MAX {
                    return Err(protocol("a message of more than 1 GiB"));
                }
                joined.extend_from_slice(payload);
                match fin {
                    true => on_event(Event::Message(&joined))?,
                    false => *message = Some(joined),
                }
            }
            (OP_PING, true) => on_event(Event::Ping(payload))?,
            (OP_PONG, true) => {}
            (OP_CLOSE, true) => on_event(Event::Close(close_text(payload)))?,
            (OP_TEXT, _) => return Err(protocol("a text message")),
            (OP_BINARY, _) => return Err(protocol("a new message inside a message")),
            _ => return Err(protocol("a frame with an unknown or fragmented opcode")),
        }
    }
    Ok(used)
}

fn protocol(what: &str) -> Error {
    Error::Protocol(format!("it sent {what}"))
}

fn close_text(payload: &[u8]) -> Option<String> {
    let (code, reason) = payload.split_first_chunk::<2>()?;
    let code = u16::from_be_bytes(*code);
    let reason = String::from_utf8_lossy(reason);
    Some(format!("{code} {reason}").trim_end().to_owned())
}

/// The frame that starts here, if enough of it is here to tell its size.
fn parse_head(bytes: &[u8]) -> Result<Option<Frame>, Error> {
    let &[first, second, ref rest @ ..] = bytes else {
        return Ok(None);
    };
    if first & 0x70 != 0 {
        return Err(protocol("a frame with reserved bits"));
    }
    if second & 0x80 != 0 {
        return Err(protocol("a masked frame"));
    }
    let short = || Some(u16::from_be_bytes(*rest.first_chunk()?).into());
    let long = || Some(u64::from_be_bytes(*rest.first_chunk()?));
    let (payload_start, payload_bytes) = match second {
        126 => (4, short()),
        127 => (10, long()),
        length => (2, Some(length.into())),
    };
    match payload_bytes {
        Some(bytes) if bytes > MESSAGE_BYTES_MAX => Err(protocol("a frame of more than 1 GiB")),
        payload_bytes => Ok(payload_bytes.map(|payload_bytes| Frame {
            fin: first & 0x80 != 0,
            opcode: first & 0x0f,
            payload_start,
            end: payload_start + payload_bytes as usize,
        })),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Delivers its bytes in pieces of a given size.
    struct Pieces<'a>(&'a [u8], usize);

    impl Read for Pieces<'_> {
        fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
            let size = self.1.min(self.0.len()).min(out.len());
            out[..size].copy_from_slice(&self.0[..size]);
            self.0 = &self.0[size..];
            Ok(size)
        }
    }

    fn server_frame(fin: bool, opcode: u8, payload: &[u8]) -> Vec<u8> {
        let mut frame = vec![if fin { 0x80 } else { 0 } | opcode];
        match payload.len() {
            length @ 0..=125 => frame.push(length as u8),
            length @ 126..=0xffff => {
                frame.push(126);
                frame.extend((length as u16).to_be_bytes());
            }
            length => {
                frame.push(127);
                frame.extend((length as u64).to_be_bytes());
            }
        }
        frame.extend(payload);
        frame
    }

    fn read_all(bytes: &[u8], piece_bytes: usize) -> Result<Vec<String>, Error> {
        let (mut incoming, mut message) = (Incoming::default(), None);
        let (mut buffer, mut events) = (vec![], vec![]);
        let mut stream = Pieces(bytes, piece_bytes);
        loop {
            let (incoming, message) = (&mut incoming, &mut message);
            let progress = read_events(incoming, message, &mut stream, &mut buffer, |event| {
                events.push(match event {
                    Event::Message(payload) => format!("{}:{:?}", payload.len(), payload.first()),
                    other => format!("{other:?}"),
                });
                Ok(())
            })?;
            if progress == Progress::End {
                return Ok(events);
            }
        }
    }

    #[test]
    fn messages_in_any_pieces() {
        let stream = [
            server_frame(true, OP_BINARY, &[7; 3]),
            server_frame(true, OP_PING, b"hi"),
            server_frame(false, OP_BINARY, &[1; 200]),
            server_frame(true, OP_PONG, b""),
            server_frame(false, OP_CONTINUATION, &[2; 70_000]),
            server_frame(true, OP_CONTINUATION, &[3]),
            server_frame(true, OP_CLOSE, b"\x03\xf3gone"),
        ]
        .concat();
        for piece_bytes in [1, 2, 3, 7, 4096, 1 << 20] {
            assert_eq!(
                read_all(&stream, piece_bytes).unwrap(),
                [
                    "3:Some(7)",
                    "Ping([104, 105])",
                    "70201:Some(1)",
                    "Close(Some(\"1011 gone\"))"
                ]
            );
        }
    }

    #[test]
    fn broken_streams_are_refused() {
        for (stream, text) in [
            (vec![0x82, 0x80, 0, 0, 0, 0], "a masked frame"),
            (vec![0xc2, 0], "reserved bits"),
            (vec![0x81, 0], "a text message"),
            (vec![0x80, 0], "a continuation frame without a message"),
            (vec![0x02, 0, 0x82, 0], "a new message inside a message"),
            (vec![0x83, 0], "unknown or fragmented opcode"),
            (vec![0x09, 0], "unknown or fragmented opcode"),
            (
                vec![0x82, 127, 255, 255, 255, 255, 0, 0, 0, 0],
                "more than 1 GiB",
            ),
        ] {
            let error = read_all(&stream, 1).unwrap_err().to_string();
            assert!(error.contains(text), "{error}");
        }
    }

    #[test]
    fn frames_are_masked() {
        for length in [0usize, 1, 7, 8, 38, 125, 126, 1520, 65_535, 65_536] {
            let payload: Vec<u8> = (0..length).map(|n| n as u8).collect();
            let mut out = vec![];
            WebSocket::new(0).append(&mut out, length, |out| out.extend_from_slice(&payload));
            let header = match length {
                0..=125 => 2,
                126..=65_535 => 4,
                _ => 10,
            };
            assert_eq!(out.len(), header + 4 + length);
            assert_eq!(out[1] & 0x80, 0x80);
            let mask: [u8; 4] = out[header..header + 4].try_into().unwrap();
            assert_ne!(mask, [0; 4]);
            let unmasked: Vec<u8> = out[header + 4..]
                .iter()
                .zip(mask.iter().cycle())
                .map(|(byte, key)| byte ^ key)
                .collect();
            assert_eq!(unmasked, payload);
        }
    }
}
