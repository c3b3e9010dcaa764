//! Clients that come and go (05 §11).

use std::ops::Range;

use lightcone_engine::{DatastoreError, ST_CLIENT_ID, ST_CONNECTION_CREDENTIALS_ID};
use lightcone_host::ReducerOutcome;
use lightcone_types::{ConnectionId, Encode, Identity};
use rustc_hash::FxHashMap;
use tokio::sync::oneshot;

use super::{Client, Origin, Writer};
use crate::calls::CallError;
use crate::error::{ConnectError, SqlError};
use crate::events::{CallFailure, CallResult, Connected, Event};
use crate::inbox::NewClient;
use crate::metrics::Failure;
use crate::peer::ConnectionNumber;
use crate::rights::Rights;

impl Writer {
    /// One transaction: the client's rows, then the module's connect reducer (05 §11).
    pub(super) fn connect(
        &mut self,
        identity: Identity,
        connection_id: ConnectionId,
        jwt_payload: &str,
    ) -> Result<(), Refused> {
        if let Some(reason) = self.shared.status.read_only() {
            // Reads go on; there is just no row about this client.
            tracing::debug!(%reason, "a client connects to a read-only database");
            return Ok(());
        }
        if let Some(reducer) = self.module.def().on_connect {
            self.end_round_before(reducer as u32);
        }
        self.datastore().begin();
        // Equal rows would be one row, which the first of the two to leave would take away from the other.
        if let Some(refused) = self.connection_in_use(identity, connection_id) {
            self.datastore().rollback();
            return Err(refused);
        }
        if let Err(refused) = self.insert_client_rows(identity, connection_id, jwt_payload) {
            self.datastore().rollback();
            return Err(refused);
        }
        let Some(reducer) = self.module.def().on_connect else {
            let committed = self.commit_and_tell();
            return committed.map_err(|error| Refused::Rejected(error.to_string()));
        };
        let origin = self.origin(identity, connection_id);
        let measured = self.measure(reducer as u32);
        let outcome = self.execute(reducer as u32, &origin, &[]);
        let (outcome, ops) = self.end_call(outcome);
        let failure = Failure::of_outcome(&outcome);
        let result = match self.result(reducer as u32, outcome, origin.timestamp) {
            CallResult::Committed => {
                self.event(Event::Committed { ops });
                Ok(())
            }
            CallResult::UserError(text) => Err(Refused::Rejected(text)),
            CallResult::Failed(failure) => {
                let text = failure.text().into_owned();
                Err(match failure {
                    CallFailure::TimedOut(_) => Refused::Late(text),
                    CallFailure::Fatal | CallFailure::NotRun(_) => Refused::Rejected(text),
                })
            }
        };
        self.note_call(&measured, failure);
        result
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
        let (identity, connection_id) = (origin.identity, origin.connection_id);
        self.end_round_before(reducer);
        let started = self.begin_traced(origin);
        self.datastore().begin();
        let refused = match self.connection_in_use(identity, connection_id) {
            Some(refused) => Err(refused),
            None => self.insert_client_rows(identity, connection_id, jwt_payload),
        };
        if let Err(refused) = refused {
            self.datastore().rollback();
            self.traced = None;
            return Err(refused);
        }
        let measured = self.measure(reducer);
        let mut outcome = self.execute(reducer, origin, args);
        if matches!(outcome, ReducerOutcome::Ok) {
            if let Err(error) = self.delete_client_rows(identity, connection_id) {
                let message = error.to_string();
                outcome = ReducerOutcome::Fatal { message };
            }
        }
        let (outcome, changes) = self.end_call(outcome);
        let failure = Failure::of_outcome(&outcome);
        let result = self.result(reducer, outcome, origin.timestamp);
        self.note_call(&measured, failure);
        self.end_traced(reducer, started, &measured, &result);
        Ok((result, changes))
    }

    fn insert_client_rows(
        &mut self,
        identity: Identity,
        connection_id: ConnectionId,
        jwt_payload: &str,
    ) -> Result<(), Refused> {
        let mut credentials = connection_id.to_vec();
        jwt_payload.encode(&mut credentials);
        let client = client_row(identity, connection_id);
        let datastore = self.datastore();
        datastore
            .insert(ST_CLIENT_ID, &client, &mut Vec::new())
            .and_then(|()| {
                datastore.insert(ST_CONNECTION_CREDENTIALS_ID, &credentials, &mut Vec::new())
            })
            .map_err(|error| Refused::Rejected(format!("the client cannot be registered: {error}")))
    }

    /// Lets a client in. What is returned gets something when fan-out knows it.
    pub(super) fn connect_client(
        &mut self,
        client: NewClient,
    ) -> Result<oneshot::Receiver<()>, Refused> {
        let NewClient {
            connection,
            peer,
            connection_id,
            jwt_payload,
            token,
            confirmed,
            queue,
        } = client;
        self.connect(peer.identity, connection_id, &jwt_payload)?;
        let client = Client {
            peer,
            connection_id,
            queue: queue.clone(),
            confirmed,
            query_sets: FxHashMap::default(),
            queries: 0,
            windows: 0,
            query_steps: 0,
        };
        self.state.clients.insert(connection, client);
        let (accepted, receiver) = oneshot::channel();
        let connected = Connected {
            connection,
            queue,
            identity: peer.identity,
            connection_id,
            token,
            confirmed,
            accepted,
        };
        self.event(Event::Connected(Box::new(connected)));
        Ok(receiver)
    }

    pub(super) fn disconnect_client(&mut self, connection: ConnectionNumber) {
        let Some(client) = self.state.clients.remove(&connection) else {
            return;
        };
        for (query_set_id, set) in &client.query_sets {
            let key = (connection, *query_set_id);
            self.release_queries(client.peer.identity, key, &set.set.queries);
        }
        self.event(Event::Disconnected { connection });
        self.disconnect(client.peer.identity, client.connection_id);
    }

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
            self.state.clients[&connection].queue.cut();
            self.disconnect_client(connection);
        }
    }

    /// Removes the client's rows, in the transaction of the disconnect reducer if that succeeds (05 §11).
    pub(crate) fn disconnect(&mut self, identity: Identity, connection_id: ConnectionId) {
        if self.shared.status.read_only().is_some() {
            return;
        }
        if let Some(reducer) = self.module.def().on_disconnect {
            self.end_round_before(reducer as u32);
            self.datastore().begin();
            if !self.has_client_row(identity, connection_id) {
                return self.datastore().rollback();
            }
            let origin = self.origin(identity, connection_id);
            let measured = self.measure(reducer as u32);
            let mut outcome = self.execute(reducer as u32, &origin, &[]);
            if matches!(outcome, ReducerOutcome::Ok) {
                if let Err(error) = self.delete_client_rows(identity, connection_id) {
                    let message = error.to_string();
                    outcome = ReducerOutcome::Fatal { message };
                }
            }
            let (outcome, ops) = self.end_call(outcome);
            let failure = Failure::of_outcome(&outcome);
            let result = self.result(reducer as u32, outcome, origin.timestamp);
            self.note_call(&measured, failure);
            if matches!(result, CallResult::Committed) {
                return self.event(Event::Committed { ops });
            }
        }
        self.datastore().begin();
        let deleted = match self.delete_client_rows(identity, connection_id) {
            Ok(()) => self.commit_and_tell(),
            Err(error) => {
                self.datastore().rollback();
                Err(error)
            }
        };
        if let Err(error) = deleted {
            tracing::error!(database = %self.shared.options.identity, %error, "the rows of a client that left stay until the next start");
        }
    }

    fn origin(&self, identity: Identity, connection_id: ConnectionId) -> Origin {
        Origin {
            identity,
            connection_id,
            timestamp: self.now(),
            trace: None,
        }
    }

    /// Why a connection with this id cannot be let in, if there is one.
    fn connection_in_use(
        &mut self,
        identity: Identity,
        connection_id: ConnectionId,
    ) -> Option<Refused> {
        let table = self
            .datastore()
            .table(ST_CONNECTION_CREDENTIALS_ID)
            .expect("system tables exist");
        let mut found = false;
        let index = &table.indexes()[0];
        let point = connection_id.to_vec();
        let looked_up = index.for_point(table.rows(), table.layout(), &point, |_| found = true);
        if looked_up.is_ok() && !found {
            return None;
        }
        let text = format!(
            "connection id {} is in use by another connection [LC0327]",
            connection_id.to_hex()
        );
        Some(match self.has_client_row(identity, connection_id) {
            true => Refused::InUse(text),
            false => Refused::Rejected(text),
        })
    }

    fn has_client_row(&mut self, identity: Identity, connection_id: ConnectionId) -> bool {
        let table = self
            .datastore()
            .table(ST_CLIENT_ID)
            .expect("system tables exist");
        table
            .find_equal(&client_row(identity, connection_id))
            .is_some()
    }

    fn delete_client_rows(
        &mut self,
        identity: Identity,
        connection_id: ConnectionId,
    ) -> Result<(), DatastoreError> {
        let mut rows = 1_u32.to_vec();
        rows.extend(client_row(identity, connection_id));
        let datastore = self.datastore();
        let index = datastore
            .schema(ST_CONNECTION_CREDENTIALS_ID)
            .expect("system tables exist")
            .indexes[0]
            .id;
        datastore.delete_all_by_eq(ST_CLIENT_ID, &rows)?;
        datastore.delete_by_index_point(index, &connection_id.to_vec())?;
        Ok(())
    }
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

fn client_row(identity: Identity, connection_id: ConnectionId) -> Vec<u8> {
    let mut row = identity.to_vec();
    connection_id.encode(&mut row);
    row
}
