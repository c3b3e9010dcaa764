//! A database as it was: from a snapshot that lies on the disk and the frames of the log behind it, beside those who write and trim both.

use lightcone_log::{LogError, LogFeed, LogOffset};
use lightcone_snapshot::{Snapshot, SnapshotStore};
use lightcone_types::AsOf;

use crate::datastore::Datastore;
use crate::error::RecoveryError;
use crate::processors::Processors;
use crate::record::{Record, Records};
use crate::recovery::{load_newest, Replayer};
use crate::snapshot::snapshot_bytes;

/// The memory of the tables is measured when so many bytes of the log were applied.
const MEASURED_BYTES: usize = 1 << 20;

impl Datastore {
    /// The database as it was, and the offset behind its last transaction. `may_go_on` is asked all the time, with the memory in bytes
    /// that the tables have or are about to have. `begun` tells when a snapshot was begun, if that is known, in microseconds since the Unix
    /// epoch: all that is in it was committed by then.
    ///
    /// # Errors
    /// Snapshots and log do not lead there, or not yet; damage; or it was given up.
    pub fn past(
        snapshots: &mut SnapshotStore,
        feed: &LogFeed,
        as_of: AsOf,
        begun: &dyn Fn(LogOffset) -> Option<i64>,
        may_go_on: &dyn Fn(u64) -> bool,
    ) -> Result<(Datastore, LogOffset), RecoveryError> {
        let not_kept = |oldest| Err(RecoveryError::NotKept { oldest });
        let durable = feed.durable_offset();
        let (newest, end, moment) = match as_of {
            AsOf::Offset(end) => (LogOffset::new(end), LogOffset::new(end), i64::MAX),
            AsOf::Moment(moment) => {
                let moment = moment.micros();
                let newest = newest_by(snapshots, feed, begun, moment)?;
                (newest, LogOffset::MAX, moment)
            }
        };
        if end != LogOffset::MAX && end > durable {
            return Err(RecoveryError::Log(LogError::OutOfRange {
                wanted: end,
                oldest: oldest(snapshots, feed)?,
                next: durable,
            }));
        }
        let asked = |bytes| match may_go_on(bytes) {
            true => Ok(()),
            false => Err(RecoveryError::GivenUp),
        };
        let loaded = load_newest(snapshots, newest, |datastore, snapshot: &Snapshot| {
            let bytes = snapshot_bytes(snapshot)?;
            asked(bytes)?;
            datastore.load_snapshot(snapshot, Processors::One, &|| may_go_on(bytes))
        })?;
        let (datastore, offset) = loaded.unwrap_or_else(|| (Datastore::new(), LogOffset::FIRST));
        let mut replayer = Replayer::new(datastore, offset).until(end).at(moment);
        if offset < end {
            let (mut unmeasured, mut bytes) = (MEASURED_BYTES, 0);
            let read = replayer.read(feed, |datastore, frame_bytes| {
                unmeasured += frame_bytes;
                if unmeasured >= MEASURED_BYTES {
                    (unmeasured, bytes) = (0, datastore.heap_bytes() as u64);
                }
                asked(bytes)
            });
            match read {
                // It may have been trimmed just now.
                Err(RecoveryError::Log(LogError::OutOfRange { .. })) => {
                    return not_kept(oldest(snapshots, feed)?);
                }
                read => read?,
            }
        }
        let next_offset = replayer.next_offset();
        if next_offset == LogOffset::FIRST {
            return not_kept(oldest(snapshots, feed)?);
        }
        let datastore = replayer.finish()?;
        asked(datastore.heap_bytes() as u64)?;
        Ok((datastore, next_offset))
    }

    /// When a transaction was committed, in microseconds since the Unix epoch. None if it is not there.
    ///
    /// # Errors
    /// The log.
    pub fn committed_at(feed: &LogFeed, offset: LogOffset) -> Result<Option<i64>, LogError> {
        let mut frames = match feed.read(offset) {
            Err(LogError::OutOfRange { .. }) => return Ok(None),
            frames => frames?,
        };
        let Some(frame) = frames.next()? else {
            return Ok(None);
        };
        let (mut time, mut next) = (None, frame.first_offset);
        for record in Records::new(frame.payload).map_while(Result::ok) {
            match record {
                Record::Clock(micros) => time = Some(micros),
                _ if next == offset => break,
                _ => next += 1,
            }
        }
        Ok(time)
    }
}

/// The newest snapshot that was begun by that moment, or behind which the log goes on with a transaction of it, or an earlier one; else the
/// beginning.
fn newest_by(
    snapshots: &SnapshotStore,
    feed: &LogFeed,
    begun: &dyn Fn(LogOffset) -> Option<i64>,
    moment: i64,
) -> Result<LogOffset, RecoveryError> {
    for offset in snapshots.offsets()?.into_iter().rev() {
        let is_by = |time: Option<i64>| time.is_some_and(|time| time <= moment);
        if is_by(begun(offset)) || is_by(Datastore::committed_at(feed, offset)?) {
            return Ok(offset);
        }
    }
    Ok(LogOffset::FIRST)
}

/// The first transaction before which there is a state that snapshots and log lead to.
fn oldest(snapshots: &SnapshotStore, feed: &LogFeed) -> Result<LogOffset, RecoveryError> {
    let begin = feed.oldest_offset();
    if begin == LogOffset::FIRST {
        return Ok(LogOffset::FIRST + 1);
    }
    let offsets = snapshots.offsets()?;
    let oldest = offsets.into_iter().find(|offset| *offset >= begin);
    Ok(oldest.unwrap_or(begin))
}
