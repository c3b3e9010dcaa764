//! The client protocol over WebSocket, versions 2 and 3 (spec chapter 05).
//!
//! * [`ClientMessage`]: what clients send. Decoding borrows names, queries and arguments from the
//!   payload; [`ClientPayload`] walks the messages of one WebSocket message.
//! * [`server`]: writers that append server messages to a buffer without building them first.
//!   Rows go through [`rows::row_list`], or [`RowListSize`] if the list is written in parts.
//! * [`ServerMessage`]: server messages as owned values, for clients and tests;
//!   [`skip_server_message`] steps over one without building it.
//! * [`payload`]: the tag byte, compression and its policy, and the cutting of a queue of messages
//!   into payloads.
//!
//! The two versions have the same messages. Version 2 puts one message into a WebSocket message,
//! version 3 any number of them, back to back.

#![forbid(unsafe_code)]

mod client;
mod compress;
mod error;
mod message;
mod part;
pub mod payload;
mod protocol;
pub mod rows;
pub mod server;

pub use client::{ClientMessage, ClientPayload, SubscribeSet};
pub use compress::{Compression, CompressionPolicy, COMPRESS_ABOVE_BYTES};
pub use error::Error;
pub use message::{
    skip_server_message, ProcedureStatus, QueryRows, QuerySetUpdate, ReducerOutcome, ServerMessage,
    SingleTableRows, SkippedMessage, SubscribeSetResult, TableUpdate, TableUpdateRows,
};
pub use protocol::Protocol;
pub use rows::{RowList, RowListSize, RowSize, SizedRowList};
