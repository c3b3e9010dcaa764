//! What several backups have together: one history, and which places of it can be brought back.

use std::collections::{HashMap, HashSet};

use lightcone_engine::record::{Record, Records};
use lightcone_log::LogOffset;

use crate::item::Frame;
use crate::manifest::{LogEntry, Manifest, SnapshotEntry};
use crate::place::Place;

/// All that leads to the end of one backup. Places are compared by their hashes, so transactions of a database that was cleared since
/// are another history.
pub struct History<'m> {
    pub newest: &'m Manifest,
    /// Oldest first, without a gap.
    pub log: Vec<&'m LogEntry>,
    snapshots: Vec<&'m SnapshotEntry>,
    /// When the first backup was made that ended where this begins, in microseconds since the Unix epoch.
    known_from: Option<i64>,
}

/// What brings a place back.
pub struct Plan<'m> {
    /// None: the frames begin with the first transaction.
    pub snapshot: Option<&'m SnapshotEntry>,
    /// Those with frames behind it, oldest first.
    pub log: Vec<&'m LogEntry>,
    /// The first transaction that is left out.
    pub end: LogOffset,
}

impl<'m> History<'m> {
    /// The histories of all backups, the newest first.
    pub fn all(manifests: &'m [Manifest]) -> Vec<History<'m>> {
        let mut newest_first: Vec<&Manifest> = manifests.iter().collect();
        newest_first
            .sort_by_key(|manifest| std::cmp::Reverse((manifest.time, manifest.end.offset)));
        let ending: HashMap<Place, &LogEntry> = manifests
            .iter()
            .flat_map(|manifest| &manifest.log)
            .map(|entry| (entry.end, entry))
            .collect();
        let of = |newest| History::of(newest, &ending, manifests);
        newest_first.into_iter().map(of).collect()
    }

    fn of(
        newest: &'m Manifest,
        ending: &HashMap<Place, &'m LogEntry>,
        manifests: &'m [Manifest],
    ) -> History<'m> {
        let (mut log, mut places) = (Vec::new(), HashSet::from([newest.end]));
        let mut place = newest.end;
        // Each entry begins before its end, so this comes to an end.
        while let Some(entry) = ending.get(&place) {
            log.push(*entry);
            place = entry.from;
            places.insert(place);
        }
        log.reverse();
        let ended_there = manifests.iter().filter(|manifest| manifest.end == place);
        let known_from = ended_there.map(|manifest| manifest.time).min();
        let is_in_it = |manifest: &&Manifest| places.contains(&manifest.end);
        let snapshots = manifests.iter().filter(is_in_it);
        let snapshots = snapshots.filter_map(|manifest| manifest.snapshot.as_ref());
        History {
            newest,
            log,
            snapshots: snapshots.collect(),
            known_from,
        }
    }

    /// Where its frames begin.
    fn from(&self) -> Place {
        self.log.first().map_or(self.newest.end, |entry| entry.from)
    }

    /// The first place that it can bring back.
    pub fn oldest(&self) -> Option<LogOffset> {
        let from = self.from();
        let offsets = self
            .snapshots
            .iter()
            .map(|entry| LogOffset::new(entry.offset));
        let whole = (from == Place::default()).then_some(LogOffset::FIRST + 1);
        let offsets = offsets.filter(|offset| *offset >= from.offset);
        offsets.chain(whole).min()
    }

    /// What brings back the state before the transaction `end`. None if nothing does.
    pub fn plan(&self, end: LogOffset) -> Option<Plan<'m>> {
        let from = self.from();
        let fits = |entry: &&&SnapshotEntry| {
            let offset = LogOffset::new(entry.offset);
            offset >= from.offset && offset <= end
        };
        let fitting = self.snapshots.iter().filter(fits);
        let snapshot = fitting.max_by_key(|entry| entry.offset).copied();
        let start = match snapshot {
            Some(entry) => LogOffset::new(entry.offset),
            None if from == Place::default() => LogOffset::FIRST,
            None => return None,
        };
        let is_needed =
            |entry: &&&LogEntry| entry.end.offset > start && entry.from.offset < end && start < end;
        // Before its first transaction a database is nothing that could be opened.
        (end > LogOffset::FIRST && end <= self.newest.end.offset).then(|| Plan {
            snapshot,
            log: self.log.iter().filter(is_needed).copied().collect(),
            end,
        })
    }

    /// Whether the state before its first transaction was that of a moment: a backup that ended there was made by then.
    pub fn is_known_at(&self, moment: i64) -> bool {
        self.known_from.is_some_and(|time| time <= moment)
    }

    /// The file with the first transaction that was committed after a moment; none if there was none by the end.
    pub fn file_after(&self, moment: i64) -> Option<&'m LogEntry> {
        let is_after = |entry: &&&LogEntry| entry.newest.is_some_and(|newest| newest > moment);
        self.log.iter().find(is_after).copied()
    }
}

/// When transactions of frames were committed. What is behind a record that cannot be read says nothing.
fn commits<'f>(
    frames: impl IntoIterator<Item = &'f Frame>,
    mut each: impl FnMut(LogOffset, i64) -> bool,
) {
    let mut clock = i64::MIN;
    for frame in frames {
        let mut offset = frame.first_offset;
        for record in Records::new(&frame.payload).map_while(Result::ok) {
            match record {
                Record::Clock(time) => clock = time,
                _ if offset >= frame.end() => break,
                _ => {
                    if !each(offset, clock) {
                        return;
                    }
                    offset += 1;
                }
            }
        }
    }
}

/// The first transaction that was committed after a moment, in microseconds since the Unix epoch.
pub fn moment_in<'f>(
    frames: impl IntoIterator<Item = &'f Frame>,
    moment: i64,
) -> Option<LogOffset> {
    let mut found = None;
    commits(frames, |offset, time| {
        found = (time > moment).then_some(offset);
        found.is_none()
    });
    found
}

/// The latest time at which one of these transactions was committed.
pub fn newest_moment<'f>(frames: impl IntoIterator<Item = &'f Frame>) -> Option<i64> {
    let mut newest = None;
    commits(frames, |_, time| {
        newest = newest.max(Some(time));
        true
    });
    newest.filter(|time| *time != i64::MIN)
}
