//! What a failed log leaves: a database that is read-only, in its last durable state.

use lightcone_engine::{CommitOutput, Datastore};
use lightcone_log::{LogOffset, LogWriter};
use tokio::sync::oneshot::{self, error::TryRecvError};

use super::state::{Phase, Recovered};
use super::Writer;
use crate::environment::Next;
use crate::error::Error;
use crate::options::DatabaseOptions;

impl Writer {
    /// The log has failed, and what is not durable has to be taken back.
    pub(super) fn has_failed_log(&self) -> bool {
        let state = &self.state;
        !state.is_reverted && !state.failed && self.shared.status.has_failed_log()
    }

    /// Takes it back when nothing else has the files, so that reads go on and see what a restart would.
    #[cold]
    pub(super) fn recover(&mut self) -> Next {
        // It removes files, and recovery reads them.
        self.shared.snapshots.cancel();
        if !self.has_log_ended() {
            return Next::Waits;
        }
        self.state.is_reverted = true;
        // What is in an open round waits for a log that takes nothing any more.
        self.end_round();
        let durable_offset = self.way_out.log.committed_offset();
        if self.next_offset == durable_offset {
            self.leave_backfill();
            return Next::More;
        }
        // Both states at once may be more than the memory takes.
        self.datastore = Datastore::new();
        let (done, recovered) = oneshot::channel();
        let (shared, log) = (self.shared.clone(), self.way_out.log.clone());
        let read = move || drop(done.send(read(&shared.options, &log, durable_offset)));
        self.shared.environment().spawn_blocking(Box::new(read));
        self.phase = Phase::Recovers(recovered);
        Next::More
    }

    /// The durable state was read, or is being read.
    pub(super) fn go_on_recovering(&mut self, mut recovered: Recovered) -> Next {
        let read = match recovered.try_recv() {
            Err(TryRecvError::Empty) => {
                self.phase = Phase::Recovers(recovered);
                return Next::Waits;
            }
            Err(TryRecvError::Closed) => Err(Error::Other("its thread failed".to_owned())),
            Ok(read) => read,
        };
        match read.and_then(|datastore| self.revert_to(datastore)) {
            Ok(()) => self.leave_backfill(),
            Err(error) => {
                tracing::error!(database = %self.shared.options.identity, %error, "the durable state cannot be read; the database stops");
                self.state.failed = true;
            }
        }
        Next::More
    }

    fn revert_to(&mut self, mut datastore: Datastore) -> Result<(), Error> {
        let program = datastore.module_record().map(|record| record.program_hash);
        if program != Some(self.module.program.hash) {
            return Err(Error::Other("the last update is not durable, and is taken back: the database opens anew with the program before".to_owned()));
        }
        let options = &self.shared.options;
        let durable_offset = self.way_out.log.committed_offset();
        options.configure(&mut datastore);
        datastore.know_old_tables(self.module.def());
        self.state.indexes.forget();
        self.state.views.hold_all_indexes(&mut datastore);
        self.datastore = datastore;
        // No query set is live yet, so no client hears of the rows that are there again.
        let windows = std::mem::take(&mut self.state.windows);
        self.rebuild_views();
        self.state.windows = windows;
        self.rebuild_windows();
        self.watch_again();
        let taken_back = self.next_offset - durable_offset;
        self.next_offset = durable_offset;
        self.way_out.next_offset = durable_offset;
        self.state.effects.output = CommitOutput::default();
        tracing::warn!(database = %self.shared.options.identity, taken_back, "transactions that were not durable when the log failed are taken back");
        Ok(())
    }

    /// Asks for the changes of tables again that live queries and views read.
    pub(super) fn watch_again(&mut self) {
        for (table, count) in &self.state.watchers {
            self.datastore.set_watched(*table, *count > 0);
        }
        let tables = self.datastore.schemas().map(|schema| schema.id).collect();
        self.state.views.watch(&mut self.datastore, tables);
    }
}

/// The state before `end`, from the disk.
fn read(options: &DatabaseOptions, log: &LogWriter, end: LogOffset) -> Result<Datastore, Error> {
    let taken = || Error::Other("the log was taken by another owner".to_owned());
    let log = log.failed_log().ok_or_else(taken)?;
    let mut snapshots = options.snapshots()?;
    let read = Datastore::recover_until(&options.directory, &mut snapshots, &*log, end);
    Ok(read?.0)
}
