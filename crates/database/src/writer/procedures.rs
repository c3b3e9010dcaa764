//! Calls of procedures (03 §10) and of HTTP handlers (03 §11.6), as far as they are the writer's: where they run, the tables that
//! are lent to those beside it, and what is left to do when they have ended.

use std::task::Poll;
use std::time::Duration;

use lightcone_accounts::Counted;
use lightcone_engine::DatastoreError;
use lightcone_host::{trap_of, HandlerResponse, HttpResponse, ProcedureOutcome, ProcedureResult};
use lightcone_types::bsatn::{Decode as _, Reader};
use lightcone_types::{Identity, TimeDuration};
use lightcone_wire::server;

use super::timers::Timer;
use super::waits::GIVEN_BACK;
use super::Writer;
use crate::calls::{CallError, CallOutcome, HandlerAnswer, HandlerRequest};
use crate::error::Refusal;
use crate::events::{CallFailure, Event};
use crate::inbox::Input;
use crate::metrics::{CountedFunction, Failure, FunctionKind};
use crate::module::{Function, Module};
use crate::peer::ConnectionNumber;
use crate::procedures::{
    self, Body, Control, Ended, Fiber, FiberRequest, Full, Job, LeaseRequest, Origin, ReplyTo,
    Returned, TABLES_CHANGED_TEXT,
};
use crate::replies::Waiter;
use crate::test_clock::{CountedCall, TestClock};

/// A call that begins on the writer leaves it at the second tick while it computes. (A thread that had no processor for a while sees
/// one tick.) Its transactions have so long, and the last one is run to its end.
const TICKS_MAX: u32 = 2;
/// So long it may compute outside of its transactions.
const COMPUTES_MAX: Duration = Duration::from_millis(2);
const TURN_MAX: Duration = Duration::from_millis(100);

impl Writer {
    /// A procedure for a caller. Its transactions go to all subscribers, its caller among them, before the answer.
    pub(super) fn start_procedure(
        &mut self,
        function: Function,
        origin: Origin,
        args: &[u8],
        reply_to: ReplyTo,
    ) {
        self.start(Job {
            module: self.module.clone(),
            function,
            origin,
            args: args.to_vec(),
            handled: None,
            reply_to,
            _counted: self.count_call(),
        });
    }

    /// The HTTP handler of a request, if the module has one for it. The handler's sender is made up; as the
    /// caller of the database stands zero.
    pub(super) fn http_handler(
        &mut self,
        request: HandlerRequest,
        waiter: Waiter<Result<HandlerAnswer, CallError>>,
    ) {
        let def = self.module.def();
        let Some(handler) = def.http_handler(&request.method, &request.path) else {
            // The module may have been replaced since the request was let in.
            return self.answer(waiter, Err(CallError::NoSuchFunction));
        };
        self.start(Job {
            origin: Origin::without_client(Identity::ZERO, request.timestamp),
            args: request.head,
            handled: Some((request.body, request.sender)),
            reply_to: ReplyTo::Handler(waiter),
            _counted: self.count_call(),
            module: self.module.clone(),
            function: Function {
                kind: FunctionKind::HttpHandler,
                id: handler as u32,
            },
        });
    }

    fn count_call(&self) -> Option<CountedCall> {
        let clock = self.shared.options.test_clock.as_deref();
        clock.map(TestClock::count_call)
    }

    /// Begins a call, on the writer or beside it.
    fn start(&mut self, job: Job) {
        if let Some(reason) = self.shared.status.read_only() {
            return self.refuse_call(job, reason);
        }
        let started = procedures::start(&self.shared, job, self.next_offset);
        if self.state.timers.due(Timer::Procedures).is_none() {
            self.end_late_calls();
        }
        match started {
            Ok(None) => {}
            Ok(Some(fiber)) => {
                self.stop_run();
                // Answers that are ready do not wait for a call that may take its whole turn.
                if !fiber.pace().was_brief() {
                    self.end_round();
                }
                self.run_fiber(fiber, false, TURN_MAX);
            }
            Err((full, job)) => {
                let limits = &self.shared.options.limits;
                let (what, key, max) = match full {
                    Full::Calls => ("", "procedures-max", limits.procedures_max),
                    Full::Bytes => (
                        "arguments of ",
                        "procedure-arguments-bytes-max",
                        limits.procedure_arguments_bytes_max,
                    ),
                };
                let reason = format!(
                    "too many {what}procedures of the database are under way: limits.{key} = {max} [LC0736]"
                );
                self.refuse_call(*job, reason);
            }
        }
    }

    fn refuse_call(&mut self, job: Job, reason: String) {
        let refused = Err(CallFailure::new(Failure::NotRun, reason));
        self.finish(job, refused);
    }

    /// Runs a transaction of a call that is beside the writer.
    pub(super) fn run_body(&mut self, Body { fiber, request }: Body) {
        // Who waits for an answer need not wait for the call as well.
        self.end_round();
        let is_lent = self.lend(request);
        self.run_fiber(fiber, is_lent, Duration::ZERO);
        // Others see at once what it has committed.
        self.end_round();
    }

    /// Runs a call until it ends or waits for something outside, and for no longer than its turn. A transaction that has begun is
    /// run to its end.
    fn run_fiber(&mut self, mut fiber: Fiber, mut is_lent: bool, turn: Duration) {
        let (started, counters) = (self.clock(), fiber.counters.clone());
        let is_over = |writer: &Writer| writer.clock() - started >= turn || writer.state.is_held;
        let (mut ticks, mut computed) = (0, Duration::ZERO);
        let ended = loop {
            let polled_at = self.clock();
            let polled = fiber.poll();
            if std::mem::take(&mut is_lent) {
                let back = self.state.loans.returned.try_recv();
                self.take_back(back.expect(GIVEN_BACK), fiber.control());
                if self.round_is_full() {
                    self.end_round();
                }
            } else {
                computed += self.clock() - polled_at;
            }
            if let Poll::Ready(ended) = polled {
                break Some(ended);
            }
            match fiber.asked() {
                Some(FiberRequest::Tables(request)) if is_over(self) => {
                    let request = *request;
                    // Who came meanwhile is first. The writer itself reads it.
                    let body = Box::new(Body { fiber, request });
                    let _ = self.shared.inbox.send(Input::Body(body));
                    break None;
                }
                Some(FiberRequest::Tables(request)) => is_lent = self.lend(*request),
                Some(FiberRequest::Commit(committed)) if !is_over(self) => drop(committed),
                None if ticks + 1 < TICKS_MAX && !turn.is_zero() => ticks += 1,
                asked => {
                    ticks += u32::from(asked.is_none());
                    drop(asked);
                    procedures::go_on_beside(fiber, &self.shared);
                    break None;
                }
            }
        };
        let now = self.clock();
        if !turn.is_zero() {
            let is_long = ticks >= TICKS_MAX || now - started >= turn;
            let pace = &counters.pace;
            pace.note(now - started, is_long, computed >= COMPUTES_MAX);
        }
        self.note_unsent(started, now);
        if let Some(ended) = ended {
            self.procedure_ended(ended);
        }
    }

    /// Ends calls that have had the time of a procedure, and looks again when the next one has.
    pub(super) fn end_late_calls(&mut self) {
        let seconds_max = self.shared.options.limits.host.procedure_seconds_max;
        let (now, time_max) = (self.now.instant, Duration::from_secs(seconds_max));
        let next = self.shared.procedures.end_late(now, time_max);
        self.state.timers.set(Timer::Procedures, next);
    }

    /// Lends the tables to a call that blocks its thread, for one transaction, and waits until they are back.
    pub(super) fn lend_tables(&mut self, request: LeaseRequest) {
        self.end_round();
        let control = request.control.clone();
        if self.lend(request) {
            let back = self.wait_for_tables(&control);
            self.take_back(back, &control);
            self.end_round();
        }
    }

    /// Gives the tables to a call for one transaction, or tells it why it gets none.
    fn lend(&mut self, request: LeaseRequest) -> bool {
        if let Err(refusal) = self.may_have_tables(request.tables_version) {
            request.answer(Err(refusal));
            return false;
        }
        if let Some(reason) = request.control.reason() {
            let trap = reason.trap(&self.shared.options.limits.host);
            request.answer(Err(Refusal(trap.to_string())));
            return false;
        }
        request.control.saw(self.next_offset);
        request.answer(Ok(self.state.loans.lend(&mut self.datastore)));
        true
    }

    /// The tables are back; what was done in them is committed, if it is to be.
    fn take_back(&mut self, back: Returned, control: &Control) {
        self.state.loans.end(&mut self.datastore, back.datastore);
        if back.commit {
            let before = self.transactions().bytes();
            let committed = self.commit_transaction();
            let added = self.transactions().bytes().saturating_sub(before);
            control.committed(committed.map(|()| self.next_offset), added);
        }
    }

    /// A call whose code knows the tables of this version of the module may have them.
    fn may_have_tables(&self, tables_version: u64) -> Result<(), Refusal> {
        if let Some(reason) = self.shared.status.read_only() {
            return Err(Refusal(reason));
        }
        match tables_version == self.module.tables_version {
            true => Ok(()),
            false => Err(Refusal(TABLES_CHANGED_TEXT.to_owned())),
        }
    }

    /// Commits the open transaction and tells subscribers.
    ///
    /// # Errors
    /// It cannot be committed, and is taken back.
    fn commit_transaction(&mut self) -> Result<(), DatastoreError> {
        let committed = self.commit()?;
        if committed.has_record || !committed.changes.is_empty() {
            self.event(Event::Committed {
                ops: committed.changes,
            });
        }
        Ok(())
    }

    /// A call has ended.
    pub(super) fn procedure_ended(&mut self, ended: Ended) {
        let Ended {
            job,
            control,
            outcome,
        } = ended;
        // It may have ended before it could hear that a transaction was refused, or that one was taken back when the log failed.
        let is_taken_back = control.rests_on() > self.next_offset;
        let taken_back = self.shared.status.read_only().filter(|_| is_taken_back);
        let result = match (control.refused(), outcome) {
            (Some(reason), _) => Err(CallFailure::new(Failure::Trap, &*reason)),
            (None, ProcedureOutcome::Returned(result)) => match taken_back {
                Some(reason) => Err(CallFailure::new(Failure::Trap, reason)),
                None => Ok(result),
            },
            (None, ProcedureOutcome::Failed { message }) => {
                Err(CallFailure::new(Failure::Trap, message))
            }
            (None, ProcedureOutcome::TimedOut { message }) => {
                Err(CallFailure::new(Failure::Time, message))
            }
        };
        self.finish(job, result);
    }

    /// Tells the caller what came of a call, or why it never began.
    fn finish(&mut self, job: Job, result: Result<ProcedureResult, Box<CallFailure>>) {
        let Job {
            module,
            function,
            origin,
            reply_to,
            ..
        } = job;
        if let ReplyTo::Handler(waiter) = reply_to {
            let result = result.and_then(handler_reply);
            let failure = result.as_ref().err().map(|failure| &**failure);
            self.note_end(&module, function, &origin, true, failure);
            // As the handler's own text, without a prefix (06 §5.16).
            let result = result.map_err(|failure| CallError::Database(failure.reason));
            return self.answer(waiter, result);
        }
        let result = result.and_then(|result| checked_value(&module, function.id, result));
        let is_told = !matches!(reply_to, ReplyTo::Schedule { .. } | ReplyTo::None);
        let failure = result.as_ref().err().map(|failure| &**failure);
        self.note_end(&module, function, &origin, is_told, failure);
        let name = &module.function(function).name;
        self.trace_procedure(name, &origin, failure.map(|failure| &*failure.reason));
        self.tell(&module, function.id, &origin, reply_to, result);
    }

    /// Counts a call that has ended, or never began, and warns of one that failed.
    fn note_end(
        &self,
        module: &Module,
        function: Function,
        origin: &Origin,
        is_told: bool,
        failure: Option<&CallFailure>,
    ) {
        let CountedFunction { name, counters, .. } = module.function(function);
        let took = self.time().0.saturating_sub(origin.timestamp.0).max(0);
        let why = failure.map(|failure| failure.why);
        match why {
            Some(Failure::NotRun) => counters.note_failure(Failure::NotRun),
            _ => counters.note(Duration::from_micros(took as u64), why),
        }
        let Some(CallFailure { reason, .. }) = failure else {
            return;
        };
        // Who asked is told that it was not run.
        if is_told && why == Some(Failure::NotRun) {
            return;
        }
        let kind = match function.kind {
            FunctionKind::HttpHandler => "HTTP handler",
            _ => "procedure",
        };
        tracing::warn!(database = %self.shared.options.identity, kind, function = %name, message = %reason, "a call failed");
    }

    fn tell(
        &mut self,
        module: &Module,
        procedure: u32,
        origin: &Origin,
        reply_to: ReplyTo,
        result: Result<Counted<Vec<u8>>, Box<CallFailure>>,
    ) {
        match reply_to {
            ReplyTo::Client {
                connection,
                request_id,
            } => self.tell_client(connection, request_id, origin, result),
            ReplyTo::Http(waiter) => {
                self.disconnect(origin.client);
                let result = result.map(|value| json_of(module, procedure, &value));
                let result = result.map_err(|failure| match failure.why {
                    Failure::Time => CallError::TimedOut {
                        outcome: CallOutcome::default(),
                    },
                    _ => CallError::Database(failure.of_procedure()),
                });
                // It may be several times as large as the value.
                let account = &self.shared.procedures.accounts.all;
                let result = result.and_then(|json| {
                    let reserved = account.reserve(json.capacity());
                    let reserved = reserved
                        .map_err(|exceeded| CallError::Busy(trap_of(exceeded).to_string()))?;
                    Ok(CallOutcome {
                        returned_json: Some(Counted::new(json, reserved)),
                        ..CallOutcome::default()
                    })
                });
                self.answer(waiter, result);
            }
            ReplyTo::Schedule {
                number,
                at,
                intended,
            } => self.after_procedure(number, at, intended),
            // No caller waits for what it returns, and failures are logged.
            ReplyTo::None | ReplyTo::Handler(_) => {}
        }
    }

    fn tell_client(
        &mut self,
        connection: ConnectionNumber,
        request_id: u32,
        origin: &Origin,
        result: Result<Counted<Vec<u8>>, Box<CallFailure>>,
    ) {
        let mut answer = Vec::new();
        match result {
            Ok(value) => {
                let duration = TimeDuration(self.time().0.saturating_sub(origin.timestamp.0));
                server::procedure_result_returned(
                    &mut answer,
                    request_id,
                    origin.timestamp,
                    duration,
                    &value,
                );
            }
            Err(failure) => {
                server::procedure_result_internal_error(
                    &mut answer,
                    request_id,
                    &failure.of_procedure(),
                );
            }
        }
        let answer = self.ready(connection, answer);
        self.event(Event::Answered { connection, answer });
        self.trace_answer(origin);
    }
}

/// A value of the declared type.
fn checked_value(
    module: &Module,
    procedure: u32,
    result: ProcedureResult,
) -> Result<Counted<Vec<u8>>, Box<CallFailure>> {
    let ProcedureResult::Value(value) = result else {
        let text = "a procedure answered like an HTTP handler";
        return Err(CallFailure::new(Failure::Trap, text));
    };
    let definition = &module.def().procedures[procedure as usize];
    let valid = lightcone_types::bsatn::validate(
        &definition.params_typespace,
        &definition.return_type,
        &mut Reader::new(&value),
    );
    valid.map(|()| value).map_err(|error| {
        let text = format!("the result is no value of the declared type: {error}");
        CallFailure::new(Failure::Trap, text)
    })
}

fn json_of(module: &Module, procedure: u32, value: &[u8]) -> String {
    let definition = &module.def().procedures[procedure as usize];
    let mut json = String::new();
    lightcone_types::json::bsatn_to_json_untyped(
        &definition.params_typespace,
        &definition.return_type,
        &mut Reader::new(value),
        &mut json,
    )
    .expect("the value was checked");
    json
}

fn handler_reply(result: ProcedureResult) -> Result<HandlerAnswer, Box<CallFailure>> {
    let ProcedureResult::Response(HandlerResponse { head, body }) = result else {
        let text = "an HTTP handler answered like a procedure";
        return Err(CallFailure::new(Failure::Trap, text));
    };
    let head = HttpResponse::decode(&mut Reader::new(&head));
    let head = head.map_err(|error| CallFailure::new(Failure::Trap, error.to_string()))?;
    Ok(HandlerAnswer { head, body })
}
