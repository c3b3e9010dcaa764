//! The transactions of a procedure (spec 03 §10).
//!
//! A procedure starts without a transaction and opens one after the other. The caller gives it the datastore and what its
//! commits write to; afterwards it takes both back, with what was committed. Nobody sees any of it before: the log and
//! subscribers get the transactions in order when the procedure has ended.

use std::ops::Range;

use lightcone_engine::{CommitOutput, Datastore};
use lightcone_types::Timestamp;

use crate::{HostTrap, LimitKind};

/// What a procedure opens its transactions on.
pub struct ProcedureScope {
    /// None while a transaction is open.
    datastore: Option<Box<Datastore>>,
    output: CommitOutput,
    committed: Vec<CommittedTransaction>,
    bytes_before: usize,
}

/// One transaction that a procedure committed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommittedTransaction {
    /// Its changes in [`CommitOutput::deltas`].
    pub changes: Range<usize>,
    /// Whether it has a record: it changed something.
    pub has_record: bool,
    /// Where its record ends in [`CommitOutput::records`].
    pub record_end: usize,
}

impl ProcedureScope {
    /// A scope without an open transaction. Commits append to `output`.
    pub fn new(datastore: Box<Datastore>, output: CommitOutput) -> ProcedureScope {
        let bytes_before = bytes_of(&output);
        ProcedureScope {
            datastore: Some(datastore),
            output,
            committed: Vec::new(),
            bytes_before,
        }
    }

    /// The datastore and the output again, and what was committed, in order.
    pub fn into_parts(self) -> (Box<Datastore>, CommitOutput, Vec<CommittedTransaction>) {
        let datastore = self
            .datastore
            .expect("the transaction of a procedure ends with its call");
        (datastore, self.output, self.committed)
    }

    /// Opens a transaction.
    ///
    /// # Errors
    /// The procedure has committed `bytes_max` or more already.
    pub(crate) fn start(&mut self, bytes_max: usize) -> Result<Box<Datastore>, HostTrap> {
        if bytes_of(&self.output).saturating_sub(self.bytes_before) >= bytes_max {
            return Err(HostTrap::Limit {
                kind: LimitKind::ProcedureBytes,
                limit: bytes_max as u64,
            });
        }
        let mut datastore = self
            .datastore
            .take()
            .expect("the datastore is here while no transaction is open");
        datastore.begin();
        Ok(datastore)
    }

    /// Commits what [`ProcedureScope::start`] opened.
    pub(crate) fn commit(&mut self, mut datastore: Box<Datastore>) {
        if self.output.records.is_empty() {
            lightcone_engine::record::put_clock(&mut self.output.records, Timestamp::now().0);
        }
        let start = self.output.deltas.position();
        let has_record = datastore.commit(&mut self.output);
        let changes = start..self.output.deltas.position();
        if has_record || !changes.is_empty() {
            self.committed.push(CommittedTransaction {
                changes,
                has_record,
                record_end: self.output.records.len(),
            });
        }
        self.datastore = Some(datastore);
    }

    /// Rolls back what [`ProcedureScope::start`] opened.
    pub(crate) fn abort(&mut self, mut datastore: Box<Datastore>) {
        datastore.rollback();
        self.datastore = Some(datastore);
    }
}

fn bytes_of(output: &CommitOutput) -> usize {
    output.records.len() + output.deltas.bytes_len()
}
