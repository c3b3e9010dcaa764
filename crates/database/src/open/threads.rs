//! Starting the log, fan-out and writer of a database.

use std::any::Any;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::mpsc::{sync_channel, Receiver, SyncSender};
use std::sync::Arc;
use std::time::Duration;

use lightcone_engine::{Datastore, ST_CLIENT_ID, ST_CONNECTION_CREDENTIALS_ID};
use lightcone_host::ModuleInstance;
use lightcone_log::{CommitEvent, Log, LogError, LogWriter, LogWriterOptions, THREAD_NAME};
use lightcone_types::{ConnectionId, Identity, Reader};
use parking_lot::Mutex;
use tokio::sync::mpsc;

use crate::backfill::{Failure, Resumed};
use crate::courier::Ready;
use crate::error::Error;
use crate::events::{Batch, FanoutItem};
use crate::fanout::{self, Fanout, QUEUE_BATCHES_MAX};
use crate::guest::Guest;
use crate::handle::DatabaseHandle;
use crate::inbox::Inbox;
use crate::metrics::{Metrics, Replayed};
use crate::module::{Module, Program};
use crate::options::WRITER_STACK_EXTRA_BYTES;
use crate::peer::ClientId;
use crate::shared::{Ground, Shared};
use crate::status::FAILED_TEXT;
use crate::writer::{Writer, WriterState};

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
    let (fanout, fanout_inbox) = sync_channel(QUEUE_BATCHES_MAX);
    let (used_sender, used_batches) = sync_channel(SPARE_BATCHES);
    let fanout_stats = shared.status.fanout.clone();
    let fanout_machine = Arc::new(Mutex::new(Fanout::new(shared.outbox.clone(), fanout_stats)));
    start_fanout(&shared, &fanout_machine, fanout_inbox, used_sender)?;
    let committer = start_log(&shared, durable, fanout.clone())?;
    let writer = Writer {
        shared: shared.clone(),
        inbox,
        datastore,
        guest: Guest::new(instance),
        module,
        committer,
        fanout,
        fanout_machine,
        used_batches,
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
    fanout: &Arc<Mutex<Fanout>>,
    inbox: Receiver<FanoutItem>,
    used_batches: SyncSender<Box<Batch>>,
) -> Result<(), Error> {
    let (fanout, writer) = (fanout.clone(), Arc::downgrade(shared));
    spawn(shared, "fan-out", FANOUT_STACK_BYTES, move || {
        let run = || fanout::run(&fanout, &inbox, &used_batches);
        let Err(panic) = catch_unwind(AssertUnwindSafe(run)) else {
            return;
        };
        tracing::error!(
            panic = panic_text(&panic),
            "fan-out failed; the database stops [LC0308]"
        );
        fanout.lock().cut_all();
        // It may wait for requests, and would take some more before it noticed.
        if let Some(shared) = writer.upgrade() {
            shared.fail();
        }
    })
}

fn start_log(
    shared: &Arc<Shared>,
    durable: Box<dyn Log>,
    fanout: SyncSender<FanoutItem>,
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
    let start = |work| started = spawn(shared, THREAD_NAME, LOG_STACK_BYTES, work);
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

fn start_writer(
    mut writer: Writer,
    resumed: Option<Result<Resumed, Failure>>,
) -> Result<(), Error> {
    let (shared, fanout) = (writer.shared.clone(), writer.fanout.clone());
    let committer = writer.committer.clone();
    let failed = shared.clone();
    let stack_bytes = shared.options.limits.host.stack_bytes_max + WRITER_STACK_EXTRA_BYTES;
    spawn(&shared, "writer", stack_bytes, move || {
        let run = move || {
            writer.guest.instance.prepare();
            // From here on every transaction counts.
            writer.resume_backfill(resumed);
            for client in clients_of(&writer.datastore) {
                writer.disconnect(client);
                writer.end_full_round();
            }
            writer.end_round();
            writer.run();
        };
        // A bug must not take the other databases with it: this one stops, and opens again from its log.
        if let Err(panic) = catch_unwind(AssertUnwindSafe(run)) {
            tracing::error!(database = %failed.options.identity, panic = panic_text(&panic), "the writer failed; the database stops [LC0308]");
            failed.close();
            failed.snapshots.cancel();
            failed.procedures.stop();
            // What was submitted becomes durable and is answered before what waits for more is given up. A snapshot that waits for what
            // was never submitted ends too. The log stays locked until the snapshot has ended.
            let log = committer.shutdown();
            let (done, _) = tokio::sync::oneshot::channel();
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
        failed.status.set_ended();
    })
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
pub(crate) fn clients_of(datastore: &Datastore) -> Vec<ClientId> {
    let mut clients = Vec::new();
    let table = datastore.table(ST_CLIENT_ID).expect("system tables exist");
    table.rows().for_each(|_, row| {
        let reader = &mut Reader::new(row);
        clients.push(ClientId {
            identity: Identity::from_le_bytes(read_id(reader)),
            connection_id: ConnectionId::from_le_bytes(read_id(reader)),
        });
    });
    debug_assert!(datastore.table(ST_CONNECTION_CREDENTIALS_ID).is_some());
    clients
}

fn read_id<const BYTES: usize>(reader: &mut Reader<'_>) -> [u8; BYTES] {
    let bytes = reader.read_slice(BYTES).ok();
    let id = bytes.and_then(|bytes| bytes.try_into().ok());
    id.unwrap_or([0; BYTES])
}
