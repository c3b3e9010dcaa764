//! What is known of a backfill that goes on behind the running module.

use std::time::Instant;

use lightcone_engine::{Datastore, DatastoreError};

use crate::backfill::{Backfill, Failure};
use crate::environment::Environment;
use crate::error::UpdateError;
use crate::migration::PlannedMigration;
use crate::module::Program;
use crate::replies::Waiter;

pub(super) type Ended = Waiter<Result<(), UpdateError>>;

/// The backfill that goes on.
pub(crate) struct RunningBackfill {
    pub work: Backfill,
    pub program: Program,
    pub planned: PlannedMigration,
    /// Who waits for its end.
    pub waiting: Vec<Ended>,
    /// A transaction could not be followed: it has noted that the backfill has ended.
    pub failure: Option<Failure>,
    pub next_batch: Instant,
}

impl RunningBackfill {
    /// Before the open transaction is committed: has the new tables follow its changes. If they cannot, the transaction is committed
    /// all the same, and the backfill is at its end.
    #[cold]
    pub fn follow(&mut self, datastore: &mut Datastore, environment: &dyn Environment) {
        if self.failure.is_some() {
            return;
        }
        let point = datastore.savepoint();
        if let Err(failure) = self.work.follow(datastore, environment) {
            datastore.undo_to(point);
            datastore.end_backfill();
            self.failure = Some(failure);
        }
    }

    /// The transaction that it has followed was taken back.
    #[cold]
    pub fn has_lost_its_place(&mut self, error: &DatastoreError) {
        let lost = || {
            Failure::other(format!(
                "a transaction that it followed was refused: {error}"
            ))
        };
        self.failure.get_or_insert_with(lost);
    }
}
