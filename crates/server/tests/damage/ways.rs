//! What is done to which byte of which file.
#![allow(
    clippy::single_range_in_vec_init,
    reason = "lists of ranges, some of which have one"
)]

use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};

use super::directory::{files, frames, Directory, Frame};

const SECTOR_BYTES: usize = 512;
/// The rows of the table that may have lost the end of the log.
pub const LAST_OF_KILLED: &str = "log of a killed server: the last frame";
pub const LAST_AS_WHOLE: &str = "log, last segment: as a whole";

/// Numbers from a seed.
pub struct Random(pub u64);

impl Random {
    /// Below a number that is not zero.
    fn below(&mut self, end: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        ((self.0 >> 33) % end as u64) as usize
    }
}

pub struct Damage {
    /// Of the table.
    pub row: &'static str,
    /// The directory, of which a copy is damaged.
    pub root: PathBuf,
    /// Below it.
    file: PathBuf,
    what: String,
    before: Vec<u8>,
    /// None: the file is gone.
    after: Option<Vec<u8>>,
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.file.display(), self.what)
    }
}

impl Damage {
    pub fn apply(&self, root: &Path) {
        let path = root.join(&self.file);
        match &self.after {
            Some(bytes) => std::fs::write(path, bytes).expect("written"),
            None => std::fs::remove_file(path).expect("removed"),
        }
    }

    /// From the first to the last byte that is not what it was. What was cut away is not.
    fn place(&self) -> Range<usize> {
        let after = self.after.as_deref().unwrap_or_default();
        let length = self.before.len().max(after.len());
        let differs = |at: &usize| self.before.get(*at) != after.get(*at);
        let first = (0..length).find(differs).unwrap_or(length);
        let last = (0..length).rev().find(differs).map_or(length, |at| at + 1);
        first..last
    }

    /// Whether it touches each frame of the log with transactions from the one on that has this text.
    pub fn reaches_all_from(&self, text: &str) -> bool {
        let place = self.place();
        let has_text = |frame: &Frame| {
            let payload = &self.before[frame.payload()];
            payload
                .windows(text.len())
                .any(|window| window == text.as_bytes())
        };
        let touched =
            |frame: &Frame| frame.place.start < place.end && place.start < frame.place.end;
        let frames = frames(&self.before);
        let first = frames.iter().position(has_text);
        let lost = first.map(|first| &frames[first..]);
        self.row.starts_with("log")
            && lost.is_some_and(|lost| {
                lost.iter()
                    .all(|frame| frame.transactions == 0 || touched(frame))
            })
    }
}

/// The bytes of a file that have one meaning, in parts.
type Class = (&'static str, Vec<Range<usize>>);

/// Rows for the bytes of a file, and one for the file as a whole. None: it is damaged nowhere.
fn classes(file: &Path, root: &Path, bytes: &[u8]) -> Option<(Vec<Class>, &'static str)> {
    let text = file.to_string_lossy();
    let all = |row| Some((vec![(row, vec![0..bytes.len()])], row));
    let is = |part: &str| text.contains(part);
    let extension = file.extension().unwrap_or_default().to_string_lossy();
    match &*extension {
        _ if is("replicas/2/") => None,
        _ if is("log/lock") || is("copy-1/lock") || is("copy-2/lock") => all("lock"),
        "segment" if is("control-db") => {
            let frames = frames(bytes);
            let rows = vec![
                ("control database: header block", header()),
                ("control database: frame headers", headers(&frames)),
                ("control database: payloads", payloads(&frames)),
            ];
            Some((rows, "control database: as a whole"))
        }
        "segment" if root.join(file) == Directory::last_segment_in(root) => {
            let mut frames = frames(bytes);
            let end = frames.last().map_or(bytes.len(), |frame| frame.place.end);
            let mark = frames.pop_if(|frame| frame.transactions == 0);
            let mut rows = vec![
                ("log, last segment: header block", header()),
                ("log, last segment: frame headers", headers(&frames)),
                ("log, last segment: payloads", payloads(&frames)),
                (
                    "log, last segment: zeros behind the end",
                    vec![end..bytes.len()],
                ),
            ];
            match mark {
                Some(mark) => {
                    rows.push(("log, last segment: mark of a proper end", vec![mark.place]))
                }
                None => {
                    let last = frames.pop().expect("a frame");
                    rows = vec![(LAST_OF_KILLED, vec![last.header(), last.payload()])];
                }
            }
            Some((rows, LAST_AS_WHOLE))
        }
        "segment" => {
            let frames = frames(bytes);
            let rows = vec![
                ("log, older segments: header block", header()),
                ("log, older segments: frame headers", headers(&frames)),
                ("log, older segments: payloads", payloads(&frames)),
            ];
            Some((rows, "log, older segments: as a whole"))
        }
        "pack" => {
            let rows = vec![
                ("pack: header", vec![0..12, 12..16, 16..24, 24..32]),
                ("pack: objects", vec![32..bytes.len()]),
            ];
            Some((rows, "pack: as a whole"))
        }
        "manifest" => {
            let end = bytes.len() - 32;
            let rows = vec![
                ("manifest: header", vec![0..8, 8..16, 16..24, 24..48]),
                ("manifest: packs, objects, tables", vec![48..end]),
                ("manifest: hash", vec![end..bytes.len()]),
            ];
            Some((rows, "manifest: as a whole"))
        }
        "tmp" => all("spare segment"),
        _ if is("config.toml") => all("config.toml"),
        _ if is("metadata.toml") => all("metadata.toml"),
        _ if is("history") => all("history"),
        // Its test is in crates/node/src/auth/secrets_key.rs.
        _ if is("secrets.key") => None,
        _ if is("id_ecdsa.pub") => all("id_ecdsa.pub"),
        _ if is("id_ecdsa") => all("id_ecdsa"),
        _ if is("programs/") => all("programs that ran before"),
        _ if is("module_logs/") => all("module_logs"),
        _ => panic!("a file that has no row: {text}"),
    }
}

/// Magic and version, checksum, database, numbers, zeros.
fn header() -> Vec<Range<usize>> {
    vec![0..12, 12..16, 16..48, 48..112, 112..4096]
}

/// The fields of headers of frames.
fn headers(frames: &[Frame]) -> Vec<Range<usize>> {
    let fields = [0..4, 4..8, 8..12, 12..16, 16..20, 20..28, 28..36, 36..52];
    let of = |frame: &Frame| {
        let start = frame.place.start;
        fields
            .clone()
            .map(|field| start + field.start..start + field.end)
    };
    frames.iter().flat_map(of).collect()
}

fn payloads(frames: &[Frame]) -> Vec<Range<usize>> {
    let all = frames.iter().map(Frame::payload);
    all.filter(|payload| !payload.is_empty()).collect()
}

/// Everything that is tried: of each class some bytes, and of each file some ways to spoil it as a whole.
pub fn all(directory: &Directory, tries: usize, random: &mut Random) -> Vec<Damage> {
    let mut damages = Vec::new();
    for root in [directory.stopped.path(), directory.killed.path()] {
        for path in files(root) {
            let file = path.strip_prefix(root).expect("below").to_owned();
            // What a kill leaves differs in the end of the log.
            if root == directory.killed.path() && path != Directory::last_segment_in(root) {
                continue;
            }
            let before = std::fs::read(&path).expect("read");
            let Some((classes, whole)) = classes(&file, root, &before) else {
                continue;
            };
            let damage = |row, what: String, after| Damage {
                row,
                root: root.to_owned(),
                file: file.clone(),
                what,
                before: before.clone(),
                after,
            };
            for (row, ranges) in classes {
                let ranges: Vec<_> = ranges
                    .into_iter()
                    .filter(|range| !range.is_empty())
                    .collect();
                for _ in 0..tries * usize::from(!ranges.is_empty()) {
                    let range = &ranges[random.below(ranges.len())];
                    let at = range.start + random.below(range.len());
                    let mut after = before.clone();
                    after[at] ^= match random.below(3) {
                        0 => 1 + random.below(255) as u8,
                        _ => 1 << random.below(8),
                    };
                    damages.push(damage(row, format!("byte {at} is changed"), Some(after)));
                }
            }
            for _ in 0..tries.div_ceil(4) {
                let mut ways = spoiled(directory, &file, &before, random);
                while ways.len() > 2 * tries {
                    ways.swap_remove(random.below(ways.len()));
                }
                damages.extend(
                    ways.into_iter()
                        .map(|(what, after)| damage(whole, what, after)),
                );
            }
        }
    }
    damages
}

/// A file that is spoiled as a whole, in each way once.
fn spoiled(
    directory: &Directory,
    file: &Path,
    before: &[u8],
    random: &mut Random,
) -> Vec<(String, Option<Vec<u8>>)> {
    let longer = |tail: Vec<u8>| Some([before, &tail].concat());
    let noise = |random: &mut Random, bytes: usize| -> Vec<u8> {
        (0..bytes).map(|_| random.below(256) as u8).collect()
    };
    let mut spoiled = vec![
        ("it is gone".to_owned(), None),
        (
            "zeros follow".to_owned(),
            longer(vec![0; 1 + random.below(5000)]),
        ),
    ];
    let bytes = 1 + random.below(5000);
    spoiled.push(("noise follows".to_owned(), longer(noise(random, bytes))));
    if !before.is_empty() {
        let end = random.below(before.len());
        spoiled.push((
            format!("it ends at byte {end}"),
            Some(before[..end].to_vec()),
        ));
        let last = before.iter().rposition(|byte| *byte != 0).unwrap_or(0);
        let start = random.below(last + 1) / SECTOR_BYTES * SECTOR_BYTES;
        let sector = start..(start + SECTOR_BYTES).min(before.len());
        let mut zeroed = before.to_vec();
        zeroed[sector.clone()].fill(0);
        spoiled.push((format!("zeros from byte {start} on"), Some(zeroed)));
        let mut noisy = before.to_vec();
        noisy[sector.clone()].copy_from_slice(&noise(random, sector.len()));
        spoiled.push((format!("noise from byte {start} on"), Some(noisy)));
    }
    if let Ok(older) = std::fs::read(directory.older.path().join(file)) {
        spoiled.push(("an older copy is in its place".to_owned(), Some(older)));
    }
    if let Some(twin) = twin(directory.stopped.path(), file) {
        let what = format!("{} is in its place", twin.display());
        let twin = std::fs::read(directory.stopped.path().join(twin));
        spoiled.push((what, Some(twin.expect("read"))));
    }
    spoiled.retain(|(_, after)| after.as_deref() != Some(before));
    spoiled
}

/// Another file of the same kind: of the other database, if it has such a one.
fn twin(root: &Path, file: &Path) -> Option<PathBuf> {
    let all = files(root).into_iter();
    let relative = all.map(|path| path.strip_prefix(root).expect("below").to_owned());
    let others = relative.filter(|other| other != file && other.extension() == file.extension());
    let all: Vec<PathBuf> = others.collect();
    let is_other = |path: &&PathBuf| path.starts_with("data/replicas/2");
    all.iter().find(is_other).or(all.first()).cloned()
}
