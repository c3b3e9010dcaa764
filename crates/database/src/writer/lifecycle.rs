//! Clients that come and go (05 §11).

use std::ops::Range;

use lightcone_engine::{Datastore, DatastoreError, ST_CLIENT_ID, ST_CONNECTION_CREDENTIALS_ID};
use lightcone_types::{ConnectionId, Encode, Identity, Reader};
use rustc_hash::FxHashMap;

use super::away::{SessionKey, LEAVE_AT_ONCE_MAX};
use super::beside::Beside;
use super::state::SetCounts;
use super::timers::Timer;
use super::{Client, Origin, Writer};
use crate::calls::CallError;
use crate::error::{ConnectError, SqlError};
use crate::events::{CallResult, Event};
use crate::inbox::NewClient;
use crate::metrics::Failure;
use crate::peer::{ClientId, ConnectionNumber, SetKey};
use crate::replies::Waiter;
use crate::rights::Rights;

impl Writer {
    /// One transaction: the client's rows, then the module's connect reducer (05 §11). Other databases have no token.
    pub(super) fn connect(
        &mut self,
        client: ClientId,
        jwt_payload: Option<&str>,
    ) -> Result<(), Refused> {
        if let Some(reason) = self.shared.status.read_only() {
            // Reads go on; there is just no row about this client.
            tracing::debug!(%reason, "a client connects to a read-only database");
            return Ok(());
        }
        if let Some(reducer) = self.module.def().on_connect {
            self.end_round_before(reducer as u32);
        }
        self.begin_with_client(client, jwt_payload)?;
        let Some(reducer) = self.module.def().on_connect else {
            let committed = self.commit_and_tell();
            return committed.map_err(|error| Refused::Rejected(error.to_string()));
        };
        let origin = self.origin(client);
        match self.run_reducer(reducer as u32, &origin, &[], None, Beside::Nothing) {
            (Ok(()), ops) => {
                self.event(Event::Committed { ops });
                Ok(())
            }
            (Err(failure), _) => {
                let text = failure.of_reducer().into_owned();
                Err(match failure.why {
                    Failure::Time => Refused::Late(text),
                    _ => Refused::Rejected(text),
                })
            }
        }
    }

    /// Whether the module cannot tell when clients come and go.
    pub(super) fn has_no_lifecycle(&self) -> bool {
        let def = self.module.def();
        def.on_connect.is_none() && def.on_disconnect.is_none()
    }

    /// A reducer as one transaction with the connect and disconnect of its caller, whose rows come and go inside of it.
    ///
    /// # Errors
    /// The caller cannot be let in.
    pub(super) fn call_inside_connection(
        &mut self,
        reducer: u32,
        origin: &Origin,
        args: &[u8],
        jwt_payload: &str,
    ) -> Result<(CallResult, Range<usize>), Refused> {
        self.end_round_before(reducer);
        let started = self.begin_traced(origin);
        if let Err(refused) = self.begin_with_client(origin.client, Some(jwt_payload)) {
            self.traced = None;
            return Err(refused);
        }
        Ok(self.run_reducer(reducer, origin, args, started, Beside::Leaves))
    }

    /// Begins a transaction with the rows of a client who comes.
    ///
    /// # Errors
    /// He cannot be let in, and there is no transaction.
    fn begin_with_client(
        &mut self,
        client: ClientId,
        jwt_payload: Option<&str>,
    ) -> Result<(), Refused> {
        self.datastore.begin();
        // Equal rows would be one row, which the first of the two to leave would take away from the other.
        let begun = match self.connection_in_use(client) {
            Some(refused) => Err(refused),
            None => self.insert_client_rows(client, jwt_payload),
        };
        begun.inspect_err(|_| self.datastore.rollback())
    }

    fn insert_client_rows(
        &mut self,
        client: ClientId,
        jwt_payload: Option<&str>,
    ) -> Result<(), Refused> {
        let credentials = jwt_payload.map(|payload| (client.connection_id, payload).to_vec());
        let client = client_row(client);
        let datastore = &mut self.datastore;
        datastore
            .insert(ST_CLIENT_ID, &client, &mut Vec::new())
            .and_then(|()| match &credentials {
                Some(row) => datastore.insert(ST_CONNECTION_CREDENTIALS_ID, row, &mut Vec::new()),
                None => Ok(()),
            })
            .map_err(|error| Refused::Rejected(format!("the client cannot be registered: {error}")))
    }

    /// Lets a client in.
    pub(super) fn connect_client(
        &mut self,
        mut client: Box<NewClient>,
        waiter: Waiter<Result<(), ConnectError>>,
    ) {
        if let Err(error) = self.let_in(&mut client) {
            return waiter.answer(Err(error));
        }
        let (id, session_id) = (client.id(), client.request.session_id);
        let known = Client {
            peer: client.peer,
            id,
            session_id,
            grace: client.request.session_grace,
            queue: client.queue.clone(),
            query_sets: FxHashMap::default(),
            counts: SetCounts::default(),
        };
        self.state.clients.insert(client.connection, known);
        if let Some(session_id) = session_id {
            let session = (id.identity, session_id);
            self.state.sessions.insert(session, client.connection);
        }
        self.event(Event::Connected { client, waiter });
    }

    /// A client that is back has the connection id that it had, and the module does not hear of it (05 §11).
    fn let_in(&mut self, client: &mut NewClient) -> Result<(), ConnectError> {
        let session = client.request.session_id;
        let session = session.map(|session| (client.request.identity, session));
        // The client has lost a connection that is live, and comes anew.
        let live = session.and_then(|session| self.state.sessions.get(&session).copied());
        if let Some(live) = live {
            self.cut_client(live);
        }
        let away = session.and_then(|session| self.take_away(session));
        match away {
            Some(away) if !client.request.session_grace.is_zero() => {
                client.request.connection_id = away.connection_id;
                let back = self.come_back(away, &client.request.jwt_payload);
                return back.map_err(|error| {
                    self.disconnect(away);
                    ConnectError::Rejected(error.to_string())
                });
            }
            Some(away) => self.disconnect(away),
            None => {}
        }
        match (live, session) {
            (Some(_), Some((_, session))) => Err(ConnectError::SessionInUse(format!("another connection of session {session:032x} was live, and was ended: connect again [LC0342]"))),
            _ => {
                let connected = self.connect(client.id(), Some(&client.request.jwt_payload));
                connected.map_err(ConnectError::from)
            }
        }
    }

    /// Ends a connection at once, before anything that it sends from now on is carried out.
    fn cut_client(&mut self, connection: ConnectionNumber) {
        if let Some(client) = self.state.clients.get(&connection) {
            client.queue.cut();
        }
        self.disconnect_client(connection);
    }

    pub(super) fn disconnect_client(&mut self, connection: ConnectionNumber) {
        let Some(client) = self.state.clients.remove(&connection) else {
            return;
        };
        for (&id, set) in &client.query_sets {
            let key = SetKey { connection, id };
            self.release_queries(client.peer.identity, key, &set.set.queries);
        }
        if let Some(session_id) = client.session_id {
            let session = (client.id.identity, session_id);
            self.state.sessions.remove(&session);
        }
        self.event(Event::Disconnected { connection });
        self.leave_or_wait(connection, &client);
    }

    // ---- Clients that may come back ---------------------------------------------------------------------------------------

    /// A client without connection leaves, or is waited for.
    pub(super) fn leave_or_wait(&mut self, connection: ConnectionNumber, client: &Client) {
        let session = client
            .session_id
            .filter(|_| !client.grace.is_zero() && !client.queue.has_left());
        let waits = session.is_some_and(|session| {
            let due = (self.now.instant + client.grace, connection);
            let session = (client.id.identity, session);
            self.state.away.wait_for(session, client.id, due)
        });
        match waits {
            true => self.set_away_timer(),
            false => self.disconnect(client.id),
        }
    }

    fn set_away_timer(&mut self) {
        let due = self.state.away.first_due();
        self.state.timers.set(Timer::Away, due);
    }

    /// The alarm has rung: those whose time is over have left.
    pub(super) fn end_away(&mut self) {
        let due = self.state.timers.due(Timer::Away);
        if due.is_none_or(|due| due > self.now.instant) {
            return;
        }
        for _ in 0..LEAVE_AT_ONCE_MAX {
            let Some(client) = self.state.away.take_due(self.now.instant) else {
                break;
            };
            self.disconnect(client);
            self.end_full_round();
        }
        self.set_away_timer();
    }

    /// Who was waited for under this session.
    pub(super) fn take_away(&mut self, session: SessionKey) -> Option<ClientId> {
        let client = self.state.away.take(session)?;
        self.set_away_timer();
        Some(client)
    }

    /// A client is back, with the claims of another token perhaps.
    pub(super) fn come_back(
        &mut self,
        client: ClientId,
        jwt_payload: &str,
    ) -> Result<(), DatastoreError> {
        if self.shared.status.is_read_only() {
            return Ok(());
        }
        let credentials = (client.connection_id, jwt_payload).to_vec();
        self.change(|datastore| {
            let table = datastore.schema(ST_CONNECTION_CREDENTIALS_ID);
            let index = table.expect("system tables exist").indexes[0].id;
            datastore.delete_by_index_point(index, &client.connection_id.to_vec())?;
            datastore.insert(ST_CONNECTION_CREDENTIALS_ID, &credentials, &mut Vec::new())
        })
    }

    // ---- Clients that leave -----------------------------------------------------------------------------------------------

    /// Ends the connections of an identity that has lost rights: what they were resolved with must not be used again.
    pub(super) fn lower_rights(&mut self, identity: Identity, rights: Rights) {
        let rights = self.shared.rights_of(&identity, rights);
        let clients = self.state.clients.iter();
        let has_more =
            |client: &Client| client.peer.identity == identity && client.peer.rights > rights;
        let ended: Vec<ConnectionNumber> = clients
            .filter(|(_, client)| has_more(client))
            .map(|(connection, _)| *connection)
            .collect();
        for connection in ended {
            if let Some(client) = self.state.clients.get(&connection) {
                client.queue.leave();
            }
            self.cut_client(connection);
        }
    }

    /// Removes the client's rows, in the transaction of the disconnect reducer if that succeeds (05 §11).
    pub(crate) fn disconnect(&mut self, client: ClientId) {
        if self.shared.status.is_read_only() {
            return;
        }
        if let Some(reducer) = self.module.def().on_disconnect {
            self.end_round_before(reducer as u32);
            self.datastore.begin();
            if !self.has_client_row(client) {
                return self.datastore.rollback();
            }
            let origin = self.origin(client);
            let (result, ops) =
                self.run_reducer(reducer as u32, &origin, &[], None, Beside::Leaves);
            if result.is_ok() {
                return self.event(Event::Committed { ops });
            }
        }
        let deleted: Result<_, DatastoreError> =
            self.change(|datastore| delete_client_rows(datastore, client));
        if let Err(error) = deleted {
            tracing::error!(database = %self.shared.options.identity, %error, "the rows of a client that left stay until the next start");
        }
    }

    /// The same of all who have rows: a crash prevented it, or a program has taken over.
    pub(super) fn disconnect_all(&mut self) {
        for client in clients_of(&self.datastore) {
            self.disconnect(client);
            self.end_full_round();
        }
    }

    fn origin(&self, client: ClientId) -> Origin {
        Origin {
            client,
            timestamp: self.now.time,
            trace: None,
        }
    }

    /// Why a connection with this id cannot be let in, if there is one.
    fn connection_in_use(&self, client: ClientId) -> Option<Refused> {
        let table = self.datastore.table(ST_CONNECTION_CREDENTIALS_ID);
        let table = table.expect("system tables exist");
        let mut found = false;
        let index = &table.indexes()[0];
        let point = client.connection_id.to_vec();
        let looked_up = index.for_point(table.rows(), table.layout(), &point, |_| found = true);
        if looked_up.is_ok() && !found {
            return None;
        }
        let text = format!(
            "connection id {} is in use by another connection [LC0327]",
            client.connection_id.to_hex()
        );
        Some(match self.has_client_row(client) {
            true => Refused::InUse(text),
            false => Refused::Rejected(text),
        })
    }

    fn has_client_row(&self, client: ClientId) -> bool {
        let table = self.datastore.table(ST_CLIENT_ID);
        let table = table.expect("system tables exist");
        let row = client_row(client);
        table.find_equal(&row).is_some()
    }
}

/// Removes the rows of a client who leaves, in the open transaction.
pub(super) fn delete_client_rows(
    datastore: &mut Datastore,
    client: ClientId,
) -> Result<(), DatastoreError> {
    let mut rows = 1_u32.to_vec();
    rows.extend(client_row(client));
    let index = datastore
        .schema(ST_CONNECTION_CREDENTIALS_ID)
        .expect("system tables exist")
        .indexes[0]
        .id;
    datastore.delete_all_by_eq(ST_CLIENT_ID, &rows)?;
    datastore.delete_by_index_point(index, &client.connection_id.to_vec())?;
    Ok(())
}

/// Why a client was not let in.
pub(super) enum Refused {
    /// The module does not want the client, or another client has its connection id.
    Rejected(String),
    /// The client itself has a connection with this id.
    InUse(String),
    /// The module used up the budget of a call before it knew.
    Late(String),
}

impl From<Refused> for CallError {
    fn from(refused: Refused) -> CallError {
        match refused {
            Refused::Rejected(text) | Refused::InUse(text) => CallError::ConnectRejected(text),
            Refused::Late(text) => CallError::Busy(text),
        }
    }
}

impl From<Refused> for SqlError {
    fn from(refused: Refused) -> SqlError {
        match refused {
            Refused::Rejected(text) | Refused::InUse(text) => SqlError::ConnectRejected(text),
            Refused::Late(text) => SqlError::Busy(text),
        }
    }
}

impl From<Refused> for ConnectError {
    fn from(refused: Refused) -> ConnectError {
        match refused {
            Refused::Rejected(text) | Refused::Late(text) => ConnectError::Rejected(text),
            Refused::InUse(text) => ConnectError::InUse(text),
        }
    }
}

fn client_row(client: ClientId) -> Vec<u8> {
    let mut row = client.identity.to_vec();
    client.connection_id.encode(&mut row);
    row
}

/// Who has a row as a client: after a start, those whose disconnect a crash prevented. Credentials without client are removed with
/// them.
fn clients_of(datastore: &Datastore) -> Vec<ClientId> {
    let mut clients = Vec::new();
    let table = datastore.table(ST_CLIENT_ID).expect("system tables exist");
    table.rows().for_each(|_, row| {
        let reader = &mut Reader::new(row);
        clients.push(ClientId {
            identity: Identity::from_le_bytes(read_id(reader)),
            connection_id: ConnectionId::from_le_bytes(read_id(reader)),
        });
    });
    debug_assert!(datastore.table(ST_CONNECTION_CREDENTIALS_ID).is_some());
    clients
}

fn read_id<const BYTES: usize>(reader: &mut Reader<'_>) -> [u8; BYTES] {
    let bytes = reader.read_slice(BYTES).ok();
    let id = bytes.and_then(|bytes| bytes.try_into().ok());
    id.unwrap_or([0; BYTES])
}
