//! Starting the log, fan-out and writer of a database.

use std::any::Any;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::atomic::Ordering;
use std::sync::mpsc::{channel, sync_channel, Receiver, Sender, SyncSender, TryRecvError};
use std::sync::{Arc, Weak};
use std::time::Duration;

use lightcone_engine::Datastore;
use lightcone_host::ModuleInstance;
use lightcone_log::{
    CommitEvent, Log, LogError, LogWorker, LogWriter, LogWriterOptions, ProposeError, THREAD_NAME,
};
use parking_lot::Mutex;
use tokio::sync::{mpsc, oneshot};

use crate::backfill::{Failure, Resumed};
use crate::courier::Ready;
use crate::effects::WayOut;
use crate::environment::{Next, Worker};
use crate::error::Error;
use crate::events::{Batch, FanoutItem};
use crate::fanout::Fanout;
use crate::guest::Guest;
use crate::handle::DatabaseHandle;
use crate::inbox::{Inbox, Inputs};
use crate::metrics::{Metrics, Replayed};
use crate::module::{Module, Program};
use crate::shared::{Ground, Shared};
use crate::snapshot;
use crate::status::FAILED_TEXT;
use crate::writer::{Phase, Writer, WriterState};

/// Batches kept for reuse between the writer and fan-out.
const SPARE_BATCHES: usize = 8;
const FANOUT_STACK_BYTES: usize = 2 << 20;
const LOG_STACK_BYTES: usize = 2 << 20;
/// So many connections get their messages from the log's thread itself: waking a network thread costs it as much as writing.
const DELIVERED_BY_LOG_MAX: usize = 2;
/// So long a database that has failed waits for a snapshot to end, before it gives its log back.
const LOG_GIVEN_BACK_MAX: Duration = Duration::from_secs(20);

/// What the threads of a database start with.
pub(super) struct Opened {
    pub ground: Ground,
    pub program: Program,
    pub datastore: Datastore,
    pub instance: Box<dyn ModuleInstance>,
    pub durable: Box<dyn Log>,
    /// Of the log.
    pub replayed: Replayed,
    /// The program of a backfill that goes on, or why there is none.
    pub resumed: Option<Result<Resumed, Failure>>,
    /// Another database, whose frames are its transactions.
    pub follows: bool,
}

/// # Errors
/// The system has no threads for it. Those that were started end, and the log is given back.
pub(super) fn start(opened: Opened) -> Result<DatabaseHandle, Error> {
    let Opened {
        ground,
        program,
        datastore,
        instance,
        durable,
        replayed,
        resumed,
        follows,
    } = opened;
    let backfilled = datastore.backfilled();
    let next_offset = durable.tail().next_offset;
    let limits = &ground.options.limits;
    let module = Arc::new(Module::new(program, &datastore, None, false, limits));
    let (items, inbox) = mpsc::unbounded_channel();
    let senders = Inbox::new(limits, items);
    let shared = Arc::new(Shared::new(
        ground,
        senders,
        next_offset,
        module.clone(),
        Metrics::new(replayed),
    ));
    if follows {
        shared.status.set_following();
    }
    if resumed.is_some() {
        // Callers hear of it before the writer is there.
        let now = shared.environment().instant();
        shared.status.migration.begin_backfill(now, None);
        shared.status.migration.backfilled(None, backfilled);
    }
    let (fanout, fanout_inbox) = channel();
    let (used_sender, used_batches) = sync_channel(SPARE_BATCHES);
    let fanout_stats = shared.status.fanout.clone();
    let fanout_machine = Fanout::new(
        shared.outbox.clone(),
        fanout_stats,
        shared.options.shared_environment(),
    );
    let machine = Arc::new(Mutex::new(fanout_machine));
    let fanout_thread = FanoutThread {
        fanout: machine.clone(),
        inbox: fanout_inbox,
        used_batches: used_sender,
        batches: 0,
        next: None,
        shared: Arc::downgrade(&shared),
    };
    spawn(&shared, "fan-out", FANOUT_STACK_BYTES, fanout_thread)?;
    let log = start_log(&shared, durable, fanout.clone())?;
    let way_out = WayOut {
        shared: shared.clone(),
        log,
        fanout,
        machine,
        used_batches,
        next_offset,
        batches: 0,
        has_failed: false,
    };
    let limits = &shared.options.limits;
    let snapshot_due_bytes = snapshot::due_bytes(limits, datastore.page_bytes());
    let writer = Writer {
        shared: shared.clone(),
        inputs: Inputs::new(inbox),
        way_out,
        phase: Phase::Begins(resumed),
        now: shared.environment().clocks(),
        datastore,
        guest: Guest::new(instance),
        module,
        next_offset,
        replayed_bytes: replayed.bytes,
        snapshot_due_bytes,
        state: WriterState::default(),
        traced: None,
    };
    let writer = WriterThread(Running::Writer(Box::new(writer)), shared.clone());
    spawn(&shared, "writer", shared.stack_bytes(), writer)?;
    Ok(DatabaseHandle::new(shared))
}

/// Works off the queue of fan-out until it is stopped, or the queue has no sender left. If it fails, it cuts its clients and ends the
/// writer.
struct FanoutThread {
    fanout: Arc<Mutex<Fanout>>,
    inbox: Receiver<FanoutItem>,
    used_batches: SyncSender<Box<Batch>>,
    /// That it is done with.
    batches: u64,
    /// It has waited for this.
    next: Option<FanoutItem>,
    shared: Weak<Shared>,
}

impl FanoutThread {
    fn work(&mut self) -> Next {
        let next = self.next.take().map_or_else(|| self.inbox.try_recv(), Ok);
        let item = match next {
            Ok(item) => item,
            Err(TryRecvError::Empty) => return Next::Waits,
            Err(TryRecvError::Disconnected) => return Next::Ended,
        };
        let mut fanout = self.fanout.lock();
        match item {
            FanoutItem::Batch(mut batch) => {
                fanout.batch(&mut batch);
                self.batches += 1;
                // The writer must see all that was pushed and held before (`WayOut::may_step_fanout`).
                let done = &fanout.stats.done_batches;
                done.store(self.batches, Ordering::Release);
                // If the writer has enough spare batches, this one is freed.
                let _ = self.used_batches.try_send(batch);
            }
            FanoutItem::Poisoned(error) => fanout.poisoned(&error),
            FanoutItem::Shapes(waiter, upkeep) => waiter.answer(fanout.shapes(&upkeep)),
            FanoutItem::Stop { code, reason, done } => {
                fanout.stop(code, &reason);
                // A writer that has failed does not wait for it.
                let _ = done.send(());
                return Next::Ended;
            }
        }
        Next::More
    }
}

impl Worker for FanoutThread {
    fn step(&mut self) -> Next {
        catch_unwind(AssertUnwindSafe(|| self.work())).unwrap_or_else(|panic| {
            tracing::error!(
                panic = panic_text(&panic),
                "fan-out failed; the database stops [LC0308]"
            );
            self.fanout.lock().cut_all();
            // It may wait for requests, and would take some more before it noticed.
            if let Some(shared) = self.shared.upgrade() {
                shared.fail();
            }
            Next::Ended
        })
    }

    fn wait(&mut self) {
        self.next = self.inbox.recv().ok();
    }
}

impl Worker for LogWorker {
    fn step(&mut self) -> Next {
        match self.step() {
            true => Next::Waits,
            false => Next::Ended,
        }
    }

    fn wait(&mut self) {
        self.wait();
    }
}

fn start_log(
    shared: &Arc<Shared>,
    durable: Box<dyn Log>,
    fanout: Sender<FanoutItem>,
) -> Result<Arc<LogWriter>, Error> {
    let limits = &shared.options.limits;
    let standard = LogWriterOptions::default();
    let options = LogWriterOptions {
        queue_bytes_max: limits.log_queue_bytes_max,
        // Several fit into a segment.
        frame_bytes_max: standard
            .frame_bytes_max
            .min(limits.log_segment_bytes as usize / 4),
        ..standard
    };
    let (outbox, database) = (shared.outbox.clone(), Arc::downgrade(shared));
    let (mut due, mut ready) = (Vec::new(), Ready::default());
    let on_event = move |event: CommitEvent| {
        match event {
            CommitEvent::Committed { next_offset } => {
                outbox.release(next_offset, &mut due, &mut ready)
            }
            CommitEvent::Poisoned { error } => {
                if let Some(shared) = database.upgrade() {
                    log_failed(&shared, &error);
                }
                outbox.give_up(&error, &mut ready);
                // Fan-out ends after the log.
                let _ = fanout.send(FanoutItem::Poisoned(error));
            }
            CommitEvent::TrimFailed { error } => {
                tracing::warn!(%error, "old log segments could not be removed");
            }
        }
        ready.deliver_or_hand_over(DELIVERED_BY_LOG_MAX);
    };
    let mut started = Ok(());
    let start = |worker| started = spawn(shared, THREAD_NAME, LOG_STACK_BYTES, worker);
    let committer = LogWriter::start(durable, options, Box::new(on_event), start);
    started?;
    let committer = Arc::new(committer);
    shared.status.set_log(committer.clone());
    Ok(committer)
}

/// The database is read-only from now on, or ends if it is a bug.
fn log_failed(shared: &Shared, error: &LogError) {
    if error.is_bug() {
        tracing::error!(database = %shared.options.identity, %error, "the log's thread failed; the database stops [LC0308]");
        shared.fail();
    } else {
        shared.status.set_read_only(error);
    }
}

/// The writer, which gives the log back however it ends.
struct WriterThread(Running, Arc<Shared>);

/// What is stepped there.
enum Running {
    Writer(Box<Writer>),
    /// It has panicked.
    Failed(Failed),
    Nothing,
}

impl Worker for WriterThread {
    fn step(&mut self) -> Next {
        let next = match &mut self.0 {
            Running::Writer(writer) => {
                // What comes later has a later time.
                writer.inputs.take();
                let now = self.1.environment().clocks();
                let stepped = catch_unwind(AssertUnwindSafe(|| writer.step(now)));
                stepped.unwrap_or_else(|panic| self.fail(panic_text(&panic)))
            }
            Running::Failed(failed) => failed.step(&self.1),
            Running::Nothing => return Next::Ended,
        };
        if next == Next::Ended {
            // From here on others may open the log.
            self.0 = Running::Nothing;
            self.1.status.set_ended();
        }
        next
    }

    fn wait(&mut self) {
        match &mut self.0 {
            Running::Writer(writer) => writer.wait(),
            Running::Failed(failed) => failed.wait(&self.1),
            Running::Nothing => {}
        }
    }
}

impl WriterThread {
    /// A bug must not take the other databases with it: this one stops, and opens again from its log.
    fn fail(&mut self, panic: &str) -> Next {
        let shared = &self.1;
        tracing::error!(database = %shared.options.identity, panic, "the writer failed; the database stops [LC0308]");
        let Running::Writer(writer) = std::mem::replace(&mut self.0, Running::Nothing) else {
            return Next::Ended;
        };
        let (committer, fanout) = (writer.way_out.log.clone(), writer.way_out.fanout.clone());
        drop(writer);
        shared.close();
        shared.snapshots.cancel();
        shared.procedures.stop();
        committer.close();
        self.0 = Running::Failed(Failed {
            committer,
            fanout,
            log: None,
        });
        Next::More
    }
}

/// What is left to do after a panic of the writer.
struct Failed {
    committer: Arc<LogWriter>,
    fanout: Sender<FanoutItem>,
    /// When it has ended.
    log: Option<Result<Box<dyn Log>, ProposeError>>,
}

impl Failed {
    /// What was submitted becomes durable and is answered before what waits for more is given up. A snapshot that waits for what
    /// was never submitted ends too. The log stays locked until the snapshot has ended.
    fn step(&mut self, shared: &Shared) -> Next {
        if !self.committer.has_ended() {
            return Next::Waits;
        }
        if self.log.is_none() {
            self.log = Some(self.committer.shutdown());
            let (done, _) = oneshot::channel();
            let _ = self.fanout.send(FanoutItem::Stop {
                code: 1011,
                reason: FAILED_TEXT.to_owned(),
                done,
            });
        }
        if !shared.snapshots.is_idle() {
            return Next::Waits;
        }
        shared.outbox.end();
        Next::Ended
    }

    fn wait(&self, shared: &Shared) {
        self.committer.wait_ended();
        // A snapshot is given up before its next page.
        if self.log.is_some() && shared.snapshots.hold_within(LOG_GIVEN_BACK_MAX).is_none() {
            tracing::error!(database = %shared.options.identity, "a snapshot that is being written does not end; the database opens again when it has");
            shared.status.set_ended();
            drop(shared.snapshots.hold());
        }
    }
}

fn panic_text(panic: &Box<dyn Any + Send>) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("no text")
}

fn spawn(
    shared: &Shared,
    name: &str,
    stack_bytes: usize,
    worker: impl Worker + 'static,
) -> Result<(), Error> {
    let environment = shared.environment();
    let spawned = environment.spawn_worker(name, stack_bytes, Box::new(worker));
    spawned.map_err(Error::NoThread)
}
