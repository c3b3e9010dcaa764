//! `spacetime backup prune`: removes old backups, and then the files that no other one needs. Whenever it is killed, the backups that
//! are there are whole.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use clap::ArgGroup;
use lightcone_backup::{
    is_file_name, log_name, objects_of, pack_name, snapshot_name, History, Manifest, SnapshotEntry,
};
use lightcone_types::Timestamp;

use super::lock::{Change, REMOVE_WAIT_MAX};
use super::place::{Found, PlaceOption, Store};
use super::verify::NOT_WHOLE;
use crate::error::Result;
use crate::output::result;

/// A backup that was made so much later than now shows that a clock is wrong, or that it is not of this place.
const CLOCK_DIFFERENCE_MAX_US: i64 = 24 * 60 * 60 * 1_000_000;

#[derive(Debug, clap::Args)]
#[command(group(ArgGroup::new("kept").required(true).multiple(true)))]
pub struct Args {
    #[command(flatten)]
    place: PlaceOption,
    /// Keep so many backups, the newest ones
    #[arg(long, value_name = "NUMBER", group = "kept")]
    keep_last: Option<usize>,
    /// Keep what brings back every moment of so long a time, like 30d
    #[arg(long, value_name = "DURATION", group = "kept", value_parser = humantime::parse_duration)]
    keep_for: Option<Duration>,
    /// Keep at most so many bytes, and in any case the newest backup
    #[arg(long, value_name = "BYTES", group = "kept")]
    bytes_max: Option<u64>,
    /// Remove only files that are older: a backup that is being made may have written younger ones
    #[arg(long, value_name = "DURATION", default_value = "1d", value_parser = humantime::parse_duration)]
    files_older_than: Duration,
    /// Say what would go, and remove nothing
    #[arg(long)]
    dry_run: bool,
}

pub async fn run(args: Args) -> Result<()> {
    let store = args.place.place.clone().open()?;
    let work = prune(&store, &args, Timestamp::now().micros());
    let pruned = match args.dry_run {
        true => work.await?,
        false => store.alone(Change::Remove, REMOVE_WAIT_MAX, work).await?,
    };
    result!(
        "{} {} backups, and {} files with {} bytes that no other backup needs. {} backups stay.",
        if args.dry_run {
            "Would remove"
        } else {
            "Removed"
        },
        pruned.backups,
        pruned.files.len(),
        bytes_of(&pruned.files),
        pruned.kept
    );
    if !pruned.young.is_empty() {
        result!(
            "{} files with {} bytes belong to no backup and stay for now, as they are younger than {}: they may be of a backup that is being made.",
            pruned.young.len(),
            bytes_of(&pruned.young),
            humantime::format_duration(args.files_older_than)
        );
    }
    Ok(())
}

fn bytes_of(files: &[Found]) -> u64 {
    files.iter().map(|file| file.bytes).sum()
}

struct Pruned {
    backups: usize,
    kept: usize,
    files: Vec<Found>,
    /// Files that no backup needs, and that are too young to go.
    young: Vec<Found>,
}

async fn prune(store: &Store, args: &Args, now_us: i64) -> Result<Pruned> {
    let mut needs = Needs::of(store);
    let manifests = all_manifests(store).await?;
    check(store, &manifests, now_us)?;
    let histories = History::all(&manifests);
    let mut files = all_files(store).await?;
    let count = needs.kept(&histories, &files, args, now_us).await?;
    let (kept, gone) = histories.split_at(count);
    let changed = made_whole(kept);
    // What cannot be read stops it here, before anything has gone.
    let left = with_changes(kept, &changed);
    let left = History::all(&left);
    let mut used = needs.of_all(&left).await?;
    if let Some(broken) = kept
        .iter()
        .zip(&left)
        .find(|(before, after)| is_whole(before) && !is_whole(after))
    {
        let found = "it needs an older backup that would be removed";
        return Err(store.damaged(&broken.0.newest.name(), found));
    }
    if !is_whole(&kept[0]) {
        return Err(store.damaged(&kept[0].newest.name(), NOT_WHOLE));
    }
    let there: HashSet<_> = files.iter().map(|file| file.name.as_str()).collect();
    if let Some(missing) = used.iter().find(|name| !there.contains(name.as_str())) {
        return Err(store.damaged(missing, "it is missing"));
    }
    if !args.dry_run {
        for step in steps(&changed, gone) {
            step.carry_out(store).await?;
        }
        // Backups that were made meanwhile need their files too.
        let manifests = all_manifests(store).await?;
        used.extend(needs.of_all(&History::all(&manifests)).await?);
        files = all_files(store).await?;
    }
    files.retain(|file| !used.contains(&file.name));
    // A file from the future is young.
    let is_old = |file: &Found| {
        let age = file.modified.elapsed().unwrap_or_default();
        age >= args.files_older_than
    };
    let (files, young): (Vec<_>, Vec<_>) = files.into_iter().partition(is_old);
    if !args.dry_run {
        let names: Vec<_> = files.iter().map(|file| file.name.clone()).collect();
        store.remove(&names).await?;
    }
    Ok(Pruned {
        backups: gone.len(),
        kept: count,
        files,
        young,
    })
}

/// They are backups of one database, made until now.
fn check(store: &Store, manifests: &[Manifest], now_us: i64) -> Result<()> {
    let Some(first) = manifests.first() else {
        bail!("LC0889", "there are no backups in {}", store.shown(""));
    };
    for manifest in manifests {
        if manifest.database != first.database {
            bail!(
                "LC0890",
                "there are backups of the databases {} and {} in {}; every database needs a place of its own",
                first.database,
                manifest.database,
                store.shown("")
            );
        }
        if manifest.time > now_us.saturating_add(CLOCK_DIFFERENCE_MAX_US) {
            let found = "it is of the future: see to the clocks, or remove it";
            return Err(store.damaged(&manifest.name(), found));
        }
    }
    Ok(())
}

/// All of them, or none: what a manifest needs that cannot be read is not known.
async fn all_manifests(store: &Store) -> Result<Vec<Manifest>> {
    let (manifests, wrong) = store.manifests().await?;
    match wrong.into_iter().next() {
        Some(error) => Err(error),
        None => Ok(manifests),
    }
}

/// All files that backups have written but the manifests. Others may be in these directories, as `/var` is a place too.
async fn all_files(store: &Store) -> Result<Vec<Found>> {
    let mut files = store.list_all().await?;
    files.retain(|file| is_file_name(&file.name) && !file.name.ends_with(".json"));
    Ok(files)
}

fn is_whole(history: &History<'_>) -> bool {
    history.plan(history.newest.end.offset).is_some()
}

/// Of the manifests that are kept, those that go on from one that is not: with all that leads to their ends.
fn made_whole(kept: &[History<'_>]) -> Vec<Manifest> {
    let (mut logs, mut snapshots) = (HashSet::new(), HashSet::new());
    let mut changed = Vec::new();
    // Those behind the oldest one find in it what it gets.
    for history in kept.iter().rev() {
        let newest = history.newest;
        logs.extend(newest.log.iter().map(|entry| (entry.from, entry.end)));
        snapshots.extend(newest.snapshot.as_ref().map(snapshot_name));
        let Some(plan) = history.plan(newest.end.offset) else {
            continue;
        };
        let places = plan.log.iter().map(|entry| (entry.from, entry.end));
        let lacks_log = places.clone().any(|place| !logs.contains(&place));
        let name = plan.snapshot.map(snapshot_name);
        let lacks_snapshot = name.as_ref().is_some_and(|name| !snapshots.contains(name));
        if !lacks_log && !lacks_snapshot {
            continue;
        }
        let mut manifest = newest.clone();
        if lacks_log {
            logs.extend(places);
            manifest.log = plan.log.iter().copied().cloned().collect();
        }
        if let (Some(entry), Some(name)) = (plan.snapshot, name) {
            snapshots.insert(name);
            manifest.snapshot = Some(entry.clone());
        }
        changed.push(manifest);
    }
    changed
}

/// The manifests that are kept, as they will be.
fn with_changes(kept: &[History<'_>], changed: &[Manifest]) -> Vec<Manifest> {
    let as_it_will_be = |history: &History<'_>| {
        let mut changed = changed.iter();
        let changed = changed.find(|manifest| manifest.name() == history.newest.name());
        changed.unwrap_or(history.newest).clone()
    };
    kept.iter().map(as_it_will_be).collect()
}

enum Step {
    Write(Manifest),
    Remove(String),
}

/// First those that stay get what they need. Then the others go, the newest first, so that each that is left has all that it goes on from.
fn steps(changed: &[Manifest], gone: &[History<'_>]) -> Vec<Step> {
    let writes = changed.iter().cloned().map(Step::Write);
    let removals = gone.iter().map(|history| history.newest.name());
    writes.chain(removals.map(Step::Remove)).collect()
}

impl Step {
    async fn carry_out(self, store: &Store) -> Result<()> {
        match self {
            Step::Write(manifest) => store.put(&manifest.name(), manifest.encode()).await,
            Step::Remove(name) => store.remove(&[name]).await,
        }
    }
}

/// Which files backups need.
struct Needs<'s> {
    store: &'s Store,
    /// Names of packs, by the name of the snapshot that needs them.
    packs: HashMap<String, Vec<String>>,
}

impl<'s> Needs<'s> {
    fn of(store: &'s Store) -> Needs<'s> {
        let packs = HashMap::new();
        Needs { store, packs }
    }

    /// How many of these are kept, the newest first.
    async fn kept(
        &mut self,
        histories: &[History<'_>],
        files: &[Found],
        args: &Args,
        now_us: i64,
    ) -> Result<usize> {
        let sizes: HashMap<_, _> = files.iter().map(|f| (f.name.as_str(), f.bytes)).collect();
        let keep_for_us = args.keep_for.map(|time| time.as_micros());
        let keep_for_us = keep_for_us.map(|time| i64::try_from(time).unwrap_or(i64::MAX));
        let since = keep_for_us.map(|time| now_us.saturating_sub(time));
        let has_no_wish = args.keep_last.is_none() && since.is_none();
        let (mut used, mut bytes) = (HashSet::new(), 0);
        for (number, history) in histories.iter().enumerate() {
            // The last one before that time is what the first moments begin with.
            let later = number.checked_sub(1).map(|one| histories[one].newest.time);
            let is_wanted = args.keep_last.is_some_and(|count| number < count)
                || since.is_some_and(|since| later.is_some_and(|later| later > since));
            if number > 0 && !is_wanted && !has_no_wish {
                return Ok(number);
            }
            let Some(bytes_max) = args.bytes_max else {
                continue;
            };
            for name in self.of_history(history).await? {
                let size = sizes.get(name.as_str()).copied();
                if used.insert(name) {
                    bytes += size.unwrap_or_default();
                }
            }
            if number > 0 && bytes > bytes_max {
                return Ok(number);
            }
        }
        Ok(histories.len())
    }

    async fn of_all(&mut self, histories: &[History<'_>]) -> Result<HashSet<String>> {
        let mut used = HashSet::new();
        for history in histories {
            used.extend(self.of_history(history).await?);
        }
        Ok(used)
    }

    /// What a backup brought, and what brings back its end.
    async fn of_history(&mut self, history: &History<'_>) -> Result<Vec<String>> {
        let newest = history.newest;
        let plan = history.plan(newest.end.offset);
        let planned = plan.iter().flat_map(|plan| plan.log.iter().copied());
        let mut names: Vec<String> = newest.log.iter().chain(planned).map(log_name).collect();
        let planned = plan.iter().filter_map(|plan| plan.snapshot);
        for entry in newest.snapshot.iter().chain(planned) {
            names.extend(self.of_snapshot(entry).await?);
        }
        Ok(names)
    }

    async fn of_snapshot(&mut self, entry: &SnapshotEntry) -> Result<Vec<String>> {
        let name = snapshot_name(entry);
        let packs = match self.packs.get(&name) {
            Some(packs) => packs.clone(),
            None => {
                let bytes = self.store.get_checked(&name, &entry.file).await?;
                let packs = objects_of(&bytes)
                    .map_err(|why| self.store.damaged(&name, why))?
                    .1;
                let packs: Vec<_> = packs.iter().map(|pack| pack_name(&pack.hash)).collect();
                self.packs.insert(name.clone(), packs.clone());
                packs
            }
        };
        Ok(packs.into_iter().chain([name]).collect())
    }
}

#[cfg(test)]
mod tests {
    use lightcone_backup::{
        FileEntry, Item, LogEntry, ObjectHash, Pack, PackEntry, Place, SnapshotHead, FORMAT,
    };
    use lightcone_log::{LogHash, LogOffset};

    use super::*;
    use crate::commands::backup::place::BackupPlace;

    const BACKUPS: u64 = 8;
    const FOREIGN: [&str; 3] = ["log/app.log", "objects/readme.part", "manifests/.part"];

    /// The first `number` backups have all before this.
    fn end(number: u64) -> Place {
        Place {
            offset: LogOffset::new(number * 10),
            hash: LogHash::from_le_bytes([number as u8; 16]),
        }
    }

    async fn snapshot(store: &Store, offset: u64) -> SnapshotEntry {
        let object = vec![offset as u8; 100];
        let hash = ObjectHash::of(&object);
        let mut bytes = Item::Snapshot(SnapshotHead {
            offset: LogOffset::new(offset),
            objects: vec![hash],
            engine: Vec::new(),
        })
        .to_vec();
        let entry = PackEntry {
            object: hash,
            position: 0,
            bytes: 100,
        };
        let entries = vec![entry];
        Item::Pack(Pack { hash, entries }).encode(&mut bytes);
        let entry = SnapshotEntry {
            offset,
            file: FileEntry::of(&bytes),
            object_bytes: 100,
        };
        let put = store.put(&pack_name(&hash), object).await;
        put.expect("written");
        let put = store.put(&snapshot_name(&entry), bytes).await;
        put.expect("written");
        entry
    }

    /// Backup n was made at second n, and has the transactions from 10 (n - 1) to 10 n. Snapshots are inside of what an earlier one has:
    /// that at 25 is in backups 4 to 6, that at 55 in those behind them.
    async fn backups(directory: &std::path::Path) -> Store {
        let store = Store::Directory(directory.to_owned());
        let (old, new) = (snapshot(&store, 25).await, snapshot(&store, 55).await);
        for number in 1..=BACKUPS {
            let frames = vec![number as u8; 10];
            let log = LogEntry {
                from: match number {
                    1 => Place::default(),
                    _ => end(number - 1),
                },
                end: end(number),
                newest: None,
                file: FileEntry::of(&frames),
            };
            store.put(&log_name(&log), frames).await.expect("written");
            let manifest = Manifest {
                format: FORMAT,
                database: "00".repeat(32),
                time: number as i64 * 1_000_000,
                end: end(number),
                epoch: Some(1),
                begins_because: None,
                snapshot: match number {
                    1..=3 => None,
                    4..=6 => Some(old.clone()),
                    _ => Some(new.clone()),
                },
                log: vec![log],
                added_bytes: 10,
                checksum: String::new(),
            };
            let put = store.put(&manifest.name(), manifest.encode()).await;
            put.expect("written");
        }
        // An interrupted backup.
        let leftover = format!("objects/{}.pack", "5a".repeat(32));
        let put = store.put(&leftover, vec![0; 7]).await;
        put.expect("written");
        // And files of other programs.
        for name in FOREIGN {
            store.put(name, vec![0; 7]).await.expect("written");
        }
        store
    }

    fn keep(keep_last: Option<usize>, keep_for_s: Option<u64>, bytes_max: Option<u64>) -> Args {
        Args {
            place: PlaceOption {
                place: BackupPlace::Directory("".into()),
            },
            keep_last,
            keep_for: keep_for_s.map(Duration::from_secs),
            bytes_max,
            files_older_than: Duration::ZERO,
            dry_run: false,
        }
    }

    /// Of the newest backup.
    const NOW_US: i64 = BACKUPS as i64 * 1_000_000;

    /// Each backup is whole, and has its files. The numbers of the backups, and of the files.
    async fn looked_at(store: &Store) -> (Vec<u64>, usize) {
        let manifests = all_manifests(store).await.expect("all can be read");
        let files = all_files(store).await.expect("a list");
        let names: HashSet<_> = files.iter().map(|file| file.name.clone()).collect();
        let mut numbers = Vec::new();
        for history in History::all(&manifests) {
            assert!(is_whole(&history), "{:?}", history.newest);
            let needs = Needs::of(store).of_history(&history).await;
            for name in needs.expect("the snapshots are there") {
                assert!(names.contains(&name), "{name}");
            }
            numbers.push(history.newest.end.offset.get() / 10);
        }
        (numbers, files.len())
    }

    #[tokio::test]
    async fn what_is_kept_is_whole() {
        // What is wanted, the oldest backup that stays, and how many files do.
        let cases = [
            (keep(Some(2), None, None), 7, 2 + 3),
            (keep(Some(0), None, None), 8, 2 + 3),
            (keep(Some(5), None, None), 4, 4 + 6),
            (keep(Some(100), None, None), 1, 4 + 8),
            // From second 5 on: the state then is the end of backup 5.
            (keep(None, Some(3), None), 5, 4 + 6),
            (keep(None, Some(2), None), 6, 4 + 6),
            (keep(Some(4), Some(1), None), 5, 4 + 6),
            (keep(None, None, Some(1_000_000)), 1, 4 + 8),
            (keep(None, None, Some(1)), 8, 2 + 3),
            (keep(Some(4), None, Some(400)), 7, 2 + 3),
        ];
        for (args, oldest, files) in cases {
            let root = tempfile::tempdir().expect("a directory");
            let store = backups(root.path()).await;
            let tried = Args {
                dry_run: true,
                ..keep(args.keep_last, None, args.bytes_max)
            };
            let tried = Args {
                keep_for: args.keep_for,
                ..tried
            };
            let tried = prune(&store, &tried, NOW_US).await.expect("tried");
            assert_eq!(looked_at(&store).await.0.len(), BACKUPS as usize);
            let pruned = prune(&store, &args, NOW_US).await.expect("pruned");
            assert_eq!(tried.files, pruned.files);
            let expected: Vec<u64> = (oldest..=BACKUPS).rev().collect();
            assert_eq!(looked_at(&store).await, (expected, files), "{args:?}");
            assert_eq!(pruned.kept + pruned.backups, BACKUPS as usize);
            for name in FOREIGN {
                assert!(root.path().join(name).exists(), "{name}");
            }
            assert!(pruned.young.is_empty());
        }
    }

    #[tokio::test]
    async fn wherever_it_ends_what_is_there_is_whole() {
        for keep_last in [1, 2, 4] {
            for done in 0.. {
                let root = tempfile::tempdir().expect("a directory");
                let store = backups(root.path()).await;
                let manifests = all_manifests(&store).await.expect("manifests");
                let histories = History::all(&manifests);
                let (kept, gone) = histories.split_at(keep_last);
                let steps = steps(&made_whole(kept), gone);
                let is_over = done == steps.len();
                for step in steps.into_iter().take(done) {
                    step.carry_out(&store).await.expect("done");
                }
                let (numbers, _) = looked_at(&store).await;
                assert!(numbers.len() >= keep_last, "{numbers:?}");
                // The next one takes the rest.
                let args = keep(Some(keep_last), None, None);
                prune(&store, &args, NOW_US).await.expect("pruned");
                let (numbers, files) = looked_at(&store).await;
                assert_eq!(numbers.len(), keep_last);
                let again = prune(&store, &args, NOW_US).await.expect("pruned");
                assert!(again.files.is_empty());
                assert_eq!(looked_at(&store).await.1, files);
                if is_over {
                    break;
                }
            }
        }
    }

    #[tokio::test]
    async fn young_files_stay_and_nothing_goes_where_something_cannot_be_read() {
        let root = tempfile::tempdir().expect("a directory");
        let store = backups(root.path()).await;
        let args = Args {
            files_older_than: Duration::from_secs(3600),
            ..keep(Some(2), None, None)
        };
        let pruned = prune(&store, &args, NOW_US).await.expect("pruned");
        assert_eq!((pruned.backups, pruned.files.len()), (6, 0));
        assert_eq!(looked_at(&store).await, (vec![8, 7], 4 + 8 + 1));

        let store = backups(root.path()).await;
        for directory in ["snapshots", "manifests"] {
            let file = store.list(directory).await.expect("a list").pop();
            let name = file.expect("a file").name;
            let whole = store.get_needed(&name).await.expect("a file");
            store.put(&name, vec![1, 2, 3]).await.expect("written");
            let before = all_files(&store).await.expect("a list");
            let args = keep(Some(1), None, None);
            assert!(prune(&store, &args, NOW_US).await.is_err(), "{name}");
            assert_eq!(all_files(&store).await.expect("a list"), before);
            store.put(&name, whole).await.expect("written");
        }
    }

    #[tokio::test]
    async fn nothing_goes_while_what_stays_is_not_whole() {
        let root = tempfile::tempdir().expect("a directory");
        let store = backups(root.path()).await;
        let manifests = all_manifests(&store).await.expect("manifests");
        let newest = manifests.last().expect("a manifest");
        // What stays needs a file that is not there.
        for directory in ["objects", "log"] {
            let needs = Needs::of(&store)
                .of_all(&History::all(&manifests)[..1])
                .await;
            let needs = needs.expect("the snapshots are there");
            let mut needs = needs.iter();
            let name = needs.find(|name| name.starts_with(directory));
            let name = name.expect("a file");
            let whole = store.get_needed(name).await.expect("a file");
            refuses(&store, std::slice::from_ref(name), "it is missing").await;
            store.put(name, whole).await.expect("written");
        }
        // The newest one goes on from a backup that is not there.
        let lost = Manifest {
            time: newest.time + 1,
            end: end(BACKUPS + 2),
            snapshot: None,
            log: Vec::new(),
            ..newest.clone()
        };
        let future = Manifest {
            time: newest.time + 2 * CLOCK_DIFFERENCE_MAX_US,
            ..newest.clone()
        };
        let other = Manifest {
            database: "11".repeat(32),
            time: newest.time + 1,
            ..newest.clone()
        };
        for (manifest, why) in [
            (lost, NOT_WHOLE),
            (future, "of the future"),
            (other, "[LC0890]"),
        ] {
            let put = store.put(&manifest.name(), manifest.encode()).await;
            put.expect("written");
            refuses(&store, &[], why).await;
            let removed = store.remove(&[manifest.name()]).await;
            removed.expect("removed");
        }
        let pruned = prune(&store, &keep(Some(1), None, None), NOW_US).await;
        assert_eq!(pruned.expect("pruned").kept, 1);
    }

    /// Without these files, nothing else goes.
    async fn refuses(store: &Store, without: &[String], why: &str) {
        store.remove(without).await.expect("removed");
        let before = all_files(store).await.expect("a list");
        let pruned = prune(store, &keep(Some(1), None, None), NOW_US).await;
        let said = pruned.err().expect("it is refused").to_string();
        assert!(said.contains(why), "{said}");
        assert_eq!(all_files(store).await.expect("a list"), before);
        let manifests = all_manifests(store).await.expect("manifests").len();
        assert!(manifests >= BACKUPS as usize, "{manifests}");
    }
}
