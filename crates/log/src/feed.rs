//! What readers see of a log while it is written: its segments, the end of what is durable, and who waits for more.

use std::collections::{BTreeMap, VecDeque};
use std::io::ErrorKind;
use std::mem;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;

use lightcone_storage::{Directory, FilePosition, LogOffset, OpenMode};

use crate::chain::Epoch;
use crate::error::LogError;
use crate::segment::{Segment, SegmentPlace, SegmentReader};

/// Trimming keeps at most so many segments for readers alone. A reader that still needs an older one gets [`LogError::LeftBehind`].
pub const SEGMENTS_PINNED_MAX: usize = 16;

/// The way to read a log beside its writer. Clones are of the same log.
#[derive(Clone)]
pub struct LogFeed(Arc<Shared>);

struct Shared {
    directory: Directory,
    /// How often the log was cut since it was opened. Changed with `state`.
    cuts: AtomicU64,
    state: Mutex<State>,
}

struct State {
    /// Oldest first; none in a log that keeps nothing. Who holds one keeps it, and all behind it, from being trimmed.
    segments: VecDeque<Arc<Segment>>,
    /// The durable end, in the last segment.
    end: SegmentPlace,
    /// The frames that the last segment had when the log was opened, for the first reader that comes to them.
    kept: Option<Vec<u8>>,
    /// Why nothing comes any more.
    ended: Option<Ended>,
    /// By the number of the reader.
    waiting: BTreeMap<u64, Waker>,
    readers: u64,
}

#[derive(Clone)]
enum Ended {
    Closed,
    Failed(Arc<LogError>),
}

/// A segment and how far it is durable: up to this place, or else to its end.
type Readable = (Arc<Segment>, Option<FilePosition>);

/// Where a reader goes on.
pub(crate) enum Next {
    /// In the segment that it reads, up to this place, or else to its end.
    Here(Option<FilePosition>),
    /// With this segment, up to this place.
    Segment(Arc<Segment>, Option<FilePosition>),
    /// All that is durable was read.
    Nothing,
    /// Not there: the log was cut.
    Cut,
}

impl LogFeed {
    pub(crate) fn new(
        directory: Directory,
        segments: Vec<Arc<Segment>>,
        end: SegmentPlace,
    ) -> LogFeed {
        let state = State {
            segments: segments.into(),
            end,
            kept: None,
            ended: None,
            waiting: BTreeMap::new(),
            readers: 0,
        };
        LogFeed(Arc::new(Shared {
            directory,
            cuts: AtomicU64::new(0),
            state: Mutex::new(state),
        }))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn directory(&self) -> &Directory {
        &self.0.directory
    }

    pub fn durable_offset(&self) -> LogOffset {
        self.state().end.chain.next_offset
    }

    /// Writers of older ones are fenced.
    pub fn epoch(&self) -> Epoch {
        self.state().end.chain.epoch
    }

    pub fn oldest_offset(&self) -> LogOffset {
        self.state().oldest_offset()
    }

    /// Where each segment begins, and the bytes of its file, oldest first. None in a log that keeps nothing.
    ///
    /// # Errors
    /// The disk.
    pub fn segment_bytes(&self) -> Result<Vec<(LogOffset, u64)>, LogError> {
        let segments: Vec<Arc<Segment>> = self.state().segments.iter().cloned().collect();
        let sized = segments.iter().map(|segment| {
            let opened = self.directory().open(&segment.path, OpenMode::Read);
            let bytes = match opened.and_then(|file| file.end()) {
                Ok(end) => end.get(),
                // It was trimmed meanwhile.
                Err(error) if error.source.kind() == ErrorKind::NotFound => 0,
                Err(error) => return Err(error.into()),
            };
            Ok((segment.header.start.next_offset, bytes))
        });
        sized.collect()
    }

    /// Whether this file is the last segment, all of which a recovery reads, whatever snapshots there are.
    pub fn is_last(&self, path: &Path) -> bool {
        let state = self.state();
        state.segments.back().is_some_and(|last| last.path == path)
    }

    pub(crate) fn keep(&self, kept: Option<Vec<u8>>) {
        self.state().kept = kept;
    }

    /// What is kept of this segment.
    pub(crate) fn take_kept(&self, segment: &Segment) -> Option<Vec<u8>> {
        let mut state = self.state();
        let last = state.segments.back()?.header.number;
        state.kept.take_if(|_| segment.header.number == last)
    }

    /// The segment that has the transaction `from`, or will have it; how far it is durable; how often the log was cut. None if
    /// the log keeps nothing.
    pub(crate) fn find(&self, from: LogOffset) -> Result<(Option<Readable>, u64), LogError> {
        let state = self.state();
        let (oldest, next) = (state.oldest_offset(), state.end.chain.next_offset);
        if from < oldest || from > next {
            return Err(LogError::OutOfRange {
                wanted: from,
                oldest,
                next,
            });
        }
        let behind = state
            .segments
            .partition_point(|segment| segment.header.start.next_offset <= from);
        let place = behind.max(1) - 1;
        let found = state.segments.get(place);
        let found = found.map(|segment| (segment.clone(), state.limit(place)));
        Ok((found, self.cuts()))
    }

    /// All segments, and the durable end in the last one.
    pub(crate) fn segments(&self) -> (Vec<Arc<Segment>>, SegmentPlace) {
        let state = self.state();
        (state.segments.iter().cloned().collect(), state.end)
    }

    /// How often the log was cut since it was opened.
    pub(crate) fn cuts(&self) -> u64 {
        self.0.cuts.load(Ordering::Acquire)
    }

    /// Where a reader goes on that has read all it knew of, after so many cuts.
    pub(crate) fn next(&self, reader: &SegmentReader, cuts: u64) -> Result<Next, LogError> {
        let state = self.state();
        if self.cuts() != cuts {
            return Ok(Next::Cut);
        }
        let number = reader.segment.header.number;
        let oldest = state.segments.front().map_or(0, |s| s.header.number);
        let Some(place) = number.checked_sub(oldest) else {
            // Its segment was trimmed, so all of that is durable, and the reader has the file.
            return match state.segments.front() {
                _ if !reader.is_over => Ok(Next::Here(None)),
                Some(next) if number + 1 == oldest => {
                    Ok(Next::Segment(next.clone(), state.limit(0)))
                }
                _ => Err(state.left_behind(reader.chain.next_offset)),
            };
        };
        let place = place as usize;
        if let Some(next) = state.segments.get(place + 1) {
            return Ok(match reader.is_over {
                true => Next::Segment(next.clone(), state.limit(place + 1)),
                false => Next::Here(None),
            });
        }
        let end = state.end;
        match reader.position < end.position {
            true if reader.is_over => Err(reader.damaged(format!(
                "the frames end here before transaction {}, but the log goes on to {} (exclusive)",
                reader.chain.next_offset, end.chain.next_offset
            ))),
            true => Ok(Next::Here(Some(end.position))),
            false => Ok(Next::Nothing),
        }
    }

    /// Whether there is something for a reader that has read up to `offset`. If not, `waker` is told when there is.
    pub(crate) fn is_ready(
        &self,
        reader: u64,
        offset: LogOffset,
        cuts: u64,
        waker: &Waker,
    ) -> Result<bool, LogError> {
        // Cloning and dropping a waker may run any code, so neither is done under the lock.
        let waker = waker.clone();
        let mut state = self.state();
        if state.end.chain.next_offset > offset || self.cuts() != cuts {
            return Ok(true);
        }
        let ended = state.ended.clone();
        match ended {
            Some(Ended::Closed) => Err(LogError::Closed),
            Some(Ended::Failed(cause)) => Err(LogError::Poisoned { cause }),
            None => {
                let replaced = state.waiting.insert(reader, waker);
                drop(state);
                drop(replaced);
                Ok(false)
            }
        }
    }

    /// The error of a reader that needs a segment which is gone.
    pub(crate) fn left_behind(&self, wanted: LogOffset) -> LogError {
        self.state().left_behind(wanted)
    }

    pub(crate) fn new_reader(&self) -> u64 {
        let mut state = self.state();
        state.readers += 1;
        state.readers
    }

    pub(crate) fn forget_reader(&self, reader: u64) {
        let forgotten = self.state().waiting.remove(&reader);
        // The lock is free again.
        drop(forgotten);
    }

    /// All before `end` of the last segment is durable.
    pub(crate) fn publish(&self, end: SegmentPlace) {
        self.change(|state| state.end = end);
    }

    /// A new segment, which begins at the durable end.
    pub(crate) fn push(&self, segment: Arc<Segment>) {
        let end = SegmentPlace::at_start_of(&segment.header);
        self.change(|state| {
            state.segments.push_back(segment);
            state.end = end;
        });
    }

    /// Takes out the oldest segment, if it has only transactions before `offset` and no reader needs it.
    pub(crate) fn take_oldest(&self, before_offset: LogOffset) -> Option<Arc<Segment>> {
        let mut state = self.state();
        let is_unneeded = |next: &&Arc<Segment>| next.header.start.next_offset <= before_offset;
        let unneeded = state
            .segments
            .iter()
            .skip(1)
            .take_while(is_unneeded)
            .count();
        let oldest = state.segments.front()?;
        let is_pinned = Arc::strong_count(oldest) > 1 && unneeded <= SEGMENTS_PINNED_MAX;
        if unneeded == 0 || is_pinned {
            return None;
        }
        state.segments.pop_front()
    }

    /// Puts back what [`take_oldest`](Self::take_oldest) took.
    pub(crate) fn put_back(&self, segment: Arc<Segment>) {
        self.state().segments.push_front(segment);
    }

    /// The segments up to the one of a cut at `offset`, and those behind it.
    pub(crate) fn around(&self, offset: LogOffset) -> (Arc<Segment>, Vec<Arc<Segment>>) {
        let state = self.state();
        let begins_before = |segment: &Arc<Segment>| segment.header.start.next_offset < offset;
        let kept = state.segments.partition_point(begins_before).max(1);
        let later = state.segments.iter().skip(kept).cloned().collect();
        (state.segments[kept - 1].clone(), later)
    }

    /// The log ends in `last` now, which takes the place of the segment with its number once `name` has given it the name of that.
    /// Readers hear of both at once.
    pub(crate) fn cut(
        &self,
        last: &Arc<Segment>,
        end: SegmentPlace,
        name: impl FnOnce() -> Result<(), LogError>,
    ) -> Result<(), LogError> {
        let mut named = Ok(());
        self.change(|state| {
            named = name();
            if named.is_err() {
                return;
            }
            let is_kept = |segment: &Arc<Segment>| segment.header.number < last.header.number;
            state.segments.retain(is_kept);
            state.segments.push_back(last.clone());
            state.end = end;
            state.kept = None;
            self.0.cuts.fetch_add(1, Ordering::Release);
        });
        named
    }

    /// Whether the log was cut after it had been cut so often; waits for a cut that is under way.
    pub(crate) fn was_cut(&self, cuts: u64) -> bool {
        let _state = self.state();
        self.cuts() != cuts
    }

    /// Nothing comes any more: the log failed, or was closed.
    pub(crate) fn end(&self, cause: Option<&Arc<LogError>>) {
        let ended = cause.map_or(Ended::Closed, |cause| Ended::Failed(cause.clone()));
        self.change(|state| {
            state.ended.get_or_insert(ended);
        });
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        let woken = {
            let mut state = self.state();
            change(&mut state);
            mem::take(&mut state.waiting)
        };
        woken.into_values().for_each(Waker::wake);
    }
}

impl State {
    fn oldest_offset(&self) -> LogOffset {
        let oldest = self.segments.front();
        oldest.map_or(self.end.chain.next_offset, |segment| {
            segment.header.start.next_offset
        })
    }

    /// How far the segment at this place may be read; none if all of it is durable.
    fn limit(&self, place: usize) -> Option<FilePosition> {
        (place + 1 == self.segments.len()).then_some(self.end.position)
    }

    fn left_behind(&self, wanted: LogOffset) -> LogError {
        LogError::LeftBehind {
            wanted,
            oldest: self.oldest_offset(),
        }
    }
}
