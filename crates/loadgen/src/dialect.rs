//! The protocol of a connection: how calls are written and answers are read. When to call, and how answers are measured, is the
//! same for all ([`crate::load`]).

pub mod batched;
pub mod http;
pub mod module;
pub mod postgres;

use std::fmt::Debug;

use crate::incoming::{Io, Progress};
use crate::Error;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    pub request_id: u32,
    pub from: u32,
    pub to: u32,
}

impl Call {
    pub fn new(request_id: u32, (from, to): (u32, u32)) -> Self {
        Self {
            request_id,
            from,
            to,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The balances have changed.
    Applied,
    /// Acknowledged without an effect, for lack of funds for example.
    Noop,
    /// The application refused.
    Refused(String),
    /// Nothing was done, for another reason.
    Failed(String),
    /// It failed, and it is unknown whether it was done.
    Unknown(String),
    /// It gave way to another transaction and may be tried again.
    Conflict(String),
}

#[derive(Debug, PartialEq, Eq)]
pub enum Received {
    Answer(u32, Outcome),
    /// Rows of the connection's subscriptions changed.
    Update {
        rows: u64,
    },
}

/// Takes what arrived.
pub type OnReceived<'a> = &'a mut dyn FnMut(Received) -> Result<(), Error>;

/// One connection's side of a protocol. Writing appends to `out`, which the connection sends.
pub trait Dialect: Debug + Send {
    /// Writes calls together.
    fn append(&mut self, out: &mut Vec<u8>, calls: &[Call]);

    /// Reads once and passes on what arrived; may write answers.
    fn read(&mut self, io: Io<'_>, on_received: OnReceived<'_>) -> Result<Progress, Error>;

    /// Says goodbye, in protocols that do.
    fn append_close(&mut self, out: &mut Vec<u8>);
}
