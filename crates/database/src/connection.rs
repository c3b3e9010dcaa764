//! A client's connection: where its payloads go in, and where its messages come out.

use std::sync::Arc;

use bytes::Bytes;
use lightcone_types::{ConnectionId, Identity, Timestamp};
use lightcone_wire::Protocol;

use crate::error::SubmitError;
use crate::handle::Shared;
use crate::outgoing::{OutgoingQueue, OutgoingReceiver};
use crate::request::{decode, Sender};
use crate::writer::Item;

/// Who wants to connect, and how.
pub struct ConnectRequest {
    pub identity: Identity,
    pub connection_id: ConnectionId,
    /// JSON text of the token's payload; modules can ask for it.
    pub jwt_payload: Arc<str>,
    /// Results are held back until they are durable.
    pub confirmed: bool,
    pub protocol: Protocol,
    /// Sent back in `InitialConnection`.
    pub token: Arc<str>,
}

/// An accepted connection. When both halves are dropped, the disconnect lifecycle runs.
pub struct Connection {
    pub sender: RequestSender,
    pub outgoing: OutgoingReceiver,
}

/// Takes the client's payloads.
pub struct RequestSender {
    shared: Arc<Shared>,
    queue: Arc<OutgoingQueue>,
    key: u64,
    sender: Sender,
}

/// Bytes that one permit of the inbox's byte bound stands for.
pub(crate) const INBOX_PERMIT_BYTES: usize = 1024;

impl Connection {
    pub(crate) fn new(
        shared: Arc<Shared>,
        queue: Arc<OutgoingQueue>,
        key: u64,
        sender: Sender,
    ) -> Connection {
        Connection {
            outgoing: OutgoingReceiver {
                queue: queue.clone(),
                deferred: None,
            },
            sender: RequestSender {
                shared,
                queue,
                key,
                sender,
            },
        }
    }
}

impl RequestSender {
    /// Queues one WebSocket message: one (v2) or many (v3) BSATN `ClientMessage`s. Waits while the database is behind
    /// by [`Limits::inbox_messages_max`](crate::Limits::inbox_messages_max) or the byte bound, so that a fast client
    /// is slowed down by TCP.
    ///
    /// # Errors
    /// A message does not decode (those before it are executed), or the database is gone.
    pub async fn submit(&self, payload: Bytes) -> Result<(), SubmitError> {
        let shared = &self.shared;
        let byte_permits =
            (payload.len() / INBOX_PERMIT_BYTES + 1).min(shared.inbox_byte_permits) as u32;
        let permits = (
            shared.inbox_messages.acquire().await,
            shared.inbox_bytes.acquire_many(byte_permits).await,
        );
        let (Ok(message), Ok(bytes)) = permits else {
            return Err(SubmitError::Closed);
        };
        message.forget();
        bytes.forget();
        let module = shared.module();
        let mut decoded = decode(&module, &self.sender, payload, Timestamp::now());
        let malformed = decoded.malformed.take();
        let item = Item::Requests {
            connection: self.key,
            decoded,
            byte_permits,
        };
        shared.send(item).map_err(|()| SubmitError::Closed)?;
        match malformed {
            Some(text) => Err(SubmitError::Malformed(text)),
            None => Ok(()),
        }
    }
}

impl Drop for RequestSender {
    fn drop(&mut self) {
        self.queue.cut();
        // If the database is gone, there is nothing left to tell.
        let _ = self.shared.send(Item::Disconnect {
            connection: self.key,
        });
    }
}
