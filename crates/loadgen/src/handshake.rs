//! Opening a WebSocket (RFC 6455, section 4).

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use crate::address::Address;
use crate::websocket::{HANDSHAKE_ACCEPT, HANDSHAKE_KEY};
use crate::Error;

const HEAD_BYTES_MAX: usize = 64 * 1024;
const REFUSAL_BYTES_MAX: usize = 4096;
const REFUSAL_WAIT: Duration = Duration::from_millis(500);

/// The request.
#[derive(Clone, Copy, Debug)]
pub struct Handshake<'a> {
    pub address: &'a Address,
    /// Without the prefix of the address.
    pub path: &'a str,
    pub protocol: Option<&'a str>,
    pub token: Option<&'a str>,
    /// For errors.
    pub what: &'a str,
}

impl Handshake<'_> {
    fn request(&self) -> String {
        let (Address { host, prefix }, path) = (self.address, self.path);
        let protocol = self
            .protocol
            .map(|name| format!("Sec-WebSocket-Protocol: {name}\r\n"));
        let token = self
            .token
            .map(|token| format!("Authorization: Bearer {token}\r\n"));
        format!(
            "GET {prefix}{path} HTTP/1.1\r\nHost: {host}\r\nConnection: Upgrade\r\n\
             Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
             Sec-WebSocket-Key: {HANDSHAKE_KEY}\r\n{}{}\r\n",
            protocol.unwrap_or_default(),
            token.unwrap_or_default(),
        )
    }

    /// Sends the request, and returns the bytes behind the answer: the first frames.
    pub fn shake(&self, stream: &mut TcpStream) -> Result<Vec<u8>, Error> {
        stream
            .write_all(self.request().as_bytes())
            .map_err(Error::io("sending the handshake"))?;
        let mut head = Vec::new();
        let head_end = loop {
            if let Some(at) = head.windows(4).position(|bytes| bytes == b"\r\n\r\n") {
                break at;
            }
            if head.len() > HEAD_BYTES_MAX {
                return Err(Error::Protocol("the handshake answer does not end".into()));
            }
            if read_some(stream, &mut head)? == 0 {
                return Err(Error::Closed(Some("during the handshake".into())));
            }
        };
        let rest = head.split_off(head_end + 4);
        let text = String::from_utf8_lossy(&head[..head_end]).into_owned();
        let status = text.split("\r\n").next().unwrap_or_default();
        let header = |name: &str| {
            text.split("\r\n").skip(1).find_map(|line| {
                let (key, value) = line.split_once(':')?;
                key.eq_ignore_ascii_case(name).then(|| value.trim())
            })
        };
        if status.split(' ').nth(1) != Some("101") {
            let body_bytes = header("content-length").and_then(|length| length.parse().ok());
            let status = status.split_once(' ').map_or(status, |(_, rest)| rest);
            return Err(Error::Refused {
                status: status.to_owned(),
                body: read_body(stream, rest, body_bytes),
                what: self.what.to_owned(),
            });
        }
        let why = match self.protocol {
            _ if header("sec-websocket-accept") != Some(HANDSHAKE_ACCEPT) => {
                "the handshake answer has a wrong key".to_owned()
            }
            Some(protocol) if header("sec-websocket-protocol") != Some(protocol) => {
                format!("sub-protocol {protocol} was not accepted")
            }
            _ => return Ok(rest),
        };
        Err(Error::Protocol(why))
    }
}

fn read_some(stream: &mut TcpStream, into: &mut Vec<u8>) -> Result<usize, Error> {
    let mut chunk = [0; 4096];
    let read = stream
        .read(&mut chunk)
        .map_err(Error::io("waiting for the handshake answer"))?;
    into.extend_from_slice(&chunk[..read]);
    Ok(read)
}

/// The body of an error answer, as far as it arrives.
fn read_body(stream: &mut TcpStream, mut body: Vec<u8>, body_bytes: Option<usize>) -> String {
    let wanted = body_bytes
        .unwrap_or(REFUSAL_BYTES_MAX)
        .min(REFUSAL_BYTES_MAX);
    // The connection is not used any more, so a timeout that cannot be set does no harm.
    let _ = stream.set_read_timeout(Some(REFUSAL_WAIT));
    while body.len() < wanted && matches!(read_some(stream, &mut body), Ok(1..)) {}
    String::from_utf8_lossy(&body).trim().to_owned()
}
