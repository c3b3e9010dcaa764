//! Starting the log, fan-out and writer of a database.

use std::any::Any;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::mpsc::{sync_channel, Receiver, SyncSender};
use std::sync::{Arc, Weak};
use std::time::Duration;

use lightcone_engine::{Datastore, ST_CLIENT_ID, ST_CONNECTION_CREDENTIALS_ID};
use lightcone_host::{InstanceAccounts, ModuleInstance};
use lightcone_log::{CommitEvent, Log, LogWriter, LogWriterOptions, THREAD_NAME};
use lightcone_types::{ConnectionId, Identity, Reader};
use tokio::sync::mpsc;

use crate::backfill::Resumed;
use crate::catalog::CatalogView;
use crate::courier::Ready;
use crate::error::Error;
use crate::events::{Batch, FanoutItem};
use crate::fanout::{Fanout, QUEUE_BATCHES_MAX};
use crate::guest::Guest;
use crate::handle::DatabaseHandle;
use crate::held::Held;
use crate::inbox::Inbox;
use crate::metrics::{Metrics, ModuleCounters, Replayed, SeriesMax};
use crate::module::{Module, Program};
use crate::module_log::ModuleLog;
use crate::options::{DatabaseOptions, WRITER_STACK_EXTRA_BYTES};
use crate::procedures::ImmediateQueue;
use crate::shared::Shared;
use crate::status::{Durable, FAILED_TEXT};
use crate::writer::{Writer, WriterState};

/// Batches kept for reuse between the writer and fan-out.
const SPARE_BATCHES: usize = 8;
const FANOUT_STACK_BYTES: usize = 2 << 20;
const LOG_STACK_BYTES: usize = 2 << 20;
/// So many connections get their messages from the log's thread itself: waking a network thread costs it as much as writing.
const DELIVERED_BY_LOG_MAX: usize = 2;
/// So long a database that has failed waits for its log before it counts as ended: a snapshot is given up before its next page.
const LOG_GIVEN_BACK_MAX: Duration = Duration::from_secs(20);

/// What the threads of a database start with.
pub(super) struct Opened {
    pub options: DatabaseOptions,
    pub log: Arc<ModuleLog>,
    pub immediate: Arc<ImmediateQueue>,
    /// What its instances count as.
    pub instances: InstanceAccounts,
    pub program: Program,
    pub datastore: Datastore,
    pub instance: Box<dyn ModuleInstance>,
    pub durable: Box<dyn Log>,
    /// Of the log.
    pub replayed: Replayed,
    /// The program of a backfill that goes on, or why there is none.
    pub resumed: Option<Result<Resumed, String>>,
}

/// # Errors
/// The system has no threads for it. Those that were started end, and the log is given back.
pub(super) fn start(opened: Opened) -> Result<DatabaseHandle, Error> {
    let Opened {
        options,
        log,
        immediate,
        instances,
        program,
        datastore,
        instance,
        durable,
        replayed,
        resumed,
    } = opened;
    let backfilled = datastore.backfilled();
    let next_offset = durable.tail().next_offset;
    let catalog = CatalogView::new(&datastore, &program.def);
    let series_max = SeriesMax::of(&options.limits);
    let counters = ModuleCounters::new(&program.def, &datastore, None, series_max);
    let module = Arc::new(Module::new(0, 0, program, catalog, counters));
    let (items, inbox) = mpsc::unbounded_channel();
    let senders = Inbox::new(&options.limits, items);
    let shared = Arc::new(Shared::new(
        options,
        log,
        immediate,
        instances,
        senders,
        module.clone(),
        Metrics::new(replayed),
    ));
    if resumed.is_some() {
        // Callers hear of it before the writer is there.
        let now = shared.environment().instant();
        shared.status.migration.begin_backfill(now, None);
        shared.status.migration.backfilled(None, backfilled);
    }
    let (fanout, fanout_inbox) = sync_channel(QUEUE_BATCHES_MAX);
    let (used_sender, used_batches) = sync_channel(SPARE_BATCHES);
    let held = Arc::new(Held::new(next_offset));
    start_fanout(&shared, fanout_inbox, used_sender, held.clone())?;
    let committer = start_log(&shared, durable, held.clone(), fanout.clone())?;
    let writer = Writer {
        shared: shared.clone(),
        inbox,
        datastore,
        guest: Guest::new(instance),
        module,
        committer,
        fanout,
        used_batches,
        held,
        next_offset,
        submitted_offset: next_offset,
        replayed_bytes: replayed.bytes,
        state: WriterState::default(),
        traced: None,
    };
    start_writer(writer, resumed)?;
    Ok(DatabaseHandle::new(shared))
}

fn start_fanout(
    shared: &Arc<Shared>,
    inbox: Receiver<FanoutItem>,
    used_batches: SyncSender<Box<Batch>>,
    held: Arc<Held>,
) -> Result<(), Error> {
    let stats = shared.status.fanout.clone();
    let mut fanout = Fanout::new(inbox, used_batches, held, stats);
    let writer = Arc::downgrade(shared);
    spawn(shared, "fan-out", FANOUT_STACK_BYTES, move || {
        let Err(panic) = catch_unwind(AssertUnwindSafe(|| fanout.run())) else {
            return;
        };
        tracing::error!(
            panic = panic_text(&panic),
            "fan-out failed; the database stops [LC0308]"
        );
        fanout.cut_all();
        // It may wait for requests, and would take some more before it noticed.
        if let Some(shared) = writer.upgrade() {
            shared.fail();
        }
    })
}

fn start_log(
    shared: &Arc<Shared>,
    durable: Box<dyn Log>,
    held: Arc<Held>,
    fanout: SyncSender<FanoutItem>,
) -> Result<Arc<LogWriter>, Error> {
    let options = LogWriterOptions {
        queue_bytes_max: shared.options.limits.log_queue_bytes_max,
        ..LogWriterOptions::default()
    };
    let next_offset = durable.tail().durable_offset;
    let set = |durable: &mut Durable| durable.next_offset = next_offset;
    shared.status.durable.send_modify(set);
    let database = Arc::downgrade(shared);
    let (mut due, mut ready) = (Vec::new(), Ready::default());
    let on_event = move |event: CommitEvent| {
        if let Some(shared) = database.upgrade() {
            notice(&shared, &event);
        }
        match event {
            CommitEvent::Committed { next_offset } => {
                held.release(next_offset, &mut due, &mut ready)
            }
            CommitEvent::Poisoned { error } => {
                held.give_up(&error, &mut ready);
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
    let start = |work| started = spawn(shared, THREAD_NAME, LOG_STACK_BYTES, work);
    let committer = LogWriter::start(durable, options, Box::new(on_event), start);
    started?;
    let committer = Arc::new(committer);
    let reader = committer.clone();
    let feed = committer.feed().clone();
    shared
        .status
        .set_log(feed, Arc::new(move || reader.stats()));
    Ok(committer)
}

/// Calls that wait hear what is durable. A log that fails makes the database read-only, or ends it if it is a bug.
fn notice(shared: &Shared, event: &CommitEvent) {
    let status = &shared.status;
    match event {
        CommitEvent::Committed { next_offset } => {
            let set = |durable: &mut Durable| durable.next_offset = *next_offset;
            status.durable.send_modify(set);
        }
        CommitEvent::Poisoned { error } => {
            if error.is_bug() {
                tracing::error!(database = %shared.options.identity, %error, "the log's thread failed; the database stops [LC0308]");
                shared.fail();
            } else {
                status.set_read_only(error);
            }
            let reason = status.read_only().unwrap_or_else(|| FAILED_TEXT.to_owned());
            let set = |durable: &mut Durable| durable.failed = Some(reason.into());
            status.durable.send_modify(set);
        }
        CommitEvent::TrimFailed { .. } => {}
    }
}

fn start_writer(mut writer: Writer, resumed: Option<Result<Resumed, String>>) -> Result<(), Error> {
    let (shared, fanout) = (writer.shared.clone(), writer.fanout.clone());
    let committer = Arc::downgrade(&writer.committer);
    let failed = shared.clone();
    let stack_bytes = shared.options.limits.host.stack_bytes_max + WRITER_STACK_EXTRA_BYTES;
    spawn(&shared, "writer", stack_bytes, move || {
        let run = move || {
            writer.guest.instance.prepare();
            // From here on every transaction counts.
            writer.resume_backfill(resumed);
            for (identity, connection_id) in clients_of(&writer.datastore) {
                writer.disconnect(identity, connection_id);
                writer.end_full_round();
            }
            writer.end_round();
            writer.run();
        };
        // A bug must not take the other databases with it: this one stops, and opens again from its log.
        if let Err(panic) = catch_unwind(AssertUnwindSafe(run)) {
            tracing::error!(database = %failed.options.identity, panic = panic_text(&panic), "the writer failed; the database stops [LC0308]");
            failed.close();
            failed.status.forget_log();
            failed.snapshots.cancel();
            failed.procedures.stop();
            let (done, _) = tokio::sync::oneshot::channel();
            let _ = fanout.send(FanoutItem::Stop {
                code: 1011,
                reason: FAILED_TEXT.to_owned(),
                done,
            });
            wait_for_log(&failed, &committer);
        }
        failed.status.set_ended();
    })
}

/// Waits until no thread has the log of a writer that is gone: a snapshot that was being written keeps it, until it has given up.
fn wait_for_log(shared: &Shared, committer: &Weak<LogWriter>) {
    let deadline = shared.environment().instant() + LOG_GIVEN_BACK_MAX;
    while committer.strong_count() > 0 {
        if shared.environment().instant() >= deadline {
            tracing::error!(database = %shared.options.identity, "a snapshot that is being written does not end; the database opens again when it has");
            return;
        }
        std::thread::sleep(Duration::from_millis(5));
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
    work: impl FnOnce() + Send + 'static,
) -> Result<(), Error> {
    let spawned = shared
        .environment()
        .spawn_thread(name, stack_bytes, Box::new(work));
    spawned.map_err(Error::NoThread)
}

/// Who has a row as a client: after a start, those whose disconnect a crash prevented. Credentials without client are removed with
/// them.
pub(crate) fn clients_of(datastore: &Datastore) -> Vec<(Identity, ConnectionId)> {
    let mut clients = Vec::new();
    let table = datastore.table(ST_CLIENT_ID).expect("system tables exist");
    table.rows().for_each(|_, row| {
        let reader = &mut Reader::new(row);
        let identity: [u8; 32] = reader
            .read_slice(32)
            .ok()
            .and_then(|bytes| bytes.try_into().ok())
            .unwrap_or_default();
        let connection: [u8; 16] = reader
            .read_slice(16)
            .ok()
            .and_then(|bytes| bytes.try_into().ok())
            .unwrap_or_default();
        clients.push((
            Identity::from_le_bytes(identity),
            ConnectionId::from_le_bytes(connection),
        ));
    });
    debug_assert!(datastore.table(ST_CONNECTION_CREDENTIALS_ID).is_some());
    clients
}
