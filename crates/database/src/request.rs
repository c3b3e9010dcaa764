//! From a WebSocket payload to requests that the writer can run: decoded and checked off the writer.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use lightcone_query::{
    compile_subscription, expand_subscribe_all, read_subscribe_text, SelectPlan, SubscribeText,
};
use lightcone_schema::{ProcedureDef, ReducerDef, Visibility};
use lightcone_types::{Identity, Timestamp};
use lightcone_wire::{ClientMessage, ClientPayload, Protocol};

use crate::module::Module;

/// One client message, resolved against a version of the module.
pub(crate) enum Request {
    /// The arguments are at this place of the payload.
    Call {
        request_id: u32,
        reducer: u32,
        args: Range<u32>,
    },
    /// A call that does not reach the module.
    RejectedCall {
        request_id: u32,
        message: String,
        log: String,
        function: String,
    },
    Subscribe {
        request_id: u32,
        query_set_id: u32,
        plans: Result<Vec<Arc<SelectPlan>>, String>,
    },
    Unsubscribe {
        request_id: u32,
        query_set_id: u32,
        send_dropped_rows: bool,
    },
    OneOff {
        request_id: u32,
        plan: Result<Arc<SelectPlan>, String>,
    },
    /// As [`Request::Call`].
    Procedure {
        request_id: u32,
        procedure: u32,
        args: Range<u32>,
    },
    /// A call of a procedure that does not reach the module.
    RejectedProcedure {
        request_id: u32,
        message: String,
        log: String,
        function: String,
    },
}

/// Who sends.
#[derive(Clone, Copy)]
pub(crate) struct Sender {
    pub identity: Identity,
    pub is_owner: bool,
    pub protocol: Protocol,
    pub queries_per_set_max: usize,
}

impl Sender {
    fn caller(&self) -> lightcone_query::Caller {
        lightcone_query::Caller {
            identity: self.identity,
            is_owner: self.is_owner,
        }
    }
}

/// The messages of one payload, with the time it was accepted.
pub(crate) struct Decoded {
    pub version: u64,
    pub timestamp: Timestamp,
    pub payload: Bytes,
    pub requests: Vec<Request>,
    /// What is wrong with the message behind the last request.
    pub malformed: Option<String>,
}

/// Decodes a payload. Messages before a malformed one are kept: they are handled (05 §3.3).
pub(crate) fn decode(
    module: &Module,
    sender: &Sender,
    payload: Bytes,
    timestamp: Timestamp,
) -> Decoded {
    let mut requests = Vec::with_capacity(1 + payload.len() / 48);
    let mut malformed = None;
    let base = payload.as_ptr() as usize;
    for message in ClientPayload::new(sender.protocol, &payload) {
        match message {
            Ok(message) => requests.push(resolve(module, sender, message, base)),
            Err(error) => {
                malformed = Some(error.to_string());
                break;
            }
        }
    }
    Decoded {
        version: module.version,
        timestamp,
        payload,
        requests,
        malformed,
    }
}

fn resolve(module: &Module, sender: &Sender, message: ClientMessage<'_>, base: usize) -> Request {
    match message {
        ClientMessage::CallReducer {
            request_id,
            reducer,
            args,
        } => match resolve_call(module, sender.is_owner, reducer, args) {
            Ok(id) => {
                let start = (args.as_ptr() as usize - base) as u32;
                Request::Call {
                    request_id,
                    reducer: id,
                    args: start..start + args.len() as u32,
                }
            }
            Err(CallRefusal { message, log }) => Request::RejectedCall {
                request_id,
                message,
                log,
                function: reducer.to_owned(),
            },
        },
        ClientMessage::CallProcedure {
            request_id,
            procedure,
            args,
        } => match resolve_procedure(module, sender.is_owner, procedure, args) {
            Ok(id) => {
                let start = (args.as_ptr() as usize - base) as u32;
                Request::Procedure {
                    request_id,
                    procedure: id,
                    args: start..start + args.len() as u32,
                }
            }
            Err(CallRefusal { message, log }) => Request::RejectedProcedure {
                request_id,
                message,
                log,
                function: procedure.to_owned(),
            },
        },
        ClientMessage::Subscribe {
            request_id,
            query_set_id,
            query_strings,
        } => {
            let plans = compile_set(module, sender, &query_strings);
            Request::Subscribe {
                request_id,
                query_set_id,
                plans,
            }
        }
        ClientMessage::Unsubscribe {
            request_id,
            query_set_id,
            send_dropped_rows,
        } => Request::Unsubscribe {
            request_id,
            query_set_id,
            send_dropped_rows,
        },
        ClientMessage::OneOffQuery {
            request_id,
            query_string,
        } => {
            let plan = compile_subscription(query_string, &module.catalog, &sender.caller());
            Request::OneOff {
                request_id,
                plan: plan.map(Arc::new).map_err(|error| error.to_string()),
            }
        }
    }
}

/// Why a call does not reach the module: for the caller, and for the module's log.
pub(crate) struct CallRefusal {
    pub message: String,
    pub log: String,
}

/// Steps 1 and 2 of 05 §6.3: the reducer's id, if the caller may call it with these arguments.
#[inline]
pub(crate) fn resolve_call(
    module: &Module,
    is_owner: bool,
    name: &str,
    args: &[u8],
) -> Result<u32, CallRefusal> {
    let (id, reducer) = find_reducer(module, is_owner, name)?;
    match reducer.validate_args(args) {
        Ok(_) => Ok(id as u32),
        Err(error) => Err(CallRefusal {
            message: format!("invalid arguments for reducer {name}: {error}"),
            log: format!(
                "External attempt to call reducer \"{name}\" failed, invalid arguments.\n{error}"
            ),
        }),
    }
}

/// The reducer of this name, if the caller may call it.
#[inline]
pub(crate) fn find_reducer<'m>(
    module: &'m Module,
    is_owner: bool,
    name: &str,
) -> Result<(usize, &'m ReducerDef), CallRefusal> {
    match module.def().reducer(name) {
        Some((_, reducer)) if reducer.lifecycle.is_some() => {
            let lifecycle = reducer.lifecycle.expect("just checked");
            let message = format!("can't directly call special {lifecycle:?} lifecycle reducer");
            Err(CallRefusal { log: message.clone(), message })
        }
        Some((id, reducer)) if is_owner || reducer.visibility != Visibility::Private => Ok((id, reducer)),
        _ => Err(CallRefusal {
            message: "no such reducer".to_owned(),
            log: format!("External attempt to call nonexistent reducer \"{name}\" failed. Have you run `spacetime generate` recently?"),
        }),
    }
}

/// As [`resolve_call`], for procedures (05 §6.4).
fn resolve_procedure(
    module: &Module,
    is_owner: bool,
    name: &str,
    args: &[u8],
) -> Result<u32, CallRefusal> {
    let Some((id, procedure)) = find_procedure(module, is_owner, name) else {
        return Err(CallRefusal {
            message: "No such procedure".to_owned(),
            log: format!("External attempt to call nonexistent procedure \"{name}\" failed. Have you run `spacetime generate` recently?"),
        });
    };
    match procedure.validate_args(args) {
        Ok(_) => Ok(id as u32),
        Err(error) => Err(CallRefusal {
            message: format!("invalid arguments for procedure {name}: {error}"),
            log: format!(
                "External attempt to call procedure \"{name}\" failed, invalid arguments.\n{error}"
            ),
        }),
    }
}

/// The procedure of this name, if the caller may call it.
pub(crate) fn find_procedure<'m>(
    module: &'m Module,
    is_owner: bool,
    name: &str,
) -> Option<(usize, &'m ProcedureDef)> {
    let (id, procedure) = module.def().procedure(name)?;
    (is_owner || procedure.visibility != Visibility::Private).then_some((id, procedure))
}

/// Compiles the queries of a set, without repetitions of the same text (05 §7.1).
fn compile_set(
    module: &Module,
    sender: &Sender,
    texts: &[&str],
) -> Result<Vec<Arc<SelectPlan>>, String> {
    let caller = sender.caller();
    let mut plans: Vec<Arc<SelectPlan>> = Vec::with_capacity(texts.len());
    let mut seen = rustc_hash::FxHashSet::default();
    let mut add = |text: &str, suffix: bool| -> Result<(), String> {
        if !seen.insert(text.to_owned()) {
            return Ok(());
        }
        if plans.len() == sender.queries_per_set_max {
            return Err(format!(
                "a query set holds at most {} queries [LC0703]",
                sender.queries_per_set_max
            ));
        }
        let plan = compile_subscription(text, &module.catalog, &caller).and_then(|plan| {
            lightcone_query::admit_subscription(&plan)?;
            Ok(plan)
        });
        match plan {
            Ok(plan) => plans.push(Arc::new(plan)),
            Err(error) if suffix => return Err(format!("{error}, executing: `{text}`")),
            Err(error) => return Err(error.to_string()),
        }
        Ok(())
    };
    for text in texts {
        match read_subscribe_text(text)
            .map_err(|error| format!("{error}, executing: `{}`", text.trim()))?
        {
            SubscribeText::Query(text) => add(text, true)?,
            SubscribeText::AllTables => {
                for text in expand_subscribe_all(&module.catalog.schemas, &caller) {
                    add(&text, false)?;
                }
            }
        }
    }
    Ok(plans)
}
