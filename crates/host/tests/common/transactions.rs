//! Transactions of procedures without a database around them.

use lightcone_engine::{CommitOutput, Datastore};
use lightcone_host::{HostTrap, OpenTransaction, Transactions};
use lightcone_types::Timestamp;

/// Commits into an output that is dropped.
pub struct Committing<'d> {
    datastore: &'d mut Datastore,
    output: CommitOutput,
    /// How many transactions were committed that changed something.
    pub committed: usize,
}

impl<'d> Committing<'d> {
    pub fn on(datastore: &'d mut Datastore) -> Committing<'d> {
        Committing {
            datastore,
            output: CommitOutput::default(),
            committed: 0,
        }
    }
}

impl Transactions for Committing<'_> {
    fn begin(&mut self) -> Result<OpenTransaction<'_>, HostTrap> {
        self.datastore.begin();
        Ok(OpenTransaction::of(self.datastore))
    }

    fn commit(&mut self) -> Result<(), HostTrap> {
        let committed = self.datastore.commit(&mut self.output);
        let has_record =
            committed.map_err(|error| HostTrap::Datastore(error.to_string().into()))?;
        self.committed += usize::from(has_record);
        Ok(())
    }

    fn rollback(&mut self) {
        self.datastore.rollback();
    }

    fn now(&self) -> Timestamp {
        Timestamp::now()
    }

    fn committed_bytes(&self) -> usize {
        self.output.records.len() + self.output.deltas.bytes_len()
    }
}
