//! `spacetime backup create`: asks for what the place does not have, and writes it; the manifest last.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use lightcone_backup::{
    log_name, newest_moment, objects_of, pack_name, snapshot_name, Decoder, FileEntry, Frame, Head,
    Item, LogEntry, Manifest, ObjectHash, Pack, PackEntry, Place, SnapshotEntry, SnapshotHead,
    FORMAT,
};
use lightcone_types::{Identity, Timestamp};

use super::lock::{Change, COMPLETE_WAIT_MAX};
use super::place::{PlaceOption, Store};
use crate::commands::{Common, Context};
use crate::error::Result;
use crate::http::{success_text, Client};
use crate::output::{remark, result};

/// A file is written when it has so many bytes.
const FILE_BYTES: usize = 16 << 20;
/// A request names at most so many hashes, which is what a server reads; objects behind them are sent again.
const HASHES_MAX: usize = 2 << 20;
/// How often it begins again when the server breaks off. What has come is not sent again.
const ATTEMPTS: u32 = 4;
const PAUSE: Duration = Duration::from_secs(1);

#[derive(Debug, clap::Args)]
pub struct Args {
    /// The name or identity of the database
    database: Option<String>,
    #[command(flatten)]
    place: PlaceOption,
    #[command(flatten)]
    common: Common,
}

pub async fn run(context: &mut Context, args: Args) -> Result<()> {
    let (client, identity, name) = args.common.reach(context, args.database).await?;
    let store = args.place.place.open()?;
    let manifests = store.readable_manifests().await?;
    let other = manifests
        .iter()
        .find(|manifest| manifest.database != identity.to_hex());
    if let Some(other) = other {
        bail!(
            "LC0890",
            "there are backups of the database {} in {}; every database needs a place of its own",
            other.database,
            store.shown("")
        );
    }
    let last = manifests.last();
    let (mut objects, is_whole) = known_objects(&store, last).await?;
    let mut attempt = 1;
    let made = loop {
        let creating = Creating {
            store: &store,
            last,
            is_whole,
            objects: &mut objects,
            added_bytes: 0,
            frames: Vec::new(),
            frame_bytes: 0,
            log: Vec::new(),
            needs: Vec::new(),
            pack: Vec::new(),
            packed: Vec::new(),
            head: None,
            place: Place::default(),
            epoch: None,
            snapshot: None,
        };
        match creating.run(&client, identity).await {
            Ok(manifest) => break manifest,
            Err(error) if error.may_be_tried_again && attempt < ATTEMPTS => {
                remark!("{}; trying again.", error.error);
                attempt += 1;
                tokio::time::sleep(PAUSE).await;
            }
            Err(error) => return Err(error.error),
        }
    };
    // So that it need not keep what is in it.
    let path = format!("/v1/database/{identity}/backup?end={}", made.end);
    let told = match client.send(client.put(&path)).await {
        Ok(response) => success_text(response).await.map(drop),
        Err(error) => Err(error),
    };
    if let Err(error) = told {
        remark!("warning: the backup is complete, and the server does not know it: {error}");
    }
    let offset = made.end.offset;
    if let (Some(why), true) = (&made.begins_because, last.is_some()) {
        remark!(
            "warning: this backup begins anew: {why}. Moments between the two cannot be restored."
        );
    }
    result!(
        "Backed up {name} as of {}: all before transaction {offset}, {} bytes added.",
        Timestamp(made.time).to_rfc3339(),
        made.added_bytes
    );
    Ok(())
}

/// Where objects of the last backup are.
type Known = HashMap<ObjectHash, (ObjectHash, PackEntry)>;

/// And whether all that the snapshot of the last backup needs is there. What is lost or cannot be read is sent again.
async fn known_objects(store: &Store, last: Option<&Manifest>) -> Result<(Known, bool)> {
    let mut known = Known::new();
    let Some(snapshot) = last.and_then(|manifest| manifest.snapshot.as_ref()) else {
        return Ok((known, false));
    };
    let name = snapshot_name(snapshot);
    let read = store.get_checked(&name, &snapshot.file).await;
    let packs = match read.map(|bytes| objects_of(&bytes)) {
        Ok(Ok((_, packs))) => packs,
        Ok(Err(why)) => {
            remark!("warning: {}", store.damaged(&name, why));
            return Ok((known, false));
        }
        Err(error) => {
            remark!("warning: {error}");
            return Ok((known, false));
        }
    };
    let there: HashSet<_> = store
        .list("objects")
        .await?
        .into_iter()
        .map(|file| file.name)
        .collect();
    let mut is_whole = true;
    for pack in packs {
        let name = pack_name(&pack.hash);
        if !there.contains(&name) {
            remark!("warning: {}", store.damaged(&name, "it is missing"));
            is_whole = false;
            continue;
        }
        let entries = pack.entries.iter();
        known.extend(entries.map(|entry| (entry.object, (pack.hash, *entry))));
    }
    Ok((known, is_whole))
}

/// Why it did not end.
struct Failed {
    error: crate::error::Error,
    may_be_tried_again: bool,
}

impl From<crate::error::Error> for Failed {
    fn from(error: crate::error::Error) -> Failed {
        Failed {
            error,
            may_be_tried_again: false,
        }
    }
}

/// The server broke off.
fn broken(why: impl std::fmt::Display) -> Failed {
    Failed {
        error: coded!("LC0891", "the server broke off the backup: {why}"),
        may_be_tried_again: true,
    }
}

/// One attempt.
struct Creating<'c> {
    store: &'c Store,
    last: Option<&'c Manifest>,
    /// All that its snapshot needs is there.
    is_whole: bool,
    /// With those that came in this or an earlier attempt, and were written.
    objects: &'c mut Known,
    added_bytes: u64,
    /// Of the next file of the log.
    frames: Vec<Frame>,
    frame_bytes: usize,
    log: Vec<LogEntry>,
    /// Names of files that the manifest needs.
    needs: Vec<String>,
    /// The next file of objects, and what is in it.
    pack: Vec<u8>,
    packed: Vec<PackEntry>,
    head: Option<Head>,
    /// Where the frames so far lead.
    place: Place,
    epoch: Option<u64>,
    snapshot: Option<SnapshotHead>,
}

impl Creating<'_> {
    async fn run(mut self, client: &Client, identity: Identity) -> Result<Manifest, Failed> {
        let mut path = format!("/v1/database/{identity}/backup?");
        if let Some(last) = self.last {
            path.push_str(&format!("from={}", last.end));
            if let Some(snapshot) = last.snapshot.as_ref().filter(|_| self.is_whole) {
                path.push_str(&format!("&snapshot={}", snapshot.offset));
            }
        }
        let hashes = self.objects.keys().take(HASHES_MAX);
        let body: Vec<u8> = hashes.flat_map(|hash| hash.0).collect();
        let mut response = client.send(client.post(&path).body(body)).await?;
        if !response.status().is_success() {
            success_text(response).await?;
            return Err(broken("it gave no backup"));
        }
        let mut decoder = Decoder::default();
        let end = loop {
            let part = response.chunk().await;
            let part = part.map_err(|error| broken(client.unreachable(error)))?;
            let Some(part) = part else {
                return Err(broken("the answer ends too early"));
            };
            decoder.push(&part);
            if let Some(end) = self.take(&mut decoder, identity).await? {
                break end;
            }
        };
        self.finish(end).await
    }

    /// Takes the items that have come whole. Returns the place of the last one, if that has come.
    async fn take(
        &mut self,
        decoder: &mut Decoder,
        identity: Identity,
    ) -> Result<Option<Place>, Failed> {
        while let Some(item) = decoder.next().map_err(malformed)? {
            match item {
                Item::Head(head) => {
                    if head.format != FORMAT || head.database != identity.to_hex() {
                        return Err(malformed("it is another database's, or has another format"));
                    }
                    self.place = head.from;
                    self.head = Some(head);
                }
                Item::Frame(frame) => self.frame(frame).await?,
                Item::Snapshot(snapshot) => self.snapshot = Some(snapshot),
                Item::Object(object) => self.object(&object).await?,
                Item::End(place) if place == self.place && self.head.is_some() => {
                    return Ok(Some(place));
                }
                Item::Failed(why) => return Err(broken(why)),
                Item::End(_) | Item::Pack(_) => {
                    return Err(malformed("its parts do not belong together"));
                }
            }
        }
        Ok(None)
    }

    async fn frame(&mut self, frame: Frame) -> Result<(), Failed> {
        self.place = self.place.behind(&frame).map_err(malformed)?;
        self.epoch = Some(frame.epoch.get());
        self.frame_bytes += frame.payload.len();
        self.frames.push(frame);
        if self.frame_bytes >= FILE_BYTES {
            self.write_log().await?;
        }
        Ok(())
    }

    async fn object(&mut self, object: &[u8]) -> Result<(), Failed> {
        let hash = ObjectHash::of(object);
        let start = self.pack.len();
        self.pack.extend_from_slice(object);
        self.packed.push(PackEntry {
            object: hash,
            position: start as u32,
            bytes: object.len() as u32,
        });
        if self.pack.len() >= FILE_BYTES {
            self.write_pack().await?;
        }
        Ok(())
    }

    async fn write_log(&mut self) -> Result<()> {
        let frames = std::mem::take(&mut self.frames);
        self.frame_bytes = 0;
        if frames.is_empty() {
            return Ok(());
        }
        let newest = newest_moment(&frames);
        let mut bytes = Vec::new();
        for frame in frames {
            Item::Frame(frame).encode(&mut bytes);
        }
        let from = self.log.last().map(|entry| entry.end);
        let head = self.head.as_ref().map(|head| head.from);
        let entry = LogEntry {
            from: from.or(head).unwrap_or_default(),
            end: self.place,
            newest,
            file: FileEntry::of(&bytes),
        };
        self.put(&log_name(&entry), bytes).await?;
        self.needs.push(log_name(&entry));
        self.log.push(entry);
        Ok(())
    }

    async fn write_pack(&mut self) -> Result<()> {
        let bytes = std::mem::take(&mut self.pack);
        let packed = std::mem::take(&mut self.packed);
        if packed.is_empty() {
            return Ok(());
        }
        let hash = ObjectHash::of(&bytes);
        self.put(&pack_name(&hash), bytes).await?;
        let entries = packed.into_iter();
        self.objects
            .extend(entries.map(|entry| (entry.object, (hash, entry))));
        Ok(())
    }

    async fn put(&mut self, name: &str, bytes: Vec<u8>) -> Result<()> {
        self.added_bytes += bytes.len() as u64;
        self.store.put(name, bytes).await
    }

    /// Writes what is left, and the manifest when all else is there.
    async fn finish(mut self, end: Place) -> Result<Manifest, Failed> {
        self.write_log().await?;
        self.write_pack().await?;
        let Some(head) = self.head.take() else {
            return Err(malformed("it has no head"));
        };
        let snapshot = match self.snapshot.take() {
            Some(snapshot) => Some(self.write_snapshot(snapshot).await?),
            // The one of the last backup is still the newest.
            None if head.begins_because.is_none() && self.is_whole => {
                self.last.and_then(|last| last.snapshot.clone())
            }
            None => None,
        };
        let manifest = Manifest {
            format: FORMAT,
            database: head.database,
            // Later than the last one's, whatever the server's clock says: the newest backup is found by its time.
            time: head.time.max(
                self.last
                    .map_or(i64::MIN, |last| last.time.saturating_add(1)),
            ),
            end,
            epoch: self.epoch,
            begins_because: head.begins_because,
            snapshot,
            log: self.log,
            added_bytes: self.added_bytes,
            checksum: String::new(),
        };
        let base = self.last.filter(|_| manifest.begins_because.is_none());
        self.needs.extend(base.map(Manifest::name));
        let complete = async {
            still_there(self.store, &self.needs).await?;
            self.store.put(&manifest.name(), manifest.encode()).await
        };
        let (store, wait_max) = (self.store, COMPLETE_WAIT_MAX);
        store.alone(Change::Complete, wait_max, complete).await?;
        Ok(manifest)
    }

    async fn write_snapshot(&mut self, snapshot: SnapshotHead) -> Result<SnapshotEntry, Failed> {
        let (offset, mut object_bytes) = (snapshot.offset.get(), 0);
        let mut packs: HashMap<ObjectHash, Vec<PackEntry>> = HashMap::new();
        for hash in &snapshot.objects {
            let Some((pack, entry)) = self.objects.get(hash) else {
                return Err(malformed("an object of its snapshot is missing"));
            };
            object_bytes += u64::from(entry.bytes);
            packs.entry(*pack).or_default().push(*entry);
        }
        let mut bytes = Item::Snapshot(snapshot).to_vec();
        let mut packs: Vec<Pack> = packs
            .into_iter()
            .map(|(hash, entries)| Pack { hash, entries })
            .collect();
        packs.sort_by_key(|pack| pack.hash);
        for pack in packs {
            self.needs.push(pack_name(&pack.hash));
            Item::Pack(pack).encode(&mut bytes);
        }
        let entry = SnapshotEntry {
            offset,
            file: FileEntry::of(&bytes),
            object_bytes,
        };
        self.put(&snapshot_name(&entry), bytes).await?;
        self.needs.push(snapshot_name(&entry));
        Ok(entry)
    }
}

/// Whatever another command has removed meanwhile.
async fn still_there(store: &Store, needs: &[String]) -> Result<()> {
    let there = store.list_all().await?.into_iter();
    let there: HashSet<_> = there.map(|file| file.name).collect();
    match needs.iter().find(|name| !there.contains(*name)) {
        None => Ok(()),
        Some(gone) => bail!(
            "LC0895",
            "{} was removed while this backup, which needs it, was made; make it again",
            store.shown(gone)
        ),
    }
}

fn malformed(found: impl Into<String>) -> Failed {
    let found = found.into();
    Failed {
        error: coded!("LC0616", "the server's answer is no backup: {found}"),
        may_be_tried_again: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_backup_is_not_completed_if_what_it_needs_was_removed() {
        let root = tempfile::tempdir().expect("a directory");
        let store = Store::Directory(root.path().to_owned());
        let needs = ["objects/a.pack", "log/b", "manifests/c.json"].map(str::to_owned);
        for name in &needs {
            let why = still_there(&store, &needs)
                .await
                .expect_err("it is missing");
            let why = why.to_string();
            assert!(
                why.contains(&store.shown(name)) && why.contains("[LC0895]"),
                "{why}"
            );
            store.put(name, Vec::new()).await.expect("written");
        }
        still_there(&store, &needs).await.expect("all is there");
    }
}
