//! The calls beside the writer that are under way, and what a database has for them.

use std::sync::Arc;
use std::time::{Duration, Instant};

use lightcone_accounts::{Account, Kind, Reservation, Terms};
use lightcone_host::{
    InstanceAccounts, InterruptReason, ProcedureOutcome, ProcedureResult, SuspendableInstance,
};
use lightcone_outbound::RequestShare;
use lightcone_types::Identity;
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use tokio::sync::Semaphore;

use super::thread_queue::ThreadQueue;
use super::{Control, Ended, Job};
use crate::inbox::{Inbox, Input};
use crate::options::DatabaseOptions;

/// Why a call finds no place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Full {
    Calls,
    Bytes,
}

/// What a database has for calls beside the writer.
pub(crate) struct Procedures {
    under_way_max: usize,
    /// Arguments and request bodies of the calls under way.
    arguments: Arc<Account>,
    /// Calls in WebAssembly that compute.
    pub(super) running: Arc<Semaphore>,
    running_max: usize,
    /// Outbound requests.
    pub(super) requests: Arc<Semaphore>,
    /// Of the owner's databases together.
    pub(super) share: RequestShare,
    /// What calls beside the writer hold: their instances, what they have asked for and what they have returned.
    pub accounts: InstanceAccounts,
    /// Instances without a call, with the version of their module.
    idle: Mutex<Vec<(u64, Box<dyn SuspendableInstance>)>>,
    pub(super) threads: Arc<ThreadQueue<UnderWay>>,
    calls: Arc<Mutex<Calls>>,
}

#[derive(Default)]
struct Calls {
    last: u64,
    /// Since when.
    under_way: FxHashMap<u64, (Instant, Arc<Control>)>,
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
        control: (Instant, Arc<Control>),
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
            threads: ThreadQueue::new(limits.js_procedure_threads_max),
            calls: Arc::default(),
        }
    }

    /// Whether there is a place for a call with so many bytes. Only the writer takes places, so what it hears stays true.
    pub fn has_place(&self, caller: Identity, bytes: usize) -> bool {
        let calls = self.calls.lock();
        calls
            .may_begin(caller, bytes, self.under_way_max, &self.arguments)
            .is_ok()
    }

    /// Whether none is under way.
    pub fn is_idle(&self) -> bool {
        self.calls.lock().under_way.is_empty()
    }

    /// All calls that run or wait are ended.
    pub fn stop(&self) {
        let mut calls = self.calls.lock();
        calls.stopped = true;
        for (_, control) in calls.under_way.values() {
            control.end(InterruptReason::Stopping);
        }
        drop(calls);
        self.threads.stop();
        self.idle.lock().clear();
    }

    /// Ends the calls that have had the time of a procedure. Gives when the next one has.
    pub fn end_late(&self, now: Instant, time_max: Duration) -> Option<Instant> {
        let calls = self.calls.lock();
        let mut next = None;
        for (begun, control) in calls.under_way.values() {
            match begun.checked_add(time_max) {
                Some(end) if end <= now => control.end(InterruptReason::ProcedureTime),
                Some(end) => next = Some(next.map_or(end, |next| end.min(next))),
                None => {}
            }
        }
        next
    }

    /// Gives a call its place.
    ///
    /// # Errors
    /// There is none.
    pub(super) fn begin(
        &self,
        mut job: Job,
        (begun, control): (Instant, Arc<Control>),
        inbox: &Arc<Inbox>,
    ) -> Result<UnderWay, (Full, Box<Job>)> {
        let (caller, bytes) = (job.origin.client.identity, job.bytes());
        let mut calls = self.calls.lock();
        let begun = calls
            .may_begin(caller, bytes, self.under_way_max, &self.arguments)
            .and_then(|()| calls.begin(caller, bytes, &self.arguments, (begun, control.clone())));
        if calls.stopped {
            control.end(InterruptReason::Stopping);
        }
        drop(calls);
        let (number, counted) = match begun {
            Ok(begun) => begun,
            Err(full) => return Err((full, Box::new(job))),
        };
        job.reply_to.leave_inbox();
        Ok(UnderWay {
            inbox: inbox.clone(),
            calls: self.calls.clone(),
            number,
            caller,
            control,
            _counted: counted,
            job: Some(job),
        })
    }

    /// An instance of this version without a call. Those of others go.
    pub(super) fn take_idle(&self, version: u64) -> Option<Box<dyn SuspendableInstance>> {
        let mut idle = self.idle.lock();
        idle.retain(|(of, _)| *of == version);
        idle.pop().map(|(_, instance)| instance)
    }

    pub(super) fn put_idle(&self, version: u64, instance: Box<dyn SuspendableInstance>) {
        let mut idle = self.idle.lock();
        if idle.len() < self.running_max && !self.calls.lock().stopped {
            idle.push((version, instance));
        }
    }
}

/// One of the calls that are under way; it is none any more when this goes.
pub(super) struct UnderWay {
    inbox: Arc<Inbox>,
    calls: Arc<Mutex<Calls>>,
    number: u64,
    pub caller: Identity,
    pub control: Arc<Control>,
    /// Of its arguments and its body.
    _counted: Reservation,
    /// What the writer is told if it is not known what came of the call.
    job: Option<Job>,
}

impl UnderWay {
    /// The call has ended: the writer sees to what is left.
    pub fn end(mut self, outcome: ProcedureOutcome<ProcedureResult>) -> Ended {
        let job = self.job.take().expect("it is there until the end");
        job.ended(self.control.clone(), outcome)
    }

    /// Also tells the writer, where no other code does.
    pub fn end_and_tell(self, outcome: ProcedureOutcome<ProcedureResult>) {
        let inbox = self.inbox.clone();
        // A database that has stopped answers no call: the caller that waits hears that it is gone.
        let _ = inbox.send(Input::ProcedureEnded(Box::new(self.end(outcome))));
    }

    pub fn job(&self) -> &Job {
        self.job.as_ref().expect("it is there until the end")
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.calls.lock().end(self.number, self.caller);
        if let Some(job) = self.job.take() {
            let message = "the server failed to run it".to_owned();
            let ended = job.ended(self.control.clone(), ProcedureOutcome::Failed { message });
            let _ = self.inbox.send(Input::ProcedureEnded(Box::new(ended)));
        }
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
            let call = calls.begin(greedy, 100, &arguments, (Instant::now(), Arc::default()));
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
