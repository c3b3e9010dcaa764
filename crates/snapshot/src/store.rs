//! The directory of snapshots: beginning one, finding the newest intact one, removing old ones.

use std::collections::HashSet;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::Arc;

use lightcone_storage::{disk, number_in_name, Directory, File, LogOffset, OpenMode, Storage};

use crate::error::{Problem, SnapshotError};
use crate::format::{manifest_name, pack_name, Manifest, ObjectHash, PackEntry};
use crate::reader::{load_manifest, open_packs, Snapshot};
use crate::shared::{Busy, Reusable, Shared, Stored};
use crate::writer::SnapshotWriter;

/// If the newest snapshot needs less than one part in this many of a pack, the next one writes the objects again, so that the pack
/// can be removed.
const PACK_LIVE_PART_MIN: u64 = 2;
/// A snapshot relies on at most this many packs; objects of the smallest ones are written again.
const PACKS_KEPT_MAX: usize = 32;

/// How much of the objects that a snapshot takes over is read back, each time another part. All of it would be the whole database
/// for each snapshot.
pub const READ_BACK_BYTES_MAX: u64 = 64 << 20;

const SNAPSHOTS_KEPT: usize = 2;

pub struct SnapshotStore {
    shared: Arc<Shared>,
    kept: usize,
    problems: Vec<Problem>,
}

/// What an intact snapshot needs of the disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SnapshotNeeds {
    pub offset: LogOffset,
    /// Numbers and bytes of its packs, which other snapshots may need too.
    pub packs: Vec<(u64, u64)>,
}

/// What [`SnapshotStore::prune`] removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PruneReport {
    pub snapshots: u64,
    pub packs: u64,
    /// The oldest kept snapshot: the log before it is not needed. `None` while there are fewer than asked for, as the log replaces
    /// the missing ones.
    pub log_needed_from: Option<LogOffset>,
}

impl SnapshotStore {
    /// Opens the store in `directory`, which is made if needed, and removes what an interrupted snapshot left.
    pub fn open(directory: &Path) -> Result<SnapshotStore, SnapshotError> {
        SnapshotStore::open_on(disk(), directory)
    }

    pub fn open_on(
        storage: Arc<dyn Storage>,
        directory: &Path,
    ) -> Result<SnapshotStore, SnapshotError> {
        let store = SnapshotStore::beside(storage, directory)?;
        let directory = &store.shared.directory;
        for name in directory.list()? {
            if name.ends_with(".pack.tmp") || name.ends_with(".manifest.tmp") {
                directory.remove(&directory.join(name))?;
            }
        }
        Ok(store)
    }

    /// Opens it to read what there is, while another store may be writing.
    pub fn beside(
        storage: Arc<dyn Storage>,
        directory: &Path,
    ) -> Result<SnapshotStore, SnapshotError> {
        let directory = Directory::new(storage, directory);
        directory.create()?;
        let shared = Shared {
            directory,
            busy: AtomicBool::new(false),
        };
        Ok(SnapshotStore {
            shared: Arc::new(shared),
            kept: SNAPSHOTS_KEPT,
            problems: Vec::new(),
        })
    }

    /// How many snapshots are kept. Two in a row share no pack; if only one is kept, each takes over what it can.
    pub fn keeping(self, kept: usize) -> SnapshotStore {
        SnapshotStore { kept, ..self }
    }

    /// These are damaged: a snapshot that is written takes over nothing, and may take the place of one of them.
    pub fn without(mut self, problems: Vec<Problem>) -> SnapshotStore {
        self.problems.extend(problems);
        self
    }

    /// The numbers in the names with this extension, ascending.
    fn numbers(&self, extension: &str) -> Result<Vec<u64>, SnapshotError> {
        let names = self.shared.directory.list()?;
        let mut numbers: Vec<u64> = names
            .iter()
            .filter_map(|name| number_in_name(name, extension))
            .collect();
        numbers.sort_unstable();
        Ok(numbers)
    }

    /// The offsets of the stored snapshots, ascending, with damaged ones that were not read yet.
    pub fn offsets(&self) -> Result<Vec<LogOffset>, SnapshotError> {
        let numbers = self.numbers("manifest")?;
        Ok(numbers.into_iter().map(LogOffset::new).collect())
    }

    /// Whether there is a snapshot at this offset that was not set aside.
    pub fn has_intact(&self, offset: LogOffset) -> Result<bool, SnapshotError> {
        Ok(self.offsets()?.contains(&offset) && !self.is_set_aside(offset))
    }

    /// Begins the snapshot of all transactions before `offset`. One at a time.
    pub fn begin(&self, offset: LogOffset) -> Result<SnapshotWriter, SnapshotError> {
        let busy = Busy::take(&self.shared)?;
        if self.has_intact(offset)? {
            return Err(SnapshotError::Misuse {
                reason: format!("there is a snapshot at transaction {offset} already"),
            });
        }
        let mut offsets = self.offsets()?;
        offsets.retain(|offset| !self.is_set_aside(*offset));
        // An unreadable snapshot is no reason not to write a new one, but its needs are unknown.
        let load = |offset: &LogOffset| self.load(*offset).ok();
        let newest = offsets.last().and_then(load);
        let older = offsets.iter().rev().nth(1).and_then(load);
        let reusable = match (newest, older) {
            // An older one may share the pack that is damaged.
            _ if !self.problems.is_empty() => Reusable::default(),
            (Some(newest), _) if self.kept == 1 => self.reusable(&newest, &[], offset),
            // Nothing that the newest one needs: a pack that rots must not spoil both.
            (Some(newest), Some(older)) => self.reusable(&older, &newest.packs, offset),
            _ => Reusable::default(),
        };
        let pack_number = self.numbers("pack")?.last().map_or(0, |last| last + 1);
        Ok(SnapshotWriter::new(
            self.shared.clone(),
            busy,
            offset,
            pack_number,
            reusable,
        ))
    }

    fn load(&self, offset: LogOffset) -> Result<Manifest, SnapshotError> {
        load_manifest(&self.shared.directory, offset)
    }

    /// The same of a snapshot that has its packs.
    fn load_intact(&self, offset: LogOffset) -> Result<Manifest, SnapshotError> {
        let manifest = self.load(offset)?;
        open_packs(&self.shared.directory, &manifest)?;
        Ok(manifest)
    }

    /// All intact snapshots, oldest first.
    pub fn needs(&self) -> Result<Vec<SnapshotNeeds>, SnapshotError> {
        let mut needs = Vec::new();
        for offset in self.offsets()? {
            match self.load_intact(offset) {
                Ok(manifest) => {
                    let packs = manifest.packs.iter();
                    let packs = packs.map(|pack| (pack.number, pack.end.get())).collect();
                    needs.push(SnapshotNeeds { offset, packs });
                }
                Err(error) if error.is_unreadable() => {}
                Err(error) => return Err(error),
            }
        }
        Ok(needs)
    }

    /// The objects of a snapshot that the one at `next` may take over, except those in certain packs.
    fn reusable(&self, manifest: &Manifest, except: &[PackEntry], next: LogOffset) -> Reusable {
        let mut live = vec![0u64; manifest.packs.len()];
        for object in &manifest.objects {
            live[object.pack as usize] += u64::from(object.bytes);
        }
        let mut candidates: Vec<(usize, Box<dyn File>)> = Vec::new();
        for (index, pack) in manifest.packs.iter().enumerate() {
            if except.iter().any(|other| other.number == pack.number) {
                continue;
            }
            let path = self.shared.directory.join(pack_name(pack.number));
            // A pack that is missing, too short or cannot be opened is not relied on again.
            let opened = self.shared.directory.open(&path, OpenMode::Read);
            let Ok((end, file)) = opened.and_then(|file| Ok((file.end()?, file))) else {
                continue;
            };
            if end >= pack.end && live[index] >= end.get() / PACK_LIVE_PART_MIN {
                candidates.push((index, file.file));
            }
        }
        candidates.sort_by_key(|(index, _)| std::cmp::Reverse(live[*index]));
        candidates.truncate(PACKS_KEPT_MAX);
        let kept: HashSet<u32> = candidates.iter().map(|(index, _)| *index as u32).collect();
        let objects = manifest
            .objects
            .iter()
            .filter(|object| kept.contains(&object.pack));
        let objects = objects.map(|object| {
            let stored = Stored {
                pack: manifest.packs[object.pack as usize].number,
                bytes: object.bytes,
                position: object.position,
                is_checked: false,
            };
            (object.hash, stored)
        });
        let mut objects: Vec<(ObjectHash, Stored)> = objects.collect();
        choose_checked(&mut objects, next);
        let packs = candidates.into_iter().map(|(index, file)| {
            // The cache may differ from the disk.
            file.forget_cached();
            (manifest.packs[index].number, file)
        });
        Reusable {
            objects: objects.into_iter().collect(),
            packs: packs.collect(),
        }
    }

    /// Opens the newest snapshot with an intact manifest and packs that was not set aside; others are listed in
    /// [`SnapshotStore::problems`]. Objects are checked when they are read: if one fails then, [set the snapshot
    /// aside](SnapshotStore::set_aside) and call again. The disk is not changed.
    pub fn latest(&mut self) -> Result<Option<Snapshot>, SnapshotError> {
        self.latest_until(LogOffset::MAX)
    }

    /// The [latest](SnapshotStore::latest) that has no transaction from `end` on.
    pub fn latest_until(&mut self, end: LogOffset) -> Result<Option<Snapshot>, SnapshotError> {
        let offsets = self.offsets()?.into_iter().rev();
        for offset in offsets.filter(|offset| *offset <= end) {
            if self.is_set_aside(offset) {
                continue;
            }
            match Snapshot::open(&self.shared.directory, offset) {
                Ok(snapshot) => return Ok(Some(snapshot)),
                Err(error) if error.is_unreadable() => {
                    self.problems.push(Problem { offset, error })
                }
                Err(error) => return Err(error),
            }
        }
        Ok(None)
    }

    fn is_set_aside(&self, offset: LogOffset) -> bool {
        self.problems.iter().any(|problem| problem.offset == offset)
    }

    /// Sets a snapshot aside: [`SnapshotStore::latest`] finds the one before it from now on.
    pub fn set_aside(&mut self, snapshot: Snapshot, error: SnapshotError) {
        let offset = snapshot.offset;
        self.problems.push(Problem { offset, error });
    }

    /// The snapshots that were set aside since the store was opened.
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }

    /// The same, with what they are, for another store ([`without`](Self::without)).
    pub fn into_problems(self) -> Vec<Problem> {
        self.problems
    }

    /// A snapshot was written at this offset, in place of a damaged one if there was one.
    pub fn replaced(&mut self, offset: LogOffset) {
        self.problems.retain(|problem| problem.offset != offset);
    }

    /// Renames the manifests of damaged snapshots to `*.damaged`, for good. To be called after the database was recovered without
    /// them: until then, a good copy of a damaged file repairs everything. Snapshots that the disk could not read stay.
    pub fn rename_damaged(&mut self) -> Result<(), SnapshotError> {
        let directory = &self.shared.directory;
        let damaged = self.problems.iter();
        let damaged = damaged.filter(|problem| problem.error.is_damage());
        let mut some = false;
        for problem in damaged {
            some = true;
            let name = manifest_name(problem.offset);
            let to = directory.join(format!("{name}.damaged"));
            match directory.rename("set aside", &directory.join(&name), &to) {
                Err(error) if error.source.kind() == std::io::ErrorKind::NotFound => {}
                renamed => renamed?,
            }
        }
        if some {
            directory.sync()?;
        }
        Ok(())
    }

    /// Removes all but the newest `keep` intact snapshots (at least one stays), and the packs that none of these needs.
    pub fn prune(&self, keep: usize) -> Result<PruneReport, SnapshotError> {
        self.prune_before(LogOffset::MAX, keep)
    }

    /// The same, and those at `from` and behind it stay too.
    pub fn prune_before(&self, from: LogOffset, keep: usize) -> Result<PruneReport, SnapshotError> {
        let _busy = Busy::take(&self.shared)?;
        let directory = &self.shared.directory;
        let mut report = PruneReport::default();
        let mut needed: HashSet<u64> = HashSet::new();
        let mut are_needs_known = true;
        let mut kept = 0;
        for offset in self.offsets()?.into_iter().rev() {
            if kept < keep.max(1) || offset >= from {
                // A snapshot without its packs must not count as kept.
                match self.load_intact(offset) {
                    Ok(manifest) => {
                        needed.extend(manifest.packs.iter().map(|pack| pack.number));
                        kept += 1;
                        if kept == keep.max(1) {
                            report.log_needed_from = Some(offset);
                        }
                    }
                    // Recovery sets it aside; it must not count as kept.
                    Err(error) if error.is_damage() => {}
                    // It may be readable later: until then its packs are unknown.
                    Err(error) if error.is_unreadable() => are_needs_known = false,
                    Err(error) => return Err(error),
                }
                continue;
            }
            directory.remove(&directory.join(manifest_name(offset)))?;
            report.snapshots += 1;
        }
        // First the manifests, durably, then the packs that only they need.
        directory.sync()?;
        if !are_needs_known {
            return Ok(report);
        }
        let packs = self.numbers("pack")?.into_iter();
        for number in packs.filter(|number| !needed.contains(number)) {
            directory.remove(&directory.join(pack_name(number)))?;
            report.packs += 1;
        }
        if report.packs > 0 {
            directory.sync()?;
        }
        Ok(report)
    }
}

/// Marks a run of objects to be read back, for each snapshot at another place.
fn choose_checked(objects: &mut [(ObjectHash, Stored)], next: LogOffset) {
    let count = objects.len();
    // Multiples of the golden ratio come near every place before they repeat.
    let place = next.get().wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let first = ((u128::from(place) * count as u128) >> 64) as usize;
    let (before, after) = objects.split_at_mut(first);
    let mut bytes = 0;
    for (_, stored) in after.iter_mut().chain(before) {
        bytes += u64::from(stored.bytes);
        if bytes > READ_BACK_BYTES_MAX {
            return;
        }
        stored.is_checked = true;
    }
}
