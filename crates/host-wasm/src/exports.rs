//! The exports that are called (spec 03 §11): names, parameters, and errors.

use lightcone_host::{
    CallHandles, HandlerResponse, HostEnv, HostError, HostTrap, LimitKind, ProcedureOutcome,
    ReducerCall,
};
use wasmtime::{Store, TypedFunc};

use crate::state::{with_refused_memory, State};
use crate::trap::{end_call, explain, GuestFailure};

pub(crate) const CALL_VIEW: &str = "__call_view__";
pub(crate) const CALL_VIEW_ANON: &str = "__call_view_anon__";
pub(crate) const CALL_PROCEDURE: &str = "__call_procedure__";
pub(crate) const CALL_HTTP_HANDLER: &str = "__call_http_handler__";

/// id, sender, connection id, timestamp, args, sink for the error text or the result.
pub(crate) type CallFunction = TypedFunc<(u32, u64, u64, u64, u64, u64, u64, i64, u32, u32), i32>;

/// id, sender, args, sink for the rows.
pub(crate) type ViewFunction = TypedFunc<(u32, u64, u64, u64, u64, u32, u32), i32>;

/// id, args, sink for the rows.
pub(crate) type AnonymousViewFunction = TypedFunc<(u32, u32, u32), i32>;

/// id, timestamp, request, its body, sink for the response, sink for its body.
pub(crate) type HandlerFunction = TypedFunc<(u32, i64, u32, u32, u32, u32), i32>;

/// The parameters of `__call_reducer__` and `__call_procedure__` (§11.2).
#[inline]
pub(crate) fn params(
    call: &ReducerCall<'_>,
    handles: CallHandles,
) -> (u32, u64, u64, u64, u64, u64, u64, i64, u32, u32) {
    let sender = call.sender.to_words();
    let connection = call.connection_id.0;
    (
        call.id,
        sender[0],
        sender[1],
        sender[2],
        sender[3],
        connection as u64,
        (connection >> 64) as u64,
        call.timestamp.0,
        handles.args,
        handles.sink,
    )
}

pub(crate) fn response(
    env: &mut HostEnv,
    head_sink: u32,
    body_sink: u32,
) -> wasmtime::Result<HandlerResponse> {
    Ok(HandlerResponse {
        head: env.take_sink(head_sink).map_err(end_call)?,
        body: env.take_sink(body_sink).map_err(end_call)?,
    })
}

#[cold]
pub(crate) fn not_exported<R>(
    kind: &str,
    call: &ReducerCall<'_>,
    export: &str,
) -> ProcedureOutcome<R> {
    ProcedureOutcome::Failed {
        message: format!(
            "Module defines {kind} {} but does not export `{export}`",
            call.name
        ),
    }
}

/// For a procedure or handler that returned a code other than 0.
#[cold]
pub(crate) fn unexpected_code<R>(name: &str, code: i32) -> ProcedureOutcome<R> {
    ProcedureOutcome::Failed {
        message: format!(
            "`{name}` returned unexpected code {code}. Procedures should return code 0 or trap."
        ),
    }
}

pub(crate) enum Failure {
    Fatal(String),
    TimedOut(String),
}

impl Failure {
    pub(crate) fn of(error: &wasmtime::Error, state: &State, stack_bytes_max: usize) -> Failure {
        match explain(error, stack_bytes_max) {
            GuestFailure::TimedOut => {
                let limit = HostTrap::Limit {
                    kind: LimitKind::CallTime,
                    limit: state.env.limits().call_ms_max,
                };
                Failure::TimedOut(limit.to_string())
            }
            GuestFailure::Limit(limit) => Failure::Fatal(limit.to_string()),
            GuestFailure::Trapped(message) => Failure::Fatal(with_refused_memory(message, state)),
        }
    }

    pub(crate) fn outcome<R>(self) -> ProcedureOutcome<R> {
        match self {
            Failure::TimedOut(message) => ProcedureOutcome::TimedOut { message },
            Failure::Fatal(message) => ProcedureOutcome::Failed { message },
        }
    }
}

#[cold]
pub(crate) fn load_error(
    store: &Store<State>,
    export: &str,
    error: wasmtime::Error,
    stack_bytes_max: usize,
) -> HostError {
    let export = export.to_owned();
    match explain(&error, stack_bytes_max) {
        GuestFailure::TimedOut => HostError::LoadLimit {
            export,
            trap: HostTrap::Limit {
                kind: LimitKind::LoadTime,
                limit: store.data().env.limits().load_ms_max,
            },
        },
        GuestFailure::Limit(trap) => HostError::LoadLimit { export, trap },
        GuestFailure::Trapped(message) => {
            let message = with_refused_memory(message, store.data());
            match store.data().memory {
                // Without a memory, a failed instantiation looks like a failed start function.
                None => HostError::Instantiate(message),
                Some(_) => HostError::LoadTrap { export, message },
            }
        }
    }
}
