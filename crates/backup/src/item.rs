//! Items: what backups are sent as, and what most of their files are made of. Numbers are little-endian.

use lightcone_log::{Epoch, LogHash, LogOffset, PAYLOAD_BYTES_MAX};
use lightcone_snapshot::ObjectHash;
use serde::{Deserialize, Serialize};

use crate::place::{is_possible, Place};

/// Kind and length of an item.
const HEAD_BYTES: usize = 5;
const FRAME_HEAD_BYTES: usize = 36;
const PACK_ENTRY_BYTES: usize = 40;
/// The longest item: a frame of a log.
pub const ITEM_BYTES_MAX: usize = PAYLOAD_BYTES_MAX + FRAME_HEAD_BYTES;

/// One part of a backup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Item {
    /// The first one of what is sent.
    Head(Head),
    Frame(Frame),
    Snapshot(SnapshotHead),
    /// An object of a snapshot: mostly the image of a page.
    Object(Vec<u8>),
    /// Where objects lie.
    Pack(Pack),
    /// The last one of what is sent: the place that all before it leads to.
    End(Place),
    /// Nothing more comes, for this reason.
    Failed(String),
}

/// What is sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Head {
    pub format: u32,
    /// The identity of the database, 64 hexadecimal digits.
    pub database: String,
    /// In microseconds since the Unix epoch: all transactions that were durable then are in it.
    pub time: i64,
    /// Where the frames begin.
    pub from: Place,
    /// The first transaction that is not part of it. Where a frame has more, these are to be left out.
    pub end: u64,
    /// Why it does not go on where it was asked to.
    pub begins_because: Option<String>,
}

/// A frame of a log, as the log has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    pub first_offset: LogOffset,
    /// The number of transactions; not 0.
    pub count: u32,
    pub epoch: Epoch,
    /// Of all transactions up to the last one of this frame.
    pub hash: LogHash,
    pub payload: Vec<u8>,
}

impl Frame {
    /// Behind its last transaction.
    pub fn end(&self) -> LogOffset {
        self.first_offset + u64::from(self.count)
    }
}

impl Place {
    /// The place behind a frame.
    ///
    /// # Errors
    /// It does not follow, or has changed; the text says what was found.
    pub fn behind(self, frame: &Frame) -> Result<Place, String> {
        if frame.first_offset != self.offset {
            return Err(format!(
                "there is a frame of transaction {} where that of transaction {} belongs",
                frame.first_offset, self.offset
            ));
        }
        let payload = [frame.payload.as_slice()];
        let hash = self
            .hash
            .after(frame.epoch, frame.first_offset, frame.count, &payload);
        if hash != frame.hash {
            return Err(format!(
                "the frame of transaction {} does not follow the one before it, or has changed",
                frame.first_offset
            ));
        }
        Ok(Place {
            offset: frame.end(),
            hash,
        })
    }
}

/// A snapshot without its objects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SnapshotHead {
    /// The first transaction that is not in it.
    pub offset: LogOffset,
    pub objects: Vec<ObjectHash>,
    /// What the engine says of them.
    pub engine: Vec<u8>,
}

/// Which objects a pack has that a snapshot needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pack {
    /// Of the whole file, and its name.
    pub hash: ObjectHash,
    pub entries: Vec<PackEntry>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PackEntry {
    pub object: ObjectHash,
    /// Of its first byte, in the file.
    pub position: u32,
    pub bytes: u32,
}

impl Item {
    /// Appends the bytes.
    ///
    /// # Panics
    /// If it is longer than [`ITEM_BYTES_MAX`].
    pub fn encode(&self, out: &mut Vec<u8>) {
        let start = out.len();
        out.push(match self {
            Item::Head(_) => 1,
            Item::Snapshot(_) => 2,
            Item::Object(_) => 3,
            Item::Frame(_) => 4,
            Item::Pack(_) => 5,
            Item::End(_) => 6,
            Item::Failed(_) => 7,
        });
        out.extend_from_slice(&[0; 4]);
        match self {
            Item::Head(head) => {
                let text = serde_json::to_vec(head);
                out.extend_from_slice(&text.expect("texts and numbers are JSON"));
            }
            Item::Snapshot(snapshot) => {
                out.extend_from_slice(&snapshot.offset.get().to_le_bytes());
                out.extend_from_slice(&(snapshot.objects.len() as u64).to_le_bytes());
                for hash in &snapshot.objects {
                    out.extend_from_slice(&hash.0);
                }
                out.extend_from_slice(&snapshot.engine);
            }
            Item::Object(bytes) => out.extend_from_slice(bytes),
            Item::Frame(frame) => {
                out.extend_from_slice(&frame.first_offset.get().to_le_bytes());
                out.extend_from_slice(&frame.count.to_le_bytes());
                out.extend_from_slice(&frame.epoch.get().to_le_bytes());
                out.extend_from_slice(&frame.hash.to_le_bytes());
                out.extend_from_slice(&frame.payload);
            }
            Item::Pack(pack) => {
                out.extend_from_slice(&pack.hash.0);
                for entry in &pack.entries {
                    out.extend_from_slice(&entry.object.0);
                    out.extend_from_slice(&entry.position.to_le_bytes());
                    out.extend_from_slice(&entry.bytes.to_le_bytes());
                }
            }
            Item::End(place) => out.extend_from_slice(place.to_string().as_bytes()),
            Item::Failed(why) => out.extend_from_slice(why.as_bytes()),
        }
        let length = out.len() - start - HEAD_BYTES;
        assert!(length <= ITEM_BYTES_MAX, "an item of {length} bytes");
        out[start + 1..start + HEAD_BYTES].copy_from_slice(&(length as u32).to_le_bytes());
    }

    pub fn to_vec(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.encode(&mut out);
        out
    }

    fn decode(kind: u8, bytes: &[u8]) -> Result<Item, String> {
        match kind {
            1 => decode_head(bytes).map(Item::Head),
            2 => decode_snapshot(bytes)
                .map(Item::Snapshot)
                .ok_or_else(|| "a snapshot is cut off, or has an impossible offset".to_owned()),
            3 => Ok(Item::Object(bytes.to_vec())),
            4 => decode_frame(bytes)
                .map(Item::Frame)
                .ok_or_else(|| "a frame is cut off, or has an impossible offset".to_owned()),
            5 => decode_pack(bytes)
                .map(Item::Pack)
                .ok_or_else(|| "a list of objects is cut off".to_owned()),
            6 => text(bytes)?.parse().map(Item::End),
            7 => Ok(Item::Failed(text(bytes)?.to_owned())),
            _ => Err(format!("there is no kind {kind} of items")),
        }
    }
}

fn text(bytes: &[u8]) -> Result<&str, String> {
    std::str::from_utf8(bytes).map_err(|error| error.to_string())
}

fn decode_head(bytes: &[u8]) -> Result<Head, String> {
    let head: Head = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
    match is_possible(LogOffset::new(head.end)) {
        true => Ok(head),
        false => Err(format!("the offset {} is impossible", head.end)),
    }
}

fn decode_snapshot(bytes: &[u8]) -> Option<SnapshotHead> {
    let (offset, rest) = bytes.split_first_chunk()?;
    let (count, rest) = rest.split_first_chunk()?;
    let offset = LogOffset::new(u64::from_le_bytes(*offset));
    let count = usize::try_from(u64::from_le_bytes(*count)).ok()?;
    let (hashes, engine) = rest.split_at_checked(count.checked_mul(32)?)?;
    let hashes = hashes.as_chunks::<32>().0.iter();
    is_possible(offset).then(|| SnapshotHead {
        offset,
        objects: hashes.copied().map(ObjectHash).collect(),
        engine: engine.to_vec(),
    })
}

fn decode_frame(bytes: &[u8]) -> Option<Frame> {
    let (first_offset, rest) = bytes.split_first_chunk()?;
    let (count, rest) = rest.split_first_chunk()?;
    let (epoch, rest) = rest.split_first_chunk()?;
    let (hash, payload) = rest.split_first_chunk()?;
    let first_offset = LogOffset::new(u64::from_le_bytes(*first_offset));
    let count = u32::from_le_bytes(*count);
    let end = first_offset.checked_add(count.into())?;
    (count > 0 && is_possible(end)).then(|| Frame {
        first_offset,
        count,
        epoch: Epoch::new(u64::from_le_bytes(*epoch)),
        hash: LogHash::from_le_bytes(*hash),
        payload: payload.to_vec(),
    })
}

fn decode_pack(bytes: &[u8]) -> Option<Pack> {
    let (hash, rest) = bytes.split_first_chunk()?;
    let (entries, rest) = rest.as_chunks::<PACK_ENTRY_BYTES>();
    let number = |bytes: &[u8]| u32::from_le_bytes(bytes.try_into().expect("4 bytes"));
    let entries = entries.iter().map(|entry| PackEntry {
        object: ObjectHash(entry[..32].try_into().expect("32 bytes")),
        position: number(&entry[32..36]),
        bytes: number(&entry[36..]),
    });
    rest.is_empty().then(|| Pack {
        hash: ObjectHash(*hash),
        entries: entries.collect(),
    })
}

/// Gives the items of bytes that come in parts.
#[derive(Default)]
pub struct Decoder {
    bytes: Vec<u8>,
    /// Items before this place were given.
    position: usize,
}

impl Decoder {
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.drain(..std::mem::take(&mut self.position));
        self.bytes.extend_from_slice(bytes);
    }

    /// Bytes of items that were not given yet.
    pub fn pending(&self) -> usize {
        self.bytes.len() - self.position
    }

    /// The next item; none if it has not come whole.
    ///
    /// # Errors
    /// There is no such item. No other one follows then.
    #[allow(clippy::should_implement_trait)] // None is not the end.
    pub fn next(&mut self) -> Result<Option<Item>, String> {
        let rest = &self.bytes[self.position..];
        let Some((head, rest)) = rest.split_first_chunk::<HEAD_BYTES>() else {
            return Ok(None);
        };
        let length = u32::from_le_bytes([head[1], head[2], head[3], head[4]]) as usize;
        if length > ITEM_BYTES_MAX {
            return Err(format!("an item has {length} bytes, which is impossible"));
        }
        let Some(bytes) = rest.get(..length) else {
            return Ok(None);
        };
        let item = Item::decode(head[0], bytes)?;
        self.position += HEAD_BYTES + length;
        Ok(Some(item))
    }

    /// All items of a whole file.
    ///
    /// # Errors
    /// The file is not a list of items.
    pub fn all(bytes: &[u8]) -> Result<Vec<Item>, String> {
        let mut decoder = Decoder::default();
        decoder.push(bytes);
        let mut items = Vec::new();
        while let Some(item) = decoder.next()? {
            items.push(item);
        }
        match decoder.pending() {
            0 => Ok(items),
            pending => Err(format!("{pending} bytes at its end are no whole item")),
        }
    }
}

/// What a snapshot file says: the snapshot, and in which packs its objects are.
///
/// # Errors
/// It says something else, or not of all objects where they are.
pub fn objects_of(bytes: &[u8]) -> Result<(SnapshotHead, Vec<Pack>), String> {
    let mut items = Decoder::all(bytes)?.into_iter();
    let Some(Item::Snapshot(snapshot)) = items.next() else {
        return Err("it does not begin with a snapshot".to_owned());
    };
    let packs = items.map(|item| match item {
        Item::Pack(pack) => Ok(pack),
        _ => Err("something else than lists of objects follows".to_owned()),
    });
    let packs = packs.collect::<Result<Vec<_>, _>>()?;
    let entries = packs.iter().flat_map(|pack| &pack.entries);
    let known: std::collections::HashSet<_> = entries.map(|entry| entry.object).collect();
    match snapshot.objects.iter().find(|hash| !known.contains(hash)) {
        Some(hash) => Err(format!("it does not say where object {hash} is")),
        None => Ok((snapshot, packs)),
    }
}
