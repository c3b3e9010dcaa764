//! What is done beside a reducer, in its transaction.

use lightcone_engine::{OutboundMessage, OutboundStream};

use crate::messages::Message;

/// What else is in the transaction of a reducer that succeeds.
#[derive(Clone, Copy)]
pub(super) enum Beside<'a> {
    Nothing,
    /// The caller leaves: his rows go.
    Leaves,
    /// The message of another database that it applies.
    Records(&'a Message),
    /// The message of this one whose result it has heard of.
    Retires(&'a OutboundStream, &'a OutboundMessage),
}
