//! `spacetime backup restore`: finds what brings a place back, checks it, and sends it to a server.

use bytes::Bytes;
use futures_util::stream;
use lightcone_backup::{
    log_name, moment_in, objects_of, pack_name, snapshot_name, Decoder, Frame, Head, History, Item,
    LogEntry, ObjectHash, PackEntry, Place, Plan, FORMAT,
};
use lightcone_log::LogOffset;
use lightcone_types::{AsOf, Timestamp};
use tokio::sync::mpsc;

use super::place::{PlaceOption, Store};
use crate::commands::{Auth, Context};
use crate::error::{Error, Result};
use crate::http::{encode, parse_json, success_text};
use crate::output::result;

/// Items are sent when they have so many bytes.
const PART_BYTES: usize = 1 << 20;
/// So many parts wait for the server.
const PARTS_WAITING: usize = 4;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// The name of the new database
    name: String,
    #[command(flatten)]
    place: PlaceOption,
    /// The state before the transaction with this number, or at this moment, like 2026-11-22T10:00:00Z; else that of the newest backup
    #[arg(long, value_name = "OFFSET|TIME")]
    to: Option<AsOf>,
    /// The nickname, host name or URL of the server
    #[arg(short, long, value_name = "SERVER")]
    server: Option<String>,
    /// Ask nothing: answer yes to every question, and log in with the target server if need be
    #[arg(short, long)]
    yes: bool,
}

pub async fn run(context: &mut Context, args: Args) -> Result<()> {
    let store = args.place.place.open()?;
    let manifests = store.readable_manifests().await?;
    let histories = History::all(&manifests);
    let plan = find(&store, &histories, args.to).await?;
    let (end, origin) = (plan.end, manifests[0].database.clone());
    let auth = Auth::new(false, args.yes);
    let client = context.client(args.server.as_deref(), auth).await?;
    let (parts, waiting) = mpsc::channel(PARTS_WAITING);
    let body = stream::unfold(waiting, |mut waiting: mpsc::Receiver<_>| async {
        let part: Result<Bytes, std::io::Error> = waiting.recv().await?;
        Some((part, waiting))
    });
    let path = format!("/v1/database/{}/restore", encode(&args.name));
    let request = client.post(&path).body(reqwest::Body::wrap_stream(body));
    let sending = async {
        let mut sending = Sending {
            store: &store,
            parts,
            out: Vec::new(),
        };
        let sent = sending.send(&plan, &origin).await;
        if let Err(Stopped::Failed(_)) = &sent {
            // So that the server takes what it has for nothing whole.
            let failed = std::io::Error::other("the backup cannot be read");
            let _ = sending.parts.send(Err(failed)).await;
        }
        sent
    };
    let (sent, response) = tokio::join!(sending, client.send(request));
    if let Err(Stopped::Failed(error)) = sent {
        return Err(error);
    }
    let answer = parse_json(&success_text(response?).await?)?;
    let identity = answer["Success"]["database_identity"].as_str();
    result!(
        "Restored {} as of transaction {end}, with identity {}.",
        args.name,
        identity.unwrap_or("?")
    );
    Ok(())
}

/// What leads to the wanted place, in the newest backup that has it.
async fn find<'m>(store: &Store, histories: &[History<'m>], to: Option<AsOf>) -> Result<Plan<'m>> {
    let Some(newest) = histories.first() else {
        bail!("LC0889", "there are no backups in {}", store.shown(""));
    };
    for history in histories {
        let offset = match to {
            None => Some(history.newest.end.offset),
            Some(AsOf::Offset(offset)) => Some(LogOffset::new(offset)),
            Some(AsOf::Moment(moment)) => at_moment(store, history, moment.micros()).await?,
        };
        if let Some(plan) = offset.and_then(|offset| history.plan(offset)) {
            return Ok(plan);
        }
    }
    let newest = newest.newest;
    let oldest = histories.iter().filter_map(History::oldest).min();
    bail!(
        "LC0889",
        "no backup in {} leads there: they reach from transaction {} to transaction {} at {}, and may have gaps. \
         `spacetime backup list` shows them",
        store.shown(""),
        oldest.map_or("?".to_owned(), |offset| offset.to_string()),
        newest.end.offset,
        Timestamp(newest.time).to_rfc3339()
    )
}

/// The first transaction after a moment. None if the history says nothing of that moment.
async fn at_moment(store: &Store, history: &History<'_>, moment: i64) -> Result<Option<LogOffset>> {
    let Some(entry) = history.file_after(moment) else {
        // Nothing was committed between the last transaction and the backup.
        let has_earlier = history.log.iter().any(|entry| entry.newest.is_some());
        let is_known =
            moment <= history.newest.time && (has_earlier || history.is_known_at(moment));
        return Ok(is_known.then_some(history.newest.end.offset));
    };
    let frames = frames_of(store, entry).await?;
    let found = moment_in(&frames, moment);
    // What was before the first transaction of a history is known only from a backup that ended there.
    let is_known = history.log.first() != Some(&entry) || history.is_known_at(moment);
    Ok(found.filter(|offset| is_known || *offset != entry.from.offset))
}

/// The frames of a file, verified.
async fn frames_of(store: &Store, entry: &LogEntry) -> Result<Vec<Frame>> {
    let name = log_name(entry);
    let bytes = store.get_checked(&name, &entry.file).await?;
    let items = Decoder::all(&bytes).map_err(|found| store.damaged(&name, found))?;
    let mut place = entry.from;
    let mut frames = Vec::with_capacity(items.len());
    for item in items {
        let Item::Frame(frame) = item else {
            return Err(store.damaged(&name, "there is something else than frames in it"));
        };
        let behind = place.behind(&frame);
        place = behind.map_err(|found| store.damaged(&name, found))?;
        frames.push(frame);
    }
    match place == entry.end {
        true => Ok(frames),
        false => Err(store.damaged(
            &name,
            "its frames lead to another place than its manifest says",
        )),
    }
}

/// An object in its pack, verified.
pub(super) fn object_in<'p>(pack: &'p [u8], entry: &PackEntry) -> Result<&'p [u8], String> {
    let start = entry.position as usize;
    let object = start
        .checked_add(entry.bytes as usize)
        .and_then(|end| pack.get(start..end));
    let object = object.ok_or_else(|| format!("it ends inside of object {}", entry.object))?;
    match ObjectHash::of(object) == entry.object {
        true => Ok(object),
        false => Err(format!(
            "what is at byte {start} is not object {}",
            entry.object
        )),
    }
}

/// Why nothing more is sent.
enum Stopped {
    Failed(Error),
    /// The server has answered, and its answer says why.
    Answered,
}

impl From<Error> for Stopped {
    fn from(error: Error) -> Stopped {
        Stopped::Failed(error)
    }
}

struct Sending<'s> {
    store: &'s Store,
    parts: mpsc::Sender<Result<Bytes, std::io::Error>>,
    out: Vec<u8>,
}

impl Sending<'_> {
    async fn send(&mut self, plan: &Plan<'_>, database: &str) -> Result<(), Stopped> {
        let start = plan.snapshot.map_or(0, |snapshot| snapshot.offset);
        let start = LogOffset::new(start);
        // Frames before the snapshot are left out, so the first file says where they begin.
        let mut from = None;
        let mut frames = Vec::new();
        if let Some(first) = plan.log.first() {
            let mut place = first.from;
            for frame in frames_of(self.store, first).await? {
                if frame.end() > start {
                    from = from.or(Some(place));
                    frames.push(frame);
                } else {
                    place = Place {
                        offset: frame.end(),
                        hash: frame.hash,
                    };
                }
            }
        }
        let mut place = from.unwrap_or_default();
        self.item(Item::Head(Head {
            format: FORMAT,
            database: database.to_owned(),
            time: Timestamp::now().micros(),
            from: place,
            end: plan.end.get(),
            begins_because: None,
        }))
        .await?;
        self.snapshot(plan).await?;
        for entry in plan.log.iter().skip(1).copied().map(Some).chain([None]) {
            for frame in frames.drain(..) {
                if frame.first_offset < plan.end {
                    place = Place {
                        offset: frame.end(),
                        hash: frame.hash,
                    };
                    self.item(Item::Frame(frame)).await?;
                }
            }
            if let Some(entry) = entry {
                frames = frames_of(self.store, entry).await?;
            }
        }
        self.item(Item::End(place)).await?;
        self.flush().await
    }

    async fn snapshot(&mut self, plan: &Plan<'_>) -> Result<(), Stopped> {
        let Some(entry) = plan.snapshot else {
            return Ok(());
        };
        let name = snapshot_name(entry);
        let bytes = self.store.get_checked(&name, &entry.file).await?;
        let (head, packs) = objects_of(&bytes).map_err(|found| self.store.damaged(&name, found))?;
        self.item(Item::Snapshot(head)).await?;
        for pack in packs {
            let name = pack_name(&pack.hash);
            let bytes = self.store.get_needed(&name).await?;
            for entry in &pack.entries {
                let object =
                    object_in(&bytes, entry).map_err(|found| self.store.damaged(&name, found))?;
                self.item(Item::Object(object.to_vec())).await?;
            }
        }
        Ok(())
    }

    async fn item(&mut self, item: Item) -> Result<(), Stopped> {
        item.encode(&mut self.out);
        match self.out.len() >= PART_BYTES {
            true => self.flush().await,
            false => Ok(()),
        }
    }

    async fn flush(&mut self) -> Result<(), Stopped> {
        let part = Bytes::from(std::mem::take(&mut self.out));
        let sent = self.parts.send(Ok(part)).await;
        sent.map_err(|_| Stopped::Answered)
    }
}

#[cfg(test)]
mod tests {
    use lightcone_backup::Manifest;

    use super::*;

    #[tokio::test]
    async fn moments_before_the_first_backup_are_not_known() {
        let end = Place {
            offset: LogOffset::new(5),
            ..Place::default()
        };
        let manifests = [Manifest {
            format: FORMAT,
            database: "00".repeat(32),
            time: 100,
            end,
            epoch: None,
            begins_because: None,
            snapshot: None,
            log: Vec::new(),
            added_bytes: 0,
            checksum: String::new(),
        }];
        let histories = History::all(&manifests);
        let store = Store::Directory("nowhere".into());
        for (moment, offset) in [(50, None), (99, None), (100, Some(end.offset)), (101, None)] {
            let found = at_moment(&store, &histories[0], moment).await;
            assert_eq!(found.expect("no file is read"), offset, "{moment}");
        }
    }

    #[test]
    fn objects_are_verified() {
        let pack = b"--object--";
        let object = ObjectHash::of(b"object");
        let at = |position, bytes| PackEntry {
            object,
            position,
            bytes,
        };
        assert_eq!(object_in(pack, &at(2, 6)), Ok(b"object".as_slice()));
        for (position, bytes) in [(1, 6), (2, 9), (u32::MAX, u32::MAX)] {
            assert!(object_in(pack, &at(position, bytes)).is_err());
        }
    }
}
