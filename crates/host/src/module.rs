//! What the database sees of a module, whichever engine runs it.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use lightcone_table::ReadSet;

use crate::{
    HandlerResponse, HostEnv, HostError, InstanceOptions, Interrupt, OpenTransaction,
    ProcedureCall, ProcedureOutcome, ProcedureResult, ReadView, ReducerCall, ReducerOutcome,
    Transactions, ViewCall, ViewOutcome,
};

/// Compiles programs of one kind.
pub trait ModuleEngine: Send + Sync {
    /// The engine's name, for logs and `spacetime version`.
    fn name(&self) -> &'static str;

    /// Compiles and checks a program and runs its load phase in a first instance (spec 03 §3.1). Runs guest code, under
    /// the limits of `options`; blocks for as long as compiling takes. Any bytes are allowed.
    fn load(
        &self,
        program: &[u8],
        options: &InstanceOptions,
    ) -> Result<Box<dyn LoadedModule>, HostError>;
}

/// A program that loaded.
pub trait LoadedModule: Send + Sync {
    /// The BSATN of the raw module definition, as the first instance gave it.
    fn describe(&self) -> &[u8];

    /// An instance that is ready for calls. The first one is the instance that `load` made; later ones run the load phase
    /// again and throw the description away.
    fn instantiate(&self, env: HostEnv) -> Result<Box<dyn ModuleInstance>, HostError>;

    /// Whether there are instances whose procedures are suspended while they wait, so that none of them has a thread. If not,
    /// a procedure that waits blocks the thread that called it.
    fn suspends(&self) -> bool {
        false
    }

    /// Such an instance, if there are any.
    fn instantiate_suspendable(
        &self,
        env: HostEnv,
    ) -> Option<Suspended<'_, Result<Box<dyn SuspendableInstance>, HostError>>> {
        let _ = env;
        None
    }
}

/// Work that leaves its thread to others while it waits.
pub type Suspended<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// An instance for procedures and HTTP handlers only. One call at a time.
pub trait SuspendableInstance: Send {
    /// Runs a call, which has its transactions until it ends: none of them is open then.
    fn call<'a>(
        &'a mut self,
        transactions: Box<dyn Transactions>,
        call: &'a ProcedureCall<'a>,
    ) -> Suspended<'a, ProcedureOutcome<ProcedureResult>>;

    /// Ends the running call from outside.
    fn interrupt(&self) -> Arc<Interrupt>;
}

/// A running module. One call at a time.
pub trait ModuleInstance: Send {
    /// Runs a reducer in this transaction, which stays open: the caller commits or rolls back.
    fn call_reducer(
        &mut self,
        transaction: OpenTransaction<'_>,
        call: &ReducerCall<'_>,
    ) -> ReducerOutcome;

    /// Runs a procedure, which opens its own transactions, one after the other. None is open afterwards, whatever the
    /// outcome; what it committed stays committed.
    fn call_procedure(
        &mut self,
        transactions: &mut dyn Transactions,
        call: &ReducerCall<'_>,
    ) -> ProcedureOutcome;

    /// Runs an HTTP handler, with the transactions of a procedure. The arguments of `call` are the BSATN of the request
    /// (spec 03 §13.1), whose body comes beside it; there is no sender and no connection.
    fn call_http_handler(
        &mut self,
        transactions: &mut dyn Transactions,
        call: &ReducerCall<'_>,
        body: &[u8],
    ) -> ProcedureOutcome<HandlerResponse>;

    /// Runs a view, which reads and does nothing else (spec 03 §14). What it reads is added to `reads`, also if it fails.
    fn call_view(
        &mut self,
        view: ReadView<'_>,
        call: &ViewCall<'_>,
        reads: &mut ReadSet,
    ) -> ViewOutcome {
        let _ = (view, reads);
        ViewOutcome::Failed {
            message: format!("this instance runs no views, and {} is one", call.name),
        }
    }

    /// Makes the instance ready for calls from the current thread, on which it will stay. Engines that need this do it at
    /// the first call otherwise, which makes that call slow; after a failure the first call tries again and reports it.
    fn prepare(&mut self) {}

    /// What ends the calls of this instance from outside, if the engine looks at it.
    fn interrupt(&mut self) -> Option<Arc<Interrupt>> {
        None
    }

    /// Calls take no more than so many milliseconds from the next one on, in the place of [`crate::HostLimits::call_ms_max`]. Engines
    /// without time limits have nothing to do.
    fn limit_calls(&mut self, call_ms_max: u64) {
        let _ = call_ms_max;
    }

    /// Runs a procedure or an HTTP handler.
    fn call_either(
        &mut self,
        transactions: &mut dyn Transactions,
        call: &ProcedureCall<'_>,
    ) -> ProcedureOutcome<ProcedureResult> {
        match call.body {
            None => self
                .call_procedure(transactions, &call.call)
                .map(ProcedureResult::Value),
            Some(body) => self
                .call_http_handler(transactions, &call.call, body)
                .map(ProcedureResult::Response),
        }
    }

    /// Whether [`rest`](Self::rest) may have something to do, now or after later calls.
    fn rests(&self) -> bool {
        false
    }

    /// Gives back memory that only the next call would use, as none has come for a while. May take as long as collecting all garbage
    /// does.
    fn rest(&mut self) {}

    /// Whether the instance trapped. It must be replaced before the next call; calling it again is refused.
    fn is_poisoned(&self) -> bool;
}
