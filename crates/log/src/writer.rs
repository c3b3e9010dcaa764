//! Group commit: one thread, one write and one sync for all that has gathered.
//!
//! While a sync runs, proposals queue up; when it ends, all of them go out together. So alone a transaction waits for one sync,
//! and under load thousands share one.
//!
//! When a few transactions have gathered during a sync, several slow clients are at work. Then the next sync waits as long as
//! the last one took, at most [`LogWriterOptions::gather_us_max`]: syncs without a pause would take the processor from the clients
//! who could fill the batch. Alone, a transaction never waits.

use std::any::Any;
use std::mem;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use lightcone_storage::LogOffset;

use crate::chain::{Epoch, LogHash};
use crate::error::LogError;
use crate::feed::LogFeed;
use crate::format::{FRAME_HEADER_BYTES, PAYLOAD_BYTES_MAX};
use crate::log::{Frame, Log};
use crate::reader::FrameRef;

/// So few transactions wait for others before a sync.
const GATHERED_MAX: u64 = 4;

#[derive(Clone, Debug)]
pub struct LogWriterOptions {
    /// Payload bytes in the queue and on their way to the disk that make it full: see [`LogWriter::wait_for_room`].
    pub queue_bytes_max: usize,
    /// Proposals share a frame up to this size. A larger one is a frame of its own.
    pub frame_bytes_max: usize,
    /// How many used buffers are kept for [`Proposed::spare`].
    pub buffers_kept_max: usize,
    /// Buffers larger than this are not kept.
    pub buffer_bytes_kept_max: usize,
    /// Longest wait between two syncs for more to come, in microseconds; 0 for none.
    pub gather_us_max: u64,
}

impl Default for LogWriterOptions {
    fn default() -> LogWriterOptions {
        LogWriterOptions {
            queue_bytes_max: 64 << 20,
            frame_bytes_max: 8 << 20,
            buffers_kept_max: 16,
            buffer_bytes_kept_max: 4 << 20,
            gather_us_max: 200,
        }
    }
}

/// Reported in order, from the writer's thread.
#[derive(Clone, Debug)]
pub enum CommitEvent {
    /// All transactions before this one are committed: they are durable, and nothing takes them back.
    Committed {
        /// The first transaction that is not committed yet.
        next_offset: LogOffset,
    },
    /// The log failed and takes no more: the disk refused, or the thread panicked. Reported at most once, with no `Committed` after
    /// it, and always if the thread ends without a shutdown.
    Poisoned { error: Arc<LogError> },
    /// Old segments could not be removed. The log goes on.
    TrimFailed { error: Arc<LogError> },
}

/// Why a proposal was refused.
#[derive(Clone, Debug, thiserror::Error)]
pub enum ProposeError {
    /// The log failed earlier.
    #[error(transparent)]
    Poisoned(Arc<LogError>),
    /// [`LogWriter::shutdown`] was called, or the commit thread has ended.
    #[error("the log has been shut down [LC0510]")]
    Closed,
    /// The proposal is not the next one, is empty, or is too large: a bug of the caller.
    #[error("the log expected transaction {expected} next, in at most {PAYLOAD_BYTES_MAX} bytes, but got {count} from {first_offset} on in {bytes} bytes [LC0509]")]
    Unfit {
        expected: LogOffset,
        first_offset: LogOffset,
        count: u32,
        bytes: usize,
    },
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LogWriterStats {
    /// Ahead of the other figures for a moment.
    pub committed_offset: LogOffset,
    pub transactions: u64,
    pub frames: u64,
    /// With headers.
    pub log_bytes: u64,
    pub syncs: u64,
    /// In the queue and on their way to the disk.
    pub queue_bytes: usize,
}

/// What comes of a proposal.
#[derive(Debug)]
pub struct Proposed {
    /// An empty buffer, with the capacity of an earlier one where possible.
    pub spare: Vec<u8>,
    /// More waits than should: see [`LogWriter::wait_for_room`].
    pub is_full: bool,
}

/// Where a frame comes from that another log had first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Followed {
    /// Who has sent it.
    pub leader: Epoch,
    /// In which it was written.
    pub epoch: Epoch,
    /// Of all transactions up to its last one.
    pub hash: LogHash,
}

struct Proposal {
    first_offset: LogOffset,
    /// After its last transaction.
    next_offset: LogOffset,
    count: u32,
    payload: Vec<u8>,
    /// Then it is a frame, and stays one.
    followed: Option<Followed>,
}

#[derive(Default)]
struct Queue {
    proposals: Vec<Proposal>,
    /// Where the next proposal must begin.
    next_offset: LogOffset,
    /// Transactions before this one may be trimmed.
    trim_before: LogOffset,
    /// For [`Proposed::spare`].
    buffers: Vec<Vec<u8>>,
    poison: Option<Arc<LogError>>,
    /// No more proposals; the queue is still written.
    closing: bool,
    ended: bool,
    /// The log, once the thread has ended.
    log: Option<Box<dyn Log>>,
    idle: bool,
    /// Callers that wait for space or for durability.
    waiters: usize,
    stats: LogWriterStats,
}

impl Queue {
    fn has_room(&self, bytes: usize, bytes_max: usize) -> bool {
        let waiting = self.stats.queue_bytes;
        let fits = waiting == 0 || waiting.saturating_add(bytes) <= bytes_max;
        fits || self.poison.is_some() || self.ended
    }
}

struct Shared {
    queue: Mutex<Queue>,
    /// For the thread.
    work: Condvar,
    /// For callers: space in the queue, a committed offset, or the end.
    progress: Condvar,
    /// A [`LogOffset`] that only the thread moves, forward.
    committed_offset: AtomicU64,
    /// [`LogWriterStats::log_bytes`]
    log_bytes: AtomicU64,
}

impl Shared {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn wake_thread(&self, queue: &mut Queue) {
        if mem::take(&mut queue.idle) {
            self.work.notify_one();
        }
    }

    fn wake_waiters(&self, queue: &Queue) {
        if queue.waiters > 0 {
            self.progress.notify_all();
        }
    }

    fn wait<'a>(&self, mut queue: MutexGuard<'a, Queue>) -> MutexGuard<'a, Queue> {
        queue.waiters += 1;
        let mut queue = self
            .progress
            .wait(queue)
            .unwrap_or_else(|poisoned| poisoned.into_inner());
        queue.waiters -= 1;
        queue
    }
}

pub const THREAD_NAME: &str = "log";

/// The handle of a commit thread. On drop, the queue is written and the thread ends.
pub struct LogWriter {
    shared: Arc<Shared>,
    options: LogWriterOptions,
    feed: LogFeed,
}

impl LogWriter {
    /// As [`LogWriter::start`], on a thread of the operating system.
    pub fn spawn(
        log: Box<dyn Log>,
        options: LogWriterOptions,
        on_event: Box<dyn FnMut(CommitEvent) + Send>,
    ) -> LogWriter {
        LogWriter::start(log, options, on_event, |mut worker| {
            let thread = std::thread::Builder::new().name(THREAD_NAME.to_owned());
            let started = thread.spawn(move || {
                while worker.step() {
                    worker.wait();
                }
            });
            started.expect("the operating system has a thread for the log");
        })
    }

    /// Hands the worker to `spawn`, which has it stepped until it ends, on a thread or in turn with others. It owns `log`, writes
    /// with its present epoch and goes on at its next offset. `on_event` is called in its steps and should be short.
    pub fn start(
        log: Box<dyn Log>,
        options: LogWriterOptions,
        on_event: Box<dyn FnMut(CommitEvent) + Send>,
        spawn: impl FnOnce(LogWorker),
    ) -> LogWriter {
        let (tail, feed) = (log.tail(), log.feed());
        let queue = Queue {
            next_offset: tail.next_offset,
            ..Queue::default()
        };
        let shared = Arc::new(Shared {
            queue: Mutex::new(queue),
            work: Condvar::new(),
            progress: Condvar::new(),
            committed_offset: AtomicU64::new(tail.durable_offset.get()),
            log_bytes: AtomicU64::new(0),
        });
        let worker = Worker {
            shared: shared.clone(),
            options: options.clone(),
            log,
            epoch: tail.epoch,
            committed_offset: tail.durable_offset,
            trimmed_before: tail.oldest_offset,
            batch: Vec::new(),
            trim_before: tail.oldest_offset,
            last_sync: Duration::ZERO,
            on_event,
            end: EndMark(shared.clone()),
        };
        spawn(LogWorker(Some(worker)));
        LogWriter {
            shared,
            options,
            feed,
        }
    }

    /// Queues the records of `count` transactions from `first_offset` on, however many wait: who proposes has
    /// [waited](Self::wait_for_room).
    pub fn propose(
        &self,
        first_offset: LogOffset,
        count: u32,
        payload: Vec<u8>,
    ) -> Result<Proposed, ProposeError> {
        self.push(first_offset, count, payload, None)
    }

    /// The same of a frame of another log, which is [followed](Log::follow).
    pub fn follow(
        &self,
        first_offset: LogOffset,
        count: u32,
        payload: Vec<u8>,
        followed: Followed,
    ) -> Result<Proposed, ProposeError> {
        self.push(first_offset, count, payload, Some(followed))
    }

    fn push(
        &self,
        first_offset: LogOffset,
        count: u32,
        payload: Vec<u8>,
        followed: Option<Followed>,
    ) -> Result<Proposed, ProposeError> {
        let mut queue = self.shared.queue();
        if let Some(error) = &queue.poison {
            return Err(ProposeError::Poisoned(error.clone()));
        }
        if queue.closing || queue.ended {
            return Err(ProposeError::Closed);
        }
        let next_offset = first_offset.checked_add(count.into());
        let fits =
            first_offset == queue.next_offset && count > 0 && payload.len() <= PAYLOAD_BYTES_MAX;
        let (Some(next_offset), true) = (next_offset, fits) else {
            return Err(ProposeError::Unfit {
                expected: queue.next_offset,
                first_offset,
                count,
                bytes: payload.len(),
            });
        };
        queue.next_offset = next_offset;
        queue.stats.queue_bytes += payload.len();
        queue.proposals.push(Proposal {
            first_offset,
            next_offset,
            count,
            payload,
            followed,
        });
        self.shared.wake_thread(&mut queue);
        Ok(Proposed {
            spare: queue.buffers.pop().unwrap_or_default(),
            is_full: !queue.has_room(0, self.options.queue_bytes_max),
        })
    }

    /// Whether there is room for so many payload bytes: they fit below [`LogWriterOptions::queue_bytes_max`], or nothing waits, or
    /// the log takes no more, as a proposal hears.
    pub fn has_room(&self, bytes: usize) -> bool {
        let queue = self.shared.queue();
        queue.has_room(bytes, self.options.queue_bytes_max)
    }

    /// Blocks until there [is room](Self::has_room).
    pub fn wait_for_room(&self, bytes: usize) {
        let mut queue = self.shared.queue();
        while !queue.has_room(bytes, self.options.queue_bytes_max) {
            queue = self.shared.wait(queue);
        }
    }

    /// The way to follow the log.
    pub fn feed(&self) -> &LogFeed {
        &self.feed
    }

    /// All transactions before this one are committed.
    pub fn committed_offset(&self) -> LogOffset {
        LogOffset::new(self.shared.committed_offset.load(Ordering::Acquire))
    }

    /// Blocks until all transactions before `offset` are committed.
    pub fn wait_committed(&self, offset: LogOffset) -> Result<(), ProposeError> {
        let mut queue = self.shared.queue();
        while self.committed_offset() < offset {
            if let Some(error) = &queue.poison {
                return Err(ProposeError::Poisoned(error.clone()));
            }
            if queue.ended {
                return Err(ProposeError::Closed);
            }
            queue = self.shared.wait(queue);
        }
        Ok(())
    }

    /// Requests the removal of segments with only transactions before `before_offset`.
    pub fn trim(&self, before_offset: LogOffset) {
        let mut queue = self.shared.queue();
        queue.trim_before = queue.trim_before.max(before_offset);
        self.shared.wake_thread(&mut queue);
    }

    pub fn stats(&self) -> LogWriterStats {
        LogWriterStats {
            committed_offset: self.committed_offset(),
            log_bytes: self.log_bytes(),
            ..self.shared.queue().stats
        }
    }

    /// [`LogWriterStats::log_bytes`] alone, without a lock.
    pub fn log_bytes(&self) -> u64 {
        self.shared.log_bytes.load(Ordering::Relaxed)
    }

    /// Writes the queue, closes the log, ends the thread, and gives the log back: once. What was counted can still be read.
    pub fn shutdown(&self) -> Result<Box<dyn Log>, ProposeError> {
        self.close();
        self.wait_ended();
        let mut queue = self.shared.queue();
        let log = queue.log.take();
        match (&queue.poison, log) {
            (Some(error), _) => Err(ProposeError::Poisoned(error.clone())),
            (None, Some(log)) => Ok(log),
            (None, None) => Err(ProposeError::Closed),
        }
    }

    /// The failed log, to read what of it is durable. Waits for the end of the thread. None if the log works, or was taken.
    pub fn failed_log(&self) -> Option<Box<dyn Log>> {
        self.shared.queue().poison.as_ref()?;
        self.wait_ended();
        self.shared.queue().log.take()
    }

    /// Has the worker write the queue, close the log and end. [`shutdown`](Self::shutdown) does not block when it
    /// [has](Self::has_ended).
    pub fn close(&self) {
        let mut queue = self.shared.queue();
        queue.closing = true;
        self.shared.wake_thread(&mut queue);
    }

    /// Whether the worker has given the log back.
    pub fn has_ended(&self) -> bool {
        self.shared.queue().ended
    }

    /// Blocks until the worker [has ended](Self::has_ended). It catches its own panics and reports them.
    pub fn wait_ended(&self) {
        let mut queue = self.shared.queue();
        while !queue.ended {
            queue = self.shared.wait(queue);
        }
    }
}

impl Drop for LogWriter {
    fn drop(&mut self) {
        self.close();
        self.wait_ended();
        // Its files and lock are free when this returns, although the thread may still be running.
        let log = self.shared.queue().log.take();
        drop(log);
    }
}

struct Worker {
    shared: Arc<Shared>,
    options: LogWriterOptions,
    log: Box<dyn Log>,
    epoch: Epoch,
    /// A copy of `Shared::committed_offset`.
    committed_offset: LogOffset,
    /// The last trim.
    trimmed_before: LogOffset,
    /// What is taken from the queue: proposals, and how far the log may be trimmed.
    batch: Vec<Proposal>,
    trim_before: LogOffset,
    last_sync: Duration,
    on_event: Box<dyn FnMut(CommitEvent) + Send>,
    /// Dropped also if the work never runs.
    end: EndMark,
}

/// On drop, tells all waiters that the thread has ended, also after a panic.
struct EndMark(Arc<Shared>);

impl Drop for EndMark {
    fn drop(&mut self) {
        let mut queue = self.0.queue();
        queue.ended = true;
        queue.proposals.clear();
        queue.stats.queue_bytes = 0;
        self.0.wake_waiters(&queue);
    }
}

/// What writes the log, until it ends.
pub struct LogWorker(Option<Worker>);

impl LogWorker {
    /// Commits all that has gathered, and waits for nothing but the disk. False: it has ended.
    pub fn step(&mut self) -> bool {
        let Some(worker) = &mut self.0 else {
            return false;
        };
        let stepped = catch_unwind(AssertUnwindSafe(|| {
            let stepped = worker.step();
            stepped.unwrap_or_else(|error| {
                worker.poison(error);
                false
            })
        }));
        let goes_on = stepped.unwrap_or_else(|panic| {
            let text = panic_text(&panic).to_owned();
            // The listener may panic itself.
            let tell = AssertUnwindSafe(|| worker.poison(LogError::Panicked { text }));
            let _ = catch_unwind(tell);
            false
        });
        if !goes_on {
            self.end();
        }
        goes_on
    }

    /// Blocks until there is something to do.
    pub fn wait(&mut self) {
        if let Some(worker) = &mut self.0 {
            worker.wait();
        }
    }

    fn end(&mut self) {
        if let Some(Worker {
            log, on_event, end, ..
        }) = self.0.take()
        {
            // The listener is gone before waiters see the end.
            drop(on_event);
            end.0.queue().log = Some(log);
        }
    }
}

impl Worker {
    /// False: all is done, and the log is closed.
    fn step(&mut self) -> Result<bool, LogError> {
        if self.batch.is_empty() {
            let shared = self.shared.clone();
            let mut queue = shared.queue();
            self.take(&mut queue);
            if self.has_nothing() && queue.closing {
                drop(queue);
                return self.log.close().map(|()| false);
            }
        }
        if !self.batch.is_empty() {
            let started = Instant::now();
            let frames = self.commit()?;
            self.last_sync = started.elapsed();
            self.publish(frames);
        }
        if self.trim_before > self.trimmed_before {
            self.trimmed_before = self.trim_before;
            if let Err(error) = self.log.trim(self.trim_before) {
                (self.on_event)(CommitEvent::TrimFailed {
                    error: Arc::new(error),
                });
            }
        }
        Ok(true)
    }

    /// Waits for proposals, for something to trim, or for the end. Pauses first if only a few proposals have gathered.
    fn wait(&mut self) {
        let shared = self.shared.clone();
        let pause = Duration::from_micros(self.options.gather_us_max).min(self.last_sync);
        let mut queue = shared.queue();
        let gathered = queue.next_offset - self.committed_offset;
        let are_few = (1..=GATHERED_MAX).contains(&gathered) && !queue.closing;
        if are_few && !pause.is_zero() {
            drop(queue);
            std::thread::sleep(pause);
            queue = shared.queue();
        }
        self.take(&mut queue);
        while self.has_nothing() && !queue.closing {
            queue.idle = true;
            queue = shared
                .work
                .wait(queue)
                .unwrap_or_else(|poisoned| poisoned.into_inner());
            queue.idle = false;
            self.take(&mut queue);
        }
    }

    /// All proposals go into the batch, which is empty.
    fn take(&mut self, queue: &mut Queue) {
        mem::swap(&mut self.batch, &mut queue.proposals);
        self.trim_before = queue.trim_before;
    }

    fn has_nothing(&self) -> bool {
        self.batch.is_empty() && self.trim_before <= self.trimmed_before
    }

    /// Returns the number of frames.
    fn commit(&mut self) -> Result<u64, LogError> {
        let mut frames = 0;
        let mut rest = &self.batch[..];
        let mut parts: Vec<&[u8]> = Vec::with_capacity(rest.len());
        while let Some(first) = rest.first() {
            let (mut bytes, mut count) = (0, 0u32);
            let fits = |proposal: &&Proposal| {
                let is_first = bytes == 0 && count == 0;
                let are_own = proposal.followed.is_none() && first.followed.is_none();
                let sum = count.checked_add(proposal.count);
                bytes += proposal.payload.len();
                count = sum.unwrap_or(count);
                is_first || (are_own && bytes <= self.options.frame_bytes_max && sum.is_some())
            };
            let taken = rest.iter().take_while(fits).count();
            let (now, later) = rest.split_at(taken);
            rest = later;
            frames += 1;
            if let Some(followed) = first.followed {
                self.log.follow(
                    followed.leader,
                    FrameRef {
                        first_offset: first.first_offset,
                        count: first.count,
                        epoch: followed.epoch,
                        hash: followed.hash,
                        payload: &first.payload,
                    },
                )?;
                continue;
            }
            parts.clear();
            parts.extend(now.iter().map(|proposal| &proposal.payload[..]));
            let count = now.iter().map(|proposal| proposal.count).sum();
            self.log.append(
                self.epoch,
                Frame {
                    first_offset: first.first_offset,
                    count,
                    payload: &parts,
                },
            )?;
        }
        self.log.sync()?;
        Ok(frames)
    }

    /// Reports the batch as committed and takes its buffers back.
    fn publish(&mut self, frames: u64) {
        let last = self.batch.last().expect("a batch is not empty");
        let next_offset = last.next_offset;
        assert_eq!(
            self.log.tail().durable_offset,
            next_offset,
            "the log has made durable what was proposed, no less and no more"
        );
        self.committed_offset.advance_to(next_offset);
        self.shared
            .committed_offset
            .store(next_offset.get(), Ordering::Release);
        (self.on_event)(CommitEvent::Committed { next_offset });
        let mut queue = self.shared.queue();
        queue.stats.frames += frames;
        queue.stats.syncs += 1;
        let mut log_bytes = frames * FRAME_HEADER_BYTES as u64;
        for proposal in self.batch.drain(..) {
            let mut payload = proposal.payload;
            queue.stats.transactions += u64::from(proposal.count);
            log_bytes += payload.len() as u64;
            queue.stats.queue_bytes -= payload.len();
            if queue.buffers.len() < self.options.buffers_kept_max
                && payload.capacity() <= self.options.buffer_bytes_kept_max
            {
                payload.clear();
                queue.buffers.push(payload);
            }
        }
        let bytes_so_far = &self.shared.log_bytes;
        bytes_so_far.fetch_add(log_bytes, Ordering::Relaxed);
        self.shared.wake_waiters(&queue);
    }

    fn poison(&mut self, error: LogError) {
        if self.shared.queue().poison.is_some() {
            return;
        }
        let error = match error {
            LogError::Poisoned { cause } => cause,
            error => Arc::new(error),
        };
        // A thread that panicked has told no reader.
        self.log.feed().end(Some(&error));
        let error = Arc::new(LogError::Poisoned { cause: error });
        {
            let mut queue = self.shared.queue();
            queue.poison = Some(error.clone());
            queue.proposals.clear();
            self.shared.wake_waiters(&queue);
        }
        (self.on_event)(CommitEvent::Poisoned { error });
    }
}

fn panic_text(panic: &Box<dyn Any + Send>) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("no text")
}
