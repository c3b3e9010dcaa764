//! The writer: the one thread that owns the tables and the module instance, and runs everything in order.

mod alarm;
mod answers;
mod away;
mod backfill;
mod beside;
mod calls;
mod end;
mod follow;
mod indexes;
mod lifecycle;
mod maintenance;
mod measure;
mod migration;
mod outbox_streams;
mod outboxes;
mod procedures;
mod programs;
mod queries;
mod received;
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
mod waits;
mod windows;

use std::sync::Arc;
use std::time::Instant;

use lightcone_engine::{Datastore, DatastoreError};
use lightcone_log::LogOffset;
use lightcone_types::{Due, Timestamp};

use self::state::{Client, QuerySet};
pub(crate) use self::state::{Phase, WriterState};
use crate::backfill::{Failure, Resumed};
use crate::effects::WayOut;
use crate::environment::{Next, Now};
use crate::error::NotDurable;
use crate::events::{Event, FanoutItem};
use crate::guest::Guest;
use crate::inbox::{Input, Inputs};
use crate::metrics::QueryKind;
use crate::module::Module;
use crate::procedures::Origin;
use crate::replies::Waiter;
use crate::shared::Shared;
use crate::trace::Traced;

/// A round is cut when its log records, deltas or events pass these bounds, so that results do not wait for it.
const ROUND_RECORD_BYTES_MAX: usize = 1 << 20;
const ROUND_DELTA_BYTES_MAX: usize = 16 << 20;
const ROUND_EVENTS_MAX: usize = 4096;

pub(crate) struct Writer {
    pub shared: Arc<Shared>,
    pub inputs: Inputs,
    pub way_out: WayOut,
    pub phase: Phase,
    /// When the step began.
    pub now: Now,
    pub datastore: Datastore,
    pub guest: Guest,
    pub module: Arc<Module>,
    /// Offset of the next transaction.
    pub next_offset: LogOffset,
    /// Log bytes since the newest snapshot when the database was opened.
    pub replayed_bytes: u64,
    /// So many bytes of log since the last snapshot make the next one due.
    pub snapshot_due_bytes: u64,
    pub state: WriterState,
    /// The call that is under way, if it is traced.
    pub traced: Option<Traced>,
}

impl Writer {
    /// See [`Worker`](crate::environment::Worker). All that happens in a step has the same time.
    pub fn step(&mut self, now: Now) -> Next {
        self.now = now;
        if matches!(self.phase, Phase::Runs) {
            return match self.has_failed_log() {
                true => self.recover(),
                false => self.run(),
            };
        }
        match std::mem::replace(&mut self.phase, Phase::Runs) {
            Phase::Ends(end) => return self.go_on_ending(end),
            Phase::Recovers(recovered) => return self.go_on_recovering(recovered),
            Phase::Begins(resumed) => self.begin(resumed),
            Phase::Runs => {}
        }
        Next::More
    }

    fn begin(&mut self, resumed: Option<Result<Resumed, Failure>>) {
        self.guest.instance.prepare();
        // From here on every transaction counts.
        self.resume_backfill(resumed);
        self.disconnect_all();
        self.end_round();
        self.load_schedules();
        self.run_schedules();
        self.load_outboxes();
        self.run_outboxes();
        self.tend_backfill();
        self.set_alarm();
    }

    /// Takes inputs until the round is full.
    fn run(&mut self) -> Next {
        self.state.is_held = self.state.is_held && self.is_held_still();
        self.state.failed |= self.way_out.has_failed;
        if self.state.failed {
            self.begin_end();
            return Next::More;
        }
        if self.inputs.is_empty() || self.state.is_held {
            return Next::Waits;
        }
        self.begin_round();
        while let Some(input) = self.inputs.pop() {
            self.input(input);
            if self.is_step_over() {
                break;
            }
        }
        self.end_round();
        let bytes_max = self.shared.options.limits.frozen_bytes_max;
        self.state.frozen.enforce(&self.datastore, bytes_max);
        self.run_schedules();
        self.run_outboxes();
        self.tend_backfill();
        self.retry_views();
        self.tend_indexes();
        self.snapshot_if_due();
        self.plan_rest();
        self.set_alarm();
        self.answer_settling();
        if self.is_to_stop() || self.state.failed {
            self.begin_end();
        } else if self.inputs.is_empty() {
            self.note_round();
            return Next::Waits;
        }
        Next::More
    }

    fn is_held_still(&mut self) -> bool {
        let config = self.shared.config.clone();
        self.guest.take_spare(&self.shared, &self.module, config);
        self.guest.awaited().is_some() || self.way_out.is_full() || self.has_copied_much()
    }

    /// What is left is done in the next step. Who waits for what is dropped at the end hears that the database is gone.
    fn is_step_over(&self) -> bool {
        self.round_is_full() || self.state.is_held || self.state.failed
    }

    fn input(&mut self, input: Input) {
        if !matches!(input, Input::Requests { .. }) {
            self.stop_run();
        }
        self.state.has_worked |= !matches!(input, Input::AlarmDue);
        match input {
            Input::Requests {
                connection,
                decoded,
                place,
            } => {
                self.requests(connection, decoded, place);
            }
            // A caller who went away dropped his connection, whose disconnect follows.
            Input::Connect(client, waiter) => self.connect_client(client, waiter),
            Input::Disconnect { connection } => self.disconnect_client(connection),
            Input::Call(call, waiter) => self.http_call(*call, waiter),
            // Also one whose sender has given up: it would not be sooner the next time.
            Input::Receive(message, waiter) => self.receive(&message, waiter),
            Input::Delivered(delivery) => self.delivered(*delivery),
            Input::HttpRequest(request, waiter) => self.http_handler(*request, waiter),
            // A caller that has gone meanwhile needs no answer.
            Input::Query(_, waiter) if waiter.is_given_up() => {}
            Input::Query(query, waiter) => {
                let result = self.timed(QueryKind::Sql, |writer| writer.http_query(query));
                self.answer(waiter, result);
            }
            Input::Write(_, waiter) if waiter.is_given_up() => {}
            Input::Write(write, waiter) => {
                let result = self.timed(QueryKind::SqlWrite, |writer| writer.http_write(&write));
                self.answer(waiter, result);
            }
            Input::Follow(followed, waiter) => {
                let (leader, frame) = *followed;
                self.follow(leader, frame, waiter);
            }
            Input::TableRows(waiter) => waiter.answer(self.table_rows()),
            Input::Due(waiter) => waiter.answer(match self.has_client_rows() {
                true => Due::Open,
                false => self.due(),
            }),
            Input::Environment(waiter) => waiter.answer(self.environment()),
            Input::ChangeEnvironment(_, waiter) if waiter.is_given_up() => {}
            Input::ChangeEnvironment(change, waiter) => {
                let (change, expected) = *change;
                let result = self.change_environment(&change, expected);
                self.answer(waiter, result);
            }
            Input::Settle(waiter) => {
                self.state.settling.retain(|waiter| !waiter.is_given_up());
                self.state.settling.push(waiter);
            }
            // Fan-out knows. Without it, the caller hears that the database ends.
            Input::LiveShapes(waiter) => {
                let upkeep = self.state.upkeep.by_shape.clone();
                drop(self.way_out.fanout.send(FanoutItem::Shapes(waiter, upkeep)));
            }
            // The publisher has given up waiting, and was told that nothing changed.
            Input::Publish { waiter, .. } if waiter.is_given_up() => {}
            Input::Publish {
                program,
                planned,
                waiter,
                ended,
            } => {
                self.shared.status.set_updating(true);
                let result = match ended {
                    Some(ended) => self.begin_backfill(*program, planned, ended),
                    None => self.replace(*program, planned),
                };
                self.shared.status.set_updating(false);
                self.answer(waiter, result);
            }
            Input::LowerRights { identity, rights } => self.lower_rights(identity, rights),
            Input::Freeze(waiter) => {
                let frozen = self.datastore.snapshot();
                waiter.answer((frozen, self.module.def().clone()));
            }
            Input::Stop(stop) => match &mut self.state.stop {
                Some(first) => first.done.extend(stop.done),
                first => {
                    *first = Some(stop);
                    self.drain_schedules();
                }
            },
            Input::SubscriptionFailed { set, number } => self.drop_subscription(set, number),
            Input::AlarmDue => self.alarm_due(),
            Input::SnapshotTurn(turn) => self.begin_snapshot(turn),
            Input::SnapshotDone { log_bytes } => self.snapshot_done(log_bytes),
            Input::WantSnapshot { replaces } => self.want_snapshot(replaces),
            Input::IndexBuilt(built) => self.index_built(*built),
            Input::Body(body) => self.run_body(*body),
            Input::Lease(request) => self.lend_tables(*request),
            Input::ProcedureEnded(ended) => self.procedure_ended(*ended),
            Input::ImmediateCalls => self.run_immediate_calls(),
            Input::Failed => self.state.failed = true,
        }
    }

    fn event(&mut self, event: Event) {
        self.state.effects.batch.events.push(event);
    }

    /// Answers when all that was committed so far is durable, or at once if that was not asked for.
    fn answer<T, E>(&mut self, waiter: Waiter<Result<T, E>>, result: Result<T, E>)
    where
        T: Send + 'static,
        E: From<NotDurable> + Send + 'static,
    {
        self.event(Event::Release {
            confirmed: waiter.confirmed,
            action: Box::new(move |durable| {
                waiter.answer(durable.map_err(E::from).and(result));
            }),
        });
    }

    /// Changes tables in a transaction of its own, and tells of it. One that fails is taken back.
    fn change<T, E: From<DatastoreError>>(
        &mut self,
        change: impl FnOnce(&mut Datastore) -> Result<T, E>,
    ) -> Result<T, E> {
        self.datastore.begin();
        match change(&mut self.datastore) {
            Ok(changed) => {
                self.commit_and_tell()?;
                Ok(changed)
            }
            Err(error) => {
                self.datastore.rollback();
                Err(error)
            }
        }
    }

    /// A clock that bounds what is done, or measures it, and has no other say in it: for that there is `now`.
    fn clock(&self) -> Instant {
        self.shared.environment().instant()
    }

    /// The same of the time of day, for what has been measured since before the step.
    fn time(&self) -> Timestamp {
        self.shared.environment().now()
    }
}
