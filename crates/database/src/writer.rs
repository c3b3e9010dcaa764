//! The writer: the one thread that owns the tables and the module instance, and runs everything in order.

mod alarm;
mod answers;
mod backfill;
mod calls;
mod idle;
mod indexes;
mod lifecycle;
mod maintenance;
mod measure;
mod migration;
mod procedures;
mod queries;
mod recovery;
mod rounds;
mod running_backfill;
mod same_meaning;
mod schedule;
mod schedules;
mod spans;
mod state;
mod statements;
mod timers;
mod views;
mod windows;

use std::sync::mpsc::{Receiver, SyncSender};
use std::sync::Arc;

use lightcone_engine::Datastore;
use lightcone_log::{LogOffset, LogWriter};
use lightcone_types::Timestamp;
use tokio::sync::{mpsc, oneshot};

pub(crate) use self::state::WriterState;
use self::state::{Client, QuerySet};
use crate::error::{ConnectError, NotDurable};
use crate::events::{Batch, Event, FanoutItem};
use crate::guest::Guest;
use crate::held::Held;
use crate::inbox::{Command, InboxItem, Notice};
use crate::inbox_capacity::InboxPermit;
use crate::metrics::QueryKind;
use crate::module::Module;
use crate::procedures::Origin;
use crate::shared::Shared;
use crate::trace::Traced;

/// Items taken from the inbox at a time.
const ITEMS_PER_ROUND_MAX: usize = 1024;
/// A round is cut when its log records, deltas or events pass these bounds, so that results do not wait for it.
const ROUND_RECORD_BYTES_MAX: usize = 1 << 20;
const ROUND_DELTA_BYTES_MAX: usize = 16 << 20;
const ROUND_EVENTS_MAX: usize = 4096;

pub(crate) struct Writer {
    pub shared: Arc<Shared>,
    pub inbox: mpsc::UnboundedReceiver<InboxItem>,
    pub datastore: Datastore,
    pub guest: Guest,
    pub module: Arc<Module>,
    pub committer: Arc<LogWriter>,
    pub fanout: SyncSender<FanoutItem>,
    pub used_batches: Receiver<Box<Batch>>,
    pub held: Arc<Held>,
    /// Offset of the next transaction.
    pub next_offset: LogOffset,
    /// Offset of the first transaction that the log does not have yet.
    pub submitted_offset: LogOffset,
    /// Log bytes since the newest snapshot when the database was opened.
    pub replayed_bytes: u64,
    pub state: WriterState,
    /// The call that is under way, if it is traced.
    pub traced: Option<Traced>,
}

impl Writer {
    pub fn run(mut self) {
        self.load_schedules();
        self.run_schedules();
        self.tend_backfill();
        self.set_alarm();
        let mut items = Vec::with_capacity(ITEMS_PER_ROUND_MAX);
        while self.state.stop.is_none() && !self.state.failed {
            let received = self
                .inbox
                .blocking_recv_many(&mut items, ITEMS_PER_ROUND_MAX);
            if received == 0 {
                break;
            }
            self.begin_round();
            self.notice_failed_log();
            for item in items.drain(..) {
                // Who waits for what is dropped hears that the database is gone.
                if self.state.failed {
                    continue;
                }
                self.item(item);
                if self.round_is_full() {
                    self.end_round();
                }
            }
            self.end_round();
            let bytes_max = self.shared.options.limits.frozen_bytes_max;
            self.state.frozen.enforce(&self.datastore, bytes_max);
            self.run_schedules();
            self.tend_backfill();
            self.retry_views();
            self.tend_indexes();
            self.snapshot_if_due();
            self.plan_rest();
            self.set_alarm();
            self.note_round();
        }
        self.stop();
    }

    fn item(&mut self, item: InboxItem) {
        if !matches!(item, InboxItem::Command(Command::Requests { .. })) {
            self.stop_run();
        }
        self.state.has_worked |= !matches!(item, InboxItem::Notice(Notice::AlarmDue));
        match item {
            InboxItem::Command(command) => self.command(command),
            InboxItem::Notice(notice) => self.notice(notice),
        }
    }

    fn command(&mut self, command: Command) {
        match command {
            Command::Requests {
                connection,
                decoded,
                place,
            } => {
                self.requests(connection, decoded, place);
            }
            Command::Connect {
                permit,
                client,
                reply,
            } => {
                let result = self.connect_client(client);
                // A caller who went away dropped his connection, whose disconnect follows.
                let _ = reply.send(result.map_err(ConnectError::from));
                drop(permit);
            }
            Command::Disconnect { connection } => self.disconnect_client(connection),
            Command::Call {
                permit,
                call,
                reply,
            } => {
                self.http_call(*call, permit, reply);
            }
            Command::HttpRequest {
                permit,
                request,
                reply,
            } => {
                self.http_handler(*request, permit, reply);
            }
            // A caller that has gone meanwhile needs no answer.
            Command::Query { reply, .. } if reply.is_closed() => {}
            Command::Query {
                permit,
                query,
                confirmed,
                reply,
            } => {
                let result = self.timed(QueryKind::Sql, |writer| writer.http_query(query));
                self.reply_when_durable(confirmed, result, reply, Some(permit));
            }
            Command::Write { reply, .. } if reply.is_closed() => {}
            Command::Write {
                permit,
                write,
                confirmed,
                reply,
            } => {
                let result = self.timed(QueryKind::SqlWrite, |writer| writer.http_write(&write));
                self.reply_when_durable(confirmed, result, reply, Some(permit));
            }
            Command::TableRows { permit, reply } => {
                // The caller may be gone by now.
                let _ = reply.send(self.table_rows());
                drop(permit);
            }
            Command::LiveShapes { permit, reply } => {
                // Fan-out knows. Without it, the caller hears that the database ends.
                let _ = self.fanout.send(FanoutItem::Shapes(reply));
                drop(permit);
            }
            // The publisher has given up waiting, and was told that nothing changed.
            Command::Replace { reply, .. } if reply.is_closed() => {}
            Command::Replace {
                program,
                planned,
                reply,
            } => {
                self.shared.status.set_updating(true);
                let result = self.replace(*program, planned);
                self.shared.status.set_updating(false);
                self.reply_when_durable(true, result, reply, None);
            }
            Command::Backfill { begun, .. } if begun.is_closed() => {}
            Command::Backfill {
                program,
                planned,
                begun,
                ended,
            } => {
                self.shared.status.set_updating(true);
                let result = self.begin_backfill(*program, planned, ended);
                self.shared.status.set_updating(false);
                self.reply_when_durable(true, result, begun, None);
            }
            Command::LowerRights { identity, rights } => self.lower_rights(identity, rights),
            Command::Freeze { permit, reply } => {
                let frozen = self.datastore.snapshot();
                // The caller may be gone by now.
                let _ = reply.send((frozen, self.module.def().clone()));
                drop(permit);
            }
            Command::Stop(stop) => match &mut self.state.stop {
                Some(first) => first.done.extend(stop.done),
                first => *first = Some(stop),
            },
        }
    }

    fn notice(&mut self, notice: Notice) {
        match notice {
            Notice::SubscriptionFailed {
                connection,
                query_set_id,
                number,
            } => self.drop_subscription(connection, query_set_id, number),
            Notice::AlarmDue => self.alarm_due(),
            Notice::SnapshotTurn(turn) => self.begin_snapshot(turn),
            Notice::SnapshotDone { log_bytes } => {
                self.state.snapshot_running = false;
                self.state.log_bytes_at_snapshot = log_bytes;
            }
            Notice::IndexBuilt(built) => self.index_built(*built),
            Notice::Body(body) => self.run_body(*body),
            Notice::Lease(request) => self.lend_tables(*request),
            Notice::ProcedureEnded(ended) => self.procedure_ended(*ended),
            Notice::ImmediateCalls => self.run_immediate_calls(),
            Notice::Failed => self.state.failed = true,
        }
    }

    fn event(&mut self, event: Event) {
        self.state.batch.events.push(event);
    }

    /// Answers when all that was committed so far is durable (or at once if `confirmed` is false), and lets go of the place in
    /// the inbox.
    fn reply_when_durable<T, E>(
        &mut self,
        confirmed: bool,
        result: Result<T, E>,
        reply: oneshot::Sender<Result<T, E>>,
        permit: Option<InboxPermit>,
    ) where
        T: Send + 'static,
        E: NotDurable + Send + 'static,
    {
        self.event(Event::Release {
            confirmed,
            action: Box::new(move |durable| {
                let result = durable.map_err(E::not_durable).and(result);
                // The caller may be gone by now.
                let _ = reply.send(result);
                drop(permit);
            }),
        });
    }

    fn now(&self) -> Timestamp {
        self.shared.environment().now()
    }

    fn datastore(&mut self) -> &mut Datastore {
        &mut self.datastore
    }
}
