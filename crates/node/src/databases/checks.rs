//! The files of a database, for who reads them again.

use lightcone_database::{DatabaseCheck, SnapshotError};
use lightcone_types::Identity;

use super::Databases;

impl Databases {
    /// Begins to read what a recovery of a database would read, and says which opening of it there is now. It is not kept from being
    /// closed. None: there is no such database.
    pub(crate) async fn begin_check(
        &self,
        identity: &Identity,
    ) -> Option<(Result<DatabaseCheck, SnapshotError>, Option<u64>)> {
        // Nothing is opened, or deleted, until the files are found.
        let _lock = self.lock(identity).await;
        let record = self.control.database(identity)?;
        let (options, running) = (self.options(&record), self.running(identity));
        let opening = running.as_ref().map(|running| running.handle.number());
        let begin = move || {
            let handle = running.as_ref().map(|running| &running.handle);
            DatabaseCheck::begin(options, handle)
        };
        let begun = tokio::task::spawn_blocking(begin).await.ok()?;
        Some((begun, opening))
    }
}
