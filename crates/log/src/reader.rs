//! Reading a log from an offset on, beside its writer.

use std::io::ErrorKind;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use lightcone_storage::{FilePosition, LogOffset};

use crate::chain::{Chain, Epoch, LogHash};
use crate::error::LogError;
use crate::feed::{LogFeed, Next};
use crate::segment::{Segment, SegmentReader, Step};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameRef<'a> {
    /// The offset of the first transaction.
    pub first_offset: LogOffset,
    /// The number of transactions.
    pub count: u32,
    /// The epoch in which it was written.
    pub epoch: Epoch,
    /// Of all transactions up to the last one of this frame.
    pub hash: LogHash,
    /// The records.
    pub payload: &'a [u8],
}

/// Gives the durable frames of a log in order, each verified. The first one has the wanted offset, and may begin before it.
///
/// A reader keeps the segment that it reads, and those behind it, from being trimmed, up to
/// [`SEGMENTS_PINNED_MAX`](crate::SEGMENTS_PINNED_MAX). A clone reads on by itself from the same place.
pub struct LogReader {
    feed: LogFeed,
    /// Of this reader, in the feed.
    number: u64,
    /// Of the next transaction.
    offset: LogOffset,
    /// None in a log that keeps nothing.
    segment: Option<SegmentReader>,
    /// How often the log had been cut when the segment was looked up.
    cuts: u64,
}

impl LogFeed {
    /// Reads the frames from the one with transaction `from` on, and follows the log: what is durable can be read.
    ///
    /// # Errors
    /// [`LogError::OutOfRange`], or the disk.
    pub fn read(&self, from: LogOffset) -> Result<LogReader, LogError> {
        let mut reader = LogReader {
            feed: self.clone(),
            number: self.new_reader(),
            offset: from,
            segment: None,
            cuts: 0,
        };
        reader.find(from)?;
        Ok(reader)
    }

    /// The hash of all transactions before `offset`. None if that lies inside of a frame. It is what the headers of the frames say:
    /// payloads are not verified, as those who read them do that.
    ///
    /// # Errors
    /// As [`read`](Self::read), and damage.
    pub fn hash_at(&self, offset: LogOffset) -> Result<Option<LogHash>, LogError> {
        self.read(offset)?.skip_to(offset)
    }

    /// What [`FrameRef::hash`] is of the frame with the transaction before `offset`: with it, a reader that goes on there finds out
    /// whether what it has read is still the same. None in a log that keeps nothing.
    ///
    /// # Errors
    /// As [`hash_at`](Self::hash_at).
    pub fn hash_behind(&self, offset: LogOffset) -> Result<Option<LogHash>, LogError> {
        let mut reader = self.read(offset)?;
        reader.skip_to(offset)?;
        Ok(reader.segment.as_ref().map(|segment| segment.chain.hash))
    }
}

impl LogReader {
    /// The offset of the next transaction that is to come.
    pub fn offset(&self) -> LogOffset {
        self.offset
    }

    /// The next frame. `None` if all that is durable was read: more may come.
    ///
    /// # Errors
    /// Damage, the disk, [`LogError::LeftBehind`] or [`LogError::CutAway`].
    #[allow(clippy::should_implement_trait)] // The frame borrows the reader's buffer, which an Iterator cannot say.
    pub fn next(&mut self) -> Result<Option<FrameRef<'_>>, LogError> {
        let Some((first_offset, count)) = self.advance()? else {
            return Ok(None);
        };
        let segment = self.segment.as_ref().expect("a frame was read from it");
        let Chain {
            next_offset,
            written: epoch,
            hash,
            ..
        } = segment.chain;
        self.offset = next_offset;
        Ok(Some(FrameRef {
            first_offset,
            count,
            epoch,
            hash,
            payload: segment.payload(),
        }))
    }

    /// Waits until there is something to read: false if there was nothing in this time.
    ///
    /// # Errors
    /// The log failed or was closed, and all that is durable was read.
    pub fn wait(&mut self, timeout: Duration) -> Result<bool, LogError> {
        // None if it is later than a clock can say.
        let deadline = Instant::now().checked_add(timeout);
        let waker = Waker::from(Arc::new(Unpark(thread::current())));
        loop {
            match self.poll_ready(&mut Context::from_waker(&waker)) {
                Poll::Ready(ready) => return ready.map(|()| true),
                Poll::Pending => {}
            }
            let Some(deadline) = deadline else {
                thread::park();
                continue;
            };
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(false);
            }
            thread::park_timeout(left);
        }
    }

    /// The same for tasks, without a bound on the time.
    ///
    /// # Errors
    /// As [`wait`](Self::wait).
    pub async fn ready(&mut self) -> Result<(), LogError> {
        std::future::poll_fn(|context| self.poll_ready(context)).await
    }

    /// The same for those who poll: ready when there is something to read, which is on the disk or in the cache.
    ///
    /// # Errors
    /// As [`wait`](Self::wait).
    pub fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), LogError>> {
        let ready = self
            .feed
            .is_ready(self.number, self.offset, self.cuts, context.waker());
        match ready {
            Ok(false) => Poll::Pending,
            Ok(true) => Poll::Ready(Ok(())),
            Err(error) => Poll::Ready(Err(error)),
        }
    }

    /// Goes to `offset`, in the segment that was found for it. Returns the hash there; none inside of a frame.
    fn skip_to(&mut self, offset: LogOffset) -> Result<Option<LogHash>, LogError> {
        let Some(segment) = &mut self.segment else {
            return Ok(None);
        };
        segment.skip_to(offset)?;
        let is_there = segment.chain.next_offset == offset;
        Ok(is_there.then_some(segment.chain.hash))
    }

    /// Reads up to the end of the next frame with a transaction that is wanted. Its first transaction, and their number.
    fn advance(&mut self) -> Result<Option<(LogOffset, u32)>, LogError> {
        loop {
            let Some((first_offset, count)) = self.step()? else {
                return Ok(None);
            };
            if count > 0 && first_offset + u64::from(count) > self.offset {
                return Ok(Some((first_offset, count)));
            }
        }
    }

    /// Reads the next frame or mark.
    fn step(&mut self) -> Result<Option<(LogOffset, u32)>, LogError> {
        loop {
            let Some(segment) = &mut self.segment else {
                return match self.feed.durable_offset() > self.offset {
                    true => Err(self.feed.left_behind(self.offset)),
                    false => Ok(None),
                };
            };
            if self.feed.cuts() != self.cuts {
                self.find_again()?;
                continue;
            }
            if segment.position < segment.end {
                match segment.step(self.offset) {
                    Ok(Step::Frame(frame)) => return Ok(Some((frame.first_offset, frame.count))),
                    Ok(Step::End) => segment.is_over = true,
                    // The file may be the one from after the cut.
                    Ok(Step::Bad { .. }) | Err(_) if self.feed.was_cut(self.cuts) => continue,
                    Ok(Step::Bad { found, .. }) => return Err(segment.damaged(found)),
                    Err(error) => return Err(error),
                }
            }
            if !self.go_on()? {
                return Ok(None);
            }
        }
    }

    /// All that was known to be durable has been read: finds out where it goes on. False if there is nothing more yet.
    fn go_on(&mut self) -> Result<bool, LogError> {
        let Some(segment) = &mut self.segment else {
            return Ok(false);
        };
        match self.feed.next(segment, self.cuts)? {
            Next::Nothing => return Ok(false),
            Next::Cut => {}
            Next::Here(limit) => segment.read_on_to(limit)?,
            Next::Segment(next, limit) => {
                segment.check_joint(&next)?;
                match self.open(&next, limit) {
                    // The next step goes on from there.
                    Err(_) if self.feed.was_cut(self.cuts) => {}
                    opened => opened?,
                }
            }
        }
        Ok(true)
    }

    fn find(&mut self, from: LogOffset) -> Result<(), LogError> {
        loop {
            let (found, cuts) = self.feed.find(from)?;
            self.cuts = cuts;
            let Some((segment, limit)) = found else {
                return Ok(());
            };
            match self.open(&segment, limit) {
                Err(_) if self.feed.was_cut(cuts) => {}
                opened => return opened,
            }
        }
    }

    fn open(
        &mut self,
        segment: &Arc<Segment>,
        limit: Option<FilePosition>,
    ) -> Result<(), LogError> {
        let opened = SegmentReader::open(self.feed.directory(), segment, limit);
        let reader = opened.map_err(|error| match error {
            LogError::Io { source, .. } if source.kind() == ErrorKind::NotFound => {
                self.feed.left_behind(self.offset)
            }
            error => error,
        })?;
        self.segment = Some(match self.feed.take_kept(segment) {
            Some(kept) => reader.with_frames(kept),
            None => reader,
        });
        Ok(())
    }

    /// After a cut of the log: goes on at the same place, if that is still there.
    fn find_again(&mut self) -> Result<(), LogError> {
        let wanted = self.offset;
        let cut_away = LogError::CutAway { offset: wanted };
        let Some(segment) = &mut self.segment else {
            return Ok(());
        };
        // A reader that has begun nothing counts on all before its offset. The file from before the cut is still open.
        match segment.skip_to(wanted) {
            // It was opened just when it was cut, before that offset.
            Err(LogError::Damaged { .. }) => return Err(cut_away),
            skipped => skipped?,
        };
        let Chain {
            next_offset: offset,
            hash,
            ..
        } = segment.chain;
        let mut again = self.read_again(offset)?;
        let found = match again.skip_to(offset) {
            // The next step compares anew.
            Err(_) if self.feed.was_cut(again.cuts) => return Ok(()),
            found => found?,
        };
        if found != Some(hash) {
            return Err(cut_away);
        }
        if offset > wanted {
            // The wanted transaction is inside of the frame that was compared.
            let cuts = again.cuts;
            again = self.read_again(wanted)?;
            if again.cuts != cuts {
                return Ok(());
            }
        }
        self.segment = again.segment.take();
        self.cuts = again.cuts;
        Ok(())
    }

    /// Another reader of a log that was cut.
    fn read_again(&self, offset: LogOffset) -> Result<LogReader, LogError> {
        match self.feed.read(offset) {
            Err(LogError::OutOfRange { oldest, .. }) if offset < oldest => {
                Err(self.feed.left_behind(offset))
            }
            Err(LogError::OutOfRange { .. }) => Err(LogError::CutAway {
                offset: self.offset,
            }),
            found => found,
        }
    }
}

impl Clone for LogReader {
    fn clone(&self) -> LogReader {
        LogReader {
            feed: self.feed.clone(),
            number: self.feed.new_reader(),
            offset: self.offset,
            segment: self.segment.clone(),
            cuts: self.cuts,
        }
    }
}

impl Drop for LogReader {
    fn drop(&mut self) {
        self.feed.forget_reader(self.number);
    }
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}
