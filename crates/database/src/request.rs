//! From a WebSocket payload to requests that the writer can run: decoded and checked off the writer.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use lightcone_query::SelectPlan;
use lightcone_schema::{ProcedureDef, ReducerDef, Visibility};
use lightcone_types::{cut_name, Identity, Timestamp};
use lightcone_wire::{ClientMessage, ClientPayload, Protocol};

use crate::budget::{Charge, ClientBudget};
use crate::compile::{check_texts, compile_one, SetCompiler};
use crate::live_query::LiveQuery;
use crate::module::Module;
use crate::outgoing::ReadTicket;

/// Most messages of a payload that are handed on at once: the rest of a long one waits with its client.
const PIECE_MESSAGES_MAX: usize = 256;
/// Longer texts of queries are compiled on another thread, so that they do not hold up other clients of this one.
pub(crate) const COMPILED_HERE_BYTES_MAX: usize = 4096;

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
        set: Result<CompiledSet, String>,
        ticket: ReadTicket,
    },
    Unsubscribe {
        request_id: u32,
        query_set_id: u32,
        /// There is one if the client wants the dropped rows.
        ticket: Option<ReadTicket>,
    },
    OneOff {
        request_id: u32,
        plan: Result<Arc<SelectPlan>, String>,
        ticket: ReadTicket,
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

/// The queries of a set, with the memory they take as long as they live.
#[derive(Default)]
pub(crate) struct CompiledSet {
    pub queries: Vec<Arc<LiveQuery>>,
    pub _charge: Charge,
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
    pub fn caller(&self) -> lightcone_query::Caller {
        lightcone_query::Caller {
            identity: self.identity,
            is_owner: self.is_owner,
        }
    }
}

/// Messages of one payload, with the time it was accepted.
pub(crate) struct Decoded {
    pub version: u64,
    pub timestamp: Timestamp,
    pub payload: Bytes,
    /// Where in the payload the messages are.
    pub messages: Range<usize>,
    pub requests: Vec<Request>,
}

/// Why a piece of a payload ends where it does.
pub(crate) enum End {
    /// It was the last one.
    Payload,
    /// It is long enough.
    Full,
    /// The next message is a query, and the client has as many under way as it may.
    NoTicket,
    /// The next message, which ends here, is to be compiled on another thread.
    Long { end: usize, ticket: ReadTicket },
    /// The next message is not one. Those before it are handled (05 §3.3).
    Malformed(String),
}

/// What decoding needs beside the bytes.
pub(crate) struct Decoder<'a> {
    pub module: &'a Module,
    pub sender: &'a Sender,
    pub budget: &'a Arc<ClientBudget>,
    pub messages_max: usize,
}

impl Decoder<'_> {
    /// Decodes messages from `start` of a payload on. `ticket` gives out tickets for queries while there are some.
    pub fn piece(
        &self,
        payload: &[u8],
        start: usize,
        mut ticket: impl FnMut() -> Option<ReadTicket>,
    ) -> (Vec<Request>, usize, End) {
        let rest = &payload[start..];
        let messages_max = self.messages_max.min(PIECE_MESSAGES_MAX);
        let mut requests = Vec::with_capacity((1 + rest.len() / 48).min(messages_max));
        let mut messages = ClientPayload::new(self.sender.protocol, rest);
        let base = payload.as_ptr() as usize;
        let mut end = start;
        loop {
            let is_last = self.sender.protocol == Protocol::V2 || rest[end - start..].is_empty();
            if requests.len() == messages_max && !is_last {
                return (requests, end, End::Full);
            }
            let message = match messages.next() {
                None => return (requests, end, End::Payload),
                Some(Err(error)) => return (requests, end, End::Malformed(error.to_string())),
                Some(Ok(message)) => message,
            };
            let next = start + messages.position();
            let mut ticket_of = None;
            if let Some(bytes) = query_bytes(&message, self.sender) {
                let Some(ticket) = ticket() else {
                    return (requests, end, End::NoTicket);
                };
                if bytes > COMPILED_HERE_BYTES_MAX {
                    return (requests, end, End::Long { end: next, ticket });
                }
                ticket_of = Some(ticket);
            }
            requests.push(self.resolve(message, base, ticket_of));
            end = next;
        }
    }

    fn resolve(
        &self,
        message: ClientMessage<'_>,
        base: usize,
        ticket: Option<ReadTicket>,
    ) -> Request {
        let (module, sender) = (self.module, self.sender);
        let queries = "queries are resolved with a ticket";
        match message {
            ClientMessage::CallReducer {
                request_id,
                reducer,
                args,
            } => resolved_call(module, sender, request_id, reducer, args, base),
            ClientMessage::CallProcedure {
                request_id,
                procedure,
                args,
            } => resolved_procedure(module, sender, request_id, procedure, args, base),
            ClientMessage::Subscribe {
                request_id,
                query_set_id,
                query_strings,
            } => {
                let mut compiler = SetCompiler::new(sender, self.budget);
                let compiled = check_texts(sender, query_strings.len()).and_then(|()| {
                    let mut texts = query_strings.iter();
                    texts.try_for_each(|text| compiler.add(&module.catalog, text))
                });
                Request::Subscribe {
                    request_id,
                    query_set_id,
                    set: compiled.map(|()| compiler.finish()),
                    ticket: ticket.expect(queries),
                }
            }
            ClientMessage::Unsubscribe {
                request_id,
                query_set_id,
                ..
            } => Request::Unsubscribe {
                request_id,
                query_set_id,
                ticket,
            },
            ClientMessage::OneOffQuery {
                request_id,
                query_string,
            } => Request::OneOff {
                request_id,
                plan: compile_one(module, sender, query_string),
                ticket: ticket.expect(queries),
            },
        }
    }
}

/// Bytes of the queries of a message whose answer has rows.
fn query_bytes(message: &ClientMessage<'_>, sender: &Sender) -> Option<usize> {
    match message {
        // It is refused, and nothing is compiled.
        ClientMessage::Subscribe { query_strings, .. }
            if check_texts(sender, query_strings.len()).is_err() =>
        {
            Some(0)
        }
        ClientMessage::Subscribe { query_strings, .. } => {
            // A text has some cost, however short.
            Some(query_strings.iter().map(|text| 64 + text.len()).sum())
        }
        ClientMessage::OneOffQuery { query_string, .. } => Some(query_string.len()),
        ClientMessage::Unsubscribe {
            send_dropped_rows, ..
        } => send_dropped_rows.then_some(0),
        ClientMessage::CallReducer { .. } | ClientMessage::CallProcedure { .. } => None,
    }
}

impl Decoded {
    /// Resolves calls again: the module was replaced since. Plans stay as they are, for the schema is the same.
    pub fn resolve_again(&mut self, module: &Module, sender: &Sender) {
        let base = self.payload.as_ptr() as usize;
        let messages = &self.payload[self.messages.clone()];
        let messages = ClientPayload::new(sender.protocol, messages);
        for (request, message) in self.requests.iter_mut().zip(messages) {
            match message {
                Ok(ClientMessage::CallReducer {
                    request_id,
                    reducer,
                    args,
                }) => *request = resolved_call(module, sender, request_id, reducer, args, base),
                Ok(ClientMessage::CallProcedure {
                    request_id,
                    procedure,
                    args,
                }) => {
                    *request =
                        resolved_procedure(module, sender, request_id, procedure, args, base);
                }
                _ => {}
            }
        }
        self.version = module.version;
    }
}

#[inline]
fn resolved_call(
    module: &Module,
    sender: &Sender,
    request_id: u32,
    name: &str,
    args: &[u8],
    base: usize,
) -> Request {
    match resolve_call(module, sender.is_owner, name, args) {
        Ok(reducer) => Request::Call {
            request_id,
            reducer,
            args: place(args, base),
        },
        Err(CallRefusal { message, log }) => Request::RejectedCall {
            request_id,
            message,
            log,
            function: cut_name(name).into_owned(),
        },
    }
}

fn resolved_procedure(
    module: &Module,
    sender: &Sender,
    request_id: u32,
    name: &str,
    args: &[u8],
    base: usize,
) -> Request {
    match resolve_procedure(module, sender.is_owner, name, args) {
        Ok(procedure) => Request::Procedure {
            request_id,
            procedure,
            args: place(args, base),
        },
        Err(CallRefusal { message, log }) => Request::RejectedProcedure {
            request_id,
            message,
            log,
            function: cut_name(name).into_owned(),
        },
    }
}

/// Where in the payload, which begins at `base`, some bytes of it are. Payloads are far below 4 GiB.
#[inline]
fn place(args: &[u8], base: usize) -> Range<u32> {
    let start = (args.as_ptr() as usize - base) as u32;
    start..start + args.len() as u32
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
            log: format!("External attempt to call nonexistent reducer \"{}\" failed. Have you run `spacetime generate` recently?", cut_name(name)),
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
            log: format!("External attempt to call nonexistent procedure \"{}\" failed. Have you run `spacetime generate` recently?", cut_name(name)),
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
