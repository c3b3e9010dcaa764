//! What a call brings to its instance and gets back from it, whichever engine runs it.

use std::sync::Arc;

use lightcone_engine::Datastore;
use lightcone_host::{HandlerResponse, HostEnv, ProcedureOutcome, ProcedureScope, ReducerOutcome};

/// Which hook is called.
#[derive(Clone, Copy)]
pub(crate) enum Target<'a> {
    Reducer,
    Procedure,
    /// With the body of the request.
    HttpHandler(&'a [u8]),
}

/// What a call may change. It moves into the environment for as long as the call runs.
pub(crate) enum Frame<'a> {
    /// The open transaction of a reducer.
    Reducer(&'a mut Option<Box<Datastore>>),
    /// Where a procedure opens its own.
    Procedure(&'a mut Option<ProcedureScope>),
    /// The same of an HTTP handler, and the body of the request.
    HttpHandler(&'a mut Option<ProcedureScope>, &'a [u8]),
}

impl<'a> Frame<'a> {
    #[inline]
    pub(crate) fn target(&self) -> Target<'a> {
        match self {
            Frame::Reducer(_) => Target::Reducer,
            Frame::Procedure(_) => Target::Procedure,
            Frame::HttpHandler(_, body) => Target::HttpHandler(body),
        }
    }

    #[inline]
    pub(crate) fn begin(&mut self, env: &mut HostEnv, function: &Arc<str>) {
        match self {
            Frame::Reducer(datastore) => env.begin_script_call(datastore.take(), function),
            Frame::Procedure(scope) | Frame::HttpHandler(scope, _) => {
                env.begin_script_call(None, function);
                env.begin_procedure(scope.take());
            }
        }
    }

    #[inline]
    pub(crate) fn end(&mut self, env: &mut HostEnv) {
        match self {
            Frame::Reducer(datastore) => **datastore = env.end_script_call(),
            Frame::Procedure(scope) | Frame::HttpHandler(scope, _) => {
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
    /// With the response of an HTTP handler.
    Answered(HandlerResponse),
    /// With a `SenderError` of this text.
    Refused(String),
    Fatal(String),
    TimedOut(String),
}

impl From<Ended> for ReducerOutcome {
    #[inline]
    fn from(ended: Ended) -> Self {
        match ended {
            Ended::Returned(_) | Ended::Answered(_) => ReducerOutcome::Ok,
            Ended::Refused(text) => ReducerOutcome::UserError(text),
            Ended::Fatal(message) => ReducerOutcome::Fatal { message },
            Ended::TimedOut(message) => ReducerOutcome::TimedOut { message },
        }
    }
}

impl Ended {
    fn into_outcome<R>(self, returned: impl FnOnce(Ended) -> Option<R>) -> ProcedureOutcome<R> {
        match self {
            // Neither has an answer for refusals: they are failures with another text (§5.2).
            Ended::Refused(message) | Ended::Fatal(message) => ProcedureOutcome::Failed { message },
            Ended::TimedOut(message) => ProcedureOutcome::TimedOut { message },
            ended => ProcedureOutcome::Returned(
                returned(ended).expect("a hook ends with what its kind returns"),
            ),
        }
    }
}

impl From<Ended> for ProcedureOutcome {
    fn from(ended: Ended) -> Self {
        ended.into_outcome(|ended| match ended {
            Ended::Returned(value) => Some(value),
            _ => None,
        })
    }
}

impl From<Ended> for ProcedureOutcome<HandlerResponse> {
    fn from(ended: Ended) -> Self {
        ended.into_outcome(|ended| match ended {
            Ended::Answered(response) => Some(response),
            _ => None,
        })
    }
}
