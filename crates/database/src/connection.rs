//! A client's connection: where its payloads go in, and where its messages come out.

use std::sync::Arc;

use bytes::Bytes;
use lightcone_wire::Protocol;
use tokio::sync::{oneshot, Semaphore};

use crate::compile::CompileJob;
use crate::decode::{Decoder, PieceEnd};
use crate::error::SubmitError;
use crate::inbox::Input;
use crate::module::Module;
use crate::outgoing::{GivenBack, OutgoingQueue, OutgoingReceiver, ReadTicket};
use crate::peer::{ConnectionNumber, Peer};
use crate::request::{Decoded, Request};
use crate::shared::Shared;

/// Longer payloads are decoded on another thread, so that they do not hold up other clients of this one.
const DECODED_HERE_BYTES_MAX: usize = 256 << 10;

/// An accepted connection. When both halves are dropped, the disconnect lifecycle runs.
pub struct Connection {
    pub sender: RequestSender,
    pub outgoing: OutgoingReceiver,
}

/// Takes the client's payloads.
pub struct RequestSender {
    shared: Arc<Shared>,
    queue: Arc<OutgoingQueue>,
    number: ConnectionNumber,
    peer: Peer,
    /// Queries that this client may have under way: until it has taken the answer.
    reads: Arc<Semaphore>,
    _user: Arc<()>,
}

/// Where a ticket comes back with which a query was tried that may have to be asked again. Closed when it was answered.
type WayBack = oneshot::Receiver<GivenBack>;

impl Connection {
    pub(crate) fn new(
        shared: Arc<Shared>,
        queue: Arc<OutgoingQueue>,
        number: ConnectionNumber,
        peer: Peer,
    ) -> Connection {
        let reads = Arc::new(Semaphore::new(
            shared.options.limits.reads_per_client_max.max(1),
        ));
        let user = shared.users.clone();
        Connection {
            outgoing: OutgoingReceiver {
                queue: queue.clone(),
                deferred: None,
            },
            sender: RequestSender {
                shared,
                queue,
                number,
                peer,
                reads,
                _user: user,
            },
        }
    }
}

impl RequestSender {
    /// The client ends the connection, and did not lose it.
    pub fn leave(&self) {
        self.queue.leave();
    }

    /// Queues one WebSocket message: one (v2) or many (v3) BSATN `ClientMessage`s, long ones piece by piece. Waits while the
    /// database is behind by [`Limits::inbox_messages_max`](crate::Limits::inbox_messages_max) or the byte bound, and while
    /// the client has as many queries under way as it may, so that a fast client is slowed down by TCP.
    ///
    /// # Errors
    /// A message does not decode (those before it are executed), or the database is gone.
    pub async fn submit(&self, mut payload: Bytes) -> Result<(), SubmitError> {
        let shared = &self.shared;
        let environment = shared.environment();
        let (timestamp, received) = (environment.now(), environment.instant());
        let tracer = shared.options.commons.tracer();
        let mut trace = tracer.and_then(|tracer| tracer.begin()).map(Box::new);
        let (mut start, mut spare_ticket, mut tried) = (0, None, None);
        loop {
            let module = shared.module();
            // What may come back must not be overtaken.
            let messages_max = match tried {
                Some(_) => 1,
                None => shared.inbox.capacity.messages_max,
            };
            let (mut requests, mut end, why) = if payload.len() - start > DECODED_HERE_BYTES_MAX {
                let (module, payload) = (module.clone(), payload.clone());
                let piece =
                    self.piece_elsewhere(module, payload, start, messages_max, spare_ticket);
                spare_ticket = None;
                piece.await?
            } else {
                let decoder = Decoder {
                    module: &module,
                    peer: &self.peer,
                    budget: self.queue.budget(),
                    messages_max,
                };
                let try_ticket = || try_ticket(&self.reads, &shared.reads);
                let ticket = || spare_ticket.take().or_else(try_ticket);
                decoder.piece(&payload, start, ticket)
            };
            // Where the last message begins, if it may come back.
            let mut again = start;
            if let PieceEnd::MayComeBack { start } = why {
                again = start;
                let way_back = requests.last_mut().and_then(Request::make_way_back);
                tried = tried.or(way_back);
            }
            let version = module.version;
            let piece = |payload, messages, requests, trace| Decoded {
                version,
                timestamp,
                received,
                trace,
                payload,
                messages,
                requests,
                taken: 0,
            };
            if !requests.is_empty() {
                let is_last =
                    matches!(why, PieceEnd::Payload | PieceEnd::Malformed(_)) && tried.is_none();
                let payload = match is_last {
                    true => std::mem::take(&mut payload),
                    false => payload.clone(),
                };
                let piece = piece(payload, start..end, requests, trace.take());
                spare_ticket = self.send(piece, tried.take()).await?;
                if spare_ticket.is_some() {
                    start = again;
                    continue;
                }
            }
            match why {
                PieceEnd::MayComeBack { .. }
                    if self.peer.protocol == Protocol::V2 || end == payload.len() =>
                {
                    return Ok(());
                }
                PieceEnd::MayComeBack { .. } => {}
                PieceEnd::Payload => return Ok(()),
                PieceEnd::Malformed(text) => return Err(SubmitError::Malformed(text)),
                PieceEnd::Full => {}
                PieceEnd::NoTicket => {
                    let (ticket, first_try) = self.ticket().await?;
                    (spare_ticket, tried) = (Some(ticket), first_try);
                }
                PieceEnd::Long {
                    end: long_end,
                    ticket,
                } => {
                    let request = self.compile(module, payload.slice(end..long_end), ticket);
                    let mut request = request.await?;
                    tried = tried.or(request.make_way_back());
                    let messages = end..long_end;
                    let piece = piece(payload.clone(), messages, vec![request], trace.take());
                    spare_ticket = self.send(piece, tried.take()).await?;
                    if spare_ticket.is_some() {
                        start = end;
                        continue;
                    }
                    end = long_end;
                    if self.peer.protocol == Protocol::V2 || end == payload.len() {
                        return Ok(());
                    }
                }
            }
            start = end;
        }
    }

    /// [`Decoder::piece`] of a long payload, on a thread where it holds up no other work.
    async fn piece_elsewhere(
        &self,
        module: Arc<Module>,
        payload: Bytes,
        start: usize,
        messages_max: usize,
        mut spare_ticket: Option<ReadTicket>,
    ) -> Result<(Vec<Request>, usize, PieceEnd), SubmitError> {
        let (peer, budget) = (self.peer, self.queue.budget().clone());
        let (reads, of_database) = (self.reads.clone(), self.shared.reads.clone());
        let turn = self.shared.options.commons.decoding.clone();
        let turn = turn.acquire_owned().await;
        let decode = move || {
            // It lasts as long as the work, also if the connection is gone.
            let _turn = turn;
            let decoder = Decoder {
                module: &module,
                peer: &peer,
                budget: &budget,
                messages_max,
            };
            let try_ticket = || try_ticket(&reads, &of_database);
            let ticket = || spare_ticket.take().or_else(try_ticket);
            decoder.piece(&payload, start, ticket)
        };
        let decoded = self.shared.elsewhere(decode).await;
        decoded.ok_or(SubmitError::Closed)
    }

    /// Waits for room in the inbox, and for what becomes of a query that may come back.
    async fn send(
        &self,
        decoded: Decoded,
        tried: Option<WayBack>,
    ) -> Result<Option<ReadTicket>, SubmitError> {
        let inbox = &self.shared.inbox;
        let place = inbox
            .capacity
            .place(decoded.requests.len(), decoded.messages.len());
        let command = Input::Requests {
            connection: self.number,
            place: place.await?,
            decoded,
        };
        inbox.send(command)?;
        self.second_try(tried).await
    }

    /// Waits until this client has one query less under way. If others have all permits of the database, the query is tried
    /// without one, as a query that needs none should not wait for those that do, and may be given back.
    async fn ticket(&self) -> Result<(ReadTicket, Option<WayBack>), SubmitError> {
        let closed = |_| SubmitError::Closed;
        let of_client = self.reads.clone().acquire_owned().await.map_err(closed)?;
        let shared = &self.shared;
        let of_database = shared.reads.clone().try_acquire_owned().ok();
        let mut ticket = ReadTicket::new(of_client, of_database);
        if ticket.of_database.is_some() {
            return Ok((ticket, None));
        }
        let permit = shared.first_tries.clone().acquire_owned();
        ticket.first_try = Some(permit.await.map_err(closed)?);
        let (way_back, given_back) = oneshot::channel();
        ticket.way_back = Some(way_back);
        Ok((ticket, Some(given_back)))
    }

    /// Waits for what became of a query that was tried without a permit of the database, or without an index that it needs. If it
    /// needs them, waits for these: the query is read again, as the module may be another by then. Every connection waits with one
    /// query at a time, so a client with many gets no more turns than the others.
    async fn second_try(&self, tried: Option<WayBack>) -> Result<Option<ReadTicket>, SubmitError> {
        let Some(tried) = tried else {
            return Ok(None);
        };
        let Ok(GivenBack { mut ticket, until }) = tried.await else {
            // It is answered, or is being answered.
            return Ok(None);
        };
        if let Some(until) = until {
            // Also if nothing came of it.
            let _ = until.await;
        }
        let permit = self.shared.reads.clone().acquire_owned().await;
        ticket.of_database = Some(permit.map_err(|_| SubmitError::Closed)?);
        Ok(Some(ticket))
    }

    async fn compile(
        &self,
        module: Arc<Module>,
        message: Bytes,
        ticket: ReadTicket,
    ) -> Result<Request, SubmitError> {
        let budget = self.queue.budget();
        let job = CompileJob::new(module, message, &self.peer, budget, ticket);
        let request = self.shared.read_for(budget, job).await;
        request.map_err(|_| SubmitError::Closed)
    }
}

/// A ticket, if both the client and the database have a permit for a query.
fn try_ticket(reads: &Arc<Semaphore>, of_database: &Arc<Semaphore>) -> Option<ReadTicket> {
    let of_client = reads.clone().try_acquire_owned().ok()?;
    let of_database = of_database.clone().try_acquire_owned().ok()?;
    Some(ReadTicket::new(of_client, Some(of_database)))
}

impl Drop for RequestSender {
    fn drop(&mut self) {
        self.queue.cut();
        // If the database is gone, there is nothing left to tell.
        let _ = self.shared.inbox.send(Input::Disconnect {
            connection: self.number,
        });
    }
}
