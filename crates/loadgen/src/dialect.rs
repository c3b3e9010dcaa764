//! What is spoken on a connection that calls: how calls are written and answers are read. Everything
//! else, when to call what and what answers mean for the measurement, is the same for all
//! ([`crate::load`]).

pub mod batched;
pub mod http;
pub mod module;
pub mod postgres;

use std::fmt::Debug;
use std::io::Read;

use crate::incoming::Progress;
use crate::Error;

/// A transfer to ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    pub request_id: u32,
    pub from: u32,
    pub to: u32,
}

/// How a call ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The balances have changed.
    Applied,
    /// Acknowledged, but there was nothing to do, e.g. for lack of funds.
    Noop,
    /// The application said no.
    Refused(String),
    /// Nothing was done, for another reason.
    Failed(String),
    /// It failed, and it is unknown whether it was done.
    Unknown(String),
    /// It gave way to another transaction and may be tried again.
    Conflict(String),
}

/// What arrived.
#[derive(Debug, PartialEq, Eq)]
pub enum Received {
    Answer(u32, Outcome),
    /// Rows changed that the connection has subscribed to.
    Update {
        rows: u64,
    },
}

/// One connection's side of a protocol. Writing only appends to `out`, which the connection sends.
pub trait Dialect: Debug + Send {
    /// Writes calls, all in one go.
    fn append(&mut self, out: &mut Vec<u8>, calls: &[Call]);

    /// Reads once and hands over what arrived; may write what has to follow.
    fn read(
        &mut self,
        stream: &mut dyn Read,
        buffer: &mut Vec<u8>,
        out: &mut Vec<u8>,
        on_received: &mut dyn FnMut(Received) -> Result<(), Error>,
    ) -> Result<Progress, Error>;

    /// Says goodbye, where that is usual.
    fn append_close(&mut self, out: &mut Vec<u8>);
}
