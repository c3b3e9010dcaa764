//! Scheduled reducers and procedures: rows that call functions (03 §11.5a).

use std::time::Duration;

use lightcone_engine::{DatastoreError, ScheduleAt, ScheduleChange, ScheduleKey};
use lightcone_types::{TableId, Timestamp};

use super::timers::Timer;
use super::{Origin, Writer};
use crate::events::Event;
use crate::metrics::FunctionKind;
use crate::module::Function;
use crate::procedures::ReplyTo;

/// Scheduled calls, and calls that modules ask for, between two looks at the inbox: so many, or for so long. More that are due wait for the next round.
pub(super) const CALLS_PER_ROUND_MAX: usize = 64;
pub(super) const ROUND_MAX: Duration = Duration::from_millis(10);
/// So long a database that stops waits for scheduled procedures that are under way; then they are ended.
const DRAIN_TIME_MAX: Duration = Duration::from_secs(5);
/// If the clock goes back by more, all intervals begin anew: they would stand still for as long.
const CLOCK_STEP_BACK_US_MAX: i64 = 1_000_000;
/// A procedure for which there is no place is tried again after this time.
const NO_PLACE_US: i64 = 100_000;

impl Writer {
    /// The database is to stop: sets how long it waits for the scheduled procedures that are under way.
    pub(super) fn drain_schedules(&mut self) {
        let end = self.now.instant + DRAIN_TIME_MAX;
        self.state.timers.set(Timer::Drain, Some(end));
    }

    /// Whether the database is to stop and nothing that it waits for is under way. Rows that call once went before their calls.
    pub(super) fn is_to_stop(&self) -> bool {
        let Some(stop) = &self.state.stop else {
            return false;
        };
        let waits = stop.lets_scheduled_end && !self.state.schedules.under_way.rows.is_empty();
        let end = self.state.timers.due(Timer::Drain);
        !waits || end.is_none_or(|end| end <= self.now.instant)
    }

    /// Plans the calls of all rows, as if they had just been inserted: after opening.
    pub(super) fn load_schedules(&mut self) {
        self.state.schedules.queue.clear();
        self.state.effects.output.schedules = self.datastore.schedules();
        self.plan_changes(self.now.time);
    }

    /// Rows have moved to another table, and those whose procedures are under way with them.
    pub(super) fn move_under_way(&mut self, from: TableId, to: TableId) {
        self.state.schedules.under_way.move_table(from, to);
    }

    /// Rows have moved to other tables, or call nothing any more; those of `added` tables call something from now on.
    pub(super) fn plan_moved(&mut self, moved: &[(TableId, Option<TableId>)], added: &[TableId]) {
        let now = self.now.time;
        self.plan_changes(now);
        let queue = &mut self.state.schedules.queue;
        for (from, to) in moved {
            queue.move_table(*from, *to);
        }
        for ScheduleChange { key, at } in self.datastore.schedules() {
            // Also those whose call is under way: they are due again then, and wait for its end.
            if let (true, false, Some(at)) = (added.contains(&key.table), queue.contains(key), at) {
                queue.set(key, at, now);
            }
        }
        self.set_schedule_timer();
    }

    /// At the end of a round: notes what changed, calls what is due, and has itself woken for what comes.
    pub(super) fn run_schedules(&mut self) {
        if self.state.schedules.queue.is_empty() && self.state.effects.output.schedules.is_empty() {
            return;
        }
        if self.state.stop.is_some() || self.state.failed || self.shared.status.is_read_only() {
            self.state.timers.set(Timer::Schedules, None);
            return;
        }
        let now = self.now.time;
        self.plan_changes(now);
        self.notice_clock(now);
        let started = self.clock();
        // Compared with one reading of the clock: each row runs once in a round at most.
        let mut calls = 0;
        while calls < CALLS_PER_ROUND_MAX
            && self.clock() - started < ROUND_MAX
            && !self.state.is_held
        {
            let Some((key, intended)) = self.state.schedules.queue.pop_due(now) else {
                break;
            };
            self.run_schedule(key, intended);
            if self.round_is_full() {
                self.end_round();
            }
            calls += 1;
        }
        if calls > 0 {
            self.end_round();
            self.state.has_worked = true;
        }
        self.set_schedule_timer();
    }

    fn plan_changes(&mut self, now: Timestamp) {
        let state = &mut self.state;
        for ScheduleChange { key, at } in state.effects.output.schedules.drain(..) {
            match at {
                Some(at) => state.schedules.queue.set(key, at, now),
                None => state.schedules.queue.remove(key),
            }
        }
        // One huge transaction must not pin its memory for ever.
        state.effects.output.schedules.shrink_to(1 << 12);
    }

    fn notice_clock(&mut self, now: Timestamp) {
        let latest = self.state.schedules.latest.replace(now).unwrap_or(now);
        if latest.saturating_since(now).0 > CLOCK_STEP_BACK_US_MAX {
            tracing::warn!(database = %self.shared.options.identity, "the clock was set back; intervals of schedules begin anew");
            self.load_schedules();
        }
    }

    /// When the next call is due, or the clock is to be looked at again.
    fn set_schedule_timer(&mut self) {
        let (now, environment) = (self.now, self.shared.environment());
        let due = self.state.schedules.queue.next_due();
        let due = due.map(|due| now.instant + environment.until(due, now.time));
        self.state.timers.set(Timer::Schedules, due);
    }

    /// At the end of a round: those who have set the clock hear when the next call is due, once all that were due have begun.
    pub(super) fn answer_settling(&mut self) {
        if self.state.settling.is_empty()
            || !self.inputs.is_empty()
            || !self.shared.immediate.is_empty()
        {
            return;
        }
        let runs = self.state.timers.due(Timer::Schedules).is_some();
        let next = self.state.schedules.queue.next_due().filter(|_| runs);
        if next.is_some_and(|due| due <= self.now.time) {
            return;
        }
        for waiter in std::mem::take(&mut self.state.settling) {
            self.answer(waiter, Ok(next));
        }
        self.end_round();
    }

    /// Calls the function of a row that is due.
    fn run_schedule(&mut self, key: ScheduleKey, intended: Timestamp) {
        // It was changed while its procedure is under way, or the clock was set back.
        let under_way = &mut self.state.schedules.under_way;
        if under_way.is_due_again(key, intended) {
            return;
        }
        // It may be gone: its table was dropped, for one.
        let Some((row, at)) = self.datastore.schedule_row(key) else {
            return;
        };
        let row = row.to_vec();
        match self.function_of(key, &row) {
            Some(function) if function.kind == FunctionKind::Reducer => {
                let origin = self.origin_of_schedule(intended);
                let (_, ops) = self.call(function.id, &origin, &row);
                self.event(Event::Committed { ops });
            }
            Some(function) => {
                let once = matches!(at, ScheduleAt::Time(_));
                let database = self.shared.options.identity;
                if once && !self.shared.procedures.has_place(database, row.len()) {
                    let again = self.now.time.0.saturating_add(NO_PLACE_US);
                    let queue = &mut self.state.schedules.queue;
                    return queue.set(key, ScheduleAt::Time(Timestamp(again)), intended);
                }
                // Before the call, so that a crash does not repeat it.
                if once && !self.delete_schedule(key) {
                    return;
                }
                let origin = self.origin_of_schedule(intended);
                let number = self.state.schedules.under_way.begin(key);
                let reply_to = ReplyTo::Schedule {
                    number,
                    at,
                    intended,
                };
                // What is left to do is done when it has ended, which may be much later.
                return self.start_procedure(function, origin, &row, reply_to);
            }
            None => {}
        }
        self.after_schedule(key, at, intended);
    }

    /// A scheduled procedure has ended. A row that ran once went before the call.
    pub(super) fn after_procedure(&mut self, number: u64, at: ScheduleAt, intended: Timestamp) {
        let Some((key, again)) = self.state.schedules.under_way.end(number) else {
            return;
        };
        match (again, at) {
            (Some(due), _) => {
                let now = self.now.time;
                self.plan_changes(now);
                let queue = &mut self.state.schedules.queue;
                if !queue.contains(key) {
                    queue.set(key, ScheduleAt::Time(due), now);
                }
            }
            (None, ScheduleAt::Time(_)) => self.plan_changes(self.now.time),
            (None, ScheduleAt::Interval(_)) => self.after_schedule(key, at, intended),
        }
        self.set_schedule_timer();
    }

    fn origin_of_schedule(&self, intended: Timestamp) -> Origin {
        Origin::without_client(self.shared.options.identity, self.now.time.max(intended))
    }

    /// A row that ran once goes, one with an interval is planned again; one that was changed by its call stays as it is.
    fn after_schedule(&mut self, key: ScheduleKey, at: ScheduleAt, intended: Timestamp) {
        // The call may have taken longer than its interval: what is late by now runs once.
        let now = self.time();
        self.plan_changes(now);
        let unchanged = |writer: &mut Writer| {
            let row = writer.datastore.schedule_row(key);
            row.is_some_and(|(_, now_at)| now_at == at)
        };
        match at {
            ScheduleAt::Time(_) if unchanged(self) => {
                self.delete_schedule(key);
            }
            ScheduleAt::Interval(interval)
                if !self.state.schedules.queue.contains(key) && unchanged(self) =>
            {
                let queue = &mut self.state.schedules.queue;
                queue.repeat(key, intended, interval, now);
            }
            _ => {}
        }
    }

    /// Deletes the row in a transaction of its own. False if it is still there: it will not be called again before the
    /// database is opened anew.
    fn delete_schedule(&mut self, key: ScheduleKey) -> bool {
        if self.shared.status.is_read_only() {
            return false;
        }
        match self.change(|datastore| datastore.delete_schedule_row(key)) {
            Ok(_) => {
                self.plan_changes(self.now.time);
                true
            }
            Err(error) => {
                self.log_unusable(key, &error);
                false
            }
        }
    }

    /// The function of the row's table, if it takes the row as its argument.
    fn function_of(&mut self, key: ScheduleKey, row: &[u8]) -> Option<Function> {
        let schema = self.datastore.schema(key.table)?.clone();
        let name = &schema.schedule.as_ref()?.function_name;
        let def = self.module.def();
        let (function, checked) = match (def.reducer(name), def.procedure(name)) {
            (Some((id, reducer)), _) => (Function::reducer(id as u32), reducer.validate_args(row)),
            (None, Some((id, procedure))) => {
                (Function::procedure(id as u32), procedure.validate_args(row))
            }
            (None, None) => {
                let text = format!(
                    "there is no function `{name}` for a row of `{}`",
                    schema.name
                );
                self.log_error(None, &text, self.now.time);
                return None;
            }
        };
        match checked {
            Ok(_) => Some(function),
            Err(error) => {
                let table = &schema.name;
                let text = format!(
                    "row {} of `{table}` is no argument for `{name}`: {error}",
                    key.id
                );
                self.log_error(Some(name), &text, self.now.time);
                None
            }
        }
    }

    fn log_unusable(&self, key: ScheduleKey, error: &DatastoreError) {
        let (database, table) = (self.shared.options.identity, key.table.0);
        tracing::error!(%database, table, row = key.id, %error, "the row of a scheduled call cannot be deleted");
    }
}
