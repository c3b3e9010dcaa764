//! From a WebSocket payload to requests that the writer can run: decoded and checked off the writer.

use std::ops::Range;
use std::sync::Arc;

use lightcone_types::cut_name;
use lightcone_wire::{ClientMessage, ClientPayload, Protocol, SubscribeSet};

use crate::budget::ClientBudget;
use crate::compile::{check_sets, check_texts, compile_one, SetCompiler};
use crate::error::Refusal;
use crate::metrics::FunctionKind;
use crate::module::Module;
use crate::outgoing::ReadTicket;
use crate::peer::Peer;
use crate::request::{CompiledSet, Decoded, OtherRequest, Request, RequestedSet};
use crate::resolve::resolve;

/// Most messages of a payload that are handed on at once: the rest of a long one waits with its client.
const PIECE_MESSAGES_MAX: usize = 256;
/// Longer texts of queries are compiled on another thread, so that they do not hold up other clients of this one.
pub(crate) const COMPILED_HERE_BYTES_MAX: usize = 4096;

/// Why a piece of a payload ends where it does.
pub(crate) enum PieceEnd {
    /// It was the last one.
    Payload,
    /// It is long enough.
    Full,
    /// The last message, which begins here, may have to be asked again: it must not be overtaken.
    MayComeBack { start: usize },
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
    pub peer: &'a Peer,
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
    ) -> (Vec<Request>, usize, PieceEnd) {
        let rest = &payload[start..];
        let messages_max = self.messages_max.min(PIECE_MESSAGES_MAX);
        let mut requests = Vec::with_capacity((1 + rest.len() / 48).min(messages_max));
        let mut messages = ClientPayload::new(self.peer.protocol, rest);
        let base = payload.as_ptr() as usize;
        let mut end = start;
        loop {
            let is_last = self.peer.protocol == Protocol::V2 || rest[end - start..].is_empty();
            if requests.len() == messages_max && !is_last {
                return (requests, end, PieceEnd::Full);
            }
            let message = match messages.next() {
                None => return (requests, end, PieceEnd::Payload),
                Some(Err(error)) => return (requests, end, PieceEnd::Malformed(error.to_string())),
                Some(Ok(message)) => message,
            };
            if let Err(Refusal(text)) = check_sets(self.peer, &message) {
                return (requests, end, PieceEnd::Malformed(text));
            }
            let next = start + messages.position();
            let mut ticket_of = None;
            if let Some(bytes) = query_bytes(&message, self.peer) {
                let Some(ticket) = ticket() else {
                    return (requests, end, PieceEnd::NoTicket);
                };
                if bytes > COMPILED_HERE_BYTES_MAX {
                    return (requests, end, PieceEnd::Long { end: next, ticket });
                }
                ticket_of = Some(ticket);
            }
            let request = self.resolve(message, base, ticket_of, false);
            let may_come_back = request.may_come_back();
            requests.push(request);
            let start = std::mem::replace(&mut end, next);
            if may_come_back {
                return (requests, end, PieceEnd::MayComeBack { start });
            }
        }
    }

    /// With long queries only if the module was updated since they were compiled.
    fn resolve(
        &self,
        message: ClientMessage<'_>,
        base: usize,
        ticket: Option<ReadTicket>,
        is_long: bool,
    ) -> Request {
        let (module, peer) = (self.module, self.peer);
        let queries = "queries are resolved with a ticket";
        match message {
            ClientMessage::CallReducer {
                request_id,
                reducer,
                args,
            } => resolved_call(
                module,
                peer,
                FunctionKind::Reducer,
                request_id,
                (reducer, args),
                base,
            ),
            ClientMessage::CallProcedure {
                request_id,
                procedure,
                args,
            } => resolved_call(
                module,
                peer,
                FunctionKind::Procedure,
                request_id,
                (procedure, args),
                base,
            ),
            ClientMessage::Subscribe {
                request_id,
                query_set_id,
                query_strings,
            } => {
                let set = SubscribeSet {
                    query_set_id,
                    query_strings,
                };
                OtherRequest::Subscribe {
                    request_id,
                    is_batch: false,
                    sets: vec![self.requested_set(set, is_long)],
                    ticket: ticket.expect(queries),
                }
                .into()
            }
            ClientMessage::SubscribeBatch { request_id, sets } => {
                let sets = sets.into_iter();
                OtherRequest::Subscribe {
                    request_id,
                    is_batch: true,
                    sets: sets.map(|set| self.requested_set(set, is_long)).collect(),
                    ticket: ticket.expect(queries),
                }
                .into()
            }
            ClientMessage::Unsubscribe {
                request_id,
                query_set_id,
                ..
            } => OtherRequest::Unsubscribe {
                request_id,
                query_set_id,
                ticket,
            }
            .into(),
            ClientMessage::OneOffQuery {
                request_id,
                query_string,
            } => OtherRequest::OneOff {
                request_id,
                plan: match is_long {
                    true => Err(module_updated()),
                    false => compile_one(module, peer, query_string),
                },
                ticket: ticket.expect(queries),
            }
            .into(),
        }
    }

    fn requested_set(&self, set: SubscribeSet<'_>, is_long: bool) -> RequestedSet {
        RequestedSet {
            id: set.query_set_id,
            compiled: match is_long {
                true => Err(module_updated()),
                false => compile_set(self.module, self.peer, self.budget, &set.query_strings),
            },
        }
    }
}

/// Bytes of the queries of a message whose answer has rows.
fn query_bytes(message: &ClientMessage<'_>, peer: &Peer) -> Option<usize> {
    match message {
        ClientMessage::Subscribe { query_strings, .. } => Some(set_bytes(query_strings, peer)),
        ClientMessage::SubscribeBatch { sets, .. } => {
            let bytes = sets.iter();
            let bytes = bytes.map(|set| QUERY_COST_BYTES + set_bytes(&set.query_strings, peer));
            Some(bytes.sum())
        }
        ClientMessage::OneOffQuery { query_string, .. } => Some(query_string.len()),
        ClientMessage::Unsubscribe {
            send_dropped_rows, ..
        } => send_dropped_rows.then_some(0),
        ClientMessage::CallReducer { .. } | ClientMessage::CallProcedure { .. } => None,
    }
}

/// A text, or a set, has some cost, however short.
const QUERY_COST_BYTES: usize = 64;

fn set_bytes(texts: &[&str], peer: &Peer) -> usize {
    match check_texts(peer, texts.len()) {
        Ok(()) => texts.iter().map(|text| QUERY_COST_BYTES + text.len()).sum(),
        // It is refused, and nothing is compiled.
        Err(_) => 0,
    }
}

impl Decoded {
    /// Resolves calls and compiles queries again: the module was replaced since. Its tables may have other columns, or be private.
    /// Queries that are too long to be compiled here are refused.
    pub fn resolve_again(&mut self, module: &Module, peer: &Peer, budget: &Arc<ClientBudget>) {
        let decoder = Decoder {
            module,
            peer,
            budget,
            messages_max: 0,
        };
        let base = self.payload.as_ptr() as usize;
        let messages = &self.payload[self.messages.clone()];
        let messages = ClientPayload::new(peer.protocol, messages);
        for (request, message) in self.requests.iter_mut().zip(messages).skip(self.taken) {
            // It was decoded before.
            let Ok(message) = message else { break };
            let is_long =
                query_bytes(&message, peer).is_some_and(|bytes| bytes > COMPILED_HERE_BYTES_MAX);
            // Gives the memory of the old queries back first.
            let ticket = std::mem::replace(request, Request::TAKEN).into_ticket();
            *request = decoder.resolve(message, base, ticket, is_long);
        }
        self.version = module.version;
    }
}

/// What is said of a query that was compiled for a module that is another by now.
fn module_updated() -> Refusal {
    Refusal(
        "the module was updated while the query was under way: send it again [LC0232]".to_owned(),
    )
}

fn compile_set(
    module: &Module,
    peer: &Peer,
    budget: &Arc<ClientBudget>,
    texts: &[&str],
) -> Result<CompiledSet, Refusal> {
    check_texts(peer, texts.len())?;
    let mut compiler = SetCompiler::new(peer, budget);
    let mut texts = texts.iter();
    texts.try_for_each(|text| compiler.add(&module.catalog, text))?;
    Ok(compiler.finish())
}

#[inline]
fn resolved_call(
    module: &Module,
    peer: &Peer,
    kind: FunctionKind,
    request_id: u32,
    (name, args): (&str, &[u8]),
    base: usize,
) -> Request {
    match resolve(module, peer.rights, kind, name, args) {
        Ok(function) => Request::Call {
            request_id,
            function,
            args: place(args, base),
        },
        Err(refusal) => OtherRequest::RejectedCall {
            request_id,
            kind,
            refusal,
            function: cut_name(name).into_owned(),
        }
        .into(),
    }
}

/// Where in the payload, which begins at `base`, some bytes of it are. Payloads are far below 4 GiB.
#[inline]
fn place(args: &[u8], base: usize) -> Range<u32> {
    let start = (args.as_ptr() as usize - base) as u32;
    start..start + args.len() as u32
}
