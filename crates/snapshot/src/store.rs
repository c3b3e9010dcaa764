//! The directory of snapshots: beginning one, finding the newest good one, removing old ones.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

use lightcone_storage::{disk, OpenMode, Storage};

use crate::error::SnapshotError;
use crate::format::{manifest_name, pack_name, parse_name, Manifest};
use crate::reader::{load_manifest, Snapshot};
use crate::writer::{SnapshotWriter, Stored};
use crate::ObjectHash;

/// A pack of which the newest snapshot needs less than one part in this many is not relied on by the next
/// one: what is left of it is written again, so that the pack can go.
const PACK_LIVE_PART_MIN: u64 = 2;
/// The next snapshot relies on at most this many packs; the smallest ones are written again.
const PACKS_KEPT_MAX: usize = 32;

/// The snapshots of one database.
pub struct SnapshotStore {
    shared: Arc<Shared>,
    problems: Vec<SnapshotError>,
}

pub(crate) struct Shared {
    pub storage: Arc<dyn Storage>,
    pub directory: PathBuf,
    busy: AtomicBool,
}

/// Held while a snapshot is written or the store is pruned.
pub(crate) struct Busy(Arc<Shared>);

impl Busy {
    fn take(shared: &Arc<Shared>) -> Result<Busy, SnapshotError> {
        match shared.busy.swap(true, Ordering::AcqRel) {
            false => Ok(Busy(shared.clone())),
            true => Err(SnapshotError::Misuse {
                reason: "another snapshot is being written or removed".to_owned(),
            }),
        }
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.busy.store(false, Ordering::Release);
    }
}

/// What [`SnapshotStore::prune`] removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PruneReport {
    /// Snapshots.
    pub snapshots: u64,
    /// Packs that no kept snapshot needs.
    pub packs: u64,
}

impl SnapshotStore {
    /// Opens the store in `directory`, which is made if it is not there. What an interrupted snapshot left is removed.
    pub fn open(directory: &Path) -> Result<SnapshotStore, SnapshotError> {
        SnapshotStore::open_on(disk(), directory)
    }

    /// [`SnapshotStore::open`] on any storage.
    pub fn open_on(
        storage: Arc<dyn Storage>,
        directory: &Path,
    ) -> Result<SnapshotStore, SnapshotError> {
        storage
            .create_directory(directory)
            .map_err(SnapshotError::io("create", directory))?;
        for name in storage
            .list(directory)
            .map_err(SnapshotError::io("list", directory))?
        {
            if name.ends_with(".pack.tmp") || name.ends_with(".manifest.tmp") {
                let path = directory.join(name);
                storage
                    .remove(&path)
                    .map_err(SnapshotError::io("remove", &path))?;
            }
        }
        let shared = Shared {
            storage,
            directory: directory.to_owned(),
            busy: AtomicBool::new(false),
        };
        Ok(SnapshotStore {
            shared: Arc::new(shared),
            problems: Vec::new(),
        })
    }

    /// The numbers in the names with this extension, ascending.
    fn numbers(&self, extension: &str) -> Result<Vec<u64>, SnapshotError> {
        let directory = &self.shared.directory;
        let names = self
            .shared
            .storage
            .list(directory)
            .map_err(SnapshotError::io("list", directory))?;
        let mut numbers: Vec<u64> = names
            .iter()
            .filter_map(|name| parse_name(name, extension))
            .collect();
        numbers.sort_unstable();
        Ok(numbers)
    }

    /// The offsets of the stored snapshots, ascending; damaged ones that nobody has read yet included.
    pub fn offsets(&self) -> Result<Vec<u64>, SnapshotError> {
        self.numbers("manifest")
    }

    /// Begins the snapshot of all transactions before `offset`. One at a time.
    pub fn begin(&self, offset: u64) -> Result<SnapshotWriter, SnapshotError> {
        let busy = Busy::take(&self.shared)?;
        let offsets = self.offsets()?;
        if offsets.contains(&offset) {
            return Err(SnapshotError::Misuse {
                reason: format!("there is a snapshot at transaction {offset} already"),
            });
        }
        // An unreadable snapshot is no reason not to take a new one.
        let newest = offsets
            .iter()
            .rev()
            .find_map(|offset| self.load(*offset).ok());
        let stored = match newest {
            Some(manifest) => self.reusable(&manifest)?,
            None => HashMap::new(),
        };
        let pack_number = self.numbers("pack")?.last().map_or(0, |last| last + 1);
        Ok(SnapshotWriter::new(
            self.shared.clone(),
            busy,
            offset,
            pack_number,
            stored,
        ))
    }

    fn load(&self, offset: u64) -> Result<Manifest, SnapshotError> {
        load_manifest(&*self.shared.storage, &self.shared.directory, offset)
    }

    /// The objects of a snapshot that the next one need not write again.
    fn reusable(&self, manifest: &Manifest) -> Result<HashMap<ObjectHash, Stored>, SnapshotError> {
        let mut live = vec![0u64; manifest.packs.len()];
        for object in &manifest.objects {
            live[object.pack as usize] += u64::from(object.bytes);
        }
        let mut kept: Vec<usize> = Vec::new();
        for (index, pack) in manifest.packs.iter().enumerate() {
            let path = self.shared.directory.join(pack_name(pack.number));
            // A pack that is missing or too short is not relied on again.
            let length = self
                .shared
                .storage
                .open(&path, OpenMode::Read)
                .and_then(|file| file.length())
                .unwrap_or(0);
            if length >= pack.bytes && live[index] >= length / PACK_LIVE_PART_MIN {
                kept.push(index);
            }
        }
        kept.sort_by_key(|index| std::cmp::Reverse(live[*index]));
        kept.truncate(PACKS_KEPT_MAX);
        let kept: HashSet<u32> = kept.into_iter().map(|index| index as u32).collect();
        let objects = manifest
            .objects
            .iter()
            .filter(|object| kept.contains(&object.pack));
        let stored = objects.map(|object| {
            let pack = manifest.packs[object.pack as usize].number;
            (
                object.hash,
                Stored {
                    pack,
                    bytes: object.bytes,
                    position: object.position,
                },
            )
        });
        Ok(stored.collect())
    }

    /// Opens the newest snapshot whose manifest and packs are in order. Damaged ones are renamed to
    /// `*.damaged` and listed in [`SnapshotStore::problems`]. Objects are checked when they are read: if one
    /// fails then, [set the snapshot aside](SnapshotStore::set_aside) and ask again.
    pub fn latest(&mut self) -> Result<Option<Snapshot>, SnapshotError> {
        for offset in self.offsets()?.into_iter().rev() {
            match Snapshot::open(&*self.shared.storage, &self.shared.directory, offset) {
                Ok(snapshot) => return Ok(Some(snapshot)),
                Err(error) if error.is_damage() => {
                    self.rename_damaged(&self.shared.directory.join(manifest_name(offset)))?;
                    self.problems.push(error);
                }
                Err(error) => return Err(error),
            }
        }
        Ok(None)
    }

    /// Sets a snapshot aside because of `problem`: [`SnapshotStore::latest`] finds the one before it from now on.
    pub fn set_aside(
        &mut self,
        snapshot: Snapshot,
        problem: SnapshotError,
    ) -> Result<(), SnapshotError> {
        self.rename_damaged(&snapshot.manifest_path)?;
        self.problems.push(problem);
        Ok(())
    }

    /// What was wrong with the snapshots that were set aside since the store was opened.
    pub fn problems(&self) -> &[SnapshotError] {
        &self.problems
    }

    fn rename_damaged(&self, path: &Path) -> Result<(), SnapshotError> {
        let directory = &self.shared.directory;
        let name = path
            .file_name()
            .map(|name| name.to_string_lossy().into_owned())
            .unwrap_or_default();
        let to = directory.join(format!("{name}.damaged"));
        self.shared
            .storage
            .rename(path, &to)
            .map_err(SnapshotError::io("set aside", path))?;
        self.shared
            .storage
            .sync_directory(directory)
            .map_err(SnapshotError::io("sync", directory))
    }

    /// Removes all but the newest `keep` good snapshots (at least one stays), and the packs that none of these needs.
    pub fn prune(&self, keep: usize) -> Result<PruneReport, SnapshotError> {
        let _busy = Busy::take(&self.shared)?;
        let Shared {
            storage, directory, ..
        } = &*self.shared;
        let mut report = PruneReport::default();
        let mut needed: HashSet<u64> = HashSet::new();
        let mut kept = 0;
        for offset in self.offsets()?.into_iter().rev() {
            if kept < keep.max(1) {
                match self.load(offset) {
                    Ok(manifest) => {
                        needed.extend(manifest.packs.iter().map(|pack| pack.number));
                        kept += 1;
                    }
                    // Left for `latest` to set aside; it must not count as kept.
                    Err(error) if error.is_damage() => {}
                    Err(error) => return Err(error),
                }
                continue;
            }
            let path = directory.join(manifest_name(offset));
            storage
                .remove(&path)
                .map_err(SnapshotError::io("remove", &path))?;
            report.snapshots += 1;
        }
        // First the manifests for good, then what only they need.
        storage
            .sync_directory(directory)
            .map_err(SnapshotError::io("sync", directory))?;
        for number in self
            .numbers("pack")?
            .into_iter()
            .filter(|number| !needed.contains(number))
        {
            let path = directory.join(pack_name(number));
            storage
                .remove(&path)
                .map_err(SnapshotError::io("remove", &path))?;
            report.packs += 1;
        }
        if report.packs > 0 {
            storage
                .sync_directory(directory)
                .map_err(SnapshotError::io("sync", directory))?;
        }
        Ok(report)
    }
}
