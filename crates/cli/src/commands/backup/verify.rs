//! `spacetime backup verify`: reads everything again. What is damaged is told by file, and nothing is changed.

use std::collections::{HashMap, HashSet};

use lightcone_backup::{
    is_file_name, log_name, objects_of, pack_name, snapshot_name, Decoder, History, Item, LogEntry,
    Manifest, ObjectHash, Pack, SnapshotEntry,
};

use super::place::{PlaceOption, Store};
use crate::error::{Error, Result};
use crate::output::result;

/// That a backup cannot be brought back.
pub(super) const NOT_WHOLE: &str = "no snapshot and frames lead to its end: a manifest is missing";

#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    place: PlaceOption,
}

pub async fn run(args: Args) -> Result<()> {
    let store = args.place.place.open()?;
    let (manifests, wrong) = store.manifests().await?;
    if manifests.is_empty() && wrong.is_empty() {
        bail!("LC0889", "there are no backups in {}", store.shown(""));
    }
    let mut verifying = Verifying {
        store: &store,
        wrong,
        used: HashSet::new(),
    };
    verifying.files(&manifests).await?;
    verifying.histories(&manifests);
    let (leftovers, leftover_bytes) = verifying.leftovers().await?;
    let (files, wrong) = (verifying.used.len() + manifests.len(), verifying.wrong);
    for error in &wrong {
        result!("{error}");
    }
    if leftovers > 0 {
        result!("{leftovers} files with {leftover_bytes} bytes belong to no backup: one was interrupted. They do no harm.");
    }
    if !wrong.is_empty() {
        bail!(
            "LC0551",
            "{} of {files} files in {} are damaged or missing",
            wrong.len(),
            store.shown("")
        );
    }
    result!(
        "{} backups in {files} files are as they were written.",
        manifests.len()
    );
    Ok(())
}

struct Verifying<'v> {
    store: &'v Store,
    wrong: Vec<Error>,
    /// Names of files that backups need.
    used: HashSet<String>,
}

impl Verifying<'_> {
    /// Every file once.
    async fn files(&mut self, manifests: &[Manifest]) -> Result<()> {
        let mut packs: HashMap<ObjectHash, Vec<Pack>> = HashMap::new();
        for manifest in manifests {
            for entry in &manifest.log {
                if self.used.insert(log_name(entry)) {
                    let checked = self.log(entry).await;
                    self.note(checked);
                }
            }
            let Some(entry) = &manifest.snapshot else {
                continue;
            };
            if self.used.insert(snapshot_name(entry)) {
                match self.snapshot(entry).await {
                    Ok(found) => {
                        for pack in found {
                            packs.entry(pack.hash).or_default().push(pack);
                        }
                    }
                    Err(error) => self.wrong.push(error),
                }
            }
        }
        for (hash, lists) in packs {
            self.used.insert(pack_name(&hash));
            let checked = self.pack(&hash, &lists).await;
            self.note(checked);
        }
        Ok(())
    }

    fn note(&mut self, checked: Result<()>) {
        self.wrong.extend(checked.err());
    }

    /// The frames lead from the beginning of the file to its end.
    async fn log(&self, entry: &LogEntry) -> Result<()> {
        let name = log_name(entry);
        let bytes = self.store.get_checked(&name, &entry.file).await?;
        let mut place = entry.from;
        let mut check = || {
            for item in Decoder::all(&bytes)? {
                let Item::Frame(frame) = item else {
                    return Err("there is something else than frames in it".to_owned());
                };
                place = place.behind(&frame)?;
            }
            match place == entry.end {
                true => Ok(()),
                false => Err(format!(
                    "its frames lead to {place} instead of {}",
                    entry.end
                )),
            }
        };
        check().map_err(|found| self.store.damaged(&name, found))
    }

    async fn snapshot(&self, entry: &SnapshotEntry) -> Result<Vec<Pack>> {
        let name = snapshot_name(entry);
        let bytes = self.store.get_checked(&name, &entry.file).await?;
        let (head, packs) = objects_of(&bytes).map_err(|found| self.store.damaged(&name, found))?;
        match head.offset.get() == entry.offset {
            true => Ok(packs),
            false => {
                let found = format!("it is the snapshot at transaction {}", head.offset);
                Err(self.store.damaged(&name, found))
            }
        }
    }

    /// The pack is what its name says, and has the objects where snapshots say.
    async fn pack(&self, hash: &ObjectHash, lists: &[Pack]) -> Result<()> {
        let name = pack_name(hash);
        let bytes = self.store.get_needed(&name).await?;
        let found = ObjectHash::of(&bytes);
        if found != *hash {
            let found = format!("its bytes have changed: their blake3 hash is {found}");
            return Err(self.store.damaged(&name, found));
        }
        let entries = lists.iter().flat_map(|pack| &pack.entries);
        for entry in entries {
            super::restore::object_in(&bytes, entry)
                .map_err(|found| self.store.damaged(&name, found))?;
        }
        Ok(())
    }

    /// Every backup can be brought back.
    fn histories(&mut self, manifests: &[Manifest]) {
        for history in History::all(manifests) {
            let newest = history.newest;
            if history.plan(newest.end.offset).is_none() {
                self.wrong
                    .push(self.store.damaged(&newest.name(), NOT_WHOLE));
            }
        }
    }

    async fn leftovers(&self) -> Result<(usize, u64)> {
        let (mut count, mut bytes) = (0, 0);
        for directory in ["objects", "snapshots", "log"] {
            for file in self.store.list(directory).await? {
                if is_file_name(&file.name) && !self.used.contains(&file.name) {
                    count += 1;
                    bytes += file.bytes;
                }
            }
        }
        Ok((count, bytes))
    }
}
