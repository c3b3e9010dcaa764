//! Procedures and HTTP handlers beside the writer: where they run, what they wait for, what ends them.
//!
//! A call that computes or waits has an instance of its own and holds up nobody. For each of its transactions it asks the writer
//! for the tables: it gets them as they are, by value, and the writer waits until it has them back, for no longer than a limit.
//! What commits is the writer, so that log and subscribers see transactions of procedures as they see all others.
//!
//! A function that was brief again and again, and never waited, runs on the writer itself, which costs no change of threads
//! ([`Placement`]).

mod control;
mod immediate;
mod lease;
mod placement;
mod tasks;
mod threads;
mod waits;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use lightcone_accounts::{Account, Kind, Reservation, Terms};
use lightcone_engine::ScheduleAt;
use lightcone_host::{
    HostConfig, InstanceAccounts, InterruptReason, ProcedureCall, ProcedureOutcome,
    ProcedureResult, ReducerCall, SuspendableInstance,
};
use lightcone_log::LogOffset;
use lightcone_outbound::RequestShare;
use lightcone_types::{ConnectionId, Identity, Timestamp};
use rustc_hash::FxHashMap;
use tokio::sync::{oneshot, Semaphore};

use crate::calls::{CallError, CallOutcome, HandlerAnswer};
use crate::inbox::{InboxPermit, Notice};
use crate::module::Module;
use crate::options::DatabaseOptions;
use crate::peer::ConnectionNumber;
use crate::shared::Shared;
use crate::trace::TraceContext;

pub(crate) use control::Control;
pub(crate) use immediate::ImmediateQueue;
pub(crate) use lease::{Granted, Lease, LeaseRequest, LeaseSlot, Returned, TABLES_CHANGED_TEXT};
pub(crate) use placement::Placement;
pub(crate) use waits::Waits;

/// For whom a function of the module is called, and when.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Origin {
    pub identity: Identity,
    pub connection_id: ConnectionId,
    pub timestamp: Timestamp,
    /// The call is traced.
    pub trace: Option<TraceContext>,
}

/// What is called, by its position in the module's definition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Function {
    Procedure(u32),
    Handler(u32),
}

/// A call of a procedure or handler.
pub(crate) struct Job {
    pub module: Arc<Module>,
    pub function: Function,
    pub origin: Origin,
    /// For a handler the request.
    pub args: Vec<u8>,
    /// The body of a handler's request.
    pub body: Bytes,
    pub asker: Asker,
}

/// Who waits for what comes of a call.
pub(crate) enum Asker {
    Client {
        connection: ConnectionNumber,
        request_id: u32,
    },
    /// The caller's rows go when the call has ended.
    Http {
        permit: Option<InboxPermit>,
        reply: oneshot::Sender<Result<CallOutcome, CallError>>,
    },
    Handler {
        permit: Option<InboxPermit>,
        reply: oneshot::Sender<Result<HandlerAnswer, CallError>>,
    },
    /// A row of a schedule table, by the number of its call: an update may move it to another table meanwhile.
    Schedule {
        number: u64,
        at: ScheduleAt,
        intended: Timestamp,
    },
    Nobody,
}

impl Asker {
    /// The call is in the inbox no longer.
    fn leave_inbox(&mut self) {
        if let Asker::Http { permit, .. } | Asker::Handler { permit, .. } = self {
            *permit = None;
        }
    }
}

/// The same, borrowed and without anybody who waits.
#[derive(Clone, Copy)]
pub(crate) struct Call<'a> {
    pub module: &'a Module,
    pub function: Function,
    pub origin: &'a Origin,
    pub args: &'a [u8],
    pub body: &'a [u8],
}

impl<'a> Call<'a> {
    pub fn placement(&self) -> &'a Placement {
        self.module.placement(self.function)
    }

    pub fn call(&self) -> ProcedureCall<'a> {
        let (id, name, body) = match self.function {
            Function::Procedure(id) => (id, &self.module.procedure_names[id as usize], None),
            Function::Handler(id) => {
                let name = &self.module.http_handler_names[id as usize];
                (id, name, Some(self.body))
            }
        };
        ProcedureCall {
            call: ReducerCall {
                id,
                name,
                sender: self.origin.identity,
                connection_id: self.origin.connection_id,
                timestamp: self.origin.timestamp,
                args: self.args,
            },
            body,
        }
    }
}

/// A call that has ended.
pub(crate) struct Ended {
    pub module: Arc<Module>,
    pub function: Function,
    pub origin: Origin,
    pub asker: Asker,
    pub control: Arc<Control>,
    pub outcome: ProcedureOutcome<ProcedureResult>,
}

/// Why a call finds no place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Full {
    Calls,
    Bytes,
}

impl Job {
    /// What it holds of its caller's while it is under way.
    fn bytes(&self) -> usize {
        self.args.len() + self.body.len()
    }

    pub fn call(&self) -> Call<'_> {
        Call {
            module: &self.module,
            function: self.function,
            origin: &self.origin,
            args: &self.args,
            body: &self.body,
        }
    }

    pub fn ended(self, control: Arc<Control>, outcome: ProcedureOutcome<ProcedureResult>) -> Ended {
        Ended {
            control,
            module: self.module,
            function: self.function,
            origin: self.origin,
            asker: self.asker,
            outcome,
        }
    }
}

/// What a database has for calls beside the writer.
pub(crate) struct Procedures {
    under_way_max: usize,
    /// Arguments and request bodies of the calls under way.
    arguments: Arc<Account>,
    /// Calls in WebAssembly that compute.
    running: Arc<Semaphore>,
    running_max: usize,
    /// Outbound requests.
    requests: Arc<Semaphore>,
    /// Of the owner's databases together.
    share: RequestShare,
    /// What calls beside the writer hold: their instances, what they have asked for and what they have returned.
    pub(crate) accounts: InstanceAccounts,
    /// Instances without a call, with the version of their module.
    idle: Mutex<Vec<(u64, Box<dyn SuspendableInstance>)>>,
    threads: Arc<threads::Threads>,
    calls: Mutex<Calls>,
}

#[derive(Default)]
struct Calls {
    last: u64,
    under_way: FxHashMap<u64, Arc<Control>>,
    of_caller: FxHashMap<Identity, Share>,
    stopped: bool,
}

/// What one caller has of the calls under way.
struct Share {
    calls: usize,
    /// Their arguments and bodies.
    arguments: Arc<Account>,
}

impl Share {
    /// A caller may have as much as is left for all others.
    fn below(arguments: &Arc<Account>) -> Share {
        let terms = Terms {
            leaves_as_much: true,
            ..Terms::exact(usize::MAX)
        };
        Share {
            calls: 0,
            arguments: arguments.open(Kind::Client, terms),
        }
    }
}

impl Calls {
    /// A caller may have as many as are left for all others.
    fn may_begin(
        &self,
        caller: Identity,
        bytes: usize,
        calls_max: usize,
        arguments: &Arc<Account>,
    ) -> Result<(), Full> {
        let share = self.of_caller.get(&caller);
        let calls = share.map_or(0, |share| share.calls);
        if calls >= calls_max.saturating_sub(self.under_way.len()) {
            return Err(Full::Calls);
        }
        let free_bytes = share.map_or_else(
            || Share::below(arguments).arguments.free_bytes(),
            |share| share.arguments.free_bytes(),
        );
        match bytes > free_bytes {
            true => Err(Full::Bytes),
            false => Ok(()),
        }
    }

    /// Gives the call's number, and what its arguments and body count as.
    fn begin(
        &mut self,
        caller: Identity,
        bytes: usize,
        arguments: &Arc<Account>,
        control: Arc<Control>,
    ) -> Result<(u64, Reservation), Full> {
        let share = self.of_caller.entry(caller);
        let share = share.or_insert_with(|| Share::below(arguments));
        let reserved = share.arguments.reserve(bytes).map_err(|_| Full::Bytes)?;
        share.calls += 1;
        self.last += 1;
        self.under_way.insert(self.last, control);
        Ok((self.last, reserved))
    }

    fn end(&mut self, number: u64, caller: Identity) {
        self.under_way.remove(&number);
        if let Some(share) = self.of_caller.get_mut(&caller) {
            share.calls -= 1;
            if share.calls == 0 {
                self.of_caller.remove(&caller);
            }
        }
    }
}

impl Procedures {
    pub fn new(options: &DatabaseOptions) -> Procedures {
        let limits = &options.limits;
        let bytes_max = limits.procedure_memory_bytes_max;
        Procedures {
            under_way_max: limits.procedures_max,
            arguments: options
                .commons
                .arguments(limits.procedure_arguments_bytes_max),
            running: Arc::new(Semaphore::new(limits.wasm_procedures_running_max)),
            running_max: limits.wasm_procedures_running_max,
            requests: Arc::new(Semaphore::new(limits.http_requests_max)),
            share: options.commons.request_share(options.owner),
            accounts: options.commons.procedures(options.owner, bytes_max),
            idle: Mutex::default(),
            threads: threads::Threads::new(limits.js_procedure_threads_max),
            calls: Mutex::default(),
        }
    }

    /// Whether there is a place for a call with so many bytes. Only the writer takes places, so what it hears stays true.
    pub fn has_place(&self, caller: Identity, bytes: usize) -> bool {
        let calls = self.calls();
        calls
            .may_begin(caller, bytes, self.under_way_max, &self.arguments)
            .is_ok()
    }

    /// Everybody who runs or waits is ended.
    pub fn stop(&self) {
        let mut calls = self.calls();
        calls.stopped = true;
        for control in calls.under_way.values() {
            control.end(InterruptReason::Stopping);
        }
        drop(calls);
        self.threads.stop();
        self.idle().clear();
    }

    fn calls(&self) -> std::sync::MutexGuard<'_, Calls> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn idle(&self) -> std::sync::MutexGuard<'_, Vec<(u64, Box<dyn SuspendableInstance>)>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An instance of this version without a call. Those of others go.
    fn take_idle(&self, version: u64) -> Option<Box<dyn SuspendableInstance>> {
        let mut idle = self.idle();
        idle.retain(|(of, _)| *of == version);
        idle.pop().map(|(_, instance)| instance)
    }

    fn put_idle(&self, version: u64, instance: Box<dyn SuspendableInstance>) {
        let mut idle = self.idle();
        if idle.len() < self.running_max && !self.calls().stopped {
            idle.push((version, instance));
        }
    }
}

/// One of the calls that are under way; it is none any more when this goes.
struct UnderWay {
    shared: Arc<Shared>,
    number: u64,
    caller: Identity,
    control: Arc<Control>,
    /// Of its arguments and its body.
    _counted: Reservation,
    /// What the writer is told if nobody knows what came of the call.
    job: Option<Job>,
}

impl UnderWay {
    /// The call has ended: the writer sees to what is left.
    fn end(mut self, outcome: ProcedureOutcome<ProcedureResult>) {
        self.tell(outcome);
    }

    fn tell(&mut self, outcome: ProcedureOutcome<ProcedureResult>) {
        if let Some(job) = self.job.take() {
            // A database that has stopped answers nobody: whoever waits hears that it is gone.
            let ended = Box::new(job.ended(self.control.clone(), outcome));
            let _ = self.shared.inbox.notice(Notice::ProcedureEnded(ended));
        }
    }

    fn job(&self) -> &Job {
        self.job.as_ref().expect("it is there until the end")
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.tell(ProcedureOutcome::Failed {
            message: "the server failed to run it".to_owned(),
        });
        let procedures = &self.shared.procedures;
        procedures.calls().end(self.number, self.caller);
    }
}

/// Starts a call beside the writer. What it is called with may rest on all transactions before `next_offset`.
///
/// # Errors
/// There are too many.
pub(crate) fn start(
    shared: &Arc<Shared>,
    mut job: Job,
    next_offset: LogOffset,
) -> Result<(), (Full, Box<Job>)> {
    let procedures = &shared.procedures;
    let (control, caller) = (Arc::new(Control::default()), job.origin.identity);
    control.saw(next_offset);
    let bytes = job.bytes();
    let (number, counted) = {
        let mut calls = procedures.calls();
        let (calls_max, arguments) = (procedures.under_way_max, &procedures.arguments);
        let begun = calls
            .may_begin(caller, bytes, calls_max, arguments)
            .and_then(|()| calls.begin(caller, bytes, arguments, control.clone()));
        if calls.stopped {
            control.end(InterruptReason::Stopping);
        }
        match begun {
            Ok(begun) => begun,
            Err(full) => return Err((full, Box::new(job))),
        }
    };
    job.asker.leave_inbox();
    end_in_time(shared, &control);
    let environment = shared.environment();
    let suspends = job.module.program.loaded.suspends();
    let under_way = UnderWay {
        shared: shared.clone(),
        number,
        caller,
        control,
        _counted: counted,
        job: Some(job),
    };
    match suspends {
        true => environment.spawn_task(Box::pin(tasks::run(under_way))),
        false => threads::push(under_way),
    }
    Ok(())
}

/// A call ends when it has had the time of a procedure.
pub(crate) fn end_in_time(shared: &Shared, control: &Arc<Control>) {
    let seconds_max = shared.options.limits.host.procedure_seconds_max;
    let late = Arc::downgrade(control);
    control.set_alarm(shared.environment().alarm(
        Duration::from_secs(seconds_max),
        Box::new(move || {
            if let Some(control) = late.upgrade() {
                control.end(InterruptReason::ProcedureTime);
            }
        }),
    ));
}

/// What instances for calls beside the writer are made with.
fn host_config(shared: &Shared) -> HostConfig {
    HostConfig {
        accounts: shared.procedures.accounts.clone(),
        ..shared.host_config()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_caller_leaves_as_many_for_others_as_it_has() {
        let arguments = Account::root(Kind::Requests, 1000);
        let mut calls = Calls::default();
        let (greedy, other) = (Identity::from_le_bytes([1; 32]), Identity::ZERO);
        let mut begun = Vec::new();
        while calls.may_begin(greedy, 100, 10, &arguments).is_ok() {
            let call = calls.begin(greedy, 100, &arguments, Arc::default());
            begun.push(call.expect("it may"));
        }
        assert_eq!(begun.len(), 5);
        assert_eq!(
            calls.may_begin(greedy, 0, 10, &arguments),
            Err(Full::Calls),
            "as many as are left"
        );
        let may = |calls: &Calls, caller, bytes| calls.may_begin(caller, bytes, 20, &arguments);
        assert_eq!(may(&calls, greedy, 1), Err(Full::Bytes));
        assert_eq!(may(&calls, other, 250), Ok(()), "as much as is left then");
        assert_eq!(may(&calls, other, 251), Err(Full::Bytes));
        for (number, _counted) in begun {
            calls.end(number, greedy);
        }
        assert!(calls.under_way.is_empty() && calls.of_caller.is_empty());
        assert_eq!(arguments.used(), 0);
    }
}
