//! A state of the past that statements are on ([`crate::sql`] builds it).

use std::sync::Arc;

use lightcone_accounts::Reservation;
use lightcone_engine::Datastore;
use lightcone_types::AsOf;
use tokio::sync::Mutex;

use crate::catalog::CatalogView;
use crate::environment::Alarm;

/// The one state that a server has. Who wants another one, or rows of this one, waits for his turn.
pub(crate) type PastSlot = Arc<Mutex<Option<Past>>>;

/// The tables of a database as they were.
pub(crate) struct Past {
    pub database: u64,
    pub as_of: AsOf,
    pub datastore: Datastore,
    pub catalog: CatalogView,
    pub _memory: Reservation,
    /// When it is forgotten.
    pub _end: Option<Alarm>,
}
