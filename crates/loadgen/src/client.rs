//! A blocking connection: opening, and the requests before and after a run.

use std::collections::VecDeque;
use std::io::{Read, Write};
use std::net::TcpStream;

use lightcone_types::{Encode, Identity};
use lightcone_wire::{payload, ClientMessage, Protocol, ServerMessage};

use crate::address::{connect, for_event_loop, Address};
use crate::handshake::Handshake;
use crate::incoming::{Io, Progress};
use crate::websocket::WebSocket;
use crate::Error;

/// The initial rows of a whole table come in one payload.
const BODY_BYTES_MAX: usize = 1 << 30;

#[derive(Clone, Debug)]
pub struct Endpoint {
    pub address: Address,
    /// Name or identity.
    pub database: String,
    /// Version to ask for.
    pub protocol: Protocol,
    /// Answers only after the transaction is durable.
    pub confirmed: bool,
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
        let address = Address::parse(url)?;
        let text_is_plain = |text: &str| text.bytes().all(|byte| byte.is_ascii_graphic());
        if database.is_empty() || !text_is_plain(database) || database.contains(['/', '?', '#']) {
            return Err(Error::Options(format!(
                "--database {database:?} is not a database name or identity"
            )));
        }
        if !token.is_none_or(text_is_plain) {
            return Err(Error::Options("--token is not a token".into()));
        }
        Ok(Self {
            address,
            database: database.to_owned(),
            protocol,
            confirmed,
            token: token.map(str::to_owned),
        })
    }
}

/// A connection with blocking calls.
#[derive(Debug)]
pub struct Client {
    stream: TcpStream,
    websocket: WebSocket,
    buffer: Vec<u8>,
    out: Vec<u8>,
    protocol: Protocol,
    received: VecDeque<ServerMessage>,
    next_request_id: u32,
    identity: Identity,
}

impl Client {
    /// Connects and waits for `InitialConnection`. `number` tells connections apart.
    pub fn open(endpoint: &Endpoint, number: u64) -> Result<Self, Error> {
        let stream = connect(&endpoint.address.host)?;
        let mut client = Self {
            stream,
            websocket: WebSocket::new(number),
            buffer: Vec::new(),
            out: Vec::new(),
            protocol: endpoint.protocol,
            received: VecDeque::new(),
            next_request_id: 0,
            identity: Identity::default(),
        };
        client.handshake(endpoint)?;
        match client.receive() {
            Ok(ServerMessage::InitialConnection { identity, .. }) => {
                client.identity = identity;
                Ok(client)
            }
            Ok(_) => {
                let why = "the first message is not InitialConnection";
                Err(Error::Protocol(why.into()))
            }
            Err(Error::Closed(None)) => {
                let how = "before its first message; the module may have rejected the client";
                Err(Error::Closed(Some(how.into())))
            }
            Err(error) => Err(error),
        }
    }

    fn handshake(&mut self, endpoint: &Endpoint) -> Result<(), Error> {
        let rest = Handshake {
            address: &endpoint.address,
            path: &format!(
                "/v1/database/{}/subscribe?compression=None&confirmed={}",
                endpoint.database, endpoint.confirmed
            ),
            protocol: Some(endpoint.protocol.token()),
            token: endpoint.token.as_deref(),
            what: &format!("database `{}`", endpoint.database),
        }
        .shake(&mut self.stream)?;
        // Frames may have arrived together with the answer.
        let mut rest = &rest[..];
        while !rest.is_empty() {
            self.read_frames_from(&mut rest)?;
        }
        Ok(())
    }

    /// Reads frames from the socket once, waiting for the first byte.
    fn read_frames(&mut self) -> Result<(), Error> {
        let stream = self.stream.try_clone();
        let mut stream = stream.map_err(Error::io("sharing a socket"))?;
        match self.read_frames_from(&mut stream)? {
            Progress::End => Err(Error::Closed(None)),
            Progress::Drained | Progress::More => Ok(()),
        }
    }

    fn read_frames_from(&mut self, stream: &mut dyn Read) -> Result<Progress, Error> {
        let (received, protocol) = (&mut self.received, self.protocol);
        let on_message = |bytes: &[u8]| {
            let body = payload::decode_body(bytes, BODY_BYTES_MAX)?;
            received.extend(payload::decode_messages(protocol, &body)?);
            Ok(())
        };
        let io = Io {
            stream,
            buffer: &mut self.buffer,
            out: &mut self.out,
        };
        let progress = self.websocket.read(io, on_message)?;
        self.flush()?;
        Ok(progress)
    }

    fn flush(&mut self) -> Result<(), Error> {
        let sent = self.stream.write_all(&self.out);
        self.out.clear();
        sent.map_err(Error::io("sending"))
    }

    /// The identity that the server gave the client.
    pub fn identity(&self) -> Identity {
        self.identity
    }

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
            self.websocket.append(&mut self.out, body.len(), |out| {
                out.extend_from_slice(&body)
            });
        }
        self.flush()
    }

    pub fn receive(&mut self) -> Result<ServerMessage, Error> {
        loop {
            if let Some(message) = self.received.pop_front() {
                return Ok(message);
            }
            self.read_frames()?;
        }
    }

    pub fn close(mut self) {
        self.websocket.append_close(&mut self.out);
        // The server also notices when the socket closes.
        let _ = self.flush();
    }

    /// The socket, now non-blocking, and what was read of an incomplete frame; for an event loop.
    /// Messages that were received but not asked for are dropped.
    pub fn into_event_loop(self) -> Result<(TcpStream, WebSocket), Error> {
        Ok((for_event_loop(self.stream)?, self.websocket))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_tokens() {
        let endpoint =
            |database, token| Endpoint::new("ws://h", database, Protocol::V3, true, token);
        assert!(endpoint("a", Some("x")).is_ok());
        assert!(endpoint("a b", None).is_err());
        assert!(endpoint("", None).is_err());
        assert!(endpoint("a", Some("x\r\ny")).is_err());
    }
}
