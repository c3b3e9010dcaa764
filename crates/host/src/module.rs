//! What the database sees of a module, in any engine.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use lightcone_table::ReadSet;

use crate::{
    HostEnv, HostError, InstanceOptions, Interrupt, OpenTransaction, ProcedureCall,
    ProcedureOutcome, ReadView, ReducerCall, ReducerOutcome, Transactions, ViewCall, ViewOutcome,
};

/// A version in the imports of a program: `major.minor`, in digits alone.
pub fn import_version(text: &str) -> Option<(u16, u16)> {
    let number = |text: &str| -> Option<u16> {
        // `parse` would take a sign.
        let is_plain = text.bytes().all(|byte| byte.is_ascii_digit());
        text.parse().ok().filter(|_| is_plain)
    };
    let (major, minor) = text.split_once('.')?;
    Some((number(major)?, number(minor)?))
}

pub trait ModuleEngine: Send + Sync {
    /// For logs and `spacetime version`.
    fn name(&self) -> &'static str;

    /// Compiles and checks a program, and runs its load phase in a first instance (spec 03 §3.1) under the limits of `options`.
    /// Blocks for as long as that takes. Any bytes are allowed.
    fn load(
        &self,
        program: &[u8],
        options: &InstanceOptions,
    ) -> Result<Box<dyn LoadedModule>, HostError>;
}

pub trait LoadedModule: Send + Sync {
    /// The BSATN of the raw module definition, as the first instance gave it.
    fn describe(&self) -> &[u8];

    /// An instance that is ready for calls. The first one is that of `load`; later ones run the load phase again.
    fn instantiate(&self, env: HostEnv) -> Result<Box<dyn ModuleInstance>, HostError>;

    /// Whether there are instances whose procedures are suspended while they wait. If not, a waiting procedure blocks its thread.
    fn suspends(&self) -> bool {
        false
    }

    fn instantiate_suspendable(
        &self,
        env: HostEnv,
    ) -> Option<Suspended<'_, Result<Box<dyn SuspendableInstance>, HostError>>> {
        let _ = env;
        None
    }
}

pub type Suspended<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// For procedures and HTTP handlers only. One call at a time.
pub trait SuspendableInstance: Send {
    /// Runs a call with its transactions; none is open at its end.
    fn call<'a>(
        &'a mut self,
        transactions: Box<dyn Transactions>,
        call: &'a ProcedureCall<'a>,
    ) -> Suspended<'a, ProcedureOutcome>;

    /// Ends the running call from outside.
    fn interrupt(&self) -> Arc<Interrupt>;
}

/// A running module. One call at a time.
pub trait ModuleInstance: Send {
    /// Runs a reducer in this transaction, which the caller commits or rolls back.
    fn call_reducer(
        &mut self,
        transaction: OpenTransaction<'_>,
        call: &ReducerCall<'_>,
    ) -> ReducerOutcome;

    /// Runs a procedure or an HTTP handler, which opens its transactions one after the other. None is open afterwards; what it
    /// committed stays.
    fn call_procedure(
        &mut self,
        transactions: &mut dyn Transactions,
        call: &ProcedureCall<'_>,
    ) -> ProcedureOutcome;

    /// Runs a view, which only reads (spec 03 §14). Its reads are added to `reads`, also if it fails.
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

    /// Makes the instance ready for calls from this thread, on which it will stay. Otherwise the first call does so, and is slow;
    /// it also does so again after a failure, and reports it.
    fn prepare(&mut self) {}

    /// Ends the calls of this instance from outside, if the engine can.
    fn interrupt(&mut self) -> Option<Arc<Interrupt>> {
        None
    }

    /// Bounds later calls by so many milliseconds, instead of [`crate::HostLimits::call_ms_max`]. Engines without time limits
    /// ignore it.
    fn limit_calls(&mut self, call_ms_max: u64) {
        let _ = call_ms_max;
    }

    /// Whether [`rest`](Self::rest) may ever free memory.
    fn rests(&self) -> bool {
        false
    }

    /// Frees memory after a while without calls. May take as long as a full garbage collection.
    fn rest(&mut self) {}

    /// Whether the instance trapped. It refuses calls, and must be replaced.
    fn is_poisoned(&self) -> bool;
}
