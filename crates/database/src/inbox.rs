//! The way into a database: what its writer is asked to do. How much of that may wait is [`InboxCapacity`]'s to say.
//!
//! All that the front (WebSocket, HTTP) wants of a database crosses here as an [`Input`]. What comes back crosses in the
//! reply to it, or in the [`OutgoingQueue`] of its client. Nothing else that the two share changes but for the module,
//! which is replaced as a whole.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

use lightcone_backup::Frame;
use lightcone_engine::DatastoreSnapshot;
use lightcone_log::Epoch;
use lightcone_schema::ModuleDef;
use lightcone_table::IndexBuild;
use lightcone_types::{ColId, ConnectionId, Due, Hash, Identity, TableId, Timestamp};
use tokio::sync::{mpsc, oneshot};

use crate::calls::{CallError, CallOutcome, Caller, HandlerAnswer, HandlerRequest};
use crate::error::{ConnectError, Error, SqlError, UpdateError};
use crate::evaluate::Source;
use crate::inbox_capacity::{Closed, InboxCapacity, Place};
use crate::live_shapes::LiveShapes;
use crate::messages::{Delivery, Message, MessageAnswer};
use crate::migration::PlannedMigration;
use crate::module::Program;
use crate::options::Limits;
use crate::outgoing::OutgoingQueue;
use crate::peer::{ClientId, ConnectRequest, ConnectionNumber, Peer, SetKey};
use crate::procedures::{Body, Ended, LeaseRequest};
use crate::replies::Waiter;
use crate::request::Decoded;
use crate::rights::Rights;
use crate::statements::{Write, Written};
use crate::status::SnapshotTurn;
use crate::trace::TraceContext;
use crate::variables::{EnvironmentChange, EnvironmentMetadata};
use lightcone_live::BoundQuery;

/// Inputs taken from the inbox at a time.
const INPUTS_PER_ROUND_MAX: usize = 1024;

/// What the front asks the writer to do, and what other threads of the database tell it.
pub(crate) enum Input {
    Requests {
        connection: ConnectionNumber,
        decoded: Decoded,
        place: Place,
    },
    Connect(Box<NewClient>, Waiter<Result<(), ConnectError>>),
    Disconnect {
        connection: ConnectionNumber,
    },
    Call(Box<HttpCall>, Waiter<Result<CallOutcome, CallError>>),
    /// A message of another database.
    Receive(Box<Message>, Waiter<Result<MessageAnswer, CallError>>),
    /// An attempt to have a message delivered has ended.
    Delivered(Box<Delivery>),
    HttpRequest(
        Box<HandlerRequest>,
        Waiter<Result<HandlerAnswer, CallError>>,
    ),
    Query(HttpQuery, Waiter<Result<FoundQuery, SqlError>>),
    Write(HttpWrite, Waiter<Result<Arc<Written>, SqlError>>),
    /// A frame of the leader of this epoch.
    Follow(Box<(Epoch, Frame)>, Waiter<Result<(), Error>>),
    TableRows(Waiter<Vec<TableRows>>),
    /// What it has still to do without a request.
    Due(Waiter<Due>),
    Environment(Waiter<EnvironmentMetadata>),
    /// If the program is the expected one. Whether that changes anything.
    ChangeEnvironment(
        Box<(EnvironmentChange, Option<Hash>)>,
        Waiter<Result<bool, UpdateError>>,
    ),
    LiveShapes(Waiter<LiveShapes>),
    /// A test has set the clock. When what is due has begun: the time of what is next.
    Settle(Waiter<Result<Option<Timestamp>, CallError>>),
    Publish {
        program: Box<Program>,
        planned: PlannedMigration,
        waiter: Waiter<Result<(), UpdateError>>,
        /// For a plan whose rows are migrated first, behind the running program: then the one above hears when that has begun, or does
        /// so already.
        ended: Option<Waiter<Result<(), UpdateError>>>,
    },
    /// Connections of an identity that have more rights than these end.
    LowerRights {
        identity: Identity,
        rights: Rights,
    },
    /// The committed rows of all tables, and the definition that they have.
    Freeze(Waiter<(DatastoreSnapshot, Arc<ModuleDef>)>),
    Stop(Stop),
    /// The first rows of a query set cannot be had; the client was told.
    SubscriptionFailed {
        set: SetKey,
        /// The set's own: the client may have given its id to another since.
        number: u64,
    },
    /// It is time for what the writer wanted to be woken for.
    AlarmDue,
    /// It is the database's turn to write a snapshot.
    SnapshotTurn(SnapshotTurn),
    /// Files that the next start would read are damaged, and what is in memory is not.
    WantSnapshot {
        /// Damaged snapshots.
        replaces: bool,
    },
    /// A snapshot has ended. From so many bytes of the log on those are counted that make the next one due.
    SnapshotDone {
        log_bytes: u64,
    },
    /// A round of building an index beside the writer has ended.
    IndexBuilt(Box<Built>),
    /// A call asks for the tables that is run by the thread that polls it.
    Body(Box<Body>),
    /// A call asks for the tables that blocks its own thread.
    Lease(Box<LeaseRequest>),
    /// It has ended.
    ProcedureEnded(Box<Ended>),
    /// A module has asked for calls that are to run right away.
    ImmediateCalls,
    /// Another thread of the database ended because of a bug.
    Failed,
}

/// A table of the module and how many rows it has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableRows {
    /// The canonical name.
    pub table: String,
    pub rows: u64,
}

/// Who comes over a WebSocket.
pub(crate) struct NewClient {
    pub connection: ConnectionNumber,
    pub peer: Peer,
    pub request: ConnectRequest,
    pub queue: Arc<OutgoingQueue>,
}

impl NewClient {
    pub fn id(&self) -> ClientId {
        ClientId {
            identity: self.request.identity,
            connection_id: self.request.connection_id,
        }
    }
}

/// A call of a reducer or procedure over HTTP.
pub(crate) struct HttpCall {
    pub caller: Caller,
    pub connection_id: ConnectionId,
    pub function: String,
    /// Why the call does not reach the module, otherwise: the caller comes and goes all the same.
    pub args: Result<Vec<u8>, CallError>,
    pub timestamp: Timestamp,
    /// The same time, for what is measured.
    pub received: Instant,
    pub trace: Option<TraceContext>,
}

/// An SQL statement over HTTP.
pub(crate) struct HttpQuery {
    pub caller: Caller,
    pub connection_id: ConnectionId,
    /// One, or what several reads need of one state.
    pub plans: Result<Vec<BoundQuery>, SqlError>,
    pub turn: QueryTurn,
}

/// SQL statements that are one transaction.
pub(crate) struct HttpWrite {
    pub caller: Caller,
    pub connection_id: ConnectionId,
    pub statements: Vec<Write>,
    /// Otherwise what they have done is undone at once.
    pub is_kept: bool,
}

/// How often the writer is asked about a query over HTTP, whose caller comes and goes once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum QueryTurn {
    Only,
    /// There is no permit of the database for it, and it may turn out that it needs none.
    First,
    /// It needed one.
    Second,
}

/// None: the writer did not find the rows, and may not freeze their table without a permit.
pub(crate) type FoundQuery = (Vec<BoundQuery>, Option<Vec<Source>>);

/// Clients are told code and reason, and the caller when all is done.
pub(crate) struct Stop {
    pub code: u16,
    pub reason: String,
    /// What is there is wanted again, and soon.
    pub is_opened_again: bool,
    /// Scheduled procedures that are under way may end first.
    pub lets_scheduled_end: bool,
    /// Told when the database has ended. The first request decides how it ends; later ones wait here too.
    pub done: Vec<oneshot::Sender<()>>,
}

/// What a round of building an index has come to.
pub(crate) struct Built {
    pub table: TableId,
    pub column: ColId,
    /// Tells one building from another of the same column.
    pub number: u64,
    /// None: it was given up.
    pub index: Option<IndexBuild>,
}

/// The senders' end of the inbox, with what may wait in it.
pub(crate) struct Inbox {
    items: mpsc::UnboundedSender<Input>,
    pub capacity: Arc<InboxCapacity>,
}

impl Inbox {
    pub fn new(limits: &Limits, items: mpsc::UnboundedSender<Input>) -> Inbox {
        Inbox {
            items,
            capacity: InboxCapacity::new(limits),
        }
    }

    /// # Errors
    /// The writer reads it no more.
    pub fn send(&self, input: Input) -> Result<(), Closed> {
        self.items.send(input).map_err(|_| Closed)
    }

    /// Whether the writer has ended.
    pub fn is_closed(&self) -> bool {
        self.items.is_closed()
    }
}

/// The writer's end of it.
pub(crate) struct Inputs {
    items: mpsc::UnboundedReceiver<Input>,
    /// Taken from there.
    taken: VecDeque<Input>,
}

impl Inputs {
    pub fn new(items: mpsc::UnboundedReceiver<Input>) -> Inputs {
        Inputs {
            items,
            taken: VecDeque::new(),
        }
    }

    /// Before a step: takes what is there, if a thread has not [waited](Self::wait) for it.
    pub fn take(&mut self) {
        if !self.taken.is_empty() {
            return;
        }
        while self.taken.len() < INPUTS_PER_ROUND_MAX {
            match self.items.try_recv() {
                Ok(input) => self.taken.push_back(input),
                Err(_) => break,
            }
        }
    }

    /// Waits until something is there, and takes it.
    pub fn wait(&mut self) {
        // A conversion moves nothing.
        let mut taken = Vec::from(std::mem::take(&mut self.taken));
        self.items
            .blocking_recv_many(&mut taken, INPUTS_PER_ROUND_MAX);
        self.taken = VecDeque::from(taken);
    }

    pub fn is_empty(&self) -> bool {
        self.taken.is_empty()
    }

    pub fn pop(&mut self) -> Option<Input> {
        self.taken.pop_front()
    }

    /// What is left of an input is done in the next step.
    pub fn put_back(&mut self, input: Input) {
        self.taken.push_front(input);
    }

    /// Lets nothing more in, and gives what was taken.
    pub fn close(&mut self) -> VecDeque<Input> {
        self.items.close();
        // What was sent meanwhile waits for nothing.
        while let Ok(input) = self.items.try_recv() {
            self.taken.push_back(input);
        }
        std::mem::take(&mut self.taken)
    }
}
