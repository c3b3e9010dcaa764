//! An instance, in either engine, as the database calls it.

use std::any::Any;
use std::panic::resume_unwind;
use std::sync::Arc;

use lightcone_host::{
    lend, trap_of, ConsoleLevel, Counted, HandlerResponse, HoldsEnv, HostTrap, Interrupt, Lent,
    LimitKind, ModuleInstance, OpenTransaction, ProcedureCall, ProcedureOutcome, ProcedureResult,
    ReadSet, ReadView, ReducerCall, ReducerOutcome, Transactions, ViewCall, ViewOutcome,
};

use crate::frame::console_frames;
use crate::invoke::{HookOutcome, Target};
use crate::trace::Exception;

/// The isolate of an instance: how an engine enters, leaves and stops it.
pub(crate) trait Realm: HoldsEnv + Send {
    /// Makes the isolate usable on this thread, or says why it cannot.
    fn make_ready(&mut self) -> Result<(), String>;

    /// All calls will come from this thread.
    fn stay(&mut self) {}

    /// Whether [`rest`](Self::rest) may ever free memory.
    fn rests(&self) -> bool {
        false
    }

    /// Frees memory that only the next call would use.
    fn rest(&mut self) {}

    /// Calls a hook and runs its micro-tasks, under the time limit of calls. Says why the call was ended, if it was; it has no
    /// other end then.
    fn call(
        &mut self,
        call: &ReducerCall<'_>,
        target: Target<'_>,
    ) -> (HookOutcome, Option<HostTrap>);

    /// The time limit of later calls. After [`make_ready`](Self::make_ready).
    fn limit_calls(&mut self, call_ms_max: u64) {
        self.env().limit_calls(call_ms_max);
    }

    fn interrupt(&mut self) -> Arc<Interrupt> {
        self.env().interrupt().clone()
    }

    /// Whether no further call may run.
    fn is_tainted(&self) -> bool;

    /// A panic of a host function in the last call, which could not unwind through the engine.
    fn take_panic(&mut self) -> Option<Box<dyn Any + Send>>;
}

pub(crate) struct JsInstance<R> {
    realm: R,
}

impl<R: Realm> JsInstance<R> {
    pub(crate) fn new(realm: R) -> JsInstance<R> {
        JsInstance { realm }
    }

    /// Gives what the hook returned: for a handler, head and body of the response. The reads of a view are added to `reads`.
    #[inline]
    fn run(
        &mut self,
        lent: Lent<'_>,
        call: &ReducerCall<'_>,
        target: Target<'_>,
        reads: Option<&mut ReadSet>,
    ) -> Result<(Vec<u8>, Vec<u8>), Ended> {
        if self.realm.is_tainted() {
            let message = "the instance was stopped before and not replaced";
            return Err(Ended::Fatal(message.to_owned()));
        }
        self.realm.make_ready().map_err(Ended::Fatal)?;
        let ended = lend(&mut self.realm, lent, |realm| {
            realm.env().begin_script_call(call.name);
            if reads.is_some() {
                realm.env().begin_reads();
            }
            let ended = match realm.call(call, target) {
                (_, Some(trap)) => Err(stopped(&trap)),
                (HookOutcome::Returned(value, body), None) => Ok((value, body)),
                (HookOutcome::Refused(text), None) => Err(Ended::Refused(text)),
                (HookOutcome::Uncaught(exception), None) => Err(uncaught(realm, &exception)),
                (HookOutcome::Failed(message), None) => Err(Ended::Fatal(message)),
            };
            realm.env().end_script_call();
            ended
        });
        if let Some(reads) = reads {
            reads.extend(self.realm.env().end_reads());
        }
        if let Some(panic) = self.realm.take_panic() {
            resume_unwind(panic);
        }
        ended
    }

    /// What a procedure or handler returned is in its instance's account until another account takes it.
    fn result(
        &mut self,
        (value, body): (Vec<u8>, Vec<u8>),
        is_response: bool,
    ) -> Result<ProcedureResult, HostTrap> {
        let account = self.realm.env().account();
        let count = |bytes| Counted::of(bytes, account).map_err(trap_of);
        let value = count(value)?;
        Ok(match is_response {
            false => ProcedureResult::Value(value),
            true => ProcedureResult::Response(HandlerResponse {
                head: value,
                body: count(body)?,
            }),
        })
    }
}

#[cold]
fn stopped(trap: &HostTrap) -> Ended {
    match trap {
        HostTrap::Limit { kind, .. } if *kind == LimitKind::CallTime => {
            Ended::TimedOut(trap.to_string())
        }
        trap => Ended::Fatal(trap.to_string()),
    }
}

/// An uncaught exception goes to the module's log (§9).
#[cold]
fn uncaught<R: Realm>(realm: &mut R, exception: &Exception) -> Ended {
    let location = exception.location();
    realm.env().console_log(
        ConsoleLevel::PANIC_NUMBER.into(),
        None,
        location.map(|(script, _)| script.as_bytes()),
        location.map_or(u32::MAX, |(_, line)| line),
        exception.message.as_bytes(),
        || console_frames(&exception.frames),
    );
    Ended::Fatal(exception.text())
}

impl<R: Realm> ModuleInstance for JsInstance<R> {
    #[inline]
    fn call_reducer(
        &mut self,
        transaction: OpenTransaction<'_>,
        call: &ReducerCall<'_>,
    ) -> ReducerOutcome {
        match self.run(Lent::Transaction(transaction), call, Target::Reducer, None) {
            Ok(_) => ReducerOutcome::Ok,
            Err(Ended::Refused(text)) => ReducerOutcome::UserError(text),
            Err(Ended::Fatal(message)) => ReducerOutcome::Fatal { message },
            Err(Ended::TimedOut(message)) => ReducerOutcome::TimedOut { message },
        }
    }

    fn call_procedure(
        &mut self,
        transactions: &mut dyn Transactions,
        call: &ProcedureCall<'_>,
    ) -> ProcedureOutcome {
        let target = match call.body {
            None => Target::Procedure,
            Some(body) => Target::HttpHandler(body, call.sender_jwt),
        };
        let called = self.run(Lent::Transactions(transactions), &call.call, target, None);
        let message = match called {
            Ok(returned) => match self.result(returned, call.body.is_some()) {
                Ok(result) => return ProcedureOutcome::Returned(result),
                Err(trap) => trap.to_string(),
            },
            // For these, refusals are failures with another text (§5.2).
            Err(Ended::Refused(message) | Ended::Fatal(message)) => message,
            Err(Ended::TimedOut(message)) => return ProcedureOutcome::TimedOut { message },
        };
        ProcedureOutcome::Failed { message }
    }

    fn call_view(
        &mut self,
        view: ReadView<'_>,
        call: &ViewCall<'_>,
        reads: &mut ReadSet,
    ) -> ViewOutcome {
        let target = Target::View {
            is_anonymous: call.sender.is_none(),
        };
        let called = self.run(Lent::Read(view), &call.as_call(), target, Some(reads));
        match called {
            Ok((result, _)) => ViewOutcome::with_header(result),
            Err(Ended::Refused(message) | Ended::Fatal(message)) => ViewOutcome::Failed { message },
            Err(Ended::TimedOut(message)) => ViewOutcome::TimedOut { message },
        }
    }

    fn prepare(&mut self) {
        match self.realm.make_ready() {
            Ok(()) => self.realm.stay(),
            // The first call fails too, and reports it.
            Err(message) => tracing::warn!(%message, "a JavaScript module was not ready"),
        }
    }

    fn interrupt(&mut self) -> Option<Arc<Interrupt>> {
        Some(self.realm.interrupt())
    }

    fn limit_calls(&mut self, call_ms_max: u64) {
        // Without an isolate the call reports it.
        if self.realm.make_ready().is_ok() {
            self.realm.limit_calls(call_ms_max);
        }
    }

    fn rests(&self) -> bool {
        self.realm.rests()
    }

    fn rest(&mut self) {
        self.realm.rest();
    }

    #[inline]
    fn is_poisoned(&self) -> bool {
        self.realm.is_tainted()
    }
}

/// Why a call has no result.
enum Ended {
    /// With the text of a `SenderError`.
    Refused(String),
    Fatal(String),
    TimedOut(String),
}
