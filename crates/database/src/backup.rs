//! What a backup of a running database is made of (06 §5.13b): the frames of its log and the newest snapshot that it has on the disk.
//!
//! All of it is read beside the writer, which is never held: a snapshot that lies there and the frames behind it are the state at the
//! durable end of the log.

use std::collections::HashSet;
use std::sync::Arc;

use lightcone_backup::{Head, Item, Place, SnapshotHead, FORMAT};
use lightcone_log::{LogError, LogFeed, LogOffset};
use lightcone_snapshot::{ObjectHash, Snapshot, SnapshotStore};
use tokio::sync::OwnedSemaphorePermit;

use crate::budget::{HeldBytes, Holder};
use crate::error::ChangesError;
use crate::frames::{goes_on, Frames};
use crate::handle::DatabaseHandle;
use crate::shared::Shared;

/// Items are handed on when they have so many bytes, in parts of so many.
const PART_BYTES: usize = 1 << 20;

/// What who asks for a backup has already.
#[derive(Default)]
pub struct BackupAfter {
    /// Where his frames end.
    pub place: Option<Place>,
    /// The offset of his newest snapshot.
    pub snapshot: Option<u64>,
    pub objects: HashSet<ObjectHash>,
}

/// A backup that is sent.
pub struct Backup {
    stage: Stage,
    head: Head,
    frames: Frames,
    end: LogOffset,
    /// Held open, so that it stays whole when newer ones take its place.
    snapshot: Option<Snapshot>,
    /// Of its objects, those that are to be sent; the next one is the last.
    objects: Vec<ObjectHash>,
    /// Items that are handed on, and how many of their bytes were.
    ready: Vec<u8>,
    given: usize,
    holder: Holder,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Head,
    Frames,
    Snapshot,
    Objects,
    End,
    Over,
}

impl DatabaseHandle {
    /// Begins a backup of all that is durable now. It counts as a stream of changes.
    ///
    /// # Errors
    /// The database keeps no log, its log or snapshots cannot be read, or there is no room for one more stream.
    pub async fn backup(&self, after: BackupAfter) -> Result<Backup, ChangesError> {
        let turn = self.stream_turn()?;
        let (shared, holder) = (self.shared.clone(), self.holder());
        let open = move || Backup::open(&shared, after, holder, turn);
        let opened = self.shared.elsewhere(open).await;
        opened.unwrap_or(Err(ChangesError::Gone))
    }
}

impl Backup {
    fn open(
        shared: &Arc<Shared>,
        after: BackupAfter,
        holder: Holder,
        turn: OwnedSemaphorePermit,
    ) -> Result<Backup, ChangesError> {
        let (options, feed) = (&shared.options, shared.status.feed());
        let feed = feed.ok_or(ChangesError::Gone)?;
        if options.in_memory {
            return Err(ChangesError::InMemory);
        }
        // In this order: what was acknowledged by then is in it.
        let (time, end) = (options.commons.environment.now(), feed.durable_offset());
        let mut snapshots =
            SnapshotStore::beside(options.storage.clone(), &options.snapshots_directory())?;
        let mut snapshot = snapshots.latest_until(end)?;
        let newest = snapshot.as_ref().map(|snapshot| snapshot.offset);
        let (from, begins_because) = match after.place.map(|place| (place, goes_on(feed, place))) {
            Some((place, Ok(()))) => {
                if after.snapshot >= newest.map(LogOffset::get) {
                    snapshot = None;
                }
                (place, None)
            }
            Some((_, Err(error))) => (begin(feed, newest, end)?, Some(why_not(error))),
            None => {
                let why = "it is the first one".to_owned();
                (begin(feed, newest, end)?, Some(why))
            }
        };
        let wanted = |hash: &&ObjectHash| !after.objects.contains(hash);
        let objects = snapshot.iter().flat_map(|snapshot| snapshot.objects());
        let mut objects: Vec<ObjectHash> = objects.filter(wanted).copied().collect();
        objects.reverse();
        Ok(Backup {
            stage: Stage::Head,
            head: Head {
                format: FORMAT,
                database: options.identity.to_hex(),
                time: time.0,
                from,
                end: end.get(),
                begins_because,
            },
            frames: Frames::open(feed, from, turn, shared.users.clone())?,
            end,
            snapshot,
            objects,
            ready: Vec::new(),
            given: 0,
            holder,
        })
    }

    /// Whom what is sent counts as.
    pub fn holder(&self) -> Holder {
        self.holder.clone()
    }

    /// The next part; none at the end. Blocks for a bounded piece of work.
    ///
    /// # Errors
    /// The log, the snapshot, or the memory of the client. Nothing more comes then.
    pub fn read(&mut self) -> Result<Option<HeldBytes>, ChangesError> {
        if self.given == self.ready.len() {
            let mut out = Vec::new();
            while out.len() < PART_BYTES && self.stage != Stage::Over {
                self.stage = self.step(&mut out)?;
            }
            (self.ready, self.given) = (out, 0);
        }
        // A frame may have more bytes than a client may.
        let end = self.ready.len().min(self.given + PART_BYTES);
        let part = self.ready[self.given..end].to_vec();
        self.given = end;
        match part.is_empty() {
            true => Ok(None),
            false => Ok(Some(HeldBytes::new(part, self.holder.budget())?)),
        }
    }

    /// Appends the next item, and says where it goes on.
    fn step(&mut self, out: &mut Vec<u8>) -> Result<Stage, ChangesError> {
        match self.stage {
            Stage::Head => {
                Item::Head(self.head.clone()).encode(out);
                Ok(Stage::Frames)
            }
            Stage::Frames => self.frame(out),
            Stage::Snapshot => {
                if let Some(snapshot) = &self.snapshot {
                    let head = SnapshotHead {
                        offset: snapshot.offset,
                        objects: snapshot.objects().copied().collect(),
                        engine: snapshot.manifest.clone(),
                    };
                    Item::Snapshot(head).encode(out);
                }
                Ok(Stage::Objects)
            }
            Stage::Objects => {
                let (Some(snapshot), Some(hash)) = (&self.snapshot, self.objects.pop()) else {
                    return Ok(Stage::End);
                };
                Item::Object(snapshot.read(&hash)?).encode(out);
                Ok(Stage::Objects)
            }
            Stage::End | Stage::Over => {
                Item::End(self.frames.place()).encode(out);
                Ok(Stage::Over)
            }
        }
    }

    fn frame(&mut self, out: &mut Vec<u8>) -> Result<Stage, ChangesError> {
        if self.frames.place().offset >= self.end {
            return Ok(Stage::Snapshot);
        }
        let frame = self.frames.next()?.ok_or(ChangesError::Gone)?;
        Item::Frame(frame).encode(out);
        Ok(Stage::Frames)
    }
}

/// Why the log does not go on where the last backup ends.
fn why_not(error: LogError) -> String {
    match error {
        LogError::CutAway { .. } => {
            "the log has other transactions before the place where the last backup ends".to_owned()
        }
        LogError::LeftBehind { wanted, oldest } => format!(
            "the last backup ends at transaction {wanted}, and the log begins with transaction {oldest} by now"
        ),
        error => error.to_string(),
    }
}

/// Where the frames of a backup begin that goes on from none.
fn begin(
    feed: &LogFeed,
    snapshot: Option<LogOffset>,
    end: LogOffset,
) -> Result<Place, ChangesError> {
    let from = snapshot.unwrap_or(LogOffset::FIRST);
    // A snapshot may end inside of a frame.
    let mut reader = feed.read(from)?;
    let first = reader.next()?.map_or(end, |frame| frame.first_offset);
    let offset = first.min(end);
    match feed.hash_at(offset)? {
        Some(hash) => Ok(Place { offset, hash }),
        None => Err(ChangesError::OldFrames(offset)),
    }
}
