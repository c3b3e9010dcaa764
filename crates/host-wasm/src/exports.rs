//! The exports that are called (spec 03 §11): names, parameters, and errors.

use lightcone_host::{
    CallHandles, HandlerResponse, HostError, HostTrap, LimitKind, ProcedureCall, ProcedureOutcome,
    ProcedureResult, ReducerCall,
};
use wasmtime::{Instance, Store, TypedFunc};

use crate::state::{with_refused_memory, State};
use crate::trap::{end_call, explain, GuestFailure};
use crate::waits::Waits;

pub(crate) const CALL_VIEW: &str = "__call_view__";
pub(crate) const CALL_VIEW_ANON: &str = "__call_view_anon__";
const CALL_PROCEDURE: &str = "__call_procedure__";
const CALL_HTTP_HANDLER: &str = "__call_http_handler__";

/// id, sender, connection id, timestamp, args, sink for the error text or the result.
pub(crate) type CallFunction = TypedFunc<(u32, u64, u64, u64, u64, u64, u64, i64, u32, u32), i32>;

/// id, sender, args, sink for the rows.
pub(crate) type ViewFunction = TypedFunc<(u32, u64, u64, u64, u64, u32, u32), i32>;

/// id, args, sink for the rows.
pub(crate) type AnonymousViewFunction = TypedFunc<(u32, u32, u32), i32>;

/// id, sender, source of the payload of its token, timestamp, and as before.
type SentHandlerFunction = TypedFunc<(u32, u64, u64, u64, u64, u32, i64, u32, u32, u32, u32), i32>;

/// The function for HTTP handlers, by the type of its export.
enum HandlerFunction {
    /// id, timestamp, request, its body, sink for the response, sink for its body.
    Plain(TypedFunc<(u32, i64, u32, u32, u32, u32), i32>),
    /// Since 2.14 with the sender and a source of the payload of its token behind the id.
    WithSender(SentHandlerFunction),
}

impl HandlerFunction {
    fn of(store: &mut Store<State>, instance: &Instance) -> Option<HandlerFunction> {
        let plain = instance.get_typed_func(&mut *store, CALL_HTTP_HANDLER);
        let with_sender = || instance.get_typed_func(store, CALL_HTTP_HANDLER).ok();
        match plain {
            Ok(function) => Some(HandlerFunction::Plain(function)),
            Err(_) => with_sender().map(HandlerFunction::WithSender),
        }
    }
}

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

/// The functions of procedures and HTTP handlers, in modules that have some.
pub(crate) struct ProcedureExports {
    procedure: Option<CallFunction>,
    http_handler: Option<HandlerFunction>,
}

/// The code and the result of a procedure or handler; None if the module does not export its function.
type Called = Option<(i32, ProcedureResult)>;

impl ProcedureExports {
    /// Their types were checked at compilation.
    pub(crate) fn of(store: &mut Store<State>, instance: &Instance) -> ProcedureExports {
        ProcedureExports {
            procedure: instance.get_typed_func(&mut *store, CALL_PROCEDURE).ok(),
            http_handler: HandlerFunction::of(store, instance),
        }
    }

    pub(crate) async fn call(
        &self,
        store: &mut Store<State>,
        call: &ProcedureCall<'_>,
        handles: CallHandles,
        waits: Waits,
    ) -> wasmtime::Result<Called> {
        match call.body {
            None => self.call_procedure(store, &call.call, handles, waits).await,
            Some(body) => {
                let input = (body, call.sender_jwt);
                self.call_handler(store, &call.call, input, handles, waits)
                    .await
            }
        }
    }

    async fn call_procedure(
        &self,
        store: &mut Store<State>,
        call: &ReducerCall<'_>,
        handles: CallHandles,
        waits: Waits,
    ) -> wasmtime::Result<Called> {
        let Some(function) = &self.procedure else {
            return Ok(None);
        };
        let code = waits
            .call(function, &mut *store, params(call, handles))
            .await?;
        let value = store.data_mut().env.take_sink(handles.sink);
        let value = ProcedureResult::Value(value.map_err(end_call)?);
        Ok(Some((code, value)))
    }

    async fn call_handler(
        &self,
        store: &mut Store<State>,
        call: &ReducerCall<'_>,
        (body, sender_jwt): (&[u8], &str),
        handles: CallHandles,
        waits: Waits,
    ) -> wasmtime::Result<Called> {
        let Some(function) = &self.http_handler else {
            return Ok(None);
        };
        let (request, head_sink) = (handles.args, handles.sink);
        let env = &mut store.data_mut().env;
        let body = env.open_source(body).map_err(end_call)?;
        let body_sink = env.open_sink();
        let (id, timestamp) = (call.id, call.timestamp.0);
        let code = match function {
            HandlerFunction::Plain(function) => {
                let params = (id, timestamp, request, body, head_sink, body_sink);
                waits.call(function, &mut *store, params).await?
            }
            HandlerFunction::WithSender(function) => {
                let jwt = env.open_source(sender_jwt.as_bytes()).map_err(end_call)?;
                let [a, b, c, d] = call.sender.to_words();
                #[rustfmt::skip]
                let params = (id, a, b, c, d, jwt, timestamp, request, body, head_sink, body_sink);
                waits.call(function, &mut *store, params).await?
            }
        };
        let env = &mut store.data_mut().env;
        let response = HandlerResponse {
            head: env.take_sink(head_sink).map_err(end_call)?,
            body: env.take_sink(body_sink).map_err(end_call)?,
        };
        Ok(Some((code, ProcedureResult::Response(response))))
    }
}

/// Whether the instance must be replaced.
pub(crate) fn poisons(called: &Result<Called, Failure>) -> bool {
    !matches!(called, Ok(None | Some((0, _))))
}

pub(crate) fn outcome(
    called: Result<Called, Failure>,
    call: &ProcedureCall<'_>,
) -> ProcedureOutcome {
    let (kind, export) = match call.body {
        None => ("procedure", CALL_PROCEDURE),
        Some(_) => ("http handler", CALL_HTTP_HANDLER),
    };
    let message = match called {
        Ok(Some((0, result))) => return ProcedureOutcome::Returned(result),
        Err(Failure::TimedOut(message)) => return ProcedureOutcome::TimedOut { message },
        Err(Failure::Fatal(message)) => message,
        Ok(Some((code, _))) => format!(
            "`{export}` returned unexpected code {code}. Procedures should return code 0 or trap."
        ),
        Ok(None) => format!(
            "Module defines {kind} {} but does not export `{export}`",
            call.call.name
        ),
    };
    ProcedureOutcome::Failed { message }
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
