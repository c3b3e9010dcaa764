//! Compiling the queries of connections: short ones where they arrive, long ones on the threads for reads.

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use lightcone_query::{
    compile_subscription, expand_subscribe_all, read_subscribe_text, SelectPlan, SubscribeText,
};
use lightcone_wire::{ClientMessage, ClientPayload};
use rustc_hash::FxHashSet;
use tokio::sync::oneshot;

use crate::budget::{Charge, ClientBudget};
use crate::catalog::CatalogView;
use crate::module::Module;
use crate::outgoing::ReadTicket;
use crate::reads::{Job, Progress};
use crate::request::{CompiledSet, Request, Sender};

/// Memory of a registered query: its plan, its places in the maps of fan-out, and its text and what was made of it.
const QUERY_BYTES: usize = 1024;
const TEXT_FACTOR: usize = 8;

/// A query that is run once.
pub(crate) fn compile_one(
    module: &Module,
    sender: &Sender,
    text: &str,
) -> Result<Arc<SelectPlan>, String> {
    compile_subscription(text, &module.catalog, &sender.caller())
        .map(Arc::new)
        .map_err(|error| error.to_string())
}

/// Compiles the queries of a set one by one, without repetitions of the same text (05 §7.1).
pub(crate) struct SetCompiler {
    sender: Sender,
    plans: Vec<Arc<SelectPlan>>,
    seen: FxHashSet<String>,
    charge: Charge,
    budget: Arc<ClientBudget>,
}

impl SetCompiler {
    pub fn new(sender: &Sender, budget: &Arc<ClientBudget>) -> SetCompiler {
        SetCompiler {
            sender: *sender,
            plans: Vec::new(),
            seen: FxHashSet::default(),
            charge: Charge::default(),
            budget: budget.clone(),
        }
    }

    /// Adds a text of the message.
    pub fn add(&mut self, catalog: &CatalogView, text: &str) -> Result<(), String> {
        let read = read_subscribe_text(text)
            .map_err(|error| executing(&error.to_string(), text.trim()))?;
        match read {
            SubscribeText::Query(text) => self.add_query(catalog, text, true),
            SubscribeText::AllTables => {
                expand_subscribe_all(&catalog.schemas, &self.sender.caller())
                    .iter()
                    .try_for_each(|text| self.add_query(catalog, text, false))
            }
        }
    }

    fn add_query(&mut self, catalog: &CatalogView, text: &str, suffix: bool) -> Result<(), String> {
        if self.seen.contains(text) {
            return Ok(());
        }
        if self.plans.len() == self.sender.queries_per_set_max {
            return Err(format!(
                "a query set holds at most {} queries [LC0703]",
                self.sender.queries_per_set_max
            ));
        }
        self.charge
            .grow_in(&self.budget, QUERY_BYTES + TEXT_FACTOR * text.len())
            .map_err(|exceeded| exceeded.to_string())?;
        self.seen.insert(text.to_owned());
        let plan = compile_subscription(text, catalog, &self.sender.caller()).and_then(|plan| {
            lightcone_query::admit_subscription(&plan)?;
            Ok(plan)
        });
        match plan {
            Ok(plan) => self.plans.push(Arc::new(plan)),
            Err(error) if suffix => return Err(executing(&error.to_string(), text)),
            Err(error) => return Err(error.to_string()),
        }
        Ok(())
    }

    pub fn finish(self) -> CompiledSet {
        CompiledSet {
            plans: self.plans,
            _charge: self.charge,
        }
    }
}

/// Compiles the queries of one message.
pub(crate) struct CompileJob {
    module: Arc<Module>,
    /// One message.
    message: Bytes,
    compiler: SetCompiler,
    /// Texts that are done.
    done: usize,
    ticket: Option<ReadTicket>,
    /// None when the request was sent.
    reply: Option<oneshot::Sender<Request>>,
}

impl CompileJob {
    pub fn new(
        module: Arc<Module>,
        message: Bytes,
        sender: &Sender,
        budget: &Arc<ClientBudget>,
        ticket: ReadTicket,
    ) -> (CompileJob, oneshot::Receiver<Request>) {
        let (reply, request) = oneshot::channel();
        let job = CompileJob {
            module,
            message,
            compiler: SetCompiler::new(sender, budget),
            done: 0,
            ticket: Some(ticket),
            reply: Some(reply),
        };
        (job, request)
    }

    /// The request, or None if there is more to do.
    fn step(&mut self, until: Instant) -> Option<Request> {
        let sender = self.compiler.sender;
        let message = ClientPayload::new(sender.protocol, &self.message).next()?;
        match message.ok()? {
            ClientMessage::OneOffQuery {
                request_id,
                query_string,
            } => Some(Request::OneOff {
                request_id,
                plan: compile_one(&self.module, &sender, query_string),
                ticket: self.ticket.take()?,
            }),
            ClientMessage::Subscribe {
                request_id,
                query_set_id,
                query_strings,
            } => {
                let mut compiled = Ok(());
                for text in &query_strings[self.done..] {
                    compiled = self.compiler.add(&self.module.catalog, text);
                    self.done += 1;
                    if compiled.is_err() {
                        break;
                    }
                    if Instant::now() >= until && self.done < query_strings.len() {
                        return None;
                    }
                }
                let empty = SetCompiler::new(&sender, &self.compiler.budget);
                let compiler = std::mem::replace(&mut self.compiler, empty);
                Some(Request::Subscribe {
                    request_id,
                    query_set_id,
                    set: compiled.map(|()| compiler.finish()),
                    ticket: self.ticket.take()?,
                })
            }
            _ => None,
        }
    }
}

impl Job for CompileJob {
    fn run(&mut self, until: Instant) -> Progress {
        let Some(reply) = self.reply.take().filter(|reply| !reply.is_closed()) else {
            return Progress::Done;
        };
        match self.step(until) {
            Some(request) => {
                // The connection may be gone by now.
                let _ = reply.send(request);
                Progress::Done
            }
            // Sent with a ticket: it is there until then.
            None if self.ticket.is_some() => {
                self.reply = Some(reply);
                Progress::Again
            }
            None => Progress::Done,
        }
    }
}

/// The most of a query that its error repeats.
const SHOWN_QUERY_BYTES_MAX: usize = 4096;

fn executing(error: &str, text: &str) -> String {
    let text = lightcone_types::cut(text, SHOWN_QUERY_BYTES_MAX);
    format!("{error}, executing: `{text}`")
}
