//! Which databases are opened without a request: it is noted, so that a server that starts opens no other.
//!
//! [`Due::Open`](lightcone_types::Due::Open) is durable before a database runs that may act by itself, so after a crash it is
//! opened. At a proper end the writer says what is left to do ([`shutdown`](crate::DatabaseHandle::shutdown)), for the server to
//! note.

use lightcone_schema::ModuleDef;
use lightcone_types::Identity;

/// Where that is noted.
pub trait DueNotes: Send + Sync {
    /// The database is to be opened after a crash. Durable on return, unless there is no such database yet. Blocks.
    ///
    /// # Errors
    /// It cannot be noted.
    fn note_open(&self, database: &Identity) -> Result<(), String>;
}

/// Whether a database with this module has something to do without a request, or may have: calls that are planned, messages
/// that wait, and connections that a crash has ended and whose disconnect reducer is to run.
pub(crate) fn acts_by_itself(def: &ModuleDef) -> bool {
    let mut tables = def.tables.iter();
    def.on_disconnect.is_some()
        || tables.any(|table| table.schedule.is_some() || table.outbox.is_some())
}
