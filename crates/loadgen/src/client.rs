//! A blocking connection: opening, and the requests before and after a run.

use std::collections::VecDeque;
use std::io::{Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

use lightcone_types::Encode;
use lightcone_wire::{payload, ClientMessage, Protocol, ServerMessage};

use crate::load::Parts;
use crate::websocket::{
    append_binary, append_close, append_pong, Event, FrameReader, Masks, Progress,
    HANDSHAKE_ACCEPT, HANDSHAKE_KEY,
};
use crate::Error;

const CONNECT_SECONDS_MAX: u64 = 5;
const ANSWER_SECONDS_MAX: u64 = 60;
const RESPONSE_HEAD_BYTES_MAX: usize = 64 * 1024;
/// Longest payload accepted: initial rows of a whole table come in one.
const BODY_BYTES_MAX: usize = 1 << 30;

/// Where and how to connect.
#[derive(Clone, Debug)]
pub struct Endpoint {
    /// `host:port`.
    pub address: String,
    /// Path in front of `/v1`, without trailing slash.
    prefix: String,
    /// Name or identity.
    pub database: String,
    /// Version to ask for.
    pub protocol: Protocol,
    /// Answers only after the transaction is durable.
    pub confirmed: bool,
    /// Token to present.
    pub token: Option<String>,
}

impl Endpoint {
    /// From a URL `ws://host[:port][/prefix]`; `http://` means the same.
    pub fn new(
        url: &str,
        database: &str,
        protocol: Protocol,
        confirmed: bool,
        token: Option<&str>,
    ) -> Result<Self, Error> {
        let refuse = |why: &str| {
            Err(Error::Options(format!(
                "--url {url} {why}; write ws://host:port"
            )))
        };
        let rest = match url.split_once("://") {
            Some(("ws" | "http", rest)) => rest,
            Some(("wss" | "https", _)) => return refuse("asks for TLS, which is not supported"),
            _ => return refuse("is not a WebSocket URL"),
        };
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        let text_is_plain = |text: &str| text.bytes().all(|byte| byte.is_ascii_graphic());
        if authority.is_empty() || !text_is_plain(rest) || path.contains(['?', '#']) {
            return refuse("has an unusable host or path");
        }
        let has_port = authority
            .rsplit_once(':')
            .is_some_and(|(_, port)| port.parse::<u16>().is_ok());
        if database.is_empty() || !text_is_plain(database) || database.contains(['/', '?', '#']) {
            return Err(Error::Options(format!(
                "--database {database:?} is not a database name or identity"
            )));
        }
        if !token.is_none_or(text_is_plain) {
            return Err(Error::Options("--token is not a token".into()));
        }
        Ok(Self {
            address: if has_port {
                authority.to_owned()
            } else {
                format!("{authority}:80")
            },
            prefix: match path.trim_end_matches('/') {
                "" => String::new(),
                path => format!("/{path}"),
            },
            database: database.to_owned(),
            protocol,
            confirmed,
            token: token.map(str::to_owned),
        })
    }

    fn request(&self) -> String {
        let authorization = match &self.token {
            Some(token) => format!("Authorization: Bearer {token}\r\n"),
            None => String::new(),
        };
        format!(
            "GET {}/v1/database/{}/subscribe?compression=None&confirmed={} HTTP/1.1\r\n\
             Host: {}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
             Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {HANDSHAKE_KEY}\r\n\
             Sec-WebSocket-Protocol: {}\r\n{authorization}\r\n",
            self.prefix,
            self.database,
            self.confirmed,
            self.address,
            self.protocol.token()
        )
    }
}

/// A connection whose calls wait.
#[derive(Debug)]
pub struct Client {
    stream: TcpStream,
    frames: FrameReader,
    buffer: Vec<u8>,
    out: Vec<u8>,
    masks: Masks,
    protocol: Protocol,
    received: VecDeque<ServerMessage>,
    next_request_id: u32,
}

impl Client {
    /// Connects and waits for `InitialConnection`. `number` tells connections apart.
    pub fn open(endpoint: &Endpoint, number: u64) -> Result<Self, Error> {
        let stream = connect(&endpoint.address)?;
        let mut client = Self {
            stream,
            frames: FrameReader::default(),
            buffer: Vec::new(),
            out: Vec::new(),
            masks: Masks::new(number + 1),
            protocol: endpoint.protocol,
            received: VecDeque::new(),
            next_request_id: 0,
        };
        client.handshake(endpoint)?;
        match client.receive() {
            Ok(ServerMessage::InitialConnection { .. }) => Ok(client),
            Ok(_) => Err(Error::Protocol(
                "the first message is not InitialConnection".into(),
            )),
            Err(Error::Closed(None)) => Err(Error::Closed(Some(
                "before its first message; the module may have rejected the client".into(),
            ))),
            Err(error) => Err(error),
        }
    }

    fn handshake(&mut self, endpoint: &Endpoint) -> Result<(), Error> {
        self.stream
            .write_all(endpoint.request().as_bytes())
            .map_err(Error::io("sending the handshake"))?;
        let mut head = Vec::new();
        let head_end = loop {
            if let Some(at) = head.windows(4).position(|bytes| bytes == b"\r\n\r\n") {
                break at;
            }
            if head.len() > RESPONSE_HEAD_BYTES_MAX {
                return Err(Error::Protocol("the handshake answer does not end".into()));
            }
            if self.read_some(&mut head)? == 0 {
                return Err(Error::Closed(Some("during the handshake".into())));
            }
        };
        let text = String::from_utf8_lossy(&head[..head_end]).into_owned();
        let rest = head.split_off(head_end + 4);
        let mut lines = text.split("\r\n");
        let status = lines.next().unwrap_or_default();
        let header = |name: &str| {
            text.split("\r\n").skip(1).find_map(|line| {
                let (key, value) = line.split_once(':')?;
                key.eq_ignore_ascii_case(name).then(|| value.trim())
            })
        };
        if status.split(' ').nth(1) != Some("101") {
            let body_bytes = header("content-length").and_then(|length| length.parse().ok());
            return Err(Error::Refused {
                status: status
                    .split_once(' ')
                    .map_or(status, |(_, rest)| rest)
                    .into(),
                body: self.read_body(rest, body_bytes),
                database: endpoint.database.clone(),
            });
        }
        if header("sec-websocket-accept") != Some(HANDSHAKE_ACCEPT) {
            return Err(Error::Protocol(
                "the handshake answer has a wrong key".into(),
            ));
        }
        if header("sec-websocket-protocol") != Some(endpoint.protocol.token()) {
            return Err(Error::Protocol(format!(
                "sub-protocol {} was not accepted",
                endpoint.protocol.token()
            )));
        }
        // Frames may have arrived together with the answer.
        let mut rest = &rest[..];
        while !rest.is_empty() {
            self.read_frames_from(&mut rest)?;
        }
        Ok(())
    }

    fn read_some(&mut self, into: &mut Vec<u8>) -> Result<usize, Error> {
        let mut chunk = [0; 4096];
        let read = self
            .stream
            .read(&mut chunk)
            .map_err(Error::io("waiting for the handshake answer"))?;
        into.extend_from_slice(&chunk[..read]);
        Ok(read)
    }

    /// The body of an error answer, as far as it comes.
    fn read_body(&mut self, mut body: Vec<u8>, body_bytes: Option<usize>) -> String {
        let wanted = body_bytes.unwrap_or(4096).min(4096);
        // The connection is of no use any more, so a timeout that cannot be set does no harm.
        let _ = self
            .stream
            .set_read_timeout(Some(Duration::from_millis(500)));
        while body.len() < wanted && matches!(self.read_some(&mut body), Ok(1..)) {}
        String::from_utf8_lossy(&body).trim().to_owned()
    }

    /// Reads frames from the socket once, waiting for the first byte.
    fn read_frames(&mut self) -> Result<(), Error> {
        let mut stream = self
            .stream
            .try_clone()
            .map_err(Error::io("sharing a socket"))?;
        match self.read_frames_from(&mut stream)? {
            Progress::End => Err(Error::Closed(None)),
            Progress::Drained | Progress::More => Ok(()),
        }
    }

    fn read_frames_from(&mut self, stream: &mut impl Read) -> Result<Progress, Error> {
        let (received, out, masks) = (&mut self.received, &mut self.out, &mut self.masks);
        let protocol = self.protocol;
        let progress = self.frames.read(stream, &mut self.buffer, |event| {
            match event {
                Event::Message(bytes) => {
                    let body = payload::decode_body(bytes, BODY_BYTES_MAX)?;
                    received.extend(payload::decode_messages(protocol, &body)?);
                }
                Event::Ping(bytes) => append_pong(out, masks, bytes),
                Event::Close(how) => return Err(Error::Closed(how)),
            }
            Ok(())
        })?;
        self.flush()?;
        Ok(progress)
    }

    fn flush(&mut self) -> Result<(), Error> {
        let sent = self.stream.write_all(&self.out);
        self.out.clear();
        sent.map_err(Error::io("sending"))
    }

    /// A request id that this client has not used yet.
    pub fn request_id(&mut self) -> u32 {
        self.next_request_id += 1;
        self.next_request_id
    }

    /// Sends messages, in version 3 as one payload.
    pub fn send(&mut self, messages: &[ClientMessage<'_>]) -> Result<(), Error> {
        let per_frame = match self.protocol {
            Protocol::V2 => 1,
            Protocol::V3 => messages.len().max(1),
        };
        let mut body = Vec::new();
        for frame in messages.chunks(per_frame) {
            body.clear();
            for message in frame {
                message.encode(&mut body);
            }
            append_binary(&mut self.out, &mut self.masks, body.len(), |out| {
                out.extend_from_slice(&body)
            });
        }
        self.flush()
    }

    /// The next message from the server.
    pub fn receive(&mut self) -> Result<ServerMessage, Error> {
        loop {
            if let Some(message) = self.received.pop_front() {
                return Ok(message);
            }
            self.read_frames()?;
        }
    }

    /// Ends the connection.
    pub fn close(mut self) {
        append_close(&mut self.out, &mut self.masks);
        // The server also notices when the socket closes.
        let _ = self.flush();
    }

    /// The socket, now non-blocking, and what was read of an incomplete frame; for an event loop.
    /// Messages that were received but not asked for are dropped.
    pub fn into_event_loop(self) -> Result<Parts, Error> {
        self.stream
            .set_nonblocking(true)
            .map_err(Error::io("setting up a socket"))?;
        Ok((self.stream, self.frames, self.masks))
    }
}

fn connect(address: &str) -> Result<TcpStream, Error> {
    let unreachable = |source| Error::Unreachable {
        address: address.to_owned(),
        source,
    };
    let mut last = std::io::Error::other("the host name has no address");
    for socket_address in address.to_socket_addrs().map_err(unreachable)? {
        let timeout = Duration::from_secs(CONNECT_SECONDS_MAX);
        match TcpStream::connect_timeout(&socket_address, timeout) {
            Ok(stream) => {
                let waits = Some(Duration::from_secs(ANSWER_SECONDS_MAX));
                stream
                    .set_nodelay(true)
                    .and_then(|()| stream.set_read_timeout(waits))
                    .and_then(|()| stream.set_write_timeout(waits))
                    .map_err(Error::io("setting up a socket"))?;
                return Ok(stream);
            }
            Err(error) => last = error,
        }
    }
    Err(unreachable(last))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn endpoint(url: &str) -> Result<Endpoint, Error> {
        Endpoint::new(url, "bank", Protocol::V3, true, None)
    }

    #[test]
    fn urls() {
        let parts = |url| {
            let endpoint = endpoint(url).unwrap();
            (endpoint.address, endpoint.prefix)
        };
        assert_eq!(parts("ws://h:3000"), ("h:3000".into(), "".into()));
        assert_eq!(parts("http://h/"), ("h:80".into(), "".into()));
        assert_eq!(
            parts("ws://[::1]:8/a/b/"),
            ("[::1]:8".into(), "/a/b".into())
        );
        for (url, text) in [
            ("wss://h", "TLS"),
            ("h:3000", "not a WebSocket URL"),
            ("ws://", "unusable host"),
            ("ws://h/a?b", "unusable host or path"),
            ("ws://h h", "unusable host"),
        ] {
            let error = endpoint(url).unwrap_err().to_string();
            assert!(error.contains(text), "{error}");
        }
        assert!(Endpoint::new("ws://h", "a b", Protocol::V3, true, None).is_err());
        assert!(Endpoint::new("ws://h", "a", Protocol::V3, true, Some("x\r\ny")).is_err());
    }

    #[test]
    fn nobody_listens() {
        let error = connect("127.0.0.1:1").unwrap_err().to_string();
        assert!(
            error.starts_with("cannot reach the server at 127.0.0.1:1: "),
            "{error}"
        );
    }
}
