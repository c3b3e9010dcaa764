//! The frames of the database that this one follows: its only transactions.

use lightcone_backup::Frame;
use lightcone_engine::record::{Record, Records};
use lightcone_engine::RecoveryError;
use lightcone_log::{Epoch, Followed};

use super::Writer;
use crate::error::Error;
use crate::replies::Waiter;

impl Writer {
    pub(super) fn follow(
        &mut self,
        leader: Epoch,
        frame: Frame,
        waiter: Waiter<Result<(), Error>>,
    ) {
        // It stays one frame, so it has a round of its own.
        self.end_round();
        if let Err(error) = self.repeat(leader, frame) {
            // Some of it may have been applied, and none of it is to be durable: the database opens again as it was before.
            self.state.effects.ends.clear();
            self.state.failed = true;
            return waiter.answer(Err(error));
        }
        self.answer(waiter, Ok(()));
        self.end_round();
    }

    /// Each of its transactions is one here, which is told as the leader told it.
    fn repeat(&mut self, leader: Epoch, frame: Frame) -> Result<(), Error> {
        for record in Records::new(&frame.payload) {
            let offset = self.next_offset;
            let wrong = |detail: String| Error::from(RecoveryError::Record { offset, detail });
            let record = record.map_err(|error| wrong(error.to_string()))?;
            if let Record::Clock(_) = record {
                continue;
            }
            self.datastore.begin();
            if let Err(error) = self.datastore.apply(offset, &record) {
                self.datastore.rollback();
                return Err(error.into());
            }
            self.commit_and_tell()?;
            if self.next_offset == offset {
                return Err(wrong("it changes nothing here".to_owned()));
            }
        }
        if self.next_offset != frame.end() {
            let error = RecoveryError::Record {
                offset: frame.first_offset,
                detail: format!(
                    "its frame has {} transactions, and others come from it",
                    frame.count
                ),
            };
            return Err(error.into());
        }
        let effects = &mut self.state.effects;
        effects.followed = Some(Followed {
            leader,
            epoch: frame.epoch,
            hash: frame.hash,
        });
        // What came out here may have its rows in another order.
        effects.output.records = frame.payload;
        // Only the leader acts on them.
        effects.output.schedules.clear();
        effects.output.outbound.clear();
        Ok(())
    }
}
