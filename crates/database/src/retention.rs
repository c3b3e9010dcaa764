//! How much of its history a database keeps: snapshots and log that its recovery does not need (`docs/design/backup.md`, "What the
//! server keeps"). It is decided when a snapshot was written, beside the writer.

use std::collections::{BTreeMap, HashSet};

use lightcone_backup::Place;
use lightcone_log::{LogError, LogFeed, LogOffset};
use lightcone_snapshot::{SnapshotError, SnapshotNeeds, SnapshotStore};
use lightcone_types::Timestamp;

use crate::error::ChangesError;
use crate::handle::DatabaseHandle;
use crate::history::Known;
use crate::metrics::Retained;
use crate::shared::Shared;

/// History goes when the disk has no room for the log of so many snapshots, and for the next one as a whole, as two in a row share no
/// pack: it must not keep that from being written.
const ROOM_SNAPSHOTS: u64 = 2;

impl DatabaseHandle {
    /// From where on the history of the database can be read.
    pub fn retained(&self) -> Retained {
        let oldest = self.shared.status.feed().map(LogFeed::oldest_offset);
        self.shared.history.retained(oldest.unwrap_or_default())
    }

    /// Notes that a backup is complete that has all before a place. Durable on return.
    ///
    /// # Errors
    /// The log does not have the place, or the disk.
    pub async fn note_backed_up(&self, place: Place) -> Result<(), ChangesError> {
        let shared = self.shared.clone();
        let note = move || {
            if shared.options.in_memory {
                return Err(ChangesError::InMemory);
            }
            let feed = shared.status.feed().ok_or(ChangesError::Gone)?;
            if feed.hash_at(place.offset)? != Some(place.hash) {
                let offset = place.offset;
                return Err(LogError::CutAway { offset }.into());
            }
            let noted = shared.history.change(&shared.options, |known| {
                known.backed_up = Some(place);
            });
            Ok(noted?)
        };
        let noted = self.shared.elsewhere(note).await;
        noted.unwrap_or(Err(ChangesError::Gone))
    }
}

/// Removes the snapshots that are not kept, now that there is one at `newest`, which was begun at `time`. So much log makes the next one
/// due, which has about so many bytes of pages. Returns from where on the log is kept; none: all of it.
///
/// # Errors
/// The disk.
pub(crate) fn prune(
    shared: &Shared,
    store: &SnapshotStore,
    newest: LogOffset,
    time: Timestamp,
    (due_bytes, page_bytes): (u64, u64),
) -> Result<Option<LogOffset>, SnapshotError> {
    let (options, history) = (&shared.options, &shared.history);
    let kept = options.limits.snapshots_kept;
    let log_bytes = due_bytes.saturating_mul(ROOM_SNAPSHOTS);
    let room_bytes = log_bytes.saturating_add(page_bytes);
    let log_from = match wish(shared, time, room_bytes) {
        None => store.prune(kept)?.log_needed_from,
        Some(wish) => match Found::read(shared, store)?.choose(kept, &wish) {
            // The log replaces the snapshots that are missing.
            None => None,
            Some(choice) => {
                let pruned = store.prune_before(choice.snapshots_from, kept)?;
                tell(shared, &choice);
                pruned
                    .log_needed_from
                    .map(|needed| needed.min(choice.log_from))
            }
        },
    };
    let offsets = store.offsets()?;
    let noted = history.change(options, |known| {
        // It may have been there.
        let begun = known.snapshots.entry(newest).or_default();
        begun.get_or_insert(time.0);
        known.keep(&offsets);
    });
    if let Err(error) = noted {
        tracing::warn!(database = %options.identity, %error, "what is known of its history is not written");
    }
    Ok(log_from)
}

fn tell(shared: &Shared, choice: &Choice) {
    let (database, from) = (shared.options.identity, choice.snapshots_from);
    if choice.lost > 0 {
        shared.history.note_lost(choice.lost);
        tracing::error!(%database, transactions = choice.lost, "the log loses transactions that no backup has, as limits.history-bytes-max, or the room on the disk, is used up [LC0560]");
    } else if choice.is_cut {
        tracing::warn!(%database, %from, "the history that is kept is shorter than it should be, as limits.history-bytes-max, or the room on the disk, is used up [LC0560]");
    }
}

/// What is to be kept beside the newest snapshots and the log behind them.
struct Wish {
    /// The state at each moment from this one on, in microseconds since the Unix epoch.
    since: Option<i64>,
    /// The log from here on.
    log_from: LogOffset,
    /// At most so many bytes.
    bytes_max: u64,
    /// When snapshots were begun, as far as it is known.
    times: BTreeMap<LogOffset, Option<i64>>,
}

/// None: nothing.
fn wish(shared: &Shared, now: Timestamp, room_bytes: u64) -> Option<Wish> {
    let (options, limits) = (&shared.options, &shared.options.limits);
    let waits = limits.history_kept_until_backed_up;
    if !waits && limits.history_kept_for.is_zero() {
        return None;
    }
    let Known {
        backed_up,
        snapshots: times,
    } = shared.history.known();
    // A log that was repaired may have other transactions there.
    let is_there = |place: &Place| {
        let hash = shared.status.feed().map(|feed| feed.hash_at(place.offset));
        matches!(hash, Some(Ok(hash)) if hash == Some(place.hash))
    };
    let backed_up = || backed_up.filter(is_there).map(|place| place.offset);
    let kept_for_us = i64::try_from(limits.history_kept_for.as_micros()).unwrap_or(i64::MAX);
    Some(Wish {
        since: (kept_for_us > 0).then(|| now.0.saturating_sub(kept_for_us)),
        log_from: match waits {
            true => backed_up().unwrap_or_default(),
            false => LogOffset::MAX,
        },
        bytes_max: match options.disk.has_room_for(room_bytes) {
            true => limits.history_bytes_max,
            false => 0,
        },
        times,
    })
}

/// What lies on the disk, oldest first.
struct Found {
    snapshots: Vec<SnapshotNeeds>,
    /// Where each segment of the log begins, and its bytes.
    segments: Vec<(LogOffset, u64)>,
}

#[derive(Debug, PartialEq, Eq)]
struct Choice {
    snapshots_from: LogOffset,
    /// At most `snapshots_from`, so that each snapshot has the log behind it.
    log_from: LogOffset,
    /// It is less than was wished.
    is_cut: bool,
    /// Transactions that go although they were to wait for a backup.
    lost: u64,
}

impl Found {
    fn read(shared: &Shared, store: &SnapshotStore) -> Result<Found, SnapshotError> {
        let segments = shared.status.feed().map(LogFeed::segment_bytes);
        let segments = segments.transpose().unwrap_or_else(|error| {
            tracing::warn!(database = %shared.options.identity, %error, "all of the log stays");
            None
        });
        Ok(Found {
            snapshots: store.needs()?,
            segments: segments.unwrap_or_default(),
        })
    }

    /// None if there are fewer snapshots than are to be kept in any case, or no log: then all stays.
    fn choose(&self, kept: usize, wish: &Wish) -> Option<Choice> {
        // What recovery needs begins with this snapshot.
        let floor = self.snapshots.len().checked_sub(kept.max(1))?;
        let oldest = self.segments.first()?.0;
        let at = |number: usize| self.snapshots[number].offset;
        let is_old = |number: &usize| {
            let time = wish.times.get(&at(*number)).copied().flatten();
            time.is_some_and(|time| Some(time) <= wish.since)
        };
        let wished = match wish.since {
            None => (floor, at(floor)),
            Some(_) => match (0..=floor).rfind(is_old) {
                Some(first) => (first, at(first)),
                None => (0, oldest.min(at(0))),
            },
        };
        let log_from = |from: LogOffset| from.min(wish.log_from);
        let fits = |(first, from): &(usize, LogOffset)| {
            self.bytes(*first, floor, log_from(*from)) <= wish.bytes_max
        };
        // What a backup has goes first, and then what none has, segment by segment.
        let shorter = (wished.0..=floor).map(|first| (first, at(first)));
        let found = std::iter::once(wished).chain(shorter).find(fits);
        let (first, log_from) = match found {
            Some((first, from)) => (first, log_from(from)),
            None => {
                let mut starts = self.segments.iter().map(|(start, _)| *start);
                let start = starts.find(|start| self.bytes(floor, floor, *start) <= wish.bytes_max);
                (floor, start.unwrap_or(at(floor)).min(at(floor)))
            }
        };
        Some(Choice {
            snapshots_from: at(first),
            log_from,
            is_cut: found != Some(wished),
            lost: match found {
                Some(_) => 0,
                None => log_from
                    .get()
                    .saturating_sub(wish.log_from.max(oldest).get()),
            },
        })
    }

    /// Of what is kept beside what recovery needs, if snapshots are kept from this one on, and the log from `log_from` on.
    fn bytes(&self, first: usize, floor: usize, log_from: LogOffset) -> u64 {
        let needed = self.snapshots[floor..].iter().flat_map(|one| &one.packs);
        let needed: HashSet<_> = needed.collect();
        let more = self.snapshots[first..floor]
            .iter()
            .flat_map(|one| &one.packs);
        let more: HashSet<_> = more.filter(|pack| !needed.contains(pack)).collect();
        let packs: u64 = more.iter().map(|(_, bytes)| bytes).sum();
        let ends = self.segments.windows(2).map(|two| (two[1].0, two[0].1));
        let kept = ends.filter(|(end, _)| *end > log_from && *end <= self.snapshots[floor].offset);
        packs + kept.map(|(_, bytes)| bytes).sum::<u64>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(offset: u64) -> LogOffset {
        LogOffset::new(offset)
    }

    /// Five snapshots, with a pack of ten bytes each that no other one needs, begun at 100, 200 and so on; segments of five bytes
    /// that begin at 0, 50, 100 and so on.
    fn found() -> (Found, Wish) {
        let snapshots = (1..=5).map(|number| SnapshotNeeds {
            offset: at(number * 100),
            packs: vec![(number, 10)],
        });
        let found = Found {
            snapshots: snapshots.collect(),
            segments: (0..11).map(|number| (at(number * 50), 5)).collect(),
        };
        let times = (1..=5).map(|number| (at(number * 100), Some(number as i64 * 100)));
        let wish = Wish {
            since: None,
            log_from: LogOffset::MAX,
            bytes_max: u64::MAX,
            times: times.collect(),
        };
        (found, wish)
    }

    fn chosen(snapshots_from: u64, log_from: u64, is_cut: bool, lost: u64) -> Option<Choice> {
        Some(Choice {
            snapshots_from: at(snapshots_from),
            log_from: at(log_from),
            is_cut,
            lost,
        })
    }

    #[test]
    fn time_keeps_the_last_snapshot_before_it() {
        let (found, wish) = found();
        let of = |since| Wish {
            since: Some(since),
            times: wish.times.clone(),
            ..wish
        };
        assert_eq!(found.choose(2, &wish), chosen(400, 400, false, 0));
        assert_eq!(found.choose(2, &of(250)), chosen(200, 200, false, 0));
        assert_eq!(found.choose(2, &of(200)), chosen(200, 200, false, 0));
        // Those that recovery needs are kept in any case.
        assert_eq!(found.choose(2, &of(450)), chosen(400, 400, false, 0));
        // None is so old: all of the log.
        assert_eq!(found.choose(2, &of(99)), chosen(100, 0, false, 0));
        assert_eq!(found.choose(6, &of(250)), None);
        // What was not noted is not taken for old.
        let mut unknown = of(250);
        unknown.times.insert(at(200), None);
        assert_eq!(found.choose(2, &unknown), chosen(100, 100, false, 0));
    }

    #[test]
    fn bytes_win_and_what_has_a_backup_goes_first() {
        let (found, wish) = found();
        let of = |since, log_from: u64, bytes_max| Wish {
            since,
            log_from: at(log_from),
            bytes_max,
            times: wish.times.clone(),
        };
        // Two packs and four segments: from 200 to 400.
        assert_eq!(
            found.choose(2, &of(Some(200), 1000, 40)),
            chosen(200, 200, false, 0)
        );
        assert_eq!(
            found.choose(2, &of(Some(200), 1000, 39)),
            chosen(300, 300, true, 0)
        );
        assert_eq!(
            found.choose(2, &of(Some(200), 1000, 0)),
            chosen(400, 400, true, 0)
        );
        // Of snapshots that have gone, the log behind the last backup stays.
        assert_eq!(
            found.choose(2, &of(Some(200), 150, 25)),
            chosen(400, 150, true, 0)
        );
        assert_eq!(
            found.choose(2, &of(None, 120, 30)),
            chosen(400, 120, false, 0)
        );
        assert_eq!(
            found.choose(2, &of(None, 120, 29)),
            chosen(400, 150, true, 30)
        );
        assert_eq!(
            found.choose(2, &of(None, 0, 0)),
            chosen(400, 400, true, 400)
        );
    }
}
