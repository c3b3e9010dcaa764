//! Errors in bytes of the client protocol.

use lightcone_types::DecodeError;

use crate::protocol::Protocol;

/// Why a message or payload is refused. The texts for client messages are those of spec 05 §8; they are the reason of the Close
/// frame with code 1011.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The bytes are not the BSATN of a message.
    #[error(transparent)]
    Decode(#[from] DecodeError),
    /// `CallReducer.flags` is not 0.
    #[error("invalid call reducer flag {0}")]
    CallReducerFlag(u8),
    /// `CallProcedure.flags` is not 0.
    #[error("invalid call procedure flag {0}")]
    CallProcedureFlag(u8),
    /// A text message on a binary protocol.
    #[error("{} websocket does not support text messages", .0.name())]
    TextMessage(Protocol),
    /// A version 3 payload without any message.
    #[error("v3 websocket binary payload must contain at least one v2 client message")]
    EmptyClientPayload,
    /// A server payload without any message.
    #[error("server payload holds no message")]
    EmptyServerPayload,
    /// The first byte of a server payload names no compression.
    #[error("unknown compression tag {0:#x} of a server payload")]
    UnknownCompression(u8),
    /// The body of a server payload does not decompress.
    #[error("{algorithm} body of a server payload is damaged: {detail}")]
    Decompress {
        algorithm: &'static str,
        detail: String,
    },
    /// The body of a server payload is larger than the reader allows.
    #[error("body of a server payload exceeds {limit_bytes} bytes")]
    BodyTooLarge { limit_bytes: usize },
    /// The size hint of a row list does not fit its data.
    #[error("row list is inconsistent: {0}")]
    RowList(&'static str),
    /// More rows or row bytes than the 32-bit lengths of a row list can express.
    #[error("row list exceeds 4 GiB")]
    RowListTooLarge,
}
