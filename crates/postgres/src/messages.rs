//! Messages of PostgreSQL's protocol 3.0: reading those of clients within bounds, writing those of the server.

use std::time::Duration;

use lightcone_query::postgresql::{oid_of, size_of_oid, with_length, Format};
use lightcone_types::ProductType;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;

use super::failure::Failure;
use super::tls::{self, Stream};
use lightcone_database::{HeldMemory, Holder, SqlError};

/// The first message of a client, with its user, database and options.
const STARTUP_BYTES_MAX: usize = 10_000;
/// A token has 16 KiB at most (06 §3.4).
const PASSWORD_BYTES_MAX: usize = 17 << 10;
/// Any later message: as much as an SQL text over HTTP has.
const MESSAGE_BYTES_MAX: usize = 2 << 20;
/// A message is read in pieces of this size: so many bytes are reserved before they come, whatever its length says.
const PIECE_BYTES: usize = 32 << 10;
/// Read ahead of what is asked for.
const READ_AHEAD_BYTES: usize = 4 << 10;
/// A client that has said more than is read yet is looked for so often.
const LOOK_FOR_CLIENT_EVERY: Duration = Duration::from_millis(250);
/// Answers are given to the socket when so many bytes of them have gathered.
const OUTGOING_BYTES: usize = 64 << 10;

const CANCEL_REQUEST: u32 = 80_877_102;
const TLS_REQUEST: u32 = 80_877_103;
const GSS_REQUEST: u32 = 80_877_104;
const PROTOCOL_MAJOR: u32 = 3;

/// A client's message: its letter and what it says.
pub(super) struct Message {
    pub kind: u8,
    pub body: Vec<u8>,
    /// There was no memory for the body, which was passed over.
    pub refused: Option<SqlError>,
    /// The body counts as the client's until it is dropped.
    _memory: HeldMemory,
}

/// What a client says first.
pub(super) enum Startup {
    WantsTls,
    /// Another kind of encryption, of which there is none.
    WantsGss,
    /// The client of the session with this key does not want the answer any more.
    Cancel(SessionKey),
    /// Names and values.
    Parameters(Vec<(String, String)>),
}

/// Names a session, and proves that it is one's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SessionKey {
    pub number: u32,
    pub secret: u32,
}

/// A socket that speaks the protocol. Answers gather until [`flush`](Self::flush).
pub(super) struct Wire {
    stream: BufReader<Stream>,
    out: Vec<u8>,
    /// How long a message that has begun may take, and the client to take some bytes.
    stall_max: Duration,
}

/// Why a connection cannot go on.
#[derive(Debug, thiserror::Error)]
pub(super) enum WireError {
    #[error(transparent)]
    Io(#[from] std::io::Error),
    #[error("the client takes too long")]
    Stalled,
    #[error("the memory that the client's answers take is needed for others")]
    Cut,
    #[error("{0}")]
    Protocol(String),
}

pub(super) fn protocol<T>(text: impl Into<String>) -> Result<T, WireError> {
    Err(WireError::Protocol(text.into()))
}

impl Wire {
    pub fn new(stream: TcpStream, stall_max: Duration) -> Wire {
        Wire::of(Stream::Left(stream), stall_max)
    }

    fn of(stream: Stream, stall_max: Duration) -> Wire {
        Wire {
            stream: BufReader::with_capacity(READ_AHEAD_BYTES, stream),
            out: Vec::new(),
            stall_max,
        }
    }

    /// Does the client begin with TLS, without asking?
    pub async fn begins_with_tls(&self) -> Result<bool, WireError> {
        Ok(tls::begins_with_tls(self.stream.get_ref()).await?)
    }

    /// Goes on encrypted. The caller looks at the time.
    pub async fn encrypted(self, acceptor: &TlsAcceptor) -> Result<Wire, WireError> {
        // Whatever came before the handshake did not come through it.
        if !self.stream.buffer().is_empty() {
            return protocol(
                "there are bytes between the request for encryption and the handshake",
            );
        }
        let stream = tls::encrypted(self.stream.into_inner(), acceptor).await?;
        Ok(Wire::of(stream, self.stall_max))
    }

    pub fn is_encrypted(&self) -> bool {
        matches!(self.stream.get_ref(), Stream::Right(_))
    }

    /// Did the client say in the handshake what it speaks?
    pub fn is_named_in_handshake(&self) -> bool {
        tls::is_named_in_handshake(self.stream.get_ref())
    }

    /// Reads what a client says first. The caller looks at the time.
    pub async fn startup(&mut self) -> Result<Startup, WireError> {
        let length = self.stream.read_u32().await? as usize;
        let Some(body_bytes) = length.checked_sub(8).filter(|n| *n <= STARTUP_BYTES_MAX) else {
            return protocol("this is no start of PostgreSQL's protocol");
        };
        let code = self.stream.read_u32().await?;
        let mut body = vec![0; body_bytes];
        self.stream.read_exact(&mut body).await?;
        match code {
            CANCEL_REQUEST => {
                let mut body = Body(&body);
                Ok(Startup::Cancel(SessionKey {
                    number: body.u32()?,
                    secret: body.u32()?,
                }))
            }
            TLS_REQUEST => Ok(Startup::WantsTls),
            GSS_REQUEST => Ok(Startup::WantsGss),
            code if code >> 16 == PROTOCOL_MAJOR => {
                let mut body = Body(&body);
                let mut parameters = Vec::new();
                loop {
                    let name = body.text()?;
                    if name.is_empty() {
                        return Ok(Startup::Parameters(parameters));
                    }
                    parameters.push((name.to_owned(), body.text()?.to_owned()));
                }
            }
            code => {
                let (major, minor) = (code >> 16, code & 0xffff);
                protocol(format!(
                    "unsupported frontend protocol {major}.{minor}: server supports 3.0"
                ))
            }
        }
    }

    /// Waits for a message, which counts as the client's from its first bytes on. None: the client has gone.
    pub async fn read(&mut self, holder: &Holder) -> Result<Option<Message>, WireError> {
        let kind = match self.stream.read_u8().await {
            Ok(kind) => kind,
            Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let stall_max = self.stall_max;
        let rest = async {
            let length = self.stream.read_u32().await? as usize;
            let Some(body_bytes) = length.checked_sub(4).filter(|n| *n <= MESSAGE_BYTES_MAX) else {
                let text =
                    format!("a message has {length} bytes, and may have {MESSAGE_BYTES_MAX}");
                return protocol(text);
            };
            let (mut body, mut memory) = (Vec::new(), holder.memory());
            let mut refused = None;
            while body.len() < body_bytes && refused.is_none() {
                let read = body.len();
                let end = body_bytes.min(read + PIECE_BYTES.max(read));
                if let Err(error) = memory.set(end) {
                    refused = Some(error);
                    body = Vec::new();
                    let _ = memory.set(0);
                    self.pass_over(body_bytes - read).await?;
                } else {
                    body.reserve_exact(end - read);
                    body.resize(end, 0);
                    self.stream.read_exact(&mut body[read..]).await?;
                }
            }
            Ok(Message {
                kind,
                body,
                refused,
                _memory: memory,
            })
        };
        let message = tokio::time::timeout(stall_max, rest);
        let message = message.await.map_err(|_| WireError::Stalled)??;
        Ok(Some(message))
    }

    async fn pass_over(&mut self, bytes: usize) -> Result<(), WireError> {
        let mut rest = (&mut self.stream).take(bytes as u64);
        let passed = tokio::io::copy(&mut rest, &mut tokio::io::sink()).await?;
        match passed == bytes as u64 {
            true => Ok(()),
            false => Err(std::io::Error::from(std::io::ErrorKind::UnexpectedEof).into()),
        }
    }

    /// Waits for the password. None: the client has gone, or says something else.
    pub async fn read_password(&mut self) -> Result<Option<Vec<u8>>, WireError> {
        if self.stream.read_u8().await? != b'p' {
            return Ok(None);
        }
        let length = self.stream.read_u32().await? as usize;
        let Some(body_bytes) = length.checked_sub(4).filter(|n| *n <= PASSWORD_BYTES_MAX) else {
            return Ok(None);
        };
        let mut body = vec![0; body_bytes];
        self.stream.read_exact(&mut body).await?;
        Ok(Some(body))
    }

    /// Completes when the client has gone, also while something of it waits to be read.
    ///
    /// Cancel safe.
    pub async fn gone(&mut self) {
        let read = self.stream.fill_buf().await;
        if read.is_ok_and(|bytes| !bytes.is_empty()) {
            // Its end stands behind what it has said, which is not to be read yet.
            tls::closed(self.stream.get_ref(), LOOK_FOR_CLIENT_EVERY).await;
        }
    }

    /// Gives the answers so far to the socket.
    pub async fn flush(&mut self) -> Result<(), WireError> {
        let written = write_all(&mut self.stream, &self.out, self.stall_max).await;
        self.out.clear();
        self.out.shrink_to(OUTGOING_BYTES);
        written
    }

    /// Ends the connection, and says so where it is encrypted.
    pub async fn close(&mut self) {
        // The client may have gone.
        let _ = tokio::time::timeout(self.stall_max, self.stream.shutdown()).await;
    }

    /// Gives the answers so far to the socket when many have gathered. So a client whose messages are answered without end
    /// has to take the answers before it is heard again.
    pub async fn flush_if_long(&mut self) -> Result<(), WireError> {
        match self.out.len() > OUTGOING_BYTES {
            true => self.flush().await,
            false => Ok(()),
        }
    }

    /// Gives bytes, which are whole messages, to the socket, behind the answers so far.
    pub async fn write(&mut self, messages: &[u8]) -> Result<(), WireError> {
        if messages.len() + self.out.len() <= OUTGOING_BYTES {
            self.out.extend_from_slice(messages);
            return Ok(());
        }
        self.flush().await?;
        write_all(&mut self.stream, messages, self.stall_max).await
    }

    /// Answers a request for encryption: a byte that is no message.
    pub fn encryption(&mut self, is_given: bool) {
        self.out.push(if is_given { b'S' } else { b'N' });
    }

    fn message(&mut self, kind: u8, write: impl FnOnce(&mut Vec<u8>)) {
        put_message(&mut self.out, kind, write);
    }

    pub fn authentication(&mut self, request: u32) {
        self.message(b'R', |out| out.extend(request.to_be_bytes()));
    }

    pub fn parameter(&mut self, name: &str, value: &str) {
        self.message(b'S', |out| {
            put_text(out, name);
            put_text(out, value);
        });
    }

    /// With this key a statement can be cancelled.
    pub fn backend_key(&mut self, key: SessionKey) {
        self.message(b'K', |out| {
            out.extend(key.number.to_be_bytes());
            out.extend(key.secret.to_be_bytes());
        });
    }

    /// Lines of so many columns follow, each a message.
    pub fn copy_out(&mut self, columns: usize) {
        self.message(b'H', |out| {
            out.push(0);
            out.extend((columns as u16).to_be_bytes());
            out.extend(std::iter::repeat_n([0; 2], columns).flatten());
        });
    }

    pub fn ready(&mut self, status: u8) {
        self.message(b'Z', |out| out.push(status));
    }

    pub fn empty(&mut self, kind: u8) {
        self.message(kind, |_| {});
    }

    pub fn complete(&mut self, tag: &str) {
        self.message(b'C', |out| put_text(out, tag));
    }

    pub fn failure(&mut self, failure: &Failure, is_fatal: bool) {
        let severity = if is_fatal { "FATAL" } else { "ERROR" };
        let severities = [(b'S', severity), (b'V', severity)];
        put_failure(&mut self.out, &severities, failure);
    }

    pub fn parameter_description(&mut self, oids: &[u32]) {
        self.message(b't', |out| {
            out.extend((oids.len() as u16).to_be_bytes());
            for oid in oids {
                out.extend(oid.to_be_bytes());
            }
        });
    }

    /// The columns of a result, in formats that are given in order; those that are missing are text.
    pub fn row_description(&mut self, columns: &ProductType, formats: &[Format]) {
        self.message(b'T', |out| {
            out.extend((columns.elements.len() as u16).to_be_bytes());
            for (nth, column) in columns.elements.iter().enumerate() {
                match column.name() {
                    Some(name) => put_text(out, name),
                    None => put_text(out, &format!("col_{nth}")),
                }
                let oid = oid_of(&column.algebraic_type);
                // Of no table, and of no column there.
                out.extend([0; 6]);
                out.extend(oid.to_be_bytes());
                out.extend(size_of_oid(oid).to_be_bytes());
                out.extend((-1_i32).to_be_bytes());
                let is_binary = formats.get(nth) == Some(&Format::Binary);
                out.extend(u16::from(is_binary).to_be_bytes());
            }
        });
    }
}

async fn write_all(
    stream: &mut BufReader<Stream>,
    bytes: &[u8],
    stall_max: Duration,
) -> Result<(), WireError> {
    for some in bytes.chunks(OUTGOING_BYTES) {
        let written = tokio::time::timeout(stall_max, stream.write_all(some)).await;
        written.map_err(|_| WireError::Stalled)??;
    }
    // Encrypted bytes may still be on their way to the socket.
    let flushed = tokio::time::timeout(stall_max, stream.flush()).await;
    flushed.map_err(|_| WireError::Stalled)??;
    Ok(())
}

/// The bytes of a refusal before there is a session.
pub(super) fn refusal(failure: &Failure) -> Vec<u8> {
    let mut out = Vec::new();
    put_failure(&mut out, &[(b'S', "FATAL")], failure);
    out
}

fn put_failure(out: &mut Vec<u8>, severities: &[(u8, &str)], failure: &Failure) {
    let rest = [(b'C', failure.state), (b'M', &*failure.message)];
    put_message(out, b'E', |out| {
        for (field, value) in severities.iter().chain(&rest) {
            out.push(*field);
            put_text(out, value);
        }
        out.push(0);
    });
}

/// A message whose length, unlike that of a field, counts itself.
pub(super) fn put_message(out: &mut Vec<u8>, kind: u8, write: impl FnOnce(&mut Vec<u8>)) {
    out.push(kind);
    let start = out.len();
    with_length(out, write);
    let length = (out.len() - start) as u32;
    out[start..start + 4].copy_from_slice(&length.to_be_bytes());
}

/// A text ends with a zero, so it has none inside.
fn put_text(out: &mut Vec<u8>, text: &str) {
    out.extend(text.bytes().filter(|byte| *byte != 0));
    out.push(0);
}

/// What is left of a message that is being read.
pub(super) struct Body<'b>(pub &'b [u8]);

impl<'b> Body<'b> {
    fn short() -> WireError {
        WireError::Protocol("insufficient data left in message".to_owned())
    }

    pub fn bytes(&mut self, count: usize) -> Result<&'b [u8], WireError> {
        let (bytes, rest) = self.0.split_at_checked(count).ok_or_else(Self::short)?;
        self.0 = rest;
        Ok(bytes)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], WireError> {
        let (bytes, rest) = self.0.split_first_chunk().ok_or_else(Self::short)?;
        self.0 = rest;
        Ok(*bytes)
    }

    pub fn u8(&mut self) -> Result<u8, WireError> {
        Ok(self.bytes(1)?[0])
    }

    pub fn u16(&mut self) -> Result<u16, WireError> {
        Ok(u16::from_be_bytes(self.array()?))
    }

    pub fn u32(&mut self) -> Result<u32, WireError> {
        Ok(u32::from_be_bytes(self.array()?))
    }

    /// Up to a zero.
    pub fn text(&mut self) -> Result<&'b str, WireError> {
        let end = self.0.iter().position(|byte| *byte == 0);
        let bytes = self.bytes(end.ok_or_else(Self::short)?)?;
        self.bytes(1)?;
        std::str::from_utf8(bytes)
            .map_err(|_| WireError::Protocol("a text is not UTF-8".to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_bytes_can_be_read(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
            let mut body = Body(&bytes);
            while !body.0.is_empty() {
                let left = body.0.len();
                let _ = body.text();
                let _ = body.u16();
                let _ = body.u32();
                if body.0.len() == left {
                    let _ = body.u8();
                }
            }
        }
    }

    #[test]
    fn messages_count_their_length() {
        let mut out = Vec::new();
        put_message(&mut out, b'C', |out| put_text(out, "SELECT 1"));
        assert_eq!(out, b"C\0\0\0\x0dSELECT 1\0");
    }
}
