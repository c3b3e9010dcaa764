//! Who is at the other end of a connection.

use std::sync::Arc;
use std::time::Duration;

use lightcone_types::{ConnectionId, Identity};
use lightcone_wire::Protocol;

use crate::rights::Rights;

/// Who wants to connect, and how.
pub struct ConnectRequest {
    pub identity: Identity,
    /// What he was granted. The owner has all rights in any case.
    pub rights: Rights,
    pub connection_id: ConnectionId,
    /// Names a client over all its connections, of which one is live at a time (05 §2.2).
    pub session_id: Option<u128>,
    /// How long the module does not hear that it has lost its connection, if it names a session and comes back.
    pub session_grace: Duration,
    /// JSON text of the token's payload; modules can ask for it.
    pub jwt_payload: Arc<str>,
    /// Results are held back until they are durable.
    pub confirmed: bool,
    pub protocol: Protocol,
    /// Sent back in `InitialConnection`.
    pub token: Arc<str>,
}

/// Tells the connections of a database apart, as long as it is open. (A connection id is the client's, and may come again.)
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct ConnectionNumber(pub u64);

/// A client, by what the module knows of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ClientId {
    pub identity: Identity,
    pub connection_id: ConnectionId,
}

/// A query set, by the id that its client chose.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct SetKey {
    pub connection: ConnectionNumber,
    pub id: u32,
}

/// What the owner of a connection may do, and how.
#[derive(Clone, Copy)]
pub(crate) struct Peer {
    pub identity: Identity,
    pub rights: Rights,
    pub protocol: Protocol,
    pub queries_per_set_max: usize,
    pub query_sets_max: usize,
}

impl Peer {
    /// As whom queries are compiled.
    pub fn caller(&self) -> lightcone_query::Caller {
        self.rights.caller(self.identity)
    }
}
