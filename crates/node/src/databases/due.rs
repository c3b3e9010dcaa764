//! Databases that are opened because they have something to do, and closed because they are not used.

use lightcone_database::ShutdownReason;
use lightcone_types::{Due, Identity, Timestamp};

use super::{blocking, end, Activity, Databases, OpenError};

impl Databases {
    /// The closed or failed databases that are to be opened until then without a request, those whose time comes first.
    pub(crate) fn due_until(&self, until: Timestamp) -> Vec<Identity> {
        let mut due = self.control.due_until(until);
        due.retain(|identity| self.running(identity).is_none());
        due
    }

    /// Opens a database that is due until then, unless it is not any more: it is being closed, and says first what it has to do.
    pub(crate) async fn open_due(
        &self,
        identity: &Identity,
        until: Timestamp,
    ) -> Result<(), OpenError> {
        let _lock = self.lock(identity).await;
        if self.control.due(identity) > Due::At(until) {
            return Ok(());
        }
        tracing::info!(database = %identity, "opening a database that may have something to do");
        self.open(identity).await.map(drop)
    }

    /// The open databases that are not used now, with what they have done so far.
    pub(crate) fn unused(&self) -> Vec<(Identity, Activity)> {
        let open = self.running.read();
        let unused = open.databases.iter();
        let unused = unused.filter_map(|(id, running)| Some((*id, running.activity()?)));
        unused.collect()
    }

    /// Closes a database if it has done nothing since, and no request or connection has anything of it. Requests that come
    /// meanwhile wait, and open it again.
    pub(crate) async fn close_unused(&self, identity: &Identity, since: Activity) {
        let _lock = self.lock(identity).await;
        let running = {
            let mut open = self.running.write();
            let running = open.databases.get(identity);
            // Each request has a handle, and who wants one waits for this look at the list.
            let is_unused = running.is_some_and(|running| {
                running.activity() == Some(since) && running.handle.is_unused()
            });
            if !is_unused {
                return;
            }
            let running = open.databases.remove(identity);
            running.inspect(|running| open.left.add(running))
        };
        let Some(running) = running else {
            return;
        };
        if let Some(due) = end(identity, running.handle, ShutdownReason::Idle).await {
            self.note_due(vec![(*identity, due)]).await;
        }
    }

    /// Notes what databases that have ended properly have still to do. In memory, they begin anew.
    pub(super) async fn note_due(&self, due: Vec<(Identity, Due)>) {
        if self.in_memory {
            return;
        }
        let control = self.control.clone();
        if let Err(error) = blocking(move || control.note_due(&due)).await {
            // They are opened once for nothing, no more.
            tracing::warn!(error, "what closed databases have to do cannot be noted");
        }
    }
}
