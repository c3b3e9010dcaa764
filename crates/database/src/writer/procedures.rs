//! Calls of procedures (03 §10) and of HTTP handlers (03 §11.6), as far as they are the writer's: where they run, the tables that
//! are lent to those beside it, and what is left to do when they have ended.

use std::sync::atomic::Ordering;
use std::sync::mpsc::{sync_channel, Receiver, RecvTimeoutError};
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use lightcone_accounts::Counted;
use lightcone_host::{
    trap_of, Ask, HandlerResponse, HostTrap, HttpAnswer, HttpResponse, InterruptReason,
    ModuleInstance, OpenTransaction, ProcedureOutcome, ProcedureResult, ReducerCall,
    ReducerOutcome, Transactions, ViewCall, ViewOutcome, Waiting, HTTP_DISABLED_TEXT,
};
use lightcone_types::bsatn::{Decode as _, Reader};
use lightcone_types::{ConnectionId, Identity, TimeDuration, Timestamp};
use lightcone_wire::server;

use super::Writer;
use crate::calls::{CallError, CallOutcome, HandlerAnswer, HandlerRequest};
use crate::events::Event;
use crate::inbox_capacity::InboxPermit;
use crate::metrics::{Failure, FunctionCounters};
use crate::module::{Function, Module};
use crate::peer::ConnectionNumber;
use crate::procedures::{
    self, Asker, Call, Control, Ended, Full, Granted, Job, Lease, LeaseRequest, LeaseSlot, Origin,
    Returned, Waits, TABLES_CHANGED_TEXT,
};
use tokio::sync::oneshot;

/// A call takes tables that were lent to it in this time, or they are lent to it again later.
const LEASE_TAKEN_MAX: Duration = Duration::from_millis(10);

/// Why a procedure returned nothing.
enum ProcedureFailure {
    /// It was not run; the text says why.
    NotRun(String),
    Failed(String),
    TimedOut(String),
}

impl ProcedureFailure {
    fn reason(&self) -> &str {
        match self {
            ProcedureFailure::NotRun(text)
            | ProcedureFailure::Failed(text)
            | ProcedureFailure::TimedOut(text) => text,
        }
    }

    /// The text for the caller (05 §6.4).
    fn text(self) -> String {
        match self {
            ProcedureFailure::NotRun(reason) => reason,
            ProcedureFailure::Failed(message) | ProcedureFailure::TimedOut(message) => {
                format!("The module instance encountered a fatal error: {message}")
            }
        }
    }
}

impl Writer {
    /// A client's call. Its transactions go to all subscribers, the caller among them, before the answer.
    pub(super) fn client_procedure(
        &mut self,
        connection: ConnectionNumber,
        request_id: u32,
        procedure: u32,
        origin: &Origin,
        args: &[u8],
    ) {
        let asker = Asker::Client {
            connection,
            request_id,
        };
        self.start_procedure(procedure, *origin, args, asker);
    }

    /// A procedure for whoever asks.
    pub(super) fn start_procedure(
        &mut self,
        procedure: u32,
        origin: Origin,
        args: &[u8],
        asker: Asker,
    ) {
        let (module, function) = (self.module.clone(), Function::Procedure(procedure));
        if self.takes(&module, function) {
            let call = Call {
                module: &module,
                function,
                origin: &origin,
                args,
                body: &[],
            };
            let outcome = self.run_here(&call);
            return self.finish(&module, function, &origin, asker, Ok(outcome));
        }
        self.start(Job {
            module,
            function,
            origin,
            args: args.to_vec(),
            body: bytes::Bytes::new(),
            asker,
        });
    }

    /// Whether a call can begin now: on the writer, or beside it.
    pub(super) fn can_begin(&self, procedure: u32, caller: Identity, bytes: usize) -> bool {
        let function = Function::Procedure(procedure);
        let never_waits = !self.module.placement(function).waits();
        let runs_here = never_waits && !self.state.serves_others;
        runs_here || self.shared.procedures.has_place(caller, bytes)
    }

    /// Whether a call is sure to be brief, so that it runs between two others. Only one call may make the writer wait for it.
    fn takes(&self, module: &Module, function: Function) -> bool {
        !self.state.serves_others
            && module.placement(function).is_brief()
            && !self.shared.status.is_read_only()
    }

    /// The HTTP handler of a request, if the module has one for it. The sender is the module itself: zero.
    pub(super) fn http_handler(
        &mut self,
        request: HandlerRequest,
        permit: InboxPermit,
        reply: oneshot::Sender<Result<HandlerAnswer, CallError>>,
    ) {
        let handler = self
            .module
            .def()
            .http_handler(&request.method, &request.path);
        let Some(handler) = handler else {
            // The module may have been replaced since the request was let in.
            let result: Result<HandlerAnswer, _> = Err(CallError::NoSuchFunction);
            return self.reply_when_durable(true, result, reply, Some(permit));
        };
        let (module, function) = (self.module.clone(), Function::Handler(handler as u32));
        let job = Job {
            origin: Origin {
                identity: Identity::ZERO,
                connection_id: ConnectionId(0),
                timestamp: request.timestamp,
                trace: None,
            },
            args: request.head,
            body: request.body,
            asker: Asker::Handler {
                permit: Some(permit),
                reply,
            },
            function,
            module,
        };
        match self.takes(&job.module, function) {
            true => self.run_job_here(job),
            false => self.start(job),
        }
    }

    /// Runs a call beside the writer.
    fn start(&mut self, job: Job) {
        if let Some(reason) = self.shared.status.read_only() {
            return self.refuse(job, reason);
        }
        match procedures::start(&self.shared, job, self.next_offset) {
            Ok(()) => {}
            Err((_, job)) if !self.state.serves_others && !job.call().placement().waits() => {
                self.run_job_here(*job);
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
                self.refuse(*job, reason);
            }
        }
    }

    fn refuse(&mut self, job: Job, reason: String) {
        self.finish(
            &job.module,
            job.function,
            &job.origin,
            job.asker,
            Err(reason),
        );
    }

    fn run_job_here(&mut self, job: Job) {
        let outcome = self.run_here(&job.call());
        self.finish(
            &job.module,
            job.function,
            &job.origin,
            job.asker,
            Ok(outcome),
        );
    }

    /// Runs a call between two others, in the writer's own instance.
    fn run_here(&mut self, call: &Call<'_>) -> ProcedureOutcome<ProcedureResult> {
        let version = self.module.version;
        let mut instance = std::mem::replace(&mut self.instance, Box::new(Absent));
        let started = self.now_instant();
        let mut transactions = HereTransactions {
            call,
            committed_bytes: 0,
            waits: None,
            writer: self,
        };
        let outcome = instance.call_either(&mut transactions, &call.call());
        if transactions.waits.is_none() {
            let held_up = self.now_instant() - started;
            call.placement().note_run_on_writer(held_up);
        }
        let is_spent = instance.is_poisoned();
        self.instance = instance;
        if is_spent || self.module.version != version {
            self.replace_instance();
        }
        outcome
    }

    fn now_instant(&self) -> std::time::Instant {
        self.shared.environment().instant()
    }

    /// Lends the tables to a call beside the writer for one transaction, and waits until they are back.
    pub(super) fn lend_tables(&mut self, request: LeaseRequest) {
        // Who waits for an answer need not wait for the call as well.
        self.end_round();
        let LeaseRequest {
            tables_version,
            slot,
            ready,
            control,
            committed_bytes,
        } = request;
        let put = |granted| *slot.lock().unwrap_or_else(PoisonError::into_inner) = granted;
        if let Err(reason) = self.may_have_tables(tables_version) {
            put(Granted::Refused(reason));
            // The call may be gone.
            ready.tell();
            return;
        }
        control.saw(self.next_offset);
        let spare = self.state.spare.take().unwrap_or_default();
        let datastore = std::mem::replace(&mut self.datastore, spare);
        let (back, returned) = sync_channel(1);
        put(Granted::Tables(Box::new(Lease::new(datastore, back))));
        if !ready.tell() {
            // Nobody takes them.
            put(Granted::Nothing);
        }
        let back = self.wait_for_tables(slot, &returned, &control);
        self.state.spare = Some(std::mem::replace(&mut self.datastore, back.datastore));
        if back.commit {
            let before = self.transactions().0.bytes();
            let committed = self.commit_transaction();
            let added = self.transactions().0.bytes().saturating_sub(before);
            committed_bytes.fetch_add(added, Ordering::Relaxed);
            control.committed(committed.map(|()| self.next_offset));
            // Others see it at once.
            self.end_round();
        }
    }

    /// A call whose code knows the tables of this version of the module may have them.
    fn may_have_tables(&self, tables_version: u64) -> Result<(), String> {
        if let Some(reason) = self.shared.status.read_only() {
            return Err(reason);
        }
        match tables_version == self.module.tables_version {
            true => Ok(()),
            false => Err(TABLES_CHANGED_TEXT.to_owned()),
        }
    }

    /// Waits for tables that were lent.
    fn wait_for_tables(
        &self,
        slot: LeaseSlot,
        returned: &Receiver<Returned>,
        control: &Control,
    ) -> Returned {
        let mut back = returned.recv_timeout(LEASE_TAKEN_MAX);
        if back.is_err() {
            // While others compute, the call has no thread, and all would wait for them.
            let mut granted = slot.lock().unwrap_or_else(PoisonError::into_inner);
            if matches!(*granted, Granted::Tables(_)) {
                *granted = Granted::Withdrawn;
            }
            drop(granted);
            // From here on the call alone keeps them: when it goes, they come back.
            drop(slot);
            let ms_max = self.shared.options.limits.host.procedure_transaction_ms_max;
            back = returned.recv_timeout(Duration::from_millis(ms_max));
        }
        if matches!(back, Err(RecvTimeoutError::Timeout)) {
            control.end(InterruptReason::TransactionTime);
            // Its code is stopped at the next tick, and all that the host does for it is bounded.
            back = returned.recv().map_err(|_| RecvTimeoutError::Disconnected);
        }
        back.expect("a lease gives the tables back whatever happens")
    }

    /// Commits the open transaction and tells subscribers.
    ///
    /// # Errors
    /// It cannot be committed, and is taken back.
    fn commit_transaction(&mut self) -> Result<(), String> {
        let committed = self.commit().map_err(|error| error.to_string())?;
        if committed.has_record || !committed.changes.is_empty() {
            self.event(Event::Committed {
                ops: committed.changes,
            });
        }
        Ok(())
    }

    /// A call beside the writer has ended.
    pub(super) fn procedure_ended(&mut self, ended: Ended) {
        let Ended {
            module,
            function,
            origin,
            asker,
            control,
            outcome,
        } = ended;
        // It may have ended before it could hear that a transaction was refused.
        let outcome = match control.refused() {
            None => outcome,
            Some(reason) => ProcedureOutcome::Failed {
                message: reason.to_string(),
            },
        };
        self.finish(&module, function, &origin, asker, Ok(outcome));
    }

    /// Tells whoever asked what came of a call, or why it never began.
    fn finish(
        &mut self,
        module: &Module,
        function: Function,
        origin: &Origin,
        asker: Asker,
        outcome: Result<ProcedureOutcome<ProcedureResult>, String>,
    ) {
        let took = self.now().0.saturating_sub(origin.timestamp.0).max(0);
        let took = Duration::from_micros(took as u64);
        let result = match outcome {
            Err(reason) => Err(ProcedureFailure::NotRun(reason)),
            Ok(ProcedureOutcome::Returned(result)) => Ok(result),
            Ok(ProcedureOutcome::Failed { message }) => Err(ProcedureFailure::Failed(message)),
            Ok(ProcedureOutcome::TimedOut { message }) => Err(ProcedureFailure::TimedOut(message)),
        };
        match function {
            Function::Handler(id) => {
                let result = result.and_then(handler_reply);
                count(module.counters.handler(id), took, result.as_ref().err());
                let result = result.inspect_err(|failure| {
                    self.warn(
                        "HTTP handler",
                        &module.http_handler_names[id as usize],
                        true,
                        failure,
                    );
                });
                if let Asker::Handler { permit, reply } = asker {
                    // As the handler's own text, without a prefix (06 §5.16).
                    let result = result.map_err(|failure| match failure {
                        ProcedureFailure::NotRun(text)
                        | ProcedureFailure::Failed(text)
                        | ProcedureFailure::TimedOut(text) => CallError::Database(text),
                    });
                    self.reply_when_durable(true, result, reply, permit);
                }
            }
            Function::Procedure(id) => {
                let result = result.and_then(|result| checked_value(module, id, result));
                count(module.counters.procedure(id), took, result.as_ref().err());
                let name = &module.procedure_names[id as usize];
                let failure = result.as_ref().err().map(ProcedureFailure::reason);
                self.trace_procedure(name, origin, failure);
                let is_told = !matches!(asker, Asker::Schedule { .. } | Asker::Nobody);
                let result = result.inspect_err(|failure| {
                    let name = &module.procedure_names[id as usize];
                    self.warn("procedure", name, is_told, failure);
                });
                self.tell(module, id, origin, asker, result);
            }
        }
    }

    fn tell(
        &mut self,
        module: &Module,
        procedure: u32,
        origin: &Origin,
        asker: Asker,
        result: Result<Counted<Vec<u8>>, ProcedureFailure>,
    ) {
        match asker {
            Asker::Client {
                connection,
                request_id,
            } => self.tell_client(connection, request_id, origin, result),
            Asker::Http { permit, reply } => {
                self.disconnect(origin.identity, origin.connection_id);
                let result = result.map(|value| json_of(module, procedure, &value));
                let result = result.map_err(|failure| match failure {
                    ProcedureFailure::TimedOut(_) => CallError::TimedOut {
                        outcome: CallOutcome::default(),
                    },
                    failure => CallError::Database(failure.text()),
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
                self.reply_when_durable(true, result, reply, permit);
            }
            Asker::Schedule {
                number,
                at,
                intended,
            } => self.after_procedure(number, at, intended),
            // Nobody waits for what it returns, and failures are logged.
            Asker::Nobody | Asker::Handler { .. } => {}
        }
    }

    fn tell_client(
        &mut self,
        connection: ConnectionNumber,
        request_id: u32,
        origin: &Origin,
        result: Result<Counted<Vec<u8>>, ProcedureFailure>,
    ) {
        let mut answer = Vec::new();
        match result {
            Ok(value) => {
                let duration = TimeDuration(self.now().0.saturating_sub(origin.timestamp.0));
                server::procedure_result_returned(
                    &mut answer,
                    request_id,
                    origin.timestamp,
                    duration,
                    &value,
                );
            }
            Err(failure) => {
                server::procedure_result_internal_error(&mut answer, request_id, &failure.text());
            }
        }
        let answer = self.ready(connection, answer);
        self.event(Event::Answered { connection, answer });
        self.trace_answer(origin);
    }

    #[cold]
    fn warn(&self, kind: &str, function: &Arc<str>, is_told: bool, failure: &ProcedureFailure) {
        let database = self.shared.options.identity;
        match failure {
            // Who asked is told.
            ProcedureFailure::NotRun(_) if is_told => {}
            ProcedureFailure::NotRun(message)
            | ProcedureFailure::Failed(message)
            | ProcedureFailure::TimedOut(message) => {
                tracing::warn!(%database, kind, %function, %message, "a call failed");
            }
        }
    }
}

fn count(counters: &FunctionCounters, took: Duration, failure: Option<&ProcedureFailure>) {
    match failure {
        None => counters.note(took, None),
        Some(ProcedureFailure::NotRun(_)) => counters.note_refused(),
        Some(ProcedureFailure::Failed(_)) => counters.note(took, Some(Failure::Trap)),
        Some(ProcedureFailure::TimedOut(_)) => counters.note(took, Some(Failure::Time)),
    }
}

/// A value of the declared type.
fn checked_value(
    module: &Module,
    procedure: u32,
    result: ProcedureResult,
) -> Result<Counted<Vec<u8>>, ProcedureFailure> {
    let ProcedureResult::Value(value) = result else {
        let text = "a procedure answered like an HTTP handler".to_owned();
        return Err(ProcedureFailure::Failed(text));
    };
    let definition = &module.def().procedures[procedure as usize];
    let valid = lightcone_types::bsatn::validate(
        &definition.params_typespace,
        &definition.return_type,
        &mut Reader::new(&value),
    );
    valid.map(|()| value).map_err(|error| {
        let text = format!("the result is no value of the declared type: {error}");
        ProcedureFailure::Failed(text)
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

fn handler_reply(result: ProcedureResult) -> Result<HandlerAnswer, ProcedureFailure> {
    let ProcedureResult::Response(HandlerResponse { head, body }) = result else {
        let text = "an HTTP handler answered like a procedure".to_owned();
        return Err(ProcedureFailure::Failed(text));
    };
    let head = HttpResponse::decode(&mut Reader::new(&head));
    let head = head.map_err(|error| ProcedureFailure::Failed(error.to_string()))?;
    Ok(HandlerAnswer { head, body })
}

/// The transactions of a call on the writer: each joins the round as one of a reducer does, and subscribers hear of it.
struct HereTransactions<'w, 'c> {
    writer: &'w mut Writer,
    call: &'c Call<'c>,
    committed_bytes: usize,
    /// Made when the call first waits, which nobody expected.
    waits: Option<Waits>,
}

impl Transactions for HereTransactions<'_, '_> {
    fn ask(&mut self, ask: Ask) -> Option<Waiting> {
        if matches!(ask, Ask::Transaction) {
            return None;
        }
        self.call.placement().note_wait();
        let shared = &self.writer.shared;
        let waits = self.waits.get_or_insert_with(|| {
            let control = Arc::new(Control::default());
            procedures::end_in_time(shared, &control);
            Waits::new(shared, &control, None)
        });
        match ask {
            Ask::Transaction => None,
            Ask::Until(time) => Some(waits.until(time)),
            Ask::Http(request) => {
                waits.control().saw(self.writer.next_offset);
                waits.http(*request, 0)
            }
        }
    }

    fn block(&mut self, waiting: Waiting) {
        if let Some(waits) = &self.waits {
            self.writer.serve_others(waiting, waits.control());
        }
    }

    fn ended(&self) -> Option<HostTrap> {
        self.waits.as_ref()?.ended()
    }

    fn http_answer(&mut self) -> HttpAnswer {
        let answer = self.waits.as_ref().and_then(Waits::http_answer);
        answer.unwrap_or_else(|| Err(HTTP_DISABLED_TEXT.to_owned()))
    }

    fn begin(&mut self) -> Result<OpenTransaction<'_>, HostTrap> {
        // The writer served others while the call waited, perhaps an update.
        if self.waits.is_some() {
            let may = self.writer.may_have_tables(self.call.module.tables_version);
            may.map_err(|reason| HostTrap::Datastore(reason.into()))?;
        }
        self.writer.datastore.begin();
        Ok(OpenTransaction::of(&mut self.writer.datastore))
    }

    fn commit(&mut self) -> Result<(), HostTrap> {
        let before = self.writer.transactions().0.bytes();
        let committed = self.writer.commit_transaction();
        let after = self.writer.transactions().0.bytes();
        self.committed_bytes += after.saturating_sub(before);
        committed.map_err(|reason| HostTrap::Datastore(reason.into()))
    }

    fn rollback(&mut self) {
        self.writer.datastore.rollback();
    }

    fn now(&self) -> Timestamp {
        self.writer.now()
    }

    fn committed_bytes(&self) -> usize {
        self.committed_bytes
    }
}

/// In the place of an instance that is in use.
pub(super) struct Absent;

const ABSENT_TEXT: &str = "the instance is in use";

impl ModuleInstance for Absent {
    fn call_reducer(&mut self, _: OpenTransaction<'_>, _: &ReducerCall<'_>) -> ReducerOutcome {
        ReducerOutcome::Fatal {
            message: ABSENT_TEXT.to_owned(),
        }
    }

    fn call_procedure(
        &mut self,
        _: &mut dyn Transactions,
        _: &ReducerCall<'_>,
    ) -> ProcedureOutcome {
        ProcedureOutcome::Failed {
            message: ABSENT_TEXT.to_owned(),
        }
    }

    fn call_http_handler(
        &mut self,
        _: &mut dyn Transactions,
        _: &ReducerCall<'_>,
        _: &[u8],
    ) -> ProcedureOutcome<HandlerResponse> {
        ProcedureOutcome::Failed {
            message: ABSENT_TEXT.to_owned(),
        }
    }

    fn call_view(
        &mut self,
        _: lightcone_host::ReadView<'_>,
        _: &ViewCall<'_>,
        _: &mut lightcone_host::ReadSet,
    ) -> ViewOutcome {
        ViewOutcome::Failed {
            message: ABSENT_TEXT.to_owned(),
        }
    }

    fn is_poisoned(&self) -> bool {
        true
    }
}
