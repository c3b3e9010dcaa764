//! What a call brings to its instance and gets back from it, whichever engine runs it.

use std::sync::Arc;

use lightcone_engine::Datastore;
use lightcone_host::{HostEnv, ProcedureOutcome, ProcedureScope, ReducerOutcome};

/// What a call may change. It moves into the environment for as long as the call runs.
pub(crate) enum Frame<'a> {
    /// The open transaction of a reducer.
    Reducer(&'a mut Option<Box<Datastore>>),
    /// Where a procedure opens its own.
    Procedure(&'a mut Option<ProcedureScope>),
}

impl Frame<'_> {
    #[inline]
    pub(crate) fn is_procedure(&self) -> bool {
        matches!(self, Frame::Procedure(_))
    }

    #[inline]
    pub(crate) fn begin(&mut self, env: &mut HostEnv, function: &Arc<str>) {
        match self {
            Frame::Reducer(datastore) => env.begin_script_call(datastore.take(), function),
            Frame::Procedure(scope) => {
                env.begin_script_call(None, function);
                env.begin_procedure(scope.take());
            }
        }
    }

    #[inline]
    pub(crate) fn end(&mut self, env: &mut HostEnv) {
        match self {
            Frame::Reducer(datastore) => **datastore = env.end_script_call(),
            Frame::Procedure(scope) => {
                **scope = env.end_procedure();
                env.end_script_call();
            }
        }
    }
}

/// How a call ended.
pub(crate) enum Ended {
    /// With this result, which is empty for reducers.
    Returned(Vec<u8>),
    /// With a `SenderError` of this text.
    Refused(String),
    Fatal(String),
    TimedOut(String),
}

impl From<Ended> for ReducerOutcome {
    #[inline]
    fn from(ended: Ended) -> Self {
        match ended {
            Ended::Returned(_) => ReducerOutcome::Ok,
            Ended::Refused(text) => ReducerOutcome::UserError(text),
            Ended::Fatal(message) => ReducerOutcome::Fatal { message },
            Ended::TimedOut(message) => ReducerOutcome::TimedOut { message },
        }
    }
}

impl From<Ended> for ProcedureOutcome {
    fn from(ended: Ended) -> Self {
        match ended {
            Ended::Returned(value) => ProcedureOutcome::Returned(value),
            // A procedure has no answer for refusals: they are failures with another text (§5.2).
            Ended::Refused(message) | Ended::Fatal(message) => ProcedureOutcome::Failed { message },
            Ended::TimedOut(message) => ProcedureOutcome::TimedOut { message },
        }
    }
}
