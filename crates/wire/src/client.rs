//! Messages from clients (spec 05 §5.1) and the payloads that carry them (§3.1).

use lightcone_types::{DecodeError, Encode, Reader};

use crate::error::Error;
use crate::protocol::Protocol;

/// A message from a client. Texts and bytes are borrowed from the payload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClientMessage<'a> {
    /// Registers a query set and sends its rows.
    Subscribe {
        request_id: u32,
        query_set_id: u32,
        query_strings: Vec<&'a str>,
    },
    /// Registers query sets and sends the rows of all in one answer (since 2.10.2).
    SubscribeBatch {
        request_id: u32,
        sets: Vec<SubscribeSet<'a>>,
    },
    /// Removes a query set.
    Unsubscribe {
        request_id: u32,
        query_set_id: u32,
        /// The answer lists the rows that the client no longer holds through this set.
        send_dropped_rows: bool,
    },
    OneOffQuery {
        request_id: u32,
        query_string: &'a str,
    },
    /// `args` is the BSATN of the parameters, back to back.
    CallReducer {
        request_id: u32,
        reducer: &'a str,
        args: &'a [u8],
    },
    /// `args` as for a reducer.
    CallProcedure {
        request_id: u32,
        procedure: &'a str,
        args: &'a [u8],
    },
}

/// A query set of a [`ClientMessage::SubscribeBatch`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SubscribeSet<'a> {
    pub query_set_id: u32,
    pub query_strings: Vec<&'a str>,
}

impl<'a> ClientMessage<'a> {
    /// Reads one message and leaves the reader behind it.
    ///
    /// Only subscriptions allocate: lists of at most one entry per four bytes of input.
    #[inline]
    pub fn decode(r: &mut Reader<'a>) -> Result<Self, Error> {
        match r.read_u8()? {
            0 => {
                let request_id = r.read_u32()?;
                let set = SubscribeSet::decode(r)?;
                Ok(Self::Subscribe {
                    request_id,
                    query_set_id: set.query_set_id,
                    query_strings: set.query_strings,
                })
            }
            1 => Ok(Self::Unsubscribe {
                request_id: r.read_u32()?,
                query_set_id: r.read_u32()?,
                send_dropped_rows: match r.read_u8()? {
                    0 => false,
                    1 => true,
                    tag => return Err(DecodeError::invalid_tag(tag, "UnsubscribeFlags").into()),
                },
            }),
            2 => Ok(Self::OneOffQuery {
                request_id: r.read_u32()?,
                query_string: r.read_str()?,
            }),
            3 => {
                let request_id = r.read_u32()?;
                no_flags(r, Error::CallReducerFlag)?;
                Ok(Self::CallReducer {
                    request_id,
                    reducer: r.read_str()?,
                    args: r.read_bytes()?,
                })
            }
            4 => {
                let request_id = r.read_u32()?;
                no_flags(r, Error::CallProcedureFlag)?;
                Ok(Self::CallProcedure {
                    request_id,
                    procedure: r.read_str()?,
                    args: r.read_bytes()?,
                })
            }
            5 => Ok(Self::SubscribeBatch {
                request_id: r.read_u32()?,
                sets: decode_list(r, SubscribeSet::decode)?,
            }),
            tag => Err(DecodeError::invalid_tag(tag, "ClientMessage").into()),
        }
    }

    #[inline]
    pub fn request_id(&self) -> u32 {
        match self {
            Self::Subscribe { request_id, .. }
            | Self::SubscribeBatch { request_id, .. }
            | Self::Unsubscribe { request_id, .. }
            | Self::OneOffQuery { request_id, .. }
            | Self::CallReducer { request_id, .. }
            | Self::CallProcedure { request_id, .. } => *request_id,
        }
    }
}

impl<'a> SubscribeSet<'a> {
    fn decode(r: &mut Reader<'a>) -> Result<Self, Error> {
        Ok(Self {
            query_set_id: r.read_u32()?,
            query_strings: decode_list(r, |r| Ok(r.read_str()?))?,
        })
    }
}

/// Reads a list of elements of at least four bytes. An impossible count is refused where the input ends: clients of the reference
/// know the text of that error.
fn decode_list<'a, T>(
    r: &mut Reader<'a>,
    decode: impl Fn(&mut Reader<'a>) -> Result<T, Error>,
) -> Result<Vec<T>, Error> {
    let count = r.read_u32()? as usize;
    let mut list = Vec::with_capacity(count.min(r.remaining().len() / 4).min(1024));
    for _ in 0..count {
        list.push(decode(r)?);
    }
    Ok(list)
}

/// Reads flags, of which there are none yet.
#[inline]
fn no_flags(r: &mut Reader<'_>, refused: fn(u8) -> Error) -> Result<(), Error> {
    match r.read_u8()? {
        0 => Ok(()),
        flags => Err(refused(flags)),
    }
}

impl Encode for SubscribeSet<'_> {
    fn encode(&self, out: &mut Vec<u8>) {
        (self.query_set_id, &self.query_strings).encode(out);
    }
}

impl Encode for ClientMessage<'_> {
    fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::Subscribe {
                request_id,
                query_set_id,
                query_strings,
            } => (0_u8, request_id, query_set_id, query_strings).encode(out),
            Self::SubscribeBatch { request_id, sets } => (5_u8, request_id, sets).encode(out),
            Self::Unsubscribe {
                request_id,
                query_set_id,
                send_dropped_rows,
            } => (1_u8, request_id, query_set_id, send_dropped_rows).encode(out),
            Self::OneOffQuery {
                request_id,
                query_string,
            } => (2_u8, request_id, query_string).encode(out),
            Self::CallReducer {
                request_id,
                reducer,
                args,
            } => (3_u8, request_id, 0_u8, reducer, args).encode(out),
            Self::CallProcedure {
                request_id,
                procedure,
                args,
            } => (4_u8, request_id, 0_u8, procedure, args).encode(out),
        }
    }
}

/// The messages of one binary WebSocket message from a client, in order.
///
/// Version 2: exactly one message; bytes behind it are ignored. Version 3: one or more, back to
/// back. After the first error the iterator ends; the messages before it stand (spec 05 §3.3).
#[derive(Clone, Debug)]
pub struct ClientPayload<'a> {
    reader: Reader<'a>,
    protocol: Protocol,
    state: PayloadState,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PayloadState {
    Start,
    Inside,
    End,
}

impl<'a> ClientPayload<'a> {
    #[inline]
    pub fn new(protocol: Protocol, payload: &'a [u8]) -> Self {
        Self {
            reader: Reader::new(payload),
            protocol,
            state: PayloadState::Start,
        }
    }

    /// Where in the payload the next message starts.
    #[inline]
    pub fn position(&self) -> usize {
        self.reader.position()
    }
}

impl<'a> Iterator for ClientPayload<'a> {
    type Item = Result<ClientMessage<'a>, Error>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        match self.state {
            PayloadState::End => return None,
            PayloadState::Inside if self.reader.is_empty() => return None,
            PayloadState::Start if self.protocol == Protocol::V3 && self.reader.is_empty() => {
                self.state = PayloadState::End;
                return Some(Err(Error::EmptyClientPayload));
            }
            PayloadState::Start | PayloadState::Inside => {}
        }
        let message = ClientMessage::decode(&mut self.reader);
        self.state = if message.is_err() || self.protocol == Protocol::V2 {
            PayloadState::End
        } else {
            PayloadState::Inside
        };
        Some(message)
    }
}
