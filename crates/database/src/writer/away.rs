//! Clients that have lost their connection and may come back without the module hearing of it (05 §11): their rows stay, and the
//! disconnect reducer runs when their time is over.

use std::collections::{BTreeMap, HashMap};
use std::time::Instant;

use lightcone_types::Identity;

use crate::peer::{ClientId, ConnectionNumber};

/// So many clients of a database, and of one identity, are waited for at a time. For others the module hears at once that they left.
const AWAY_MAX: usize = 4096;
const AWAY_OF_IDENTITY_MAX: usize = 64;
/// So many leave at a time; others have the writer in between.
pub(super) const LEAVE_AT_ONCE_MAX: usize = 64;

/// A session, by the client's identity and the number that it chose.
pub(super) type SessionKey = (Identity, u128);

/// Those that are waited for.
#[derive(Default)]
pub(super) struct Away {
    /// Clients choose the numbers, which are hashed with a secret.
    clients: HashMap<SessionKey, (ClientId, Due)>,
    due: BTreeMap<Due, SessionKey>,
    of_identity: HashMap<Identity, usize>,
}

/// When a client is waited for no more. The number is that of its last connection.
pub(super) type Due = (Instant, ConnectionNumber);

impl Away {
    /// False: there are too many.
    pub(super) fn wait_for(&mut self, session: SessionKey, client: ClientId, due: Due) -> bool {
        let of_identity = self.of_identity.get(&session.0).copied().unwrap_or(0);
        if self.clients.len() >= AWAY_MAX || of_identity >= AWAY_OF_IDENTITY_MAX {
            return false;
        }
        self.of_identity.insert(session.0, of_identity + 1);
        self.clients.insert(session, (client, due));
        self.due.insert(due, session);
        true
    }

    pub(super) fn first_due(&self) -> Option<Instant> {
        self.due.keys().next().map(|(instant, _)| *instant)
    }

    /// It is waited for no more.
    pub(super) fn take(&mut self, session: SessionKey) -> Option<ClientId> {
        let (client, due) = self.clients.remove(&session)?;
        self.due.remove(&due);
        if let Some(count) = self.of_identity.get_mut(&session.0) {
            *count -= 1;
            if *count == 0 {
                self.of_identity.remove(&session.0);
            }
        }
        Some(client)
    }

    pub(super) fn take_due(&mut self, now: Instant) -> Option<ClientId> {
        let (due, session) = self.due.first_key_value()?;
        match due.0 <= now {
            true => self.take(*session),
            false => None,
        }
    }
}
