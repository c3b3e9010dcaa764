//! The frames of a log for another copy of it: a follower, or a backup. Each is checked to follow the one before it.

use std::sync::Arc;

use lightcone_backup::{Frame, Place};
use lightcone_log::{Epoch, LogError, LogFeed, LogReader};
use tokio::sync::OwnedSemaphorePermit;

use crate::error::ChangesError;
use crate::handle::DatabaseHandle;

/// The durable frames from a place on, while the log is written.
pub struct Frames {
    feed: LogFeed,
    reader: LogReader,
    /// Where those so far lead.
    place: Place,
    _turn: OwnedSemaphorePermit,
    _user: Arc<()>,
}

impl DatabaseHandle {
    /// Opens a stream of the frames from a place on: what a follower [takes](crate::Follower::take). It counts as a stream of changes.
    ///
    /// # Errors
    /// [`LogError::LeftBehind`] and [`LogError::CutAway`] if the log does not have the place any more, or never had it; there is no log;
    /// or no room for one more stream.
    pub async fn frames(&self, from: Place) -> Result<Frames, ChangesError> {
        let turn = self.stream_turn()?;
        let shared = self.shared.clone();
        let open = move || {
            let feed = shared.status.feed().ok_or(ChangesError::Gone)?;
            if shared.options.in_memory {
                return Err(ChangesError::InMemory);
            }
            goes_on(feed, from).map_err(|error| match error {
                // It was in another history, which went further.
                LogError::OutOfRange { wanted, .. } => LogError::CutAway { offset: wanted },
                error => error,
            })?;
            Ok(Frames::open(feed, from, turn, shared.users.clone())?)
        };
        let opened = self.shared.elsewhere(open).await;
        opened.unwrap_or(Err(ChangesError::Gone))
    }
}

impl Frames {
    /// # Errors
    /// As [`LogFeed::read`].
    pub(crate) fn open(
        feed: &LogFeed,
        from: Place,
        turn: OwnedSemaphorePermit,
        user: Arc<()>,
    ) -> Result<Frames, LogError> {
        Ok(Frames {
            feed: feed.clone(),
            reader: feed.read(from.offset)?,
            place: from,
            _turn: turn,
            _user: user,
        })
    }

    /// Where the frames so far lead.
    pub fn place(&self) -> Place {
        self.place
    }

    /// The epoch of who writes the log: what a follower is to know of the sender.
    pub fn leader(&self) -> Epoch {
        self.feed.epoch()
    }

    /// The next frame; none if these were all that are durable now. Reads files.
    ///
    /// # Errors
    /// The log. Nothing more comes then.
    #[allow(clippy::should_implement_trait)] // It fails, and goes on behind its end.
    pub fn next(&mut self) -> Result<Option<Frame>, ChangesError> {
        let Some(frame) = self.reader.next()? else {
            return Ok(None);
        };
        let frame = Frame {
            first_offset: frame.first_offset,
            count: frame.count,
            epoch: frame.epoch,
            hash: frame.hash,
            payload: frame.payload.to_vec(),
        };
        // The log has verified it by the rules of its segment.
        let behind = self.place.behind(&frame);
        self.place = behind.map_err(|_| ChangesError::OldFrames(frame.first_offset))?;
        Ok(Some(frame))
    }

    /// Waits until there is more.
    ///
    /// # Errors
    /// Nothing more comes.
    pub async fn ready(&mut self) -> Result<(), ChangesError> {
        Ok(self.reader.ready().await?)
    }
}

/// Whether a log goes on at a place.
///
/// # Errors
/// It has forgotten it, or has another history there, or its disk cannot be read.
pub(crate) fn goes_on(feed: &LogFeed, place: Place) -> Result<(), LogError> {
    let offset = place.offset;
    match feed.hash_at(offset) {
        Ok(Some(hash)) if hash == place.hash => Ok(()),
        Ok(_) => Err(LogError::CutAway { offset }),
        Err(LogError::OutOfRange { oldest, .. }) if offset < oldest => Err(LogError::LeftBehind {
            wanted: offset,
            oldest,
        }),
        Err(error) => Err(error),
    }
}
