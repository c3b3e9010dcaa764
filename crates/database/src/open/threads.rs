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
    CommitEvent, Log, LogError, LogWorker, LogWriter, LogWriterOptions, THREAD_NAME,
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
        state: WriterState::default(),
        traced: None,
    };
    let writer = WriterThread(Some(writer), shared.clone());
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
    let options = LogWriterOptions {
        queue_bytes_max: shared.options.limits.log_queue_bytes_max,
        ..LogWriterOptions::default()
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
struct WriterThread(Option<Writer>, Arc<Shared>);

impl Worker for WriterThread {
    fn step(&mut self) -> Next {
        let Some(writer) = &mut self.0 else {
            return Next::Ended;
        };
        // What comes later has a later time.
        writer.inputs.take();
        let now = self.1.environment().clocks();
        let stepped = catch_unwind(AssertUnwindSafe(|| writer.step(now)));
        let next = stepped.unwrap_or_else(|panic| {
            self.fail(panic_text(&panic));
            Next::Ended
        });
        if next == Next::Ended {
            self.0 = None;
            self.1.status.set_ended();
        }
        next
    }

    fn wait(&mut self) {
        if let Some(writer) = &mut self.0 {
            writer.wait();
        }
    }
}

impl WriterThread {
    /// A bug must not take the other databases with it: this one stops, and opens again from its log.
    fn fail(&mut self, panic: &str) {
        let failed = &self.1;
        tracing::error!(database = %failed.options.identity, panic, "the writer failed; the database stops [LC0308]");
        let Some(writer) = self.0.take() else { return };
        let (log, fanout) = (writer.way_out.log.clone(), writer.way_out.fanout.clone());
        drop(writer);
        failed.close();
        failed.snapshots.cancel();
        failed.procedures.stop();
        // What was submitted becomes durable and is answered before what waits for more is given up. A snapshot that waits for what
        // was never submitted ends too. The log stays locked until the snapshot has ended.
        let log = log.shutdown();
        let (done, _) = oneshot::channel();
        let _ = fanout.send(FanoutItem::Stop {
            code: 1011,
            reason: FAILED_TEXT.to_owned(),
            done,
        });
        // It is given up before its next page.
        let no_snapshot = failed.snapshots.hold_within(LOG_GIVEN_BACK_MAX);
        if no_snapshot.is_none() {
            tracing::error!(database = %failed.options.identity, "a snapshot that is being written does not end; the database opens again when it has");
            failed.status.set_ended();
        }
        let _no_snapshot = no_snapshot.unwrap_or_else(|| failed.snapshots.hold());
        failed.outbox.end();
        drop(log);
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
