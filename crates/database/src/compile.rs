//! Compiling the queries of connections: short ones where they arrive, long ones on the threads for reads.

use std::collections::{HashSet, VecDeque};
use std::error::Error;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use lightcone_query::{
    compile_aggregate, compile_subscription, expand_subscribe_all, read_subscribe_text, Query,
    SqlError, SubscribeText,
};
use lightcone_wire::{ClientMessage, ClientPayload, SubscribeSet};

use crate::budget::{Charge, ClientBudget};
use crate::catalog::CatalogView;
use crate::error::{ReadError, Refusal};
use crate::module::Module;
use crate::outgoing::ReadTicket;
use crate::peer::Peer;
use crate::reads::{Slice, Work};
use crate::request::{CompiledSet, OtherRequest, Request, RequestedSet};
use lightcone_live::BoundQuery;
use lightcone_live::LiveQuery;

/// Memory of a registered query beside what was made of its text: its places in the maps of the writer and of fan-out.
const QUERY_BYTES: usize = 1024;
/// So many times as many texts as a set may hold queries are looked at: texts that repeat are one query.
const TEXTS_FACTOR: usize = 4;
/// So many times as many sets as a connection may hold may be in a batch: each is answered.
const BATCH_FACTOR: usize = 4;

/// A query that is run once.
pub(crate) fn compile_one(module: &Module, peer: &Peer, text: &str) -> Result<BoundQuery, Refusal> {
    let query = compile_subscription(text, &module.catalog, &peer.caller())?;
    Ok(BoundQuery::new(query, peer.identity))
}

/// Refuses what has more texts than any set, before work is done for it.
pub(crate) fn check_texts(peer: &Peer, texts: usize) -> Result<(), Refusal> {
    match texts > peer.queries_per_set_max.saturating_mul(TEXTS_FACTOR) {
        true => Err(too_many_queries(peer)),
        false => Ok(()),
    }
}

/// Refuses a batch that is too long to be answered set by set: the connection ends.
pub(crate) fn check_sets(peer: &Peer, message: &ClientMessage<'_>) -> Result<(), Refusal> {
    let sets_max = peer.query_sets_max.saturating_mul(BATCH_FACTOR);
    match message {
        ClientMessage::SubscribeBatch { sets, .. } if sets.len() > sets_max => Err(Refusal(
            format!("a SubscribeBatch holds at most {sets_max} query sets [LC0704]"),
        )),
        _ => Ok(()),
    }
}

fn too_many_queries(peer: &Peer) -> Refusal {
    Refusal(format!(
        "a query set holds at most {} queries [LC0703]",
        peer.queries_per_set_max
    ))
}

/// Compiles the queries of a set one by one, without repetitions of the same text (05 §7.1).
pub(crate) struct SetCompiler {
    peer: Peer,
    queries: Vec<Arc<LiveQuery>>,
    /// The client's texts, which are hashed with a secret.
    seen: HashSet<String>,
    charge: Charge,
    budget: Arc<ClientBudget>,
}

impl SetCompiler {
    pub fn new(peer: &Peer, budget: &Arc<ClientBudget>) -> SetCompiler {
        SetCompiler {
            peer: *peer,
            queries: Vec::new(),
            seen: HashSet::new(),
            charge: Charge::default(),
            budget: budget.clone(),
        }
    }

    /// Adds a text of the message.
    pub fn add(&mut self, catalog: &CatalogView, text: &str) -> Result<(), Refusal> {
        let read = read_subscribe_text(text).map_err(|error| executing(&error, text.trim()))?;
        match read {
            SubscribeText::Query(text) => self.add_query(catalog, text, true),
            SubscribeText::AllTables => expand_subscribe_all(catalog.all(), &self.peer.caller())
                .iter()
                .try_for_each(|text| self.add_query(catalog, text, false)),
        }
    }

    /// Adds the text of a live query, which was admitted when it came: an index that it had then may be gone.
    pub fn add_again(&mut self, catalog: &CatalogView, text: &str) -> Result<(), Refusal> {
        self.add_text(catalog, text, true, |_| Ok(()))
    }

    fn add_query(
        &mut self,
        catalog: &CatalogView,
        text: &str,
        suffix: bool,
    ) -> Result<(), Refusal> {
        self.add_text(catalog, text, suffix, lightcone_query::admit_subscription)
    }

    fn add_text(
        &mut self,
        catalog: &CatalogView,
        text: &str,
        suffix: bool,
        admit: impl Fn(&Query) -> Result<(), SqlError>,
    ) -> Result<(), Refusal> {
        if self.seen.contains(text) {
            return Ok(());
        }
        if self.queries.len() == self.peer.queries_per_set_max {
            return Err(too_many_queries(&self.peer));
        }
        self.reserve(QUERY_BYTES + text.len())?;
        self.seen.insert(text.to_owned());
        let query = compile_subscription(text, catalog, &self.peer.caller()).and_then(|query| {
            admit(&query)?;
            Ok(query)
        });
        let query = query.map_err(|error| {
            let caller = self.peer.caller();
            match compile_aggregate(text, catalog, &caller) {
                Some(_) => SqlError::AggregateInSubscription {
                    text: error.to_string(),
                },
                None => error,
            }
        });
        let added = query.map_err(Refusal::from);
        let added = added.and_then(|query| self.add_fragments(&query, catalog));
        added.map_err(|refusal| match suffix {
            true => executing(&refusal, text),
            false => refusal,
        })
    }

    /// Each fragment is a live query of its own, but for those of a window.
    fn add_fragments(&mut self, query: &Query, catalog: &CatalogView) -> Result<(), Refusal> {
        let caller = self.peer.identity;
        if query.is_window() {
            return self.add_live(LiveQuery::of_window(query, &caller, &catalog.shapes)?);
        }
        for fragment in &query.fragments {
            self.add_live(LiveQuery::of_fragment(
                query,
                fragment,
                &caller,
                &catalog.shapes,
            )?)?;
        }
        Ok(())
    }

    fn add_live(&mut self, live: LiveQuery) -> Result<(), Refusal> {
        if self.queries.len() == self.peer.queries_per_set_max {
            return Err(too_many_queries(&self.peer));
        }
        self.reserve(live.memory_bytes())?;
        self.queries.push(Arc::new(live));
        Ok(())
    }

    fn reserve(&mut self, bytes: usize) -> Result<(), Refusal> {
        Ok(self.charge.grow_in(&self.budget, bytes)?)
    }

    pub fn finish(self) -> CompiledSet {
        CompiledSet {
            queries: self.queries,
            _charge: self.charge,
        }
    }
}

/// Compiles the queries of one message.
pub(crate) struct CompileJob {
    module: Arc<Module>,
    /// One message.
    message: Bytes,
    /// What the message was found to be, if it asks for sets.
    asked: Option<AskedSets>,
    /// For the places of its texts.
    held: Charge,
    /// Of the set under way.
    compiler: SetCompiler,
    ticket: Option<ReadTicket>,
}

/// A message that asks for query sets: decoded once, however many slices its texts take.
struct AskedSets {
    request_id: u32,
    is_batch: bool,
    /// The first one is under way.
    waiting: VecDeque<SetTexts>,
    done: Vec<RequestedSet>,
}

struct SetTexts {
    id: u32,
    /// Where in the message the texts are that are still to be compiled.
    texts: Result<std::vec::IntoIter<Range<usize>>, Refusal>,
}

impl AskedSets {
    fn new(
        (request_id, is_batch): (u32, bool),
        sets: Vec<SubscribeSet<'_>>,
        message: &[u8],
        peer: &Peer,
    ) -> AskedSets {
        let base = message.as_ptr() as usize;
        let place = |text: &&str| {
            let start = text.as_ptr() as usize - base;
            start..start + text.len()
        };
        let waiting = sets.iter().map(|set| {
            let texts = check_texts(peer, set.query_strings.len());
            SetTexts {
                id: set.query_set_id,
                texts: texts.map(|()| {
                    let places: Vec<_> = set.query_strings.iter().map(place).collect();
                    places.into_iter()
                }),
            }
        });
        AskedSets {
            request_id,
            is_batch,
            waiting: waiting.collect(),
            done: Vec::with_capacity(sets.len()),
        }
    }
}

impl CompileJob {
    pub fn new(
        module: Arc<Module>,
        message: Bytes,
        peer: &Peer,
        budget: &Arc<ClientBudget>,
        ticket: ReadTicket,
    ) -> CompileJob {
        CompileJob {
            module,
            message,
            asked: None,
            held: Charge::default(),
            compiler: SetCompiler::new(peer, budget),
            ticket: Some(ticket),
        }
    }

    /// The request, or None if there is more to do.
    fn compile(&mut self, slice: &Slice<'_>) -> Option<Request> {
        if self.asked.is_some() {
            return self.compile_sets(slice);
        }
        let peer = self.compiler.peer;
        let message = ClientPayload::new(peer.protocol, &self.message).next()?;
        let (request, sets) = match message.ok()? {
            ClientMessage::OneOffQuery {
                request_id,
                query_string,
            } => {
                let request = OtherRequest::OneOff {
                    request_id,
                    plan: compile_one(&self.module, &peer, query_string),
                    ticket: self.ticket.take()?,
                };
                return Some(request.into());
            }
            ClientMessage::Subscribe {
                request_id,
                query_set_id,
                query_strings,
            } => {
                let set = SubscribeSet {
                    query_set_id,
                    query_strings,
                };
                ((request_id, false), vec![set])
            }
            ClientMessage::SubscribeBatch { request_id, sets } => ((request_id, true), sets),
            _ => return None,
        };
        let texts = sets.iter().map(|set| set.query_strings.len());
        let bytes = texts.sum::<usize>() * size_of::<Range<usize>>();
        let held = self.compiler.budget.reserve(bytes);
        self.asked = Some(AskedSets::new(request, sets, &self.message, &peer));
        match held {
            Ok(held) => self.held = held,
            Err(error) => return self.refuse(&Refusal(error.to_string())),
        }
        self.compile_sets(slice)
    }

    fn compile_sets(&mut self, slice: &Slice<'_>) -> Option<Request> {
        let asked = self.asked.as_mut()?;
        while let Some(set) = asked.waiting.front_mut() {
            let mut compiled = Ok(());
            match &mut set.texts {
                Err(refusal) => compiled = Err(refusal.clone()),
                Ok(texts) => {
                    while let Some(place) = texts.next() {
                        let text = std::str::from_utf8(&self.message[place])
                            .expect("it was decoded as text");
                        compiled = self.compiler.add(&self.module.catalog, text);
                        if compiled.is_err() {
                            break;
                        }
                        if slice.is_over() && texts.len() > 0 {
                            return None;
                        }
                    }
                }
            }
            let empty = SetCompiler::new(&self.compiler.peer, &self.compiler.budget);
            let compiler = std::mem::replace(&mut self.compiler, empty);
            asked.done.push(RequestedSet {
                id: set.id,
                compiled: compiled.map(|()| compiler.finish()),
            });
            asked.waiting.pop_front();
            if slice.is_over() && !asked.waiting.is_empty() {
                return None;
            }
        }
        self.request()
    }

    /// All sets are refused for the same reason.
    fn refuse(&mut self, refusal: &Refusal) -> Option<Request> {
        let asked = self.asked.as_mut()?;
        for set in &mut asked.done {
            set.compiled = Err(refusal.clone());
        }
        let refused = asked.waiting.drain(..).map(|set| RequestedSet {
            id: set.id,
            compiled: Err(refusal.clone()),
        });
        asked.done.extend(refused);
        self.request()
    }

    /// The request, of which all sets are compiled, or cannot be.
    fn request(&mut self) -> Option<Request> {
        let asked = self.asked.take()?;
        let request = OtherRequest::Subscribe {
            request_id: asked.request_id,
            is_batch: asked.is_batch,
            sets: asked.done,
            ticket: self.ticket.take()?,
        };
        Some(request.into())
    }
}

impl Work for CompileJob {
    type Made = Request;
    type Reply = Request;
    const IS_READ: bool = false;

    fn step(
        &mut self,
        _: &Arc<ClientBudget>,
        slice: &Slice<'_>,
    ) -> Result<Option<Request>, ReadError> {
        Ok(self.compile(slice))
    }

    fn reply(&mut self, made: Result<Request, ReadError>) -> Option<Request> {
        match made {
            Ok(request) => Some(request),
            Err(ReadError::TooLong { limit }) => self.refuse(&Refusal(format!(
                "compiling the queries took longer than limits.read-time-max, which is {limit:?} [LC0708]"
            ))),
            Err(error) => self.refuse(&Refusal(error.to_string())),
        }
    }
}

/// The most of a query that its error repeats.
const SHOWN_QUERY_BYTES_MAX: usize = 4096;

fn executing(error: &dyn Error, text: &str) -> Refusal {
    let text = lightcone_types::cut(text, SHOWN_QUERY_BYTES_MAX);
    Refusal(format!("{error}, executing: `{text}`"))
}
