//! How many messages and bytes may wait in an inbox.

use std::sync::Arc;

use tokio::sync::Semaphore;

use crate::calls::CallError;
use crate::error::{ConnectError, SqlError, SubmitError, UpdateError};
use crate::options::Limits;

/// Bytes that one permit of the byte bound stands for.
const PERMIT_BYTES: usize = 1024;

/// The inbox is closed: the database has stopped, or is about to.
#[derive(Debug)]
pub(crate) struct Closed;

impl From<Closed> for ConnectError {
    fn from(_: Closed) -> ConnectError {
        ConnectError::Closed
    }
}

impl From<Closed> for SubmitError {
    fn from(_: Closed) -> SubmitError {
        SubmitError::Closed
    }
}

impl From<Closed> for SqlError {
    fn from(_: Closed) -> SqlError {
        SqlError::ModuleGone
    }
}

impl From<Closed> for CallError {
    fn from(_: Closed) -> CallError {
        CallError::ModuleGone
    }
}

impl From<Closed> for UpdateError {
    fn from(_: Closed) -> UpdateError {
        UpdateError::Cancelled
    }
}

/// What may wait in an inbox, and what does.
pub(crate) struct InboxCapacity {
    messages: Semaphore,
    /// Messages that it takes at once.
    pub messages_max: usize,
    bytes: Semaphore,
    byte_permits_max: usize,
}

/// What some messages of a connection take of the inbox. The writer gives it back when they are executed.
#[must_use]
pub(crate) struct Place {
    message_permits: u32,
    byte_permits: u32,
}

impl InboxCapacity {
    pub fn new(limits: &Limits) -> Arc<InboxCapacity> {
        let permits = |count: usize| count.clamp(1, Semaphore::MAX_PERMITS / 2);
        let messages_max = permits(limits.inbox_messages_max);
        let byte_permits_max = permits(limits.inbox_bytes_max / PERMIT_BYTES);
        Arc::new(InboxCapacity {
            messages: Semaphore::new(messages_max),
            messages_max,
            bytes: Semaphore::new(byte_permits_max),
            byte_permits_max,
        })
    }

    /// Messages that are in it, or are being executed.
    pub fn messages_taken(&self) -> usize {
        let left = self.messages.available_permits();
        self.messages_max.saturating_sub(left)
    }

    /// Waits for room for so many messages and bytes of a connection.
    ///
    /// # Errors
    /// The database is stopping.
    pub async fn place(&self, messages: usize, bytes: usize) -> Result<Place, Closed> {
        let message_permits = messages as u32;
        let byte_permits = (bytes / PERMIT_BYTES + 1).min(self.byte_permits_max) as u32;
        let permits = (
            self.messages.acquire_many(message_permits).await,
            self.bytes.acquire_many(byte_permits).await,
        );
        let (Ok(messages), Ok(bytes)) = permits else {
            return Err(Closed);
        };
        messages.forget();
        bytes.forget();
        Ok(Place {
            message_permits,
            byte_permits,
        })
    }

    /// Waits for room for something that is no message of a connection.
    ///
    /// # Errors
    /// The database is stopping.
    pub async fn permit(self: &Arc<Self>, bytes: usize) -> Result<InboxPermit, Closed> {
        let place = self.place(1, bytes).await?;
        Ok(InboxPermit {
            capacity: self.clone(),
            place,
        })
    }

    pub fn give_back(&self, place: &Place) {
        self.messages.add_permits(place.message_permits as usize);
        self.bytes.add_permits(place.byte_permits as usize);
    }

    /// Those who wait for room wait no longer.
    pub fn close(&self) {
        self.messages.close();
        self.bytes.close();
    }
}

/// A place in the inbox; given back when dropped.
pub(crate) struct InboxPermit {
    capacity: Arc<InboxCapacity>,
    place: Place,
}

impl Drop for InboxPermit {
    fn drop(&mut self) {
        self.capacity.give_back(&self.place);
    }
}
